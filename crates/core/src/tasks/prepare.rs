//! Everything that is checked before a task loop begins: the file, the graph, the place.

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

use descartes_agents::agent::GENERIC;
use descartes_bridge::Engine;
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::sandbox::{LevelReason, SandboxLevel};
use descartes_kernel::sched;
use descartes_kernel::tasks::{TaskFile, TasksConfig, TrackerTasks, WorkPlace};
use descartes_plans::graph::{TaskIx, TaskStatus};
use descartes_store::layout::PROJECT_FOLDER;
use descartes_store::task_file::{RunLock, remove_left_copies};
use descartes_text::finding::Severity;
use descartes_text::shell;
use descartes_text::units::plural;
use jiff::Timestamp;

use super::fleet::{Fleet, try_remote};
use super::in_place::{InPlace, WORK_TREE_TIMEOUT, changed_files};
use super::launch::{confined_for, file_name, take_agent};
use super::lists::{ListSource, TrackerSource};
use super::place::{Fresh, Workplace};
use super::roadmap::RoadmapSource;
use super::scud::ScudSource;
use super::source::{Loaded, SourceError, TaskBrief, TaskSource};
use super::trees::{Sharing, Trees};
use crate::host::confined_programs::with_confined_programs;
use crate::host::sandbox::{LoopSandbox, project_of};
use crate::host::task_loop::{Occasion, TaskLoop, TaskOrder};
use crate::host::{HostError, HostSettings, Retry, find_all, git_of, resolve_all};
use crate::worktree::deadline::Deadline;

/// A task loop that may begin.
pub(crate) struct Prepared {
    pub(super) source: Box<dyn TaskSource>,
    pub(super) loaded: Loaded,
    pub(super) place: Arc<dyn Workplace>,
    /// One task for each agent that the tasks ask for.
    pub(crate) agents: Vec<TaskBrief>,
    /// What was decided before, where the loop is taken up.
    pub(super) history: Vec<sched::Event>,
    /// Keeps other runs away from the same tasks.
    pub(super) lock: Option<RunLock>,
    /// Whether blocked tasks are tried again.
    pub(super) retry: Retry,
    /// Where only finished work is landed: how the loop had ended.
    pub(super) land_only: Option<IterativeExitReason>,
    /// By which workers on other machines make the attempts.
    pub(super) engine: Option<Arc<dyn Engine>>,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").finish_non_exhaustive()
    }
}

impl From<SourceError> for HostError {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Content {
                path,
                message,
                hint,
            }
            | SourceError::Unreadable {
                path,
                message,
                hint,
            } => Self::refused(format!("{}: {message}", path.display()), hint),
            SourceError::Tracker { message, hint } => Self::refused(message, hint),
            SourceError::NoTask { .. } => Self::refused(
                error.to_string(),
                "restore the task, or start over with --force",
            ),
            SourceError::Lines { lines } => {
                Self::refused(lines, "fix the task file, then start again")
            }
            SourceError::File(error) => Self::refused(
                error.to_string(),
                "find out who else is working on these tasks",
            ),
        }
    }
}

/// One that is gone for good holds up nobody.
fn or_another_engine(error: HostError) -> HostError {
    match error {
        HostError::Refused { message, hint } => HostError::Refused {
            message,
            hint: format!(
                "{hint}; where it is gone for good, start another and type: descartes loop resume --workers URL (what \
                 workers had not handed in is done again)"
            ),
        },
        other => other,
    }
}

