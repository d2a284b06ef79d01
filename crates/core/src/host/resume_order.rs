//! What is asked for when a loop is taken up, and what came of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use descartes_kernel::config::ConfigChange;
use descartes_kernel::edits::Accept;
use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::steering::Sender;
use descartes_kernel::step::Standstill;

use super::handle::Host;
use super::task_loop::Retry;

/// A loop to take up.
#[derive(Clone, Debug)]
pub struct Resume {
    /// Its state file.
    pub state_file: PathBuf,
    /// Its id, where the person named the loop and not the file.
    pub loop_id: Option<String>,
    /// Limits, gates, prompt or model to change.
    pub change: ConfigChange,
    /// Variables for the agent: their values were never written down.
    pub environment: BTreeMap<String, String>,
    /// Whether an edited state file holds where it loosens the loop.
    pub accept: Accept,
    /// Where it goes on, where a person said so: a moved project is taken along, a copied one becomes
    /// a loop of its own. Without it a state file that lies elsewhere than its loop says is refused.
    pub here: Option<PathBuf>,
    /// In a task loop: whether blocked tasks are tried again.
    pub retry: Retry,
    /// Who asks for it, where that is another process than this one: what is changed stands in the
    /// result with who changed it.
    pub from: Option<Sender>,
}

/// What came of it.
#[derive(Debug)]
pub enum Resumed {
    /// It goes on.
    Go(Box<Host>),
    /// It is done: there is nothing to do.
    Done(IterativeExitReason),
    /// It is at its limit, and no new one was given.
    AtLimit {
        /// Which one.
        reason: IterativeExitReason,
        /// Flags with which it goes on.
        resume_flags: String,
    },
}

impl From<Standstill> for Resumed {
    fn from(standstill: Standstill) -> Self {
        match standstill {
            Standstill::Done(reason) => Self::Done(reason),
            Standstill::AtLimit {
                reason,
                resume_flags,
            } => Self::AtLimit {
                reason,
                resume_flags,
            },
        }
    }
}
