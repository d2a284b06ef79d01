//! Hands over the commits of an attempt that is over.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use descartes_bridge::Engine;
use tracing::warn;

use super::ending::Ending;
use super::git_remote::OfferRemote;
use super::keeper::Keeper;
use super::messages::OfferMessage;
use super::stored::result_object;
use crate::tasks::trees::Trees;

/// How long storing the commits is tried again.
const DELIVERY_PATIENCE: Duration = Duration::from_secs(20 * 60);
const BETWEEN_TRIES: Duration = Duration::from_secs(2);
/// How often somebody who waits looks whether he is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// Where the commits of an attempt are.
pub(super) struct DeliveredWork {
    pub(super) commit: String,
    /// An object in the engine's store, and the file that it is made of.
    pub(super) bundle: Option<(String, PathBuf)>,
    /// They are in the repository that the offer named, and not yet in that store.
    pub(super) pushed: bool,
    /// False where the worker ends before the engine took them: then only the file is there.
    pub(super) is_stored: bool,
}

/// By what they are handed over.
pub(super) struct Handover<'a> {
    pub(super) engine: &'a Arc<dyn Engine>,
    pub(super) ending: &'a Ending,
    pub(super) keeper: &'a Keeper,
    /// Bundles lie here until they are not needed any more.
    pub(super) folder: PathBuf,
    /// So long a repository is tried that does not take them.
    pub(super) push_patience: Duration,
}

impl Handover<'_> {
    /// Hands over the commits of the work: by the repository that the offer names; through the engine's store
    /// where it names none, or where that one does not take them.
    pub(super) fn deliver(
        &self,
        offer: &OfferMessage,
        place: &Trees,
        remote: Option<&OfferRemote>,
    ) -> Result<DeliveredWork, String> {
        let (work, built_on) = (&offer.order.work, offer.git.built_on());
        let unpacked = |error| format!("cannot pack the work: {error}");
        let mut delivered = DeliveredWork {
            commit: place.tip(work).map_err(unpacked)?,
            bundle: None,
            pushed: false,
            is_stored: true,
        };
        let commit = &delivered.commit;
        if let Some(remote) = remote {
            if !place.has_more(commit, built_on).map_err(unpacked)? {
                return Ok(delivered);
            }
            delivered.pushed = self.push(remote, commit)?;
        }
        let name = result_object(&offer.subject);
        let kept = self.folder.join(&name);
        let pack = || -> Result<bool, String> {
            let bundle = place.deliver(work, commit, built_on, &self.folder);
            let Some(bundle) = bundle.map_err(unpacked)? else {
                return Ok(false);
            };
            fs_err::rename(&bundle, &kept).map_err(|error| error.to_string())?;
            Ok(true)
        };
        if delivered.pushed {
            // It may never be needed.
            let is_packed = pack().unwrap_or_default();
            delivered.bundle = is_packed.then_some((name, kept));
            return Ok(delivered);
        }
        if pack()? {
            delivered.is_stored = self.store(&name, &kept)?;
            delivered.bundle = Some((name, kept));
        }
        Ok(delivered)
    }

    /// Puts a file into the engine's store; false where the worker ends before that takes it.
    fn store(&self, name: &str, file: &std::path::Path) -> Result<bool, String> {
        let began = Instant::now();
        loop {
            let put = self.engine.put_object(name, file);
            self.ending.heard(&put);
            match put {
                Ok(()) => return Ok(true),
                Err(error) if error.is_temporary() && began.elapsed() < DELIVERY_PATIENCE => {
                    if self.keeper.end().is_some() {
                        return Err("the task was taken back".to_owned());
                    }
                    if !self.rest() {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(format!("cannot hand over the work: {error}")),
            }
        }
    }

    /// Waits until the next try; false where there is none.
    fn rest(&self) -> bool {
        let until = Instant::now() + BETWEEN_TRIES;
        while self.ending.waits() && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
        self.ending.waits()
    }

    /// Puts the work into the repository that the offer names; false where it does not take it for long, or the
    /// worker was told to end.
    fn push(&self, of: &OfferRemote, commit: &str) -> Result<bool, String> {
        let began = Instant::now();
        loop {
            let is_held = || self.keeper.end().is_none();
            let pushed = match is_held() {
                true => of.remote.push(&[(commit, of.refs.result())]),
                false => return Err("the task was taken back".to_owned()),
            };
            let Err(message) = pushed else {
                if !is_held() {
                    // Nobody else would delete it.
                    drop(of.remote.delete(&[&of.refs.result()]));
                }
                return Ok(true);
            };
            warn!(message, url = of.remote.url(), "cannot push the work");
            if began.elapsed() >= self.push_patience || self.ending.order().is_some() {
                return Ok(false);
            }
            std::thread::sleep(BETWEEN_TRIES);
        }
    }
}
