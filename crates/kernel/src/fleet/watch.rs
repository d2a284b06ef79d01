//! A coordinator's side: what it makes of what is stored about one epoch of a task.

use std::time::Duration;

use super::claim::{ClaimState, StoredClaim};
use super::offer::is_at_work;

/// How long a coordinator waits before it takes a task back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchTerms {
    /// A claim that is not renewed lapses after this time.
    pub ttl: Duration,
    /// So much later it is looked for where no marker told of its end.
    pub slack: Duration,
    /// Once our own connection is there, or there again, holders have this time to come back first.
    pub after_outage: Duration,
    /// Somebody is told of an offer that nobody has taken for so long.
    pub untaken: Duration,
}

impl Default for WatchTerms {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(60),
            slack: Duration::from_secs(15),
            after_outage: Duration::from_secs(30),
            untaken: Duration::from_secs(30),
        }
    }
}

/// The coordinator's own connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnLink {
    /// For so long, without an interruption.
    Up {
        lasting: Duration,
    },
    Down,
}

/// What the coordinator has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchAct {
    /// Nothing until then; `None`: until something happens.
    Wait { until: Option<Duration> },
    /// Look what is stored.
    Read,
    /// Take the task back where this number is stored. Forced: its holder may be at work, and not know it.
    Close { expect: u64, forced: bool },
    /// Say that the task is still wanted of whoever held it, where nothing is stored.
    Recall,
    /// Bring in what the attempt came to; told once.
    Deliver,
    /// The attempt came to nothing; told once.
    Interrupted,
    /// Nobody has taken the offer for long; told once.
    TellUntaken,
    /// All is told.
    Over,
}

/// One epoch of a task as its coordinator sees it. Times are of a clock that nobody sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimWatch {
    terms: WatchTerms,
    state: ClaimState,
    seq: u64,
    /// When it is looked at again.
    check_at: Option<Duration>,
    /// By then a holder that did not answer when it was called stands still.
    still_at: Duration,
    untaken_at: Option<Duration>,
    /// It was read, found lapsed or gone, and may be closed.
    closes: bool,
    /// The engine lost what was stored: whoever held it is called.
    recalls: bool,
    /// A person or the scheduler does not want it any more.
    unwanted: bool,
    /// It could not be closed: what is stored has to be read before that is tried again.
    unread: bool,
    told: bool,
}

impl ClaimWatch {
    /// An epoch that was just offered, or that an earlier host left.
    pub fn new(terms: WatchTerms, now: Duration, link: OwnLink, stored: &StoredClaim) -> Self {
        let mut watch = Self {
            terms,
            state: ClaimState::Nothing,
            seq: 0,
            check_at: Some(now + terms.ttl + terms.slack),
            still_at: now,
            untaken_at: Some(now + terms.untaken),
            closes: false,
            recalls: stored.state() == ClaimState::Nothing,
            unwanted: false,
            unread: false,
            told: false,
        };
        watch.take(now, link, stored);
        watch
    }

    /// How it stands.
    pub fn state(&self) -> ClaimState {
        self.state
    }

    /// The number of what is stored.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Something was stored, as whoever follows the engine is told.
    pub fn saw(&mut self, now: Duration, link: OwnLink, stored: &StoredClaim) {
        if stored.seq() > self.seq {
            self.take(now, link, stored);
        }
    }

    /// What is stored, as it was read just now.
    pub fn read(&mut self, now: Duration, link: OwnLink, stored: &StoredClaim) {
        self.unread = false;
        let is_new = stored.seq() != self.seq || stored.state() != self.state;
        if is_new {
            self.take(now, link, stored);
        }
        match stored.state() {
            // Known already, or told by nobody else than this answer: it is nobody's now.
            ClaimState::Lapsed if self.is_due(now) => self.closes = true,
            ClaimState::Recalled if now >= self.still_at => self.closes = true,
            ClaimState::Recalled => self.check_at = Some(self.still_at),
            ClaimState::Nothing => self.recalls = true,
            ClaimState::Held if !is_new => self.check_at = Some(now + self.terms.slack),
            _ => {}
        }
    }

