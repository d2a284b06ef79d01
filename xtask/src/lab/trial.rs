//! One loop in a world of its own, through the real binary.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use descartes_testkit::process::{self, Process};
use descartes_testkit::world::Finished;
use descartes_testkit::{World, wait};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::{Lab, Trouble, proc};

/// Longer than anything here takes, on any machine.
pub const LONG: Duration = Duration::from_secs(60);

/// A world, and the programs under test in it.
pub struct Trial<'a> {
    /// The programs.
    pub lab: &'a Lab,
    /// The folders and the environment.
    pub world: World,
    binary: &'a Path,
}

impl<'a> Trial<'a> {
    /// A new world.
    pub fn new(lab: &'a Lab) -> Self {
        Self {
            lab,
            world: World::new(),
            binary: &lab.descartes,
        }
    }

    /// A new world for the binary with fault points.
    pub fn faulty(lab: &'a Lab) -> Result<Self, Trouble> {
        let binary = lab.faulty.as_deref();
        let binary = binary.ok_or("no binary with fault points (set DESCARTES_FAULTY_BIN)")?;
        Ok(Self {
            lab,
            world: World::new(),
            binary,
        })
    }

    /// The command line of an agent that plays this script.
    pub fn agent(&self, script: &str) -> String {
        let file = format!(
            "SCRIPTED_AGENT_FILE={}",
            self.world.script(script).display()
        );
        shell_words::join(["env", &file, &self.lab.agent.to_string_lossy()])
    }

    /// `descartes` with these words.
    pub fn descartes<S: AsRef<OsStr>>(&self, words: &[S]) -> Command {
        let mut command = self.world.command(self.binary);
        command.args(words);
        command.stdin(Stdio::null());
        command
    }

    /// `loop start` with an agent that plays this script.
    pub fn start(&self, script: &str, flags: &[&str]) -> Command {
        let agent = self.agent(script);
        let mut command = self.descartes(&["loop", "start", "--command", &agent]);
        if !flags.iter().any(|flag| flag.starts_with("--prompt")) {
            command.args(["--prompt", "go"]);
        }
        command.args(self.sandbox_flags());
        command.args(flags);
        command
    }

    /// Flags for the sandbox that is tried. The script of the agent lies outside of the work tree.
    pub fn sandbox_flags(&self) -> Vec<String> {
        let Some(level) = self.lab.sandbox else {
            return Vec::new();
        };
        let scripts = self.world.root().join("agents");
        [
            "--sandbox",
            level,
            "--sandbox-read",
            &scripts.to_string_lossy(),
        ]
        .map(str::to_owned)
        .into()
    }

    /// Runs to the end.
    pub fn run(&self, command: Command) -> Result<Ended, Trouble> {
        self.run_within(command, LONG)
    }

    /// The same for what takes longer.
    pub fn run_within(&self, command: Command, limit: Duration) -> Result<Ended, Trouble> {
        let late = |so_far: Finished| format!("still running after {limit:?}: {}", Ended(so_far));
        self.world.watch(command, limit).map(Ended).map_err(late)
    }

    /// Starts it, and does not wait; its words go nowhere.
    pub fn spawn(&self, mut command: Command) -> Result<Running, Trouble> {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command
            .spawn()
            .map_err(|error| format!("{command:?}: {error}"))?;
        Ok(Running { child })
    }

    /// Starts it with its words in a file, for whoever asks why it ended as it did.
    pub fn spawn_to(&self, mut command: Command, words: &Path) -> Result<Running, Trouble> {
        let failed = |error| format!("{}: {error}", words.display());
        let file = fs::File::create(words).map_err(failed)?;
        command
            .stderr(file.try_clone().map_err(failed)?)
            .stdout(file);
        let child = command.spawn();
        let child = child.map_err(|error| format!("{command:?}: {error}"))?;
        Ok(Running { child })
    }

    /// Whether the binary knows this verb of `loop`.
    pub fn knows(&self, verb: &str) -> bool {
        self.run(self.descartes(&["loop", verb, "--help"]))
            .is_ok_and(|finished| finished.code() == Some(0))
    }

    /// A path below the project.
    pub fn path(&self, name: &str) -> PathBuf {
        self.world.path(name)
    }

    /// The state file.
    pub fn state_file(&self) -> PathBuf {
        self.path(".descartes/loop-state.json")
    }

    /// The state file's content; null where there is none.
    pub fn state(&self) -> Value {
        let text = fs::read(self.state_file()).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or(Value::Null)
    }

