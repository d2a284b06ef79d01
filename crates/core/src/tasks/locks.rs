//! Lock files of git that are in the way.
//!
//! A git that is killed leaves its lock behind, and every later one refuses to work. Nobody can
//! see whose a lock is, so only those are taken away that nobody else has a reason to make: of
//! refs under our own name, of our own worktrees, and of the folder where we merge; and only once no git is left that could
//! have made them. All others may be the user's: they are named, and waited for.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use descartes_kernel::tasks::{LOCK_SLACK, LockWord, lock_word};
use descartes_proc::is_at_work;
use descartes_text::units::show_duration;
use tracing::{info, warn};

/// Time for a lock to go where nothing depends on it.
pub(super) const HURRY: Duration = Duration::from_secs(3);
/// The same where somebody wants the loop to end.
const AT_THE_END: Duration = Duration::from_secs(1);
/// A lock of ours is dead once it stood so long and no git lives that is as old.
const DEAD: Duration = Duration::from_secs(10);
/// Ages of processes are read at another instant than our own watch.
const SLACK: Duration = LOCK_SLACK;
const LOOK: Duration = Duration::from_millis(100);
/// Time for a git that outlived its host to finish what it was about.
const ORPHANED: Duration = Duration::from_secs(30);

/// Which locks are ours, and where a git would work that made them.
#[derive(Debug, Default)]
pub(super) struct Ours {
    /// `refs/heads/descartes/TAG` and its like, in the repository's own folder.
    pub(super) refs: Vec<PathBuf>,
    /// Where our worktrees are.
    pub(super) trees: PathBuf,
    /// Git's folder of the one in which work is merged, which no agent enters.
    pub(super) control: PathBuf,
    /// The user's checkout, the repository's own folder and our worktrees.
    pub(super) folders: Vec<PathBuf>,
}

impl Ours {
    fn holds(&self, lock: &Path) -> bool {
        let without = lock.with_extension("");
        let named = self.refs.iter().any(|own| without.starts_with(own));
        named || self.is_of_control(lock) || self.is_of_tree(lock)
    }

    fn is_of_control(&self, lock: &Path) -> bool {
        let real = |path: &Path| fs_err::canonicalize(path).ok();
        let folder = lock.parent().and_then(real);
        let control = real(&self.control);
        folder
            .zip(control)
            .is_some_and(|(folder, control)| folder.starts_with(control))
    }

    /// Whether it lies in git's folder of a worktree of ours.
    fn is_of_tree(&self, lock: &Path) -> bool {
        let gitdir = lock.parent().map(|folder| folder.join("gitdir"));
        let tree = gitdir.and_then(|file| fs_err::read_to_string(file).ok());
        let owned = !self.trees.as_os_str().is_empty();
        owned && tree.is_some_and(|tree| Path::new(tree.trim_end()).starts_with(&self.trees))
    }
}

/// One lock file, and no later one of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LockId(u64, i64, i64);

impl LockId {
    fn of(lock: &Path) -> Option<Self> {
        let meta = fs_err::symlink_metadata(lock).ok()?;
        Some(Self(meta.ino(), meta.mtime(), meta.mtime_nsec()))
    }
}

#[derive(Clone, Copy, Debug)]
struct SeenLock {
    mark: LockId,
    since: Instant,
    /// How often it was said that it is there.
    said: u32,
}

/// Tells the task loop that there is something to be said.
pub(super) struct Wake(pub(super) Box<dyn Fn() + Send>);

impl std::fmt::Debug for Wake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wake")
    }
}

#[derive(Debug, Default)]
struct LockTable {
    seen: HashMap<PathBuf, SeenLock>,
    said: Vec<LockNotice>,
    stuck: Option<String>,
    wake: Option<Wake>,
    hurry: bool,
}

impl LockTable {
    fn say(&mut self, message: String) {
        self.tell(LockNotice {
            message,
            needs_person: false,
        });
    }

