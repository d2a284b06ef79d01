//! `descartes worker`: makes attempts at tasks for task loops on other machines.

use std::ffi::{OsStr, OsString};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use descartes_agents::agent::Profiles;
use descartes_bridge::EngineUrl;
use descartes_core::host::HostError;
use descartes_core::tasks::fleet::{FleetWorker, WorkerNotice, WorkerOptions, WorkerTask};
use descartes_kernel::fleet::{EndOrder, LeaseTerms};
use descartes_proc::{HostSignal, Signals, find_program};
use descartes_store::config::Settings;
use descartes_store::lock::NameLock;
use descartes_store::secret_file::is_open_to_others;
use descartes_text::units::plural;

use crate::args::worker::WorkerArgs;
use crate::error::{CliError, at};
use crate::printer::Printer;
use crate::session::engines;
use crate::session::order::host_settings;
use crate::settings::agent::profiles;
use crate::settings::command_context::CommandContext;
use crate::within;

/// A machine that burns loses so much work.
const WIP_EVERY: Duration = Duration::from_secs(60);

/// Names the engine where no flag does.
const ENGINE_VARIABLE: &str = "DESCARTES_ENGINE";

/// Agents that have no program of their own: any command.
const ANY_COMMAND: &str = "generic";

pub fn run(args: &WorkerArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    within::refuse_from_within("descartes worker")?;
    // Before any thread is there.
    let (signals, handle) = receive_signals(&ctx.printer)?;
    let mut settings = ctx.layers(&ctx.here)?.settings;
    settings.sandbox.put("--sandbox", args.sandbox);
    let profiles = profiles(&settings)?;
    let mut host = host_settings(&settings, &ctx.here, &profiles, ctx);
    // Agents and gates get no keys.
    host.environment.retain(|(name, _)| name != ENGINE_VARIABLE);
    let (url, engine) = engines::worker(&engine_address(args, ctx)?, ctx)?;
    let options = options(args, &url, &settings, &profiles, ctx);
    let folder = host.root.path().join("fleet").join(&options.name);
    // No loop can have this name.
    let name = format!("\0worker {}", options.name);
    let lock = NameLock::acquire(&host.root, &name, Duration::ZERO);
    let _one = lock.map_err(HostError::from)?.ok_or_else(|| {
        CliError::refused(
            format!(
                "a worker {} runs already with this state folder",
                options.name
            ),
            "start it with more --slots, or with a key and a --name of its own",
        )
    })?;
    let text = format!(
        "worker {} on {url}: {}, pool {}, agents {}",
        options.name,
        plural(u64::from(options.slots), "slot"),
        options.pool,
        options.agents.join(", ")
    );
    ctx.printer.note(&text);
    let printer = ctx.printer;
    let tell = move |notice| show(&notice, &printer);
    let worker = FleetWorker::new(engine, host, folder, options, tell);
    if handle.set(worker.clone()).is_err() {
        return Err(CliError::refused(
            "this worker runs already",
            "start one process each",
        ));
    }
    worker.run()?;
    drop(signals);
    Ok(0)
}

/// The address with its key: typed, in a file, or in the environment.
fn engine_address(args: &WorkerArgs, ctx: &CommandContext) -> Result<String, CliError> {
    if let Some(engine) = &args.engine {
        return Ok(engine.clone());
    }
    let none = |message: &str| {
        CliError::usage(
            message,
            "put the address of `descartes engine join-token NAME` into a file, and pass it with \
             --engine-file FILE",
        )
    };
    let text = match &args.engine_file {
        Some(file) => {
            let file = ctx.absolute(file);
            let text = std::fs::read_to_string(&file).map_err(at("read", &file))?;
            if is_open_to_others(&file) {
                let shown = file.display();
                ctx.printer.warning(&format!(
                    "other users can read the key in {shown}: chmod 600 {shown}"
                ));
            }
            text
        }
        None => match ctx.environment.raw(ENGINE_VARIABLE) {
            Some(text) => text.to_string_lossy().into_owned(),
            None => return Err(none("no engine is named")),
        },
    };
    // The whole line that was printed is as good as the address in it.
    let address = match text.split_once("--engine") {
        Some((_, address)) => address,
        None => &text,
    };
    let address = address.trim().trim_matches(['\'', '"']).trim();
    match address.is_empty() {
        true => Err(none("the address of the engine is empty")),
        false => Ok(address.to_owned()),
    }
}

