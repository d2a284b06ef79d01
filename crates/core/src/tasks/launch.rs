//! Starts what the scheduler asks for: attempts, merges, commits, each on a thread of its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::event::GateEnd;
use descartes_kernel::sched::{Account, Attempt, MarkEnd, MergeEnd, TaskState, TrainEnd};
use descartes_kernel::state::Spent;
use descartes_kernel::tasks::{
    AttemptOf, OwnLimits, TaskMarks, WorkPlace, attempt_config, attempt_gates, gate_words,
    tasks_sandbox,
};
use descartes_plans::graph::{TaskId, TaskIx};
use descartes_plans::lists::KnownTask;
use serde_json::{Map, json};
use tracing::{Span, info};

use super::attempt_control::Control;
use super::event::TaskEvent;
use super::git_error::GitErrorKind;
use super::order::AttemptOrder;
use super::place::{GateFailure, MergeDone, RunGates, Wave, Work, Workplace};
use super::prompt::{evidence_section, notes_section, task_spec};
use super::runner::{Busy, Live, Merging, Runner};
use super::shell::Shell;
use super::source::TaskBrief;
use crate::host::message::HostMessage;
use crate::host::{AttemptTree, HostError, HostSettings, agent_words, ask_profiles};

/// Lines of an agent's last words that those who depend on its work are told.
const TOLD_LINES: usize = 5;

/// What a piece of work is called: the task, or the wave where one agent is given all of it.
pub(super) fn work_id(runner: &Runner<'_>, tasks: &[TaskId]) -> String {
    let first = tasks.first().map_or("", |task| &**task);
    if runner.config.use_sub_agents {
        return first.to_owned();
    }
    let plan = runner.sched.plan();
    let wave = plan
        .graph()
        .find(first)
        .map_or(0, |task| plan.wave_of(task));
    format!("wave-{wave}")
}

fn work_of(runner: &Runner<'_>, tasks: &[TaskId]) -> Work {
    let plan = runner.sched.plan();
    let title = tasks
        .first()
        .and_then(|task| plan.graph().find(task))
        .map_or_else(String::new, |task| plan.graph().node(task).title.clone());
    let id = work_id(runner, tasks);
    let title = match tasks {
        [_] => format!("[{}] {title}", tasks[0]),
        many => {
            let ids: Vec<&str> = many.iter().map(|id| &**id).collect();
            format!("[{}] {id}", ids.join(", "))
        }
    };
    Work {
        id,
        title,
        trailers: trailers(runner, tasks.iter()),
        upon: match runner.config.place {
            WorkPlace::InPlace => upon(runner, tasks),
            WorkPlace::Worktrees => Vec::new(),
        },
    }
}

/// Every task that these depend on, directly or not.
fn upon(runner: &Runner<'_>, tasks: &[TaskId]) -> Vec<String> {
    let graph = runner.sched.plan().graph();
    let mut next: Vec<TaskIx> = tasks.iter().filter_map(|task| graph.find(task)).collect();
    let mut all = BTreeSet::new();
    while let Some(task) = next.pop() {
        let before = graph.all_dependencies(task).into_iter();
        next.extend(before.filter(|before| all.insert(*before)));
    }
    let ids = all.into_iter().map(|task| graph.node(task).id.to_string());
    ids.collect()
}

/// What commits of these tasks say to an issue tracker.
fn trailers<'a>(runner: &Runner<'_>, tasks: impl Iterator<Item = &'a TaskId>) -> Vec<String> {
    let briefs = tasks.filter_map(|task| runner.loaded.briefs.get(task));
    briefs.filter_map(|brief| brief.trailer.clone()).collect()
}

/// The work of tasks that are done.
pub(super) fn done_work(runner: &Runner<'_>, account: &Account) -> Vec<Work> {
    let done = account.done.iter();
    done.map(|task| work_of(runner, std::slice::from_ref(task)))
        .collect()
}

