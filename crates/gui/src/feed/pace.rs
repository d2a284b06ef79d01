//! How often something is shown: what the showing costs decides, so that the window stays cheap
//! on a slow machine and quick on a fast one.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// A share of one core that the window may use, and the bounds that hold whatever it uses.
/// What comes after a silence is free: a few showings, as fast as the bounds allow.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    share: f64,
    least: Duration,
    most: Duration,
    free: u32,
    /// When it was last shown, and what the process had used by then.
    last: Option<(Instant, Duration)>,
    /// Showings since the last silence.
    row: u32,
}

/// A silence is so long.
const SILENCE: Duration = Duration::from_millis(600);

impl Pace {
    /// Nothing was shown yet.
    pub const fn new(share: f64, least: Duration, most: Duration, free: u32) -> Self {
        Self {
            share,
            least,
            most,
            free,
            last: None,
            row: 0,
        }
    }

    /// It is shown now.
    pub fn shown(&mut self) {
        self.row = match self.last {
            Some((at, _)) if at.elapsed() < SILENCE.max(self.most) => self.row.saturating_add(1),
            _ => 1,
        };
        self.last = Some((Instant::now(), used()));
    }

    /// How long until it may be shown again. After a silence that is not at all.
    pub fn left(&self) -> Duration {
        let Some((at, before)) = self.last else {
            return Duration::ZERO;
        };
        let rest = self.rest(used().saturating_sub(before));
        rest.saturating_sub(at.elapsed())
    }

    /// How long to rest after a showing that cost so much.
    fn rest(&self, cost: Duration) -> Duration {
        match self.row <= self.free {
            true => self.least,
            false => cost.div_f64(self.share).clamp(self.least, self.most),
        }
    }
}

/// Processor time that this process has used.
fn used() -> Duration {
    // Where there is no such clock the least pace has to do.
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    #[test]
    fn what_costs_much_is_shown_seldom_and_never_faster_or_slower_than_the_bounds() {
        let pace = Pace::new(0.05, millis(150), millis(1000), 0);
        let pace = Pace { row: 1, ..pace };
        assert_eq!(pace.rest(millis(20)), millis(400));
        assert_eq!(pace.rest(millis(2)), millis(150));
        assert_eq!(pace.rest(millis(300)), millis(1000));
    }

    #[test]
    fn the_first_is_shown_at_once_and_the_next_after_a_rest() {
        let mut pace = Pace::new(0.05, millis(20_000), millis(60_000), 0);
        assert_eq!(pace.left(), Duration::ZERO);
        pace.shown();
        assert!(pace.left() > millis(5_000));
        let mut quick = Pace::new(0.05, Duration::ZERO, Duration::ZERO, 0);
        quick.shown();
        assert_eq!(quick.left(), Duration::ZERO);
    }

    #[test]
    fn a_few_in_a_row_are_free_of_the_share() {
        let mut pace = Pace::new(0.05, millis(40), millis(60_000), 2);
        let mut rests = Vec::new();
        for _ in 0..4 {
            pace.shown();
            rests.push(pace.rest(millis(20)));
        }
        assert_eq!(rests, [40, 40, 400, 400].map(millis));
    }
}
