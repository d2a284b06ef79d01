//! The control socket: a person's commands come in as lines, each gets `accepted` once it
//! is durable and `effective` once it has happened. Threads block on reads; nothing polls.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use descartes_kernel::control::{Answer, MAX_REQUEST, PROTOCOL, Request};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::getuid;

use super::message::Message;

/// Clients served at the same time; more are turned away.
const MAX_CLIENTS: usize = 64;

/// A client that does not take its answers is dropped.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Where an answer goes. A client that is gone is no error.
#[derive(Debug)]
pub(crate) struct Reply(UnixStream);

impl Reply {
    pub(crate) fn send(&self, answer: &Answer) {
        if let Ok(mut line) = serde_json::to_vec(answer) {
            line.push(b'\n');
            // The person may have gone away; the command stands all the same.
            drop((&self.0).write_all(&line));
        }
    }

    fn refuse(&self, message: impl Into<String>, hint: &str) {
        self.send(&Answer::Refused {
            message: message.into(),
            hint: hint.to_owned(),
        });
    }
}

/// The socket of one host. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    path: PathBuf,
}

impl ControlSocket {
    /// Listens at `path`, replacing what a dead host left there (the caller holds the lock).
    pub(crate) fn listen(path: &Path, tx: Sender<Message>) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        thread::Builder::new()
            .name("control".to_owned())
            .stack_size(64 * 1024)
            .spawn(move || accept(&listener, &tx))?;
        Ok(Self {
            path: path.to_owned(),
        })
    }
}

impl ControlSocket {
    /// Where it listens.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // Left behind it would only be replaced by the next host.
        drop(std::fs::remove_file(&self.path));
    }
}

fn accept(listener: &UnixListener, tx: &Sender<Message>) {
    let clients = std::sync::Arc::new(());
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        if !is_ours(&stream) {
            continue;
        }
        drop(stream.set_write_timeout(Some(WRITE_TIMEOUT)));
        if std::sync::Arc::strong_count(&clients) > MAX_CLIENTS {
            Reply(stream).refuse("too many clients", "close a view, then try again");
            continue;
        }
        let (tx, token) = (tx.clone(), clients.clone());
        let serve = move || {
            serve(&stream, &tx);
            drop(token);
        };
        drop(
            thread::Builder::new()
                .name("client".into())
                .stack_size(128 * 1024)
                .spawn(serve),
        );
    }
}

/// Only the same user (or root) may steer a loop.
fn is_ours(stream: &UnixStream) -> bool {
    let Ok(peer) = getsockopt(stream, PeerCredentials) else {
        return false;
    };
    peer.uid() == getuid().as_raw() || peer.uid() == 0
}

fn serve(stream: &UnixStream, tx: &Sender<Message>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        let limited = (&mut reader)
            .take(MAX_REQUEST as u64 + 1)
            .read_until(b'\n', &mut line);
        let Ok(copy) = stream.try_clone() else { return };
        let reply = Reply(copy);
        match limited {
            Ok(0) | Err(_) => return,
            Ok(_) if line.len() > MAX_REQUEST => {
                reply.refuse("the request is too long", "at most 1 MiB on a line");
                return;
            }
            Ok(_) => {}
        }
        match serde_json::from_slice::<Request>(&line) {
            Ok(request) if request.v == PROTOCOL => {
                if tx.send(Message::Command(request.command, reply)).is_err() {
                    return;
                }
            }
            Ok(request) => reply.refuse(
                format!("protocol {} is unknown here", request.v),
                "use the same version of descartes for the loop and its views",
            ),
            Err(error) => reply.refuse(
                format!("not a request: {error}"),
                "one JSON object on a line, for example {\"v\":1,\"command\":\"ping\"}",
            ),
        }
    }
}
