//! Taking a loop up again: from its journal, from its state file, or from whichever of the
//! two is left. Nothing is ever begun again at zero in silence.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use descartes_kernel::config::ConfigChange;
use descartes_kernel::event::{Event, LimitKind};
use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::sched;
use descartes_kernel::state::{IterativeLoopState, LoopState, Phase};
use descartes_kernel::step::{Action, plan};
use descartes_kernel::transition::{apply, begin, edited};
use descartes_proc::{MARK, sweep_marked};
use descartes_store::catalog::{self, FindError};
use descartes_store::host::this_host;
use descartes_store::journal::{Journal, Recovered};
use descartes_store::layout::LoopDir;
use descartes_store::state_file::{Loaded, Origin, StateFile, StateFileError};
use jiff::Timestamp;

use super::agent::{read_interrupted, resolve_all};
use super::driver::Driver;
use super::open::{Held, assemble, first_record, made_up_name, register, take, working_dir};
use super::{Host, HostError, HostSettings};
use crate::tasks::{self, Occasion};

/// Leftovers of a dead host get so long to end.
const SWEEP_LIMIT: Duration = Duration::from_secs(5);

/// A loop to take up.
#[derive(Clone, Debug)]
pub struct Resume {
    /// Its state file.
    pub state_file: PathBuf,
    /// Its id, where the person named the loop and not the file.
    pub loop_id: Option<String>,
    /// Limits, gates, prompt or model to change.
    pub change: ConfigChange,
    /// Variables for the agent: their values were never written down.
    pub environment: BTreeMap<String, String>,
}

/// What came of it.
#[derive(Debug)]
pub enum Resumed {
    /// It goes on.
    Go(Box<Host>),
    /// It is done: there is nothing to do.
    Done(IterativeExitReason),
    /// It is at its limit, and no new one was given.
    AtLimit(IterativeExitReason),
}

/// Takes a loop up.
pub fn resume(settings: HostSettings, resume: Resume) -> Result<Resumed, HostError> {
    resume_for(settings, resume, Purpose::Loop)
}

/// What a loop is taken up for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To go on to its end.
    Loop,
    /// For another attempt at its task, even where it was done: a merge may have failed.
    Attempt {
        /// Where it works this time.
        dir: PathBuf,
        /// Iterations that its task loop has heard of: a proof beyond them still counts.
        told: u32,
    },
}

pub(crate) fn resume_for(
    settings: HostSettings,
    resume: Resume,
    purpose: Purpose,
) -> Result<Resumed, HostError> {
    let mut state_file = StateFile::at(&resume.state_file)?;
    let mut notices = Vec::new();
    let found = find(
        &settings,
        &mut state_file,
        resume.loop_id.as_deref(),
        &mut notices,
    )?;
    let facts = this_host(&settings.version);
    let lock = take(&settings, state_file.path(), &found.loop_id, &facts)?;
    // Read again under the lock: another host may have moved on since.
    let loaded = match found.source {
        Source::Journal => state_file.load().ok(),
        Source::StateFile => Some(state_file.load()?),
    };
    let loaded = not_of_another(loaded, &found.loop_id, &mut state_file, &mut notices)?;
    let dir = settings.root.loop_dir(&found.loop_id)?;
    let mut events = Vec::new();
    let (mut journal, mut state) = match &loaded {
        Some(loaded) if found.source == Source::StateFile => begin_from_file(
            &settings,
            &dir,
            &found.loop_id,
            &loaded.state,
            state_file.path(),
        )?,
        _ => fold_journal(&dir, &mut notices, &mut events)?,
    };
    if let Some(loaded) = &loaded {
        check_end(&state, loaded, &dir)?;
        take_edits(&mut journal, &mut state, loaded, &mut notices)?;
    }
    state.config.backend.environment = resume.environment.clone();
    if let Purpose::Attempt { dir, .. } = &purpose {
        state.config.working_directory = Some(dir.clone());
    }
    if let Some(early) = early_end(&state, &resume.change)
        && (purpose == Purpose::Loop || !matches!(early, Resumed::Done(_)))
    {
        return Ok(early);
    }
    warn_environment(&state, &mut notices);
    working_dir(state.config.working_directory.as_deref())?;
    let mut config = state.config.clone();
    resume.change.apply_to(&mut config);
    config.check()?;
    let agents = resolve_all(&config, &settings)?;
    sweep_leftovers(&state, &mut notices);
    let tasks = match (&config.tasks, &config.working_directory) {
        (Some(_), Some(work)) => {
            let mut tasks =
                tasks::prepare(&config, &settings, work, Occasion::Resume, &mut notices)?;
            tasks.take_history(events);
            Some(Box::new(tasks))
        }
        _ => None,
    };
    let kept = loaded.map(|loaded| loaded.state.extra).unwrap_or_default();
    let held = Held {
        state,
        journal,
        lock,
        dir,
        state_file,
        kept,
        facts,
    };
    let mut host = assemble(settings, held, agents, notices)?;
    host.driver.settle_the_past(&resume.change, &purpose)?;
    host.driver.tasks = tasks;
    host.driver.save_state()?;
    Ok(Resumed::Go(Box::new(host)))
}

