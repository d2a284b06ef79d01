//! Work in git worktrees outside the repository: a slot for each task at work, and one tree in
//! which finished work comes together before it lands in the user's checkout.
//!
//! Everything that must survive is a ref of the user's repository:
//! `refs/heads/descartes/TAG/ID` holds a task's work, `refs/descartes/TAG/merged` what was merged
//! and proven, `refs/descartes/TAG/waves` the last commit of a wave (or what the loop began
//! from). Each is moved only after what it points to is complete, so that a host that dies
//! anywhere begins the same step again.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use descartes_kernel::graph::TaskId;
use descartes_kernel::sched::{CommitEnd, MergeEnd};
use descartes_kernel::tasks::{Landing, TasksConfig};

use super::git::Repo;
use super::in_place::wave_message;
use super::launch::file_name;
use super::place::{Gates, MergeDone, Proven, Ready, WaveDone, Work, Workplace};
use super::shell::{Shell, Stopper};
use crate::host::{HostError, HostSettings, git_of};

/// Time for the command that makes a worktree ready.
const SETUP: Duration = Duration::from_secs(30 * 60);

/// Files of a task that are told by name to those that depend on it.
const TOLD_FILES: usize = 20;

type Done<T> = Result<T, String>;

/// The worktrees of a task loop.
pub(super) struct Trees {
    user: Repo,
    /// The branch that was checked out when the loop began; work lands nowhere else.
    branch: Option<String>,
    /// Where in the repository the loop works.
    prefix: PathBuf,
    folder: PathBuf,
    tag: String,
    ref_tag: String,
    /// Paths within the repository that are in no commit of ours.
    shielded: Vec<String>,
    squash: bool,
    marks_waves: bool,
    barrier: bool,
    copy: Vec<String>,
    setup: Option<String>,
    settings: HostSettings,
    /// Worktrees are made and removed one at a time.
    making: Mutex<()>,
    /// Ends the commands that make worktrees ready.
    setups: Mutex<Vec<Stopper>>,
}

impl Trees {
    /// Looks at the repository around `dir`, and writes nothing.
    pub(super) fn open(
        dir: &Path,
        settings: &HostSettings,
        shielded: &[PathBuf],
        config: &TasksConfig,
    ) -> Result<Self, HostError> {
        let here = Repo::at(dir, &git_of(settings));
        let top = here
            .ask(&["rev-parse", "--show-toplevel"])
            .map_err(|words| {
                HostError::refused(
                    format!(
                        "worktrees need git: {}",
                        words.trim_start_matches("git rev-parse: ")
                    ),
                    "give --in-place to work in this folder without git",
                )
            })?;
        let top = PathBuf::from(top);
        let user = here.beside(&top);
        let refuse =
            |words: String| HostError::refused(words, "give --in-place, or mend it in git");
        if user.commit_of("HEAD").map_err(refuse)?.is_none() {
            return Err(HostError::refused(
                "worktrees need a commit to start from, and this repository has none",
                "make a first commit, or give --in-place",
            ));
        }
        let tag = config.source.tag();
        let ref_tag = file_name(&tag);
        let hash = short_hash(&top);
        let folder = settings.root.worktrees().join(format!("{hash}-{ref_tag}"));
        let inside = |path: &PathBuf| {
            let path = fs_err::canonicalize(path).unwrap_or_else(|_| path.clone());
            Some(path.strip_prefix(&top).ok()?.to_string_lossy().into_owned())
        };
        let prefix = dir.strip_prefix(&top).unwrap_or(Path::new("")).to_owned();
        Ok(Self {
            branch: user.branch().map_err(refuse)?,
            user,
            prefix,
            folder,
            tag,
            ref_tag,
            shielded: shielded
                .iter()
                .filter_map(inside)
                .filter(|p| !p.is_empty())
                .collect(),
            squash: config.auto_commit_waves && config.wave_barrier,
            marks_waves: config.auto_commit_waves && !config.wave_barrier,
            barrier: config.wave_barrier,
            copy: config.worktree_copy.clone(),
            setup: config.worktree_setup.clone(),
            settings: settings.clone(),
            making: Mutex::new(()),
            setups: Mutex::default(),
        })
    }

