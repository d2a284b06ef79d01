//! Without a guard: the host itself starts the agent, and looks for what it left by its group, its
//! descent and its mark.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::Signal;

use crate::MARK;
use crate::events::{Ending, Exit, Handler, Started, Survivor, TreeEvent};
use crate::guard::timeout;
use crate::identity;
use crate::launch::{Launch, Order, StartError};
use crate::leftovers::{self, ProcessMark};
use crate::procfs::{self, Stat};
use crate::run_lifecycle::{Report, RunLifecycle, Tree};
use crate::sys::{self, Waited};
use crate::tree::signal_group;

/// Who is not our child ends without our being told.
const WATCH_EVERY: Duration = Duration::from_millis(10);

/// The variable by which the processes of one launch are told from those of all others.
const LAUNCH: &str = "DESCARTES_LAUNCH";

/// Launches of this process so far.
static LAUNCHES: AtomicU64 = AtomicU64::new(0);

/// Starts agents as children of this process.
pub(crate) struct Direct {
    mark: String,
    on_event: Handler,
    current: Option<Current>,
}

/// The run under way, or the last one.
struct Current {
    members: Members,
    endings: Sender<Ending>,
    wake: Arc<EventFd>,
    over: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

impl Direct {
    pub(crate) fn new(mark: &str, on_event: Handler) -> Self {
        Self {
            mark: mark.into(),
            on_event,
            current: None,
        }
    }

    pub(crate) fn start(
        &mut self,
        run: u64,
        launch: &Launch,
        mut order: Order,
        fds: [BorrowedFd<'_>; 3],
    ) -> Result<Started, StartError> {
        // Waits for the last run's thread, which has nothing left to do.
        self.current = None;
        let own = self.put_marks(launch, &mut order)?;
        let wake = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK);
        let wake = Arc::new(wake.map_err(io::Error::from)?);
        let (argv, env) = (strings_of(&order.argv), strings_of(&order.env));
        let image = sys::Image {
            program: &order.program,
            cwd: &order.cwd,
            argv: &argv,
            env: &env,
        };
        let agent =
            sys::spawn(&image, fds, &sys::leaked_fds()).map_err(|errno| launch.refused(errno))?;
        let start_time = identity::start_time(agent.cast_unsigned()).unwrap_or(0);
        let mark = ProcessMark {
            entries: vec![own],
            not_before: start_time,
        };
        let members = Members { agent, mark };
        let (endings, told) = mpsc::channel();
        let over = Arc::new(AtomicBool::new(false));
        let watcher = Watcher {
            run,
            told,
            wake: Arc::clone(&wake),
            over: Arc::clone(&over),
            band: Band::new(members.clone()),
            on_event: Arc::clone(&self.on_event),
        };
        let watcher = watcher.spawn().inspect_err(|_| {
            let mut band = Band::new(members.clone());
            band.kill();
            band.release();
        })?;
        self.current = Some(Current {
            members,
            endings,
            wake,
            over,
            watcher: Some(watcher),
        });
        Ok(Started {
            pid: agent.cast_unsigned(),
            start_time,
        })
    }

    /// Makes sure that the agent carries the mark, and an entry that no other launch has; gives
    /// that entry. The mark alone would not do: a host runs agents, gates and git side by side, all
    /// with the mark of their loop, and the end of one must not end the others.
    fn put_marks(&self, launch: &Launch, order: &mut Order) -> Result<Vec<u8>, StartError> {
        if !launch.env.iter().any(|(key, _)| key == MARK) {
            order.env.push(entry(MARK, &self.mark)?);
        }
        let inherited = format!("{LAUNCH}=");
        let is_inherited = |entry: &CString| entry.as_bytes().starts_with(inherited.as_bytes());
        order.env.retain(|entry| !is_inherited(entry));
        let number = LAUNCHES.fetch_add(1, Ordering::Relaxed);
        let own = entry(LAUNCH, &format!("{}.{number}", std::process::id()))?;
        order.env.push(own.clone());
        Ok(own.into_bytes())
    }

    pub(crate) fn terminate(&self, how: Ending) {
        if let Some(current) = &self.current {
            current.terminate(how);
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|current| !current.over.load(Ordering::Acquire))
    }

    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        let current = self.current.as_ref().filter(|_| self.is_busy())?;
        let all = current.members.find();
        Some(procfs::ticks(
            all.iter()
                .map(|stat| stat.own_ticks + stat.waited_ticks)
                .sum(),
        ))
    }
}

impl Current {
    fn terminate(&self, how: Ending) {
        // A watcher that does not listen any more is done.
        let _ = self.endings.send(how);
        let _ = self.wake.write(1);
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        self.terminate(Ending::Kill);
        if let Some(watcher) = self.watcher.take()
            && watcher.thread().id() != std::thread::current().id()
        {
            let _ = watcher.join();
        }
    }
}

