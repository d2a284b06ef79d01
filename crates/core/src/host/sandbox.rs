//! The sandbox of a loop's runs: tried before the first of them, planned anew for each.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use descartes_agents::agent::{self, Profile};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::sandbox::{
    Access, Denial, EnvironmentRules, ExtraLock, GitPlaces, OutsideView, RunPurpose, SandboxError,
    SandboxLevel, SandboxPlan, SandboxSummary, denied_paths, home_path, named_variables,
};
use descartes_proc::Launch;
use descartes_sandbox::{Machine, PlannedRun, Sandbox, SandboxProject, Surroundings, Unavailable};
use tracing::{info, warn};

use super::agent::choices;
use super::error::HostError;
use super::git_look::{GIT_TIME, NamedInTree};
use super::opening::git_of;
use super::pass_env::PassEnv;
use super::settings::{CONFINED_VARIABLE, HostSettings};
use super::slot_objects::SlotObjects;
use crate::worktree::deadline::Deadline;

/// What a run is, as far as its sandbox goes.
#[derive(Clone, Copy)]
pub(crate) struct ConfinedRun<'a> {
    pub(crate) purpose: RunPurpose,
    /// The agent's profile; for a gate that of the agent whose login it does not get.
    pub(crate) profile: Option<&'a Profile>,
    pub(crate) program: Option<&'a Path>,
    /// Files that it is handed.
    pub(crate) handed: &'a [PathBuf],
}

/// A sandbox that works here, for a loop in this project.
#[derive(Clone, Debug)]
pub(crate) struct LoopSandbox {
    sandbox: Sandbox,
    project: SandboxProject,
    around: Surroundings,
    level: SandboxLevel,
    /// In a worktree of a task loop: where its agent's objects go.
    objects: Option<SlotObjects>,
}

fn refused(error: Unavailable) -> HostError {
    HostError::refused(error.message, error.hint)
}

fn wrong(error: SandboxError) -> HostError {
    HostError::usage(error.message, error.hint)
}

/// What a sandbox takes from the surroundings of a host.
pub(crate) fn surroundings(settings: &HostSettings) -> Result<Surroundings, HostError> {
    let program = settings.guard.as_ref().map(|guard| guard.exe.clone());
    let program = program.ok_or_else(|| {
        HostError::refused(
            "a sandbox needs the program `descartes`: this host has none to start it with",
            "set `HostSettings::guard`, or use no sandbox",
        )
    })?;
    Ok(Surroundings {
        home: settings.paths.home.clone(),
        state_root: settings.root.path().to_owned(),
        runtime_dir: settings.paths.xdg_runtime_dir.clone(),
        program,
        environment: settings.environment.clone(),
    })
}

impl LoopSandbox {
    /// Finds out which sandbox the runs of a loop get, and tries it; `None` where it asks for none.
    pub(crate) fn prepare(
        config: &IterativeLoopConfig,
        settings: &HostSettings,
        project: SandboxProject,
        profiles: &[&Profile],
    ) -> Result<Option<Self>, HostError> {
        let level = config.sandbox.effective();
        if level == SandboxLevel::Off {
            return Ok(None);
        }
        let around = surroundings(settings)?;
        if let Some(file) = project.misled() {
            let file = file.display();
            return Err(HostError::refused(
                format!(
                    "{file} leads git to another folder than this repository's, with other settings and hooks"
                ),
                format!("look at what it says, then remove it: rm {file}"),
            ));
        }
        let mut plans = Vec::new();
        for profile in profiles {
            for purpose in [RunPurpose::Agent, RunPurpose::Gate] {
                let run = ConfinedRun {
                    purpose,
                    profile: Some(profile),
                    program: None,
                    handed: &[],
                };
                plans.push(plan_run(&project, &around, config, settings, level, run)?);
            }
        }
        if config.sandbox.effective_for_gates() == SandboxLevel::Off {
            plans.retain(|plan| plan.purpose == RunPurpose::Agent);
        }
        let avoid: Vec<PathBuf> = plans
            .iter()
            .flat_map(|plan| plan.paths(Access::Writable).map(Path::to_owned))
            .collect();
        let mut machine = Machine::examine(around.path(), &avoid);
        machine.namespaces.within = settings.confined;
        let tried: Vec<&SandboxPlan> = plans.iter().collect();
        let sandbox = Sandbox::choose(machine, &around.program, &around.state_root, &tried);
        let sandbox = sandbox.map_err(refused)?;
        info!(level = level.as_str(), mechanism = ?sandbox.mechanism(), "sandbox works");
        let dir = config.working_directory.clone().unwrap_or_default();
        Ok(Some(Self {
            sandbox,
            objects: slot_objects_of(settings, &dir, &project),
            project,
            around,
            level,
        }))
    }