    /// The journals of all loops of this world that were begun.
    pub fn journals(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.world.state().join("loops"));
        let mut found: Vec<PathBuf> = entries
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path().join("journal.jsonl"))
            // One without a whole line is what a start that was killed left: no loop.
            .filter(|path| fs::read(path).is_ok_and(|bytes| bytes.contains(&b'\n')))
            .collect();
        found.sort();
        found
    }

    /// The only journal; empty where there is none.
    pub fn journal_bytes(&self) -> Vec<u8> {
        self.journals()
            .first()
            .and_then(|path| fs::read(path).ok())
            .unwrap_or_default()
    }

    /// The records of the only journal; a torn last line is no record.
    pub fn journal(&self) -> Vec<Value> {
        let bytes = self.journal_bytes();
        bytes
            .split_inclusive(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect()
    }

    /// The records of one kind.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        self.journal()
            .into_iter()
            .filter(|record| record["kind"] == kind)
            .collect()
    }

    /// Waits for a file below the project that holds something.
    pub fn wait_for(&self, name: &str) -> Result<(), Trouble> {
        let path = self.path(name);
        let there = || path.exists().then_some(());
        wait::poll(LONG, &mut { there }).ok_or_else(|| format!("no {name} in time"))
    }

    /// Waits for as many records of a kind.
    pub fn wait_for_events(&self, kind: &str, count: usize) -> Result<(), Trouble> {
        let mut there = || (self.events(kind).len() >= count).then_some(());
        wait::poll(LONG, &mut there).ok_or_else(|| format!("no {kind} in time"))
    }
}

/// A process of ours that runs.
pub struct Running {
    child: Child,
}

impl Running {
    /// Its id.
    pub fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// The guard it started.
    pub fn guard(&self) -> Result<i32, Trouble> {
        let mut find = || proc::guard_of(self.pid());
        wait::poll(Duration::from_secs(5), &mut find).ok_or_else(|| "no guard".to_owned())
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        process::send(self.pid(), signal);
    }

    /// Waits for its end, at most so long; its exit code as a shell shows it.
    pub fn wait_at_most(&mut self, limit: Duration) -> Option<i32> {
        use std::os::unix::process::ExitStatusExt;
        let child = &mut self.child;
        let status = wait::poll(limit, &mut || child.try_wait().ok().flatten())?;
        Some(
            status
                .code()
                .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
        )
    }

    /// The same, for an end that must come.
    pub fn code_within(&mut self, limit: Duration) -> Result<i32, Trouble> {
        self.wait_at_most(limit)
            .ok_or_else(|| format!("still running after {limit:?}"))
    }

    /// Its exit code, once it has ended; 128 and more for a signal, as a shell shows it.
    pub fn code(&mut self) -> Result<i32, Trouble> {
        use std::os::unix::process::ExitStatusExt;
        let child = &mut self.child;
        let status = wait::poll(LONG, &mut || child.try_wait().ok().flatten());
        let status = status.ok_or_else(|| format!("still running after {LONG:?}"))?;
        Ok(status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A loop that a broken trial left is ended; one that has ended is reaped already.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Those of these processes that are still the same and alive.
pub fn alive(of: &[Process]) -> Vec<Process> {
    let same = |then: &&Process| {
        process::find(then.pid).is_some_and(|now| now.start_time == then.start_time)
    };
    of.iter().filter(same).cloned().collect()
}

/// How long until all of them are gone, in milliseconds; an error names those that stay.
pub fn gone_ms(of: &[Process], since: Instant, within: Duration) -> Result<f64, Trouble> {
    let end = since + within;
    loop {
        let left = alive(of);
        if left.is_empty() {
            return Ok(since.elapsed().as_secs_f64() * 1e3);
        }
        if Instant::now() > end {
            return Err(format!("survivors after {within:?}: {left:?}"));
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// A process that has ended; shown as its status and last words, in a line.
pub struct Ended(Finished);

impl std::ops::Deref for Ended {
    type Target = Finished;

    fn deref(&self) -> &Finished {
        &self.0
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let last = |text: String| {
            let lines: Vec<&str> = text.lines().rev().take(4).collect();
            lines.into_iter().rev().collect::<Vec<_>>().join(" / ")
        };
        let words = format!(
            "{}; {} / {}",
            self.status,
            last(self.stdout()),
            last(self.stderr())
        );
        words.chars().take(700).try_for_each(|c| write!(f, "{c}"))
    }
}
