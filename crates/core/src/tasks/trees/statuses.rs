//! The statuses in the task files, as a last commit on top of what lands.
//!
//! The working copy is a person's and is not touched. Git refuses a fast-forward over a file that
//! differs from the index; it passes where the entry of the index is the one that comes. So these
//! entries are set before, which a file of ours says, and put back where the fast-forward does not
//! happen, or by the next host where this one dies between.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use descartes_kernel::tasks::{
    FileVersions, StatusText, TaskFile, TaskMarks, git_reason, landed_list, landed_text,
};
use descartes_plans::graph::TaskId;
use descartes_plans::lists::ListFormat;
use descartes_store::safe_open::{Refusal, read_user_file};
use descartes_text::units::plural;
use jiff::Timestamp;

use super::checkout_files::HalfLandedEntry;
use super::{Done, GitError, Trees};
use crate::tasks::git::Repo;
use crate::tasks::lists::{config_of, read_list};

/// Tasks that are named in the message of such a commit.
const NAMED: usize = 5;

/// A commit with new statuses, and nothing else.
pub(super) struct Statuses {
    pub(super) commit: String,
    /// The files that it changes.
    new: Vec<NewStatuses>,
}

/// One file with new statuses.
struct NewStatuses {
    path: String,
    entry: HalfLandedEntry,
}

