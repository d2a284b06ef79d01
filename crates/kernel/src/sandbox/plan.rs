//! The policy: what is writable, readable, hidden and locked, and why.

mod agent;
mod git;
mod refuse;
mod rules;

use std::path::{Path, PathBuf};

use descartes_text::sandbox_level::SandboxLevel;

use super::caches::{APART, APART_WHY, CACHE_HOME, INSTALLED, SHARED};
use super::config::SandboxConfig;
use super::places::{
    HomeFolders, KEPT_IN_RUN, PRIVATE, SOCKETS, TOOLCHAINS, TREE_SETTINGS, home_path,
};
use super::secrets::SECRETS;
pub(super) use refuse::SYSTEM;
pub(super) use rules::RuleKind;
use rules::{PathRules, Priority};

pub use agent::{AgentPlaces, EntryKind, hosts_of, named_hosts};
pub use git::{GitPlaces, SHARED_OBJECTS, SlotGit};
pub use refuse::SandboxError;
pub use rules::{Access, PathRule, RuleReason};

/// What is found at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPath {
    /// Where it really is: no part of it is a link.
    pub real: PathBuf,
    pub is_folder: bool,
}

/// Whom a sandbox is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPurpose {
    /// The agent, with its own logins.
    Agent,
    /// A gate, without any.
    Gate,
}

/// What is reachable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// The machine's network.
    Host,
    /// A loopback of its own and nothing else.
    Loopback,
    /// These hosts, through a proxy of ours.
    Hosts(Vec<String>),
}

/// What is known of machine, project and agent. All paths are real: no part of them is a link.
pub struct SandboxFacts<'a> {
    /// The directory that the agent is started in.
    pub work_dir: PathBuf,
    pub git: Option<GitPlaces>,
    pub home: Option<HomeFolders>,
    /// What sandboxes have in place of the user's caches.
    pub own_caches: Option<PathBuf>,
    /// Where loops are kept.
    pub state_root: PathBuf,
    /// Where sockets of this user are.
    pub runtime_dir: Option<PathBuf>,
    /// This program.
    pub program: PathBuf,
    /// Programs that are started inside, and folders of the PATH.
    pub programs: Vec<PathBuf>,
    /// Files that the agent is handed, below the state root.
    pub handed: Vec<PathBuf>,
    /// Further files in reach of the agent that decide which programs the host starts.
    pub extra_locks: Vec<ExtraLock>,
    /// Scripts that the gates run, relative to `work_dir`.
    pub gate_scripts: Vec<String>,
    /// The agent's own folders; `None` where nothing is known of them.
    pub agent: Option<AgentPlaces>,
    /// Those of all other agents that are known.
    pub other_agents: Vec<AgentPlaces>,
    /// What is at a path, if anything is.
    pub look: &'a dyn Fn(&Path) -> Option<FoundPath>,
}

/// A file to lock, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraLock {
    pub path: PathBuf,
    pub why: String,
}

/// What has to be there before the sandbox is entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Make {
    Folder(PathBuf),
    File(PathBuf, String),
}

/// What is writable, readable, hidden and locked. What no rule names is read-only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxPlan {
    pub level: SandboxLevel,
    pub purpose: RunPurpose,
    /// Folders before what is in them: the last rule above a path holds for it.
    pub rules: Vec<PathRule>,
    /// Rules that change nothing where they stand, but say what must not be opened.
    pub silent: Vec<PathRule>,
    pub network: Network,
    pub work_dir: PathBuf,
    /// What is missing and has to be made first.
    pub make: Vec<Make>,
    /// Hidden by being in a private folder: without a view of its own it has to be shut by itself.
    pub in_private: Vec<PathBuf>,
    /// The folder that is seen in place of the user's caches.
    pub cache_home: Option<PathBuf>,
}

impl SandboxPlan {
    /// What holds for a path.
    pub fn access(&self, path: &Path) -> Access {
        rules::access(&self.rules, path)
    }