/// A file name for a task id, whatever it holds.
pub(super) fn file_name(id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let clean: String = id.chars().map(|c| if plain(c) { c } else { '-' }).collect();
    let clean = clean.trim_matches(['.', '-']).to_owned();
    if clean == id && clean.len() <= 60 {
        return clean;
    }
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{:.40}-{:08x}", clean, hash as u32)
}

/// Starts an attempt.
pub(super) fn attempt(
    runner: &mut Runner<'_>,
    slot: u32,
    attempts: &[Attempt],
) -> Result<(), HostError> {
    let tasks: Vec<TaskId> = attempts
        .iter()
        .map(|attempt| attempt.task.clone())
        .collect();
    let work = work_of(runner, &tasks);
    let config = child_config(runner, attempts, &work)?;
    let brief = attempts
        .first()
        .and_then(|first| brief_of(runner, &first.task));
    // They stand in the prompt; whether they were delivered is known when the attempt is over.
    let notes = runner
        .d
        .state
        .next_prompt
        .notes
        .iter()
        .map(|note| note.id)
        .collect();
    let number = attempts.iter().map(|one| one.attempt).max().unwrap_or(1);
    let offers = runner.d.state.tasks.as_ref().map(|tasks| &tasks.offers);
    let offered = offers.and_then(|offers| offers.get(work.id.as_str()));
    // One that an earlier host has offered has the prompt of that time.
    let is_taken_up = offered.is_some_and(|offer| offer.attempt == number && !offer.is_left);
    let serial = start(runner, slot, number, tasks, work, config, brief)?;
    let now = runner.d.mono();
    if let Some(live) = runner.live.get_mut(&serial) {
        match is_taken_up {
            true => live.taken_up = Some(now),
            false => live.notes = notes,
        }
    }
    Ok(())
}

/// Starts a piece of work in a slot; gives the number by which it is known.
pub(super) fn start(
    runner: &mut Runner<'_>,
    slot: u32,
    attempt: u32,
    tasks: Vec<TaskId>,
    work: Work,
    config: IterativeLoopConfig,
    brief: Option<TaskBrief>,
) -> Result<u64, HostError> {
    let serial = runner.next_serial;
    runner.next_serial += 1;
    let cwd = brief.as_ref().and_then(|brief| brief.cwd.clone());
    let control = Control::default();
    let parent = runner.d.state.loop_id.clone();
    let mut family = Map::new();
    family.insert("parent".to_owned(), json!(parent));
    family.insert("task".to_owned(), json!(work.id));
    let gate_files = runner.gate_files_before(&config.verify, cwd.as_deref());
    let reported = runner
        .d
        .state
        .tasks
        .as_ref()
        .and_then(|tasks| tasks.reported_iterations.get(work.id.as_str()).copied());
    let known = runner.d.state.tasks.as_ref();
    let known = known.and_then(|tasks| tasks.spent.get(work.id.as_str()).copied());
    let reported_spent = match reported {
        Some(_) => known,
        None => Some(known.unwrap_or_default()),
    };
    let of_tasks = runner.d.state.tasks.as_ref();
    let offered = of_tasks.and_then(|tasks| tasks.offers.get(work.id.as_str()).copied());
    let last_loop = of_tasks.and_then(|tasks| tasks.loops.get(work.id.as_str()).cloned());
    let limited_logins = of_tasks.map(|tasks| tasks.limited_logins.clone());
    let limited_logins = limited_logins.unwrap_or_default();
    let order = AttemptOrder {
        slot,
        serial,
        attempt,
        offered,
        last_loop,
        tasks: tasks.clone(),
        name: format!("{}/{}", runner.d.state.name, work.id),
        work,
        config,
        cwd,
        family,
        reported_iterations: reported.unwrap_or(0),
        tree: AttemptTree::Own,
        reported_spent,
        gate_files,
        own: OwnLimits {
            time: brief.as_ref().and_then(|brief| brief.max_time),
            cost: brief.as_ref().and_then(|brief| brief.max_cost),
        },
        files: brief.map(|brief| brief.text.files).unwrap_or_default(),
        limited_logins,
    };
    let tx = runner.d.tx.clone();
    runner.executor.start(order, control.clone(), tx)?;
    runner.count_time();
    let live = Live {
        tasks,
        control,
        notes: Vec::new(),
        taken_up: None,
        spent: Spent::default(),
        opened: false,
    };
    runner.live.insert(serial, live);
    Ok(serial)
}

