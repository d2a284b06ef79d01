//! A loop that does not go on: what is said of it.

use descartes_core::host::{Host, Resumed};
use descartes_kernel::outcome::IterativeExitReason;
use serde::{Deserialize, Serialize};

use crate::printer::Printer;

/// Why a loop does not go on.
#[derive(Debug, Serialize, Deserialize)]
pub struct LoopOver {
    reason: IterativeExitReason,
    /// Flags with which it would; `None` for one that is done.
    resume_flags: Option<String>,
}

/// The host of a loop that goes on.
pub fn going_on(resumed: Resumed) -> Result<Box<Host>, LoopOver> {
    let (reason, resume_flags) = match resumed {
        Resumed::Go(host) => return Ok(host),
        Resumed::Done(reason) => (reason, None),
        Resumed::AtLimit {
            reason,
            resume_flags,
        } => (reason, Some(resume_flags)),
    };
    Err(LoopOver {
        reason,
        resume_flags,
    })
}

impl LoopOver {
    /// Says so; the exit code.
    pub fn tell(&self, printer: &Printer) -> i32 {
        let sentence = self.reason.sentence();
        let Some(flags) = &self.resume_flags else {
            printer.talk(&format!("the loop is already done: {sentence}"));
            printer.hint("start another with `descartes loop start` and its task behind --prompt");
            return 0;
        };
        printer.talk(&format!("the loop is at its limit: {sentence}"));
        printer.hint(&format!(
            "resume with a higher one, for example: descartes loop resume {flags}"
        ));
        self.reason.exit_code()
    }
}