    /// What that follows from, where it is not the default.
    pub(super) fn rule(&self, path: &Path) -> Option<&PathRule> {
        let above = |rule: &&PathRule| path.starts_with(&rule.path);
        let rules = self.every_rule().filter(above);
        rules.max_by_key(|rule| rule.path.components().count())
    }

    pub(super) fn every_rule(&self) -> impl Iterator<Item = &PathRule> {
        self.silent.iter().chain(&self.rules)
    }

    /// Paths with this access.
    pub fn paths(&self, access: Access) -> impl Iterator<Item = &Path> {
        let rules = self.rules.iter().filter(move |rule| rule.access == access);
        rules.map(|rule| rule.path.as_path())
    }
}

/// Decides what a run may write and see.
pub fn plan(
    facts: &SandboxFacts<'_>,
    config: &SandboxConfig,
    level: SandboxLevel,
    purpose: RunPurpose,
) -> Result<SandboxPlan, SandboxError> {
    let mut planning = Planning {
        facts,
        config,
        rules: PathRules::default(),
        make: Vec::new(),
    };
    let tree = refuse::work_tree(facts)?;
    planning.machine();
    planning.home(level);
    planning.agents(purpose);
    planning.caches(level);
    planning.work_tree(&tree);
    if let Some(git) = &facts.git {
        planning.git(git);
    }
    planning.locks(&tree);
    planning.asked_for()?;
    planning.own_state();
    let (rules, silent, in_private) = planning.rules.finish(&tree);
    let caches = facts.home.as_ref().map(|home| home.place(CACHE_HOME));
    let caches = caches.and_then(|caches| (facts.look)(&caches));
    let caches = caches.and_then(|caches| rules.iter().find(|rule| rule.path == caches.real));
    let cache_home = caches.and_then(|rule| rule.source.clone());
    Ok(SandboxPlan {
        level,
        purpose,
        rules,
        silent,
        network: network(facts, config, level, purpose),
        work_dir: facts.work_dir.clone(),
        make: planning.make,
        in_private,
        cache_home,
    })
}

fn network(
    facts: &SandboxFacts<'_>,
    config: &SandboxConfig,
    level: SandboxLevel,
    purpose: RunPurpose,
) -> Network {
    match (purpose, level, config.gate_network) {
        (RunPurpose::Gate, _, Some(true)) => Network::Host,
        (RunPurpose::Gate, _, Some(false)) | (RunPurpose::Gate, SandboxLevel::Strict, None) => {
            Network::Loopback
        }
        (RunPurpose::Agent, SandboxLevel::Strict, _) => {
            let agent = facts.agent.as_ref();
            Network::Hosts(agent.map(|agent| agent.hosts.clone()).unwrap_or_default())
        }
        _ => Network::Host,
    }
}

struct Planning<'a> {
    facts: &'a SandboxFacts<'a>,
    config: &'a SandboxConfig,
    rules: PathRules,
    make: Vec<Make>,
}