fn brief_of(runner: &Runner<'_>, task: &TaskId) -> Option<TaskBrief> {
    runner.loaded.briefs.get(task).cloned()
}

/// Where the loop of a piece of work keeps its state.
pub(super) fn state_file(runner: &Runner<'_>, work: &Work) -> PathBuf {
    let name = format!("{}.json", file_name(&work.id));
    runner.d.dir.path().join("tasks").join(name)
}

fn child_config(
    runner: &mut Runner<'_>,
    attempts: &[Attempt],
    work: &Work,
) -> Result<IterativeLoopConfig, HostError> {
    let parent = runner.d.state.config.clone();
    let briefs: Vec<TaskBrief> = attempts
        .iter()
        .filter_map(|attempt| brief_of(runner, &attempt.task))
        .collect();
    let gates = attempt_gates(&parent, &briefs);
    let prompt = prompt(runner, attempts, &briefs, &gates)?;
    let plan = runner.sched.plan();
    let node = attempts
        .first()
        .and_then(|first| plan.graph().find(&first.task))
        .map(|task| plan.graph().node(task));
    let of = AttemptOf {
        parent: &parent,
        tasks: &runner.config,
        briefs: &briefs,
        rules: node.map(|node| node.rules).unwrap_or_default(),
        attempt: attempts.iter().map(|one| one.attempt).max().unwrap_or(1),
        spent: &runner.spent_now(),
    };
    let mut config = attempt_config(&of, prompt, state_file(runner, work));
    if let Some(first) = briefs.first() {
        take_agent(&runner.d.settings, first, &mut config)?;
    }
    runner.place.confine_as(&config.sandbox);
    Ok(config)
}

/// The config for what runs the work of all these tasks: confined as far as the strictest of them and of their
/// agents' profiles asks for.
pub(super) fn confined_for<'a>(
    config: &IterativeLoopConfig,
    settings: &HostSettings,
    briefs: impl Iterator<Item = &'a TaskBrief>,
) -> IterativeLoopConfig {
    let mut whole = config.clone();
    // Tasks that ask for nothing of their own are confined as the loop is.
    let asking = briefs.filter(|brief| brief.sandbox.is_some() || brief.agent.is_some());
    let mut asked = BTreeSet::new();
    for brief in asking {
        if !asked.insert((brief.sandbox, brief.agent.as_deref(), &brief.fallback)) {
            continue;
        }
        let mut own = config.clone();
        own.sandbox = tasks_sandbox(&config.sandbox, std::slice::from_ref(brief));
        // An agent that cannot be read is told of where it is started.
        if brief.agent.is_some() && take_agent(settings, brief, &mut own).is_ok() {
            ask_profiles(&mut own, settings);
        }
        whole.sandbox.ask_as(&own.sandbox);
    }
    whole
}

/// The agent that a task asks for: a profile by name, or a command.
pub(super) fn take_agent(
    settings: &HostSettings,
    brief: &TaskBrief,
    config: &mut IterativeLoopConfig,
) -> Result<(), HostError> {
    let Some(agent) = &brief.agent else {
        return Ok(());
    };
    if !brief.fallback.is_empty() {
        config.fallback.clone_from(&brief.fallback);
    }
    let profiles = &settings.profiles;
    let words = agent_words(agent, profiles)?;
    let Some((program, args)) = words.split_first() else {
        return Ok(());
    };
    config.backend.backend_type = match profiles.get(agent) {
        Some(profile) => profile.name.clone(),
        None => profiles.guess(&words).to_owned(),
    };
    config.command = program.clone();
    config.args = args.to_vec();
    Ok(())
}

