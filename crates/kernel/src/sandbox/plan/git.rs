//! A repository: the agent commits, and does not decide which programs git starts.

use std::path::{Path, PathBuf};

use super::rules::{Access, Priority, RuleReason};
use super::{Make, Planning};
use crate::sandbox::git_table::{GIT_TABLE, GitEntry, GitHold, GitPlace};

/// The folders of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitPlaces {
    /// The top of the work tree.
    pub top: PathBuf,
    /// HEAD and index of this work tree.
    pub git_dir: PathBuf,
    /// What all work trees of the repository share.
    pub common_dir: PathBuf,
    /// Folders of git for other work trees.
    pub other_work_trees: Vec<PathBuf>,
    /// A slot of a task loop, which writes objects and refs of its own alone.
    pub slot: Option<SlotGit>,
}

/// What a slot may write of the repository that it shares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotGit {
    /// The folder of its branch, below the refs, and the folder of its own that is shown there; none where
    /// refs are not files. A lock on each ref of another task would not last: git replaces refs by a
    /// rename, and with the file the mount on it goes, too.
    pub refs: Option<(PathBuf, PathBuf)>,
    /// The same for its logs.
    pub logs: Option<(PathBuf, PathBuf)>,
    /// Its own objects; those of the repository are read through [`SHARED_OBJECTS`].
    pub objects: PathBuf,
}

/// Where a slot sees the objects of the repository: an alternate of its own ones.
pub const SHARED_OBJECTS: &str = "/run/descartes/objects";

const WHICH_PROGRAMS: &str = "decides which programs git starts";

impl Planning<'_> {
    pub(super) fn git(&mut self, git: &GitPlaces) {
        let linked = git.git_dir != git.common_dir;
        let why = "the repository: commits of the agent";
        match (&git.slot, linked) {
            (Some(slot), _) => self.slot(git, slot),
            (None, _) => self.set_if_there(&git.common_dir, Access::Writable, why, Priority::Tree),
        }
        let rows = GIT_TABLE.iter();
        let locked = rows.filter_map(|row| match row.hold {
            GitHold::Locked(entry) => Some((row, entry)),
            GitHold::Looked | GitHold::Harmless => None,
        });
        for (row, entry) in locked {
            let (folder, why) = match row.place {
                GitPlace::Common => (&git.common_dir, WHICH_PROGRAMS),
                GitPlace::Own if linked => (&git.git_dir, "leads to the repository"),
                GitPlace::Own | GitPlace::Tree | GitPlace::Setting => continue,
            };
            match (row.name, entry) {
                // By their names, below.
                ("worktrees/*", _) => {}
                // In the folder that a slot shares nothing can be made.
                ("commondir" | "config.worktree", _)
                    if row.place == GitPlace::Common && git.slot.is_some() => {}
                (name, _) => self.lock_git(&folder.join(name), entry, why),
            }
        }
        for other in &git.other_work_trees {
            let why = "belongs to another work tree";
            self.lock_git(other, GitEntry::IfThere, why);
        }
        if linked {
            let why = "belongs to another work tree";
            for name in ["HEAD", "index", "ORIG_HEAD"] {
                self.lock_git(&git.common_dir.join(name), GitEntry::IfThere, why);
            }
        }
        let entry = git.top.join(".git");
        if entry != git.git_dir {
            self.lock_git(&entry, GitEntry::IfThere, "leads to the repository");
        }
    }

    fn slot(&mut self, git: &GitPlaces, slot: &SlotGit) {
        let why = "HEAD and index of this worktree";
        self.set_if_there(&git.git_dir, Access::Writable, why, Priority::Tree);
        let shown = [
            (
                &slot.refs,
                "the branch of this task, taken over when the agent has ended",
            ),
            (&slot.logs, "the log of that branch, thrown away"),
        ];
        for (folders, why) in shown {
            if let Some((folder, own)) = folders {
                let found = self.look_or_make(Make::Folder(folder.clone()));
                self.rules.show(&found.real, own, Access::Writable, why);
            }
        }
        let objects = git.common_dir.join("objects");
        let why = "new objects, taken over when the agent has ended";
        self.rules
            .show(&objects, &slot.objects, Access::Writable, why);
        let why = "the objects of the repository";
        self.rules
            .show(Path::new(SHARED_OBJECTS), &objects, Access::ReadOnly, why);
    }

    fn lock_git(&mut self, path: &Path, entry: GitEntry, why: &'static str) {
        let make = match entry {
            GitEntry::IfThere => None,
            GitEntry::File => Some(Make::File(path.to_owned(), String::new())),
            GitEntry::ForTheRun(text) => Some(Make::File(path.to_owned(), text.to_owned())),
            GitEntry::Folder => Some(Make::Folder(path.to_owned())),
        };
        let found = match make {
            None => self.look(path),
            Some(make) => Some(self.look_or_make(make)),
        };
        let why = match entry {
            GitEntry::ForTheRun(_) => RuleReason::FOR_THE_RUN,
            GitEntry::IfThere | GitEntry::File | GitEntry::Folder => why.into(),
        };
        if let Some(found) = found {
            self.set(&found, Access::ReadOnly, why, Priority::Fixed);
        }
    }
}
