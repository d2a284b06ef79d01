//! Recording what the real CLIs print, case by case: fixtures for the parsers' fast tests.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Login, Options, Permission, Prints, RealCli, version};
use crate::model::ModelServer;
use crate::{World, process, wait};

impl RealCli {
    /// How the files of its recordings end.
    pub fn extension(self) -> &'static str {
        match self.prints() {
            Prints::Json => "jsonl",
            Prints::Text => "txt",
        }
    }
}

/// What every case asks of the agent.
pub const PROMPT: &str = "Write a file, then finish.\nPrint <promise>COMPLETE</promise> when done.";

/// Bytes of standard error that are kept.
const STDERR_BYTES: usize = 8192;

/// A thing that a CLI can meet.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name, part of the fixture's.
    pub name: String,
    /// What the server answers.
    pub turns: Value,
    /// What the agent may do.
    #[serde(default)]
    pub permission: Permission,
    /// How it is logged in.
    #[serde(default)]
    pub login: Login,
    /// The only CLI that it makes sense for; none for all.
    #[serde(default)]
    pub only: Option<RealCli>,
    /// True when it is recorded for every CLI, not for the first ones alone.
    #[serde(default)]
    pub every: bool,
    /// Who ends it.
    #[serde(default)]
    pub ending: Ending,
}

impl Case {
    /// Whether it is recorded for this CLI.
    pub fn is_for(&self, cli: RealCli) -> bool {
        let calls = |turn: &Value| !turn["tool"].is_null();
        let tools = self
            .turns
            .as_array()
            .is_some_and(|all| all.iter().any(calls));
        match self.only {
            Some(only) => only == cli,
            None if tools && !cli.has_tools() => false,
            None => self.every || RealCli::FIRST.contains(&cli),
        }
    }
}

/// Who ends a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// The CLI itself.
    #[default]
    Own,
    /// A SIGINT once the tool has made the file `started`, or the server hangs.
    Interrupted,
}

/// What happened in a case, as `index.json` beside the fixtures tells it under `AGENT-CASE`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Recorded {
    /// The CLI's version.
    pub version: String,
    /// Its exit code.
    pub exit: Option<i32>,
    /// The signal that ended it; with neither, it never ended and was killed by us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The requests that took a turn.
    pub requests: usize,
}

/// The cases that are recorded.
///
/// # Panics
/// When `cases.json` does not parse.
pub fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("cases.json")).expect("cases.json")
}

/// Plays a case and writes `AGENT-CASE.jsonl` (`.txt` for plain text), and `AGENT-CASE.stderr` where there is any, into the
/// folder and a row into its `index.json`; none when the CLI is not installed or the case is not for it.
///
/// # Panics
/// When a fixture cannot be written.
pub fn record(server: &ModelServer, cli: RealCli, case: &Case, folder: &Path) -> Option<Recorded> {
    if !case.is_for(cli) {
        return None;
    }
    let world = World::new();
    let lane = format!("{}-{}", cli.name(), case.name);
    server.lane(&lane, cli.script(&case.turns));
    let options = Options {
        permission: case.permission,
        login: case.login,
        ..Options::default()
    };
    let launch = cli.launch(&world, &server.url(&lane), &options)?;
    let outcome = thread::scope(|scope| {
        if case.ending == Ending::Interrupted {
            scope.spawn(|| interrupt(&world, server, &lane));
        }
        world.watch(launch.command(&world, PROMPT), limit(cli, case))
    });
    let status = outcome.as_ref().ok().map(|run| run.status);
    let (Ok(run) | Err(run)) = outcome;
    let neutral = |text: &str| neutral(text, &world, server, &lane);
    let stdout = neutral(&run.stdout());
    // A loop without end is known by its first rounds.
    let lines = status.map_or(60, |_| usize::MAX);
    let kept: String = stdout.split_inclusive('\n').take(lines).collect();
    let file = format!("{lane}.{}", cli.extension());
    fs::write(folder.join(file), kept).expect("write a fixture");
    if !run.stderr.is_empty() {
        let file = folder.join(format!("{lane}.stderr"));
        fs::write(file, end_of(&neutral(&run.stderr()))).expect("write a fixture");
    }
    let requests = server.log(&lane).iter().filter(|entry| !entry.side).count();
    let recorded = Recorded {
        version: version(cli)?,
        exit: status.and_then(|status| status.code()),
        signal: status.and_then(|status| status.signal()),
        requests,
    };
    note(folder, &lane, &recorded);
    Some(recorded)
}

