//! The policy of a loop, in two pure functions. `react` turns what happened into events;
//! `plan` reads off the state what to do next. State changes only by applying the events,
//! so a loop that died anywhere goes on by folding its journal and asking `plan`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use crate::config::{ConfigError, check_prompt};
use crate::control::Command;
use crate::event::{
    EndedBy, Event, GateEnd, GateFacts, LimitKind, LimitTold, Progress, RunFacts, StopBy,
    TreeFacts, Verdict, WaitEnd, WaitReason,
};
use crate::graph::Proof;
use crate::limits::{failure_wait, limit_wait};
use crate::outcome::{Budget, IterativeExitReason};
use crate::progress::evidence;
use crate::state::{LoopState, Pause, Phase, RunInfo};

/// What the policy must know of the agents beyond the config.
#[derive(Clone, Copy, Debug)]
pub struct Agents {
    /// How many there are: `--command` and its fallbacks.
    pub count: u32,
    /// Iterations without progress before a nudge, where the config does not say.
    pub stall_default: u32,
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
    /// A person's command.
    Command(Command),
    /// The host cannot go on (disk, agent that cannot be started).
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
        /// Which agent.
        agent: u32,
    },
    /// An agent is at work.
    Watch,
    /// Run this gate.
    Gate {
        /// Which, from 0.
        index: u32,
        /// Its command.
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
    HandBack,
}

/// What to do next in a loop of one task, which is lent for its next attempt alone: it is given
/// back once `until` iterations are over, and where it would have to wait for a provider.
pub fn plan_attempt(state: &LoopState, agents: Agents, until: u32, now: Timestamp) -> Action {
    let limited = !matches!(
        &state.wait,
        Some(wait) if matches!(wait.reason, WaitReason::Failures(_))
    );
    match plan(state, agents, now) {
        Action::Start { .. } | Action::Wait(_) | Action::Hold if state.iterations >= until => {
            Action::HandBack
        }
        Action::Finish(IterativeExitReason::MaxIterationsReached) => Action::HandBack,
        Action::Wait(_) if limited => Action::HandBack,
        action => action,
    }
}

/// What to do next in this state.
pub fn plan(state: &LoopState, agents: Agents, now: Timestamp) -> Action {
    match &state.phase {
        Phase::Finished { .. } => Action::Over,
        Phase::Running(_) => Action::Watch,
        Phase::Judging { facts, gates, .. } => plan_judging(state, facts, gates),
        Phase::Ready => plan_ready(state, agents, now),
    }
}