    /// It could not be read.
    pub fn not_read(&mut self, now: Duration) {
        self.closes = false;
        self.check_at = Some(now + self.terms.slack);
    }

    /// The engine lost what it had stored: holders are called, and have time to take their tasks again.
    pub fn lost_all(&mut self, now: Duration) {
        if self.is_told() {
            return;
        }
        (self.state, self.seq, self.closes) = (ClaimState::Nothing, 0, false);
        (self.recalls, self.check_at) = (true, Some(now + self.terms.slack));
    }

    /// What became of calling: the number of what is stored, or something else was stored, or nobody knows.
    pub fn recalled(&mut self, now: Duration, seq: Option<u64>) {
        self.recalls = false;
        match seq {
            Some(seq) => {
                (self.state, self.seq) = (ClaimState::Recalled, seq);
                self.still_at = now + self.terms.ttl + self.terms.slack;
                self.check_at = Some(self.still_at);
            }
            None => self.check_at = Some(now),
        }
    }

    /// The task is taken back as soon as the engine lets us.
    pub fn take_back(&mut self) {
        self.unwanted = true;
    }

    /// What became of closing: taken, or something else was stored, or nobody knows.
    pub fn closed(&mut self, now: Duration, taken: bool) {
        self.closes = false;
        match taken {
            true => self.state = ClaimState::Closed,
            false => (self.check_at, self.unread) = (Some(now), true),
        }
    }

    /// What is to be done now.
    pub fn act(&mut self, now: Duration) -> WatchAct {
        match self.state {
            _ if self.told => return WatchAct::Over,
            ClaimState::Done => return self.tell(WatchAct::Deliver),
            ClaimState::Closed | ClaimState::ForceClosed | ClaimState::Accepted => {
                return self.tell(WatchAct::Interrupted);
            }
            ClaimState::Nothing
            | ClaimState::Lapsed
            | ClaimState::Recalled
            | ClaimState::Offered
            | ClaimState::Held => {}
        }
        let expect = self.seq;
        if self.closes {
            // A holder that was called had the time of a lease to answer: it stands still by now.
            let forced = false;
            return WatchAct::Close { expect, forced };
        }
        if self.recalls {
            return WatchAct::Recall;
        }
        if self.is_due(now) {
            return WatchAct::Read;
        }
        if self.unwanted && !self.unread && self.state != ClaimState::Nothing {
            let forced = is_at_work(self.state);
            return WatchAct::Close { expect, forced };
        }
        if self.state == ClaimState::Offered && self.untaken_at.is_some_and(|at| now >= at) {
            self.untaken_at = None;
            return WatchAct::TellUntaken;
        }
        let untaken = self
            .untaken_at
            .filter(|_| self.state == ClaimState::Offered);
        WatchAct::Wait {
            until: self.check_at.into_iter().chain(untaken).min(),
        }
    }

    fn take(&mut self, now: Duration, link: OwnLink, stored: &StoredClaim) {
        if self.is_told() {
            return;
        }
        let state = stored.state();
        self.check_at = match (state, link) {
            (ClaimState::Held, _) => Some(now + self.terms.ttl + self.terms.slack),
            // The engine was there for us, and so for the holder, which did not renew its claim. One that
            // the engine was away for takes its claim again as soon as it can.
            (ClaimState::Lapsed, OwnLink::Up { lasting }) => {
                Some(now + self.terms.after_outage.saturating_sub(lasting))
            }
            (ClaimState::Lapsed, OwnLink::Down) => Some(now + self.terms.after_outage),
            (ClaimState::Recalled, _) => Some(now + self.terms.ttl + self.terms.slack),
            (ClaimState::Nothing, _) => Some(now + self.terms.slack),
            _ => None,
        };
        (self.state, self.seq, self.closes) = (state, stored.seq(), false);
        self.recalls = state == ClaimState::Nothing;
        if state == ClaimState::Recalled {
            self.still_at = now + self.terms.ttl + self.terms.slack;
        }
    }