    fn tell(&mut self, notice: LockNotice) {
        self.said.push(notice);
        if let Some(wake) = &self.wake {
            // A task loop that is gone needs to hear nothing.
            (wake.0)();
        }
    }
}

/// Something to be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LockNotice {
    pub(super) message: String,
    /// Whether people who look elsewhere are told as well.
    pub(super) needs_person: bool,
}

/// What came of waiting for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Passed {
    /// It is gone: try again.
    Gone,
    /// It is still there; what a person can do.
    Stays(String),
}

/// The locks that a task loop met.
#[derive(Debug)]
pub(super) struct Locks {
    ours: Ours,
    /// How long one is waited for that the loop cannot go on without: until somebody has seen to it.
    patience: Option<Duration>,
    dead: Duration,
    inner: Mutex<LockTable>,
}

impl Locks {
    pub(super) fn new(ours: Ours) -> Self {
        Self {
            ours,
            patience: None,
            dead: DEAD,
            inner: Mutex::default(),
        }
    }

    /// Nothing is waited for: for those that only look.
    pub(super) fn ignored() -> Self {
        Self {
            patience: Some(Duration::ZERO),
            ..Self::new(Ours::default())
        }
    }

    fn inner(&self) -> MutexGuard<'_, LockTable> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the task loop is told when there is something to be said.
    pub(super) fn wake(&self, wake: Wake) {
        self.inner().wake = Some(wake);
    }

    /// Looks which locks of ours lie about, so that they are not waited for one after the other.
    pub(super) fn look_around(&self) {
        for own in &self.ours.refs {
            let beside = own.parent().into_iter().flat_map(locks_in);
            let beside = beside.filter(|lock| self.ours.holds(lock));
            for lock in beside.chain(locks_in(own)) {
                self.see(&lock);
            }
        }
        for lock in locks_in(&self.ours.control).filter(|lock| self.ours.is_of_control(lock)) {
            self.see(&lock);
        }
    }

    /// From now on nothing is waited for that is not over soon.
    pub(super) fn hurry(&self) {
        self.inner().hurry = true;
    }

    /// Tells a person something.
    pub(super) fn tell(&self, message: String) {
        self.inner().say(message);
    }

    /// What is to be said since the last time.
    pub(super) fn said(&self) -> Vec<LockNotice> {
        std::mem::take(&mut self.inner().said)
    }

    /// What the loop cannot go on without.
    pub(super) fn stuck(&self) -> Option<String> {
        self.inner().stuck.clone()
    }

    pub(super) fn give_up(&self, message: &str) {
        self.inner().stuck.get_or_insert_with(|| message.to_owned());
    }

