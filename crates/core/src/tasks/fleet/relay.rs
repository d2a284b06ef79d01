//! The control socket of a loop that runs on another machine: passes a person's commands on to its worker,
//! and the answers back.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use descartes_bridge::{Engine, EngineError};
use descartes_kernel::control::{Answer, Command};
use descartes_kernel::steering::Sender;
use descartes_store::layout::{EnvPaths, LoopDir, socket_path};
use tracing::{info, warn};

use super::messages::{AttemptRequest, CommandOrder, RequestReceipt};
use crate::host::control::ControlSocket;
use crate::host::message::HostMessage;
use crate::host::reply::Reply;
use crate::steering;

/// A worker that does not say within this time that it got a command is told of as frozen.
const RECEIPT_TIMEOUT: Duration = Duration::from_secs(4);

/// Where commands to a remote loop go.
#[derive(Clone)]
pub(super) struct RelayTarget {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) subject: String,
    pub(super) worker: String,
    pub(super) task: String,
}

/// Commands that were passed on, and answers that came back.
#[derive(Default)]
struct PassedCommands {
    waiting: Vec<(u64, Reply)>,
    /// How many answers have come.
    answered: usize,
}

/// The socket of a loop on another machine. Dropped, it is closed, and whoever waits is told by that.
pub(super) struct Relay {
    socket: Option<ControlSocket>,
    passed: Arc<Mutex<PassedCommands>>,
}

impl Relay {
    /// Listens for commands to a loop.
    pub(super) fn listen(
        target: RelayTarget,
        paths: &EnvPaths,
        loop_id: &str,
        dir: &LoopDir,
    ) -> Self {
        let passed: Arc<Mutex<PassedCommands>> = Arc::default();
        let (tx, commands) = channel();
        let open = || -> std::io::Result<ControlSocket> {
            // The worker may be on this machine, and the loop's own socket in the same folder.
            let name = format!("copy of {loop_id}");
            let path = socket_path(paths, &name).map_err(std::io::Error::other)?;
            let started_in = steering::own_enclosure();
            let socket = ControlSocket::listen(&path, started_in, dir.journal(), tx)?;
            let relay = CommandRelay {
                target,
                passed: passed.clone(),
            };
            let thread = std::thread::Builder::new().name("relay".to_owned());
            thread.spawn(move || relay.run(&commands))?;
            Ok(socket)
        };
        let socket = open().map_err(|error| warn!(%error, loop_id, "no socket for a remote loop"));
        Self {
            socket: socket.ok(),
            passed,
        }
    }

    /// Where it listens.
    pub(super) fn path(&self) -> Option<PathBuf> {
        let socket = self.socket.as_ref();
        socket.map(|socket| socket.path().to_owned())
    }

    /// How many answers have come.
    pub(super) fn answered(&self) -> usize {
        lock(&self.passed).answered
    }

    /// Answers that came from the worker.
    pub(super) fn take_answers(&self, answers: &[(u64, Answer)]) {
        let mut passed = lock(&self.passed);
        passed.answered += answers.len();
        for (ticket, answer) in answers {
            let waiting = passed.waiting.iter();
            for (_, reply) in waiting.filter(|(waiting, _)| waiting == ticket) {
                reply.send(answer);
            }
            if !matches!(answer, Answer::Accepted { .. }) {
                passed.waiting.retain(|(waiting, _)| waiting != ticket);
            }
        }
    }
}

fn lock(passed: &Mutex<PassedCommands>) -> MutexGuard<'_, PassedCommands> {
    passed.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread that passes commands on.
struct CommandRelay {
    target: RelayTarget,
    passed: Arc<Mutex<PassedCommands>>,
}

impl CommandRelay {
    fn run(&self, commands: &Receiver<HostMessage>) {
        // Ends with the socket.
        while let Ok(message) = commands.recv() {
            if let HostMessage::Command(command, from, reply) = message {
                self.pass_on(command, *from, reply);
            }
        }
    }

    fn pass_on(&self, command: Command, from: Sender, reply: Reply) {
        let ticket = uuid::Uuid::now_v7().as_u64_pair().1;
        let order = CommandOrder {
            ticket,
            command,
            from,
        };
        let body = serde_json::to_vec(&AttemptRequest::Command { order }).unwrap_or_default();
        // Before it is sent: the answer may be quicker than the receipt.
        lock(&self.passed).waiting.push((ticket, reply.clone()));
        let RelayTarget {
            engine,
            subject,
            worker,
            task,
        } = &self.target;
        let receipt = engine.request(subject, &body, RECEIPT_TIMEOUT);
        let receipt = receipt.map(|bytes| serde_json::from_slice(&bytes));
        let (message, hint) = match receipt {
            Ok(Ok(RequestReceipt::Taken)) => return,
            Ok(Ok(RequestReceipt::NotOpen)) => (
                format!("the attempt of worker {worker} at task {task} is not under way"),
                "tell the task loop instead",
            ),
            Ok(_) => (
                format!("worker {worker} does not understand the command"),
                "install the same version of descartes on both machines",
            ),
            Err(EngineError::NoResponders) => (
                format!(
                    "worker {worker} is gone: task {task} is offered again when its claim lapses"
                ),
                "who is there: descartes loop workers",
            ),
            Err(EngineError::Timeout) => (
                format!("worker {worker} does not answer: it is frozen, or cut off"),
                "who is there: descartes loop workers",
            ),
            Err(error) => (
                format!("worker {worker} cannot be reached: {error}"),
                "look at the engine: descartes engine status",
            ),
        };
        info!(worker, task, message, "a command was not passed on");
        lock(&self.passed)
            .waiting
            .retain(|(waiting, _)| *waiting != ticket);
        let hint = hint.to_owned();
        reply.send(&Answer::Refused { message, hint });
    }
}
