//! Stashes of agents. All worktrees of a repository share one list of them, which is the user's as
//! well: what lies there is in no commit, and any agent beside may take it.
//!
//! Nothing here changes the list. A stash that an agent left goes back to that agent in words, and
//! gets a branch of its own when the loop is over. While several agents work, the list is watched:
//! a stash that another one's agent took out is named to both.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use descartes_kernel::tasks::stash_branch;

use super::stash_watch::StashWatch;
use super::{Done, GitError, Trees};
use crate::tasks::git::Repo;

/// Files of a stash that are named.
const NAMED: usize = 5;

/// A list that changes while it is read is read again so often.
const TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// An entry of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stash {
    commit: String,
    /// What git, or who made it, called it.
    words: String,
}

/// A stash of one agent that another's took out of the list.
#[derive(Clone, Debug)]
struct TakenStash {
    commit: String,
    owner: String,
    taker: String,
    files: Vec<String>,
    told_owner: bool,
    told_taker: bool,
}

/// What is known of the stashes of a loop's agents.
#[derive(Debug, Default)]
struct KnownStashes {
    /// Commit and branch of those that are or were in the list.
    seen: HashMap<String, String>,
    /// Those that left the list, and who took them is not known yet.
    gone: Vec<(String, String)>,
    taken: Vec<TakenStash>,
}

/// Looks at the list, from whichever thread.
pub(super) struct Looker {
    user: Repo,
    /// The folder of our worktrees.
    folder: PathBuf,
    /// How the branches of our tasks begin.
    branches: String,
    /// Where a stash that was taken is kept meanwhile.
    refs: String,
    /// The file in which git keeps the list, while it is watched.
    log: OnceLock<PathBuf>,
    ledger: Mutex<KnownStashes>,
    /// Held while it is found out who took what.
    asking: Mutex<()>,
}

/// The list of stashes as a loop sees it.
pub(super) struct Stashes {
    looker: Arc<Looker>,
    watch: Mutex<Option<StashWatch>>,
}

impl Stashes {
    pub(super) fn new(user: &Repo, folder: &Path, ref_tag: &str) -> Self {
        Self {
            looker: Arc::new(Looker {
                user: user.clone(),
                folder: folder.to_owned(),
                branches: format!("descartes/{ref_tag}/"),
                refs: format!("refs/descartes/{ref_tag}/stash"),
                log: OnceLock::new(),
                ledger: Mutex::default(),
                asking: Mutex::default(),
            }),
            watch: Mutex::default(),
        }
    }

    fn watch(&self) -> MutexGuard<'_, Option<StashWatch>> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Looker {
    fn ledger(&self) -> MutexGuard<'_, KnownStashes> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The list, newest first. Agents change it at any moment.
    fn list(&self) -> Done<Vec<Stash>> {
        let format = "--format=%H %gs";
        let mut tries = 0;
        let listed = loop {
            if self.user.commit_of("refs/stash")?.is_none() {
                return Ok(Vec::new());
            }
            match self.user.ask(&["log", "-g", format, "refs/stash", "--"]) {
                Ok(listed) => break listed,
                Err(words) if tries >= TRIES => return Err(words),
                Err(_) => tries += 1,
            }
            std::thread::sleep(BETWEEN_TRIES);
        };
        let entry = |line: &str| {
            let (commit, words) = line.split_once(' ')?;
            Some(Stash {
                commit: commit.to_owned(),
                words: words.to_owned(),
            })
        };
        Ok(listed.lines().filter_map(entry).collect())
    }

    /// What is in the list, after everything that left it is accounted for.
    fn look(&self) -> Done<Vec<Stash>> {
        self.take_note()?;
        self.find_takers();
        self.list()
    }

    /// Takes note of what is in the list, and of what is there no more. This is quick where the
    /// list is a file, for a stash may be put there and taken within milliseconds: git writes that
    /// file before the ref of a first stash is to be seen, so nobody else is asked. Says whether
    /// anything is gone.
    pub(super) fn take_note(&self) -> Done<bool> {
        // The list is read under the lock: an older one must not follow a newer one.
        let mut ledger = self.ledger();
        let list = match self.log.get() {
            Some(log) => read_log(log)?,
            None => self.list()?,
        };
        let KnownStashes { seen, gone, .. } = &mut *ledger;
        seen.retain(|commit, branch| {
            let is_there = list.iter().any(|stash| stash.commit == *commit);
            if !is_there {
                gone.push((commit.clone(), branch.clone()));
            }
            is_there
        });
        for stash in list {
            let branch = stash_branch(&stash.words);
            if let Some(branch) = branch.filter(|branch| branch.starts_with(&self.branches)) {
                let branch = branch.to_owned();
                seen.insert(stash.commit, branch);
            }
        }
        Ok(!gone.is_empty())
    }