fn prompt(
    runner: &mut Runner<'_>,
    attempts: &[Attempt],
    briefs: &[TaskBrief],
    gates: &[String],
) -> Result<String, HostError> {
    let parent = runner.d.state.config.clone();
    let dir = parent.working_directory.clone().unwrap_or_default();
    let mut parts = Vec::new();
    for brief in briefs {
        let mut text = brief.text.clone();
        text.name_blocks();
        for dependency in &mut text.dependencies {
            let known = runner.delivered.get(&dependency.id);
            dependency.delivered = known.cloned().flatten();
        }
        let spec = task_spec(
            &runner.config,
            &parent,
            &dir,
            &text,
            &runner.loaded.guidance,
            gates,
        );
        for warning in spec.warnings {
            runner
                .d
                .warn(format!("task {}: {warning}", brief.text.id))?;
        }
        parts.push(spec.text);
    }
    parts.extend(
        attempts
            .iter()
            .filter_map(|attempt| evidence_section(attempt.evidence.as_ref()?)),
    );
    let notes = runner.d.state.next_prompt.notes.iter();
    let notes: Vec<String> = notes.map(|note| note.text.clone()).collect();
    parts.extend(notes_section(&notes));
    Ok(parts.join("\n\n"))
}

/// Tasks that these build on, and whose work is not in words yet.
pub(super) fn not_looked_up(runner: &Runner<'_>, attempts: &[Attempt]) -> Vec<String> {
    let briefs = attempts
        .iter()
        .filter_map(|one| brief_of(runner, &one.task));
    let mut unknown = BTreeSet::new();
    for mut brief in briefs {
        brief.text.name_blocks();
        let before = brief.text.dependencies.into_iter().map(|before| before.id);
        unknown.extend(before.filter(|id| !runner.delivered.contains_key(id)));
    }
    unknown.into_iter().collect()
}

/// Looks up what work has delivered, apart from the driver's thread: git is asked about each.
pub(super) fn look_up(runner: &Runner<'_>, slot: u32, ids: Vec<String>) -> Result<(), HostError> {
    let works = ids.into_iter().map(|id| {
        let work = Work::named(id, String::new());
        (state_file(runner, &work), work)
    });
    let works: Vec<(PathBuf, Work)> = works.collect();
    let (place, tx) = (runner.place.clone(), runner.d.tx.clone());
    spawn("delivered", move || {
        let words = works.into_iter().map(|(file, work)| {
            let delivered = delivered(&*place, &file, &work);
            (work.id, delivered)
        });
        let words = TaskEvent::Delivered(slot, words.collect());
        drop(tx.send(HostMessage::Task(Box::new(words))));
    })
}

/// What a task that is done has delivered: the files that it changed, and what its agent said.
fn delivered(place: &dyn Workplace, file: &Path, work: &Work) -> Option<String> {
    let changed = place.delivered(work);
    let loaded = descartes_store::state_file::load(file).ok();
    let said = loaded.and_then(|loaded| {
        let last = loaded.state.iteration_summaries.last()?;
        last_words(&last.output_preview)
    });
    let messages: Vec<String> = changed.into_iter().chain(said).collect();
    (!messages.is_empty()).then(|| messages.join("\n"))
}

/// The end of what an agent said, without its promise.
fn last_words(preview: &str) -> Option<String> {
    let is_words = |line: &&str| !line.is_empty() && !line.contains("<promise>");
    let lines: Vec<&str> = preview.lines().map(str::trim).filter(is_words).collect();
    let last = &lines[lines.len().saturating_sub(TOLD_LINES)..];
    (!last.is_empty()).then(|| format!("said: {}", last.join("\n")))
}

