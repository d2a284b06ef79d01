//! One loop, as a view sees it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use descartes_kernel::edits::{Accept, edited};
use descartes_kernel::event::{Event, FORMAT, Record};
use descartes_kernel::state::{IterativeLoopState, LoopState, Phase};
use descartes_kernel::transition::begin;
use descartes_store::catalog::{Lies, LoopEntry, LoopMeta};
use descartes_store::layout::{LoopDir, PROJECT_FOLDER, StateRoot};
use descartes_store::lock::{Held, holder_of, holder_of_loop};
use descartes_store::lost_end::LostEnd;
use descartes_store::state_file::{Loaded, Origin, StateFileError, load};
use descartes_views::view::Life;
use jiff::Timestamp;
use serde_json::Map;

use crate::follow::FollowWatch;
use crate::{ClientError, Known, state};

/// The lock tells when it is given back; this is for the day it does not.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// One loop. Holding it costs nothing and stands in nobody's way.
#[derive(Clone, Debug)]
pub struct LoopHandle {
    pub(crate) root: StateRoot,
    pub(crate) known: Known,
    pub(crate) meta: LoopMeta,
    pub(crate) dir: LoopDir,
    /// All there is, where there is no journal.
    file: Option<Box<Loaded>>,
    /// Why it is not steered by the state file that it was asked for by, and what to type instead:
    /// that file is a moved or copied one.
    displaced: Option<(String, String)>,
}

/// How a loop stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    pub state: LoopState,
    /// Whether a process has it.
    pub life: Life,
    /// What a person should know of its files.
    pub notices: Vec<String>,
    /// Iterations that the state file records, where the journal lost its end.
    pub recorded: Option<u32>,
}

impl LoopHandle {
    pub(crate) fn of_journal(root: &StateRoot, known: &Known, entry: LoopEntry) -> Self {
        Self {
            root: root.clone(),
            known: known.clone(),
            meta: entry.meta,
            dir: entry.dir,
            file: None,
            displaced: None,
        }
    }

    /// It was asked for by a state file that lies there.
    pub(crate) fn asked_by(mut self, path: PathBuf, place: Lies) -> Self {
        self.displaced = place.refusal(&path);
        self
    }

    /// Refuses to act on a loop that was asked for by a moved or copied state file: it works in
    /// another folder than the one that was asked for.
    pub fn refuse_displaced(&self) -> Result<(), ClientError> {
        match &self.displaced {
            None => Ok(()),
            Some((message, hint)) => Err(ClientError::refused(message, hint)),
        }
    }

    /// A loop that is a state file and nothing else.
    pub(crate) fn of_file(
        root: &StateRoot,
        known: &Known,
        path: PathBuf,
        loaded: Loaded,
    ) -> Result<Self, ClientError> {
        let file = &loaded.state;
        let id = file.loop_id.clone().unwrap_or_else(|| "none".to_owned());
        let working_dir = file.config.working_directory.clone();
        let meta = LoopMeta {
            name: file.name.clone().unwrap_or_else(|| "unnamed".to_owned()),
            working_dir: working_dir.unwrap_or_else(|| project_of(&path)),
            started_at: file.started_at.unwrap_or(Timestamp::UNIX_EPOCH),
            state_file: path,
            extra: Map::new(),
            id,
        };
        Ok(Self {
            root: root.clone(),
            known: known.clone(),
            dir: root.loop_dir(&meta.id)?,
            meta,
            file: Some(Box::new(loaded)),
            displaced: None,
        })
    }

    /// The task loop that it belongs to, where it is the loop of a task.
    pub fn parent(&self) -> Option<&str> {
        self.meta.extra.get("parent")?.as_str()
    }

    /// The task that it works on, where it is the loop of one.
    pub fn task(&self) -> Option<&str> {
        self.meta.task()
    }

    /// The worker on another machine that runs it, or ran it last.
    pub fn worker(&self) -> Option<&str> {
        self.meta.extra.get("worker")?.as_str()
    }

    /// Whether this is the copy of a loop that runs on another machine.
    pub fn is_copy(&self) -> bool {
        self.meta.extra.contains_key("mirror")
    }

    /// Why nothing is written into the journal of a copy.
    pub(crate) fn refuse_copy(&self) -> Result<(), ClientError> {
        if !self.is_copy() {
            return Ok(());
        }
        let worker = self.worker().unwrap_or("another machine");
        let parent = self.parent().unwrap_or_default();
        Err(ClientError::refused(
            format!("this is a copy of a loop on {worker} that is not running: it stays as it is"),
            format!("its task loop says what became of it: descartes loop status {parent}"),
        ))
    }

