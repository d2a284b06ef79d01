//! `descartes sandbox`: the sandbox of agents and gates, to try and to look at.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use descartes_agents::agent::Profile;
use descartes_core::host::{HostSettings, TrialSandbox};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::sandbox::{Access, Network, RunPurpose, SandboxLevel, SandboxPlan};
use serde_json::json;

use crate::args::sandbox::{SandboxVerb, SandboxVerbArgs, WhichSandbox};
use crate::args::start::{FlagGroup, StartArgs};
use crate::error::{CliError, at};
use crate::printer::Printer;
use crate::session::order::host_settings;
use crate::settings::command_context::CommandContext;
use crate::settings::{agent, sandbox};
use crate::trust;

/// Runs a command in the sandbox, or explains it.
pub fn run(args: &SandboxVerbArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    match &args.verb {
        None => {
            let chosen = ChosenSandbox::of(&args.which, &args.command, ctx)?;
            if let Some(weaker) = chosen.trial.summary(&chosen.config).weaker {
                let printer = &ctx.printer;
                printer.warning(&format!("the sandbox is weaker here: {weaker}"));
            }
            start(&chosen, args.command.clone())
        }
        Some(SandboxVerb::Explain(explain)) => {
            let chosen = ChosenSandbox::of(&explain.which, &[], ctx)?;
            let explained = chosen.explain()?;
            match explain.json {
                true => ctx.printer.json(&explained),
                false => show(&chosen, &ctx.printer),
            }
            Ok(0)
        }
    }
}

/// A sandbox that was chosen by flags and settings, and works.
struct ChosenSandbox {
    trial: TrialSandbox,
    config: IterativeLoopConfig,
    dir: PathBuf,
    profile: Profile,
    purpose: RunPurpose,
}

impl ChosenSandbox {
    fn of(
        which: &WhichSandbox,
        command: &[OsString],
        ctx: &CommandContext,
    ) -> Result<Self, CliError> {
        let dir = ctx.dir(which.working_dir.as_deref());
        let dir = std::fs::canonicalize(&dir).map_err(at("work in", &dir))?;
        let args = StartArgs {
            sandbox: which.sandbox.clone(),
            ..StartArgs::default()
        };
        let ctx = &trust::settle_start(&dir, trust::ScudGates::Unused, &args, ctx)?;
        let mut layers = ctx.layers(&dir)?;
        which.sandbox.put_over(&mut layers.settings);
        let settings = &mut layers.settings;
        settings.backend.put("--backend", which.backend.clone());
        let verify = Some(which.verify.clone()).filter(|gates| !gates.is_empty());
        settings.verify.put("--verify", verify);
        let mut config = IterativeLoopConfig {
            working_directory: Some(dir.clone()),
            ..IterativeLoopConfig::default()
        };
        settings.apply_to(&mut config);
        sandbox::put_paths(&mut config, settings, ctx, &dir);
        let level = config.sandbox.level.get_or_insert(SandboxLevel::Workspace);
        if *level == SandboxLevel::Off && which.sandbox.sandbox.is_none() {
            *level = SandboxLevel::Workspace;
        }
        let profile = chosen_profile(which, command, settings)?;
        let purpose = match which.gate {
            true => RunPurpose::Gate,
            false => RunPurpose::Agent,
        };
        let profiles = agent::profiles(settings)?;
        let host = host_settings(settings, &dir, &profiles, ctx);
        let program = program_of(command, &profile, &host, &dir);
        let trial =
            TrialSandbox::prepare(&host, &config, &dir, purpose, &profile, program.as_deref())?;
        Ok(Self {
            trial,
            config,
            dir,
            profile,
            purpose,
        })
    }

    fn explain(&self) -> Result<serde_json::Value, CliError> {
        let plan = &self.trial.plan;
        let rules: Vec<_> = plan
            .rules
            .iter()
            .map(|rule| {
                json!({
                    "path": rule.path.display().to_string(),
                    "access": rule.access.as_str(),
                    "why": rule.why.as_str(),
                })
            })
            .collect();
        Ok(json!({
            "sandbox": self.trial.summary(&self.config),
            "for": purpose_name(self.purpose),
            "agent": self.profile.name,
            "rules": rules,
            "everything_else": Access::ReadOnly.as_str(),
            "network": network(plan),
            "variables_not_passed_on": self.trial.env_dropped,
        }))
    }
}

