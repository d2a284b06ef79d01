//! Work in the user's own tree: one task at a time, and the only way without git.

use std::path::{Path, PathBuf};
use std::time::Duration;

use descartes_kernel::sched::{CommitEnd, MergeEnd};
use descartes_kernel::tasks::{ProvenAt, ProvenTree, TaskMarks, TasksConfig};
use descartes_proc::Ending;

use super::git::path_of;
use super::git_error::GitError;
use super::locks::{Locks, Ours, Passed, named_in};
use super::place::{
    Finished, Fresh, GateFailure, Gates, MergeDone, Proven, Ready, Wave, WaveDone, Work, Workplace,
};
use crate::host::HostError;
use crate::worktree::deadline::Deadline;
use crate::worktree::git::guards::Manner;
use crate::worktree::{CommitOutcome, Git, Tree, TreeKind, TreeOptions, WorktreeError};

const WORK_TREE_TIMEOUT: Duration = Duration::from_secs(120);
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
    locks: Locks,
}

impl InPlace {
    /// The tree around `dir`. It must be clean, save for the files of the tasks themselves: what
    /// is committed later is the agents' work and nothing else.
    pub(super) fn open(
        dir: &Path,
        objects: PathBuf,
        shielded: Vec<PathBuf>,
        config: &TasksConfig,
        git: Git,
        fresh: Fresh,
    ) -> Result<Self, HostError> {
        let place = Self {
            dir: dir.to_owned(),
            objects,
            shielded,
            tag: config.source.tag(),
            commits: config.auto_commit_waves,
            git,
            locks: Locks::new(Ours::default()),
        };
        if fresh == Fresh::Yes && place.is_git() {
            place.refuse_dirty()?;
        }
        Ok(place)
    }

    fn tree(&self) -> Tree {
        let options = TreeOptions {
            apart: self.shielded.clone(),
            git: self.git.clone(),
            ..TreeOptions::default()
        };
        Tree::open_with(&self.dir, &self.objects, options)
    }

    /// Commits, again and again while a lock is in the way.
    fn commit(&self, tree: &Tree, message: &str) -> CommitOutcome {
        loop {
            let outcome = tree.commit_all(message);
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
    let asked = git
        .read(dir)
        .args([
            "status",
            "--porcelain",
            "-z",
            "--untracked-files=all",
            "--no-renames",
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

    fn prepare(&self, _: u32, _: &Work) -> Result<Ready, GitError> {
        Ok(Ready {
            dir: self.dir.clone(),
            note: None,
        })
    }

    fn finish(&self, _: u32, _: &Work, _: Proven) -> Result<Finished, GitError> {
        Ok(Finished::Safe)
    }

    fn merge(&self, work: &Work, gates: Gates<'_>, _: &TaskMarks) -> MergeDone {
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
            end: MergeEnd::Merged,
            landing: None,
            proven: proven.into_iter().collect(),
        }
    }

    fn gate_merged(&self, gates: Gates<'_>) -> Result<Result<(), GateFailure>, GitError> {
        Ok(gates.run(&self.dir))
    }

    fn commit_wave(&self, wave: &Wave, _: Gates<'_>, _: &TaskMarks) -> WaveDone {
        let tree = self.tree();
        let end = if !self.commits || !matches!(tree.kind(), TreeKind::Git { .. }) {
            CommitEnd::Committed { commit: None }
        } else {
            match self.commit(&tree, &wave.message(&self.tag)) {
                CommitOutcome::Made { hash } => CommitEnd::Committed { commit: Some(hash) },
                CommitOutcome::Nothing => CommitEnd::Committed { commit: None },
                CommitOutcome::Failed { message } => CommitEnd::Failed { message },
            }
        };
        WaveDone {
            end,
            landing: None,
            proven: Vec::new(),
        }
    }
}