impl Planning<'_> {
    fn look(&self, path: &Path) -> Option<FoundPath> {
        (self.facts.look)(path)
    }

    fn set(
        &mut self,
        found: &FoundPath,
        access: Access,
        why: impl Into<RuleReason>,
        priority: Priority,
    ) {
        self.rules
            .set(&found.real, found.is_folder, access, why, priority);
    }

    /// The same for a path that may be missing.
    fn set_if_there(
        &mut self,
        path: &Path,
        access: Access,
        why: impl Into<RuleReason>,
        priority: Priority,
    ) {
        if let Some(found) = self.look(path) {
            self.set(&found, access, why, priority);
        }
    }

    /// What is there, or is made before the sandbox is entered.
    fn look_or_make(&mut self, make: Make) -> FoundPath {
        let (path, is_folder) = match &make {
            Make::Folder(path) => (path.clone(), true),
            Make::File(path, _) => (path.clone(), false),
        };
        if let Some(found) = self.look(&path) {
            return found;
        }
        // Below a link the new one lies where the link leads.
        let parent = path.parent().and_then(|parent| self.look(parent));
        let real = match (parent, path.file_name()) {
            (Some(parent), Some(name)) => parent.real.join(name),
            _ => path,
        };
        self.make.push(make);
        FoundPath { real, is_folder }
    }

    fn machine(&mut self) {
        for place in PRIVATE {
            let why = "temporary files: private, thrown away after each run";
            self.set_if_there(Path::new(place), Access::Private, why, Priority::Machine);
        }
        for place in SOCKETS {
            let why = "sockets of services such as docker and the session bus";
            self.set_if_there(Path::new(place), Access::Hidden, why, Priority::Machine);
        }
        for place in KEPT_IN_RUN {
            self.set_if_there(
                Path::new(place),
                Access::ReadOnly,
                "names of hosts and programs of the system",
                Priority::Kept,
            );
        }
        if let Some(runtime) = &self.facts.runtime_dir {
            let why = "sockets of this user";
            self.set_if_there(runtime, Access::Hidden, why, Priority::Machine);
        }
    }

    fn home(&mut self, level: SandboxLevel) {
        let Some(folders) = self.facts.home.clone() else {
            return;
        };
        let home = &folders.home;
        let (access, why) = match level {
            // Of a user without a home it is `/`, as in containers: then all programs would be hidden.
            SandboxLevel::Strict if home.parent().is_some() => (
                Access::Private,
                "your home directory is hidden in `strict`: what is written is thrown away",
            ),
            _ => (Access::ReadOnly, "your home directory"),
        };
        self.set_if_there(home, access, why, Priority::Kept);
        if level == SandboxLevel::Strict {
            for place in TOOLCHAINS {
                let why = "toolchains and the settings of git";
                self.set_if_there(&home.join(place), Access::ReadOnly, why, Priority::Kept);
            }
        }
        for place in folders.all(SECRETS) {
            self.set_if_there(&place, Access::Hidden, RuleReason::SECRET, Priority::Secret);
        }
        for program in self.facts.programs.clone() {
            let why = RuleReason::PROGRAM;
            self.set_if_there(&program, Access::ReadOnly, why, Priority::Kept);
        }
        let program = self.facts.program.clone();
        self.set_if_there(&program, Access::ReadOnly, RuleReason::SELF, Priority::Kept);
    }

    fn caches(&mut self, level: SandboxLevel) {
        let folders = self.facts.home.clone();
        let home = folders.as_ref().map(|folders| folders.home.as_path());
        let asked = self.config.caches.as_ref().map(|asked| {
            let asked = asked.iter().filter_map(|cache| home_path(cache, home));
            asked.collect::<Vec<_>>()
        });
        let Some(folders) = &folders else {
            return self.share(asked.unwrap_or_default());
        };
        for cache in APART {
            let path = folders.place(cache.place);
            let is_asked = |asked: &PathBuf| path.starts_with(asked);
            if !asked.iter().flatten().any(is_asked) {
                self.set_apart(cache.place, &path, level);
            }
        }
        let known = SHARED.iter().map(|cache| folders.place(cache.place));
        self.share(asked.unwrap_or_else(|| known.collect()));
        for place in folders.all(INSTALLED) {
            let why = "programs and data that were installed once";
            self.set_if_there(&place, Access::ReadOnly, why, Priority::Lock);
        }
    }

    fn share(&mut self, caches: Vec<PathBuf>) {
        for path in caches {
            let why = "a cache (sandbox_caches)";
            self.set_if_there(&path, Access::Writable, why, Priority::Writable);
        }
    }

    /// Keeps what is written in a cache from its user.
    fn set_apart(&mut self, place: &str, path: &Path, level: SandboxLevel) {
        let Some(found) = self.look(path) else {
            return;
        };
        let own = self.facts.own_caches.as_ref();
        let own = own.and_then(|own| self.look(&own.join(place)));
        match (level, own) {
            // Nothing new comes without a network: what is there is of use.
            (SandboxLevel::Strict, _) if place != CACHE_HOME => {
                let why = "what was downloaded";
                self.set(&found, Access::ReadOnly, why, Priority::Writable);
            }
            (SandboxLevel::Workspace, Some(own)) => {
                self.rules.show_apart(&found.real, &own.real, APART_WHY);
            }
            _ => {
                let why = "a cache: what is written is thrown away";
                self.set(&found, Access::Private, why, Priority::Writable);
            }
        }
    }

    fn work_tree(&mut self, tree: &Path) {
        let found = FoundPath {
            real: tree.to_owned(),
            is_folder: true,
        };
        self.set(&found, Access::Writable, "the work tree", Priority::Tree);
        for file in self.facts.handed.clone() {
            let why = "the prompt";
            self.set_if_there(&file, Access::ReadOnly, why, Priority::Fixed);
        }
    }

    /// What is read-only inside the work tree: only what is there, since a stub would break `git add`.
    fn locks(&mut self, tree: &Path) {
        let dir = self.facts.work_dir.clone();
        for script in self.facts.gate_scripts.clone() {
            self.lock(&dir.join(script), "a script that a gate runs", tree);
        }
        for place in TREE_SETTINGS {
            let why = "settings that start programs in your next session";
            self.lock(&tree.join(place), why, tree);
            if dir != tree {
                self.lock(&dir.join(place), why, tree);
            }
        }
        for lock in self.facts.extra_locks.clone() {
            self.lock(&lock.path, lock.why, tree);
        }
        for folder in [tree, dir.as_path()] {
            let why = RuleReason::STATE;
            let place = folder.join(".descartes");
            self.set_if_there(&place, Access::ReadOnly, why, Priority::Fixed);
        }
        let program = self.facts.program.clone();
        if program.starts_with(tree) {
            let why = RuleReason::SELF;
            self.set_if_there(&program, Access::ReadOnly, why, Priority::Fixed);
        }
    }

    /// Locks a path in the work tree, unless the user frees it or something above it.
    fn lock(&mut self, path: &Path, why: impl Into<RuleReason>, tree: &Path) {
        let Some(found) = self.look(path).filter(|found| found.real.starts_with(tree)) else {
            return;
        };
        let freed = |given: &PathBuf| {
            let given = self.look(given).map(|given| given.real);
            given.is_some_and(|given| found.real.starts_with(&given) && given != tree)
        };
        if !self.config.write.iter().any(freed) {
            self.set(&found, Access::ReadOnly, why, Priority::Lock);
        }
    }

    fn asked_for(&mut self) -> Result<(), SandboxError> {
        for path in &self.config.write {
            let found = refuse::write(self.facts, path)?;
            self.set(&found, Access::Writable, "--sandbox-write", Priority::Asked);
            self.lock_programs_below(&found.real);
        }
        for path in &self.config.read {
            let found = refuse::read(self.facts, path)?;
            self.set(&found, Access::ReadOnly, "--sandbox-read", Priority::Asked);
        }
        for path in &self.config.hide {
            let found = refuse::hide(self.facts, path)?;
            self.set(&found, Access::Hidden, RuleReason::HIDE, Priority::Asked);
        }
        Ok(())
    }

    /// Programs that gates and the user start stay as they are, whatever is granted above them.
    fn lock_programs_below(&mut self, granted: &Path) {
        for program in self.facts.programs.clone() {
            if program.starts_with(granted) && !program.starts_with(&self.facts.work_dir) {
                let why = RuleReason::PROGRAM;
                self.set_if_there(&program, Access::ReadOnly, why, Priority::Fixed);
            }
        }
    }

    fn own_state(&mut self) {
        let root = self.facts.state_root.clone();
        let why = RuleReason::JOURNALS;
        self.set_if_there(&root, Access::Hidden, why, Priority::Fixed);
    }
}

#[cfg(test)]
mod tests;
