//! What a client asks of a proxy, and whether that host is allowed.

/// Hosts that may be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AllowedHosts(Vec<(String, u16)>);

impl AllowedHosts {
    /// `host` means its port 443, `host:port` that one.
    pub(super) fn new(hosts: &[String]) -> Self {
        let read = |text: &String| match split_port(text) {
            Some((host, port)) => (host, port),
            None => (plain(text), 443),
        };
        Self(hosts.iter().map(read).collect())
    }

    pub(super) fn allows(&self, host: &str, port: u16) -> bool {
        let host = plain(host);
        self.0
            .iter()
            .any(|(known, open)| *known == host && *open == port)
    }
}

/// A name in its one form: lower case, without brackets and final dot.
fn plain(host: &str) -> String {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.trim_end_matches('.').to_ascii_lowercase()
}

fn split_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    // Without brackets a second colon belongs to an address.
    let ambiguous = host.contains(':') && !host.ends_with(']');
    let port = port.parse().ok().filter(|_| !ambiguous)?;
    Some((plain(host), port))
}

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProxyRequest {
    pub(super) host: String,
    pub(super) port: u16,
    /// What the host is sent first; `None` where the client wants a tunnel.
    pub(super) head: Option<String>,
}

/// Reads the head of a request: `CONNECT host:port`, or a method with a whole address.
pub(super) fn parse(head: &str) -> Option<ProxyRequest> {
    let (line, rest) = head.split_once("\r\n")?;
    let mut words = line.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if method == "CONNECT" {
        let (host, port) = split_port(target)?;
        return Some(ProxyRequest {
            host,
            port,
            head: None,
        });
    }
    let address = target.strip_prefix("http://")?;
    let at = address.find(['/', '?']).unwrap_or(address.len());
    let (authority, path) = address.split_at(at);
    let authority = authority.rsplit('@').next()?;
    let (host, port) = split_port(authority).unwrap_or_else(|| (plain(authority), 80));
    let slash = if path.starts_with('/') { "" } else { "/" };
    // One request for a connection: the next one may be for another host.
    let dropped = ["proxy-connection:", "connection:", "keep-alive:"];
    let kept = rest.split("\r\n").filter(|line| {
        let line = line.to_ascii_lowercase();
        !line.is_empty() && !dropped.iter().any(|name| line.starts_with(name))
    });
    let mut out = format!("{method} {slash}{path} {version}\r\n");
    for line in kept {
        out.push_str(line);
        out.push_str("\r\n");
    }
    out.push_str("Connection: close\r\n\r\n");
    Some(ProxyRequest {
        host,
        port,
        head: Some(out),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunnel_and_a_plain_request_name_host_and_port() {
        let tunnel = parse("CONNECT API.Example.:443 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert_eq!((&*tunnel.host, tunnel.port), ("api.example", 443));
        assert_eq!(tunnel.head, None);
        let plain = "GET http://u:p@example:8080/a?b HTTP/1.1\r\nHost: example\r\n\
            Proxy-Connection: keep-alive\r\nconnection: keep-alive\r\n\r\n";
        let plain = parse(plain).unwrap();
        assert_eq!((&*plain.host, plain.port), ("example", 8080));
        assert_eq!(
            plain.head.unwrap(),
            "GET /a?b HTTP/1.1\r\nHost: example\r\nConnection: close\r\n\r\n"
        );
        let bare = parse("GET http://example HTTP/1.0\r\n\r\n").unwrap();
        assert_eq!((&*bare.host, bare.port), ("example", 80));
        for wrong in [
            "GET / HTTP/1.1\r\n\r\n",
            "CONNECT example HTTP/1.1\r\n\r\n",
            "GET https://example/ HTTP/1.1\r\n\r\n",
            "nonsense",
            "",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_the_named_hosts_and_ports_are_allowed() {
        let hosts = ["api.example", "127.0.0.1:9000", "[::1]:80"].map(str::to_owned);
        let hosts = AllowedHosts::new(&hosts);
        for (host, port, allowed) in [
            ("api.example", 443, true),
            ("API.EXAMPLE.", 443, true),
            ("api.example", 80, false),
            ("evil.api.example", 443, false),
            ("api.example.evil", 443, false),
            ("127.0.0.1", 9000, true),
            ("127.0.0.1", 9001, false),
            ("[::1]", 80, true),
        ] {
            assert_eq!(hosts.allows(host, port), allowed, "{host}:{port}");
        }
    }
}
