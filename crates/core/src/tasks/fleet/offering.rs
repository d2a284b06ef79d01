//! An attempt that is offered to workers, or taken up where an earlier host of the loop left it.

use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use descartes_bridge::{EngineError, OfferTarget, subject};
use descartes_kernel::fleet::{
    ClaimState, ClaimWatch, FoundOffer, KnownOffer, OfferStep, OfferTime, RemoteStep, StoredClaim,
    TaskClaim, begins_from_stored, offer_step,
};
use descartes_proc::BootTime;
use descartes_text::units::show_duration;
use tracing::{info, warn};

use super::git_remote::{GitRemote, offer_refs};
use super::messages::{GitParcel, OfferMessage};
use super::remote_attempt::{REST, RemoteAttempt};
use super::shared::{AttemptInput, AttemptStop, FleetShared};
use super::stored::{boot_moment, closed_now, read_claim, write_claim};
use super::wip::forget_stored;
use crate::tasks::event::TaskEvent;
use crate::tasks::launch::file_name;
use crate::tasks::place::Published;

/// Between two tries with a repository that does not answer, at most.
const LONGEST_REST: Duration = Duration::from_secs(30);

/// Waits stand still while the machine sleeps: so long at most it is until a lease is looked at again.
const LEASE_LOOK: Duration = Duration::from_secs(5);

/// What became of asking the repository by which work travels.
pub(super) enum RemoteAnswer<T> {
    Answer(T),
    /// It did not answer for long: commits travel through the engine.
    UseEngine,
    /// Somebody wants the attempt to end.
    Ended,
}