/// A gate as it is run on a tree of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TreeGate {
    command: String,
    /// A folder within the tree.
    cwd: Option<String>,
    limit: Duration,
}

impl TreeGate {
    /// What it is called in records: the same command elsewhere proves something else.
    fn label(&self) -> String {
        match &self.cwd {
            None => self.command.clone(),
            Some(cwd) => format!("{} (in {cwd})", self.command),
        }
    }
}

/// Every gate of tasks, where their agents worked: those of each task itself, then those of the
/// loop.
fn tree_gates(parent: &IterativeLoopConfig, briefs: &[TaskBrief]) -> Vec<TreeGate> {
    let mut gates: Vec<TreeGate> = Vec::new();
    let whole = [TaskBrief::default()];
    let briefs = match briefs {
        [] => &whole,
        briefs => briefs,
    };
    for own in [true, false] {
        for brief in briefs {
            let commands = match own {
                true => &brief.gates,
                false => &parent.verify,
            };
            for command in commands {
                let gate = TreeGate {
                    command: command.clone(),
                    cwd: brief.cwd.clone(),
                    limit: brief.gate_timeout.unwrap_or(parent.verify_timeout_secs.0),
                };
                let label = gate.label();
                if !gates.iter().any(|known| known.label() == label) {
                    gates.push(gate);
                }
            }
        }
    }
    gates
}

/// Runs gates on a tree of ours, one after the other.
struct GateRunner {
    shell: Shell,
    gates: Vec<TreeGate>,
    labels: Vec<String>,
    /// Those of tasks that are done, where all work in one tree.
    others: Vec<TreeGate>,
    logs: PathBuf,
    /// The last that was not green.
    failed: Option<TreeGate>,
    /// What all of them took.
    took: Duration,
}

impl GateRunner {
    fn new(runner: &Runner<'_>, briefs: &[TaskBrief]) -> Result<Self, HostError> {
        let d = &runner.d;
        let gates = tree_gates(&d.state.config, briefs);
        let shell = Shell::new(&d.settings, &d.state.loop_id)
            .map_err(|error| HostError::Internal(format!("cannot start the guard: {error}")))?;
        // The tree holds work of all of them.
        let all = runner.loaded.briefs.values();
        let config = confined_for(&d.state.config, &d.settings, all);
        let shell = shell.confined(&config, &d.settings);
        Ok(Self {
            shell,
            labels: gates.iter().map(TreeGate::label).collect(),
            gates,
            others: Vec::new(),
            logs: d.dir.path().join("tasks").join("merge"),
            failed: None,
            took: Duration::ZERO,
        })
    }
}

impl RunGates for GateRunner {
    fn commands(&self) -> &[String] {
        &self.labels
    }

    fn run(&mut self, dir: &Path) -> Result<(), GateFailure> {
        self.run_gates(self.gates.clone(), dir)
    }

    fn is_stopped(&mut self) -> bool {
        self.shell.hears_stop()
    }

    fn run_whole(&mut self, dir: &Path) -> Result<(), GateFailure> {
        let mut all = self.gates.clone();
        let is_new = |gate: &&TreeGate| !self.labels.contains(&gate.label());
        all.extend(self.others.iter().filter(is_new).cloned());
        self.run_gates(all, dir)
    }
}

impl GateRunner {
    /// Something is done with them on the integration worktree, for these tasks.
    fn begins(&self, runner: &mut Runner<'_>, busy: Busy, tasks: Vec<TaskId>) {
        runner.merging.push(Merging {
            busy,
            tasks,
            stopper: Some(self.shell.stopper()),
        });
    }