/// Reads and checks the tasks and the place where they are worked on. Writes nothing but the
/// lock that other runs look at.
pub(crate) fn prepare(
    order: TaskOrder<'_>,
    notices: &mut Vec<String>,
) -> Result<Box<dyn TaskLoop>, HostError> {
    let TaskOrder {
        config,
        settings,
        dir,
        occasion,
        history,
        known,
        begun,
    } = order;
    let Some(tasks) = &config.tasks else {
        return Err(HostError::Internal("there are no tasks to run".to_owned()));
    };
    let mut source = open_source(tasks, dir)?;
    if let TaskFile::List { path, .. } | TaskFile::Roadmap { file: path, .. } = &tasks.source {
        remove_left_copies(path);
    }
    if let Some(line) = source.line() {
        settings.early_stop.reach_line(&line);
    }
    source.recall(known, begun);
    // Before the lock: a tag that is not there gets no lock file.
    let loaded = source.load()?;
    if occasion == Occasion::Start {
        source.refuse_start()?;
    }
    let agents = agents_of(&loaded, tasks);
    // Workers on other machines have agents of their own.
    if !matches!(occasion, Occasion::Land(_)) && tasks.workers.is_none() {
        check_agents(&agents, config, settings, dir)?;
        if tasks.place == WorkPlace::Worktrees {
            check_committed(&agents, config, settings, dir)?;
        }
    }
    let whole = confined_for(config, settings, loaded.briefs.values());
    if !matches!(occasion, Occasion::Land(_)) && tasks.workers.is_none() {
        check_sandbox(&whole, settings, dir)?;
    }
    let lock = match source.run_lock() {
        Some(path) => Some(hold(&path, &tasks.source.tag())?),
        None => list_lock(&tasks.source, settings)?,
    };
    for finding in &loaded.findings {
        if finding.severity == Severity::Warning {
            notices.push(format!("{}:{finding}", tasks.source.path().display()));
        }
    }
    notices.extend(source.notices());
    let place = open_place(
        &whole,
        tasks,
        settings,
        dir,
        source.as_ref(),
        &occasion,
        notices,
    )?;
    // The last, since it takes longest: nothing is left behind where nobody answers.
    let engine = match (&tasks.workers, &occasion) {
        (Some(address), Occasion::Start | Occasion::Resume(_)) => {
            let engine = Fleet::connect(address, settings).map_err(|error| match occasion {
                Occasion::Resume(_) => or_another_engine(error),
                _ => error,
            })?;
            if let Some(url) = &tasks.git_remote {
                try_remote(url, settings, dir)?;
            }
            Some(engine)
        }
        (None, _) | (_, Occasion::Land(_)) => None,
    };
    let (retry, land_only) = match occasion {
        Occasion::Start => (Retry::No, None),
        Occasion::Resume(retry) => (retry, None),
        Occasion::Land(before) => (Retry::No, Some(before)),
    };
    Ok(Box::new(Prepared {
        source,
        loaded,
        place,
        agents,
        history,
        lock,
        retry,
        land_only,
        engine,
    }))
}

/// One task for each agent that open tasks ask for; those that ask for none, and the question for
/// one more task, are the loop's own agent's.
fn agents_of(loaded: &Loaded, tasks: &TasksConfig) -> Vec<TaskBrief> {
    let graph = loaded.plan.graph();
    let is_open = |task: &TaskIx| {
        let status = graph.node(*task).status;
        !matches!(status, TaskStatus::Done) && !status.is_left_out()
    };
    let open = (0..graph.nodes().len() as TaskIx).filter(|task| graph.is_work(*task));
    let open = open.filter(is_open).map(|task| &graph.node(task).id);
    let mut briefs: Vec<TaskBrief> = Vec::new();
    let asked = |brief: &TaskBrief| {
        (
            brief.agent.clone(),
            brief.fallback.clone(),
            brief.model.clone(),
            brief.max_cost,
        )
    };
    for brief in open.filter_map(|id| loaded.briefs.get(id)) {
        if !briefs.iter().any(|known| asked(known) == asked(brief)) {
            briefs.push(brief.clone());
        }
    }
    let grows = matches!(&tasks.source, TaskFile::Roadmap { defaults, .. } if defaults.growth > 0);
    if grows && briefs.iter().all(|brief| brief.agent.is_some()) {
        briefs.push(TaskBrief::default());
    }
    briefs
}

/// An agent that a task asks for and that is not there, or a budget that its agent cannot be held
/// to, is told before any other task is begun. Agents that no task asks for are not looked for.
pub(crate) fn check_agents(
    briefs: &[TaskBrief],
    config: &IterativeLoopConfig,
    settings: &HostSettings,
    dir: &Path,
) -> Result<(), HostError> {
    // Programs first: nobody is asked what one agent may do while another is not there.
    for check in [find_all, resolve_all] {
        for brief in briefs {
            let mut config = config.clone();
            take_agent(settings, brief, &mut config)?;
            config.max_cost_usd = brief.max_cost.or(config.max_cost_usd);
            config.model = brief.model.clone().or(config.model);
            config.working_directory = Some(dir.to_owned());
            let plain = brief.agent.is_none() && brief.max_cost.is_none() && brief.model.is_none();
            check(&config, settings).map_err(|error| match plain {
                // The agent of the whole loop, as of any loop.
                true => error,
                false => HostError::OfTask {
                    task: brief.text.id.clone(),
                    error: Box::new(error),
                },
            })?;
        }
    }
    Ok(())
}

