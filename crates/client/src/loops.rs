//! Which loops there are, and which one is meant.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use descartes_store::catalog::{self, FindError, LoopEntry, LoopStanding, standing};
use descartes_store::layout::{
    EnvPaths, PROJECT_FOLDER, STATE_FILE, StateRoot, canonical, state_file_path,
};
use descartes_store::lock::{NameLock, holder_of, holder_of_loop, socket_of};
use descartes_store::state_file::{StateFileError, load};

use crate::{ClientError, Known, LoopHandle};

/// Between two looks.
const AGAIN: Duration = Duration::from_millis(20);
/// How long a host is waited for that has to put its folder back.
const WAKE: Duration = Duration::from_secs(10);

/// Which loops are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those that work in this directory.
    Of(PathBuf),
    /// All of this user on this machine.
    All,
}

/// Which loop is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// By its id, the beginning of its id, its name, its task, or the path of its state file.
    Named(String),
    /// By its id, the beginning of its id, its name, or its task, and never by a path: for whoever may not open files.
    Listed(String),
    /// By its state file.
    StateFile(PathBuf),
    /// The one of the default state file in this directory; where there is none, the only loop
    /// of the directory that is not over, else its newest.
    Here(PathBuf),
}

/// All loops of a state root.
#[derive(Clone, Debug)]
pub struct Loops {
    root: StateRoot,
    known: Known,
}

impl Loops {
    /// The loops that a command in `here` sees, read with the built-in agents.
    pub fn new(paths: &EnvPaths, here: &Path) -> Self {
        let root = StateRoot::resolve(paths, here);
        Self::at(root, Known::builtin())
    }

    /// The loops of a known root.
    pub fn at(root: StateRoot, known: Known) -> Self {
        Self { root, known }
    }

    pub fn root(&self) -> &StateRoot {
        &self.root
    }

    /// A turn to count the loops that run and to start one more: nobody else has it until it is
    /// dropped. `None` where another keeps it for longer than `patience`.
    pub fn turn_to_start(&self, patience: Duration) -> Result<Option<NameLock>, ClientError> {
        // No loop can have this name.
        Ok(NameLock::acquire(&self.root, "\0start", patience)?)
    }

    /// Loops, newest first.
    pub fn list(&self, scope: &Scope) -> Result<Vec<LoopHandle>, ClientError> {
        let within = match scope {
            Scope::All => None,
            Scope::Of(dir) => Some(canonical(dir)?),
        };
        let all = catalog::list(&self.root)?.into_iter();
        let wanted = all.filter(|entry| {
            let dir = &entry.meta.working_dir;
            within.as_ref().is_none_or(|within| within == dir)
        });
        Ok(wanted.map(|entry| self.handle(entry)).collect())
    }

    /// The loop that is meant.
    pub fn find(&self, query: &Query) -> Result<LoopHandle, ClientError> {
        match query {
            Query::Named(name) => self.by_name(name),
            Query::Listed(name) => {
                let found = self.in_catalog(name)?;
                let is_named = found.name() == name || found.task() == Some(name);
                match found.id().starts_with(name) || is_named {
                    true => Ok(found),
                    // The catalog knows state files, too.
                    false => Err(FindError::None(name.clone()).into()),
                }
            }
            Query::StateFile(path) => self.by_state_file(path),
            Query::Here(dir) => {
                let path = dir.join(PROJECT_FOLDER).join(STATE_FILE);
                match self.by_state_file(&path) {
                    Err(ClientError::StateFile(StateFileError::Missing(path))) => {
                        self.without_default(dir, path)
                    }
                    found => found,
                }
            }
        }
    }

    /// Loops with state files of their own names: those of roadmaps, or where `--state-file` was
    /// given.
    fn without_default(&self, dir: &Path, missing: PathBuf) -> Result<LoopHandle, ClientError> {
        let mut own = self.list(&Scope::Of(dir.to_owned()))?;
        own.retain(|found| found.parent().is_none() && found.dir.journal().is_file());
        let mut open = own.clone();
        open.retain(|found| !matches!(standing(&found.dir), Ok(LoopStanding::Finished(_))));
        let mut live = open.clone();
        live.retain(|found| found.holder().is_ok_and(|held| held.is_some()));
        match (own.first(), open.as_slice(), live.as_slice()) {
            (None, ..) => Err(ClientError::NoneHere(missing)),
            (Some(only), [], _) | (_, [only], _) | (_, _, [only]) => Ok(only.clone()),
            _ => Err(ClientError::Find(FindError::Ambiguous {
                query: dir.display().to_string(),
                candidates: open.into_iter().map(|found| found.meta).collect(),
            })),
        }
    }

