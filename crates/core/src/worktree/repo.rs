//! The repository that the working directory lies in, if it lies in one.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::deadline::Deadline;
use super::error::{NO_REPOSITORY, NO_WORK_TREE, WorktreeError};
use super::git::guards::Manner;
use super::git::{Call, Git};
use super::head::{HeadRef, RefFolders};
use super::oid::HashFormat;
use super::text;

/// How long git may take for what is not measured: finding the repository, a diff, a branch.
pub(super) const GIT_TIMEOUT: Duration = Duration::from_secs(120);

/// A git work tree, and the folder of our own that takes the objects of its snapshots.
#[derive(Debug)]
pub(super) struct Repo {
    pub(super) git: Git,
    /// Top folder of the work tree.
    pub(super) root: PathBuf,
    pub(super) refs: RefFolders,
    /// The user's index, which is copied; only a commit writes it.
    pub(super) index: PathBuf,
    /// The user's objects, which are read and never written.
    theirs: PathBuf,
    /// Ours.
    pub(super) objects: PathBuf,
    pub(super) format: HashFormat,
    /// Settings that keep the filters which are configured from being run.
    filters_off: Mutex<Vec<(OsString, OsString)>>,
    /// The names of those filters, and whether attributes are given outside of the work tree.
    filters: Mutex<(Vec<String>, bool)>,
}

impl Clone for Repo {
    fn clone(&self) -> Repo {
        Repo {
            git: self.git.clone(),
            root: self.root.clone(),
            refs: self.refs.clone(),
            index: self.index.clone(),
            theirs: self.theirs.clone(),
            objects: self.objects.clone(),
            format: self.format,
            filters_off: Mutex::new(self.filters_off()),
            filters: Mutex::new(self.filters_known()),
        }
    }
}

impl Repo {
    /// `git add` of everything. A file outside of the part that is checked out is left out without a word
    /// unless it is asked for; git knows the flag as long as it leaves any out.
    pub(super) fn add_all(&self) -> &'static [&'static str] {
        match self.is_sparse() {
            true => &["add", "-A", "--sparse"],
            false => &["add", "-A"],
        }
    }

    /// Whether only a part of the files may be checked out.
    pub(super) fn is_sparse(&self) -> bool {
        self.refs.own.join("info/sparse-checkout").exists()
    }

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
            .run(Deadline::after(GIT_TIMEOUT))
            .map_err(|error| error.to_string())?;
        if asked.code != Some(0) {
            return Err(why_not(&asked.describe()));
        }
        let lines: Vec<PathBuf> = text::lines(&asked.stdout).map(text::path).collect();
        let [format, root, own, common, theirs, index] = <[PathBuf; 6]>::try_from(lines)
            .map_err(|_| "its path contains a newline".to_owned())?;
        let format = match format.to_str() {
            Some("sha1") => HashFormat::Sha1,
            Some("sha256") => HashFormat::Sha256,
            _ => {
                return Err(format!(
                    "its object format {} is not supported",
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
            filters_off: Mutex::default(),
            filters: Mutex::default(),
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
        // A name that begins with a colon would be taken for a pattern.
        let asked = self
            .read()
            .args(["check-ignore", "-q", "--"])
            .arg(Path::new(".").join(below))
            .run(Deadline::after(GIT_TIMEOUT))
            .map_err(|error| error.to_string())?;
        match asked.code {
            Some(0) => Err(format!(
                "the repository at {} ignores it",
                self.root.display()
            )),
            _ => Ok(()),
        }
    }

    /// A reading call on this very repository and work tree, whatever became of the settings and
    /// files that git finds them by.
    pub(super) fn read(&self) -> Call {
        self.at_home(self.git.read(&self.root))
    }

    /// The same with other files than those of the work tree.
    pub(super) fn read_at(&self, root: &Path) -> Call {
        self.git
            .read(root)
            .env("GIT_DIR", &self.refs.own)
            .env("GIT_COMMON_DIR", &self.refs.common)
            .env("GIT_WORK_TREE", root)
    }

    fn at_home(&self, call: Call) -> Call {
        call.env("GIT_DIR", &self.refs.own)
            .env("GIT_COMMON_DIR", &self.refs.common)
            .env("GIT_WORK_TREE", &self.root)
            // What is missing would be fetched by whatever program settings name for it.
            .env("GIT_NO_LAZY_FETCH", "1")
    }

    /// The user's objects.
    pub(super) fn objects_of_user(&self) -> &Path {
        &self.theirs
    }

    fn filters_off(&self) -> Vec<(OsString, OsString)> {
        let known = self.filters_off.lock();
        known.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn filters_known(&self) -> (Vec<String>, bool) {
        let known = self.filters.lock();
        known.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The filters that are configured, as far as they were looked for.
    pub(super) fn filters(&self) -> Vec<String> {
        self.filters_known().0
    }

    /// Whether there are attributes outside of the index.
    pub(super) fn has_attributes(&self) -> bool {
        self.filters_known().1 || self.root.join(".gitattributes").exists()
    }

    /// From now on none of these filters is run where files become objects, or objects files.
    pub(super) fn turn_off(&self, filters: &[String], attributes_outside: bool) {
        *self.filters.lock().unwrap_or_else(PoisonError::into_inner) =
            (filters.to_vec(), attributes_outside);
        let off = |name: &String| {
            let set = |key: &str, value: &str| {
                let key = OsString::from(format!("filter.{name}.{key}"));
                (key, OsString::from(value))
            };
            [
                set("clean", ""),
                set("smudge", ""),
                set("process", ""),
                set("required", "false"),
            ]
        };
        let settings = filters.iter().flat_map(off).collect();
        *self
            .filters_off
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// A call that sees the user's objects and writes into ours. It can start nothing: filters
    /// are off.
    pub(super) fn snapshot_call(&self) -> Call {
        self.with_objects(self.git.measure(&self.root))
            .configured(&self.filters_off())
    }

    /// The same with the filters that are configured, in a guard.
    pub(super) fn filtered_call(&self) -> Call {
        self.with_objects(self.git.measure(&self.root))
            .guarded(Manner::End)
    }

    fn with_objects(&self, call: Call) -> Call {
        self.at_home(call)
            .env("GIT_OBJECT_DIRECTORY", &self.objects)
            .env(
                "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                text::path_list_item(&self.theirs),
            )
    }

    pub(super) fn head(&self) -> HeadRef {
        match self.refs.head() {
            HeadRef::Opaque => self.head_by_git().unwrap_or(HeadRef::Opaque),
            known => known,
        }
    }

    fn head_by_git(&self) -> Result<HeadRef, WorktreeError> {
        let ask = |args: &[&str]| {
            let answer = self.read().args(args).run(Deadline::after(GIT_TIMEOUT))?;
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

/// git's message where they matter (somebody else's repository, a damaged one), ours where there is
/// simply none.
fn why_not(message: &str) -> String {
    if message.contains("not a git repository") {
        return NO_REPOSITORY.to_owned();
    }
    if message.contains("must be run in a work tree") {
        return NO_WORK_TREE.to_owned();
    }
    message
        .lines()
        .next()
        .unwrap_or(message)
        .trim_start_matches("fatal: ")
        .to_owned()
}
