//! Whether commits travel by the repository that a person named, or, while that takes or gives none, through
//! the engine.

use std::time::Duration;

/// How long a repository is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteTerms {
    /// After so long without success commits travel through the engine.
    pub patience: Duration,
    /// For so long; then it is tried again.
    pub rest: Duration,
    /// A result that lies there and cannot be fetched for so long is done again.
    pub result_patience: Duration,
    /// A result that was pushed and that no coordinator has taken for so long may be out of its reach: its
    /// worker stores it in the engine, too.
    pub spare_after: Duration,
}

impl Default for RemoteTerms {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(60),
            rest: Duration::from_secs(10 * 60),
            result_patience: Duration::from_secs(30 * 60),
            spare_after: Duration::from_secs(60),
        }
    }
}

/// What is done after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteStep {
    /// The same is tried again.
    TryAgain {
        /// It has just begun to fail: a person is told.
        first: bool,
    },
    /// Commits travel through the engine.
    UseEngine {
        /// Since now: a person is told.
        first: bool,
    },
}

/// How a repository has done lately. Times are of a clock that nobody sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteHealth {
    terms: RemoteTerms,
    failing_since: Option<Duration>,
    /// Until then it is not tried.
    left_until: Option<Duration>,
}

impl RemoteHealth {
    /// A repository that was tried before the loop was begun.
    pub fn new(terms: RemoteTerms) -> Self {
        Self {
            terms,
            failing_since: None,
            left_until: None,
        }
    }

    /// Whether the next offer tries it.
    pub fn is_tried(&self, now: Duration) -> bool {
        self.left_until.is_none_or(|until| now >= until)
    }

    /// It did as it was asked; true where commits travelled through the engine before.
    pub fn worked(&mut self) -> bool {
        self.failing_since = None;
        self.left_until.take().is_some()
    }

    /// It did not answer the coordinator, which asked at that time, or refused.
    pub fn failed(&mut self, asked: Duration, now: Duration) -> RemoteStep {
        let first = self.failing_since.is_none();
        let since = *self.failing_since.get_or_insert(asked);
        match now.saturating_sub(since) < self.terms.patience {
            true => RemoteStep::TryAgain { first },
            false => RemoteStep::UseEngine {
                first: self.leave(now),
            },
        }
    }

    /// A worker tried it for long enough; true where that is news.
    pub fn failed_for_worker(&mut self, now: Duration) -> bool {
        self.failing_since = Some(now.saturating_sub(self.terms.patience));
        self.leave(now)
    }

    /// Whether a result that lies there is waited for, when it could not be fetched for so long.
    pub fn waits_for_result(&self, tried: Duration) -> bool {
        tried < self.terms.result_patience
    }

    fn leave(&mut self, now: Duration) -> bool {
        self.left_until.replace(now + self.terms.rest).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn health() -> RemoteHealth {
        RemoteHealth::new(RemoteTerms::default())
    }

    /// It was asked, and failed at once.
    fn failed(health: &mut RemoteHealth, seconds: u32) -> RemoteStep {
        health.failed(SECOND * seconds, SECOND * seconds)
    }

    #[test]
    fn a_short_failure_changes_nothing() {
        let mut health = health();
        let step = |first| RemoteStep::TryAgain { first };
        assert_eq!(failed(&mut health, 5), step(true));
        assert_eq!(failed(&mut health, 64), step(false));
        assert!(!health.worked());
        assert_eq!(failed(&mut health, 70), step(true));
        assert!(health.is_tried(SECOND * 70));
    }

    #[test]
    fn what_fails_for_a_minute_is_left_for_ten() {
        let mut health = health();
        failed(&mut health, 0);
        let left = |first| RemoteStep::UseEngine { first };
        assert_eq!(failed(&mut health, 60), left(true));
        // Another task finds the same.
        assert_eq!(failed(&mut health, 61), left(false));
        assert!(!health.is_tried(SECOND * 300));
        // Then one try decides for the next ten minutes.
        assert!(health.is_tried(SECOND * 661));
        assert_eq!(failed(&mut health, 661), left(false));
        assert!(!health.is_tried(SECOND * 662));
        assert!(health.worked(), "that it works again is told");
        assert!(health.is_tried(SECOND * 663) && !health.worked());
    }

    #[test]
    fn one_that_hangs_is_not_asked_twice() {
        let left = RemoteStep::UseEngine { first: true };
        assert_eq!(health().failed(SECOND, SECOND * 1200), left);
    }

    #[test]
    fn a_worker_that_cannot_fetch_is_believed_at_once() {
        let mut health = health();
        assert!(health.failed_for_worker(SECOND));
        assert!(!health.failed_for_worker(SECOND * 2));
        assert!(!health.is_tried(SECOND * 3));
        let left = RemoteStep::UseEngine { first: false };
        assert_eq!(failed(&mut health, 700), left);
    }

    #[test]
    fn a_result_is_waited_for_and_not_for_ever() {
        let health = health();
        assert!(health.waits_for_result(SECOND * 1799));
        assert!(!health.waits_for_result(SECOND * 1800));
    }
}
