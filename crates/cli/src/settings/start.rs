//! `loop start`: flags over environment over files over defaults, resolved once into one
//! plain struct.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use descartes_kernel::agent::{Choices, Invocation, Profile, Profiles, build};
use descartes_kernel::config::{
    IterativeLoopConfig, LoopBackendConfig, LoopGitConfig, Permissions, PromptMode,
};
use descartes_kernel::promise::PromiseMatch;
use descartes_kernel::prompt::fill_template;
use descartes_kernel::tasks::TaskFile;
use descartes_kernel::units::Secs;
use descartes_store::config::{Layers, Source};
use serde::de::DeserializeOwned;

use super::agent::{self, ChosenAgent};
use super::command_context::CommandContext;
use super::prompt::{self, Task};
use super::{flags, tasks, warnings};
use crate::args::start::StartArgs;
use crate::error::CliError;

/// Everything that `loop start` needs to know.
#[derive(Debug)]
pub struct Start {
    /// What is asked for.
    pub config: IterativeLoopConfig,
    /// Its name, where one was given.
    pub name: Option<String>,
    /// Where it works.
    pub dir: PathBuf,
    /// How the agent is started.
    pub agent: Agent,
    /// All settings with their sources.
    pub layers: Layers,
    /// What a person should look at before.
    pub warnings: Vec<String>,
}

/// An agent with its command line.
#[derive(Debug)]
pub struct Agent {
    /// Its profile.
    pub profile: Profile,
    /// Its command line, all but the prompt.
    pub invocation: Invocation,
}

/// Resolves.
pub fn resolve(args: &StartArgs, ctx: &CommandContext) -> Result<Start, CliError> {
    let source = match &args.scud.scud_tag {
        Some(tag) => {
            tasks::refuse_git_flags(&args.git)?;
            Some(tasks::scud_source(&working_dir(args, ctx), tag)?)
        }
        None => {
            tasks::refuse_flags(&args.scud.tasks)?;
            None
        }
    };
    resolve_for(args, source, ctx)
}

/// Where the loop works.
pub fn working_dir(args: &StartArgs, ctx: &CommandContext) -> PathBuf {
    match &args.place.working_dir {
        Some(dir) => ctx.absolute(dir),
        None => ctx.here.clone(),
    }
}

/// The same for a loop over the tasks of a file.
pub fn resolve_for(
    args: &StartArgs,
    source: Option<TaskFile>,
    ctx: &CommandContext,
) -> Result<Start, CliError> {
    let dir = working_dir(args, ctx);
    let mut layers = ctx.layers(&dir)?;
    flags::put(&mut layers, args)?;
    let profiles = agent::profiles(&layers)?;
    let chosen = agent::choose(args.task.command.as_deref(), &layers, &profiles)?;
    let task = match source {
        Some(_) => Task::default(),
        None => task(args, &layers, ctx, &dir).and_then(given)?,
    };
    let mut config = config(args, &layers, ctx, &dir, &chosen, task)?;
    let mut said = Vec::new();
    if let Some(source) = source {
        said = tasks::put(&mut config, source, &args.scud.tasks, &layers, ctx, &dir)?;
    }
    config.check()?;
    check_branch_template(&config.git)?;
    for file in &config.spec_files {
        prompt::read_text("the spec file", &dir.join(file))?;
    }
    let agent = prepare(&config, &chosen, &profiles)?;
    let config = IterativeLoopConfig {
        backend: LoopBackendConfig {
            output_format: agent.invocation.output_format.clone(),
            ..config.backend
        },
        ..config
    };
    let mut warnings = warnings::all(&config, &layers, &agent, &dir);
    warnings.append(&mut said);
    Ok(Start {
        config,
        name: args.place.name.clone(),
        dir,
        agent,
        layers,
        warnings,
    })
}

/// Nothing at all is another slip than an empty text.
fn given(task: Option<Task>) -> Result<Task, CliError> {
    task.ok_or_else(|| {
        CliError::usage(
            "there is no prompt: what is the agent to do?",
            "for example: descartes loop start --prompt \"Make every test pass\", or --prompt-file PROMPT.md (`descartes init` writes one)",
        )
    })
}

