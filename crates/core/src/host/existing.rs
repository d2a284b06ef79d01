//! A state file that is there already when a loop is started.

use std::path::Path;

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::start_over::{StartOver, start_over};
use descartes_kernel::state::{IterativeLoopState, Kept, LoopState};
use descartes_kernel::transition::Fold;
use descartes_store::Sync;
use descartes_store::journal::JournalReader;
use descartes_store::lock::holder_of;
use descartes_store::safe_open;
use descartes_store::state_file::{Loaded, Origin, StateFile, StateFileError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::sources::by_path;
use super::{HostError, HostSettings};

/// What to do with a state file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnExistingState {
    /// Refuse, whatever its loop came to.
    Error,
    /// Keep it beside the new one, dated, where its loop was done or cancelled or had other work; else
    /// refuse, and name the ways on.
    ArchiveIfOver,
    /// Start anew; the old one is kept beside it, dated.
    Archive,
    /// The same where its loop has ended; else refuse.
    ArchiveIfFinished,
}

/// The loop of a state file that makes room.
#[derive(Debug)]
pub(super) struct Former {
    loop_id: Option<String>,
    how: String,
    /// A resume would only say so.
    is_done: bool,
}

/// A second loop on a held state file is refused, and one that is not over is never begun again by
/// accident.
pub(super) fn check_free(
    settings: &HostSettings,
    state_file: &mut StateFile,
    existing: OnExistingState,
    config: &IterativeLoopConfig,
) -> Result<(), HostError> {
    if let Some(held) = holder_of(&settings.root, state_file.path())? {
        return Err(HostError::taken(&held));
    }
    decide(settings, state_file, existing, config).map(drop)
}

/// What becomes of the file that is there: nothing, or its loop makes room, or the start is refused.
/// Whoever goes on from the answer holds the lock of the state file.
pub(super) fn decide(
    settings: &HostSettings,
    state_file: &mut StateFile,
    existing: OnExistingState,
    config: &IterativeLoopConfig,
) -> Result<Option<Former>, HostError> {
    let loaded = match state_file.load() {
        Err(StateFileError::Missing(_)) => return Ok(None),
        // What cannot be read is kept as well, where that was asked for.
        Err(_) if existing == OnExistingState::Archive => {
            state_file.may_be_set_aside()?;
            return Ok(safe_open::is_there(state_file.path()).then(|| Former {
                loop_id: None,
                how: "could not be read".to_owned(),
                is_done: false,
            }));
        }
        Err(error) => return Err(error.into()),
        Ok(loaded) => loaded,
    };
    let old = as_it_was(settings, state_file.path(), loaded);
    let verdict = match existing {
        OnExistingState::Archive => StartOver::KeepBeside,
        OnExistingState::ArchiveIfFinished if old.completed => StartOver::KeepBeside,
        OnExistingState::ArchiveIfOver | OnExistingState::ArchiveIfFinished => {
            start_over(&old, config)
        }
        OnExistingState::Error => StartOver::Refuse {
            how: how(&old),
            resume_flags: String::new(),
        },
    };
    match verdict {
        StartOver::KeepBeside => Ok(Some(Former {
            how: how(&old),
            is_done: old.completed && old.exit_reason.is_success(),
            loop_id: old.loop_id,
        })),
        StartOver::Refuse { how, resume_flags } => {
            let path = state_file.path().display();
            let resume = match &old.loop_id {
                Some(id) => format!("descartes loop resume {id}"),
                None => format!(
                    "descartes loop resume --state-file {}",
                    shell_words::quote(&path.to_string())
                ),
            };
            let space = if resume_flags.is_empty() { "" } else { " " };
            Err(HostError::refused(
                format!("{path} belongs to a loop that {how}"),
                format!(
                    "continue with `{resume}{space}{resume_flags}`, or start over with --force \
                     (the old file is kept)"
                ),
            ))
        }
    }
}

fn how(old: &IterativeLoopState) -> String {
    match old.completed {
        true => format!("has ended: {}", old.exit_reason.sentence()),
        false => "was interrupted".to_owned(),
    }
}

/// The loop as it really ended: a file that somebody changed, or that is older than its journal, says what
/// that says, where there is one. It lies in the agent's reach.
fn as_it_was(settings: &HostSettings, path: &Path, loaded: Loaded) -> IterativeLoopState {
    if let Origin::Projected { .. } = loaded.origin {
        let state = behind(settings, &loaded);
        return state.map_or(loaded.state, |state| state.project(&Kept::default()));
    }
    let named = loaded.state.loop_id.clone();
    let at_path = || by_path(settings, path).ok().flatten();
    let found = named.and_then(|id| folded(settings, &id));
    let found = found.or_else(|| folded(settings, &at_path()?));
    found.unwrap_or(loaded.state)
}

/// The loop as its journal has it, where its file is older.
fn behind(settings: &HostSettings, loaded: &Loaded) -> Option<LoopState> {
    let state = state_of(settings, loaded.state.loop_id.as_deref()?)?;
    loaded.is_behind(state.seq).then_some(state)
}

fn folded(settings: &HostSettings, id: &str) -> Option<IterativeLoopState> {
    Some(state_of(settings, id)?.project(&Kept::default()))
}

fn state_of(settings: &HostSettings, id: &str) -> Option<LoopState> {
    let dir = settings.root.loop_dir(id).ok()?;
    let mut fold = Fold::default();
    let mut journal = JournalReader::open(&dir.journal()).ok()?;
    journal.for_each_new(|record| fold.push(&record)).ok()?;
    fold.finish().ok()?
}

impl Former {
    /// Its state, as far as it has a journal here.
    pub(super) fn state(&self, settings: &HostSettings) -> Option<LoopState> {
        state_of(settings, self.loop_id.as_deref()?)
    }

    /// Moves its file aside, and says so with the way back.
    pub(super) fn make_room(
        &self,
        settings: &HostSettings,
        state_file: &mut StateFile,
        now: Timestamp,
    ) -> Result<String, HostError> {
        if let Ok(loaded) = state_file.load()
            && let Some(state) = behind(settings, &loaded)
        {
            state_file.save(&state.project(&loaded.state.kept()), state.seq, Sync::Lazy)?;
        }
        let aside = state_file.set_aside(now)?;
        let name = aside.file_name().unwrap_or(aside.as_os_str());
        let name = name.to_string_lossy();
        Ok(match self.is_done {
            true => format!("the loop here before was done; its state file is kept as {name}"),
            false => format!("the old state file is kept as {name}{}", self.back()),
        })
    }

    fn back(&self) -> String {
        match &self.loop_id {
            Some(id) if !self.is_done => format!(
                ": its loop {}; return to it with `descartes loop resume {id}`",
                self.how
            ),
            _ => format!(": its loop {}", self.how),
        }
    }
}

/// What a start over the state file at `path` would do with it, in words.
///
/// # Errors
/// When it would be refused.
pub fn over_existing(
    settings: &HostSettings,
    path: &Path,
    existing: OnExistingState,
    config: &IterativeLoopConfig,
) -> Result<Option<String>, HostError> {
    let mut state_file = StateFile::at(path)?;
    if let Some(held) = holder_of(&settings.root, state_file.path())? {
        return Err(HostError::taken(&held));
    }
    let former = decide(settings, &mut state_file, existing, config)?;
    Ok(former.map(|former| {
        format!(
            "the old one is kept next to it with a date{}",
            former.back()
        )
    }))
}
