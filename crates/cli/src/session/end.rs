//! A loop that does not go on: what is said of it.

use descartes_kernel::outcome::IterativeExitReason;

use crate::printer::Printer;

/// Says that a loop is done already.
pub fn done(reason: &IterativeExitReason, printer: &Printer) -> i32 {
    printer.talk(&format!("the loop is done already: {}", reason.sentence()));
    printer.hint("start another with: descartes loop start --prompt \"…\"");
    0
}

/// Says that a loop is at its limit.
pub fn at_limit(reason: &IterativeExitReason, printer: &Printer) -> i32 {
    printer.talk(&format!("the loop is at its limit: {}", reason.sentence()));
    let (flag, value) = match reason {
        IterativeExitReason::BudgetExhausted { budget, .. } => (budget.flag(), budget.example()),
        _ => ("--max-iterations", "50"),
    };
    printer.hint(&format!(
        "go on with a new one, for example: descartes loop resume {flag} {value}"
    ));
    reason.exit_code()
}
