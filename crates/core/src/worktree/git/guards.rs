//! Calls of git that may start other programs (hooks, filters, merge drivers, gpg), each in a
//! process tree of its own that is ended to the last survivor.
//!
//! Guards are kept for the next call. Whoever wants the end from another thread says so once:
//! what is under way is ended, and what comes after has little time.

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use descartes_proc::{
    Channel, Ending, Exit, Launch, MARK, Sink, StartError, Stdin, Supervisor, TreeEvent,
};

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::host::GuardProgram;

/// Between asking a call that takes too long to end and killing it.
const GRACE: Duration = Duration::from_secs(5);
/// Output still in the pipes is waited for so long.
const DRAIN: Duration = Duration::from_millis(500);
/// What a call may take that begins when somebody wants the end.
pub(super) const HURRY: Duration = Duration::from_secs(30);
/// The same for one that runs hooks of the user's.
const HURRY_HOOKS: Duration = Duration::from_secs(5);
/// A change of the user's own files is let finish for so long.
const FINISH: Duration = Duration::from_secs(20);
/// Any other call is let finish for so long before it is signalled: a git that is signalled while it makes a
/// lock file leaves it behind, and nearly every call locks the packed refs of the whole repository.
const FINISH_SOON: Duration = Duration::from_secs(2);
/// Standard output beyond this is no answer of git's.
const LONGEST_ANSWER: usize = 256 << 20;
/// The last of what git and its hooks say.
pub(super) const TAIL: usize = 4096;
/// Guards that are kept for later.
const KEPT: usize = 4;

/// How a call that is under way meets the wish for an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It is ended.
    End,
    /// It runs hooks, and is ended.
    Hooks,
    /// It changes files of the user's, and is let finish for a while.
    Finish,
}

impl Manner {
    /// Time to finish before a signal is sent.
    fn finish(self) -> Duration {
        match self {
            Self::Finish => FINISH,
            Self::End | Self::Hooks => FINISH_SOON,
        }
    }
}

/// One call, complete.
pub(super) struct CallOrder {
    pub(super) argv: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) cwd: PathBuf,
    pub(super) stdin: Option<Vec<u8>>,
    pub(super) limit: Duration,
    /// It is ended where it says nothing for so long.
    pub(super) silence: Option<Duration>,
    pub(super) manner: Manner,
}

/// How it went.
pub(super) struct Ran {
    pub(super) end: End,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Exit(Option<i32>),
    Late,
    /// It said nothing for too long.
    Silent,
    /// Somebody wanted the end.
    Stopped,
}

enum CallEvent {
    Tree(TreeEvent),
    Stop(Ending),
}

/// Guards for calls of git.
pub(crate) struct Guards {
    program: Option<GuardProgram>,
    mark: String,
    /// Held by every guard until its last sweep is over.
    inherit: Vec<OwnedFd>,
    idle: Mutex<Vec<CallGuard>>,
    under_way: Mutex<UnderWay>,
    /// Can be read once somebody wished for the end; `None` where no descriptor was left.
    end_wished: Option<EventFd>,
}

/// Numbers of calls, of all guards of this process: some are told apart by them.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

#[derive(Default)]
struct UnderWay {
    calls: BTreeMap<u64, Sender<CallEvent>>,
    wish: Option<Ending>,
    /// No call is to begin any more.
    refuses: bool,
}

/// A supervisor and the queue of its events.
struct CallGuard {
    supervisor: Supervisor,
    tx: Sender<CallEvent>,
    rx: Receiver<CallEvent>,
}

