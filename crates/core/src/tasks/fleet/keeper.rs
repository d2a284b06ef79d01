//! Keeps a claim while an attempt is under way: renews it from a thread of its own, tells the guard until
//! when the agent may work, and ends the attempt when somebody else has the task.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use descartes_bridge::{Engine, EngineError};
use descartes_kernel::fleet::{
    Lease, LeaseAct, LeaseEnd, LeaseTerms, StoredClaim, TaskClaim, WriteFailure,
};
use descartes_proc::{BootTime, LeaseClock, TreeLease};
use tracing::{debug, info, warn};

use super::ending::Ending;
use super::stored::{read_claim, write_claim};
use crate::tasks::attempt_control::Control;

/// After waking up it is so long at most until the claim is looked at.
const LOOK: Duration = Duration::from_secs(2);

/// Whose claim it is.
#[derive(Clone, Debug)]
pub(super) struct ClaimOf {
    pub(super) subject: String,
    pub(super) worker: String,
    /// Tells two claims of one worker apart.
    pub(super) claim: String,
}

impl ClaimOf {
    fn held(&self) -> TaskClaim {
        TaskClaim::Held {
            worker: self.worker.clone(),
            claim: self.claim.clone(),
        }
    }

    fn is_held_in(&self, stored: &StoredClaim) -> bool {
        matches!(stored, StoredClaim::Value { claim: TaskClaim::Held { claim, .. }, .. }
            if *claim == self.claim)
    }
}

/// A claim that was taken, with the clock of its times.
#[derive(Debug)]
pub(super) struct TakenClaim {
    pub(super) of: ClaimOf,
    lease: Lease,
    origin: BootTime,
    terms: LeaseTerms,
}

/// Claims what is offered; `None` where somebody else was quicker. An error says that it may still be offered:
/// whoever confirmed that it was handed out would leave it to nobody.
pub(super) fn claim(
    engine: &Arc<dyn Engine>,
    of: ClaimOf,
    terms: LeaseTerms,
) -> Result<Option<TakenClaim>, EngineError> {
    let stored = read_claim(engine, &of.subject)?;
    let StoredClaim::Value {
        seq,
        claim: TaskClaim::Offered { .. },
    } = stored
    else {
        return Ok(None);
    };
    let origin = BootTime::now();
    let taken = |seq, of: ClaimOf| TakenClaim {
        lease: Lease::taken(terms, of.claim.clone(), Duration::ZERO, seq),
        of,
        origin,
        terms,
    };
    match write_claim(engine, &of.subject, seq, Some(terms.ttl), &of.held()) {
        Ok(seq) => Ok(Some(taken(seq, of))),
        Err(EngineError::Conflict) => Ok(None),
        // It may have been taken: what is stored tells.
        Err(EngineError::Timeout) => match read_claim(engine, &of.subject)? {
            stored if of.is_held_in(&stored) => Ok(Some(taken(stored.seq(), of))),
            StoredClaim::Value {
                claim: TaskClaim::Offered { .. },
                ..
            } => Err(EngineError::Timeout),
            _ => Ok(None),
        },
        Err(error) => Err(error),
    }
}

struct KeptClaim {
    lease: Lease,
    /// What is written instead of the claim once the attempt is over.
    result: Option<TaskClaim>,
    end: Option<LeaseEnd>,
}

struct KeeperShared {
    engine: Arc<dyn Engine>,
    of: ClaimOf,
    terms: LeaseTerms,
    origin: BootTime,
    kept: Mutex<KeptClaim>,
    changed: Condvar,
    clock: LeaseClock,
    control: Control,
    ending: Arc<Ending>,
}

