//! Beginning a loop: every check before the first byte is written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;

use descartes_agents::agent::Profile;
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::event::HostFacts;
use descartes_kernel::fact;
use descartes_kernel::prompt::fill_template;
use descartes_kernel::sandbox::SandboxLevel;
use descartes_kernel::state::{Kept, LoopState};
use descartes_kernel::step::Agents;
use descartes_proc::{RunClock, Supervisor};
use descartes_store::catalog;
use descartes_store::host::{HostInfo, this_host};
use descartes_store::journal::Journal;
use descartes_store::layout::{LoopDir, PROJECT_FOLDER, STATE_FILE, socket_path};
use descartes_store::lock::StateLock;
use descartes_store::logs::LoopLogs;
use descartes_store::safe_open::fix_user_file;
use descartes_store::state_file::StateFile;
use jiff::Timestamp;
use serde_json::{Map, Value};
use tracing::info;

use super::agent::{ResolvedAgent, resolve_all};
use super::agent_loop::AgentLoop;
use super::control::ControlSocket;
use super::driver::Driver;
use super::error::HostError;
use super::existing::{OnExistingState, check_free, decide};
use super::gate_files::gate_files;
use super::gate_programs::{missing_programs, program_of};
use super::handle::{Host, LoopKind};
use super::leftovers::{sweep_state_file, wait_until_left};
use super::loop_files::{LoopFiles, Warnings};
use super::message::HostMessage;
use super::name::{check_name, claim_name, unused_name};
use super::opening::{first_record, git_guarded, make_branch, register, take, working_dir};
use super::sandbox::{LoopSandbox, project_of};
use super::sandbox_level::{hoped_for, settle};
use super::settings::HostSettings;
use super::task_loop::{Occasion, PrepareTasks, TaskLoop, TaskOrder};
use super::work_directory::WorkDirectory;
use crate::steering;
use crate::worktree::git::guards::Guards;
use crate::worktree::{PriorAgents, Tree, TreeOptions, own_output};

/// A loop to begin.
#[derive(Clone, Debug)]
pub struct NewLoop {
    /// What is asked for.
    pub config: IterativeLoopConfig,
    /// Its name; made up where there is none.
    pub name: Option<String>,
    /// What to do with an old state file.
    pub existing: OnExistingState,
}

/// Makes the checks that come before the state file is looked at, and nothing else.
pub fn examine(settings: &HostSettings, config: &IterativeLoopConfig) -> Result<(), HostError> {
    examined(settings, &hoped_for(config, settings)).map(drop)
}

fn examined(
    settings: &HostSettings,
    config: &IterativeLoopConfig,
) -> Result<(PathBuf, Vec<ResolvedAgent>), HostError> {
    config.check()?;
    let dir = working_dir(config.working_directory.as_deref())?;
    let config = IterativeLoopConfig {
        working_directory: Some(dir.clone()),
        ..config.clone()
    };
    // Those of a task loop are looked at with its tasks, which may ask for others.
    let agents = match config.tasks {
        Some(_) => Vec::new(),
        None => resolve_all(&config, settings)?,
    };
    // The gate of one task is no reason to end all others: it is red, and says why.
    if config.proof.is_none() {
        check_gates(&config, settings, &dir)?;
    }
    check_templates(&config)?;
    Ok((dir, agents))
}

/// Agents, and what confines them.
pub(super) struct Confined {
    pub(super) agents: Vec<ResolvedAgent>,
    pub(super) sandbox: Option<LoopSandbox>,
}

/// The sandbox of a loop's agents, tried; that of a task loop is each attempt's own.
pub(super) fn sandbox_of(
    config: &IterativeLoopConfig,
    settings: &HostSettings,
    dir: &Path,
    agents: &[ResolvedAgent],
) -> Result<Option<LoopSandbox>, HostError> {
    if config.tasks.is_some() || config.sandbox.effective() == SandboxLevel::Off {
        return Ok(None);
    }
    let profiles: Vec<&Profile> = agents.iter().map(ResolvedAgent::profile).collect();
    LoopSandbox::prepare(config, settings, project_of(settings, dir), &profiles)
}

