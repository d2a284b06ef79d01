//! A worker's side: it holds a task as long as it renews its claim in time.

use std::time::Duration;

use super::claim::{StoredClaim, TaskClaim};

/// How long a claim holds, and how often it is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTerms {
    /// A claim that is not renewed lapses after this time.
    pub ttl: Duration,
    /// The holder stands still this much earlier than that.
    pub margin: Duration,
    /// Time between two renewals.
    pub beat: Duration,
    /// Time to the next try after a renewal without an answer.
    pub retry: Duration,
    /// A holder that stood still for so long gives up.
    pub frozen_limit: Duration,
}

impl Default for LeaseTerms {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(60),
            margin: Duration::from_secs(5),
            beat: Duration::from_secs(15),
            retry: Duration::from_secs(2),
            frozen_limit: Duration::from_secs(30 * 60),
        }
    }
}

/// Why a renewal was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFailure {
    /// Something else is stored.
    Refused,
    /// Nobody knows: it may have been taken.
    Unanswered,
}

/// What the holder has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAct {
    /// Nothing until then.
    Wait { until: Duration },
    /// Write the claim, or the result of a finished attempt, where this number is stored.
    Renew { expect: u64 },
    /// Look what is stored.
    ReadBack,
    /// It is over. Unless the result was handed in, the agent is killed and its work is not handed in.
    End(LeaseEnd),
}

/// Why a claim is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    /// What the attempt came to is stored.
    HandedIn,
    /// The coordinator has taken the task back, or somebody else has it.
    Fenced,
    /// The engine could not be reached for too long.
    GivenUp,
    /// The worker ends before the engine could take the result, which stays on its disk.
    Left,
}

/// A claim that was taken. Times are of a clock that nobody sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    terms: LeaseTerms,
    claim: String,
    /// The number of what is stored, as far as is known.
    seq: u64,
    /// When the last confirmed renewal was sent.
    confirmed: Duration,
    next: Duration,
    reads: bool,
    /// The attempt is over: from now on its result is written instead of the claim.
    finished: bool,
    end: Option<LeaseEnd>,
}

impl Lease {
    /// A claim that was sent at that time and taken with this number.
    pub fn taken(terms: LeaseTerms, claim: String, sent: Duration, seq: u64) -> Self {
        Self {
            terms,
            claim,
            seq,
            confirmed: sent,
            next: sent + terms.beat,
            reads: false,
            finished: false,
            end: None,
        }
    }

    /// The attempt is over: the next writes hand in its result.
    pub fn finish(&mut self, now: Duration) {
        self.finished = true;
        self.next = now;
    }

    /// The worker ends: where the attempt is over, handing in its result is left to the next start of the worker.
    pub fn leave(&mut self) {
        if self.finished {
            self.end.get_or_insert(LeaseEnd::Left);
        }
    }

    /// Whether the next write hands in the result.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Until when the agent may work. Past it, others may hold the task.
    pub fn deadline(&self) -> Duration {
        (self.confirmed + self.terms.ttl).saturating_sub(self.terms.margin)
    }

    /// What is to be done now.
    pub fn act(&mut self, now: Duration) -> LeaseAct {
        if now >= self.deadline() + self.terms.frozen_limit {
            self.end.get_or_insert(LeaseEnd::GivenUp);
        }
        match self.end {
            Some(end) => LeaseAct::End(end),
            None if now < self.next => LeaseAct::Wait { until: self.next },
            None if self.reads => LeaseAct::ReadBack,
            None => LeaseAct::Renew { expect: self.seq },
        }
    }

    /// A write that was sent at that time was taken.
    pub fn renewed(&mut self, sent: Duration, seq: u64) {
        self.seq = seq;
        self.confirmed = self.confirmed.max(sent);
        self.next = sent + self.terms.beat;
        self.reads = false;
        if self.finished {
            self.end = Some(LeaseEnd::HandedIn);
        }
    }

    /// The claim was renewed by a write that was sent before the attempt was over.
    pub fn renewed_claim(&mut self, sent: Duration, seq: u64, now: Duration) {
        self.renewed(sent, seq);
        if self.finished {
            (self.end, self.next) = (None, now);
        }
    }

