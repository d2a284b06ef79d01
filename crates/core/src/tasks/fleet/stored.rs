//! What the engine stores about a task, as the kernel understands it.

use std::sync::Arc;
use std::time::Duration;

use descartes_bridge::{Engine, EngineError, EntryBody, SubjectEntry, subject};
use descartes_kernel::fleet::{BootMoment, StoredClaim, TaskClaim};
use descartes_proc::{BootTime, boot_clock};
use jiff::Timestamp;
use tracing::warn;

use crate::tasks::launch::file_name;

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
                claim: TaskClaim::Closed {
                    forced: true,
                    at: None,
                    moment: None,
                },
            }
        }
    }
}

/// What is stored as an offer is taken back.
pub(super) fn closed_now(forced: bool) -> TaskClaim {
    TaskClaim::closed(forced, Timestamp::now(), boot_moment())
}

/// Now, by the clock of this machine that nobody sets; `None` where it cannot be named.
pub(super) fn boot_moment() -> Option<BootMoment> {
    let ms = BootTime::now().since_boot().as_millis();
    Some(BootMoment {
        clock: boot_clock()?,
        ms: u64::try_from(ms).ok()?,
    })
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

/// Where a task loop keeps what tells the engine's store from the one after a loss of its disk: no task has
/// an empty name.
fn memory_subject(loop_id: &str) -> String {
    subject::task(loop_id, "", 0)
}

/// What tells the engine's store from others; `None` where it was lost, or no host was there yet.
pub(super) fn stored_memory(
    engine: &Arc<dyn Engine>,
    loop_id: &str,
) -> Result<Option<u64>, EngineError> {
    let entry = engine.get(&memory_subject(loop_id))?;
    let value = entry.as_ref().and_then(SubjectEntry::value);
    Ok(value.and_then(|value| serde_json::from_slice(value).ok()))
}

/// The same; a store without any gets one.
pub(super) fn remember(engine: &Arc<dyn Engine>, loop_id: &str) -> Result<u64, EngineError> {
    if let Some(known) = stored_memory(engine, loop_id)? {
        return Ok(known);
    }
    // As much as every reader of numbers in JSON can hold.
    let memory = uuid::Uuid::now_v7().as_u64_pair().1 >> 12;
    let value = memory.to_string();
    match engine.put(&memory_subject(loop_id), Some(0), None, value.as_bytes()) {
        Ok(_) => Ok(memory),
        Err(error) => stored_memory(engine, loop_id)?.ok_or(error),
    }
}

/// Writes that once more: whether the engine takes writes. Nothing is written into another store than that in which
/// it was found.
pub(super) fn try_write(engine: &Arc<dyn Engine>, loop_id: &str) -> Result<(), EngineError> {
    let subject = memory_subject(loop_id);
    let Some(entry) = engine.get(&subject)? else {
        return Ok(());
    };
    let Some(value) = entry.value() else {
        return Ok(());
    };
    match engine.put(&subject, Some(entry.seq), None, value) {
        Ok(_) | Err(EngineError::Conflict) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The object with the commits of a result.
pub(super) fn result_object(subject: &str) -> String {
    format!("{}-result", file_name(subject))
}
