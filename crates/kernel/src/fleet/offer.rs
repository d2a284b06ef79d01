//! Whether an attempt is offered anew, or taken up where an earlier host of its loop left it.

use serde::{Deserialize, Serialize};

use super::claim::ClaimState;

/// The last offer of a task that the journal knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownOffer {
    pub attempt: u32,
    pub epoch: u64,
    /// Tells what the engine stored then from what it stores after a loss of its disk; 0: not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory: u64,
    /// It was made at an engine that the loop has left: nobody can come back to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_left: bool,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What an engine tells about the last offer in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundOffer {
    pub stored: ClaimState,
    /// What it stored when the offer was made is still there, whoever wrote it.
    pub remembers: bool,
}

/// What is done for an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferStep {
    /// Offer it under a number that was never used.
    Offer { epoch: u64, when: OfferTime },
    /// It is offered, held or done already.
    Attach { epoch: u64 },
    /// An offer of an earlier attempt, or one that never arrived, is taken back first, then this one is
    /// offered.
    Replace { close: u64, forced: bool },
}

/// When a task may be offered again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferTime {
    Now,
    /// When a claim that was renewed a moment ago would have lapsed: until then its holder may be at
    /// work without knowing that it was taken back.
    AfterLease,
}

/// Decides that from the last offer in the journal and what is stored about it.
pub fn offer_step(known: Option<KnownOffer>, attempt: u32, found: FoundOffer) -> OfferStep {
    let FoundOffer { stored, remembers } = found;
    // Its host died before it offered anything, or a claim lapsed long ago: nobody is at work.
    let never_arrived = stored == ClaimState::Nothing && remembers;
    let Some(known) = known else {
        let when = OfferTime::Now;
        return OfferStep::Offer { epoch: 1, when };
    };
    let next = |when| OfferStep::Offer {
        epoch: known.epoch + 1,
        when,
    };
    if known.is_left {
        return next(OfferTime::Now);
    }
    match stored {
        ClaimState::Accepted | ClaimState::Closed => next(OfferTime::Now),
        ClaimState::ForceClosed => next(OfferTime::AfterLease),
        _ if known.attempt == attempt && !never_arrived => OfferStep::Attach { epoch: known.epoch },
        _ => OfferStep::Replace {
            close: known.epoch,
            forced: is_at_work(stored) && !never_arrived,
        },
    }
}

/// Whether what a worker had stored while it was at work on an offer is where the next attempt begins: only where
/// that was taken back. The result of any other is on the task's branch, which must not go back behind it.
pub fn begins_from_stored(known: &KnownOffer, stored: ClaimState) -> bool {
    !known.is_left && matches!(stored, ClaimState::Closed | ClaimState::ForceClosed)
}

/// What is done about an offer of an earlier host that nobody wants any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOffer {
    /// It is over.
    Over,
    /// It is taken back: who keeps a result of it may forget that.
    Close { forced: bool },
}

/// Decides that from what is stored about it.
pub fn left_offer(stored: ClaimState) -> LeftOffer {
    match stored {
        ClaimState::Accepted | ClaimState::Closed | ClaimState::ForceClosed => LeftOffer::Over,
        ClaimState::Nothing
        | ClaimState::Lapsed
        | ClaimState::Offered
        | ClaimState::Held
        | ClaimState::Done
        | ClaimState::Recalled => LeftOffer::Close {
            forced: is_at_work(stored),
        },
    }
}

/// What is done about an offer of a task loop that a person ended while it had no coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedOffer {
    /// Nobody is at work on it; a result waits for whoever resumes the loop.
    AtRest,
    /// Its holder is asked to stop, and hands in what it has.
    AskHolder,
    /// It is taken back, so that nobody begins it or goes on with it.
    Close { forced: bool },
    /// It was taken back from a holder that did not answer.
    TakenBack,
}

/// Decides that from what is stored about it.
pub fn ended_offer(stored: ClaimState) -> EndedOffer {
    match stored {
        ClaimState::Done | ClaimState::Accepted | ClaimState::Closed => EndedOffer::AtRest,
        ClaimState::ForceClosed => EndedOffer::TakenBack,
        ClaimState::Held => EndedOffer::AskHolder,
        ClaimState::Nothing | ClaimState::Lapsed | ClaimState::Offered | ClaimState::Recalled => {
            EndedOffer::Close {
                forced: is_at_work(stored),
            }
        }
    }
}