    fn is_due(&self, now: Duration) -> bool {
        self.check_at.is_some_and(|at| now >= at)
    }

    fn is_told(&self) -> bool {
        self.told || self.state == ClaimState::Done
    }

    fn tell(&mut self, act: WatchAct) -> WatchAct {
        self.told = true;
        act
    }
}

#[cfg(test)]
mod tests {
    use super::super::claim::TaskClaim;
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn held(seq: u64) -> StoredClaim {
        let claim = TaskClaim::Held {
            worker: "w".to_owned(),
            claim: "w-1".to_owned(),
        };
        StoredClaim::Value { seq, claim }
    }

    /// When a claim that lapsed at 100 s is read to be taken back.
    fn looked_at(link: OwnLink) -> Duration {
        let terms = WatchTerms::default();
        let mut watch = ClaimWatch::new(terms, at(40), OwnLink::Up { lasting: at(1) }, &held(1));
        watch.saw(at(100), link, &StoredClaim::Lapsed { seq: 2 });
        match watch.act(at(100)) {
            WatchAct::Read => at(100),
            WatchAct::Wait { until } => until.unwrap(),
            act => panic!("{act:?}"),
        }
    }

    #[test]
    fn holders_have_time_to_come_back_after_an_interruption_and_no_more_than_that() {
        for (link, seconds) in [
            // Connected once and for all.
            (OwnLink::Up { lasting: at(900) }, 100),
            // A fresh connection is no interruption: the engine was there for more than half a minute.
            (OwnLink::Up { lasting: at(61) }, 100),
            (OwnLink::Up { lasting: at(30) }, 100),
            // It may have been away for the holder, too.
            (OwnLink::Up { lasting: at(29) }, 101),
            (OwnLink::Up { lasting: at(1) }, 129),
            (OwnLink::Up { lasting: at(0) }, 130),
            (OwnLink::Down, 130),
        ] {
            assert_eq!(looked_at(link), at(seconds), "{link:?}");
        }
    }

    #[test]
    fn a_claim_that_lapsed_before_an_earlier_host_was_back_is_not_closed_at_once() {
        let lapsed = StoredClaim::Lapsed { seq: 2 };
        let link = OwnLink::Up { lasting: at(1) };
        let mut watch = ClaimWatch::new(WatchTerms::default(), at(1), link, &lapsed);
        let until = Some(at(30));
        assert_eq!(watch.act(at(1)), WatchAct::Wait { until });
        assert_eq!(watch.act(at(30)), WatchAct::Read);
        let link = OwnLink::Up { lasting: at(30) };
        watch.read(at(30), link, &lapsed);
        let close = WatchAct::Close {
            expect: 2,
            forced: false,
        };
        assert_eq!(watch.act(at(30)), close);
    }

    #[test]
    fn a_task_that_cannot_be_taken_back_is_not_tried_without_a_pause() {
        let link = OwnLink::Up { lasting: at(900) };
        let mut watch = ClaimWatch::new(WatchTerms::default(), at(0), link, &held(1));
        watch.take_back();
        let close = WatchAct::Close {
            expect: 1,
            forced: true,
        };
        assert_eq!(watch.act(at(1)), close);
        // The engine is away.
        watch.closed(at(1), false);
        assert_eq!(watch.act(at(1)), WatchAct::Read);
        watch.not_read(at(1));
        let until = Some(at(1) + WatchTerms::default().slack);
        assert_eq!(watch.act(at(1)), WatchAct::Wait { until });
        assert_eq!(watch.act(at(16)), WatchAct::Read);
        watch.read(at(16), OwnLink::Up { lasting: at(1) }, &held(1));
        assert_eq!(watch.act(at(16)), close);
    }
}
