//! Taking up a loop whose project was moved or copied. Nothing is done in another folder than the one
//! that was asked for, unless a person says `--here`.

use std::path::Path;

use descartes_kernel::edits::Accept;
use descartes_kernel::fact;
use descartes_kernel::state::{IterativeLoopState, LoopState};
use descartes_store::catalog::{self, Home, Lies, LoopMeta, lies, resume_here};
use descartes_store::journal::Journal;
use descartes_store::state_file::{Origin, StateFile};

use super::opening::{record, working_dir};
use super::resume_order::Resume;
use super::sources::{FoundState, StateSource, new_id};
use super::{HostError, HostSettings};

/// Refuses a state file that lies elsewhere than its loop says, unless it is taken over. A copy gets
/// an id of its own; where it is one of, is given back.
pub(super) fn check(
    settings: &HostSettings,
    found: &mut FoundState,
    state_file: &mut StateFile,
    resume: &Resume,
) -> Result<Option<Home>, HostError> {
    // A loop that was named by its id is meant wherever it is; a torn file tells nothing.
    let (None, Ok(loaded)) = (&resume.loop_id, state_file.load()) else {
        return Ok(None);
    };
    let place = lies(&settings.root, state_file.path(), &loaded);
    match (place, &resume.here) {
        (Lies::AtHome, _) | (Lies::Moved(_), Some(_)) => Ok(None),
        (Lies::Copied(_), Some(_))
            if matches!(loaded.origin, Origin::Edited { .. })
                && resume.accept == Accept::Harmless =>
        {
            Err(HostError::refused(
                format!(
                    "the copied state file {} has changed since descartes wrote it",
                    state_file.path().display()
                ),
                format!(
                    "check its gates and limits, then: {} --accept-edits",
                    resume_here(state_file.path())
                ),
            ))
        }
        (Lies::Copied(home), Some(_)) => {
            *found = FoundState {
                loop_id: new_id(),
                source: StateSource::StateFile,
            };
            Ok(Some(home))
        }
        (place, None) => {
            let (message, hint) = place.refusal(state_file.path()).unwrap_or_default();
            Err(HostError::refused(message, hint))
        }
    }
}

/// What a state file without a journal says, in the directory where it goes on.
pub(super) fn as_it_is_here(
    file: &IterativeLoopState,
    copy_of: Option<&Home>,
    here: Option<&Path>,
) -> Result<IterativeLoopState, HostError> {
    let mut file = file.clone();
    if let Some(dir) = here {
        file.config.move_to(&working_dir(Some(dir))?);
    }
    if let Some(home) = copy_of {
        let from = home.loop_id.clone().into();
        file.extra.insert("copied_from".to_owned(), from);
    }
    Ok(file)
}

/// The same loop in another place: its journal tells, and its description is as it is now.
pub(super) fn settle(
    settings: &HostSettings,
    journal: &mut Journal,
    state: &mut LoopState,
    state_file: &StateFile,
    dir: &Path,
) -> Result<(), HostError> {
    let dir = working_dir(Some(dir))?;
    let same_file = state.config.state_file.as_deref() == Some(state_file.path());
    if same_file && state.config.working_directory.as_ref() == Some(&dir) {
        return Ok(());
    }
    let file = state_file.path().to_owned();
    record(journal, state, fact::moved(dir.clone(), file))?;
    let known = catalog::find(&settings.root, &state.loop_id);
    let meta = LoopMeta {
        id: state.loop_id.clone(),
        name: state.name.clone(),
        state_file: state_file.path().to_owned(),
        working_dir: dir,
        started_at: state.started_at,
        extra: known.map(|entry| entry.meta.extra).unwrap_or_default(),
    };
    catalog::register(&settings.root, &meta)?;
    Ok(())
}
