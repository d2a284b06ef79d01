//! The policy of a loop, in two pure functions. `react` turns what happened into events;
//! `plan` reads off the state what to do next. State changes only by applying the events,
//! so a loop that died anywhere goes on by folding its journal and asking `plan`.

mod judge;
mod left_work;
mod react;
mod unfinished;

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::budget;
use crate::config::IterativeLoopConfig;
use crate::control::Command;
use crate::event::{EndedBy, GateFacts, RunFacts, StopBy, TreeFacts, Verdict, WaitReason};
use crate::outcome::IterativeExitReason;
use crate::state::{LoopState, Pause, Phase};
use crate::steering::Sender;
use descartes_plans::graph::Proof;

pub use judge::way_past_denial;
pub(crate) use judge::{NOTHING_DONE, cut_off_words};
pub use left_work::{LeftChanges, LeftTrees, LeftWork, left_trees};
pub use react::{
    EndRun, before_start, budget_unkept_by_task, command_stopped, end_run, finish, give_up, leave,
    react, refusal, settled_by_attempt, settled_by_end,
};
pub use unfinished::{
    LastSeen, Standstill, TakeUp, cancel_stopped, close_unfinished, flags_past_limits, standstill,
    take_up,
};

/// What the policy must know of the agents beyond the config.
#[derive(Clone, Copy, Debug)]
pub struct Agents {
    /// How many there are: `--command` and its fallbacks.
    pub count: u32,
    /// Iterations without progress before a nudge, where the config does not say.
    pub stall_default: u32,
}

/// Iterations without progress before a nudge, where every agent is understood.
const STALL_AFTER: u32 = 5;

impl Agents {
    /// So many agents; `understood` is whether everything that they print is: of others nobody knows
    /// whether they stall.
    pub fn new(count: usize, understood: bool) -> Self {
        Self {
            count: u32::try_from(count).unwrap_or(u32::MAX),
            stall_default: if understood { STALL_AFTER } else { 0 },
        }
    }
}

/// What the host found out while closing an iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClosingFacts {
    /// The work tree after it.
    pub after: TreeFacts,
    /// Files that differ from before it.
    pub files: Option<u32>,
    /// The commit made of it.
    pub commit: Option<String>,
    /// Time that the commit took, hooks included.
    pub commit_ms: u64,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The agent's tree is gone.
    RunEnded(Box<RunFacts>),
    /// A gate is over.
    GateEnded(Box<GateFacts>),
    /// Evidence and commit of the iteration being judged are in.
    Closed(ClosingFacts),
    /// The wait is over by the clock.
    WaitElapsed,
    /// The loop now holds.
    Held,
    /// A signal or the library asks to stop.
    Stop(StopBy),
    /// The same, without any time for the agent.
    Kill(StopBy),
    /// In the loop of a task: a budget of its task loop is used up.
    BudgetGone,
    /// A person's command.
    Command {
        command: Command,
        /// Who sent it, as far as it is known.
        from: Option<Sender>,
    },
    /// The agent of the run that was to begin could not be started.
    NotStarted {
        message: String,
        /// Whether it may be otherwise in a moment: a program that is being updated is not there for a while.
        may_pass: bool,
    },
    /// The host cannot continue (disk, agent that cannot be started).
    Broken(String),
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Build a prompt and start an agent.
    Start {
        /// Number of the run.
        run: u64,
        /// The iteration it will be, from 1.
        iteration: u32,
        agent: u32,
    },
    /// An agent is at work.
    Watch,
    /// Run this gate.
    Gate {
        /// Which, from 0.
        index: u32,
        command: String,
    },
    /// Measure, commit, and come back with `Input::Closed`.
    Close,
    /// Wait until then, or for a command.
    Wait(Timestamp),
    /// Hold until a command.
    Hold,
    /// Write down the end.
    Finish(IterativeExitReason),
    /// Leave the loop unfinished, to be resumed.
    Leave(StopBy),
    /// Nothing: it is over.
    Over,
    /// Give the loop back to the task loop that it belongs to; it goes on when it is lent again.
    ReturnToParent,
}

