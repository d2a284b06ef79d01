//! Requests to the engine, and what their answers mean.

use std::time::{Duration, Instant};

use async_nats::{HeaderMap, Message, Request, RequestErrorKind};
use bytes::Bytes;
use descartes_bridge::EngineError;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::connection::Connection;

/// For one write or read, syncing to the disk included.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Where one of three servers died, a request to whoever led is dropped without a word until there is another
/// who does: it is asked again so often, and the first answer counts.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Error numbers of JetStream.
pub const WRONG_LAST_SEQUENCE: u64 = 10071;
pub const NO_MESSAGE_FOUND: u64 = 10037;
pub const STREAM_NOT_FOUND: u64 = 10059;
pub const STREAM_NAME_IN_USE: u64 = 10058;
pub const STORAGE_EXCEEDED: u64 = 10047;
/// A cluster has too few servers that run.
pub const NO_PEERS: u64 = 10005;
/// The server is none of a cluster.
pub const NO_REPLICAS: u64 = 10074;

/// Also refused so: something is on its way there from another.
const WRONG_LAST_SEQUENCE_UNDER_WAY: u64 = 10164;
/// Servers of a cluster that have nobody who leads: incomplete, not available, not the leader, offline.
const NO_LEADER: [u64; 5] = [10004, 10008, 10009, 10118, 10119];

/// What JetStream answers to a request of its API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiError {
    /// It did not come to an answer.
    Engine(EngineError),
    /// It was refused, with this number.
    Numbered { number: u64, text: String },
}

impl From<ApiError> for EngineError {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::Engine(error) => error,
            ApiError::Numbered {
                number: WRONG_LAST_SEQUENCE | WRONG_LAST_SEQUENCE_UNDER_WAY,
                ..
            } => Self::Conflict,
            // In a moment they have one.
            ApiError::Numbered { number, .. } if NO_LEADER.contains(&number) => Self::Timeout,
            // As when there is none: it comes back when a coordinator makes the streams anew.
            ApiError::Numbered {
                number: STREAM_NOT_FOUND,
                ..
            } => Self::NoResponders,
            ApiError::Numbered { number, text } => Self::Other(format!("{text} ({number})")),
        }
    }
}

#[derive(Deserialize)]
struct ErrorPart {
    error: Option<ApiErrorBody>,
}

#[derive(Deserialize)]
struct ApiErrorBody {
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    description: String,
}

impl Connection {
    /// One request and its answer. A key that does not allow it is told at once, a lost connection too.
    pub async fn ask(
        &self,
        subject: &str,
        headers: Option<HeaderMap>,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Message, EngineError> {
        self.check_up()?;
        let mut refusals = self.refusals.subscribe();
        let mut request = Request::new().payload(body).timeout(Some(timeout));
        if let Some(headers) = headers {
            request = request.headers(headers);
        }
        let answer = self.client.send_request(subject.to_owned(), request);
        let lost = self.lost();
        tokio::pin!(answer, lost);
        let quoted = format!("\"{subject}\"");
        loop {
            tokio::select! {
                answer = &mut answer => return answer.map_err(|error| match error.kind() {
                    RequestErrorKind::TimedOut => EngineError::Timeout,
                    RequestErrorKind::NoResponders => EngineError::NoResponders,
                    _ => EngineError::Other(error.to_string()),
                }),
                // The answer went with the connection: whether it was done is not known.
                () = &mut lost => return Err(EngineError::Timeout),
                refusal = refusals.recv() => match refusal {
                    Ok(text) if text.contains(&quoted) => return Err(EngineError::Refused(text)),
                    Ok(_) | Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => {}
                    Err(tokio::sync::broadcast::error::RecvError::Closed) => {
                        return Err(EngineError::NotConnected);
                    }
                },
            }
        }
    }

    /// Waits until the server has read everything that was sent before.
    pub async fn round_trip(&self) {
        let inbox = self.client.new_inbox();
        // Nobody serves it: what comes is the answer that nobody does.
        drop(self.ask(&inbox, None, Bytes::new(), REQUEST_TIMEOUT).await);
    }

    /// A request of the API of JetStream.
    pub async fn api<T: DeserializeOwned>(&self, what: &str, body: &Value) -> Result<T, ApiError> {
        self.api_again(what, body, ASK_AGAIN).await
    }

    /// The same, asked again after each such time without an answer. Only what may be carried out twice is asked
    /// through either: reading, making what has a name, clearing.
    pub async fn api_again<T: DeserializeOwned>(
        &self,
        what: &str,
        body: &Value,
        every: Duration,
    ) -> Result<T, ApiError> {
        let subject = format!("$JS.API.{what}");
        let body = match body {
            Value::Null => Bytes::new(),
            body => Bytes::from(body.to_string()),
        };
        let until = Instant::now() + REQUEST_TIMEOUT;
        let mut asked = FuturesUnordered::new();
        let answer = loop {
            let left = until.saturating_duration_since(Instant::now());
            asked.push(self.ask(&subject, None, body.clone(), left));
            // The last one is waited for to the end, and a little longer.
            let wait = match left > every * 2 {
                true => every,
                false => left * 2,
            };
            if let Ok(Some(answer)) = tokio::time::timeout(wait, asked.next()).await {
                break answer;
            }
        };
        parse(&answer.map_err(ApiError::Engine)?.payload)
    }

    /// Stores a message, and returns its number.
    pub async fn publish(
        &self,
        subject: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<u64, EngineError> {
        #[derive(Deserialize)]
        struct Stored {
            seq: u64,
        }
        let answer = self
            .ask(subject, Some(headers), body, REQUEST_TIMEOUT)
            .await?;
        let stored: Stored = parse(&answer.payload)?;
        Ok(stored.seq)
    }
}

fn parse<T: DeserializeOwned>(answer: &[u8]) -> Result<T, ApiError> {
    let unreadable = |error: serde_json::Error| {
        ApiError::Engine(EngineError::Other(format!(
            "an answer of the engine: {error}"
        )))
    };
    let part: ErrorPart = serde_json::from_slice(answer).map_err(unreadable)?;
    match part.error {
        Some(error) => Err(ApiError::Numbered {
            number: error.err_code,
            text: error.description,
        }),
        None => serde_json::from_slice(answer).map_err(unreadable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_errors_are_understood() {
        let refused =
            br#"{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"}}"#;
        let error = parse::<Value>(refused).unwrap_err();
        assert_eq!(EngineError::from(error), EngineError::Conflict);
        let under_way = br#"{"error":{"code":400,"err_code":10164,"description":"wrong last"}}"#;
        let error = parse::<Value>(under_way).unwrap_err();
        assert_eq!(EngineError::from(error), EngineError::Conflict);
        let no_leader = br#"{"error":{"code":503,"err_code":10008,"description":"unavailable"}}"#;
        let error = parse::<Value>(no_leader).unwrap_err();
        assert!(EngineError::from(error).is_temporary());
        let other = parse::<Value>(br#"{"error":{"code":500,"err_code":1,"description":"x"}}"#);
        let told = EngineError::from(other.unwrap_err());
        assert_eq!(told, EngineError::Other("x (1)".to_owned()));
        assert!(parse::<Value>(br#"{"seq":3}"#).is_ok());
    }
}
