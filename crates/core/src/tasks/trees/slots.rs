//! Slots: a worktree for each task at work, made ready, and emptied into safety.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::Duration;

use super::files::{is_gone, read_note, write_note};
use super::rescue::Before;
use super::unsaved::FROM_STDIN;
use super::{Done, GitError, Trees};
use crate::tasks::git::zero_ended;
use crate::tasks::git::{Repo, zero_ended_paths};
use crate::tasks::launch::file_name;
use crate::tasks::place::{Finished, Proven, Ready, Work};
use crate::tasks::shell::Shell;

/// Time for the command that makes a worktree ready.
const SETUP: Duration = Duration::from_secs(30 * 60);

/// How the file begins that names the conflicts of a piece of work.
const CONFLICTS: &str = "conflicts-";

/// Files by which package managers and build tools say what they need.
const MANIFESTS: [&str; 36] = [
    "Cargo.toml",
    "Cargo.lock",
    "rust-toolchain.toml",
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "bun.lockb",
    "deno.lock",
    "requirements.txt",
    "pyproject.toml",
    "poetry.lock",
    "uv.lock",
    "pdm.lock",
    "Pipfile",
    "Pipfile.lock",
    "setup.py",
    "setup.cfg",
    "go.mod",
    "go.sum",
    "Gemfile",
    "Gemfile.lock",
    "composer.json",
    "composer.lock",
    "mix.exs",
    "mix.lock",
    "pubspec.yaml",
    "pubspec.lock",
    "Package.swift",
    "Package.resolved",
    "pom.xml",
    "build.gradle",
    "flake.lock",
    ".gitmodules",
];

/// A tree for a piece of work.
struct WorkSlot {
    name: String,
    repo: Repo,
    before: Before,
    /// What its agent has to know of work that was found there.
    note: Option<String>,
}

impl Trees {
    /// The tree of a slot: one that is kept for what it holds is not used again.
    pub(super) fn slot_name(&self, slot: u32) -> String {
        self.first_name(slot, |name| !self.kept_mark(name).exists())
    }

    /// The first name for a slot's tree that may be taken.
    fn first_name(&self, slot: u32, may_be_taken: impl Fn(&str) -> bool) -> String {
        let names = (1..).map(|n| match n {
            1 => format!("slot-{slot}"),
            n => format!("slot-{slot}-{n}"),
        });
        let mut names = names.filter(|name| may_be_taken(name));
        names.next().unwrap_or_default()
    }

    /// A tree that was kept with what an earlier attempt at this work left goes on as the slot's tree. Its agent
    /// is told of one that lies elsewhere.
    fn take_up_kept(&self, slot: u32, work: &Work) -> Done<Option<String>> {
        let branch = format!("refs/heads/{}", self.branch_of(work));
        let mut elsewhere = Vec::new();
        for kept in self.kept_trees() {
            let name = kept.path.file_name().unwrap_or_default().to_string_lossy();
            // Without its branch it is of another run, whose tasks may be others.
            if self.last_task(&name)?.as_deref() != Some(&*work.id)
                || self.user.commit_of(&branch)?.is_none()
            {
                continue;
            }
            let is_it = |other: &str| other == name || !self.kept_mark(other).exists();
            if self.first_name(slot, is_it) == *name {
                fs_err::remove_file(self.kept_mark(&name))?;
                return Ok(None);
            }
            elsewhere.push(format!(
                "{}: {}",
                kept.path.display(),
                kept.holds.join("; ")
            ));
        }
        Ok((!elsewhere.is_empty()).then(|| {
            format!(
                "---\nKEPT: an earlier attempt at this task left what git cannot transfer, and it is not in \
                 this worktree but in\n{}\nTake from there what belongs to the work.\n---",
                elsewhere.join("\n")
            )
        }))
    }