fn purpose_name(purpose: RunPurpose) -> &'static str {
    match purpose {
        RunPurpose::Agent => "agent",
        RunPurpose::Gate => "gate",
    }
}

/// The agent that a sandbox is for: the one that is named, else the one that is started.
fn chosen_profile(
    which: &WhichSandbox,
    command: &[OsString],
    settings: &descartes_store::config::Settings,
) -> Result<Profile, CliError> {
    let profiles = agent::profiles(settings)?;
    let words = command
        .iter()
        .map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.collect();
    let name = match (&which.backend, words.is_empty()) {
        (Some(name), _) => name.clone(),
        (None, false) => profiles.guess(&words).to_owned(),
        (None, true) => agent::choose(None, settings, &profiles)?.backend,
    };
    Ok(agent::known(&name, &profiles)?.clone())
}

/// The program that is started, where it is found.
fn program_of(
    command: &[OsString],
    profile: &Profile,
    host: &HostSettings,
    dir: &Path,
) -> Option<PathBuf> {
    let own = profile
        .command
        .split_whitespace()
        .next()
        .map(OsString::from);
    let program = command.first().cloned().or(own)?;
    let path = host.environment.iter().find(|(key, _)| key == "PATH");
    let path = path.map(|(_, value)| value.as_os_str());
    let found = descartes_proc::find_program(&program, path, dir).ok()?;
    Some(dir.join(found))
}

/// This process becomes the command, confined.
fn start(chosen: &ChosenSandbox, command: Vec<OsString>) -> Result<i32, CliError> {
    let launch = chosen.trial.launch(command, &chosen.dir)?;
    let Some((name, args)) = launch.argv.split_first() else {
        return Err(CliError::usage(
            "no command is given",
            "name it behind `--`",
        ));
    };
    let error = Command::new(name)
        .args(args)
        .env_clear()
        .envs(launch.env)
        .current_dir(&launch.cwd)
        .exec();
    Err(at("start", Path::new(name))(error))
}

fn network(plan: &SandboxPlan) -> String {
    match &plan.network {
        Network::Host => "the machine's, services on loopback included".to_owned(),
        Network::Loopback => "a loopback of its own and nothing else".to_owned(),
        Network::Hosts(hosts) if hosts.is_empty() => {
            "none: no hosts are known for this agent (sandbox.hosts of its profile)".to_owned()
        }
        Network::Hosts(hosts) => {
            format!("through a proxy, these hosts alone: {}", hosts.join(", "))
        }
    }
}

/// Rows for people, one heading for each kind of access.
fn show(chosen: &ChosenSandbox, printer: &Printer) {
    let plan = &chosen.trial.plan;
    let summary = chosen.trial.summary(&chosen.config);
    let (name, purpose) = (&chosen.profile.name, purpose_name(chosen.purpose));
    printer.line(&format!("sandbox  {}", summary.describe()));
    printer.line(&format!("for      {purpose} ({name})"));
    if let Some(weaker) = &summary.weaker {
        printer.line(&format!("weaker   {weaker}"));
    }
    printer.line(&format!("network  {}", network(plan)));
    if let Some(off) = &summary.own_off {
        let name = &chosen.profile.name;
        printer.line(&format!(
            "turned off: the sandbox of {name} itself, which would fail inside ({off})"
        ));
    }
    if !summary.limits.is_empty() {
        printer.line(&format!("at most  {}", summary.limits.join(", ")));
    }
    for missing in &summary.unlimited {
        printer.line(&format!("no limit {missing}"));
    }
    let dropped = &chosen.trial.env_dropped;
    if !dropped.is_empty() {
        printer.line(&format!("not passed on: {}", dropped.join(", ")));
    }
    let kinds = [
        (Access::Writable, "writable"),
        (Access::Pinned, "writable, cannot be moved"),
        (Access::Private, "private: empty at first, thrown away"),
        (Access::ReadOnly, "read-only inside of those"),
        (Access::Hidden, "hidden"),
    ];
    for (access, title) in kinds {
        let rules = plan.rules.iter().filter(|rule| rule.access == access);
        let rules: Vec<_> = rules.collect();
        if rules.is_empty() {
            continue;
        }
        printer.line("");
        printer.line(title);
        for rule in rules {
            printer.line(&format!(
                "  {}  ({})",
                rule.path.display(),
                rule.why.as_str()
            ));
        }
    }
    printer.line("");
    printer.line("everything else is readable and cannot be changed");
}
