//! Processes that the agent leaves behind, in every shape that agents do.
//!
//! Without fork between threads: a child is this program again, started as
//! `--child KIND FILE`. Each reports through its standard input, which is the writing end of a
//! pipe: it is closed once the process has written its id, so the pipe ends when all have.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;

use super::{Trouble, own_program, signals};

/// How long a child lives when nobody ends it.
const LIFE: Duration = Duration::from_secs(600);

/// The shapes of `spawn-child`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Grandchild,
    DoubleFork,
    Setsid,
    SetsidDoubleFork,
    Nohup,
    IgnoreTerm,
    ForkBomb(u32),
}

impl Kind {
    pub(super) fn from_name(name: &str) -> Result<Self, Trouble> {
        Ok(match name {
            "plain" => Self::Plain,
            "grandchild" => Self::Grandchild,
            "double-fork" => Self::DoubleFork,
            "setsid" => Self::Setsid,
            "setsid-double-fork" => Self::SetsidDoubleFork,
            "nohup" => Self::Nohup,
            "ignore-term" => Self::IgnoreTerm,
            _ => name
                .strip_prefix("fork-bomb=")
                .and_then(|count| count.parse().ok())
                .map(Self::ForkBomb)
                .ok_or_else(|| Trouble::Script(format!("no child is of the kind {name:?}")))?,
        })
    }

    fn name(self) -> String {
        match self {
            Self::Plain => "plain".into(),
            Self::Grandchild => "grandchild".into(),
            Self::DoubleFork => "double-fork".into(),
            Self::Setsid => "setsid".into(),
            Self::SetsidDoubleFork => "setsid-double-fork".into(),
            Self::Nohup => "nohup".into(),
            Self::IgnoreTerm => "ignore-term".into(),
            Self::ForkBomb(count) => format!("fork-bomb={count}"),
        }
    }
}

/// Whether children hold our output open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pipe {
    Held,
    LetGo,
}

/// Starts a child of this kind and returns when all its processes have written their ids.
pub(super) fn spawn(kind: Kind, pipe: Pipe, file: &Path) -> Result<(), Trouble> {
    let failed = |error| Trouble::system("a pipe for children", error);
    let (reading, writing) = std::io::pipe().map_err(failed)?;
    let mut command = again(kind, file)?;
    command.stdin(writing);
    if pipe == Pipe::LetGo {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    let child = start(&mut command)?;
    // The command holds our copy of the writing end.
    drop(command);
    let mut rest = Vec::new();
    let mut reading = reading;
    reading.read_to_end(&mut rest).map_err(failed)?;
    // A middle process that has exited is reaped, a living child is left alone.
    let mut child = child;
    if matches!(kind, Kind::DoubleFork | Kind::SetsidDoubleFork) {
        child
            .wait()
            .map_err(|error| Trouble::system("wait for a child", error))?;
    }
    Ok(())
}

/// The life of a child.
pub(super) fn main(mut arguments: impl Iterator<Item = OsString>) -> Result<u8, Trouble> {
    let missing = || Trouble::Script("--child wants a kind and a file".into());
    let kind = arguments.next().ok_or_else(missing)?;
    let kind = Kind::from_name(&kind.to_string_lossy())?;
    let file = PathBuf::from(arguments.next().ok_or_else(missing)?);
    signals::restore_all()?;
    match kind {
        Kind::Plain => {}
        Kind::Grandchild => drop(start(&mut again(Kind::Plain, &file)?)?),
        Kind::DoubleFork => return orphan(Kind::Plain, &file),
        Kind::SetsidDoubleFork => {
            new_session()?;
            return orphan(Kind::Plain, &file);
        }
        Kind::Setsid => new_session()?,
        Kind::Nohup => signals::ignore(Signal::SIGHUP)?,
        Kind::IgnoreTerm => {
            [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]
                .into_iter()
                .try_for_each(signals::ignore)?;
        }
        Kind::ForkBomb(count) => branch(count, &file)?,
    }
    report(&file)?;
    std::thread::sleep(LIFE);
    Ok(0)
}

fn orphan(kind: Kind, file: &Path) -> Result<u8, Trouble> {
    start(&mut again(kind, file)?)?;
    Ok(0)
}

/// Hands the rest of the count to two children.
fn branch(count: u32, file: &Path) -> Result<(), Trouble> {
    let left = count.saturating_sub(1);
    for share in [left / 2, left - left / 2] {
        if share > 0 {
            start(&mut again(Kind::ForkBomb(share), file)?)?;
        }
    }
    Ok(())
}

fn new_session() -> Result<(), Trouble> {
    nix::unistd::setsid()
        .map(drop)
        .map_err(|error| Trouble::system("setsid", error))
}

fn report(file: &Path) -> Result<(), Trouble> {
    let failed = |error| Trouble::system(file.display().to_string(), error);
    let mut pids = OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .map_err(failed)?;
    pids.write_all(format!("{}\n", std::process::id()).as_bytes())
        .map_err(failed)?;
    let nowhere = File::open("/dev/null").map_err(|error| Trouble::system("/dev/null", error))?;
    nix::unistd::dup2_stdin(nowhere).map_err(|error| Trouble::system("close stdin", error))
}

fn again(kind: Kind, file: &Path) -> Result<Command, Trouble> {
    let mut command = own_program()?;
    command.arg("--child").arg(kind.name()).arg(file);
    Ok(command)
}

fn start(command: &mut Command) -> Result<Child, Trouble> {
    command
        .spawn()
        .map_err(|error| Trouble::system("start a child", error))
}
