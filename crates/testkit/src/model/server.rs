//! The server itself: a thread for each connection, a lane for each test.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::exchange::{Exchange, no_route};
use super::http::{self, Request};
use super::lane::{Lane, LogEntry, UserText};
use super::route::{self, Control, Route};
use super::script::{Script, Turn};
use super::tools;

/// A running server on loopback; dropping it stops it.
///
/// ```
/// use descartes_testkit::model::ModelServer;
///
/// let server = ModelServer::start()?;
/// server.lane("my-test", serde_json::json!([{"text": "hello"}]));
/// let base = server.url("my-test");
/// assert!(base.starts_with("http://127.0.0.1:"));
/// assert!(server.log("my-test").is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Listens on a free port.
    ///
    /// # Errors
    /// When loopback cannot be listened on.
    pub fn start() -> io::Result<Self> {
        Self::start_on(0)
    }

    /// Listens on this port of loopback.
    ///
    /// # Errors
    /// When it cannot be listened on.
    pub fn start_on(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let accepted = Arc::clone(&shared);
        let accepting = Some(thread::spawn(move || accept(&listener, &accepted)));
        Ok(Self {
            address,
            shared,
            accepting,
        })
    }

    /// The base address of a lane, which CLIs are pointed at.
    pub fn url(&self, lane: &str) -> String {
        format!("{}/s/{lane}", self.root_url())
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the server itself.
    pub fn root_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Gives a lane its script and forgets what it saw.
    ///
    /// # Panics
    /// When the script does not parse.
    pub fn lane(&self, name: &str, script: Value) {
        let script: Script =
            serde_json::from_value(script).unwrap_or_else(|error| panic!("a script: {error}"));
        self.shared
            .lanes()
            .insert(name.to_owned(), Lane::new(script));
    }

    /// The requests that a lane saw.
    pub fn log(&self, lane: &str) -> Vec<LogEntry> {
        self.shared
            .lanes()
            .get(lane)
            .map(|lane| lane.log.clone())
            .unwrap_or_default()
    }

    /// The body of the newest request that took a turn of a lane.
    pub fn last_request(&self, lane: &str) -> Value {
        self.shared
            .lanes()
            .get(lane)
            .map(|lane| lane.last.clone())
            .unwrap_or_default()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.stop.set();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

/// Told once, when the server is to end; those who wait wake up.
#[derive(Debug, Default)]
pub(super) struct Stop {
    is_set: Mutex<bool>,
    told: Condvar,
}

impl Stop {
    fn set(&self) {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.told.notify_all();
    }

    pub(super) fn is_set(&self) -> bool {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits so long, or until the end.
    pub(super) fn wait(&self, time: Duration) {
        if time.is_zero() {
            return;
        }
        let is_set = self.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self
            .told
            .wait_timeout_while(is_set, time, |is_set| !*is_set);
    }
}

#[derive(Debug)]
struct Shared {
    started: Instant,
    state: Mutex<State>,
    stop: Stop,
}

#[derive(Debug, Default)]
struct State {
    lanes: HashMap<String, Lane>,
    requests: u64,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            state: Mutex::default(),
            stop: Stop::default(),
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lanes(&self) -> LanesGuard<'_> {
        LanesGuard(self.state())
    }

    fn answer(&self, stream: &TcpStream, request: &Request) -> io::Result<()> {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let (lane, route) = route::find(&request.method, &request.path, &body);
        match route {
            Route::Control(control) => self.control(stream, control, lane, body),
            Route::Answer(api, form, model) => {
                let offered = api.offered(&body);
                let names = offered.iter().map(|tool| tool.name.clone()).collect();
                let side = tools::shell(&offered).is_none();
                let model_name = model.clone();
                let entry = LogEntry {
                    model: model_name,
                    tools: names,
                    side,
                    ..entry(request, &body)
                };
                let (number, turn) = self.take_turn(lane, entry, &body);
                let now = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default()
                    .as_secs();
                let model = model.unwrap_or_else(|| "scripted".into());
                let stop = &self.stop;
                let exchange = Exchange {
                    api,
                    stream,
                    stop,
                    form,
                    model,
                    number,
                    now,
                };
                match turn {
                    Some(turn) => exchange.answer(&turn, &offered),
                    None => exchange.answer_aside(&body),
                }
            }
            Route::Fixed(answer) => {
                self.note(lane, entry(request, &body));
                json_answer(stream, 200, &answer)
            }
            Route::Nowhere => {
                self.note(lane, entry(request, &body));
                json_answer(stream, 404, &no_route(&request.method, &request.path))
            }
        }
    }

    /// Logs a request and gives its number, and its turn unless it is a side request.
    fn take_turn(&self, lane: &str, mut entry: LogEntry, body: &Value) -> (u64, Option<Turn>) {
        let mut state = self.state();
        let number = state.number(&mut entry, self.started);
        let lane = state.lanes.entry(lane.to_owned()).or_default();
        entry.side = entry.side && !lane.counts_side_requests();
        let mut taken = None;
        if !entry.side {
            let (index, turn) = lane.next();
            entry.turn = index;
            entry.fault = turn.fault.map(|fault| format!("{fault:?}"));
            lane.last = body.clone();
            taken = Some(turn);
        }
        lane.log.push(entry);
        (number, taken)
    }

    fn note(&self, lane: &str, mut entry: LogEntry) {
        let mut state = self.state();
        state.number(&mut entry, self.started);
        entry.side = true;
        state
            .lanes
            .entry(lane.to_owned())
            .or_default()
            .log
            .push(entry);
    }

    fn control(
        &self,
        stream: &TcpStream,
        control: Control,
        lane: &str,
        body: Value,
    ) -> io::Result<()> {
        let lanes = &mut self.state().lanes;
        match control {
            Control::Script => match serde_json::from_value(body) {
                Ok(script) => {
                    lanes.insert(lane.to_owned(), Lane::new(script));
                    json_answer(stream, 200, &json!({"ok": true}))
                }
                Err(error) => json_answer(stream, 400, &json!({"error": error.to_string()})),
            },
            Control::Log => {
                let log = lanes.get(lane).map(|lane| json!(lane.log));
                json_answer(stream, 200, &log.unwrap_or_else(|| json!([])))
            }
            Control::Last => {
                let last = lanes.get(lane).map(|lane| lane.last.clone());
                json_answer(stream, 200, &last.unwrap_or_default())
            }
        }
    }
}

impl State {
    fn number(&mut self, entry: &mut LogEntry, started: Instant) -> u64 {
        self.requests += 1;
        entry.number = self.requests;
        entry.at_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.requests
    }
}

/// The lanes, locked.
struct LanesGuard<'a>(MutexGuard<'a, State>);

impl std::ops::Deref for LanesGuard<'_> {
    type Target = HashMap<String, Lane>;

    fn deref(&self) -> &Self::Target {
        &self.0.lanes
    }
}