    pub fn id(&self) -> &str {
        &self.meta.id
    }

    pub fn name(&self) -> &str {
        &self.meta.name
    }

    /// Where all loops are kept.
    pub fn root(&self) -> &StateRoot {
        &self.root
    }

    /// What is known of it without its journal.
    pub fn meta(&self) -> &LoopMeta {
        &self.meta
    }

    /// Its folder: journal and logs.
    pub fn dir(&self) -> &LoopDir {
        &self.dir
    }

    /// Its state file.
    pub fn state_file(&self) -> &Path {
        &self.meta.state_file
    }

    /// Whether it has a journal; without one there is no history, and nothing to follow.
    pub fn has_journal(&self) -> bool {
        self.file.is_none()
    }

    /// Who has it; the lock is asked and never taken.
    pub fn holder(&self) -> Result<Option<Held>, ClientError> {
        Ok(match &self.file {
            None => holder_of_loop(&self.dir)?,
            Some(_) => holder_of(&self.root, &self.meta.state_file)?,
        })
    }

    /// Whether a process has it.
    pub fn life(&self) -> Result<Life, ClientError> {
        Ok(match self.holder()? {
            Some(_) => Life::Alive,
            None => Life::Gone,
        })
    }

    /// Whether work on it goes on: a process has it, or has its task loop, which begins its next attempt in a
    /// moment.
    pub fn life_of_work(&self, life: Life, state: &LoopState) -> Life {
        let is_over = matches!(state.phase, Phase::Finished { .. });
        let parent = self.parent().filter(|_| life == Life::Gone && !is_over);
        let parent = parent.and_then(|parent| self.root.loop_dir(parent).ok());
        match parent.map(|dir| holder_of_loop(&dir)) {
            Some(Ok(Some(_))) => Life::Alive,
            _ => life,
        }
    }

    /// Its state: a fold of the end of its journal.
    pub fn state(&self) -> Result<LoopState, ClientError> {
        match &self.file {
            None => Ok(self.read_journal()?.0),
            Some(loaded) => self.state_of(&loaded.state),
        }
    }

    /// The state by the journal, or by the state file where the journal has no whole line; whether it
    /// has one.
    fn read_journal(&self) -> Result<(LoopState, bool), ClientError> {
        let empty = match state::read(&self.dir.journal()) {
            Ok((state, _)) => return Ok((state, true)),
            Err(error @ ClientError::Empty(_)) => error,
            Err(error) => return Err(error),
        };
        match load(&self.meta.state_file) {
            Ok(file) if !self.is_foreign(&file.state) => Ok((self.state_of(&file.state)?, false)),
            _ => Err(empty),
        }
    }

    /// Refuses to write where the journal lost what the state file still tells: both would forget it.
    pub(crate) fn refuse_lost_end(&self, journal: Option<&LoopState>) -> Result<(), ClientError> {
        match self.lost_end(journal) {
            Some(lost) => Err(ClientError::refused(lost.message, lost.hint)),
            None => Ok(()),
        }
    }

    /// The same state by folding every record, as a resume does.
    pub fn state_by_full_fold(&self) -> Result<LoopState, ClientError> {
        match &self.file {
            None => Ok(state::read_all(&self.dir.journal())?.0),
            Some(_) => self.state(),
        }
    }

    /// State and life together, so that neither tells on the other: a loop that ends between
    /// the two questions is never taken for an interrupted one.
    pub fn look(&self) -> Result<Look, ClientError> {
        let before = self.life()?;
        let (state, has_lines) = match &self.file {
            None => self.read_journal()?,
            Some(loaded) => (self.state_of(&loaded.state)?, true),
        };
        let over = matches!(state.phase, Phase::Finished { .. });
        let life = match before {
            Life::Gone if !over => self.life_of_work(self.life()?, &state),
            life => life,
        };
        let mut notices = match life {
            _ if self.displaced.is_some() => Vec::new(),
            Life::Alive => self.host_notices(),
            Life::Gone => self.file_notices(&state),
        };
        let lost = match life {
            Life::Gone => self.lost_end(has_lines.then_some(&state)),
            Life::Alive => None,
        };
        notices.extend(
            lost.as_ref()
                .map(|lost| format!("{}; {}", lost.message, lost.hint)),
        );
        if let Some((message, hint)) = &self.displaced {
            notices.push(format!("{message}; {hint}"));
        }
        Ok(Look {
            state,
            life,
            notices,
            recorded: lost.map(|lost| lost.recorded),
        })
    }

