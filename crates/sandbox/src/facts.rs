//! What a plan needs to know of machine and project: asked of the file system alone, without starting
//! anything.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use descartes_agents::agent::{Profile, Profiles};
use descartes_kernel::gate_files::{
    expand, gate_file_names, is_pattern, program_names, script_names,
};
use descartes_kernel::sandbox::{
    AgentPlaces, CACHE_HOME, ExtraLock, FoundPath, GitPlaces, HomeFolders, OWN_CACHES,
    PlantedInGit, RunPurpose, SandboxConfig, SandboxError, SandboxFacts, SandboxLevel, SandboxPlan,
    apart_caches, home_path, named_hosts, plan, wanted_caches,
};

mod git;

/// What is the same for all runs of a host.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The home directory.
    pub home: Option<PathBuf>,
    /// Where loops are kept.
    pub state_root: PathBuf,
    /// Where sockets of this user are.
    pub runtime_dir: Option<PathBuf>,
    /// This binary.
    pub program: PathBuf,
    /// The environment that programs are started with.
    pub environment: Vec<(OsString, OsString)>,
}

impl Surroundings {
    /// A variable, as text.
    pub fn variable(&self, name: &str) -> Option<String> {
        let mut all = self.environment.iter().rev();
        let (_, value) = all.find(|(key, _)| key == name)?;
        value.to_str().map(str::to_owned)
    }

    /// The PATH.
    pub fn path(&self) -> Option<&OsStr> {
        let mut all = self.environment.iter().rev();
        let (_, value) = all.find(|(key, _)| key == "PATH")?;
        Some(value)
    }
}

/// Where work is done. FoundPath once, before an agent has been there: a `.git` that it makes leads nowhere.
#[derive(Clone, Debug, Default)]
pub struct SandboxProject {
    work_dir: PathBuf,
    git: Option<GitPlaces>,
    slot: Option<SlotOrigin>,
    /// Files that decide which programs the host starts.
    pub extra_locks: Vec<ExtraLock>,
}

impl SandboxProject {
    /// The project around a directory.
    pub fn find(work_dir: &Path) -> Self {
        let work_dir = real(work_dir);
        Self {
            git: git::find(&work_dir),
            work_dir,
            slot: None,
            extra_locks: Vec::new(),
        }
    }

    /// The same without any right in the repository.
    pub fn without_git(self) -> Self {
        Self { git: None, ..self }
    }

    /// Where the work is done.
    pub fn work_dir(&self) -> &Path {
        &self.work_dir
    }

    /// Whether it is a slot of a task loop.
    pub fn is_slot(&self) -> bool {
        self.slot.is_some()
    }

    /// The repository's folders.
    pub fn git(&self) -> Option<&GitPlaces> {
        self.git.as_ref()
    }

    /// Where git would be led to another folder than this repository's: by an agent, since nobody else makes such
    /// a file there.
    pub fn misled(&self) -> Option<PathBuf> {
        let git = self.git.as_ref().filter(|_| self.slot.is_none())?;
        git::misled(&git.common_dir)
    }

    /// Takes that out of git's way; says what was done.
    pub fn put_aside(&self) -> Option<PlantedInGit> {
        git::put_aside(&self.misled()?)
    }

    /// Makes what keeps git from being led elsewhere while agents run, for as long as a loop needs it.
    pub fn hold_git(&self) -> Option<File> {
        let git = self.git.as_ref().filter(|_| self.slot.is_none())?;
        let is_led = git::misled(&git.common_dir).is_some();
        // Where it cannot be made, the first run says why.
        (!is_led).then(|| git::hold(&git.common_dir).ok()).flatten()
    }

    /// Takes away what was made for the time of the runs, unless another loop holds it.
    pub fn tidy_up(&self, held: Option<File>) {
        if let Some(git) = self.git.as_ref().filter(|_| self.slot.is_none()) {
            git::tidy_up(&git.common_dir, held);
        }
    }

    /// The branch of ours that it is on, where it is a slot.
    pub fn slot_branch(&self) -> Option<&str> {
        self.slot.as_ref()?.branch.as_deref()
    }

    /// Makes it a slot of a task loop: of the repository it writes objects of its own, and the branch that it
    /// is on now, where that is one of ours.
    pub fn into_slot(mut self, folder: &Path) -> Self {
        let branch = self.git.as_ref().and_then(|git| git::branch(&git.git_dir));
        self.slot = Some(SlotOrigin {
            branch: branch.filter(|branch| branch.starts_with(OUR_BRANCHES)),
            folder: folder.to_owned(),
        });
        self
    }