    /// What a person should know before work begins in worktrees.
    pub(super) fn notices(&self) -> Vec<String> {
        let submodules = self.user.dir.join(".gitmodules").is_file();
        let words = "this repository has submodules, and git leaves them empty in worktrees: \
            set worktree_setup = \"git submodule update --init --recursive\" in the config";
        (submodules && self.setup.is_none())
            .then(|| words.to_owned())
            .into_iter()
            .collect()
    }

    fn merged_ref(&self) -> String {
        format!("refs/descartes/{}/merged", self.ref_tag)
    }

    fn waves_ref(&self) -> String {
        format!("refs/descartes/{}/waves", self.ref_tag)
    }

    fn branch_of(&self, work: &Work) -> String {
        format!("descartes/{}/{}", self.ref_tag, file_name(&work.id))
    }

    /// Where finished work waits that cannot land, while tasks have branches of their own: git has
    /// no room for a branch `descartes/TAG` beside branches under that name.
    fn ready_branch(&self) -> String {
        format!("descartes/{}/=ready", self.ref_tag)
    }

    /// Where it waits once no task has one.
    fn whole_branch(&self) -> String {
        format!("descartes/{}", self.ref_tag)
    }

    /// Makes room for branches of tasks.
    fn make_room(&self) -> Done<()> {
        let whole = format!("refs/heads/{}", self.whole_branch());
        let Some(commit) = self.user.commit_of(&whole)? else {
            return Ok(());
        };
        // The one is gone before the other can be, so the commit is named apart meanwhile.
        let apart = format!("refs/descartes/{}/ready", self.ref_tag);
        let ready = format!("refs/heads/{}", self.ready_branch());
        self.move_refs(&[(apart.clone(), &commit)])?;
        self.user.quiet(&["update-ref", "-d", &whole])?;
        self.move_refs(&[(ready, &commit)])?;
        self.user.quiet(&["update-ref", "-d", &apart]).map(drop)
    }

    /// Everything that is done waits in one commit: branches of tasks that are in it go, and where
    /// none is left it gets the name that people look for.
    fn gather(&self, done: &[Work]) -> Done<()> {
        let ready = format!("refs/heads/{}", self.ready_branch());
        let Some(commit) = self.user.commit_of(&ready)? else {
            return Ok(());
        };
        for work in done {
            let branch = self.branch_of(work);
            drop(self.user.attempt(&["branch", "--quiet", "-D", &branch])?);
        }
        let folder = format!("refs/heads/{}/", self.whole_branch());
        let left = self
            .user
            .ask(&["for-each-ref", "--format=%(refname)", &folder])?;
        if left != ready {
            return Ok(());
        }
        let apart = format!("refs/descartes/{}/ready", self.ref_tag);
        let whole = format!("refs/heads/{}", self.whole_branch());
        self.move_refs(&[(apart.clone(), &commit)])?;
        self.user.quiet(&["update-ref", "-d", &ready])?;
        self.move_refs(&[(whole, &commit)])?;
        self.user.quiet(&["update-ref", "-d", &apart]).map(drop)
    }

    /// What was merged so far; at first, the user's commit.
    fn merged(&self) -> Done<String> {
        if let Some(commit) = self.user.commit_of(&self.merged_ref())? {
            return Ok(commit);
        }
        let head = self.user.commit_of("HEAD")?.ok_or("there is no commit")?;
        self.move_refs(&[(self.merged_ref(), &head), (self.waves_ref(), &head)])?;
        Ok(head)
    }

    /// The same, once commits that the user made since our last landing are taken up.
    fn caught_up(&self) -> Done<String> {
        let merged = self.merged()?;
        let head = self.user.commit_of("HEAD")?.ok_or("there is no commit")?;
        let moved = head != merged && self.user.is_ancestor(&merged, &head)?;
        if moved && self.user.branch()? == self.branch {
            self.move_refs(&[(self.merged_ref(), &head), (self.waves_ref(), &head)])?;
            return Ok(head);
        }
        Ok(merged)
    }

