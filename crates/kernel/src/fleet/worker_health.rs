//! Whether a worker takes offers, or rests since its machine could not make the last ones.

use std::collections::BTreeSet;
use std::time::Duration;

/// After the first attempt that it could not make; each further one in a row doubles it.
pub const FIRST_REST: Duration = Duration::from_secs(10);
const LONGEST_REST: Duration = Duration::from_secs(10 * 60);

/// How the attempts of a worker fared on its machine. Times are of a clock that nobody sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerHealth {
    first_rest: Duration,
    /// In a row.
    failures: u32,
    /// The loops that these were for.
    failed_for: BTreeSet<String>,
    resting: Option<Rest>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rest {
    until: Duration,
    why: String,
    /// The loop of which it takes nothing; none: of no loop, since attempts for several have failed.
    of: Option<String>,
}

impl WorkerHealth {
    /// Of a worker that rests so long first, [`FIRST_REST`] outside of tests.
    pub fn new(first_rest: Duration) -> Self {
        Self {
            first_rest,
            failures: 0,
            failed_for: BTreeSet::new(),
            resting: None,
        }
    }

    /// An attempt for this loop could not be made, and why. Returns how long it takes nothing.
    pub fn failed(&mut self, now: Duration, loop_id: &str, why: String) -> Duration {
        let doubled = self
            .first_rest
            .saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        let rest = doubled.min(LONGEST_REST);
        self.failures = self.failures.saturating_add(1).min(30);
        self.failed_for.insert(loop_id.to_owned());
        self.resting = Some(Rest {
            until: now + rest,
            why,
            // It may be the clone of that loop alone.
            of: (self.failed_for.len() == 1).then(|| loop_id.to_owned()),
        });
        rest
    }

    /// An attempt was made, whatever came of it.
    pub fn worked(&mut self) {
        *self = Self::new(self.first_rest);
    }

    /// Why it takes nothing now, of whatever loop.
    pub fn objection(&self, now: Duration) -> Option<&str> {
        let rest = self.rest(now).filter(|rest| rest.of.is_none())?;
        Some(&rest.why)
    }

    /// Why it takes nothing of this loop now.
    pub fn objection_to(&self, now: Duration, loop_id: &str) -> Option<&str> {
        let is_meant = |rest: &&Rest| rest.of.as_deref().is_none_or(|of| of == loop_id);
        let rest = self.rest(now).filter(is_meant)?;
        Some(&rest.why)
    }

    /// Why it takes nothing, of one loop or of all.
    pub fn resting(&self, now: Duration) -> Option<&str> {
        self.rest(now).map(|rest| &*rest.why)
    }

    fn rest(&self, now: Duration) -> Option<&Rest> {
        self.resting.as_ref().filter(|rest| now < rest.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_work_rests_longer_each_time_and_never_for_good() {
        let mut health = WorkerHealth::new(FIRST_REST);
        assert_eq!(health.objection_to(Duration::ZERO, "a"), None);
        let mut now = Duration::ZERO;
        let mut rests = Vec::new();
        for _ in 0..40 {
            let rest = health.failed(now, "a", "no git".to_owned());
            assert_eq!(health.objection_to(now, "a"), Some("no git"));
            now += rest;
            assert_eq!(health.objection_to(now, "a"), None);
            rests.push(rest.as_secs());
        }
        assert_eq!(rests[..8], [10, 20, 40, 80, 160, 320, 600, 600]);
        assert_eq!(rests[39], 600);
        health.worked();
        assert_eq!(health.objection_to(now - Duration::from_secs(1), "a"), None);
        assert_eq!(health.failed(now, "a", String::new()).as_secs(), 10);
    }

    #[test]
    fn what_fails_for_one_loop_alone_holds_up_no_other() {
        let (mut health, now) = (WorkerHealth::new(FIRST_REST), Duration::ZERO);
        health.failed(now, "a", "its clone is damaged".to_owned());
        let asked = |health: &WorkerHealth| {
            let to = |id| health.objection_to(now, id).is_some();
            (health.objection(now).is_some(), to("a"), to("b"))
        };
        assert_eq!(asked(&health), (false, true, false));
        health.failed(now, "b", "no git".to_owned());
        assert_eq!(asked(&health), (true, true, true));
        health.worked();
        assert_eq!(asked(&health), (false, false, false));
    }
}
