//! Whether a worker is the only one by its name.

use std::time::Duration;

/// Once, something else can have come after what a worker announced last: it slept for so long that this ran out,
/// or the engine lost its disk. Twice in so short a time it was another worker.
const BY_CHANCE: Duration = Duration::from_secs(30);

/// What a worker has announced. Times are of a clock that nobody sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Announced {
    last: Option<u64>,
    surprised: Option<Duration>,
    is_told: bool,
}

impl Announced {
    /// The number after which nothing may have come.
    pub fn last(&self) -> Option<u64> {
        self.last
    }

    /// It was announced under this number; `None`: nobody knows whether it was.
    pub fn told(&mut self, number: Option<u64>) {
        self.last = number;
    }

    /// Something came after it; whether that is to be told, which it is once.
    pub fn is_not_alone(&mut self, now: Duration) -> bool {
        let before = self.surprised.replace(now);
        let is_other = before.is_some_and(|before| now.saturating_sub(before) <= BY_CHANCE);
        is_other && !std::mem::replace(&mut self.is_told, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_of_the_same_name_is_told_once_and_a_long_sleep_is_none() {
        let mut announced = Announced::default();
        for (second, is_told) in [
            (100, false),
            (200, false),
            (231, false),
            (236, true),
            (241, false),
            (900, false),
            (905, false),
        ] {
            let now = Duration::from_secs(second);
            assert_eq!(announced.is_not_alone(now), is_told, "{second}");
        }
        announced.told(Some(7));
        assert_eq!(announced.last(), Some(7));
        announced.told(None);
        assert_eq!(announced.last(), None);
    }
}