impl std::ops::DerefMut for LanesGuard<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0.lanes
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stop.is_set() {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            let _ = stream.set_nodelay(true);
            // A client that goes away in the middle is its own affair.
            if let Ok(Some(request)) = Request::read(&stream) {
                let _ = shared.answer(&stream, &request);
            }
        });
    }
}

fn json_answer(stream: &TcpStream, status: u16, body: &Value) -> io::Result<()> {
    http::respond(
        stream,
        status,
        "application/json",
        &Vec::new(),
        body.to_string().as_bytes(),
    )
}

fn entry(request: &Request, body: &Value) -> LogEntry {
    let keys = ["authorization", "x-api-key", "x-goog-api-key"];
    LogEntry {
        number: 0,
        at_ms: 0,
        method: request.method.clone(),
        path: request.path.clone(),
        model: None,
        auth: keys
            .iter()
            .find_map(|key| request.header(key))
            .map(str::to_owned),
        bytes: request.body.len(),
        tools: Vec::new(),
        users: user_texts(body),
        turn: None,
        side: false,
        fault: None,
    }
}

/// The texts of the last user messages, whichever API it is.
fn user_texts(body: &Value) -> Vec<UserText> {
    let lists = ["messages", "input", "contents"];
    let messages = lists
        .iter()
        .find_map(|key| body[*key].as_array())
        .into_iter()
        .flatten();
    let users = messages.filter(|message| message["role"] == "user");
    let texts: Vec<UserText> = users
        .flat_map(texts)
        .map(|text| UserText::of(&text))
        .collect();
    texts[texts.len().saturating_sub(8)..].to_vec()
}

fn texts(message: &Value) -> Vec<String> {
    let content = message.get("content").or_else(|| message.get("parts"));
    match content {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    }
}
