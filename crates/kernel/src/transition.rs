//! The only way a loop's state changes: `apply`, live and in recovery alike.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use thiserror::Error;

use crate::control::Command;
use crate::event::{
    Cost, Event, FORMAT, GateEnd, GateFacts, Progress, Record, RunFacts, Tokens, TreeFacts,
    Verdict, WaitEnd,
};
use crate::state::{
    Claimed, GateSummary, IterationSummary, IterativeLoopState, LoopState, Note, Pause, Phase,
    Refusal, RunInfo, Spent, Wait,
};
use crate::tasks::Counted;

/// An event that cannot follow what came before it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("journal record {seq}: {message}")]
pub struct IllegalEvent {
    /// Its number.
    pub seq: u64,
    /// Why not.
    pub message: String,
}

/// Folds a journal from its first record.
pub fn fold<'a>(
    records: impl IntoIterator<Item = &'a Record>,
) -> Result<Option<LoopState>, IllegalEvent> {
    let mut state: Option<LoopState> = None;
    for record in records {
        match &mut state {
            None => state = Some(begin(record)?),
            Some(state) => apply(state, record)?,
        }
    }
    Ok(state)
}

/// Records between two checkpoints: few enough to be read in an instant, so many that a
/// checkpoint is a small part of them.
const CHECKPOINT_EVERY: u64 = 1024;

/// The checkpoint that is due, if one is. A loop that is over gets none: its end stays the
/// last that is said of it.
pub fn checkpoint(state: &LoopState) -> Option<Event> {
    let over = matches!(state.phase, Phase::Finished { .. });
    let due = state.seq.saturating_sub(state.checkpoint) >= CHECKPOINT_EVERY;
    (due && !over).then(|| Event::Checkpoint {
        state: Box::new(state.clone()),
    })
}

/// Folds the end of a journal: from its last checkpoint, or from its first record. `None`
/// where `records` begin with neither.
pub fn fold_end<'a>(
    records: impl IntoIterator<Item = &'a Record>,
) -> Result<Option<LoopState>, IllegalEvent> {
    let mut records = records.into_iter();
    let Some(first) = records.next() else {
        return Ok(None);
    };
    let mut state = match &first.event {
        Event::Checkpoint { state } => LoopState {
            seq: first.seq,
            checkpoint: first.seq,
            ..(**state).clone()
        },
        Event::LoopCreated { .. } => begin(first)?,
        _ => return Ok(None),
    };
    for record in records {
        apply(&mut state, record)?;
    }
    Ok(Some(state))
}

/// Folds a whole journal, record by record. What is wrong with the first record that does not
/// fit is told at the end; those behind it change nothing.
#[derive(Debug, Default)]
pub struct Fold {
    state: Option<LoopState>,
    trouble: Option<IllegalEvent>,
}

impl Fold {
    /// The next record.
    pub fn push(&mut self, record: &Record) {
        if self.trouble.is_some() {
            return;
        }
        let step = match &mut self.state {
            None => begin(record).map(|first| self.state = Some(first)),
            Some(state) => apply(state, record),
        };
        self.trouble = step.err();
    }

    /// The state behind the last record; `None` where there was none.
    pub fn finish(self) -> Result<Option<LoopState>, IllegalEvent> {
        match self.trouble {
            Some(error) => Err(error),
            None => Ok(self.state),
        }
    }
}

