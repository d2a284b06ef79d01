//! What an attempt at a task, or its merge, came to.

use crate::tone::{Cell, Tone};
use descartes_kernel::sched::{AttemptEnd, MergeEnd};

pub struct TaskEnd<'a> {
    pub line: Cell,
    pub evidence: Evidence<'a>,
}

/// What tells why.
pub enum Evidence<'a> {
    None,
    /// The end of what a gate or git printed.
    Output(&'a str),
    Message(&'a str),
}

pub fn attempt_end(end: &AttemptEnd) -> TaskEnd<'_> {
    let (tone, text, evidence) = match end {
        AttemptEnd::Green { .. } => (Tone::Good, "green", Evidence::None),
        AttemptEnd::Red { tail } => (Tone::Bad, "red", Evidence::Output(tail)),
        AttemptEnd::Failed { message } => (Tone::Bad, "failed", Evidence::Message(message)),
        AttemptEnd::CutOff { message, tail, .. } => {
            let evidence = match tail.is_empty() {
                true => Evidence::None,
                false => Evidence::Output(tail),
            };
            let line = Cell::new(Tone::Bad, format!("cut off: {message}"));
            return TaskEnd { line, evidence };
        }
        AttemptEnd::NoPromise => {
            let text = "worked, but did not print the promise";
            (Tone::Dim, text, Evidence::None)
        }
        AttemptEnd::NothingDone => {
            let text = "the agent changed nothing and did not claim to be done";
            (Tone::Bad, text, Evidence::None)
        }
        AttemptEnd::OutOfScope { tail } => (Tone::Bad, "out of scope", Evidence::Output(tail)),
        AttemptEnd::Uncarried { tail } => {
            (Tone::Bad, "cannot land as it is", Evidence::Output(tail))
        }
        AttemptEnd::NotTakenIn { message } => {
            (Tone::Bad, "not taken in", Evidence::Message(message))
        }
        AttemptEnd::AtLimit { message } => (Tone::Bad, "at its limit", Evidence::Message(message)),
        AttemptEnd::Cancelled => (Tone::Dim, "cancelled", Evidence::None),
        AttemptEnd::BlockedByAgent { message } => {
            (Tone::Bad, "its agent gave up", Evidence::Message(message))
        }
        AttemptEnd::Limited { until, login } => {
            let of = login.as_ref().map(|login| format!(" of {}", login.login));
            let of = of.unwrap_or_default();
            let line = Cell::new(Tone::Warn, format!("provider limit{of}, until {until}"));
            let evidence = Evidence::None;
            return TaskEnd { line, evidence };
        }
        AttemptEnd::Interrupted => (Tone::Dim, "interrupted", Evidence::None),
    };
    let line = Cell::new(tone, text);
    TaskEnd { line, evidence }
}

pub fn merge_end(end: &MergeEnd) -> TaskEnd<'_> {
    let (tone, text, evidence) = match end {
        MergeEnd::Merged => (Tone::Good, "merged", Evidence::None),
        MergeEnd::Conflict { tail } => (Tone::Bad, "conflict", Evidence::Output(tail)),
        MergeEnd::Red { tail } => (Tone::Bad, "red after the merge", Evidence::Output(tail)),
        MergeEnd::Interrupted => (Tone::Dim, "its merge was interrupted", Evidence::None),
        MergeEnd::Failed { message } => (Tone::Bad, "not merged", Evidence::Message(message)),
    };
    let line = Cell::new(tone, text);
    TaskEnd { line, evidence }
}
