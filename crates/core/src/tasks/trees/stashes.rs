//! Stashes of agents. All worktrees of a repository share one list of them, which is the user's as
//! well: what lies there is in no commit, and any agent beside may take it.
//!
//! Nothing here changes the list. A stash that an agent left goes back to that agent in message, and
//! gets a branch of its own when the loop is over. While several agents work, the list is watched:
//! a stash that another one's agent took out is named to both.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use descartes_kernel::tasks::stash_branch;

use super::files::read_note;
use super::stash_list::{Stash, StashList, short};
use super::stash_watch::StashWatch;
use super::{Done, GitError, Trees};
use crate::tasks::git::Repo;

/// Files of a stash that are named.
const NAMED: usize = 5;

/// The list of stashes as a loop sees it.
pub(super) struct Stashes {
    list: Arc<StashList>,
    watch: Mutex<Option<StashWatch>>,
}

impl Stashes {
    pub(super) fn new(user: &Repo, folder: &Path, ref_tag: &str) -> Self {
        Self {
            list: Arc::new(StashList::new(user, folder, ref_tag)),
            watch: Mutex::default(),
        }
    }

    fn watch(&self) -> MutexGuard<'_, Option<StashWatch>> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trees {
    /// Stashes that were there before any agent of this loop.
    fn stashes_before(&self) -> PathBuf {
        self.folder.join("control").join("stashes")
    }

    /// Writes down what is in the list before the first agent begins.
    pub(super) fn note_stashes(&self) -> Done<()> {
        let list = self.stashes.list.list()?;
        let text: Vec<String> = list.into_iter().map(|stash| stash.commit).collect();
        fs_err::write(self.stashes_before(), text.join("\n")).map_err(GitError::from)
    }

    pub(super) fn has_noted_stashes(&self) -> bool {
        self.stashes_before().exists()
    }

    /// Watches the list while several agents share it. Where git keeps refs in tables and not in
    /// files, it is looked at between attempts only.
    pub(super) fn watch_stashes(&self) -> Done<()> {
        let common = self.common_dir()?;
        if common.join("reftable").exists() {
            return Ok(());
        }
        let folder = common.join("logs").join("refs");
        let list = &self.stashes.list;
        list.log.get_or_init(|| folder.join("stash"));
        *self.stashes.watch() = StashWatch::begin(list, &folder);
        Ok(())
    }

    pub(super) fn unwatch_stashes(&self) {
        *self.stashes.watch() = None;
    }

    /// Stashes that agents of this loop left in the list.
    fn new_stashes(&self) -> Done<Vec<Stash>> {
        let list = self.stashes.list.look()?;
        if list.is_empty() {
            return Ok(list);
        }
        let before = read_note(&self.stashes_before())?.unwrap_or_default();
        let before = String::from_utf8_lossy(&before);
        let before: HashSet<&str> = before.lines().collect();
        let is_new = |stash: &Stash| !before.contains(stash.commit.as_str());
        Ok(list.into_iter().filter(is_new).collect())
    }

    /// Stashes that the agent of a branch left, in that slot or an earlier one.
    fn stashes_of(&self, branch: &str, repo: &Repo) -> Done<Vec<Stash>> {
        let mut new = self.new_stashes()?;
        if new.is_empty() {
            return Ok(new);
        }
        // It may have gone to another branch for a while.
        let moves = repo
            .ask(&["log", "-g", "--format=%gs", "HEAD", "--"])
            .unwrap_or_default();
        let users = self.user.branch()?;
        let is_own = |name: &str| {
            name == branch
                || (!name.starts_with("descartes/")
                    && users.as_deref() != Some(name)
                    && moves.lines().any(|line| {
                        let rest = line.strip_prefix("checkout: moving from ");
                        rest.and_then(|rest| rest.split_once(" to "))
                            .is_some_and(|(from, to)| from == name || to == name)
                    }))
        };
        new.retain(|stash| stash_branch(&stash.message).is_some_and(is_own));
        Ok(new)
    }

