//! Taking a loop up again: from its journal, from its state file, or from whichever of the
//! two is left. Nothing is ever begun again at zero in silence.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use descartes_kernel::config::ConfigChange;
use descartes_kernel::edits::{Accept, Edit, edited, tightened};
use descartes_kernel::event::Event;
use descartes_kernel::fact;
use descartes_kernel::state::{Kept, LoopState, Phase};
use descartes_kernel::steering::Sender;
use descartes_kernel::step::{LeftWork, Standstill, TakeUp, standstill, take_up};
use descartes_plans::graph::TaskStatus;
use descartes_store::Sync;
use descartes_store::debug_log::variant;
use descartes_store::host::this_host;
use descartes_store::layout::LoopDir;
use descartes_store::state_file::{Loaded, Origin, StateFile};
use descartes_text::units::plural;
use jiff::Timestamp;
use tracing::info;

use super::agent::{last_seen, resolve_all};
use super::attempt_tree::AttemptTree;
use super::error::HostError;
use super::handle::{Host, LoopKind};
use super::leftovers::{sweep_loop, sweep_task_loop, tell, wait_until_left};
use super::moved;
use super::open::{Confined, Held, assemble, sandbox_of};
use super::opening::{make_branch, record, take, working_dir};
use super::resume_order::{Resume, Resumed};
use super::sandbox_level::{ask_profiles, settle};
use super::settings::HostSettings;
use super::sources::{StateSource, begin_from_file, find, fold_journal, make_room, not_of_another};
use super::task_loop::{Occasion, PrepareTasks, TaskOrder};
use crate::steering::own_sender;

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
        reported: u32,
        tree: AttemptTree,
    },
    /// To bring the finished work of a task loop into the user's checkout, and nothing else.
    Land,
}

