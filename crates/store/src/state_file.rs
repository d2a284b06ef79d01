//! The state file: the face of a loop that people and scripts read, and may write.
//!
//! It is replaced whole at every iteration's end. Its last field, `journal`, says up to which
//! event it was folded, with a hash of that and of all bytes before that field: a file that does not fit
//! its hash was edited by hand, and is a person's wish.

use crate::layout::{ensure_folder_of, hex, state_file_path};
use crate::ops::{self, IoError, Sync};
use crate::safe_open;
use descartes_kernel::state::IterativeLoopState;
use jiff::Timestamp;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Format versions that begin with this are read and written.
const MAJOR: &str = "1";
const MARK: &str = ",\n  \"journal\": {";

/// A state file as it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// What it says; `journal` is taken out, see [`origin`](Self::origin).
    pub state: IterativeLoopState,
    /// Who wrote it.
    pub origin: Origin,
    /// Hash of all its bytes.
    pub raw_hash: String,
}

/// Who wrote a state file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// descartes, from the journal up to this event.
    Projected {
        /// The last event that was folded.
        seq: u64,
    },
    /// descartes at first, and then somebody changed it.
    Edited {
        /// The last event that was folded before the change.
        seq: u64,
    },
    /// A person, or a version that kept no journal.
    ByHand,
}

/// Why a state file cannot be used. It is never taken for an empty one.
#[derive(Debug, thiserror::Error)]
pub enum StateFileError {
    /// There is none.
    #[error("there is no state file {}", .0.display())]
    Missing(PathBuf),
    /// The system refused.
    #[error(transparent)]
    Io(#[from] IoError),
    /// It is torn, or not JSON, or says what cannot be.
    #[error("{} cannot be read at byte {byte} (line {line}, column {column}): {why}", path.display())]
    Damaged {
        path: PathBuf,
        /// Where reading stopped, from 0.
        byte: u64,
        /// The same as a line, from 1.
        line: usize,
        /// And the column in it, from 1.
        column: usize,
        /// What was wrong there.
        why: String,
    },
    /// A newer version wrote it; nothing was changed.
    #[error("{} has format version {version}, which this version of descartes cannot read", path.display())]
    Newer {
        path: PathBuf,
        /// The version that was found.
        version: String,
    },
}

impl StateFileError {
    /// What a person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Missing(_) => {
                Some("start one with `descartes loop start` and its task behind --prompt")
            }
            Self::Damaged { .. } => Some(
                "fix the file, resume the loop by its id (descartes loop list), or start over \
                 and keep the file: `descartes loop start --force` and the task behind --prompt",
            ),
            Self::Newer { .. } => Some("update descartes; nothing was changed"),
            Self::Io(_) => None,
        }
    }
}

/// A state file at a known place, with a memory of how it was left.
#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    left: Option<Stamp>,
}

/// Tells one version of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    len: u64,
    changed: (i64, i64),
}

/// What others did to a state file since it was last loaded or saved here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touched {
    No,
    /// It was written.
    Edited,
    /// It was deleted.
    Gone,
}

impl Loaded {
    /// Whether it is as we left it, before the journal came to event `seq`: a host that was killed between its
    /// last records and the state file leaves it so.
    pub fn is_behind(&self, seq: u64) -> bool {
        matches!(self.origin, Origin::Projected { seq: known } if known < seq)
    }
}

impl StateFile {
    /// Links above it are resolved (above `.descartes`, where it lies in one); it is none itself.
    /// The file need not be there.
    pub fn at(path: &Path) -> Result<Self, IoError> {
        Ok(Self {
            path: state_file_path(path)?,
            left: None,
        })
    }

    /// Where it really lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn load(&mut self) -> Result<Loaded, StateFileError> {
        self.left = stamp(&self.path);
        load(&self.path)
    }

    /// Replaces it, mode 0600; its folder is made anew if it is gone. `seq` is the last event
    /// that `state` was folded from.
    pub fn save(
        &mut self,
        state: &IterativeLoopState,
        seq: u64,
        sync: Sync,
    ) -> Result<(), StateFileError> {
        let text = render(state, seq)
            .map_err(|error| IoError::new("write", &self.path, std::io::Error::other(error)))?;
        if let Err(error) = ops::replace(&self.path, &text, sync) {
            if !error.is_missing() {
                return Err(error.into());
            }
            ensure_folder_of(&self.path)?;
            ops::replace(&self.path, &text, sync)?;
        }
        self.left = stamp(&self.path);
        Ok(())
    }

    /// Whether somebody else wrote or deleted it since.
    pub fn touched(&self) -> Touched {
        match (self.left, stamp(&self.path)) {
            (left, now) if left == now => Touched::No,
            (_, None) => Touched::Gone,
            _ => Touched::Edited,
        }
    }

    /// Refuses what could not be set aside, before anything is begun.
    pub fn may_be_set_aside(&self) -> Result<(), IoError> {
        match safe_open::is_there(&self.path) {
            true => {
                safe_open::may_be_set_aside(&self.path).map_err(ops::at("move aside", &self.path))
            }
            false => Ok(()),
        }
    }

    /// Moves it aside under a dated name, so that a new loop can begin here.
    pub fn set_aside(&mut self, now: Timestamp) -> Result<PathBuf, IoError> {
        safe_open::may_be_set_aside(&self.path).map_err(ops::at("move aside", &self.path))?;
        let aside = self.dated("", now);
        ops::rename(&self.path, &aside)?;
        self.left = None;
        Ok(aside)
    }

    /// Copies it under a dated name: somebody wrote it, and it is about to be replaced.
    pub fn keep_edited(&self, now: Timestamp) -> Result<PathBuf, IoError> {
        let copy = self.dated(".edited", now);
        let raw = ops::read(&self.path)?;
        ops::replace(&copy, &raw, Sync::Lazy)?;
        Ok(copy)
    }

    /// A name beside it that nobody has.
    fn dated(&self, what: &str, now: Timestamp) -> PathBuf {
        let date = now.strftime("%Y%m%dT%H%M%SZ");
        let names = (1u32..).map(|count| match count {
            1 => ops::beside(&self.path, &format!("{what}.{date}")),
            _ => ops::beside(&self.path, &format!("{what}.{date}-{count}")),
        });
        let free = names.into_iter().find(|name| !safe_open::is_there(name));
        free.unwrap_or_default()
    }
}