    /// A write was not taken, or nobody knows.
    pub fn failed(&mut self, now: Duration, failure: WriteFailure) {
        match failure {
            WriteFailure::Refused => (self.reads, self.next) = (true, now),
            WriteFailure::Unanswered => self.next = now + self.terms.retry,
        }
    }

    /// What is stored could not be read.
    pub fn not_read(&mut self, now: Duration) {
        self.next = now + self.terms.retry;
    }

    /// What is stored. A value of our own, one that lapsed and one that the coordinator recalls are taken
    /// again by the next write, which names its number. Where nothing is stored the engine lost its disk:
    /// the task may have been somebody else's before, so that only the coordinator can tell. Everything
    /// else is the end.
    pub fn read(&mut self, now: Duration, stored: &StoredClaim) {
        let is_ours = match stored {
            StoredClaim::Nothing if !self.finished => {
                self.next = now + self.terms.retry;
                return;
            }
            // A result is no agent at work: the coordinator decides whether it takes it.
            StoredClaim::Nothing | StoredClaim::Lapsed { .. } => true,
            StoredClaim::Value { claim, .. } => match claim {
                TaskClaim::Held { claim, .. } => *claim == self.claim,
                TaskClaim::Recalled => true,
                TaskClaim::Done { claim, .. } if *claim == self.claim => {
                    // A write without an answer was taken.
                    self.end = Some(LeaseEnd::HandedIn);
                    return;
                }
                TaskClaim::Offered { .. }
                | TaskClaim::Done { .. }
                | TaskClaim::Accepted
                | TaskClaim::Closed { .. } => false,
            },
        };
        match is_ours {
            true => {
                self.seq = stored.seq();
                self.reads = false;
                self.next = now;
            }
            false => self.end = Some(LeaseEnd::Fenced),
        }
    }
}

/// What a worker does with a result that it has handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandedIn {
    /// It is kept: the coordinator has not taken it yet.
    Keep,
    /// The engine lost it: it is written again where this number is stored.
    WriteAgain { expect: u64 },
    /// The coordinator has it, or does not want it any more.
    Forget,
}

/// Decides that from what is stored.
pub fn handed_in(claim: &str, stored: &StoredClaim) -> HandedIn {
    match stored {
        StoredClaim::Nothing | StoredClaim::Lapsed { .. } => HandedIn::WriteAgain {
            expect: stored.seq(),
        },
        StoredClaim::Value { seq, claim: value } => match value {
            TaskClaim::Done { claim: theirs, .. } if theirs == claim => HandedIn::Keep,
            // Its process was killed before it could hand it in.
            TaskClaim::Held { claim: theirs, .. } if theirs == claim => {
                HandedIn::WriteAgain { expect: *seq }
            }
            TaskClaim::Recalled => HandedIn::WriteAgain { expect: *seq },
            _ => HandedIn::Forget,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finished_attempt_is_handed_in_until_its_coordinator_has_it_or_wants_it_no_more() {
        let worker = || "w".to_owned();
        let held = |claim: &str| TaskClaim::Held {
            worker: worker(),
            claim: claim.to_owned(),
        };
        let done = |claim: &str| TaskClaim::Done {
            worker: worker(),
            claim: claim.to_owned(),
            result: Box::default(),
        };
        let value = |claim| StoredClaim::Value { seq: 7, claim };
        let again = |expect| HandedIn::WriteAgain { expect };
        for (stored, then) in [
            (value(done("w-1")), HandedIn::Keep),
            (value(held("w-1")), again(7)),
            (value(TaskClaim::Recalled), again(7)),
            (StoredClaim::Lapsed { seq: 7 }, again(7)),
            (StoredClaim::Nothing, again(0)),
            (value(TaskClaim::Accepted), HandedIn::Forget),
            (
                value(TaskClaim::closed(true, jiff::Timestamp::UNIX_EPOCH, None)),
                HandedIn::Forget,
            ),
            (value(held("v-1")), HandedIn::Forget),
            (value(done("w-2")), HandedIn::Forget),
            (value(TaskClaim::Offered { attempt: 1 }), HandedIn::Forget),
        ] {
            assert_eq!(handed_in("w-1", &stored), then, "{stored:?}");
        }
    }
}