fn task(
    args: &StartArgs,
    layers: &Layers,
    ctx: &CommandContext,
    dir: &Path,
) -> Result<Option<Task>, CliError> {
    if let Some(PromptMode::None) = value(layers, "prompt_mode")? {
        return Ok(Some(Task::default()));
    }
    let given = args.task.prompt.as_deref();
    match (
        &args.task.prompt_file,
        value::<PathBuf>(layers, "prompt_file")?,
    ) {
        (None, None) if given.is_none() => Ok(None),
        (Some(file), _) => prompt::task(given, Some(file), &ctx.here).map(Some),
        // A path in a config file is relative to the project.
        (None, file) => prompt::task(given, file.as_deref(), dir).map(Some),
    }
}

fn config(
    args: &StartArgs,
    layers: &Layers,
    ctx: &CommandContext,
    dir: &Path,
    chosen: &ChosenAgent,
    task: Task,
) -> Result<IterativeLoopConfig, CliError> {
    let defaults = IterativeLoopConfig::default();
    let environment: BTreeMap<String, String> = args
        .agent
        .env
        .iter()
        .map(|variable| variable.resolved(&ctx.environment))
        .collect::<Result<_, _>>()?;
    let (command, rest) = chosen
        .words
        .split_first()
        .map_or((String::new(), &[][..]), |(c, r)| (c.clone(), r));
    let fresh = value(layers, "fresh_context")?.unwrap_or(false);
    Ok(IterativeLoopConfig {
        command,
        args: rest.to_vec(),
        prompt: task.prompt,
        prompt_file: task.file,
        completion_promise: promise(layers)?,
        promise_match: promise_match(layers)?,
        promise_hint: value(layers, "promise_hint")?,
        promise_grace_secs: duration(layers, "promise_grace")
            .unwrap_or(defaults.promise_grace_secs),
        abort_promise: value(layers, "abort_promise")?,
        verify: value(layers, "verify")?.unwrap_or_default(),
        verify_timeout_secs: duration(layers, "verify_timeout")
            .unwrap_or(defaults.verify_timeout_secs),
        max_iterations: iterations(layers)?,
        max_duration_secs: duration(layers, "max_duration"),
        max_cost_usd: value(layers, "max_cost")?,
        max_tokens: value(layers, "max_tokens")?,
        working_directory: Some(dir.to_owned()),
        state_file: args
            .place
            .state_file
            .as_deref()
            .map(|file| ctx.absolute(file)),
        include_iteration_context: !fresh,
        fresh_context_mode: fresh,
        iteration_timeout_secs: duration(layers, "timeout"),
        idle_timeout_secs: duration(layers, "idle_timeout").unwrap_or(defaults.idle_timeout_secs),
        max_failures: value(layers, "max_failures")?.unwrap_or(defaults.max_failures),
        stall_after: value(layers, "stall_after")?,
        backend: LoopBackendConfig {
            backend_type: chosen.backend.clone(),
            prompt_mode: value(layers, "prompt_mode")?,
            environment_names: environment.keys().cloned().collect(),
            environment: environment.into(),
            environment_hash: None,
            output_format: defaults.backend.output_format,
        },
        model: value(layers, "model")?,
        permissions: value::<Permissions>(layers, "permissions")?.unwrap_or_default(),
        fallback: value(layers, "fallback")?.unwrap_or_default(),
        spec_files: spec_files(args, layers, ctx, dir)?,
        max_spec_tokens: value(layers, "max_spec_tokens")?.unwrap_or(defaults.max_spec_tokens),
        git: git(layers)?,
        kill_grace_secs: duration(layers, "kill_grace"),
        max_snapshot_bytes: layers
            .limit("max_snapshots")
            .map_or(defaults.max_snapshot_bytes, |limit| limit.value),
        max_log_bytes: layers
            .limit("max_log")
            .map_or(defaults.max_log_bytes, |limit| limit.value),
        ..IterativeLoopConfig::default()
    })
}