/// What to do next in a loop of one task, which is lent for its next attempt alone: it is given
/// back once `until` iterations are over, and where it would have to wait for a provider.
pub fn plan_attempt(state: &LoopState, agents: Agents, until: u32, now: Timestamp) -> Action {
    let limited = match state.wait() {
        Some(wait) => matches!(wait.reason, WaitReason::Limit(_)),
        // A host died before it wrote down what is waited for.
        None => all_away_until(&state.agents.limited, &BTreeMap::new(), agents, now).is_some(),
    };
    match plan(state, agents, now) {
        Action::Start { .. } | Action::Wait(_) | Action::Hold if state.iterations >= until => {
            Action::ReturnToParent
        }
        // At its limit after this attempt it is over, until its task is tried again.
        Action::Finish(IterativeExitReason::MaxIterationsReached) if state.iterations < until => {
            Action::ReturnToParent
        }
        Action::Wait(_) if limited => Action::ReturnToParent,
        action => action,
    }
}

/// What to do next in this state.
pub fn plan(state: &LoopState, agents: Agents, now: Timestamp) -> Action {
    match &state.phase {
        Phase::Finished { .. } => Action::Over,
        Phase::Running(_) => Action::Watch,
        Phase::Judging { .. } => match next_gate(state) {
            Some((index, command)) => Action::Gate { index, command },
            None => match left_in_gates(state) {
                Some(by) if by.ends_loop() => Action::Finish(IterativeExitReason::UserCancelled),
                Some(by) => Action::Leave(by),
                None => Action::Close,
            },
        },
        Phase::Ready { .. } => plan_ready(state, agents, now),
    }
}

/// The gate that is run next, or runs, in an iteration that is being judged.
pub fn next_gate(state: &LoopState) -> Option<(u32, String)> {
    let Phase::Judging { facts, gates, .. } = &state.phase else {
        return None;
    };
    let red = gates.iter().any(|gate| !gate.passed());
    let next = gates.len();
    if is_stopped(state) || red || !wants_gates(state, facts) {
        return None;
    }
    let command = state.config.verify.get(next)?;
    Some((next as u32, command.clone()))
}

/// Whether a person's stop does not wait for the end of this iteration.
fn is_stopped(state: &LoopState) -> bool {
    let stop = state.requests.stop;
    stop.is_some_and(|by| by != StopBy::Interrupt)
}

/// A stop that comes before the gates of a claim have decided: they do after a resume, as where the host was
/// killed.
fn left_in_gates(state: &LoopState) -> Option<StopBy> {
    let Phase::Judging { gates, .. } = &state.phase else {
        return None;
    };
    let by = state.requests.stop.filter(|_| is_stopped(state))?;
    (gates.len() < state.config.verify.len() && is_open(state)).then_some(by)
}

/// Whether the iteration that is being judged may still turn out to be proven.
fn is_open(state: &LoopState) -> bool {
    let Phase::Judging { facts, gates, .. } = &state.phase else {
        return false;
    };
    wants_gates(state, facts) && gates.iter().all(GateFacts::passed)
}

fn wants_gates(state: &LoopState, facts: &RunFacts) -> bool {
    facts.abort.is_none()
        && facts.ended_by != EndedBy::Cancel
        && (facts.claim.is_some()
            || state.config.completion_promise.is_none()
            // Every attempt at a task ends in the gates.
            || matches!(state.config.proof, Some(Proof::Work | Proof::Exit)))
}

fn plan_ready(state: &LoopState, agents: Agents, now: Timestamp) -> Action {
    if let Some(reason) = ending(state, agents) {
        return Action::Finish(reason);
    }
    if let Some(by) = state.requests.stop {
        return if by.ends_loop() {
            Action::Finish(IterativeExitReason::UserCancelled)
        } else {
            Action::Leave(by)
        };
    }
    if let Some(reason) = exhausted(&state.config, state) {
        return Action::Finish(reason);
    }
    if state.requests.pause != Pause::No {
        return Action::Hold;
    }
    if let Some(wait) = state.wait()
        && wait.until > now
    {
        return Action::Wait(wait.until);
    }
    if let Some(until) = all_away_until(&state.agents.limited, &state.agents.resting, agents, now) {
        return Action::Wait(until);
    }
    let agent = choose_agent(state, agents, now);
    Action::Start {
        run: state.runs + 1,
        iteration: state.iterations + 1,
        agent,
    }
}

