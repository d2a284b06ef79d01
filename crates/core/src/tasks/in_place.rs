//! Work in the user's own tree: one task at a time, and the only way without git.
//!
//! What a task proved is kept in a snapshot at once, since it is in no commit before its wave is
//! over: where a later agent takes it back, it is put back, and all gates are asked again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use descartes_agents::agent::GENERIC;
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::sandbox::SandboxConfig;
use descartes_kernel::sched::{CommitEnd, MergeEnd};
use descartes_kernel::tasks::{
    Landing, ProvenAt, ProvenStep, ProvenTree, TaskMarks, TasksConfig, WayBack, WorkBase,
    other_branch,
};
use descartes_proc::Ending;

use super::git::path_of;
use super::git_error::GitError;
use super::left_by_gates::LeftByGates;
use super::locks::{Locks, Ours, Passed, named_in};
use super::place::{
    Finished, Fresh, GateFailure, Gates, MergeDone, Proven, Ready, Wave, WaveDone, Work, Workplace,
};
use super::proven_files::{ProvenFiles, TakenBack};
use super::shared_settings::SharedSettings;
use crate::host::confined_git::HowSigned;
use crate::host::confined_programs::with_confined_programs;
use crate::host::sandbox::{LoopSandbox, project_of};
use crate::host::{HostError, HostSettings, git_of};
use crate::worktree::deadline::Deadline;
use crate::worktree::git::confined::ConfinedGit;
use crate::worktree::git::guards::Manner;
use crate::worktree::pipes::pipe_in;
use crate::worktree::{CommitOutcome, Git, Head, Tree, TreeKind, TreeOptions, WorktreeError};

pub(super) const WORK_TREE_TIMEOUT: Duration = Duration::from_secs(120);
/// Between asking a git to end and killing it.
const GRACE: Duration = Duration::from_secs(5);

/// The user's own tree.
#[derive(Debug)]
pub(super) struct InPlace {
    dir: PathBuf,
    objects: PathBuf,
    shielded: Vec<PathBuf>,
    tag: String,
    commits: bool,
    git: Git,
    settings: HostSettings,
    /// What confines git of ours here: the strictest of all tasks.
    confined: Arc<Mutex<IterativeLoopConfig>>,
    /// How the user's commits are signed, by the settings of before the first agent.
    signing: OnceLock<HowSigned>,
    locks: Locks,
    /// The branch that the loop began on; `None` while that is unknown.
    branch: Mutex<Option<Option<String>>>,
    /// What was proven and is in no commit yet.
    proven: Mutex<ProvenFiles>,
    /// The folder of the loop.
    folder: Mutex<PathBuf>,
    /// Settings of the repository, as the loop found them.
    shared: OnceLock<SharedSettings>,
    /// What gates left and no agent touched since: it is in no commit.
    left_by_gates: Mutex<LeftByGates>,
    /// Whether a host before this one may have died between the gates and the record of them.
    taken_up: AtomicBool,
}

impl InPlace {
    /// The tree around `dir`. It must be clean, save for the files of the tasks themselves: what
    /// is committed later is the agents' work and nothing else.
    pub(super) fn open(
        dir: &Path,
        objects: PathBuf,
        shielded: Vec<PathBuf>,
        config: &TasksConfig,
        whole: &IterativeLoopConfig,
        settings: &HostSettings,
        fresh: Fresh,
    ) -> Result<Self, HostError> {
        let confined = Arc::new(Mutex::new(whole.clone()));
        let git = with_confined_programs(git_of(settings), settings, Arc::clone(&confined));
        let tree = open_tree(dir, &objects, &shielded, &git);
        let place = Self {
            dir: dir.to_owned(),
            objects,
            shielded,
            tag: config.source.tag(),
            commits: config.auto_commit_waves,
            git,
            settings: settings.clone(),
            confined,
            signing: OnceLock::new(),
            locks: Locks::new(Ours::default()),
            branch: Mutex::default(),
            proven: Mutex::new(ProvenFiles::new(tree)),
            folder: Mutex::default(),
            shared: OnceLock::new(),
            left_by_gates: Mutex::default(),
            taken_up: AtomicBool::new(fresh == Fresh::No),
        };
        if fresh == Fresh::Yes && place.is_git() {
            place.refuse_dirty()?;
        }
        Ok(place)
    }

