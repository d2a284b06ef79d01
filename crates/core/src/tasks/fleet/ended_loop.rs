//! A task loop that a person ended while no coordinator of it was there, or while the engine was away: its agents
//! on other machines are stopped. What they have done waits for whoever resumes the loop.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use descartes_bridge::{Engine, EngineError, subject};
use descartes_kernel::control::Grace;
use descartes_kernel::fleet::{EndedOffer, KnownOffer, ended_offer};
use descartes_kernel::state::LoopState;
use descartes_kernel::tasks::TasksState;
use tracing::{debug, info};

use super::coordinator::Fleet;
use super::messages::{AttemptRequest, child_name};
use super::remote_attempt::{KILL_PATIENCE, REQUEST_TIMEOUT, STOP_PATIENCE};
use super::stored::{closed_now, read_claim, write_claim};
use crate::host::ConnectEngine;

/// So many workers are talked with at once.
const AT_ONCE: usize = 16;
/// How often it is looked whether a worker has stopped.
const LOOK: Duration = Duration::from_millis(200);
/// A claim that changes all the time is left after so many tries.
const TRIES: usize = 8;

/// What became of an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum StoppedOffer {
    /// This worker stopped its agent, and handed in what there was.
    HandedIn { worker: String },
    /// Nobody was at it, and nobody begins it any more.
    TakenBack,
    /// Whoever has it does not answer: the agent stands still when its claim runs out, and is ended when the worker
    /// is there again.
    NotAnswered { worker: Option<String> },
}

impl StoppedOffer {
    /// With the worker that the journal knows, where the engine does not tell it.
    fn by(self, known: Option<String>) -> Self {
        match self {
            Self::NotAnswered { worker: None } => Self::NotAnswered { worker: known },
            other => other,
        }
    }
}

/// What became of the work of a loop that is over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoppedWork {
    /// By task, or by the wave that one agent is given. What was at rest is not in it.
    stopped: BTreeMap<String, StoppedOffer>,
    /// Agents may be at work on these, and could not be told: the worker as far as it is known.
    untold: BTreeMap<String, Option<String>>,
    why_untold: String,
    /// Offers on which nobody is at work any more.
    at_rest: Vec<(String, u64)>,
    /// The same for engines that the loop has left, which may never answer again.
    left: Vec<String>,
}

impl StoppedWork {
    /// What was stopped, in words.
    pub fn stopped(&self) -> Option<String> {
        let said = self.stopped.iter().map(|(task, stopped)| match stopped {
            StoppedOffer::HandedIn { worker } => {
                format!("{worker} stopped at task {task} and handed in its work")
            }
            StoppedOffer::TakenBack => format!("task {task} was taken back from the workers"),
            StoppedOffer::NotAnswered { worker } => format!(
                "task {task} was taken back from {}, which does not answer: its agent stands still within a minute",
                worker.as_deref().unwrap_or("its worker")
            ),
        });
        let said: Vec<String> = said.collect();
        (!said.is_empty()).then(|| said.join("; "))
    }

    /// The offers on which nobody is at work any more.
    pub fn at_rest(&self) -> &[(String, u64)] {
        &self.at_rest
    }

    /// Who may be at work for an engine that the loop has left, in words.
    pub fn left(&self) -> Option<String> {
        (!self.left.is_empty()).then(|| {
            format!(
                "agents may still be at work for an engine that the loop has left, and that does not answer ({})",
                self.left.join(", ")
            )
        })
    }

    /// Who could not be told to stop, in words.
    pub fn untold(&self) -> Option<String> {
        let whom = self.untold.iter().map(|(task, worker)| match worker {
            Some(worker) => format!("task {task} at {worker}"),
            None => format!("task {task}"),
        });
        let whom: Vec<String> = whom.collect();
        (!whom.is_empty()).then(|| {
            format!(
                "agents on other machines may still be at work and cannot be told to stop ({}): {}",
                whom.join(", "),
                self.why_untold
            )
        })
    }
}

/// An offer on which an agent on another machine may be at work, and the worker as far as the journal knows it.
type OpenOffer = (String, KnownOffer, Option<String>);

fn open_offers(tasks: &TasksState) -> Vec<OpenOffer> {
    let offers = tasks.open_offers().map(|(work, offer)| {
        let worker = tasks.workers.get(work).cloned();
        (work.to_string(), *offer, worker)
    });
    offers.collect()
}

/// Stops whoever is at work on the open offers of a loop that has no host.
pub fn stop_remote_agents(state: &LoopState, connect: &ConnectEngine, grace: Grace) -> StoppedWork {
    let mut all = stop_left(state, connect, grace);
    let config = state.config.tasks.as_ref();
    let address = config.and_then(|tasks| tasks.workers.as_deref());
    let (Some(address), Some(tasks), true) = (address, &state.tasks, state.has_open_offers())
    else {
        return all;
    };
    let open = open_offers(tasks);
    let engine = match Fleet::connect_with(connect, address) {
        Ok(engine) => engine,
        Err(error) => {
            let whom = open.into_iter().map(|(work, _, worker)| (work, worker));
            return StoppedWork {
                untold: whom.collect(),
                why_untold: error.to_string(),
                ..all
            };
        }
    };
    for some in open.chunks(AT_ONCE) {
        stop_some(&engine, &state.loop_id, some, grace, &mut all);
    }
    all
}

