//! The bridge's process, the calls that wait for it, and the subscriptions that it feeds.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::engine::{Delivery, EngineError, LinkStatus, ServedRequest};
use crate::message::{BridgeCall, BridgeLine, BridgeRequest, BridgeResult};

/// How long a bridge may take to end once its input is closed.
const END_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) struct BridgePipe {
    child: Mutex<Child>,
    pid: u32,
    input: Mutex<Option<ChildStdin>>,
    next_id: AtomicU64,
    waiting: Arc<Mutex<PendingCalls>>,
    reader: Option<JoinHandle<()>>,
}

/// Who waits for what the bridge says.
struct PendingCalls {
    calls: HashMap<u64, Sender<Result<BridgeResult, EngineError>>>,
    follows: HashMap<u64, Sender<Delivery>>,
    serves: HashMap<u64, Sender<ServedRequest>>,
    /// Subscriptions whose receivers are gone, and which the bridge does not know of yet.
    dropped: Vec<u64>,
    listeners: Vec<Sender<LinkStatus>>,
    link: LinkHistory,
    /// Set once the bridge is gone.
    ended: Option<String>,
}

struct LinkHistory {
    up: bool,
    since: Instant,
    last_down: Option<Instant>,
}

impl LinkHistory {
    fn status(&self) -> LinkStatus {
        let since = self.since.elapsed();
        match self.up {
            true => LinkStatus::Up {
                since,
                last_down: self.last_down.map(|at| at.elapsed()),
            },
            false => LinkStatus::Down { since },
        }
    }

    fn set(&mut self, up: bool) {
        if up && !self.up {
            self.last_down = Some(Instant::now());
        }
        if up != self.up {
            self.since = Instant::now();
        }
        self.up = up;
    }
}

impl BridgePipe {
    pub fn start(program: &Path) -> Result<Self, EngineError> {
        let mut child = Command::new(program)
            .arg("bridge")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // What it has to say of itself goes where ours goes.
            .stderr(Stdio::inherit())
            // Ctrl-C is for us: a worker that ends its work still needs the engine.
            .process_group(0)
            .spawn()
            .map_err(|error| EngineError::BridgeEnded(format!("{}: {error}", program.display())))?;
        let pid = child.id();
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let waiting = Arc::new(Mutex::new(PendingCalls {
            calls: HashMap::new(),
            follows: HashMap::new(),
            serves: HashMap::new(),
            dropped: Vec::new(),
            listeners: Vec::new(),
            link: LinkHistory {
                up: false,
                since: Instant::now(),
                last_down: None,
            },
            ended: None,
        }));
        let heard = Arc::clone(&waiting);
        let reader = output.map(|output| {
            thread::spawn(move || {
                let end = read_lines(BufReader::new(output), &heard);
                lock(&heard).end(&end);
            })
        });
        Ok(Self {
            child: Mutex::new(child),
            pid,
            input: Mutex::new(input),
            next_id: AtomicU64::new(1),
            waiting,
            reader,
        })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn call(&self, call: BridgeCall, timeout: Duration) -> Result<BridgeResult, EngineError> {
        self.call_as(self.id(), call, timeout)
    }

    pub fn follow(
        &self,
        call: BridgeCall,
        timeout: Duration,
    ) -> Result<Receiver<Delivery>, EngineError> {
        let (id, (sender, receiver)) = (self.id(), channel());
        lock(&self.waiting).follows.insert(id, sender);
        match self.call_as(id, call, timeout) {
            Ok(_) => Ok(receiver),
            Err(error) => {
                lock(&self.waiting).follows.remove(&id);
                Err(error)
            }
        }
    }

    pub fn serve(
        &self,
        call: BridgeCall,
        timeout: Duration,
    ) -> Result<Receiver<ServedRequest>, EngineError> {
        let (id, (sender, receiver)) = (self.id(), channel());
        lock(&self.waiting).serves.insert(id, sender);
        match self.call_as(id, call, timeout) {
            Ok(_) => Ok(receiver),
            Err(error) => {
                lock(&self.waiting).serves.remove(&id);
                Err(error)
            }
        }
    }

    pub fn link(&self) -> LinkStatus {
        lock(&self.waiting).link.status()
    }

    pub fn link_changes(&self) -> Receiver<LinkStatus> {
        let (sender, receiver) = channel();
        lock(&self.waiting).listeners.push(sender);
        receiver
    }

    fn id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    fn call_as(
        &self,
        id: u64,
        call: BridgeCall,
        timeout: Duration,
    ) -> Result<BridgeResult, EngineError> {
        let (sender, receiver) = channel();
        {
            let mut waiting = lock(&self.waiting);
            if let Some(end) = &waiting.ended {
                return Err(EngineError::BridgeEnded(end.clone()));
            }
            waiting.calls.insert(id, sender);
        }
        self.send(&BridgeRequest { id, call })?;
        self.unsubscribe_dropped()?;
        let answered = receiver.recv_timeout(timeout);
        lock(&self.waiting).calls.remove(&id);
        match answered {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => Err(EngineError::Timeout),
            Err(RecvTimeoutError::Disconnected) => {
                let end = lock(&self.waiting).ended.clone();
                Err(EngineError::BridgeEnded(end.unwrap_or_default()))
            }
        }
    }

    fn send(&self, request: &BridgeRequest) -> Result<(), EngineError> {
        let mut line =
            serde_json::to_vec(request).map_err(|error| EngineError::Other(error.to_string()))?;
        line.push(b'\n');
        let mut input = lock(&self.input);
        let written = input.as_mut().map(|input| input.write_all(&line));
        match written {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(EngineError::BridgeEnded(error.to_string())),
            None => Err(EngineError::BridgeEnded("closed".to_owned())),
        }
    }

    /// The reader notices a dropped receiver; the next call tells the bridge.
    fn unsubscribe_dropped(&self) -> Result<(), EngineError> {
        let dropped = std::mem::take(&mut lock(&self.waiting).dropped);
        for subscription in dropped {
            let call = BridgeCall::Unsubscribe { subscription };
            self.send(&BridgeRequest {
                id: self.id(),
                call,
            })?;
        }
        Ok(())
    }
}

impl Drop for BridgePipe {
    fn drop(&mut self) {
        lock(&self.input).take();
        let mut child = lock(&self.child);
        let until = Instant::now() + END_TIMEOUT;
        while Instant::now() < until && matches!(child.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(5));
        }
        if matches!(child.try_wait(), Ok(None)) {
            // One that is stuck; it has nothing that would be lost.
            let ended = child.kill().and_then(|()| child.wait().map(drop));
            if let Err(error) = ended {
                tracing::debug!(%error, "ending the bridge");
            }
        }
        if let Some(reader) = self.reader.take() {
            // It ends with the bridge's output, and has nothing to tell.
            drop(reader.join());
        }
    }
}