fn plan_judging(state: &LoopState, facts: &RunFacts, gates: &[GateFacts]) -> Action {
    let stopped = state.stop.is_some_and(|by| by != StopBy::Interrupt);
    let red = gates.iter().any(|gate| !gate.passed());
    let next = gates.len();
    if wants_gates(state, facts) && !stopped && !red && next < state.config.verify.len() {
        return Action::Gate {
            index: next as u32,
            command: state.config.verify[next].clone(),
        };
    }
    Action::Close
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
    if let Some(by) = state.stop {
        return if by.ends_loop() {
            Action::Finish(IterativeExitReason::UserCancelled)
        } else {
            Action::Leave(by)
        };
    }
    if let Some(reason) = exhausted(state) {
        return Action::Finish(reason);
    }
    if state.pause != Pause::No {
        return Action::Hold;
    }
    if let Some(wait) = &state.wait
        && wait.until > now
    {
        return Action::Wait(wait.until);
    }
    if let Some(until) = all_limited_until(&state.limited, agents, now) {
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
    if let Some(words) = &state.fatal {
        return Some(R::AgentFailed {
            failures: state.failures.max(1),
            last: words.clone(),
        });
    }
    if state.failures >= state.config.max_failures {
        let last = state
            .last_failure
            .clone()
            .unwrap_or_else(|| "unknown".to_owned());
        return Some(R::AgentFailed {
            failures: state.failures,
            last,
        });
    }
    let after = stall_after(state, agents);
    if after > 0 && state.still >= after.saturating_mul(2) {
        return Some(R::Stalled {
            iterations: state.still,
            evidence: still_evidence(state),
        });
    }
    None
}

fn stall_after(state: &LoopState, agents: Agents) -> u32 {
    state.config.stall_after.unwrap_or(agents.stall_default)
}

fn still_evidence(state: &LoopState) -> String {
    let mut parts = vec!["HEAD and work tree unchanged".to_owned()];
    if let Some(red) = &state.red {
        let names: Vec<&str> = red
            .iter()
            .filter_map(|i| state.config.verify.get(*i as usize))
            .map(String::as_str)
            .collect();
        if !names.is_empty() {
            parts.push(format!("still red: {}", names.join(", ")));
        }
    }
    parts.join("; ")
}

/// Limits, looked at before a new iteration.
fn exhausted(state: &LoopState) -> Option<IterativeExitReason> {
    use IterativeExitReason as R;
    let over = |budget, limit: f64, used: f64| R::BudgetExhausted {
        budget,
        limit,
        used,
    };
    if let Some(limit) = state.config.max_duration_secs
        && u128::from(state.spent.ms) >= limit.0.as_millis()
    {
        return Some(over(
            Budget::Duration,
            limit.0.as_secs_f64(),
            state.spent.ms as f64 / 1e3,
        ));
    }
    if let (Some(limit), Some(used)) = (state.config.max_cost_usd, state.spent.cost_micros)
        && used as f64 >= limit * 1e6
    {
        return Some(over(Budget::Cost, limit, used as f64 / 1e6));
    }
    if let (Some(limit), Some(used)) = (state.config.max_tokens, state.spent.tokens)
        && used >= limit
    {
        return Some(over(Budget::Tokens, limit as f64, used as f64));
    }
    let limit = state.config.max_iterations?;
    (state.iterations >= limit).then_some(R::MaxIterationsReached)
}

/// The first agent that is neither limited nor (while another is left) failing.
fn choose_agent(state: &LoopState, agents: Agents, now: Timestamp) -> u32 {
    let free = |agent: &u32| state.limited.get(agent).is_none_or(|until| *until <= now);
    let all: Vec<u32> = (0..agents.count.max(1)).filter(free).collect();
    let failures = |agent: &u32| state.agent_failures.get(agent).copied().unwrap_or(0);
    all.iter()
        .copied()
        .min_by_key(|agent| (failures(agent), *agent))
        .unwrap_or(0)
}

/// Turns what happened into events. Nothing is changed here.
pub fn react(state: &LoopState, input: &Input, agents: Agents, now: Timestamp) -> Vec<Event> {
    match input {
        Input::RunEnded(facts) => run_ended(state, facts, agents, now),
        Input::GateEnded(facts) => match state.run() {
            Some(run) => {
                vec![Event::GateFinished {
                    iteration: run.iteration,
                    facts: facts.clone(),
                }]
            }
            None => Vec::new(),
        },
        Input::Closed(closing) => closed(state, closing, agents, now),
        Input::WaitElapsed => wait_over(state, WaitEnd::Elapsed),
        Input::Held => held(state),
        Input::Stop(by) => stop(state, *by),
        Input::Command(command) => command_events(state, command),
        Input::Broken(message) => {
            vec![Event::LoopFinished {
                reason: IterativeExitReason::Error {
                    message: message.clone(),
                },
            }]
        }
    }
}

fn run_ended(state: &LoopState, facts: &RunFacts, agents: Agents, now: Timestamp) -> Vec<Event> {
    let Some(run) = state.run() else {
        return Vec::new();
    };
    let ended = Event::AgentEnded {
        run: run.run,
        iteration: run.iteration,
        facts: Box::new(facts.clone()),
    };
    match &facts.limit {
        // A claim, or a person's stop, stands above a limit that was told beside it.
        Some(limit) if limit.kind != LimitKind::Login && counts_as_limited(facts) => {
            let retry_at = limit
                .until
                .filter(|until| *until > now)
                .unwrap_or_else(|| later(now, limit_wait(state.limit_runs + 1)));
            let discarded = Event::RunDiscarded {
                run: run.run,
                iteration: run.iteration,
                limit: limit.clone(),
                retry_at,
            };
            let wait = limit_wait_event(state, run, limit, retry_at, agents, now);
            [ended, discarded].into_iter().chain(wait).collect()
        }
        _ => vec![ended],
    }
}

fn counts_as_limited(facts: &RunFacts) -> bool {
    facts.claim.is_none() && facts.abort.is_none() && facts.ended_by != EndedBy::Cancel
}

/// With a fallback that is free the loop goes on at once; else it waits for the first.
fn limit_wait_event(
    state: &LoopState,
    run: &RunInfo,
    limit: &LimitTold,
    retry_at: Timestamp,
    agents: Agents,
    now: Timestamp,
) -> Option<Event> {
    let mut limited = state.limited.clone();
    limited.insert(run.agent, retry_at);
    let until = all_limited_until(&limited, agents, now)?;
    Some(Event::WaitStarted {
        until,
        reason: WaitReason::Limit(limit.clone()),
    })
}

fn all_limited_until(
    limited: &BTreeMap<u32, Timestamp>,
    agents: Agents,
    now: Timestamp,
) -> Option<Timestamp> {
    let each = (0..agents.count.max(1)).map(|a| limited.get(&a).copied().filter(|u| *u > now));
    each.collect::<Option<Vec<_>>>()?.into_iter().min()
}

fn later(now: Timestamp, wait: Duration) -> Timestamp {
    now.checked_add(wait).unwrap_or(now)
}

fn closed(state: &LoopState, closing: &ClosingFacts, agents: Agents, now: Timestamp) -> Vec<Event> {
    let Phase::Judging { run, facts, gates } = &state.phase else {
        return Vec::new();
    };
    let progress = evidence(
        &run.before,
        &closing.after,
        &state.trees,
        state.red.as_ref(),
        gates,
    );
    let verdict = judge(state, facts, gates, &progress, closing);
    let spent_ms = facts.duration_ms + gates.iter().map(|g| g.duration_ms).sum::<u64>();
    let mut events = vec![Event::IterationFinished {
        iteration: run.iteration,
        run: run.run,
        verdict: verdict.clone(),
        progress: progress.clone(),
        after: closing.after.clone(),
        files: closing.files,
        commit: closing.commit.clone(),
        spent_ms,
    }];
    if let Verdict::Failed(_) = verdict {
        let failures = state.failures + 1;
        let wait = failure_wait(state.config.failure_backoff_secs.0, failures);
        let login = facts
            .limit
            .as_ref()
            .is_some_and(|l| l.kind == LimitKind::Login);
        let another = agents.count > 1;
        if failures < state.config.max_failures && !login && !wait.is_zero() && !another {
            let reason = WaitReason::Failures(failures);
            events.push(Event::WaitStarted {
                until: later(now, wait),
                reason,
            });
        }
    }
    let after = stall_after(state, agents);
    if after > 0 && progress == Progress::None && state.still + 1 == after {
        events.push(Event::Nudged {
            iterations: state.still + 1,
        });
    }
    events
}

/// What an iteration came to. The promise is a claim; the gate is the fact.
fn judge(
    state: &LoopState,
    facts: &RunFacts,
    gates: &[GateFacts],
    progress: &Progress,
    closing: &ClosingFacts,
) -> Verdict {
    if facts.ended_by == EndedBy::Cancel || gates.iter().any(|g| g.end == GateEnd::Cancelled) {
        return Verdict::Stopped;
    }
    if let Some(message) = &facts.abort {
        return Verdict::Blocked(message.clone());
    }
    let wanted: BTreeSet<u32> = (0..state.config.verify.len() as u32).collect();
    let green: BTreeSet<u32> = gates
        .iter()
        .filter(|g| g.passed())
        .map(|g| g.gate)
        .collect();
    let proven = green == wanted;
    let failure = facts.failure();
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
        (Some(_), Progress::Moved(_)) | (None, _) => Verdict::Worked,
        (Some(why), _) => Verdict::Failed(why),
    }
}

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
/// and every gate is green. Where there is no gate the promise is needed.
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
    match (gates, proof) {
        (Proven::Red, _) if claimed => Verdict::Refused,
        (Proven::Red, _) => Verdict::Worked,
        (_, _) if claimed => Verdict::Promise,
        (Proven::Green, Proof::Exit) => Verdict::Gates,
        (Proven::NoGate, Proof::Exit) => Verdict::Success,
        (Proven::Green, _) if changed => Verdict::Gates,
        (Proven::NoGate, _) if changed => {
            Verdict::Failed("there is no gate, and the agent did not claim the promise".to_owned())
        }
        _ => Verdict::Failed("the agent changed nothing and claimed nothing".to_owned()),
    }
}

