//! Where an engine is, and with which key: `nats+tls://worker-7@host:4222?key=…&pin=…`.

use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The port where none is named.
pub const DEFAULT_PORT: u16 = 4222;

/// Whose key is no worker's.
pub const COORDINATOR: &str = "coordinator";

/// Where whoever has no key, or one that is not accepted, gets another one.
#[must_use]
pub fn new_key(name: Option<&str>) -> String {
    let coordinators =
        "a task loop's is the line in engine/coordinator.url of the state folder there";
    match name {
        Some(COORDINATOR) => format!("where the engine runs, {coordinators}"),
        Some(name) => {
            format!("where the engine runs, `descartes engine join-token {name}` makes a new one")
        }
        None => format!(
            "where the engine runs, `descartes engine join-token NAME` prints a worker's; {coordinators}"
        ),
    }
}

/// What is written as `%XX` in a name.
const NAME_SPECIAL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// The address of an engine. `Display` leaves the key out; [`EngineUrl::with_key`] does not.
#[derive(Clone, PartialEq, Eq)]
pub struct EngineUrl {
    /// One, or those of a cluster.
    pub hosts: Vec<(String, u16)>,
    pub transport: Transport,
    /// Whose key it is; a worker's name.
    pub name: Option<String>,
    /// The secret part of the key pair.
    pub key: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// On one machine.
    Plain,
    /// TLS with a certificate that an authority of this machine has signed.
    Tls,
    /// TLS with this certificate alone: the SHA-256 of it, in hexadecimal.
    PinnedTls(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("not the address of an engine: it begins with nats:// or nats+tls://")]
    Scheme,
    #[error("no host in the address of the engine (e.g. nats://127.0.0.1:4222)")]
    Host,
    #[error("`{0}` is not a port")]
    Port(String),
    #[error("unknown part `{0}` in the address of the engine (known: key, pin)")]
    Part(String),
    #[error("a pin is the SHA-256 of the certificate: 64 hexadecimal digits")]
    Pin,
    #[error("a pin needs nats+tls://")]
    PinWithoutTls,
    #[error("the key in the address of the engine is not one of a user (SU…)")]
    Key,
}

impl EngineUrl {
    /// The whole line, key included: for the pipe and for files that only the user can read.
    #[must_use]
    pub fn with_key(&self) -> String {
        self.write(self.key.as_deref())
    }

    /// Whether both lead to one engine, whoever asks and however a person wrote this machine's own name.
    #[must_use]
    pub fn is_same_engine(&self, other: &Self) -> bool {
        let local = |host: &str| matches!(host, "localhost" | "127.0.0.1" | "::1");
        let same = |one: &(String, u16), other: &(String, u16)| {
            one.1 == other.1 && (one.0 == other.0 || (local(&one.0) && local(&other.0)))
        };
        let hosts = &other.hosts;
        self.hosts
            .iter()
            .any(|one| hosts.iter().any(|other| same(one, other)))
    }

    fn write(&self, key: Option<&str>) -> String {
        let scheme = match self.transport {
            Transport::Plain => "nats",
            Transport::Tls | Transport::PinnedTls(_) => "nats+tls",
        };
        let name = self.name.as_deref().map_or_else(String::new, |name| {
            format!("{}@", utf8_percent_encode(name, NAME_SPECIAL))
        });
        let host = |(host, port): &(String, u16)| match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        };
        let hosts: Vec<String> = self.hosts.iter().map(host).collect();
        let pin = match &self.transport {
            Transport::PinnedTls(pin) => Some(format!("pin={pin}")),
            Transport::Plain | Transport::Tls => None,
        };
        let parts: Vec<String> = key
            .map(|key| format!("key={key}"))
            .into_iter()
            .chain(pin)
            .collect();
        let query = match parts.is_empty() {
            true => String::new(),
            false => format!("?{}", parts.join("&")),
        };
        format!("{scheme}://{name}{}{query}", hosts.join(","))
    }
}

impl fmt::Display for EngineUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.write(None))
    }
}

impl fmt::Debug for EngineUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EngineUrl({self})")
    }
}

