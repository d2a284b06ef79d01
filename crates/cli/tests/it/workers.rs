//! `descartes worker` and `--workers`, with the real descartes-fleet and a real nats-server.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use descartes_testkit::World;
use descartes_testkit::wait::{eventually, eventually_some};
use descartes_testkit::world::Finished;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::hint_rows::{suggestion, typed};
use crate::task_common::{graph, repository_on_disk, scud_project};

pub const LONG: Duration = descartes_testkit::PATIENCE;

/// A world with an engine, which is ended with the test.
pub struct Machines {
    pub world: World,
    server: PathBuf,
    workers: Vec<Child>,
}

/// [`Machines`] with a task under way.
pub struct WorkingMachines {
    pub machines: Machines,
    /// Of the engine.
    pub address: String,
    /// Every task waits for this file.
    pub go: PathBuf,
    /// The loop of the first task, as it is listed.
    pub child: Value,
}

impl Machines {
    pub fn new(what: &str) -> Option<Self> {
        let server = descartes_testkit::nats::server_or_skip(what)?;
        let fleet = descartes_testkit::descartes().with_file_name("descartes-fleet");
        assert!(fleet.is_file(), "hint: cargo build -p descartes-fleet");
        let rows = "1 | One | P | 1 | H\n2 | Two | P | 1 | H\n3 | Three | P | 1 | H";
        Some(Self {
            world: repository_on_disk(
                ".scud/tasks/tasks.scg",
                graph(rows, "@edges\n3 -> 1\n3 -> 2\n"),
            ),
            server,
            workers: Vec::new(),
        })
    }

    pub fn engine(&self, words: &[&str]) -> Finished {
        self.engine_at(&self.world.state(), words)
    }

    /// The same on a machine with this state folder.
    pub fn engine_at(&self, state: &Path, words: &[&str]) -> Finished {
        let mut command = self.world.command(descartes_testkit::descartes());
        command.arg("engine").args(words);
        command.env("DESCARTES_NATS_SERVER", &self.server);
        command.env("DESCARTES_STATE_DIR", state);
        self.world.run(command)
    }

    /// Where nobody listens.
    pub fn free_address(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    }

    /// Starts the engine; gives its address.
    pub fn start_engine(&self) -> String {
        let address = self.free_address();
        self.engine(&["start", "--listen", &address]).assert_code(0);
        address
    }

    /// Starts the tasks in the background, with an agent of this script.
    pub fn start_tasks(&self, address: &str, script: &str) {
        let agent = self.world.agent(script);
        let url = format!("nats://{address}");
        let words = ["loop", "start", "--scud-tag", "auth", "--workers", &url];
        let more = ["--verify", "ls", "--detach", "--command", &agent];
        let command = self.world.descartes([&words[..], &more].concat());
        self.world.run_within(command, LONG).assert_code(0);
    }

    /// What a worker says.
    pub fn told_by(&self, worker: &str) -> String {
        let errors = self.world.root().join(format!("{worker}.errors"));
        std::fs::read_to_string(errors).unwrap_or_default()
    }

    pub fn typed(&self, words: &[&str]) -> Finished {
        self.world.run_within(self.world.descartes(words), LONG)
    }

    /// Types what was suggested.
    #[track_caller]
    pub fn follow(&self, said: &str, hint: &str) -> Finished {
        let line = suggestion(said, hint).expect(said);
        typed(&self.world, "project", &line)
    }

    /// An engine, a worker, and a task loop whose first task is being worked on; `None` where that cannot be
    /// tried here.
    pub fn at_work(what: &str, worker: &str) -> Option<WorkingMachines> {
        let mut machines = Self::new(what)?;
        let address = machines.start_engine();
        machines.worker(worker, &[]);
        let go = machines.world.root().join("go");
        machines.start_tasks(&address, &waits_for(&go));
        let child = machines.running_child("1");
        Some(WorkingMachines {
            machines,
            address,
            go,
            child,
        })
    }

