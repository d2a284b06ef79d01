//! The server's process: found, started beside everything else, told to read its config again, ended.

use std::fs::{self, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::failure::EngineFailure;
use super::parties::EngineFolder;
use crate::nats::connection::{MIN_SERVER, parse_version};

const PROGRAM: &str = "nats-server";
const STOP_TIMEOUT: Duration = Duration::from_secs(15);

/// The one that is named, else the first in the path that is new enough.
pub fn find(named: Option<&Path>) -> Result<PathBuf, EngineFailure> {
    let candidates: Vec<PathBuf> = match named {
        Some(path) => vec![path.to_owned()],
        None => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path)
                .map(|folder| folder.join(PROGRAM))
                .filter(|program| program.is_file())
                .collect()
        }
    };
    let mut rejected = Vec::new();
    for path in candidates {
        match version_of(&path) {
            Ok(version) if parse_version(&version) >= Some(MIN_SERVER) => return Ok(path),
            Ok(version) => rejected.push(format!("{} is {version}", path.display())),
            Err(error) => rejected.push(format!("{}: {error}", path.display())),
        }
    }
    Err(missing(&rejected))
}

fn missing(rejected: &[String]) -> EngineFailure {
    let (major, minor) = MIN_SERVER;
    let message = match rejected {
        [] => format!("{PROGRAM} is not installed: {major}.{minor} or newer is needed"),
        rejected => format!(
            "no {PROGRAM} {major}.{minor} or newer: {}",
            rejected.join("; ")
        ),
    };
    EngineFailure::new(message)
        .hint(format!(
            "get it: brew install {PROGRAM}, or the program of https://github.com/nats-io/nats-server/releases \
             (Debian's package is too old)"
        ))
        .hint(format!(
            "or name one: DESCARTES_NATS_SERVER=/path/to/{PROGRAM} descartes engine start"
        ))
}

fn version_of(program: &Path) -> Result<String, String> {
    let output = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.trim().rsplit(' ').next().unwrap_or_default();
    match parse_version(version) {
        Some(_) => Ok(version.trim_start_matches('v').to_owned()),
        None => Err("does not report its version".to_owned()),
    }
}

/// Starts the server in a process group of its own: it stays when this terminal is closed.
pub fn start(program: &Path, folder: &EngineFolder) -> Result<u32, EngineFailure> {
    let log = folder.path("server.log");
    let output = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&log)
        .map_err(EngineFailure::at(&log))?;
    let errors = output.try_clone().map_err(EngineFailure::at(&log))?;
    let child = Command::new(program)
        .arg("--config")
        .arg(folder.path("nats-server.conf"))
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .current_dir("/")
        .process_group(0)
        .spawn()
        .map_err(EngineFailure::at(program))?;
    Ok(child.id())
}

/// The server of this folder, if it runs. A number that another process has by now is not it.
pub fn running(folder: &EngineFolder) -> Option<u32> {
    let pid: u32 = fs::read_to_string(folder.path("server.pid"))
        .ok()?
        .trim()
        .parse()
        .ok()?;
    let config = folder.path("nats-server.conf").display().to_string();
    command_line(pid)?.contains(&config).then_some(pid)
}

fn command_line(pid: u32) -> Option<String> {
    if let Ok(bytes) = fs::read(format!("/proc/{pid}/cmdline")) {
        return Some(String::from_utf8_lossy(&bytes).replace('\0', " "));
    }
    let listed = Command::new("ps")
        .args(["-ww", "-o", "command=", "-p", &pid.to_string()])
        .output()
        .ok()?;
    Some(String::from_utf8_lossy(&listed.stdout).into_owned())
        .filter(|line| !line.trim().is_empty())
}

/// Makes the server read its config again: who is no longer in it is disconnected.
pub fn reload(pid: u32) -> Result<(), EngineFailure> {
    signal(pid, Signal::SIGHUP)
}

/// Ends the server and waits until it is gone.
pub fn stop(folder: &EngineFolder) -> Result<bool, EngineFailure> {
    let Some(pid) = running(folder) else {
        return Ok(false);
    };
    signal(pid, Signal::SIGTERM)?;
    let until = Instant::now() + STOP_TIMEOUT;
    while running(folder).is_some() {
        if Instant::now() > until {
            return Err(
                EngineFailure::new(format!("the engine (process {pid}) does not end"))
                    .hint(format!("kill -9 {pid}")),
            );
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(true)
}

fn signal(pid: u32, signal: Signal) -> Result<(), EngineFailure> {
    let number = i32::try_from(pid).map_err(|error| EngineFailure::new(error.to_string()))?;
    kill(Pid::from_raw(number), signal)
        .map_err(|error| EngineFailure::new(format!("{signal} to process {pid}: {error}")))
}

/// The last lines of the server's log, for who could not start it.
pub fn last_words(folder: &EngineFolder) -> String {
    let text = fs::read_to_string(folder.path("server.log")).unwrap_or_default();
    let wanted =
        |line: &&str| line.contains("[ERR]") || line.contains("[FTL]") || !line.starts_with('[');
    let lines: Vec<&str> = text.lines().rev().filter(wanted).take(2).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("; ")
}