impl FromStr for EngineUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let (scheme, rest) = text.trim().split_once("://").ok_or(UrlError::Scheme)?;
        let tls = match scheme {
            "nats" => false,
            "nats+tls" | "tls" => true,
            _ => return Err(UrlError::Scheme),
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (name, hosts) = match place.split_once('@') {
            Some((name, hosts)) => (Some(decode(name)), hosts),
            None => (None, place),
        };
        let hosts: Result<Vec<_>, _> = hosts
            .trim_end_matches('/')
            .split(',')
            .map(host_and_port)
            .collect();
        let (mut key, mut pin) = (None, None);
        for part in query.split('&').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("key", value)) => key = Some(parse_key(value)?),
                Some(("pin", value)) => pin = Some(parse_pin(value)?),
                other => {
                    return Err(UrlError::Part(
                        other.map_or(part, |(name, _)| name).to_owned(),
                    ));
                }
            }
        }
        let transport = match (tls, pin) {
            (true, Some(pin)) => Transport::PinnedTls(pin),
            (true, None) => Transport::Tls,
            (false, Some(_)) => return Err(UrlError::PinWithoutTls),
            (false, None) => Transport::Plain,
        };
        Ok(Self {
            hosts: hosts?,
            transport,
            name: name.filter(|name| !name.is_empty()),
            key,
        })
    }
}

fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn host_and_port(text: &str) -> Result<(String, u16), UrlError> {
    let port = |text: &str| text.parse().map_err(|_| UrlError::Port(text.to_owned()));
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => match rest.strip_prefix(':') {
            Some(given) => (host, port(given)?),
            None => (host, DEFAULT_PORT),
        },
        None => match text.rsplit_once(':') {
            Some((host, given)) => (host, port(given)?),
            None => (text, DEFAULT_PORT),
        },
    };
    match host.is_empty() {
        true => Err(UrlError::Host),
        false => Ok((host.to_owned(), port)),
    }
}

fn parse_key(text: &str) -> Result<String, UrlError> {
    let plausible = text.starts_with("SU")
        && text.len() == 58
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match plausible {
        true => Ok(text.to_owned()),
        false => Err(UrlError::Key),
    }
}

fn parse_pin(text: &str) -> Result<String, UrlError> {
    let plausible = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match plausible {
        true => Ok(text.to_ascii_lowercase()),
        false => Err(UrlError::Pin),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "SUAEL6GG2L2HIF7DUGZJGMRUFKXELGGYFMHF76UO2AYBG3K4YLWR3FKC2Q";

    #[test]
    fn addresses_are_read_and_written_back() {
        let pin = "ab".repeat(32);
        for text in [
            "nats://127.0.0.1:4222".to_owned(),
            "nats://[::1]:4333".to_owned(),
            "nats+tls://a:1,b:2".to_owned(),
            format!("nats+tls://worker-7@host:4222?key={KEY}&pin={pin}"),
        ] {
            let url: EngineUrl = text.parse().unwrap();
            assert_eq!(url.with_key(), text);
        }
        let short: EngineUrl = "nats://host".parse().unwrap();
        assert_eq!(short.to_string(), "nats://host:4222");
    }

    #[test]
    fn one_engine_has_many_spellings() {
        let same = |one: &str, other: &str| {
            let (one, other): (EngineUrl, EngineUrl) =
                (one.parse().unwrap(), other.parse().unwrap());
            one.is_same_engine(&other)
        };
        let with_key = format!("nats://coordinator@127.0.0.1:4222?key={KEY}");
        for other in ["nats://localhost", "nats://[::1]:4222", &*with_key] {
            assert!(same("nats://127.0.0.1:4222", other), "{other}");
        }
        assert!(same("nats://a:1,b:2", "nats://b:2"));
        assert!(!same("nats://a:1", "nats://a:2"));
        assert!(!same("nats://a:1", "nats://b:1"));
        assert!(!same("nats://localhost", "nats://host"));
    }

    #[test]
    fn a_key_is_not_shown() {
        let url: EngineUrl = format!("nats://w@host?key={KEY}").parse().unwrap();
        assert!(!format!("{url} {url:?}").contains("SUA"));
        assert!(url.with_key().contains(KEY));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let port = UrlError::Port("x".into());
        for (text, error) in [
            ("127.0.0.1:4222", UrlError::Scheme),
            ("http://h", UrlError::Scheme),
            ("nats://", UrlError::Host),
            ("nats://h:x", port),
            ("nats://h?tls=1", UrlError::Part("tls".into())),
            ("nats+tls://h?pin=1", UrlError::Pin),
            ("nats://h?key=abc", UrlError::Key),
        ] {
            assert_eq!(text.parse::<EngineUrl>().unwrap_err(), error, "{text}");
        }
        let pinned = format!("nats://h?pin={}", "0".repeat(64));
        assert_eq!(pinned.parse::<EngineUrl>(), Err(UrlError::PinWithoutTls));
    }
}
