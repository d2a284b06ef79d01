//! How long a program that keeps the tasks may take to answer.

use std::time::Duration;

/// What one call may take.
const LIMIT: Duration = Duration::from_secs(30);
/// The same, once somebody waits for the loop to end.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A call of a program that keeps the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeeperCall {
    /// It is asked for tasks, or for one of them to be claimed.
    Ask,
    /// It is told what became of a task.
    Tell,
}

/// How urgently the loop ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hurry {
    /// It goes on.
    #[default]
    No,
    /// All is done: there is nothing to ask for any more.
    Over,
    /// A person has stopped it.
    Stop,
    /// A person does not want to wait for anything.
    Kill,
}

impl Hurry {
    /// All, the least urgent first.
    pub const ALL: [Self; 4] = [Self::No, Self::Over, Self::Stop, Self::Kill];
}

impl KeeperCall {
    /// How long it may take from its start; `None` where it is not made, and ended if it is under way.
    pub fn limit(self, hurry: Hurry) -> Option<Duration> {
        match (self, hurry) {
            (_, Hurry::No) | (Self::Tell, Hurry::Over) => Some(LIMIT),
            (Self::Tell, Hurry::Stop) => Some(LAST_WORDS),
            (Self::Ask, Hurry::Over | Hurry::Stop) | (_, Hurry::Kill) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_ends_asks_for_nothing_and_says_its_last_words() {
        let limits = |call: KeeperCall| {
            let limits = Hurry::ALL.map(|hurry| call.limit(hurry));
            limits.map(|limit| limit.map(|limit| limit.as_secs()))
        };
        assert_eq!(limits(KeeperCall::Ask), [Some(30), None, None, None]);
        assert_eq!(
            limits(KeeperCall::Tell),
            [Some(30), Some(30), Some(5), None]
        );
    }
}
