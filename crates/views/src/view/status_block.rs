//! The block of `loop status`.

use std::fmt::Display;

use jiff::Timestamp;

use super::{
    CommitRow, Life, Status, TaskRow, blocked_tasks, commits, lost, marked_tasks, people_state,
    show_cost, show_tokens, tasks_at_work, unlanded, unproven_tasks,
};
use crate::words;
use descartes_kernel::event::Verdict;
use descartes_kernel::state::{IterationSummary, LoopState, Pause};
use descartes_kernel::step::way_past_denial;
use descartes_kernel::tasks::TasksState;
use descartes_text::units::plural;

#[derive(Default)]
struct StatusLines(String);

impl StatusLines {
    fn line(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    fn add(&mut self, label: impl Display, text: impl Display) {
        self.line(&format!("  {label}: {text}"));
    }
}

/// The block. Lines after the documented ones may be added.
pub fn status_block(state: &LoopState, life: Life, now: Timestamp) -> String {
    let status = Status::of(state, life);
    let config = &state.config;
    let (completed, exit) = match (&status, status.end_detail()) {
        (Status::Ended { .. }, Some(words)) => ("Yes", format!("{} ({words})", status.label())),
        (Status::Ended { .. }, None) => ("Yes", status.label().to_owned()),
        (Status::Interrupted, _) => {
            let exit = "Interrupted (resume with: descartes loop resume)";
            ("No", exit.to_owned())
        }
        _ => ("No", "Running".to_owned()),
    };
    let file = config.state_file.as_ref().map(|file| file.display());
    let mut block = StatusLines::default();
    block.line("Loop Status\n===========");
    block.add("State file", file.map_or(String::new(), |f| f.to_string()));
    block.add("Iteration", state.iterations);
    block.add("Started", whole_seconds(state.started_at));
    block.add("State", people_state(state, life));
    block.add("Completed", completed);
    block.add("Exit reason", exit);
    if let Some(counts) = lost(state, life) {
        block.add("Iterations", counts.describe());
    }
    live_lines(&mut block, state, &status, now);
    block.line("\nConfig:");
    block.add("Command", config.agent_line());
    block.add("Max iterations", config.limit_label());
    match &config.completion_promise {
        Some(promise) => block.add("Completion promise", format!("\"{promise}\"")),
        None => block.add("Completion promise", "none"),
    }
    for gate in &config.verify {
        block.add("Gate", gate);
    }
    block.0
}

fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// Waves, the tasks at work, and the blocked ones.
fn task_lines(block: &mut StatusLines, tasks: &TasksState, at_work: &[TaskRow]) {
    let (done, total) = tasks.count();
    block.add(
        "Tasks",
        format!("{done} of {total} done (tag {})", tasks.tag),
    );
    if let Some(wave) = tasks.current_wave() {
        let (done, total) = tasks.wave_count(wave);
        let total = plural(total as u64, "task");
        block.add(
            "Wave",
            format!("{wave} of {} ({done}/{total})", tasks.waves),
        );
    }
    for task in at_work {
        block.add("Task", format!("{} ({})", task.name(), task.note));
    }
    for CommitRow { wave, hash, what } in commits(tasks) {
        let hash = hash.as_deref().unwrap_or("nothing to commit");
        let label = wave.map_or("Marks".to_owned(), |wave| format!("Wave {wave}"));
        block.add(label, format!("{hash} ({what})"));
    }
    for task in blocked_tasks(tasks) {
        let attempts = plural(u64::from(task.attempts), "attempt");
        let text = format!("{} after {attempts}: {}", task.name(), task.note);
        block.add("Blocked", text);
    }
    for task in marked_tasks(tasks) {
        let text = format!("{} ({})", task.name(), task.status.text);
        block.add("Marked by others, not proven", text);
    }
    for task in unproven_tasks(tasks) {
        block.add("Done, unproven", format!("{} ({})", task.name(), task.note));
    }
    if let Some(work) = unlanded(tasks) {
        block.add("Not landed", work);
    }
    for tree in &tasks.kept {
        let holds = tree.holds.join("; ");
        block.add(
            "Kept worktree",
            format!("{} ({holds})", tree.path.display()),
        );
    }
}

/// Workers on other machines that may be at work for a loop that has no host.
fn open_offer_line(block: &mut StatusLines, state: &LoopState) {
    let Some(tasks) = &state.tasks else {
        return;
    };
    let whom = tasks
        .open_offers()
        .map(|(work, _)| match tasks.workers.get(work) {
            Some(worker) => format!("task {work} at {worker}"),
            None => format!("task {work}"),
        });
    let (whom, id) = (whom.collect::<Vec<_>>().join(", "), &state.loop_id);
    block.add(
        "Workers",
        format!(
            "may still be at work ({whom}): `descartes loop resume {id}` takes that up, `descartes loop cancel {id}` \
             stops them"
        ),
    );
}

/// The id of a loop that has none yet.
const NO_ID: &str = "none";

/// What the documented block does not show: who it is, what it does now, what it has used.
fn live_lines(block: &mut StatusLines, state: &LoopState, status: &Status, now: Timestamp) {
    // A state file that was written by hand and never ran has neither.
    if state.loop_id != NO_ID {
        block.add("Loop", format!("{} ({})", state.name, state.loop_id));
    }
    let last = state.summaries.back();
    let told = last.and_then(|summary| summary.completed_at);
    if let Some(at) = state.last_iteration_at.max(told) {
        block.add("Last iteration", whole_seconds(at));
    }
    if let Some(tasks) = &state.tasks {
        let life = if status.is_live() {
            Life::Alive
        } else {
            Life::Gone
        };
        task_lines(block, tasks, &tasks_at_work(state, life, now));
    }
    if status.is_live() {
        activity_lines(block, state, status, now);
        let trouble = state.tasks.as_ref();
        if let Some(trouble) = trouble.and_then(|tasks| tasks.engine_trouble.as_ref()) {
            block.add("Engine", trouble);
        }
    } else if state.has_open_offers() {
        open_offer_line(block, state);
    }
    if let Some(words) = unjudged(state) {
        block.add("Not judged yet", words);
    }
    block.add("Time used", words::millis(state.spent.ms));
    if state.spent.tokens.is_some() || state.spent.cost_micros.is_some() {
        let cost = show_cost(state.spent.cost());
        let tokens = show_tokens(state.spent.tokens);
        block.add("Tokens", format!("{tokens}   Cost: {cost}"));
    }
    if let Some(summary) = last.filter(|summary| !summary.gates.is_empty()) {
        let gates = summary.gates.iter().map(|gate| {
            let mark = match gate.exit_code {
                Some(0) => "green",
                None if gate.cancelled => "cancelled",
                _ => "red",
            };
            format!("{} ({mark})", gate.command)
        });
        block.add("Last gates", gates.collect::<Vec<_>>().join(", "));
    }
    if let Some(words) = untouched(state) {
        block.add("Proof", words);
    }
    block.add("Sandbox", state.sandbox_label());
    for denied in &state.denied {
        block.add("Denied", denied.describe());
    }
    for planted in &state.planted {
        block.add("Left for git", planted.describe());
    }
    for changed in &state.changed_gate_files {
        block.add("Gate file changed since the loop began", changed.describe());
    }
    for change in state.told_changes() {
        let text = format!("{}: {}", whole_seconds(change.at), change.describe());
        block.add("Changed while it ran", text);
    }
    if let Some(words) = promise_missing(state) {
        block.add("Promise", words);
    }
    if let Some(words) = tools_denied(state) {
        block.add("Tools denied", words);
    }
    if let Some(failure) = &state.agents.last_failure {
        block.add(
            "Last failure",
            format!("{failure} ({} in a row)", state.agents.failures),
        );
    }
}

/// That the agent has not said that it is done, in a loop that waits for it.
pub fn promise_missing(state: &LoopState) -> Option<String> {
    let last = state.summaries.back()?;
    if let Some(near) = &last.near_miss {
        return Some(near.describe());
    }
    let promise = state.config.completion_promise.as_ref();
    let promise = promise.filter(|_| state.config.tasks.is_none())?;
    let claims =
        |row: &IterationSummary| matches!(row.verdict, Some(Verdict::Promise | Verdict::Refused));
    if state.summaries.iter().any(claims) || state.exit_reason().is_success() {
        return None;
    }
    let since = match state.summaries.len() {
        kept if kept as u64 >= u64::from(state.iterations) => String::new(),
        kept => format!(" in the last {kept} iterations"),
    };
    Some(format!(
        "the agent never printed <promise>{promise}</promise>{since}"
    ))
}

/// Which tools were denied in the last iteration, and what allows them.
pub fn tools_denied(state: &LoopState) -> Option<String> {
    let last = state.summaries.back()?;
    let tools = Some(last.denied.join(", ")).filter(|tools| !tools.is_empty())?;
    Some(format!("{tools}; {}", way_past_denial(&state.config)))
}

/// What a proof is worth where there was nothing to prove.
pub fn untouched(state: &LoopState) -> Option<&'static str> {
    let words = "no file was changed in this loop (ignored files aside)";
    state.is_proven_untouched().then_some(words)
}