    /// Adds the gates of tasks that are done and in the same tree, and whose work no commit holds.
    fn with_others(mut self, runner: &Runner<'_>, task: &TaskId) -> Self {
        if runner.config.place == WorkPlace::InPlace {
            let plan = runner.sched.plan();
            let wave = |task: &TaskId| plan.graph().find(task).map(|task| plan.wave_of(task));
            let done = runner.sched.account().done;
            let is_committed =
                |other: &&TaskId| runner.config.auto_commit_waves && wave(other) != wave(task);
            let done = done.iter().filter(|other| !is_committed(other));
            let briefs = done.filter_map(|task| brief_of(runner, task));
            let briefs: Vec<TaskBrief> = briefs.collect();
            self.others = tree_gates(&runner.d.state.config, &briefs);
        }
        self
    }

    fn run_gates(&mut self, gates: Vec<TreeGate>, dir: &Path) -> Result<(), GateFailure> {
        for (index, gate) in gates.iter().enumerate() {
            let log = self.logs.join(format!("gate-{}.log", index + 1));
            let dir = match &gate.cwd {
                Some(cwd) => dir.join(cwd),
                None => dir.to_owned(),
            };
            let began = Instant::now();
            let ran = self.shell.run(&dir, &gate.command, gate.limit, log);
            self.took += began.elapsed();
            info!(gate = index + 1, end = ?ran.end, "gate on the merged tree ended");
            if ran.end == GateEnd::Cancelled {
                return Err(GateFailure::Stopped);
            }
            if !ran.is_green() {
                self.failed = Some(gate.clone());
                return Err(GateFailure::Red(gate_words(
                    &gate.label(),
                    ran.end,
                    &ran.tail,
                )));
            }
        }
        Ok(())
    }
}

/// Does something apart.
pub(super) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), HostError> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    let span = Span::current();
    match thread.spawn(move || span.in_scope(run)) {
        Ok(_) => Ok(()),
        Err(error) => Err(HostError::Internal(format!(
            "cannot start a thread: {error}"
        ))),
    }
}

/// Statuses that are ours to commit, with those of tasks that are about to land.
fn marks_of(runner: &Runner<'_>, landing: &[TaskId]) -> TaskMarks {
    let tasks = runner.d.state.tasks.iter().flat_map(|tasks| &tasks.tasks);
    let ours: BTreeSet<TaskId> = tasks
        .filter(|(_, task)| task.attempts > 0 && !task.marked)
        .map(|(id, _)| id.clone())
        .collect();
    let done = runner.sched.account().done;
    let landed = done.iter().chain(landing);
    let landed = landed.filter(|id| ours.contains(*id)).cloned().collect();
    let nodes = runner.loaded.plan.graph().nodes().iter();
    let titles = nodes.map(|node| KnownTask {
        id: node.id.to_string(),
        title: node.title.clone(),
        under: (runner.loaded.briefs.get(&node.id)).and_then(|brief| brief.under.clone()),
    });
    TaskMarks {
        landed,
        ours,
        titles: titles.collect(),
    }
}

/// Starts a merge.
pub(super) fn merge(runner: &mut Runner<'_>, task: &TaskId) -> Result<(), HostError> {
    let tasks = std::slice::from_ref(task);
    let work = work_of(runner, tasks);
    let no_commit = runner.no_commit.remove(task);
    let tx = runner.d.tx.clone();
    let task = task.clone();
    let merged = task.clone();
    let tell =
        move |done| drop(tx.send(HostMessage::Task(Box::new(TaskEvent::Merged(merged, done)))));
    if let Some(message) = no_commit {
        tell(MergeDone {
            end: MergeEnd::Failed { message },
            landing: None,
            proven: Vec::new(),
        });
        return Ok(());
    }
    let briefs: Vec<TaskBrief> = brief_of(runner, &task).into_iter().collect();
    let mut gates = GateRunner::new(runner, &briefs)?.with_others(runner, &task);
    gates.begins(runner, Busy::Merge, vec![task.clone()]);
    let marks = marks_of(runner, tasks);
    let place = runner.place.clone();
    spawn("merge", move || {
        tell(place.merge(&work, &mut gates, &marks));
    })
}

