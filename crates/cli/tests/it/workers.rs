//! `descartes worker` and `--workers`, with the real descartes-fleet and a real nats-server.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use descartes_testkit::World;
use descartes_testkit::world::Finished;
use serde_json::Value;

use crate::task_common::{graph, scud_project};

const LONG: Duration = Duration::from_secs(200);

/// A world with an engine, which is ended with the test.
struct Machines {
    world: World,
    server: PathBuf,
    workers: Vec<Child>,
}

impl Machines {
    fn new(what: &str) -> Option<Self> {
        let server = descartes_testkit::nats::server_or_skip(what)?;
        let fleet = descartes_testkit::descartes().with_file_name("descartes-fleet");
        assert!(fleet.is_file(), "hint: cargo build -p descartes-fleet");
        let rows = "1 | One | P | 1 | H\n2 | Two | P | 1 | H\n3 | Three | P | 1 | H";
        Some(Self {
            world: scud_project(graph(rows, "@edges\n3 -> 1\n3 -> 2\n")),
            server,
            workers: Vec::new(),
        })
    }

    fn engine(&self, words: &[&str]) -> Finished {
        let mut command = self.world.command(descartes_testkit::descartes());
        command.arg("engine").args(words);
        command.env("DESCARTES_NATS_SERVER", &self.server);
        self.world.run(command)
    }

    /// A machine of its own: another state folder, and a key of its own.
    fn worker(&mut self, name: &str, flags: &[&str]) {
        let known = self.world.environment();
        let path = known.into_iter().find(|(name, _)| *name == "PATH");
        let path = path.map(|(_, path)| path).unwrap_or_default();
        self.worker_with(name, flags, &path);
    }

    /// The same with other programs.
    fn worker_with(&mut self, name: &str, flags: &[&str], path: &str) {
        let token = self.engine(&["join-token", name]);
        let line = token.stdout();
        let url = line.trim().strip_prefix("descartes worker --engine '");
        let url = url.and_then(|url| url.strip_suffix('\'')).unwrap();
        let mut command = self.world.command(descartes_testkit::descartes());
        let state = self.world.root().join(format!("state-{name}"));
        command.args(["worker", "--engine", url]).args(flags);
        command.env("DESCARTES_STATE_DIR", state).env("PATH", path);
        command.stdin(Stdio::null()).stdout(Stdio::null());
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
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let address = format!("127.0.0.1:{port}");
    machines
        .engine(&["start", "--listen", &address])
        .assert_code(0);
    let project = machines.world.project();
    let project = project.to_str().unwrap();
    let flags = ["--pool", "fast", "--allow-repo", project];
    machines.worker("w1", &[&flags[..], &["--slots", "2"]].concat());
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
    assert!(lines.contains("pool fast, 0 of 2 slots busy"), "{lines}");
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
