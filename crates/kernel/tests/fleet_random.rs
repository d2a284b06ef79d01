//! Workers and a coordinator over an engine that delays, loses and repeats messages, with parties that
//! stand still, coordinators that die and a disk that is emptied: never two agents at work on one task,
//! every attempt accepted once, and nothing lost.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::time::Duration;

use descartes_kernel::fleet::{
    ClaimWatch, FoundOffer, HandedIn, KnownOffer, Lease, LeaseAct, LeaseEnd, LeaseTerms, OfferStep,
    OfferTime, OwnLink, StoredClaim, TaskClaim, WatchAct, WatchTerms, WriteFailure, handed_in,
    offer_step,
};
use proptest::prelude::*;
use serde_json::Value;

const TIMEOUT: u64 = 8;
const WORKERS: usize = 3;
const ATTEMPTS: u32 = 3;
/// Nobody looks after the connection: what gets lost are messages.
const STEADY: OwnLink = OwnLink::Up {
    lasting: Duration::MAX,
};

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A generator of chances that a case can be repeated with.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

#[derive(Default)]
struct Engine {
    last: u64,
    /// Another after each loss of its disk.
    memory: u64,
    stored: BTreeMap<u64, (u64, Option<TaskClaim>, Option<u64>)>,
}

impl Engine {
    fn expire(&mut self, now: u64) {
        for (seq, claim, until) in self.stored.values_mut() {
            if until.is_some_and(|until| now >= until) {
                self.last += 1;
                (*seq, *claim, *until) = (self.last, None, None);
            }
        }
    }

    fn get(&self, epoch: u64) -> StoredClaim {
        match self.stored.get(&epoch) {
            None => StoredClaim::Nothing,
            Some((seq, None, _)) => StoredClaim::Lapsed { seq: *seq },
            Some((seq, Some(claim), _)) => StoredClaim::Value {
                seq: *seq,
                claim: claim.clone(),
            },
        }
    }

    fn is_offered_beyond(&self, epoch: u64) -> bool {
        let mut later = self.stored.range(epoch + 1..);
        later.any(|(_, (_, claim, _))| matches!(claim, Some(TaskClaim::Offered { .. })))
    }

    fn put(&mut self, now: u64, epoch: u64, expect: u64, claim: &TaskClaim) -> Result<u64, ()> {
        if self.get(epoch).seq() != expect {
            return Err(());
        }
        self.last += 1;
        let ttl = matches!(claim, TaskClaim::Held { .. }).then_some(now + 60);
        self.stored
            .insert(epoch, (self.last, Some(claim.clone()), ttl));
        Ok(self.last)
    }
}

#[derive(Clone)]
enum Ask {
    Put(u64, u64, TaskClaim),
    Get(u64),
}

#[derive(Clone)]
enum Answer {
    Put(Result<u64, WriteFailure>),
    Got(Option<StoredClaim>),
}

/// A call under way: when the engine gets it (twice, if it is repeated), and when the answer comes back.
struct Call {
    ask: Ask,
    sent: u64,
    arrives: Vec<u64>,
    travel: u64,
    answer: Option<(u64, Answer)>,
}

#[derive(Default)]
struct Party {
    call: Option<Call>,
    stopped_until: u64,
}

enum Doing {
    Nothing,
    /// Waits whether its claim was taken.
    Claiming {
        epoch: u64,
        sent: u64,
    },
    Working {
        epoch: u64,
        lease: Lease,
        left: u64,
    },
    Keeping {
        epoch: u64,
    },
}

struct Worker {
    party: Party,
    doing: Doing,
    claims: u64,
    name: String,
    next_look: u64,
    /// What its guard was told last.
    deadline: u64,
}

impl Worker {
    fn claim(&self) -> String {
        format!("{}-{}", self.name, self.claims)
    }

    fn is_agent_at_work(&self, now: u64) -> bool {
        let unfinished =
            matches!(&self.doing, Doing::Working { lease, .. } if !lease.is_finished());
        unfinished && now < self.deadline
    }
}

struct Coordinator {
    party: Party,
    journal: Vec<KnownOffer>,
    accepted: Vec<u32>,
    attempt: u32,
    /// That of the engine, as it was when it began.
    memory: u64,
    epoch: u64,
    watch: Option<ClaimWatch>,
    step: Step,
    /// The engine lost its disk, and it has not heard of it.
    reset: bool,
}