/// Stacks the work of several tasks.
pub(super) fn stack_train(
    runner: &mut Runner<'_>,
    train: u32,
    tasks: &[TaskId],
) -> Result<(), HostError> {
    let tx = runner.d.tx.clone();
    let mut failed = Vec::new();
    let mut works = Vec::new();
    for task in tasks {
        match runner.no_commit.remove(task) {
            Some(message) => failed.push((task.to_string(), MergeEnd::Failed { message })),
            None => works.push(work_of(runner, std::slice::from_ref(task))),
        }
    }
    runner.merging.push(Merging {
        busy: Busy::Merge,
        tasks: tasks.to_vec(),
        stopper: None,
    });
    let place = runner.place.clone();
    spawn("stack", move || {
        let mut done = place.stack(&works);
        done.out.extend(failed);
        drop(tx.send(HostMessage::Task(Box::new(TaskEvent::Stacked(train, done)))));
    })
}

/// Runs the gates on the work of the first `members` of a train: their own and the loop's.
pub(super) fn gate_train(
    runner: &mut Runner<'_>,
    train: u32,
    tasks: &[TaskId],
    members: u32,
) -> Result<(), HostError> {
    let tx = runner.d.tx.clone();
    let works = tasks
        .iter()
        .map(|task| work_of(runner, std::slice::from_ref(task)));
    let works: Vec<Work> = works.collect();
    let gated = &tasks[..(members as usize).min(tasks.len())];
    let briefs: Vec<TaskBrief> = gated
        .iter()
        .filter_map(|task| brief_of(runner, task))
        .collect();
    let loop_gates = runner.d.state.config.verify.clone();
    let mut gates = GateRunner::new(runner, &briefs)?;
    gates.begins(runner, Busy::Merge, tasks.to_vec());
    let marks = marks_of(runner, gated);
    let place = runner.place.clone();
    spawn("train", move || {
        let mut done = place.gate_train(&works, members as usize, &mut gates, &marks);
        if let TrainEnd::Red { check_of, .. } = &mut done.end {
            *check_of = gates
                .failed
                .as_ref()
                .and_then(|gate| owner_of(gate, &briefs, &loop_gates));
        }
        let gate_ms = u64::try_from(gates.took.as_millis()).unwrap_or(u64::MAX);
        let event = TaskEvent::TrainGated {
            train,
            members,
            done,
            gate_ms,
        };
        drop(tx.send(HostMessage::Task(Box::new(event))));
    })
}

/// The task whose own check a gate is, where it is no gate of the loop or of another task.
fn owner_of(gate: &TreeGate, briefs: &[TaskBrief], loop_gates: &[String]) -> Option<TaskId> {
    if loop_gates.contains(&gate.command) {
        return None;
    }
    let is_own = |brief: &&TaskBrief| brief.cwd == gate.cwd && brief.gates.contains(&gate.command);
    let mut owners = briefs.iter().filter(is_own);
    let owner = owners.next()?;
    (owners.next().is_none()).then(|| owner.text.id.as_str().into())
}

/// Runs the gates of a task that somebody else marked done: its own and the loop's, on the merged
/// tree.
pub(super) fn check_mark(runner: &mut Runner<'_>, task: TaskId) -> Result<(), HostError> {
    let tx = runner.d.tx.clone();
    let briefs: Vec<TaskBrief> = brief_of(runner, &task).into_iter().collect();
    let is_proof = !tree_gates(&runner.d.state.config, &briefs).is_empty();
    let tell = move |end| {
        let news = TaskEvent::MarkChecked(task, end);
        drop(tx.send(HostMessage::Task(Box::new(news))));
    };
    if !is_proof {
        tell(MarkEnd::NoGate);
        return Ok(());
    }
    let mut gates = GateRunner::new(runner, &briefs)?;
    gates.begins(runner, Busy::Mark, Vec::new());
    let place = runner.place.clone();
    spawn("mark", move || {
        let ran = place.gate_merged(&mut gates);
        tell(match ran {
            _ if gates.shell.was_stopped() => MarkEnd::Interrupted,
            Ok(Ok(())) => MarkEnd::Green,
            Ok(Err(GateFailure::Stopped)) => MarkEnd::Interrupted,
            Err(error) if error.kind() == GitErrorKind::Stopped => MarkEnd::Interrupted,
            Ok(Err(GateFailure::Red(tail))) => MarkEnd::Red { tail },
            Err(error) => MarkEnd::Red {
                tail: format!("the gates could not be run: {error}"),
            },
        });
    })
}