impl std::fmt::Debug for Guards {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guards").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Guards {
    /// Guards whose processes carry the mark of a loop.
    pub(crate) fn new(program: Option<GuardProgram>, mark: &str) -> Arc<Guards> {
        Arc::new(Guards {
            program,
            mark: mark.to_owned(),
            inherit: Vec::new(),
            idle: Mutex::default(),
            under_way: Mutex::default(),
            end_wished: EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).ok(),
        })
    }

    /// The same, and they hold these open: the loop's lock.
    pub(crate) fn holding(
        program: Option<GuardProgram>,
        mark: &str,
        inherit: Vec<OwnedFd>,
    ) -> Arc<Guards> {
        let guards = Guards::new(program, mark);
        match Arc::try_unwrap(guards) {
            Ok(guards) => Arc::new(Guards { inherit, ..guards }),
            Err(shared) => shared,
        }
    }

    /// Ends what is under way. Said again it can only make the end quicker.
    pub(crate) fn end(&self, how: Ending) {
        let mut under_way = lock(&self.under_way);
        under_way.wish = Some(how);
        if let Some(end_wished) = &self.end_wished {
            // It only fails where it was said more often than can be counted.
            let _ = end_wished.write(1);
        }
        for call in under_way.calls.values() {
            // A call that is over does not listen.
            drop(call.send(CallEvent::Stop(how)));
        }
    }

    /// Ends what is under way, and lets nothing begin any more.
    pub(crate) fn refuse(&self, how: Ending) {
        lock(&self.under_way).refuses = true;
        self.end(how);
    }

    /// As if nobody had wished for the end.
    pub(crate) fn accept_again(&self) {
        let mut under_way = lock(&self.under_way);
        (under_way.wish, under_way.refuses) = (None, false);
        if let Some(end_wished) = &self.end_wished {
            // It only fails where nothing was wished for.
            let _ = end_wished.read();
        }
    }

    pub(super) fn refuses(&self) -> bool {
        lock(&self.under_way).refuses
    }

    pub(super) fn is_end_wished(&self) -> bool {
        lock(&self.under_way).wish.is_some()
    }

    /// What can be read once somebody wished for the end.
    pub(super) fn end_wished(&self) -> Option<BorrowedFd<'_>> {
        self.end_wished.as_ref().map(AsFd::as_fd)
    }

    fn post(&self) -> io::Result<CallGuard> {
        if let Some(post) = lock(&self.idle).pop() {
            return Ok(post);
        }
        let (tx, rx) = channel();
        let events = tx.clone();
        let on_event = Box::new(move |event| drop(events.send(CallEvent::Tree(event))));
        let supervisor = match &self.program {
            Some(guard) => {
                let args: Vec<&str> = guard.args.iter().map(String::as_str).collect();
                let inherit: Vec<_> = self.inherit.iter().map(AsFd::as_fd).collect();
                Supervisor::guarded(&guard.exe, &args, &inherit, on_event)?
            }
            None => Supervisor::direct(&self.mark, on_event)?,
        };
        Ok(CallGuard { supervisor, tx, rx })
    }

    /// Lists a call as under way, and gives its time; `None` where it is not to begin any more.
    fn enter(
        &self,
        number: u64,
        post: &CallGuard,
        limit: Duration,
        manner: Manner,
    ) -> Option<Duration> {
        let mut under_way = lock(&self.under_way);
        if under_way.refuses {
            return None;
        }
        let limit = match (under_way.wish, manner) {
            (None, _) => limit,
            (Some(Ending::Kill), Manner::Hooks) => return None,
            (Some(_), Manner::Hooks) => limit.min(HURRY_HOOKS),
            (Some(_), _) => limit.min(HURRY),
        };
        under_way.calls.insert(number, post.tx.clone());
        Some(limit)
    }

    /// Runs a call to its end, and whatever it started.
    pub(super) fn run(&self, order: CallOrder) -> Result<Ran, StartError> {
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let mut post = self.post()?;
        let input = order.stdin.as_deref().map(super::filled).transpose()?;
        let mut env = order.env;
        env.retain(|(key, _)| key != MARK);
        env.push((MARK.into(), (&self.mark).into()));
        let launch = Launch {
            argv: order.argv,
            env,
            cwd: order.cwd,
            stdin: match &input {
                Some(file) => Stdin::File(format!("/proc/self/fd/{}", file.as_raw_fd()).into()),
                None => Stdin::Null,
            },
            finish: order.manner.finish(),
        };
        // Before it is started: a wish that comes meanwhile waits in the queue.
        let Some(limit) = self.enter(number, &post, order.limit, order.manner) else {
            return Ok(Ran {
                end: End::Stopped,
                stdout: Vec::new(),
                stderr: Vec::new(),
            });
        };
        let output = Box::new(CallOutput::default());
        let quiet = order.silence.map(|limit| QuietLimit {
            limit,
            since: output.last.clone(),
        });
        if let Err(error) = post.supervisor.start(number, &launch, output) {
            lock(&self.under_way).calls.remove(&number);
            return Err(error);
        }
        let end = post.watch(number, limit, quiet.as_ref(), order.manner);
        lock(&self.under_way).calls.remove(&number);
        let report = post.supervisor.collect(DRAIN);
        // Wishes that came too late are for no later call.
        while post.rx.try_recv().is_ok() {}
        let mut idle = lock(&self.idle);
        if idle.len() < KEPT {
            idle.push(post);
        }
        drop(idle);
        let output = report.sink.map(CallOutput::of).unwrap_or_default();
        Ok(Ran {
            end,
            stdout: output.stdout,
            stderr: output.stderr,
        })
    }
}

