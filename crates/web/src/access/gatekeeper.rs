//! Whether a request is let in: decided by its headers alone.

use std::net::IpAddr;

use super::{Access, Tokens};

/// How requests reach the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Plain,
    Tls,
    /// Somebody before us speaks TLS, and may have any port.
    Proxy,
}

/// The names and ports under which the server answers.
#[derive(Clone, Debug)]
pub struct Gatekeeper {
    port: u16,
    transport: Transport,
    /// Names from `--host`, as they were typed.
    names: Vec<String>,
    /// The most that anybody may do.
    most: Access,
}

/// What a request shows of itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestFacts<'a> {
    pub host: Option<&'a str>,
    pub origin: Option<&'a str>,
    pub bearer: Option<&'a str>,
    pub cookie: Option<&'a str>,
    /// Anything but a plain GET or HEAD.
    pub changes: bool,
}

/// Why a request is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedRequest {
    /// The Host header names somebody else: a page of another site may have had its name pointed here.
    WrongHost,
    /// It comes from a page of another site.
    WrongOrigin,
    NoToken,
    WrongToken,
    /// It would change something, and may only look.
    ReadOnly,
}

impl RefusedRequest {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WrongHost => "wrong_host",
            Self::WrongOrigin => "wrong_origin",
            Self::NoToken => "no_token",
            Self::WrongToken => "wrong_token",
            Self::ReadOnly => "read_only",
        }
    }
}

impl Gatekeeper {
    pub fn new(port: u16, transport: Transport, names: Vec<String>, most: Access) -> Self {
        Self {
            port,
            transport,
            names,
            most,
        }
    }

    pub fn most(&self) -> Access {
        self.most
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// Whether a request is meant for this server, and from no page of another.
    pub fn check_place(&self, asked: &RequestFacts<'_>) -> Result<(), RefusedRequest> {
        let host = asked.host.filter(|host| self.knows(host));
        let host = host.ok_or(RefusedRequest::WrongHost)?;
        match asked.origin {
            None => Ok(()),
            Some(origin) if self.is_ours(origin, host) => Ok(()),
            Some(_) => Err(RefusedRequest::WrongOrigin),
        }
    }

    /// What the request may do; `signed_in`: what the browser with its cookie may.
    pub fn check(
        &self,
        asked: &RequestFacts<'_>,
        tokens: &Tokens,
        signed_in: Option<Access>,
    ) -> Result<Access, RefusedRequest> {
        self.check_place(asked)?;
        let (access, by_cookie) = match (asked.bearer, asked.cookie) {
            (Some(bearer), _) => (tokens.check(bearer), false),
            (None, Some(_)) => (signed_in, true),
            (None, None) => return Err(RefusedRequest::NoToken),
        };
        let access = access.ok_or(RefusedRequest::WrongToken)?;
        let access = access.min(self.most);
        if !asked.changes {
            return Ok(access);
        }
        // A browser sends its cookie whoever asks, and says who does.
        if by_cookie && asked.origin.is_none() {
            return Err(RefusedRequest::WrongOrigin);
        }
        match access {
            Access::Steer => Ok(access),
            Access::Read => Err(RefusedRequest::ReadOnly),
        }
    }

    /// An address, `localhost`, or a name from `--host`: no other name of the DNS is ours.
    fn knows(&self, host: &str) -> bool {
        let (name, port) = split(host);
        let named = |known: &String| {
            let (known, known_port) = split(known);
            known.eq_ignore_ascii_case(name) && (known_port.is_none() || known_port == port)
        };
        if self.names.iter().any(named) {
            return true;
        }
        let by_address = name.eq_ignore_ascii_case("localhost") || is_address(name);
        let default = match self.transport {
            Transport::Tls => 443,
            Transport::Plain | Transport::Proxy => 80,
        };
        let right_port = match port {
            None => self.port == default,
            Some(port) => port.parse() == Ok(self.port),
        };
        by_address && right_port
    }

    fn is_ours(&self, origin: &str, host: &str) -> bool {
        let Some((scheme, authority)) = origin.split_once("://") else {
            return false;
        };
        let right_scheme = match self.transport {
            Transport::Plain => scheme == "http",
            Transport::Tls => scheme == "https",
            Transport::Proxy => scheme == "http" || scheme == "https",
        };
        right_scheme && authority.eq_ignore_ascii_case(host)
    }
}

fn is_address(name: &str) -> bool {
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let address = bare.unwrap_or(name).parse::<IpAddr>();
    // `0.0.0.0` is where one listens; pages use it to get past a browser's rules for addresses of this machine.
    address.is_ok_and(|address| !address.is_unspecified())
}

/// A name and its port; an IPv6 address stands in brackets.
fn split(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(transport: Transport, names: &[&str]) -> Gatekeeper {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Gatekeeper::new(7317, transport, names, Access::Steer)
    }

    fn place(gate: &Gatekeeper, host: &str, origin: Option<&str>) -> Result<(), RefusedRequest> {
        gate.check_place(&RequestFacts {
            host: Some(host),
            origin,
            ..RequestFacts::default()
        })
    }

    #[test]
    fn only_addresses_localhost_and_given_names_are_ours() {
        let plain = gate(Transport::Plain, &[]);
        for host in [
            "127.0.0.1:7317",
            "localhost:7317",
            "[::1]:7317",
            "LOCALHOST:7317",
        ] {
            assert_eq!(place(&plain, host, None), Ok(()), "{host}");
        }
        for host in [
            "evil.example:7317",
            "0.0.0.0:7317",
            "[::]:7317",
            "127.0.0.1.evil.example:7317",
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost.evil.example:7317",
            "",
            "[::1",
        ] {
            assert_eq!(
                place(&plain, host, None),
                Err(RefusedRequest::WrongHost),
                "{host}"
            );
        }
        let nothing = plain.check_place(&RequestFacts::default());
        assert_eq!(nothing, Err(RefusedRequest::WrongHost));
        let named = gate(Transport::Proxy, &["loops.example"]);
        assert_eq!(place(&named, "loops.example", None), Ok(()));
        assert_eq!(place(&named, "loops.example:8443", None), Ok(()));
        assert_eq!(
            place(&named, "other.example", None),
            Err(RefusedRequest::WrongHost)
        );
    }

    #[test]
    fn a_page_of_another_site_is_refused() {
        let (plain, host) = (gate(Transport::Plain, &[]), "127.0.0.1:7317");
        assert_eq!(place(&plain, host, Some("http://127.0.0.1:7317")), Ok(()));
        for origin in [
            "null",
            "https://127.0.0.1:7317",
            "http://127.0.0.1:9999",
            "http://localhost:7317",
            "http://evil.example",
            "http://127.0.0.1:7317.evil.example",
        ] {
            let got = place(&plain, host, Some(origin));
            assert_eq!(got, Err(RefusedRequest::WrongOrigin), "{origin}");
        }
    }
}