enum Step {
    Look,
    Offer(u64),
    CloseFirst,
    Wait(u64, u64),
    Watch,
    Settle,
}

struct World {
    now: u64,
    chance: Chance,
    faults: bool,
    engine: Engine,
    workers: Vec<Worker>,
    boss: Coordinator,
}

impl World {
    fn send(&mut self, ask: Ask) -> Call {
        let faulty = self.faults && self.chance.below(4) == 0;
        let delay = if faulty {
            self.chance.below(70)
        } else {
            self.chance.below(2)
        };
        let mut arrives = vec![self.now + delay];
        match self.chance.below(12) {
            0 if self.faults => arrives.clear(),
            1 if self.faults => arrives.push(self.now + delay + self.chance.below(30)),
            _ => {}
        }
        let back = if self.faults && self.chance.below(8) == 0 {
            1000
        } else {
            self.chance.below(2)
        };
        Call {
            ask,
            sent: self.now,
            arrives,
            travel: back,
            answer: None,
        }
    }

    /// The engine works off what has arrived, also where nobody waits for the answer any more.
    fn serve(engine: &mut Engine, now: u64, call: &mut Call) {
        let due: Vec<u64> = call
            .arrives
            .iter()
            .copied()
            .filter(|at| *at <= now)
            .collect();
        call.arrives.retain(|at| *at > now);
        for _ in due {
            let answer = match &call.ask {
                Ask::Put(epoch, expect, claim) => {
                    let done = engine.put(now, *epoch, *expect, claim);
                    Answer::Put(done.map_err(|()| WriteFailure::Refused))
                }
                Ask::Get(epoch) => Answer::Got(Some(engine.get(*epoch))),
            };
            call.answer = Some((now + call.travel, answer));
        }
    }

    fn answer(call: &Call, now: u64) -> Option<Answer> {
        match &call.answer {
            Some((when, answer)) if *when <= now => Some(answer.clone()),
            _ if now >= call.sent + TIMEOUT => Some(match call.ask {
                Ask::Put(..) => Answer::Put(Err(WriteFailure::Unanswered)),
                Ask::Get(_) => Answer::Got(None),
            }),
            _ => None,
        }
    }

    fn second(&mut self, late: &mut Vec<Call>) {
        self.now += 1;
        self.engine.expire(self.now);
        late.iter_mut()
            .for_each(|call| Self::serve(&mut self.engine, self.now, call));
        late.retain(|call| !call.arrives.is_empty());
        if self.faults && self.chance.below(400) == 0 {
            // Everything is gone; numbers go on, so that none of before fits what is stored later.
            self.engine = Engine {
                last: self.engine.last,
                memory: self.engine.memory + 1,
                ..Engine::default()
            };
            self.boss.reset = true;
            // What was on its way to a server that died is gone with it.
            late.clear();
            let workers = self.workers.iter_mut().map(|worker| &mut worker.party);
            for party in workers.chain([&mut self.boss.party]) {
                if let Some(call) = &mut party.call {
                    (call.arrives, call.answer) = (Vec::new(), None);
                }
            }
        }
        for index in 0..WORKERS {
            let mut worker = std::mem::replace(&mut self.workers[index], new_worker("gone"));
            self.worker(&mut worker, late);
            self.workers[index] = worker;
        }
        self.coordinator(late);
        let at_work = self
            .workers
            .iter()
            .filter(|worker| worker.is_agent_at_work(self.now));
        assert!(at_work.count() <= 1, "two agents at work at {}", self.now);
    }

    fn take_answer(
        &mut self,
        party: &mut Party,
        late: &mut Vec<Call>,
    ) -> Option<(Ask, u64, Answer)> {
        if let Some(call) = &mut party.call {
            Self::serve(&mut self.engine, self.now, call);
        }
        if self.now < party.stopped_until {
            return None;
        }
        let answer = Self::answer(party.call.as_ref()?, self.now)?;
        let call = party.call.take().unwrap();
        let (ask, sent) = (call.ask.clone(), call.sent);
        if !call.arrives.is_empty() {
            late.push(call);
        }
        Some((ask, sent, answer))
    }

