//! Where a loop is taken up from: its journal, its state file, or whichever of the two is left.

use std::collections::BTreeSet;
use std::path::Path;

use descartes_kernel::config::ConfigChange;
use descartes_kernel::edits::Accept;
use descartes_kernel::event::Event;
use descartes_kernel::fact;
use descartes_kernel::sched;
use descartes_kernel::state::{IterativeLoopState, LoopState};
use descartes_kernel::transition::Fold;
use descartes_store::catalog;
use descartes_store::journal::{Journal, Recovered, last_records};
use descartes_store::layout::LoopDir;
use descartes_store::lost_end::LostEnd;
use descartes_store::state_file::{Loaded, Origin, StateFile, StateFileError};
use jiff::Timestamp;
use serde_json::Map;

use super::agent::resolve_all;
use super::name::made_up_name;
use super::opening::{first_record, make_branch, register, working_dir};
use super::{HostError, HostSettings};

/// A loop named by its id may find another's state file in its place, which says nothing of it. The
/// other's id comes second.
pub(super) fn not_of_another(
    loaded: Option<Loaded>,
    loop_id: &str,
) -> (Option<Loaded>, Option<String>) {
    let other = loaded.as_ref().and_then(|file| file.state.loop_id.clone());
    match other.filter(|other| other != loop_id) {
        None => (loaded, None),
        other => (None, other),
    }
}

/// Keeps the state file of another loop, dated, before this one writes its own in its place.
pub(super) fn make_room(
    other: Option<String>,
    state_file: &mut StateFile,
    notices: &mut Vec<String>,
) -> Result<(), HostError> {
    if let Some(other) = other {
        let aside = state_file.set_aside(Timestamp::now())?;
        let aside = aside.display();
        notices.push(format!(
            "the state file belonged to loop {other}: kept as {aside}"
        ));
    }
    Ok(())
}

/// Records behind which the end of a loop cannot stand.
const RECENT: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StateSource {
    Journal,
    StateFile,
}

pub(super) struct FoundState {
    pub(super) loop_id: String,
    pub(super) source: StateSource,
}

/// The journal if there is one, else the state file alone; a torn file never stands in the
/// way of a journal that knows better.
pub(super) fn find(
    settings: &HostSettings,
    state_file: &mut StateFile,
    named: Option<&str>,
    accept: Accept,
    notices: &mut Vec<String>,
) -> Result<FoundState, HostError> {
    let path = state_file.path().to_owned();
    // An id that cannot be one has none.
    let folder_of = |id: &str| settings.root.loop_dir(id).ok();
    // Whatever is in its place: what is no file is refused when it is opened.
    let is_there = |dir: LoopDir| dir.journal().symlink_metadata().is_ok();
    let has_journal = |id: &str| folder_of(id).is_some_and(is_there);
    match state_file.load() {
        Ok(loaded) => {
            let origin = loaded.origin;
            let id = named.map(str::to_owned).or(loaded.state.loop_id);
            match id {
                Some(id) if has_journal(&id) => Ok(FoundState {
                    loop_id: id,
                    source: StateSource::Journal,
                }),
                id if named.is_none()
                    && (matches!(origin, Origin::Edited { .. })
                        || id.as_deref().is_some_and(|id| folder_of(id).is_none())) =>
                {
                    altered_id(settings, &path, id)
                }
                // Whoever takes the loop's name out of its file must not get another loop for it.
                id if named.is_none()
                    && accept == Accept::Harmless
                    && by_path(settings, &path)?.is_some_and(|was| goes_on(settings, &was)) =>
                {
                    altered_id(settings, &path, id)
                }
                Some(id) => {
                    notices.push(format!(
                        "no journal for loop {id}: continuing from the state file"
                    ));
                    Ok(FoundState {
                        loop_id: id,
                        source: StateSource::StateFile,
                    })
                }
                None => Ok(FoundState {
                    loop_id: new_id(),
                    source: StateSource::StateFile,
                }),
            }
        }
        // A link, a FIFO, a folder: nothing is put in its place unasked.
        Err(StateFileError::Io(error)) if error.refusal().is_some() => Err(error.into()),
        Err(error) => {
            let id = match named {
                Some(id) => Some(id.to_owned()),
                None => by_path(settings, &path)?,
            };
            match id {
                Some(id) if has_journal(&id) => {
                    notices.push(rebuilt(&error, &path));
                    Ok(FoundState {
                        loop_id: id,
                        source: StateSource::Journal,
                    })
                }
                _ => Err(error.into()),
            }
        }
    }
}

/// A state file of ours that was changed and now names a loop without a journal: whether the
/// id or the whole file is another's cannot be told, so that nothing is begun from it.
fn altered_id(
    settings: &HostSettings,
    path: &Path,
    id: Option<String>,
) -> Result<FoundState, HostError> {
    let shown = path.display();
    let names = match &id {
        Some(id) => format!("names loop {id}, which has no journal here"),
        None => "no longer names a loop".to_owned(),
    };
    let on = match by_path(settings, path)? {
        Some(was) => format!(
            "the loop of this file was {was}: `descartes loop resume {was}` continues from its \
             journal"
        ),
        None => "`descartes loop list --all` shows the loops that have one: resume it by its id"
            .to_owned(),
    };
    Err(HostError::refused(
        format!("the state file {shown} was changed and {names}"),
        format!(
            "{on}; to continue from the file alone, remove \"loop_id\" and \"journal\" from it \
             and pass --accept-edits"
        ),
    ))
}

