//! Simulated workers: pull, claim, beat, hand in.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;
use std::time::{Duration, Instant};

use descartes_bridge::{EngineError, EngineUrl, EntryBody};
use futures_util::future::join_all;
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use super::order::{SimOrder, SimState, lane, now_us};
use crate::nats::connection::Connection;
use crate::nats::{offers, values};

const PULL_WAIT: Duration = Duration::from_secs(30);
/// Connections that are made at the same time.
const CONNECTING: usize = 16;

const RETRY_DELAY: Duration = Duration::from_millis(200);

/// What all workers of a process came to.
#[derive(Debug, Default, Serialize)]
struct Counts {
    claimed: u64,
    lost_race: u64,
    done: u64,
    /// Leases that had lapsed and were taken again by their own holder.
    retaken: u64,
    /// Work that was given up: somebody else has it, or it was closed.
    fenced: u64,
    /// Results that were refused.
    refused_results: u64,
}

struct Worker {
    connection: Connection,
    name: String,
    counts: Rc<RefCell<Counts>>,
}

/// A task that this worker holds.
struct HeldTask {
    order: SimOrder,
    seq: u64,
}

pub async fn run(
    engine: &str,
    name: &str,
    count: usize,
    begin: oneshot::Receiver<()>,
    end: oneshot::Receiver<()>,
) -> Result<String, String> {
    let url: EngineUrl = engine.parse().map_err(|error| format!("{error}"))?;
    let counts = Rc::new(RefCell::new(Counts::default()));
    let local = LocalSet::new();
    local
        .run_until(async {
            let mut workers = Vec::new();
            while workers.len() < count {
                let more = CONNECTING.min(count - workers.len());
                let opened = join_all((0..more).map(|_| Connection::open(&url))).await;
                for connection in opened {
                    workers.push(Worker {
                        connection: connection?,
                        name: format!("{name}-{}", workers.len()),
                        counts: Rc::clone(&counts),
                    });
                }
            }
            // Who measures waits for this line.
            let mut out = std::io::stdout();
            drop(out.write_all(b"ready\n").and_then(|()| out.flush()));
            drop(begin.await);
            for worker in workers {
                tokio::task::spawn_local(worker.run());
            }
            drop(end.await);
            Ok::<_, String>(())
        })
        .await?;
    let report = serde_json::to_string(&*counts.borrow());
    report.map_err(|error| error.to_string())
}

impl Worker {
    async fn run(self) {
        let lanes = [lane()];
        loop {
            match offers::pull(&self.connection, &lanes, 1, PULL_WAIT).await {
                Ok(pulled) => {
                    for offer in pulled {
                        if let Ok(order) = serde_json::from_slice(&offer.value) {
                            self.take(order, &offer.token).await;
                        }
                    }
                }
                Err(_) => tokio::time::sleep(RETRY_DELAY).await,
            }
        }
    }

    fn count(&self, add: impl FnOnce(&mut Counts)) {
        add(&mut self.counts.borrow_mut());
    }

    fn held(&self) -> Vec<u8> {
        let (worker, at) = (self.name.clone(), now_us());
        SimState::Held { worker, at }.bytes()
    }

    async fn take(&self, order: SimOrder, token: &str) {
        let ttl = Some(Duration::from_secs(order.ttl_s));
        let claim = values::put(
            &self.connection,
            &order.subject,
            Some(order.seq),
            ttl,
            self.held(),
        );
        let seq = match claim.await {
            Ok(seq) => Some(seq),
            // The answer may have been lost: what is there tells. What is still offered comes again.
            Err(_) => match self.stored(&order.subject).await {
                Some((_, SimState::Offered { .. })) => return,
                stored => self.own(stored),
            },
        };
        // Whoever has it: it is no longer offered. An acknowledgement that gets lost is made up for by the next one.
        drop(offers::ack(&self.connection, token).await);
        match seq {
            Some(seq) => {
                self.count(|counts| counts.claimed += 1);
                self.work(HeldTask { order, seq }).await;
            }
            None => self.count(|counts| counts.lost_race += 1),
        }
    }

    /// The number of this worker's value, where that is stored.
    fn own(&self, stored: Option<(u64, SimState)>) -> Option<u64> {
        let (seq, state) = stored?;
        state.is_held_by(&self.name).then_some(seq)
    }

    /// What is stored, with its number; asked until there is an answer.
    async fn stored(&self, subject: &str) -> Option<(u64, SimState)> {
        loop {
            match values::get(&self.connection, subject).await {
                Ok(entry) => {
                    let entry = entry?;
                    let state = SimState::parse(entry.value()?)?;
                    return Some((entry.seq, state));
                }
                Err(_) => tokio::time::sleep(RETRY_DELAY).await,
            }
        }
    }

    async fn work(&self, mut held: HeldTask) {
        let end = Instant::now() + Duration::from_millis(held.order.work_ms);
        let ttl = Duration::from_secs(held.order.ttl_s);
        let mut next_beat = Instant::now() + ttl / 4;
        loop {
            let until = end.min(next_beat);
            tokio::time::sleep_until(until.into()).await;
            let over = Instant::now() >= end;
            let (value, lease) = match over {
                true => {
                    let worker = self.name.clone();
                    (SimState::Done { worker }.bytes(), None)
                }
                false => (self.held(), Some(ttl)),
            };
            let subject = &held.order.subject;
            let put = values::put(&self.connection, subject, Some(held.seq), lease, value);
            match put.await {
                Ok(_) if over => return self.count(|counts| counts.done += 1),
                Ok(seq) => {
                    held.seq = seq;
                    next_beat = Instant::now() + ttl / 4;
                }
                Err(EngineError::Conflict) => {
                    if over {
                        self.count(|counts| counts.refused_results += 1);
                    }
                    if !self.reclaim(&mut held).await {
                        return;
                    }
                }
                Err(_) => {
                    next_beat = Instant::now() + RETRY_DELAY;
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    /// After a refusal: whether the task is still, or again, this worker's.
    async fn reclaim(&self, held: &mut HeldTask) -> bool {
        let subject = &held.order.subject;
        let stored = match values::get(&self.connection, subject).await {
            Ok(stored) => stored,
            // Asked again with the next beat.
            Err(_) => return true,
        };
        let expect = match &stored {
            None => 0,
            Some(entry) => match &entry.body {
                EntryBody::Marker => entry.seq,
                EntryBody::Value(value) => match SimState::parse(value) {
                    Some(SimState::Done { worker }) if worker == self.name => {
                        self.count(|counts| counts.done += 1);
                        return false;
                    }
                    Some(state) if state.is_held_by(&self.name) => {
                        held.seq = entry.seq;
                        return true;
                    }
                    _ => {
                        self.count(|counts| counts.fenced += 1);
                        return false;
                    }
                },
            },
        };
        let ttl = Some(Duration::from_secs(held.order.ttl_s));
        match values::put(&self.connection, subject, Some(expect), ttl, self.held()).await {
            Ok(seq) => {
                held.seq = seq;
                self.count(|counts| counts.retaken += 1);
                true
            }
            Err(EngineError::Conflict) => {
                self.count(|counts| counts.fenced += 1);
                false
            }
            Err(_) => true,
        }
    }
}