    fn worker(&mut self, worker: &mut Worker, late: &mut Vec<Call>) {
        if self.faults && self.chance.below(200) == 0 {
            worker.party.stopped_until = self.now + self.chance.below(200);
        }
        if let Doing::Working { left, .. } = &mut worker.doing
            && self.now < worker.deadline
        {
            *left = left.saturating_sub(1);
        }
        let answer = self.take_answer(&mut worker.party, late);
        if self.now < worker.party.stopped_until || worker.party.call.is_some() {
            return;
        }
        let now = at(self.now);
        let claim = worker.claim();
        if let Some((ask, sent, answer)) = answer {
            heard(worker, now, &claim, &ask, sent, &answer);
        }
        if let Doing::Working { lease, .. } = &worker.doing {
            worker.deadline = lease.deadline().as_secs();
        }
        let held = TaskClaim::Held {
            worker: worker.name.clone(),
            claim: claim.clone(),
        };
        let done = TaskClaim::Done {
            worker: worker.name.clone(),
            claim: claim.clone(),
            result: Box::new(Value::Null),
        };
        let ask = match &mut worker.doing {
            Doing::Nothing => {
                // What is offered is handed to anybody, also twice.
                let offers = self.engine.stored.iter();
                let mut offers = offers
                    .filter(|(_, (_, claim, _))| matches!(claim, Some(TaskClaim::Offered { .. })));
                let Some((epoch, (seq, ..))) = offers.next() else {
                    return;
                };
                let (epoch, seq) = (*epoch, *seq);
                worker.claims += 1;
                let held = TaskClaim::Held {
                    worker: worker.name.clone(),
                    claim: worker.claim(),
                };
                let sent = self.now;
                worker.doing = Doing::Claiming { epoch, sent };
                Ask::Put(epoch, seq, held)
            }
            Doing::Claiming { epoch, .. } => Ask::Get(*epoch),
            Doing::Working { epoch, lease, left } => {
                if *left == 0 && !lease.is_finished() {
                    lease.finish(now);
                }
                match lease.act(now) {
                    LeaseAct::Wait { .. } => return,
                    LeaseAct::Renew { expect } if lease.is_finished() => {
                        Ask::Put(*epoch, expect, done)
                    }
                    LeaseAct::Renew { expect } => Ask::Put(*epoch, expect, held),
                    LeaseAct::ReadBack => Ask::Get(*epoch),
                    LeaseAct::End(LeaseEnd::HandedIn) => {
                        worker.doing = Doing::Keeping { epoch: *epoch };
                        return;
                    }
                    LeaseAct::End(_) => {
                        worker.doing = Doing::Nothing;
                        return;
                    }
                }
            }
            Doing::Keeping { epoch } if self.engine.is_offered_beyond(*epoch) => {
                // What it keeps is not wanted any more; a real worker has another slot for the offer.
                worker.doing = Doing::Nothing;
                return;
            }
            Doing::Keeping { .. } if self.now < worker.next_look => return,
            Doing::Keeping { epoch } => {
                worker.next_look = self.now + 20;
                Ask::Get(*epoch)
            }
        };
        worker.party.call = Some(self.send(ask));
    }

    fn coordinator(&mut self, late: &mut Vec<Call>) {
        let mut boss = std::mem::replace(&mut self.boss, new_boss());
        if self.faults && self.chance.below(150) == 0 {
            // Killed: only the journal is left.
            if let Some(call) = boss.party.call.take() {
                late.push(call);
            }
            boss.watch = None;
            boss.step = Step::Look;
            boss.memory = self.engine.memory;
        }
        if self.faults && self.chance.below(300) == 0 {
            boss.party.stopped_until = self.now + self.chance.below(150);
        }
        let answer = self.take_answer(&mut boss.party, late);
        if self.now >= boss.party.stopped_until && boss.party.call.is_none() {
            self.lead(&mut boss, answer);
        }
        self.boss = boss;
    }