    /// The loop of a task, once it is running here.
    pub fn running_child(&self, task: &str) -> Value {
        eventually_some("the loop of a remote task", LONG, || {
            let listed = self.typed(&["loop", "list", "--all", "--children", "--json"]);
            let listed: Value = serde_json::from_str(&listed.stdout()).ok()?;
            let found = listed.as_array()?.iter();
            let mut found = found.filter(|entry| entry["task"] == task);
            found.find(|entry| entry["status"] == "running").cloned()
        })
    }

    /// A machine of its own: another state folder, and a key of its own.
    pub fn worker(&mut self, name: &str, flags: &[&str]) {
        let path = self.path();
        self.worker_with(name, flags, &path);
    }

    /// Where programs are.
    pub fn path(&self) -> String {
        let known = self.world.environment();
        let path = known.into_iter().find(|(name, _)| *name == "PATH");
        path.map(|(_, path)| path).unwrap_or_default()
    }

    /// The same with other programs.
    fn worker_with(&mut self, name: &str, flags: &[&str], path: &str) {
        self.join(name);
        self.start_worker(name, flags, path);
    }

    /// The worker that was started first, whose end is not this struct's business any more.
    pub fn take_worker(&mut self) -> Child {
        self.workers.remove(0)
    }

    /// Makes a key; gives the line.
    pub fn join(&self, name: &str) -> Finished {
        let token = self.engine(&["join-token", name]);
        // The line as it was printed, in a file that nobody else can read.
        let file = self.world.root().join(format!("{name}.engine"));
        std::fs::write(&file, token.stdout()).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        token
    }

    /// Starts a worker that has a key.
    pub fn start_worker(&mut self, name: &str, flags: &[&str], path: &str) {
        let file = self.world.root().join(format!("{name}.engine"));
        let mut command = self.world.command(descartes_testkit::descartes());
        let state = self.world.root().join(format!("state-{name}"));
        command
            .args(["worker", "--engine-file"])
            .arg(file)
            .args(flags);
        command.env("DESCARTES_STATE_DIR", state).env("PATH", path);
        let errors = self.world.root().join(format!("{name}.errors"));
        let errors = std::fs::File::create(errors).unwrap();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors);
        self.workers.push(command.spawn().unwrap());
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            drop(worker.kill());
            drop(worker.wait());
        }
        self.engine(&["stop"]);
    }
}

#[test]
fn two_workers_do_the_tasks_of_a_tag() {
    let Some(mut machines) = Machines::new("descartes worker") else {
        return;
    };
    let address = machines.start_engine();
    let project = machines.world.project();
    let project = project.to_str().unwrap();
    let flags = ["--pool", "fast", "--allow-repo", project];
    let more = ["--slots", "2", "--login", "anna"];
    machines.worker("w1", &[&flags[..], &more].concat());
    machines.worker("w2", &flags);
    let world = &machines.world;
    let agent = world.agent("write work-${DESCARTES_TASK_ID}.txt done ;; promise");
    let url = format!("nats://{address}#fast");
    let words = ["loop", "start", "--scud-tag", "auth", "--workers", &url];
    let more = ["--parallel", "3", "--verify", "ls", "--command", &agent];
    let done = world.run_within(world.descartes([&words[..], &more].concat()), LONG);
    done.assert_code(0);
    let files = world.git(["ls-tree", "--name-only", "HEAD"]);
    for task in 1..=3 {
        assert!(files.contains(&format!("work-{task}.txt")), "{files}");
    }
    // Who is there is told to people and programs, also after the end.
    let told = world.run(world.descartes(["loop", "workers"]));
    told.assert_code(0);
    let lines = told.stdout();
    let busy = "login anna, pool fast, 0 of 2 slots busy";
    assert!(lines.contains(busy), "{lines}");
    let state = world.run(world.descartes(["loop", "status", "--json"]));
    let state: Value = serde_json::from_str(&state.stdout()).unwrap();
    let file = state["state_file"].as_str().unwrap();
    let json = ["loop", "workers", "--json", "--state-file", file];
    let json = world.run(world.descartes(json));
    let json: Value = serde_json::from_str(&json.stdout()).unwrap();
    assert_eq!(json["workers"].as_array().unwrap().len(), 2, "{json}");
    assert_eq!(json["untaken"], serde_json::json!([]));
    // The record says who did it, and has no key.
    let journal = std::fs::read_dir(world.state().join("loops")).unwrap();
    let journals = journal
        .flatten()
        .map(|dir| dir.path().join("journal.jsonl"));
    let text: String = journals.flat_map(std::fs::read_to_string).collect();
    assert!(text.contains("\"worker\":\"w"), "{text}");
    assert!(text.contains("task_offered") && !text.contains("key=SU"));
}