/// The state after the first record.
pub fn begin(record: &Record) -> Result<LoopState, IllegalEvent> {
    let Event::LoopCreated {
        loop_id,
        name,
        config,
        started_at,
        iterations,
        summaries,
        spent,
        ended,
    } = &record.event
    else {
        return Err(illegal(record, "a journal begins with loop_created"));
    };
    let phase = match ended {
        Some(reason) => Phase::Finished {
            reason: reason.clone(),
            at: record.at,
        },
        None => Phase::Ready,
    };
    Ok(LoopState {
        loop_id: loop_id.clone(),
        name: name.clone(),
        config: (**config).clone(),
        started_at: *started_at,
        host: None,
        iterations: *iterations,
        runs: 0,
        phase,
        pause: Pause::No,
        stop: None,
        wait: None,
        spent: spent.unwrap_or_default(),
        failures: 0,
        last_failure: None,
        fatal: None,
        limit_runs: 0,
        limited: BTreeMap::new(),
        agent_failures: BTreeMap::new(),
        still: 0,
        trees: VecDeque::new(),
        nudge: false,
        red: None,
        refusal: None,
        notes: Vec::new(),
        pending: Vec::new(),
        next_command: 1,
        summaries: summaries.iter().cloned().collect::<VecDeque<_>>(),
        after: None,
        verdict: None,
        completion: None,
        interrupted: None,
        gate_files: BTreeMap::new(),
        tasks: None,
        seq: record.seq,
        checkpoint: 0,
    })
}

/// Kinds that a later format added are passed over; where what follows makes no sense without
/// them, that is the reason.
fn illegal(record: &Record, message: &str) -> IllegalEvent {
    let message = match record.v > FORMAT {
        true => format!("written by a newer version of descartes: {message}"),
        false => message.to_owned(),
    };
    IllegalEvent {
        seq: record.seq,
        message,
    }
}

/// Applies one record. An event that is illegal in this state is an error value, and the
/// state is as it was.
pub fn apply(state: &mut LoopState, record: &Record) -> Result<(), IllegalEvent> {
    if record.seq != state.seq + 1 {
        return Err(illegal(
            record,
            &format!("expected record {}", state.seq + 1),
        ));
    }
    change(state, record)?;
    state.seq = record.seq;
    Ok(())
}

fn change(state: &mut LoopState, record: &Record) -> Result<(), IllegalEvent> {
    match &record.event {
        Event::LoopCreated { .. } => return Err(illegal(record, "a second loop_created")),
        Event::HostStarted { host } => {
            state.host = Some(host.clone());
            state.interrupted = None;
            if state.stop.is_some() && !matches!(state.phase, Phase::Finished { .. }) {
                state.stop = None;
            }
        }
        Event::GateFiles { files } => state.gate_files.clone_from(files),
        Event::StateEdited { config, iterations } => {
            state.config = (**config).clone();
            state.iterations = *iterations;
        }
        Event::ConfigChanged { change, .. } => change.apply_to(&mut state.config),
        Event::RunStarted { .. } => run_started(state, record)?,
        Event::AgentEnded { run, facts, .. } => agent_ended(state, record, *run, facts)?,
        Event::GateFinished { facts, .. } => match &mut state.phase {
            Phase::Judging { gates, .. } => gates.push((**facts).clone()),
            _ => return Err(illegal(record, "a gate ran while nothing was judged")),
        },
        Event::IterationFinished { .. } => iteration_finished(state, record)?,
        Event::RunDiscarded { .. } => run_discarded(state, record)?,
        Event::IterationInterrupted { .. } => iteration_interrupted(state, record)?,
        Event::WaitStarted { until, reason } => {
            state.wait = Some(Wait {
                until: *until,
                reason: reason.clone(),
                since: record.at,
            });
        }
        Event::WaitEnded { by } => {
            let waited_for = state.wait.take().map(|wait| wait.until);
            match by {
                WaitEnd::Retry => state.limited.clear(),
                // A wall clock that was put back meanwhile has not got there yet.
                WaitEnd::Elapsed => {
                    let over = waited_for.map_or(record.at, |until| until.max(record.at));
                    state.limited.retain(|_, until| *until > over);
                }
                WaitEnd::Stop => state.limited.retain(|_, until| *until > record.at),
            }
        }
        Event::Paused => state.pause = Pause::Held,
        Event::Unpaused => state.pause = Pause::No,
        Event::CommandAccepted { id, command } => command_accepted(state, *id, command),
        Event::CommandEffective { id } => {
            state.pending.retain(|(pending, _)| pending != id);
            if state.config.tasks.is_some() {
                // A note is settled when an attempt has taken it along.
                state.notes.retain(|note| note.id != *id);
            }
        }
        Event::TasksPlanned { tag, tasks } => {
            state.tasks.get_or_insert_default().plan(tag, tasks);
        }
        Event::Tasks { event } => {
            let tasks = state.tasks.get_or_insert_default();
            if tasks.apply(event, record.at) == Counted::Yes {
                state.iterations += 1;
            }
        }
        Event::TaskLoop { task, loop_id, .. } => {
            let tasks = state.tasks.get_or_insert_default();
            tasks.loops.insert(task.clone(), loop_id.clone());
        }
        Event::TaskRun {
            task,
            iterations,
            summary,
            spent,
            ..
        } => {
            let tasks = state.tasks.get_or_insert_default();
            tasks.told.insert(task.clone(), *iterations);
            task_run(state, task, summary, spent);
        }
        Event::WorkLanded { landing } => {
            state.tasks.get_or_insert_default().landing = Some(landing.clone());
        }
        Event::StopRequested { by } => state.stop = Some(*by),
        Event::Nudged { .. } => state.nudge = true,
        Event::Interrupted { by } => state.interrupted = Some(*by),
        Event::LoopFinished { reason } => {
            state.wait = None;
            // What a person asks for from here on is meant for the time after a resume.
            state.pause = Pause::No;
            state.phase = Phase::Finished {
                reason: reason.clone(),
                at: record.at,
            };
        }
        Event::LoopReopened => reopen(state, record)?,
        Event::Checkpoint { .. } => state.checkpoint = record.seq,
        Event::Branched { .. } | Event::Tagged { .. } | Event::Warning { .. } | Event::Unknown => {}
    }
    Ok(())
}