    /// Waits until no git works in this folder any more; false where one goes on and on.
    pub(super) fn await_gits(&self, folder: &Path) -> bool {
        let Ok(folder) = fs_err::canonicalize(folder) else {
            return true;
        };
        let (folders, since) = ([folder], Instant::now());
        let mut is_said = false;
        while is_at_work("git", &folders, Duration::ZERO) {
            let waited = since.elapsed();
            let hurry = self.inner().hurry;
            let is_over = waited >= ORPHANED || (hurry && waited >= AT_THE_END);
            if (is_over || waited >= SLACK) && !is_said {
                is_said = true;
                info!(folder = %folders[0].display(), "waiting for a running git");
                let folder = folders[0].display();
                self.inner().say(format!(
                    "git is running in {folder}: waiting for it to finish"
                ));
            }
            if is_over {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }

    /// Waits until a lock is gone, or takes it away where it is ours and dead.
    pub(super) fn pass(&self, lock: &Path) -> Passed {
        self.pass_for(lock, self.patience)
    }

    /// The same, for no longer than this.
    pub(super) fn pass_within(&self, lock: &Path, patience: Duration) -> Passed {
        self.pass_for(lock, Some(patience))
    }

    fn pass_for(&self, lock: &Path, patience: Option<Duration>) -> Passed {
        let began = Instant::now();
        loop {
            let Some(seen) = self.see(lock) else {
                return Passed::Gone;
            };
            if self.is_dead(lock, seen) {
                return self.take_away(lock, seen);
            }
            let hurry = self.inner().hurry.then_some(AT_THE_END);
            let whole = hurry.into_iter().chain(self.patience).min();
            let patience = hurry.into_iter().chain(patience).min();
            // One that stood for all of our patience is not waited for by every later call.
            let stood = seen.since.elapsed();
            let is_over = patience.is_some_and(|patience| began.elapsed() >= patience);
            if is_over || whole.is_some_and(|whole| stood >= whole) {
                self.say_at_least_once(lock);
                return Passed::Stays(in_the_way(lock));
            }
            self.say(lock, stood);
            std::thread::sleep(LOOK);
        }
    }

    /// Takes away a lock that a git of ours made before it was killed: it is not older than that git,
    /// and no git is at work where that one was.
    pub(super) fn take_from_killed(&self, lock: &Path, since: SystemTime, folder: &Path) {
        let made = fs_err::symlink_metadata(lock).and_then(|meta| meta.modified());
        let folder = fs_err::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        if made.is_ok_and(|made| made >= since)
            && !is_at_work("git", &[folder], Duration::ZERO)
            && let Some(seen) = self.see(lock)
        {
            self.take_away(lock, seen);
        }
    }

    /// The lock as it stands.
    fn see(&self, lock: &Path) -> Option<SeenLock> {
        let mark = LockId::of(lock);
        let mut inner = self.inner();
        let known = inner.seen.get(lock).copied();
        let Some(mark) = mark else {
            inner.seen.remove(lock);
            if known.is_some_and(|seen| seen.said > 0) {
                inner.say(format!("{} is gone: continuing", lock.display()));
            }
            return None;
        };
        if let Some(seen) = known.filter(|seen| seen.mark == mark) {
            return Some(seen);
        }
        let seen = SeenLock {
            mark,
            since: Instant::now(),
            // Another one in its place: each is said for itself, but not anew every few seconds.
            said: known.map_or(0, |seen| seen.said.min(1)),
        };
        inner.seen.insert(lock.to_owned(), seen);
        Some(seen)
    }

    /// Says that a lock is there that stood for so long, where that is due.
    fn say(&self, lock: &Path, stood: Duration) {
        let mut inner = self.inner();
        let Some(seen) = inner.seen.get_mut(lock) else {
            return;
        };
        let word = lock_word(stood, seen.said);
        let still = || format!("waiting for {}: {}", show_duration(stood), in_the_way(lock));
        let message = match word {
            LockWord::Nothing => return,
            LockWord::InTheWay => in_the_way(lock),
            LockWord::Still | LockWord::StillToldElsewhere => still(),
        };
        seen.said += 1;
        info!(lock = %lock.display(), "waiting for a lock of git");
        inner.tell(LockNotice {
            message,
            needs_person: word == LockWord::StillToldElsewhere,
        });
    }

    fn say_at_least_once(&self, lock: &Path) {
        let is_said = {
            let inner = self.inner();
            let seen = inner.seen.get(lock);
            seen.is_some_and(|seen| seen.said > 0)
        };
        if !is_said {
            self.say(lock, LOCK_SLACK);
        }
    }

    fn is_dead(&self, lock: &Path, seen: SeenLock) -> bool {
        seen.since.elapsed() >= self.dead
            && self.ours.holds(lock)
            && !is_at_work("git", &self.ours.folders, self.dead.saturating_sub(SLACK))
    }

    fn take_away(&self, lock: &Path, seen: SeenLock) -> Passed {
        let mut inner = self.inner();
        if LockId::of(lock) == Some(seen.mark) {
            if let Err(error) = fs_err::remove_file(lock) {
                return Passed::Stays(format!("{}: {error}", in_the_way(lock)));
            }
            inner.seen.remove(lock);
            warn!(lock = %lock.display(), "lock of a dead git removed");
            inner.say(format!(
                "removed {}, the lock of a git process that was killed",
                lock.display()
            ));
        }
        Passed::Gone
    }
}

fn locks_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "lock"))
}

