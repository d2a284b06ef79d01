//! Fault points: every write, rename, sync and other change this crate makes to the disk
//! passes through one function, so that a test can kill the process or fail the call at any of them.
//!
//! Without the feature `faults` all of this is compiled to nothing. Only xtask asks for it, and with it whatever
//! is built in the same command (`--workspace`): the tests and the short forms of the campaigns. Where
//! `DESCARTES_FAULT` is not set, nothing goes wrong there either.

/// What the operation at a fault point is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultVerdict {
    /// Carry on.
    Go,
    /// Fail with this error number.
    #[cfg(feature = "faults")]
    Fail(i32),
    /// Write the first half of the bytes, then fail with this error number.
    #[cfg(feature = "faults")]
    Tear(i32),
    /// Write the first half of the bytes, then kill the process.
    #[cfg(feature = "faults")]
    TearAndKill,
}

#[cfg(not(feature = "faults"))]
#[inline(always)]
pub(crate) fn hit() -> FaultVerdict {
    FaultVerdict::Go
}

#[cfg(not(feature = "faults"))]
#[inline(always)]
pub(crate) fn linger() {}

#[cfg(feature = "faults")]
pub use armed::{BadFaultPlan, FaultPlan, kill_now};
#[cfg(feature = "faults")]
pub(crate) use armed::{hit, linger};

#[cfg(feature = "faults")]
mod armed {
    use super::FaultVerdict;
    use nix::libc::{EDQUOT, EIO, ENOSPC, EROFS};
    use std::cell::RefCell;
    use std::str::FromStr;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    /// Which operation is to go wrong, and how.
    ///
    /// Read once from `DESCARTES_FAULT`, in the form `WHAT-at-write:N` (the Nth operation alone)
    /// or `WHAT-from-write:N` (that one and all after it), counted from 1 over the whole process.
    /// `WHAT` is `kill` (before the operation), `tear` (half of the bytes, then killed),
    /// `enospc`, `edquot`, `eio`, `erofs`, or `half` (half of the bytes, then `ENOSPC`).
    /// `slow-sync:MS` fails nothing: every sync takes that many milliseconds more.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct FaultPlan {
        what: What,
        from: u64,
        to: u64,
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum What {
        Kill,
        Tear,
        Half,
        Errno(i32),
        SlowSync(Duration),
    }

    /// A fault plan that could not be read.
    #[derive(Debug, thiserror::Error)]
    #[error("not a fault plan: {0:?} (write it as kill-at-write:17 or enospc-from-write:5)")]
    pub struct BadFaultPlan(String);

    impl FromStr for FaultPlan {
        type Err = BadFaultPlan;

        fn from_str(text: &str) -> Result<Self, Self::Err> {
            let bad = || BadFaultPlan(text.to_owned());
            let (head, count) = text.split_once(':').ok_or_else(bad)?;
            let from: u64 = count.parse().map_err(|_| bad())?;
            if head == "slow-sync" {
                return Ok(Self {
                    what: What::SlowSync(Duration::from_millis(from)),
                    from: 1,
                    to: u64::MAX,
                });
            }
            let (what, to) = match (
                head.strip_suffix("-at-write"),
                head.strip_suffix("-from-write"),
            ) {
                (Some(what), _) => (what, from),
                (None, Some(what)) => (what, u64::MAX),
                (None, None) => return Err(bad()),
            };
            let what = match what {
                "kill" => What::Kill,
                "tear" => What::Tear,
                "half" => What::Half,
                "enospc" => What::Errno(ENOSPC),
                "edquot" => What::Errno(EDQUOT),
                "eio" => What::Errno(EIO),
                "erofs" => What::Errno(EROFS),
                _ => return Err(bad()),
            };
            Ok(Self { what, from, to })
        }
    }

    thread_local! {
        static ARMED: RefCell<Option<(FaultPlan, u64)>> = const { RefCell::new(None) };
    }

    impl FaultPlan {
        /// Runs `body` with this plan armed for the current thread, and returns how many
        /// operations were met.
        pub fn during<T>(self, body: impl FnOnce() -> T) -> (T, u64) {
            ARMED.with(|armed| *armed.borrow_mut() = Some((self, 0)));
            let result = body();
            let met = ARMED.with(|armed| armed.borrow_mut().take());
            (result, met.map_or(0, |(_, count)| count))
        }

        /// A plan that only counts.
        pub const fn count() -> Self {
            Self {
                what: What::Kill,
                from: u64::MAX,
                to: u64::MAX,
            }
        }

        fn verdict(self, nth: u64) -> FaultVerdict {
            if nth < self.from || nth > self.to {
                return FaultVerdict::Go;
            }
            match self.what {
                What::Kill => {
                    kill_now();
                    FaultVerdict::Fail(EIO)
                }
                What::Tear => FaultVerdict::TearAndKill,
                What::Half => FaultVerdict::Tear(ENOSPC),
                What::Errno(errno) => FaultVerdict::Fail(errno),
                What::SlowSync(_) => FaultVerdict::Go,
            }
        }
    }

    /// Ends this process as SIGKILL does: nothing is flushed, nothing is dropped.
    pub fn kill_now() {
        let me = nix::unistd::Pid::this();
        let _ = nix::sys::signal::kill(me, nix::sys::signal::Signal::SIGKILL);
    }

    /// The plan of the whole process.
    fn plan() -> Option<FaultPlan> {
        static PLAN: OnceLock<Option<FaultPlan>> = OnceLock::new();
        *PLAN.get_or_init(|| std::env::var("DESCARTES_FAULT").ok()?.parse().ok())
    }

    /// What a sync takes more, where the plan is a slow disk.
    pub(crate) fn linger() {
        let armed = ARMED.with(|armed| armed.borrow().map(|(plan, _)| plan));
        if let Some(What::SlowSync(time)) = armed.or_else(plan).map(|plan| plan.what) {
            std::thread::sleep(time);
        }
    }

    pub(crate) fn hit() -> FaultVerdict {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let armed = ARMED.with(|armed| {
            armed.borrow_mut().as_mut().map(|(plan, count)| {
                *count += 1;
                plan.verdict(*count)
            })
        });
        if let Some(verdict) = armed {
            return verdict;
        }
        match plan() {
            None => FaultVerdict::Go,
            Some(plan) => plan.verdict(COUNT.fetch_add(1, Ordering::Relaxed) + 1),
        }
    }
}
