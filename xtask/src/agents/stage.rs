//! A world with a real CLI in it, pointed at a lane of the model server, and `descartes` beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use descartes_testkit::World;
use descartes_testkit::model::ModelServer;
use descartes_testkit::real_clis::{Launch, Options, RealCli};
use descartes_testkit::wait::poll;
use serde_json::Value;

/// A CLI that is slow to start on a busy machine still has to come up by then.
pub const STARTUP_TIMEOUT: Duration = Duration::from_secs(180);

/// Builds the stage of one case.
pub type Build<'a> = dyn Fn(&str) -> Stage<'a> + 'a;

/// Everything that a case needs.
pub struct Stage<'a> {
    pub world: World,
    pub cli: RealCli,
    binary: &'a Path,
    server: &'a ModelServer,
    lane: String,
    launch: Option<Launch>,
    sandbox: Option<String>,
    /// Words of the command that only this case needs.
    pub more_words: Vec<String>,
}

impl<'a> Stage<'a> {
    /// A fresh world for this case.
    pub fn new(binary: &'a Path, server: &'a ModelServer, cli: RealCli, case: &str) -> Self {
        Self {
            world: World::new(),
            cli,
            binary,
            server,
            lane: format!("{}-{case}", cli.name()),
            launch: None,
            sandbox: None,
            more_words: Vec::new(),
        }
    }

    /// The same in a sandbox of this level.
    #[must_use]
    pub fn in_sandbox(mut self, level: Option<&str>) -> Self {
        self.sandbox = level.map(str::to_owned);
        self
    }

    /// Says what the model answers, and how the CLI is set up.
    pub fn script(&mut self, turns: Value, options: &Options) -> Result<(), String> {
        self.server.lane(&self.lane, self.cli.script(&turns));
        let url = self.server.url(&self.lane);
        self.point_at(&url, options)
    }

    /// Points the CLI somewhere else.
    pub fn point_at(&mut self, url: &str, options: &Options) -> Result<(), String> {
        let launch = self.cli.launch(&self.world, url, options);
        self.launch = Some(launch.ok_or_else(|| format!("{} is not installed", self.cli.name()))?);
        Ok(())
    }

    fn launch(&self) -> Result<&Launch, String> {
        self.launch.as_ref().ok_or_else(|| "no script".to_owned())
    }

    /// The real program.
    pub fn program(&self) -> Result<PathBuf, String> {
        Ok(self.launch()?.program.clone())
    }

    /// The command that a user would give: our own flags are what is tested, so only what the
    /// test's surroundings need stands in it.
    pub fn agent_words(&self, program: &Path) -> String {
        let program = program.to_string_lossy().into_owned();
        let mut words = vec![program.as_str()];
        words.extend(self.cli.words());
        words.extend(self.more_words.iter().map(String::as_str));
        shell_words::join(words)
    }

    /// `descartes loop start` with this agent.
    pub fn start(&self, program: &Path, flags: &[&str]) -> Result<Command, String> {
        let agent = self.agent_words(program);
        let mut command = self.descartes(&[
            "loop",
            "start",
            "--backend",
            self.cli.name(),
            "--command",
            &agent,
            "--permissions",
            "all",
            "--prompt",
            "Do what is asked of you.",
        ])?;
        // What is not tried in a sandbox is tried without: the default depends on the machine.
        command.args(["--sandbox", self.sandbox.as_deref().unwrap_or("off")]);
        command.args(flags);
        Ok(command)
    }

    /// Another verb with this agent, which may do everything.
    pub fn start_confined(&self, verb: &[&str], program: &Path) -> Result<Command, String> {
        let agent = self.agent_words(program);
        let mut command = self.descartes(verb)?;
        command
            .args(["--backend", self.cli.name(), "--command", &agent])
            .args(["--permissions", "all"]);
        Ok(command)
    }

    /// Any `descartes` command in this world.
    pub fn descartes(&self, args: &[&str]) -> Result<Command, String> {
        let mut command = self.world.command(self.binary);
        command
            .args(args)
            .envs(self.launch()?.environment.clone())
            .stdin(Stdio::null());
        Ok(command)
    }

    /// Starts a command whose words go to a file; the child is the caller's to wait for.
    pub fn spawn(&self, mut command: Command) -> Result<Child, String> {
        let out = fs::File::create(self.said_file()).map_err(|error| error.to_string())?;
        let err = out.try_clone().map_err(|error| error.to_string())?;
        command.stdout(out).stderr(err);
        command.spawn().map_err(|error| error.to_string())
    }

    fn said_file(&self) -> PathBuf {
        self.world.root().join("tmp/said")
    }

    /// What a spawned command said, the end of it.
    pub fn said(&self) -> String {
        let said = fs::read_to_string(self.said_file()).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(8)..].join(" | ")
    }

    /// The records of the world's loop so far.
    pub fn journal(&self) -> Vec<Value> {
        let loops = fs::read_dir(self.world.state().join("loops"));
        let journals = loops.into_iter().flatten().flatten();
        let text: String = journals
            .filter_map(|dir| fs::read_to_string(dir.path().join("journal.jsonl")).ok())
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

    /// Waits for a record of this kind.
    pub fn await_record(&self, kind: &str, within: Duration) -> Option<Value> {
        poll(within, &mut || self.records(kind).into_iter().next())
    }

    /// The texts that the model was sent by users.
    pub fn prompts(&self) -> Vec<String> {
        let log = self.server.log(&self.lane);
        let users = log.into_iter().filter(|entry| !entry.side);
        users
            .flat_map(|entry| entry.users)
            .map(|text| format!("{}…{}", text.head, text.tail))
            .collect()
    }

    /// How many requests took a turn.
    pub fn requests(&self) -> usize {
        let log = self.server.log(&self.lane);
        log.iter().filter(|entry| !entry.side).count()
    }

    /// Waits until no process of this world lives; names those that do.
    pub fn gone(&self, within: Duration) -> Result<(), String> {
        let mut left = Vec::new();
        let gone = poll(within, &mut || {
            left = self.world.processes();
            left.is_empty().then_some(())
        });
        gone.ok_or_else(|| {
            let names: Vec<String> = left
                .iter()
                .map(|process| format!("{} {}", process.pid, process.command))
                .collect();
            format!("survivors: {}", names.join("; "))
        })
    }
}

/// A condition with its complaint.
pub fn must(holds: bool, complaint: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(complaint()) }
}
