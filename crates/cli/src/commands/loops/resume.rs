//! `descartes loop resume`.

use std::path::{Path, PathBuf};

use descartes_bridge::EngineUrl;
use descartes_client::logs::model_not_told;
use descartes_client::{ClientError, Known, Loops, Query};
use descartes_kernel::config::{ConfigChange, IterativeLoopConfig, check_prompt};
use descartes_kernel::edits::Accept;
use descartes_store::catalog::{self, LoopMeta};
use descartes_store::host::this_host;
use descartes_store::journal::repair;
use descartes_store::layout::{PROJECT_FOLDER, STATE_FILE, StateRoot};
use descartes_store::lock::{Holder, StateLock};
use descartes_store::safe_open;
use descartes_store::state_file;
use descartes_text::units::plural;

use super::which;
use crate::args::resume::{AgentChangeArgs, ChangeArgs, ResumeArgs, WhichLoop};
use crate::args::start::ShowArgs;
use crate::args::values;
use crate::error::CliError;
use crate::printer::Printer;
use crate::session;
use crate::session::engines::{self, WorkersAddress};
use crate::session::order::{Job, Order};
use crate::settings::agent;
use crate::settings::command_context::CommandContext;
use crate::settings::prompt;
use crate::trust::{self, Asking, ScudGates};
use crate::within;

/// What to do where an agent cannot be told a model.
pub(super) const OTHER_COMMAND: &str = "the model is chosen by the command or by the agent's own \
    settings: start a loop with another --command";

pub fn run(args: &ResumeArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let here = place(args, ctx)?;
    let elsewhere = here.as_ref().filter(|_| args.working_dir.is_some());
    let ctx = &match elsewhere {
        Some(dir) if args.which.id.is_none() && args.which.state_file.is_none() => CommandContext {
            here: dir.clone(),
            ..ctx.clone()
        },
        _ => ctx.clone(),
    };
    let root = ctx.root(&ctx.here);
    let mut found = find(&args.which, ctx, &root)?;
    if let Some(dir) = &here {
        found.come_to(dir);
    }
    let mut change = change(&args.change, ctx)?;
    refuse_from_within(&found, &root, ctx)?;
    refuse_without_tasks(args, &found, ctx)?;
    if args.trust_marks {
        within::refuse_from_within("--trust-marks")?;
        change.trust_marks = Some(true);
    }
    if args.repair {
        mend(&found, &root, &ctx.printer)?;
    }
    change.permissions = args.agent.permissions;
    change.prompt_mode = args.agent.prompt_mode;
    change.sandbox = args.agent.sandbox;
    change.sandbox_write = granted(&args.agent.sandbox_write, ctx);
    change.sandbox_read = granted(&args.agent.sandbox_read, ctx);
    change_agent(&args.agent, &mut change, &found, ctx)?;
    let dir = found.dir.clone().unwrap_or_else(|| ctx.here.clone());
    let asking = Asking {
        trust_config: args.trust_config,
        silent: args.json,
    };
    // Its gates are in the journal; agents' profiles, hooks and what agents may see are not.
    let ctx = &trust::settle(&dir, ScudGates::Unused, asking, ctx)?;
    change.worktree_setup = other_setup(&found, &dir, ctx)?;
    if let Some(given) = &args.workers {
        let known = config_of(&found, ctx, &Known::builtin());
        change.workers = other_engine(given, known.as_ref(), &dir, ctx)?;
    }
    let environment = values::resolved(&args.env, &ctx.environment)?;
    let job = Job::Resume {
        state_file: found.state_file,
        loop_id: found.id,
        change: Box::new(change),
        accept: match args.accept_edits {
            true => Accept::All,
            false => Accept::Harmless,
        },
        here,
        retry_blocked: args.retry_blocked,
    };
    let show = ShowArgs {
        json: args.json,
        show_thinking: args.show_thinking,
        detach: args.detach,
        ..ShowArgs::default()
    };
    session::run(Order::new(job, dir, environment), show, ctx)
}

/// Where it goes on, if that was said.
fn place(args: &ResumeArgs, ctx: &CommandContext) -> Result<Option<PathBuf>, CliError> {
    match (&args.working_dir, args.here) {
        (None, false) => Ok(None),
        (None, true) => Ok(Some(ctx.here.clone())),
        (Some(dir), _) => {
            let dir = ctx.absolute(dir);
            match dir.canonicalize() {
                Ok(found) if found.is_dir() => Ok(Some(found)),
                Ok(_) => Err(no_directory(&dir, "it is not a directory")),
                Err(error) => Err(no_directory(&dir, &error.to_string())),
            }
        }
    }
}

fn no_directory(dir: &Path, why: &str) -> CliError {
    CliError::usage(
        format!("cannot work in {}: {why}", dir.display()),
        "pass an existing directory with --working-dir",
    )
}

/// The loop that is meant.
#[derive(Debug)]
struct LoopToResume {
    state_file: PathBuf,
    id: Option<String>,
    dir: Option<PathBuf>,
}

