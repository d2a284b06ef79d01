//! Waiting for what must happen, with an end.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything takes that a test waits for, on a machine that is busy with much else; shorter than what
/// the runner lets a test have.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// Waits until `holds`, and fails the test naming `what` when `within` has passed.
///
/// The first looks come a fraction of a millisecond apart, so a quick event is seen at once.
///
/// # Panics
/// When the time is over.
#[track_caller]
pub fn eventually(what: &str, within: Duration, mut holds: impl FnMut() -> bool) {
    eventually_some(what, within, || holds().then_some(()));
}

/// Waits until `look` finds something, and gives it.
///
/// # Panics
/// When the time is over.
#[track_caller]
pub fn eventually_some<T>(what: &str, within: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    match poll(within, &mut look) {
        Some(found) => found,
        None => panic!("waited {within:?} in vain: {what}"),
    }
}

/// Waits until the file exists and holds something, and gives its text.
///
/// # Panics
/// When the time is over.
#[track_caller]
pub fn file_text(path: &Path, within: Duration) -> String {
    let what = format!("text in {}", path.display());
    eventually_some(&what, within, || {
        fs::read_to_string(path)
            .ok()
            .filter(|text| !text.is_empty())
    })
}

/// Looks again and again until something is found or the time is over; always looks once more
/// after the last sleep.
pub fn poll<T>(within: Duration, look: &mut dyn FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + within;
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}
