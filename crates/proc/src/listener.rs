//! The thread that hears a guard's events, and does its work when it is lost.

use std::io;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::course::SWEEP_LIMIT;
use crate::events::{Handler, TreeEvent};
use crate::{identity, orphans, wire};

/// What the caller's thread and the listener both know.
#[derive(Default)]
pub(crate) struct Watch(Mutex<State>);

#[derive(Default)]
pub(crate) struct State {
    pub(crate) phase: Phase,
    /// The listener has seen the guard's end.
    pub(crate) lost: bool,
}

/// Where the run is, as far as is known.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    #[default]
    Idle,
    /// The order is out; who gave it tells if it comes to nothing.
    Starting { run: u64 },
    /// `cpu_before`: what the guard's dead children had used before.
    Running { run: u64, cpu_before: Duration },
    /// The agent has ended, its tree is being swept.
    Sweeping { run: u64 },
}

impl Phase {
    pub(crate) fn run(self) -> Option<u64> {
        match self {
            Phase::Idle => None,
            Phase::Starting { run } | Phase::Running { run, .. } | Phase::Sweeping { run } => {
                Some(run)
            }
        }
    }
}

impl Watch {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn spawn(
    child: Child,
    events: UnixStream,
    watch: Arc<Watch>,
    on_event: Handler,
) -> io::Result<JoinHandle<()>> {
    let since = identity::start_time(child.id()).unwrap_or(0);
    let listener = Listener {
        child,
        since,
        events,
        watch,
        on_event,
    };
    let thread = std::thread::Builder::new().name("guard".into());
    thread.spawn(move || listener.listen())
}

/// Hears a guard's events until it is gone.
struct Listener {
    child: Child,
    /// When the guard started: orphans of its are younger.
    since: u64,
    events: UnixStream,
    watch: Arc<Watch>,
    on_event: Handler,
}

impl Listener {
    fn listen(mut self) {
        loop {
            match wire::receive(&self.events).map(|frame| frame.as_ref().map(wire::read_event)) {
                Ok(Some(Ok(event))) => {
                    self.note(&event);
                    (self.on_event)(event);
                }
                // Its sockets close when it ends.
                Ok(None) => break,
                // Nonsense: it has to end, since nothing more can be known of it.
                Ok(Some(Err(_))) | Err(_) => {
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
        if !all_swept || phase != Phase::Idle {
            self.replace(phase);
        }
    }

    fn note(&self, event: &TreeEvent) {
        let mut state = self.watch.lock();
        state.phase = match *event {
            TreeEvent::Exited { run, .. } => Phase::Sweeping { run },
            TreeEvent::Swept { .. } => Phase::Idle,
            TreeEvent::GuardLost { .. } => return,
        };
    }

    /// The guard was killed, and what it left has come to us: does the rest of its work.
    fn replace(&self, phase: Phase) {
        if let Phase::Running { run, .. } = phase {
            (self.on_event)(TreeEvent::GuardLost { run });
        }
        let orphans::OrphanSweep { survivors, killed } =
            orphans::sweep_since(self.since, SWEEP_LIMIT);
        if let Phase::Running { run, .. } | Phase::Sweeping { run } = phase {
            self.watch.lock().phase = Phase::Idle;
            (self.on_event)(TreeEvent::Swept {
                run,
                survivors,
                killed,
            });
        }
    }
}
