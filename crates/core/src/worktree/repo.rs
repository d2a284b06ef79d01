//! The repository that the working directory lies in, if it lies in one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::deadline::Deadline;
use super::error::WorktreeError;
use super::git::{Call, Git};
use super::head::{HeadRef, RefFolders};
use super::oid::Format;
use super::text;

/// How long git may take for what is not measured: finding the repository, a diff, a branch.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// A git work tree, and the folder of our own that takes the objects of its snapshots.
#[derive(Debug)]
pub(super) struct Repo {
    pub(super) git: Git,
    /// Top folder of the work tree.
    pub(super) root: PathBuf,
    pub(super) refs: RefFolders,
    /// The user's index, which is copied and never written.
    pub(super) index: PathBuf,
    /// The user's objects, which are read and never written.
    theirs: PathBuf,
    /// Ours.
    pub(super) objects: PathBuf,
    pub(super) format: Format,
}

impl Repo {
    /// Finds the work tree around `dir`, or says why there is none that can be used.
    pub(super) fn find(git: &Git, dir: &Path, objects: &Path) -> Result<Repo, String> {
        let asked = git
            .read(dir)
            .args([
                "rev-parse",
                "--path-format=absolute",
                "--show-object-format",
            ])
            .args(["--show-toplevel", "--absolute-git-dir", "--git-common-dir"])
            .args(["--git-path", "objects", "--git-path", "index"])
            .run(Deadline::after(PATIENCE))
            .map_err(|error| error.to_string())?;
        if asked.code != Some(0) {
            return Err(why_not(&asked.words()));
        }
        let lines: Vec<PathBuf> = text::lines(&asked.stdout).map(text::path).collect();
        let [format, root, own, common, theirs, index] = <[PathBuf; 6]>::try_from(lines)
            .map_err(|_| "its path holds a line break".to_owned())?;
        let format = match format.to_str() {
            Some("sha1") => Format::Sha1,
            Some("sha256") => Format::Sha256,
            _ => {
                return Err(format!(
                    "its object format {} is not known",
                    format.display()
                ));
            }
        };
        let refs = RefFolders { own, common };
        let objects = objects.to_path_buf();
        let repo = Repo {
            git: git.clone(),
            root,
            refs,
            index,
            theirs,
            objects,
            format,
        };
        repo.refuse_ignored(dir)?;
        Ok(repo)
    }

    /// In a folder that the repository ignores, nothing that happens would ever be seen by git.
    fn refuse_ignored(&self, dir: &Path) -> Result<(), String> {
        let Ok(dir) = fs::canonicalize(dir) else {
            return Ok(());
        };
        let below = dir.strip_prefix(&self.root).unwrap_or(Path::new(""));
        if below.as_os_str().is_empty() {
            return Ok(());
        }
        let asked = self
            .git
            .read(&self.root)
            .args(["check-ignore", "-q", "--"])
            .arg(below)
            .run(Deadline::after(PATIENCE))
            .map_err(|error| error.to_string())?;
        match asked.code {
            Some(0) => Err(format!(
                "the repository at {} ignores it",
                self.root.display()
            )),
            _ => Ok(()),
        }
    }

    /// A reading call that sees the user's objects and writes into ours.
    pub(super) fn snapshot_call(&self) -> Call {
        self.git
            .read(&self.root)
            .env("GIT_OBJECT_DIRECTORY", &self.objects)
            .env(
                "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                text::path_list_item(&self.theirs),
            )
            // A partial clone would ask the network for what it lacks.
            .env("GIT_NO_LAZY_FETCH", "1")
    }

    pub(super) fn head(&self) -> HeadRef {
        match self.refs.head() {
            HeadRef::Opaque => self.head_by_git().unwrap_or(HeadRef::Opaque),
            known => known,
        }
    }

    fn head_by_git(&self) -> Result<HeadRef, WorktreeError> {
        let ask = |args: &[&str]| {
            let answer = self
                .git
                .read(&self.root)
                .args(args)
                .run(Deadline::after(PATIENCE))?;
            let word = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
            Ok::<_, WorktreeError>((answer.code == Some(0)).then_some(word))
        };
        let commit = ask(&["rev-parse", "--verify", "--quiet", "HEAD"])?;
        let branch = ask(&["symbolic-ref", "--quiet", "--short", "HEAD"])?;
        Ok(match (branch, commit) {
            (Some(name), commit) => HeadRef::Branch { name, commit },
            (None, Some(commit)) => HeadRef::Detached { commit },
            (None, None) => HeadRef::Opaque,
        })
    }
}

/// git's words where they matter (somebody else's repository, a damaged one), ours where there is
/// simply none.
fn why_not(words: &str) -> String {
    if words.contains("not a git repository") {
        return "this folder is in no git repository".to_owned();
    }
    if words.contains("must be run in a work tree") {
        return "this folder is in a git repository without a work tree".to_owned();
    }
    words
        .lines()
        .next()
        .unwrap_or(words)
        .trim_start_matches("fatal: ")
        .to_owned()
}