    /// What an agent has to know of stashes that it left, or that are not its own.
    pub(super) fn stash_words(&self, branch: &str, repo: &Repo) -> Done<Vec<String>> {
        let mut message = Vec::new();
        for stash in self.stashes_of(branch, repo)? {
            let files = self.stashes.list.files_of(&stash.commit)?;
            let files: Vec<String> = files.into_iter().map(|(path, _)| path).collect();
            message.push(format!(
                "work was left in the stash {} (\"{}\"{}): it is not in any commit, and any \
                 agent working alongside you may take it, since all worktrees of this repository \
                 share one list of stashes. If it belongs to the task, restore it: git stash \
                 apply {}. Then, or if it does not, drop that entry: git stash list shows its \
                 number. \
                 Commit instead of stashing",
                short(&stash.commit),
                stash.message,
                named(&files),
                short(&stash.commit),
            ));
        }
        let mut known = self.stashes.list.known();
        for taken in &mut known.taken {
            let (files, commit) = (named(&taken.files), short(&taken.commit).to_owned());
            if taken.owner == branch && !std::mem::replace(&mut taken.told_owner, true) {
                message.push(format!(
                    "an agent working alongside you took your stash {commit}{files}, since all \
                     worktrees of this repository share one list of stashes. If it belongs to \
                     the task, restore it: git stash apply {commit}. Undo anything that came \
                     from a stash that was not yours. Commit instead of stashing"
                ));
            }
            if taken.taker == branch && !std::mem::replace(&mut taken.told_taker, true) {
                message.push(format!(
                    "what you took from the list of stashes was not yours{files}: all worktrees of this repository \
                     share one list, and another agent had put it there ({commit}) and gets it \
                     back. Undo these changes where they do not belong to your task. Commit \
                     instead of stashing"
                ));
            }
        }
        Ok(message)
    }

    /// The loop is over: stashes that are left get names under which a person finds them.
    pub(super) fn keep_stashes(&self) -> Done<()> {
        let looker = &self.stashes.list;
        let mut left: Vec<Stash> = self.new_stashes()?;
        left.retain(|stash| {
            let branch = stash_branch(&stash.message);
            branch.is_some_and(|branch| branch.starts_with(&looker.branches))
        });
        let refs = ["for-each-ref", "--format=%(objectname)", &looker.refs];
        let taken = self.user.ask(&refs)?;
        for commit in taken.lines().filter(|commit| !commit.is_empty()) {
            if !self.is_brought_in(commit)? {
                let message = self.user.subject_of(commit)?;
                let commit = commit.to_owned();
                left.push(Stash { commit, message });
            }
        }
        for stash in left {
            let files = looker.files_of(&stash.commit)?;
            let files: Vec<String> = files.into_iter().map(|(path, _)| path).collect();
            let kept = self.keep_commit(&stash.commit)?;
            self.user.locks.tell(format!(
                "an agent left a stash (\"{}\"{}), which is not in any commit that lands: it is \
                 kept on {kept}; apply it with: git stash apply {}",
                stash.message,
                named(&files),
                descartes_text::shell::word(&kept),
            ));
        }
        for commit in taken.lines() {
            let name = format!("{}/{}", looker.refs, short(commit));
            self.user.tidy(&["update-ref", "-d", &name, commit]);
        }
        Ok(())
    }

    /// Whether all files of a stash are in what was merged, as it has them.
    fn is_brought_in(&self, commit: &str) -> Done<bool> {
        let merged = self.merged()?;
        for (path, blob) in self.stashes.list.files_of(commit)? {
            let name = format!("{merged}:{path}");
            let found = self.user.ask(&["rev-parse", "--verify", "--quiet", &name]);
            if found.ok() != Some(blob) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn named(files: &[String]) -> String {
    let list = files[..files.len().min(NAMED)].join(", ");
    match files.len() {
        0 => String::new(),
        n if n > NAMED => format!(", with {list} and {} more", n - NAMED),
        _ => format!(", with {list}"),
    }
}
