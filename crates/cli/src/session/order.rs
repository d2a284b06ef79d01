//! What is to be done with which loop: a plain value, so that another process can do it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use descartes_agents::agent::Profiles;
use descartes_agents::price::{Price, Prices};
use descartes_core::host::{
    self, CONFINED_VARIABLE, EarlyStop, GuardProgram, HostError, HostSettings, NewLoop,
    OnExistingState, PassEnv, Resume, Resumed,
};
use descartes_core::loops;
use descartes_core::tasks::Retry;
use descartes_kernel::config::{ConfigChange, IterativeLoopConfig, Permissions};
use descartes_kernel::edits::Accept;
use descartes_kernel::fleet::RemoteTerms;
use descartes_kernel::steering::Sender;
use descartes_store::config::{Settings, SizeLimit};
use descartes_store::layout::{PROJECT_FOLDER, STATE_FILE};
use descartes_store::lock::holder_of;
use serde::{Deserialize, Serialize};

use crate::error::CliError;
use crate::notify::Listeners;
use crate::session::engines;
use crate::session::program::this_program;
use crate::settings::agent::profiles;
use crate::settings::command_context::CommandContext;

/// The hidden verb by which this binary is the guard of process trees.
pub const GUARD: &str = descartes_proc::GUARD_VERB;

/// Settings of ours, and the marks of a loop that this one was started in.
const OWN_VARIABLES: &str = "DESCARTES_";

/// A loop to begin or to take up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// Which, and how.
    pub job: Job,
    /// Variables for the agent: the config never writes their values down.
    pub environment: BTreeMap<String, String>,
    /// Where it works, or where it is asked for: settings are looked for there.
    #[serde(with = "descartes_text::path_text::one")]
    pub dir: PathBuf,
    /// Who gives it, where another process carries it out.
    #[serde(default)]
    pub from: Option<Sender>,
}

/// What to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Job {
    /// Begin a loop.
    Start {
        /// What is asked for.
        config: Box<IterativeLoopConfig>,
        name: Option<String>,
        /// Whether a state file that is there already is set aside.
        existing: OnExistingState,
    },
    /// Bring the finished work of a task loop into the user's checkout.
    Land {
        /// Its state file.
        #[serde(with = "descartes_text::path_text::one")]
        state_file: PathBuf,
        loop_id: String,
    },
    /// Take a loop up.
    Resume {
        /// Its state file.
        #[serde(with = "descartes_text::path_text::one")]
        state_file: PathBuf,
        /// Its id, where it is known.
        loop_id: Option<String>,
        /// What changes.
        change: Box<ConfigChange>,
        /// Whether an edited state file holds where it loosens the loop.
        #[serde(default)]
        accept: Accept,
        /// Where it goes on, if a person said so.
        #[serde(with = "descartes_text::path_text::maybe", default)]
        here: Option<PathBuf>,
        /// Whether blocked tasks are tried again.
        #[serde(default)]
        retry_blocked: bool,
    },
}

impl Order {
    pub fn new(job: Job, dir: PathBuf, environment: BTreeMap<String, String>) -> Self {
        Self {
            job,
            environment,
            dir,
            from: None,
        }
    }

    /// Carries it out, as far as holding the loop. All signals that matter are received by
    /// then: the host starts threads.
    /// What a person is told of a loop that does not go on is added to `told`.
    pub fn open(
        self,
        settings: HostSettings,
        told: &mut Vec<String>,
    ) -> Result<Resumed, HostError> {
        match self.job {
            Job::Start {
                mut config,
                name,
                existing,
            } => {
                config.backend.environment = self.environment.into();
                let new = NewLoop {
                    config: *config,
                    name,
                    existing,
                };
                loops::create(settings, new).map(|host| Resumed::Go(Box::new(host)))
            }
            Job::Land {
                state_file,
                loop_id,
            } => {
                let resume = Resume {
                    state_file,
                    loop_id: Some(loop_id),
                    change: ConfigChange::default(),
                    environment: self.environment,
                    accept: Accept::default(),
                    here: None,
                    retry: Retry::No,
                    from: self.from,
                };
                loops::land(settings, resume)
            }
            Job::Resume {
                state_file,
                loop_id,
                change,
                accept,
                here,
                retry_blocked,
            } => {
                let environment = self.environment;
                let resume = Resume {
                    state_file,
                    loop_id,
                    change: *change,
                    environment,
                    accept,
                    here,
                    retry: match retry_blocked {
                        true => Retry::Blocked,
                        false => Retry::No,
                    },
                    from: self.from,
                };
                loops::resume(settings, resume, told)
            }
        }
    }

