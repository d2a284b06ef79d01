//! A task loop with real worker processes, each with a state folder of its own as on another machine.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use descartes_testkit::World;
use serde_json::Value;

use super::simulated::Programs;
use crate::lab::Trouble;

/// Longer nothing takes.
const LONG: Duration = Duration::from_secs(300);

fn told(error: impl std::fmt::Display) -> Trouble {
    error.to_string()
}

/// A repository with tasks, an engine, and workers.
pub struct Machines<'a> {
    programs: &'a Programs,
    pub world: World,
    address: String,
    pub workers: Vec<Child>,
}

impl<'a> Machines<'a> {
    /// So many tasks that need nothing of each other.
    pub fn new(programs: &'a Programs, tasks: usize) -> Result<Self, Trouble> {
        let world = World::new();
        world.git_init();
        let rows = (1..=tasks).map(|n| format!("{n} | Task {n} | P | 1 | H\n"));
        let rows: String = rows.collect();
        let graph = format!("# SCUD Graph v1\n# Phase: auth\n\n@nodes\n{rows}");
        world.write(".scud/tasks/tasks.scg", graph);
        world.git(["add", "."]);
        world.git(["commit", "--quiet", "--message", "tasks"]);
        let listener = TcpListener::bind("127.0.0.1:0").map_err(told)?;
        let port = listener.local_addr().map_err(told)?.port();
        drop(listener);
        let machines = Self {
            programs,
            world,
            address: format!("127.0.0.1:{port}"),
            workers: Vec::new(),
        };
        machines.run(&["engine", "start", "--listen", &machines.address])?;
        Ok(machines)
    }

    fn command(&self, words: &[&str]) -> Command {
        self.engine_of(self.world.descartes(words))
    }

    fn engine_of(&self, mut command: Command) -> Command {
        command.env("DESCARTES_FLEET", &self.programs.fleet);
        command.env("DESCARTES_NATS_SERVER", &self.programs.server);
        command
    }

    /// Runs a command that has to succeed; gives what it printed.
    pub fn run(&self, words: &[&str]) -> Result<String, Trouble> {
        let done = self.world.run_within(self.command(words), LONG);
        match done.code() {
            Some(0) => Ok(done.stdout()),
            code => Err(format!("{words:?} ended with {code:?}: {}", done.stderr())),
        }
    }

    /// Starts a worker with so many slots.
    pub fn worker(&mut self, name: &str, slots: usize) -> Result<(), Trouble> {
        self.start_worker(self.command(&[]), name, slots)
    }

    /// Starts a worker with one slot on a machine that can be made to seem to have slept: `slept` has for how many
    /// milliseconds. Its program has fault points.
    pub fn sleeper(&mut self, name: &str, faulty: &Path, slept: &Path) -> Result<(), Trouble> {
        let mut command = self.engine_of(self.world.command(faulty));
        command.env("DESCARTES_SLEPT", slept);
        self.start_worker(command, name, 1)
    }