/// A program of the project's that is in no commit is not there where the tasks are worked on.
fn check_committed(
    briefs: &[TaskBrief],
    config: &IterativeLoopConfig,
    settings: &HostSettings,
    dir: &Path,
) -> Result<(), HostError> {
    let tasks = config.tasks.as_ref();
    // A setup may make it.
    if tasks.is_none_or(|tasks| tasks.worktree_setup.is_some()) {
        return Ok(());
    }
    let git = git_of(settings);
    let asked = |args: &[&str], path: &str| {
        let call = git.read(dir).args(args).arg(path);
        call.output(Deadline::after(WORK_TREE_TIMEOUT)).ok()
    };
    for brief in briefs {
        let mut config = config.clone();
        take_agent(settings, brief, &mut config)?;
        for agent in resolve_all(&config, settings)? {
            let Some(program) = agent.program() else {
                continue;
            };
            let is_ours = program.contains('/') && Path::new(program).is_relative();
            if !is_ours || !dir.join(program).is_file() {
                continue;
            }
            let copied = tasks.is_some_and(|tasks| is_copied(program, &tasks.worktree_copy));
            let listed = asked(&["ls-tree", "--name-only", "HEAD", "--"], program);
            // Where git does not answer, it is asked again by whoever needs it.
            if copied || listed.is_none_or(|listed| !listed.is_empty()) {
                continue;
            }
            let is_ignored = asked(&["check-ignore", "--"], program).is_some();
            return Err(uncommitted_agent(dir, program, is_ignored));
        }
    }
    Ok(())
}

fn uncommitted_agent(dir: &Path, program: &str, is_ignored: bool) -> HostError {
    let name = Path::new(program).components();
    let name: PathBuf = name.filter(|part| *part != Component::CurDir).collect();
    let (typed, full) = (shell::path(&name), shell::path(&dir.join(&name)));
    let commit = format!("git add {typed} && git commit -m 'add the agent' -- {typed}");
    HostError::refused(
        format!("agents of tasks see what is committed, and {program} is not"),
        match is_ignored {
            true => format!("give its full path: {full}"),
            false => format!("type: {commit}; or give its full path: {full}"),
        },
    )
}

/// Whether `worktree_copy` brings a file.
fn is_copied(file: &str, copied: &[String]) -> bool {
    let plain = |name: &str| name.trim_start_matches("./").to_owned();
    let file = plain(file);
    let mut copied = copied.iter();
    copied.any(|name| Path::new(&file).starts_with(plain(name)))
}

