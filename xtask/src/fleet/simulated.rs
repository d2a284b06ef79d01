//! An engine of a measure's own, and simulated parties in processes of their own.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::lab::Trouble;

/// What is started.
pub struct Programs {
    pub fleet: PathBuf,
    pub server: PathBuf,
}

/// Started with the keys and the config that users get; ended with its measure.
pub struct Engine<'a> {
    programs: &'a Programs,
    folder: tempfile::TempDir,
    host: String,
    port: u16,
    /// All servers of its cluster.
    cluster: Vec<String>,
    coordinator: String,
    worker: String,
}

/// Workers, or a coordinator.
pub struct Simulated {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl<'a> Engine<'a> {
    pub fn start(programs: &'a Programs) -> Result<Self, Trouble> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let port = listener
            .local_addr()
            .map_err(|error| error.to_string())?
            .port();
        drop(listener);
        let mut engine = Self::new(programs, "127.0.0.1", port)?;
        engine.start_again()?;
        engine.make_keys()?;
        Ok(engine)
    }

    /// A server in a folder of its own.
    fn new(programs: &'a Programs, host: &str, port: u16) -> Result<Self, Trouble> {
        // Beside the build: a memory file system would know nothing of syncing.
        let parent = crate::shell::root().join("target");
        let folder = tempfile::Builder::new()
            .prefix("fleet-")
            .tempdir_in(parent)
            .map_err(|error| error.to_string())?;
        Ok(Self {
            programs,
            folder,
            host: host.to_owned(),
            port,
            cluster: Vec::new(),
            coordinator: String::new(),
            worker: String::new(),
        })
    }

    /// Servers that keep everything together, as people set them up: one is started, its keys are copied.
    pub fn start_cluster(programs: &'a Programs, count: usize) -> Result<Vec<Self>, Trouble> {
        let told = |error: std::io::Error| error.to_string();
        let free = |host: &str| {
            let listener = TcpListener::bind((host, 0)).map_err(told)?;
            Ok::<_, Trouble>(listener.local_addr().map_err(told)?.port())
        };
        let hosts: Vec<String> = (1..=count).map(|n| format!("127.0.0.{n}")).collect();
        let port = free("0.0.0.0")?;
        let meet = hosts
            .iter()
            .map(|host| Ok(format!("{host}:{}", free(host)?)));
        let meet = meet.collect::<Result<Vec<String>, Trouble>>()?;
        let mut servers: Vec<Self> = Vec::new();
        for host in &hosts {
            let mut server = Self::new(programs, host, port)?;
            match servers.first() {
                None => server.cluster = meet.clone(),
                Some(first) => {
                    std::fs::create_dir_all(server.path()).map_err(told)?;
                    for name in ["setup.json", "coordinator.url"] {
                        std::fs::copy(first.path().join(name), server.path().join(name))
                            .map_err(told)?;
                    }
                    server.coordinator.clone_from(&first.coordinator);
                }
            }
            server.start_again()?;
            if servers.is_empty() {
                server.make_keys()?;
            }
            servers.push(server);
        }
        Ok(servers)
    }

    /// Its name among the servers of a cluster.
    pub fn name(&self) -> String {
        format!("descartes-{}", self.host)
    }

    /// What a server of a cluster says of its leader.
    pub fn leader(&self) -> Result<Value, Trouble> {
        let engine = format!("{}:{}", self.host, self.port);
        let mut url = self.coordinator.clone();
        if let (Some(at), Some(end)) = (url.find('@'), url.find('?')) {
            url.replace_range(at + 1..end, &engine);
        }
        Simulated::start(self.programs, &json!({ "sim": "leader", "engine": url }))?.report()
    }

    fn make_keys(&mut self) -> Result<(), Trouble> {
        let file = self.path().join("coordinator.url");
        let url = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
        url.trim().clone_into(&mut self.coordinator);
        let token =
            self.ask(&json!({ "command": "join_token", "folder": self.path(), "name": "sim" }))?;
        self.worker = token["engine"].as_str().unwrap_or_default().to_owned();
        Ok(())
    }

    pub fn start_again(&self) -> Result<(), Trouble> {
        let listen = format!("{}:{}", self.host, self.port);
        let started = self.ask(&json!({
            "command": "start", "folder": self.path(), "listen": listen, "host": self.host,
            "cluster": self.cluster, "nats_server": self.programs.server,
        }))?;
        match started["report"] == "started" {
            true => Ok(()),
            false => Err(format!("the engine was not started: {started}")),
        }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("engine")
    }

    /// The line of the simulated workers.
    pub fn worker_url(&self) -> &str {
        &self.worker
    }

    /// Its process.
    pub fn pid(&self) -> Result<i32, Trouble> {
        let text = std::fs::read_to_string(self.path().join("server.pid"));
        let text = text.map_err(|error| error.to_string())?;
        text.trim()
            .parse()
            .map_err(|error| format!("{text}: {error}"))
    }

