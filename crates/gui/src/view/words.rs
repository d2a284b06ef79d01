//! Words for people.

use std::time::Duration;

use descartes_kernel::outcome::IterativeExitReason;
use descartes_text::units::show_duration;
use descartes_views::view::{HistoryRow, Status};
use jiff::Timestamp;

use crate::style::Tone;

/// How long ago, in the largest unit that says something.
pub fn ago(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(then).as_secs().max(0);
    match seconds {
        0..5 => "just now".to_owned(),
        5..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

/// A length of time, to the second.
pub fn lasted(duration: Duration) -> String {
    match duration.as_secs() {
        0 if duration.is_zero() => "0s".to_owned(),
        0 => format!("{} ms", duration.as_millis()),
        secs => show_duration(Duration::from_secs(secs)),
    }
}

/// The colour of a status.
pub fn tone(status: &Status) -> Tone {
    match status {
        Status::Running | Status::Judging => Tone::Accent,
        Status::Ready => Tone::Accent,
        Status::Waiting { .. } | Status::Paused => Tone::Warn,
        Status::Interrupted => Tone::Warn,
        Status::Ended { reason } if reason.is_success() => Tone::Good,
        Status::Ended {
            reason: IterativeExitReason::UserCancelled,
        } => Tone::Muted,
        Status::Ended { .. } => Tone::Bad,
    }
}

/// Gates of an iteration: `2 green`, `red: cargo test`, `–` where none ran.
pub fn gates(row: &HistoryRow) -> (String, Tone) {
    match row.gates.iter().find(|gate| !gate.passed()) {
        Some(red) => (format!("red: {}", red.command), Tone::Bad),
        None if row.gates.is_empty() => ("–".to_owned(), Tone::Muted),
        None => (format!("{} green", row.gates.len()), Tone::Good),
    }
}

/// The exit code of an iteration.
pub fn exit(row: &HistoryRow) -> (String, Tone) {
    match row.exit {
        None => ("–".to_owned(), Tone::Muted),
        Some(0) => ("0".to_owned(), Tone::Plain),
        Some(code) => (code.to_string(), Tone::Bad),
    }
}

/// One line of a longer text.
pub fn one_line(text: &str, most: usize) -> String {
    let line = descartes_text::display::one_line(text);
    match line.char_indices().nth(most) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_their_largest_unit() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let then = |text: &str| ago(text.parse().unwrap(), now);
        assert_eq!(then("2026-03-01T11:59:58Z"), "just now");
        assert_eq!(then("2026-03-01T11:55:00Z"), "5 min ago");
        assert_eq!(then("2026-02-28T13:00:00Z"), "23 h ago");
        assert_eq!(then("2026-02-20T12:00:00Z"), "9 days ago");
        assert_eq!(then("2026-03-01T12:00:09Z"), "just now");
        assert_eq!(lasted(Duration::from_millis(61_400)), "1m1s");
        assert_eq!(lasted(Duration::from_millis(90)), "90 ms");
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!(one_line("a\n  b  c", 10), "a b c");
        assert_eq!(one_line("äöüß", 2), "äö…");
    }
}
