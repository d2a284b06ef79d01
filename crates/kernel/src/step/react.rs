//! What happened, as events.

use std::time::Duration;

use jiff::Timestamp;

use super::judge::judge;
use super::{
    Action, Agents, ClosingFacts, Input, all_away_until, left_in_gates, plan, stall_after,
};
use crate::config::{ConfigError, IterativeLoopConfig, PromptMode, check_prompt};
use crate::control::{Command, CommandId, Grace};
use crate::event::{
    Decided, EndedBy, Event, FORMAT, GateEnd, LimitKind, Progress, Record, ReportedLimit, RunFacts,
    StopBy, Verdict, WaitEnd, WaitReason,
};
use crate::limits::{failure_wait, limit_wait, nothing_wait, shortest_limit_wait};
use crate::outcome::IterativeExitReason;
use crate::progress::evidence;
use crate::state::{IterationSummary, LoopState, Nudge, Pause, Phase, RunInfo};
use crate::steering::Sender;
use crate::transition::apply;

/// Turns what happened into events. Nothing is changed here.
pub fn react(state: &LoopState, input: &Input, agents: Agents, now: Timestamp) -> Vec<Decided> {
    Decided::all(events(state, input, agents, now))
}

fn events(state: &LoopState, input: &Input, agents: Agents, now: Timestamp) -> Vec<Event> {
    match input {
        Input::RunEnded(facts) => run_ended(state, facts, agents, now),
        // It is run again.
        Input::GateEnded(facts)
            if facts.end == GateEnd::Cancelled && left_in_gates(state).is_some() =>
        {
            Vec::new()
        }
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
        Input::Stop(by) | Input::Kill(by) => stop(state, *by),
        // A run under way is ended where it is watched, and what is judged is judged to its end.
        // Before a run there is nothing to begin it with.
        Input::BudgetGone => match state.phase {
            Phase::Ready { .. } => stop(state, StopBy::HangUp),
            _ => Vec::new(),
        },
        Input::Command { command, from } => command_events(state, command, from.as_ref()),
        Input::NotStarted { message, may_pass } => not_started(state, message, *may_pass),
        Input::Broken(message) => broken(message),
    }
}

fn broken(message: &str) -> Vec<Event> {
    vec![Event::LoopFinished {
        reason: IterativeExitReason::Error {
            message: message.to_owned(),
        },
    }]
}

/// Where no agent has ever worked in this loop nothing but a person mends it; later it is a failure like any
/// other: the next try waits a little, and another agent takes over.
fn not_started(state: &LoopState, message: &str, may_pass: bool) -> Vec<Event> {
    let has_worked = |summary: &IterationSummary| summary.exit_code.is_some();
    match state.run() {
        Some(run) if may_pass && state.summaries.iter().any(has_worked) => {
            vec![Event::AgentEnded {
                run: run.run,
                iteration: run.iteration,
                facts: Box::new(RunFacts::not_started(message.to_owned())),
            }]
        }
        _ => broken(message),
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
            let limit = limit.believed(now);
            let told = limit.until.filter(|until| *until > now);
            let retry_at = match told {
                Some(until) => {
                    until.max(later(now, shortest_limit_wait(state.agents.short_limits)))
                }
                None => later(now, limit_wait(state.agents.limit_runs + 1)),
            };
            let discarded = Event::RunDiscarded {
                run: run.run,
                iteration: run.iteration,
                limit: limit.clone(),
                retry_at,
            };
            let wait = limit_wait_event(state, run, &limit, retry_at, agents, now);
            let events = vec![ended, discarded];
            let wait = wait.filter(|_| !ends_after(state, &events, agents, now));
            events.into_iter().chain(wait).collect()
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
    limit: &ReportedLimit,
    retry_at: Timestamp,
    agents: Agents,
    now: Timestamp,
) -> Option<Event> {
    let mut limited = state.agents.limited.clone();
    limited.insert(run.agent, retry_at);
    let until = all_away_until(&limited, &state.agents.resting, agents, now)?;
    Some(Event::WaitStarted {
        until,
        reason: WaitReason::Limit(limit.clone()),
    })
}

/// Whether these events end the loop: nobody waits for what does not come.
fn ends_after(state: &LoopState, events: &[Event], agents: Agents, now: Timestamp) -> bool {
    with_events(state, events, now)
        .is_some_and(|after| matches!(plan(&after, agents, now), Action::Finish(_)))
}

/// The state behind these events, where they are legal.
pub(super) fn with_events(
    state: &LoopState,
    events: &[Event],
    now: Timestamp,
) -> Option<LoopState> {
    let mut after = state.clone();
    for event in events {
        let record = Record {
            v: FORMAT,
            seq: after.seq + 1,
            at: now,
            event: event.clone(),
        };
        apply(&mut after, &record).ok()?;
    }
    Some(after)
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
        &state.progress.recent_tree_hashes,
        state.progress.failing_gates.as_ref(),
        gates,
    );
    let verdict = judge(state, facts, gates, &progress, closing);
    let gates_ms = gates.iter().map(|gate| gate.duration_ms).sum::<u64>();
    let spent_ms = facts.duration_ms + gates_ms + closing.commit_ms;
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
        let login = facts
            .limit
            .as_ref()
            .is_some_and(|l| l.kind == LimitKind::Login);
        if state.agents.failures + 1 < state.config.max_failures && !login {
            let mut rest = rest_events(state, run.agent, agents, now);
            if ends_after(state, &events, agents, now) {
                rest.retain(|event| !matches!(event, Event::WaitStarted { .. }));
            }
            events.extend(rest);
        }
    }
    events.extend(nothing_done_wait(state, &events, agents, now));
    let unkept = unkept_budget(state, facts);
    events.extend(unkept.map(|message| Event::Warning {
        message,
        needs_person: false,
    }));
    let still = state.progress.iterations_without + 1;
    let goes_on = !ends_after(state, &events, agents, now);
    if progress == Progress::None && goes_on && is_nudge_due(state, still, agents) {
        events.push(Event::Nudged { iterations: still });
    }
    if verdict.delivers() {
        let told = |id: CommandId| run.notes.contains(&id) || !is_note_waiting(state, id);
        events.extend(settled(state, told));
    }
    events
}