impl CallGuard {
    fn watch(
        &self,
        number: u64,
        limit: Duration,
        quiet: Option<&QuietLimit>,
        manner: Manner,
    ) -> End {
        let began = Instant::now();
        let mut until = began.checked_add(limit);
        let mut end = None;
        let mut stop = None;
        loop {
            let silent = quiet.map(QuietLimit::until);
            let next = until.into_iter().chain(silent).min();
            let left = next.map(|next| next.saturating_duration_since(Instant::now()));
            let news = match (end, left) {
                (None, Some(left)) => self.rx.recv_timeout(left),
                _ => self.rx.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match news {
                Err(RecvTimeoutError::Timeout) => {
                    let is_late = until.is_some_and(|until| Instant::now() >= until);
                    let over = match quiet {
                        Some(quiet) if !is_late && Instant::now() < quiet.until() => continue,
                        Some(_) if !is_late => End::Silent,
                        _ => End::Late,
                    };
                    end = Some(stop.map_or(over, |_| End::Stopped));
                    let how = stop.unwrap_or(Ending::Ask { grace: GRACE });
                    self.supervisor.terminate(how);
                }
                // The supervisor holds the other end.
                Err(RecvTimeoutError::Disconnected) => return end.unwrap_or(End::Exit(None)),
                Ok(CallEvent::Stop(Ending::Ask { .. })) if manner == Manner::Finish => {
                    let finished = began + FINISH;
                    until = Some(until.map_or(finished, |until| until.min(finished)));
                }
                Ok(CallEvent::Stop(how @ Ending::Ask { .. })) if stop.is_none() => {
                    stop = Some(how);
                    let finished = Instant::now() + FINISH_SOON;
                    until = Some(until.map_or(finished, |until| until.min(finished)));
                }
                Ok(CallEvent::Stop(how)) => {
                    end.get_or_insert(End::Stopped);
                    self.supervisor.terminate(how);
                }
                Ok(CallEvent::Tree(TreeEvent::Exited { run, exit })) if run == number => {
                    end.get_or_insert(End::Exit(match exit {
                        Exit::Code(code) => Some(code),
                        Exit::Signal(_) => None,
                    }));
                }
                Ok(CallEvent::Tree(TreeEvent::GuardLost { run })) if run == number => {
                    end.get_or_insert(End::Exit(None));
                }
                Ok(CallEvent::Tree(TreeEvent::Swept { run, .. })) if run == number => {
                    return end.unwrap_or(End::Exit(None));
                }
                Ok(CallEvent::Tree(_)) => {}
            }
        }
    }
}

/// How long a call may say nothing.
struct QuietLimit {
    limit: Duration,
    since: Arc<Mutex<Instant>>,
}

impl QuietLimit {
    fn until(&self) -> Instant {
        *lock(&self.since) + self.limit
    }
}

/// What a call says: an answer on one stream, and the end of the other.
struct CallOutput {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// When it began, or last said something.
    last: Arc<Mutex<Instant>>,
}

impl Default for CallOutput {
    fn default() -> Self {
        Self {
            stdout: Vec::new(),
            stderr: Vec::new(),
            last: Arc::new(Mutex::new(Instant::now())),
        }
    }
}

impl CallOutput {
    fn of(sink: Box<dyn Sink>) -> CallOutput {
        match (sink as Box<dyn Any>).downcast::<CallOutput>() {
            Ok(output) => *output,
            Err(_) => CallOutput::default(),
        }
    }
}

impl Sink for CallOutput {
    fn chunk(&mut self, channel: Channel, bytes: &[u8]) {
        *lock(&self.last) = Instant::now();
        match channel {
            Channel::Stdout => {
                let room = LONGEST_ANSWER.saturating_sub(self.stdout.len());
                let fits = bytes.get(..room.min(bytes.len())).unwrap_or_default();
                self.stdout.extend_from_slice(fits);
            }
            Channel::Stderr => {
                let keep = bytes.get(bytes.len().saturating_sub(TAIL)..);
                self.stderr.extend_from_slice(keep.unwrap_or_default());
                let over = self.stderr.len().saturating_sub(TAIL);
                self.stderr.drain(..over);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worktree::deadline::Deadline;
    use crate::worktree::error::WorktreeError;
    use crate::worktree::git::Git;

    #[test]
    fn a_call_that_says_nothing_is_ended_and_one_that_tells_of_its_progress_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let shell = Git::default().program("/bin/sh");
        let call = |script: &str| {
            let call = shell.own(dir.path()).args(["-c", script]);
            let call = call.ended_when_silent(Duration::from_secs(2));
            call.run(Deadline::after(Duration::from_secs(50)))
        };
        let told = "for n in 1 2 3 4 5 6 7 8; do echo $n >&2; sleep 0.5; done";
        assert_eq!(call(told).ok().and_then(|answer| answer.code), Some(0));
        let error = call("echo begun >&2; sleep 50").err();
        assert!(
            matches!(error, Some(WorktreeError::Silent { .. })),
            "{error:?}"
        );
    }

    #[test]
    fn a_call_under_way_may_finish_unless_it_takes_long_or_is_to_be_killed() {
        let ask = Ending::Ask { grace: GRACE };
        // How the end is wished for, what the call does, and what comes of it.
        let table = [
            (ask, "sleep 0.3; echo finished", Ok("finished\n")),
            (ask, "sleep 60", Err(())),
            (Ending::Kill, "sleep 60", Err(())),
        ];
        for (how, script, expected) in table {
            let dir = tempfile::tempdir().unwrap();
            let guards = Guards::new(None, "finish");
            let shell = Git::default().program("/bin/sh").guarded_by(guards.clone());
            let begun = dir.path().join("begun");
            let script = format!(": > begun; {script}");
            let said = std::thread::scope(|scope| {
                let call = shell.own(dir.path()).args(["-c", &script]);
                let call = scope.spawn(|| call.run(Deadline::after(Duration::from_secs(50))));
                while !begun.exists() {
                    std::thread::yield_now();
                }
                guards.end(how);
                call.join().unwrap()
            });
            let said = said.map(|output| String::from_utf8(output.stdout).unwrap());
            assert_eq!(said.as_deref().map_err(drop), expected, "{how:?}, {script}");
        }
    }
}