/// A file whose statuses may be committed.
struct StatusFile {
    path: String,
    mode: String,
    blob: String,
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
        let subject = self.user.subject_of(commit)?;
        if !subject.starts_with(&self.statuses_subject()) {
            return Ok(commit.to_owned());
        }
        let parent = self.user.commit_of(&format!("{commit}^"))?;
        Ok(parent.unwrap_or_else(|| commit.to_owned()))
    }

    /// A commit on top of what lands onto `head`; none where nothing is new, or where the files are
    /// left alone.
    pub(super) fn statuses_on(
        &self,
        head: &str,
        commit: &str,
        marks: &TaskMarks,
    ) -> Done<Option<Statuses>> {
        let mut files = Vec::new();
        for path in self.status_files(marks) {
            // One that is in no commit is there by nobody's wish.
            if let Some((mode, blob)) = entry_in(&self.user, head, &path)? {
                files.push(StatusFile { path, mode, blob });
            }
        }
        let (mut new, mut tasks): (Vec<(&StatusFile, String)>, Vec<TaskId>) = Default::default();
        let found = self.status_texts(head, commit, &files, marks);
        for (file, found) in files.iter().zip(found) {
            match found {
                StatusText::New { text, tasks: done } => {
                    tasks.extend(done);
                    new.push((file, text));
                }
                StatusText::Same => {}
                StatusText::LeftAlone(why) => self.say_left_alone(&file.path, &why),
            }
        }
        if new.is_empty() {
            return Ok(None);
        }
        tasks.sort();
        tasks.dedup();
        self.commit_statuses(commit, new, &tasks).map(Some)
    }

    fn say_left_alone(&self, path: &str, why: &str) {
        if !self.said_statuses.swap(true, Ordering::SeqCst) {
            self.user.locks.tell(format!(
                "the new statuses in {path} are left uncommitted: {why}"
            ));
        }
    }

    fn commit_statuses(
        &self,
        commit: &str,
        new: Vec<(&StatusFile, String)>,
        tasks: &[TaskId],
    ) -> Done<Statuses> {
        let folder = self.folder.join("control");
        let (file, index) = (folder.join("statuses"), folder.join("statuses-index"));
        drop(fs_err::remove_file(&index));
        let apart = self.user.with_env("GIT_INDEX_FILE", &index);
        apart.quiet(&["read-tree", commit])?;
        let mut entries = Vec::new();
        for (StatusFile { path, mode, .. }, text) in new {
            fs_err::write(&file, text)?;
            let name = file.to_string_lossy();
            let blob = self
                .user
                .quiet(&["hash-object", "-w", "--no-filters", "--", &name])?;
            let info = format!("{mode},{blob},{path}");
            apart.quiet(&["update-index", "--add", "--cacheinfo", &info])?;
            entries.push(NewStatuses {
                path: path.clone(),
                entry: Some((mode.clone(), blob)),
            });
        }
        let tree = apart.quiet(&["write-tree"])?;
        for left in [&file, &index] {
            drop(fs_err::remove_file(left));
        }
        let message = self.message(tasks);
        let commit = self.user.commit_tree(&tree, commit, &message)?;
        Ok(Statuses {
            commit,
            new: entries,
        })
    }

    /// The files that hold the statuses of these tasks, as seen from the repository.
    fn status_files(&self, marks: &TaskMarks) -> Vec<String> {
        let Some(path) = &self.task_file else {
            return Vec::new();
        };
        let TaskFile::List {
            path: place,
            format,
            options,
            tag,
        } = &self.source
        else {
            return vec![path.clone()];
        };
        if !format.is_folder() {
            return vec![path.clone()];
        }
        let folder = match format {
            ListFormat::Bmad => path.rsplit_once('/').map_or("", |(folder, _)| folder),
            _ => path,
        };
        let read = read_list(place, *format, *options, tag.as_deref(), &marks.titles);
        let Ok(read) = read else {
            return Vec::new();
        };
        let own = marks.ours.iter().filter_map(|id| read.list.task(id));
        let files = own.flat_map(|task| task.marks.iter().map(|mark| mark.file));
        // In the order of the list: a file that lists the others is its first.
        let files: BTreeSet<usize> = files.collect();
        let files = files.into_iter().map(|at| &read.files[at].path);
        files
            .map(|name| {
                format!("{folder}/{name}")
                    .trim_start_matches('/')
                    .to_owned()
            })
            .collect()
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

    /// The texts that are to be committed, one for each file.
    fn status_texts(
        &self,
        head: &str,
        commit: &str,
        files: &[StatusFile],
        marks: &TaskMarks,
    ) -> Vec<StatusText> {
        let mut answers: Vec<Option<StatusText>> = Vec::new();
        let mut versions: Vec<FileVersions> = Vec::new();
        for file in files {
            let read = self.versions(head, commit, file);
            answers.push(match read {
                Ok(Ok(of)) => {
                    versions.push(of);
                    None
                }
                Ok(Err(why)) => Some(StatusText::LeftAlone(why.to_owned())),
                Err(error) => Some(StatusText::LeftAlone(error.to_string())),
            });
        }
        let mut found = self.landed_texts(&versions, marks).into_iter();
        let texts = files
            .iter()
            .zip(answers)
            .map(|(file, answer)| match answer {
                Some(answer) => answer,
                None => {
                    let text = found.next().unwrap_or(StatusText::Same);
                    self.unless_staged(file, text)
                }
            });
        texts.collect()
    }

    fn landed_texts(&self, files: &[FileVersions], marks: &TaskMarks) -> Vec<StatusText> {
        match &self.source {
            TaskFile::List { path, format, .. } => {
                landed_list(&self.source, files, config_of(path, *format), marks)
            }
            source => {
                let now = Timestamp::now();
                let text =
                    |of: &FileVersions| landed_text(source, &of.committed, &of.working, marks, now);
                files.iter().map(text).collect()
            }
        }
    }

    /// A file as it is committed and as it is here, or why it is left alone.
    fn versions(
        &self,
        head: &str,
        commit: &str,
        StatusFile { path, mode, blob }: &StatusFile,
    ) -> Done<Result<FileVersions, &'static str>> {
        if !matches!(mode.as_str(), "100644" | "100755") {
            return Ok(Err("it is not a regular file in git"));
        }
        if entry_in(&self.user, commit, path)? != Some((mode.clone(), blob.clone())) {
            return Ok(Err("the work being landed changes it too"));
        }
        let at = format!("{head}:{path}");
        let committed = self.user.bytes(&["cat-file", "blob", &at])?;
        let working = match read_user_file(&self.user.dir.join(path)) {
            Ok(working) => working,
            // Somebody put a named pipe or the like in its place, which a plain read would wait for.
            Err(error) if Refusal::of(&error).is_some() => {
                return Ok(Err("it is not a regular file in your checkout"));
            }
            Err(error) => return Err(error.into()),
        };
        let (Ok(committed), Ok(working)) =
            (String::from_utf8(committed), String::from_utf8(working))
        else {
            return Ok(Err("it is not text"));
        };
        Ok(Ok(FileVersions {
            path: path.clone(),
            committed,
            working,
        }))
    }

    /// A file that has changes in the index, or that git does not look at, is left alone.
    fn unless_staged(&self, file: &StatusFile, text: StatusText) -> StatusText {
        if !matches!(text, StatusText::New { .. }) {
            return text;
        }
        match self.is_plain_in_index(file) {
            Ok(Ok(())) => text,
            Ok(Err(why)) => StatusText::LeftAlone(why.to_owned()),
            Err(error) => StatusText::LeftAlone(error.to_string()),
        }
    }

    fn is_plain_in_index(&self, file: &StatusFile) -> Done<Result<(), &'static str>> {
        let spec = format!(":(top,literal){}", file.path);
        let listed = self.user.ask(&["ls-files", "-v", "--", &spec])?;
        if !listed.starts_with("H ") {
            return Ok(Err(
                "git is set to ignore its changes, or it has a merge conflict",
            ));
        }
        let here = Some((file.mode.clone(), file.blob.clone()));
        Ok(match entry_staged(&self.user, &file.path)? == here {
            true => Ok(()),
            false => Err("it has staged changes"),
        })
    }

    /// Sets the entries of the user's index.
    pub(super) fn stage_statuses(&self, statuses: &Statuses) -> Done<()> {
        // First the file: whoever finds it puts the entries back.
        let lines = statuses.new.iter().filter_map(|new| {
            let (mode, blob) = new.entry.as_ref()?;
            Some(format!("{mode} {blob}\t{}\n", new.path))
        });
        let lines: String = lines.collect();
        if !lines.is_empty() {
            fs_err::write(self.staged_mark(), lines)?;
        }
        let entries = statuses.new.iter();
        self.set_entries(entries.map(|new| (Path::new(&new.path), &new.entry)))
    }

    /// Puts the entries back, unless the branch has them now.
    pub(super) fn unstage_statuses(&self) -> Done<()> {
        let mark = self.staged_mark();
        let Ok(text) = fs_err::read_to_string(&mark) else {
            return Ok(());
        };
        let mut waited = false;
        for new in self.staged_before(&text) {
            let is_staged =
                || Ok::<bool, GitError>(entry_staged(&self.user, &new.path)? == new.entry);
            let in_branch =
                || Ok::<bool, GitError>(entry_in(&self.user, "HEAD", &new.path)? == new.entry);
            if !is_staged()? || in_branch()? {
                continue;
            }
            if !std::mem::replace(&mut waited, true) {
                // A fast-forward that outlived its host may be about to move the branch.
                self.user.locks.await_gits(&self.user.dir);
            }
            if is_staged()? && !in_branch()? {
                let old = entry_in(&self.user, "HEAD", &new.path)?;
                self.set_entries([(Path::new(&new.path), &old)].into_iter())?;
            }
        }
        fs_err::remove_file(&mark).map_err(GitError::from)
    }

    /// What the file of ours says was put into the index. Up to 0.1.0 it named no path: there was one.
    fn staged_before(&self, text: &str) -> Vec<NewStatuses> {
        let line = |line: &str| {
            let (entry, path) = match line.split_once('\t') {
                Some((entry, path)) => (entry, path.to_owned()),
                None => (line, self.task_file.clone()?),
            };
            let entry = entry.split_once(' ');
            let entry = entry.map(|(mode, blob)| (mode.to_owned(), blob.to_owned()));
            Some(NewStatuses { path, entry })
        };
        text.lines().filter_map(line).collect()
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