    /// Decides what a run in it may write and see. `handed` are files that the program is given.
    pub fn plan(
        &self,
        around: &Surroundings,
        run: &PlannedRun<'_>,
    ) -> Result<SandboxPlan, SandboxError> {
        let look = |path: &Path| look(path);
        let home = around.home.as_deref().map(real);
        let folders = home
            .clone()
            .map(|home| home_folders(home, &variable_path(around)));
        let own_caches = folders
            .as_ref()
            .and_then(|folders| make_caches(folders, around));
        let variable = |name: &str| around.variable(name);
        let places = |profile: &Profile| {
            AgentPlaces::of(&profile.name, &profile.sandbox, home.as_deref(), &variable)
        };
        let own = run.agent.map(|agent| agent.name.as_str());
        let shared = |other: &AgentPlaces, agent: Option<&AgentPlaces>| {
            agent.is_some_and(|agent| agent.write.iter().any(|place| other.write.contains(place)))
        };
        let mut agent = run.agent.map(places);
        if let (Some(agent), Some(profile)) = (&mut agent, run.agent) {
            agent
                .hosts
                .extend(hosts_in_settings(profile, home.as_deref()));
        }
        let others = run
            .profiles
            .iter()
            .filter(|other| Some(&*other.name) != own);
        // A profile made like another has the same folders.
        let others = others
            .map(places)
            .filter(|other| !shared(other, agent.as_ref()));
        let mut git = self.git.clone();
        if let Some(git) = &mut git {
            git.other_work_trees = git::other_work_trees(git);
            git.slot = self.slot.as_ref().map(|slot| git::slot(git, slot));
        }
        let facts = SandboxFacts {
            work_dir: self.work_dir.clone(),
            git,
            state_root: real(&around.state_root),
            runtime_dir: around.runtime_dir.as_deref().map(real),
            program: real(&around.program),
            programs: programs(around, run.program, &self.work_dir, home.as_deref()),
            handed: run.handed.to_vec(),
            extra_locks: self.extra_locks.clone(),
            gate_scripts: gate_scripts(run.gates, &self.work_dir, around),
            other_agents: others.collect(),
            agent,
            home: folders,
            own_caches,
            look: &look,
        };
        plan(&facts, run.config, run.level, run.purpose)
    }
}

/// Scripts that gates name, from where they run: what the commands run as far as they tell, what they name and
/// can be run, and programs of theirs that the PATH leads to inside the work tree.
fn gate_scripts(gates: &[String], work_dir: &Path, around: &Surroundings) -> Vec<String> {
    let variables = |name: &str| around.variable(name);
    let list = |folder: &str| entries(&work_dir.join(folder));
    let scripts = script_names(gates, &variables).into_iter();
    let scripts = scripts.flat_map(|name| match is_pattern(&name) {
        true => expand(&name, &list),
        false => vec![name],
    });
    let named = gate_file_names(gates, &variables).into_iter();
    let named = named.filter(|name| can_be_run(&work_dir.join(name)));
    let folders = around
        .path()
        .map(std::env::split_paths)
        .into_iter()
        .flatten();
    let folders: Vec<PathBuf> = folders
        .map(|folder| work_dir.join(folder))
        .filter(|folder| folder.starts_with(work_dir))
        .collect();
    let programs = program_names(gates, &variables).into_iter();
    let programs = programs.flat_map(|name| {
        let paths = folders.iter().map(|folder| folder.join(&name));
        paths.collect::<Vec<_>>()
    });
    let programs = programs.filter_map(|program| program.into_os_string().into_string().ok());
    let mut all: Vec<String> = scripts.chain(named).chain(programs).collect();
    all.sort();
    all.dedup();
    all
}

/// What is in a folder, and whether it is a folder itself.
fn entries(folder: &Path) -> Vec<(String, bool)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let entries = entries.filter_map(|entry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        Some((entry.file_name().into_string().ok()?, is_folder))
    });
    entries.collect()
}

/// A file that is marked as a program, or whose first line names one that reads it.
fn can_be_run(path: &Path) -> bool {
    let found = path.metadata().ok().filter(std::fs::Metadata::is_file);
    found.is_some_and(|found| {
        let mut first = [0; 2];
        let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut first));
        found.mode() & 0o111 != 0 || (read.is_ok() && first == *b"#!")
    })
}