/// What is in the way, and what a person can type.
fn in_the_way(lock: &Path) -> String {
    let path = lock.to_string_lossy();
    format!(
        "git's lock {path} is in the way: another git process is running, or one was killed and \
         left it; if none is running, type: rm {}",
        shell_words::quote(&path)
    )
}

/// The lock that a git which failed has met, going by its message.
pub(super) fn named_in(message: &str, dir: &Path) -> Option<PathBuf> {
    let end = message.find(".lock'")? + ".lock".len();
    let (before, after) = message.split_at(end);
    let start = before.rfind('\'')? + 1;
    let lock = dir.join(&before[start..]);
    // Other reasons, such as a folder that may not be written to, do not pass with time.
    let is_met = after.contains("File exists") || lock.symlink_metadata().is_ok();
    is_met.then_some(lock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn locks(root: &Path) -> Locks {
        let ours = Ours {
            refs: vec![root.join("refs/heads/descartes/auth")],
            trees: root.join("trees"),
            control: root.join("trees/control"),
            folders: vec![root.to_owned()],
        };
        Locks {
            patience: Some(Duration::from_secs(4)),
            dead: Duration::from_secs(1),
            ..Locks::new(ours)
        }
    }

    fn lock(path: PathBuf) -> PathBuf {
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, "").unwrap();
        path
    }

    #[test]
    fn a_dead_lock_of_ours_goes_and_nobody_elses() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let heads = root.join("refs/heads");
        let tree = lock(root.join("worktrees/slot-0/index.lock"));
        let gitdir = root.join("trees/slot-0/.git\n");
        fs_err::write(tree.with_file_name("gitdir"), gitdir.to_str().unwrap()).unwrap();
        let ours = [
            lock(heads.join("descartes/auth.lock")),
            lock(heads.join("descartes/auth/1.2.lock")),
            lock(root.join("trees/control/ORIG_HEAD.lock")),
            tree,
        ];
        let theirs = [
            lock(heads.join("descartes/authors.lock")),
            lock(heads.join("main.lock")),
            lock(root.join("packed-refs.lock")),
            lock(root.join("trees/slot-0/control/index.lock")),
            lock(root.join("worktrees/mine/index.lock")),
        ];
        let locks = locks(&root);
        for lock in ours.iter().chain(&theirs) {
            locks.see(lock);
        }
        // By then every one of them stands long enough to be dead.
        locks.pass_within(&theirs[0], locks.dead + LOOK);
        for lock in &ours {
            assert_eq!(locks.pass(lock), Passed::Gone);
            assert!(!lock.exists());
        }
        let said = locks.said();
        let told = |lock: &PathBuf| {
            let message = format!("removed {}", lock.display());
            said.iter().any(|said| said.message.contains(&message))
        };
        assert!(ours.iter().all(told), "{said:?}");
        for lock in &theirs {
            let Passed::Stays(message) = locks.pass_within(lock, LOOK) else {
                unreachable!("{} was passed", lock.display());
            };
            assert!(
                message.contains(&format!("rm {}", lock.display())),
                "{message}"
            );
            assert!(lock.exists());
        }
    }

    #[test]
    fn a_lock_of_a_killed_git_of_ours_goes_and_an_older_one_stays() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let locks = locks(&root);
        let path = lock(root.join(".git/index.lock"));
        let made = fs_err::metadata(&path).unwrap().modified().unwrap();
        locks.take_from_killed(&path, made + LOOK, &root);
        assert!(path.exists(), "it was there before");
        locks.take_from_killed(&path, made, &root);
        assert!(!path.exists());
    }

    #[test]
    fn a_lock_of_ours_stays_while_a_git_lives_that_may_have_made_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let lock = lock(root.join("refs/heads/descartes/auth/1.lock"));
        assert!(
            Command::new("git")
                .arg("init")
                .arg("--quiet")
                .arg(&root)
                .status()
                .unwrap()
                .success()
        );
        // It reads until its input ends.
        let mut git = Command::new("git")
            .args(["cat-file", "--batch"])
            .current_dir(&root)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let locks = locks(&root);
        let kept = locks.pass(&lock);
        drop(git.stdin.take());
        git.wait().unwrap();
        assert!(matches!(kept, Passed::Stays(_)), "{kept:?}");
        assert!(lock.exists());
    }

    #[test]
    fn a_lock_that_stays_is_said_once_and_one_that_goes_is_passed() {
        let dir = tempfile::tempdir().unwrap();
        let path = lock(dir.path().join("packed-refs.lock"));
        let locks = locks(dir.path());
        assert!(matches!(locks.pass(&path), Passed::Stays(_)));
        assert!(matches!(locks.pass(&path), Passed::Stays(_)));
        let said = locks.said();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].message.contains("is in the way"));
        fs_err::remove_file(&path).unwrap();
        assert_eq!(locks.pass(&path), Passed::Gone);
        assert!(locks.said()[0].message.ends_with("is gone: continuing"));
    }

    #[test]
    fn a_lock_that_the_loop_needs_gone_is_waited_for_until_somebody_wants_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = lock(dir.path().join("index.lock"));
        let locks = Locks::new(Ours::default());
        let (told, heard) = std::sync::mpsc::channel();
        locks.wake(Wake(Box::new(move || told.send(()).unwrap_or_default())));
        std::thread::scope(|scope| {
            let passed = scope.spawn(|| locks.pass(&path));
            heard.recv().unwrap();
            // It stood for hours.
            let hours = Instant::now().checked_sub(Duration::from_secs(7 * 60 * 60));
            if let Some(seen) = locks.inner().seen.get_mut(&path) {
                seen.since = hours.unwrap_or(seen.since);
            }
            heard.recv().unwrap();
            assert!(!passed.is_finished());
            let said = locks.said();
            assert_eq!(said.len(), 2, "{said:?}");
            assert!(!said[0].needs_person && said[1].needs_person);
            assert!(said[1].message.starts_with("waiting for 7h"), "{said:?}");
            locks.hurry();
            assert!(matches!(passed.join().unwrap(), Passed::Stays(_)));
        });
        assert!(path.exists());
    }

    #[test]
    fn a_git_at_work_is_told_of_and_waited_for_until_somebody_wants_the_end() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("git-slow");
        std::fs::write(&program, "#!/bin/sh\nread line\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let mut git = Command::new(&program)
            .current_dir(dir.path())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let locks = locks(dir.path());
        locks.hurry();
        assert!(!locks.await_gits(dir.path()));
        assert!(locks.said()[0].message.contains("git is running in"));
        drop(git.stdin.take());
        git.wait().unwrap();
        assert!(locks.await_gits(dir.path()));
    }

    #[test]
    fn the_lock_is_found_in_gits_words() {
        let dir = tempfile::tempdir().unwrap();
        let lock = dir.path().join("index.lock");
        let message = |end: &str| format!("fatal: Unable to create '{}': {end}", lock.display());
        assert_eq!(
            named_in(&message("File exists."), dir.path()),
            Some(lock.clone())
        );
        assert_eq!(named_in(&message("Permission denied"), dir.path()), None);
        assert_eq!(named_in("error: it's locked", dir.path()), None);
        fs_err::write(&lock, "").unwrap();
        let german = format!("Konnte '{}' nicht erstellen", lock.display());
        assert_eq!(named_in(&german, dir.path()), Some(lock));
    }
}
