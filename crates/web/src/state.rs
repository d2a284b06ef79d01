//! What every request shares.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use descartes_client::{LoopHandle, Loops};
use tokio::sync::{Semaphore, watch};

use crate::access::{Gatekeeper, OneTimeLink, Sessions, Slowdown, TokenFile};
use crate::live::Hub;
use crate::start_rules::StartRules;

/// Whether this process may steer a loop; else why not, and what to type instead.
pub type SteeringCheck = Arc<dyn Fn(&LoopHandle) -> Result<(), (String, String)> + Send + Sync>;

/// The two ends of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionEnds {
    pub here: SocketAddr,
    pub there: SocketAddr,
}

/// Whether whoever is at the other end may change anything at all; else why not, and what to do instead.
pub type RequesterCheck = Arc<dyn Fn(ConnectionEnds) -> Result<(), (String, String)> + Send + Sync>;

/// Certificate and key, as PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// What to serve, where, and to whom.
#[derive(Clone)]
pub struct ServeOptions {
    pub loops: Loops,
    pub listen: SocketAddr,
    /// Names under which a browser may ask for it, besides addresses and `localhost`.
    pub hosts: Vec<String>,
    pub tls: Option<TlsFiles>,
    pub behind_proxy: bool,
    pub read_only: bool,
    /// Loops may be started: where one was before, and below these folders.
    pub start_below: Option<Vec<PathBuf>>,
    /// Make new tokens first.
    pub new_token: bool,
    /// The command line, for what only it can do: resume, diff, report.
    pub program: PathBuf,
    pub may_steer: SteeringCheck,
    pub may_ask: RequesterCheck,
}

/// Requests that start a program of ours at the same time.
const PROGRAMS: usize = 4;
/// Commands whose effects are waited for at the same time.
const WAITS: usize = 16;
/// Event streams at the same time.
const STREAMS: usize = 256;

pub struct WebState {
    pub loops: Loops,
    pub hub: Hub,
    pub gate: Gatekeeper,
    pub tokens: TokenFile,
    pub sessions: Sessions,
    pub link: OneTimeLink,
    pub slowdown: Slowdown,
    /// Requests that were not let in, by why.
    refused: Mutex<BTreeMap<&'static str, u64>>,
    /// Cookies know no ports: two servers on one machine need two names.
    pub cookie: String,
    pub program: PathBuf,
    pub may_steer: SteeringCheck,
    pub may_ask: RequesterCheck,
    /// Where loops may be started, if at all.
    pub start: Option<StartRules>,
    pub programs: Semaphore,
    pub streams: Arc<Semaphore>,
    pub waits: Arc<Semaphore>,
    /// Changes when the tokens do: open streams end.
    pub generation: watch::Sender<u64>,
}

impl WebState {
    pub fn new(
        options: &ServeOptions,
        (gate, port): (Gatekeeper, u16),
        tokens: TokenFile,
        link: OneTimeLink,
    ) -> Self {
        Self {
            hub: Hub::new(options.loops.clone()),
            loops: options.loops.clone(),
            gate,
            tokens,
            sessions: Sessions::of(options.loops.root()),
            link,
            slowdown: Slowdown::default(),
            refused: Mutex::default(),
            cookie: format!("descartes-{port}"),
            program: options.program.clone(),
            may_steer: Arc::clone(&options.may_steer),
            may_ask: Arc::clone(&options.may_ask),
            start: options
                .start_below
                .clone()
                .filter(|_| !options.read_only)
                .map(|below| StartRules { below }),
            programs: Semaphore::new(PROGRAMS),
            streams: Arc::new(Semaphore::new(STREAMS)),
            waits: Arc::new(Semaphore::new(WAITS)),
            generation: watch::Sender::new(0),
        }
    }

    /// Counts a request that was not let in.
    pub fn count_refusal(&self, why: &'static str) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        *refused.entry(why).or_default() += 1;
    }

    pub fn refusals(&self) -> BTreeMap<&'static str, u64> {
        self.refused
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
