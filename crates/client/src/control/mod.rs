//! A person's commands. To a running loop they go over its socket and get two answers:
//! `accepted` once durable, `effective` once it has happened. Of a loop that is not running
//! they are written into its journal, as its host would have done, for the next resume.

mod interrupted;
mod live;
mod stopped;

use std::thread;
use std::time::{Duration, Instant};

use descartes_kernel::control::{Command, CommandId};
use descartes_kernel::event::{Event, Record};
use descartes_kernel::state::{LoopState, Phase};
use descartes_store::debug_log::variant;
use descartes_store::host::{self, HostInfo};
use descartes_store::journal::last_records;
use descartes_store::lock::{Held, LockError};
use descartes_views::view::Life;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tracing::debug;

use self::live::Attempt;
pub use self::live::{ControlEffect, Ticket};
pub use self::stopped::Hold;
use crate::{ClientError, LoopHandle};

/// A host that is just starting has no socket yet; one that is just ending has none any more.
const TRANSITION: Duration = Duration::from_secs(3);
/// The guards of a dead host hold the loop until they have ended what it had started.
const SWEEPING: Duration = Duration::from_secs(30);
/// Between two attempts.
const AGAIN: Duration = Duration::from_millis(20);
/// The host may be in the middle of a commit or of measuring the work tree.
const ANSWER: Duration = Duration::from_secs(30);
/// Records behind which a command that was taken cannot stand.
const RECENT: usize = 64;

/// What became of a command.
#[derive(Debug)]
pub enum Sent {
    /// The running loop has taken it.
    Live(Ticket),
    /// The loop is not running: it stands in its journal.
    Recorded(Box<Recorded>),
    /// The running loop has no socket, and was asked to end by SIGTERM.
    Signalled { pid: u32 },
}

/// What was written into the journal of a loop that is not running.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The records; none where there was nothing to record.
    pub records: Vec<Record>,
    /// The state after them.
    pub state: LoopState,
    /// What was found and mended on the way, to be said aloud.
    pub notices: Vec<String>,
}

impl Recorded {
    /// Of a loop that is over: who of its agents on other machines has to be stopped yet, and how.
    pub fn remote_agents(&self) -> Option<String> {
        let is_over = matches!(self.state.phase, Phase::Finished { .. });
        (is_over && self.state.has_open_offers()).then(|| {
            format!(
                "its agents on other machines may still be at work: stop them with `descartes loop cancel {}`",
                self.state.loop_id
            )
        })
    }
}

impl LoopHandle {
    /// Sends a command to the loop, or records it where the loop is not running.
    pub fn send(&self, command: &Command) -> Result<Sent, ClientError> {
        self.send_within(command, ANSWER)
    }

    /// As [`send`](Self::send), with another patience for the first answer.
    pub fn send_within(&self, command: &Command, answer: Duration) -> Result<Sent, ClientError> {
        self.refuse_displaced()?;
        self.journal("there is nothing to steer")?;
        debug!(loop_id = %self.meta.id, command = %variant(command), "sending a command");
        let begun = Instant::now();
        loop {
            if self.holder()?.is_none() {
                self.refuse_copy()?;
                match self.hold().and_then(|hold| hold.record(command)) {
                    // A host was quicker; it has a socket soon.
                    Err(ClientError::Lock(LockError::Held(held))) if self.is_ours(&held) => {}
                    other => return other.map(|done| Sent::Recorded(Box::new(done))),
                }
            } else if let Attempt::Taken(ticket) = match self.ask(command, answer) {
                Err(error) if is_deaf(&error, command) && !self.is_copy() => {
                    match self.living_host()? {
                        Some(pid) => return without_socket(pid, command),
                        None => return Err(error),
                    }
                }
                asked => asked?,
            } {
                return Ok(Sent::Live(*ticket));
            } else if begun.elapsed() >= TRANSITION.min(answer) {
                match self.living_host()? {
                    // Its process is that of the whole task loop.
                    Some(_) if self.is_copy() => return Err(no_relay()),
                    Some(pid) => return without_socket(pid, command),
                    None if begun.elapsed() < SWEEPING.min(answer) => {}
                    None => {
                        let waited = begun.elapsed();
                        return Err(ClientError::Silent { pid: None, waited });
                    }
                }
            }
            thread::sleep(AGAIN);
        }
    }

    /// Whether it is this loop that somebody has, and not another on the same state file.
    fn is_ours(&self, held: &Held) -> bool {
        let holder = held.holder.as_ref();
        holder.is_none_or(|holder| holder.loop_id == self.meta.id)
    }

