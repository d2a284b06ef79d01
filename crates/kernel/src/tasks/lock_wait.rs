//! What is said of a lock of git that a task loop waits for. It never ends the loop: whoever can see to it may come
//! in the morning.

use std::time::Duration;

/// Locks that are gone before are not worth a word.
pub const LOCK_SLACK: Duration = Duration::from_secs(2);
/// How often it is said that one is still there.
const SAID_EVERY: Duration = Duration::from_secs(10 * 60);

/// What is to be said now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWord {
    Nothing,
    /// It is in the way.
    InTheWay,
    /// It still is; people who look elsewhere are told as well.
    StillToldElsewhere,
    /// It still is.
    Still,
}

/// What is to be said of a lock that stood for so long, and of which so much was said already.
pub fn lock_word(stood: Duration, said: u32) -> LockWord {
    match said {
        0 if stood >= LOCK_SLACK => LockWord::InTheWay,
        0 => LockWord::Nothing,
        _ if stood < SAID_EVERY.saturating_mul(said) => LockWord::Nothing,
        1 => LockWord::StillToldElsewhere,
        _ => LockWord::Still,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_stays_for_a_night_is_said_every_ten_minutes_and_told_elsewhere_once() {
        let (mut said, mut words) = (0, Vec::new());
        for second in 0..8 * 60 * 60 {
            let word = lock_word(Duration::from_secs(second), said);
            if word != LockWord::Nothing {
                said += 1;
                words.push((second, word));
            }
        }
        let first = [
            (2, LockWord::InTheWay),
            (600, LockWord::StillToldElsewhere),
            (1200, LockWord::Still),
            (1800, LockWord::Still),
        ];
        assert_eq!(words[..4], first);
        assert_eq!(words.len(), 48);
        assert!(words[2..].iter().all(|(_, word)| *word == LockWord::Still));
    }
}
