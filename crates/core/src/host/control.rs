//! The control socket: a person's commands come in as lines, each gets `accepted` once it
//! is durable and `effective` once it has happened. One thread serves all clients and sleeps in
//! one `poll` (and every few seconds looks whether the socket is still there); nobody who is silent, slow or many keeps a person from getting through, and nothing
//! that a client does or leaves undone can hold up the driver.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use descartes_kernel::control::{Answer, Command, MAX_REQUEST, PROTOCOL, Request};
use descartes_kernel::steering::{Enclosure, Standing, Target};
use descartes_store::debug_log::variant;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::getuid;
use tracing::{debug, info, warn};

use super::message::HostMessage;
use super::reply::Reply;
use crate::steering::Caller;

/// Clients from outside that are served at the same time; beyond it the one that has been idle
/// longest goes.
const MOST_OUTSIDE: usize = 64;

/// The same for clients from within a loop, who may look and no more. They never take a place from
/// those outside.
const MOST_WITHIN: usize = 8;

/// A client that neither asks nor waits for an answer is dropped after so long.
const IDLE: Duration = Duration::from_secs(5);

/// So often it is looked whether the socket is still in its place: somebody may clean up there.
const LOOK: Duration = Duration::from_secs(5);

/// After an error of `accept` (no descriptor left, say) the next try is made so much later.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// The socket of one host. Dropping it closes it, waits for its thread and removes the file.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    path: PathBuf,
    /// Closed to wake the thread for the last time.
    alarm: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl ControlSocket {
    /// Listens at `path`, replacing what a dead host left there (the caller holds the lock).
    /// `started_in`: the tree of another loop that this host was started in. `journal`: where it should
    /// be; where it is not, whoever looks makes the driver put it back.
    pub(crate) fn listen(
        path: &Path,
        started_in: Option<Enclosure>,
        journal: PathBuf,
        tx: Sender<HostMessage>,
    ) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = listener_at(path)?;
        debug!(path = %path.display(), "control socket opened");
        let (alarm, woken) = UnixStream::pair()?;
        let server = Server {
            path: path.to_owned(),
            look_at: Instant::now() + LOOK,
            listener,
            woken,
            started_in,
            journal,
            tx,
            clients: Vec::new(),
            accept_at: None,
            spare: spare(),
        };
        let thread = thread::Builder::new()
            .name("control".to_owned())
            .stack_size(256 * 1024)
            .spawn(move || server.serve())?;
        Ok(Self {
            path: path.to_owned(),
            alarm: Some(alarm),
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.alarm = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
        // Left behind it would only be replaced by the next host.
        drop(std::fs::remove_file(&self.path));
    }
}

/// A private socket at a path where nothing is.
fn listener_at(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

struct Server {
    path: PathBuf,
    /// When its place is looked at again.
    look_at: Instant,
    listener: UnixListener,
    /// Readable when it is over.
    woken: UnixStream,
    started_in: Option<Enclosure>,
    journal: PathBuf,
    tx: Sender<HostMessage>,
    clients: Vec<Client>,
    /// Not before then.
    accept_at: Option<Instant>,
    /// Descriptors kept for the time when there are no others.
    spare: Vec<File>,
}

fn spare() -> Vec<File> {
    (0..2)
        .filter_map(|_| File::open("/dev/null").ok())
        .collect()
}

/// Somebody who is connected.
struct Client {
    stream: Arc<UnixStream>,
    caller: Caller,
    standing: Standing,
    /// A request that has begun.
    held: Vec<u8>,
    /// When it last asked something.
    since: Instant,
}

/// Whether a client stays.
#[derive(PartialEq, Eq)]
enum Stay {
    Yes,
    No,
}

impl Server {
    fn serve(mut self) {
        loop {
            let Some(ready) = self.sleep() else { return };
            let mut at = 0;
            let (tx, started_in) = (&self.tx, self.started_in.as_ref());
            let journal = &self.journal;
            self.clients.retain_mut(|client| {
                let speaks = ready.clients.get(at).copied().unwrap_or(false);
                at += 1;
                !speaks || client.listen(tx, started_in, journal) == Stay::Yes
            });
            let now = Instant::now();
            self.clients.retain(|client| !client.is_idle_since(now));
            if ready.listener {
                self.accept();
            }
            if now >= self.look_at {
                self.keep_in_place();
                self.look_at = now + LOOK;
            }
        }
    }

    /// A socket that somebody deleted is listened on anew. What others put in its place is not ours to
    /// take away; what cannot be made now is tried again.
    fn keep_in_place(&mut self) {
        if std::fs::symlink_metadata(&self.path).is_ok() {
            return;
        }
        if let Some(folder) = self.path.parent() {
            drop(std::fs::DirBuilder::new().mode(0o700).create(folder));
        }
        warn!(path = %self.path.display(), "control socket was deleted: opening it again");
        if let Ok(listener) = listener_at(&self.path) {
            self.listener = listener;
        }
    }

    /// Sleeps until something happens; `None` when it is over.
    fn sleep(&self) -> Option<ReadyClients> {
        let now = Instant::now();
        let accepts = self.accept_at.is_none_or(|at| now >= at);
        let mut fds = vec![PollFd::new(self.woken.as_fd(), PollFlags::POLLIN)];
        let clients = self.clients.iter();
        fds.extend(clients.map(|one| PollFd::new(one.stream.as_fd(), PollFlags::POLLIN)));
        if accepts {
            fds.push(PollFd::new(self.listener.as_fd(), PollFlags::POLLIN));
        }
        let idle = self.clients.iter().map(|one| one.since + IDLE);
        let next = idle.chain(self.accept_at.filter(|_| !accepts)).min();
        let next = next.map_or(self.look_at, |at| at.min(self.look_at));
        let left = next.saturating_duration_since(now).as_millis() + 1;
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        // Interrupted or out of memory: looked at again.
        let _ = poll(&mut fds, timeout);
        let mut any = fds.iter().map(|fd| fd.any().unwrap_or(false));
        if any.next() == Some(true) {
            return None;
        }
        Some(ReadyClients {
            clients: any.by_ref().take(self.clients.len()).collect(),
            listener: any.next().unwrap_or(false),
        })
    }

    /// Takes in everybody who waits, at most so many as there are places.
    fn accept(&mut self) {
        self.accept_at = None;
        for _ in 0..MOST_OUTSIDE {
            match self.listener.accept() {
                Ok((stream, _)) => self.welcome(stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Nobody can be taken in: who is idle makes room, and nobody spins.
                Err(error) => {
                    warn!(%error, clients = self.clients.len(), "no client can be accepted");
                    for _ in 0..self.clients.len().div_ceil(2) {
                        self.drop_longest_idle(|_| true);
                    }
                    self.accept_at = Some(Instant::now() + ACCEPT_AGAIN);
                    return;
                }
            }
        }
    }

    /// Who it is, also where no descriptor is left to find out with.
    fn caller_of(&mut self, stream: &UnixStream) -> io::Result<Caller> {
        let caller = Caller::of(stream)?;
        if caller.is_known() {
            return Ok(caller);
        }
        self.spare.clear();
        let caller = Caller::of(stream);
        self.spare = spare();
        caller
    }

    fn welcome(&mut self, stream: UnixStream) {
        let Ok(caller) = self.caller_of(&stream) else {
            return;
        };
        // Only the same user (or root) may steer a loop.
        let ours = caller.uid == getuid().as_raw() || caller.uid == 0;
        if !ours || stream.set_nonblocking(true).is_err() {
            return;
        }
        let client = Client {
            standing: caller.standing(),
            caller,
            stream: Arc::new(stream),
            held: Vec::new(),
            since: Instant::now(),
        };
        let outside = client.is_outside();
        let most = if outside { MOST_OUTSIDE } else { MOST_WITHIN };
        let same = |other: &Client| other.is_outside() == outside;
        if self.clients.iter().filter(|other| same(other)).count() >= most
            && !self.drop_longest_idle(same)
        {
            Reply(client.stream).refuse("too many clients", "close a view, then try again");
            return;
        }
        self.clients.push(client);
    }

    /// Drops the client that has been idle longest; false where nobody is.
    fn drop_longest_idle(&mut self, which: impl Fn(&Client) -> bool) -> bool {
        let idle = self.clients.iter().enumerate();
        let idle = idle.filter(|(_, client)| which(client) && !client.waits_for_answer());
        let Some((at, _)) = idle.min_by_key(|(_, client)| client.since) else {
            return false;
        };
        self.clients.remove(at);
        true
    }
}

/// Who has something to say.
struct ReadyClients {
    clients: Vec<bool>,
    listener: bool,
}

impl Client {
    fn is_outside(&self) -> bool {
        self.standing == Standing::Outside
    }

    /// The driver still has an answer to give.
    fn waits_for_answer(&self) -> bool {
        Arc::strong_count(&self.stream) > 1
    }

    fn is_idle_since(&self, now: Instant) -> bool {
        !self.waits_for_answer() && now.saturating_duration_since(self.since) >= IDLE
    }

    /// Reads what there is, and answers what is complete.
    fn listen(
        &mut self,
        tx: &Sender<HostMessage>,
        started_in: Option<&Enclosure>,
        journal: &Path,
    ) -> Stay {
        let mut chunk = [0; 16 << 10];
        let read = match (&*self.stream).read(&mut chunk) {
            Ok(0) => return Stay::No,
            Ok(read) => read,
            Err(error) => {
                let later = matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                );
                return if later { Stay::Yes } else { Stay::No };
            }
        };
        self.held.extend(&chunk[..read]);
        while let Some(end) = self.held.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.held.drain(..=end).collect();
            if self.request(&line, tx, started_in, journal) == Stay::No {
                return Stay::No;
            }
        }
        if self.held.len() > MAX_REQUEST {
            let reply = Reply(Arc::clone(&self.stream));
            reply.refuse("the request is too long", "a line may have at most 1 MiB");
            return Stay::No;
        }
        Stay::Yes
    }

    fn request(
        &mut self,
        line: &[u8],
        tx: &Sender<HostMessage>,
        started_in: Option<&Enclosure>,
        journal: &Path,
    ) -> Stay {
        self.since = Instant::now();
        let reply = Reply(Arc::clone(&self.stream));
        match serde_json::from_slice::<Request>(line) {
            Ok(request) if request.v == PROTOCOL => {
                let command = request.command;
                // Looking is for everybody, and troubles nobody else.
                if command == Command::Ping {
                    if !descartes_store::safe_open::is_there(journal) {
                        drop(tx.send(HostMessage::FilesGone));
                    }
                    reply.send(&Answer::Effective {
                        id: 0,
                        message: "alive".to_owned(),
                    });
                    return Stay::Yes;
                }
                if let Err(why) = self.standing.may_steer(Target::Running(started_in)) {
                    info!(command = %variant(&command), "command from within a loop refused");
                    reply.refuse(why.message, why.hint);
                    return Stay::Yes;
                }
                let from = Box::new(self.caller.sender());
                match tx.send(HostMessage::Command(command, from, reply)) {
                    Ok(()) => Stay::Yes,
                    Err(_) => Stay::No,
                }
            }
            Ok(request) => {
                reply.refuse(
                    format!("unsupported protocol version {}", request.v),
                    "use the same version of descartes for the loop and its views",
                );
                Stay::Yes
            }
            Err(error) => {
                reply.refuse(
                    format!("not a valid request: {error}"),
                    "send one JSON object per line, for example {\"v\":1,\"command\":\"ping\"}",
                );
                Stay::Yes
            }
        }
    }
}
