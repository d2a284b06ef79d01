//! A task loop whose attempts are made by workers: real agents and git, an engine in memory.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use descartes_bridge::Engine;
use descartes_bridge::memory::{MemoryEngine, MemoryServer};
use descartes_core::host::HostSettings;
use descartes_core::tasks::fleet::{DEFAULT_POOL, FleetWorker, WorkerNotice, WorkerOptions};
use descartes_core::{
    IterativeExitReason as Reason, IterativeLoopConfig, ScudIterativeLoop, ScudLoopConfig,
};
use descartes_kernel::fleet::LeaseTerms;
use descartes_store::layout::StateRoot;
use descartes_testkit::World;

const LONG: Duration = Duration::from_secs(100);

const TASKS: &str = "# SCUD Graph v1\n# Phase: auth\n\n@meta {\n  name auth\n  \
    updated 2025-01-01T00:00:00.000000000+00:00\n}\n\n@nodes\n\
    # id | title | status | complexity | priority\n\
    1 | Model | P | 3 | H\n2 | Store | P | 2 | M\n3 | Wire up | P | 5 | M\n\n\
    @edges\n# dependent -> dependency\n3 -> 1\n3 -> 2\n\n\
    @details\n1 | description |\n  Write the model.\n";

fn settings(world: &World, state: &str) -> HostSettings {
    let environment = world.environment().into_iter();
    let environment = environment.map(|(k, v)| (k.into(), v.into()));
    HostSettings {
        root: StateRoot::at(world.root().join(state)),
        environment: environment.collect(),
        ..HostSettings::from_process().unwrap()
    }
}

fn world() -> World {
    let world = World::new();
    world.git_init();
    world.write(".scud/tasks/tasks.scg", TASKS);
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "tasks"]);
    world
}

struct Running {
    worker: FleetWorker,
    engine: MemoryEngine,
    notices: Receiver<WorkerNotice>,
    thread: JoinHandle<()>,
}

impl Running {
    fn start(world: &World, server: &MemoryServer, name: &str, slots: u32) -> Self {
        let (tx, notices) = channel();
        let options = WorkerOptions {
            name: name.to_owned(),
            host: "here".to_owned(),
            pool: DEFAULT_POOL.to_owned(),
            slots,
            allow_repos: Vec::new(),
            agents: vec!["generic".to_owned()],
            worktree_copy: Vec::new(),
            worktree_setup: None,
            sandbox: None,
            terms: LeaseTerms {
                beat: Duration::from_millis(500),
                retry: Duration::from_millis(200),
                ..LeaseTerms::default()
            },
        };
        let engine = server.connect();
        let worker = FleetWorker::new(
            Arc::new(engine.clone()),
            settings(world, &format!("state-{name}")),
            world.root().join(format!("clones-{name}")),
            options,
            move |notice| drop(tx.send(notice)),
        );
        let run = worker.clone();
        let thread = std::thread::spawn(move || run.run().unwrap());
        Self {
            worker,
            engine,
            notices,
            thread,
        }
    }

    fn hears(&self, wanted: impl Fn(&WorkerNotice) -> bool) {
        while !wanted(&self.notices.recv_timeout(LONG).unwrap()) {}
    }

    /// Lets it finish; how many results it has handed in.
    fn handed_in(self) -> usize {
        self.worker.drain();
        self.thread.join().unwrap();
        let notices = self.notices.try_iter();
        let handed = notices.filter(|notice| matches!(notice, WorkerNotice::HandedIn(_)));
        handed.count()
    }
}

fn config(world: &World, script: &str) -> ScudLoopConfig {
    let words = shell_words::split(&world.agent(script)).unwrap();
    ScudLoopConfig {
        tag: "auth".into(),
        parallel: 4,
        workers: Some("memory".into()),
        verification_command: Some("test -f work-1.txt || test -f work-2.txt".into()),
        base: IterativeLoopConfig {
            command: words[0].clone(),
            args: words[1..].to_vec(),
            completion_promise: Some("COMPLETE".into()),
            working_directory: Some(world.project()),
            failure_backoff_secs: 0,
            ..Default::default()
        },
        ..Default::default()
    }
}

async fn run(world: &World, server: &MemoryServer, config: ScudLoopConfig) -> Reason {
    let mut settings = settings(world, "state");
    let server = server.clone();
    settings.engines = Some(Arc::new(move |_| {
        let engine: Arc<dyn Engine> = Arc::new(server.connect());
        Ok(engine)
    }));
    let mut tasks = ScudIterativeLoop::with_settings(config, settings)
        .await
        .unwrap();
    tasks.execute().await.unwrap().exit_reason
}

/// Writes a file of the task's own, and claims.
const WORKS: &str = "write work-${DESCARTES_TASK_ID}.txt done ;; promise";

#[tokio::test]
async fn workers_do_the_tasks_of_a_tag_and_the_work_lands() {
    let (world, server) = (world(), MemoryServer::new());
    let workers = ["a", "b"].map(|name| Running::start(&world, &server, name, 1));
    let reason = run(&world, &server, config(&world, WORKS)).await;
    assert_eq!(reason, Reason::GatesPassed);
    let log = world.git(["log", "--format=%s", "--reverse"]);
    let waves = log.lines().filter(|line| line.starts_with("feat"));
    assert_eq!(
        waves.collect::<Vec<_>>(),
        ["feat(auth): complete wave 1", "feat(auth): complete wave 2"]
    );
    let wave = world.git(["show", "--name-only", "--format=", "HEAD~3"]);
    assert_eq!(wave, "work-1.txt\nwork-2.txt");
    // Nothing of the work was done here.
    let slots = world.root().join("state").join("worktrees");
    assert!(!slots.join("slot-1").exists());
    let handed = workers.map(Running::handed_in);
    assert_eq!(handed.iter().sum::<usize>(), 3, "{handed:?}");
    assert_eq!(server.open_offers(), 0);
}

#[test]
fn a_worker_that_is_cut_off_is_fenced_and_another_does_its_task() {
    let (world, server) = (world(), MemoryServer::new());
    let hung = world.root().join("hung");
    let first = Running::start(&world, &server, "first", 1);
    let hang = format!("touch {0}; exec sleep 600", hung.display());
    let script = format!("unless-file {} sh {hang} ;; {WORKS}", hung.display());
    let config = ScudLoopConfig {
        parallel: 1,
        ..config(&world, &script)
    };
    std::thread::scope(|scope| {
        let tasks = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            runtime.unwrap().block_on(run(&world, &server, config))
        });
        let began = Instant::now();
        while !hung.exists() && began.elapsed() < LONG {
            std::thread::sleep(Duration::from_millis(20));
        }
        first.engine.disconnect();
        let second = Running::start(&world, &server, "second", 1);
        // Its claim lapses, and is taken back.
        server.advance(Duration::from_secs(61));
        assert_eq!(tasks.join().unwrap(), Reason::GatesPassed);
        assert_eq!(second.handed_in(), 3);
        first.engine.reconnect();
        first.hears(|notice| matches!(notice, WorkerNotice::InVain(_)));
        assert_eq!(first.handed_in(), 0);
    });
    assert_eq!(world.git(["show", "HEAD~1:work-1.txt"]), "done");
}