pub(crate) fn resume_for(
    mut settings: HostSettings,
    mut resume: Resume,
    purpose: Purpose,
    prepare: PrepareTasks,
    notices_out: &mut Vec<String>,
) -> Result<Resumed, HostError> {
    let mut state_file = StateFile::at(&resume.state_file)?;
    let mut notices = Vec::new();
    let from = match &purpose {
        Purpose::Attempt { .. } => None,
        Purpose::Loop | Purpose::Land => Some(resume.from.clone().unwrap_or_else(own_sender)),
    };
    let mut found = find(
        &settings,
        &mut state_file,
        resume.loop_id.as_deref(),
        resume.accept,
        &mut notices,
    )?;
    let copy_of = moved::check(&settings, &mut found, &mut state_file, &resume)?;
    settings.carry_mark(&found.loop_id);
    info!(loop_id = %found.loop_id, purpose = %variant(&purpose), "resuming");
    let facts = this_host(&settings.version);
    wait_until_left(&settings.root, state_file.path(), &settings.early_stop)?;
    let lock = take(&settings, state_file.path(), &found.loop_id, &facts)?;
    // Read again under the lock: another host may have moved on since.
    let loaded = match found.source {
        StateSource::Journal => state_file.load().ok(),
        StateSource::StateFile => Some(state_file.load()?),
    };
    let (loaded, mut other) = match copy_of {
        Some(_) => (loaded, None),
        None => not_of_another(loaded, &found.loop_id),
    };
    let dir = settings.root.loop_dir(&found.loop_id)?;
    let mut events = Vec::new();
    let (mut journal, mut state, mut branch) = match &loaded {
        Some(loaded) if found.source == StateSource::StateFile => begin_from_file(
            &settings,
            &dir,
            &found.loop_id,
            &moved::as_it_is_here(&loaded.state, copy_of.as_ref(), resume.here.as_deref())?,
            state_file.path(),
            loaded.origin,
            &resume.change,
        )?,
        _ => {
            let file = (state_file.path(), loaded.as_ref());
            let (journal, state) = fold_journal(&dir, file, &mut notices, &mut events)?;
            (journal, state, None)
        }
    };
    let mut held_back = HeldBack::No;
    if let Some(loaded) = &loaded
        && found.source == StateSource::Journal
    {
        let edit = edit_of(&state, loaded, resume.accept, from.as_ref(), &mut notices);
        held_back = HeldBack::of(&edit);
        if let Some(event) = edit.event {
            branch = new_branch(&settings, &state, &event, &dir)?;
            record(&mut journal, &mut state, event)?;
        }
    }
    if held_back == HeldBack::No
        && let Some(loaded) = loaded.as_ref().filter(|file| file.is_behind(state.seq))
    {
        // Whatever comes of this: who has held the lock leaves no older file than the journal.
        state_file.save(&state.project(&loaded.state.kept()), state.seq, Sync::Lazy)?;
    }
    if let Some(home) = &copy_of {
        notices.push(format!(
            "an independent loop from now on; its history so far: descartes loop history {}",
            home.loop_id
        ));
    } else if let Some(dir) = &resume.here {
        moved::settle(&settings, &mut journal, &mut state, &state_file, dir)?;
    }
    if resume.here.is_some() {
        held_back.keep(&state_file, &mut notices)?;
        make_room(other.take(), &mut state_file, &mut notices)?;
        // LastWarning now, also where nothing is left to be done.
        let kept = loaded.as_ref().map(|loaded| loaded.state.kept());
        let kept = kept.unwrap_or_default();
        state_file.save(&state.project(&kept), state.seq, Sync::Lazy)?;
    }
    let mut environment = written_environment(&state, loaded.as_ref());
    environment.extend(resume.environment.clone());
    state.config.backend.environment = environment.into();
    if let Purpose::Attempt { dir, .. } = &purpose {
        state.config.working_directory = Some(dir.clone());
    }
    // A task that was done is attempted again where its merge failed.
    let standstill = standstill(&state, &resume.change).filter(|standstill| match purpose {
        Purpose::Loop => true,
        Purpose::Attempt { .. } => !matches!(standstill, Standstill::Done(_)),
        Purpose::Land => false,
    });
    if let Some(standstill) = standstill {
        notices_out.append(&mut notices);
        return Ok(standstill.into());
    }
    held_back.keep(&state_file, &mut notices)?;
    warn_environment(&state, &mut notices);
    working_dir(state.config.working_directory.as_deref())?;
    let mut config = state.config.clone();
    if !matches!(purpose, Purpose::Attempt { .. }) {
        resume.change.check_for(&config)?;
    }
    resume.change.apply_to(&mut config);
    config.check()?;
    if resume.change.permissions.is_some() || resume.change.agent.is_some() {
        // What the default follows from has changed.
        let work = working_dir(config.working_directory.as_deref())?;
        notices.extend(settle(&mut config, &settings, &work)?);
    } else {
        ask_profiles(&mut config, &settings);
    }
    // As before, or as it was changed, or what a profile asks for beyond that.
    let same = config.sandbox.level == state.config.sandbox.level;
    if !same
        || resume
            .change
            .sandbox
            .is_some_and(|level| Some(level) != config.sandbox.level)
    {
        resume.change.sandbox = config.sandbox.level;
        resume.change.sandbox_why.clone_from(&config.sandbox.why);
    }
    let agents = match config.tasks {
        // Looked at with the tasks; and none is needed to land what is finished.
        Some(_) => Vec::new(),
        None => resolve_all(&config, &settings).map_err(HostError::of_resume)?,
    };
    let work = working_dir(config.working_directory.as_deref())?;
    let sandbox = sandbox_of(&config, &settings, &work, &agents)?;
    let ended = match &purpose {
        Purpose::Loop | Purpose::Land => sweep_loop(&settings.root, &state.loop_id),
        Purpose::Attempt { dir: work, .. } => sweep_task_loop(&dir, &state.loop_id, work),
    };
    tell(&ended, &mut notices);
    let tasks = match (&config.tasks, &config.working_directory) {
        (Some(_), Some(work)) => {
            let order = TaskOrder {
                config: &config,
                settings: &settings,
                dir: work,
                occasion: match &purpose {
                    Purpose::Land => Occasion::Land(state.exit_reason()),
                    _ => Occasion::Resume(resume.retry),
                },
                history: events,
                known: state.known_tasks(),
                begun: begun_tasks(&state),
            };
            Some(prepare(order, &mut notices).map_err(HostError::of_resume)?)
        }
        _ => None,
    };
    // The last that can be refused: until then the other loop's file stays in its place.
    make_room(other, &mut state_file, &mut notices)?;
    let kept = loaded.map(|loaded| loaded.state.kept()).unwrap_or_default();
    let held = Held {
        state,
        journal,
        lock,
        dir,
        state_file,
        kept,
        facts,
    };
    let agents = Confined { agents, sandbox };
    let mut host = assemble(settings, held, agents, tasks, notices)?;
    let branched = branch.map(fact::branched);
    host.driver_mut().append_all(branched)?;
    recover_interrupted_run(&mut host, &resume.change, from.as_ref(), &purpose)?;
    host.driver_mut().save_state()?;
    Ok(Resumed::Go(Box::new(host)))
}

