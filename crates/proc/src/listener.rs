//! The thread that hears a guard's events, and does its work when it is lost.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use tracing::{debug, warn};

use crate::events::{Ending, Handler, TreeEvent};
use crate::run_lifecycle::{LEFTOVER_GRACE, SWEEP_LIMIT};
use crate::{identity, orphans, sys, wire};

/// What the caller's thread and the listener both know.
#[derive(Default)]
pub(crate) struct SharedRun(Mutex<State>);

#[derive(Default)]
pub(crate) struct State {
    pub(crate) phase: RunPhase,
    /// The listener has seen the guard's end.
    pub(crate) lost: bool,
    /// While the guard has a tree to end, or is to go: how often it is still looked at before it is killed.
    looks_left: Option<u32>,
    /// Nobody needs it any more.
    leaving: bool,
}

/// Between two looks at a guard that has a tree to end.
const WAKE_EVERY: Duration = Duration::from_millis(500);
/// A guard that takes so much longer than the grace and its own limit is killed; what is left of its tree
/// comes to us.
const MARGIN: Duration = Duration::from_secs(10);
/// One that is to go, and has nothing to end, is killed after so long.
const GOING: Duration = Duration::from_secs(2);
/// Somebody who has stopped a guard so often, with no longer pause than this between two of them, does not
/// leave off: the guard is killed, and what is left of its tree comes to us.
const MOST_STOPS: u32 = 100;
const BETWEEN_STOPS: Duration = Duration::from_secs(1);
/// Between waking a guard and looking again whether it is stopped.
const AWAKE: Duration = Duration::from_millis(10);

impl State {
    /// The guard has been told to end its tree.
    pub(crate) fn end_asked(&mut self, how: Ending) {
        let grace = match how {
            Ending::Ask { grace } => grace,
            Ending::Kill => Duration::ZERO,
        };
        self.give(grace.saturating_add(SWEEP_LIMIT + MARGIN));
    }

    /// The guard is to go, once what it has to end is gone.
    pub(crate) fn leave(&mut self) {
        self.leaving = true;
        if self.phase == RunPhase::Idle {
            self.give(GOING);
        }
    }

    fn give(&mut self, time: Duration) {
        let looks = time.as_millis() / WAKE_EVERY.as_millis();
        let looks = u32::try_from(looks).unwrap_or(u32::MAX);
        let known = self.looks_left.unwrap_or(u32::MAX);
        self.looks_left = Some(known.min(looks));
    }
}

/// Where the run is, as far as is known.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunPhase {
    #[default]
    Idle,
    /// The order is out; who gave it tells if it comes to nothing.
    Starting { run: u64 },
    /// `cpu_before`: what the guard's dead children had used before.
    Running { run: u64, cpu_before: Duration },
    /// The agent has ended, its tree is being swept.
    Sweeping { run: u64 },
}

impl RunPhase {
    pub(crate) fn run(self) -> Option<u64> {
        match self {
            RunPhase::Idle => None,
            RunPhase::Starting { run }
            | RunPhase::Running { run, .. }
            | RunPhase::Sweeping { run } => Some(run),
        }
    }
}