    fn left_by_gates(&self) -> MutexGuard<'_, LeftByGates> {
        self.left_by_gates
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Changed files as a whole, with the top of the work tree.
    fn changed_now(&self) -> Result<(PathBuf, BTreeSet<PathBuf>), GitError> {
        let asked = self.git.read(&self.dir);
        let asked = asked.args(["rev-parse", "--show-toplevel"]);
        let top = path_of(&asked.output(Deadline::after(WORK_TREE_TIMEOUT))?);
        let files = changed_files(&self.git, &self.dir, &self.shielded)?;
        Ok((top, files.into_iter().map(PathBuf::from).collect()))
    }

    fn tell_unknown_work(&self, work: &Work, error: &GitError) {
        self.locks.tell(format!(
            "task {}: cannot tell the work of its agent from what gates leave: {error}",
            work.id
        ));
    }

    fn tree(&self) -> Tree {
        open_tree(&self.dir, &self.objects, &self.shielded, &self.git)
    }

    fn proven(&self) -> MutexGuard<'_, ProvenFiles> {
        self.proven.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn branch(&self) -> MutexGuard<'_, Option<Option<String>>> {
        self.branch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the wave cannot be committed onto what is checked out now.
    fn not_here(&self, tree: &Tree) -> Result<Option<String>, String> {
        let Some(target) = self.branch().clone() else {
            return Ok(None);
        };
        let now = checked_out(tree)?;
        if target == now {
            return Ok(None);
        }
        let way = match &target {
            Some(branch) => self.way_to(branch),
            None => WayBack::Checkout,
        };
        Ok(other_branch(target.as_deref(), now.as_deref(), way))
    }

    fn way_to(&self, branch: &str) -> WayBack {
        let name = format!("refs/heads/{branch}");
        let works = |args: &[&str]| {
            let asked = self.git.read(&self.dir).args(args);
            asked.output(Deadline::after(WORK_TREE_TIMEOUT)).is_ok()
        };
        if !works(&["rev-parse", "--verify", "--quiet", &name]) {
            return WayBack::Gone;
        }
        match works(&["read-tree", "--dry-run", "-m", "-u", "HEAD", &name]) {
            true => WayBack::Checkout,
            false => WayBack::StashFirst,
        }
    }

    /// Proven work that was taken back; it is put back, and that is said.
    fn restore(&self, by: Option<&Work>) -> Option<TakenBack> {
        let taken = match self.proven().restore(by) {
            Ok(taken) => taken?,
            Err(reason) => {
                self.unknown(&reason);
                return None;
            }
        };
        self.locks.tell(taken.describe(&who(by)));
        Some(taken)
    }

    fn unknown(&self, reason: &str) {
        self.locks.tell(format!(
            "cannot determine whether finished work that is not committed yet is still there: \
             {reason}"
        ));
    }

    /// Asks all gates again where proven work was taken back.
    fn prove_again(
        &self,
        taken: &TakenBack,
        by: Option<&Work>,
        gates: Gates<'_>,
    ) -> Result<(), GateFailure> {
        let tail = match gates.run_whole(&self.dir) {
            Err(GateFailure::Red(tail)) => tail,
            other => return other,
        };
        if let Err(reason) = self.proven().restore_rest(taken) {
            self.unknown(&reason);
        }
        let words = taken.describe(&who(by));
        Err(GateFailure::Red(format!("{words}\n{tail}")))
    }

    /// Commits, again and again while a lock is in the way.
    fn commit(&self, tree: &Tree, message: &str) -> CommitOutcome {
        loop {
            let confined = match self.confined_git() {
                Ok(confined) => confined,
                Err(error) => {
                    let message = format!("git cannot be confined: {error}");
                    return CommitOutcome::Failed { message };
                }
            };
            let outcome = tree.commit_job(message).confined(confined).run();
            let CommitOutcome::Failed { message } = &outcome else {
                return outcome;
            };
            let Some(lock) = named_in(message, &self.dir) else {
                return outcome;
            };
            if let Passed::Stays(message) = self.locks.pass(&lock) {
                self.locks.give_up(&message);
                return CommitOutcome::Failed { message };
            }
        }
    }

