//! The statuses in the task file, as a last commit on top of what lands.
//!
//! The working copy is a person's and is not touched. Git refuses a fast-forward over a file that
//! differs from the index; it passes where the entry of the index is the one that comes. So that one
//! entry is set before, which a file of ours says, and put back where the fast-forward does not
//! happen, or by the next host where this one dies between.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use descartes_kernel::tasks::{StatusText, TaskMarks, git_reason, landed_text};
use descartes_plans::graph::TaskId;
use descartes_text::units::plural;
use jiff::Timestamp;

use super::half_landed::HalfLandedEntry;
use super::{Done, GitError, Trees};
use crate::tasks::git::Repo;

/// Tasks that are named in the message of such a commit.
const NAMED: usize = 5;

/// A commit with new statuses, and nothing else.
pub(super) struct Statuses {
    pub(super) commit: String,
    new: HalfLandedEntry,
}

impl Trees {
    /// Names the entry that is in the user's index before it is in the branch.
    fn staged_mark(&self) -> PathBuf {
        self.folder.join("control").join("staged")
    }

    fn statuses_subject(&self) -> String {
        format!("chore({}): mark ", self.tag)
    }

    /// The commit below one that holds nothing but statuses.
    pub(super) fn below_statuses(&self, commit: &str) -> Done<String> {
        let subject = self.user.ask(&["log", "-1", "--format=%s", commit])?;
        if !subject.starts_with(&self.statuses_subject()) {
            return Ok(commit.to_owned());
        }
        let parent = self.user.commit_of(&format!("{commit}^"))?;
        Ok(parent.unwrap_or_else(|| commit.to_owned()))
    }

    /// A commit on top of what lands onto `head`; none where nothing is new, or where the file is
    /// left alone.
    pub(super) fn statuses_on(
        &self,
        head: &str,
        commit: &str,
        marks: &TaskMarks,
    ) -> Done<Option<Statuses>> {
        let Some(path) = &self.task_file else {
            return Ok(None);
        };
        let Some((mode, blob)) = entry_in(&self.user, head, path)? else {
            // It is nobody's wish to have it in a commit.
            return Ok(None);
        };
        let found = self.status_text(head, commit, (&mode, &blob), marks);
        let found = found.unwrap_or_else(|error| StatusText::LeftAlone(error.to_string()));
        let (text, tasks) = match found {
            StatusText::New { text, tasks } => (text, tasks),
            StatusText::Same => return Ok(None),
            StatusText::LeftAlone(why) => {
                if !self.said_statuses.swap(true, Ordering::SeqCst) {
                    self.user.locks.tell(format!(
                        "the new statuses in {path} are left uncommitted: {why}"
                    ));
                }
                return Ok(None);
            }
        };
        let folder = self.folder.join("control");
        let (file, index) = (folder.join("statuses"), folder.join("statuses-index"));
        fs_err::write(&file, text)?;
        let name = file.to_string_lossy();
        let new = self
            .user
            .quiet(&["hash-object", "-w", "--no-filters", "--", &name])?;
        drop(fs_err::remove_file(&index));
        let apart = self.user.with_env("GIT_INDEX_FILE", &index);
        apart.quiet(&["read-tree", commit])?;
        let info = format!("{mode},{new},{path}");
        apart.quiet(&["update-index", "--add", "--cacheinfo", &info])?;
        let tree = apart.quiet(&["write-tree"])?;
        for left in [&file, &index] {
            drop(fs_err::remove_file(left));
        }
        let message = self.message(&tasks);
        let commit = self
            .user
            .quiet(&["commit-tree", &tree, "-p", commit, "-m", &message])?;
        Ok(Some(Statuses {
            commit,
            new: Some((mode, new)),
        }))
    }

    fn message(&self, tasks: &[TaskId]) -> String {
        let ids: Vec<&str> = tasks.iter().map(|id| &**id).collect();
        let what = match ids.len() {
            n if n > NAMED => plural(n as u64, "task"),
            1 => format!("task {}", ids.concat()),
            _ => format!("tasks {}", ids.join(", ")),
        };
        format!("{}{what} done", self.statuses_subject())
    }

