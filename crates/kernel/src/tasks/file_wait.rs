//! How a task loop waits for a task file or a tracker that cannot be used, and what it believes of a
//! file in which tasks are missing.

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

/// Tasks that are missing in a file are believed to be gone when they still are after so long: until
/// then somebody may be writing it.
const SETTLED: Duration = Duration::from_secs(1);

/// What a file comes to in which tasks are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingTasks {
    /// It is as its writer wants it.
    Believed,
    /// Nothing is decided before it was looked at again, at the latest after so long.
    LookAgain(Duration),
    /// It holds none of the tasks: whatever it is, it is not the list that the loop is to do.
    OtherList,
}

impl TaskKeeper {
    /// What to believe where so many of the `known` tasks have been `missing`, the same ones, for so long.
    pub fn believes(self, known: usize, missing: usize, unchanged: Duration) -> MissingTasks {
        let left = SETTLED.saturating_sub(unchanged);
        match self {
            _ if missing == 0 => MissingTasks::Believed,
            _ if !left.is_zero() => MissingTasks::LookAgain(left),
            // A program does not answer by halves, and nothing at all is an answer, too.
            Self::File if missing >= known => MissingTasks::OtherList,
            Self::File | Self::Tracker => MissingTasks::Believed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_missed_for_a_moment_before_they_are_gone() {
        use MissingTasks::{Believed, LookAgain, OtherList};
        let ms = Duration::from_millis;
        for (keeper, known, missing, unchanged, expected) in [
            (TaskKeeper::File, 3, 0, 0, Believed),
            (TaskKeeper::File, 3, 1, 0, LookAgain(ms(1_000))),
            (TaskKeeper::File, 3, 1, 600, LookAgain(ms(400))),
            (TaskKeeper::File, 3, 1, 1_000, Believed),
            (TaskKeeper::File, 3, 3, 600, LookAgain(ms(400))),
            (TaskKeeper::File, 3, 3, 90_000, OtherList),
            (TaskKeeper::File, 1, 1, 1_000, OtherList),
            (TaskKeeper::Tracker, 3, 3, 600, LookAgain(ms(400))),
            (TaskKeeper::Tracker, 3, 3, 1_000, Believed),
        ] {
            let found = keeper.believes(known, missing, ms(unchanged));
            assert_eq!(
                found, expected,
                "{keeper:?} {missing} of {known}, {unchanged} ms"
            );
        }
    }

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
