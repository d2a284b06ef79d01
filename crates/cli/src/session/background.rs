//! A loop in the background: this binary again, in a session of its own. It is told what to
//! do on its standard input, answers one line on its standard output once it holds the loop,
//! and from then on talks to nobody but the journal.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use descartes_core::host::{Host, Resumed};
use descartes_core::steering::own_sender;
use descartes_kernel::event::StopBy;
use descartes_kernel::outcome::exit;
use descartes_store::debug_log::{self, Filter, LogFile};
use descartes_store::trust::Digest;
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout, setsid};
use serde::{Deserialize, Serialize};
use tracing::{error, info};

use super::end::{LoopOver, going_on};
use super::foreground::Format;
use super::order::Order;
use super::program::this_program;
use super::signals::Switchboard;
use crate::error::{CliError, ErrorMessage, at};
use crate::notify::Listeners;
use crate::printer::Printer;
use crate::settings::command_context::{CommandContext, ProjectConfig};
use crate::view::summary::Named;

/// The hidden verb of the process in the background.
pub const HOST: &str = "__host";

/// What the process in the background is told.
#[derive(Debug, Serialize, Deserialize)]
struct Handed {
    order: Order,
    /// Hashes of project files that the person let this run use.
    #[serde(default)]
    trusted: Vec<Digest>,
}

/// What the process in the background answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StartReply {
    /// It holds the loop.
    Held {
        loop_id: String,
        name: String,
        pid: u32,
        notices: Vec<String>,
    },
    /// It does not go on.
    Over(LoopOver),
    /// It cannot.
    Failed(ErrorMessage),
}

/// Hands an order to a process in the background, and tells what came of it.
pub fn start(order: &Order, format: Format, ctx: &CommandContext) -> Result<i32, CliError> {
    let mut child = Command::new(this_program())
        .arg(HOST)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(at("start", &this_program()))?;
    let trusted = match &ctx.project_config {
        ProjectConfig::Trusted(accepted) => accepted.clone(),
        ProjectConfig::Harmless | ProjectConfig::AsWritten => Vec::new(),
    };
    let mut order = order.clone();
    // The process in the background has neither our terminal nor our parent.
    order.from = Some(own_sender());
    let order = serde_json::to_vec(&Handed { order, trusted })
        .map_err(|error| CliError::system("write the order", error.into()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A child that is gone is told of by its answer, which then is missing.
        drop(stdin.write_all(&order));
    }
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        drop(BufReader::new(stdout).read_line(&mut line));
    }
    match serde_json::from_str(&line) {
        Ok(answer) => tell(answer, format, &ctx.printer),
        Err(_) => {
            let how = child
                .wait()
                .map_or_else(|error| error.to_string(), |status| status.to_string());
            Err(CliError::system(
                "start the loop in the background",
                io::Error::other(format!("its process ended with {how}")),
            ))
        }
    }
}

fn tell(answer: StartReply, format: Format, printer: &Printer) -> Result<i32, CliError> {
    match answer {
        StartReply::Held {
            loop_id,
            name,
            pid,
            notices,
        } => {
            for notice in notices {
                printer.note(&notice);
            }
            match format {
                Format::Human(_) | Format::Story => printer.line(&loop_id),
                Format::Json => {
                    let value = serde_json::json!({ "loop_id": loop_id, "name": name, "pid": pid });
                    printer.json(&value);
                }
            }
            let follow = Named::As(name.clone()).command("logs", "-f");
            printer.talk(&format!(
                "loop {name} is running in the background; follow it with: {follow}"
            ));
            Ok(0)
        }
        StartReply::Over(over) => Ok(over.tell(printer)),
        StartReply::Failed(error) => Err(CliError::Said(error)),
    }
}

/// The process in the background: everything from its first breath to its end.
pub fn host(ctx: &CommandContext) -> i32 {
    // It must not be the leader of a process group yet; started by hand it may be one.
    if setsid().is_err() {
        return exit::USAGE;
    }
    // Whoever started this process has refused a filter that cannot be read.
    let filter = ctx.environment.log_filter().ok().flatten();
    let log = debug_log::to_file(filter.unwrap_or(Filter::BACKGROUND));
    log_panics();
    let opened = read_order().and_then(|Handed { order, trusted }| {
        open(order, &ctx.with(ProjectConfig::Trusted(trusted)))
    });
    match opened {
        Ok((opened, board, listeners)) => match going_on(opened) {
            Ok(host) => serve(*host, &board, &listeners, &log),
            Err(over) => quit(&StartReply::Over(over)),
        },
        Err(error) => quit(&StartReply::Failed((&error).into())),
    }
}

fn read_order() -> Result<Handed, CliError> {
    let mut text = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut text);
    let order = read.and_then(|_| serde_json::from_slice(&text).map_err(io::Error::from));
    order.map_err(|error| CliError::system("read the order", error))
}

/// The switchboard's thread lives as long as the process.
fn open(order: Order, ctx: &CommandContext) -> Result<(Resumed, Switchboard, Listeners), CliError> {
    let settings = order.host_settings(ctx)?;
    let listeners = order.listeners(ctx)?;
    let board = Switchboard::default();
    std::mem::forget(board.receive()?);
    let opened = board.open(order, settings, &mut Vec::new())?;
    Ok((opened, board, listeners))
}

fn quit(answer: &StartReply) -> i32 {
    // There is nothing that could be done for whoever asked and is gone.
    drop(say(answer));
    match answer {
        StartReply::Failed(error) => error.code,
        _ => 0,
    }
}

fn say(answer: &StartReply) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line).and_then(|()| out.flush())
}

/// Nobody reads the standard error of a thread that panics. Its message is left out: it may quote the
/// text at hand.
fn log_panics() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string);
        error!(place, "panic");
    }));
}

fn serve(mut host: Host, board: &Switchboard, to: &Listeners, log: &LogFile) -> i32 {
    to.attach(&mut host);
    let mut notices = host.notices().to_vec();
    notices.extend(to.troubles());
    let remote = host.remote();
    board.connect(remote.clone(), None);
    let answer = StartReply::Held {
        loop_id: host.loop_id().to_owned(),
        name: host.name().to_owned(),
        pid: std::process::id(),
        notices,
    };
    let version = env!("CARGO_PKG_VERSION");
    log.place(&host.dir().host_log());
    info!(
        version,
        pid = std::process::id(),
        loop_id = host.loop_id(),
        "in the background"
    );
    if say(&answer).is_err() {
        // Ctrl-C in the terminal of the one who asked, who takes it for not started.
        remote.stop(StopBy::HangUp);
    }
    if let Err(error) = let_go() {
        // Still on the terminal of the one who asked: not pretty, but no reason to stop.
        drop(writeln!(
            io::stderr(),
            "note: cannot detach from the terminal: {error}"
        ));
    }
    match host.run() {
        Ok(ended) => ended.exit_code(),
        // It is in the log, and in the journal.
        Err(error) => error.exit_code(),
    }
}

/// Standard streams lead nowhere from now on.
fn let_go() -> io::Result<()> {
    let nowhere = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&nowhere)?;
    dup2_stdout(&nowhere)?;
    dup2_stderr(&nowhere)?;
    Ok(())
}