/// The wait after iterations whose agents ended at once and did nothing, where neither a number of iterations nor
/// a stall would ever end the loop.
fn nothing_done_wait(
    state: &LoopState,
    events: &[Event],
    agents: Agents,
    now: Timestamp,
) -> Option<Event> {
    let config = &state.config;
    if config.max_iterations.is_some() || config.proof.is_some() || stall_after(state, agents) > 0 {
        return None;
    }
    let after = with_events(state, events, now)?;
    let in_a_row = after.progress.quick_nothings;
    let wait = nothing_wait(in_a_row);
    let goes_on = matches!(plan(&after, agents, now), Action::Start { .. });
    (goes_on && !wait.is_zero()).then(|| Event::WaitStarted {
        until: later(now, wait),
        reason: WaitReason::NothingDone(in_a_row),
    })
}

/// What a person has to know who relies on a budget of something that the agent does not tell: told once, by the
/// first run that ended well.
fn unkept_budget(state: &LoopState, facts: &RunFacts) -> Option<String> {
    let config = &state.config;
    // Every loop of a task would say the same.
    if config.proof.is_some() || facts.failure().is_some() || state.summaries.iter().any(ended_well)
    {
        return None;
    }
    let tokens = facts.tokens.and_then(|tokens| tokens.total());
    let (flag, what) = untold(config, facts.cost.is_some(), tokens.is_some())?;
    Some(format!(
        "the agent told no {what}: {flag} cannot end this loop as long as it does not; \
         --max-duration and --max-iterations do"
    ))
}

/// The same in a task loop, whose tasks may have agents of their own: told once, by the first run of any of them
/// that ended well. To be asked before that run is counted.
pub fn budget_unkept_by_task(
    state: &LoopState,
    task: &str,
    run: &IterationSummary,
) -> Option<Decided> {
    let untold_by = |run: &IterationSummary| {
        untold(&state.config, run.cost_usd.is_some(), run.tokens.is_some())
            .filter(|_| ended_well(run))
    };
    let (flag, what) = untold_by(run)?;
    if state.summaries.iter().any(|run| untold_by(run).is_some()) {
        return None;
    }
    let message = format!(
        "the agent of task {task} told no {what}: what it uses does not count for {flag}; \
         --max-duration and --max-iterations end this loop all the same"
    );
    Some(Decided::new(Event::Warning {
        message,
        needs_person: false,
    }))
}

fn ended_well(run: &IterationSummary) -> bool {
    let verdict = run.verdict.as_ref();
    verdict.is_some_and(|verdict| !matches!(verdict, Verdict::Failed(_) | Verdict::Stopped))
}

