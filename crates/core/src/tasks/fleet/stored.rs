//! What the engine stores about a task, as the kernel understands it.

use std::sync::Arc;
use std::time::Duration;

use descartes_bridge::{Engine, EngineError, EntryBody, SubjectEntry};
use descartes_kernel::fleet::{StoredClaim, TaskClaim};
use tracing::warn;

/// What is stored, from what the engine delivered or was asked for.
pub(super) fn stored_claim(entry: Option<&SubjectEntry>) -> StoredClaim {
    let Some(entry) = entry else {
        return StoredClaim::Nothing;
    };
    let EntryBody::Value(value) = &entry.body else {
        return StoredClaim::Lapsed { seq: entry.seq };
    };
    match serde_json::from_slice(value) {
        Ok(claim) => StoredClaim::Value {
            seq: entry.seq,
            claim,
        },
        Err(error) => {
            warn!(subject = entry.subject, %error, "an entry that nobody understands");
            // Nobody of this version wrote it: it is not ours to replace.
            StoredClaim::Value {
                seq: entry.seq,
                claim: TaskClaim::Closed { forced: true },
            }
        }
    }
}

/// Reads what is stored now.
pub(super) fn read_claim(
    engine: &Arc<dyn Engine>,
    subject: &str,
) -> Result<StoredClaim, EngineError> {
    Ok(stored_claim(engine.get(subject)?.as_ref()))
}

/// Writes a claim where this number is stored.
pub(super) fn write_claim(
    engine: &Arc<dyn Engine>,
    subject: &str,
    expect: u64,
    ttl: Option<Duration>,
    claim: &TaskClaim,
) -> Result<u64, EngineError> {
    let value = serde_json::to_vec(claim).map_err(|error| EngineError::Other(error.to_string()))?;
    engine.put(subject, Some(expect), ttl, &value)
}
