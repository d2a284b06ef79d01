//! All loops at a glance, kept current: one watch over their folders tells which of them has
//! changed, and only that one is looked at again.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use descartes_kernel::state::{LoopState, Phase, Spent};
use descartes_kernel::transition::apply;
use descartes_store::journal::JournalReader;
use descartes_store::watching::{AddWatchFlags, WatchDescriptor, Watching};
use descartes_views::view::{Life, Status};
use jiff::Timestamp;

use crate::released::{LOOK_AGAIN, Released};
use crate::{ClientError, LoopHandle, Loops, Scope, state};

/// Where folders cannot be watched they are looked at so often.
const BLIND: Duration = Duration::from_secs(1);

/// New and removed names; growth of a journal; a lock that changes hands.
const CHANGES: AddWatchFlags = AddWatchFlags::IN_MODIFY
    .union(AddWatchFlags::IN_CREATE)
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_MOVED_FROM)
    .union(AddWatchFlags::IN_CLOSE_WRITE);

/// One loop in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Brief {
    pub id: String,
    pub name: String,
    /// The task loop that it works for.
    pub parent: Option<String>,
    /// The task that it works on.
    pub task: Option<String>,
    /// The worker on another machine that runs it.
    pub worker: Option<String>,
    /// Where it works.
    pub folder: PathBuf,
    /// When it was first started.
    pub started_at: Timestamp,
    /// How it stands; or why that cannot be told.
    pub standing: Result<LoopBrief, String>,
}

/// How a loop stands, in short.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopBrief {
    /// In one word.
    pub status: Status,
    /// Iterations that are over.
    pub iterations: u32,
    /// How many there may be.
    pub limit: Option<u32>,
    /// Tasks that are done, and all of them; `None` for a loop over one prompt.
    pub tasks: Option<(usize, usize)>,
    /// What it used.
    pub spent: Spent,
}

/// All loops of a root, as they stand.
#[derive(Debug)]
pub struct Fleet {
    loops: Loops,
    watching: Watching,
    home: Option<WatchDescriptor>,
    watches: HashMap<WatchDescriptor, String>,
    handles: BTreeMap<String, LoopHandle>,
    briefs: BTreeMap<String, Brief>,
    /// Loops that are not over: their states, and where in their journals these stand. What is
    /// new is folded in; nothing is read twice.
    open: HashMap<String, (LoopState, JournalReader)>,
    /// Loops that may have changed.
    stale: BTreeSet<String>,
    /// Loops whose locks are being given back.
    released: HashMap<String, Released>,
    /// Whether loops may have come or gone.
    unlisted: bool,
}

impl Fleet {
    /// All loops; nothing is read yet.
    pub fn new(loops: Loops) -> Self {
        Self {
            watching: Watching::new(),
            loops,
            home: None,
            watches: HashMap::new(),
            handles: BTreeMap::new(),
            briefs: BTreeMap::new(),
            open: HashMap::new(),
            stale: BTreeSet::new(),
            released: HashMap::new(),
            unlisted: true,
        }
    }

    /// Looks at what has changed, and gives all loops, newest first.
    pub fn look(&mut self) -> Result<Vec<Brief>, ClientError> {
        if std::mem::take(&mut self.unlisted) {
            self.list()?;
        }
        let stale = std::mem::take(&mut self.stale);
        // Whether the loops of tasks go on hangs on their task loop.
        let of_stale = |handle: &LoopHandle| handle.parent().is_some_and(|id| stale.contains(id));
        let open = self
            .open
            .keys()
            .filter(|id| self.handles.get(*id).is_some_and(of_stale));
        let open: Vec<String> = open.cloned().collect();
        for id in stale.iter().cloned().chain(open) {
            if let Some(handle) = self.handles.get(&id) {
                // Asked first: what is shown is then at least as new.
                if !matches!(handle.life(), Ok(Life::Alive)) {
                    self.released.remove(&id);
                }
                let standing = standing(handle, &mut self.open);
                self.briefs.insert(id, brief(handle, standing));
            }
        }
        let mut all: Vec<Brief> = self.briefs.values().cloned().collect();
        all.sort_by(|a, b| (b.started_at, &b.id).cmp(&(a.started_at, &a.id)));
        Ok(all)
    }

    /// Sleeps until something may have changed, at most `limit`.
    pub fn wait(&mut self, limit: Option<Duration>) {
        let blind = self.home.is_none() || self.watching.is_blind();
        let limit = match limit {
            Some(limit) if blind => Some(limit.min(BLIND)),
            None if blind => Some(BLIND),
            limit => limit,
        };
        let limit = match self.released.is_empty() {
            true => limit,
            false => Some(limit.map_or(LOOK_AGAIN, |limit| limit.min(LOOK_AGAIN))),
        };
        self.watching.wait(limit, BLIND);
        self.take_events();
        self.released.retain(|_, released| !released.is_over());
        self.stale.extend(self.released.keys().cloned());
        if blind {
            self.unlisted = true;
            self.stale.extend(self.handles.keys().cloned());
        }
    }