/// The iteration that a person's stop left before its gates decided.
pub fn unjudged(state: &LoopState) -> Option<String> {
    let open = state.unjudged()?;
    Some(format!(
        "iteration {}: its gates run first with the next `descartes loop resume`",
        open.run.iteration
    ))
}

/// What a loop that a process holds does now.
fn activity_lines(block: &mut StatusLines, state: &LoopState, status: &Status, now: Timestamp) {
    if let (Some(run), Status::Running | Status::Judging) = (state.run(), status) {
        let doing = status.label().to_lowercase();
        let since = descartes_text::units::show_duration(words::between(run.started_at, now));
        block.add(
            "Now",
            format!("iteration {}, {doing} for {since}", run.iteration),
        );
    }
    if let Some(what) = &state.busy {
        block.add("In progress", what);
    }
    if let Some(why) = state.unmeasured() {
        block.add(
            "Progress",
            format!("unknown, stall detection is off ({why})"),
        );
    }
    if let Status::Waiting { until, why } = status {
        let left = words::left(now, *until);
        let text = format!("{} (in {left}): {why}", whole_seconds(*until));
        block.add("Waiting until", text);
    }
    match (status, state.requests.pause) {
        (Status::Paused, _) => block.add("Paused", "continue with `descartes loop unpause`"),
        (_, Pause::Asked) => {
            let when = match state.tasks {
                Some(_) => "once the running tasks are finished",
                None => "once this iteration ends",
            };
            let undo = "undo with `descartes loop unpause`";
            block.add("Pause", format!("requested, takes effect {when}; {undo}"));
        }
        _ => {}
    }
}
