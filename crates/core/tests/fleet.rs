//! A task loop whose attempts are made by workers: real agents and git, an engine in memory.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
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
use descartes_kernel::fleet::{LeaseTerms, RemoteTerms};
use descartes_store::layout::StateRoot;
use descartes_testkit::World;
use descartes_testkit::wait::eventually;

const LONG: Duration = descartes_testkit::PATIENCE;

const TASKS: &str = "# SCUD Graph v1\n# Phase: auth\n\n@meta {\n  name auth\n  \
    updated 2025-01-01T00:00:00.000000000+00:00\n}\n\n@nodes\n\
    # id | title | status | complexity | priority\n\
    1 | Model | P | 3 | H\n2 | Store | P | 2 | M\n3 | Wire up | P | 5 | M\n\n\
    @edges\n# dependent -> dependency\n3 -> 1\n3 -> 2\n\n\
    @details\n1 | description |\n  Write the model.\n";

fn settings(world: &World, state: &str) -> HostSettings {
    let tools = world.root().join(format!("tools-{state}"));
    let environment = world.environment().into_iter().map(|(name, value)| {
        let value = match name {
            // Programs of this machine alone.
            "PATH" => format!("{}:{value}", tools.display()),
            _ => value,
        };
        (name.into(), value.into())
    });
    HostSettings {
        root: StateRoot::at(world.root().join(state)),
        environment: environment.collect(),
        remote_terms: RemoteTerms {
            patience: Duration::from_secs(2),
            spare_after: Duration::from_secs(1),
            ..RemoteTerms::default()
        },
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
        Self::start_as(world, server, (name, name), slots)
    }

    /// With a name and a login.
    fn start_as(world: &World, server: &MemoryServer, names: (&str, &str), slots: u32) -> Self {
        let options = WorkerOptions {
            slots,
            ..options(names)
        };
        Self::start_worker(world, server, options)
    }

    /// The same with claims that hold for another time.
    fn start_with(
        world: &World,
        server: &MemoryServer,
        names: (&str, &str),
        slots: u32,
        terms: LeaseTerms,
    ) -> Self {
        let options = WorkerOptions {
            slots,
            terms,
            ..options(names)
        };
        Self::start_worker(world, server, options)
    }

    fn start_worker(world: &World, server: &MemoryServer, options: WorkerOptions) -> Self {
        let (tx, notices) = channel();
        let name = options.name.clone();
        let engine = server.connect();
        let settings = settings(world, &format!("state-{name}"));
        let worker = FleetWorker::new(
            Arc::new(engine.clone()),
            settings,
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

fn options((name, login): (&str, &str)) -> WorkerOptions {
    WorkerOptions {
        name: name.to_owned(),
        host: "here".to_owned(),
        login: login.to_owned(),
        pool: DEFAULT_POOL.to_owned(),
        slots: 1,
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
        wip_every: Duration::from_millis(300),
        first_rest: descartes_kernel::fleet::FIRST_REST,
    }
}

fn program(world: &World, name: &str, text: &str) {
    let path = world.root().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
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
    run_over(world, server.connect(), config).await
}

/// The same in this thread.
fn run_here(world: &World, server: &MemoryServer, config: ScudLoopConfig) -> Reason {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(run(world, server, config))
}

/// With this connection.
async fn run_over(world: &World, engine: MemoryEngine, config: ScudLoopConfig) -> Reason {
    let mut settings = settings(world, "state");
    settings.engines = Some(Arc::new(move |_| {
        let engine: Arc<dyn Engine> = Arc::new(engine.clone());
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

/// Every file of a loop folder that is copied, by its name within it.
fn folder(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![dir.join("prompts"), dir.join("runs")];
    while let Some(next) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(next) else {
            continue;
        };
        for path in entries.map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(dir).unwrap().display().to_string();
                    files.insert(name, std::fs::read(path).unwrap());
                }
            }
        }
    }
    let journal = std::fs::read(dir.join("journal.jsonl")).unwrap();
    files.insert("journal.jsonl".to_owned(), journal);
    files
}

#[tokio::test]
async fn the_loop_of_a_remote_task_is_here_as_it_is_there() {
    let (world, server) = (world(), MemoryServer::new());
    let workers = ["a", "b"].map(|name| Running::start(&world, &server, name, 1));
    // Each task is red once, so that its loop is taken up again.
    let script = format!("print hello ;; unless-file again sh touch again; exit 1 ;; {WORKS}");
    let reason = run(&world, &server, config(&world, &script)).await;
    assert_eq!(reason, Reason::GatesPassed);
    let here = world.root().join("state").join("loops");
    let mut copies = 0;
    for name in ["a", "b"] {
        let there = world.root().join(format!("state-{name}")).join("loops");
        for entry in std::fs::read_dir(there).into_iter().flatten() {
            let entry = entry.unwrap();
            let (theirs, ours) = (folder(&entry.path()), folder(&here.join(entry.file_name())));
            assert_eq!(
                ours.keys().collect::<Vec<_>>(),
                theirs.keys().collect::<Vec<_>>()
            );
            assert!(ours == theirs, "{:?}", entry.file_name());
            assert!(ours.keys().any(|file| file.ends_with("stdout.log")));
            let meta = here.join(entry.file_name()).join("meta.json");
            let meta: serde_json::Value =
                serde_json::from_slice(&std::fs::read(meta).unwrap()).unwrap();
            assert_eq!(meta["worker"], name);
            assert!(meta["parent"].is_string() && meta["task"].is_string());
            copies += 1;
        }
    }
    assert!(copies >= 3, "{copies}");
    let _ = workers.map(Running::handed_in);
}

#[test]
fn a_worker_that_is_cut_off_is_fenced_and_another_does_its_task() {
    let (world, server) = (world(), MemoryServer::new());
    let is_stored = || {
        let names = server.object_names();
        names.iter().any(|name| name.ends_with("-wip"))
    };
    cut_off(&world, &server, None, is_stored);
}

#[test]
fn work_travels_by_a_repository_also_when_its_worker_is_cut_off() {
    let (world, server) = (world(), MemoryServer::new());
    let shared = world.root().join("shared.git");
    let shared = shared.to_str().unwrap();
    world.git(["clone", "--quiet", "--bare", ".", shared]);
    let refs = || world.git(["ls-remote", shared]);
    let before = refs();
    let is_stored = || refs().contains("/work-");
    cut_off(&world, &server, Some(shared.to_owned()), is_stored);
    assert_eq!(server.object_names(), Vec::<String>::new());
    // The worker that was cut off wrote its result nowhere.
    assert_eq!(refs(), before);
}

/// A repository by which work travels; it runs a program when a result is pushed to it.
fn shared_repository(world: &World, hook: &str, does: &str) -> PathBuf {
    repository_with(world, hook, "*/result", does)
}

/// The same when a ref like this one is pushed.
fn repository_with(world: &World, hook: &str, name: &str, does: &str) -> PathBuf {
    let shared = world.root().join("shared.git");
    let path = shared.to_str().unwrap();
    world.git(["clone", "--quiet", "--bare", ".", path]);
    let text =
        format!("#!/bin/sh\nwhile read old new ref; do case $ref in {name}) {does};; esac; done\n");
    std::fs::create_dir_all(shared.join("hooks")).unwrap();
    let mut file = std::fs::OpenOptions::new();
    let file = file.create(true).write(true).truncate(true).mode(0o755);
    let mut file = file.open(shared.join("hooks").join(hook)).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    shared
}

/// Does all tasks with one worker, and work that travels by a repository; gives the journals.
async fn run_by(world: &World, shared: &Path) -> String {
    let server = MemoryServer::new();
    let worker = Running::start(world, &server, "a", 2);
    let config = ScudLoopConfig {
        git_remote: Some(shared.display().to_string()),
        ..config(world, WORKS)
    };
    assert_eq!(run(world, &server, config).await, Reason::GatesPassed);
    assert_eq!(worker.handed_in(), 3);
    let loops = std::fs::read_dir(world.root().join("state/loops")).unwrap();
    let journals = loops.flatten().map(|dir| dir.path().join("journal.jsonl"));
    journals.flat_map(std::fs::read_to_string).collect()
}

#[tokio::test]
async fn a_result_that_the_repository_does_not_take_comes_through_the_engine() {
    let world = world();
    let shared = shared_repository(&world, "pre-receive", "exit 1");
    let refs = || world.git(["ls-remote", shared.to_str().unwrap()]);
    let before = refs();
    let told = run_by(&world, &shared).await;
    assert_eq!(refs(), before);
    assert!(
        told.contains("a could not push to it: from now on commits travel"),
        "{told}"
    );
}

#[tokio::test]
async fn a_repository_that_hangs_is_left_for_the_engine() {
    let world = world();
    let shared = shared_repository(&world, "pre-receive", "sleep 600");
    let began = Instant::now();
    let told = run_by(&world, &shared).await;
    assert!(
        told.contains("a could not push to it: from now on commits travel"),
        "{told}"
    );
    assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_loop_that_is_cancelled_while_its_repository_hangs_ends_at_once() {
    let (world, server) = (world(), MemoryServer::new());
    let hung = world.root().join("hung");
    let hangs = format!("touch {}; sleep 600", hung.display());
    let shared = repository_with(&world, "pre-receive", "*/base", &hangs);
    let config = ScudLoopConfig {
        git_remote: Some(shared.display().to_string()),
        ..config(&world, WORKS)
    };
    let mut settings = settings(&world, "state");
    settings.remote_terms.patience = 2 * LONG;
    let engine = server.connect();
    settings.engines = Some(Arc::new(move |_| {
        let engine: Arc<dyn Engine> = Arc::new(engine.clone());
        Ok(engine)
    }));
    let mut tasks = ScudIterativeLoop::with_settings(config, settings)
        .await
        .unwrap();
    let cancel = tasks.as_loop().cancellation_handle();
    let watch = std::thread::spawn(move || {
        eventually("a push hangs", LONG, || hung.exists());
        cancel.store(true, Ordering::SeqCst);
        Instant::now()
    });
    let reason = tasks.execute().await.unwrap().exit_reason;
    let took = watch.join().unwrap().elapsed();
    assert_eq!(reason, Reason::UserCancelled);
    // The push of the other task was not begun.
    assert!(took < LONG, "{took:?}");
    assert_eq!(server.open_offers(), 0);
}

#[tokio::test]
async fn a_repository_that_refuses_for_good_is_left_for_the_engine() {
    let world = world();
    // It takes the result of the first task, and gives and takes nothing from then on.
    let away = world.root().join("away.git");
    let leave = format!(
        "mv {} {}",
        world.root().join("shared.git").display(),
        away.display()
    );
    let shared = shared_repository(&world, "post-receive", &leave);
    let told = run_by(&world, &shared).await;
    assert!(away.exists() && !shared.exists());
    assert!(
        told.contains("from now on commits travel through the engine"),
        "{told}"
    );
    // What was taken before counts, and was not done again.
    for kind in ["attempt_started", "task_run"] {
        let records = told.matches(&format!("\"kind\":\"{kind}\"")).count();
        assert_eq!(records, 3, "{kind}: {told}");
    }
}

#[test]
fn two_workers_by_one_name_are_told() {
    let (world, server) = (world(), MemoryServer::new());
    let alone = Running::start(&world, &server, "alone", 1);
    let one = Running::start(&world, &server, "twin", 1);
    let other = Running::start(&world, &server, "twin", 1);
    for twin in [&one, &other] {
        twin.hears(|notice| *notice == WorkerNotice::Namesake("twin".to_owned()));
    }
    assert!(alone.notices.try_iter().next().is_none());
    for worker in [alone, one, other] {
        assert_eq!(worker.handed_in(), 0);
    }
}

/// The first worker loses its connection once its work in progress is stored; the second goes on from there.
fn cut_off(
    world: &World,
    server: &MemoryServer,
    git_remote: Option<String>,
    is_stored: impl Fn() -> bool,
) {
    let hung = world.root().join("hung");
    let first = Running::start(world, server, "first", 1);
    // What it has done by then is not lost with it.
    let half = "echo half >half.txt";
    let hang = format!("{half}; touch {0}; exec sleep 600", hung.display());
    let script = format!(
        "unless-file {0} sh {hang} ;; sh test ${{DESCARTES_TASK_ID}} != 1 || test -f half.txt ;; {WORKS}",
        hung.display()
    );
    let config = ScudLoopConfig {
        parallel: 1,
        git_remote,
        ..config(world, &script)
    };
    std::thread::scope(|scope| {
        let tasks = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            runtime.unwrap().block_on(run(world, server, config))
        });
        let began = Instant::now();
        while !hung.exists() && began.elapsed() < LONG {
            std::thread::sleep(Duration::from_millis(20));
        }
        while !is_stored() {
            assert!(began.elapsed() < LONG, "{:?}", server.object_names());
            std::thread::sleep(Duration::from_millis(20));
        }
        first.engine.disconnect();
        let second = Running::start(world, server, "second", 1);
        // Its claim lapses, and is taken back.
        server.advance(Duration::from_secs(61));
        assert_eq!(tasks.join().unwrap(), Reason::GatesPassed);
        assert_eq!(second.handed_in(), 3);
        first.engine.reconnect();
        first.hears(|notice| matches!(notice, WorkerNotice::InVain(_)));
        assert_eq!(first.handed_in(), 0);
    });
    assert_eq!(world.git(["show", "HEAD~1:work-1.txt"]), "done");
    assert_eq!(world.git(["show", "HEAD~1:half.txt"]), "half");
}

#[test]
fn work_that_was_proven_while_its_worker_was_cut_off_is_done_again_and_not_only_said_to_be() {
    let (world, server) = (world(), MemoryServer::new());
    let [begun, go] = ["begun", "go"].map(|name| world.root().join(name));
    let script = format!(
        "sh touch {} ;; wait-file {} ;; {WORKS}",
        begun.display(),
        go.display()
    );
    let config = ScudLoopConfig {
        parallel: 1,
        ..config(&world, &script)
    };
    let only = Running::start(&world, &server, "only", 1);
    let has_finished = || {
        let loops = std::fs::read_dir(world.root().join("state-only/loops"));
        let journals = loops.into_iter().flatten().flatten();
        let journals = journals.map(|dir| dir.path().join("journal.jsonl"));
        let text: String = journals.flat_map(std::fs::read_to_string).collect();
        text.contains("loop_finished")
    };
    std::thread::scope(|scope| {
        let tasks = scope.spawn(|| run_here(&world, &server, config));
        eventually("its agent is at work", LONG, || begun.exists());
        only.engine.disconnect();
        std::fs::write(&go, "").unwrap();
        eventually("its loop is over", LONG, has_finished);
        // Its claim lapses, and is taken back.
        server.advance(Duration::from_secs(61));
        only.engine.reconnect();
        only.hears(|notice| matches!(notice, WorkerNotice::InVain(_)));
        assert_eq!(tasks.join().unwrap(), Reason::GatesPassed);
        assert_eq!(only.handed_in(), 3);
    });
    for task in 1..=3 {
        let file = format!("HEAD:work-{task}.txt");
        assert_eq!(world.git(["show", &file]), "done");
    }
}

#[test]
fn a_limit_told_to_one_worker_holds_its_login_on_all_and_no_other() {
    let (world, server) = (world(), MemoryServer::new());
    let limit = "echo 'Rate limit exceeded, try again in 45 minutes' >&2; exit 1";
    let script = format!(
        "unless-file {0} sh touch {0}; {limit} ;; {WORKS}",
        world.root().join("limited").display()
    );
    let config = config(&world, &script);
    std::thread::scope(|scope| {
        let first = Running::start_as(&world, &server, ("first", "anna"), 1);
        let tasks = scope.spawn(|| run_here(&world, &server, config));
        first.hears(|notice| matches!(notice, WorkerNotice::HandedIn(_)));
        let second = Running::start_as(&world, &server, ("second", "anna"), 1);
        second.hears(|notice| {
            let limit = "the provider of generic has limited the login `anna` until ";
            matches!(notice, WorkerNotice::Refused(why) if why.starts_with(limit))
        });
        let third = Running::start_as(&world, &server, ("third", "ben"), 1);
        assert_eq!(tasks.join().unwrap(), Reason::GatesPassed);
        // The limit itself was heard of above.
        assert_eq!(first.handed_in(), 0, "first");
        assert_eq!(second.handed_in(), 0, "second");
        assert_eq!(third.handed_in(), 3, "third");
    });
}

#[tokio::test]
async fn an_agent_that_rewrites_what_it_was_given_has_done_its_work_all_the_same() {
    let rewrites = "git add . ;; sh if [ $DESCARTES_TASK_ID = 2 ]; then git reset -q --soft $(git rev-list \
         --max-parents=0 HEAD) && git commit -q -m squashed; else git commit -q --amend -m amended; fi";
    let script = format!("write work-${{DESCARTES_TASK_ID}}.txt done ;; sh {rewrites} ;; promise");
    for by_repository in [false, true] {
        let (world, server) = (world(), MemoryServer::new());
        let shared = repository_with(&world, "pre-receive", "none", "exit 1");
        let config = ScudLoopConfig {
            git_remote: by_repository.then(|| shared.display().to_string()),
            ..config(&world, &script)
        };
        let worker = Running::start(&world, &server, "a", 2);
        assert_eq!(run(&world, &server, config).await, Reason::GatesPassed);
        assert_eq!(worker.handed_in(), 3);
        let files = world.git(["ls-tree", "--name-only", "HEAD"]);
        for task in 1..=3 {
            assert!(files.contains(&format!("work-{task}.txt")), "{files}");
        }
    }
}

#[tokio::test]
async fn an_agent_that_deletes_the_branch_of_its_task_has_done_it_all_the_same() {
    let (world, server) = (world(), MemoryServer::new());
    let worker = Running::start(&world, &server, "a", 1);
    let script = format!("{WORKS} ;; sh git update-ref -d $(git symbolic-ref HEAD)");
    let reason = run(&world, &server, config(&world, &script)).await;
    assert_eq!(reason, Reason::GatesPassed);
    assert_eq!(worker.handed_in(), 3);
}

#[tokio::test]
async fn programs_of_gates_that_are_others_on_a_workers_machine_are_no_changed_gate_files() {
    let (world, server) = (world(), MemoryServer::new());
    program(&world, "tools-state/check", "#!/bin/sh\n# ours\n");
    program(&world, "tools-state-a/check", "#!/bin/sh\n# theirs\n");
    let worker = Running::start(&world, &server, "a", 1);
    // The third task's agent changes the program on its machine.
    let theirs = world.root().join("tools-state-a/check");
    let changes = format!(
        "test $DESCARTES_TASK_ID != 3 || echo '# changed' >> {}",
        theirs.display()
    );
    let mut config = config(&world, &format!("{WORKS} ;; sh {changes}"));
    config.verification_command = Some("check".to_owned());
    let reason = run(&world, &server, config).await;
    assert_eq!(reason, Reason::GatesPassed);
    let _ = worker.handed_in();
    let loops = world.root().join("state/loops");
    let loops = std::fs::read_dir(loops).unwrap().flatten();
    let journals = loops.map(|dir| std::fs::read_to_string(dir.path().join("journal.jsonl")));
    let journals: String = journals.map(Result::unwrap).collect();
    let told = journals.lines().filter(|line| {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        record["kind"] == "gate_file_changed" && record["task"] == "3"
    });
    let told: Vec<&str> = told.collect();
    assert!(
        told.len() == 1 && told[0].contains(theirs.to_str().unwrap()),
        "{told:?}"
    );
    assert_eq!(
        journals.matches("tools-state/check").count(),
        1,
        "the baseline"
    );
}

#[test]
fn a_worker_without_the_program_of_a_gate_makes_no_attempt() {
    let (world, server) = (world(), MemoryServer::new());
    program(&world, "tools-state/check", "#!/bin/sh\n");
    program(&world, "tools-state-has/check", "#!/bin/sh\n");
    let mut config = config(&world, WORKS);
    config.verification_command = Some("check work".to_owned());
    std::thread::scope(|scope| {
        let lacks = Running::start(&world, &server, "lacks", 1);
        let tasks = scope.spawn(|| run_here(&world, &server, config));
        lacks.hears(|notice| {
            matches!(notice, WorkerNotice::Refused(why)
                if why == "the gate `check work` cannot be run: check is not installed on here")
        });
        let has = Running::start(&world, &server, "has", 1);
        assert_eq!(tasks.join().unwrap(), Reason::GatesPassed);
        assert_eq!((has.handed_in(), lacks.handed_in()), (3, 0));
    });
}

#[tokio::test]
async fn a_clone_that_an_agent_has_damaged_is_made_whole() {
    let (world, server) = (world(), MemoryServer::new());
    let worker = Running::start(&world, &server, "a", 1);
    let once = world.root().join("damaged");
    let damage = format!(
        "test $DESCARTES_TASK_ID != 2 -o -e {0} || {{ touch {0}; rm -rf $(git rev-parse --git-common-dir)/objects; }}",
        once.display()
    );
    let script = format!("{WORKS} ;; sh {damage}");
    let reason = run(&world, &server, config(&world, &script)).await;
    assert_eq!(reason, Reason::GatesPassed);
    assert!(once.exists());
    let _ = worker.handed_in();
}

#[tokio::test]
async fn an_agent_that_damages_the_clone_blocks_its_task_and_not_that_of_a_neighbour() {
    let (world, server) = (world(), MemoryServer::new());
    // There is nobody else to take it meanwhile.
    let options = WorkerOptions {
        slots: 2,
        first_rest: Duration::from_millis(100),
        ..options(("a", "a"))
    };
    let worker = Running::start_worker(&world, &server, options);
    let damaged = world.root().join("damaged");
    // The second is at work when the first damages what both work in.
    let damage = format!(
        "if test $DESCARTES_TASK_ID = 1; then rm -rf $(git rev-parse --git-common-dir)/objects; touch {0}; \
         elif test $DESCARTES_TASK_ID = 2; then while ! test -e {0}; do sleep 0.1; done; sleep 1; fi",
        damaged.display()
    );
    let script = format!("{WORKS} ;; sh {damage}");
    let reason = run(&world, &server, config(&world, &script)).await;
    let Reason::TasksBlocked { tasks, .. } = &reason else {
        panic!("{reason:?}");
    };
    assert_eq!(tasks, &["1", "3"]);
    let _ = worker.handed_in();
}

#[tokio::test]
async fn an_agent_whose_work_cannot_be_committed_blocks_its_task_alone() {
    let (world, server) = (world(), MemoryServer::new());
    let workers = ["a", "b", "c"].map(|name| Running::start(&world, &server, name, 1));
    let garbage = "test $DESCARTES_TASK_ID != 1 || echo garbage > \
        $(git rev-parse --git-common-dir)/$(git symbolic-ref HEAD)";
    let script = format!("{WORKS} ;; sh {garbage}");
    let reason = run(&world, &server, config(&world, &script)).await;
    let Reason::TasksBlocked { tasks, .. } = &reason else {
        panic!("{reason:?}");
    };
    // The third waits for it.
    assert_eq!(tasks, &["1", "3"]);
    let handed = workers.map(Running::handed_in);
    assert_eq!(handed.iter().sum::<usize>(), 3, "{handed:?}");
}

#[test]
fn work_that_one_machine_cannot_commit_is_done_by_another() {
    let (world, server) = (world(), MemoryServer::new());
    let script = "#!/bin/sh\nfor word; do case $word in commit|commit-tree) echo no space left >&2; exit 1;; esac; done\n\
        PATH=${PATH#*:} exec git \"$@\"\n";
    program(&world, "tools-state-bad/git", script);
    let config = config(&world, WORKS);
    std::thread::scope(|scope| {
        let bad = Running::start(&world, &server, "bad", 1);
        let tasks = scope.spawn(|| run_here(&world, &server, config));
        bad.hears(|notice| {
            matches!(notice, WorkerNotice::Refused(why)
                if why.contains("takes nothing for 10s") && why.contains("no space left"))
        });
        let good = Running::start(&world, &server, "good", 1);
        assert_eq!(tasks.join().unwrap(), Reason::GatesPassed);
        assert_eq!(good.handed_in(), 3);
        let _ = bad.handed_in();
    });
}

#[test]
fn workers_that_may_not_take_an_offer_leave_it_to_one_that_may() {
    let (world, server) = (world(), MemoryServer::new());
    let picky = |name: &str| {
        let options = WorkerOptions {
            allow_repos: vec!["https://example.com/other.git".to_owned()],
            slots: 2,
            ..options((name, name))
        };
        Running::start_worker(&world, &server, options)
    };
    // No time passes in the engine: what somebody keeps is never handed out again.
    let picky = ["p", "q"].map(picky);
    let config = config(&world, WORKS);
    std::thread::scope(|scope| {
        let tasks = scope.spawn(|| run_here(&world, &server, config));
        picky[0].hears(
            |notice| matches!(notice, WorkerNotice::Refused(why) if why.contains("is not allowed")),
        );
        let open = Running::start(&world, &server, "open", 1);
        assert_eq!(tasks.join().unwrap(), Reason::GatesPassed);
        assert_eq!(open.handed_in(), 3);
    });
    for picky in picky {
        assert_eq!(picky.handed_in(), 0);
    }
}

#[test]
fn a_worker_that_is_started_again_hands_in_what_was_not_taken() {
    let (world, server) = (world(), MemoryServer::new());
    let (at_work, go) = (world.root().join("at-work"), world.root().join("go"));
    let script = format!(
        "touch {} ;; wait-file {} ;; {WORKS}",
        at_work.display(),
        go.display()
    );
    let config = ScudLoopConfig {
        parallel: 1,
        ..config(&world, &script)
    };
    let coordinator = server.connect();
    let first = Running::start(&world, &server, "a", 1);
    let clones = world.root().join("clones-a");
    std::thread::scope(|scope| {
        let engine = coordinator.clone();
        let tasks = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            runtime.unwrap().block_on(run_over(&world, engine, config))
        });
        let began = Instant::now();
        while !at_work.exists() && began.elapsed() < LONG {
            std::thread::sleep(Duration::from_millis(20));
        }
        // It hands in while its coordinator is away, and ends; then the engine loses everything.
        coordinator.disconnect();
        std::fs::write(&go, "").unwrap();
        first.hears(|notice| matches!(notice, WorkerNotice::HandedIn(_)));
        first.handed_in();
        assert_eq!(
            std::fs::read_dir(clones.join("results")).unwrap().count(),
            1
        );
        server.lose_disk();
        let again = Running::start(&world, &server, "a", 1);
        coordinator.reconnect();
        assert_eq!(tasks.join().unwrap(), Reason::GatesPassed);
        // The first task was not done again.
        assert_eq!(again.handed_in(), 2);
    });
    result_that_nobody_takes_is_forgotten(&world, &server);
    clone_that_nobody_uses_is_removed(&world, &server);
}

