//! How a host left its loop.

use descartes_kernel::event::StopBy;
use descartes_kernel::outcome::{IterativeExitReason, exit};

/// How a host left its loop.
#[derive(Clone, Debug, PartialEq)]
pub struct HostEnd {
    /// Why the loop ended; `Running` if it was left to be resumed.
    pub reason: IterativeExitReason,
    /// Who asked for the stop, if anybody did.
    pub stop: Option<StopBy>,
    /// Iterations that are over.
    pub iterations: u32,
    /// The promise as it stood.
    pub completion: Option<String>,
    /// What is wrong with the state file, which the journal makes anew.
    pub trouble: Option<String>,
}

impl HostEnd {
    /// The process exit code.
    pub fn exit_code(&self) -> i32 {
        match (&self.reason, self.stop) {
            (IterativeExitReason::UserCancelled, Some(StopBy::Terminate)) => exit::TERMINATED,
            (IterativeExitReason::Running, Some(StopBy::HangUp)) => exit::HUNG_UP,
            (reason, _) => reason.exit_code(),
        }
    }
}
