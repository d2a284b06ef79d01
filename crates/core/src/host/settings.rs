//! What a host is given by whoever starts it: the library reads no environment itself.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use descartes_agents::agent::Profiles;
use descartes_bridge::Engine;
use descartes_kernel::fleet::RemoteTerms;
use descartes_store::layout::{EnvPaths, StateRoot};

use super::{EarlyStop, GuardProgram, HostError, PassEnv};
use crate::backend::LoopBackend;

/// Logs of one loop, all runs together, unless told otherwise.
const LOG_BUDGET: u64 = 10 << 30;

/// Everything a host takes from its surroundings.
#[derive(Clone)]
pub struct HostSettings {
    /// Where loops are kept.
    pub root: StateRoot,
    /// Where the control socket goes.
    pub paths: EnvPaths,
    /// The guard; `None`: the library's own, weaker way.
    pub guard: Option<GuardProgram>,
    /// The environment that gates and git get.
    pub environment: Vec<(OsString, OsString)>,
    /// What of it agents get.
    pub pass_env: PassEnv,
    /// Version of the host, for the record.
    pub version: String,
    /// Known agents.
    pub profiles: Arc<Profiles>,
    /// A flag that cancels the loop when set.
    pub cancel: Option<Arc<AtomicBool>>,
    /// Tells whoever opens a loop that it is not wanted any more.
    pub early_stop: EarlyStop,
    /// A backend of the user's own.
    pub backend: Option<Arc<dyn LoopBackend>>,
    /// Prices for agents that tell tokens only: dollars for a million tokens by model.
    pub prices: Arc<descartes_agents::price::Prices>,
    /// Bytes of logs of one loop, all runs together: beyond it the oldest go; `None` is unlimited.
    pub max_logs: Option<u64>,
    /// Whether this host is inside of a sandbox of ours, in which no other can be made.
    pub confined: bool,
    /// Until when agents and gates may work, where that is for others to say: past it their guard stops
    /// them, and time in which they stand still counts nowhere.
    pub lease: descartes_proc::LeaseClock,
    /// Connects to an engine by its address, for attempts that other machines make.
    pub engines: Option<ConnectEngine>,
    /// How long a repository by which work travels is tried before commits travel through the engine.
    pub remote_terms: RemoteTerms,
}

/// Stands in the environment of whatever is in a sandbox.
pub const CONFINED_VARIABLE: &str = "DESCARTES_CONFINED";

/// Connects to an engine by its address; says what is wrong, and what to do about it.
pub type ConnectEngine = Arc<dyn Fn(&str) -> Result<Arc<dyn Engine>, HostError> + Send + Sync>;

impl std::fmt::Debug for HostSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The environment holds secrets.
        f.debug_struct("HostSettings")
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

impl HostSettings {
    /// Has every process that is started carry the mark of a loop, so that it is found again.
    pub(crate) fn carry_mark(&mut self, loop_id: &str) {
        self.environment
            .retain(|(key, _)| key != descartes_proc::MARK);
        self.environment
            .push((descartes_proc::MARK.into(), loop_id.into()));
    }

    /// The mark that processes carry.
    pub(crate) fn mark(&self) -> String {
        let mut marks = self.environment.iter();
        let mark = marks.rfind(|(key, _)| key == descartes_proc::MARK);
        mark.map_or_else(
            || "descartes".to_owned(),
            |(_, mark)| mark.to_string_lossy().into_owned(),
        )
    }

    /// The environment that agents get.
    pub fn agent_environment(&self) -> impl Iterator<Item = &(OsString, OsString)> {
        let variables = self.environment.iter();
        variables.filter(|(name, _)| self.pass_env.passes(name))
    }

    /// The surroundings of this process: the one place where the library reads them.
    pub fn from_process() -> Result<Self, HostError> {
        // Before anything is started: no git could tell how its own children ended.
        descartes_proc::hear_of_children();
        let paths = EnvPaths::from_process();
        let here = std::env::current_dir().unwrap_or_default();
        Ok(Self {
            root: StateRoot::resolve(&paths, &here),
            paths,
            guard: None,
            environment: std::env::vars_os().collect(),
            pass_env: PassEnv::All,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            profiles: Arc::new(Profiles::builtin()),
            cancel: None,
            early_stop: EarlyStop::default(),
            backend: None,
            prices: Arc::default(),
            max_logs: Some(LOG_BUDGET),
            confined: std::env::var_os(CONFINED_VARIABLE).is_some(),
            lease: descartes_proc::LeaseClock::default(),
            engines: None,
            remote_terms: RemoteTerms::default(),
        })
    }
}