/// The first budget that a run which tells this cannot use up.
fn untold(
    config: &IterativeLoopConfig,
    tells_cost: bool,
    tells_tokens: bool,
) -> Option<(&'static str, &'static str)> {
    match () {
        () if config.max_cost_usd.is_some() && !tells_cost => Some(("--max-cost", "cost")),
        () if config.max_tokens.is_some() && !tells_tokens => Some(("--max-tokens", "tokens")),
        () => None,
    }
}

fn is_nudge_due(state: &LoopState, still: u32, agents: Agents) -> bool {
    let after = stall_after(state, agents);
    after > 0 && still >= after && state.progress.nudge == Nudge::None
}

/// What has to be written down before an agent is started: a nudge that a host died before it could
/// write.
pub fn before_start(state: &LoopState, agents: Agents) -> Option<Decided> {
    let iterations = state.progress.iterations_without;
    is_nudge_due(state, iterations, agents).then(|| Decided::new(Event::Nudged { iterations }))
}

fn is_note_waiting(state: &LoopState, id: CommandId) -> bool {
    state.next_prompt.notes.iter().any(|note| note.id == id)
}

/// Notes among the pending commands that have been delivered.
fn settled(state: &LoopState, told: impl Fn(CommandId) -> bool) -> Vec<Event> {
    let pending = state.requests.pending.iter();
    let notes = pending.filter(|(_, command)| matches!(command, Command::Say { .. }));
    notes
        .map(|(id, _)| *id)
        .filter(|id| told(*id))
        .map(|id| Event::CommandEffective { id })
        .collect()
}

/// In a task loop: an attempt that had these notes in its prompt is over and counts.
pub fn settled_by_attempt(state: &LoopState, notes: &[CommandId]) -> Vec<Decided> {
    Decided::all(settled(state, |id| notes.contains(&id)))
}

/// An agent that failed rests, longer each time; where no other can be asked, the loop waits.
fn rest_events(state: &LoopState, agent: u32, agents: Agents, now: Timestamp) -> Vec<Event> {
    let failures = state
        .agents
        .agent_failures
        .get(&agent)
        .copied()
        .unwrap_or(0)
        + 1;
    let rest = failure_wait(state.config.failure_backoff_secs.0, failures);
    if rest.is_zero() {
        return Vec::new();
    }
    let until = later(now, rest);
    let mut resting = state.agents.resting.clone();
    resting.insert(agent, until);
    let wait = all_away_until(&state.agents.limited, &resting, agents, now);
    let wait = wait.map(|until| Event::WaitStarted {
        until,
        reason: WaitReason::Failures(state.agents.failures + 1),
    });
    std::iter::once(Event::AgentResting { agent, until })
        .chain(wait)
        .collect()
}

fn wait_over(state: &LoopState, by: WaitEnd) -> Vec<Event> {
    match state.wait() {
        Some(_) => vec![Event::WaitEnded { by }],
        None => Vec::new(),
    }
}

fn held(state: &LoopState) -> Vec<Event> {
    if state.requests.pause != Pause::Asked {
        return Vec::new();
    }
    let mut events = vec![Event::Paused];
    events.extend(effective(state, |command| *command == Command::Pause));
    events
}

fn effective(state: &LoopState, which: impl Fn(&Command) -> bool) -> Vec<Event> {
    let ids = state
        .requests
        .pending
        .iter()
        .filter(|(_, command)| which(command))
        .map(|(id, _)| *id);
    ids.map(|id| Event::CommandEffective { id }).collect()
}

fn stop(state: &LoopState, by: StopBy) -> Vec<Event> {
    let mut events = Vec::new();
    // Every Ctrl-C is on record: the first lets the iteration finish, any after it does not, and one
    // that finds the run asked to end gives no more time. Of other wishes a stronger one replaces a
    // weaker one.
    let by = match (state.requests.stop, by) {
        (Some(_), StopBy::Interrupt) => StopBy::InterruptAgain,
        _ => by,
    };
    let replaces = match state.requests.stop {
        None => true,
        Some(StopBy::Interrupt) => by != StopBy::Interrupt,
        Some(_) => by == StopBy::InterruptAgain,
    };
    if replaces {
        events.push(Event::StopRequested { by });
    }
    events.extend(wait_over(state, WaitEnd::Stop));
    events
}

/// How the process tree that may be running is to be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndRun {
    /// It is asked to, and has its time for it.
    Ask,
    /// At once.
    Kill,
}