/// A file edited by hand is taken as the person's wish, and said; what loosens the loop only where
/// the person says so, for the file lies in the agent's reach.
fn edit_of(
    state: &LoopState,
    loaded: &Loaded,
    accept: Accept,
    from: Option<&Sender>,
    notices: &mut Vec<String>,
) -> Edit {
    let theirs = &loaded.state.config.backend;
    if let Origin::Projected { seq } = loaded.origin {
        // One that is as new as the journal has the same limits, unless the journal lost lines.
        let tighter = match (seq >= state.seq, from) {
            (true, Some(_)) => tightened(state, &loaded.state, from),
            _ => Edit::default(),
        };
        if tighter.event.is_some() {
            notices.extend(tighter.recovered());
            return tighter;
        }
        // Everything else in it is the journal's.
        if theirs.environment_hash == state.config.backend.environment_hash {
            return Edit::default();
        }
        let mut file = state.project(&Kept::default());
        let ours = &mut file.config.backend;
        ours.environment = theirs.environment.clone();
        ours.environment_hash = theirs.environment_hash.clone();
        let edit = edited(state, &file, accept, from);
        notices.extend(edit.notices());
        return edit;
    }
    if loaded.state.iteration < state.iterations {
        notices.push(format!(
            "the state file records {}, the journal {}: the journal's count is used",
            plural(u64::from(loaded.state.iteration), "iteration"),
            state.iterations
        ));
    }
    let edit = edited(state, &loaded.state, accept, from);
    notices.extend(edit.notices());
    edit
}

/// The variables that stand in the state file, as far as they are those that the loop was given.
fn written_environment(state: &LoopState, loaded: Option<&Loaded>) -> BTreeMap<String, String> {
    let file = loaded.map(|loaded| &loaded.state.config.backend);
    let known = &state.config.backend.environment_hash;
    let file = file.filter(|file| file.environment_hash == *known);
    file.map(|file| file.environment.clone().into_values())
        .unwrap_or_default()
}

/// The branch that an edited file asks for, made before the edit is recorded.
fn new_branch(
    settings: &HostSettings,
    state: &LoopState,
    event: &Event,
    dir: &LoopDir,
) -> Result<Option<String>, HostError> {
    let Event::StateEdited { config, .. } = event else {
        return Ok(None);
    };
    if state.config.git.create_branch {
        return Ok(None);
    }
    let work = working_dir(config.working_directory.as_deref())?;
    make_branch(settings, config, &state.name, &work, dir)
}

/// Whether a part of an edit was not taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HeldBack {
    No,
    Some,
}

impl HeldBack {
    fn of(edit: &Edit) -> Self {
        match edit.held_back.is_empty() {
            true => Self::No,
            false => Self::Some,
        }
    }

    /// Keeps what a person wrote, once, before the file is written anew.
    fn keep(&mut self, file: &StateFile, notices: &mut Vec<String>) -> Result<(), HostError> {
        if std::mem::replace(self, Self::No) == Self::Some {
            let copy = file.keep_edited(Timestamp::now())?;
            notices.push(format!(
                "the state file as it was edited is kept as {}",
                copy.display()
            ));
        }
        Ok(())
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
            "the loop was started with --env {}: values are never stored, pass them again if the \
             agent needs them",
            missing.join(", ")
        ));
    }
}

/// Closes what a dead host left open, reopens an ended loop, takes changes.
fn recover_interrupted_run(
    host: &mut Host,
    change: &ConfigChange,
    from: Option<&Sender>,
    purpose: &Purpose,
) -> Result<(), HostError> {
    let seen = match &mut host.kind {
        LoopKind::Agents(agents) if agents.d.state.judged().is_some() => {
            Some(agents.look_at_left_work()?)
        }
        _ => None,
    };
    let judged = match (purpose, &seen) {
        (
            Purpose::Attempt {
                tree: AttemptTree::Other,
                ..
            },
            _,
        ) => LeftWork::Elsewhere,
        (_, Some((now, changes))) => LeftWork::Now(now, changes.as_ref()),
        (_, None) => LeftWork::Unknown,
    };
    let notice = judged.notice(&host.driver().state);
    let taken = TakeUp {
        change,
        from,
        judged,
        reported: match purpose {
            Purpose::Attempt {
                tree: AttemptTree::Other,
                ..
            } => None,
            Purpose::Attempt { reported, .. } => Some(*reported),
            Purpose::Loop | Purpose::Land => None,
        },
    };
    let d = host.driver();
    let events = take_up(&d.state, taken, |run| {
        let folder = d.dir.run(run.run);
        last_seen(&folder, run, host.agents(), &d.state.config, &d.settings)
    });
    if let Some(notice) = notice {
        host.say(notice)?;
    }
    host.driver_mut().append_all(events)?;
    if let LoopKind::Agents(agents) = &mut host.kind
        && !matches!(agents.d.state.phase, Phase::Judging { .. })
    {
        // The next run measures for itself, and counts its changes from there.
        agents.measured = None;
    }
    host.driver_mut().gates_changed()
}

/// The tasks that an earlier host began and did not finish.
fn begun_tasks(state: &LoopState) -> BTreeSet<String> {
    let tasks = state.tasks.iter().flat_map(|tasks| &tasks.tasks);
    let begun = tasks.filter(|(_, entry)| entry.status == TaskStatus::InProgress);
    begun.map(|(id, _)| id.to_string()).collect()
}
