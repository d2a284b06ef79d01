//! The agents of a loop, resolved: what is started, how it is read, what it costs.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use descartes_agents::agent::{
    self, Choices, ConfinedBy, Delivery, Invocation, Profile, Profiles, Reports, SettingsFile,
    StreamKind,
};
use descartes_agents::promise::{PromiseMatch, PromiseSpec};
use descartes_agents::reader::{RunReader, RunReport, Source, Spending};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::event::{Cost, EndedBy};
use descartes_kernel::sandbox::SandboxLevel;
use descartes_kernel::state::RunInfo;
use descartes_kernel::step::LastSeen;
use descartes_proc::{StartError, find_program};
use descartes_sandbox::small_text;
use descartes_store::layout::RunDir;
use descartes_store::logs::{GapMarks, last_output, read_log};
use descartes_text::finding;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::sink::LazyReader;
use super::{HostError, HostSettings};

/// One agent, ready to be started.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedAgent {
    invocation: Invocation,
    profile: Profile,
    model: Option<String>,
    judge: Judge,
}

impl ResolvedAgent {
    /// What is started.
    pub(crate) fn program(&self) -> Option<&str> {
        self.invocation.argv.first().map(String::as_str)
    }
}

/// Who says whether a run claims to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judge {
    /// The promise detector.
    Detector,
    /// A backend of the library user's own.
    Own,
}

/// The agent of `--command`, then the fallbacks.
pub(crate) fn resolve_all(
    config: &IterativeLoopConfig,
    settings: &HostSettings,
) -> Result<Vec<ResolvedAgent>, HostError> {
    let agents = find_all(config, settings)?;
    for agent in &agents {
        check_rights(agent, config, settings)?;
        check_budget(agent, config, settings)?;
    }
    Ok(agents)
}

/// The same, as far as their programs are there. Nobody is asked what an agent may do that is not installed.
pub(crate) fn find_all(
    config: &IterativeLoopConfig,
    settings: &HostSettings,
) -> Result<Vec<ResolvedAgent>, HostError> {
    let mut agents = vec![resolve_first(config, settings)?];
    for fallback in &config.fallback {
        agents.push(resolve_fallback(fallback, config, settings)?);
    }
    for agent in &agents {
        check_installed(agent, config, settings)?;
    }
    Ok(agents)
}

/// Profile and words of every agent of a loop: of `--command`, then of the fallbacks. What is unknown, or
/// cannot be read, is left out; starting it says so.
pub(super) fn agents_of(
    config: &IterativeLoopConfig,
    settings: &HostSettings,
) -> Vec<(Profile, Vec<String>)> {
    let words = std::iter::once(&config.command).chain(&config.args);
    let words: Vec<String> = words.cloned().collect();
    let own = settings.backend.is_some();
    let name = match own {
        true => agent::GENERIC,
        false => &config.backend.backend_type,
    };
    let first = settings.profiles.get(name).cloned();
    let mut agents: Vec<_> = first.map(|profile| (profile, words)).into_iter().collect();
    for text in &config.fallback {
        let named = settings.profiles.get(text);
        let named = named.filter(|profile| !profile.command.is_empty());
        let words = match named {
            Some(_) => Vec::new(),
            None => shell_words::split(text).unwrap_or_default(),
        };
        let guessed = || settings.profiles.get(settings.profiles.guess(&words));
        let profile = named.or_else(guessed).cloned();
        agents.extend(profile.map(|profile| (profile, words)));
    }
    agents
}

pub(super) fn choices(config: &IterativeLoopConfig) -> Choices {
    Choices {
        model: config.model.clone(),
        permissions: config.permissions,
        prompt_mode: config.backend.prompt_mode,
        output_format: None,
        confined_by: match config.sandbox.effective() {
            SandboxLevel::Off => ConfinedBy::Itself,
            _ => ConfinedBy::Us,
        },
    }
}