    fn config(&self) -> IterativeLoopConfig {
        let config = self.confined.lock();
        config.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What gits of ours run in that agents could make start programs; `None` where nothing is confined.
    fn sandbox(&self) -> Result<Option<LoopSandbox>, HostError> {
        let config = self.config();
        let generic = self.settings.profiles.get(GENERIC);
        let project = project_of(&self.settings, &self.dir);
        let profiles: Vec<_> = generic.into_iter().collect();
        LoopSandbox::prepare(&config, &self.settings, project, &profiles)
    }

    fn confined_git(&self) -> Result<Option<Arc<ConfinedGit>>, HostError> {
        let signing = self.signing.get().cloned().flatten();
        match self.sandbox()? {
            None => Ok(None),
            Some(sandbox) => sandbox.confined_git(&self.config(), &self.settings, None, signing),
        }
    }

    /// Asks how the user signs, before the first agent.
    fn take_signing(&self) {
        let folder = self.folder.lock();
        let folder = folder
            .unwrap_or_else(PoisonError::into_inner)
            .join("signing.git");
        let ask = || match self.sandbox() {
            Ok(sandbox) => sandbox?.signing(&self.config(), &self.settings, None, &folder),
            Err(error) => Some(Err(error.to_string())),
        };
        if self.commits {
            self.signing.get_or_init(ask);
        }
    }

    fn is_git(&self) -> bool {
        matches!(self.tree().kind(), TreeKind::Git { .. })
    }

    fn refuse_dirty(&self) -> Result<(), HostError> {
        let changes = changed_files(&self.git, &self.dir, &self.shielded)
            .map_err(|message| HostError::refused(format!("cannot query git: {message}"), ""))?;
        match changes.first() {
            None => Ok(()),
            Some(first) => Err(HostError::refused(
                format!("--in-place needs a clean work tree, but {first} has uncommitted changes"),
                "commit them, or omit --in-place to work in worktrees",
            )),
        }
    }
}

fn open_tree(dir: &Path, objects: &Path, shielded: &[PathBuf], git: &Git) -> Tree {
    let options = TreeOptions {
        apart: shielded.to_vec(),
        git: git.clone(),
        ..TreeOptions::default()
    };
    Tree::open_with(dir, objects, options)
}

fn who(by: Option<&Work>) -> String {
    by.map_or_else(|| "someone".to_owned(), |work| format!("task {}", work.id))
}

/// The branch that is checked out; none where HEAD is at a commit.
fn checked_out(tree: &Tree) -> Result<Option<String>, String> {
    match tree.state().map_err(|error| error.to_string())?.head {
        Head::Branch { name, .. } | Head::Unborn { name } => Ok(Some(name)),
        Head::Detached { .. } => Ok(None),
        Head::Unreadable => Err("HEAD of the repository cannot be read".to_owned()),
    }
}

/// Changed and untracked files, save those under the given paths and `.descartes`.
pub(super) fn changed_files(
    git: &Git,
    dir: &Path,
    apart: &[PathBuf],
) -> Result<Vec<String>, WorktreeError> {
    let top = git
        .read(dir)
        .args(["rev-parse", "--show-toplevel"])
        .output(Deadline::after(WORK_TREE_TIMEOUT))?;
    let top = path_of(&top);
    if let Some(message) = pipe_in(&top) {
        return Err(WorktreeError::Git {
            verb: "status".to_owned(),
            code: None,
            message,
        });
    }
    let asked = git
        .read(dir)
        .args([
            "status",
            "--porcelain",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            // What a repository inside has changed is in no commit of this one, and git would start another git
            // there, with settings that an agent may have left.
            "--ignore-submodules=dirty",
        ])
        .guarded(Manner::End)
        .output(Deadline::after(WORK_TREE_TIMEOUT))?;
    let text = String::from_utf8_lossy(&asked);
    let theirs = |name: &&str| {
        let path = top.join(name);
        let own = path
            .components()
            .any(|part| part.as_os_str() == ".descartes");
        !own && !apart.iter().any(|apart| path.starts_with(apart))
    };
    let names = text.split('\0').filter_map(|entry| entry.get(3..));
    Ok(names.filter(theirs).map(str::to_owned).collect())
}

impl Workplace for InPlace {
    fn locks(&self) -> Option<&Locks> {
        Some(&self.locks)
    }