#[test]
fn a_worker_that_is_told_to_end_does_not_wait_for_an_agent_that_stands_still() {
    let (world, server) = (world(), MemoryServer::new());
    let (at_work, go) = (world.root().join("at-work"), world.root().join("go"));
    let script = format!(
        "touch {} ;; wait-file {} ;; {WORKS}",
        at_work.display(),
        go.display()
    );
    let config = ScudLoopConfig {
        parallel: 1,
        ..config(&world, &script)
    };
    let coordinator = server.connect();
    let terms = LeaseTerms {
        ttl: Duration::from_secs(3),
        margin: Duration::from_secs(1),
        beat: Duration::from_millis(500),
        retry: Duration::from_millis(200),
        ..LeaseTerms::default()
    };
    let first = Running::start_with(&world, &server, ("a", "a"), 1, terms);
    std::thread::scope(|scope| {
        let engine = coordinator.clone();
        let tasks = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            runtime.unwrap().block_on(run_over(&world, engine, config))
        });
        let began = Instant::now();
        while !at_work.exists() && began.elapsed() < LONG {
            std::thread::sleep(Duration::from_millis(20));
        }
        // Its claim runs out: the agent stands still, and would do so for half an hour.
        coordinator.disconnect();
        first.engine.disconnect();
        let began = Instant::now();
        first.worker.drain();
        first.hears(|notice| matches!(notice, WorkerNotice::Kept(..)));
        first.thread.join().unwrap();
        let took = began.elapsed();
        assert!(took < Duration::from_secs(60), "{took:?}");
        // What it came to is handed in by the next start, and the task is done then.
        std::fs::write(&go, "").unwrap();
        let again = Running::start(&world, &server, "a", 1);
        coordinator.reconnect();
        assert_eq!(tasks.join().unwrap(), Reason::GatesPassed);
        again.handed_in();
    });
}