fn entry(key: &str, value: &str) -> Result<CString, StartError> {
    CString::new(format!("{key}={value}"))
        .map_err(|_| StartError::BadArgument("the mark contains a NUL byte".into()))
}

/// How the processes of a run are found.
#[derive(Clone)]
struct Members {
    /// Our child, and the leader of its group; not reaped before the run is over, so that the number
    /// means it and nobody else.
    agent: i32,
    mark: ProcessMark,
}

impl Members {
    /// All that live, the agent among them.
    fn find(&self) -> Vec<Stat> {
        self.find_with(&Met::new())
    }

    /// The same, with those met before: their line to the mark is gone when those above them end.
    fn find_with(&self, met: &Met) -> Vec<Stat> {
        self.mark.family(|stat| {
            stat.group == self.agent
                || stat.parent == self.agent
                || met.contains(&(stat.pid, stat.start_time))
        })
    }
}

/// Processes by number and start.
type Met = std::collections::BTreeSet<(i32, u64)>;

/// The processes of a run without a guard.
struct Band {
    members: Members,
    reaped: bool,
    seen_exit: bool,
    /// Everybody who was signalled.
    met: Met,
}

impl Band {
    fn new(members: Members) -> Self {
        Self {
            members,
            reaped: false,
            seen_exit: false,
            met: Met::new(),
        }
    }

    fn signal_all(&mut self, signals: &[Signal]) {
        let all = self.members.find_with(&self.met);
        self.met
            .extend(all.iter().map(|stat| (stat.pid, stat.start_time)));
        for &signal in signals {
            // The group at once, so that it cannot fork its way out; the others one by one.
            signal_group(self.members.agent, signal);
            for stat in all.iter().filter(|stat| stat.group != self.members.agent) {
                leftovers::signal(stat, signal);
            }
        }
    }

    /// Sets the agent's number free; the run is over.
    fn release(&mut self) {
        if !self.reaped {
            self.reaped = !matches!(sys::wait_for(self.members.agent), Waited::Alive);
        }
    }
}

impl Tree for Band {
    fn reap(&mut self) -> Option<Exit> {
        if self.seen_exit {
            return None;
        }
        let exit = sys::peek(self.members.agent)?;
        self.seen_exit = true;
        Some(exit)
    }

    fn is_empty(&mut self) -> bool {
        self.members.find_with(&self.met).is_empty()
    }

    fn ask(&mut self) {
        self.signal_all(&[Signal::SIGTERM, Signal::SIGCONT]);
    }

    fn kill(&mut self) {
        self.signal_all(&[Signal::SIGKILL]);
    }

    fn survivors(&mut self) -> Vec<Survivor> {
        self.members
            .find_with(&self.met)
            .into_iter()
            .map(Survivor::from)
            .collect()
    }

    fn killed(&self) -> u32 {
        let met = self.met.iter();
        let others = met.filter(|(pid, _)| *pid != self.members.agent).count();
        u32::try_from(others).unwrap_or(u32::MAX)
    }

    fn watch_every(&self) -> Option<Duration> {
        Some(WATCH_EVERY)
    }
}

/// The thread that sees a run through.
struct Watcher {
    run: u64,
    told: Receiver<Ending>,
    wake: Arc<EventFd>,
    over: Arc<AtomicBool>,
    band: Band,
    on_event: Handler,
}

impl Watcher {
    fn spawn(self) -> io::Result<JoinHandle<()>> {
        let agent = sys::pidfd_open(self.band.members.agent)?;
        let thread = std::thread::Builder::new().name("agent".into());
        thread.spawn(move || self.watch(&agent))
    }

    fn watch(mut self, agent: &OwnedFd) {
        let mut course = RunLifecycle::begin();
        while !course.is_over() {
            self.sleep(agent, &course);
            let now = Instant::now();
            for how in self.told.try_iter() {
                course.end(how, now, &mut self.band);
            }
            for report in course.step(now, &mut self.band) {
                self.tell(report);
            }
        }
    }

    fn sleep(&self, agent: &OwnedFd, course: &RunLifecycle) {
        let agent = PollFd::new(agent.as_fd(), PollFlags::POLLIN);
        let wake = PollFd::new(self.wake.as_fd(), PollFlags::POLLIN);
        // Once the agent has ended its descriptor is always readable.
        let mut fds = [wake, agent];
        let asked = if self.band.seen_exit { 1 } else { 2 };
        let _ = poll(&mut fds[..asked], timeout(course.wake_at()));
        let _ = self.wake.read();
    }

    fn tell(&mut self, report: Report) {
        let run = self.run;
        let event = match report {
            Report::Exited(exit) => TreeEvent::Exited { run, exit },
            Report::Swept { survivors, killed } => {
                self.band.release();
                self.over.store(true, Ordering::Release);
                TreeEvent::Swept {
                    run,
                    survivors,
                    killed,
                }
            }
        };
        (self.on_event)(event);
    }
}

fn strings_of(strings: &[CString]) -> Vec<&CStr> {
    strings.iter().map(CString::as_c_str).collect()
}