/// Reads a state file without remembering it.
pub fn load(path: &Path) -> Result<Loaded, StateFileError> {
    let raw = ops::read(path).map_err(|error| match error.source.kind() {
        ErrorKind::NotFound => StateFileError::Missing(path.to_owned()),
        _ => error.into(),
    })?;
    let mut state = parse(path, &raw)?;
    let backend = &mut state.config.backend;
    // Whatever the file says of it: it is compared with what the journal has.
    backend.environment_hash = hash_of_environment(&backend.environment);
    let origin = match state.journal.take() {
        Some(mark) if is_untouched(&raw, mark.seq) => Origin::Projected { seq: mark.seq },
        Some(mark) => Origin::Edited { seq: mark.seq },
        None => Origin::ByHand,
    };
    Ok(Loaded {
        state,
        origin,
        raw_hash: hex(&Sha256::digest(&raw)),
    })
}

/// Tells whether variables in a state file are still those that the loop began with.
fn hash_of_environment(variables: &BTreeMap<String, String>) -> Option<String> {
    if variables.is_empty() {
        return None;
    }
    let mut hash = Sha256::new();
    for (name, value) in variables {
        // Neither can hold a NUL byte and reach a process.
        hash.update([name.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat());
    }
    Some(hex(&hash.finalize()))
}

fn parse(path: &Path, raw: &[u8]) -> Result<IterativeLoopState, StateFileError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: String,
    }
    let version = serde_json::from_slice::<Versioned>(raw).map(|found| found.version);
    if let Ok(version) = version
        && version.split('.').next() != Some(MAJOR)
    {
        return Err(StateFileError::Newer {
            path: path.to_owned(),
            version,
        });
    }
    serde_json::from_slice(raw).map_err(|error| damaged(path, raw, &error))
}

fn damaged(path: &Path, raw: &[u8], error: &serde_json::Error) -> StateFileError {
    let (line, column) = (error.line(), error.column());
    let before: usize = raw
        .split_inclusive(|byte| *byte == b'\n')
        .take(line.saturating_sub(1))
        .map(<[u8]>::len)
        .sum();
    let words = error.to_string();
    // The place is told once, by us.
    let why = words
        .rsplit_once(" at line ")
        .map_or(words.as_str(), |(why, _)| why);
    let why = if raw.trim_ascii().is_empty() {
        "the file is empty"
    } else {
        why
    };
    StateFileError::Damaged {
        path: path.to_owned(),
        byte: (before + column.saturating_sub(1)).min(raw.len()) as u64,
        line,
        column: column.max(1),
        why: why.to_owned(),
    }
}

fn render(state: &IterativeLoopState, seq: u64) -> Result<Vec<u8>, serde_json::Error> {
    let mut text = match state.journal {
        None => serde_json::to_vec_pretty(state)?,
        Some(_) => serde_json::to_vec_pretty(&IterativeLoopState {
            journal: None,
            ..state.clone()
        })?,
    };
    text.truncate(text.len() - b"\n}".len());
    let mark = mark(&text, seq);
    text.extend_from_slice(mark.as_bytes());
    Ok(text)
}

/// The end of the file: up to which event `before` was folded, and its hash.
fn mark(before: &[u8], seq: u64) -> String {
    let hash = Sha256::new()
        .chain_update(before)
        .chain_update(seq.to_le_bytes())
        .finalize();
    let hash = hex(&hash);
    format!("{MARK}\n    \"seq\": {seq},\n    \"hash\": \"{hash}\"\n  }}\n}}\n")
}

fn is_untouched(raw: &[u8], seq: u64) -> bool {
    let found = raw
        .windows(MARK.len())
        .rposition(|window| window == MARK.as_bytes());
    found.is_some_and(|at| raw[at..] == *mark(&raw[..at], seq).as_bytes())
}

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = safe_open::metadata(path).ok()?;
    Some(Stamp {
        file: (meta.dev(), meta.ino()),
        len: meta.len(),
        changed: (meta.mtime(), meta.mtime_nsec()),
    })
}
