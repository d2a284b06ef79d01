//! What an iteration came to.

use std::collections::BTreeSet;

use super::{ClosingFacts, is_stopped, wants_gates};
use crate::config::{IterativeLoopConfig, Permissions};
use crate::event::{EndedBy, GateEnd, GateFacts, Progress, RunFacts, Verdict};
use crate::state::LoopState;
use descartes_plans::graph::Proof;

/// What an iteration came to. The promise is a claim; the gate is the fact.
pub(super) fn judge(
    state: &LoopState,
    facts: &RunFacts,
    gates: &[GateFacts],
    progress: &Progress,
    closing: &ClosingFacts,
) -> Verdict {
    let wanted: BTreeSet<u32> = (0..state.config.verify.len() as u32).collect();
    let green: BTreeSet<u32> = gates
        .iter()
        .filter(|g| g.passed() && g.is_one_of(&state.config.verify))
        .map(|g| g.gate)
        .collect();
    let proven = green == wanted;
    let is_red = gates.iter().any(|gate| !gate.passed());
    let is_cut_short = is_stopped(state) && wants_gates(state, facts) && !proven && !is_red;
    let is_cancelled = gates.iter().any(|gate| gate.end == GateEnd::Cancelled);
    if facts.ended_by == EndedBy::Cancel || is_cancelled || is_cut_short {
        return Verdict::Stopped;
    }
    if let Some(message) = &facts.abort {
        return Verdict::Blocked(message.clone());
    }
    let failure = failure_in(&state.config, facts);
    if let Some(proof @ (Proof::Work | Proof::Exit)) = state.config.proof {
        let changed = run_changed(state, closing);
        let gates = match (wanted.is_empty(), proven) {
            (true, _) => Proven::NoGate,
            (_, true) => Proven::Green,
            (_, false) => Proven::Red,
        };
        return judge_attempt(proof, facts, gates, changed, failure);
    }
    if state.config.completion_promise.is_some() {
        if facts.claim.is_some() {
            return match failure.filter(|_| state.config.proof.is_some()) {
                // A task's agent that fails has not done it, whatever it claimed before.
                Some(why) => Verdict::Failed(why),
                None if proven => Verdict::Promise,
                None => Verdict::Refused,
            };
        }
    } else if !wanted.is_empty() {
        if proven {
            return Verdict::Gates;
        }
    } else if failure.is_none() && facts.exit.is_some_and(|exit| exit.is_success()) {
        return Verdict::Success;
    }
    match (failure, progress) {
        (None, _) => Verdict::Worked,
        (Some(_), Progress::Moved(_)) if !facts.failed_at_start() => Verdict::Worked,
        (Some(why), _) => Verdict::Failed(why),
    }
}

/// A failure with what a person can do about it in a loop with this config.
pub(crate) fn failure_in(config: &IterativeLoopConfig, facts: &RunFacts) -> Option<String> {
    if let Some((words, flag)) = cut_off_words(config, facts.ended_by) {
        return Some(format!("{words} ({flag} changes that)"));
    }
    let words = facts.failure()?;
    Some(match facts.failed_by_denial() {
        true => format!("{words}; {}", way_past_denial(config)),
        false => words,
    })
}

/// Which limit of its own ended a run, and the flag that changes it.
pub(crate) fn cut_off_words(
    config: &IterativeLoopConfig,
    by: EndedBy,
) -> Option<(String, &'static str)> {
    match by {
        EndedBy::Timeout => {
            let limit = config.iteration_timeout_secs;
            let of = limit.map_or_else(String::new, |limit| format!(" of {limit}"));
            Some((format!("it reached its timeout{of}"), "--timeout"))
        }
        EndedBy::Idle => {
            let limit = config.idle_timeout_secs;
            let words = format!("it hung: no output and no activity for {limit}");
            Some((words, "--idle-timeout"))
        }
        _ => None,
    }
}

/// What lets an agent use the tools that were denied to it.
pub fn way_past_denial(config: &IterativeLoopConfig) -> &'static str {
    match config.permissions {
        Permissions::Agent | Permissions::Edit => "allow them with --permissions all",
        Permissions::All => "it has --permissions all, so its own settings deny them",
    }
}

/// An attempt of an agent that ended well and did nothing at all.
pub(crate) const NOTHING_DONE: &str = "the agent changed nothing and did not claim to be done";

/// What the gates say about an attempt at a task.
#[derive(Clone, Copy)]
enum Proven {
    NoGate,
    Green,
    Red,
}

/// Whether the agent left another tree or commit than it found.
fn run_changed(state: &LoopState, closing: &ClosingFacts) -> bool {
    let Some(run) = state.run() else { return false };
    let (before, after) = (&run.before, &closing.after);
    let differs = |old: &Option<String>, new: &Option<String>| matches!((old, new), (Some(old), Some(new)) if old != new);
    before.head != after.head || differs(&before.tree, &after.tree)
}

/// What an attempt at a task came to: the agent ended well, did something or claimed to have,
/// and every gate is green. Where there is no gate the promise is needed, if one was asked for.
fn judge_attempt(
    proof: Proof,
    facts: &RunFacts,
    gates: Proven,
    changed: bool,
    failure: Option<String>,
) -> Verdict {
    let claimed = facts.claim.is_some();
    if let Some(why) = failure {
        return Verdict::Failed(why);
    }
    let cut_short = matches!(facts.ended_by, EndedBy::Budget(_));
    match (gates, proof) {
        (Proven::Red, _) if claimed => Verdict::Refused,
        // Green gates prove nothing of an agent that was ended in the middle of its work.
        _ if cut_short && !claimed => Verdict::Worked,
        (Proven::Red, _) => Verdict::Worked,
        (_, _) if claimed => Verdict::Promise,
        (Proven::Green, Proof::Exit) => Verdict::Gates,
        // Nobody has asked for a promise, and there is no gate: it has to have done or said something.
        (Proven::NoGate, Proof::Exit) if changed || !facts.preview.trim().is_empty() => {
            Verdict::Success
        }
        (Proven::Green, _) if changed => Verdict::Gates,
        // It worked, and has not said that it is done.
        (Proven::NoGate, _) if changed => Verdict::Worked,
        _ => Verdict::Failed(NOTHING_DONE.to_owned()),
    }
}
