//! Loops made up of records, in a folder that is gone with the test.
#![expect(
    clippy::unwrap_used,
    dead_code,
    reason = "a test fails by panicking, and no test needs all of this"
)]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread::JoinHandle;

use descartes_client::{Known, LoopHandle, Loops, Query};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::control::Answer;
use descartes_kernel::event::*;
use descartes_kernel::state::{Kept, LoopState};
use descartes_kernel::transition::{apply, begin};
use descartes_store::Sync;
use descartes_store::catalog::{LoopMeta, register};
use descartes_store::host::{HostInfo, this_host};
use descartes_store::journal::Journal;
use descartes_store::layout::{LoopDir, StateRoot};
use descartes_store::lock::{Holder, StateLock};
use descartes_store::state_file::StateFile;
use jiff::Timestamp;
use serde_json::Map;
use tempfile::TempDir;

pub struct World {
    temp: TempDir,
}

pub fn world() -> World {
    let temp = TempDir::new().unwrap();
    std::fs::create_dir_all(temp.path().join("project")).unwrap();
    World { temp }
}

impl World {
    pub fn root(&self) -> StateRoot {
        StateRoot::at(self.temp.path().join("state"))
    }

    pub fn project(&self) -> PathBuf {
        self.temp.path().join("project").canonicalize().unwrap()
    }

    pub fn loops(&self) -> Loops {
        Loops::at(self.root(), Known::builtin())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    pub fn find(&self, name: &str) -> LoopHandle {
        self.loops().find(&Query::Named(name.into())).unwrap()
    }

    /// A loop with the default state file.
    pub fn made(&self, id: &str) -> Made {
        self.made_with(id, "auth", ".descartes/loop-state.json", config())
    }

    pub fn made_with(&self, id: &str, name: &str, file: &str, config: IterativeLoopConfig) -> Made {
        self.made_as((id, name, file), config, Map::new())
    }

    /// The loop of a task of `parent`.
    pub fn made_of(&self, id: &str, name: &str, file: &str, parent: &str) -> Made {
        let extra = [("parent".to_owned(), parent.into())].into_iter().collect();
        self.made_as((id, name, file), config(), extra)
    }

    fn made_as(
        &self,
        (id, name, file): (&str, &str, &str),
        config: IterativeLoopConfig,
        extra: Map<String, serde_json::Value>,
    ) -> Made {
        let state_file = self.project().join(file);
        std::fs::create_dir_all(state_file.parent().unwrap()).unwrap();
        let meta = LoopMeta {
            id: id.into(),
            name: name.into(),
            state_file: state_file.clone(),
            working_dir: self.project(),
            started_at: now(),
            extra,
        };
        let dir = register(&self.root(), &meta).unwrap();
        let mut journal = Journal::create(&dir.journal()).unwrap();
        let config = IterativeLoopConfig {
            state_file: Some(state_file.clone()),
            working_directory: Some(self.project()),
            ..config
        };
        let event = Decided::for_test(Event::LoopCreated {
            loop_id: id.into(),
            name: name.into(),
            config: Box::new(config),
            started_at: now(),
            iterations: 0,
            summaries: vec![],
            spent: None,
            ended: None,
        });
        let seq = journal.append(now(), &event, Durability::Process).unwrap();
        let state = begin(&event.into_record(seq, now())).unwrap();
        let mut made = Made {
            root: self.root(),
            file: StateFile::at(&state_file).unwrap(),
            dir,
            journal,
            state,
        };
        made.save();
        made
    }
}

pub fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

pub fn config() -> IterativeLoopConfig {
    IterativeLoopConfig {
        command: "agent".into(),
        prompt: "do it".into(),
        completion_promise: Some("COMPLETE".into()),
        max_iterations: Some(20),
        ..Default::default()
    }
}

/// A loop that the test writes, as a host would.
pub struct Made {
    root: StateRoot,
    pub dir: LoopDir,
    pub journal: Journal,
    pub state: LoopState,
    pub file: StateFile,
}

impl Made {
    pub fn append(&mut self, event: impl Into<Event>) {
        let (event, at) = (Decided::for_test(event.into()), Timestamp::now());
        let seq = self
            .journal
            .append(at, &event, Durability::Process)
            .unwrap();
        apply(&mut self.state, &event.into_record(seq, at)).unwrap();
    }

