//! Where everything lies. Paths only: making folders is left to those who write in them.
//!
//! ```text
//! <state root>/
//!   locks/<16 hex>.lock     who holds a state file, by the path of that file
//!   worktrees/
//!   loops/<id>/
//!     journal.jsonl  host.json  meta.json  lock
//!     prompts/<hash>
//!     runs/0007/stdout.log  stderr.log  gate-1.log
//!     objects/
//! ```

mod env;
mod project;
mod runtime;

pub use env::EnvPaths;
pub use project::{canonical, ensure_folder_of, ensure_project_folder, state_file_path};
pub use runtime::{RuntimeError, socket_path};

pub use crate::real_path::PROJECT_FOLDER;

use nix::unistd::{AccessFlags, access};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The state file of a project's default loop, in [`PROJECT_FOLDER`].
pub const STATE_FILE: &str = "loop-state.json";

/// The folder that holds all loops of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateRoot {
    path: PathBuf,
}

/// A loop id that cannot be one: it would not be a plain file name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a loop id: {0:?} (letters, digits, `-` and `_`, at most 64)")]
pub struct BadLoopId(pub String);

impl StateRoot {
    /// The first of `DESCARTES_STATE_DIR`, `$XDG_STATE_HOME/descartes` and
    /// `~/.local/state/descartes` that is set and can be written; else `.descartes` in the
    /// project. A `DESCARTES_STATE_DIR` is taken as it is.
    pub fn resolve(env: &EnvPaths, project: &Path) -> Self {
        if let Some(dir) = &env.state_dir {
            return Self::at(project.join(dir));
        }
        let xdg = env.xdg_state_home.as_ref().map(|dir| dir.join("descartes"));
        let home = env
            .home
            .as_ref()
            .map(|dir| dir.join(".local/state/descartes"));
        let usable = |path: &PathBuf| path.is_absolute() && can_be_written(path);
        let found = [xdg, home].into_iter().flatten().find(usable);
        Self::at(found.unwrap_or_else(|| project.join(PROJECT_FOLDER)))
    }

    /// A root at a known place. It may be reached over links, which are resolved here once; nothing
    /// in it may be one, and `.descartes` of a project neither.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let free = match path.file_name() == Some(std::ffi::OsStr::new(PROJECT_FOLDER)) {
            true => crate::safe_open::link_free(&path).ok(),
            false => canonical(&path).ok(),
        };
        Self {
            path: free.unwrap_or(path),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of all loops.
    pub fn loops(&self) -> PathBuf {
        self.path.join("loops")
    }

    /// The folder of worktree slots.
    pub fn worktrees(&self) -> PathBuf {
        self.path.join("worktrees")
    }

    /// The SQLite index over all journals; it can be deleted at any time.
    pub fn index(&self) -> PathBuf {
        self.path.join("index.db")
    }

    /// The lock that stands for a state file, outside of the tree that agents work in.
    pub fn lock_for(&self, canonical_state_file: &Path) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        let name = short_hash(canonical_state_file.as_os_str().as_bytes());
        self.locks().join(format!("{name}.lock"))
    }

    /// The lock of a name that a loop is about to take.
    pub fn lock_for_name(&self, name: &str) -> PathBuf {
        let name = short_hash(name.as_bytes());
        self.locks().join(format!("name-{name}.lock"))
    }

    /// The folder of those locks.
    pub fn locks(&self) -> PathBuf {
        self.path.join("locks")
    }

    /// The folder of one loop.
    pub fn loop_dir(&self, id: &str) -> Result<LoopDir, BadLoopId> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if id.is_empty() || id.len() > 64 || !id.chars().all(plain) {
            return Err(BadLoopId(id.to_owned()));
        }
        Ok(LoopDir {
            path: self.loops().join(id),
        })
    }
}

/// The folder of one loop.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoopDir {
    path: PathBuf,
}

impl LoopDir {
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// Who hosts the loop.
    pub fn host(&self) -> PathBuf {
        self.path.join("host.json")
    }

    /// What a host in the background tells those who debug it.
    pub fn host_log(&self) -> PathBuf {
        self.path.join("host.log")
    }

    /// What the catalog shows.
    pub fn meta(&self) -> PathBuf {
        self.path.join("meta.json")
    }

    /// The lock of the journal's one writer.
    pub fn lock(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// Git objects of the loop's own.
    pub fn objects(&self) -> PathBuf {
        self.path.join("objects")
    }

    /// Prompts, each stored once under its hash.
    pub fn prompts(&self) -> PathBuf {
        self.path.join("prompts")
    }

    /// The folders of all runs.
    pub fn runs(&self) -> PathBuf {
        self.path.join("runs")
    }

    /// The folder of one run.
    pub fn run(&self, run: u64) -> RunDir {
        RunDir {
            path: self.runs().join(format!("{run:04}")),
        }
    }
}

/// The folder of one run: its output as raw bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the agent wrote to standard output.
    pub fn stdout(&self) -> PathBuf {
        self.path.join("stdout.log")
    }

    /// What the agent wrote to standard error.
    pub fn stderr(&self) -> PathBuf {
        self.path.join("stderr.log")
    }

    /// What a gate wrote; gates are counted from 1.
    pub fn gate(&self, gate: u32) -> PathBuf {
        self.path.join(format!("gate-{gate}.log"))
    }
}

/// Sixteen hex digits that stand for some bytes.
pub(crate) fn short_hash(bytes: &[u8]) -> String {
    let mut hash = hex(&Sha256::digest(bytes));
    hash.truncate(16);
    hash
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a folder is there to write in, or could be made. Asks without making it, so that
/// those who only look find the same place as those who write.
fn can_be_written(path: &Path) -> bool {
    let there = path.ancestors().find(|ancestor| ancestor.exists());
    there.is_some_and(|there| access(there, AccessFlags::W_OK | AccessFlags::X_OK).is_ok())
}