/// Says something, waits for a file, and works.
pub fn waits_for(go: &Path) -> String {
    format!(
        "print the first words ;; wait-file {} ;; print the last words ;; write \
         work-${{DESCARTES_TASK_ID}}.txt done ;; promise",
        go.display()
    )
}

#[test]
fn a_remote_task_is_watched_and_steered_like_any_other() {
    let Some(working) = Machines::at_work("a remote task", "w1") else {
        return;
    };
    let WorkingMachines {
        machines,
        go,
        child,
        ..
    } = working;
    assert_eq!(child["worker"], "w1");
    let id = child["loop_id"].as_str().unwrap();
    let parent = child["parent"].as_str().unwrap();
    eventually("its output is here", LONG, || {
        let logs = machines.typed(&["loop", "logs", id]);
        logs.stdout().contains("the first words")
    });
    let status = machines.typed(&["loop", "status", parent]).stdout();
    assert!(status.contains("attempt 1 on w1"), "{status}");
    // A command gets both answers: the second with the next iteration, or the end.
    machines
        .typed(&["loop", "say", "use tabs", id])
        .assert_code(0);
    let journal = |state: &str| {
        let root = machines.world.root().join(state).join("loops");
        std::fs::read(root.join(id).join("journal.jsonl")).unwrap()
    };
    let state = machines.world.state();
    let here = || std::fs::read(state.join("loops").join(id).join("journal.jsonl")).unwrap();
    eventually("the journals are one", LONG, || {
        here() == journal("state-w1")
    });
    let text = String::from_utf8(here()).unwrap();
    assert!(text.contains("use tabs"), "{text}");
    let paused = machines.typed(&["loop", "pause", id]);
    paused.assert_code(0);
    machines.typed(&["loop", "unpause", id]).assert_code(0);
    std::fs::write(&go, "").unwrap();
    eventually("all is done", LONG, || {
        let status = machines.typed(&["loop", "status", parent, "--json"]);
        let status: Value = serde_json::from_str(&status.stdout()).unwrap();
        status["completed"] == true
    });
    assert_eq!(here(), journal("state-w1"));
    let logs = machines.typed(&["loop", "logs", id]).stdout();
    assert!(logs.contains("the last words"), "{logs}");
    // What is over is a copy, and nobody writes into it; what is named instead works.
    for (words, hint) in [
        (
            &["loop", "say", "too late", id][..],
            "descartes loop status {parent}",
        ),
        (&["loop", "resume", id], "descartes loop resume {}"),
    ] {
        let refused = machines.typed(words);
        refused.assert_code(65);
        assert!(refused.stderr().contains("copy"), "{}", refused.stderr());
        machines.follow(&refused.stderr(), hint).assert_code(0);
    }
    assert_eq!(here(), journal("state-w1"));
}