fn run_started(state: &mut LoopState, record: &Record) -> Result<(), IllegalEvent> {
    let Event::RunStarted {
        run,
        iteration,
        agent,
        guard_pid,
        before,
        notes,
        ..
    } = &record.event
    else {
        return Ok(());
    };
    if state.phase != Phase::Ready {
        return Err(illegal(record, "a run started while another was not over"));
    }
    if *run != state.runs + 1 || *iteration != state.iterations + 1 {
        return Err(illegal(record, "run and iteration numbers must follow on"));
    }
    state.runs = *run;
    state.wait = None;
    state.nudge = false;
    state.notes.retain(|note| !notes.contains(&note.id));
    state.phase = Phase::Running(RunInfo {
        run: *run,
        iteration: *iteration,
        agent: *agent,
        guard_pid: *guard_pid,
        started_at: record.at,
        before: before.clone(),
    });
    Ok(())
}

fn agent_ended(
    state: &mut LoopState,
    record: &Record,
    run: u64,
    facts: &RunFacts,
) -> Result<(), IllegalEvent> {
    match &state.phase {
        Phase::Running(info) if info.run == run => {
            state.phase = Phase::Judging {
                run: info.clone(),
                facts: Box::new(facts.clone()),
                gates: Vec::new(),
            };
            Ok(())
        }
        _ => Err(illegal(record, "an agent ended that was not running")),
    }
}

/// Trees that are remembered: enough to see an agent that goes to and fro.
const TREES: usize = 8;

fn remember_tree(state: &mut LoopState, after: &TreeFacts) {
    if let Some(tree) = &after.tree
        && state.trees.back() != Some(tree)
    {
        state.trees.push_back(tree.clone());
        if state.trees.len() > TREES {
            state.trees.pop_front();
        }
    }
}