/// Ctrl-C drains, a second one stops; SIGTERM stops. The next signal after that waits for nothing any more.
fn receive_signals(printer: &Printer) -> Result<(Signals, Arc<OnceLock<FleetWorker>>), CliError> {
    let handle: Arc<OnceLock<FleetWorker>> = Arc::default();
    let (worker, printer) = (handle.clone(), *printer);
    let take = move |signal| {
        let Some(worker) = worker.get() else {
            // Nothing was begun.
            return;
        };
        let order = EndOrder::of_signal(worker.end_order(), signal == HostSignal::Interrupt);
        let busy = plural(worker.at_work() as u64, "attempt");
        printer.note(&match order {
            EndOrder::Finish => {
                format!("finishing {busy}, taking nothing more (Ctrl-C again ends them)")
            }
            EndOrder::Stop => "ending what is under way: it is offered again".to_owned(),
            EndOrder::AtOnce => "ending at once".to_owned(),
        });
        worker.end(order);
    };
    let signals = Signals::receive(&HostSignal::ENDINGS, Box::new(take));
    let signals = signals.map_err(at(
        "receive signals in",
        std::path::Path::new("this process"),
    ))?;
    Ok((signals, handle))
}

fn options(
    args: &WorkerArgs,
    url: &EngineUrl,
    settings: &Settings,
    profiles: &Profiles,
    ctx: &CommandContext,
) -> WorkerOptions {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = match host.trim() {
        "" => "localhost".to_owned(),
        host => host.to_owned(),
    };
    let name = args.name.clone().or_else(|| url.name.clone());
    WorkerOptions {
        name: name.unwrap_or_else(|| host.clone()),
        login: args.login.clone().unwrap_or_else(|| host.clone()),
        host,
        pool: args.pool.clone(),
        slots: args.slots,
        allow_repos: args.allow_repo.clone(),
        agents: agents(profiles, ctx),
        worktree_copy: settings.worktree_copy.get().unwrap_or_default(),
        worktree_setup: settings.worktree_setup.get(),
        sandbox: settings.sandbox.get(),
        terms: LeaseTerms::default(),
        wip_every: WIP_EVERY,
        first_rest: descartes_kernel::fleet::FIRST_REST,
    }
}

/// Agents whose program is installed here, and any other command.
fn agents(profiles: &Profiles, ctx: &CommandContext) -> Vec<String> {
    let path = ctx.environment.raw("PATH").map(OsString::as_os_str);
    let is_there = |program: &str| find_program(OsStr::new(program), path, &ctx.here).is_ok();
    let installed = profiles.iter().filter(|profile| {
        let program = profile.command.split_whitespace().next();
        profile.name == ANY_COMMAND || program.is_some_and(is_there)
    });
    let mut names: Vec<String> = installed.map(|profile| profile.name.clone()).collect();
    if !names.iter().any(|name| name == ANY_COMMAND) {
        names.push(ANY_COMMAND.to_owned());
    }
    names
}

fn show(notice: &WorkerNotice, printer: &Printer) {
    let of = |task: &WorkerTask| format!("task {} of loop {}", task.task, task.loop_id);
    match notice {
        WorkerNotice::Began(task) => printer.note(&format!("{}: begun", of(task))),
        WorkerNotice::HandedIn(task) => printer.note(&format!("{}: handed in", of(task))),
        WorkerNotice::Kept(task, file) => printer.warning(&format!(
            "{}: not handed in, the engine does not answer: it is kept in {}, and this worker hands it in when it \
             is started again",
            of(task),
            file.display()
        )),
        WorkerNotice::InVain(task) => {
            printer.note(&format!("{}: taken back, in vain", of(task)));
        }
        WorkerNotice::Refused(message) => printer.warning(&format!("not taken: {message}")),
        WorkerNotice::Namesake(name) => printer.warning(&format!(
            "another worker by the name {name} is there, and both count as one: give each machine a line of its own, \
             where the engine runs: descartes engine join-token {name}-2"
        )),
        WorkerNotice::EngineBack => printer.note("the engine answers again"),
        WorkerNotice::EngineError(message) => {
            printer.warning(&format!("{message}: waiting"));
        }
    }
}
