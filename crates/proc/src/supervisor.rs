//! The supervisor: one agent after the other, each with its pipes and its tree.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tracing::debug;

use crate::direct::Direct;
use crate::events::{Ending, Started, TreeEvent};
use crate::guarded::Guarded;
use crate::launch::{Launch, StartError, Stdin};
use crate::lease::TreeLease;
use crate::pump::{self, Pump, PumpReport, Sink};
use crate::sys;

/// Starts agents, one after the other, and owns everything they start.
///
/// Dropped while an agent runs, it kills the tree and waits until it is gone. It must not be dropped
/// from within its own event handler.
pub struct Supervisor {
    keeper: Keeper,
    pump: Option<Pump>,
}

enum Keeper {
    Guarded(Guarded),
    Direct(Direct),
}

impl Supervisor {
    /// With a guard: `exe` is executed with `args`, and must then call
    /// [`guard_main`](crate::guard_main) before anything else. The guard keeps `inherit` open (the
    /// loop's lock, at most 15 descriptors); agents never see them. This process becomes a child
    /// subreaper.
    ///
    /// `on_event` is called from another thread. It should only pass the event on.
    pub fn guarded(
        exe: &Path,
        args: &[&str],
        inherit: &[BorrowedFd<'_>],
        on_event: Box<dyn Fn(TreeEvent) + Send + Sync>,
    ) -> io::Result<Self> {
        sys::hear_of_children();
        let guarded = Guarded::new(exe, args, inherit, Arc::from(on_event))?;
        Ok(Self {
            keeper: Keeper::Guarded(guarded),
            pump: None,
        })
    }

    /// Without a guard, for hosts that are some other program: the agent gets a process group of its
    /// own, and what has left the group is found by its environment, where `DESCARTES_LAUNCH` is
    /// different for every launch, and [`MARK`](crate::MARK)`=mark` the same for all. When this
    /// process is killed the agent lives on, until [`sweep_marked`](crate::sweep_marked) finds it.
    pub fn direct(mark: &str, on_event: Box<dyn Fn(TreeEvent) + Send + Sync>) -> io::Result<Self> {
        sys::hear_of_children();
        let direct = Direct::new(mark, Arc::from(on_event));
        Ok(Self {
            keeper: Keeper::Direct(direct),
            pump: None,
        })
    }

    /// Starts an agent; `run` is given back in its events. The run before must have been swept. What
    /// was not collected of it is lost.
    pub fn start(
        &mut self,
        run: u64,
        launch: &Launch,
        sink: Box<dyn Sink>,
    ) -> Result<Started, StartError> {
        if self.is_busy() {
            return Err(StartError::Busy);
        }
        let order = launch.order()?;
        let stdin = open_stdin(&launch.stdin)?;
        let (stdout, their_stdout) = pump::pipe()?;
        let (stderr, their_stderr) = pump::pipe()?;
        self.collect(Duration::ZERO);
        let mut pump = match self.pump.take() {
            Some(pump) => pump,
            None => Pump::new()?,
        };
        let fds = [stdin.as_fd(), their_stdout.as_fd(), their_stderr.as_fd()];
        let begin = || pump.begin(stdout, stderr, sink);
        let started = match &mut self.keeper {
            Keeper::Guarded(guarded) => guarded.start(run, launch, &order, fds, begin),
            Keeper::Direct(direct) => {
                let started = direct.start(run, launch, order, fds);
                if started.is_ok() {
                    begin();
                }
                started
            }
        };
        self.pump = Some(pump);
        match &started {
            Ok(started) => debug!(tree = run, pid = started.pid, "process tree started"),
            Err(error) => debug!(tree = run, %error, "process tree not started"),
        }
        started
    }

    /// Ends the run: answered by [`TreeEvent::Exited`] and [`TreeEvent::Swept`]. Said again it can
    /// only make the end quicker. Without a run it does nothing.
    pub fn terminate(&self, how: Ending) {
        debug!(?how, "ending what runs");
        match &self.keeper {
            Keeper::Guarded(guarded) => guarded.terminate(how),
            Keeper::Direct(direct) => direct.terminate(how),
        }
    }

    /// Until when trees may work from now on. Past it the guard stops all their processes, also where
    /// this process is stuck; a later end lets them go on. Without a guard nobody does that.
    pub fn set_lease(&mut self, lease: TreeLease) {
        match &mut self.keeper {
            Keeper::Guarded(guarded) => guarded.set_lease(lease),
            Keeper::Direct(_) => {}
        }
    }

    /// CPU time that the run's tree has used so far; `None` without a run. In steps of a clock tick
    /// (10 ms), and as a sum over processes that come and go not exact: it may even fall a little.
    pub fn cpu_time(&self) -> Option<Duration> {
        match &self.keeper {
            Keeper::Guarded(guarded) => guarded.cpu_time(),
            Keeper::Direct(direct) => direct.cpu_time(),
        }
    }

    /// The guard's process id; `None` in direct mode, and after the guard was lost until the next
    /// start.
    pub fn guard_pid(&self) -> Option<u32> {
        match &self.keeper {
            Keeper::Guarded(guarded) => guarded.guard_pid(),
            Keeper::Direct(_) => None,
        }
    }

    /// To be called after [`TreeEvent::Swept`]: waits for the end of both streams, at most `wait`
    /// (somebody out of reach may hold them), takes what is still in the pipes and gives the sink
    /// back.
    pub fn collect(&mut self, wait: Duration) -> PumpReport {
        let Some(pump) = &mut self.pump else {
            return PumpReport::default();
        };
        let report = pump.collect(wait).unwrap_or_else(|lost| {
            self.pump = None;
            lost
        });
        let (stdout, stderr) = (report.stdout.bytes, report.stderr.bytes);
        debug!(stdout, stderr, "output collected");
        report
    }

    fn is_busy(&self) -> bool {
        match &self.keeper {
            Keeper::Guarded(guarded) => guarded.is_busy(),
            Keeper::Direct(direct) => direct.is_busy(),
        }
    }
}

/// A host may make it in one thread and use it in another.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Supervisor>();
};

fn open_stdin(stdin: &Stdin) -> Result<OwnedFd, StartError> {
    let path = match stdin {
        Stdin::Null => Path::new("/dev/null"),
        Stdin::File(path) => path,
    };
    File::open(path).map(OwnedFd::from).map_err(|error| {
        let words = format!("cannot read its input {}: {error}", path.display());
        StartError::Io(io::Error::new(error.kind(), words))
    })
}