#[test]
fn a_worker_whose_machine_cannot_work_is_left_out_and_the_others_go_on() {
    let Some(mut machines) = Machines::new("a worker that cannot work") else {
        return;
    };
    let address = machines.start_engine();
    let tools = machines.world.root().join("no-git");
    std::fs::create_dir(&tools).unwrap();
    let git = tools.join("git");
    std::fs::write(&git, "#!/bin/sh\necho the disk is full >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(&git, PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.display(), machines.path());
    machines.worker_with("broken", &[], &path);
    let agent = "write work-${DESCARTES_TASK_ID}.txt done ;; promise";
    machines.start_tasks(&address, agent);
    eventually("it takes nothing more", LONG, || {
        let told = machines.told_by("broken");
        told.contains("broken takes nothing for 10s") && told.contains("the disk is full")
    });
    let listed = machines.typed(&["loop", "workers"]).stdout();
    assert!(listed.contains("the disk is full"), "{listed}");
    machines.worker("sound", &[]);
    let status = || -> Value {
        let status = machines.typed(&["loop", "status", "--json"]);
        serde_json::from_str(&status.stdout()).unwrap()
    };
    eventually("all is done", LONG, || status()["completed"] == true);
    let files = machines.world.git(["ls-tree", "--name-only", "HEAD"]);
    for task in 1..=3 {
        assert!(files.contains(&format!("work-{task}.txt")), "{files}");
    }
    let id = status()["loop_id"].as_str().unwrap().to_owned();
    let journal = machines.world.state().join("loops").join(id);
    let journal = std::fs::read_to_string(journal.join("journal.jsonl")).unwrap();
    assert!(
        journal.contains("is offered again: broken: ") && journal.contains("the disk is full"),
        "{journal}"
    );
}

#[test]
fn a_frozen_and_a_dead_worker_are_told() {
    let Some(working) = Machines::at_work("a dead worker", "w1") else {
        return;
    };
    let WorkingMachines {
        machines, child, ..
    } = working;
    let id = child["loop_id"].as_str().unwrap();
    let say = |text: &str| {
        let began = Instant::now();
        let told = machines.typed(&["loop", "say", text, id]);
        (told, began.elapsed())
    };
    let worker = Pid::from_raw(machines.workers[0].id().cast_signed());
    kill(worker, Signal::SIGSTOP).unwrap();
    let (frozen, took) = say("are you there");
    frozen.assert_code(65);
    assert!(
        frozen.stderr().contains("does not answer"),
        "{}",
        frozen.stderr()
    );
    assert!(took < Duration::from_secs(6), "{took:?}");
    let there = machines.follow(&frozen.stderr(), "descartes loop workers");
    assert!(there.assert_code(0).stdout().contains("w1"), "{there}");
    kill(worker, Signal::SIGKILL).unwrap();
    // As soon as the connection is closed.
    let (dead, took) = eventually_some("it is gone", LONG, || {
        let (told, took) = say("still there");
        told.stderr().contains("is gone").then_some((told, took))
    });
    dead.assert_code(65);
    assert!(took < Duration::from_secs(2), "{took:?}");
    // The whole task loop goes on, until it is told to end.
    let parent = child["parent"].as_str().unwrap();
    machines
        .typed(&["loop", "cancel", parent, "--now"])
        .assert_code(0);
}

#[test]
fn a_worker_whose_key_is_revoked_says_so_and_leaves() {
    let Some(working) = Machines::at_work("a revoked worker", "worker-7") else {
        return;
    };
    let WorkingMachines {
        mut machines,
        child,
        ..
    } = working;
    machines.engine(&["revoke", "worker-7"]).assert_code(0);
    let mut worker = machines.take_worker();
    let ended = eventually_some("it leaves", LONG, || worker.try_wait().unwrap());
    assert_eq!(ended.code(), Some(65));
    let errors = machines.world.root().join("worker-7.errors");
    let told = std::fs::read_to_string(errors).unwrap();
    let wanted = "the key of worker-7 was revoked: ask for a new one: descartes engine join-token \
                  worker-7";
    assert!(told.contains(wanted), "{told}");
    let another = machines.follow(&told, "descartes engine join-token {worker}");
    another.assert_code(0);
    let parent = child["parent"].as_str().unwrap();
    machines
        .typed(&["loop", "cancel", parent, "--now"])
        .assert_code(0);
}

#[test]
fn a_loop_that_nobody_could_work_for_is_not_begun() {
    let world = scud_project(graph("1 | One | P | 1 | H", ""));
    let fleet = descartes_testkit::descartes().with_file_name("descartes-fleet");
    assert!(fleet.is_file(), "hint: cargo build -p descartes-fleet");
    let agent = world.agent("promise");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let url = format!("nats://127.0.0.1:{port}");
    let words = ["loop", "start", "--scud-tag", "auth", "--workers", &url];
    let refused = world.run(world.descartes([&words[..], &["--command", &agent]].concat()));
    refused.assert_code(65);
    assert!(
        refused.stderr().contains("no engine answers"),
        "{}",
        refused.stderr()
    );
    assert!(!world.state().join("loops").exists());
    assert!(!world.has(".descartes/loop-state.json"));
}

#[test]
fn what_workers_need_is_said() {
    let world = scud_project(graph("1 | One | P | 1 | H", ""));
    world.write("ROADMAP.md", "# Roadmap: R\n## Tasks\n- [ ] **a**: One\n");
    let typed = |words: &[&str]| {
        let mut command = world.descartes(words);
        command.env("DESCARTES_FLEET", world.root().join("nowhere"));
        world.run(command)
    };
    let agent = world.agent("promise");
    let roadmap = ["roadmap", "run", "ROADMAP.md", "--command", &agent];
    let with = |more: &[&'static str]| typed(&[&roadmap[..], more].concat());
    let wrong = with(&["--workers", "ftp://there"]);
    wrong.assert_code(64);
    assert!(wrong.stderr().contains("nats://127.0.0.1:4222"));
    let in_place = with(&["--workers", "nats://127.0.0.1:4222", "--in-place"]);
    in_place.assert_code(64);
    assert!(in_place.stderr().contains("omit --workers or --in-place"));
    let missing = with(&["--workers", "nats://127.0.0.1:4222"]);
    missing.assert_code(65);
    assert!(missing.stderr().contains("nowhere"), "{}", missing.stderr());
    // Nothing is left of a loop that was not begun.
    assert!(!world.state().join("loops").exists());
    let unnamed = typed(&["worker"]);
    unnamed.assert_code(64);
    assert!(unnamed.stderr().contains("--engine-file FILE"));
    let gone = typed(&["worker", "--engine-file", "nowhere.txt"]);
    assert!(gone.code() != Some(0) && gone.stderr().contains("nowhere.txt"));
    let worker = typed(&["worker", "--engine", "nats://127.0.0.1:4222", "--name", "w"]);
    worker.assert_code(65);
    assert!(worker.stderr().contains("nowhere"), "{}", worker.stderr());
}

/// An engine, and the address at which workers of the pool `fast` are asked for.
fn start_engine(machines: &Machines) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let address = format!("127.0.0.1:{port}");
    let started = machines.engine(&["start", "--listen", &address]);
    started.assert_code(0);
    format!("nats://{address}#fast")
}

#[test]
fn a_worker_confines_at_least_as_far_as_it_was_told() {
    if !crate::sandbox::has_bwrap() {
        return;
    }
    let Some(mut machines) = Machines::new("descartes worker --sandbox") else {
        return;
    };
    let url = start_engine(&machines);
    machines.worker("w1", &["--pool", "fast", "--sandbox", "workspace"]);
    let world = &machines.world;
    let bashrc = world.home().join(".bashrc");
    std::fs::write(&bashrc, "# mine\n").unwrap();
    let work = "echo stolen >> ~/.bashrc; touch work-$DESCARTES_TASK_ID; echo COMPLETE";
    world.program("worker-agent", &format!("#!/bin/sh\n{work}\n"));
    let words = ["loop", "start", "--scud-tag", "auth", "--workers", &url];
    let more = ["--verify", "ls", "--command", "worker-agent"];
    let done = world.run_within(world.descartes([&words[..], &more].concat()), LONG);
    done.assert_code(0);
    assert_eq!(std::fs::read_to_string(&bashrc).unwrap(), "# mine\n");
    let files = world.git(["ls-tree", "--name-only", "HEAD"]);
    assert!(files.contains("work-3"), "{files}");
}

#[test]
fn a_worker_that_cannot_confine_so_far_does_not_take_the_offer_and_says_why() {
    let Some(mut machines) = Machines::new("descartes worker without bwrap") else {
        return;
    };
    let url = start_engine(&machines);
    let path = crate::sandbox_asked::without_bwrap(&machines.world);
    // Asked for by its owner, it does not even begin.
    let token = machines.engine(&["join-token", "w0"]).stdout();
    let engine = token.trim().strip_prefix("descartes worker --engine '");
    let engine = engine.and_then(|url| url.strip_suffix('\'')).unwrap();
    let world = &machines.world;
    let mut command = world.descartes(["worker", "--engine", engine, "--sandbox", "strict"]);
    command.env("PATH", &path);
    let refused = world.run(command);
    refused.assert_code(65);
    assert!(
        refused.stderr().contains("bwrap is not installed"),
        "{refused}"
    );
    // Asked for by the loop, the offer is left for others.
    machines.worker_with("w1", &["--pool", "fast"], &path);
    let world = &machines.world;
    let words = ["loop", "start", "--scud-tag", "auth", "--workers", &url];
    let more = [
        "--sandbox",
        "strict",
        "--detach",
        "--command",
        "worker-agent",
    ];
    world.program("worker-agent", "#!/bin/sh\ntouch ~/began; echo COMPLETE\n");
    let began = world.run(world.descartes([&words[..], &more].concat()));
    began.assert_code(0);
    descartes_testkit::wait::eventually("the reason is told", LONG, || {
        let told = world.run(world.descartes(["loop", "workers"])).stdout();
        told.contains("the sandbox `strict` does not work on") && told.contains("bwrap")
    });
    world
        .run(world.descartes(["loop", "cancel"]))
        .assert_code(0);
    assert!(!world.home().join("began").exists());
}

#[test]
fn an_engine_that_goes_away_while_agents_work_is_told_by_worker_and_coordinator() {
    let Some(working) = Machines::at_work("an engine that goes away", "w1") else {
        return;
    };
    let WorkingMachines {
        machines,
        address,
        go,
        child,
    } = working;
    let parent = child["parent"].as_str().unwrap();
    machines.engine(&["stop"]).assert_code(0);
    eventually("the worker tells", LONG, || {
        machines
            .told_by("w1")
            .contains("the engine has not confirmed a claim for")
    });
    let journal = machines.world.state().join("loops").join(parent);
    let journal = || std::fs::read_to_string(journal.join("journal.jsonl")).unwrap();
    eventually("the coordinator tells", LONG, || {
        journal().contains("has taken no writes for")
    });
    let status = machines.typed(&["loop", "status", parent]).stdout();
    let told = status.lines().find(|line| line.starts_with("  Engine: "));
    let told = told.expect(&status);
    assert!(told.contains("descartes engine status"), "{status}");
    machines
        .engine(&["start", "--listen", &address])
        .assert_code(0);
    eventually("its return is told", LONG, || {
        machines.told_by("w1").contains("the engine answers again")
            && journal().contains("answers again")
    });
    let status = machines.typed(&["loop", "status", parent]).stdout();
    assert!(!status.contains("  Engine: "), "{status}");
    std::fs::write(&go, "").unwrap();
    let done = || {
        let status = machines.typed(&["loop", "status", parent, "--json"]);
        let status: Value = serde_json::from_str(&status.stdout()).ok()?;
        (status["completed"] == true).then_some(())
    };
    eventually_some("all is done", LONG, done);
}

#[test]
fn a_workers_key_is_no_coordinators_and_is_not_kept_as_one() {
    let Some(machines) = Machines::new("a worker's key") else {
        return;
    };
    let address = machines.start_engine();
    let line = machines.join("w1").stdout();
    let url = line.trim().trim_start_matches("descartes worker --engine ");
    let url = url.trim_matches('\'');
    let words = ["loop", "start", "--scud-tag", "auth", "--workers", url];
    let more = ["--verify", "ls", "--command", "true"];
    let refused = machines.typed(&[&words[..], &more].concat());
    refused.assert_code(64);
    let told = refused.stderr();
    assert!(told.contains("the key of the worker w1"), "{told}");
    assert!(
        told.contains(&format!("--workers nats://{address}")),
        "{told}"
    );
    assert!(!told.contains("key=SU"), "{told}");
    assert!(!machines.world.state().join("engine-keys").exists());
}