    fn handle(&self, entry: LoopEntry) -> LoopHandle {
        LoopHandle::of_journal(&self.root, &self.known, entry)
    }

    fn by_name(&self, name: &str) -> Result<LoopHandle, ClientError> {
        // A state file that never ran here stands in no catalog.
        let path = Path::new(name);
        match self.in_catalog(name) {
            Err(ClientError::Find(FindError::None(_)))
                if (name.contains('/') || name.ends_with(".json")) && path.is_file() =>
            {
                self.by_state_file(path)
            }
            found => found,
        }
    }

    fn in_catalog(&self, name: &str) -> Result<LoopHandle, ClientError> {
        match catalog::find(&self.root, name) {
            Ok(entry) => Ok(self.handle(entry)),
            Err(FindError::Ambiguous { query, candidates }) => {
                let entries = candidates.iter().filter_map(|meta| {
                    let dir = self.root.loop_dir(&meta.id).ok()?;
                    let meta = meta.clone();
                    Some(LoopEntry { meta, dir })
                });
                // Names are used again and again; the one that runs is the one that is meant.
                let mut live: Vec<LoopEntry> = entries
                    .filter(|entry| holder_of_loop(&entry.dir).is_ok_and(|held| held.is_some()))
                    .collect();
                match (live.pop(), live.is_empty()) {
                    (Some(entry), true) => Ok(self.handle(entry)),
                    _ => Err(FindError::Ambiguous { query, candidates }.into()),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The same way as a resume finds it: the journal if there is one, else the file alone. A
    /// torn file never stands in the way of a journal that knows better.
    fn by_state_file(&self, path: &Path) -> Result<LoopHandle, ClientError> {
        let path = state_file_path(path)?;
        if let Some(entry) = self.held_here(&path) {
            return Ok(self.handle(entry));
        }
        match load(&path) {
            Ok(loaded) => {
                let id = loaded.state.loop_id.as_deref();
                let found = id.and_then(|id| self.with_journal(id));
                match found.or_else(|| self.made_whole(id?, &path)) {
                    Some(entry) => {
                        let place = catalog::lies(&self.root, &path, &loaded);
                        Ok(self.handle(entry).asked_by(path, place))
                    }
                    None => {
                        let place = catalog::lies(&self.root, &path, &loaded);
                        let asked = path.clone();
                        let handle = LoopHandle::of_file(&self.root, &self.known, path, loaded)?;
                        Ok(handle.asked_by(asked, place))
                    }
                }
            }
            Err(error @ StateFileError::Io(_)) => Err(error.into()),
            Err(error) => {
                let newest = catalog::list(&self.root)?
                    .into_iter()
                    .find(|entry| entry.meta.state_file == path && entry.dir.journal().is_file());
                match newest {
                    Some(entry) => Ok(self.handle(entry)),
                    None => Err(error.into()),
                }
            }
        }
    }

    /// The loop that runs with this state file: who holds it is asked first, since the file lies in the
    /// reach of agents and says whatever was written into it.
    fn held_here(&self, path: &Path) -> Option<LoopEntry> {
        let holder = holder_of(&self.root, path).ok()??.holder?;
        let entry = self.with_journal(&holder.loop_id)?;
        (entry.meta.state_file == path).then_some(entry)
    }

    /// A loop that runs and whose folder somebody deleted: asked over its socket, its host puts the
    /// folder back.
    fn made_whole(&self, id: &str, state_file: &Path) -> Option<LoopEntry> {
        let socket = socket_of(state_file)?;
        crate::control::wake(&socket, WAKE);
        let end = Instant::now() + WAKE;
        loop {
            let found = self.with_journal(id);
            if found.is_some() || Instant::now() >= end || socket_of(state_file).is_none() {
                return found;
            }
            thread::sleep(AGAIN);
        }
    }

    fn with_journal(&self, id: &str) -> Option<LoopEntry> {
        let dir = self.root.loop_dir(id).ok()?;
        // What is no file is refused when it is opened, as a resume does.
        dir.journal().symlink_metadata().ok()?;
        catalog::find(&self.root, id)
            .ok()
            .filter(|entry| entry.meta.id == id)
    }
}