/// Makes a file older than everything that a worker keeps.
fn make_old(path: &Path) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let weeks = Duration::from_secs(21 * 24 * 3600);
    let then = std::time::SystemTime::now() - weeks;
    file.set_modified(then).unwrap();
}

fn result_that_nobody_takes_is_forgotten(world: &World, server: &MemoryServer) {
    let results = world.root().join("clones-a").join("results");
    std::fs::create_dir_all(&results).unwrap();
    // Of a task loop that never comes back, and of an offer that was closed.
    let (lost, closed) = ("task.gone.1.1", "task.gone.2.1");
    let file = |subject: &str| results.join(format!("{subject}.json"));
    for subject in [lost, closed] {
        let finished =
            format!(r#"{{"subject":"{subject}","claim":"a-1","result":null,"object":null}}"#);
        let mut options = std::fs::File::options();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let mut written = options.open(file(subject)).unwrap();
        written.write_all(finished.as_bytes()).unwrap();
    }
    let claim = br#"{"state":"closed"}"#;
    server.connect().put(closed, Some(0), None, claim).unwrap();
    Running::start(world, server, "a", 1).handed_in();
    assert!(file(lost).exists() && !file(closed).exists());
    make_old(&file(lost));
    Running::start(world, server, "a", 1).handed_in();
    assert!(!file(lost).exists());
}

fn clone_that_nobody_uses_is_removed(world: &World, server: &MemoryServer) {
    let clones = world.root().join("clones-a");
    drop(std::fs::remove_dir_all(clones.join("results")));
    let mut folders = vec![clones];
    let used = loop {
        let next = folders.pop().unwrap();
        let paths = std::fs::read_dir(next).unwrap();
        let paths: Vec<_> = paths.map(|entry| entry.unwrap().path()).collect();
        if let Some(used) = paths.iter().find(|path| path.ends_with("used")) {
            break used.clone();
        }
        folders.extend(paths.into_iter().filter(|path| path.is_dir()));
    };
    let worktrees = std::fs::read_to_string(&used).unwrap();
    assert!(Path::new(&worktrees).is_dir(), "{worktrees}");
    // One that was used a moment ago stays.
    Running::start(world, server, "a", 1).handed_in();
    assert!(used.exists());
    make_old(&used);
    Running::start(world, server, "a", 1).handed_in();
    assert!(!used.parent().unwrap().exists());
    assert!(!Path::new(&worktrees).exists());
}