impl SharedRun {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn spawn(
    child: Child,
    events: UnixStream,
    woken: UnixStream,
    watch: Arc<SharedRun>,
    on_event: Handler,
) -> io::Result<JoinHandle<()>> {
    let since = identity::start_time(child.id()).unwrap_or(0);
    woken.set_nonblocking(true)?;
    keep_awake(child.id())?;
    let listener = Listener {
        child,
        since,
        events,
        woken,
        watch,
        on_event,
    };
    let thread = std::thread::Builder::new().name("guard".into());
    thread.spawn(move || listener.listen())
}

/// Lets a guard that is stopped go on at once: nobody would hear of its tree's end, and nobody would end it.
/// The host never stops one; an agent outside of a sandbox can. Ends with the guard.
fn keep_awake(pid: u32) -> io::Result<()> {
    let guard = sys::pidfd_open(pid.cast_signed())?;
    let thread = std::thread::Builder::new().name("awake".into());
    let thread = thread.stack_size(128 * 1024);
    let wake = move || {
        let (mut stops, mut last) = (0, Instant::now());
        while sys::wait_for_stop(guard.as_fd()) {
            if last.elapsed() > BETWEEN_STOPS {
                stops = 0;
            }
            (stops, last) = (stops + 1, Instant::now());
            if stops > MOST_STOPS {
                warn!(pid, "guard is stopped again and again: killed");
                return orphans::signal_guard(pid, Signal::SIGKILL);
            }
            debug!(pid, "guard was stopped: it goes on");
            orphans::signal_guard(pid, Signal::SIGCONT);
            std::thread::sleep(AWAKE);
        }
    };
    thread.spawn(wake).map(drop)
}

/// Hears a guard's events until it is gone.
struct Listener {
    child: Child,
    /// When the guard started: orphans of its are younger.
    since: u64,
    events: UnixStream,
    /// Readable when the guard was told to end its tree, or to go.
    woken: UnixStream,
    watch: Arc<SharedRun>,
    on_event: Handler,
}

impl Listener {
    fn listen(mut self) {
        loop {
            self.sleep();
            match wire::receive(&self.events).map(|frame| frame.as_ref().map(wire::read_event)) {
                Ok(Some(Ok(event))) => {
                    self.note(&event);
                    (self.on_event)(event);
                }
                // Its sockets close when it ends.
                Ok(None) => break,
                // Nonsense: it has to end, since nothing more can be known of it.
                Ok(Some(Err(_))) | Err(_) => {
                    warn!(
                        pid = self.child.id(),
                        "guard sent invalid data and was killed"
                    );
                    let _ = self.child.kill();
                    break;
                }
            }
        }
        let all_swept = orphans::unregister(&mut self.child);
        let mut state = self.watch.lock();
        state.lost = true;
        let phase = state.phase;
        drop(state);
        debug!(pid = self.child.id(), "guard ended");
        if !all_swept || phase != RunPhase::Idle {
            self.replace(phase);
        }
    }

    /// Sleeps until the guard has something to tell. One that takes too long to end a tree, or to go, is
    /// killed.
    fn sleep(&mut self) {
        loop {
            let timeout = match self.watch.lock().looks_left {
                Some(_) => PollTimeout::try_from(WAKE_EVERY).unwrap_or(PollTimeout::MAX),
                None => PollTimeout::NONE,
            };
            let mut fds = [
                PollFd::new(self.events.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.woken.as_fd(), PollFlags::POLLIN),
            ];
            let nothing = poll(&mut fds, timeout) == Ok(0);
            let [events, woken] = fds.map(|fd| fd.any().unwrap_or(false));
            if events {
                return;
            }
            // Both ends are closed together with the guard's socket, so that this does not spin.
            if woken && matches!((&self.woken).read(&mut [0; 16]), Ok(0)) {
                return;
            }
            if !nothing {
                continue;
            }
            let mut state = self.watch.lock();
            match &mut state.looks_left {
                None => {}
                Some(0) => {
                    let pid = self.child.id();
                    warn!(pid, "guard took too long and was killed");
                    let _ = self.child.kill();
                    state.looks_left = None;
                }
                Some(left) => *left -= 1,
            }
        }
    }

    fn note(&self, event: &TreeEvent) {
        debug!(?event, "process tree");
        let mut state = self.watch.lock();
        match *event {
            TreeEvent::Exited { run, .. } => {
                state.phase = RunPhase::Sweeping { run };
                state.end_asked(Ending::Ask {
                    grace: LEFTOVER_GRACE,
                });
            }
            TreeEvent::Swept { .. } => {
                (state.phase, state.looks_left) = (RunPhase::Idle, None);
                if state.leaving {
                    state.give(GOING);
                }
            }
            TreeEvent::GuardLost { .. } => {}
        }
    }

    /// The guard was killed, and what it left has come to us: does the rest of its work.
    fn replace(&self, phase: RunPhase) {
        if let RunPhase::Running { run, .. } = phase {
            warn!(
                pid = self.child.id(),
                tree = run,
                "guard lost while its tree ran"
            );
            (self.on_event)(TreeEvent::GuardLost { run });
        }
        let orphans::OrphanSweep { survivors, killed } =
            orphans::sweep_since(self.since, SWEEP_LIMIT);
        if let RunPhase::Running { run, .. } | RunPhase::Sweeping { run } = phase {
            self.watch.lock().phase = RunPhase::Idle;
            (self.on_event)(TreeEvent::Swept {
                run,
                survivors,
                killed,
            });
        }
    }
}