    /// A worktree of ours; made where it is not there.
    pub(super) fn worktree(&self, name: &str) -> Done<Repo> {
        let path = self.folder.join(name);
        let _one = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.mend_link(&path)?;
        if path.join(".git").is_file()
            && let Ok(repo) = self.tree_at(&path)
            && repo.is_repository()
        {
            self.restore_settings(&repo)?;
            repo.unlock()?;
            repo.mend()?;
            return Ok(repo);
        }
        // What a dead host made half of, or an earlier repository of the same path left.
        self.put_out_of_the_way(&path)?;
        self.unregister(&path);
        fs_err::create_dir_all(&self.folder)?;
        let merged = self.merged()?;
        self.drop_marks(name);
        self.add_worktree(&path, &merged)?;
        self.tree_at(&path)
    }

    /// Commits everything but the files of the tasks and repositories inside the tree; nothing to
    /// commit is fine. Gives those repositories.
    pub(super) fn commit_all(
        &self,
        repo: &Repo,
        message: &str,
        proven: Proven,
    ) -> Done<BTreeSet<PathBuf>> {
        let (nested, has_changes) = self.stage_all(repo)?;
        let merging = repo.commit_of("MERGE_HEAD")?.is_some();
        if !merging && !has_changes {
            return Ok(nested);
        }
        let commit = ["commit", "--quiet", "--allow-empty", "-m", message];
        match proven {
            Proven::Green => {
                let hooks = self.hooks_now(&self.common_dir()?);
                self.with_confined_hooks(repo, &hooks)?.act(&commit)?
            }
            Proven::No => repo.quiet(&commit)?,
        };
        Ok(nested)
    }

    /// Brings all of that into the index; gives those repositories, and whether anything is to be committed.
    pub(super) fn stage_all(&self, repo: &Repo) -> Done<(BTreeSet<PathBuf>, bool)> {
        self.drop_bare_links(repo)?;
        let nested = self.nested(repo, &self.untracked(repo)?)?;
        // Path by path, so also outside of the part that the user has checked out.
        let work = self.work_in(repo, &repo.changed()?)?.into_iter();
        let work = work.map(|path| path.components().collect::<PathBuf>());
        let work = work.filter(|path| !nested.iter().any(|apart| path.starts_with(apart)));
        repo.stage(&work.collect())?;
        self.unstage_brought(repo)?;
        let has_changes = self.restore_ignored_files(repo)?;
        Ok((nested, has_changes))
    }

    /// Whether a path is in no commit of ours.
    pub(super) fn is_put_back(&self, path: &Path) -> bool {
        path.starts_with(self.prefix.join(".descartes"))
            || self.shielded.iter().any(|own| path.starts_with(own))
    }

    /// Takes the files of the tasks, and our own folder, out of what is about to be committed; whether
    /// anything is left.
    pub(super) fn restore_ignored_files(&self, repo: &Repo) -> Done<bool> {
        let staged = repo.staged()?;
        let (own, others): (Vec<PathBuf>, Vec<PathBuf>) =
            staged.into_iter().partition(|path| self.is_put_back(path));
        if !own.is_empty() {
            let own = zero_ended(":(top,literal)", own.iter().map(PathBuf::as_path));
            let reset = ["reset", "--quiet", "HEAD"];
            repo.quiet_with(&[&reset[..], &FROM_STDIN[..]].concat(), &own)?;
        }
        Ok(!others.is_empty())
    }

    pub(super) fn setup_mark(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.setup"))
    }

    pub(super) fn task_mark(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.task"))
    }

    /// The task that was worked on last in a tree; none where no agent was ever there. A note that cannot be read
    /// is not taken for none: what another task left would then be taken for this one's.
    pub(super) fn last_task(&self, name: &str) -> Done<Option<String>> {
        let id = read_note(&self.task_mark(name))?;
        let id = id.map(|id| String::from_utf8_lossy(&id).into_owned());
        Ok(id.filter(|id| !id.is_empty()))
    }

