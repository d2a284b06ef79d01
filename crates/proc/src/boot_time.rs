//! The clock that goes on while the machine sleeps: whatever other machines decide, too, is decided by it.

use std::ops::Add;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// A moment by the clock that nobody sets and that does not stand still in suspend (`CLOCK_BOOTTIME`). All
/// processes of a machine share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootTime(Duration);

impl BootTime {
    /// The moment that is now.
    pub fn now() -> Self {
        let clock = ClockId::CLOCK_BOOTTIME;
        let now = clock_gettime(clock).map_or(Duration::ZERO, Duration::from);
        Self(now + slept::beyond_the_clock())
    }

    /// As [`BootTime::since_boot`] gave it.
    pub fn from_boot(time: Duration) -> Self {
        Self(time)
    }

    /// Time since the machine was started.
    pub fn since_boot(self) -> Duration {
        self.0
    }

    /// Time from an earlier moment to this; none where that was later.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Time since this moment.
    pub fn elapsed(self) -> Duration {
        Self::now().since(self)
    }

    /// Time until this moment.
    pub fn left(self) -> Duration {
        self.since(Self::now())
    }
}

impl Add<Duration> for BootTime {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }
}

/// A name for this clock: moments of another boot, machine or time namespace cannot be compared with its own.
pub fn boot_clock() -> Option<String> {
    let boot = crate::boot_id()?;
    let namespace = std::fs::metadata("/proc/self/ns/time").map_or(0, |found| found.ino());
    Some(format!("{boot}/{namespace}"))
}

#[cfg(not(feature = "faults"))]
mod slept {
    use std::time::Duration;

    pub(super) fn beyond_the_clock() -> Duration {
        Duration::ZERO
    }
}

#[cfg(feature = "faults")]
pub use slept::seem_to_sleep;

/// Sleep that tests make up: the clock then moves as it does in suspend, while all others stand still.
#[cfg(feature = "faults")]
mod slept {
    use std::path::PathBuf;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    /// Names a file with the milliseconds slept so far, for all processes that inherit the variable.
    const FILE: &str = "DESCARTES_SLEPT";
    /// Of this process alone.
    static MILLIS: AtomicU64 = AtomicU64::new(0);

    /// The machine of this process was suspended for so long, as far as its clock tells.
    pub fn seem_to_sleep(time: Duration) {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        MILLIS.fetch_add(millis, Ordering::SeqCst);
    }

    pub(super) fn beyond_the_clock() -> Duration {
        static PATH: OnceLock<Option<PathBuf>> = OnceLock::new();
        let path = PATH.get_or_init(|| std::env::var_os(FILE).map(PathBuf::from));
        let text = path
            .as_ref()
            .and_then(|path| std::fs::read_to_string(path).ok());
        let shared = text.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        Duration::from_millis(MILLIS.load(Ordering::SeqCst)) + Duration::from_millis(shared)
    }
}
