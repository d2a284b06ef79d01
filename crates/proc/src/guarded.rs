//! The host's side of a guard.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;

use crate::course::SWEEP_LIMIT;
use crate::events::{Ending, Handler, Started, TreeEvent};
use crate::identity;
use crate::launch::{Launch, Order, StartError};
use crate::orphans;
use crate::procfs;
use crate::sys::MOST_FDS;
use crate::wire::{self, Frame, Kind, Reader, Writer};

/// A guard that takes longer to answer is stuck. Executing a program from a sleeping disk or a slow
/// network takes seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// After so long without an answer a guard is woken.
const NUDGE_MILLIS: u16 = 500;
/// Guards tried for one order, should each be killed before it reads it.
const ATTEMPTS: u32 = 3;

/// Starts guards when they are needed, and gives them their orders.
pub(crate) struct Guarded {
    exe: PathBuf,
    args: Vec<OsString>,
    inherit: Vec<OwnedFd>,
    on_event: Handler,
    guard: Option<Guard>,
}

/// One guard process.
struct Guard {
    pid: u32,
    control: Option<UnixStream>,
    watch: Arc<Watch>,
    listener: Option<JoinHandle<()>>,
}

/// What the caller's thread and the listener both know.
#[derive(Default)]
struct Watch(Mutex<State>);

#[derive(Default)]
struct State {
    phase: Phase,
    /// The listener has seen the guard's end.
    lost: bool,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    #[default]
    Idle,
    /// The order is out; `start` itself tells if it comes to nothing.
    Starting { run: u64 },
    /// `cpu_before`: what the guard's dead children had used before, in microseconds.
    Running { run: u64, cpu_before: u64 },
    /// The agent has ended, its tree is being swept.
    Sweeping { run: u64 },
}

impl Phase {
    fn run(self) -> Option<u64> {
        match self {
            Phase::Idle => None,
            Phase::Starting { run } | Phase::Running { run, .. } | Phase::Sweeping { run } => {
                Some(run)
            }
        }
    }
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guarded {
    pub(crate) fn new(
        exe: &Path,
        args: &[&str],
        inherit: &[BorrowedFd<'_>],
        on_event: Handler,
    ) -> io::Result<Self> {
        if inherit.len() >= MOST_FDS {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "too many descriptors to inherit",
            ));
        }
        orphans::become_subreaper()?;
        let inherit = inherit
            .iter()
            .map(BorrowedFd::try_clone_to_owned)
            .collect::<io::Result<_>>()?;
        let args = args.iter().map(OsString::from).collect();
        let mut this = Self {
            exe: exe.into(),
            args,
            inherit,
            on_event,
            guard: None,
        };
        this.guard = Some(this.new_guard()?);
        Ok(this)
    }

    fn new_guard(&self) -> io::Result<Guard> {
        let (control, their_control) = UnixStream::pair()?;
        let (events, their_events) = UnixStream::pair()?;
        let mut command = Command::new(&self.exe);
        command
            .args(&self.args)
            .stdin(Stdio::from(OwnedFd::from(their_control)));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = orphans::register(|| command.spawn()).map_err(|error| {
            let words = format!("cannot start the guard {}: {error}", self.exe.display());
            io::Error::new(error.kind(), words)
        })?;
        // With it goes our copy of the guard's end of the control socket.
        drop(command);
        let guard = Guard::new(&child, control);
        let guard = guard.listen(child, events, Arc::clone(&self.on_event))?;
        let fds = [their_events.as_fd()]
            .into_iter()
            .chain(self.inherit.iter().map(AsFd::as_fd));
        let greeted = guard.greet(&fds.collect::<Vec<_>>());
        drop(their_events);
        if greeted.is_err() {
            orphans::signal_guard(guard.pid, Signal::SIGKILL);
        }
        greeted.map(|()| guard)
    }