fn resolve_first(
    config: &IterativeLoopConfig,
    settings: &HostSettings,
) -> Result<ResolvedAgent, HostError> {
    let words: Vec<String> = std::iter::once(&config.command)
        .chain(&config.args)
        .cloned()
        .collect();
    if let Some(own) = &settings.backend {
        let generic = profile(settings, agent::GENERIC)?;
        let mut invocation = agent::build(generic, &words, &choices(config));
        invocation.argv.extend(own.base_args());
        invocation.stream = own.stream();
        invocation.prompt_mode = config.backend.prompt_mode.unwrap_or(own.prompt_mode());
        let (profile, model) = (generic.clone(), config.model.clone());
        return Ok(ResolvedAgent {
            invocation,
            profile,
            model,
            judge: Judge::Own,
        });
    }
    let profile = profile(settings, &config.backend.backend_type)?;
    let choices = Choices {
        output_format: config.backend.wanted_format(),
        ..choices(config)
    };
    Ok(resolve(profile, &words, &choices, config))
}

fn resolve_fallback(
    text: &str,
    config: &IterativeLoopConfig,
    settings: &HostSettings,
) -> Result<ResolvedAgent, HostError> {
    if let Some(profile) = settings
        .profiles
        .get(text)
        .filter(|p| !p.command.is_empty())
    {
        return Ok(resolve(profile, &[], &choices(config), config));
    }
    let words = shell_words::split(text).map_err(|error| {
        HostError::usage(
            format!("--fallback `{text}`: {error}"),
            "quote it as you would in a shell",
        )
    })?;
    let name = settings.profiles.guess(&words).to_owned();
    Ok(resolve(
        profile(settings, &name)?,
        &words,
        &choices(config),
        config,
    ))
}

fn profile<'a>(settings: &'a HostSettings, name: &str) -> Result<&'a Profile, HostError> {
    settings.profiles.get(name).ok_or_else(|| {
        let known: Vec<&str> = settings.profiles.names().collect();
        HostError::usage(
            format!("unknown backend `{name}`"),
            format!(
                "known: {}; add your own as [agents.{name}] in the config",
                known.join(", ")
            ),
        )
    })
}

fn resolve(
    profile: &Profile,
    words: &[String],
    choices: &Choices,
    config: &IterativeLoopConfig,
) -> ResolvedAgent {
    ResolvedAgent {
        invocation: agent::build(profile, words, choices),
        profile: profile.clone(),
        model: config.model.clone(),
        judge: Judge::Detector,
    }
}

/// Whether it would be let do its work.
fn check_rights(
    agent: &ResolvedAgent,
    config: &IterativeLoopConfig,
    settings: &HostSettings,
) -> Result<(), HostError> {
    if agent.judge == Judge::Own {
        return Ok(());
    }
    let (profile, invocation) = (&agent.profile, &agent.invocation);
    let set = |key: &str| -> bool {
        let own = config
            .backend
            .environment
            .get(key)
            .is_some_and(|value| !value.is_empty());
        own || settings
            .agent_environment()
            .any(|(k, v)| k == key && !v.is_empty())
    };
    let host = agent::Host {
        root: nix::unistd::geteuid().is_root(),
        has_env: &set,
        settings_grant: any_settings_file(profile, config, settings, SettingsFile::grants),
    };
    agent::preflight(profile, invocation, host).map_err(|refusal| match refusal.denied {
        Some(denied) => HostError::Denied {
            message: refusal.message,
            hint: refusal.hint,
            denied,
        },
        None => HostError::refused(refusal.message, refusal.hint),
    })
}

/// Whether one of the agent's own settings files says this.
pub(super) fn any_settings_file(
    profile: &Profile,
    config: &IterativeLoopConfig,
    settings: &HostSettings,
    says: impl Fn(&SettingsFile, &str) -> bool,
) -> bool {
    let variable = |key: &str| {
        settings
            .agent_environment()
            .find(|(k, _)| k == key)
            .map(|(_, value)| value.clone())
    };
    let work = config.working_directory.clone().unwrap_or_default();
    profile.permissions.settings.iter().any(|file| {
        let named = file.dir_env.as_deref().and_then(variable);
        let dir = match (named, file.dir.strip_prefix("~/")) {
            (Some(dir), _) => Path::new(&dir).to_owned(),
            (None, Some(rest)) => match variable("HOME") {
                Some(home) => Path::new(&home).join(rest),
                None => return false,
            },
            (None, None) => work.join(&file.dir),
        };
        small_text(dir.join(&file.file)).is_ok_and(|text| says(file, &text))
    })
}