    fn waves(&self) -> Done<String> {
        let merged = self.merged()?;
        Ok(self.user.commit_of(&self.waves_ref())?.unwrap_or(merged))
    }

    fn move_refs(&self, refs: &[(String, &str)]) -> Done<()> {
        for (name, commit) in refs {
            self.user.quiet(&["update-ref", name, commit])?;
        }
        Ok(())
    }

    fn worktree(&self, name: &str, fresh: &mut bool) -> Done<Repo> {
        let path = self.folder.join(name);
        let _one = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let repo = self.user.beside(&path);
        if path.join(".git").is_file() && repo.ask(&["rev-parse", "HEAD"]).is_ok() {
            return Ok(repo);
        }
        // What a dead host made half of, or an earlier repository of the same path left.
        drop(fs_err::remove_dir_all(&path));
        self.user.quiet(&["worktree", "prune"])?;
        fs_err::create_dir_all(&self.folder).map_err(|error| error.to_string())?;
        let merged = self.merged()?;
        let text = path.to_string_lossy();
        self.user
            .quiet(&["worktree", "add", "--quiet", "--detach", &text, &merged])?;
        *fresh = true;
        Ok(repo)
    }

    /// Work that a dead host left in a slot goes onto the branch that is checked out there.
    fn rescue(&self, repo: &Repo) -> Done<()> {
        let branch = repo.branch()?;
        let ours = format!("descartes/{}/", self.ref_tag);
        if branch.is_some_and(|branch| branch.starts_with(&ours)) && repo.is_dirty()? {
            self.commit_all(repo, "work of an attempt that was cut short", Proven::No)?;
        }
        Ok(())
    }

    /// Commits everything but the files of the tasks; nothing to commit is fine.
    fn commit_all(&self, repo: &Repo, message: &str, proven: Proven) -> Done<()> {
        repo.quiet(&["add", "-A"])?;
        self.put_back(repo)?;
        let merging = repo.commit_of("MERGE_HEAD")?.is_some();
        if !merging && repo.holds(&["diff", "--cached", "--quiet"])? {
            return Ok(());
        }
        let commit = ["commit", "--quiet", "--allow-empty", "-m", message];
        match proven {
            Proven::Green => repo.act(&commit).map(drop),
            Proven::No => repo.quiet(&commit).map(drop),
        }
    }

    /// Takes the files of the tasks, and our own folder, out of what is about to be committed.
    fn put_back(&self, repo: &Repo) -> Done<()> {
        let own = self
            .prefix
            .join(".descartes")
            .to_string_lossy()
            .into_owned();
        for path in self
            .shielded
            .iter()
            .map(String::as_str)
            .chain([own.as_str()])
        {
            let spec = format!(":(literal){path}");
            repo.quiet(&["reset", "--quiet", "HEAD", "--", &spec])?;
        }
        Ok(())
    }

    /// Makes a tree of ours what a commit says, leaving what git ignores: build caches stay warm.
    fn set_to(&self, repo: &Repo, commit: &str) -> Done<()> {
        // What was begun there and never finished is of no worth: its commits are elsewhere.
        drop(repo.attempt(&["merge", "--abort"])?);
        repo.quiet(&["reset", "--quiet", "--hard"])?;
        repo.quiet(&["clean", "--quiet", "-fd"])?;
        repo.quiet(&["checkout", "--quiet", "--detach", commit])?;
        Ok(())
    }

    fn furnish(&self, repo: &Repo) -> Done<()> {
        for name in &self.copy {
            let (from, to) = (self.user.dir.join(name), repo.dir.join(name));
            if !from.exists() {
                continue;
            }
            if let Some(parent) = to.parent() {
                fs_err::create_dir_all(parent).map_err(|error| error.to_string())?;
            }
            copy_all(&from, &to).map_err(|error| format!("cannot copy {name}: {error}"))?;
        }
        let Some(setup) = &self.setup else {
            return Ok(());
        };
        let mut shell =
            Shell::new(&self.settings, "worktree").map_err(|error| error.to_string())?;
        let log = self.folder.join("setup.log");
        let setups = || self.setups.lock().unwrap_or_else(PoisonError::into_inner);
        setups().push(shell.stopper());
        let ran = shell.run(&repo.dir.join(&self.prefix), setup, SETUP, log);
        match ran.is_green() {
            true => Ok(()),
            false => Err(format!("worktree_setup `{setup}` failed:\n{}", ran.tail)),
        }
    }

