//! Whether an attempt is offered anew, or taken up where an earlier host of its loop left it.

use serde::{Deserialize, Serialize};

use super::claim::ClaimState;

/// The last offer of a task that the journal knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownOffer {
    pub attempt: u32,
    pub epoch: u64,
}

/// What is done for an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferStep {
    /// Offer it under a number that was never used.
    Offer { epoch: u64, when: OfferTime },
    /// It is offered, held or done already.
    Attach { epoch: u64 },
    /// An offer of an earlier attempt is taken back first, then this one is offered.
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
pub fn offer_step(known: Option<KnownOffer>, attempt: u32, stored: ClaimState) -> OfferStep {
    let Some(known) = known else {
        let when = OfferTime::Now;
        return OfferStep::Offer { epoch: 1, when };
    };
    let next = |when| OfferStep::Offer {
        epoch: known.epoch + 1,
        when,
    };
    match stored {
        ClaimState::Accepted | ClaimState::Closed => next(OfferTime::Now),
        ClaimState::ForceClosed => next(OfferTime::AfterLease),
        _ if known.attempt == attempt => OfferStep::Attach { epoch: known.epoch },
        _ => OfferStep::Replace {
            close: known.epoch,
            forced: is_at_work(stored),
        },
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

    #[test]
    fn an_attempt_under_way_is_taken_up_and_no_number_is_used_twice() {
        use ClaimState::{
            Accepted, Closed, Done, ForceClosed, Held, Lapsed, Nothing, Offered, Recalled,
        };
        let known = |attempt| Some(KnownOffer { attempt, epoch: 4 });
        let attach = OfferStep::Attach { epoch: 4 };
        let offer = |epoch, when| OfferStep::Offer { epoch, when };
        let replace = |forced| OfferStep::Replace { close: 4, forced };
        for (known, stored, step) in [
            (None, Nothing, offer(1, OfferTime::Now)),
            (known(2), Offered, attach),
            (known(2), Held, attach),
            (known(2), Done, attach),
            (known(2), Recalled, attach),
            // The worker may take its lapsed claim again: it has to be closed before another begins.
            (known(2), Lapsed, attach),
            // The engine lost its disk: whoever holds it takes it again.
            (known(2), Nothing, attach),
            (known(2), Accepted, offer(5, OfferTime::Now)),
            (known(2), Closed, offer(5, OfferTime::Now)),
            (known(2), ForceClosed, offer(5, OfferTime::AfterLease)),
            (known(1), Held, replace(true)),
            (known(1), Nothing, replace(true)),
            (known(1), Offered, replace(false)),
            (known(1), Done, replace(false)),
            (known(1), Closed, offer(5, OfferTime::Now)),
        ] {
            assert_eq!(offer_step(known, 2, stored), step, "{known:?} {stored:?}");
        }
    }
}