fn git(layers: &Layers) -> Result<LoopGitConfig, CliError> {
    let defaults = LoopGitConfig::default();
    Ok(LoopGitConfig {
        auto_commit: value(layers, "auto_commit")?.unwrap_or(false),
        commit_template: value(layers, "commit_template")?.unwrap_or(defaults.commit_template),
        create_branch: value(layers, "branch")?.unwrap_or(false),
        branch_template: value(layers, "branch_template")?.unwrap_or(defaults.branch_template),
        tag_green: value(layers, "tag_green")?.unwrap_or(false),
    })
}

fn check_branch_template(git: &LoopGitConfig) -> Result<(), CliError> {
    let filled = fill_template(&git.branch_template, &[]);
    let hint = "for example --branch-template 'loop/{timestamp}'";
    filled.map(drop).map_err(|why| CliError::usage(why, hint))
}

/// A promise from a higher layer wins over `no_promise` in a lower one.
pub fn promise(layers: &Layers) -> Result<Option<String>, CliError> {
    let none = layers.get::<bool>("no_promise").filter(|none| none.value);
    let text = layers.get::<String>("completion_promise");
    let source = |text: &Option<descartes_store::config::Sourced<String>>| {
        text.as_ref()
            .map_or(Source::Default, |text| text.source.clone())
    };
    Ok(match none {
        Some(none) if none.source >= source(&text) => None,
        _ => text.map(|text| text.value),
    })
}

/// How the promise must stand: the higher layer of the two keys decides, in one layer the plainer.
fn promise_match(layers: &Layers) -> Result<Option<PromiseMatch>, CliError> {
    let how = layers.get::<PromiseMatch>("promise_match");
    let xml = layers.get::<bool>("require_xml_format");
    Ok(match (how, xml) {
        (Some(how), Some(xml)) if xml.source > how.source => {
            Some(PromiseMatch::of_xml_format(xml.value))
        }
        (None, Some(xml)) => Some(PromiseMatch::of_xml_format(xml.value)),
        (how, _) => how.map(|how| how.value),
    })
}

fn iterations(layers: &Layers) -> Result<Option<u32>, CliError> {
    let limit = layers.limit("max_iterations").and_then(|limit| limit.value);
    limit
        .map(u32::try_from)
        .transpose()
        .map_err(|_| too_large("max_iterations"))
}

fn spec_files(
    args: &StartArgs,
    layers: &Layers,
    ctx: &CommandContext,
    dir: &Path,
) -> Result<Vec<PathBuf>, CliError> {
    let files = if args.prompt.spec_file.is_empty() {
        value::<Vec<PathBuf>>(layers, "spec_file")?.unwrap_or_default()
    } else {
        let typed = args.prompt.spec_file.iter();
        typed.map(|file| ctx.absolute(file)).collect()
    };
    // Their names stand in the prompt: the shorter, the better.
    let short = |file: PathBuf| match file.strip_prefix(dir) {
        Ok(inside) => inside.to_owned(),
        Err(_) => file,
    };
    Ok(files.into_iter().map(short).collect())
}

/// A setting in its type. The layers have checked its kind; what is left is its size.
pub fn value<T: DeserializeOwned>(layers: &Layers, key: &str) -> Result<Option<T>, CliError> {
    match layers.get::<T>(key) {
        Some(found) => Ok(Some(found.value)),
        None if layers.get::<toml::Value>(key).is_some() => Err(too_large(key)),
        None => Ok(None),
    }
}

fn too_large(key: &str) -> CliError {
    CliError::usage(
        format!("the value of {key} is out of range"),
        "see where it comes from with: descartes config show",
    )
}

fn duration(layers: &Layers, key: &str) -> Option<Secs> {
    layers.duration(key).map(|found| Secs(found.value))
}

/// The command line of the agent, all but the prompt.
fn prepare(
    config: &IterativeLoopConfig,
    chosen: &ChosenAgent,
    profiles: &Profiles,
) -> Result<Agent, CliError> {
    let profile = profiles.get(&chosen.backend).cloned().ok_or_else(|| {
        CliError::usage(
            format!("unknown backend `{}`", chosen.backend),
            "see: descartes agents",
        )
    })?;
    let choices = Choices {
        model: config.model.clone(),
        permissions: config.permissions,
        prompt_mode: config.backend.prompt_mode,
        output_format: None,
    };
    let invocation = build(&profile, &chosen.words, &choices);
    Ok(Agent {
        profile,
        invocation,
    })
}