impl RemoteAttempt {
    /// Until an answer comes, or somebody wants the attempt to end.
    fn insist<T>(
        &mut self,
        what: &str,
        ask: impl Fn(&FleetShared) -> Result<T, EngineError>,
    ) -> Result<Option<T>, String> {
        let mut said = false;
        loop {
            match ask(&self.shared) {
                Ok(answer) => return Ok(Some(answer)),
                Err(error) if error.is_temporary() => {
                    if !std::mem::replace(&mut said, true) {
                        warn!(%error, what, "the engine does not answer: trying again");
                    }
                }
                Err(error) => return Err(format!("{what}: {error}")),
            }
            match self.inbox.recv_timeout(REST) {
                Ok(AttemptInput::Stop(_)) => return Ok(None),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }

    /// Asks the repository by which work travels, again and again as long as that makes sense.
    pub(super) fn ask_remote<T>(
        &mut self,
        ask: impl Fn(&GitRemote) -> Result<T, String>,
    ) -> RemoteAnswer<T> {
        let shared = self.shared.clone();
        let Some(remote) = &shared.remote else {
            return RemoteAnswer::UseEngine;
        };
        let mut rest = REST;
        loop {
            let asked = shared.now();
            let message = match ask(remote) {
                Ok(answer) => {
                    if shared.health().worked() {
                        let url = remote.url();
                        let message = format!("{url} works again: commits travel by it");
                        self.tell(TaskEvent::Notice(message));
                    }
                    return RemoteAnswer::Answer(answer);
                }
                Err(message) => message,
            };
            warn!(message, "the repository does not answer");
            let step = shared.health().failed(asked, shared.now());
            match step {
                RemoteStep::TryAgain { first: true } => self.tell_remote(&message),
                RemoteStep::TryAgain { first: false } => {}
                RemoteStep::UseEngine { first } => {
                    if first {
                        self.tell_left(&message);
                    }
                    return RemoteAnswer::UseEngine;
                }
            }
            if !self.rest_between(&mut rest) {
                return RemoteAnswer::Ended;
            }
        }
    }

    /// What is wrong with the repository by which work travels.
    pub(super) fn tell_remote(&self, message: &str) {
        let url = self.shared.remote.as_ref().map(|remote| remote.url());
        self.tell(TaskEvent::Notice(format!(
            "task {}: {message} ({}); it is tried again",
            self.order.work.id,
            url.unwrap_or_default()
        )));
    }

    /// The same, and that nobody waits for it any more.
    pub(super) fn tell_left(&self, message: &str) {
        let url = self.shared.remote.as_ref().map(|remote| remote.url());
        self.tell(TaskEvent::Notice(format!(
            "{}: {message}: from now on commits travel through the engine, and it is tried again \
             every {} minutes",
            url.unwrap_or_default(),
            self.shared.settings.remote_terms.rest.as_secs() / 60
        )));
    }

    /// Waits a little longer each time; false where somebody wants the attempt to end.
    pub(super) fn rest_between(&self, rest: &mut Duration) -> bool {
        if self.stopping {
            return false;
        }
        let until = Instant::now() + *rest;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.inbox.recv_timeout(left) {
                Ok(AttemptInput::Stop(AttemptStop::Stop | AttemptStop::Kill))
                | Err(RecvTimeoutError::Disconnected) => return false,
                // What else is told now is looked up later.
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => break,
            }
        }
        *rest = (*rest * 2).min(LONGEST_REST);
        true
    }

    /// Offers the attempt, or takes up the one that an earlier host has offered.
    pub(super) fn begin(&mut self) -> Result<Option<ClaimWatch>, String> {
        let task = self.order.work.id.clone();
        let known = self.order.offered;
        let mut is_replaced = false;
        loop {
            let (stored, remembers) = match known {
                None => (StoredClaim::Nothing, false),
                Some(known) => {
                    let subject = subject::task(&self.shared.loop_id, &task, known.epoch);
                    // In this order: what was not there was never there where the rest is.
                    let read = |shared: &FleetShared| {
                        let stored = read_claim(&shared.engine, &subject)?;
                        Ok((stored, shared.remembers(known)?))
                    };
                    match self.insist("reading who holds it", read)? {
                        Some(found) => found,
                        None => return Ok(None),
                    }
                }
            };
            let found = FoundOffer {
                stored: stored.state(),
                remembers,
            };
            match offer_step(known, self.order.attempt, found) {
                OfferStep::Offer { epoch, when } => {
                    if when == OfferTime::AfterLease && !self.wait_for_lease(&stored) {
                        return Ok(None);
                    }
                    if let Some(known) = known
                        && !is_replaced
                        && begins_from_stored(&known, stored.state())
                    {
                        self.take_left_work(known.epoch);
                    }
                    return self.offer(epoch);
                }
                OfferStep::Attach { epoch } => return self.attach(epoch, &stored),
                OfferStep::Replace { close, forced } => {
                    let subject = subject::task(&self.shared.loop_id, &task, close);
                    let put = |shared: &FleetShared| {
                        let claim = closed_now(forced);
                        match write_claim(&shared.engine, &subject, stored.seq(), None, &claim) {
                            // Where its worker was quicker, it is looked at again.
                            Ok(_) | Err(EngineError::Conflict) => Ok(()),
                            Err(error) => Err(error),
                        }
                    };
                    if self.insist("taking an earlier offer back", put)?.is_none() {
                        return Ok(None);
                    }
                    // What came of that one is known: nothing begins from what was stored on its way.
                    forget_stored(&self.shared.engine, &subject);
                    is_replaced = true;
                }
            }
        }
    }

    /// Waits until a claim that was taken back by force would have lapsed; false where somebody wants
    /// the end.
    fn wait_for_lease(&self, closed: &StoredClaim) -> bool {
        let rest = closed.rest_of_lease(self.shared.terms.ttl, boot_moment().as_ref());
        if !rest.is_zero() {
            self.tell(TaskEvent::Notice(format!(
                "task {} was taken back from a worker that did not answer: it is offered again in {}, when that one \
                 has stopped for certain",
                self.order.work.id,
                show_duration(rest)
            )));
        }
        // That of its holder goes on while this machine sleeps.
        let until = BootTime::now() + rest;
        loop {
            match self.inbox.recv_timeout(until.left().min(LEASE_LOOK)) {
                Ok(AttemptInput::Stop(_)) | Err(RecvTimeoutError::Disconnected) => return false,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) if until.left().is_zero() => return true,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Takes in what the worker of an earlier offer had stored, which was taken back while no host was there.
    fn take_left_work(&mut self, epoch: u64) {
        self.subject = subject::task(&self.shared.loop_id, &self.order.work.id, epoch);
        (self.epoch, self.is_over) = (epoch, true);
        if self.take_stored_work() {
            let task = &self.order.work.id;
            let message = format!("task {task} begins from the work that its worker had stored");
            self.tell(TaskEvent::Notice(message));
        }
        self.is_over = false;
    }

    /// What is told of this epoch comes here from now on.
    fn listen(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.subject = subject::task(&self.shared.loop_id, &self.order.work.id, epoch);
        let task = &self.order.work.id;
        self.shared.route(task, epoch, self.inputs.clone());
    }

    fn attach(&mut self, epoch: u64, stored: &StoredClaim) -> Result<Option<ClaimWatch>, String> {
        info!(task = self.order.work.id, epoch, state = ?stored.state(), "taking an offer up");
        self.listen(epoch);
        self.attached = true;
        if stored.state() == ClaimState::Offered && !self.send_offer()? {
            return Ok(None);
        }
        let subject = self.subject.clone();
        let read = |shared: &FleetShared| read_claim(&shared.engine, &subject);
        let Some(stored) = self.insist("reading who holds it", read)? else {
            return Ok(None);
        };
        self.saw(&stored);
        let watch = ClaimWatch::new(self.shared.terms, self.now(), self.link(), &stored);
        Ok(Some(watch))
    }

    fn offer(&mut self, epoch: u64) -> Result<Option<ClaimWatch>, String> {
        let attempt = self.order.attempt;
        let (recorded, answer) = channel();
        let memory = self.shared.memory.load(Ordering::SeqCst);
        self.tell(TaskEvent::Offering {
            work: self.order.work.id.clone(),
            offer: KnownOffer {
                is_left: false,
                attempt,
                epoch,
                memory,
            },
            recorded,
        });
        // A loop that does not write it down is about to end.
        if answer.recv().is_err() {
            return Ok(None);
        }
        self.listen(epoch);
        let subject = self.subject.clone();
        let put = |shared: &FleetShared| {
            let claim = TaskClaim::Offered { attempt };
            match write_claim(&shared.engine, &subject, 0, None, &claim) {
                // Nobody else writes this number: an answer got lost.
                Err(EngineError::Conflict) => Ok(()),
                other => other.map(drop),
            }
        };
        if self.insist("offering it", put)?.is_none() || !self.send_offer()? {
            return Ok(None);
        }
        let read = |shared: &FleetShared| read_claim(&shared.engine, &subject);
        let Some(stored) = self.insist("reading who holds it", read)? else {
            return Ok(None);
        };
        self.saw(&stored);
        let watch = ClaimWatch::new(self.shared.terms, self.now(), self.link(), &stored);
        Ok(Some(watch))
    }

    /// Puts bundles and the offer where workers find them; false where somebody wants the end.
    fn send_offer(&mut self) -> Result<bool, String> {
        let Some(message) = self.message()? else {
            return Ok(false);
        };
        if self.is_unwanted() {
            return Ok(false);
        }
        let value = serde_json::to_vec(&message).map_err(|error| error.to_string())?;
        let target = OfferTarget::Pool {
            pool: self.shared.pool.clone(),
            agent: self.order.config.backend.backend_type.clone(),
        };
        let id = self.subject.clone();
        let offer = |shared: &FleetShared| shared.engine.offer(&target, &id, &value);
        Ok(self.insist("offering it", offer)?.is_some())
    }

    /// Whether somebody wants the attempt to end before it was offered.
    fn is_unwanted(&self) -> bool {
        let is_stop = |input| {
            matches!(
                input,
                AttemptInput::Stop(AttemptStop::Stop | AttemptStop::Kill)
            )
        };
        self.stopping || self.inbox.try_iter().any(is_stop)
    }

    fn message(&mut self) -> Result<Option<OfferMessage>, String> {
        let shared = self.shared.clone();
        let _one = shared
            .publishing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // The call before this one may have hung until all of them were ended: this one is not begun.
        if self.is_unwanted() {
            return Ok(None);
        }
        let known = shared.known_root();
        let work = self.order.work.clone();
        let publish = |to: Option<&Path>| {
            let published = shared.place.publish(&work, known.as_deref(), to);
            published.map_err(|error| format!("cannot pack what its worker needs: {error}"))
        };
        let by_remote = shared.remote.is_some() && shared.health().is_tried(shared.now());
        let mut published = publish(Some(&*shared.folder).filter(|_| !by_remote))?;
        let pushed = match by_remote {
            true => self.push_base(&published),
            false => RemoteAnswer::UseEngine,
        };
        let git = match pushed {
            RemoteAnswer::Answer(git) => Some(git),
            RemoteAnswer::Ended => None,
            RemoteAnswer::UseEngine => {
                if by_remote {
                    published = publish(Some(&*shared.folder))?;
                }
                self.send_bundles(&published)?
            }
        };
        Ok(git.map(|git| OfferMessage {
            version: shared.settings.version.clone(),
            loop_id: shared.loop_id.clone(),
            repository: published.repository,
            epoch: self.epoch,
            subject: self.subject.clone(),
            tasks: shared.tasks.clone(),
            folder: published.folder,
            shielded: published.shielded,
            git,
            order: self.order.clone(),
        }))
    }

    /// Puts what a worker needs into the repository by which work travels.
    fn push_base(&mut self, published: &Published) -> RemoteAnswer<GitParcel> {
        let refs = offer_refs(&self.shared.loop_id, &self.subject);
        let mut commits = vec![(published.base.as_str(), refs.base())];
        let branch = published.branch.as_deref();
        commits.extend(branch.map(|branch| (branch, refs.branch())));
        let parcel = GitParcel {
            base: published.base.clone(),
            branch: published.branch.clone(),
            root: None,
            rest: None,
            remote: self.shared.tasks.git_remote.clone(),
            author: published.author.clone(),
        };
        self.ask_remote(|remote| remote.push(&commits).map(|()| parcel.clone()))
    }

    /// Puts the same into the engine's store.
    fn send_bundles(&mut self, published: &Published) -> Result<Option<GitParcel>, String> {
        let shared = self.shared.clone();
        let root = &published.root;
        let prefix = file_name(&shared.loop_id);
        let root_object = format!("{prefix}-root-{root}");
        if let Some(bundle) = &published.root_bundle {
            let put = |shared: &FleetShared| shared.engine.put_object(&root_object, bundle);
            if self.insist("sending the repository", put)?.is_none() {
                return Ok(None);
            }
            drop(fs_err::remove_file(bundle));
            shared.set_root(root);
        }
        let rest = match &published.bundle {
            None => None,
            Some(bundle) => {
                let name = format!("{}-order", file_name(&self.subject));
                let put = |shared: &FleetShared| shared.engine.put_object(&name, bundle);
                if self.insist("sending the work", put)?.is_none() {
                    return Ok(None);
                }
                drop(fs_err::remove_file(bundle));
                Some(name)
            }
        };
        Ok(Some(GitParcel {
            base: published.base.clone(),
            branch: published.branch.clone(),
            root: Some((root.clone(), root_object)),
            rest,
            remote: None,
            author: published.author.clone(),
        }))
    }
}
