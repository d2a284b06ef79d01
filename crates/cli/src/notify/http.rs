//! A POST to a webhook, by http or https. No redirect is followed and no body of an answer is read.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;
use rustls::CertificateError;
use ureq::http::Uri;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Error, Proxy};

use crate::env::Environment;

/// The first of these that is set names the proxy for https, as other programs have it.
const PROXY: [&str; 4] = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
/// Hosts that are reached without it.
const NO_PROXY: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// Where a request goes.
#[derive(Debug)]
pub struct Address {
    uri: Uri,
    /// `Basic …`, from `user:password@` in the URL.
    authorization: Option<String>,
}

impl Address {
    /// Reads a URL that begins with `http://` or `https://`.
    pub fn of(url: &str) -> Result<Self, String> {
        let uri: Uri = url
            .parse()
            .map_err(|error| format!("not a valid URL: {error}"))?;
        let authority = uri.authority().map(|authority| authority.as_str());
        let login = authority.and_then(|authority| authority.rsplit_once('@'));
        let authorization = login.map(|(login, _)| {
            let colon = if login.contains(':') { "" } else { ":" };
            let login = percent_decode_str(login).chain(percent_decode_str(colon));
            format!(
                "Basic {}",
                BASE64_STANDARD.encode(login.collect::<Vec<u8>>())
            )
        });
        match uri.host() {
            Some(host) if !host.is_empty() => Ok(Self { uri, authorization }),
            _ => Err("not a valid URL: it names no host".to_owned()),
        }
    }

    fn is_https(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    /// Host and port, without user and password.
    fn place(&self) -> String {
        let host = self.uri.host().unwrap_or_default();
        match self.uri.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// The proxy to reach it by. Plain http goes straight to its host.
    fn proxy(&self, environment: &Environment) -> Result<Option<Proxy>, String> {
        let set = |name: &&'static str| environment.text(name).map(|value| (*name, value));
        let exempt = NO_PROXY.iter().find_map(set).map_or("", |(_, list)| list);
        let Some((name, value)) = PROXY.iter().find_map(set) else {
            return Ok(None);
        };
        if !self.is_https() || is_exempt(self.uri.host().unwrap_or_default(), exempt) {
            return Ok(None);
        }
        let proxy = Proxy::new(value);
        proxy
            .map(Some)
            .map_err(|_| format!("{name} holds no valid proxy URL"))
    }
}

/// Whether a host, or a domain that it is in, stands in a list like `localhost,.example.com`.
fn is_exempt(host: &str, list: &str) -> bool {
    let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
    list.split([',', ' ']).any(|entry| {
        let domain = entry.trim_start_matches('*').trim_start_matches('.');
        let domain = domain.to_ascii_lowercase();
        let inside = host.strip_suffix(&domain);
        match domain.is_empty() {
            true => entry == "*",
            false => inside.is_some_and(|rest| rest.is_empty() || rest.ends_with('.')),
        }
    })
}

/// Sends `body`; any status from 200 to 299 will do.
pub fn post(
    url: &str,
    body: &str,
    timeout: Duration,
    environment: &Environment,
) -> Result<(), String> {
    let address = Address::of(url)?;
    let config = Agent::config_builder()
        .timeout_global(Some(timeout))
        // A redirect would take the event, and the URL's secrets, to a place that nobody named.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .max_idle_connections(0)
        .user_agent(concat!("descartes/", env!("CARGO_PKG_VERSION")))
        .proxy(address.proxy(environment)?);
    let config = match address.is_https() {
        true => config.tls_config(tls()?),
        false => config,
    };
    let agent = Agent::new_with_config(config.build());
    let mut request = agent
        .post(&address.uri)
        .header("Content-Type", "application/json");
    if let Some(authorization) = &address.authorization {
        request = request.header("Authorization", authorization);
    }
    let answer = request.send(body);
    let status = answer
        .map_err(|error| failure(&error, &address.place(), timeout))?
        .status();
    match status.is_success() {
        true => Ok(()),
        false => Err(format!("{} answered {status}", address.place())),
    }
}

/// Trusts what the system trusts, or what `SSL_CERT_FILE` and `SSL_CERT_DIR` name instead.
fn tls() -> Result<TlsConfig, String> {
    let found = rustls_native_certs::load_native_certs();
    let certs = found.certs.iter();
    let certs: Vec<_> = certs
        .map(|cert| Certificate::from_der(cert).to_owned())
        .collect();
    if certs.is_empty() {
        let why = found.errors.first().map(|error| format!(" ({error})"));
        return Err(format!(
            "no trusted CA certificates{}: install ca-certificates, or name a file of them in SSL_CERT_FILE",
            why.unwrap_or_default()
        ));
    }
    let provider = rustls::crypto::ring::default_provider();
    Ok(TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(provider))
        .root_certs(RootCerts::Specific(Arc::new(certs)))
        .build())
}

/// Why there was no answer.
fn failure(error: &Error, place: &str, timeout: Duration) -> String {
    let error = match error {
        Error::Timeout(_) => {
            return format!("no answer from {place} within {} s", timeout.as_secs_f32());
        }
        Error::Protocol(error) => return format!("{place} did not answer in HTTP: {error}"),
        Error::Rustls(error) => return insecure(error, place),
        Error::Io(error) => error,
        other => return format!("cannot reach {place}: {other}"),
    };
    let inner = error.get_ref();
    if let Some(error) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return insecure(error, place);
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe => format!("{place} closed the connection: {error}"),
        _ => format!("cannot reach {place}: {error}"),
    }
}