/// The end of a text, in whole lines: more is not looked at by anybody.
fn end_of(text: &str) -> &str {
    let from = text.floor_char_boundary(text.len().saturating_sub(STDERR_BYTES));
    match text[from..].split_once('\n') {
        Some((_, whole)) if from > 0 => whole,
        _ => &text[from..],
    }
}

/// Puts the case into the index, beside those that are there.
fn note(folder: &Path, name: &str, recorded: &Recorded) {
    let file = folder.join("index.json");
    let known = fs::read_to_string(&file).unwrap_or_else(|_| "{}".into());
    let mut index: BTreeMap<String, Recorded> =
        serde_json::from_str(&known).expect("an index of fixtures");
    index.insert(name.to_owned(), recorded.clone());
    let rows = index.iter().map(|(name, recorded)| {
        let row = serde_json::to_string(recorded).expect("a row of the index");
        format!("  {name:?}: {row}")
    });
    let text = format!("{{\n{}\n}}\n", rows.collect::<Vec<_>>().join(",\n"));
    fs::write(&file, text).expect("write the index");
}

/// Sends SIGINT to the CLI as soon as it is in the middle of something.
fn interrupt(world: &World, server: &ModelServer, lane: &str) {
    let hangs = || {
        server
            .log(lane)
            .iter()
            .any(|entry| entry.fault.as_deref() == Some("Hang"))
    };
    let busy = &mut || (hangs() || world.has("started")).then_some(());
    if wait::poll(Duration::from_secs(60), busy).is_some() {
        let own = i32::try_from(std::process::id()).expect("a process id");
        let children = world
            .processes()
            .into_iter()
            .filter(|process| process.ppid == own);
        children.for_each(|child| process::send(child.pid, Signal::SIGINT));
    }
}

/// Some CLIs never give up; what they print until then is the fixture.
fn limit(cli: RealCli, case: &Case) -> Duration {
    let never_ends = match cli {
        RealCli::OpenCode => ["cut", "context", "html"].contains(&case.name.as_str()),
        RealCli::Gemini => case.name == "usage-limit",
        RealCli::Claude | RealCli::Codex => false,
        // Most of them try again for many minutes, and nothing sets how often.
        _ => case.turns[0]["repeat"] == -1,
    };
    let slow = matches!(cli, RealCli::Kilo | RealCli::Gptme);
    Duration::from_secs(match never_ends {
        true if slow => 90,
        true => 45,
        false => 180,
    })
}

/// The text without the places of this machine.
fn neutral(text: &str, world: &World, server: &ModelServer, lane: &str) -> String {
    let agents = super::folder();
    let replacements = [
        (server.url(lane), "http://127.0.0.1:8080".to_owned()),
        (server.address().to_string(), "127.0.0.1:8080".to_owned()),
        (
            world.project().display().to_string(),
            "/home/user/project".to_owned(),
        ),
        (world.home().display().to_string(), "/home/user".to_owned()),
        (
            world.root().display().to_string(),
            "/home/user/world".to_owned(),
        ),
        (
            world.root().display().to_string().replace('/', "-"),
            "-home-user-world".to_owned(),
        ),
        (agents.display().to_string(), "/opt/agents".to_owned()),
        // No place of a machine: a program's own files inside itself.
        ("/$bunfs/root/".to_owned(), "/$bunfs/".to_owned()),
    ];
    replacements
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}
