//! What the tests share: supervisors that are watched, a sink that remembers, processes that are
//! counted.
#![allow(dead_code, reason = "every test file uses a part of it")]
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::any::Any;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use descartes_proc::{
    Channel, Exit, Launch, MARK, PumpReport, Sink, Stdin, Supervisor, TreeEvent, process_alive,
    start_time,
};

pub const GUARD: &str = env!("CARGO_BIN_EXE_descartes-testguard");
pub const HOST: &str = env!("CARGO_BIN_EXE_descartes-testhost");
pub const AGENT: &str = env!("CARGO_BIN_EXE_descartes-testagent");

/// Far beyond anything that works; nothing waits so long but a test that fails.
pub const LONG: Duration = Duration::from_secs(180);

/// All shapes with the number of processes that tell their id.
pub const SHAPES: [(&str, usize); 8] = [
    ("child", 2),
    ("grandchild", 3),
    ("double-fork", 3),
    ("setsid", 2),
    ("setsid-double-fork", 3),
    ("nohup", 2),
    ("ignores-term", 2),
    ("fork-bomb", 201),
];

/// A supervisor with its events and the output of its agents.
pub struct Watched {
    pub supervisor: Supervisor,
    pub events: Receiver<TreeEvent>,
    pub output: Receiver<Vec<u8>>,
    chunks: Sender<Vec<u8>>,
}

impl Watched {
    pub fn guarded() -> Self {
        Self::new(|on_event| Supervisor::guarded(Path::new(GUARD), &[], &[], on_event).unwrap())
    }

    pub fn direct(mark: &str) -> Self {
        Self::new(|on_event| Supervisor::direct(mark, on_event).unwrap())
    }

    pub fn new(make: impl FnOnce(Box<dyn Fn(TreeEvent) + Send + Sync>) -> Supervisor) -> Self {
        let (sender, events) = mpsc::channel();
        let supervisor = make(Box::new(move |event| drop(sender.send(event))));
        let (chunks, output) = mpsc::channel();
        Self {
            supervisor,
            events,
            output,
            chunks,
        }
    }

    pub fn start(&mut self, run: u64, launch: &Launch) {
        let sink = Record {
            stdout_copy: Some(self.chunks.clone()),
            ..Default::default()
        };
        self.supervisor.start(run, launch, Box::new(sink)).unwrap();
    }

    pub fn event(&self) -> TreeEvent {
        self.events.recv_timeout(LONG).unwrap()
    }

    /// The end of a run: its exit, and how many had to be killed.
    pub fn end(&self, run: u64) -> (Exit, u32) {
        let TreeEvent::Exited { run: told, exit } = self.event() else {
            panic!("no exit")
        };
        assert_eq!(told, run);
        (exit, self.swept(run))
    }

    pub fn swept(&self, run: u64) -> u32 {
        let TreeEvent::Swept {
            run: told,
            survivors,
            killed,
        } = self.event()
        else {
            panic!("not swept")
        };
        assert_eq!((told, survivors), (run, vec![]));
        killed
    }

    pub fn collect(&mut self) -> (Record, PumpReport) {
        let mut report = self.supervisor.collect(LONG);
        let sink: Box<dyn Any> = report.sink.take().unwrap();
        (*sink.downcast::<Record>().unwrap(), report)
    }

    /// Runs it to its end.
    pub fn run(&mut self, launch: &Launch) -> (Exit, Record) {
        self.start(0, launch);
        let (exit, _) = self.end(0);
        (exit, self.collect().0)
    }

    /// Waits until so many processes of a shape are there.
    pub fn processes(&self, count: usize) -> Processes {
        let mut text = Vec::new();
        while text.iter().filter(|&&byte| byte == b'\n').count() < count {
            text.extend(self.output.recv_timeout(LONG).unwrap());
        }
        Processes::from_lines(std::str::from_utf8(&text).unwrap())
    }
}

/// A sink that remembers everything.
#[derive(Default)]
pub struct Record {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub quiets: u32,
    pub ends: Vec<Channel>,
    pub stdout_copy: Option<Sender<Vec<u8>>>,
}

impl Record {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }
}

impl Sink for Record {
    fn chunk(&mut self, channel: Channel, bytes: &[u8]) {
        match channel {
            Channel::Stdout => self.stdout.extend(bytes),
            Channel::Stderr => self.stderr.extend(bytes),
        }
        if let (Channel::Stdout, Some(copy)) = (channel, &self.stdout_copy) {
            let _ = copy.send(bytes.to_vec());
        }
    }

    fn quiet(&mut self) {
        self.quiets += 1;
    }

    fn end(&mut self, channel: Channel) {
        self.ends.push(channel);
    }
}

/// Processes that once lived.
pub struct Processes(Vec<(u32, u64)>);

impl Processes {
    pub fn from_lines(lines: &str) -> Self {
        let pids = lines.lines().map(|line| line.parse().unwrap());
        Self(
            pids.filter_map(|pid| Some((pid, start_time(pid)?)))
                .collect(),
        )
    }

    pub fn alive(&self) -> usize {
        self.0
            .iter()
            .filter(|(pid, start_time)| process_alive(*pid, *start_time))
            .count()
    }

    /// Waits until none is left, for at most `limit`; gives how many are.
    pub fn left_after(&self, limit: Duration) -> usize {
        let begun = Instant::now();
        // Nobody tells us of the death of a process that is not our child.
        while self.alive() > 0 && begun.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.alive()
    }
}

/// A launch with nothing but a path in its environment.
pub fn launch(argv: &[&str]) -> Launch {
    let path = std::env::var_os("PATH").unwrap_or_default();
    Launch {
        argv: argv.iter().map(OsString::from).collect(),
        env: vec![("PATH".into(), path)],
        cwd: std::env::temp_dir(),
        stdin: Stdin::Null,
        finish: std::time::Duration::ZERO,
    }
}

pub fn sh(script: &str) -> Launch {
    launch(&["sh", "-c", script])
}

/// One of the shapes, with a mark.
pub fn shape(name: &str, mark: &str) -> Launch {
    let mut launch = launch(&[AGENT, name]);
    launch.env.push((MARK.into(), mark.into()));
    launch
}

/// A mark that nobody else has.
pub fn fresh_mark() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!(
        "test-{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Waits until nobody but this process carries the mark, for at most `limit`; gives who does.
pub fn carriers_after(mark: &str, limit: Duration) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let left = carriers(mark);
        if left.is_empty() || begun.elapsed() > limit {
            return left;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn carriers(mark: &str) -> Vec<String> {
    let entry = format!("{MARK}={mark}").into_bytes();
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let environ = std::fs::read(process.path().join("environ")).unwrap_or_default();
        if environ.split(|&byte| byte == 0).any(|held| held == entry) {
            let comm = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            found.push(format!("{} {comm}", process.path().display()));
        }
    }
    found
}

/// A FIFO that lets an agent go when [`open`](Gate::open)ed.
pub struct Gate {
    _dir: tempfile::TempDir,
    pub path: PathBuf,
}

impl Gate {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gate");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        Self { _dir: dir, path }
    }

    pub fn open(&self) {
        drop(
            std::fs::OpenOptions::new()
                .write(true)
                .open(&self.path)
                .unwrap(),
        );
    }
}