/// Why a connection is not secure.
fn insecure(error: &rustls::Error, place: &str) -> String {
    let rustls::Error::InvalidCertificate(why) = error else {
        return format!("no TLS connection to {place}: {error}");
    };
    let why = match why {
        CertificateError::UnknownIssuer => {
            "issued by an unknown CA; name the file of a private CA in SSL_CERT_FILE".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "expired".to_owned(),
        other => other.to_string(),
    };
    format!("the certificate of {place} is not trusted: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    const LONG: Duration = Duration::from_secs(20);

    fn post_to(url: &str, timeout: Duration) -> Result<(), String> {
        post(url, "{}\n", timeout, &Environment::of(&[]))
    }

    /// Answers one request, and gives it back.
    fn server(answer: &'static str) -> (String, thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook?x=1", listener.local_addr().unwrap());
        let thread = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut got = [0; 4096];
            let mut text = String::new();
            while !text.ends_with("{}\n") {
                let read = stream.read(&mut got).unwrap();
                text.push_str(&String::from_utf8_lossy(&got[..read]));
            }
            stream.write_all(answer.as_bytes()).unwrap();
            text.to_ascii_lowercase()
        });
        (url, thread)
    }

    #[test]
    fn the_event_is_posted_as_json() {
        let (url, server) = server("HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(post_to(&url, LONG), Ok(()));
        let request = server.join().unwrap();
        assert!(
            request.starts_with("post /hook?x=1 http/1.1\r\n"),
            "{request}"
        );
        for header in [
            "content-type: application/json",
            "content-length: 3",
            "host: 127.0.0.1:",
        ] {
            assert!(request.contains(header), "{header}: {request}");
        }
    }

    #[test]
    fn a_login_goes_to_the_server_and_nowhere_else() {
        let authorization = |url| Address::of(url).unwrap().authorization;
        for (url, login) in [
            (
                "http://me:p%40ss@example.org:81/x",
                Some("Basic bWU6cEBzcw=="),
            ),
            ("http://me@h/", Some("Basic bWU6")),
            ("http://h/a@b", None),
        ] {
            assert_eq!(authorization(url).as_deref(), login, "{url}");
        }
        let failed = post_to("http://me:secret1@127.0.0.1:1/", LONG).unwrap_err();
        assert!(failed.starts_with("cannot reach 127.0.0.1:1: "), "{failed}");
        assert!(!failed.contains("secret1"), "{failed}");
    }

    #[test]
    fn anything_but_success_is_a_failure_with_its_reason() {
        let long = LONG;
        for (answer, why) in [
            (
                "HTTP/1.1 503 Busy\r\n\r\n",
                "answered 503 Service Unavailable",
            ),
            (
                "HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n",
                "answered 302 Found",
            ),
            ("220 mail.example ESMTP\r\n", "did not answer in HTTP"),
            ("", "closed the connection"),
        ] {
            let (url, _server) = server(answer);
            let failed = post_to(&url, long).unwrap_err();
            assert!(failed.contains(why), "{answer}: {failed}");
        }
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let failed = post_to(&url, Duration::from_millis(100)).unwrap_err();
        assert!(failed.contains("no answer from 127.0.0.1:"), "{failed}");
        for url in ["http://x y/", "http://", "http://user@/x"] {
            let failed = post_to(url, long).unwrap_err();
            assert!(failed.contains("not a valid URL"), "{url}: {failed}");
        }
    }

    #[test]
    fn a_proxy_is_for_https_and_exempts_whole_domains() {
        for (list, host, exempt) in [
            ("", "example.com", false),
            ("*", "example.com", true),
            ("example.com", "example.com", true),
            ("example.com", "hooks.Example.com", true),
            (".example.com", "hooks.example.com", true),
            ("*.example.com", "hooks.example.com", true),
            ("example.com", "notexample.com", false),
            ("a.org, example.com", "example.com", true),
            ("::1", "[::1]", true),
        ] {
            assert_eq!(is_exempt(host, list), exempt, "{list}: {host}");
        }
        let proxy = |url: &str, pairs: &[(&str, &str)]| {
            let proxy = Address::of(url).unwrap().proxy(&Environment::of(pairs));
            proxy.map(|proxy| proxy.map(|proxy| proxy.host().to_owned()))
        };
        let both = [("ALL_PROXY", "socks5://all:1"), ("https_proxy", "one:2")];
        assert_eq!(proxy("https://h/", &both), Ok(Some("one".to_owned())));
        assert_eq!(proxy("https://h/", &both[..1]), Ok(Some("all".to_owned())));
        assert_eq!(proxy("http://h/", &both), Ok(None));
        let wrong = proxy("https://h/", &[("https_proxy", "gopher://x")]);
        assert!(wrong.unwrap_err().contains("https_proxy"));
    }
}