    pub(crate) fn start(
        &mut self,
        run: u64,
        launch: &Launch,
        order: &Order,
        fds: [BorrowedFd<'_>; 3],
    ) -> Result<Started, StartError> {
        orphans::reap_dead_orphans();
        let bytes = wire::start(run, order);
        for _ in 0..ATTEMPTS {
            let guard = match self.guard.take() {
                Some(guard) => guard,
                None => self.new_guard()?,
            };
            let answer = guard.order(run, &bytes, &fds);
            if let Answer::Started(_) | Answer::Refused(_) = answer {
                self.guard = Some(guard);
            } else {
                // Waits for the listener, which sweeps what may have been started.
                orphans::signal_guard(guard.pid, Signal::SIGKILL);
                drop(guard);
            }
            match answer {
                Answer::Started(started) => return Ok(started),
                Answer::Refused(errno) => return Err(launch.refused(errno)),
                Answer::Lost => return Err(StartError::GuardLost),
                Answer::NotTaken => {}
            }
        }
        Err(StartError::GuardLost)
    }

    pub(crate) fn terminate(&self, how: Ending) {
        let Some(guard) = &self.guard else { return };
        let Some(run) = guard.watch.lock().phase.run() else {
            return;
        };
        // Should the agent have stopped its guard, this wakes it.
        orphans::signal_guard(guard.pid, Signal::SIGCONT);
        if let Some(control) = &guard.control {
            // A guard that cannot be told is gone, and its listener knows.
            let _ = wire::send(control, &wire::end(run, how), &[]);
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.guard
            .as_ref()
            .is_some_and(|guard| guard.watch.lock().phase != Phase::Idle)
    }

    pub(crate) fn guard_pid(&self) -> Option<u32> {
        let guard = self.guard.as_ref()?;
        (!guard.watch.lock().lost).then_some(guard.pid)
    }

    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        let guard = self.guard.as_ref()?;
        let Phase::Running { cpu_before, .. } = guard.watch.lock().phase else {
            return None;
        };
        let everyone = procfs::everyone();
        let pid = guard.pid.cast_signed();
        let dead = everyone.iter().find(|stat| stat.pid == pid)?.waited_ticks;
        let living = procfs::descendants(pid, &everyone).into_iter();
        let living: u64 = living.map(|stat| stat.own_ticks + stat.waited_ticks).sum();
        let before = Duration::from_micros(cpu_before);
        Some(procfs::ticks(dead + living).saturating_sub(before))
    }
}

/// A guard's answer to an order.
enum Answer {
    Started(Started),
    Refused(Errno),
    /// The guard was gone before it read the order: nothing was started.
    NotTaken,
    /// It was lost over the order: something may have been started.
    Lost,
}

impl Guard {
    fn new(child: &Child, control: UnixStream) -> Self {
        let watch = Arc::new(Watch::default());
        Self {
            pid: child.id(),
            control: Some(control),
            watch,
            listener: None,
        }
    }

    /// Starts the thread that hears the guard's events and its end.
    fn listen(mut self, child: Child, events: UnixStream, on_event: Handler) -> io::Result<Self> {
        let listener = Listener {
            since: identity::start_time(child.id()).unwrap_or(0),
            child,
            events,
            watch: Arc::clone(&self.watch),
            on_event,
        };
        let thread = std::thread::Builder::new().name("guard".into());
        self.listener = Some(thread.spawn(move || listener.listen())?);
        Ok(self)
    }

    /// Hands over what the guard keeps, and makes sure that it speaks our language.
    fn greet(&self, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let strange =
            |_| io::Error::other("the guard process did not answer as one of this version");
        let hello = Writer::new(Kind::Hello).finish();
        let control = self.control.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        wire::send(control, &hello, fds).map_err(strange)?;
        let answer = self.hear().map_err(strange)?;
        match (answer.kind, Reader(&answer.body).u32()) {
            (Kind::Ready, Ok(wire::VERSION)) => Ok(()),
            _ => Err(strange(io::ErrorKind::InvalidData.into())),
        }
    }

    /// Gives an order and waits for the answer.
    fn order(&self, run: u64, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Answer {
        let mut state = self.watch.lock();
        if state.lost {
            return Answer::NotTaken;
        }
        // Before the order goes out: the agent's end may be told before its start is answered.
        state.phase = Phase::Starting { run };
        drop(state);
        let sent = self
            .control
            .as_ref()
            .map(|control| wire::send(control, bytes, fds));
        let answer = match sent {
            Some(Ok(())) => self.hear().and_then(|frame| self.understand(&frame)),
            Some(Err(error)) => Err(error),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        answer.unwrap_or_else(|error| {
            self.watch.lock().phase = Phase::Idle;
            match error.kind() {
                // The kernel's word for bytes that the other end never read.
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Answer::NotTaken,
                _ => Answer::Lost,
            }
        })
    }

    /// The next frame on the control socket.
    fn hear(&self) -> io::Result<Frame> {
        let control = self.control.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let begun = Instant::now();
        let mut fds = [PollFd::new(control.as_fd(), PollFlags::POLLIN)];
        while poll(&mut fds, PollTimeout::from(NUDGE_MILLIS)).unwrap_or(0) == 0 {
            if begun.elapsed() > PATIENCE {
                return Err(io::ErrorKind::TimedOut.into());
            }
            // An agent may have stopped its guard before it could answer.
            orphans::signal_guard(self.pid, Signal::SIGCONT);
        }
        wire::receive(control)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn understand(&self, answer: &Frame) -> io::Result<Answer> {
        let mut reader = Reader(&answer.body);
        let mut state = self.watch.lock();
        if answer.kind != Kind::Started {
            state.phase = Phase::Idle;
            return Ok(Answer::Refused(Errno::from_raw(reader.i32()?)));
        }
        let started = Started {
            pid: reader.u32()?,
            start_time: reader.u64()?,
        };
        let cpu_before = reader.u64()?;
        // Unless the listener has heard more already.
        if let Phase::Starting { run } = state.phase {
            if state.lost {
                return Ok(Answer::Lost);
            }
            state.phase = Phase::Running { run, cpu_before };
        }
        Ok(Answer::Started(started))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let run = self.watch.lock().phase.run();
        if let (Some(run), Some(control)) = (run, &self.control) {
            orphans::signal_guard(self.pid, Signal::SIGCONT);
            let _ = wire::send(control, &wire::end(run, Ending::Kill), &[]);
        }
        // Closing the socket makes it go when the tree is gone; the listener reaps it.
        self.control = None;
        if let Some(listener) = self.listener.take()
            && listener.thread().id() != std::thread::current().id()
        {
            let _ = listener.join();
        }
    }
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