/// Whether what happened ends the process tree that may be running, and how. To be asked before the
/// events of it are applied.
pub fn end_run(state: &LoopState, input: &Input) -> Option<EndRun> {
    match input {
        Input::Stop(StopBy::Interrupt) => match state.requests.stop {
            // This iteration is finished first.
            None => None,
            Some(StopBy::Interrupt) => Some(EndRun::Ask),
            Some(_) => Some(EndRun::Kill),
        },
        Input::Stop(_) => Some(EndRun::Ask),
        Input::Kill(_) => Some(EndRun::Kill),
        Input::BudgetGone if matches!(state.phase, Phase::Ready { .. }) => Some(EndRun::Ask),
        Input::Command {
            command: Command::Cancel { grace },
            ..
        } => match grace {
            Grace::Ask => Some(EndRun::Ask),
            Grace::Skip => Some(EndRun::Kill),
        },
        _ => None,
    }
}

/// Why a command is not taken, if it is not.
pub fn refusal(state: &LoopState, command: &Command) -> Option<ConfigError> {
    match command {
        // A resume would stand still at once.
        Command::Pause if state.exit_reason() == IterativeExitReason::UserCancelled => {
            Some(ConfigError {
                message: "the loop was cancelled: there is nothing to pause".to_owned(),
                hint: "to go on with it: descartes loop resume".to_owned(),
            })
        }
        Command::Say { text } if text.trim().is_empty() => Some(ConfigError {
            message: "the note is empty".to_owned(),
            hint: "say what the next iteration should know".to_owned(),
        }),
        Command::Say { .. } if state.config.backend.prompt_mode == Some(PromptMode::None) => {
            Some(ConfigError {
                message:
                    "a note cannot reach the agent: it is given no prompt (--prompt-mode none)"
                        .to_owned(),
                hint:
                    "write it where the agent looks, or resume the loop with another --prompt-mode"
                        .to_owned(),
            })
        }
        Command::Say { text } => check_prompt(text).err(),
        Command::Set { change } if change.trust_marks.is_some() => Some(ConfigError {
            message: "tasks marked by others can only be accepted by a resume".to_owned(),
            hint: "descartes loop resume --trust-marks".to_owned(),
        }),
        Command::Set { change } if change.worktree_setup.is_some() => Some(ConfigError {
            message: "what prepares worktrees can only be changed by a resume".to_owned(),
            hint: "change worktree_setup in the config, then: descartes loop resume".to_owned(),
        }),
        Command::Set { change } if change.workers.is_some() => Some(ConfigError {
            message: "the engine of a task loop can only be changed by a resume".to_owned(),
            hint: "stop the loop with Ctrl-C, then: descartes loop resume --workers URL".to_owned(),
        }),
        Command::Set { change } => {
            let mut config = state.config.clone();
            change.apply_to(&mut config);
            let fits = change.check_for(&state.config);
            fits.and_then(|()| config.check()).err()
        }
        _ => None,
    }
}

/// What a command means for a loop that no host runs; its end is [`super::cancel_stopped`].
pub fn command_stopped(
    state: &LoopState,
    command: &Command,
    from: Option<&Sender>,
) -> Vec<Decided> {
    Decided::all(command_events(state, command, from))
}

pub(super) fn command_accepted(
    state: &LoopState,
    command: &Command,
    from: Option<&Sender>,
) -> Event {
    Event::CommandAccepted {
        id: state.requests.next_command,
        command: command.clone(),
        from: from.cloned(),
    }
}

fn command_events(state: &LoopState, command: &Command, from: Option<&Sender>) -> Vec<Event> {
    let id = state.requests.next_command;
    let mut events = vec![command_accepted(state, command, from)];
    match command {
        Command::Pause => {
            let holds = state.requests.pause == Pause::Held;
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
                change: change.clone(),
                by: "set".to_owned(),
                from: from.cloned(),
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

/// Commands that are settled by the loop's end. A note that nobody has had stays: it stands in
/// the prompts after a resume.
pub fn settled_by_end(state: &LoopState) -> Vec<Decided> {
    Decided::all(settled_by_end_of(state))
}

pub(super) fn settled_by_end_of(state: &LoopState) -> Vec<Event> {
    let ids = state.requests.pending.iter().map(|(id, _)| *id);
    ids.filter(|id| !is_note_waiting(state, *id))
        .map(|id| Event::CommandEffective { id })
        .collect()
}

/// The end that was read off the state.
pub fn finish(reason: IterativeExitReason) -> Decided {
    Decided::new(Event::LoopFinished { reason })
}

/// The host cannot continue.
pub fn give_up(message: String) -> Decided {
    finish(IterativeExitReason::Error { message })
}

/// The host leaves without ending the loop.
pub fn leave(by: StopBy) -> Decided {
    Decided::new(Event::Interrupted { by })
}
