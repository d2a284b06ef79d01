//! `descartes agents test NAME`: a tiny task in a scratch folder, through the real engine.

mod report;
mod scratch;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use descartes_agents::agent::{Choices, ConfinedBy, Invocation, Profile, Profiles, build};
use descartes_core::host::{Host, HostSettings, OnExistingState, Resumed};
use descartes_kernel::config::{IterativeLoopConfig, LoopBackendConfig, Permissions};
use descartes_kernel::event::{Event, RunFacts, StopBy};
use descartes_kernel::sandbox::{SandboxConfig, SandboxLevel};
use descartes_store::layout::StateRoot;
use descartes_text::units::Secs;

use super::installed::{look_for, show_version};
use crate::args::agents::TestArgs;
use crate::args::values;
use crate::error::CliError;
use crate::session::foreground::Format;
use crate::session::order::{Job, Order};
use crate::session::signals::Switchboard;
use crate::settings::command_context::CommandContext;
use report::{Report, TrialFindings};
use scratch::Scratch;

const PROMPT: &str = "This is a test of whether you work here. Create a file named hello.txt in \
    the current directory that contains the single word hello. Do nothing else. Then end your \
    answer with this \
line, alone:\n\n<promise>COMPLETE</promise>";
const FILE: &str = "hello.txt";
const TIMEOUT: Duration = Duration::from_secs(300);

/// Runs it; exits with 0 when everything worked, else with 1.
pub fn run(args: &TestArgs, profiles: &Profiles, ctx: &CommandContext) -> Result<i32, CliError> {
    let profile = super::known(&args.name, profiles)?;
    if profile.command.trim().is_empty() {
        return Err(CliError::usage(
            format!("`{}` names no program that could be tried", profile.name),
            "give a program a name in .descartes/config.toml, as in `[agents.mine]` and \
             `command = \"./agent.sh\"`, then: descartes agents test mine",
        ));
    }
    let Some(installed) = look_for(profile, ctx) else {
        return Err(CliError::usage(
            format!(
                "`{}` is not installed: cannot find the program {}",
                profile.name, profile.command
            ),
            "install it, or change its command as [agents.NAME] in .descartes/config.toml",
        ));
    };
    if !args.json {
        let version = show_version(profile, installed.version.as_ref());
        ctx.printer.line(&format!(
            "{} {version}, {}",
            profile.name,
            installed.program.display()
        ));
    }
    let scratch = Scratch::make(&ctx.paths.temp_dir)?;
    let (config, invocation) = config(args, profile, &scratch, &ctx.here);
    let order = order(args, config, ctx)?;
    let settings = HostSettings {
        // Nobody looks for this loop in a list.
        root: StateRoot::at(scratch.dir().join("state")),
        ..order.host_settings(ctx)?
    };
    let facts = drive(order, settings)?;
    let report = Report::of(&TrialFindings {
        profile,
        invocation: &invocation,
        facts: facts.as_ref(),
        wrote: scratch.work().join(FILE).is_file(),
        installed: &installed,
    });
    report.show(Format::of_story(args.json), &ctx.printer);
    if report.is_good() {
        scratch.remove();
        return Ok(0);
    }
    ctx.printer.hint(&format!(
        "what it printed is in {}",
        scratch.dir().join("state/loops").display()
    ));
    Ok(1)
}

fn config(
    args: &TestArgs,
    profile: &Profile,
    scratch: &Scratch,
    here: &Path,
) -> (IterativeLoopConfig, Invocation) {
    // Enough for the task, where the agent knows such a thing.
    let default = match &profile.permissions.edit {
        Some(_) => Permissions::Edit,
        None if profile.permissions.needed.is_some() => Permissions::All,
        None => Permissions::Agent,
    };
    let choices = Choices {
        model: args.model.clone(),
        permissions: args.permissions.unwrap_or(default),
        prompt_mode: None,
        output_format: None,
        confined_by: ConfinedBy::Itself,
    };
    let words = shell_words::split(&profile.command).unwrap_or_default();
    let words = as_seen_from(here, words);
    let invocation = build(profile, &words, &choices);
    let timeout = args.timeout.unwrap_or(Secs(TIMEOUT));
    let config = IterativeLoopConfig {
        command: words.first().cloned().unwrap_or_default(),
        args: words.get(1..).unwrap_or_default().to_vec(),
        prompt: PROMPT.to_owned(),
        completion_promise: Some("COMPLETE".to_owned()),
        max_iterations: Some(1),
        iteration_timeout_secs: Some(timeout),
        max_failures: 1,
        model: choices.model,
        permissions: choices.permissions,
        working_directory: Some(scratch.work()),
        // What the agent does by itself is to be seen; which sandboxes work is the doctor's question.
        sandbox: SandboxConfig {
            level: Some(SandboxLevel::Off),
            ..SandboxConfig::default()
        },
        backend: LoopBackendConfig {
            backend_type: profile.name.clone(),
            output_format: invocation.output_format.clone(),
            ..LoopBackendConfig::default()
        },
        ..IterativeLoopConfig::default()
    };
    (config, invocation)
}

/// A program or script of the folder that is asked from, named so that it is found from the
/// scratch folder too.
fn as_seen_from(here: &Path, words: Vec<String>) -> Vec<String> {
    let absolute = |(at, word): (usize, String)| {
        // A program without a slash is looked for on the PATH.
        let is_path = word.contains('/') || at > 0;
        let file = here.join(&word);
        match is_path && file.is_file() {
            true => file.to_string_lossy().into_owned(),
            false => word,
        }
    };
    words.into_iter().enumerate().map(absolute).collect()
}

fn order(
    args: &TestArgs,
    config: IterativeLoopConfig,
    ctx: &CommandContext,
) -> Result<Order, CliError> {
    let job = Job::Start {
        config: Box::new(config),
        name: Some("agents-test".to_owned()),
        existing: OnExistingState::ArchiveIfOver,
    };
    let environment = values::resolved(&args.env, &ctx.environment)?;
    // Profiles and prices are those of the project that is asked from.
    Ok(Order::new(job, ctx.here.clone(), environment))
}

/// Runs the loop and gives what is known of its run. A limit is told, not waited for.
fn drive(order: Order, settings: HostSettings) -> Result<Option<RunFacts>, CliError> {
    let board = Switchboard::default();
    let _signals = board.receive()?;
    let Resumed::Go(mut host) = board.open(order, settings, &mut Vec::new())? else {
        return Ok(None);
    };
    board.connect(host.remote(), None);
    let facts = listen(&mut host);
    host.run()?;
    let facts = facts.lock().unwrap_or_else(PoisonError::into_inner).take();
    Ok(facts)
}

fn listen(host: &mut Host) -> Arc<Mutex<Option<RunFacts>>> {
    let facts = Arc::new(Mutex::new(None));
    let (kept, remote) = (Arc::clone(&facts), host.remote());
    host.listen(Box::new(move |record| {
        match &record.event {
            Event::AgentEnded { facts, .. } => {
                *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some((**facts).clone());
            }
            Event::RunDiscarded { .. } => remote.stop(StopBy::Handle),
            _ => {}
        }
        true
    }));
    facts
}