/// The thread that keeps a claim.
pub(super) struct Keeper {
    shared: Arc<KeeperShared>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(super) fn start(
        engine: Arc<dyn Engine>,
        taken: TakenClaim,
        clock: LeaseClock,
        control: Control,
        ending: Arc<Ending>,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(KeeperShared {
            engine,
            of: taken.of,
            terms: taken.terms,
            origin: taken.origin,
            kept: Mutex::new(KeptClaim {
                lease: taken.lease,
                result: None,
                end: None,
            }),
            changed: Condvar::new(),
            clock,
            control,
            ending,
        });
        shared.tell_deadline(&shared.kept());
        let run = shared.clone();
        let thread = std::thread::Builder::new().name("lease".to_owned());
        let thread = thread.spawn(move || run.keep())?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// How it ended, where it has: then the attempt is in vain.
    pub(super) fn end(&self) -> Option<LeaseEnd> {
        self.shared.kept().end
    }

    /// Hands in what the attempt came to; waits until that is stored, or in vain.
    pub(super) fn hand_in(mut self, result: serde_json::Value) -> LeaseEnd {
        {
            let mut kept = self.shared.kept();
            kept.result = Some(TaskClaim::Done {
                worker: self.shared.of.worker.clone(),
                claim: self.shared.of.claim.clone(),
                result: Box::new(result),
            });
            kept.lease.finish(self.shared.origin.elapsed());
        }
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
        self.shared.kept().end.unwrap_or(LeaseEnd::GivenUp)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.shared.kept().end.get_or_insert(LeaseEnd::GivenUp);
            self.shared.changed.notify_all();
        }
    }
}

impl KeeperShared {
    fn kept(&self) -> MutexGuard<'_, KeptClaim> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The agent may work until the claim has to be confirmed again.
    fn tell_deadline(&self, kept: &KeptClaim) {
        self.clock.renew(TreeLease {
            until: self.origin + kept.lease.deadline(),
            kill_after: self.terms.frozen_limit,
        });
        self.control.lease_renewed();
    }

    fn keep(&self) {
        loop {
            let mut kept = self.kept();
            if kept.end.is_some() {
                return;
            }
            let now = self.origin.elapsed();
            if !self.ending.waits() {
                kept.lease.leave();
                if now >= kept.lease.deadline() {
                    // An agent that stands still would do so until the engine is back.
                    self.control.kill();
                }
            }
            match kept.lease.act(now) {
                LeaseAct::Wait { until } => {
                    // Waits stand still while the machine sleeps, and leases do not.
                    let left = until.saturating_sub(now).min(LOOK);
                    let waited = self.changed.wait_timeout(kept, left);
                    drop(waited);
                }
                LeaseAct::Renew { expect } => {
                    let claim = kept.result.clone();
                    drop(kept);
                    self.renew(expect, claim);
                }
                LeaseAct::ReadBack => {
                    drop(kept);
                    self.read_back();
                }
                LeaseAct::End(end) => {
                    kept.end = Some(end);
                    drop(kept);
                    if end != LeaseEnd::HandedIn {
                        warn!(
                            subject = self.of.subject,
                            ?end,
                            "the task is not ours any more"
                        );
                        self.control.kill();
                    }
                    return;
                }
            }
        }
    }

    fn renew(&self, expect: u64, result: Option<TaskClaim>) {
        let sent = self.origin.elapsed();
        let ttl = result.is_none().then_some(self.terms.ttl);
        let claim = result.unwrap_or_else(|| self.of.held());
        let answer = write_claim(&self.engine, &self.of.subject, expect, ttl, &claim);
        let now = self.origin.elapsed();
        self.ending.heard(&answer);
        let mut kept = self.kept();
        match answer {
            Ok(seq) if ttl.is_some() && kept.result.is_some() => {
                // The attempt was over while its claim was renewed: the result is still to be written.
                kept.lease.renewed_claim(sent, seq, now);
            }
            Ok(seq) => {
                kept.lease.renewed(sent, seq);
                self.tell_deadline(&kept);
            }
            Err(EngineError::Conflict) => {
                info!(subject = self.of.subject, "renewal refused: reading back");
                kept.lease.failed(now, WriteFailure::Refused);
            }
            Err(EngineError::KeyRevoked(_)) => {
                // Nobody lets it renew or hand in anything any more.
                kept.end.get_or_insert(LeaseEnd::GivenUp);
                drop(kept);
                self.control.kill();
            }
            Err(error) => {
                debug!(subject = self.of.subject, %error, "renewal without an answer");
                kept.lease.failed(now, WriteFailure::Unanswered);
            }
        }
    }

