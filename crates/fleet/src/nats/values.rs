//! Subjects that keep their last value: leases, and workers that say they are there.

use std::time::Duration;

use async_nats::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use descartes_bridge::{EngineError, EntryBody, SubjectEntry};
use serde::Deserialize;
use serde_json::{Value, json};

use super::api::{ApiError, NO_MESSAGE_FOUND};
use super::connection::Connection;
use super::streams::stream_of;

/// In a message that stands for a value that ran out or was deleted.
pub const MARKER_HEADER: &str = "Nats-Marker-Reason";

pub async fn put(
    connection: &Connection,
    subject: &str,
    expect: Option<u64>,
    ttl: Option<Duration>,
    value: Vec<u8>,
) -> Result<u64, EngineError> {
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Expected-Stream", stream_of(subject)?);
    if let Some(expect) = expect {
        headers.insert("Nats-Expected-Last-Subject-Sequence", expect.to_string());
    }
    if let Some(ttl) = ttl {
        headers.insert("Nats-TTL", format!("{}s", whole_seconds(ttl)));
    }
    connection
        .publish(subject, headers, Bytes::from(value))
        .await
}

/// The server counts in seconds: a lease is never shorter than asked for.
fn whole_seconds(ttl: Duration) -> u64 {
    let more = u64::from(ttl.subsec_nanos() > 0);
    (ttl.as_secs() + more).max(1)
}

pub async fn get(
    connection: &Connection,
    subject: &str,
) -> Result<Option<SubjectEntry>, EngineError> {
    let query = json!({ "last_by_subj": subject });
    read_message(connection, stream_of(subject)?, &query).await
}

/// The message of a stream that a query finds, from whoever leads the stream.
pub async fn read_message(
    connection: &Connection,
    stream: &str,
    query: &Value,
) -> Result<Option<SubjectEntry>, EngineError> {
    #[derive(Deserialize)]
    struct Got {
        message: RawMessage,
    }
    #[derive(Deserialize)]
    struct RawMessage {
        subject: String,
        seq: u64,
        #[serde(default)]
        data: String,
        #[serde(default)]
        hdrs: String,
    }
    let what = format!("STREAM.MSG.GET.{stream}");
    let message = match connection.api::<Got>(&what, query).await {
        Ok(got) => got.message,
        Err(ApiError::Numbered {
            number: NO_MESSAGE_FOUND,
            ..
        }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let bytes = |text: &str| {
        STANDARD
            .decode(text)
            .map_err(|error| EngineError::Other(format!("an answer of the engine: {error}")))
    };
    let headers = String::from_utf8_lossy(&bytes(&message.hdrs)?).into_owned();
    let body = match headers.contains(MARKER_HEADER) {
        true => EntryBody::Marker,
        false => EntryBody::Value(bytes(&message.data)?),
    };
    Ok(Some(SubjectEntry {
        subject: message.subject,
        seq: message.seq,
        body,
    }))
}

pub async fn append_event(
    connection: &Connection,
    subject: &str,
    message_id: &str,
    value: Vec<u8>,
) -> Result<u64, EngineError> {
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Expected-Stream", stream_of(subject)?);
    headers.insert("Nats-Msg-Id", message_id);
    connection
        .publish(subject, headers, Bytes::from(value))
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_never_shorter_than_asked_for() {
        for (millis, seconds) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (60_000, 60)] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds);
        }
    }
}