/// The newest loop on a state file.
pub(super) fn by_path(settings: &HostSettings, path: &Path) -> Result<Option<String>, HostError> {
    let all = catalog::list(&settings.root)?;
    let newest = all.into_iter().find(|entry| entry.meta.state_file == path);
    Ok(newest.map(|entry| entry.meta.id))
}

/// Whether a loop has not ended, as far as its journal tells.
fn goes_on(settings: &HostSettings, id: &str) -> bool {
    let Ok(dir) = settings.root.loop_dir(id) else {
        return false;
    };
    let recent = last_records(&dir.journal(), RECENT).unwrap_or_default();
    let last = recent.iter().rev().find_map(|record| match record.event {
        Event::LoopFinished { .. } => Some(false),
        Event::LoopReopened | Event::HostStarted { .. } | Event::RunStarted { .. } => Some(true),
        _ => None,
    });
    last.unwrap_or(!recent.is_empty())
}

pub(super) fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

fn rebuilt(error: &StateFileError, path: &Path) -> String {
    match error {
        StateFileError::Missing(_) => {
            format!("{} was missing: rebuilt from the journal", path.display())
        }
        other => format!("{other}: rebuilt from the journal"),
    }
}

/// Reads the journal. One without a whole line is left as it is: the state file may know the loop.
pub(super) fn fold_journal(
    dir: &LoopDir,
    state_file: (&Path, Option<&Loaded>),
    notices: &mut Vec<String>,
    tasks: &mut Vec<sched::Event>,
) -> Result<(Journal, LoopState), HostError> {
    let last = last_records(&dir.journal(), 1);
    if last.is_ok_and(|records| records.is_empty()) {
        let (path, loaded) = state_file;
        let lost = loaded.and_then(|loaded| LostEnd::find(dir, None, path, loaded));
        return Err(lost.map_or_else(|| empty(dir), refused));
    }
    let mut fold = Fold::default();
    let (journal, recovered) = Journal::open_with(&dir.journal(), |record| {
        if let Event::Tasks { event } = &record.event {
            tasks.push((**event).clone());
        }
        fold.push(&record);
    })?;
    let state = fold.finish()?;
    let Recovered { cut, .. } = recovered;
    if let Some(cut) = cut {
        notices.push(format!("the journal's last line was incomplete: {cut}"));
    }
    let state = state.ok_or_else(|| empty(dir))?;
    if let (path, Some(loaded)) = state_file
        && let Some(lost) = LostEnd::find(dir, Some(&state), path, loaded)
    {
        return Err(refused(lost));
    }
    Ok((journal, state))
}

fn empty(dir: &LoopDir) -> HostError {
    HostError::refused(
        format!("the journal {} is empty", dir.journal().display()),
        "start over with `descartes loop start --force` and the task behind --prompt",
    )
}

fn refused(lost: LostEnd) -> HostError {
    HostError::refused(lost.message, lost.hint)
}

/// A state file that is all there is (written by hand, or from another machine): a journal
/// is begun from it. A branch that a person asked for in it is made first.
pub(super) fn begin_from_file(
    settings: &HostSettings,
    dir: &LoopDir,
    loop_id: &str,
    file: &IterativeLoopState,
    path: &Path,
    origin: Origin,
    change: &ConfigChange,
) -> Result<(Journal, LoopState, Option<String>), HostError> {
    let now = Timestamp::now();
    let mut config = file.config.clone();
    let work = working_dir(
        config
            .working_directory
            .as_deref()
            .or_else(|| project_of(path)),
    )?;
    config.working_directory = Some(work.clone());
    config.state_file = Some(path.to_owned());
    // What is given now may be what it lacks.
    let mut changed = config.clone();
    change.apply_to(&mut changed);
    changed.check()?;
    resolve_all(&changed, settings).map_err(HostError::of_resume)?;
    let name = file
        .name
        .clone()
        .unwrap_or_else(|| made_up_name(&work, loop_id));
    let backend = &mut config.backend;
    let names = backend.environment.keys().cloned();
    let names: BTreeSet<String> = names.chain(backend.environment_names.drain(..)).collect();
    backend.environment_names = names.into_iter().collect();
    let branch = match origin {
        Origin::ByHand => make_branch(settings, &config, &name, &work, dir)?,
        // It was made when the loop began.
        Origin::Projected { .. } | Origin::Edited { .. } => None,
    };
    let started_at = file.started_at.unwrap_or(now);
    let mut family = Map::new();
    if let Some(from) = file.extra.get("copied_from") {
        family.insert("copied_from".to_owned(), from.clone());
    }
    register(settings, loop_id, &name, path, &work, started_at, family)?;
    let mut journal = Journal::create(&dir.journal())?;
    let event = fact::loop_created(loop_id.to_owned(), name, config, started_at, Some(file));
    let state = first_record(&mut journal, now, event)?;
    Ok((journal, state, branch))
}

/// The project that a state file without a working directory belongs to.
fn project_of(state_file: &Path) -> Option<&Path> {
    let folder = state_file.parent()?;
    match folder.file_name() {
        Some(name) if name == descartes_store::layout::PROJECT_FOLDER => folder.parent(),
        _ => Some(folder),
    }
}
