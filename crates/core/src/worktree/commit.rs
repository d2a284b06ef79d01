//! Commits, branches and tags, made as the user would make them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tracing::warn;

use super::deadline::Deadline;
use super::error::WorktreeError;
use super::git::confined::ConfinedGit;
use super::pipes::pipe_in;
use super::repo::{GIT_TIMEOUT, Repo};
use super::scan_root::ScanRoot;
use super::text;

/// Hooks may run tests; those that never end must not hold the loop for ever.
const HOOKS: Duration = Duration::from_secs(20 * 60);

/// What came of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitOutcome {
    /// It was made.
    Made {
        /// Its hash.
        hash: String,
    },
    /// There was nothing to commit.
    Nothing,
    /// It could not be made; the work is still there.
    Failed {
        /// Why, in git's message where they are git's.
        message: String,
    },
}

/// A commit that is about to be made, in whichever thread.
#[derive(Debug)]
pub(crate) struct CommitJob {
    what: Result<Box<(Repo, ScanRoot)>, String>,
    message: String,
    /// It is made in this sandbox.
    confined: Option<Arc<ConfinedGit>>,
}

impl CommitJob {
    /// The same in a sandbox: filters, hooks and whatever else git starts on the way.
    pub(crate) fn confined(self, confined: Option<Arc<ConfinedGit>>) -> CommitJob {
        CommitJob { confined, ..self }
    }

    pub(super) fn new(repo: &Repo, scan_root: &ScanRoot, message: &str) -> CommitJob {
        CommitJob {
            what: Ok(Box::new((repo.clone(), scan_root.clone()))),
            message: message.to_owned(),
            confined: None,
        }
    }

    pub(super) fn hopeless(why: &str) -> CommitJob {
        CommitJob {
            what: Err(why.to_owned()),
            message: String::new(),
            confined: None,
        }
    }

    /// Makes it.
    pub(crate) fn run(self) -> CommitOutcome {
        match self.what {
            Ok(what) => what
                .0
                .commit_all(&what.1, &self.message, self.confined.as_ref()),
            Err(message) => CommitOutcome::Failed { message },
        }
    }
}

/// What a person had staged before a commit is tried: where none is made, it is staged again, and no more.
struct StagedFiles<'r> {
    index: &'r Path,
    /// With the time at which it was written; `None` where there was no index.
    content: io::Result<Option<(Vec<u8>, SystemTime)>>,
}

impl<'r> StagedFiles<'r> {
    fn of(index: &'r Path) -> Self {
        let written = fs_err::metadata(index).and_then(|meta| meta.modified());
        let content = match written.and_then(|at| Ok((fs_err::read(index)?, at))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            content => content.map(Some),
        };
        Self { index, content }
    }

    /// Under git's own lock, so that no git of the person's is in between.
    fn put_back(self) -> io::Result<()> {
        let content = self.content?;
        let lock = self.index.with_extension("lock");
        let mut options = fs_err::OpenOptions::new();
        let mut file = options.write(true).create_new(true).open(&lock)?;
        let done = match content {
            // Git takes a file that changed after its index was written for one it has to read.
            Some((content, written)) => io::Write::write_all(&mut file, &content)
                .and_then(|()| file.file().set_modified(written))
                .and_then(|()| fs_err::rename(&lock, self.index)),
            None => fs_err::remove_file(self.index),
        };
        match fs_err::remove_file(&lock) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => done.and(Err(error)),
            _ => done,
        }
    }
}

impl Repo {
    pub(super) fn commit_all(
        &self,
        scan_root: &ScanRoot,
        message: &str,
        confined: Option<&Arc<ConfinedGit>>,
    ) -> CommitOutcome {
        match self.try_commit_all(scan_root, message, confined) {
            Ok(outcome) => outcome,
            Err(WorktreeError::Git { message, .. }) => CommitOutcome::Failed { message },
            Err(other) => CommitOutcome::Failed {
                message: other.to_string(),
            },
        }
    }

    fn try_commit_all(
        &self,
        scan_root: &ScanRoot,
        message: &str,
        confined: Option<&Arc<ConfinedGit>>,
    ) -> Result<CommitOutcome, WorktreeError> {
        if let Some(message) = pipe_in(&self.root) {
            return Ok(CommitOutcome::Failed { message });
        }
        if let Some(message) = self.commit_would_harm()? {
            return Ok(CommitOutcome::Failed { message });
        }
        let signing = confined.and_then(|confined| confined.signing.as_ref());
        let signing = match signing {
            Some(Err(why)) => {
                let message = why.clone();
                return Ok(CommitOutcome::Failed { message });
            }
            Some(Ok(signing)) => Some(signing),
            None => None,
        };
        let before = self.head();
        let staged = StagedFiles::of(&self.index);
        let outcome = self.stage_and_commit(scan_root, message, confined);
        if !matches!(outcome, Ok(CommitOutcome::Made { .. }))
            && let Err(error) = staged.put_back()
        {
            warn!(%error, "cannot unstage what was not committed");
        }
        if let (Ok(CommitOutcome::Made { .. }), Some(signing)) = (&outcome, signing) {
            self.sign_head(signing, &before)?;
            return Ok(self.made());
        }
        outcome
    }

