//! Wrong tokens are answered later and later. Right ones never wait, so nobody can lock the owner
//! out by guessing.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The first wrong answer waits so long; each further one twice as long, up to the longest.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(3);
/// After so much time without a wrong token it begins anew.
const FORGET: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub struct Slowdown {
    state: Mutex<Recent>,
}

#[derive(Debug, Default)]
struct Recent {
    wrong: u32,
    last: Option<Instant>,
}

impl Slowdown {
    fn begin(&self, now: Instant) -> Duration {
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
        wait
    }

    /// Waits before a wrong token is refused. So does everybody who sends one at the same time: connections
    /// without a right one are few.
    pub async fn wrong_token(&self) {
        tokio::time::sleep(self.begin(Instant::now())).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_are_forgotten() {
        let (slow, now) = (Slowdown::default(), Instant::now());
        let waits: Vec<_> = (0..200).map(|_| slow.begin(now)).collect();
        assert_eq!(waits[..3], [FIRST, FIRST * 2, FIRST * 4]);
        assert!(waits[7..].iter().all(|wait| *wait == LONGEST));
        let later = now + FORGET + Duration::from_secs(1);
        assert_eq!(slow.begin(later), FIRST);
    }
}
