//! The engine's streams. A coordinator makes them where they are missing, also after the engine lost its disk.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use descartes_bridge::EngineError;
use serde_json::{Value, json};

use super::api::{
    ApiError, NO_PEERS, NO_REPLICAS, STORAGE_EXCEEDED, STREAM_NAME_IN_USE, STREAM_NOT_FOUND,
};
use super::connection::Connection;

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3600 * SECOND;
const DAY: u64 = 24 * HOUR;
const GIB: u64 = 1 << 30;

/// The streams and their settings.
fn configs(replicas: u64) -> Vec<Value> {
    let mut configs = vec![
        // One message each, taken by one worker.
        json!({
            "name": "OFFERS", "subjects": ["offer.*.*"], "retention": "workqueue", "storage": "file",
            "max_age": 7 * DAY, "duplicate_window": HOUR, "allow_direct": false,
        }),
        // Beside it, so that a worker's key can be held to its own queue.
        json!({
            "name": "DIRECT", "subjects": ["direct.*"], "retention": "workqueue", "storage": "file",
            "max_age": 7 * DAY, "duplicate_window": HOUR, "allow_direct": false,
        }),
        // Who holds what. Read from the leader alone, and never written lazily: this is what decides.
        json!({
            "name": "TASKS", "subjects": ["task.>"], "retention": "limits", "storage": "file",
            "max_msgs_per_subject": 1, "allow_msg_ttl": true, "subject_delete_marker_ttl": HOUR,
            "allow_direct": false, "duplicate_window": 2 * 60 * SECOND, "first_seq": beyond_all(),
        }),
        // A copy of what the workers' journals have.
        json!({
            "name": "EVENTS", "subjects": ["ev.>"], "retention": "limits", "storage": "file",
            "max_age": 14 * DAY, "max_bytes": 5 * GIB, "discard": "old", "compression": "s2",
            "persist_mode": "async", "duplicate_window": 600 * SECOND, "allow_direct": false,
        }),
        json!({
            "name": "WORKERS", "subjects": ["worker.*"], "retention": "limits", "storage": "memory",
            "max_msgs_per_subject": 1, "allow_msg_ttl": true, "max_age": HOUR, "allow_direct": false,
            "duplicate_window": 60 * SECOND,
        }),
        // Bundles on their way. They are removed when they have arrived.
        json!({
            "name": "GIT", "subjects": ["git.>"], "retention": "limits", "storage": "file",
            "max_msgs_per_subject": 1, "max_age": 7 * DAY, "max_bytes": 20 * GIB, "discard": "new",
            "allow_direct": true, "duplicate_window": 60 * SECOND,
        }),
    ];
    for config in &mut configs {
        config["num_replicas"] = json!(replicas);
        if replicas > 1
            && let Some(config) = config.as_object_mut()
        {
            // Servers of a cluster refuse it.
            config.remove("persist_mode");
        }
    }
    configs
}

/// The first number of a stream that is made now: larger than all that an earlier one of the same name ever
/// gave out. A worker that slept through the loss of the disk still knows a number of before, and must not
/// meet it again on what is stored since.
fn beyond_all() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(1, |since| since.as_millis() as u64)
}

/// Makes the streams that are missing; those that are there stay as they are.
pub async fn ensure(connection: &Connection) -> Result<(), EngineError> {
    // A cluster keeps everything three times.
    let is_cluster = connection.client.server_info().cluster.is_some();
    for config in configs(if is_cluster { 3 } else { 1 }) {
        let name = config["name"].as_str().unwrap_or_default().to_owned();
        match connection
            .api::<Value>(&format!("STREAM.INFO.{name}"), &Value::Null)
            .await
        {
            Ok(_) => continue,
            Err(ApiError::Numbered {
                number: STREAM_NOT_FOUND,
                ..
            }) => {}
            Err(ApiError::Engine(EngineError::NoResponders)) => {
                return Err(EngineError::Other(
                    "the engine has no JetStream: start nats-server with `-js`, or with `descartes engine start`"
                        .to_owned(),
                ));
            }
            Err(error) => return Err(error.into()),
        }
        create(connection, &name, config).await?;
    }
    Ok(())
}

async fn create(connection: &Connection, name: &str, mut config: Value) -> Result<(), EngineError> {
    let create = format!("STREAM.CREATE.{name}");
    for _ in 0..3 {
        let number = match connection.api::<Value>(&create, &config).await {
            Ok(_) => return Ok(()),
            // Another coordinator, or `engine start`, made it since we asked, with the number of its own moment.
            Err(ApiError::Numbered {
                number: STREAM_NAME_IN_USE,
                ..
            }) => return Ok(()),
            Err(ApiError::Numbered { number, .. })
                if matches!(number, STORAGE_EXCEEDED | NO_REPLICAS | NO_PEERS) =>
            {
                number
            }
            Err(error) => return Err(error.into()),
        };
        match number {
            // A server with less room than is set aside: it is used as far as it goes.
            STORAGE_EXCEEDED => {
                if let Some(config) = config.as_object_mut() {
                    config.remove("max_bytes");
                }
            }
            NO_REPLICAS => config["num_replicas"] = json!(1),
            _ => break,
        }
    }
    Err(EngineError::Other(
        "fewer than three servers of the engine's cluster run: start all of them once, so that \
         everything can be kept three times"
            .to_owned(),
    ))
}

/// When a stream was made, and its last number: after the loss of the disk both are others.
pub struct StreamState {
    pub created: String,
    pub last_seq: u64,
}

/// Asked again after each such time without an answer.
pub async fn state(
    connection: &Connection,
    stream: &str,
    every: Duration,
) -> Result<StreamState, EngineError> {
    let what = format!("STREAM.INFO.{stream}");
    let info = connection.api_again(&what, &Value::Null, every);
    let info: Value = info.await?;
    Ok(StreamState {
        created: info["created"].as_str().unwrap_or_default().to_owned(),
        last_seq: info["state"]["last_seq"].as_u64().unwrap_or_default(),
    })
}

/// The stream that a subject or a filter is part of.
pub fn stream_of(subject: &str) -> Result<&'static str, EngineError> {
    match subject.split('.').next() {
        Some("task") => Ok("TASKS"),
        Some("ev") => Ok("EVENTS"),
        Some("worker") => Ok("WORKERS"),
        _ => Err(EngineError::Other(format!(
            "`{subject}` is no subject that is stored (task., ev. or worker.)"
        ))),
    }
}