/// A wave with what there is to say of it.
fn wave_of(runner: &Runner<'_>, number: u32) -> Wave {
    let plan = runner.sched.plan();
    let all = plan.waves().get(number.saturating_sub(1) as usize);
    let states = all.into_iter().flatten().filter_map(|task| {
        let id = &plan.graph().node(*task).id;
        runner.sched.state(id)
    });
    let (mut done, mut total) = (0, 0);
    for state in states.filter(|state| !matches!(state, TaskState::LeftOut { .. })) {
        total += 1;
        done += usize::from(*state == TaskState::Done);
    }
    let ids = all.into_iter().flatten();
    let ids = ids.map(|task| &plan.graph().node(*task).id);
    let landed = ids.filter(|id| runner.sched.state(id) == Some(&TaskState::Done));
    let trailers = trailers(runner, landed);
    Wave {
        number,
        done,
        total,
        trailers,
    }
}

/// Starts the commit of a wave.
pub(super) fn commit_wave(runner: &mut Runner<'_>, wave: u32) -> Result<(), HostError> {
    let of_wave = wave_of(runner, wave);
    let tx = runner.d.tx.clone();
    // Where the user's branch has moved, they are proven anew by their own gates too.
    let plan = runner.sched.plan();
    let all = plan.waves().get(wave.saturating_sub(1) as usize);
    let ids = all.into_iter().flatten();
    let ids = ids.map(|task| &plan.graph().node(*task).id);
    let done = ids.filter(|id| runner.sched.state(id) == Some(&TaskState::Done));
    let briefs: Vec<TaskBrief> = done.filter_map(|task| brief_of(runner, task)).collect();
    let mut gates = GateRunner::new(runner, &briefs)?;
    gates.begins(runner, Busy::Wave, Vec::new());
    let marks = marks_of(runner, &[]);
    let place = runner.place.clone();
    spawn("wave", move || {
        let done = place.commit_wave(&of_wave, &mut gates, &marks);
        drop(tx.send(HostMessage::Task(Box::new(TaskEvent::WaveCommitted(
            wave, done,
        )))));
    })
}

/// Starts another try to bring finished work into the user's checkout.
pub(super) fn land_rest(runner: &mut Runner<'_>) -> Result<(), HostError> {
    let tx = runner.d.tx.clone();
    let done = runner.sched.account().done;
    let briefs = done.iter().filter_map(|task| brief_of(runner, task));
    let briefs: Vec<TaskBrief> = briefs.collect();
    let mut gates = GateRunner::new(runner, &briefs)?;
    gates.begins(runner, Busy::Landing, Vec::new());
    let marks = marks_of(runner, &[]);
    let place = runner.place.clone();
    spawn("land", move || {
        let done = place.land_rest(&mut gates, &marks);
        drop(tx.send(HostMessage::Task(Box::new(TaskEvent::Landed(done)))));
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_gets_a_file_name_of_its_own() {
        assert_eq!(file_name("1.10"), "1.10");
        assert_eq!(file_name("fetch_data"), "fetch_data");
        let odd = ["a b", "a-b", "a:b", "a/b", "..", "ä", ""];
        let names: std::collections::HashSet<String> = odd.iter().map(|id| file_name(id)).collect();
        assert_eq!(names.len(), odd.len());
        let safe = |name: &String| {
            name.chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        assert!(names.iter().all(safe));
    }
}
