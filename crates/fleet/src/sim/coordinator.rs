//! A simulated coordinator: offers, follows, closes what lapsed, offers it again.

use std::collections::HashMap;
use std::io::Write;
use std::time::{Duration, Instant};

use descartes_bridge::{
    Delivery, EngineError, EngineUrl, EntryBody, FollowFrom, SubjectEntry, subject,
};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::order::{SimOrder, SimState, lane, now_us};
use crate::nats::connection::Connection;
use crate::nats::follow::Follower;
use crate::nats::{offers, streams, values};

/// How many tasks are put and offered at the same time where no rate is asked for.
const OFFERING: usize = 64;

/// What the coordinator does.
#[derive(Debug, Deserialize)]
pub struct SimPlan {
    engine: String,
    loop_id: String,
    tasks: usize,
    work_ms: u64,
    ttl_s: u64,
    /// Offers a second; as fast as it goes without.
    rate: Option<u64>,
    /// After so long what is not done is lost.
    limit_s: u64,
    /// After an interruption of its own, so long the holders may take their leases again.
    grace_ms: u64,
}

/// What came of it.
#[derive(Debug, Default, Serialize)]
struct SimReport {
    done: usize,
    lost: usize,
    /// Tasks with two results, or two holders in one epoch.
    twice: usize,
    /// Results of epochs that were closed.
    stale_results: usize,
    /// Epochs that were closed and offered again.
    moved: usize,
    resets: usize,
    seconds: f64,
    /// The longest time in which nothing became of any task.
    longest_gap_ms: f64,
    /// From the offer to the claim, in milliseconds.
    handout_ms: Vec<f64>,
    /// From the last beat of who vanished to the claim of the next one.
    takeover_ms: Vec<f64>,
}

#[derive(Debug, Default)]
struct SimTask {
    epoch: u64,
    offered_at: u64,
    holder: Option<String>,
    first_held: u64,
    last_beat: u64,
    lapsed_beat: Option<u64>,
    done: bool,
}

struct Coordinator {
    plan: SimPlan,
    connection: Connection,
    tasks: Vec<SimTask>,
    /// How many of them somebody has claimed.
    held: usize,
    report: SimReport,
}

/// A task's lease ran out, and nobody took it again until now.
struct Lapse {
    task: usize,
    epoch: u64,
}

pub async fn run(plan: SimPlan) -> Result<String, String> {
    let url: EngineUrl = plan.engine.parse().map_err(|error| format!("{error}"))?;
    let connection = Connection::open(&url).await?;
    let follower = follow(&connection, &plan).await?;
    say("begun\n");
    let (sender, seen) = unbounded_channel();
    tokio::spawn(follower.run(move |delivery| sender.send(delivery).is_ok()));
    let first = || SimTask {
        epoch: 1,
        ..SimTask::default()
    };
    let tasks = (0..plan.tasks).map(|_| first()).collect();
    let mut coordinator = Coordinator {
        plan,
        connection,
        tasks,
        held: 0,
        report: SimReport::default(),
    };
    coordinator.work(seen).await;
    serde_json::to_string(&coordinator.report).map_err(|error| error.to_string())
}

/// Who measures waits for this line.
fn say(line: &str) {
    let mut out = std::io::stdout();
    drop(out.write_all(line.as_bytes()).and_then(|()| out.flush()));
}