fn wait_over(state: &LoopState, by: WaitEnd) -> Vec<Event> {
    match state.wait {
        Some(_) => vec![Event::WaitEnded { by }],
        None => Vec::new(),
    }
}

fn held(state: &LoopState) -> Vec<Event> {
    if state.pause != Pause::Asked {
        return Vec::new();
    }
    let mut events = vec![Event::Paused];
    events.extend(effective(state, |command| *command == Command::Pause));
    events
}

fn effective(state: &LoopState, which: impl Fn(&Command) -> bool) -> Vec<Event> {
    let ids = state
        .pending
        .iter()
        .filter(|(_, command)| which(command))
        .map(|(id, _)| *id);
    ids.map(|id| Event::CommandEffective { id }).collect()
}

fn stop(state: &LoopState, by: StopBy) -> Vec<Event> {
    let mut events = Vec::new();
    // A stronger wish replaces a weaker one; the same wish twice changes nothing here.
    if state.stop.is_none() || (state.stop == Some(StopBy::Interrupt) && by != StopBy::Interrupt) {
        events.push(Event::StopRequested { by });
    }
    events.extend(wait_over(state, WaitEnd::Stop));
    events
}

/// Why a command is not taken, if it is not.
pub fn refusal(state: &LoopState, command: &Command) -> Option<ConfigError> {
    match command {
        Command::Say { text } if text.trim().is_empty() => Some(ConfigError {
            message: "the note is empty".to_owned(),
            hint: "say something: descartes loop say \"use the new parser\"".to_owned(),
        }),
        Command::Say { text } => check_prompt(text).err(),
        Command::Set { change } => {
            let mut config = state.config.clone();
            change.apply_to(&mut config);
            config.check().err()
        }
        _ => None,
    }
}