    fn list(&mut self) -> Result<(), ClientError> {
        let folder = self.loops.root().loops();
        if self.home.is_none() {
            self.home = self.watching.add(&folder, CHANGES);
        }
        self.watch_all(&folder);
        let found: BTreeMap<String, LoopHandle> = self
            .loops
            .list(&Scope::All)?
            .into_iter()
            .map(|handle| (handle.id().to_owned(), handle))
            .collect();
        self.briefs.retain(|id, _| found.contains_key(id));
        self.open.retain(|id, _| found.contains_key(id));
        for id in found.keys() {
            if !self.handles.contains_key(id) {
                self.stale.insert(id.clone());
            }
        }
        self.handles = found;
        Ok(())
    }

    /// Also those that are no loop yet: a folder comes first, its description a moment later.
    fn watch_all(&mut self, folder: &Path) {
        let watched: HashSet<&String> = self.watches.values().collect();
        let names = descartes_store::safe_open::names_in(folder).unwrap_or_default();
        let new: Vec<String> = names
            .into_iter()
            .filter_map(|name| name.into_string().ok())
            .filter(|name| !watched.contains(name))
            .collect();
        for name in new {
            if let Some(watch) = self.watching.add(&folder.join(&name), CHANGES) {
                self.watches.insert(watch, name);
            }
        }
    }

    fn take_events(&mut self) {
        for event in self.watching.events() {
            if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                self.unlisted = true;
                self.stale.extend(self.handles.keys().cloned());
                let open = self.open.keys().cloned();
                self.released.extend(open.map(|id| (id, Released::now())));
            } else if Some(event.wd) == self.home {
                self.unlisted = true;
            } else if let Some(id) = self.watches.get(&event.wd) {
                // A folder that is gone takes its watch along.
                if event.mask.contains(AddWatchFlags::IN_IGNORED) {
                    self.watches.remove(&event.wd);
                } else {
                    self.stale.insert(id.clone());
                    let of_lock = event.name.as_deref().is_some_and(|name| name == "lock");
                    if of_lock && Released::is_told_by(&event) {
                        self.released.insert(id.clone(), Released::now());
                    }
                    self.unlisted |= event.name.is_some_and(|name| name == "meta.json");
                }
            }
        }
    }
}

/// How a loop stands. Life is asked before and, where it matters, after: a loop that ends in
/// between is never taken for an interrupted one.
fn standing(
    handle: &LoopHandle,
    open: &mut HashMap<String, (LoopState, JournalReader)>,
) -> Result<LoopBrief, ClientError> {
    let before = handle.life()?;
    let kept = open.remove(handle.id());
    let (state, reader) = match kept.map(fold_new) {
        Some(Ok(folded)) => folded,
        // Made anew, torn or never read: from the beginning.
        Some(Err(_)) | None => {
            let journal = handle.dir().journal();
            let (state, offset) = state::read(&journal)?;
            (state, JournalReader::open_at(&journal, offset)?)
        }
    };
    let over = matches!(state.phase, Phase::Finished { .. });
    let life = match before {
        Life::Gone if !over => handle.life_of_work(handle.life()?, &state),
        life => life,
    };
    let standing = LoopBrief {
        status: Status::of(&state, life),
        iterations: state.iterations,
        limit: state.config.max_iterations,
        tasks: state.tasks.as_ref().map(|tasks| tasks.count()),
        spent: state.spent,
    };
    if !over {
        open.insert(handle.id().to_owned(), (state, reader));
    }
    Ok(standing)
}

fn fold_new(
    (mut state, mut reader): (LoopState, JournalReader),
) -> Result<(LoopState, JournalReader), ClientError> {
    let mut trouble = None;
    reader.for_each_new(|record| {
        if let Err(error) = apply(&mut state, &record) {
            trouble.get_or_insert(error);
        }
    })?;
    match trouble {
        Some(error) => Err(error.into()),
        None => Ok((state, reader)),
    }
}

fn brief(handle: &LoopHandle, standing: Result<LoopBrief, ClientError>) -> Brief {
    let meta = handle.meta();
    let parent = meta.extra.get("parent").and_then(|parent| parent.as_str());
    Brief {
        id: meta.id.clone(),
        name: meta.name.clone(),
        parent: parent.map(str::to_owned),
        task: handle.task().map(str::to_owned),
        worker: handle.worker().map(str::to_owned),
        folder: meta.working_dir.clone(),
        started_at: meta.started_at,
        standing: standing.map_err(|error| error.to_string()),
    }
}