    /// Finds out who took what is in the list no more.
    pub(super) fn find_takers(&self) {
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let Some((commit, owner)) = self.ledger().gone.pop() else {
                return;
            };
            // A commit that is gone from the repository as well tells nothing.
            if let Ok(Some(taken)) = self.taken_by(commit, owner) {
                self.ledger().taken.push(taken);
            }
        }
    }

    /// Who took a stash that is gone from the list: git puts its files in place before it goes.
    fn taken_by(&self, commit: String, owner: String) -> Done<Option<TakenStash>> {
        let files = self.files_of(&commit)?;
        let entries = fs_err::read_dir(&self.folder);
        let mut taker = None;
        for entry in entries.into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let slot = self.user.beside(&entry.path());
            if !name.starts_with("slot-") || !slot.dir.join(".git").exists() {
                continue;
            }
            let Some(branch) = slot.branch()? else {
                continue;
            };
            if !holds_all(&slot, &files) {
                continue;
            }
            if branch == owner {
                return Ok(None);
            }
            taker = Some(branch);
        }
        let Some(taker) = taker.filter(|taker| taker.starts_with(&self.branches)) else {
            // Dropped: whoever did that may have meant it.
            return Ok(None);
        };
        let name = format!("{}/{}", self.refs, short(&commit));
        self.user.quiet(&["update-ref", &name, &commit])?;
        self.user.locks.tell(format!(
            "an agent working on {taker} took a stash that was made on {owner} (all worktrees \
             share one list): both agents are told, and the stash is kept as {}",
            short(&commit)
        ));
        Ok(Some(TakenStash {
            files: files.into_iter().map(|(path, _)| path).collect(),
            commit,
            owner,
            taker,
            told_owner: false,
            told_taker: false,
        }))
    }

    /// Files that a stash brings, with their content.
    fn files_of(&self, commit: &str) -> Done<Vec<(String, String)>> {
        let (base, untracked) = (format!("{commit}^1"), format!("{commit}^3"));
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let filter = "--diff-filter=AMT";
        let changed = ["diff-tree", "-r", "-z", "--no-renames", filter];
        let changed = self
            .user
            .paths(&[&changed[..], &[&base, commit]].concat())?;
        let mut files: Vec<(String, String)> = Vec::new();
        let mut changed = changed.into_iter().map(text);
        while let Some((head, path)) = changed.next().zip(changed.next()) {
            let blob = head.split(' ').nth(3).unwrap_or_default();
            files.push((path, blob.to_owned()));
        }
        if self.user.commit_of(&untracked)?.is_some() {
            for line in self.user.paths(&["ls-tree", "-r", "-z", &untracked])? {
                let line = text(line);
                if let Some((head, path)) = line.split_once('\t') {
                    let blob = head.split(' ').nth(2).unwrap_or_default();
                    files.push((path.to_owned(), blob.to_owned()));
                }
            }
        }
        Ok(files)
    }
}

/// Whether files lie in a tree with this very content.
fn holds_all(slot: &Repo, files: &[(String, String)]) -> bool {
    let there = |(path, _): &(String, String)| {
        let meta = fs_err::symlink_metadata(slot.dir.join(path));
        meta.is_ok_and(|meta| meta.is_file())
    };
    if files.is_empty() || !files.iter().all(there) {
        return false;
    }
    files.chunks(100).all(|files| {
        let mut args = vec!["hash-object", "--no-filters", "--"];
        args.extend(files.iter().map(|(path, _)| path.as_str()));
        let hashes = slot.ask(&args).unwrap_or_default();
        hashes
            .lines()
            .eq(files.iter().map(|(_, blob)| blob.as_str()))
    })
}

impl Trees {
    /// Stashes that were there before any agent of this loop.
    fn stashes_before(&self) -> PathBuf {
        self.folder.join("control").join("stashes")
    }

    /// Writes down what is in the list before the first agent begins.
    pub(super) fn note_stashes(&self) -> Done<()> {
        let list = self.stashes.looker.list()?;
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
        let looker = &self.stashes.looker;
        looker.log.get_or_init(|| folder.join("stash"));
        *self.stashes.watch() = StashWatch::begin(looker, &folder);
        Ok(())
    }

    pub(super) fn unwatch_stashes(&self) {
        *self.stashes.watch() = None;
    }

    /// Stashes that agents of this loop left in the list.
    fn new_stashes(&self) -> Done<Vec<Stash>> {
        let list = self.stashes.looker.look()?;
        if list.is_empty() {
            return Ok(list);
        }
        let before = fs_err::read_to_string(self.stashes_before()).unwrap_or_default();
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
        new.retain(|stash| stash_branch(&stash.words).is_some_and(is_own));
        Ok(new)
    }