    fn read_back(&self) {
        let read = read_claim(&self.engine, &self.of.subject);
        let now = self.origin.elapsed();
        self.ending.heard(&read);
        match read {
            Ok(stored) => self.kept().lease.read(now, &stored),
            Err(_) => self.kept().lease.not_read(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use descartes_bridge::memory::{LostMessage, MemoryServer};

    /// An offer, and who has taken it.
    fn taken() -> (MemoryServer, Arc<dyn Engine>, TakenClaim) {
        let server = MemoryServer::new();
        let engine: Arc<dyn Engine> = Arc::new(server.connect());
        let subject = descartes_bridge::subject::task("loop", "7", 1);
        let offered = serde_json::to_vec(&TaskClaim::Offered { attempt: 1 }).unwrap();
        engine.put(&subject, None, None, &offered).unwrap();
        let of = ClaimOf {
            subject,
            worker: "here".to_owned(),
            claim: "here-1".to_owned(),
        };
        let taken = claim(&engine, of, LeaseTerms::default()).unwrap();
        (server, engine, taken.unwrap())
    }

    /// Whoever has the task meanwhile; with nobody, it goes on where it was.
    #[test]
    fn who_slept_for_three_leases_stands_still_at_once_and_hands_nothing_in_that_others_do() {
        for round in 0..20 {
            let is_given_away = round % 4 != 0;
            let (server, engine, taken) = taken();
            let subject = taken.of.subject.clone();
            let clock = LeaseClock::default();
            let (control, ending) = (Control::default(), Arc::new(Ending::default()));
            let keeper =
                Keeper::start(engine.clone(), taken, clock.clone(), control, ending).unwrap();
            assert!(!clock.is_frozen());
            let sleep = LeaseTerms::default().ttl * 3;
            server.advance(sleep);
            if is_given_away {
                let stored = read_claim(&engine, &subject).unwrap();
                assert!(matches!(stored, StoredClaim::Lapsed { .. }));
                let closed = crate::tasks::fleet::stored::closed_now(false);
                write_claim(&engine, &subject, stored.seq(), None, &closed).unwrap();
            }
            descartes_proc::seem_to_sleep(sleep);
            assert!(clock.has_stood_still());
            let end = match is_given_away {
                true => LeaseEnd::Fenced,
                false => LeaseEnd::HandedIn,
            };
            assert_eq!(keeper.hand_in(serde_json::Value::Null), end, "{round}");
        }
    }

    /// What becomes of an offer whose claim gets lost on the way there or back, then of the same offer again.
    #[test]
    fn an_offer_whose_claim_was_lost_on_the_way_stays_an_offer() {
        let rows = [
            (None, Ok(true), Ok(false)),
            (Some(LostMessage::Answer), Ok(true), Ok(false)),
            (
                Some(LostMessage::Request),
                Err(EngineError::Timeout),
                Ok(true),
            ),
        ];
        for (lost, first, again) in rows {
            let server = MemoryServer::new();
            let engine = server.connect();
            let subject = descartes_bridge::subject::task("loop", "7", 1);
            let offered = serde_json::to_vec(&TaskClaim::Offered { attempt: 1 }).unwrap();
            engine.put(&subject, None, None, &offered).unwrap();
            if let Some(lost) = lost {
                engine.lose_next(lost);
            }
            let engine: Arc<dyn Engine> = Arc::new(engine);
            let claimed = |name: &str| {
                let of = ClaimOf {
                    subject: subject.clone(),
                    worker: "here".to_owned(),
                    claim: name.to_owned(),
                };
                claim(&engine, of, LeaseTerms::default()).map(|taken| taken.is_some())
            };
            assert_eq!(claimed("a"), first, "{lost:?}");
            assert_eq!(claimed("b"), again, "{lost:?}");
        }
    }
}