    /// Runs `worktree_setup` where it never ran, or where what it is about has changed.
    pub(super) fn set_up(&self, dir: &Path, commit: &str) -> Done<Result<(), String>> {
        let Some(setup) = &self.setup else {
            return Ok(Ok(()));
        };
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        let mark = self.setup_mark(&name);
        let listed = self.user.ask(&["ls-tree", "-r", "-z", commit])?;
        let is_manifest = |line: &&str| {
            let path = line.split('\t').nth(1).unwrap_or("");
            let file = path.rsplit('/').next().unwrap_or("");
            line.starts_with("160000")
                || MANIFESTS.contains(&file)
                || (file.starts_with("requirements") && file.ends_with(".txt"))
        };
        let lines: Vec<&str> = listed.split('\0').filter(is_manifest).collect();
        let due = format!("{setup}\n{}", lines.join("\n"));
        if fs_err::read_to_string(&mark).is_ok_and(|done| done == due) {
            return Ok(Ok(()));
        }
        drop(fs_err::remove_file(&mark));
        let shell = Shell::new(&self.settings, &self.settings.mark())?;
        // It runs what earlier tasks wrote.
        let mut shell = shell.confined(&self.confinement(), &self.settings);
        let log = self.folder.join(format!("{name}-setup.log"));
        let repo = self.tree_at(dir)?;
        let before = repo.changed()?.tracked;
        let ran = {
            let _listed = self.setups.list(shell.stopper());
            shell.run(&dir.join(&self.prefix), setup, SETUP, log)
        };
        if !ran.is_green() {
            return Ok(Err(format!(
                "worktree_setup `{setup}` failed:\n{}",
                ran.tail
            )));
        }
        // What it changed of tracked files is undone with the next commit that is checked out.
        if repo.changed()?.tracked == before {
            write_note(&mark, due)?;
        }
        Ok(Ok(()))
    }

    /// The tree of a slot for a piece of work. One that holds what another's agent left there and
    /// git cannot carry is kept, and another is made.
    fn slot_for(&self, slot: u32, work: &Work) -> Done<WorkSlot> {
        loop {
            let name = self.slot_name(slot);
            let repo = self.worktree(&name)?;
            let note = self.rescue(&repo)?;
            let last = self.last_task(&name)?;
            let is_same = last.is_none_or(|last| last == work.id);
            let untracked = match is_same {
                true => Vec::new(),
                false => self.untracked(&repo)?,
            };
            let (before, holds) = match (is_same, untracked.is_empty()) {
                (true, _) => (Before::Same, Vec::new()),
                (false, true) => (Before::Tidy, self.unsaved(&repo, &untracked)?),
                (false, false) => (Before::Another, self.unsaved(&repo, &untracked)?),
            };
            if holds.is_empty() {
                return Ok(WorkSlot {
                    name,
                    repo,
                    before,
                    note: note.filter(|_| before == Before::Same),
                });
            }
            self.keep_tree(&repo, &name, &holds)?;
        }
    }