    /// What a run may write and see now.
    pub(crate) fn plan(
        &self,
        config: &IterativeLoopConfig,
        settings: &HostSettings,
        run: ConfinedRun<'_>,
    ) -> Result<SandboxPlan, HostError> {
        plan_run(
            &self.project,
            &self.around,
            config,
            settings,
            self.level,
            run,
        )
    }

    /// The words before a command that confine it.
    pub(crate) fn prefix(&self, plan: &SandboxPlan) -> Result<Vec<OsString>, HostError> {
        self.sandbox.prefix(plan).map_err(refused)
    }

    /// The repository that it is for.
    pub(crate) fn project(&self) -> &SandboxProject {
        &self.project
    }

    /// The same command, confined.
    pub(crate) fn confine(&self, plan: &SandboxPlan, launch: Launch) -> Result<Launch, HostError> {
        let mut argv = self.prefix(plan)?;
        // Found now: inside, a program that is missing would look like an agent that fails.
        if let Some(program) = launch.argv.first() {
            let path = launch.env.iter().rev().find(|(key, _)| key == "PATH");
            let path = path.map(|(_, value)| value.as_os_str());
            descartes_proc::find_program(program, path, &launch.cwd)?;
        }
        argv.extend(launch.argv);
        Ok(Launch {
            argv,
            env: inside(plan, launch.env),
            ..launch
        })
    }

    /// Brings what a run wrote into the repository, before git of ours looks for it.
    pub(crate) fn take_over_objects(&self, settings: &HostSettings) -> Result<(), String> {
        match &self.objects {
            Some(objects) => objects.take_over(&git_of(settings)),
            None => Ok(()),
        }
    }

    /// What output tells of denials.
    pub(crate) fn denials(&self, plan: &SandboxPlan, output: &str) -> Vec<Denial> {
        let look = |path: &Path| std::fs::metadata(path).ok().map(|meta| meta.is_dir());
        let around = OutsideView {
            home: self.around.home.as_deref(),
            look: &look,
        };
        denied_paths(plan, self.sandbox.mechanism(), output, &around)
    }

    /// For the record.
    pub(crate) fn summary(
        &self,
        config: &IterativeLoopConfig,
        plan: &SandboxPlan,
        env_dropped: Vec<String>,
        own_off: Option<String>,
    ) -> SandboxSummary {
        let limits = self.sandbox.limits();
        let count = |access| u32::try_from(plan.paths(access).count()).unwrap_or(u32::MAX);
        let write = plan.paths(Access::Writable);
        SandboxSummary {
            level: self.level,
            mechanism: Some(self.sandbox.mechanism()),
            version: self.sandbox.version(),
            weaker: self.sandbox.weaker().map(str::to_owned),
            write: write.map(|path| path.display().to_string()).collect(),
            locked: count(Access::ReadOnly),
            hidden: count(Access::Hidden),
            env_dropped,
            own_off,
            limits: limits.held.clone(),
            unlimited: limits.missing.clone(),
            gates: config.sandbox.effective_for_gates(),
        }
    }
}