    fn lead(&mut self, boss: &mut Coordinator, answer: Option<(Ask, u64, Answer)>) {
        let now = at(self.now);
        let known = boss.journal.last().copied();
        if boss.attempt > ATTEMPTS && !matches!(boss.step, Step::Settle) {
            return;
        }
        if std::mem::take(&mut boss.reset)
            && let Some(watch) = &mut boss.watch
        {
            watch.lost_all(now);
        }
        match (&boss.step, answer) {
            (_, None) => {}
            (Step::Look, Some((_, _, Answer::Got(Some(stored))))) => {
                let memory = self.engine.memory;
                let found = FoundOffer {
                    stored: stored.state(),
                    remembers: known.is_some_and(|known| known.memory == memory),
                };
                match offer_step(known, boss.attempt, found) {
                    OfferStep::Offer { epoch, when } => {
                        let wait = if when == OfferTime::AfterLease { 60 } else { 0 };
                        boss.step = Step::Wait(self.now + wait, epoch);
                    }
                    OfferStep::Attach { epoch } => {
                        boss.epoch = epoch;
                        boss.watch =
                            Some(ClaimWatch::new(WatchTerms::default(), now, STEADY, &stored));
                        boss.step = Step::Watch;
                    }
                    OfferStep::Replace { close, forced } => {
                        // What became of it is looked up before the next is offered.
                        boss.step = Step::CloseFirst;
                        let claim = TaskClaim::closed(forced, jiff::Timestamp::UNIX_EPOCH, None);
                        let ask = Ask::Put(close, stored.seq(), claim);
                        boss.party.call = Some(self.send(ask));
                        return;
                    }
                }
            }
            (Step::Offer(epoch), Some((_, _, Answer::Put(Ok(seq))))) => {
                boss.epoch = *epoch;
                let claim = TaskClaim::Offered {
                    attempt: boss.attempt,
                };
                let stored = StoredClaim::Value { seq, claim };
                boss.watch = Some(ClaimWatch::new(WatchTerms::default(), now, STEADY, &stored));
                boss.step = Step::Watch;
            }
            (Step::Settle, Some(_)) => {
                (boss.watch, boss.step) = (None, Step::Look);
            }
            (Step::Watch, Some((ask, _, answer))) => {
                if let Some(watch) = &mut boss.watch {
                    match (ask, answer) {
                        (_, Answer::Got(Some(stored))) => {
                            watch.read(now, STEADY, &stored);
                        }
                        (_, Answer::Got(None)) => watch.not_read(now),
                        (Ask::Put(_, _, TaskClaim::Recalled), Answer::Put(done)) => {
                            watch.recalled(now, done.ok());
                        }
                        (_, Answer::Put(done)) => watch.closed(now, done.is_ok()),
                    }
                }
            }
            // Nobody knows what became of it: it is looked up.
            (_, Some(_)) => boss.step = Step::Look,
        }
        if boss.party.call.is_some() {
            return;
        }
        let ask = match boss.step {
            Step::Look => Ask::Get(boss.journal.last().map_or(1, |known| known.epoch)),
            Step::Watch => match self.watch(boss) {
                Some(ask) => ask,
                None => return,
            },
            Step::Wait(until, epoch) => {
                if self.now >= until {
                    self.offer(boss, epoch);
                }
                return;
            }
            Step::Offer(_) | Step::CloseFirst | Step::Settle => return,
        };
        boss.party.call = Some(self.send(ask));
    }

    fn watch(&mut self, boss: &mut Coordinator) -> Option<Ask> {
        let now = at(self.now);
        let watch = boss.watch.as_mut()?;
        if self.faults && self.chance.below(500) == 0 {
            // A person does not want it as it is.
            watch.take_back();
        }
        if self.chance.below(3) > 0 {
            // What it follows comes sooner or later, or never.
            let stored = self.engine.get(boss.epoch);
            watch.saw(now, STEADY, &stored);
        }
        match watch.act(now) {
            WatchAct::Wait { .. } | WatchAct::TellUntaken | WatchAct::Over => None,
            WatchAct::Read => Some(Ask::Get(boss.epoch)),
            WatchAct::Close { expect, forced } => {
                let claim = TaskClaim::closed(forced, jiff::Timestamp::UNIX_EPOCH, None);
                Some(Ask::Put(boss.epoch, expect, claim))
            }
            WatchAct::Recall => Some(Ask::Put(boss.epoch, 0, TaskClaim::Recalled)),
            WatchAct::Interrupted => {
                // The same attempt is asked for again.
                (boss.watch, boss.step) = (None, Step::Look);
                None
            }
            WatchAct::Deliver => {
                let seq = watch.seq();
                assert!(!boss.accepted.contains(&boss.attempt), "accepted twice");
                // One record of the journal: the attempt is over, and the next one has another number.
                boss.accepted.push(boss.attempt);
                boss.attempt += 1;
                boss.step = Step::Settle;
                Some(Ask::Put(boss.epoch, seq, TaskClaim::Accepted))
            }
        }
    }