    /// What an agent has to know of stashes that it left, or that are not its own.
    pub(super) fn stash_words(&self, branch: &str, repo: &Repo) -> Done<Vec<String>> {
        let mut words = Vec::new();
        for stash in self.stashes_of(branch, repo)? {
            let files = self.stashes.looker.files_of(&stash.commit)?;
            let files: Vec<String> = files.into_iter().map(|(path, _)| path).collect();
            words.push(format!(
                "work was left in the stash {} (\"{}\"{}): it is not in any commit, and any \
                 agent working alongside you may take it, since all worktrees of this repository \
                 share one list of stashes. If it belongs to the task, restore it: git stash \
                 apply {}. Then, or if it does not, drop that entry: git stash list shows its \
                 number. \
                 Commit instead of stashing",
                short(&stash.commit),
                stash.words,
                named(&files),
                short(&stash.commit),
            ));
        }
        let mut ledger = self.stashes.looker.ledger();
        for taken in &mut ledger.taken {
            let (files, commit) = (named(&taken.files), short(&taken.commit).to_owned());
            if taken.owner == branch && !std::mem::replace(&mut taken.told_owner, true) {
                words.push(format!(
                    "an agent working alongside you took your stash {commit}{files}, since all \
                     worktrees of this repository share one list of stashes. If it belongs to \
                     the task, restore it: git stash apply {commit}. Undo anything that came \
                     from a stash that was not yours. Commit instead of stashing"
                ));
            }
            if taken.taker == branch && !std::mem::replace(&mut taken.told_taker, true) {
                words.push(format!(
                    "what you took from the list of stashes was not yours{files}: all worktrees of this repository \
                     share one list, and another agent had put it there ({commit}) and gets it \
                     back. Undo these changes where they do not belong to your task. Commit \
                     instead of stashing"
                ));
            }
        }
        Ok(words)
    }

    /// The loop is over: stashes that are left get names under which a person finds them.
    pub(super) fn keep_stashes(&self) -> Done<()> {
        let looker = &self.stashes.looker;
        let mut left: Vec<Stash> = self.new_stashes()?;
        left.retain(|stash| {
            let branch = stash_branch(&stash.words);
            branch.is_some_and(|branch| branch.starts_with(&looker.branches))
        });
        let refs = ["for-each-ref", "--format=%(objectname)", &looker.refs];
        let taken = self.user.ask(&refs)?;
        for commit in taken.lines().filter(|commit| !commit.is_empty()) {
            if !self.is_brought_in(commit)? {
                let words = self.user.ask(&["log", "-1", "--format=%s", commit])?;
                let commit = commit.to_owned();
                left.push(Stash { commit, words });
            }
        }
        for stash in left {
            let files = looker.files_of(&stash.commit)?;
            let files: Vec<String> = files.into_iter().map(|(path, _)| path).collect();
            let kept = self.keep_commit(&stash.commit)?;
            self.user.locks.tell(format!(
                "an agent left a stash (\"{}\"{}), which is not in any commit that lands: it is \
                 kept on {kept}; apply it with: git stash apply {kept}",
                stash.words,
                named(&files),
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
        for (path, blob) in self.stashes.looker.files_of(commit)? {
            let name = format!("{merged}:{path}");
            let found = self.user.ask(&["rev-parse", "--verify", "--quiet", &name]);
            if found.ok() != Some(blob) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The entries of the file in which git keeps the list.
fn read_log(log: &Path) -> Done<Vec<Stash>> {
    let text = match fs_err::read(log) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let entry = |line: &str| {
        let (head, words) = line.split_once('\t')?;
        Some(Stash {
            commit: head.split(' ').nth(1)?.to_owned(),
            words: words.trim_end().to_owned(),
        })
    };
    // A line without an end is still being written.
    let text = String::from_utf8_lossy(&text);
    let whole = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    Ok(whole.filter_map(entry).collect())
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

fn named(files: &[String]) -> String {
    let list = files[..files.len().min(NAMED)].join(", ");
    match files.len() {
        0 => String::new(),
        n if n > NAMED => format!(", with {list} and {} more", n - NAMED),
        _ => format!(", with {list}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worktree::Git;
    use descartes_testkit::World;

    /// Git writes the log of a first stash, and only then its ref: whoever looks in between must
    /// not take the list for empty, for nothing tells of the ref afterwards.
    #[test]
    fn a_stash_whose_ref_is_not_there_yet_is_known() {
        let world = World::new();
        world.git_init();
        world.git(["checkout", "-q", "-b", "descartes/auth/1"]);
        world.write("work", "x");
        world.git(["add", "work"]);
        world.git(["stash", "-q"]);
        let commit = world.git(["rev-parse", "refs/stash"]).trim().to_owned();
        let refs = world.project().join(".git/refs");
        fs_err::rename(refs.join("stash"), refs.join("stash.lock")).unwrap();

        let user = Repo::at(&world.project(), &Git::default());
        let stashes = Stashes::new(&user, &world.project(), "auth");
        let looker = &stashes.looker;
        let log = world.project().join(".git/logs/refs/stash");
        looker.log.set(log).unwrap();
        assert!(!looker.take_note().unwrap());
        assert_eq!(looker.ledger().seen[&commit], "descartes/auth/1");

        fs_err::rename(refs.join("stash.lock"), refs.join("stash")).unwrap();
        world.git(["stash", "pop", "-q"]);
        assert!(looker.take_note().unwrap());
        let gone = (commit, "descartes/auth/1".to_owned());
        assert_eq!(looker.ledger().gone, [gone]);
    }
}