fn plan_run(
    project: &SandboxProject,
    around: &Surroundings,
    config: &IterativeLoopConfig,
    settings: &HostSettings,
    level: SandboxLevel,
    run: ConfinedRun<'_>,
) -> Result<SandboxPlan, HostError> {
    let planned = PlannedRun {
        config: &config.sandbox,
        level,
        purpose: run.purpose,
        agent: run.profile,
        program: run.program,
        profiles: &settings.profiles,
        gates: &config.verify,
        handed: run.handed,
    };
    project.plan(around, &planned).map_err(wrong)
}

/// Which variables that look like keys a run gets all the same.
pub(crate) fn environment_rules(
    settings: &HostSettings,
    profile: Option<&Profile>,
    purpose: RunPurpose,
) -> EnvironmentRules {
    let agent = profile.filter(|_| purpose == RunPurpose::Agent);
    let own = agent.map(|profile| profile.sandbox.env.clone());
    let files = agent.iter().flat_map(|profile| &profile.sandbox.env_files);
    let home = settings.paths.home.as_deref();
    let files = files.filter_map(|file| home_path(file, home));
    let in_files: Vec<String> = files
        .filter_map(|file| fs_err::read_to_string(file).ok())
        .flat_map(|text| named_variables(&text))
        .collect();
    let named = match &settings.pass_env {
        PassEnv::All => Vec::new(),
        PassEnv::Only(names) => names.clone(),
    };
    EnvironmentRules {
        keep: own
            .into_iter()
            .flatten()
            .chain(in_files)
            .chain(named)
            .collect(),
    }
}

/// Takes variables out that stay outside; gives their names.
pub(crate) fn scrub(env: &mut Vec<(OsString, OsString)>, rules: &EnvironmentRules) -> Vec<String> {
    let passes = |name: &OsStr| name.to_str().is_none_or(|name| rules.passes(name));
    let dropped = env.iter().filter(|(name, _)| !passes(name));
    let mut dropped: Vec<String> = dropped
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .collect();
    dropped.sort();
    dropped.dedup();
    env.retain(|(name, _)| passes(name));
    dropped
}