    fn stop(&self) {
        self.locks.hurry();
        self.git.end_calls(Ending::Ask { grace: GRACE });
    }

    fn kill(&self) {
        self.locks.hurry();
        self.git.end_calls(Ending::Kill);
    }

    fn keep_in(&self, folder: &Path) {
        let objects = folder.join("tasks").join("proven");
        let tree = open_tree(&self.dir, &objects, &self.shielded, &self.git);
        *self.proven() = ProvenFiles::new(tree);
        *self.folder.lock().unwrap_or_else(PoisonError::into_inner) = folder.join("tasks");
        if let Err(error) = self.left_by_gates().keep_in(&folder.join("tasks")) {
            let message = format!("cannot tell what gates left: {error}");
            self.locks.tell(message);
        }
    }

    fn confine_as(&self, sandbox: &SandboxConfig) {
        let config = self.confined.lock();
        let mut config = config.unwrap_or_else(PoisonError::into_inner);
        config.sandbox.ask_as(sandbox);
    }

    fn land_on(&self, branch: &str) {
        *self.branch() = Some(Some(branch.to_owned()));
    }

    fn begin(&self, fresh: Fresh, _: u32) -> Result<Option<Landing>, GitError> {
        self.note_settings(fresh);
        self.take_signing();
        if let Err(reason) = self.proven().begin() {
            self.unknown(&reason);
        }
        let tree = self.tree();
        if self.branch().is_none() && matches!(tree.kind(), TreeKind::Git { .. }) {
            let now = checked_out(&tree).map_err(GitError::Refused)?;
            *self.branch() = Some(now);
        }
        Ok(None)
    }

    fn recall(&self, base: &WorkBase, steps: &[ProvenStep]) {
        *self.branch() = Some(base.target.clone());
        self.proven().recall(base, steps);
    }

    fn base(&self) -> Option<WorkBase> {
        let target = self.branch().clone()?;
        let (tree, last) = self.proven().record();
        Some(WorkBase {
            target,
            commit: None,
            merged: None,
            tree: Some(tree.unwrap_or_default()),
            last,
        })
    }

    fn prepare(&self, _: u32, _: &Work) -> Result<Ready, GitError> {
        Ok(Ready {
            dir: self.dir.clone(),
            note: None,
        })
    }

    fn agent_ended(&self, _: u32, work: &Work) {
        if !self.is_git() {
            return;
        }
        let noted = self.changed_now().and_then(|(top, files)| {
            let mut left = self.left_by_gates();
            left.agent_ended(&top, files).map_err(GitError::from)
        });
        if let Err(error) = noted {
            self.tell_unknown_work(work, &error);
        }
    }

    fn finish(&self, _: u32, work: &Work, proven: Proven) -> Result<Finished, GitError> {
        self.tell_settings();
        if self.left_by_gates().is_open() {
            let noted = self.changed_now().and_then(|(top, files)| {
                let mut left = self.left_by_gates();
                left.gates_ended(&top, files).map_err(GitError::from)
            });
            match noted {
                Ok(new) if new.is_empty() => {}
                Ok(new) => self.locks.tell(format!(
                    "left by gates, and not committed: {}",
                    new.join(", ")
                )),
                Err(error) => self.tell_unknown_work(work, &error),
            }
        }
        // What was proven is looked at when it is merged.
        if proven == Proven::No {
            drop(self.restore(Some(work)));
        }
        Ok(Finished::Safe)
    }

    fn merge(&self, work: &Work, gates: Gates<'_>, _: &TaskMarks) -> MergeDone {
        let taken = self.restore(Some(work));
        let was_taken_up = self.taken_up.swap(false, Ordering::Relaxed);
        let proof = match &taken {
            Some(taken) => self.prove_again(taken, Some(work), gates),
            None if was_taken_up => gates.run(&self.dir),
            None => Ok(()),
        };
        let end = match proof {
            Ok(()) if gates.is_stopped() => MergeEnd::Interrupted,
            Ok(()) => MergeEnd::Merged,
            Err(GateFailure::Red(tail)) => MergeEnd::Red { tail },
            Err(GateFailure::Stopped) => MergeEnd::Interrupted,
        };
        if end != MergeEnd::Merged {
            return MergeDone {
                end,
                landing: None,
                proven: Vec::new(),
            };
        }
        if let Err(reason) = self.proven().proven(&work.id) {
            self.unknown(&reason);
        }
        // The gates were green on this very tree, where the agent worked: the record says so.
        let proof = ProvenTree {
            tree: String::new(),
            gates: gates.commands().to_vec(),
            place: ProvenAt::InPlace,
            tasks: vec![work.id.clone()],
            caches: Vec::new(),
        };
        let proven = (!proof.gates.is_empty()).then_some(proof);
        MergeDone {
            end,
            landing: None,
            proven: proven.into_iter().collect(),
        }
    }

