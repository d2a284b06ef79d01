//! Talking to a running loop.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use descartes_kernel::control::{Answer, Command, CommandId, MAX_REQUEST, PROTOCOL, Request};

use nix::errno::Errno;
use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, UnixAddr};

use crate::ClientError;

/// A request is small, and a host that lives reads it at once.
const WRITE: Duration = Duration::from_secs(5);
/// A host that does not answer is looked at so often.
const LOOK: Duration = Duration::from_millis(500);
/// Between two tries to connect.
const AGAIN: Duration = Duration::from_millis(10);
/// Characters of a strange answer that are shown.
const SHOWN: usize = 120;

/// What came of asking.
#[derive(Debug)]
pub(super) enum Attempt {
    Taken(Box<Ticket>),
    /// Nobody listens, or the host went away before it had taken the command.
    Nobody,
}

/// A command that a running loop has taken.
#[derive(Debug)]
pub struct Ticket {
    id: CommandId,
    effective: Option<String>,
    /// `None` once the host is gone.
    lines: Option<ReplyLines>,
}

/// What has become of a command that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlEffect {
    /// It has happened; what came of it.
    Done(String),
    /// Not yet.
    Pending,
    /// The host is gone. What was taken stands in the journal, and holds at the next resume.
    HostGone,
}

impl Ticket {
    pub(super) fn without_host(id: CommandId) -> Self {
        Self {
            id,
            effective: None,
            lines: None,
        }
    }

    /// Its number, unique within its loop.
    pub fn id(&self) -> CommandId {
        self.id
    }

    /// Waits until the command has taken effect, at most `limit`.
    pub fn effect(&mut self, limit: Duration) -> Result<ControlEffect, ClientError> {
        let end = Instant::now() + limit;
        loop {
            if let Some(message) = &self.effective {
                return Ok(ControlEffect::Done(message.clone()));
            }
            let Some(lines) = &mut self.lines else {
                return Ok(ControlEffect::HostGone);
            };
            match lines.next(end)? {
                ReplyLine::Answer(Answer::Effective { id, message }) if id == self.id => {
                    self.effective = Some(message);
                }
                ReplyLine::Answer(_) => {}
                ReplyLine::Late => return Ok(ControlEffect::Pending),
                ReplyLine::Closed => self.lines = None,
            }
        }
    }
}

/// Sends a command to the host, which is this process where it is known, and waits for the first
/// answer, at most `patience`. Every now and then `look` is asked whether it still makes sense.
pub(super) fn ask(
    socket: &Path,
    host: Option<u32>,
    command: &Command,
    patience: Duration,
    look: impl Fn() -> Result<(), ClientError>,
) -> Result<Attempt, ClientError> {
    let end = Instant::now() + patience;
    let Some(mut lines) = ReplyLines::open(socket, host, command, end)? else {
        return Ok(Attempt::Nobody);
    };
    let first = loop {
        match lines.next(end.min(Instant::now() + LOOK))? {
            ReplyLine::Late if Instant::now() < end => look()?,
            line => break line,
        }
    };
    let (id, effective) = match first {
        ReplyLine::Answer(Answer::Accepted { id }) => (id, None),
        ReplyLine::Answer(Answer::Effective { id, message }) => (id, Some(message)),
        ReplyLine::Answer(Answer::Refused { message, hint }) => {
            return Err(ClientError::Refused { message, hint });
        }
        ReplyLine::Late => {
            return Err(ClientError::Silent {
                pid: None,
                waited: patience,
            });
        }
        ReplyLine::Closed => return Ok(Attempt::Nobody),
    };
    Ok(Attempt::Taken(Box::new(Ticket {
        id,
        effective,
        lines: Some(lines),
    })))
}

#[derive(Debug)]
struct ReplyLines {
    reader: BufReader<UnixStream>,
    /// A line that has begun.
    held: Vec<u8>,
}

enum ReplyLine {
    Answer(Answer),
    Late,
    Closed,
}

impl ReplyLines {
    /// `None` where nobody listens.
    fn open(
        socket: &Path,
        host: Option<u32>,
        command: &Command,
        end: Instant,
    ) -> Result<Option<Self>, ClientError> {
        match connect(socket, end) {
            // Whoever else listens there has no say.
            Ok(stream) if !is_of(&stream, host) => Ok(None),
            Ok(stream) => Ok(Self::write(stream, command)),
            Err(Errno::EAGAIN) => Err(ClientError::Silent {
                pid: None,
                waited: Duration::ZERO,
            }),
            Err(_) => Ok(None),
        }
    }

    fn write(mut stream: UnixStream, command: &Command) -> Option<Self> {
        let request = Request {
            v: PROTOCOL,
            command: command.clone(),
        };
        let mut line = serde_json::to_vec(&request).ok()?;
        line.push(b'\n');
        stream.set_write_timeout(Some(WRITE)).ok()?;
        // A host that ends right now closes the socket; what it took stands in its journal.
        drop(stream.write_all(&line));
        Some(Self {
            reader: BufReader::new(stream),
            held: Vec::new(),
        })
    }

    fn next(&mut self, end: Instant) -> Result<ReplyLine, ClientError> {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(ReplyLine::Late);
            }
            let room = (MAX_REQUEST + 1).saturating_sub(self.held.len()) as u64;
            let timeout = self.reader.get_ref().set_read_timeout(Some(left));
            let read = timeout.and_then(|()| {
                let mut limited = (&mut self.reader).take(room);
                limited.read_until(b'\n', &mut self.held)
            });
            match read {
                Ok(_) if self.held.last() == Some(&b'\n') => return self.answer(),
                Ok(_) if self.held.len() > MAX_REQUEST => return self.answer(),
                Ok(0) => return Ok(ReplyLine::Closed),
                Ok(_) => {}
                Err(error) if is_late(&error) => return Ok(ReplyLine::Late),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Ok(ReplyLine::Closed),
            }
        }
    }

    fn answer(&mut self) -> Result<ReplyLine, ClientError> {
        let line = std::mem::take(&mut self.held);
        serde_json::from_slice(&line)
            .map(ReplyLine::Answer)
            .map_err(|_| {
                let text = String::from_utf8_lossy(&line);
                let shown: String = text.trim().chars().take(SHOWN).collect();
                ClientError::Garbled(shown.escape_debug().to_string())
            })
    }
}

/// Connects, and does not wait for ever where more clients wait than the host takes in.
fn connect(socket: &Path, end: Instant) -> Result<UnixStream, Errno> {
    let address = UnixAddr::new(socket)?;
    loop {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let fd = socket::socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
        match socket::connect(fd.as_raw_fd(), &address) {
            Ok(()) => {
                let stream = UnixStream::from(fd);
                let blocks = stream.set_nonblocking(false);
                return blocks.map(|()| stream).map_err(|_| Errno::EIO);
            }
            Err(Errno::EAGAIN) if Instant::now() < end => std::thread::sleep(AGAIN),
            Err(errno) => return Err(errno),
        }
    }
}

/// Whether the socket was made by this process; another pid namespace tells none.
fn is_of(stream: &UnixStream, host: Option<u32>) -> bool {
    let peer = socket::getsockopt(stream, socket::sockopt::PeerCredentials);
    let peer = peer.ok().and_then(|peer| u32::try_from(peer.pid()).ok());
    match (host, peer.filter(|pid| *pid > 0)) {
        (Some(host), Some(peer)) => host == peer,
        _ => true,
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