    fn offer(&mut self, boss: &mut Coordinator, epoch: u64) {
        assert!(boss.journal.iter().all(|known| known.epoch < epoch));
        let attempt = boss.attempt;
        let memory = boss.memory;
        boss.journal.push(KnownOffer {
            is_left: false,
            attempt,
            epoch,
            memory,
        });
        boss.step = Step::Offer(epoch);
        let call = self.send(Ask::Put(epoch, 0, TaskClaim::Offered { attempt }));
        boss.party.call = Some(call);
    }
}

fn heard(worker: &mut Worker, now: Duration, claim: &str, ask: &Ask, sent: u64, answer: &Answer) {
    let take = |epoch, sent, seq| Doing::Working {
        epoch,
        lease: Lease::taken(LeaseTerms::default(), claim.to_owned(), at(sent), seq),
        left: 40 + sent % 200,
    };
    match (&mut worker.doing, answer) {
        (Doing::Nothing, _) => {}
        (Doing::Claiming { epoch, sent, .. }, Answer::Put(Ok(seq))) => {
            worker.doing = take(*epoch, *sent, *seq);
        }
        // It may have been taken: what is stored tells.
        (Doing::Claiming { .. }, Answer::Put(Err(_)) | Answer::Got(None)) => {}
        (Doing::Claiming { epoch, sent, .. }, Answer::Got(Some(stored))) => {
            let ours = matches!(stored, StoredClaim::Value { claim: TaskClaim::Held { claim: theirs, .. }, .. } if theirs == claim);
            worker.doing = match ours {
                true => take(*epoch, *sent, stored.seq()),
                false => Doing::Nothing,
            };
        }
        (Doing::Working { lease, .. }, Answer::Put(Ok(seq))) => lease.renewed(at(sent), *seq),
        (Doing::Working { lease, .. }, Answer::Put(Err(failure))) => lease.failed(now, *failure),
        (Doing::Working { lease, .. }, Answer::Got(Some(stored))) => lease.read(now, stored),
        (Doing::Working { lease, .. }, Answer::Got(None)) => lease.not_read(now),
        (Doing::Keeping { epoch }, Answer::Got(Some(stored))) => match handed_in(claim, stored) {
            HandedIn::Keep => {}
            HandedIn::Forget => worker.doing = Doing::Nothing,
            HandedIn::WriteAgain { expect } => {
                let epoch = *epoch;
                let mut lease = Lease::taken(LeaseTerms::default(), claim.to_owned(), now, expect);
                lease.finish(now);
                worker.doing = Doing::Working {
                    epoch,
                    lease,
                    left: 0,
                };
            }
        },
        (Doing::Keeping { .. }, _) => {}
    }
    let _ = ask;
}

fn new_worker(name: &str) -> Worker {
    Worker {
        party: Party::default(),
        doing: Doing::Nothing,
        claims: 0,
        name: name.to_owned(),
        next_look: 0,
        deadline: 0,
    }
}

fn new_boss() -> Coordinator {
    Coordinator {
        party: Party::default(),
        journal: Vec::new(),
        accepted: Vec::new(),
        attempt: 1,
        memory: 0,
        epoch: 0,
        watch: None,
        step: Step::Look,
        reset: false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn never_two_agents_at_work_and_every_attempt_is_accepted_once(seed in 1_u64..) {
        let mut world = World {
            now: 0,
            chance: Chance(seed),
            faults: true,
            engine: Engine::default(),
            workers: (0..WORKERS).map(|n| new_worker(&format!("w{n}"))).collect(),
            boss: new_boss(),
        };
        let mut late = Vec::new();
        for _ in 0..3000 {
            world.second(&mut late);
        }
        world.faults = false;
        for _ in 0..4000 {
            world.second(&mut late);
        }
        prop_assert_eq!(&world.boss.accepted, &(1..=ATTEMPTS).collect::<Vec<_>>());
    }
}