fn command_events(state: &LoopState, command: &Command) -> Vec<Event> {
    let id = state.next_command;
    let mut events = vec![Event::CommandAccepted {
        id,
        command: command.clone(),
    }];
    match command {
        Command::Pause => {
            let holds = state.pause == Pause::Held;
            if holds {
                events.push(Event::CommandEffective { id });
            }
        }
        Command::Unpause => {
            events.push(Event::Unpaused);
            // A pause that was asked for and taken back will never happen: it is settled.
            events.extend(effective(state, |command| *command == Command::Pause));
            events.push(Event::CommandEffective { id });
        }
        Command::Set { change } => {
            events.push(Event::ConfigChanged {
                change: (**change).clone(),
                by: "set".to_owned(),
            });
            events.push(Event::CommandEffective { id });
        }
        Command::RetryNow => {
            events.extend(wait_over(state, WaitEnd::Retry));
            events.push(Event::CommandEffective { id });
        }
        Command::Cancel { .. } => events.extend(stop(state, StopBy::Cancel)),
        Command::Say { .. } => {}
        Command::Ping => return Vec::new(),
    }
    events
}

/// Commands that are settled by the loop's end or by the start of a run.
pub fn settled_by_start(state: &LoopState, notes: &[u64]) -> Vec<Event> {
    let ids = state
        .pending
        .iter()
        .map(|(id, _)| *id)
        .filter(|id| notes.contains(id));
    ids.map(|id| Event::CommandEffective { id }).collect()
}