    fn start_worker(
        &mut self,
        mut command: Command,
        name: &str,
        slots: usize,
    ) -> Result<(), Trouble> {
        let line = self.run(&["engine", "join-token", name])?;
        let file = self.world.root().join(format!("{name}.engine"));
        fs::write(&file, line).map_err(told)?;
        command
            .args(["worker", "--slots", &slots.to_string(), "--engine-file"])
            .arg(file)
            .env("DESCARTES_STATE_DIR", self.state(name));
        let errors = File::create(self.told_by(name)).map_err(told)?;
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors);
        self.workers.push(command.spawn().map_err(told)?);
        Ok(())
    }

    /// The state folder of a worker.
    pub fn state(&self, worker: &str) -> PathBuf {
        self.world.root().join(format!("state-{worker}"))
    }

    /// What a worker says.
    pub fn told_by(&self, worker: &str) -> PathBuf {
        self.world.root().join(format!("{worker}.errors"))
    }

    /// The words that start the tasks with a scripted agent, made by workers or here.
    pub fn start(&self, script: &str, parallel: usize, workers: bool) -> Command {
        self.start_with(&self.world.agent(script), parallel, workers)
    }

    /// The same with a command of the measure's own.
    pub fn start_with(&self, agent: &str, parallel: usize, workers: bool) -> Command {
        let parallel = parallel.to_string();
        let url = format!("nats://{}", self.address);
        let mut words = vec![
            "loop",
            "start",
            "--scud-tag",
            "auth",
            "--parallel",
            &parallel,
        ];
        words.extend(["--no-wave-barrier", "--verify", "true", "--command", agent]);
        if workers {
            words.extend(["--workers", &url]);
        }
        self.command(&words)
    }

    /// The same for a loop that was left.
    pub fn resume(&self) -> Command {
        self.command(&["loop", "resume"])
    }

    /// How many commits on the user's branch brought the file of a task.
    pub fn landed(&self, task: usize) -> usize {
        let file = format!("work-{task}.txt");
        let log = self
            .world
            .git(["log", "--format=%h", "--diff-filter=A", "--", &file]);
        log.lines().count()
    }

    /// The journal of the task loop.
    pub fn records(&self) -> Result<Vec<Value>, Trouble> {
        let (path, _) = self
            .loops()
            .into_iter()
            .find(|(_, meta)| meta.get("mirror").is_none())
            .ok_or("there is no task loop")?;
        let text = fs::read_to_string(path.join("journal.jsonl")).map_err(told)?;
        let lines = text.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().map_err(told)
    }

    /// The copies of remote loops that are here: folder and what is known of each.
    pub fn copies(&self) -> Vec<(PathBuf, Value)> {
        let mut copies = self.loops();
        copies.retain(|(_, meta)| meta.get("mirror").is_some());
        copies
    }

    /// All loops that are here.
    fn loops(&self) -> Vec<(PathBuf, Value)> {
        let loops = fs::read_dir(self.world.state().join("loops"));
        let folders = loops.into_iter().flatten().flatten();
        let folders = folders.map(|entry| entry.path()).filter_map(|path| {
            let meta = fs::read(path.join("meta.json")).ok()?;
            let meta: Value = serde_json::from_slice(&meta).ok()?;
            Some((path, meta))
        });
        folders.collect()
    }

    /// The first copy that can be talked to.
    pub fn first_copy(&self) -> Result<(PathBuf, Value), Trouble> {
        let until = Instant::now() + LONG;
        while Instant::now() < until {
            if let Some(found) = self
                .copies()
                .into_iter()
                .find(|(path, _)| socket_of(path).is_some_and(|socket| socket.exists()))
            {
                return Ok(found);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err("no remote loop is here".to_owned())
    }
}

impl Drop for Machines<'_> {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            drop(worker.kill());
            drop(worker.wait());
        }
        if let Err(error) = self.run(&["engine", "stop"]) {
            println!("  the engine was not stopped: {error}");
        }
        self.world.end_all();
    }
}

/// Where the loop of a folder takes commands.
pub fn socket_of(folder: &Path) -> Option<PathBuf> {
    let host = fs::read(folder.join("host.json")).ok()?;
    let host: Value = serde_json::from_slice(&host).ok()?;
    Some(PathBuf::from(host["socket"].as_str()?))
}

/// Sends a note over a socket; gives the first answer and how long it took, in milliseconds.
pub fn say(socket: &Path, text: &str) -> Result<(Value, f64), Trouble> {
    let began = Instant::now();
    let mut stream = UnixStream::connect(socket).map_err(told)?;
    stream.set_read_timeout(Some(LONG)).map_err(told)?;
    let line = serde_json::json!({ "v": 1, "command": "say", "text": text });
    stream
        .write_all(format!("{line}\n").as_bytes())
        .map_err(told)?;
    let mut answer = String::new();
    BufReader::new(stream)
        .read_line(&mut answer)
        .map_err(told)?;
    let took = began.elapsed().as_secs_f64() * 1e3;
    Ok((serde_json::from_str(&answer).map_err(told)?, took))
}
