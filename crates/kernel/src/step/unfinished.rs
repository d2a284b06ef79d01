//! Loops that were left in the middle of something: how an iteration that can no longer be finished
//! is closed, how a loop is taken up again, how one that nobody runs is cancelled.

use std::path::PathBuf;

use descartes_text::shell;
use descartes_text::units::Secs;
use jiff::Timestamp;

use super::left_work::LeftWork;
use super::react::{command_accepted, settled_by_end_of, with_events};
use super::{exhausted, is_open};
use crate::config::ConfigChange;
use crate::control::Command;
use crate::event::{Cost, Decided, Event, Tokens, Verdict};
use crate::outcome::{Budget, IterativeExitReason};
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
    Some(Standstill::AtLimit {
        resume_flags: flags_past_limits(state, change, &reason),
        reason,
    })
}

/// The flags with which a loop goes on that ended at a limit: twice each one that is reached, for one alone would
/// only lead to the next; and what else a refused change would have set.
pub fn flags_past_limits(
    state: &LoopState,
    change: &ConfigChange,
    reason: &IterativeExitReason,
) -> String {
    let mut config = state.config.clone();
    change.apply_to(&mut config);
    let is_limit = matches!(
        reason,
        IterativeExitReason::MaxIterationsReached | IterativeExitReason::BudgetExhausted { .. }
    );
    let own = reason.resume_flags(state.config.max_iterations);
    let mut flags = Vec::new();
    flags.extend(Some(own.clone()).filter(|own| !is_limit && !own.is_empty()));
    while let Some(reached) = exhausted(&config, state) {
        let limit = config.max_iterations.max(Some(state.iterations));
        flags.push(reached.resume_flags(limit));
        match reached {
            IterativeExitReason::BudgetExhausted { budget, .. } => match budget {
                Budget::Duration => config.max_duration_secs = None,
                Budget::Cost => config.max_cost_usd = None,
                Budget::Tokens => config.max_tokens = None,
            },
            _ => config.max_iterations = None,
        }
    }
    if flags.is_empty() {
        flags.extend(Some(own).filter(|own| !own.is_empty()));
    }
    let is_given = |flag: &str| flags.iter().any(|given| given.starts_with(flag));
    let number = |flag: &str, value: Option<String>| {
        let value = value.filter(|_| !is_given(flag));
        value.map(|value| format!("{flag} {value}"))
    };
    let seconds = |limit: Secs| format!("{}s", limit.0.as_secs_f64());
    let typed = [
        number(
            "--max-iterations",
            change.max_iterations.flatten().map(|n| n.to_string()),
        ),
        number("--max-duration", change.max_duration_secs.map(seconds)),
        number(
            "--max-cost",
            change.max_cost_usd.map(|cost| cost.to_string()),
        ),
        number("--max-tokens", change.max_tokens.map(|n| n.to_string())),
    ];
    let paths = |flag: &'static str, paths: &'_ [PathBuf]| {
        let typed = paths
            .iter()
            .map(move |path| format!("{flag} {}", shell::path(path)));
        typed.collect::<Vec<String>>()
    };
    let typed: Vec<String> = typed.into_iter().flatten().collect();
    flags.extend(typed);
    flags.extend(paths("--sandbox-write", &change.sandbox_write));
    flags.extend(paths("--sandbox-read", &change.sandbox_read));
    flags.join(" ")
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
