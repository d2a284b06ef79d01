//! A world with an agent that speaks like a real one.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use descartes_testkit::wait::{eventually_some, poll};
use descartes_testkit::world::Finished;
use descartes_testkit::{World, process};
use nix::sys::signal::Signal;
use serde_json::Value;

/// The agents whose streams were recorded.
pub const AGENTS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

/// What must happen soon, on a machine that is busy.
pub const SOON: Duration = descartes_testkit::PATIENCE;

/// The script line that plays a recording, such as `claude-ok`.
pub fn recording(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agents/tests/fixtures/streams");
    let file = folder.join(format!("{name}.jsonl"));
    assert!(file.is_file(), "{}", file.display());
    format!("stream {}", file.display())
}

/// The script lines that play a recording with what it said on standard error and its exit code.
pub fn whole(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agents/tests/fixtures/streams");
    let index = std::fs::read_to_string(folder.join("index.json")).unwrap();
    let index: Value = serde_json::from_str(&index).unwrap();
    let mut script = recording(name);
    let errors = folder.join(format!("{name}.stderr"));
    if errors.is_file() {
        script.push_str(&format!("\nsh cat '{}' >&2", errors.display()));
    }
    if let Some(code) = index[name]["exit"].as_i64() {
        script.push_str(&format!("\nexit {code}"));
    }
    script
}

/// One loop in a world of its own.
pub struct Stage {
    pub world: World,
    starts: PathBuf,
}

impl Stage {
    pub fn new() -> Self {
        let world = World::new();
        let starts = world.root().join("tmp/starts");
        Self { world, starts }
    }

    /// `loop start` with an agent of this kind; sections of the script count its starts, not the
    /// iterations, since a run that was limited is none.
    pub fn command(&self, agent: &str, script: &str, flags: &[&str]) -> Command {
        let command = self.world.agent(script);
        let counter = format!("SCRIPTED_AGENT_COUNTER={}", self.starts.display());
        let mut start = self.world.descartes([
            "loop",
            "start",
            "--backend",
            agent,
            "--command",
            &command,
            "--env",
            &counter,
            "--prompt",
            "go",
        ]);
        if agent != "generic" {
            start.args(["--permissions", "edit"]);
        }
        // The scripted agent and its files lie in /tmp, which is another one in a sandbox.
        start.args(["--sandbox", "off"]);
        start.args(flags).stdin(Stdio::null());
        start
    }

    /// Runs it to its end.
    #[track_caller]
    pub fn run(&self, agent: &str, script: &str, flags: &[&str]) -> Finished {
        self.world.run(self.command(agent, script, flags))
    }

    /// Starts it and does not wait.
    pub fn spawn(&self, agent: &str, script: &str, flags: &[&str]) -> Running<'_> {
        let mut command = self.command(agent, script, flags);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Running {
            stage: self,
            child: command.spawn().unwrap(),
        }
    }

    /// How often the agent was started.
    pub fn starts(&self) -> u64 {
        std::fs::metadata(&self.starts).map_or(0, |meta| meta.len())
    }

    /// The records of the loop so far; a last line that is being written is left out.
    pub fn journal(&self) -> Vec<Value> {
        let loops = std::fs::read_dir(self.world.state().join("loops"));
        let journals = loops.into_iter().flatten().flatten();
        let text: String = journals
            .filter_map(|dir| std::fs::read_to_string(dir.path().join("journal.jsonl")).ok())
            .collect();
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// The records of this kind.
    pub fn records(&self, kind: &str) -> Vec<Value> {
        let mut records = self.journal();
        records.retain(|record| record["kind"] == kind);
        records
    }

    /// The only record of this kind.
    #[track_caller]
    pub fn record(&self, kind: &str) -> Value {
        let records = self.records(kind);
        assert_eq!(records.len(), 1, "{kind}: {records:#?}");
        records[0].clone()
    }

    /// Waits for a record of this kind.
    #[track_caller]
    pub fn await_record(&self, kind: &str) -> Value {
        eventually_some(kind, SOON, || self.records(kind).into_iter().next())
    }

    /// Why the loop ended, by the journal.
    #[track_caller]
    pub fn reason(&self) -> Value {
        self.record("loop_finished")["reason"].clone()
    }

    /// Nothing was counted: neither an iteration, nor tokens, nor time.
    #[track_caller]
    pub fn assert_nothing_counted(&self) {
        let journal = self.journal();
        let counted = |record: &Value| record["kind"] == "iteration_finished";
        assert!(!journal.iter().any(counted), "{journal:#?}");
        let state: Value =
            serde_json::from_str(&self.world.read(".descartes/loop-state.json")).unwrap();
        assert_eq!(state["iteration"], 0, "{state:#}");
    }
}

/// A loop that runs beside the test.
pub struct Running<'a> {
    stage: &'a Stage,
    child: Child,
}

impl Running<'_> {
    /// Kills descartes itself, and waits until nothing of the loop is left.
    #[track_caller]
    pub fn kill(mut self) {
        process::send(i32::try_from(self.child.id()).unwrap(), Signal::SIGKILL);
        self.child.wait().unwrap();
        self.stage.world.assert_no_survivors();
    }

    /// Waits for its end and gives the exit code.
    #[track_caller]
    pub fn code(mut self) -> Option<i32> {
        let ended = poll(SOON, &mut || self.child.try_wait().unwrap());
        ended.expect("the loop ends").code()
    }

    /// Ends it by SIGTERM.
    #[track_caller]
    pub fn end(self) {
        process::send(i32::try_from(self.child.id()).unwrap(), Signal::SIGTERM);
        assert_eq!(self.code(), Some(143));
    }
}

/// Seconds from one of a record's instants to another's.
#[track_caller]
pub fn seconds_between(from: &Value, to: &Value) -> f64 {
    let instant = |value: &Value| {
        let at: jiff::Timestamp = value.as_str().expect("an instant").parse().unwrap();
        at.as_millisecond() as f64 / 1e3
    };
    instant(to) - instant(from)
}