/// A level that somebody asks for, and that does not work here, is told before any task is begun.
fn check_sandbox(
    whole: &IterativeLoopConfig,
    settings: &HostSettings,
    dir: &Path,
) -> Result<(), HostError> {
    let asked = whole.sandbox.effective() != SandboxLevel::Off;
    // The default was tried when it was settled.
    let by_default = matches!(
        whole.sandbox.why,
        Some(LevelReason::Permissions | LevelReason::Unchecked)
    );
    let generic = settings.profiles.get(GENERIC);
    let Some(generic) = generic.filter(|_| asked && !by_default) else {
        return Ok(());
    };
    let project = project_of(settings, dir);
    match LoopSandbox::prepare(whole, settings, project, &[generic]) {
        // What is wrong with this folder need not be wrong with those of the tasks.
        Ok(_) | Err(HostError::Usage { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The tasks that a config names; nothing is read yet.
pub fn open_source(tasks: &TasksConfig, dir: &Path) -> Result<Box<dyn TaskSource>, HostError> {
    Ok(match &tasks.source {
        TaskFile::Scud { tag, file } => {
            Box::new(ScudSource::new(file, tag, &dir.join(PROJECT_FOLDER))?)
        }
        TaskFile::Roadmap { file, defaults } => Box::new(RoadmapSource::new(file, defaults)),
        TaskFile::List {
            path,
            format,
            options,
            tag,
        } => Box::new(ListSource::new(path, *format, *options, tag.clone())),
        TaskFile::Tracker(tracker) => Box::new(TrackerSource::new(tracker)),
    })
}

/// A list of another tool is run once at a time, whatever state files its runs have.
fn list_lock(source: &TaskFile, settings: &HostSettings) -> Result<Option<RunLock>, HostError> {
    let (TaskFile::List { path, .. } | TaskFile::Tracker(TrackerTasks { path, .. })) = source
    else {
        return Ok(None);
    };
    // A tracker's path names no file, but it is in a folder.
    let whole = path.canonicalize().ok().or_else(|| {
        let folder = path.parent()?.canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    });
    let whole = whole.unwrap_or_else(|| path.clone());
    let name = file_name(&format!("{}#{}", whole.display(), source.tag()));
    let lock = settings.root.path().join("list-locks").join(name);
    let what = format!("on {}", source.shown());
    hold_for(&lock, &what, "").map(Some)
}

fn hold(path: &Path, tag: &str) -> Result<RunLock, HostError> {
    let held = format!(" and holds {}", path.display());
    hold_for(path, &format!("on the tag `{tag}`"), &held)
}

fn hold_for(path: &Path, what: &str, held: &str) -> Result<RunLock, HostError> {
    let text = format!("pid={}\nstarted={}\n", std::process::id(), Timestamp::now());
    RunLock::acquire(path, &text)?.ok_or_else(|| {
        let holder = fs_err::read_to_string(path).unwrap_or_default();
        let holder = holder.lines().next().map(|line| format!(" ({line})"));
        HostError::refused(
            format!(
                "another run is already working {what}{held}{}",
                holder.unwrap_or_default()
            ),
            "wait for it, or end it: descartes loop list --all",
        )
    })
}

fn open_place(
    config: &IterativeLoopConfig,
    tasks: &TasksConfig,
    settings: &HostSettings,
    dir: &Path,
    source: &dyn TaskSource,
    occasion: &Occasion,
    notices: &mut Vec<String>,
) -> Result<Arc<dyn Workplace>, HostError> {
    let objects = settings.root.path().join("worktrees").join("objects");
    match tasks.place {
        WorkPlace::InPlace if tasks.workers.is_some() => Err(HostError::refused(
            "workers on other machines work in clones of their own, not in place",
            "omit --in-place",
        )),
        WorkPlace::InPlace => {
            let fresh = match occasion {
                Occasion::Start => Fresh::Yes,
                Occasion::Resume(_) | Occasion::Land(_) => Fresh::No,
            };
            let place = InPlace::open(
                dir,
                objects,
                source.shielded(),
                tasks,
                config,
                settings,
                fresh,
            )?;
            Ok(Arc::new(place))
        }
        WorkPlace::Worktrees => {
            let shielded = source.shielded();
            let place = Trees::open(dir, settings, &shielded, tasks, config, Sharing::Users)?;
            if *occasion == Occasion::Start {
                notices.extend(uncommitted(tasks, config, settings, dir, source));
            }
            notices.extend(place.notices());
            Ok(Arc::new(place))
        }
    }
}

/// Files that are named one by one.
const NAMED: usize = 5;

/// What agents will not see, since it is in no commit.
fn uncommitted(
    tasks: &TasksConfig,
    config: &IterativeLoopConfig,
    settings: &HostSettings,
    dir: &Path,
    source: &dyn TaskSource,
) -> Option<String> {
    // Where git does not answer, it is asked again by whoever needs it.
    let confined = Arc::new(Mutex::new(config.clone()));
    let git = with_confined_programs(git_of(settings), settings, confined);
    let mut files = changed_files(&git, dir, &source.shielded()).ok()?;
    files.retain(|file| !is_copied(file, &tasks.worktree_copy));
    let named = files[..files.len().min(NAMED)].join(", ");
    let more = match files.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {}", plural(more as u64, "other file")),
    };
    (!files.is_empty()).then(|| {
        format!(
            "agents work in worktrees and will not see uncommitted changes: {named}{more}; \
             commit them, list untracked files in `worktree_copy` in the config, or work in your \
             own checkout with --in-place (which must be clean)"
        )
    })
}