    /// SIGKILL, and it is gone.
    pub fn kill(&self) -> Result<(), Trouble> {
        let pid = self.pid()?;
        kill(Pid::from_raw(pid), Signal::SIGKILL).map_err(|error| error.to_string())?;
        let until = Instant::now() + Duration::from_secs(10);
        while std::path::Path::new(&format!("/proc/{pid}")).exists() {
            if Instant::now() > until {
                return Err("the engine does not die".to_owned());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// So many workers in a process of their own, at work.
    pub fn workers(&self, name: &str, count: usize) -> Result<Simulated, Trouble> {
        let mut workers = self.idle_workers(name, count)?;
        workers.begin()?;
        Ok(workers)
    }

    /// The same, connected, and not at work yet.
    pub fn idle_workers(&self, name: &str, count: usize) -> Result<Simulated, Trouble> {
        let what = json!({ "sim": "workers", "engine": self.worker, "name": name, "count": count });
        let mut workers = Simulated::start(self.programs, &what)?;
        let line = workers.line()?;
        match line.trim() == "ready" {
            true => Ok(workers),
            false => Err(format!("the workers are not ready: {line}")),
        }
    }

    /// A coordinator with these tasks; `more` are settings of its own.
    pub fn coordinator(&self, tasks: usize, more: &Value) -> Result<Simulated, Trouble> {
        let mut what = json!({
            "sim": "coordinator", "engine": self.coordinator, "loop_id": "measure", "tasks": tasks,
            "work_ms": 0, "ttl_s": 60, "rate": null, "limit_s": 120, "grace_ms": 5000,
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            what[name] = value.clone();
        }
        Simulated::start(self.programs, &what)
    }

    fn ask(&self, command: &Value) -> Result<Value, Trouble> {
        let mut child = Command::new(&self.programs.fleet)
            .arg("engine")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        if let Some(mut input) = child.stdin.take() {
            let written = input.write_all(command.to_string().as_bytes());
            written.map_err(|error| error.to_string())?;
        }
        let output = child
            .wait_with_output()
            .map_err(|error| error.to_string())?;
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
    }
}

impl Drop for Engine<'_> {
    fn drop(&mut self) {
        let stop = json!({ "command": "stop", "folder": self.path() });
        if let Err(error) = self.ask(&stop) {
            println!("  the engine was not stopped: {error}");
        }
    }
}

impl Simulated {
    fn start(programs: &Programs, what: &Value) -> Result<Self, Trouble> {
        let mut child = Command::new(&programs.fleet)
            .arg("sim")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(mut input), Some(output)) = (input, output) else {
            return Err("no pipes".to_owned());
        };
        let written = input.write_all(format!("{what}\n").as_bytes());
        written.map_err(|error| error.to_string())?;
        Ok(Self {
            child,
            input: Some(input),
            output: BufReader::new(output),
        })
    }

    /// Lets workers begin.
    pub fn begin(&mut self) -> Result<(), Trouble> {
        let input = self.input.as_mut().ok_or("ended already")?;
        input
            .write_all(b"begin\n")
            .map_err(|error| error.to_string())
    }

    /// Waits until a coordinator follows its tasks.
    pub fn begun(&mut self) -> Result<(), Trouble> {
        let line = self.line()?;
        match line.trim() == "begun" {
            true => Ok(()),
            false => Err(format!("the coordinator did not begin: {line}")),
        }
    }

    /// Waits until every task of a coordinator has a holder.
    pub fn all_held(&mut self) -> Result<(), Trouble> {
        self.begun()?;
        let line = self.line()?;
        match line.trim() == "held" {
            true => Ok(()),
            false => Err(format!("not all tasks were handed out: {line}")),
        }
    }

    fn line(&mut self) -> Result<String, Trouble> {
        let mut line = String::new();
        self.output
            .read_line(&mut line)
            .map_err(|error| error.to_string())?;
        Ok(line)
    }

    /// What it came to. Workers are ended by the question, a coordinator ends when all is done.
    pub fn report(mut self) -> Result<Value, Trouble> {
        self.input.take();
        loop {
            let line = self.line()?;
            // A coordinator also says when it has begun and when all of its tasks are held.
            if !matches!(line.trim(), "begun" | "held") {
                return serde_json::from_str(&line).map_err(|error| format!("{line}: {error}"));
            }
        }
    }

    pub fn signal(&self, signal: Signal) -> Result<(), Trouble> {
        let pid = i32::try_from(self.child.id()).map_err(|error| error.to_string())?;
        kill(Pid::from_raw(pid), signal).map_err(|error| error.to_string())
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        self.input.take();
        // One that is stopped or stuck; others are gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Numbers of a list in a report.
pub fn numbers(report: &Value, name: &str) -> Vec<f64> {
    let list = report[name].as_array().into_iter().flatten();
    list.filter_map(Value::as_f64).collect()
}

/// What must be none in every report of a coordinator.
pub fn lost(report: &Value) -> Vec<String> {
    ["lost", "twice", "stale_results"]
        .into_iter()
        .filter(|name| report[*name] != 0)
        .map(|name| format!("{name}: {}", report[name]))
        .collect()
}