    fn gate_merged(&self, gates: Gates<'_>) -> Result<Result<(), GateFailure>, GitError> {
        Ok(gates.run(&self.dir))
    }

    fn commit_wave(&self, wave: &Wave, gates: Gates<'_>, _: &TaskMarks) -> WaveDone {
        WaveDone {
            end: self.try_to_commit(wave, gates),
            landing: None,
            proven: Vec::new(),
        }
    }
}

impl InPlace {
    fn try_to_commit(&self, wave: &Wave, gates: Gates<'_>) -> CommitEnd {
        let tree = self.tree();
        let is_git = self.branch().is_some();
        let settings = self.shared.get().map(SharedSettings::changes);
        let unusable = match (settings.unwrap_or_default().into_iter().next(), tree.kind()) {
            (Some(message), _) => Some(message),
            (None, TreeKind::Plain { why }) => {
                Some(format!("git can no longer be used here: {why}"))
            }
            (None, TreeKind::Git { .. }) => None,
        };
        if let Some(message) = unusable.filter(|_| is_git) {
            return CommitEnd::Failed { message };
        }
        let commits = self.commits && is_git;
        let elsewhere = match commits {
            true => self.not_here(&tree),
            false => Ok(None),
        };
        if let Some(message) = elsewhere.unwrap_or_else(Some) {
            return CommitEnd::Failed { message };
        }
        if let Some(taken) = self.restore(None).filter(|taken| !taken.is_whole()) {
            match self.prove_again(&taken, None, gates) {
                Ok(()) => {}
                Err(GateFailure::Red(message)) => {
                    // Who resumes the loop has been told, and wants it as it is then.
                    self.forget_proven();
                    return CommitEnd::Failed { message };
                }
                Err(GateFailure::Stopped) => {
                    let message = "the gates were stopped".to_owned();
                    return CommitEnd::Failed { message };
                }
            }
        }
        if !commits {
            return CommitEnd::Committed { commit: None };
        }
        let apart = self.left_by_gates().paths();
        let apart = [&self.shielded[..], &apart].concat();
        let without = open_tree(&self.dir, &self.objects, &apart, &self.git);
        let commit = match self.commit(&without, &wave.message(&self.tag)) {
            CommitOutcome::Made { hash } => Some(hash),
            CommitOutcome::Nothing => None,
            CommitOutcome::Failed { message } => return CommitEnd::Failed { message },
        };
        self.forget_proven();
        CommitEnd::Committed { commit }
    }

    /// Writes down the settings that keep git from working.
    fn note_settings(&self, fresh: Fresh) {
        let asked = self.git.read(&self.dir).args(["rev-parse"]);
        let asked = asked.args(["--path-format=absolute", "--git-common-dir"]);
        let Ok(common) = asked.output(Deadline::after(WORK_TREE_TIMEOUT)) else {
            return;
        };
        let folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        drop(fs_err::create_dir_all(&*folder));
        let (git, note) = (self.git.clone(), folder.join("shared-settings"));
        let begin = || SharedSettings::begin(git, &path_of(&common), &note, fresh == Fresh::Yes);
        self.shared.get_or_init(begin);
    }

    /// Says which of them are others now.
    fn tell_settings(&self) {
        let news = self.shared.get().map(SharedSettings::news);
        for message in news.unwrap_or_default() {
            self.locks.tell(message);
        }
    }

    /// What is there from now on is what later tasks build on.
    fn forget_proven(&self) {
        if let Err(reason) = self.proven().committed() {
            self.unknown(&reason);
        }
    }
}
