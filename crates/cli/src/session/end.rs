//! A loop that does not go on: what is said of it.

use descartes_kernel::outcome::IterativeExitReason;

use crate::printer::Printer;

/// Says that a loop is done already.
pub fn done(reason: &IterativeExitReason, printer: &Printer) -> i32 {
    printer.talk(&format!("the loop is already done: {}", reason.sentence()));
    printer.hint("start another with: descartes loop start --prompt \"…\"");
    0
}

/// Says that a loop is at its limit.
pub fn at_limit(reason: &IterativeExitReason, resume_flags: &str, printer: &Printer) -> i32 {
    printer.talk(&format!("the loop is at its limit: {}", reason.sentence()));
    printer.hint(&format!(
        "resume with a higher one, for example: descartes loop resume {resume_flags}"
    ));
    reason.exit_code()
}