    /// The text that is to be committed.
    fn status_text(
        &self,
        head: &str,
        commit: &str,
        (mode, blob): (&str, &str),
        marks: &TaskMarks,
    ) -> Done<StatusText> {
        let alone = |why: &str| Ok(StatusText::LeftAlone(why.to_owned()));
        let Some(path) = &self.task_file else {
            return Ok(StatusText::Same);
        };
        if !matches!(mode, "100644" | "100755") {
            return alone("it is not a regular file in git");
        }
        let here = Some((mode.to_owned(), blob.to_owned()));
        if entry_in(&self.user, commit, path)? != here {
            return alone("the work being landed changes it too");
        }
        let at = format!("{head}:{path}");
        let committed = self.user.bytes(&["cat-file", "blob", &at])?;
        let working = fs_err::read(self.user.dir.join(path))?;
        let (Ok(committed), Ok(working)) =
            (String::from_utf8(committed), String::from_utf8(working))
        else {
            return alone("it is not text");
        };
        let now = Timestamp::now();
        let text = landed_text(&self.source, &committed, &working, marks, now);
        if text == StatusText::Same {
            return Ok(text);
        }
        let spec = format!(":(top,literal){path}");
        let listed = self.user.ask(&["ls-files", "-v", "--", &spec])?;
        if !listed.starts_with("H ") {
            return alone("git is set to ignore its changes, or it has a merge conflict");
        }
        if entry_staged(&self.user, path)? != here {
            return alone("it has staged changes");
        }
        Ok(text)
    }

    /// Sets the one entry of the user's index.
    pub(super) fn stage_statuses(&self, statuses: &Statuses) -> Done<()> {
        let Some(path) = &self.task_file else {
            return Ok(());
        };
        // First the file: whoever finds it puts the entry back.
        if let Some((mode, blob)) = &statuses.new {
            let text = format!("{mode} {blob}");
            fs_err::write(self.staged_mark(), text)?;
        }
        self.set_entries([(path, &statuses.new)].into_iter())
    }

    /// Puts the entry back, unless the branch has it now.
    pub(super) fn unstage_statuses(&self) -> Done<()> {
        let mark = self.staged_mark();
        let (Some(path), Ok(text)) = (&self.task_file, fs_err::read_to_string(&mark)) else {
            return Ok(());
        };
        let new = text.split_once(' ');
        let new: HalfLandedEntry = new.map(|(mode, blob)| (mode.to_owned(), blob.to_owned()));
        let is_staged = || Ok::<bool, GitError>(entry_staged(&self.user, path)? == new);
        let in_branch = || Ok::<bool, GitError>(entry_in(&self.user, "HEAD", path)? == new);
        if is_staged()? && !in_branch()? {
            // A fast-forward that outlived its host may be about to move the branch.
            self.user.locks.await_gits(&self.user.dir);
            if is_staged()? && !in_branch()? {
                let old = entry_in(&self.user, "HEAD", path)?;
                self.set_entries([(path, &old)].into_iter())?;
            }
        }
        fs_err::remove_file(&mark).map_err(GitError::from)
    }

    /// Statuses of tasks that brought nothing else land alone.
    pub(super) fn land_statuses(&self, head: &str, marks: &TaskMarks) -> Done<Option<String>> {
        let Some(statuses) = self.statuses_on(head, head, marks)? else {
            return Ok(None);
        };
        self.stage_statuses(&statuses)?;
        let ff = ["merge", "--ff-only", "--quiet", &statuses.commit];
        let moved = self.user.attempt(&ff);
        self.unstage_statuses()?;
        match moved? {
            Ok(()) => {
                self.set_waves(&statuses.commit)?;
                self.stands_on(&statuses.commit);
                Ok(Some(statuses.commit))
            }
            Err(error) => {
                self.user.locks.tell(format!(
                    "the new statuses of tasks are left uncommitted: {}",
                    git_reason(&error.to_string())
                ));
                Ok(None)
            }
        }
    }
}

/// Mode and object of a file in a commit.
pub(super) fn entry_in(repo: &Repo, commit: &str, path: &str) -> Done<HalfLandedEntry> {
    let line = repo.ask(&["ls-tree", "--full-tree", commit, "--", path])?;
    Ok(line.split('\t').next().and_then(|head| {
        let mut words = head.split(' ');
        Some((words.next()?.to_owned(), words.nth(1)?.to_owned()))
    }))
}

/// Mode and object of a file in the index.
pub(super) fn entry_staged(repo: &Repo, path: &str) -> Done<HalfLandedEntry> {
    let spec = format!(":(top,literal){path}");
    let line = repo.ask(&["ls-files", "--stage", "--", &spec])?;
    let mut words = line.split(' ');
    let entry = words
        .next()
        .map(str::to_owned)
        .zip(words.next().map(str::to_owned));
    Ok(entry.filter(|(mode, _)| !mode.is_empty()))
}