    pub(super) fn ready(&self, slot: u32, work: &Work) -> Done<Ready> {
        let kept = self.take_up_kept(slot, work)?;
        let WorkSlot {
            name,
            repo,
            before,
            note: earlier,
        } = self.slot_for(slot, work)?;
        let spared = self.spared(&repo.dir)?;
        if !spared.is_whole {
            drop(fs_err::remove_file(self.setup_mark(&name)));
        }
        let is_set_up = self.setup.is_none() || self.setup_mark(&name).exists();
        let is_whole = spared.is_whole && self.brought_mark(&name).exists();
        let fresh = !(self.task_mark(&name).exists() && is_set_up && is_whole);
        // What lay there is safe.
        drop(fs_err::remove_file(self.at_work_mark(&name)));
        drop(fs_err::remove_file(self.brought_mark(&name)));
        write_note(&self.task_mark(&name), &work.id)?;
        let merged = self.merged()?;
        let branch = self.branch_of(work);
        let (mut alone, mut goes_on) = (None, false);
        {
            // Git looks at all worktrees before it gives one a branch.
            let _one = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            // Another slot may still have it checked out, cut short by a dead host.
            self.free(&branch, &repo)?;
            match self.earlier_work(&branch)? {
                None => {
                    self.set_to(&repo, &merged, before, &spared)?;
                    self.put_branch(&branch, &merged)?;
                }
                Some(commit) => match self.built_on(&merged, &commit)? {
                    None => {
                        goes_on = commit != merged;
                        self.set_to(&repo, &commit, before, &spared)?;
                    }
                    Some(from) => {
                        // It holds commits that the user took back: it begins anew without them.
                        alone = Some(self.changes_alone(&from, &commit)?);
                        self.set_to(&repo, &merged, before, &spared)?;
                        self.put_branch(&branch, &merged)?;
                    }
                },
            }
            // Whoever else had it was seen to.
            repo.quiet(&["checkout", "--quiet", "--ignore-other-worktrees", &branch])?;
        }
        let mut setup = None;
        if fresh && let Err(tail) = self.set_up_worktree(&repo.dir, &merged)? {
            if self.is_stopped() || !goes_on {
                drop(fs_err::remove_file(self.task_mark(&name)));
                return Err(GitError::Refused(tail));
            }
            // What an earlier attempt left may be why, and then only another one mends it.
            setup = Some(format!(
                "---\nSETUP: {tail}\nIf it fails because of what is on your branch already, mend that first.\n---"
            ));
        }
        if fresh {
            self.note_files_of_setup(&repo)?;
        }
        self.note_brought(&repo, &merged)?;
        write_note(&self.at_work_mark(&name), "")?;
        let conflict = match &alone {
            None => self.catch_up(&repo, &merged, work)?,
            Some(alone) => self.replay(&repo, alone, work)?,
        };
        // An attempt that was red, or cut short, left it there.
        let stashes = self.stash_words(&branch, &repo)?;
        let stashes = stashes
            .into_iter()
            .map(|message| format!("---\nSTASH: {message}.\n---"));
        let notes: Vec<String> = earlier
            .into_iter()
            .chain(kept)
            .chain(setup)
            .chain(conflict)
            .chain(stashes)
            .collect();
        Ok(Ready {
            dir: repo.dir.join(&self.prefix),
            note: (!notes.is_empty()).then(|| notes.join("\n\n")),
        })
    }

    /// What is on a task's branch already and may be built upon. A branch that somebody else made
    /// is none of it.
    pub(super) fn earlier_work(&self, branch: &str) -> Done<Option<String>> {
        let Some(tip) = self.user.commit_of(&format!("refs/heads/{branch}"))? else {
            return Ok(None);
        };
        let ours = self.put_by_us(branch)?;
        if ours.as_deref() == Some(&*tip) {
            return Ok(Some(tip));
        }
        let on_top = match &ours {
            Some(ours) => self.user.is_ancestor(ours, &tip)?,
            None => false,
        };
        self.set_aside(branch, &tip)?;
        Ok(on_top.then_some(tip))
    }

    /// Worktrees of ours that are there.
    pub(super) fn trees_there(&self) -> Done<Vec<PathBuf>> {
        let entries = match fs_err::read_dir(&self.folder) {
            Err(error) if is_gone(&error) => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut trees = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && (name == "merged" || name.starts_with("slot-")) {
                trees.push(path);
            }
        }
        trees.sort();
        Ok(trees)
    }

    /// Brings what was merged meanwhile into a task's tree. Conflicts stay in the files, for the
    /// agent to resolve.
    pub(super) fn catch_up(&self, repo: &Repo, merged: &str, work: &Work) -> Done<Option<String>> {
        let is_there = repo.commit_of("HEAD")?.as_deref() == Some(merged);
        if is_there || repo.is_ancestor(merged, "HEAD")? {
            return Ok(None);
        }
        match repo.attempt(&["merge", "--no-edit", "--quiet", merged])? {
            Ok(()) => Ok(None),
            Err(error) => self.conflict_note(repo, error, work),
        }
    }