    fn ready(&self, slot: u32, work: &Work) -> Done<Ready> {
        let mut fresh = false;
        let repo = self.worktree(&format!("slot-{slot}"), &mut fresh)?;
        self.rescue(&repo)?;
        let merged = self.merged()?;
        let branch = self.branch_of(work);
        let known = self.user.commit_of(&format!("refs/heads/{branch}"))?;
        match known {
            None => {
                self.set_to(&repo, &merged)?;
                repo.quiet(&["checkout", "--quiet", "-B", &branch])?;
            }
            Some(commit) => {
                self.set_to(&repo, &commit)?;
                // Another slot may still have it checked out, cut short by a dead host.
                self.free(&branch, &repo)?;
                repo.quiet(&["checkout", "--quiet", &branch])?;
            }
        }
        if fresh {
            self.furnish(&repo)?;
        }
        let note = self.catch_up(&repo, &merged)?;
        Ok(Ready {
            dir: repo.dir.join(&self.prefix),
            note,
        })
    }

    /// Takes a branch away from every other slot, with the work that lies there.
    fn free(&self, branch: &str, ours: &Repo) -> Done<()> {
        let slots = fs_err::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .flatten();
        for slot in slots.map(|entry| self.user.beside(&entry.path())) {
            if slot.dir == ours.dir || !slot.dir.join(".git").is_file() {
                continue;
            }
            if slot.branch()?.as_deref() == Some(branch) {
                self.rescue(&slot)?;
                slot.quiet(&["checkout", "--quiet", "--detach"])?;
            }
        }
        Ok(())
    }

    /// Brings what was merged meanwhile into a task's tree. Conflicts stay in the files, for the
    /// agent to resolve.
    fn catch_up(&self, repo: &Repo, merged: &str) -> Done<Option<String>> {
        if repo.is_ancestor(merged, "HEAD")? {
            return Ok(None);
        }
        let words = repo.attempt(&["merge", "--no-edit", "--quiet", merged])?;
        if words.is_ok() {
            return Ok(None);
        }
        let files = repo.unmerged()?;
        if files.is_empty() {
            return Err(words.err().unwrap_or_default());
        }
        let list: Vec<String> = files.iter().map(|file| format!("- {file}")).collect();
        Ok(Some(format!(
            "---\nMERGE CONFLICT: other work was merged meanwhile, and these files hold conflict markers.\n\
             Resolve them so that both changes keep their meaning:\n{}\n---",
            list.join("\n")
        )))
    }

    fn keep(&self, slot: u32, work: &Work, proven: Proven) -> Done<()> {
        let repo = self.user.beside(&self.folder.join(format!("slot-{slot}")));
        if repo.branch()?.as_deref() != Some(self.branch_of(work).as_str()) {
            // The agent went elsewhere: what it committed there is named, so that it is not lost.
            let head = repo.commit_of("HEAD")?.ok_or("there is no commit")?;
            if repo.is_dirty()? {
                self.commit_all(&repo, &work.title, Proven::No)?;
            }
            let head = repo.commit_of("HEAD")?.unwrap_or(head);
            let name = format!("refs/heads/{}", self.branch_of(work));
            let known = self.user.commit_of(&name)?;
            let onward = match &known {
                Some(known) => repo.is_ancestor(known, &head)?,
                None => true,
            };
            if !onward {
                return Err(format!(
                    "its agent left the branch {}",
                    self.branch_of(work)
                ));
            }
            repo.quiet(&["checkout", "--quiet", "--detach"])?;
            return self.move_refs(&[(name, &head)]);
        }
        let marked = self.still_marked(&repo)?;
        let message = match proven {
            Proven::Green => work.title.clone(),
            Proven::No => format!("{} (unproven)", work.title),
        };
        self.commit_all(&repo, &message, proven)?;
        // What is left are the agent's copies of the task files.
        repo.quiet(&["reset", "--quiet", "--hard"])?;
        repo.quiet(&["checkout", "--quiet", "--detach"])?;
        match marked {
            Some(file) => Err(format!("{file} still holds conflict markers")),
            None => Ok(()),
        }
    }