/// Variables that name places which are others inside.
fn inside(plan: &SandboxPlan, env: Vec<(OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let usable = |value: &OsString| {
        let path = Path::new(value);
        match plan.access(path) {
            Access::Writable | Access::Pinned => path.is_dir(),
            // What is in it outside is not there inside.
            Access::Private => plan.paths(Access::Private).any(|private| private == path),
            Access::ReadOnly | Access::Hidden => false,
        }
    };
    let mut out = Vec::with_capacity(env.len());
    for (name, value) in env {
        match name.to_str() {
            Some("TMPDIR" | "TMP" | "TEMP") if !usable(&value) => {}
            Some("XDG_RUNTIME_DIR") => {}
            _ => out.push((name, value)),
        }
    }
    out.push((CONFINED_VARIABLE.into(), plan.level.as_str().into()));
    out
}

/// The project in a directory. Asked before an agent has been there.
pub(crate) fn project_of(settings: &HostSettings, dir: &Path) -> SandboxProject {
    let mut project = SandboxProject::find(dir);
    if let Some(git) = project.git() {
        let there = named_in_tree(settings, git).there.into_iter();
        let locks = there.map(|(path, why)| ExtraLock {
            path,
            why: why.to_owned(),
        });
        project.extra_locks = locks.collect();
    }
    match slot_objects_of(settings, dir, &project) {
        Some(objects) => {
            let project = project.into_slot(objects.folder());
            if let Err(error) = objects.begin(project.slot_branch()) {
                // Without its folders the sandbox cannot be made, and is refused.
                warn!(%error, "the folders of a slot cannot be made");
            }
            project
        }
        None => project,
    }
}

/// The objects of its own that a worktree of a task loop has.
fn slot_objects_of(
    settings: &HostSettings,
    dir: &Path,
    project: &SandboxProject,
) -> Option<SlotObjects> {
    let git = project.git()?;
    let of_ours = dir.starts_with(settings.root.worktrees()) && git.git_dir != git.common_dir;
    of_ours.then(|| SlotObjects::of(&settings.root, &git.top, &git.common_dir))
}

/// What settings of git name besides git's own files: an `include`, hooks or a filter may lie in the work tree.
pub(crate) fn named_in_tree(settings: &HostSettings, git: &GitPlaces) -> NamedInTree {
    let top = &git.top;
    let mut named = NamedInTree::of(git);
    let call = git_of(settings).read(top);
    let call = call.args(["config", "--list", "--show-origin", "--null"]);
    let Ok(output) = call.output(Deadline::after(GIT_TIME)) else {
        return named;
    };
    let text = String::from_utf8_lossy(&output);
    let home = settings.paths.home.as_deref();
    let mut fields = text.split('\0');
    while let (Some(origin), Some(entry)) = (fields.next(), fields.next()) {
        let file = origin.strip_prefix("file:").map(|file| top.join(file));
        let (key, value) = entry.split_once('\n').unwrap_or((entry, "true"));
        // Those of our own call stand in no file.
        if let Some(file) = file {
            named.add(key, value, Some(&file), home);
            named.add_file(file);
        }
    }
    named.there.sort();
    named.there.dedup_by(|a, b| a.0 == b.0);
    named
}

/// A sandbox outside of any loop: to look at, or to try.
#[derive(Debug)]
pub struct TrialSandbox {
    sandbox: LoopSandbox,
    /// What may be written and seen.
    pub plan: SandboxPlan,
    /// Names of variables that are not passed on.
    pub env_dropped: Vec<String>,
    /// What turns off a sandbox of the agent's own.
    pub own_off: Option<String>,
    env: Vec<(OsString, OsString)>,
}

impl TrialSandbox {
    /// Plans and tries the sandbox that a run in `dir` gets. `config` says how far it goes; the agent is
    /// the one of `profile`, whose program is `program`.
    pub fn prepare(
        settings: &HostSettings,
        config: &IterativeLoopConfig,
        dir: &Path,
        purpose: RunPurpose,
        profile: &Profile,
        program: Option<&Path>,
    ) -> Result<Self, HostError> {
        let project = project_of(settings, dir);
        let sandbox = LoopSandbox::prepare(config, settings, project, &[profile])?;
        let sandbox = sandbox.ok_or_else(|| {
            HostError::usage(
                "--sandbox off confines nothing",
                "use --sandbox workspace or --sandbox strict",
            )
        })?;
        let run = ConfinedRun {
            purpose,
            profile: Some(profile),
            program,
            handed: &[],
        };
        let plan = sandbox.plan(config, settings, run)?;
        let mut env: Vec<(OsString, OsString)> = settings.agent_environment().cloned().collect();
        let rules = environment_rules(settings, Some(profile), purpose);
        let env_dropped = scrub(&mut env, &rules);
        Ok(Self {
            sandbox,
            plan,
            env_dropped,
            own_off: agent::build(profile, &[], &choices(config))
                .own_sandbox_off
                .filter(|_| purpose == RunPurpose::Agent),
            env,
        })
    }

    /// Which sandbox it is.
    pub fn summary(&self, config: &IterativeLoopConfig) -> SandboxSummary {
        let dropped = self.env_dropped.clone();
        self.sandbox
            .summary(config, &self.plan, dropped, self.own_off.clone())
    }

    /// A command in it.
    pub fn launch(&self, argv: Vec<OsString>, dir: &Path) -> Result<Launch, HostError> {
        let launch = Launch {
            argv,
            env: self.env.clone(),
            cwd: dir.to_owned(),
            stdin: descartes_proc::Stdin::Null,
            finish: Duration::ZERO,
        };
        self.sandbox.confine(&self.plan, launch)
    }
}