    /// Puts the changes of an earlier attempt onto what is checked out. Conflicts stay in the files,
    /// for the agent to resolve.
    fn replay(&self, repo: &Repo, alone: &str, work: &Work) -> Done<Option<String>> {
        let Err(error) = repo.attempt(&["cherry-pick", "--no-commit", alone])? else {
            self.commit_all(repo, &format!("{} (unproven)", work.title), Proven::No)?;
            let tip = repo.commit_of("HEAD")?.ok_or("there is no commit")?;
            self.take_as_ours(&self.branch_of(work), &tip)?;
            return Ok(None);
        };
        // Until it is resolved, the earlier attempt is in no other ref.
        self.keep_commit(alone)?;
        self.conflict_note(repo, error, work)
    }

    /// What an agent is told of conflicts in its tree.
    fn conflict_note(&self, repo: &Repo, error: GitError, work: &Work) -> Done<Option<String>> {
        let files = repo.unmerged()?;
        if files.is_empty() {
            return Err(error);
        }
        self.note_conflicts(work, &files)?;
        let list = files.iter().map(|file| format!("- {}", file.display()));
        let list: Vec<String> = list.collect();
        Ok(Some(format!(
            "---\nMERGE CONFLICT: other work was merged in the meantime, and these files contain \
             conflict markers.\n\
             Resolve them so that both changes keep their meaning:\n{}\n---",
            list.join("\n")
        )))
    }

    /// A tree that its agent has left, as git has to find it.
    pub(super) fn settled(&self, path: &Path) -> Done<Repo> {
        {
            let _one = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            self.mend_link(path)?;
        }
        let repo = self.tree_at(path)?;
        // A git of the agent's may have been ended with it.
        repo.unlock()?;
        repo.mend()?;
        self.restore_settings(&repo)?;
        self.clear_marks(&repo)?;
        Ok(repo)
    }

    pub(super) fn keep(&self, slot: u32, work: &Work, proven: Proven) -> Done<Finished> {
        let repo = self.settled(&self.folder.join(self.slot_name(slot)))?;
        let branch = self.branch_of(work);
        self.put_branch_back(&repo, &branch)?;
        let marked = self.still_marked(&repo, work)?;
        let left = match repo.branch()?.as_deref() == Some(branch.as_str()) {
            true => self.keep_on_branch(&repo, work, &branch, proven)?,
            false => self.bring_back(&repo, work, &branch, proven)?,
        };
        Ok(match (marked, left) {
            (None, left) => {
                drop(fs_err::remove_file(self.conflict_mark(work)));
                left
            }
            (Some(message), Finished::Safe) => Finished::Uncarried(message),
            (Some(message), Finished::Uncarried(more)) => {
                Finished::Uncarried(format!("{message}\n{more}"))
            }
        })
    }

    /// The agent stayed on its branch: what it left is committed there.
    fn keep_on_branch(
        &self,
        repo: &Repo,
        work: &Work,
        branch: &str,
        proven: Proven,
    ) -> Done<Finished> {
        let message = match proven {
            Proven::Green => work.title.clone(),
            Proven::No => format!("{} (unproven)", work.title),
        };
        let nested = self.commit_all(repo, &message, proven)?;
        let tip = repo.commit_of("HEAD")?.ok_or("there is no commit")?;
        self.take_from_agent(repo, branch, &tip)?;
        let left = self.left_behind(repo, branch, proven, &nested)?;
        // What is left are the agent's copies of the task files.
        repo.quiet(&["checkout", "--quiet", "--force", "--detach"])?;
        Ok(left)
    }

    /// What of an attempt no commit holds.
    fn left_behind(
        &self,
        repo: &Repo,
        branch: &str,
        proven: Proven,
        nested: &BTreeSet<PathBuf>,
    ) -> Done<Finished> {
        let mut message = self.uncarried(repo, &self.merged()?, nested)?;
        if proven == Proven::Green {
            // Else the next attempt is told when it begins.
            message.extend(self.stash_words(branch, repo)?);
        }
        Ok(match message.is_empty() {
            true => Finished::Safe,
            false => Finished::Uncarried(message.join("\n")),
        })
    }

