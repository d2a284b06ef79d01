//! Git's list of stashes, and who took what out of it.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use descartes_kernel::tasks::stash_branch;
use descartes_store::safe_open::{Options, open_user_file};

use super::Done;
use crate::tasks::git::Repo;

/// A list that changes while it is read is read again so often.
const TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// A line has about 150 bytes.
const LARGEST_LOG: u64 = 4 << 20;

/// An entry of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stash {
    pub(super) commit: String,
    /// What git, or who made it, called it.
    pub(super) message: String,
}

/// A stash of one agent that another's took out of the list.
#[derive(Clone, Debug)]
pub(super) struct TakenStash {
    pub(super) commit: String,
    pub(super) owner: String,
    pub(super) taker: String,
    pub(super) files: Vec<String>,
    pub(super) told_owner: bool,
    pub(super) told_taker: bool,
}

/// What is known of the stashes of a loop's agents.
#[derive(Debug, Default)]
pub(super) struct KnownStashes {
    /// Commit and branch of those that are or were in the list.
    seen: HashMap<String, String>,
    /// Those that left the list, and who took them is not known yet.
    gone: Vec<(String, String)>,
    pub(super) taken: Vec<TakenStash>,
}

impl KnownStashes {
    fn note(&mut self, list: &[Stash], branches: &str) {
        self.seen.retain(|commit, branch| {
            let is_there = list.iter().any(|stash| stash.commit == *commit);
            if !is_there {
                self.gone.push((commit.clone(), branch.clone()));
            }
            is_there
        });
        for stash in list {
            let branch = stash_branch(&stash.message);
            if let Some(branch) = branch.filter(|branch| branch.starts_with(branches)) {
                let (commit, branch) = (stash.commit.clone(), branch.to_owned());
                self.seen.insert(commit, branch);
            }
        }
    }
}

/// Looks at the list, from whichever thread.
pub(super) struct StashList {
    user: Repo,
    /// The folder of our worktrees.
    folder: PathBuf,
    /// How the branches of our tasks begin.
    pub(super) branches: String,
    /// Where a stash that was taken is kept meanwhile.
    pub(super) refs: String,
    /// The file in which git keeps the list, while it is watched.
    pub(super) log: OnceLock<PathBuf>,
    known: Mutex<KnownStashes>,
    /// Held while it is found out who took what.
    asking: Mutex<()>,
}

impl StashList {
    /// The list that agents share whose worktrees lie in a folder.
    pub(super) fn new(user: &Repo, folder: &Path, ref_tag: &str) -> Self {
        Self {
            user: user.clone(),
            folder: folder.to_owned(),
            branches: format!("descartes/{ref_tag}/"),
            refs: format!("refs/descartes/{ref_tag}/stash"),
            log: OnceLock::new(),
            known: Mutex::default(),
            asking: Mutex::default(),
        }
    }

    pub(super) fn known(&self) -> MutexGuard<'_, KnownStashes> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The list, newest first. Agents change it at any moment.
    pub(super) fn list(&self) -> Done<Vec<Stash>> {
        let format = "--format=%H %gs";
        let mut tries = 0;
        let listed = loop {
            if self.user.commit_of("refs/stash")?.is_none() {
                return Ok(Vec::new());
            }
            match self.user.ask(&["log", "-g", format, "refs/stash", "--"]) {
                Ok(listed) => break listed,
                Err(message) if tries >= TRIES => return Err(message),
                Err(_) => tries += 1,
            }
            std::thread::sleep(BETWEEN_TRIES);
        };
        let entry = |line: &str| {
            let (commit, message) = line.split_once(' ')?;
            Some(Stash {
                commit: commit.to_owned(),
                message: message.to_owned(),
            })
        };
        Ok(listed.lines().filter_map(entry).collect())
    }

    /// What is in the list, after everything that left it is accounted for.
    pub(super) fn look(&self) -> Done<Vec<Stash>> {
        let list = self.list()?;
        if !self.take_note().is_ok_and(|noted| noted) {
            self.known().note(&list, &self.branches);
        }
        self.find_takers();
        Ok(list)
    }

    /// Takes note of what is in the file of the list, and of what is there no more; whether there is
    /// such a file. This is quick, for a stash may be put there and taken within milliseconds: git
    /// writes that file before the ref of a first stash is to be seen, so nobody else is asked.
    pub(super) fn take_note(&self) -> Done<bool> {
        let Some(log) = self.log.get() else {
            return Ok(false);
        };
        // Read under the lock: an older list must not follow a newer one.
        let mut known = self.known();
        known.note(&read_log(log)?, &self.branches);
        Ok(true)
    }

    /// Whether something is in the list no more, and nobody has found out who took it.
    pub(super) fn is_something_gone(&self) -> bool {
        !self.known().gone.is_empty()
    }

    /// Finds out who took what is in the list no more.
    pub(super) fn find_takers(&self) {
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let Some((commit, owner)) = self.known().gone.pop() else {
                return;
            };
            // A commit that is gone from the repository as well tells nothing.
            if let Ok(Some(taken)) = self.taken_by(commit, owner) {
                self.known().taken.push(taken);
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
    pub(super) fn files_of(&self, commit: &str) -> Done<Vec<(String, String)>> {
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

/// The entries of the file in which git keeps the list. Agents can put anything in its place: what is
/// no file, or larger than any such list, is an error at once.
fn read_log(log: &Path) -> Done<Vec<Stash>> {
    let file = match open_user_file(log, Options::new().read()) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut text = Vec::new();
    file.take(LARGEST_LOG + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LARGEST_LOG {
        return Err(io::Error::from(ErrorKind::FileTooLarge).into());
    }
    let entry = |line: &str| {
        let (head, message) = line.split_once('\t')?;
        Some(Stash {
            commit: head.split(' ').nth(1)?.to_owned(),
            message: message.trim_end().to_owned(),
        })
    };
    // A line without an end is still being written.
    let text = String::from_utf8_lossy(&text);
    let whole = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    Ok(whole.filter_map(entry).collect())
}

pub(super) fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
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
        let list = StashList::new(&user, &world.project(), "auth");
        let log = world.project().join(".git/logs/refs/stash");
        list.log.set(log).unwrap();
        assert!(list.take_note().unwrap() && !list.is_something_gone());
        assert_eq!(list.known().seen[&commit], "descartes/auth/1");

        fs_err::rename(refs.join("stash.lock"), refs.join("stash")).unwrap();
        world.git(["stash", "pop", "-q"]);
        assert!(list.take_note().unwrap() && list.is_something_gone());
        let gone = (commit, "descartes/auth/1".to_owned());
        assert_eq!(list.known().gone, [gone]);
    }

    /// Agents write to the folder of git's that the list lies in.
    #[test]
    fn what_is_put_in_the_place_of_the_log_stops_nobody() {
        let world = World::new();
        world.git_init();
        let user = Repo::at(&world.project(), &Git::default());
        let list = StashList::new(&user, &world.project(), "auth");
        let log = world.project().join(".git/logs/refs/stash");
        list.log.set(log.clone()).unwrap();
        assert!(list.take_note().unwrap(), "no log yet is an empty list");
        let mode = nix::sys::stat::Mode::S_IRWXU;
        nix::unistd::mkfifo(&log, mode).unwrap();
        assert!(list.take_note().is_err());
        assert_eq!(list.look().unwrap(), [], "git itself is asked");
        fs_err::remove_file(&log).unwrap();
        fs_err::File::create(&log)
            .unwrap()
            .set_len(LARGEST_LOG + 1)
            .unwrap();
        assert!(list.take_note().is_err());
    }
}
