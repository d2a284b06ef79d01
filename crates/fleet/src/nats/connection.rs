//! One connection: made with clear errors, and watched.

use std::time::Duration;

use async_nats::{
    Client, ClientError, ConnectError, ConnectErrorKind, ConnectOptions, Event, ServerError,
};
use descartes_bridge::url::new_key;
use descartes_bridge::{EngineError, EngineUrl, Transport, subject};
use tokio::sync::{broadcast, watch};

use super::tls;

/// What leases and markers need.
pub const MIN_SERVER: (u64, u64) = (2, 12);

/// A server that is frozen is noticed after two of them.
const PING_INTERVAL: Duration = Duration::from_secs(5);

/// A server that is just reading its keys anew may refuse one that it knows: only so many refusals, one after
/// the other within three seconds or more, mean that it was revoked.
const REFUSALS: u32 = 8;

/// The same for the first connection.
const KEY_TRIES: u32 = 4;
const KEY_RETRY_DELAY: Duration = Duration::from_millis(250);

/// For the first connection, and for each try after a lost one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_RECONNECT_DELAY: Duration = Duration::from_secs(2);

/// A connection to the engine.
#[derive(Clone)]
pub struct Connection {
    pub client: Client,
    /// Whether it is up, and the reason where it is not.
    pub link: watch::Receiver<LinkState>,
    /// What the server says the key does not allow.
    pub refusals: broadcast::Sender<String>,
    /// Whose key it is.
    name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkState {
    pub up: bool,
    pub reason: String,
    /// How often it was lost: an interruption that is over before anybody looks is still seen.
    pub losses: u64,
    /// How often the server did not accept the key since it was lost.
    pub refusals: u32,
}

impl Connection {
    /// Connects, and refuses a server that is too old.
    pub async fn open(url: &EngineUrl) -> Result<Self, String> {
        let mut tries = 1;
        let connection = loop {
            match Self::connect(url).await? {
                Ok(connection) => break connection,
                // It may be reading its keys anew, for another worker that joins.
                Err(error) if is_about_key(&error.kind().to_string()) && tries < KEY_TRIES => {
                    tries += 1;
                    tokio::time::sleep(KEY_RETRY_DELAY).await;
                }
                Err(error) => return Err(explain(url, &error)),
            }
        };
        connection.check_version(url)?;
        Ok(connection)
    }

    async fn connect(url: &EngineUrl) -> Result<Result<Self, ConnectError>, String> {
        let (link_tx, link) = watch::channel(LinkState {
            up: true,
            reason: String::new(),
            losses: 0,
            refusals: 0,
        });
        let (refusals, _) = broadcast::channel(64);
        let heard = refusals.clone();
        let options = options(url)?.event_callback(move |event| {
            on_event(&event, &link_tx, &heard);
            std::future::ready(())
        });
        let scheme = match url.transport {
            Transport::Plain => "nats",
            Transport::Tls | Transport::PinnedTls(_) => "tls",
        };
        let hosts: Vec<String> = url
            .hosts
            .iter()
            .map(|(host, port)| match host.contains(':') {
                true => format!("{scheme}://[{host}]:{port}"),
                false => format!("{scheme}://{host}:{port}"),
            })
            .collect();
        let connected = options.connect(hosts).await;
        Ok(connected.map(|client| Self {
            client,
            link,
            refusals,
            name: url.name.clone(),
        }))
    }

    /// Why nothing can be asked now; `Ok` while the connection is there.
    pub fn check_up(&self) -> Result<(), EngineError> {
        let link = self.link.borrow();
        match (link.up, link.refusals >= REFUSALS) {
            (true, _) => Ok(()),
            (false, false) => Err(EngineError::NotConnected),
            (false, true) => {
                let name = self.name.clone().unwrap_or_else(|| "NAME".to_owned());
                Err(EngineError::KeyRevoked(name))
            }
        }
    }

    /// Waits until the connection has been lost once more than it was at the time of the call.
    pub async fn lost(&self) {
        let mut link = self.link.clone();
        let (losses, up) = {
            let state = link.borrow();
            (state.losses, state.up)
        };
        if up {
            // An error means that nothing changes any more.
            drop(link.wait_for(|state| state.losses != losses).await);
        }
    }

    /// Waits until there is a connection; `false`: there will be none.
    pub async fn back(&self) -> bool {
        let mut link = self.link.clone();
        link.wait_for(|state| state.up).await.is_ok()
    }

    pub fn server_version(&self) -> String {
        self.client.server_info().version
    }