    pub fn save(&mut self) {
        let file = self.state.project(&Kept::default());
        self.file.save(&file, self.state.seq, Sync::Lazy).unwrap();
    }

    pub fn start(&mut self) -> u64 {
        let run = self.start_without_folder();
        std::fs::create_dir_all(self.dir.run(run).path()).unwrap();
        run
    }

    pub fn start_without_folder(&mut self) -> u64 {
        let (run, iteration) = (self.state.runs + 1, self.state.iterations + 1);
        self.append(Event::RunStarted {
            run,
            iteration,
            agent: 0,
            guard_pid: None,
            prompt: "h".into(),
            prompt_bytes: 1,
            before: tree(&format!("before-{run}")),
            notes: self
                .state
                .next_prompt
                .notes
                .iter()
                .map(|note| note.id)
                .collect(),
        });
        run
    }

    pub fn end(&mut self, facts: RunFacts) {
        let (run, iteration) = (self.state.runs, self.state.iterations + 1);
        let facts = Box::new(facts);
        self.append(Event::AgentEnded {
            run,
            iteration,
            facts,
        });
    }

    pub fn judge(&mut self, verdict: Verdict) {
        let (run, iteration) = (self.state.runs, self.state.iterations + 1);
        self.append(Event::IterationFinished {
            iteration,
            run,
            verdict,
            progress: Progress::None,
            after: tree(&format!("after-{run}")),
            files: Some(1),
            commit: None,
            spent_ms: 1000,
        });
        self.save();
    }

    /// The end of an iteration, without the state file.
    pub fn finish(&mut self) {
        let (run, iteration) = (self.state.runs, self.state.iterations + 1);
        self.append(Event::IterationFinished {
            iteration,
            run,
            verdict: Verdict::Worked,
            progress: Progress::None,
            after: tree("t"),
            files: None,
            commit: None,
            spent_ms: 10,
        });
    }

    /// A whole iteration.
    pub fn iterate(&mut self) {
        self.start();
        self.end(facts());
        self.judge(Verdict::Worked);
    }

    /// A run that met a limit.
    pub fn limited(&mut self) {
        let run = self.start();
        self.end(facts());
        let iteration = self.state.iterations + 1;
        let limit = ReportedLimit {
            kind: LimitKind::Usage,
            until: None,
            words: "limit reached".into(),
        };
        self.append(Event::RunDiscarded {
            run,
            iteration,
            limit,
            retry_at: now(),
        });
    }

    /// Holds the loop, as its host does.
    pub fn lock(&self) -> StateLock {
        let holder = Holder {
            loop_id: self.state.loop_id.clone(),
            since: now(),
            host: this_host("test"),
        };
        StateLock::acquire(&self.root, self.file.path(), &holder).unwrap()
    }

    /// A host that answers each request with these lines.
    pub fn answer(&self, lines: Vec<Vec<u8>>) -> JoinHandle<String> {
        let socket = self.dir.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let info = HostInfo {
            facts: this_host("test"),
            socket: Some(socket),
        };
        info.write(&self.dir).unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = String::new();
            BufReader::new(&stream).read_line(&mut request).unwrap();
            for line in lines {
                stream.write_all(&line).unwrap();
            }
            request
        })
    }
}

pub fn line(answer: &Answer) -> Vec<u8> {
    let mut line = serde_json::to_vec(answer).unwrap();
    line.push(b'\n');
    line
}

pub fn tree(hash: &str) -> TreeFacts {
    TreeFacts {
        tree: Some(hash.to_owned()),
        ..TreeFacts::default()
    }
}

pub fn facts() -> RunFacts {
    RunFacts {
        ended_by: EndedBy::Exit,
        exit: Some(ExitStatus::Code(0)),
        duration_ms: 1000,
        stdout_bytes: 10,
        stderr_bytes: 0,
        preview: "hello".into(),
        claim: None,
        abort: None,
        near_miss: None,
        error: None,
        limit: None,
        did_nothing: false,
        tokens: None,
        cost: None,
        leftovers: 0,
        survivors: vec![],
        log_dropped: 0,
        trouble: 0,
        denied: vec![],
        tree_after: None,
    }
}