    /// Lets the agent do this without asking.
    pub fn permit(&mut self, permissions: Permissions) {
        match &mut self.job {
            Job::Start { config, .. } => config.permissions = permissions,
            Job::Resume { change, .. } => change.permissions = Some(permissions),
            // No agent runs.
            Job::Land { .. } => {}
        }
    }

    /// What is said where the guard of a dead host still has the loop: it is waited for.
    pub fn waits_for_guard(&self, ctx: &CommandContext) -> Option<&'static str> {
        let file = match &self.job {
            Job::Start { config, .. } => config.state_file.clone(),
            Job::Resume { state_file, .. } | Job::Land { state_file, .. } => {
                Some(state_file.clone())
            }
        };
        let file = file.unwrap_or_else(|| self.dir.join(PROJECT_FOLDER).join(STATE_FILE));
        let held = holder_of(&ctx.root(&self.dir), &file).ok()??;
        host::is_guard_of_dead_host(&held).then_some(
            "the last host was killed: waiting until its guard has ended what was still running",
        )
    }

    /// What a host needs, from the settings where this order is for.
    pub fn host_settings(&self, ctx: &CommandContext) -> Result<HostSettings, CliError> {
        let settings = ctx.layers(&self.dir)?.settings;
        let profiles = profiles(&settings)?;
        Ok(HostSettings {
            prices: Arc::new(prices(&settings)?),
            ..host_settings(&settings, &self.dir, &profiles, ctx)
        })
    }

    /// Who is told of the loop.
    pub fn listeners(&self, ctx: &CommandContext) -> Result<Listeners, CliError> {
        let settings = ctx.layers(&self.dir)?.settings;
        Ok(Listeners::of(&settings, &ctx.environment))
    }
}

/// What a host in `dir` needs; prices are not among it.
pub fn host_settings(
    settings: &Settings,
    dir: &Path,
    profiles: &Profiles,
    ctx: &CommandContext,
) -> HostSettings {
    HostSettings {
        root: ctx.root(dir),
        paths: ctx.paths.clone(),
        guard: Some(GuardProgram {
            exe: this_program(),
            args: vec![GUARD.to_owned()],
        }),
        environment: passed_on(ctx),
        pass_env: settings.pass_env.get().map_or(PassEnv::All, PassEnv::Only),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        profiles: Arc::new(profiles.clone()),
        cancel: None,
        early_stop: EarlyStop::default(),
        backend: None,
        prices: Arc::default(),
        max_logs: settings.max_logs.get().and_then(|SizeLimit(limit)| limit),
        confined: ctx.environment.raw(CONFINED_VARIABLE).is_some(),
        lease: descartes_proc::LeaseClock::default(),
        engines: Some(engines::coordinator(ctx, dir)),
        remote_terms: RemoteTerms::default(),
    }
}

/// The variables that agents and gates get: all but our own.
fn passed_on(ctx: &CommandContext) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let own = |name: &std::ffi::OsString| name.to_string_lossy().starts_with(OWN_VARIABLES);
    let all = ctx.environment.variables().iter();
    all.filter(|(name, _)| !own(name)).cloned().collect()
}

/// Prices for agents that tell tokens only.
pub fn prices(settings: &Settings) -> Result<Prices, CliError> {
    let mut prices = BTreeMap::new();
    for (model, sourced) in &settings.prices {
        let price: Price = sourced.value.clone().try_into().map_err(|error| {
            CliError::usage(
                format!("{}: the price of {model}: {error}", sourced.source),
                "dollars per million tokens: input = 3.0, output = 15.0",
            )
        })?;
        prices.insert(model.clone(), price);
    }
    Ok(Prices(prices))
}
