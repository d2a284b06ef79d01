//! Whether a worker takes offers, or rests since its machine could not make the last ones.

use std::time::Duration;

/// After the first attempt that it could not make; each further one in a row doubles it.
const FIRST_REST: Duration = Duration::from_secs(10);
const LONGEST_REST: Duration = Duration::from_secs(10 * 60);

/// How the attempts of a worker fared on its machine. Times are of a clock that nobody sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerHealth {
    /// In a row.
    failures: u32,
    resting: Option<(Duration, String)>,
}

impl WorkerHealth {
    /// Its machine could not make an attempt, and why. Returns how long it takes nothing.
    pub fn failed(&mut self, now: Duration, why: String) -> Duration {
        let doubled =
            FIRST_REST.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        let rest = doubled.min(LONGEST_REST);
        self.failures = self.failures.saturating_add(1).min(30);
        self.resting = Some((now + rest, why));
        rest
    }

    /// An attempt was made, whatever came of it.
    pub fn worked(&mut self) {
        *self = Self::default();
    }

    /// Why it takes nothing now.
    pub fn objection(&self, now: Duration) -> Option<&str> {
        let (until, why) = self.resting.as_ref()?;
        (now < *until).then_some(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_work_rests_longer_each_time_and_never_for_good() {
        let mut health = WorkerHealth::default();
        assert_eq!(health.objection(Duration::ZERO), None);
        let mut now = Duration::ZERO;
        let mut rests = Vec::new();
        for _ in 0..40 {
            let rest = health.failed(now, "no git".to_owned());
            assert_eq!(health.objection(now), Some("no git"));
            now += rest;
            assert_eq!(health.objection(now), None);
            rests.push(rest.as_secs());
        }
        assert_eq!(rests[..8], [10, 20, 40, 80, 160, 320, 600, 600]);
        assert_eq!(rests[39], 600);
        health.worked();
        assert_eq!(health.objection(now - Duration::from_secs(1)), None);
        assert_eq!(health.failed(now, String::new()).as_secs(), 10);
    }
}