    fn check_version(&self, url: &EngineUrl) -> Result<(), String> {
        let version = self.server_version();
        match parse_version(&version) {
            Some(found) if found >= MIN_SERVER => Ok(()),
            _ => Err(too_old(&format!("the engine at {url}"), &version)),
        }
    }
}

/// Why a server cannot be used, and how to get another one.
pub fn too_old(which: &str, version: &str) -> String {
    format!(
        "{which} is nats-server {version}; {}.{} or newer is needed (Debian's package is too old): \
         get it from https://github.com/nats-io/nats-server/releases",
        MIN_SERVER.0, MIN_SERVER.1
    )
}

/// Major and minor number of `2.12.1` or `v2.12.1-beta`.
pub fn parse_version(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text.trim().trim_start_matches('v').split('.');
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next()?;
    let digits = minor.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major, digits.parse().ok()?))
}

fn options(url: &EngineUrl) -> Result<ConnectOptions, String> {
    let mut options = ConnectOptions::new()
        .ping_interval(PING_INTERVAL)
        .connection_timeout(CONNECT_TIMEOUT)
        .request_timeout(Some(Duration::from_secs(5)))
        .max_reconnects(None)
        .reconnect_delay_callback(|attempts| {
            // The first try is made at once.
            let tenths = u32::try_from(attempts.clamp(1, 21) - 1).unwrap_or(20);
            (Duration::from_millis(100) * tenths).min(MAX_RECONNECT_DELAY)
        })
        .subscription_capacity(64 * 1024);
    if let Some(name) = &url.name {
        // A worker's key lets it hear what is sent to itself alone, answers included.
        options = options
            .name(name)
            .custom_inbox_prefix(format!("_INBOX.{}", subject::word(name)));
    }
    if let Some(key) = &url.key {
        options = options.nkey(key.clone());
    }
    match &url.transport {
        Transport::Plain => Ok(options),
        Transport::Tls => Ok(options.require_tls(true)),
        Transport::PinnedTls(pin) => Ok(options
            .require_tls(true)
            .tls_client_config(tls::pinned(pin)?)),
    }
}

fn on_event(event: &Event, link: &watch::Sender<LinkState>, refusals: &broadcast::Sender<String>) {
    const NO_KEY: &str = "the engine no longer accepts the key";
    let (up, reason) = match event {
        Event::Connected => (true, ""),
        Event::Disconnected => (false, "the connection was lost"),
        Event::Closed => (false, "the connection was closed"),
        Event::ServerError(ServerError::AuthorizationViolation) => (false, NO_KEY),
        // Each try to connect again is told so.
        Event::ClientError(ClientError::Other(text)) if is_about_key(text) => (false, NO_KEY),
        Event::ServerError(ServerError::Other(text))
            if text.to_lowercase().contains("permissions") =>
        {
            // Nobody may be waiting for it.
            drop(refusals.send(text.clone()));
            return;
        }
        _ => return,
    };
    link.send_if_modified(|state| {
        let before = state.clone();
        state.losses += u64::from(state.up && !up);
        state.up = up;
        state.refusals = match (up, reason == NO_KEY) {
            (true, _) => 0,
            (false, refused) => state.refusals + u32::from(refused),
        };
        reason.clone_into(&mut state.reason);
        *state != before
    });
}

fn is_about_key(text: &str) -> bool {
    let kinds = [
        ConnectErrorKind::AuthorizationViolation,
        ConnectErrorKind::Authentication,
    ];
    kinds.iter().any(|kind| text == kind.to_string())
}

fn explain(url: &EngineUrl, error: &ConnectError) -> String {
    let kind = error.kind();
    let detail =
        std::error::Error::source(error).map_or_else(String::new, |source| format!(" ({source})"));
    match kind {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication
            if url.key.is_none() =>
        {
            format!(
                "the engine at {url} wants a key, and the address has none: {}",
                new_key(None)
            )
        }
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => format!(
            "the engine at {url} does not accept this key: it was revoked, or is another engine's; {}",
            new_key(url.name.as_deref())
        ),
        ConnectErrorKind::Tls => format!(
            "no TLS connection to {url}{detail}: its certificate is not the one in the address; \
             take a new line from `descartes engine join-token NAME`"
        ),
        ConnectErrorKind::Dns => format!("the engine's host in {url} is unknown{detail}"),
        ConnectErrorKind::Io | ConnectErrorKind::TimedOut => format!(
            "no engine answers at {url}{detail}: start one there with `descartes engine start`, \
             or look at `descartes engine status`"
        ),
        ConnectErrorKind::ServerParse | ConnectErrorKind::MaxReconnects => {
            format!("cannot connect to {url}: {kind}{detail}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for (text, version) in [
            ("2.9.10", Some((2, 9))),
            ("v2.12.0", Some((2, 12))),
            ("2.14-RC.1", Some((2, 14))),
            ("nonsense", None),
        ] {
            assert_eq!(parse_version(text), version, "{text}");
        }
        assert!(parse_version("2.9.10") < Some(MIN_SERVER));
    }
}
