//! All loops of a state root, without reading their journals.

mod clean;
mod find;
mod home;

pub use clean::{
    CleanError, CleanItem, CleanPlan, CleanScope, KeptCopies, SafetyCopies, plan_clean, remove,
    remove_lock,
};
pub use find::{FindError, find};
pub use home::{Home, Lies, lies, resume_here};

use crate::journal::{JournalError, find_last};
use crate::layout::{BadLoopId, LoopDir, StateRoot};
use crate::lock::{Held, holder_of_loop};
use crate::ops::{self, IoError, Sync};
use crate::safe_open;
use descartes_kernel::event::Event;
use descartes_kernel::outcome::IterativeExitReason;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io::ErrorKind;
use std::path::PathBuf;

/// The content of `meta.json`: what is known of a loop without its journal, written when it is made
/// and when it is moved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopMeta {
    pub id: String,
    pub name: String,
    /// Its state file; no link leads to it.
    #[serde(with = "descartes_text::path_text::one")]
    pub state_file: PathBuf,
    /// Where it works.
    #[serde(with = "descartes_text::path_text::one")]
    pub working_dir: PathBuf,
    /// When it was first started.
    pub started_at: Timestamp,
    /// Fields of a newer version, kept.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl LoopMeta {
    /// The task that it works on, where it is the loop of one.
    pub fn task(&self) -> Option<&str> {
        self.extra.get("task")?.as_str()
    }
}

/// Why a loop cannot be put into the catalog.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// Its id is not one.
    #[error(transparent)]
    BadId(#[from] BadLoopId),
    /// The system refused.
    #[error(transparent)]
    Io(#[from] IoError),
}

/// One loop of the catalog.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopEntry {
    /// What never changes.
    pub meta: LoopMeta,
    pub dir: LoopDir,
}

/// What a loop is doing.
#[derive(Debug, Clone, PartialEq)]
pub enum LoopStanding {
    /// A live process has it.
    Running(Held),
    /// Nobody has it, and it is not over: it can be resumed.
    Interrupted,
    /// It is over.
    Finished(IterativeExitReason),
}

/// Makes the folder of a loop, with its `meta.json`; both outlive a power cut.
pub fn register(root: &StateRoot, meta: &LoopMeta) -> Result<LoopDir, RegisterError> {
    let dir = root.loop_dir(&meta.id)?;
    ops::make_dir(dir.path(), Sync::Durable)?;
    let text = serde_json::to_vec_pretty(meta)
        .map_err(|error| IoError::new("write", &dir.meta(), error.into()))?;
    ops::replace(&dir.meta(), &text, Sync::Durable)?;
    Ok(dir)
}

/// All loops, newest first. Folders that hold no readable `meta.json` are passed over.
pub fn list(root: &StateRoot) -> Result<Vec<LoopEntry>, IoError> {
    let folder = root.loops();
    let names = match safe_open::names_in(&folder) {
        Ok(names) => names,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(IoError::new("list", &folder, error)),
    };
    let mut entries: Vec<_> = names
        .into_iter()
        .filter_map(|name| root.loop_dir(name.to_str()?).ok())
        .filter_map(read_entry)
        .collect();
    entries.sort_by(|a, b| (b.meta.started_at, &b.meta.id).cmp(&(a.meta.started_at, &a.meta.id)));
    Ok(entries)
}

pub(crate) fn read_entry(dir: LoopDir) -> Option<LoopEntry> {
    let meta = serde_json::from_slice(&safe_open::read(&dir.meta()).ok()?).ok()?;
    Some(LoopEntry { meta, dir })
}

impl LoopEntry {
    /// What the loop is doing: asks its lock, then the end of its journal.
    pub fn standing(&self) -> Result<LoopStanding, JournalError> {
        standing(&self.dir)
    }
}

/// What the loop in a folder is doing.
pub fn standing(dir: &LoopDir) -> Result<LoopStanding, JournalError> {
    if let Some(held) = holder_of_loop(dir)? {
        return Ok(LoopStanding::Running(held));
    }
    let journal = dir.journal();
    if !safe_open::is_there(&journal) {
        return Ok(LoopStanding::Interrupted);
    }
    let mut end = None;
    find_last(&journal, |record| {
        match &record.event {
            // These may follow an end without the loop going on.
            Event::CommandAccepted { .. }
            | Event::CommandEffective { .. }
            | Event::ConfigChanged { .. }
            | Event::StateEdited { .. }
            | Event::Moved { .. }
            | Event::Unpaused
            | Event::Checkpoint { .. }
            | Event::Warning { .. }
            | Event::EngineHeard { .. }
            | Event::Unknown => return false,
            Event::LoopFinished { reason } => end = Some(reason.clone()),
            Event::LoopCreated { ended, .. } => end = ended.clone(),
            _ => {}
        }
        true
    })?;
    Ok(end.map_or(LoopStanding::Interrupted, LoopStanding::Finished))
}
