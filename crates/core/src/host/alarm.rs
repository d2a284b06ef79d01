//! The end of a wait, by two clocks.

use std::time::Duration;

use jiff::Timestamp;

/// Rings at its time by the wall clock, which goes on while the machine sleeps; and at the latest
/// once as long has passed by the clock that nobody sets, so that a wall clock put back a day
/// does not make the wait a day longer. Too early is harmless: a limit that still holds is met
/// again and waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Alarm {
    until: Timestamp,
    latest: Duration,
}

impl Alarm {
    pub(crate) fn new(until: Timestamp, wall: Timestamp, mono: Duration) -> Self {
        let latest = mono + between(wall, until);
        Self { until, latest }
    }

    /// Whether it is the alarm of this wait.
    pub(crate) fn is_for(&self, until: Timestamp) -> bool {
        self.until == until
    }

    /// How long until it rings; nothing when it does.
    pub(crate) fn left(&self, wall: Timestamp, mono: Duration) -> Duration {
        between(wall, self.until).min(self.latest.saturating_sub(mono))
    }
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn wall(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    #[test]
    fn it_rings_at_its_time() {
        let alarm = Alarm::new(wall(3600), wall(0), HOUR);
        assert_eq!(alarm.left(wall(0), HOUR), HOUR);
        assert_eq!(alarm.left(wall(3600), 2 * HOUR), Duration::ZERO);
        assert!(alarm.is_for(wall(3600)));
    }

    #[test]
    fn a_machine_that_slept_is_not_late() {
        let alarm = Alarm::new(wall(3600), wall(0), HOUR);
        assert_eq!(alarm.left(wall(7200), HOUR), Duration::ZERO);
    }

    #[test]
    fn a_clock_put_back_does_not_make_it_longer() {
        let alarm = Alarm::new(wall(3600), wall(0), HOUR);
        assert_eq!(alarm.left(wall(-86400), HOUR), HOUR);
        assert_eq!(alarm.left(wall(-86400 + 3600), 2 * HOUR), Duration::ZERO);
    }

    #[test]
    fn a_time_that_is_over_rings_at_once() {
        let alarm = Alarm::new(wall(-5), wall(0), HOUR);
        assert_eq!(alarm.left(wall(0), HOUR), Duration::ZERO);
    }
}
