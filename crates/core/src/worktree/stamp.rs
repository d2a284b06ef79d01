//! Telling from a file's metadata alone that its content is what it was.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};

/// Timestamps come from a clock that ticks every 1 to 10 ms: an edit within the tick of the last
/// look leaves no trace in them. Files younger than this are looked into again.
const TICK_NS: i64 = 30_000_000;
/// The same for file systems that keep whole or even seconds only.
const COARSE_TICK_NS: i64 = 2_500_000_000;

/// Metadata that changes when the content does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(super) mtime: i64,
    pub(super) ctime: i64,
    pub(super) size: u64,
    pub(super) ino: u64,
    pub(super) mode: u32,
}

impl Stamp {
    pub(crate) fn of(meta: &Metadata) -> Stamp {
        Stamp {
            mtime: nanos(meta.mtime(), meta.mtime_nsec()),
            ctime: nanos(meta.ctime(), meta.ctime_nsec()),
            size: meta.size(),
            ino: meta.ino(),
            mode: meta.mode(),
        }
    }

    /// Whether an edit after `now` is sure to give another stamp. The change time counts: unlike
    /// the modification time it cannot be set back by `touch` or `cp -p`.
    pub(super) fn is_settled(&self, now: Now) -> bool {
        let whole = |t: i64| t % 1_000_000_000 == 0;
        let tick = if whole(self.ctime) && whole(self.mtime) {
            COARSE_TICK_NS
        } else {
            TICK_NS
        };
        self.ctime.saturating_add(tick) < now.0
    }
}

fn nanos(secs: i64, nanos: i64) -> i64 {
    secs.wrapping_mul(1_000_000_000).wrapping_add(nanos)
}

/// A moment of the clock that file times are taken from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now(i64);

impl Now {
    pub(super) fn read() -> Now {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Now(i64::try_from(since.as_nanos()).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_this_very_tick_is_not_settled() {
        let stamp = |ctime| Stamp {
            mtime: ctime,
            ctime,
            size: 1,
            ino: 1,
            mode: 0o100_644,
        };
        let now = Now(10_000_000_000_123);
        assert!(!stamp(now.0 - 1_000_000).is_settled(now));
        assert!(
            !stamp(now.0 + 1_000_000).is_settled(now),
            "a clock that was set back"
        );
        assert!(stamp(now.0 - 40_000_000).is_settled(now));
        assert!(
            !stamp(9_999_000_000_000).is_settled(now),
            "whole seconds only"
        );
        assert!(stamp(9_997_000_000_000).is_settled(now));
    }
}