impl PendingCalls {
    fn hear(&mut self, line: BridgeLine) {
        match line {
            BridgeLine::Done { id, result } => self.answer(id, Ok(result)),
            BridgeLine::Failed { id, error } => self.answer(id, Err(error)),
            BridgeLine::Delivered {
                subscription,
                delivery,
            } => {
                let sent = self.follows.get(&subscription).map(|tx| tx.send(delivery));
                if matches!(sent, Some(Err(_))) {
                    self.follows.remove(&subscription);
                    self.dropped.push(subscription);
                }
            }
            BridgeLine::Served {
                subscription,
                request,
            } => {
                let sent = self.serves.get(&subscription).map(|tx| tx.send(request));
                if matches!(sent, Some(Err(_))) {
                    self.serves.remove(&subscription);
                    self.dropped.push(subscription);
                }
            }
            BridgeLine::Ended {
                subscription,
                reason,
            } => {
                tracing::debug!(subscription, reason, "a subscription ended");
                self.follows.remove(&subscription);
                self.serves.remove(&subscription);
            }
            BridgeLine::Link { up, reason } => {
                tracing::debug!(up, reason, "engine connection");
                self.set_link(up);
            }
        }
    }

    fn answer(&mut self, id: u64, result: Result<BridgeResult, EngineError>) {
        if let Some(caller) = self.calls.remove(&id)
            && caller.send(result).is_err()
        {
            tracing::debug!(id, "an answer came too late");
        }
    }

    fn set_link(&mut self, up: bool) {
        self.link.set(up);
        let status = self.link.status();
        self.listeners.retain(|tx| tx.send(status).is_ok());
    }

    /// Whoever waits is told by the end of its channel.
    fn end(&mut self, reason: &str) {
        self.ended = Some(reason.to_owned());
        self.set_link(false);
        self.calls.clear();
        self.follows.clear();
        self.serves.clear();
        self.listeners.clear();
    }
}

/// Reads until the bridge ends; returns why.
fn read_lines(mut output: impl BufRead, waiting: &Mutex<PendingCalls>) -> String {
    let mut line = Vec::new();
    loop {
        line.clear();
        match output.read_until(b'\n', &mut line) {
            Ok(0) => return "its output is closed".to_owned(),
            Ok(_) => {}
            Err(error) => return error.to_string(),
        }
        match serde_json::from_slice(&line) {
            Ok(parsed) => lock(waiting).hear(parsed),
            Err(error) => tracing::debug!(%error, "a line of the bridge that is none"),
        }
    }
}

/// A thread that panicked leaves nothing half-done here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
