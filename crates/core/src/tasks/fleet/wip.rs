//! Work in progress: what an agent has done so far travels to the engine's store every minute of change, so
//! that little is lost with a machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use descartes_bridge::{Engine, EngineError};
use serde::{Deserialize, Serialize};
use tracing::{debug, info, warn};

use super::git_remote::OfferRemote;
use super::mirror_source::MirrorHandle;
use crate::tasks::launch::file_name;
use crate::tasks::place::Work;
use crate::tasks::trees::Trees;

/// Two bundles by turns: the one that the note names stays while the other is written.
const TURNS: u32 = 2;

/// What was stored last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredWork {
    pub(super) commit: String,
    pub(super) built_on: String,
    /// The object that holds it.
    pub(super) object: String,
}

/// The object that tells what was stored last of an epoch.
fn note_object(subject: &str) -> String {
    format!("{}-wip", file_name(subject))
}

fn bundle_object(subject: &str, turn: u32) -> String {
    format!("{}-wip-{}", file_name(subject), turn % TURNS)
}

/// Whose work is stored.
pub(super) struct WipOf {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) place: Arc<Trees>,
    pub(super) slot: u32,
    pub(super) work: Work,
    /// Where the task is claimed.
    pub(super) subject: String,
    pub(super) built_on: String,
    /// Where bundles are written.
    pub(super) folder: PathBuf,
    pub(super) every: Duration,
    /// Where it is stored instead of the engine.
    pub(super) remote: Option<OfferRemote>,
    /// Knows whether the tree is ready and its loop open.
    pub(super) mirror: MirrorHandle,
}

/// Stores the work of an attempt until it is dropped.
pub(super) struct WipKeeper {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl WipKeeper {
    pub(super) fn start(of: WipOf) -> Self {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name("work in progress".to_owned());
        let thread = thread
            .spawn(move || of.keep(&stopped))
            .map_err(|error| warn!(%error, "work in progress is not stored"));
        Self {
            stop: Some(stop),
            thread: thread.ok(),
        }
    }
}

impl Drop for WipKeeper {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl WipOf {
    fn keep(&self, stopped: &Receiver<()>) {
        let (mut tree, mut turn) = (None, 0);
        while stopped.recv_timeout(self.every) == Err(RecvTimeoutError::Timeout) {
            if !self.mirror.is_open() {
                continue;
            }
            match self.store(tree.as_deref(), turn) {
                Ok(None) => {}
                Ok(Some(stored)) => {
                    tree = Some(stored);
                    turn += 1;
                }
                // It is tried again with the next change.
                Err(message) => debug!(message, "work in progress was not stored"),
            }
        }
    }

    /// Stores what has changed since this tree; gives the new one.
    fn store(&self, last: Option<&str>, turn: u32) -> Result<Option<String>, String> {
        let snapshot = self.place.snapshot(self.slot, &self.work, last);
        let Some((commit, tree)) = snapshot.map_err(|error| error.to_string())? else {
            return Ok(None);
        };
        if let Some(OfferRemote { remote, refs }) = &self.remote {
            remote.push(&[(&commit, refs.work(&self.built_on))])?;
            info!(task = self.work.id, commit, "work in progress pushed");
            return Ok(Some(tree));
        }
        let bundle = self
            .place
            .bundle_snapshot(&self.work, &commit, &self.built_on, &self.folder)
            .map_err(|error| error.to_string())?;
        let Some(bundle) = bundle else {
            return Ok(Some(tree));
        };
        let stored = StoredWork {
            commit,
            built_on: self.built_on.clone(),
            object: bundle_object(&self.subject, turn),
        };
        let told = self.folder.join(note_object(&self.subject));
        let note = serde_json::to_vec(&stored).map_err(|error| error.to_string())?;
        fs_err::write(&told, note).map_err(|error| error.to_string())?;
        let put = |name: &str, file: &Path| {
            let put = self.engine.put_object(name, file);
            drop(fs_err::remove_file(file));
            put.map_err(|error| error.to_string())
        };
        put(&stored.object, &bundle)?;
        put(&note_object(&self.subject), &told)?;
        info!(
            task = self.work.id,
            commit = stored.commit,
            "work in progress stored"
        );
        Ok(Some(tree))
    }
}

/// Fetches what was stored last of an epoch, into a folder; `None` where nothing was.
pub(super) fn fetch_stored(
    engine: &Arc<dyn Engine>,
    subject: &str,
    folder: &Path,
) -> Result<Option<(StoredWork, PathBuf)>, String> {
    fs_err::create_dir_all(folder).map_err(|error| error.to_string())?;
    let name = note_object(subject);
    let told = folder.join(&name);
    match engine.get_object(&name, &told) {
        Ok(()) => {}
        Err(EngineError::NoObject(_)) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    }
    let note = fs_err::read(&told).map_err(|error| error.to_string())?;
    drop(fs_err::remove_file(&told));
    let stored: StoredWork = serde_json::from_slice(&note).map_err(|error| error.to_string())?;
    let bundle = folder.join(format!("{name}.bundle"));
    let fetched = engine.get_object(&stored.object, &bundle);
    fetched.map_err(|error| error.to_string())?;
    Ok(Some((stored, bundle)))
}

/// Removes what was stored of an epoch.
pub(super) fn forget_stored(engine: &Arc<dyn Engine>, subject: &str) {
    let bundles = (0..TURNS).map(|turn| bundle_object(subject, turn));
    for object in bundles.chain([note_object(subject)]) {
        // What stays goes with the age of the store.
        drop(engine.delete_object(&object));
    }
}