fn iteration_finished(state: &mut LoopState, record: &Record) -> Result<(), IllegalEvent> {
    let Event::IterationFinished {
        iteration,
        verdict,
        progress,
        after,
        files,
        spent_ms,
        ..
    } = &record.event
    else {
        return Ok(());
    };
    let (run, facts, gates) = match std::mem::replace(&mut state.phase, Phase::Ready) {
        Phase::Judging { run, facts, gates } if run.iteration == *iteration => (run, facts, gates),
        other => {
            state.phase = other;
            return Err(illegal(record, "an iteration finished that was not judged"));
        }
    };
    state.iterations = *iteration;
    state.spent.ms += spent_ms;
    spend(&mut state.spent, facts.tokens.as_ref(), facts.cost.as_ref());
    count_failure(state, run.agent, &facts, verdict);
    match progress {
        Progress::None => state.still += 1,
        Progress::Moved(_) => state.still = 0,
        Progress::Unknown(_) => {}
    }
    remember_tree(state, after);
    if !gates.is_empty() {
        state.red = Some(
            gates
                .iter()
                .filter(|g| !g.passed())
                .map(|g| g.gate)
                .collect(),
        );
    }
    state.refusal = refusal(&gates, facts.claim.is_some());
    state.limit_runs = 0;
    state.after = Some(after.clone());
    if matches!(
        verdict,
        Verdict::Promise | Verdict::Gates | Verdict::Success
    ) {
        state.completion = Some((record.at, facts.claim.clone().unwrap_or_default()));
    }
    state.verdict = Some(verdict.clone());
    state.remember(summary(&run, &facts, &gates, verdict, *files, record.at));
    Ok(())
}

fn count_failure(state: &mut LoopState, agent: u32, facts: &RunFacts, verdict: &Verdict) {
    match verdict {
        Verdict::Failed(why) => {
            state.failures += 1;
            *state.agent_failures.entry(agent).or_default() += 1;
            state.last_failure = Some(why.clone());
            if let Some(limit) = &facts.limit
                && limit.kind == crate::event::LimitKind::Login
            {
                state.fatal = Some(limit.words.clone());
            }
        }
        Verdict::Stopped => {}
        _ => {
            state.failures = 0;
            state.agent_failures.remove(&agent);
            state.last_failure = None;
        }
    }
}

fn refusal(gates: &[GateFacts], claimed: bool) -> Option<Refusal> {
    let red = gates
        .iter()
        .find(|gate| !gate.passed() && gate.end != GateEnd::Cancelled)?;
    let claimed = if claimed { Claimed::Yes } else { Claimed::No };
    Some(Refusal {
        gate: red.clone(),
        claimed,
    })
}

fn summary(
    run: &RunInfo,
    facts: &RunFacts,
    gates: &[GateFacts],
    verdict: &Verdict,
    files: Option<u32>,
    at: Timestamp,
) -> IterationSummary {
    let gate = |g: &GateFacts| GateSummary {
        command: g.command.clone(),
        exit_code: match g.end {
            GateEnd::Exit(status) => Some(status.shell_code()),
            _ => None,
        },
        duration_ms: g.duration_ms,
    };
    IterationSummary {
        iteration: run.iteration - 1,
        started_at: Some(run.started_at),
        completed_at: Some(at),
        exit_code: facts.exit.map(|e| e.shell_code()),
        output_preview: facts.preview.clone(),
        promise_checked: true,
        ended_by: Some(facts.ended_by),
        verdict: Some(verdict.clone()),
        gates: gates.iter().map(gate).collect(),
        files,
        tokens: facts.tokens.and_then(|t| t.total()),
        cost_usd: facts.cost.map(|c| c.micros as f64 / 1e6),
        extra: Default::default(),
    }
}

/// A run of a task's agent: counted as one of the loop's own.
fn task_run(state: &mut LoopState, task: &str, summary: &IterationSummary, spent: &Spent) {
    state.runs += 1;
    state.spent.ms += spent.ms;
    if let Some(tokens) = spent.tokens {
        state.spent.tokens = Some(state.spent.tokens.unwrap_or(0).saturating_add(tokens));
    }
    if let Some(micros) = spent.cost_micros {
        let sum = state.spent.cost_micros.unwrap_or(0);
        state.spent.cost_micros = Some(sum.saturating_add(micros));
        state.spent.estimated |= spent.estimated;
    }
    let mut summary = summary.clone();
    summary.iteration = u32::try_from(state.runs - 1).unwrap_or(u32::MAX);
    summary.extra.insert("task".to_owned(), task.into());
    state.remember(summary);
}

