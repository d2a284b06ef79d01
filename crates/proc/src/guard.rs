//! The guard: a process between host and agent that owns the agent's tree.
//!
//! It is the host's own program, re-executed: single-threaded, leader of a session without a
//! terminal, child subreaper. It sleeps in one `poll` until the host says something, a child dies or
//! a deadline comes. When the host is gone, it ends what runs and then itself.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::unistd::{chdir, dup2_stderr, dup2_stdin, dup2_stdout, setsid};

use crate::boot_time::BootTime;
use crate::events::Ending;
use crate::lease::TreeLease;
use crate::run_lifecycle::{Report, RunLifecycle, Tree};
use crate::tree::ChildProcesses;
use crate::wire::{self, Frame, FrameKind, Reader, Writer};
use crate::{procfs, sys};

/// A tree whose host has died is not given longer than this: somebody may wait to resume.
const GRACE_WITHOUT_HOST: Duration = Duration::from_millis(500);

/// A tree that stands still is looked at this often.
const FROZEN_LOOK: Duration = Duration::from_secs(1);

/// The body of the hidden verb that [`Supervisor::guarded`](crate::Supervisor::guarded) re-executes
/// the program with. To be called before the program starts a thread; gives the exit code.
pub fn guard_main() -> i32 {
    match Guard::enter().and_then(Guard::serve) {
        Ok(()) => 0,
        // Nobody reads what a guard says: the host sees the closed sockets.
        Err(_) => 70,
    }
}

struct Guard {
    control: UnixStream,
    events: UnixStream,
    deaths: SignalFd,
    brood: ChildProcesses,
    run: Option<(u64, RunLifecycle)>,
    /// Time that the run may take once the host is gone.
    finish: Duration,
    /// When the run is asked to end because the host is gone.
    finish_until: Option<Instant>,
    host_is_there: bool,
    /// Whether the tree is stopped because the host is.
    held: bool,
    /// Until when the tree may work.
    lease: Option<TreeLease>,
    /// Wakes this process when that ends, also from the sleep of the machine; made with the first lease.
    lease_timer: Option<TimerFd>,
    /// Whether the tree is stopped because its lease has ended.
    frozen: bool,
    /// The loop's lock among them: it is held until the last sweep is over.
    _kept: Vec<OwnedFd>,
}

impl Guard {
    fn enter() -> io::Result<Self> {
        // Standard input is the control socket; it gets a number that no agent is given.
        let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        control.peer_addr()?; // not a socket: somebody typed the hidden verb
        setsid()?;
        prctl::set_name(procfs::GUARD_NAME)?;
        prctl::set_child_subreaper(true)?;
        // A guard that is stopped when its host dies goes on, and ends its tree. It comes, too, when the
        // thread ends that started this process, and does nothing then.
        prctl::set_pdeathsig(Signal::SIGCONT)?;
        sys::hear_of_children();
        // The host alone decides when a guard ends; signals of a terminal or of `pkill` are for it.
        SigSet::all().thread_block()?;
        let mut child_signal = SigSet::empty();
        child_signal.add(Signal::SIGCHLD);
        // The host's word to hold the tree, and to let it go on.
        child_signal.add(Signal::SIGTSTP);
        child_signal.add(Signal::SIGCONT);
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let deaths = SignalFd::with_flags(&child_signal, flags)?;
        let null = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/null")?;
        dup2_stdin(&null)?;
        dup2_stdout(&null)?;
        dup2_stderr(&null)?;
        drop(null);
        sys::close_all_on_exec()?;
        chdir("/")?;
        let hello = wire::receive(&control)?.filter(|frame| frame.kind == FrameKind::Hello);
        let mut kept = hello.ok_or(io::ErrorKind::InvalidData)?.fds.into_iter();
        let events = UnixStream::from(kept.next().ok_or(io::ErrorKind::InvalidData)?);
        wire::send(
            &control,
            &Writer::new(FrameKind::Ready).u32(wire::VERSION).finish(),
            &[],
        )?;
        Ok(Self {
            control,
            events,
            deaths,
            brood: ChildProcesses::default(),
            run: None,
            finish: Duration::ZERO,
            finish_until: None,
            host_is_there: true,
            held: false,
            lease: None,
            lease_timer: None,
            frozen: false,
            _kept: kept.collect(),
        })
    }