    /// The agent went elsewhere: what it committed there is named, so that it is not lost.
    fn bring_back(&self, repo: &Repo, work: &Work, branch: &str, proven: Proven) -> Done<Finished> {
        let name = format!("refs/heads/{branch}");
        let known = self.user.commit_of(&name)?;
        let otherwise = match &known {
            Some(known) => known.clone(),
            None => self.merged()?,
        };
        // The branch that it is on is not ours to move.
        self.detach(repo, &otherwise)?;
        let nested = self.commit_all(repo, &work.title, Proven::No)?;
        let head = repo.commit_of("HEAD")?.ok_or("there is no commit")?;
        let onward = match &known {
            Some(known) => repo.is_ancestor(known, &head)?,
            None => true,
        };
        if !onward {
            if !self.is_in_a_ref(&head)? {
                self.keep_commit(&head)?;
            }
            return Ok(Finished::Uncarried(format!(
                "your work is at commit {head}, but not on the branch {branch}, where it is \
                 expected: stay on that branch, bring the work there (for example: git merge \
                 {head}), and finish any rebase that you started"
            )));
        }
        if let Some(known) = &known {
            self.take_from_agent(repo, branch, known)?;
        }
        self.put_branch(branch, &head)?;
        self.left_behind(repo, branch, proven, &nested)
    }

    /// Files that held conflicts when an attempt at this work began.
    fn conflict_mark(&self, work: &Work) -> PathBuf {
        self.folder
            .join(format!("{CONFLICTS}{}", file_name(&work.id)))
    }

    fn note_conflicts(&self, work: &Work, files: &[PathBuf]) -> Done<()> {
        let mut all = self.noted_conflicts(work)?;
        all.extend(files.iter().cloned());
        let text = zero_ended("", all.iter().map(PathBuf::as_path));
        write_note(&self.conflict_mark(work), text).map_err(GitError::from)
    }

    fn noted_conflicts(&self, work: &Work) -> Done<BTreeSet<PathBuf>> {
        let text = read_note(&self.conflict_mark(work))?.unwrap_or_default();
        Ok(zero_ended_paths(&text).into_iter().collect())
    }

    /// What an agent has to know of files that were in conflict, and still look like that: also
    /// where it told git that they are resolved.
    fn still_marked(&self, repo: &Repo, work: &Work) -> Done<Option<String>> {
        let unmerged = repo.unmerged()?;
        if !unmerged.is_empty() {
            // Committed as they are, they are not in conflict for git any more.
            self.note_conflicts(work, &unmerged)?;
        }
        for file in self.noted_conflicts(work)? {
            let (path, file) = (repo.dir.join(&file), file.display());
            // A link or nothing at all holds no markers.
            match fs_err::symlink_metadata(&path) {
                Ok(meta) if !meta.is_file() => continue,
                Err(error) if is_gone(&error) => continue,
                _ => {}
            }
            match fs_err::read(&path) {
                Ok(text) if has_markers(&text) => {
                    return Ok(Some(format!("{file} still contains conflict markers")));
                }
                Ok(_) => {}
                Err(error) => {
                    return Ok(Some(format!(
                        "{file} was in conflict and cannot be read, so it may still contain \
                         conflict markers: {error}"
                    )));
                }
            }
        }
        Ok(None)
    }

    /// The loop is over.
    pub(super) fn forget_conflicts(&self) {
        let entries = fs_err::read_dir(&self.folder);
        for entry in entries.into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(CONFLICTS) {
                drop(fs_err::remove_file(entry.path()));
            }
        }
    }
}

/// Whether a line of a text begins a conflict as git writes it.
fn has_markers(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n');
    lines.any(|line| line.starts_with(b"<<<<<<< "))
}