/// Begins a loop that belongs to another, which `family` tells, and whose gate files were so when the
/// other began.
pub(crate) fn create_within(
    mut settings: HostSettings,
    new: NewLoop,
    family: Map<String, Value>,
    gate_files_before: Option<BTreeMap<String, String>>,
    prepare: PrepareTasks,
) -> Result<Host, HostError> {
    let mut config = new.config;
    config.check()?;
    let dir = working_dir(config.working_directory.as_deref())?;
    let warned = settle(&mut config, &settings, &dir)?;
    let (dir, agents) = examined(&settings, &config)?;
    let sandbox = sandbox_of(&config, &settings, &dir, &agents)?;
    config.working_directory = Some(dir.clone());
    fix_files(&mut config, &dir)?;
    let state_path = state_file_path(&config, &dir);
    let mut state_file = StateFile::at(&state_path)?;
    config.state_file = Some(state_file.path().to_owned());
    config.backend.environment_names = config.backend.environment.keys().cloned().collect();
    config.backend.environment_hash = None;
    let mut notices: Vec<String> = warned.into_iter().collect();
    wait_until_left(&settings.root, state_file.path(), &settings.early_stop)?;
    check_free(&settings, &mut state_file, new.existing, &config)?;
    let given = new.name.as_deref().filter(|_| family.is_empty());
    if let Some(name) = given {
        check_name(&settings, name)?;
    }
    let loop_id = uuid::Uuid::now_v7().to_string();
    info!(loop_id, dir = %dir.display(), "creating a loop");
    settings.carry_mark(&loop_id);
    let tasks = match config.tasks.is_some() {
        true => {
            let order = TaskOrder {
                config: &config,
                settings: &settings,
                dir: &dir,
                occasion: Occasion::Start,
                history: Vec::new(),
                known: Vec::new(),
                begun: BTreeSet::new(),
            };
            Some(prepare(order, &mut notices)?)
        }
        false => None,
    };
    if let (Some(asked), Some(tasks)) = (&mut config.tasks, &tasks) {
        asked.agents = tasks.own_agents();
    }
    let claim = given.map(|name| claim_name(&settings, name)).transpose()?;

    let now = Timestamp::now();
    let facts = this_host(&settings.version);
    let lock = take(&settings, state_file.path(), &loop_id, &facts)?;
    // Looked at again under the lock: another loop may have begun and ended here since.
    let former = decide(&settings, &mut state_file, new.existing, &config)?;
    if family.is_empty() {
        // The loop of a task has a state file of its own, and no past.
        sweep_state_file(&settings.root, state_file.path(), &mut notices);
    }
    let loop_dir = settings.root.loop_dir(&loop_id)?;
    let name = match new.name {
        Some(name) => name,
        None => unused_name(&settings, &dir, &loop_id)?,
    };
    // The last that can be refused: an old state file stays in its place until then.
    let branch = make_branch(&settings, &config, &name, &dir, &loop_dir).inspect_err(|_| {
        // Nothing of a loop that never began is left behind; failing that is harmless.
        drop(fs_err::remove_dir_all(loop_dir.path()));
    })?;
    if let Some(former) = former {
        notices.push(former.make_room(&settings, &mut state_file, now)?);
        if let (Some(tasks), Some(former)) = (&tasks, former.state(&settings)) {
            notices.extend(tasks.stop_former(&former, &settings));
        }
    }
    register(
        &settings,
        &loop_id,
        &name,
        state_file.path(),
        &dir,
        now,
        family,
    )?;
    drop(claim);
    let mut journal = Journal::create(&loop_dir.journal())?;
    let event = fact::loop_created(loop_id, name, config, now, None);
    let state = first_record(&mut journal, now, event)?;
    let held = Held {
        state,
        journal,
        lock,
        dir: loop_dir,
        state_file,
        kept: Kept::default(),
        facts,
    };
    let is_graph = tasks.is_some();
    let agents = Confined { agents, sandbox };
    let mut host = assemble(settings, held, agents, tasks, notices)?;
    let d = host.driver_mut();
    let gates = &d.state.config.verify;
    let files = match gate_files_before {
        Some(files) => files,
        // A task loop has gates of its tasks as well, and reads its files from what is committed.
        None if is_graph => BTreeMap::new(),
        None => gate_files(gates, &dir, &d.settings.environment),
    };
    let files = fact::gate_files(&d.state, files);
    let branch = branch.map(fact::branched);
    d.append_all(files.into_iter().chain(branch))?;
    d.save_state()?;
    Ok(host)
}