    /// What the state file tells and the journal lost.
    fn lost_end(&self, journal: Option<&LoopState>) -> Option<LostEnd> {
        if self.is_copy() || self.file.is_some() || self.displaced.is_some() {
            return None;
        }
        let path = &self.meta.state_file;
        let file = load(path)
            .ok()
            .filter(|file| !self.is_foreign(&file.state))?;
        LostEnd::find(&self.dir, journal, path, &file)
    }

    /// What a person should know of the process that has it.
    fn host_notices(&self) -> Vec<String> {
        let host = self.living_host().ok().flatten();
        let stopped = host.filter(|pid| descartes_store::host::is_stopped(*pid));
        let notice = |pid: u32| {
            format!(
                "its process (pid {pid}) is stopped: continue it with `fg` in its terminal or \
                 `kill -CONT {pid}`"
            )
        };
        stopped.map(notice).into_iter().collect()
    }

    /// What the next resume will say about the state file.
    fn file_notices(&self, state: &LoopState) -> Vec<String> {
        if self.is_copy() {
            // Its state file is on the machine of its worker.
            return Vec::new();
        }
        if self.file.is_some() {
            return vec!["this state file has not run on this machine yet".to_owned()];
        }
        let path = &self.meta.state_file;
        match load(path) {
            Ok(file) if self.is_foreign(&file.state) => {
                vec![format!("{} now belongs to another loop", path.display())]
            }
            Ok(file) => {
                if !matches!(file.origin, Origin::Edited { .. }) {
                    return Vec::new();
                }
                edited(state, &file.state, Accept::Harmless, None).foretold()
            }
            Err(StateFileError::Missing(path)) => vec![format!(
                "{} is missing: the next resume rebuilds it from the journal",
                path.display()
            )],
            Err(StateFileError::Io(error)) if error.refusal().is_some() => {
                vec![format!("{error}: a resume will be refused")]
            }
            Err(error) => vec![format!(
                "{error}: the next resume rebuilds it from the journal"
            )],
        }
    }

    /// Whether a state file tells of another loop.
    pub(crate) fn is_foreign(&self, file: &IterativeLoopState) -> bool {
        file.loop_id.as_ref().is_some_and(|id| *id != self.meta.id)
    }

    /// What a resume would begin from.
    fn state_of(&self, file: &IterativeLoopState) -> Result<LoopState, ClientError> {
        let mut config = file.config.clone();
        config.working_directory = Some(self.meta.working_dir.clone());
        config.state_file = Some(self.meta.state_file.clone());
        let first = Record {
            v: FORMAT,
            seq: 0,
            at: file.last_iteration_at.unwrap_or(self.meta.started_at),
            event: Event::LoopCreated {
                loop_id: self.meta.id.clone(),
                name: self.meta.name.clone(),
                config: Box::new(config),
                started_at: self.meta.started_at,
                iterations: file.iteration,
                summaries: file.iteration_summaries.clone(),
                spent: file.spent,
                ended: file.completed.then(|| file.exit_reason.clone()),
            },
        };
        let mut state = begin(&first)?;
        state.last_iteration_at = file.last_iteration_at;
        Ok(state)
    }

    /// The journal, for what only it can tell.
    pub(crate) fn journal(&self, what: &'static str) -> Result<PathBuf, ClientError> {
        match &self.file {
            None => Ok(self.dir.journal()),
            Some(_) => Err(ClientError::NeverRan {
                path: self.meta.state_file.clone(),
                what,
            }),
        }
    }

    /// Sleeps until no process has the loop, at most `limit`. Woken by the lock itself.
    pub fn wait_until_gone(&self, limit: Duration) -> Result<Life, ClientError> {
        let mut watch = FollowWatch::new(&self.dir);
        let end = Instant::now() + limit;
        loop {
            if self.life()? == Life::Gone {
                return Ok(Life::Gone);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Life::Alive);
            }
            watch.wait(Some(left.min(ASK_AGAIN)));
        }
    }
}

/// The project that a state file without a working directory belongs to.
fn project_of(state_file: &Path) -> PathBuf {
    let folder = state_file.parent().unwrap_or(Path::new("/"));
    match folder.file_name() {
        Some(name) if name == PROJECT_FOLDER => folder.parent().unwrap_or(folder).to_owned(),
        _ => folder.to_owned(),
    }
}