    /// A file with unresolved conflicts that still looks like one.
    fn still_marked(&self, repo: &Repo) -> Done<Option<String>> {
        let marked = |file: &String| {
            let text = fs_err::read(repo.dir.join(file)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            text.lines().any(|line| line.starts_with("<<<<<<< "))
        };
        Ok(repo.unmerged()?.into_iter().find(marked))
    }

    fn bring_together(&self, work: &Work, gates: Gates<'_>) -> Done<MergeEnd> {
        let branch = format!("refs/heads/{}", self.branch_of(work));
        let Some(theirs) = self.user.commit_of(&branch)? else {
            return Err(format!("the branch {} is gone", self.branch_of(work)));
        };
        let merged = self.caught_up()?;
        let mut fresh = false;
        let repo = self.worktree("merged", &mut fresh)?;
        if fresh {
            self.furnish(&repo)?;
        }
        self.set_to(&repo, &merged)?;
        if let Err(words) = repo.attempt(&["merge", "--squash", "--quiet", &theirs])? {
            let files = repo.unmerged()?;
            let tail = match files.is_empty() {
                true => words,
                false => format!("{words}\nconflicts in: {}", files.join(", ")),
            };
            self.set_to(&repo, &merged)?;
            return Ok(MergeEnd::Conflict { tail });
        }
        self.put_back(&repo)?;
        if repo.holds(&["diff", "--cached", "--quiet"])? {
            // Merged before a host died, or a task that changed nothing.
            return Ok(MergeEnd::Merged);
        }
        if let Err(message) = repo.act(&["commit", "--quiet", "-m", &work.title]) {
            self.set_to(&repo, &merged)?;
            return Ok(MergeEnd::Failed { message });
        }
        let commit = repo.commit_of("HEAD")?.ok_or("there is no commit")?;
        // The gates were green on the task's own tree: the same tree is not proven twice.
        let same = repo.tree_of(&commit)? == repo.tree_of(&theirs)?;
        if !same && let Err(tail) = gates(&repo.dir.join(&self.prefix)) {
            self.set_to(&repo, &merged)?;
            return Ok(MergeEnd::Red { tail });
        }
        self.user
            .quiet(&["update-ref", &self.merged_ref(), &commit, &merged])?;
        Ok(MergeEnd::Merged)
    }

    /// One commit for the wave on top of the last one, then into the user's checkout.
    fn close_wave(&self, wave: u32, gates: Gates<'_>) -> Done<(Option<String>, Option<Landing>)> {
        let message = wave_message(&self.tag, wave);
        let (merged, last) = (self.merged()?, self.waves()?);
        let new = self.user.tree_of(&merged)? != self.user.tree_of(&last)?;
        let commit = if self.squash && new {
            let tree = self.user.tree_of(&merged)?;
            Some(
                self.user
                    .quiet(&["commit-tree", &tree, "-p", &last, "-m", &message])?,
            )
        } else if self.marks_waves
            && self.user.ask(&["log", "-1", "--format=%s", &merged])? != message
        {
            let tree = self.user.tree_of(&merged)?;
            Some(
                self.user
                    .quiet(&["commit-tree", &tree, "-p", &merged, "-m", &message])?,
            )
        } else if self.user.ask(&["log", "-1", "--format=%s", &last])? == message {
            // Committed before a host died.
            Some(last)
        } else {
            (merged != last).then_some(merged)
        };
        if let Some(commit) = &commit {
            self.move_refs(&[(self.waves_ref(), commit), (self.merged_ref(), commit)])?;
        }
        let (landed, landing) = self.land(&message, gates)?;
        let commit = commit.map(|commit| landed.unwrap_or(commit));
        Ok((commit, landing))
    }

    /// Brings what was merged into the user's checkout: fast-forward, or not at all.
    fn land(&self, message: &str, gates: Gates<'_>) -> Done<(Option<String>, Option<Landing>)> {
        let merged = self.merged()?;
        let head = self.user.commit_of("HEAD")?.ok_or("there is no commit")?;
        if head == merged || self.user.is_ancestor(&merged, &head)? {
            self.user
                .attempt(&["branch", "--quiet", "-D", &self.ready_branch()])?
                .ok();
            return Ok((None, None));
        }
        if self.user.branch()? != self.branch {
            let why = "another branch is checked out than when the loop began";
            return self
                .wait_to_land(&merged, why)
                .map(|landing| (None, Some(landing)));
        }
        let mut commit = merged.clone();
        if !self.user.is_ancestor(&head, &merged)? {
            match self.redo_on(&head, &merged, message, gates)? {
                Ok(new) => commit = new,
                Err(why) => {
                    return self
                        .wait_to_land(&merged, &why)
                        .map(|landing| (None, Some(landing)));
                }
            }
        }
        match self
            .user
            .attempt(&["merge", "--ff-only", "--quiet", &commit])?
        {
            Ok(()) => {
                self.move_refs(&[(self.waves_ref(), &commit), (self.merged_ref(), &commit)])?;
                self.user
                    .attempt(&["branch", "--quiet", "-D", &self.ready_branch()])?
                    .ok();
                let landing = Landing::Landed {
                    commit: commit.clone(),
                };
                Ok((Some(commit), Some(landing)))
            }
            Err(words) => {
                let why = words.lines().next().unwrap_or("git refused").to_owned();
                self.move_refs(&[(self.waves_ref(), &commit), (self.merged_ref(), &commit)])?;
                self.wait_to_land(&commit, &why)
                    .map(|landing| (None, Some(landing)))
            }
        }
    }

    /// The user's branch moved: merge and gates are done again on top of it.
    fn redo_on(
        &self,
        head: &str,
        merged: &str,
        message: &str,
        gates: Gates<'_>,
    ) -> Done<Result<String, String>> {
        let repo = self.worktree("merged", &mut false)?;
        self.set_to(&repo, head)?;
        if let Err(words) = repo.attempt(&["merge", "--squash", "--quiet", merged])? {
            self.set_to(&repo, merged)?;
            let first = words.lines().next().unwrap_or("").to_owned();
            return Ok(Err(format!(
                "it conflicts with commits made meanwhile: {first}"
            )));
        }
        self.put_back(&repo)?;
        if repo.holds(&["diff", "--cached", "--quiet"])? {
            return Ok(Ok(head.to_owned()));
        }
        repo.quiet(&["commit", "--quiet", "-m", message])?;
        let commit = repo.commit_of("HEAD")?.ok_or("there is no commit")?;
        if let Err(tail) = gates(&repo.dir.join(&self.prefix)) {
            self.set_to(&repo, merged)?;
            let first = tail.lines().next().unwrap_or("").to_owned();
            return Ok(Err(format!(
                "with commits made meanwhile it is red: {first}"
            )));
        }
        Ok(Ok(commit))
    }

    fn wait_to_land(&self, commit: &str, why: &str) -> Done<Landing> {
        let branch = self.ready_branch();
        self.move_refs(&[(format!("refs/heads/{branch}"), commit)])?;
        Ok(Landing::Ready {
            commit: commit.to_owned(),
            branch,
            why: why.to_owned(),
        })
    }
}

impl Workplace for Trees {
    fn begin(&self) -> Result<(), String> {
        self.make_room()?;
        // Refs of a loop that ended long ago do not hold this one back.
        self.caught_up().map(drop)
    }

