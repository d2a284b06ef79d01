//! The few things a task loop does in git, each idempotent: a host that dies in the middle does
//! them again.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use descartes_proc::Ending;

use super::git_cache::{CommitObject, IndexSummary, RepoCache, is_missing, stamp_of};
use super::git_error::GitError;
use super::locks::{HURRY, Locks, Passed, named_in};
use crate::worktree::Git;
use crate::worktree::deadline::Deadline;
use crate::worktree::git::guards::Manner;
use crate::worktree::git::{Call, GitOutput};
use crate::worktree::head::{HeadRef, RefFolders};

const GIT_TIMEOUT: Duration = Duration::from_secs(300);
/// Hooks may run tests.
const HOOKS: Duration = Duration::from_secs(20 * 60);

/// A merge that does what it is told, whatever a branch is configured to do.
const MERGE: [&str; 7] = [
    "--ff",
    "--no-squash",
    "--no-verify-signatures",
    "--no-autostash",
    "--no-stat",
    "--no-log",
    "--no-signoff",
];

/// A work tree.
#[derive(Clone, Debug)]
pub(super) struct Repo {
    git: Git,
    /// Variables that every call gets: another index, another folder of git's.
    env: Vec<(String, std::ffi::OsString)>,
    /// Settings that every call gets, over all others.
    settings: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    /// Git's folders of this tree, where they are given.
    refs: Option<RefFolders>,
    /// What was found out of the repository, and does not change.
    cache: Arc<RepoCache>,
    pub(super) dir: PathBuf,
    pub(super) locks: Arc<Locks>,
}

/// Whether this is the whole name of an object.
fn is_hash(name: &str) -> bool {
    matches!(name.len(), 40 | 64) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a name says which file it is in: no short name, and no question such as `name~1`.
fn is_plain(name: &str) -> bool {
    let is_question = name.contains(['^', '~', ':']) || name.contains("@{");
    matches!(name, "HEAD" | "MERGE_HEAD") || (name.starts_with("refs/") && !is_question)
}

/// What it means that a lock stays in the way of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// The loop cannot go on.
    Must,
    /// Something is left lying about.
    May,
}

type Asked<T> = Result<T, GitError>;

/// A path as git prints it, without the end of its line.
pub(super) fn path_of(printed: &[u8]) -> PathBuf {
    let bytes = printed.strip_suffix(b"\n").unwrap_or(printed);
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

/// The first part of a path in a tree, short of its end, that is a link and may lead elsewhere.
pub(super) fn link_above(tree: &Path, path: &Path) -> Option<PathBuf> {
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    let mut above = above.into_iter().map(|part| tree.join(part));
    above.find(|part| part != tree && part.is_symlink())
}

/// Paths as git reads them, with a NUL after each and a prefix before each.
pub(super) fn zero_ended<'p>(prefix: &str, paths: impl Iterator<Item = &'p Path>) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    let mut bytes = Vec::new();
    for path in paths {
        bytes.extend_from_slice(prefix.as_bytes());
        bytes.extend_from_slice(path.as_os_str().as_bytes());
        bytes.push(0);
    }
    bytes
}

/// Paths with a NUL after each.
pub(super) fn zero_ended_paths(out: &[u8]) -> Vec<PathBuf> {
    let names = out.split(|byte| *byte == 0);
    let names = names.filter(|name| !name.is_empty());
    names
        .map(|name| PathBuf::from(OsStr::from_bytes(name)))
        .collect()
}

fn command_of(args: &[&str]) -> String {
    args.first().copied().unwrap_or_default().to_owned()
}

/// Paths of a tree that differ from its index.
#[derive(Debug, Default)]
pub(super) struct ChangedPaths {
    pub(super) tracked: BTreeSet<PathBuf>,
    /// Not tracked and not ignored; a name that ends with a slash is that of a repository.
    pub(super) untracked: BTreeSet<PathBuf>,
}