/// The same at engines that the loop has left.
fn stop_left(state: &LoopState, connect: &ConnectEngine, grace: Grace) -> StoppedWork {
    let mut all = StoppedWork::default();
    let mut by_engine: BTreeMap<&str, Vec<OpenOffer>> = BTreeMap::new();
    for left in state.tasks.iter().flat_map(|tasks| &tasks.left_offers) {
        let offer = (left.task.to_string(), left.offer, left.worker.clone());
        by_engine.entry(&left.engine).or_default().push(offer);
    }
    for (address, offers) in by_engine {
        match Fleet::connect_with(connect, address) {
            Ok(engine) => {
                for some in offers.chunks(AT_ONCE) {
                    stop_some(&engine, &state.loop_id, some, grace, &mut all);
                }
            }
            Err(_) => all.left.extend(offers.into_iter().map(|(work, _, worker)| {
                let at = worker
                    .map(|worker| format!(" at {worker}"))
                    .unwrap_or_default();
                format!("task {work}{at}, {address}")
            })),
        }
    }
    all
}

fn stop_some(
    engine: &Arc<dyn Engine>,
    loop_id: &str,
    some: &[OpenOffer],
    grace: Grace,
    all: &mut StoppedWork,
) {
    std::thread::scope(|scope| {
        let begin = |(work, offer, worker): &OpenOffer| {
            let (of, epoch) = (work.clone(), offer.epoch);
            let stop = move || stop_one(engine, loop_id, &of, epoch, grace);
            ((work.clone(), epoch), worker.clone(), scope.spawn(stop))
        };
        let asked: Vec<_> = some.iter().map(begin).collect();
        for ((work, epoch), worker, asking) in asked {
            let ended = || EngineError::Other("a thread has ended".to_owned());
            match asking.join().unwrap_or_else(|_| Err(ended())) {
                Ok(None) => all.at_rest.push((work, epoch)),
                Ok(Some(stopped)) => {
                    all.at_rest.push((work.clone(), epoch));
                    all.stopped.insert(work, stopped.by(worker));
                }
                Err(error) => {
                    all.why_untold = error.to_string();
                    all.untold.insert(work, worker);
                }
            }
        }
    });
}

/// `None` where nobody is at work on it.
fn stop_one(
    engine: &Arc<dyn Engine>,
    loop_id: &str,
    work: &str,
    epoch: u64,
    grace: Grace,
) -> Result<Option<StoppedOffer>, EngineError> {
    let of = subject::task(loop_id, work, epoch);
    let mut asked = None;
    for _ in 0..TRIES {
        let stored = read_claim(engine, &of)?;
        let forced = match ended_offer(stored.state()) {
            EndedOffer::AtRest => {
                return Ok(asked.map(|worker| StoppedOffer::HandedIn { worker }));
            }
            EndedOffer::TakenBack => return Ok(Some(StoppedOffer::NotAnswered { worker: asked })),
            EndedOffer::AskHolder if asked.is_none() => {
                let worker = stored.worker().unwrap_or_default().to_owned();
                let child = child_name(work, epoch);
                let holder = subject::control(loop_id, &worker, &child);
                ask_holder(engine, &of, &holder, grace)?;
                asked = Some(worker);
                continue;
            }
            EndedOffer::AskHolder => true,
            EndedOffer::Close { forced } => forced,
        };
        let claim = closed_now(forced);
        match write_claim(engine, &of, stored.seq(), None, &claim) {
            Ok(_) => {
                info!(work, epoch, state = ?stored.state(), "an offer of an ended loop was taken back");
                let worker = asked.or_else(|| stored.worker().map(str::to_owned));
                return Ok(Some(match forced {
                    true => StoppedOffer::NotAnswered { worker },
                    false => StoppedOffer::TakenBack,
                }));
            }
            // Its worker was quicker.
            Err(EngineError::Conflict) => {}
            Err(error) => return Err(error),
        }
    }
    Err(EngineError::Conflict)
}

/// Asks a worker to stop, and waits until it has handed in what it has, or does not answer.
fn ask_holder(
    engine: &Arc<dyn Engine>,
    of: &str,
    holder: &str,
    grace: Grace,
) -> Result<(), EngineError> {
    let (request, patience) = match grace {
        Grace::Ask => (AttemptRequest::Stop, STOP_PATIENCE),
        Grace::Skip => (AttemptRequest::Kill, KILL_PATIENCE),
    };
    let body = serde_json::to_vec(&request).unwrap_or_default();
    let until = Instant::now() + patience;
    let mut is_asked = false;
    while Instant::now() < until {
        if !is_asked {
            // It may be about to connect again. One that is frozen or gone finds out when it renews its claim.
            let asked = engine.request(holder, &body, REQUEST_TIMEOUT);
            is_asked = asked.is_ok();
            debug!(?asked, of, "a worker was asked to stop");
        }
        if ended_offer(read_claim(engine, of)?.state()) != EndedOffer::AskHolder {
            break;
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}