    fn prepare(&self, slot: u32, work: &Work) -> Result<Ready, String> {
        self.ready(slot, work)
    }

    fn finish(&self, slot: u32, work: &Work, proven: Proven) -> Result<(), String> {
        self.keep(slot, work, proven)
    }

    fn outside(&self, work: &Work, files: &[String]) -> Result<Vec<String>, String> {
        let theirs = format!("refs/heads/{}", self.branch_of(work));
        let range = format!("{}...{theirs}", self.merged()?);
        let inside: Vec<String> = files
            .iter()
            .map(|file| format!(":(exclude){file}"))
            .collect();
        let mut args = vec!["diff", "--name-only", &range, "--", ":/"];
        args.extend(inside.iter().map(String::as_str));
        // Where the loop works in a folder of the repository, the patterns begin there.
        let here = self.user.beside(&self.user.dir.join(&self.prefix));
        Ok(here.ask(&args)?.lines().map(str::to_owned).collect())
    }

    fn delivered(&self, work: &Work) -> Option<String> {
        let theirs = format!("refs/heads/{}", self.branch_of(work));
        let range = format!("{}...{theirs}", self.merged().ok()?);
        self.user.commit_of(&theirs).ok()??;
        let out = self.user.ask(&["diff", "--name-only", &range]).ok()?;
        let files: Vec<&str> = out.lines().collect();
        let named = files.iter().take(TOLD_FILES).copied();
        let named: Vec<&str> = named.collect();
        let more = files.len() - named.len();
        match (files.is_empty(), more) {
            (true, _) => None,
            (_, 0) => Some(format!("changed {}", named.join(", "))),
            _ => Some(format!("changed {} and {more} more", named.join(", "))),
        }
    }