impl LoopToResume {
    fn of(meta: &LoopMeta) -> Self {
        Self {
            state_file: meta.state_file.clone(),
            id: Some(meta.id.clone()),
            dir: Some(meta.working_dir.clone()),
        }
    }

    /// What finds it in the catalog.
    fn query(&self) -> String {
        let id = self.id.clone();
        id.unwrap_or_else(|| self.state_file.display().to_string())
    }

    /// A loop that was named goes on in `dir`. Where its state file is gone, the one there is its own.
    fn come_to(&mut self, dir: &Path) {
        self.dir = Some(dir.to_owned());
        if self.id.is_some() && !safe_open::is_there(&self.state_file) {
            let name = self.state_file.file_name().unwrap_or(STATE_FILE.as_ref());
            self.state_file = dir.join(PROJECT_FOLDER).join(name);
        }
    }
}

fn find(
    which: &WhichLoop,
    ctx: &CommandContext,
    root: &StateRoot,
) -> Result<LoopToResume, CliError> {
    if let Some(query) = &which.id {
        let entry = catalog::find(root, query)?;
        return Ok(LoopToResume::of(&entry.meta));
    }
    let state_file = match &which.state_file {
        Some(file) => ctx.absolute(file),
        None => ctx.here.join(PROJECT_FOLDER).join(STATE_FILE),
    };
    if which.state_file.is_none() && !safe_open::is_there(&state_file) {
        let loops = Loops::at(root.clone(), Known::builtin());
        match loops.find(&Query::Here(ctx.here.clone())) {
            Ok(found) => return Ok(LoopToResume::of(found.meta())),
            Err(ClientError::NoneHere(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(LoopToResume {
        state_file,
        id: None,
        dir: None,
    })
}

/// Only who started a loop within a loop may take it up there.
fn refuse_from_within(
    found: &LoopToResume,
    root: &StateRoot,
    ctx: &CommandContext,
) -> Result<(), CliError> {
    match catalog::find(root, &found.query()) {
        Ok(entry) if entry.meta.extra.contains_key("mirror") => {
            let parent = entry.meta.extra.get("parent").and_then(|id| id.as_str());
            Err(CliError::refused(
                "this is a copy of a loop on another machine: its task loop continues it",
                format!("descartes loop resume {}", parent.unwrap_or_default()),
            ))
        }
        Ok(entry) => within::refuse_steering_of(&entry.meta),
        // A state file that has not run here: to begin from it is to start a loop.
        Err(_) => within::refuse_start(false, &found.state_file, ctx),
    }
}

/// Paths as they are from where they were typed.
fn granted(paths: &[PathBuf], ctx: &CommandContext) -> Vec<PathBuf> {
    let whole = |path: &PathBuf| {
        let path = ctx.here.join(path);
        path.canonicalize().unwrap_or(path)
    };
    paths.iter().map(whole).collect()
}

/// What changes from here on.
pub(super) fn change(args: &ChangeArgs, ctx: &CommandContext) -> Result<ConfigChange, CliError> {
    let task = prompt::task(
        args.prompt.as_deref(),
        args.prompt_file.as_deref(),
        &ctx.here,
    )?;
    let text = Some(task.prompt).filter(|_| task.file.is_none());
    let given = args.prompt.is_some() || args.prompt_file.is_some();
    let text = text.filter(|_| given);
    if let Some(text) = &text {
        if text.trim().is_empty() {
            return Err(CliError::usage(
                "the prompt is empty",
                "set one with --prompt or --prompt-file",
            ));
        }
        check_prompt(text)?;
    }
    let change = ConfigChange {
        prompt: text,
        prompt_file: task.file,
        ..ConfigChange::from(args)
    };
    // What could start no loop is refused here, whichever loop is meant.
    let mut any = IterativeLoopConfig {
        command: "agent".to_owned(),
        prompt: "task".to_owned(),
        ..IterativeLoopConfig::default()
    };
    change.apply_to(&mut any);
    any.check()?;
    Ok(change)
}

/// The `worktree_setup` of the config, where the loop knows another one: no flag changes it, and one that fails
/// lets no agent begin.
fn other_setup(
    found: &LoopToResume,
    dir: &Path,
    ctx: &CommandContext,
) -> Result<Option<String>, CliError> {
    let config = config_of(found, ctx, &Known::builtin());
    let Some(tasks) = config.and_then(|config| config.tasks) else {
        return Ok(None);
    };
    let now = ctx.layers(dir)?.settings.worktree_setup.get();
    Ok(now.filter(|now| tasks.worktree_setup.as_ref() != Some(now)))
}

/// Another engine than the one that a loop knows. What workers have handed in to that one, or are at for it, is in
/// no other: it is left only where it does not answer.
pub fn other_engine(
    given: &str,
    config: Option<&IterativeLoopConfig>,
    dir: &Path,
    ctx: &CommandContext,
) -> Result<Option<String>, CliError> {
    let other = WorkersAddress::parse(given)?;
    let tasks = config.and_then(|config| config.tasks.as_ref());
    let Some((known, engine)) =
        tasks.and_then(|tasks| tasks.workers.as_deref().zip(tasks.engine()))
    else {
        return Err(CliError::usage(
            "--workers names another engine for a loop that has workers, and this one has none",
            "omit --workers, or start a task loop with it",
        ));
    };
    let known_engine = WorkersAddress::parse(engine)?.url;
    if known_engine.is_same_engine(&other.url) && known_engine.transport == other.url.transport {
        // However it was typed now: another spelling would leave what its workers are at.
        let same = WorkersAddress {
            url: EngineUrl {
                key: other.url.key,
                ..known_engine
            },
            ..other
        };
        let address = same.keep_key(&ctx.root(dir))?;
        return Ok(Some(address).filter(|address| address != known));
    }
    if engines::coordinator(ctx, dir)(engine).is_ok() {
        return Err(CliError::refused(
            format!("the engine {engine} still answers, and has what the loop's workers hand in"),
            "descartes loop resume",
        )
        .hinted("to leave it, stop it first: descartes engine stop"));
    }
    let address = other.keep_key(&ctx.root(dir))?;
    ctx.printer.note(&format!(
        "what workers are at for {engine} is done again; should it come back, `descartes loop cancel` stops them there, too"
    ));
    Ok(Some(address))
}

/// Flags about tasks mean nothing to a loop with one prompt.
fn refuse_without_tasks(
    args: &ResumeArgs,
    found: &LoopToResume,
    ctx: &CommandContext,
) -> Result<(), CliError> {
    let given = [
        ("--retry-blocked", args.retry_blocked),
        ("--trust-marks", args.trust_marks),
        ("--workers", args.workers.is_some()),
    ];
    let Some((flag, _)) = given.iter().find(|(_, given)| *given) else {
        return Ok(());
    };
    // What cannot be read is told by the loop itself as it is taken up.
    match config_of(found, ctx, &Known::builtin()) {
        Some(config) if config.tasks.is_none() => Err(CliError::usage(
            format!("{flag} is for task loops, and this loop has no tasks"),
            format!("omit {flag}"),
        )),
        _ => Ok(()),
    }
}

/// Another backend, and a model that some agent of the loop would be told: one that none is told
/// changes nothing.
fn change_agent(
    args: &AgentChangeArgs,
    change: &mut ConfigChange,
    found: &LoopToResume,
    ctx: &CommandContext,
) -> Result<(), CliError> {
    if args.backend.is_none() && change.model.is_none() {
        return Ok(());
    }
    let dir = found.dir.as_ref().unwrap_or(&ctx.here);
    let known = which::known(ctx, dir)?;
    // What cannot be read is told by the loop itself as it is taken up.
    let Some(mut config) = config_of(found, ctx, &known) else {
        return Ok(());
    };
    if let Some(backend) = &args.backend {
        let agent = agent::changed(&config, backend, change, &known.profiles)?;
        change.agent = Some(Box::new(agent));
    }
    change.apply_to(&mut config);
    let model = change.model.as_ref();
    match model.and_then(|model| model_not_told(&config, &known.profiles, model)) {
        Some(why) => Err(CliError::usage(why, OTHER_COMMAND)),
        None => Ok(()),
    }
}

/// What the loop was asked for. Its state file may be another's by now, where it was named.
fn config_of(
    found: &LoopToResume,
    ctx: &CommandContext,
    known: &Known,
) -> Option<IterativeLoopConfig> {
    let loaded = state_file::load(&found.state_file).ok();
    let loaded = loaded.map(|loaded| loaded.state);
    match &found.id {
        Some(id)
            if loaded
                .as_ref()
                .is_none_or(|state| state.loop_id.as_ref() != Some(id)) =>
        {
            let loops = Loops::at(ctx.root(&ctx.here), known.clone());
            let handle = loops.find(&Query::Named(id.clone())).ok()?;
            Some(handle.state().ok()?.config)
        }
        _ => Some(loaded?.config),
    }
}

/// `--repair`: the journal is rewritten without its damaged lines, under the loop's lock.
fn mend(found: &LoopToResume, root: &StateRoot, printer: &Printer) -> Result<(), CliError> {
    let entry = catalog::find(root, &found.query())?;
    let holder = Holder {
        loop_id: entry.meta.id.clone(),
        since: jiff::Timestamp::now(),
        host: this_host(env!("CARGO_PKG_VERSION")),
    };
    let _lock = StateLock::acquire(root, &entry.meta.state_file, &holder)
        .map_err(descartes_core::host::HostError::from)?;
    let done = repair(&entry.dir.journal())?;
    let Some(copy) = &done.copy else {
        printer.note("no line of the journal is damaged: nothing was repaired");
        return Ok(());
    };
    if done.kept == 0 && done.damaged == 0 {
        let copy = copy.display();
        printer.note(&format!("the journal was empty: it is now {copy}"));
        return Ok(());
    }
    let mut dropped = format!("dropped {}", plural(done.damaged, "damaged line"));
    if done.dependent > 0 {
        let dependent = plural(done.dependent, "later line");
        dropped.push_str(&format!(" and {dependent} that depended on it"));
    }
    printer.note(&format!(
        "repaired the journal: {dropped}, kept {}; the damaged file is now {}",
        plural(done.kept, "line"),
        copy.display()
    ));
    Ok(())
}