    /// Asks the host; where it went away without a word, its journal tells whether it had taken
    /// the command.
    fn ask(&self, command: &Command, answer: Duration) -> Result<Attempt, ClientError> {
        let Some(socket) = HostInfo::read(&self.dir).and_then(|info| info.socket) else {
            debug!("the host has no socket");
            return Ok(Attempt::Nobody);
        };
        debug!(socket = %socket.display(), "asking the host");
        let first = self.state()?.requests.next_command;
        self.look_at_host(command)?;
        let look = || self.look_at_host(command);
        let host = self.living_host()?;
        let attempt =
            live::ask(&socket, host, command, answer, look).map_err(|error| match error {
                ClientError::Silent { waited, .. } => ClientError::Silent {
                    pid: self.pid(),
                    waited,
                },
                other => other,
            })?;
        if let Attempt::Nobody = attempt
            && let Some(id) = self.taken(command, first)?
        {
            return Ok(Attempt::Taken(Box::new(Ticket::without_host(id))));
        }
        Ok(attempt)
    }

    /// A host that is stopped cannot answer: to be cancelled it is woken, all else is told at once.
    fn look_at_host(&self, command: &Command) -> Result<(), ClientError> {
        let Some(pid) = self.living_host()?.filter(|pid| host::is_stopped(*pid)) else {
            return Ok(());
        };
        match command {
            Command::Cancel { .. } => {
                // Refused, it stays as it is, and is told of as silent.
                let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGCONT);
                Ok(())
            }
            _ => Err(ClientError::Stopped(pid)),
        }
    }

    /// The number under which this command was taken, counted from `first`.
    fn taken(&self, command: &Command, first: CommandId) -> Result<Option<CommandId>, ClientError> {
        let recent = last_records(&self.dir.journal(), RECENT)?;
        Ok(recent.iter().find_map(|record| match &record.event {
            Event::CommandAccepted {
                id, command: taken, ..
            } if taken == command => Some(*id).filter(|id| *id >= first),
            _ => None,
        }))
    }

    /// The process that has the loop.
    pub fn pid(&self) -> Option<u32> {
        let held = self.holder().ok().flatten()?;
        held.holder.map(|holder| holder.host.pid)
    }

    /// The process that has the loop, if it is the host that took it and no guard of one.
    pub(crate) fn living_host(&self) -> Result<Option<u32>, ClientError> {
        let holder = self.holder()?.and_then(|held| held.holder);
        let alive = holder.filter(|holder| host::life_of(&holder.host) == host::Life::Alive);
        Ok(alive.map(|holder| holder.host.pid))
    }

    /// Takes the loop for a moment, so that nobody starts it meanwhile. Refused while it runs.
    pub fn hold(&self) -> Result<Hold, ClientError> {
        self.refuse_displaced()?;
        self.refuse_copy()?;
        Hold::take(self)
    }

    /// Whether anybody answers on the loop's socket.
    pub fn ping(&self, patience: Duration) -> Result<Life, ClientError> {
        let socket = HostInfo::read(&self.dir).and_then(|info| info.socket);
        let host = self.living_host()?;
        match socket.map(|socket| live::ask(&socket, host, &Command::Ping, patience, || Ok(()))) {
            Some(Ok(Attempt::Taken(_))) => Ok(Life::Alive),
            Some(Ok(Attempt::Nobody)) | None => Ok(Life::Gone),
            Some(Err(error)) => Err(error),
        }
    }
}

/// Whether a loop that is to be ended has to be told in another way than by its socket.
fn is_deaf(error: &ClientError, command: &Command) -> bool {
    let deaf = match error {
        ClientError::Silent { .. } => true,
        ClientError::Refused { message, .. } => message == "too many clients",
        _ => false,
    };
    deaf && matches!(command, Command::Cancel { .. })
}

/// The task loop has the copy of a remote loop, and nothing to talk to it.
fn no_relay() -> ClientError {
    ClientError::refused(
        "the task loop of this task takes no commands for it",
        "end the whole task loop instead: descartes loop cancel",
    )
}

/// Asks whoever listens whether it is there; a host that hears it looks after its files.
pub(crate) fn wake(socket: &std::path::Path, patience: Duration) {
    drop(live::ask(socket, None, &Command::Ping, patience, || Ok(())));
}

/// The loop lives and cannot be talked to. To be ended it need not listen.
fn without_socket(pid: u32, command: &Command) -> Result<Sent, ClientError> {
    if let Command::Cancel { .. } = command {
        debug!(pid, "no answer on the socket: sending a signal");
        kill(Pid::from_raw(pid.cast_signed()), Signal::SIGTERM).map_err(|error| {
            let hint = format!("end it yourself: kill {pid}");
            ClientError::refused(format!("cannot signal process {pid}: {error}"), hint)
        })?;
        // Should it be stopped, it hears of it now.
        let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGCONT);
        return Ok(Sent::Signalled { pid });
    }
    Err(ClientError::refused(
        format!("the loop is running (pid {pid}) but has no control socket"),
        "it can only be ended: descartes loop cancel",
    ))
}