/// Whether an agent may be at work where this is stored.
pub(super) fn is_at_work(stored: ClaimState) -> bool {
    match stored {
        ClaimState::Held | ClaimState::Recalled | ClaimState::Nothing => true,
        ClaimState::Lapsed
        | ClaimState::Offered
        | ClaimState::Done
        | ClaimState::Accepted
        | ClaimState::Closed
        | ClaimState::ForceClosed => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use ClaimState::{
        Accepted, Closed, Done, ForceClosed, Held, Lapsed, Nothing, Offered, Recalled,
    };

    #[test]
    fn an_attempt_under_way_is_taken_up_and_no_number_is_used_twice() {
        let known = |attempt| {
            Some(KnownOffer {
                attempt,
                epoch: 4,
                memory: 7,
                is_left: false,
            })
        };
        let left = Some(KnownOffer {
            attempt: 2,
            epoch: 4,
            memory: 7,
            is_left: true,
        });
        let attach = OfferStep::Attach { epoch: 4 };
        let offer = |epoch, when| OfferStep::Offer { epoch, when };
        let replace = |forced| OfferStep::Replace { close: 4, forced };
        for (known, stored, remembers, step) in [
            (None, Nothing, true, offer(1, OfferTime::Now)),
            (known(2), Offered, true, attach),
            (known(2), Held, true, attach),
            (known(2), Done, true, attach),
            (known(2), Recalled, true, attach),
            // The worker may take its lapsed claim again: it has to be closed before another begins.
            (known(2), Lapsed, true, attach),
            // The engine lost its disk: whoever holds it takes it again.
            (known(2), Nothing, false, attach),
            (known(2), Held, false, attach),
            (known(2), Done, false, attach),
            // Its host died between its record and the offer.
            (known(2), Nothing, true, replace(false)),
            (known(2), Accepted, true, offer(5, OfferTime::Now)),
            (known(2), Closed, true, offer(5, OfferTime::Now)),
            (known(2), ForceClosed, true, offer(5, OfferTime::AfterLease)),
            (known(1), Held, true, replace(true)),
            (known(1), Nothing, false, replace(true)),
            (known(1), Nothing, true, replace(false)),
            (known(1), Offered, true, replace(false)),
            (known(1), Done, true, replace(false)),
            (known(1), Closed, true, offer(5, OfferTime::Now)),
            // Its engine is gone for good.
            (left, Nothing, false, offer(5, OfferTime::Now)),
        ] {
            let found = FoundOffer { stored, remembers };
            assert_eq!(offer_step(known, 2, found), step, "{known:?} {found:?}");
        }
    }

    #[test]
    fn what_is_stored_of_an_accepted_result_takes_no_branch_back() {
        let of = |is_left, stored| {
            let known = KnownOffer {
                attempt: 1,
                epoch: 4,
                memory: 7,
                is_left,
            };
            begins_from_stored(&known, stored)
        };
        for (stored, begins) in [
            (Closed, true),
            (ForceClosed, true),
            (Accepted, false),
            (Done, false),
            (Nothing, false),
        ] {
            assert_eq!((of(false, stored), of(true, stored)), (begins, false));
        }
    }

    #[test]
    fn an_offer_that_nobody_wants_is_closed_so_that_its_worker_stops_or_forgets() {
        let close = |forced| LeftOffer::Close { forced };
        for (stored, left) in [
            (Accepted, LeftOffer::Over),
            (Closed, LeftOffer::Over),
            (ForceClosed, LeftOffer::Over),
            (Offered, close(false)),
            (Done, close(false)),
            (Lapsed, close(false)),
            (Held, close(true)),
            (Recalled, close(true)),
            // The engine lost its disk: its holder comes back to it.
            (Nothing, close(true)),
        ] {
            assert_eq!(left_offer(stored), left, "{stored:?}");
        }
    }

    #[test]
    fn who_ends_a_loop_stops_its_agents_and_keeps_their_results() {
        let close = |forced| EndedOffer::Close { forced };
        for (stored, then) in [
            // Whoever resumes the loop takes it in.
            (Done, EndedOffer::AtRest),
            (Accepted, EndedOffer::AtRest),
            (Closed, EndedOffer::AtRest),
            (ForceClosed, EndedOffer::TakenBack),
            (Held, EndedOffer::AskHolder),
            (Offered, close(false)),
            // Its agent stands still, and would go on if its worker took it again.
            (Lapsed, close(false)),
            (Recalled, close(true)),
            (Nothing, close(true)),
        ] {
            assert_eq!(ended_offer(stored), then, "{stored:?}");
        }
    }
}
