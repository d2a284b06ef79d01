//! `loop start`: flags over environment over files over defaults, resolved once into one
//! plain struct.

use std::path::{Path, PathBuf};

use descartes_agents::agent::{Choices, Profiles, build};
use descartes_agents::promise::PromiseMatch;
use descartes_kernel::config::{IterativeLoopConfig, LoopBackendConfig, LoopGitConfig, PromptMode};
use descartes_kernel::prompt::fill_template;
use descartes_kernel::tasks::TaskFile;
use descartes_store::config::{Layers, Settings};

use super::agent::{self, Agent, ChosenAgent};
use super::command_context::CommandContext;
use super::prompt::{self, Task};
use super::{sandbox, tasks, warnings};
use crate::args::start::StartArgs;
use crate::args::values;
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
    ctx.dir(args.place.working_dir.as_deref())
}

/// The same for a loop over the tasks of a file.
pub fn resolve_for(
    args: &StartArgs,
    source: Option<TaskFile>,
    ctx: &CommandContext,
) -> Result<Start, CliError> {
    let dir = working_dir(args, ctx);
    let mut layers = ctx.layers(&dir)?;
    args.put_over(&mut layers.settings);
    let settings = &layers.settings;
    let profiles = agent::profiles(settings)?;
    let chosen = agent::choose(args.task.command.as_deref(), settings, &profiles)?;
    let task = match source {
        Some(_) => Task::default(),
        None => task(args, settings, ctx, &dir).and_then(given)?,
    };
    let mut config = config(args, settings, ctx, &dir, &chosen, task)?;
    let mut said = Vec::new();
    if let Some(source) = source {
        said = tasks::put(&mut config, source, &args.scud.tasks, settings, ctx, &dir)?;
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
            "no prompt: what should the agent do?",
            "for example: descartes loop start --prompt \"Make every test pass\", or --prompt-file PROMPT.md (`descartes init` writes one)",
        )
    })
}

fn task(
    args: &StartArgs,
    settings: &Settings,
    ctx: &CommandContext,
    dir: &Path,
) -> Result<Option<Task>, CliError> {
    if settings.prompt_mode.value == Some(PromptMode::None) {
        return Ok(Some(Task::default()));
    }
    let given = args.task.prompt.as_deref();
    let file = settings.prompt_file.value.as_deref();
    if given.is_none() && file.is_none() {
        return Ok(None);
    }
    prompt::task(
        given,
        file,
        prompt::folder_of(&settings.prompt_file, ctx, dir),
    )
    .map(Some)
}

fn config(
    args: &StartArgs,
    settings: &Settings,
    ctx: &CommandContext,
    dir: &Path,
    chosen: &ChosenAgent,
    task: Task,
) -> Result<IterativeLoopConfig, CliError> {
    let environment = values::resolved(&args.agent.env, &ctx.environment)?;
    let (command, rest) = chosen
        .words
        .split_first()
        .map_or((String::new(), &[][..]), |(c, r)| (c.clone(), r));
    let fresh = settings.fresh_context.get().unwrap_or(false);
    let state_file = args.place.state_file.as_deref();
    let mut config = IterativeLoopConfig {
        command,
        args: rest.to_vec(),
        prompt: task.prompt,
        prompt_file: task.file,
        completion_promise: promise(settings),
        promise_match: promise_match(settings),
        working_directory: Some(dir.to_owned()),
        state_file: state_file.map(|file| ctx.absolute(file)),
        include_iteration_context: !fresh,
        fresh_context_mode: fresh,
        backend: LoopBackendConfig {
            backend_type: chosen.backend.clone(),
            environment_names: environment.keys().cloned().collect(),
            environment: environment.into(),
            ..LoopBackendConfig::default()
        },
        spec_files: spec_files(settings, ctx, dir),
        ..IterativeLoopConfig::default()
    };
    settings.apply_to(&mut config);
    sandbox::put_paths(&mut config, settings, ctx, dir);
    Ok(config)
}

fn check_branch_template(git: &LoopGitConfig) -> Result<(), CliError> {
    let filled = fill_template(&git.branch_template, &[]);
    let hint = "for example --branch-template 'loop/{timestamp}'";
    filled.map(drop).map_err(|why| CliError::usage(why, hint))
}

/// A promise from a higher layer wins over `no_promise` in a lower one.
pub fn promise(settings: &Settings) -> Option<String> {
    let Settings {
        completion_promise: text,
        no_promise: none,
        ..
    } = settings;
    let none = none.value == Some(true) && none.source >= text.source;
    text.get().filter(|_| !none)
}

/// How the promise must stand: the higher layer of the two keys decides, in one layer the plainer.
fn promise_match(settings: &Settings) -> Option<PromiseMatch> {
    let (how, xml) = (&settings.promise_match, &settings.require_xml_format);
    match (how.value, xml.value) {
        (Some(how_value), Some(_)) if xml.source <= how.source => Some(how_value),
        (_, Some(required)) => Some(PromiseMatch::of_xml_format(required)),
        (how, None) => how,
    }
}

fn spec_files(settings: &Settings, ctx: &CommandContext, dir: &Path) -> Vec<PathBuf> {
    let folder = settings.spec_file.from_flag().map(|_| &ctx.here);
    let files = settings.spec_file.get().unwrap_or_default();
    let files = files.into_iter().map(|file| match folder {
        Some(here) => here.join(file),
        None => file,
    });
    // Their names stand in the prompt: the shorter, the better.
    let short = |file: PathBuf| match file.strip_prefix(dir) {
        Ok(inside) => inside.to_owned(),
        Err(_) => file,
    };
    files.map(short).collect()
}

/// The command line of the agent, all but the prompt.
fn prepare(
    config: &IterativeLoopConfig,
    chosen: &ChosenAgent,
    profiles: &Profiles,
) -> Result<Agent, CliError> {
    let profile = agent::known(&chosen.backend, profiles)?.clone();
    let choices = Choices {
        model: config.model.clone(),
        permissions: config.permissions,
        prompt_mode: config.backend.prompt_mode,
        output_format: None,
        confined_by: sandbox::confined_by(config),
    };
    let invocation = build(&profile, &chosen.words, &choices);
    Ok(Agent {
        profile,
        invocation,
    })
}
