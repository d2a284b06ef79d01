//! The only way a loop's state changes: `apply`, live and in recovery alike.

mod runs;

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use thiserror::Error;

use crate::config::IterativeLoopConfig;
use crate::control::Command;
use crate::edits::{FieldChange, changes};
use crate::event::{Decided, Event, FORMAT, Record, WaitEnd};
use crate::outcome::IterativeExitReason;
use crate::sandbox::{merge_denials, merge_planted};
use crate::state::{
    AgentHealth, Change, ChangedGateFile, LoopState, NextPrompt, Note, Nudge, Pause, Phase,
    ProgressState, UserRequests, Wait,
};
use crate::steering::Sender;
use crate::tasks::Counted;
use runs::{
    agent_ended, drop_replaced_gates, gate_finished, iteration_finished, iteration_interrupted,
    run_discarded, run_started, task_run, task_spent, unjudged,
};

/// An event that cannot follow what came before it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("journal record {seq}: {message}")]
pub struct IllegalEvent {
    pub seq: u64,
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
pub fn checkpoint(state: &LoopState) -> Option<Decided> {
    let over = matches!(state.phase, Phase::Finished { .. });
    let due = state.seq.saturating_sub(state.checkpoint) >= CHECKPOINT_EVERY;
    let state = (due && !over).then(|| Box::new(state.clone()))?;
    Some(Decided::new(Event::Checkpoint { state }))
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
        return Err(illegal(record, "a journal must begin with loop_created"));
    };
    let phase = match ended {
        Some(reason) => Phase::Finished {
            reason: reason.clone(),
            at: record.at,
            unjudged: None,
        },
        None => Phase::READY,
    };
    Ok(LoopState {
        loop_id: loop_id.clone(),
        name: name.clone(),
        config: (**config).clone(),
        started_at: *started_at,
        iterations: *iterations,
        lost: 0,
        runs: 0,
        phase,
        requests: UserRequests::default(),
        spent: spent.unwrap_or_default(),
        agents: AgentHealth::default(),
        progress: ProgressState::default(),
        next_prompt: NextPrompt::default(),
        summaries: summaries.iter().cloned().collect::<VecDeque<_>>(),
        tree_after: None,
        verdict: None,
        completion: None,
        gate_files: BTreeMap::new(),
        sandbox: None,
        denied: Vec::new(),
        planted: Vec::new(),
        branch: None,
        changed_gate_files: Vec::new(),
        changes: Vec::new(),
        tasks: None,
        busy: None,
        last_iteration_at: None,
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
    if ends_business(&record.event) {
        state.busy = None;
    }
    match &record.event {
        Event::Busy { what } => state.busy = Some(what.clone()).filter(|what| !what.is_empty()),
        Event::LoopCreated { .. } => return Err(illegal(record, "a second loop_created")),
        Event::HostStarted { .. } => {
            if let Some(tasks) = &mut state.tasks {
                // This host has not asked it yet.
                tasks.engine_trouble = None;
            }
            if state.requests.stop.is_some() && !matches!(state.phase, Phase::Finished { .. }) {
                state.requests.stop = None;
            }
            if state.requests.pause == Pause::Held {
                // Nobody holds it any more: this host will, and says so.
                state.requests.pause = Pause::Asked;
            }
        }
        Event::GateFiles { files } => state.gate_files.clone_from(files),
        Event::GateFileChanged { file, task } => {
            let known = state.changed_gate_files.iter();
            if !known
                .into_iter()
                .any(|known| known.file == *file && known.task == *task)
            {
                let iteration = state.run().map(|run| run.iteration);
                state.changed_gate_files.push(ChangedGateFile {
                    file: file.clone(),
                    iteration,
                    task: task.clone(),
                });
            }
        }
        Event::StateEdited {
            config,
            iterations,
            from,
        } => {
            let before = std::mem::replace(&mut state.config, (**config).clone());
            state.iterations = *iterations;
            drop_replaced_gates(state);
            leave_other_engine(state, &before);
            remember_change(state, record, &before, "state file", from.as_ref());
        }
        Event::ConfigChanged { change, by, from } => {
            let before = state.config.clone();
            change.apply_to(&mut state.config);
            drop_replaced_gates(state);
            leave_other_engine(state, &before);
            if change.changes_sandbox() {
                // The next run says which one it is in.
                state.sandbox = None;
                let granted = change.sandbox_write.iter().chain(&change.sandbox_read);
                let granted: Vec<_> = granted.collect();
                let is_granted =
                    |what: &str| granted.iter().any(|path| Path::new(what).starts_with(path));
                state.denied.retain(|denial| !is_granted(&denial.what));
            }
            // The loop of a task gets what is left of budgets with every attempt, from its task loop:
            // what a person changed stands in that one.
            if from.is_some() || state.config.proof.is_none() {
                remember_change(state, record, &before, by, from.as_ref());
            }
        }
        Event::RunStarted { .. } => run_started(state, record)?,
        Event::AgentEnded { run, facts, .. } => agent_ended(state, record, *run, facts)?,
        Event::GateFinished { facts, .. } => gate_finished(state, record, facts)?,
        Event::IterationFinished { .. } => iteration_finished(state, record)?,
        Event::RunDiscarded { .. } => run_discarded(state, record)?,
        Event::IterationInterrupted { .. } => iteration_interrupted(state, record)?,
        Event::AgentResting { agent, until } => {
            state.agents.resting.insert(*agent, *until);
        }
        Event::WaitStarted { until, reason } => {
            if let Phase::Ready { wait } = &mut state.phase {
                *wait = Some(Wait {
                    until: *until,
                    reason: reason.clone(),
                    since: record.at,
                });
            }
        }
        Event::WaitEnded { by } => {
            let waited_for = match &mut state.phase {
                Phase::Ready { wait } => wait.take().map(|wait| wait.until),
                _ => None,
            };
            match by {
                WaitEnd::Retry => {
                    state.agents.limited.clear();
                    state.agents.resting.clear();
                }
                // A wall clock that was put back meanwhile has not got there yet.
                WaitEnd::Elapsed => {
                    let over = waited_for.map_or(record.at, |until| until.max(record.at));
                    state.agents.limited.retain(|_, until| *until > over);
                    state.agents.resting.retain(|_, until| *until > over);
                }
                // Whoever takes the loop up again does not want to wait for what failed.
                WaitEnd::Stop => {
                    state.agents.limited.retain(|_, until| *until > record.at);
                    state.agents.resting.clear();
                }
            }
        }
        Event::Paused => state.requests.pause = Pause::Held,
        Event::Unpaused => state.requests.pause = Pause::No,
        Event::CommandAccepted { id, command, from } => {
            remember_command(state, record, command, from.as_ref());
            command_accepted(state, *id, command);
        }
        Event::CommandEffective { id } => {
            state.requests.pending.retain(|(pending, _)| pending != id);
            if state.config.tasks.is_some() {
                // A note is settled when an attempt has taken it along.
                state.next_prompt.notes.retain(|note| note.id != *id);
            }
        }
        Event::TasksPlanned {
            tag,
            tasks,
            blocks,
            held,
        } => {
            let planned = state.tasks.get_or_insert_default();
            let changed = planned.plan(tag, tasks, blocks);
            push_change(
                state,
                record,
                "the task file, read at the last start",
                None,
                changed,
            );
            let by = "the task file, whose changes are not applied while the loop runs";
            push_change(state, record, by, None, held.clone());
        }
        Event::Tasks { event } => {
            let tasks = state.tasks.get_or_insert_default();
            if tasks.apply(event, record.at) == Counted::Yes {
                state.iterations += 1;
            }
        }
        Event::TaskLoop {
            task,
            loop_id,
            worker,
            ..
        } => {
            let tasks = state.tasks.get_or_insert_default();
            tasks.loops.insert(task.clone(), loop_id.clone());
            match worker {
                Some(worker) => tasks.workers.insert(task.clone(), worker.clone()),
                None => tasks.workers.remove(task),
            };
        }
        Event::EngineHeard { message, answers } => {
            let tasks = state.tasks.get_or_insert_default();
            tasks.engine_trouble = Some(message.clone()).filter(|_| !answers);
        }
        Event::TaskOffered { task, offer } => {
            let tasks = state.tasks.get_or_insert_default();
            tasks.offers.insert(task.clone(), *offer);
        }
        Event::OfferOver { task, epoch } => {
            let tasks = state.tasks.get_or_insert_default();
            tasks.results.insert(task.clone(), *epoch);
        }
        Event::OfferStopped { task, epoch } => {
            let tasks = state.tasks.get_or_insert_default();
            tasks.stopped_offers.insert(task.clone(), *epoch);
        }
        Event::TaskRun {
            task,
            iterations,
            summary,
            spent,
            wall_ms,
            ..
        } => {
            let tasks = state.tasks.get_or_insert_default();
            tasks.reported_iterations.insert(task.clone(), *iterations);
            match summary.gates.is_empty() {
                true => tasks.ungated.insert(task.clone()),
                false => tasks.ungated.remove(task),
            };
            if let Some(offer) = tasks.offers.get(task) {
                tasks.results.insert(task.clone(), offer.epoch);
            }
            tasks.spend(task, spent);
            task_spent(state, spent, wall_ms.unwrap_or(spent.ms));
            task_run(state, task, summary);
        }
        Event::TaskSpent {
            task,
            spent,
            wall_ms,
        } => {
            state.tasks.get_or_insert_default().spend(task, spent);
            task_spent(state, spent, *wall_ms);
        }
        Event::WorkLanded { landing } => {
            state
                .tasks
                .get_or_insert_default()
                .landed(landing, record.at);
        }
        Event::TreeProven { proof } => state.tasks.get_or_insert_default().prove(proof),
        Event::WorkBased { base } => state.tasks.get_or_insert_default().build_on(base),
        Event::TreesKept { trees } => {
            state.tasks.get_or_insert_default().kept.clone_from(trees);
        }
        Event::Moved {
            working_directory,
            state_file,
        } => {
            state.config.move_to(working_directory);
            state.config.state_file = Some(state_file.clone());
        }
        Event::StopRequested { by } => state.requests.stop = Some(by.after(state.requests.stop)),
        Event::Nudged { iterations } => {
            state.progress.nudge = Nudge::Due {
                iterations: *iterations,
            };
        }
        Event::LoopFinished { reason } => {
            // What a person asks for from here on is meant for the time after a resume.
            state.requests.pause = Pause::No;
            let unjudged = match reason {
                IterativeExitReason::UserCancelled => unjudged(state),
                _ => None,
            };
            state.phase = Phase::Finished {
                reason: reason.clone(),
                at: record.at,
                unjudged,
            };
        }
        Event::LoopReopened => reopen(state, record)?,
        Event::Checkpoint { .. } => state.checkpoint = record.seq,
        Event::Branched { name } => state.branch = Some(name.clone()),
        Event::SandboxStarted { sandbox } => state.sandbox = Some((**sandbox).clone()),
        Event::SandboxDenied { denied, .. } => merge_denials(&mut state.denied, denied),
        Event::PlantedInGit { planted, .. } => merge_planted(&mut state.planted, planted),
        Event::Interrupted { .. }
        | Event::Tagged { .. }
        | Event::Warning { .. }
        | Event::Unknown => {}
    }
    Ok(())
}

/// Changes that are kept; of more, the first and the newest.
const KEPT_CHANGES: usize = 100;

/// What was offered at the engine before can be taken up at no other.
fn leave_other_engine(state: &mut LoopState, before: &IterativeLoopConfig) {
    let engine_of = |config: &IterativeLoopConfig| {
        let tasks = config.tasks.as_ref();
        tasks.and_then(|tasks| tasks.engine().map(str::to_owned))
    };
    let left = engine_of(before);
    if left == engine_of(&state.config) {
        return;
    }
    if let (Some(tasks), Some(left)) = (&mut state.tasks, left) {
        tasks.leave_offers(&left);
    }
}

/// Whatever was changed while a loop ran stands in its result.
fn remember_change(
    state: &mut LoopState,
    record: &Record,
    before: &IterativeLoopConfig,
    by: &str,
    from: Option<&Sender>,
) {
    let fields = changes(before, &state.config).into_iter();
    let fields = fields.map(|(field, _)| field).collect();
    push_change(state, record, by, from, fields);
}

/// What a person asked for without changing the config: notes and pauses. Settings have a record of
/// their own, and an end is no change.
fn remember_command(
    state: &mut LoopState,
    record: &Record,
    command: &Command,
    from: Option<&Sender>,
) {
    let (by, field, was, is) = match command {
        Command::Pause if state.requests.pause == Pause::No => ("pause", "paused", "no", "yes"),
        Command::Unpause if state.requests.pause != Pause::No => ("unpause", "paused", "yes", "no"),
        Command::Say { text } => ("say", "note", "none", text.as_str()),
        _ => return,
    };
    let fields = vec![FieldChange::new(field, was, is)];
    push_change(state, record, by, from, fields);
}

fn push_change(
    state: &mut LoopState,
    record: &Record,
    by: &str,
    from: Option<&Sender>,
    fields: Vec<FieldChange>,
) {
    if fields.is_empty() {
        return;
    }
    if state.changes.len() >= KEPT_CHANGES {
        state.changes.remove(KEPT_CHANGES / 2);
    }
    state.changes.push(Change {
        at: record.at,
        by: by.to_owned(),
        from: from.cloned(),
        fields,
    });
}

/// Whether the host is through with what it was busy with.
fn ends_business(event: &Event) -> bool {
    matches!(
        event,
        Event::HostStarted { .. }
            | Event::RunStarted { .. }
            | Event::IterationFinished { .. }
            | Event::Tagged { .. }
            | Event::Interrupted { .. }
            | Event::LoopFinished { .. }
    )
}

fn command_accepted(state: &mut LoopState, id: u64, command: &Command) {
    state.requests.next_command = state.requests.next_command.max(id + 1);
    match command {
        Command::Pause if state.requests.pause == Pause::No => state.requests.pause = Pause::Asked,
        Command::Say { text } => state.next_prompt.notes.push(Note {
            id,
            text: text.clone(),
            given_to: None,
        }),
        _ => {}
    }
    state.requests.pending.push((id, command.clone()));
}

fn reopen(state: &mut LoopState, record: &Record) -> Result<(), IllegalEvent> {
    let Phase::Finished { unjudged, .. } = &mut state.phase else {
        return Err(illegal(record, "a loop that had not ended was reopened"));
    };
    state.phase = match unjudged.take() {
        Some(open) => {
            state.spent = open.spent_before;
            Phase::Judging {
                run: open.run,
                facts: open.facts,
                gates: open.gates,
            }
        }
        None => Phase::READY,
    };
    drop_replaced_gates(state);
    // A person looked at it: streaks begin anew, budgets and counts never do.
    state.agents.failures = 0;
    state.agents.denied_in_row = 0;
    state.agents.agent_failures.clear();
    state.agents.resting.clear();
    state.agents.fatal = None;
    state.progress.iterations_without = 0;
    state.progress.quick_nothings = 0;
    if let Nudge::Delivered { .. } = state.progress.nudge {
        state.progress.nudge = Nudge::None;
    }
    state.agents.limit_runs = 0;
    state.agents.short_limits = 0;
    state.requests.stop = None;
    state.verdict = None;
    state.completion = None;
    Ok(())
}