/// A loop named by its id may find another's state file in its place: that is kept, dated.
fn not_of_another(
    loaded: Option<Loaded>,
    loop_id: &str,
    state_file: &mut StateFile,
    notices: &mut Vec<String>,
) -> Result<Option<Loaded>, HostError> {
    let other = loaded.as_ref().and_then(|file| file.state.loop_id.clone());
    match other.filter(|other| other != loop_id) {
        None => Ok(loaded),
        Some(other) => {
            let aside = state_file.set_aside(Timestamp::now())?;
            let aside = aside.display();
            notices.push(format!(
                "the state file was loop {other}'s: kept as {aside}"
            ));
            Ok(None)
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Journal,
    StateFile,
}

struct Found {
    loop_id: String,
    source: Source,
}

/// The journal if there is one, else the state file alone; a torn file never stands in the
/// way of a journal that knows better.
fn find(
    settings: &HostSettings,
    state_file: &mut StateFile,
    named: Option<&str>,
    notices: &mut Vec<String>,
) -> Result<Found, HostError> {
    let path = state_file.path().to_owned();
    // An id that cannot be one has none.
    let folder_of = |id: &str| settings.root.loop_dir(id).ok();
    let has_journal = |id: &str| folder_of(id).is_some_and(|dir| dir.journal().is_file());
    match state_file.load() {
        Ok(loaded) => {
            let origin = loaded.origin;
            let id = named.map(str::to_owned).or(loaded.state.loop_id);
            match id {
                Some(id) if has_journal(&id) => Ok(Found {
                    loop_id: id,
                    source: Source::Journal,
                }),
                id if named.is_none()
                    && (matches!(origin, Origin::Edited { .. })
                        || id.as_deref().is_some_and(|id| folder_of(id).is_none())) =>
                {
                    altered_id(settings, &path, id)
                }
                Some(id) => {
                    notices.push(format!(
                        "no journal of loop {id}: going on from the state file"
                    ));
                    Ok(Found {
                        loop_id: id,
                        source: Source::StateFile,
                    })
                }
                None => Ok(Found {
                    loop_id: new_id(),
                    source: Source::StateFile,
                }),
            }
        }
        Err(error) => {
            let id = match named {
                Some(id) => Some(id.to_owned()),
                None => by_path(settings, &path)?,
            };
            match id {
                Some(id) if has_journal(&id) => {
                    notices.push(rebuilt(&error, &path));
                    Ok(Found {
                        loop_id: id,
                        source: Source::Journal,
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
) -> Result<Found, HostError> {
    let shown = path.display();
    let names = match &id {
        Some(id) => format!("names loop {id}, which has no journal here"),
        None => "names no loop any more".to_owned(),
    };
    let on = match by_path(settings, path)? {
        Some(was) => format!(
            "the loop of this file was {was}: `descartes loop resume {was}` goes on from its journal"
        ),
        None => "`descartes loop list --all` shows the loops that have one: resume it by its id"
            .to_owned(),
    };
    Err(HostError::refused(
        format!("the state file {shown} was changed and {names}"),
        format!("{on}; to go on from the file alone, take \"loop_id\" and \"journal\" out of it"),
    ))
}

/// The newest loop on a state file.
fn by_path(settings: &HostSettings, path: &Path) -> Result<Option<String>, HostError> {
    match catalog::find(&settings.root, &path.to_string_lossy()) {
        Ok(entry) => Ok(Some(entry.meta.id)),
        Err(FindError::Io(error)) => Err(error.into()),
        Err(_) => Ok(None),
    }
}

fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

fn rebuilt(error: &StateFileError, path: &Path) -> String {
    match error {
        StateFileError::Missing(_) => {
            format!("{} was gone: made anew from the journal", path.display())
        }
        other => format!("{other}: made anew from the journal"),
    }
}

fn fold_journal(
    dir: &LoopDir,
    notices: &mut Vec<String>,
    tasks: &mut Vec<sched::Event>,
) -> Result<(Journal, LoopState), HostError> {
    let mut state: Option<LoopState> = None;
    let mut trouble = None;
    let (journal, recovered) = Journal::open_with(&dir.journal(), |record| {
        if let Event::Tasks { event } = &record.event {
            tasks.push((**event).clone());
        }
        let step = match &mut state {
            None => begin(&record).map(|first| state = Some(first)),
            Some(state) => apply(state, &record),
        };
        if let Err(error) = step {
            trouble.get_or_insert(error);
        }
    })?;
    if let Some(error) = trouble {
        return Err(error.into());
    }
    let Recovered { cut, .. } = recovered;
    if let Some(cut) = cut {
        notices.push(format!("the journal's last line was torn: {cut}"));
    }
    match state {
        Some(state) => Ok((journal, state)),
        None => Err(HostError::refused(
            format!("the journal {} is empty", dir.journal().display()),
            "start anew with `descartes loop start --force`",
        )),
    }
}

/// A state file that is all there is (written by hand, or from another machine): a journal
/// is begun from it.
fn begin_from_file(
    settings: &HostSettings,
    dir: &LoopDir,
    loop_id: &str,
    file: &IterativeLoopState,
    path: &Path,
) -> Result<(Journal, LoopState), HostError> {
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
    config.check()?;
    resolve_all(&config, settings)?;
    let name = file
        .name
        .clone()
        .unwrap_or_else(|| made_up_name(&work, loop_id));
    let started_at = file.started_at.unwrap_or(now);
    let family = Default::default();
    register(settings, loop_id, &name, path, &work, started_at, family)?;
    let mut journal = Journal::create(&dir.journal())?;
    let event = Event::LoopCreated {
        loop_id: loop_id.to_owned(),
        name,
        config: Box::new(config),
        started_at,
        iterations: file.iteration,
        summaries: file.iteration_summaries.clone(),
        ended: file.completed.then(|| file.exit_reason.clone()),
    };
    let state = first_record(&mut journal, now, event)?;
    Ok((journal, state))
}

/// The project that a state file without a working directory belongs to.
fn project_of(state_file: &Path) -> Option<&Path> {
    let folder = state_file.parent()?;
    match folder.file_name() {
        Some(name) if name == descartes_store::layout::PROJECT_FOLDER => folder.parent(),
        _ => Some(folder),
    }
}

/// A journal that lost finished iterations, which are synced before the state file is written,
/// was damaged from outside. Going on would use their numbers and their logs again.
fn check_end(state: &LoopState, loaded: &Loaded, dir: &LoopDir) -> Result<(), HostError> {
    let (Origin::Projected { seq } | Origin::Edited { seq }) = loaded.origin else {
        return Ok(());
    };
    if seq <= state.seq || loaded.state.iteration <= state.iterations {
        return Ok(());
    }
    let (journal, folder) = (dir.journal(), dir.path());
    Err(HostError::refused(
        format!(
            "{} ends after {} iterations, but the state file tells of {}: its end was cut off",
            journal.display(),
            state.iterations,
            loaded.state.iteration
        ),
        format!(
            "put the journal back, or go on from the state file alone: mv {0} {0}.damaged, then `descartes loop resume`",
            folder.display()
        ),
    ))
}

/// A file edited by hand is taken as the person's wish, and said.
fn take_edits(
    journal: &mut Journal,
    state: &mut LoopState,
    loaded: &Loaded,
    notices: &mut Vec<String>,
) -> Result<(), HostError> {
    if !matches!(loaded.origin, Origin::Edited { .. }) {
        return Ok(());
    }
    if loaded.state.iteration < state.iterations {
        notices.push(format!(
            "the state file tells of {} iterations, the journal of {}: its count stands",
            loaded.state.iteration, state.iterations
        ));
    }
    let Some(event) = edited(state, &loaded.state) else {
        return Ok(());
    };
    notices.push("the state file was edited by hand: taken as your wish".to_owned());
    let now = Timestamp::now();
    let seq = journal.append(now, &event, event.durability())?;
    let record = descartes_kernel::event::Record {
        v: descartes_kernel::event::FORMAT,
        seq,
        at: now,
        event,
    };
    apply(state, &record)?;
    Ok(())
}

/// A done loop is done; one at its limit needs a new one.
fn early_end(state: &LoopState, change: &ConfigChange) -> Option<Resumed> {
    if let Phase::Finished { reason, .. } = &state.phase
        && reason.is_success()
    {
        return Some(Resumed::Done(reason.clone()));
    }
    let mut config = state.config.clone();
    change.apply_to(&mut config);
    let trial = LoopState {
        phase: match &state.phase {
            Phase::Finished { .. } => Phase::Ready,
            other => other.clone(),
        },
        config,
        verdict: None,
        failures: 0,
        fatal: None,
        still: 0,
        stop: None,
        ..state.clone()
    };
    let agents = descartes_kernel::step::Agents {
        count: 1,
        stall_default: 0,
    };
    match plan(&trial, agents, Timestamp::now()) {
        Action::Finish(reason) => Some(Resumed::AtLimit(reason)),
        _ => None,
    }
}

fn warn_environment(state: &LoopState, notices: &mut Vec<String>) {
    let backend = &state.config.backend;
    let missing: Vec<&str> = backend
        .environment_names
        .iter()
        .filter(|name| !backend.environment.contains_key(*name))
        .map(String::as_str)
        .collect();
    if !missing.is_empty() {
        notices.push(format!(
            "the loop was started with --env {}: values are never stored, give them again if the agent needs them",
            missing.join(", ")
        ));
    }
}

/// Processes of a dead host are ended before anything new begins.
fn sweep_leftovers(state: &LoopState, notices: &mut Vec<String>) {
    let ended = sweep_marked(MARK, &state.loop_id, 0, SWEEP_LIMIT);
    if !ended.is_empty() {
        notices.push(format!(
            "ended {} processes that the dead host had left",
            ended.len()
        ));
    }
}

impl Driver {
    /// Closes what a dead host left open, reopens an ended loop, takes changes.
    fn settle_the_past(
        &mut self,
        change: &ConfigChange,
        purpose: &Purpose,
    ) -> Result<(), HostError> {
        if let Phase::Running(run) = &self.state.phase {
            let run = run.clone();
            let folder = self.dir.run(run.run);
            let (said, spent_ms) =
                read_interrupted(&folder, &run, &self.agents, &self.state.config);
            self.append(Event::IterationInterrupted {
                iteration: run.iteration,
                run: run.run,
                spent_ms,
                tokens: said.tokens,
                cost: said.cost,
            })?;
            debug_assert!(
                said.limit
                    .is_none_or(|limit| limit.kind != LimitKind::Login)
            );
        }
        // A proof that nobody has heard of is left as it stands, to be heard.
        let unheard = match purpose {
            Purpose::Attempt { told, .. } => {
                self.state.iterations > *told && self.state.exit_reason().is_success()
            }
            Purpose::Loop => false,
        };
        if matches!(self.state.phase, Phase::Finished { .. }) && !unheard {
            self.append(Event::LoopReopened)?;
        }
        if !change.is_empty() {
            let (change, by) = (change.clone(), "resume".to_owned());
            self.append(Event::ConfigChanged { change, by })?;
        }
        Ok(())
    }
}
