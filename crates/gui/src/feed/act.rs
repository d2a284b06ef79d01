//! Doing: commands to loops, and new loops by way of the command line.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use descartes_client::{ControlEffect, Sent};
use descartes_kernel::control;
use descartes_views::words::accepted;
use serde_json::Value;
use tracing::debug;

use super::{Desk, words};
use crate::message::Refused;
use crate::model::Agent;
use crate::model::form::Field;

/// A loop that has not answered by then is said to be silent.
const ANSWER: Duration = Duration::from_secs(5);
/// Effects that take longer are told as accepted: until then nothing else can be sent.
const EFFECT: Duration = Duration::from_millis(300);

/// Sends a command; tells what came of it.
pub fn send(desk: &Desk, id: &str, command: &control::Command) -> Result<String, String> {
    let handle = desk.handle(id).map_err(|error| words(&error))?;
    let sent = handle.send_within(command, ANSWER);
    let mut ticket = match sent.map_err(|error| words(&error))? {
        Sent::Live(ticket) => ticket,
        Sent::Recorded(recorded) => {
            let remote = recorded.remote_agents();
            let remote = remote.map(|remote| format!("recorded; {remote}"));
            return Ok(remote.unwrap_or_else(|| {
                "recorded: takes effect at the next resume (the loop is not running)".into()
            }));
        }
        Sent::Signalled { pid } => return Ok(format!("process {pid} was asked to end")),
    };
    match ticket.effect(EFFECT) {
        Ok(ControlEffect::Done(message)) if message == "done" => Ok(done(command).to_owned()),
        Ok(ControlEffect::Done(message)) => Ok(message),
        Ok(ControlEffect::Pending) => Ok(accepted(command).to_owned()),
        Ok(ControlEffect::HostGone) => Ok("accepted; the loop's process has exited".to_owned()),
        Err(error) => Err(words(&error)),
    }
}

/// For loops that say no more than that it is done.
fn done(command: &control::Command) -> &'static str {
    match command {
        control::Command::Pause => "paused",
        control::Command::Unpause => "continuing",
        _ => "done",
    }
}

/// The command line: beside this program, else in the path.
pub fn program() -> PathBuf {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|me| Some(me.parent()?.join("descartes")))
        .filter(|path| path.is_file());
    beside.unwrap_or_else(|| PathBuf::from("descartes"))
}

fn run<W: AsRef<OsStr>>(words: &[W], folder: Option<&Path>) -> Result<Output, String> {
    let program = program();
    let mut command = Command::new(&program);
    command.args(words).stdin(Stdio::null());
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    // A signal to the window's group is none to what it started.
    command.process_group(0);
    debug!(program = %program.display(), "calling the command line");
    command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!(
            "cannot find `{}`: install it from a checkout of descartes with `cargo install --path crates/cli`",
            program.display()
        ),
        _ => format!("cannot start {}: {error}", program.display()),
    })
}

/// The agents that are installed.
pub fn agents() -> Result<Vec<Agent>, String> {
    let output = run(&["agents", "--json"], None)?;
    let all: Vec<Value> = serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("cannot list agents: {}", told(&output.stderr)))?;
    let agent = |value: &Value| {
        let text = |key: &str| value.get(key)?.as_str().map(str::to_owned);
        let installed = value.get("installed").and_then(Value::as_bool);
        Some(Agent {
            name: text("name").filter(|_| installed == Some(true))?,
            command: text("command")?,
            version: text("version"),
        })
    };
    Ok(all.iter().filter_map(agent).collect())
}

/// Starts a loop in the background; gives its id.
pub fn start(words: &[String], folder: &Path) -> Result<String, Refused> {
    let refused = |field, message: String| Refused { field, message };
    if !folder.is_dir() {
        let message = format!("no such directory: {}", folder.display());
        return Err(refused(Some(Field::Folder), message));
    }
    let output = run(words, Some(folder)).map_err(|message| refused(None, message))?;
    let id = |value: Value| Some(value.get("loop_id")?.as_str()?.to_owned());
    match serde_json::from_slice(&output.stdout).ok().and_then(id) {
        Some(id) if output.status.success() => Ok(id),
        _ => {
            let message = told(&output.stderr);
            Err(refused(Field::of_message(&message), message))
        }
    }
}

/// What the command line said, in one line.
fn told(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter_map(|line| {
            let error = line.strip_prefix("error: ");
            error
                .or_else(|| line.strip_prefix("hint: "))
                .or_else(|| line.strip_prefix("cause: "))
        })
        .collect();
    match lines.is_empty() {
        true => text.trim().to_owned(),
        false => lines.join(" — "),
    }
}

/// Shows the folder of a loop.
pub fn open_folder(desk: &Desk, id: &str) -> Result<String, String> {
    let handle = desk.handle(id).map_err(|error| words(&error))?;
    let folder = handle.dir().runs();
    let opened = Command::new("xdg-open")
        .arg(&folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .status();
    match opened {
        Ok(status) if status.success() => Ok(format!("the logs are in {}", folder.display())),
        _ => Err(format!(
            "no file manager could open it; the logs are in {}",
            folder.display()
        )),
    }
}