/// Files that the person named and that are read at every iteration: where a link leads to one, the
/// file behind it is meant from now on, whatever the agent makes of the link.
pub(super) fn fix_files(config: &mut IterativeLoopConfig, dir: &Path) -> Result<(), HostError> {
    for file in config.prompt_file.iter_mut().chain(&mut config.spec_files) {
        let typed = dir.join(&file);
        let fixed = fix_user_file(&typed).map_err(|error| {
            HostError::usage(
                format!("cannot read {}: {error}", typed.display()),
                "name an existing text file",
            )
        })?;
        if fixed != typed {
            *file = fixed;
        }
    }
    Ok(())
}

fn state_file_path(config: &IterativeLoopConfig, dir: &Path) -> PathBuf {
    match &config.state_file {
        Some(file) => file.clone(),
        None => dir.join(PROJECT_FOLDER).join(STATE_FILE),
    }
}

/// Gates that the shell cannot even read are refused now, not after the first iteration.
fn check_gates(
    config: &IterativeLoopConfig,
    settings: &HostSettings,
    dir: &Path,
) -> Result<(), HostError> {
    for gate in &config.verify {
        let checked = std::process::Command::new("sh")
            .args(["-n", "-c", gate])
            .output();
        if let Ok(output) = checked
            && !output.status.success()
        {
            let message = String::from_utf8_lossy(&output.stderr);
            return Err(HostError::usage(
                format!(
                    "the gate `{gate}` is not valid shell syntax: {}",
                    message.trim()
                ),
                "quote it as you would for `sh -c`",
            ));
        }
        let program: BTreeSet<&str> = program_of(gate).into_iter().collect();
        let missing = missing_programs(&program, &settings.environment, dir);
        if let Some(missing) = missing.first() {
            return Err(HostError::usage(
                format!("the gate `{gate}` runs `{missing}`, which is not installed"),
                "install it, or fix the --verify command",
            ));
        }
    }
    Ok(())
}

fn check_templates(config: &IterativeLoopConfig) -> Result<(), HostError> {
    for template in [&config.git.commit_template, &config.git.branch_template] {
        fill_template(template, &[]).map_err(|why| {
            HostError::usage(
                why,
                "for example --commit-template 'loop: iteration {iteration}'",
            )
        })?;
    }
    Ok(())
}

/// Everything that is tied to one loop on disk.
pub(super) struct Held {
    pub(super) state: LoopState,
    pub(super) journal: Journal,
    pub(super) lock: StateLock,
    pub(super) dir: LoopDir,
    pub(super) state_file: StateFile,
    pub(super) kept: Kept,
    pub(super) facts: HostFacts,
}

/// git sees what the agent sees; and what we write ourselves, wherever the user put it, is no
/// progress of the agent.
fn tree_options(settings: &HostSettings, held: &Held) -> TreeOptions {
    let mut lock = held.state_file.path().as_os_str().to_owned();
    lock.push(".lock");
    let root = &settings.root;
    let mut apart = vec![held.state_file.path().to_owned(), lock.into()];
    let work = held.state.config.working_directory.as_deref();
    if work.is_some_and(|work| work.starts_with(root.worktrees())) {
        // A task is worked on in a worktree that lies among our own files.
        apart.extend([root.loops(), root.path().join("locks")]);
    } else {
        apart.push(root.path().to_owned());
    }
    TreeOptions {
        git: git_guarded(settings, guards_of(settings, held)),
        apart,
        agents: match held.state.runs == 0 {
            true => PriorAgents::NotYet,
            false => PriorAgents::HaveWorked,
        },
        ..TreeOptions::default()
    }
}

