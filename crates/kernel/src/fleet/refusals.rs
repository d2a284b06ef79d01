//! How a worker asks for offers after it was handed some that it does not take.

use std::time::Duration;

/// So long it asks for nothing, and what it gave back goes to workers that wait.
const PAUSE: Duration = Duration::from_secs(2);
/// What it refused longer ago says nothing about what it is offered now.
const RECENT: Duration = Duration::from_secs(60);
/// So many offers are looked through at once, where others than those that it takes are in the queue.
const LOOK_THROUGH: usize = 64;

/// Offers that a worker gave back. Times are of a clock that nobody sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferRefusals {
    last: Option<(Duration, String)>,
    pauses_until: Duration,
}

impl OfferRefusals {
    /// It gave an offer back, and why; true where that is to be told.
    pub fn refused(&mut self, now: Duration, why: &str) -> bool {
        let is_new = self.why(now) != Some(why);
        self.last = Some((now, why.to_owned()));
        is_new
    }

    /// Nothing of what it was handed at once was for it: others get a chance.
    pub fn pause(&mut self, now: Duration) {
        self.pauses_until = now + PAUSE;
    }

    /// Whether it asks for nothing now.
    pub fn pauses(&self, now: Duration) -> bool {
        now < self.pauses_until
    }

    /// How many offers it asks for at once: what it gives back is handed out first, and would hide the rest.
    pub fn batch(&self, now: Duration) -> usize {
        match self.why(now) {
            Some(_) => LOOK_THROUGH,
            None => 1,
        }
    }

    /// Why it did not take an offer lately.
    pub fn why(&self, now: Duration) -> Option<&str> {
        let (at, why) = self.last.as_ref()?;
        (now.saturating_sub(*at) < RECENT).then_some(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn what_is_not_for_a_worker_is_left_to_others_and_does_not_hide_what_is() {
        let mut refusals = OfferRefusals::default();
        assert_eq!((refusals.batch(at(5)), refusals.pauses(at(5))), (1, false));
        assert!(refusals.refused(at(5), "not my repository"));
        assert_eq!(refusals.batch(at(5)), LOOK_THROUGH);
        assert!(!refusals.pauses(at(5)), "it took another one of them");
        refusals.pause(at(5));
        assert_eq!([6, 7].map(|now| refusals.pauses(at(now))), [true, false]);
        // The same again is told once, while it is known.
        assert!(!refusals.refused(at(7), "not my repository"));
        assert!(refusals.refused(at(8), "no sandbox"));
        assert_eq!(refusals.why(at(67)), Some("no sandbox"));
        assert_eq!((refusals.why(at(68)), refusals.batch(at(68))), (None, 1));
        assert!(refusals.refused(at(70), "no sandbox"));
    }
}
