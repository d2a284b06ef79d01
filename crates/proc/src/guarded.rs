//! The host's side: starts guards when they are needed, and gives them their orders.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use tracing::{debug, warn};

use crate::events::{Ending, Handler, Started};
use crate::handle::{GuardReply, Handle};
use crate::launch::{Launch, Order, StartError};
use crate::lease::TreeLease;
use crate::sys::MOST_FDS;
use crate::{orphans, procfs, wire};

/// Guards tried for one order, should each be killed before it reads it.
const ATTEMPTS: u32 = 3;

/// Starts guards when they are needed, and gives them their orders.
pub(crate) struct Guarded {
    exe: PathBuf,
    args: Vec<OsString>,
    inherit: Vec<OwnedFd>,
    on_event: Handler,
    guard: Option<Handle>,
    lease: Option<TreeLease>,
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
            lease: None,
        };
        this.guard = Some(this.new_guard()?);
        Ok(this)
    }

    fn new_guard(&self) -> io::Result<Handle> {
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
        let guard = Handle::new(child, control, events, Arc::clone(&self.on_event))?;
        let fds = [their_events.as_fd()]
            .into_iter()
            .chain(self.inherit.iter().map(AsFd::as_fd));
        let greeted = guard.greet(&fds.collect::<Vec<_>>());
        drop(their_events);
        match &greeted {
            Ok(()) => {
                debug!(pid = guard.pid, "guard started");
                if let Some(lease) = self.lease {
                    guard.lease(lease);
                }
            }
            Err(error) => {
                warn!(pid = guard.pid, %error, "guard did not answer");
                orphans::signal_guard(guard.pid, Signal::SIGKILL);
            }
        }
        greeted.map(|()| guard)
    }

    pub(crate) fn start(
        &mut self,
        run: u64,
        launch: &Launch,
        order: &Order,
        fds: [BorrowedFd<'_>; 3],
        meanwhile: impl FnOnce(),
    ) -> Result<Started, StartError> {
        orphans::reap_dead_orphans();
        let bytes = wire::start(run, order);
        let mut meanwhile = Some(meanwhile);
        for _ in 0..ATTEMPTS {
            let guard = match self.guard.take() {
                Some(guard) => guard,
                None => self.new_guard()?,
            };
            let answer = guard.order(run, &bytes, &fds, || {
                if let Some(meanwhile) = meanwhile.take() {
                    meanwhile();
                }
            });
            if let GuardReply::Started(_) | GuardReply::Refused(_) = answer {
                self.guard = Some(guard);
            } else {
                warn!(pid = guard.pid, tree = run, "guard lost over an order");
                // Waits for the listener, which sweeps what may have been started.
                orphans::signal_guard(guard.pid, Signal::SIGKILL);
                drop(guard);
            }
            match answer {
                GuardReply::Started(started) => return Ok(started),
                GuardReply::Refused(errno) => return Err(launch.refused(errno)),
                GuardReply::Lost => return Err(StartError::GuardLost),
                GuardReply::NotTaken => {}
            }
        }
        Err(StartError::GuardLost)
    }

    pub(crate) fn set_lease(&mut self, lease: TreeLease) {
        self.lease = Some(lease);
        if let Some(guard) = &self.guard {
            guard.lease(lease);
        }
    }

    pub(crate) fn terminate(&self, how: Ending) {
        if let Some(guard) = &self.guard {
            guard.end(how);
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.guard.as_ref().is_some_and(Handle::is_busy)
    }

    pub(crate) fn guard_pid(&self) -> Option<u32> {
        let guard = self.guard.as_ref()?;
        (!guard.is_lost()).then_some(guard.pid)
    }

    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        let guard = self.guard.as_ref()?;
        let before = guard.cpu_before()?;
        let everyone = procfs::everyone();
        let pid = guard.pid.cast_signed();
        let dead = everyone.iter().find(|stat| stat.pid == pid)?.waited_ticks;
        let living = procfs::descendants(pid, &everyone).into_iter();
        let living: u64 = living.map(|stat| stat.own_ticks + stat.waited_ticks).sum();
        Some(procfs::ticks(dead + living).saturating_sub(before))
    }
}