/// Guards of gits that hold the loop's lock until the last of what they ran is gone.
fn guards_of(settings: &HostSettings, held: &Held) -> Arc<Guards> {
    let fds = held.lock.fds();
    let fds = fds.iter().filter_map(|fd| fd.try_clone_to_owned().ok());
    let guards = Guards::holding(settings.guard.clone(), &held.state.loop_id, fds.collect());
    settings.early_stop.reach(&guards);
    guards
}

/// Puts a host together: guard, control socket, work tree.
pub(super) fn assemble(
    settings: HostSettings,
    held: Held,
    confined: Confined,
    tasks: Option<Box<dyn TaskLoop>>,
    mut notices: Vec<String>,
) -> Result<Host, HostError> {
    let Confined { agents, sandbox } = confined;
    // Not for every attempt at a task again.
    if held.state.config.proof.is_none() {
        let promises = agents.iter().map(|agent| agent.promise(&held.state.config));
        notices.extend(promises.filter_map(|promise| promise.weak_warning()).next());
    }
    let (tx, rx) = channel();
    let events = tx.clone();
    let on_event = Box::new(move |event| {
        // The driver outlives its supervisor; a send can only fail at the very end.
        drop(events.send(HostMessage::Tree(event)));
    });
    let supervisor = match &settings.guard {
        Some(guard) => {
            // The guard says whose it is: whoever looks for the loop of a process reads it there.
            let mut args: Vec<&str> = guard.args.iter().map(String::as_str).collect();
            args.push(&held.state.loop_id);
            Supervisor::guarded(&guard.exe, &args, &held.lock.fds(), on_event)
        }
        None => Supervisor::direct(&held.state.loop_id, on_event),
    }
    .map_err(|error| HostError::Internal(format!("cannot start the guard: {error}")))?;
    let started_in = steering::own_enclosure();
    let socket = match socket_path(&settings.paths, &held.state.loop_id) {
        Ok(path) => {
            match ControlSocket::listen(&path, started_in, held.dir.journal(), tx.clone()) {
                Ok(socket) => Some(socket),
                Err(error) => {
                    notices.push(format!("no control socket at {}: {error}", path.display()));
                    None
                }
            }
        }
        Err(error) => {
            notices.push(format!("no control socket: {error}"));
            None
        }
    };
    let info = HostInfo {
        facts: held.facts.clone(),
        socket: socket.as_ref().map(|socket| socket.path().to_owned()),
    };
    info.write(&held.dir)?;
    let mut held = held;
    if let Some(socket) = &info.socket
        && let Err(error) = held.lock.set_socket(socket)
    {
        notices.push(error.to_string());
    }
    let meta = catalog::find(&settings.root, &held.state.loop_id);
    let meta = meta.ok().map(|entry| entry.meta);
    let work = held
        .state
        .config
        .working_directory
        .clone()
        .unwrap_or_else(|| PathBuf::from("."));
    own_output::note(&held.dir.objects());
    let tree = tasks
        .is_none()
        .then(|| Tree::open_with(&work, &held.dir.objects(), tree_options(&settings, &held)));
    let work_directory = WorkDirectory::hold(&work);
    let policy = Agents::new(agents.len(), agents.iter().all(ResolvedAgent::understood));
    let logs = LoopLogs::measure(&held.dir, settings.max_logs.unwrap_or(u64::MAX))?;
    let lease = settings.lease.clone();
    let mut driver = Driver {
        state: held.state,
        journal: held.journal,
        dir: held.dir.clone(),
        kept: held.kept,
        settings,
        policy,
        supervisor,
        rx,
        tx,
        work_directory,
        _socket: socket,
        waiting: Vec::new(),
        effective: Vec::new(),
        clock: RunClock::start(&lease),
        lease,
        listeners: Vec::new(),
        alarm: None,
        said: Warnings::default(),
        files: LoopFiles::new(held.lock, held.state_file, logs, meta, info),
    };
    driver.append(fact::host_started(held.facts))?;
    let kind = match tree {
        Some(tree) => LoopKind::Agents(Box::new(AgentLoop::new(driver, agents, tree, sandbox))),
        None => LoopKind::Tasks(Box::new(driver), tasks),
    };
    Ok(Host { kind, notices })
}