/// An absolute path that a variable names.
fn variable_path(around: &Surroundings) -> impl Fn(&str) -> Option<PathBuf> {
    |name| {
        let path = around.variable(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    }
}

fn home_folders(home: PathBuf, variable: &dyn Fn(&str) -> Option<PathBuf>) -> HomeFolders {
    let xdg = |name: &str| variable(&format!("XDG_{name}_HOME"));
    HomeFolders {
        home,
        config: xdg("CONFIG"),
        data: xdg("DATA"),
        state: xdg("STATE"),
        cache: xdg("CACHE"),
    }
}

/// Makes what is missing of the caches and of those that sandboxes have in their place; gives the folder of the
/// latter. Where it cannot be made, the sandbox does without.
fn make_caches(folders: &HomeFolders, around: &Surroundings) -> Option<PathBuf> {
    // Of a user without a home it is `/`.
    folders.home.parent()?;
    let path = around.path().unwrap_or_default();
    let has = |tool: &str| std::env::split_paths(path).any(|folder| folder.join(tool).is_file());
    for place in wanted_caches(&has) {
        let _ = std::fs::create_dir_all(folders.place(place));
    }
    let own = folders.place(CACHE_HOME).join(OWN_CACHES);
    for place in apart_caches().filter(|place| folders.place(place).is_dir()) {
        let _ = std::fs::create_dir_all(own.join(place));
    }
    Some(real(&own))
}

/// Hosts of providers that the agent's own settings name. Agents cannot write those.
fn hosts_in_settings(profile: &Profile, home: Option<&Path>) -> Vec<String> {
    let files = profile.sandbox.env_files.iter();
    let files = files.filter_map(|file| home_path(file, home));
    let texts = files.filter_map(|file| std::fs::read_to_string(file).ok());
    texts.flat_map(|text| named_hosts(&text)).collect()
}

/// In the folder of a slot: what is shown in place of the repository's objects, of the refs, and of their
/// logs. Nothing else of that folder is in the agent's reach.
pub const OWN_OBJECTS: &str = "own-objects";
/// See [`OWN_OBJECTS`].
pub const OWN_REFS: &str = "own-refs";
/// See [`OWN_OBJECTS`].
pub const OWN_LOGS: &str = "own-logs";

/// Branches that task loops make.
const OUR_BRANCHES: &str = "descartes/";

/// What a slot has of its own.
#[derive(Clone, Debug)]
struct SlotOrigin {
    branch: Option<String>,
    folder: PathBuf,
}

/// A run to plan for.
#[derive(Clone, Copy, Debug)]
pub struct PlannedRun<'a> {
    /// What the user asked for.
    pub config: &'a SandboxConfig,
    /// How far it is confined.
    pub level: SandboxLevel,
    /// Whom it is for.
    pub purpose: RunPurpose,
    /// The agent; `None` where nothing is known of it.
    pub agent: Option<&'a Profile>,
    /// The agent's program.
    pub program: Option<&'a Path>,
    /// All agents that are known.
    pub profiles: &'a Profiles,
    /// Commands of the gates.
    pub gates: &'a [String],
    /// Files that it is given.
    pub handed: &'a [PathBuf],
}

/// Where a path really is, as far as it is there.
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// What is at a path, behind links.
pub fn look(path: &Path) -> Option<FoundPath> {
    // Most places that are asked for are not there; one call says so, where a real path takes one for each
    // folder above.
    let is_folder = std::fs::metadata(path).ok()?.is_dir();
    let real = std::fs::canonicalize(path).ok()?;
    Some(FoundPath { real, is_folder })
}

/// Folders of the PATH and that of the agent's program, as far as they lie outside of the work tree. Of a program
/// that lies above the work tree or in the home directory itself the file alone: its folder holds all else.
fn programs(
    around: &Surroundings,
    program: Option<&Path>,
    work_dir: &Path,
    home: Option<&Path>,
) -> Vec<PathBuf> {
    let holds_all = |folder: &Path| {
        work_dir.starts_with(folder) || home.is_some_and(|home| home.starts_with(folder))
    };
    let folders = around.path().map(|path| std::env::split_paths(path));
    let folders = folders
        .into_iter()
        .flatten()
        .filter(|dir| dir.is_absolute());
    let own = program.map(real).map(|program| {
        let root = program_root(&program);
        match holds_all(&root) {
            true => program,
            false => root,
        }
    });
    let all = folders.map(|folder| real(&folder)).chain(own);
    let mut all: Vec<PathBuf> = all
        .filter(|folder| folder.parent().is_some() && !holds_all(folder))
        .filter(|folder| !folder.starts_with(work_dir))
        .collect();
    all.sort();
    all.dedup();
    all
}

/// The folder in which a program finds its own parts.
fn program_root(program: &Path) -> PathBuf {
    let mut above = program.ancestors();
    let modules = above.find(|folder| folder.ends_with("node_modules"));
    let folder = modules.or_else(|| program.parent());
    folder.unwrap_or(program).to_owned()
}