    fn stage_and_commit(
        &self,
        scan_root: &ScanRoot,
        message: &str,
        confined: Option<&Arc<ConfinedGit>>,
    ) -> Result<CommitOutcome, WorktreeError> {
        let add = self
            .git
            .act(&self.root)
            .confined(confined)
            .args(self.add_all())
            .args(["--"])
            .args(scan_root.pathspecs());
        add.output(Deadline::after(GIT_TIMEOUT))?;
        let staged = self
            .read()
            .args(["diff", "--cached", "--name-only", "-z", "--no-ext-diff"]);
        let staged = staged.output(Deadline::after(GIT_TIMEOUT))?;
        let (ours, theirs): (Vec<PathBuf>, Vec<PathBuf>) = text::zero_ended(&staged)
            .map(text::path)
            .partition(|path| scan_root.is_apart(path));
        if theirs.is_empty() {
            return Ok(CommitOutcome::Nothing);
        }
        let mut commit = self
            .git
            .act(&self.root)
            .confined(confined)
            .args(["commit", "--quiet", "-m", message]);
        if confined.is_some() {
            // Keys are outside.
            commit = commit.arg("--no-gpg-sign");
        }
        if !ours.is_empty() {
            // Somebody staged a file of ours: it stays staged, and out of this commit.
            commit = commit.args(["--only", "--"]).args(scan_root.pathspecs());
        }
        commit.output(Deadline::after(HOOKS))?;
        Ok(self.made())
    }

    /// The commit that was made.
    fn made(&self) -> CommitOutcome {
        match self.head().commit() {
            Some(hash) => CommitOutcome::Made {
                hash: hash.to_owned(),
            },
            None => CommitOutcome::Failed {
                message: "HEAD cannot be read".to_owned(),
            },
        }
    }

    /// `git add -A` would call conflicts resolved, and a commit would end what the user, or the
    /// agent, is in the middle of.
    fn commit_would_harm(&self) -> Result<Option<String>, WorktreeError> {
        if let Some(under_way) = self.under_way().filter(|way| way.blocks_commit()) {
            let verb = under_way.verb();
            return Ok(Some(format!(
                "a {verb} is in progress: finish it, or type git {verb} --abort"
            )));
        }
        let unmerged = ["ls-files", "--unmerged", "-z"];
        let out = self
            .read()
            .args(unmerged)
            .output(Deadline::after(GIT_TIMEOUT))?;
        let name = |row: &[u8]| {
            let tab = row.iter().position(|byte| *byte == b'\t')?;
            Some(text::path(row.get(tab + 1..)?))
        };
        let first = text::zero_ended(&out).next().and_then(name);
        Ok(first.map(|path| {
            format!(
                "there are unresolved conflicts, for example in {}",
                path.display()
            )
        }))
    }

    /// Where agents have been, `starts_nothing`: neither hooks nor filters, since nothing confines them yet.
    pub(super) fn create_branch(
        &self,
        name: &str,
        starts_nothing: bool,
    ) -> Result<(), WorktreeError> {
        self.check_name("branch", &["check-ref-format", "--branch", name], name)?;
        if self.commit_of(&format!("refs/heads/{name}"))?.is_some() {
            return Err(WorktreeError::Exists {
                what: "branch",
                name: name.to_owned(),
            });
        }
        if starts_nothing {
            let full = format!("refs/heads/{name}");
            if let Some(commit) = self.head().commit() {
                let make = self.read().args(["update-ref", &full, commit, ""]);
                make.output(Deadline::after(GIT_TIMEOUT))?;
            }
            let to = self.read().args(["symbolic-ref", "HEAD", &full]);
            return to.output(Deadline::after(GIT_TIMEOUT)).map(drop);
        }
        let switch = self
            .git
            .act(&self.root)
            .args(["switch", "--quiet", "-c", name]);
        switch.output(Deadline::after(HOOKS)).map(drop)
    }

    pub(super) fn tag(
        &self,
        name: &str,
        confined: Option<&Arc<ConfinedGit>>,
    ) -> Result<(), WorktreeError> {
        let full = format!("refs/tags/{name}");
        self.check_name("tag", &["check-ref-format", &full], name)?;
        match self.commit_of(&full)? {
            Some(commit) if self.head().commit() == Some(commit.as_str()) => return Ok(()),
            Some(_) => {
                return Err(WorktreeError::Exists {
                    what: "tag",
                    name: name.to_owned(),
                });
            }
            None => {}
        }
        let tag =
            self.git
                .act(&self.root)
                .confined(confined)
                .args(["tag", "--no-sign", "--", name]);
        tag.output(Deadline::after(GIT_TIMEOUT)).map(drop)
    }

    fn check_name(
        &self,
        what: &'static str,
        args: &[&str],
        name: &str,
    ) -> Result<(), WorktreeError> {
        // A leading dash would be taken for an option.
        let asked = self.read().args(args).run(Deadline::after(GIT_TIMEOUT))?;
        match asked.code {
            Some(0) if !name.starts_with('-') => Ok(()),
            _ => Err(WorktreeError::BadName {
                what,
                name: name.to_owned(),
            }),
        }
    }

    fn commit_of(&self, name: &str) -> Result<Option<String>, WorktreeError> {
        let name = format!("{name}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", &name];
        let asked = self.read().args(args).run(Deadline::after(GIT_TIMEOUT))?;
        let commit = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
        Ok((asked.code == Some(0)).then_some(commit))
    }
}
