//! Wrong tokens are answered later and later. Right ones never wait, so nobody can lock the owner
//! out by guessing.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The first wrong answer waits so long; each further one twice as long, up to the longest.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(3);
/// After so much time without a wrong token it begins anew.
const FORGET: Duration = Duration::from_secs(60);
/// More than these do not wait: they would hold connections that others need.
const MOST_WAITING: u32 = 32;

#[derive(Debug, Default)]
pub struct Slowdown {
    state: Mutex<Recent>,
}

#[derive(Debug, Default)]
struct Recent {
    wrong: u32,
    last: Option<Instant>,
    waiting: u32,
}

impl Slowdown {
    fn begin(&self, now: Instant) -> Option<Duration> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state
            .last
            .is_some_and(|last| now.duration_since(last) > FORGET)
        {
            state.wrong = 0;
        }
        state.last = Some(now);
        let wait = FIRST.saturating_mul(1 << state.wrong.min(10)).min(LONGEST);
        state.wrong = state.wrong.saturating_add(1);
        if state.waiting >= MOST_WAITING {
            return None;
        }
        state.waiting += 1;
        Some(wait)
    }

    fn end(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting = state.waiting.saturating_sub(1);
    }

    /// Waits before a wrong token is refused.
    pub async fn wrong_token(&self) {
        if let Some(wait) = self.begin(Instant::now()) {
            let _waiting = WaitingPlace(self);
            tokio::time::sleep(wait).await;
        }
    }
}

/// Gives the place back, even where the client went away meanwhile.
struct WaitingPlace<'a>(&'a Slowdown);

impl Drop for WaitingPlace<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_are_forgotten() {
        let (slow, now) = (Slowdown::default(), Instant::now());
        let waits: Vec<_> = (0..8).filter_map(|_| slow.begin(now)).collect();
        assert_eq!(waits[..3], [FIRST, FIRST * 2, FIRST * 4]);
        assert_eq!(waits[7], LONGEST);
        (0..8).for_each(|_| slow.end());
        let later = now + FORGET + Duration::from_secs(1);
        assert_eq!(slow.begin(later), Some(FIRST));
        let taken = (1..MOST_WAITING).filter_map(|_| slow.begin(later));
        assert_eq!(taken.count(), MOST_WAITING as usize - 1);
        assert_eq!(slow.begin(later), None);
    }
}
