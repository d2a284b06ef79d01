//! How a task loop waits for a task file or a tracker that cannot be used.

use std::time::Duration;

/// What keeps the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKeeper {
    /// A file or a folder, which costs nothing to look at.
    File,
    /// A program that asks a server: others count what it is asked.
    Tracker,
}

impl TaskKeeper {
    /// How long to wait after it could not be used `tries` times in a row.
    pub fn retry_after(self, tries: u32) -> Duration {
        let (first, most) = match self {
            Self::File => (Duration::from_millis(500), Duration::from_secs(5)),
            Self::Tracker => (Duration::from_secs(5), Duration::from_secs(60)),
        };
        let doubled = tries.saturating_sub(1).min(16);
        first.saturating_mul(1 << doubled).min(most)
    }

    /// What people call it.
    pub fn noun(self) -> &'static str {
        match self {
            Self::File => "task file",
            Self::Tracker => "tracker",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_looked_for_often_and_a_tracker_is_asked_rarely() {
        let ms = |keeper: TaskKeeper| -> Vec<u128> {
            let tries = [1, 2, 3, 4, 5, 6, 60];
            tries
                .map(|tries| keeper.retry_after(tries).as_millis())
                .to_vec()
        };
        let files = [500, 1_000, 2_000, 4_000, 5_000, 5_000, 5_000];
        assert_eq!(ms(TaskKeeper::File), files);
        let trackers = [5_000, 10_000, 20_000, 40_000, 60_000, 60_000, 60_000];
        assert_eq!(ms(TaskKeeper::Tracker), trackers);
    }

    #[test]
    fn a_tracker_that_is_down_for_a_quarter_of_an_hour_is_asked_a_few_times() {
        let (mut tries, mut waited) = (0, Duration::ZERO);
        while waited < Duration::from_secs(15 * 60) {
            tries += 1;
            waited += TaskKeeper::Tracker.retry_after(tries);
        }
        assert!(tries < 20, "{tries}");
    }
}