fn spend(spent: &mut Spent, tokens: Option<&Tokens>, cost: Option<&Cost>) {
    if let Some(total) = tokens.and_then(Tokens::total) {
        spent.tokens = Some(spent.tokens.unwrap_or(0).saturating_add(total));
    }
    if let Some(cost) = cost {
        spent.cost_micros = Some(spent.cost_micros.unwrap_or(0).saturating_add(cost.micros));
        spent.estimated |= cost.estimated;
    }
}

fn run_discarded(state: &mut LoopState, record: &Record) -> Result<(), IllegalEvent> {
    let Event::RunDiscarded {
        run,
        limit,
        retry_at,
        ..
    } = &record.event
    else {
        return Ok(());
    };
    let agent = match &state.phase {
        Phase::Judging { run: info, .. } if info.run == *run => info.agent,
        _ => return Err(illegal(record, "a run was discarded that was not judged")),
    };
    state.phase = Phase::Ready;
    state.limited.insert(agent, *retry_at);
    state.limit_runs = if limit.until.is_some() {
        0
    } else {
        state.limit_runs + 1
    };
    Ok(())
}

fn iteration_interrupted(state: &mut LoopState, record: &Record) -> Result<(), IllegalEvent> {
    let Event::IterationInterrupted {
        iteration,
        run,
        spent_ms,
        tokens,
        cost,
    } = &record.event
    else {
        return Ok(());
    };
    let info = match state.run() {
        Some(info) if info.run == *run => info.clone(),
        _ => {
            return Err(illegal(
                record,
                "an interrupted iteration that was not running",
            ));
        }
    };
    state.phase = Phase::Ready;
    state.iterations = *iteration;
    state.spent.ms += spent_ms;
    spend(&mut state.spent, tokens.as_ref(), cost.as_ref());
    state.verdict = Some(Verdict::Stopped);
    state.remember(IterationSummary {
        iteration: iteration - 1,
        started_at: Some(info.started_at),
        completed_at: Some(record.at),
        ended_by: Some(crate::event::EndedBy::HostLost),
        verdict: Some(Verdict::Stopped),
        tokens: tokens.and_then(|t| t.total()),
        cost_usd: cost.map(|c| c.micros as f64 / 1e6),
        ..IterationSummary::default()
    });
    Ok(())
}

fn command_accepted(state: &mut LoopState, id: u64, command: &Command) {
    state.next_command = state.next_command.max(id + 1);
    match command {
        Command::Pause if state.pause == Pause::No => state.pause = Pause::Asked,
        Command::Say { text } => state.notes.push(Note {
            id,
            text: text.clone(),
        }),
        _ => {}
    }
    state.pending.push((id, command.clone()));
}

fn reopen(state: &mut LoopState, record: &Record) -> Result<(), IllegalEvent> {
    if !matches!(state.phase, Phase::Finished { .. }) {
        return Err(illegal(record, "a loop was reopened that had not ended"));
    }
    state.phase = Phase::Ready;
    // A person looked at it: streaks begin anew, budgets and counts never do.
    state.failures = 0;
    state.agent_failures.clear();
    state.fatal = None;
    state.still = 0;
    state.limit_runs = 0;
    state.stop = None;
    state.verdict = None;
    state.completion = None;
    Ok(())
}

/// What a person's edit of the state file asks for, if it asks for anything.
pub fn edited(state: &LoopState, file: &IterativeLoopState) -> Option<Event> {
    // Numbers are never used again, whatever a file says.
    let iterations = file.iteration.max(state.iterations);
    let same = file.config == state.config && iterations == state.iterations;
    (!same).then(|| Event::StateEdited {
        config: Box::new(file.config.clone()),
        iterations,
    })
}