    fn merge(&self, work: &Work, gates: Gates<'_>) -> MergeDone {
        let end = match self.bring_together(work, gates) {
            Ok(end) => end,
            Err(message) => MergeEnd::Failed { message },
        };
        let mut landing = None;
        if end == MergeEnd::Merged && !self.barrier {
            landing = match self.land(&work.title, gates) {
                Ok((_, landing)) => landing,
                Err(why) => self.merged().and_then(|m| self.wait_to_land(&m, &why)).ok(),
            };
        }
        MergeDone { end, landing }
    }

    fn commit_wave(&self, wave: u32, _: &[TaskId], gates: Gates<'_>) -> WaveDone {
        match self.close_wave(wave, gates) {
            Ok((commit, landing)) => WaveDone {
                end: CommitEnd::Committed { commit },
                landing,
            },
            Err(message) => WaveDone {
                end: CommitEnd::Failed { message },
                landing: None,
            },
        }
    }

    fn stop(&self) {
        let mut setups = self.setups.lock().unwrap_or_else(PoisonError::into_inner);
        setups.drain(..).for_each(|setup| setup.stop());
    }

    fn close(&self, done: &[Work]) {
        let Ok(merged) = self.merged() else { return };
        let landed = self
            .user
            .commit_of("HEAD")
            .ok()
            .flatten()
            .is_some_and(|head| self.user.is_ancestor(&merged, &head).unwrap_or(false));
        // Slots and branches of finished work; what is not done keeps its branch.
        let slots = fs_err::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .flatten();
        for slot in slots
            .map(|entry| entry.path())
            .filter(|path| path.join(".git").is_file())
        {
            let repo = self.user.beside(&slot);
            if self.rescue(&repo).is_ok() {
                let text = slot.to_string_lossy();
                drop(self.user.quiet(&["worktree", "remove", "--force", &text]));
            }
        }
        if landed {
            for work in done {
                let branch = self.branch_of(work);
                drop(self.user.attempt(&["branch", "--quiet", "-D", &branch]));
            }
            for name in [self.merged_ref(), self.waves_ref()] {
                drop(self.user.quiet(&["update-ref", "-d", &name]));
            }
        } else {
            // What cannot be gathered stays where it is, and is accounted for there.
            drop(self.gather(done));
        }
        drop(fs_err::remove_dir(&self.folder));
    }
}

fn short_hash(path: &Path) -> String {
    use sha2::{Digest, Sha256};
    use std::os::unix::ffi::OsStrExt;
    let hash = Sha256::digest(path.as_os_str().as_bytes());
    hash.iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn copy_all(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        return fs_err::copy(from, to).map(drop);
    }
    fs_err::create_dir_all(to)?;
    for entry in fs_err::read_dir(from)? {
        let entry = entry?;
        copy_all(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
