//! One guard process, as its host holds it.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};

use crate::events::{Ending, Handler, Started};
use crate::guard::timeout;
use crate::lease::TreeLease;
use crate::listener::{self, RunPhase, SharedRun};
use crate::wire::{self, Frame, FrameKind, Reader, Writer};

/// A guard that takes longer to answer is stuck. Executing a program from a sleeping disk or a slow
/// network takes seconds.
const GUARD_REPLY_TIMEOUT: Duration = Duration::from_secs(30);

/// A guard and the thread that listens to it. Dropped, it ends what runs and waits until all is gone.
pub(crate) struct Handle {
    pub(crate) pid: u32,
    control: Option<UnixStream>,
    /// Wakes the listener.
    alarm: UnixStream,
    watch: Arc<SharedRun>,
    listener: Option<JoinHandle<()>>,
}

/// A guard's answer to an order.
pub(crate) enum GuardReply {
    Started(Started),
    Refused(Errno),
    /// The guard was gone before it read the order: nothing was started.
    NotTaken,
    /// It was lost over the order: something may have been started.
    Lost,
}

impl Handle {
    /// Takes over a guard that was just started.
    pub(crate) fn new(
        child: Child,
        control: UnixStream,
        events: UnixStream,
        on_event: Handler,
    ) -> io::Result<Self> {
        let (pid, watch) = (child.id(), Arc::new(SharedRun::default()));
        let (alarm, woken) = UnixStream::pair()?;
        alarm.set_nonblocking(true)?;
        let listener = listener::spawn(child, events, woken, Arc::clone(&watch), on_event)?;
        Ok(Self {
            pid,
            control: Some(control),
            alarm,
            watch,
            listener: Some(listener),
        })
    }

    /// Hands over what the guard keeps, and makes sure that it speaks our language.
    pub(crate) fn greet(&self, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let strange =
            |_| io::Error::other("the guard process does not belong to this version of descartes");
        let hello = Writer::new(FrameKind::Hello).finish();
        let control = self.control.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        wire::send(control, &hello, fds).map_err(strange)?;
        let answer = self.hear().map_err(strange)?;
        match (answer.kind, Reader(&answer.body).u32()) {
            (FrameKind::Ready, Ok(wire::VERSION)) => Ok(()),
            _ => Err(strange(io::ErrorKind::InvalidData.into())),
        }
    }

    /// Gives an order, does something else meanwhile, and waits for the answer.
    pub(crate) fn order(
        &self,
        run: u64,
        bytes: &[u8],
        fds: &[BorrowedFd<'_>],
        meanwhile: impl FnOnce(),
    ) -> GuardReply {
        let mut state = self.watch.lock();
        if state.lost {
            return GuardReply::NotTaken;
        }
        // Before the order goes out: the agent's end may be told before its start is answered.
        state.phase = RunPhase::Starting { run };
        drop(state);
        let sent = self
            .control
            .as_ref()
            .map(|control| wire::send(control, bytes, fds));
        let answer = match sent {
            Some(Ok(())) => {
                meanwhile();
                self.hear().and_then(|frame| self.understand(&frame))
            }
            Some(Err(error)) => Err(error),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        answer.unwrap_or_else(|error| {
            self.watch.lock().phase = RunPhase::Idle;
            match error.kind() {
                // The kernel's word for bytes that the other end never read.
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => GuardReply::NotTaken,
                _ => GuardReply::Lost,
            }
        })
    }

    /// Ends the run, if there is one.
    pub(crate) fn end(&self, how: Ending) {
        let run = self.watch.lock().phase.run();
        if let (Some(run), Some(control)) = (run, &self.control) {
            self.watch.lock().end_asked(how);
            // Full means that it is awake already.
            let _ = (&self.alarm).write(&[1]);
            // A guard that cannot be told is gone, and its listener knows.
            let _ = wire::send(control, &wire::end(run, how), &[]);
        }
    }

    /// Tells until when the tree may work.
    pub(crate) fn lease(&self, lease: TreeLease) {
        if let Some(control) = &self.control {
            // A guard that cannot be told is gone, and its listener knows.
            let _ = wire::send(control, &wire::lease(lease), &[]);
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.watch.lock().phase != RunPhase::Idle
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.watch.lock().lost
    }

    /// What the guard's dead children had used before this run; `None` if no agent runs.
    pub(crate) fn cpu_before(&self) -> Option<Duration> {
        match self.watch.lock().phase {
            RunPhase::Running { cpu_before, .. } => Some(cpu_before),
            RunPhase::Idle | RunPhase::Starting { .. } | RunPhase::Sweeping { .. } => None,
        }
    }

    /// The next frame on the control socket.
    fn hear(&self) -> io::Result<Frame> {
        let control = self.control.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let begun = Instant::now();
        let until = begun.checked_add(GUARD_REPLY_TIMEOUT);
        let mut fds = [PollFd::new(control.as_fd(), PollFlags::POLLIN)];
        while poll(&mut fds, timeout(until)).unwrap_or(0) == 0 {
            if begun.elapsed() > GUARD_REPLY_TIMEOUT {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        wire::receive(control)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn understand(&self, answer: &Frame) -> io::Result<GuardReply> {
        let mut reader = Reader(&answer.body);
        let mut state = self.watch.lock();
        if answer.kind != FrameKind::Started {
            state.phase = RunPhase::Idle;
            return Ok(GuardReply::Refused(Errno::from_raw(reader.i32()?)));
        }
        let started = Started {
            pid: reader.u32()?,
            start_time: reader.u64()?,
        };
        let cpu_before = Duration::from_micros(reader.u64()?);
        // Unless the listener has heard more already.
        if let RunPhase::Starting { run } = state.phase {
            if state.lost {
                return Ok(GuardReply::Lost);
            }
            state.phase = RunPhase::Running { run, cpu_before };
        }
        Ok(GuardReply::Started(started))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.end(Ending::Kill);
        self.watch.lock().leave();
        let _ = (&self.alarm).write(&[1]);
        // Closing the socket makes it go when the tree is gone; the listener reaps it.
        self.control = None;
        if let Some(listener) = self.listener.take()
            && listener.thread().id() != std::thread::current().id()
        {
            let _ = listener.join();
        }
    }
}