/// Also while an engine of several servers has nobody who leads.
async fn follow(connection: &Connection, plan: &SimPlan) -> Result<Follower, String> {
    let filter = subject::tasks_of(&plan.loop_id);
    let until = Instant::now() + Duration::from_secs(plan.limit_s);
    loop {
        let follower = match streams::ensure(connection).await {
            Ok(()) => Follower::start(connection.clone(), &filter, FollowFrom::Now).await,
            Err(error) => Err(error),
        };
        match follower {
            Ok(follower) => return Ok(follower),
            Err(error) if error.is_temporary() && Instant::now() < until => {
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

impl Coordinator {
    async fn work(&mut self, mut seen: UnboundedReceiver<Delivery>) {
        let begun = Instant::now();
        let mut last_seen = begun;
        let limit = tokio::time::sleep(Duration::from_secs(self.plan.limit_s));
        tokio::pin!(limit);
        let (offered, mut offers_made) = unbounded_channel();
        tokio::spawn(offer_all(self.offering(), offered));
        let (lapse, mut lapses) = unbounded_channel();
        let mut was_down = watch_losses(&self.connection, self.plan.grace_ms);
        let mut all_held = false;
        while self.report.done < self.plan.tasks {
            if !all_held && self.held == self.plan.tasks {
                all_held = true;
                say("held\n");
            }
            tokio::select! {
                () = &mut limit => break,
                Some((task, at)) = offers_made.recv() => {
                    self.tasks[task].offered_at = at;
                }
                Some(delivery) = seen.recv() => match delivery {
                    Delivery::Reset => {
                        self.report.resets += 1;
                        was_down = watch_losses(&self.connection, self.plan.grace_ms);
                    }
                    Delivery::Entry(entry) => {
                        let gap = last_seen.elapsed().as_secs_f64() * 1e3;
                        self.report.longest_gap_ms = self.report.longest_gap_ms.max(gap);
                        last_seen = Instant::now();
                        if let Some(found) = self.see(&entry) {
                            let (lapse, grace) = (lapse.clone(), was_down());
                            tokio::spawn(async move {
                                tokio::time::sleep(grace).await;
                                drop(lapse.send(found));
                            });
                        }
                    }
                },
                Some(found) = lapses.recv() => self.close(found).await,
            }
        }
        self.report.seconds = begun.elapsed().as_secs_f64();
        // A claim may be seen before the offer is confirmed.
        let handed =
            |task: &&SimTask| task.first_held > 0 && task.offered_at > 0 && task.epoch == 1;
        let handout = |task: &SimTask| task.first_held.saturating_sub(task.offered_at) as f64 / 1e3;
        self.report.handout_ms = self.tasks.iter().filter(handed).map(handout).collect();
        self.report.lost = self.tasks.iter().filter(|task| !task.done).count();
    }

    /// What somebody wrote; a lapse where it is a marker of the current epoch.
    fn see(&mut self, entry: &SubjectEntry) -> Option<Lapse> {
        let (_, name, epoch) = subject::parse_task(&entry.subject)?;
        let number: usize = name.parse().ok()?;
        let task = self.tasks.get_mut(number)?;
        let EntryBody::Value(value) = &entry.body else {
            let current = epoch == task.epoch && !task.done;
            return current.then_some(Lapse {
                task: number,
                epoch,
            });
        };
        match SimState::parse(value)? {
            SimState::Held { worker, at } => {
                match &task.holder {
                    None => {
                        match task.lapsed_beat.take() {
                            Some(beat) => {
                                let took = at.saturating_sub(beat);
                                self.report.takeover_ms.push(took as f64 / 1e3);
                            }
                            None => {
                                task.first_held = at;
                                self.held += 1;
                            }
                        }
                        task.holder = Some(worker);
                    }
                    Some(holder) if *holder != worker => self.report.twice += 1,
                    Some(_) => {}
                }
                task.last_beat = at;
            }
            SimState::Done { .. } if epoch != task.epoch => self.report.stale_results += 1,
            SimState::Done { .. } if task.done => self.report.twice += 1,
            SimState::Done { .. } => {
                task.done = true;
                self.report.done += 1;
            }
            SimState::Offered { .. } | SimState::Closed => {}
        }
        None
    }

    /// Closes an epoch whose lease ran out, unless its holder was quicker, and offers the next one.
    async fn close(&mut self, lapse: Lapse) {
        let (number, epoch) = (lapse.task, lapse.epoch);
        if self.tasks[number].done || self.tasks[number].epoch != epoch {
            return;
        }
        let name = subject::task(&self.plan.loop_id, &number.to_string(), epoch);
        let marker = match values::get(&self.connection, &name).await {
            Ok(Some(entry)) if entry.body == EntryBody::Marker => entry.seq,
            Ok(_) | Err(_) => return,
        };
        let closed = SimState::Closed.bytes();
        if values::put(&self.connection, &name, Some(marker), None, closed)
            .await
            .is_err()
        {
            return;
        }
        self.report.moved += 1;
        let task = &mut self.tasks[number];
        task.epoch += 1;
        task.holder = None;
        task.lapsed_beat = Some(task.last_beat);
        let offering = self.offering();
        if let Ok(at) = offering.offer(number, epoch + 1).await {
            self.tasks[number].offered_at = at;
        }
    }

    fn offering(&self) -> Offering {
        Offering {
            connection: self.connection.clone(),
            loop_id: self.plan.loop_id.clone(),
            tasks: self.plan.tasks,
            work_ms: self.plan.work_ms,
            ttl_s: self.plan.ttl_s,
            rate: self.plan.rate,
        }
    }
}

/// For how long a lapse is left alone: not at all, unless the own connection was lost lately.
fn watch_losses(connection: &Connection, grace_ms: u64) -> Box<dyn Fn() -> Duration + Send> {
    let link = connection.link.clone();
    let losses = link.borrow().losses;
    Box::new(move || match link.borrow().losses == losses {
        true => Duration::ZERO,
        false => Duration::from_millis(grace_ms),
    })
}

#[derive(Clone)]
struct Offering {
    connection: Connection,
    loop_id: String,
    tasks: usize,
    work_ms: u64,
    ttl_s: u64,
    rate: Option<u64>,
}

impl Offering {
    /// Puts `offered`, then the offer; the time is that of the offer.
    async fn offer(&self, task: usize, epoch: u64) -> Result<u64, EngineError> {
        let name = subject::task(&self.loop_id, &task.to_string(), epoch);
        let state = SimState::Offered { at: now_us() }.bytes();
        let put = values::put(&self.connection, &name, Some(0), None, state).await;
        let seq = match put {
            // An earlier answer was lost.
            Err(EngineError::Conflict) => values::get(&self.connection, &name)
                .await?
                .map_or(0, |entry| entry.seq),
            put => put?,
        };
        let order = SimOrder {
            subject: name,
            seq,
            work_ms: self.work_ms,
            ttl_s: self.ttl_s,
        };
        let value = serde_json::to_vec(&order).unwrap_or_default();
        let id = format!("{}-{task}-{epoch}", self.loop_id);
        let at = now_us();
        offers::offer(&self.connection, &lane(), &id, value).await?;
        Ok(at)
    }
}

type Offered = tokio::sync::mpsc::UnboundedSender<(usize, u64)>;

/// All tasks, at the rate that was asked for.
async fn offer_all(offering: Offering, offered: Offered) {
    let mut under_way: HashMap<usize, tokio::task::JoinHandle<()>> = HashMap::new();
    let mut pace = offering.rate.map(|rate| {
        tokio::time::interval(Duration::from_secs(1) / u32::try_from(rate).unwrap_or(1))
    });
    for task in 0..offering.tasks {
        if let Some(pace) = &mut pace {
            pace.tick().await;
        }
        let (offering, offered) = (offering.clone(), offered.clone());
        let one = tokio::spawn(async move {
            loop {
                match offering.offer(task, 1).await {
                    Ok(at) => {
                        offered.send((task, at)).ok();
                        return;
                    }
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                }
            }
        });
        under_way.insert(task, one);
        if let Some(before) = task
            .checked_sub(OFFERING)
            .and_then(|task| under_way.remove(&task))
        {
            drop(before.await);
        }
    }
}