/// The end that the last iteration brought. Completion is looked at before every limit.
fn ending(state: &LoopState, agents: Agents) -> Option<IterativeExitReason> {
    use IterativeExitReason as R;
    match &state.verdict {
        Some(Verdict::Promise) => return Some(R::CompletionPromiseDetected),
        Some(Verdict::Gates) => return Some(R::GatesPassed),
        Some(Verdict::Success) => return Some(R::ProcessSuccess),
        Some(Verdict::Blocked(message)) => {
            return Some(R::AgentBlocked {
                message: message.clone(),
            });
        }
        _ => {}
    }
    if let Some(words) = &state.agents.fatal {
        return Some(R::AgentFailed {
            failures: state.agents.failures.max(1),
            last: words.clone(),
        });
    }
    if state.agents.failures >= state.config.max_failures || is_denied_for_good(state) {
        let last = state
            .agents
            .last_failure
            .clone()
            .unwrap_or_else(|| "unknown".to_owned());
        return Some(R::AgentFailed {
            failures: state.agents.failures,
            last,
        });
    }
    let after = stall_after(state, agents);
    if after > 0 && state.progress.iterations_without >= after.saturating_mul(2) {
        return Some(R::Stalled {
            iterations: state.progress.iterations_without,
            evidence: still_evidence(state),
        });
    }
    None
}

/// So many iterations in a row whose tools were denied end the loop: the next one would be denied them too.
pub(crate) const DENIED_IN_ROW: u32 = 2;

/// In the loop of a task its task loop decides, over all tasks.
fn is_denied_for_good(state: &LoopState) -> bool {
    state.config.proof.is_none() && state.agents.denied_in_row >= DENIED_IN_ROW
}

fn stall_after(state: &LoopState, agents: Agents) -> u32 {
    state.config.stall_after.unwrap_or(agents.stall_default)
}

fn still_evidence(state: &LoopState) -> String {
    let mut parts = vec!["HEAD and work tree unchanged".to_owned()];
    if let Some(red) = &state.progress.failing_gates {
        let names: Vec<&str> = red
            .iter()
            .filter_map(|i| state.config.verify.get(*i as usize))
            .map(String::as_str)
            .collect();
        if !names.is_empty() {
            parts.push(format!("still failing: {}", names.join(", ")));
        }
    }
    parts.join("; ")
}

/// Limits, looked at before a new iteration.
fn exhausted(config: &IterativeLoopConfig, state: &LoopState) -> Option<IterativeExitReason> {
    if let Some(reached) = budget::reached(config, &state.spent) {
        return Some(reached.exit_reason());
    }
    let limit = config.max_iterations?;
    (state.iterations >= limit).then_some(IterativeExitReason::MaxIterationsReached)
}

/// The first agent that is neither limited nor resting after a failure. While iterations fail in a
/// row, the one that failed least; once one has worked, the order of the agents counts again.
fn choose_agent(state: &LoopState, agents: Agents, now: Timestamp) -> u32 {
    let free = |agent: &u32| {
        away_until(&state.agents.limited, &state.agents.resting, *agent, now).is_none()
    };
    let failures = |agent: &u32| match state.agents.failures {
        0 => 0,
        _ => state.agents.agent_failures.get(agent).copied().unwrap_or(0),
    };
    let all = (0..agents.count.max(1)).filter(free);
    all.min_by_key(|agent| (failures(agent), *agent))
        .unwrap_or(0)
}

/// Until when an agent cannot be asked: its provider's limit, and its rest after a failure.
fn away_until(
    limited: &BTreeMap<u32, Timestamp>,
    resting: &BTreeMap<u32, Timestamp>,
    agent: u32,
    now: Timestamp,
) -> Option<Timestamp> {
    let until = limited.get(&agent).max(resting.get(&agent)).copied();
    until.filter(|until| *until > now)
}

/// When the first agent can be asked again, where none can now.
fn all_away_until(
    limited: &BTreeMap<u32, Timestamp>,
    resting: &BTreeMap<u32, Timestamp>,
    agents: Agents,
    now: Timestamp,
) -> Option<Timestamp> {
    let each = (0..agents.count.max(1)).map(|agent| away_until(limited, resting, agent, now));
    each.collect::<Option<Vec<_>>>()?.into_iter().min()
}