impl ChangedPaths {
    /// Reads what `ls-files -t -z` prints: a letter, a blank and the path.
    fn parse(listed: &[u8]) -> Self {
        let mut changed = Self::default();
        for row in listed.split(|byte| *byte == 0) {
            match row {
                [b'?', b' ', path @ ..] => changed.untracked.insert(path_from(path)),
                [_, b' ', path @ ..] => changed.tracked.insert(path_from(path)),
                _ => false,
            };
        }
        changed
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.tracked.iter().chain(&self.untracked)
    }
}

pub(super) fn path_from(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

impl Repo {
    pub(super) fn at(dir: &Path, git: &Git) -> Self {
        Self {
            git: git.clone(),
            env: Vec::new(),
            settings: Vec::new(),
            refs: None,
            cache: Arc::default(),
            dir: dir.to_owned(),
            locks: Arc::new(Locks::ignored()),
        }
    }

    /// The same tree, with patience for locks that are in the way.
    pub(super) fn with_locks(self, locks: Locks) -> Self {
        Self {
            locks: Arc::new(locks),
            ..self
        }
    }

    /// Another tree, which git finds by itself from its folder.
    pub(super) fn beside(&self, dir: &Path) -> Self {
        Self {
            env: Vec::new(),
            refs: None,
            cache: Arc::default(),
            ..self.within(dir)
        }
    }

    /// The same tree, seen from a folder in it.
    pub(super) fn within(&self, dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            ..self.clone()
        }
    }

    /// Another tree of the same repository, and git's folder of it, whatever its `.git` and the
    /// configuration say: agents can write both.
    pub(super) fn pinned(&self, dir: &Path, git_dir: &Path) -> Self {
        let pinned = self
            .beside(dir)
            .with_env("GIT_DIR", git_dir)
            .with_env("GIT_WORK_TREE", dir);
        Self {
            refs: Some(RefFolders::of_git_dir(git_dir.to_owned())),
            cache: Arc::clone(&self.cache),
            ..pinned
        }
    }

    /// The same tree, with a variable that git gets besides.
    pub(super) fn with_env(&self, key: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        Self {
            refs: match key {
                "GIT_DIR" => None,
                _ => self.refs.clone(),
            },
            env: [
                &self.env[..],
                &[(key.to_owned(), value.as_ref().to_owned())],
            ]
            .concat(),
            ..self.clone()
        }
    }

    /// The same tree, with a setting that git gets besides.
    pub(super) fn with_setting(&self, key: &str, value: &str) -> Self {
        let mut repo = self.clone();
        repo.settings.push((key.into(), value.into()));
        repo
    }

    fn call(&self, kind: impl Fn(&Git, &Path) -> Call) -> Call {
        let call = kind(&self.git, &self.dir).configured(&self.settings);
        let env = self.env.iter();
        env.fold(call, |call, (key, value)| call.env(key, value))
    }

    /// A call that changes something, again and again while a lock is in the way. One that stays
    /// is an error, whatever else a failure would mean.
    fn change(&self, need: Need, limit: Duration, call: impl Fn() -> Call) -> Asked<GitOutput> {
        loop {
            let answer = call().run(Deadline::after(limit))?;
            let met = match answer.code {
                Some(0) => None,
                _ => named_in(&answer.describe(), &self.dir),
            };
            let Some(lock) = met else {
                return Ok(answer);
            };
            let passed = match need {
                Need::Must => self.locks.pass(&lock),
                Need::May => self.locks.pass_within(&lock, HURRY),
            };
            if let Passed::Stays(message) = passed {
                if need == Need::Must {
                    self.locks.give_up(&message);
                }
                return Err(GitError::Locked(message));
            }
        }
    }

    fn output(answer: GitOutput) -> Asked<String> {
        match answer.code {
            Some(0) => Ok(String::from_utf8_lossy(&answer.stdout)
                .trim_end()
                .to_owned()),
            _ => Err(answer.error().into()),
        }
    }

    fn answer(call: Call) -> Asked<GitOutput> {
        Ok(call.run(Deadline::after(HOOKS))?)
    }

    /// The top of the work tree, whatever bytes its name has.
    pub(super) fn top(&self) -> Asked<PathBuf> {
        self.path(&["rev-parse", "--show-toplevel"])
    }

    pub(super) fn ask(&self, args: &[&str]) -> Asked<String> {
        Self::output(self.reading(args).run(Deadline::after(GIT_TIMEOUT))?)
    }

    pub(super) fn act(&self, args: &[&str]) -> Asked<String> {
        let call = || self.call(Git::act).args(args);
        Self::output(self.change(Need::Must, HOOKS, call)?)
    }

    /// Without the user's hooks: for trees and commits of our own making.
    pub(super) fn quiet(&self, args: &[&str]) -> Asked<String> {
        self.limited(args, GIT_TIMEOUT)
    }

    /// The same, with something to read: paths that may be of any bytes.
    pub(super) fn quiet_with(&self, args: &[&str], stdin: &[u8]) -> Asked<String> {
        let call = || self.hookless(args).stdin(stdin.to_vec());
        Self::output(self.change(Need::Must, GIT_TIMEOUT, call)?)
    }

    /// Without the user's hooks, and with a limit of its own: for talks with other repositories.
    pub(super) fn limited(&self, args: &[&str], limit: Duration) -> Asked<String> {
        let call = || self.hookless(args);
        Self::output(self.change(Need::Must, limit, call)?)
    }

    /// The same for a transfer that tells of its progress, and hangs where it says nothing for so long.
    pub(super) fn transfer(
        &self,
        args: &[&str],
        limit: Duration,
        silence: Duration,
    ) -> Asked<String> {
        let call = || self.hookless(args).ended_when_silent(silence);
        Self::output(self.change(Need::Must, limit, call)?)
    }

    /// Changes of several refs at once, each on the condition that it is as it is expected to be.
    pub(super) fn update_refs(&self, script: &str) -> Asked<()> {
        let call = || {
            let call = self.hookless(&["update-ref", "--stdin"]);
            call.stdin(script.as_bytes().to_vec())
        };
        Self::output(self.change(Need::Must, GIT_TIMEOUT, call)?).map(drop)
    }

    /// Without the user's hooks, with this for its input.
    pub(super) fn fed(&self, args: &[&str], input: &[u8]) -> Asked<String> {
        let call = || self.hookless(args).stdin(input.to_vec());
        Self::output(self.change(Need::Must, GIT_TIMEOUT, call)?)
    }

    /// The same for what may as well be left as it is; what became of it is of no importance.
    pub(super) fn tidy(&self, args: &[&str]) {
        drop(self.change(Need::May, GIT_TIMEOUT, || self.hookless(args)));
    }

    /// Ends what is under way; later calls have little time.
    pub(super) fn end_calls(&self, how: Ending) {
        self.git.end_calls(how);
    }

    /// A call that only reads. Comparing files with the index may run filters.
    fn reading(&self, args: &[&str]) -> Call {
        let call = self.call(Git::read).args(args);
        match args.first() {
            Some(&("status" | "diff" | "diff-files" | "diff-index")) => call.guarded(Manner::End),
            _ => call,
        }
    }

    fn hookless(&self, args: &[&str]) -> Call {
        match args {
            // Refs and objects alone: nothing can be started.
            ["update-ref" | "branch" | "commit-tree" | "symbolic-ref", ..]
            | ["worktree", "prune" | "list" | "lock" | "unlock", ..] => {
                self.call(Git::read).args(args)
            }
            ["merge", rest @ ..] => {
                let is_landing = rest.contains(&"--ff-only");
                let call = match is_landing {
                    true => self.call(Git::own).guarded(Manner::Finish),
                    false => self.call(Git::own),
                };
                let call = call.arg("merge");
                match rest.contains(&"--abort") {
                    true => call.args(rest),
                    // Over what the branch's own merge options say; what follows wins.
                    false => {
                        let call = call.args(MERGE).args(rest);
                        match is_landing {
                            // Files that git ignores are the user's like all others.
                            true => call.arg("--no-overwrite-ignore"),
                            false => call,
                        }
                    }
                }
            }
            // Files of the user's checkout are written, which may run filters.
            ["checkout-index", ..] => self.call(Git::own).guarded(Manner::Finish).args(args),
            _ => self.call(Git::own).args(args),
        }
    }

    /// What a call that only reads prints, byte by byte.
    pub(super) fn bytes(&self, args: &[&str]) -> Asked<Vec<u8>> {
        let call = self.call(Git::read).args(args);
        Ok(call.output(Deadline::after(GIT_TIMEOUT))?)
    }

    /// The same with a last argument of any bytes.
    pub(super) fn bytes_of(&self, args: &[&str], last: &OsStr) -> Asked<Vec<u8>> {
        let call = self.call(Git::read).args(args).arg(last);
        Ok(call.output(Deadline::after(GIT_TIMEOUT))?)
    }

    /// Paths that a call lists with a NUL after each.
    pub(super) fn paths(&self, args: &[&str]) -> Asked<Vec<PathBuf>> {
        self.bytes(args).map(|out| zero_ended_paths(&out))
    }

    /// Paths that it lists of those that it reads.
    pub(super) fn paths_of(&self, args: &[&str], stdin: Vec<u8>) -> Asked<Vec<PathBuf>> {
        let call = self.call(Git::read).args(args).stdin(stdin);
        let answer = Self::answer(call)?;
        match answer.code {
            // It says so as well where it lists none.
            Some(0 | 1) => Ok(zero_ended_paths(&answer.stdout)),
            _ => Err(answer.error().into()),
        }
    }

    /// A path that a call prints, whatever bytes it is made of.
    pub(super) fn path(&self, args: &[&str]) -> Asked<PathBuf> {
        self.bytes(args).map(|bytes| path_of(&bytes))
    }

    /// Whether a call that answers by its exit code says yes.
    pub(super) fn holds(&self, args: &[&str]) -> Asked<bool> {
        let answer = Self::answer(self.reading(args))?;
        match answer.code {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(GitError::SaidNo {
                command: command_of(args),
                message: answer.describe(),
            }),
        }
    }

    /// A call that changes something, and may say no; its message.
    pub(super) fn attempt(&self, args: &[&str]) -> Asked<Result<(), GitError>> {
        let call = || self.hookless(args);
        let answer = self.change(Need::Must, HOOKS, call)?;
        Ok(match answer.code {
            Some(0) => Ok(()),
            None => Err(GitError::Killed {
                command: command_of(args),
            }),
            _ => {
                let said = [answer.said().trim(), answer.stderr.trim()].join("\n");
                Err(GitError::SaidNo {
                    command: command_of(args),
                    message: said.trim().to_owned(),
                })
            }
        })
    }

    /// The commit that a name stands for. Refs are read from their files where that is possible;
    /// git is asked once for each commit whether it is there.
    pub(super) fn commit_of(&self, name: &str) -> Asked<Option<String>> {
        let hash = match &self.refs {
            _ if is_hash(name) => Some(Some(name.to_owned())),
            Some(refs) if is_plain(name) => refs.commit(name),
            _ => None,
        };
        match hash {
            Some(None) => Ok(None),
            Some(Some(hash)) => Ok(self.look_up(&hash)?.map(|found| found.commit)),
            None => Ok(self.look_up(name)?.map(|found| found.commit)),
        }
    }

    /// The commit behind a name, and its tree.
    fn look_up(&self, name: &str) -> Asked<Option<CommitObject>> {
        if let Some(known) = self.cache.commit(name) {
            return Ok(Some(known));
        }
        let names = ["commit", "tree"].map(|kind| format!("{name}^{{{kind}}}"));
        let call = self
            .call(Git::read)
            .args(["rev-parse", "--quiet"])
            .args(&names);
        let answer = Self::answer(call)?;
        let text = String::from_utf8_lossy(&answer.stdout);
        let mut lines = text.lines().filter(|line| is_hash(line));
        let found = lines.next().zip(lines.next()).map(|(commit, tree)| {
            let (commit, tree) = (commit.to_owned(), tree.to_owned());
            CommitObject { commit, tree }
        });
        let found = found.filter(|_| answer.code == Some(0));
        if let Some(found) = &found {
            self.cache.note_commit(found.clone());
        }
        Ok(found)
    }

    /// A commit of a tree on top of another commit, without any hook.
    pub(super) fn commit_tree(&self, tree: &str, parent: &str, message: &str) -> Asked<String> {
        let commit = self.quiet(&["commit-tree", tree, "-p", parent, "-m", message])?;
        if [tree, parent, &commit].iter().all(|name| is_hash(name)) {
            self.cache.note_commit(CommitObject {
                commit: commit.clone(),
                tree: tree.to_owned(),
            });
            self.cache.note_ancestor(parent, &commit);
            if !message.contains('\n') {
                self.cache.note_subject(&commit, message.trim_end());
            }
        }
        Ok(commit)
    }

    /// The first line of a commit's message.
    pub(super) fn subject_of(&self, commit: &str) -> Asked<String> {
        if let Some(known) = self.cache.subject(commit) {
            return Ok(known);
        }
        let subject = self.ask(&["log", "-1", "--format=%s", commit])?;
        if is_hash(commit) {
            self.cache.note_subject(commit, &subject);
        }
        Ok(subject)
    }

    pub(super) fn tree_of(&self, commit: &str) -> Asked<String> {
        match self.look_up(commit)? {
            Some(found) => Ok(found.tree),
            None => self.ask(&["rev-parse", &format!("{commit}^{{tree}}")]),
        }
    }

    pub(super) fn is_ancestor(&self, old: &str, new: &str) -> Asked<bool> {
        let is_same = old == new && self.cache.commit(old).is_some();
        if is_same || self.cache.is_ancestor(old, new) {
            return Ok(true);
        }
        let is_ancestor = self.holds(&["merge-base", "--is-ancestor", old, new])?;
        // What a name stands for may change, and a clone of a part of the history may get the rest of it.
        if is_ancestor && is_hash(old) && is_hash(new) {
            self.cache.note_ancestor(old, new);
        }
        Ok(is_ancestor)
    }

    /// Puts a detached HEAD on a commit, unless it is there already.
    pub(super) fn set_head(&self, git_dir: &Path, commit: &str) -> Asked<()> {
        let there = RefFolders::of_git_dir(git_dir.to_owned()).head();
        let commit_there = match &there {
            HeadRef::Detached { commit } => Some(commit.as_str()),
            HeadRef::Branch { .. } | HeadRef::Opaque => None,
        };
        if commit_there == Some(commit) {
            return Ok(());
        }
        self.quiet(&["update-ref", "--no-deref", "HEAD", commit])
            .map(drop)
    }

    /// The folder that all worktrees of the repository share.
    pub(super) fn common_dir(&self) -> Asked<PathBuf> {
        let common = match &self.refs {
            Some(refs) => refs.common.clone(),
            None => self.path(&["rev-parse", "--git-common-dir"])?,
        };
        Ok(self.dir.join(common))
    }

    /// The branch that is checked out, without `refs/heads/`.
    pub(super) fn branch(&self) -> Asked<Option<String>> {
        match self.refs.as_ref().map(RefFolders::head) {
            Some(HeadRef::Branch { name, .. }) => return Ok(Some(name)),
            Some(HeadRef::Detached { .. }) => return Ok(None),
            Some(HeadRef::Opaque) | None => {}
        }
        let call = self
            .call(Git::read)
            .args(["symbolic-ref", "--quiet", "--short", "HEAD"]);
        let answer = Self::answer(call)?;
        let name = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
        Ok((answer.code == Some(0)).then_some(name))
    }

    /// Files in git's own folder, wherever that is for this tree.
    pub(super) fn git_paths(&self, names: &[&str]) -> Asked<Vec<PathBuf>> {
        if let Some(refs) = &self.refs {
            return Ok(names.iter().map(|name| refs.path(name)).collect());
        }
        let path = |name: &&str| self.path(&["rev-parse", "--git-path", name]);
        let paths = names.iter().map(path);
        paths.map(|path| Ok(self.dir.join(path?))).collect()
    }

    /// Git's folder of this tree.
    pub(super) fn git_dir(&self) -> Asked<PathBuf> {
        match &self.refs {
            Some(refs) => Ok(refs.own.clone()),
            None => self.path(&["rev-parse", "--absolute-git-dir"]),
        }
    }

    /// What the index says; asked again only where it is another one than the last time.
    pub(super) fn index(&self) -> Asked<Arc<IndexSummary>> {
        let path = self.index_file();
        // A worktree begins without one, and git then knows no file there.
        if path.as_deref().is_some_and(is_missing) {
            return Ok(Arc::default());
        }
        let known = path.and_then(|path| self.cache.index(&path));
        match known {
            Some(index) => Ok(index),
            None => self.fresh_index(),
        }
    }

    /// Where the index is, if that is known.
    fn index_file(&self) -> Option<PathBuf> {
        let refs = self.refs.as_ref()?;
        let mut own = self.env.iter().rev();
        let own = own.find(|(key, _)| key == "GIT_INDEX_FILE");
        Some(own.map_or_else(|| refs.own.join("index"), |(_, path)| PathBuf::from(path)))
    }

    fn fresh_index(&self) -> Asked<Arc<IndexSummary>> {
        let path = self.index_file();
        let stamp = path.as_deref().and_then(stamp_of);
        let args = ["ls-files", "-v", "--stage", "--full-name", "-z"];
        let index = Arc::new(IndexSummary::parse(&self.bytes(&args)?));
        // What changed while it was read is read again.
        if let (Some(path), Some(stamp)) = (path, stamp)
            && stamp_of(&path) == Some(stamp)
        {
            self.cache.note_index(path, stamp, &index);
        }
        Ok(index)
    }

    /// Files with unresolved conflicts.
    pub(super) fn unmerged(&self) -> Asked<Vec<PathBuf>> {
        Ok(self.index()?.unmerged.clone())
    }

    /// What differs from the index, by git's own rules of what it ignores.
    pub(super) fn changed(&self) -> Asked<ChangedPaths> {
        // No command that looks into repositories inside the tree.
        let list = ["ls-files", "-z", "-t", "--others", "--modified"];
        let call = self.call(Git::read).args(list).arg("--exclude-standard");
        // Comparing files with the index may run filters.
        let out = call.guarded(Manner::End).output(Deadline::after(HOOKS))?;
        let mut changed = ChangedPaths::parse(&out);
        changed
            .tracked
            .extend(self.index()?.unmerged.iter().cloned());
        Ok(changed)
    }

    /// Brings paths into the index as they are in the tree now, and no others.
    pub(super) fn stage(&self, paths: &BTreeSet<PathBuf>) -> Asked<()> {
        let index = self.index()?;
        let is_link = |path: &Path| index.links.iter().any(|link| link.path == path);
        let is_there = |path: &&PathBuf| {
            let found = self.dir.join(path).symlink_metadata();
            let is_entry = found.is_ok_and(|meta| !meta.is_dir() || is_link(path));
            is_entry && link_above(&self.dir, path).is_none()
        };
        let (there, gone): (Vec<&PathBuf>, Vec<&PathBuf>) = paths.iter().partition(is_there);
        let update = |flags: &[&str], paths: &[&PathBuf]| -> Asked<()> {
            if paths.is_empty() {
                return Ok(());
            }
            let args = [&["update-index"], flags, &["-z", "--stdin"]].concat();
            let paths = zero_ended("", paths.iter().map(|path| path.as_path()));
            self.quiet_with(&args, &paths).map(drop)
        };
        update(&["--force-remove"], &gone)?;
        update(&["--add", "--remove", "--replace"], &there)
    }

    /// Takes paths out of the index; what is in the tree stays.
    pub(super) fn unstage(&self, paths: &BTreeSet<PathBuf>) -> Asked<()> {
        if paths.is_empty() {
            return Ok(());
        }
        let args = ["update-index", "--force-remove", "-z", "--stdin"];
        let paths = zero_ended("", paths.iter().map(PathBuf::as_path));
        self.quiet_with(&args, &paths).map(drop)
    }

    /// Files that differ between HEAD and the index.
    pub(super) fn staged(&self) -> Asked<Vec<PathBuf>> {
        let args = [
            "diff",
            "--cached",
            "--name-only",
            "--no-renames",
            "--no-relative",
            "-z",
        ];
        let out = self.reading(&args).output(Deadline::after(HOOKS))?;
        Ok(zero_ended_paths(&out))
    }

    /// Whether git can work with this tree. One whose index alone is broken counts. Git itself is
    /// asked where its folder is not as it was.
    pub(super) fn is_repository(&self) -> bool {
        let folders = self.refs.as_ref();
        let is_whole = folders.is_some_and(|refs| {
            let there = RefFolders::of_git_dir(refs.own.clone());
            there.common == refs.common && there.head() != HeadRef::Opaque
        });
        let index = match is_whole {
            true => self.index(),
            false => self.fresh_index(),
        };
        index.is_ok() || self.ask(&["rev-parse", "--git-dir"]).is_ok()
    }

    /// Takes away the locks of a git that was killed. For trees of our own alone. A git that still
    /// works there would rename the next one's half-written file into its place.
    pub(super) fn unlock(&self) -> Asked<()> {
        let folder = self.git_dir()?;
        for lock in ["index.lock", "HEAD.lock"].map(|name| folder.join(name)) {
            if lock.symlink_metadata().is_err() {
                continue;
            }
            if !self.locks.await_gits(&self.dir) {
                let folder = self.dir.display();
                let message = format!("git is still running in {folder}");
                return Err(GitError::Locked(message));
            }
            match fs_err::remove_file(&lock) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error.into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes an index anew that cannot be read: a machine that lost its power leaves such. For trees
    /// of our own alone; the files stay as they are.
    pub(super) fn mend(&self) -> Asked<()> {
        if self.index().is_ok() {
            return Ok(());
        }
        for index in self.git_paths(&["index"])? {
            fs_err::remove_file(index)?;
        }
        self.quiet(&["reset", "--quiet"]).map(drop)
    }

    /// Whether anything differs from HEAD, untracked files included, also in repositories inside. Those are asked
    /// one by one: a git that another git starts there goes by settings that an agent may have left.
    pub(super) fn is_dirty(&self) -> Asked<bool> {
        let changed = self.ask(&[
            "status",
            "--porcelain",
            "--untracked-files=normal",
            "--ignore-submodules=dirty",
        ])?;
        if !changed.is_empty() {
            return Ok(true);
        }
        let staged = self.reading(&["ls-files", "--stage", "-z"]);
        let staged = staged.output(Deadline::after(GIT_TIMEOUT))?;
        let links = staged.split(|byte| *byte == 0).filter_map(|row| {
            let tab = row.iter().position(|byte| *byte == b'\t')?;
            let path = row.strip_prefix(b"160000 ").and(row.get(tab + 1..))?;
            Some(self.dir.join(OsStr::from_bytes(path)))
        });
        for inside in links.filter(|inside| inside.join(".git").exists()) {
            if self.beside(&inside).is_dirty()? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
