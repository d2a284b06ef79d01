//! What the loop of one task has to tell about its last attempt.

use jiff::Timestamp;

use crate::event::{
    Decided, EndedBy, Event, GateEnd, LimitKind, ReportedLimit, StopBy, Verdict, WaitReason,
};
use crate::outcome::IterativeExitReason;
use crate::sched::AttemptEnd;
use crate::state::LoopState;
use crate::step::{NOTHING_DONE, cut_off_words};

/// Whether the last attempt is proven.
fn is_proven(state: &LoopState) -> bool {
    state.verdict.as_ref().is_some_and(Verdict::proves)
}

/// Whether the last attempt is proven, and its task loop, which has heard of `told` iterations, does
/// not know it yet: a host died in between. It is told, and not attempted again.
pub fn is_unheard_proof(state: &LoopState, told: u32) -> bool {
    state.iterations > told && is_proven(state)
}

/// How the attempt ended for which a loop was lent until its iteration `until` was over.
pub fn attempt_end(state: &LoopState, until: u32) -> AttemptEnd {
    let over = state.iterations >= until;
    let proven = over && is_proven(state);
    // The host could not go on, as on a full disk: that says nothing about the task, and what was
    // proven before stays proven.
    if matches!(state.exit_reason(), IterativeExitReason::Error { .. }) && !proven {
        return AttemptEnd::Interrupted;
    }
    // Its task loop ends it in another way: this one was meant.
    if state.requests.stop == Some(StopBy::Cancel) && !proven {
        return AttemptEnd::Cancelled;
    }
    if !over {
        let limit = state
            .wait()
            .filter(|wait| matches!(wait.reason, WaitReason::Limit(_)));
        return match limit {
            Some(wait) => AttemptEnd::Limited {
                until: wait.until,
                login: None,
            },
            None => AttemptEnd::Interrupted,
        };
    }
    if state.requests.stop.is_some() && !proven {
        return AttemptEnd::Interrupted;
    }
    let reason = state.exit_reason();
    let limited = matches!(
        reason,
        IterativeExitReason::BudgetExhausted { .. } | IterativeExitReason::Stalled { .. }
    );
    if limited && !proven {
        let message = reason.sentence();
        return AttemptEnd::AtLimit { message };
    }
    // A budget of the whole ended its run: that is no failure of this task.
    let last = state.summaries.back().and_then(|last| last.ended_by);
    let open = matches!(state.verdict, Some(Verdict::Worked | Verdict::Failed(_)));
    if matches!(last, Some(EndedBy::Budget(_))) && open {
        return AttemptEnd::Interrupted;
    }
    if let Some(by @ (EndedBy::Timeout | EndedBy::Idle)) = last.filter(|_| open) {
        return cut_off(state, by);
    }
    match &state.verdict {
        Some(proof @ (Verdict::Promise | Verdict::Gates | Verdict::Success)) => AttemptEnd::Green {
            changed: true,
            claimed: *proof == Verdict::Promise,
            unproven: *proof == Verdict::Success,
        },
        Some(Verdict::Blocked(message)) => AttemptEnd::BlockedByAgent {
            message: message.clone(),
        },
        Some(Verdict::Failed(message)) if message == NOTHING_DONE => AttemptEnd::NothingDone,
        Some(Verdict::Failed(message)) => AttemptEnd::Failed {
            message: message.clone(),
        },
        Some(Verdict::Refused | Verdict::Worked) => match &state.next_prompt.failed_gate {
            Some(refusal) => AttemptEnd::Red {
                tail: gate_words(&refusal.gate.command, refusal.gate.end, &refusal.gate.tail),
            },
            None => AttemptEnd::NoPromise,
        },
        Some(Verdict::Stopped) | None => AttemptEnd::Interrupted,
    }
}

/// An attempt that was ended by a limit of its own before its agent had said that it was done.
fn cut_off(state: &LoopState, by: EndedBy) -> AttemptEnd {
    let failed_gate = state.next_prompt.failed_gate.as_ref();
    let tail = failed_gate
        .map(|failed| gate_words(&failed.gate.command, failed.gate.end, &failed.gate.tail));
    let config = &state.config;
    let timeout = config.iteration_timeout_secs;
    AttemptEnd::CutOff {
        message: cut_off_words(config, by).map_or_else(String::new, |(words, _)| words),
        tail: tail.unwrap_or_default(),
        timeout: timeout.filter(|_| by == EndedBy::Timeout),
    }
}

/// The wait of a task loop in which nothing is at work, as views are told of it; `None` where they
/// know.
pub fn shown_wait(state: &LoopState, until: Timestamp) -> Option<Decided> {
    if state.wait().is_some() {
        return None;
    }
    let limit = ReportedLimit {
        kind: LimitKind::Usage,
        until: Some(until),
        words: "the agent's provider reported a limit".to_owned(),
    };
    let reason = WaitReason::Limit(limit);
    Some(Decided::new(Event::WaitStarted { until, reason }))
}

/// A red gate in words: what was run, how it ended, and the last of its output.
pub fn gate_words(command: &str, end: GateEnd, tail: &str) -> String {
    let how = match end {
        GateEnd::Exit(status) => format!("exit code {}", status.shell_code()),
        GateEnd::Timeout => "timed out".to_owned(),
        GateEnd::Cancelled => "was stopped".to_owned(),
    };
    match tail.trim_end() {
        "" => format!("`{command}`: {how}"),
        tail => format!("`{command}`: {how}\n{tail}"),
    }
}