fn check_installed(
    agent: &ResolvedAgent,
    config: &IterativeLoopConfig,
    settings: &HostSettings,
) -> Result<(), HostError> {
    let work = config.working_directory.clone().unwrap_or_default();
    let path = settings
        .environment
        .iter()
        .find(|(key, _)| key == "PATH")
        .map(|(_, v)| v.as_os_str());
    let program = agent.invocation.argv.first().map_or("", String::as_str);
    find_agent(program, path, &work, &settings.profiles)
}

/// Whether the program of an agent is there, and if not, which one was probably meant.
fn find_agent(
    program: &str,
    path: Option<&OsStr>,
    dir: &Path,
    profiles: &Profiles,
) -> Result<(), HostError> {
    match find_program(OsStr::new(program), path, dir) {
        Ok(_) => Ok(()),
        Err(error @ StartError::NotFound(_)) => match meant_agent(program, profiles) {
            Some(meant) => Err(HostError::UnknownAgent { error, meant }),
            None => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// The agent that was probably meant by the name of a program that is not there.
fn meant_agent(program: &str, profiles: &Profiles) -> Option<String> {
    if profiles.get(program).is_some() || program.contains('/') {
        return None;
    }
    let agents = profiles
        .iter()
        .filter(|profile| !profile.command.is_empty());
    let meant = finding::nearest(program, agents.map(|profile| profile.name.as_str()));
    meant.map(str::to_owned)
}

/// The words of an agent that a file names: a profile's, or its own.
pub(crate) fn agent_words(asked: &str, profiles: &Profiles) -> Result<Vec<String>, HostError> {
    let text = match profiles.get(asked) {
        Some(profile) if !profile.command.is_empty() => profile.command.as_str(),
        _ => asked,
    };
    shell_words::split(text).map_err(|error| {
        HostError::refused(
            format!("the agent `{asked}`: {error}"),
            "quote it as you would in a shell",
        )
    })
}

/// Why an agent that a file names cannot be started here.
#[derive(Debug)]
pub struct AgentTrouble {
    /// As a start would say it.
    pub error: HostError,
    /// It is one that is known, and only not installed.
    pub is_known: bool,
}

/// Looks for the program of an agent that a file in `dir` names.
pub fn look_for_agent(
    asked: &str,
    profiles: &Profiles,
    environment: &[(OsString, OsString)],
    dir: &Path,
) -> Option<AgentTrouble> {
    let words = match agent_words(asked, profiles) {
        Ok(words) => words,
        Err(error) => {
            let is_known = false;
            return Some(AgentTrouble { error, is_known });
        }
    };
    let path = environment.iter().find(|(key, _)| key == "PATH");
    let path = path.map(|(_, value)| value.as_os_str());
    let error = find_agent(words.first()?, path, dir, profiles).err()?;
    let is_known = profiles.guess(&words) != agent::GENERIC;
    Some(AgentTrouble { error, is_known })
}

/// A cost budget that can never be reached is worse than none.
fn check_budget(
    agent: &ResolvedAgent,
    config: &IterativeLoopConfig,
    settings: &HostSettings,
) -> Result<(), HostError> {
    let name = &agent.invocation.profile;
    let refuse = |flag: &str, what: &str, hint: &str| {
        Err(HostError::refused(
            format!("{flag} needs an agent that reports {what}; `{name}` does not"),
            hint,
        ))
    };
    let reports = agent.invocation.reports;
    if config.max_tokens.is_some() && reports == Reports::Nothing {
        return refuse(
            "--max-tokens",
            "its tokens",
            "omit it, or use --max-duration",
        );
    }
    let priced = config
        .model
        .as_ref()
        .is_some_and(|model| settings.prices.of(model).is_some());
    let known = reports == Reports::Cost || (reports == Reports::Tokens && priced);
    if config.max_cost_usd.is_some() && !known {
        return refuse(
            "--max-cost",
            "its cost",
            "omit it, use --max-tokens or --max-duration, or fill in [prices] in the config and \
             pass --model",
        );
    }
    Ok(())
}

impl ResolvedAgent {
    /// Whether its stream tells the agent's own words from everything else.
    pub(super) fn understood(&self) -> bool {
        self.invocation.stream.is_understood()
    }

    /// The command line for this prompt.
    pub(super) fn deliver(&self, prompt: &str, file: &Path) -> Result<Delivery, HostError> {
        self.invocation
            .deliver(&self.profile, prompt, &file.to_string_lossy())
            .map_err(|error| HostError::Prompt(error.to_string()))
    }

    /// A reader of one run.
    pub(super) fn reader(&self, config: &IterativeLoopConfig, prompt: &str) -> LazyReader {
        let spec = self.promise(config);
        let (invocation, prompt) = (self.invocation.clone(), prompt.to_owned());
        let errors = self.profile.error_starts.clone();
        LazyReader::new(move || match invocation.stream {
            StreamKind::Text => RunReader::plain(&spec, &prompt).with_errors(&errors),
            _ => match invocation.parser() {
                Ok(parser) => RunReader::understood(&spec, parser),
                // Field paths were checked when the profile was read.
                Err(_) => RunReader::plain(&spec, &prompt),
            },
        })
    }

    pub(super) fn promise(&self, config: &IterativeLoopConfig) -> PromiseSpec {
        let by_backend = match self.understood() {
            true => PromiseMatch::Tagged,
            false => PromiseMatch::Line,
        };
        PromiseSpec {
            done: config
                .completion_promise
                .clone()
                .filter(|_| self.judge == Judge::Detector),
            abort: config.abort_promise.clone(),
            mode: config.promise_match.unwrap_or(by_backend),
        }
    }

    pub(super) fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Time that its profile gives it to end.
    pub(super) fn kill_grace(&self) -> Option<Duration> {
        self.profile.kill_grace
    }

    /// The share of a core that it uses while it merely waits, where that is known.
    pub(super) fn idle_share(&self) -> Option<f64> {
        self.profile.idle_cpu.map(|percent| percent / 100.0)
    }

    /// Variables of the profile, where the user has not set them.
    pub(super) fn environment(&self) -> &BTreeMap<String, String> {
        &self.invocation.env
    }

    /// Variables that turn off a sandbox of its own, whatever the environment says.
    pub(super) fn off_environment(&self) -> &BTreeMap<String, String> {
        &self.invocation.off_env
    }

    /// What turns that off, for people.
    pub(super) fn own_sandbox_off(&self) -> Option<String> {
        self.invocation.own_sandbox_off.clone()
    }

    /// What a run has cost so far: as the agent told it, else by the price table.
    pub(super) fn cost(&self, spent: &Spending, settings: &HostSettings) -> Option<Cost> {
        let model = spent.model.as_ref().or(self.model.as_ref());
        let estimate = || settings.prices.estimate(model?, &spent.tokens);
        spent.cost.or_else(estimate)
    }

    /// Fills in a cost from the price table where the agent told tokens only.
    pub(super) fn price(&self, said: &mut RunReport, settings: &HostSettings) {
        let spent = Spending {
            tokens: said.tokens.unwrap_or_default(),
            cost: said.cost,
            model: said.model.clone(),
        };
        said.cost = self.cost(&spent, settings);
    }
}

/// What the logs of a run tell whose host died.
pub(super) fn last_seen(
    folder: &RunDir,
    run: &RunInfo,
    agents: &[ResolvedAgent],
    config: &IterativeLoopConfig,
    settings: &HostSettings,
) -> LastSeen {
    let mut report = RunReport::default();
    if let Some(agent) = agents
        .get(run.agent as usize)
        .filter(|agent| agent.understood())
    {
        let mut late = agent.reader(config, "");
        let reader = late.get();
        if feed(&folder.stdout(), reader).is_ok() {
            report = reader.finish(
                None,
                EndedBy::HostLost,
                Timestamp::now(),
                &TimeZone::system(),
            );
        }
        agent.price(&mut report, settings);
    }
    LastSeen {
        at: last_output(folder),
        tokens: report.tokens,
        cost: report.cost,
    }
}

fn feed(log: &Path, reader: &mut RunReader) -> std::io::Result<()> {
    use std::io::Read;
    let mut file = read_log(log, GapMarks::Hidden)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            n => reader.push(Source::Stdout, &buffer[..n], &mut Vec::new()),
        }
    }
}
