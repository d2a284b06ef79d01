//! Loops that were left in the middle of something: how an iteration that can no longer be finished
//! is closed, how a loop is taken up again, how one that nobody runs is cancelled.

use jiff::Timestamp;

use super::left_work::LeftWork;
use super::react::{command_accepted, settled_by_end_of, with_events};
use super::{exhausted, is_open};
use crate::config::ConfigChange;
use crate::control::Command;
use crate::event::{Cost, Decided, Event, Tokens, Verdict};
use crate::outcome::IterativeExitReason;
use crate::state::{LoopState, Phase, RunInfo};
use crate::steering::Sender;
use crate::tasks::is_unheard_proof;

/// What can still be told of a run whose end nobody has written down.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LastSeen {
    /// Its last sign of life.
    pub at: Option<Timestamp>,
    /// Tokens, as far as it told them.
    pub tokens: Option<Tokens>,
    /// Cost, as far as it told it.
    pub cost: Option<Cost>,
}

/// Closes the iteration under way, which can no longer be finished, so that its number is not used
/// again and what it used counts. Of a run whose end is on record everything is known, the time of
/// its gates included; of any other, what `seen` finds out.
pub fn close_unfinished(
    state: &LoopState,
    seen: impl FnOnce(&RunInfo) -> LastSeen,
) -> Option<Decided> {
    unfinished(state, seen).map(Decided::new)
}

fn unfinished(state: &LoopState, seen: impl FnOnce(&RunInfo) -> LastSeen) -> Option<Event> {
    let (run, spent_ms, tokens, cost) = match &state.phase {
        Phase::Running(run) => {
            let LastSeen { at, tokens, cost } = seen(run);
            let lived = at.map_or(0, |at| {
                at.as_millisecond() - run.started_at.as_millisecond()
            });
            (run, u64::try_from(lived).unwrap_or(0), tokens, cost)
        }
        Phase::Judging { .. } | Phase::Ready { .. } | Phase::Finished { .. } => {
            let (run, facts, gates) = state.judged()?;
            let gates: u64 = gates.iter().map(|gate| gate.duration_ms).sum();
            (run, facts.duration_ms + gates, facts.tokens, facts.cost)
        }
    };
    Some(Event::IterationInterrupted {
        iteration: run.iteration,
        run: run.run,
        spent_ms,
        tokens: tokens.filter(|tokens| tokens.total().is_some()),
        cost,
    })
}

/// What a loop is taken up with.
#[derive(Clone, Copy, Debug)]
pub struct TakeUp<'a> {
    /// Settings that are to change.
    pub change: &'a ConfigChange,
    /// Who asks for it.
    pub from: Option<&'a Sender>,
    /// In the loop of a task: iterations that its task loop has heard of.
    pub reported: Option<u32>,
    pub judged: LeftWork<'a>,
}

/// What is written down when a loop is taken up again: an iteration whose agent died with its host is
/// closed, one that is being judged goes on where it was, if its work is there and the task is the same; a loop
/// that had ended is opened again, unless its task loop has not heard yet that it is proven; changes are taken.
pub fn take_up(
    state: &LoopState,
    taken: TakeUp<'_>,
    seen: impl FnOnce(&RunInfo) -> LastSeen,
) -> Vec<Decided> {
    let mut events = Vec::new();
    if let Phase::Finished { .. } = &state.phase {
        let unheard = taken
            .reported
            .is_some_and(|reported| is_unheard_proof(state, reported));
        events.extend((!unheard).then_some(Event::LoopReopened));
    }
    let is_other_task = is_other_task(state, taken.change);
    let is_judged = state.judged().is_some();
    if matches!(state.phase, Phase::Running(_))
        || (is_judged && (is_other_task || taken.judged.is_missing(state)))
    {
        events.extend(unfinished(state, seen));
    }
    if !taken.change.is_empty() {
        events.push(Event::ConfigChanged {
            change: Box::new(taken.change.clone()),
            by: "resume".to_owned(),
            from: taken.from.cloned(),
        });
    }
    Decided::all(events)
}

/// What was claimed for one prompt says nothing about another. The loop of a task gets its prompt anew with
/// every attempt.
fn is_other_task(state: &LoopState, change: &ConfigChange) -> bool {
    let config = &state.config;
    let is_other = |new: &String| *new != config.prompt || config.prompt_file.is_some();
    let is_other_file = |new| config.prompt_file.as_ref() != Some(new);
    config.proof.is_none()
        && (change.prompt.as_ref().is_some_and(is_other)
            || change.prompt_file.as_ref().is_some_and(is_other_file))
}

/// Why a loop that is to be taken up does not go on.
#[derive(Clone, Debug, PartialEq)]
pub enum Standstill {
    /// It is done: there is nothing to do.
    Done(IterativeExitReason),
    /// It is at its limit.
    AtLimit {
        reason: IterativeExitReason,
        /// Flags with which it goes on.
        resume_flags: String,
    },
}

/// Whether a loop that is taken up with these changes stands still all the same. Streaks of failures
/// and of iterations without progress begin anew; counts and budgets never do.
pub fn standstill(state: &LoopState, change: &ConfigChange) -> Option<Standstill> {
    match &state.phase {
        Phase::Finished { reason, .. } if reason.is_success() => {
            return Some(Standstill::Done(reason.clone()));
        }
        // What is under way is finished or closed first.
        Phase::Running(_) | Phase::Judging { .. } => return None,
        Phase::Finished {
            unjudged: Some(_), ..
        } => return None,
        // Its host died before it could say so: completion is looked at before every limit.
        Phase::Ready { .. } if state.verdict.as_ref().is_some_and(Verdict::proves) => return None,
        Phase::Ready { .. } | Phase::Finished { .. } => {}
    }
    let mut config = state.config.clone();
    change.apply_to(&mut config);
    let reason = exhausted(&config, state)?;
    let limit = config.max_iterations.max(Some(state.iterations));
    Some(Standstill::AtLimit {
        resume_flags: reason.resume_flags(limit),
        reason,
    })
}

/// The end of a loop that no host runs: the command, what a dead host left open, the end, and the
/// commands that it settles. What may be proven yet is left to a resume.
pub fn cancel_stopped(
    state: &LoopState,
    command: &Command,
    from: Option<&Sender>,
    now: Timestamp,
    seen: impl FnOnce(&RunInfo) -> LastSeen,
) -> Vec<Decided> {
    if matches!(state.phase, Phase::Finished { .. }) {
        return Vec::new();
    }
    let mut events = vec![command_accepted(state, command, from)];
    if !is_open(state) {
        events.extend(unfinished(state, seen));
    }
    events.push(Event::LoopFinished {
        reason: IterativeExitReason::UserCancelled,
    });
    if let Some(after) = with_events(state, &events, now) {
        events.extend(settled_by_end_of(&after));
    }
    Decided::all(events)
}