    fn serve(mut self) -> io::Result<()> {
        while self.host_is_there || self.run.is_some() {
            let host_speaks = self.sleep()?;
            // Before anything else: the machine may have slept, and others have the task by now.
            self.mind_lease();
            while let Ok(Some(arrived)) = self.deaths.read_signal() {
                self.signalled(arrived.ssi_signo);
            }
            if host_speaks {
                self.listen();
            }
            self.end_without_host();
            self.mind_lease();
            self.advance();
        }
        Ok(())
    }

    /// The host is stopped by Ctrl-Z, and what it started with it; and goes on with it.
    fn signalled(&mut self, number: u32) {
        if number == Signal::SIGTSTP as u32 {
            self.brood.hold();
            self.held = true;
        } else if number == Signal::SIGCONT as u32 && std::mem::take(&mut self.held) && !self.frozen
        {
            self.brood.let_go();
        }
    }

    /// Sleeps until something happens; true if the host said something or is gone.
    fn sleep(&self) -> io::Result<bool> {
        let wake_at = self.run.as_ref().and_then(|(_, course)| course.wake_at());
        let wake_at = wake_at.into_iter().chain(self.finish_until).min();
        let mut fds = vec![PollFd::new(self.deaths.as_fd(), PollFlags::POLLIN)];
        // A closed socket is always readable, so it must not be asked for any more.
        if self.host_is_there {
            fds.push(PollFd::new(self.control.as_fd(), PollFlags::POLLIN));
        }
        if let Some(timer) = self.timer_of_lease()? {
            fds.push(PollFd::new(timer.as_fd(), PollFlags::POLLIN));
        }
        match poll(&mut fds, timeout(wake_at)) {
            Ok(_) => {}
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let spoken = fds.get(1).and_then(PollFd::any);
        Ok(self.host_is_there && spoken.unwrap_or(false))
    }

    /// The timer, set to when the lease has to be looked at.
    fn timer_of_lease(&self) -> io::Result<Option<&TimerFd>> {
        let lease = self.lease.filter(|_| self.run.is_some());
        let (Some(lease), Some(timer)) = (lease, &self.lease_timer) else {
            return Ok(None);
        };
        let left = match self.frozen {
            // None at all would stop the timer.
            false => lease.until.left().max(Duration::from_nanos(1)),
            true => FROZEN_LOOK,
        };
        timer.set(
            Expiration::OneShot(TimeSpec::from_duration(left)),
            TimerSetTimeFlags::empty(),
        )?;
        Ok(Some(timer))
    }

    fn listen(&mut self) {
        let heard = match wire::receive(&self.control) {
            Ok(Some(frame)) => self.obey(&frame),
            Ok(None) | Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        };
        if heard.is_err() {
            self.host_is_there = false;
            self.finish_until = Instant::now().checked_add(self.finish);
        }
    }

    /// Asks the run of a host that is gone to end, once it had its time to finish.
    fn end_without_host(&mut self) {
        if self
            .finish_until
            .is_some_and(|until| until <= Instant::now())
        {
            self.finish_until = None;
            self.end(Ending::Ask {
                grace: GRACE_WITHOUT_HOST,
            });
        }
    }

    fn obey(&mut self, frame: &Frame) -> io::Result<()> {
        match frame.kind {
            FrameKind::Start => {
                let answer = self.start(frame)?;
                wire::send(&self.control, &answer, &[])
            }
            FrameKind::End => {
                let (run, how) = wire::read_end(&frame.body)?;
                // It may cross the news that the run is over, and must not hit the next one.
                if self
                    .run
                    .as_ref()
                    .is_some_and(|(current, _)| *current == run)
                {
                    self.end(how);
                }
                Ok(())
            }
            FrameKind::Lease => {
                self.lease = Some(wire::read_lease(&frame.body)?);
                if self.lease_timer.is_none() {
                    let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
                    self.lease_timer = Some(TimerFd::new(ClockId::CLOCK_BOOTTIME, flags)?);
                }
                Ok(())
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Stops the tree when its lease has ended, and lets it go on once it is renewed.
    fn mind_lease(&mut self) {
        let Some(lease) = self.lease.filter(|_| self.run.is_some()) else {
            self.frozen = false;
            return;
        };
        let now = BootTime::now();
        if now < lease.until {
            if std::mem::take(&mut self.frozen) && !self.held {
                self.brood.let_go();
            }
            return;
        }
        // Again and again: somebody may have let a part of it go on.
        self.brood.hold();
        self.frozen = true;
        if now.since(lease.until) >= lease.kill_after {
            self.end(Ending::Kill);
        }
    }

    /// Starts the agent; gives the answer to the host.
    fn start(&mut self, frame: &Frame) -> io::Result<Vec<u8>> {
        let refused =
            |errno: Errno| Writer::new(FrameKind::Refused).u32((errno as i32).cast_unsigned());
        if self.run.is_some() {
            return Ok(refused(Errno::EBUSY).finish());
        }
        let mut reader = Reader(&frame.body);
        let run = reader.u64()?;
        let finish = Duration::from_millis(reader.u64()?);
        let (argc, envc) = (reader.u32()?, reader.u32()?);
        let (program, cwd) = (reader.string()?, reader.string()?);
        let (argv, env) = (reader.strings(argc)?, reader.strings(envc)?);
        let [stdin, stdout, stderr] = &frame.fds[..] else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let image = sys::Image {
            program,
            cwd,
            argv: &argv,
            env: &env,
        };
        let cpu_before = cpu_of_the_dead();
        match sys::spawn(&image, [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()], &[]) {
            Ok(pid) => {
                self.brood.adopt(pid);
                self.run = Some((run, RunLifecycle::begin()));
                self.finish = finish;
                // Not reaped yet, so it is there to be read, however short its life was.
                let start_time = procfs::stat(pid).map_or(0, |stat| stat.start_time);
                let answer = Writer::new(FrameKind::Started).u32(pid.cast_unsigned());
                Ok(answer.u64(start_time).u64(cpu_before).finish())
            }
            Err(errno) => Ok(refused(errno).finish()),
        }
    }

    fn end(&mut self, how: Ending) {
        // Who is asked to end is woken first: a tree whose lease has ended must not work any more.
        let how = match self.frozen {
            true => Ending::Kill,
            false => how,
        };
        if let Some((_, course)) = &mut self.run {
            course.end(how, Instant::now(), &mut self.brood);
        }
    }

    /// Does what is due and tells it.
    fn advance(&mut self) {
        let Some((run, course)) = &mut self.run else {
            self.brood.reap_idle();
            return;
        };
        let mut news = Vec::new();
        if let Some(exit) = course.exit(&mut self.brood) {
            news.extend(wire::exited(*run, exit));
            if !self.brood.is_empty() {
                // Who is asked to end may stop this process first: the host has to know by then.
                let _ = wire::send(&self.events, &std::mem::take(&mut news), &[]);
            }
        }
        for report in course.step(Instant::now(), &mut self.brood) {
            news.extend(match report {
                Report::Exited(exit) => wire::exited(*run, exit),
                Report::Swept { survivors, killed } => wire::swept(*run, killed, &survivors),
            });
        }
        if course.is_over() {
            self.run = None;
        }
        if !news.is_empty() {
            // A host that is gone is noticed on the control socket.
            let _ = wire::send(&self.events, &news, &[]);
        }
    }
}

/// CPU time of all children reaped so far, in microseconds.
fn cpu_of_the_dead() -> u64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else {
        return 0;
    };
    let micros = |time: nix::sys::time::TimeVal| time.tv_sec() * 1_000_000 + time.tv_usec();
    u64::try_from(micros(usage.user_time()) + micros(usage.system_time())).unwrap_or(0)
}

/// Time until then for `poll`, rounded up so that the deadline has come when it is over.
pub(crate) fn timeout(until: Option<Instant>) -> PollTimeout {
    let Some(until) = until else {
        return PollTimeout::NONE;
    };
    let left = until.saturating_duration_since(Instant::now());
    let millis = left.as_micros().div_ceil(1000);
    // Longer than poll can wait: it wakes up early once, and sleeps again.
    PollTimeout::try_from(millis.min(i32::MAX as u128)).unwrap_or(PollTimeout::MAX)
}
