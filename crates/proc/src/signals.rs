//! Signals to the host, as calls instead of interruptions.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// A signal that a host reacts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostSignal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal was closed.
    Hangup,
    /// SIGWINCH: the terminal has another size.
    Resize,
    /// SIGCONT: back from Ctrl-Z.
    Continue,
    /// SIGTSTP: Ctrl-Z.
    Stop,
}

impl HostSignal {
    /// Those that ask a host to end.
    pub const ENDINGS: [HostSignal; 3] = [
        HostSignal::Interrupt,
        HostSignal::Terminate,
        HostSignal::Hangup,
    ];

    const ALL: [HostSignal; 6] = [
        HostSignal::Stop,
        HostSignal::Interrupt,
        HostSignal::Terminate,
        HostSignal::Hangup,
        HostSignal::Resize,
        HostSignal::Continue,
    ];

    fn signal(self) -> Signal {
        match self {
            HostSignal::Interrupt => Signal::SIGINT,
            HostSignal::Terminate => Signal::SIGTERM,
            HostSignal::Hangup => Signal::SIGHUP,
            HostSignal::Resize => Signal::SIGWINCH,
            HostSignal::Continue => Signal::SIGCONT,
            HostSignal::Stop => Signal::SIGTSTP,
        }
    }

    fn from_number(number: u32) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|this| this.signal() as u32 == number)
    }
}

/// A thread that receives signals for the whole process. Dropped, it stops; the signals stay blocked.
pub struct Signals {
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
    set: SigSet,
}

impl Signals {
    /// Blocks these signals in the calling thread, and so in all threads that it starts afterwards:
    /// to be called before the first of them. From then on each signal is a call of `on_signal`, from
    /// a thread of its own. Agents are started with nothing blocked all the same.
    ///
    /// A signal that the process was started to ignore (`nohup`, a shell's background job) stays
    /// ignored.
    pub fn receive(
        signals: &[HostSignal],
        on_signal: Box<dyn Fn(HostSignal) + Send>,
    ) -> io::Result<Self> {
        let ignored = ignored();
        let mut set = SigSet::empty();
        for signal in signals.iter().map(|signal| signal.signal()) {
            if ignored & (1 << (signal as u32 - 1)) == 0 {
                set.add(signal);
            }
        }
        set.thread_block()?;
        // A write beyond `ulimit -f` then fails and is told, instead of ending the process.
        let mut quiet = SigSet::empty();
        quiet.add(Signal::SIGXFSZ);
        quiet.thread_block()?;
        let arrivals = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let stop = Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC)?);
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("signals".into());
        let thread = thread.spawn(move || {
            while sleep(&arrivals, &stopped) {
                while let Ok(Some(arrived)) = arrivals.read_signal() {
                    if let Some(signal) = HostSignal::from_number(arrived.ssi_signo) {
                        on_signal(signal);
                    }
                }
            }
        })?;
        Ok(Self {
            stop,
            thread: Some(thread),
            set,
        })
    }

    /// Stops receiving, and lets signals do in the calling thread what they do by themselves. To be
    /// called by the thread that received them, while it has started no other.
    pub fn give_back(self) -> io::Result<()> {
        let set = self.set;
        drop(self);
        Ok(set.thread_unblock()?)
    }
}

/// False when it is time to stop.
fn sleep(arrivals: &SignalFd, stop: &EventFd) -> bool {
    let arrivals = PollFd::new(arrivals.as_fd(), PollFlags::POLLIN);
    let mut fds = [arrivals, PollFd::new(stop.as_fd(), PollFlags::POLLIN)];
    let _ = poll(&mut fds, PollTimeout::NONE);
    !fds[1].any().unwrap_or(false)
}

impl Drop for Signals {
    fn drop(&mut self) {
        let _ = self.stop.write(1);
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

/// The signals that this process ignores, one bit each.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
        .unwrap_or(0)
}
