//! Suggestions about the engine of workers on other machines, each typed where it is printed.

use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::{Child, Stdio};
use std::time::Duration;

use descartes_testkit::process::send;
use descartes_testkit::{World, eventually};
use nix::sys::signal::Signal;

use crate::docs_commands::Situation;
use crate::hint_rows::{row, shell, suggestion, try_rows, typed};
use crate::verb_snapshots::with_scripted_fleet;
use crate::workers::Machines;

const SOON: Duration = descartes_testkit::PATIENCE;

/// What speaks to the engine answers by a script.
fn scripted() -> World {
    let world = Situation::Project.world();
    with_scripted_fleet(&world);
    world
}

#[test]
fn what_is_suggested_about_an_engine() {
    try_rows(
        scripted,
        &[
            row(
                "descartes engine check nonsense",
                "descartes engine check nats://127.0.0.1:4222",
            )
            .says("left a marker"),
            row(
                "descartes engine check",
                "descartes engine check nats://HOST:4222",
            )
            .fill("HOST", "127.0.0.1")
            .says("left a marker"),
            row("descartes engine check", "descartes engine start").says("the engine runs"),
            row(
                "descartes engine join-token worker-7",
                "descartes engine stop",
            )
            .says("stopped"),
            row(
                "descartes engine join-token worker-7",
                "descartes engine start --listen 0.0.0.0:4222",
            )
            .says("the engine runs"),
            row("descartes worker", "descartes engine join-token NAME")
                .fill("NAME", "worker-7")
                .says("descartes worker --engine"),
            row(
                "descartes worker --engine nats://127.0.0.1:4222",
                "descartes engine check {url}",
            )
            .says("left a marker"),
        ],
    );
}

/// A real server is in the path, and no engine runs. `../port` has an address where nobody listens, `../busy`
/// one where somebody does.
fn real() -> Option<World> {
    let server = descartes_testkit::nats::server_or_skip("suggestions about an engine")?;
    let world = World::in_memory();
    symlink(server, world.bin().join("nats-server")).unwrap();
    for (name, stays) in [("port", false), ("busy", true)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::fs::write(world.root().join(name), address).unwrap();
        if stays {
            std::mem::forget(listener);
        }
    }
    Some(world)
}

#[test]
fn what_is_suggested_by_an_engine() {
    if real().is_none() {
        return;
    }
    let address = "$(cat ../port)";
    try_rows(
        || real().unwrap(),
        &[
            row(
                "descartes engine start --listen \"$(cat ../busy)\"",
                "descartes engine start --listen 127.0.0.1:4223",
            )
            .fill("127.0.0.1:4223", address)
            .behind("; code=$?; descartes engine stop; exit $code")
            .says("the engine runs"),
            row(
                "descartes engine start --cluster a,b",
                "descartes engine start --listen 0.0.0.0:4222 --host a --cluster a,b,c",
            )
            .fill("0.0.0.0:4222", address)
            .behind("; code=$?; descartes engine stop; exit $code")
            .says("nothing can be stored before"),
        ],
    );
    try_rows(
        || {
            let world = real().unwrap();
            let start = format!("descartes engine start --listen {address}; descartes engine stop");
            typed(&world, "project", &start).assert_code(0);
            world
        },
        &[
            row(
                "descartes engine join-token w1; descartes engine join-token w1",
                "descartes engine revoke {name}",
            ),
            row("descartes engine revoke nobody", "descartes engine status").says("not running"),
            row("descartes engine status", "descartes engine start")
                .behind("; code=$?; descartes engine stop; exit $code")
                .says("the engine runs"),
            row(
                "descartes engine start; line=$(descartes engine join-token w1); descartes engine revoke w1
                eval \"$line\"; descartes engine stop",
                "descartes engine join-token {name}",
            )
            .says("descartes worker --engine"),
        ],
    );
}

/// Types a line that stays, in the background; what it says goes to a file of this name.
fn stays(world: &World, name: &str, line: &str) -> Child {
    let mut shell = shell(world, "project", &format!("exec {line}"));
    let state = world.root().join(format!("state-{name}"));
    shell.env("DESCARTES_STATE_DIR", state);
    let said = std::fs::File::create(world.root().join(name)).unwrap();
    shell.stdin(Stdio::null()).stdout(said.try_clone().unwrap());
    shell.stderr(said).spawn().unwrap()
}

fn said(world: &World, name: &str) -> String {
    std::fs::read_to_string(world.root().join(name)).unwrap_or_default()
}

fn end(mut worker: Child) {
    send(worker.id().cast_signed(), Signal::SIGTERM);
    worker.wait().unwrap();
}

#[test]
fn what_is_suggested_to_workers() {
    let Some(mut machines) = Machines::new("suggestions to workers") else {
        return;
    };
    let address = machines.start_engine();
    let token = machines.join("w1").stdout();
    let line = suggestion(&token, "descartes worker --engine '{engine}'").expect(&token);
    let (_, url) = line.split_once("--engine ").unwrap();
    // Nobody is there: the suggestion takes the address of that line.
    machines.start_tasks(&address, "write work-${DESCARTES_TASK_ID} x ;; promise");
    let mut status = String::new();
    eventually("nobody takes the tasks", SOON, || {
        status = machines.typed(&["loop", "workers"]).stdout();
        status.contains("(start one: ")
    });
    let typed_in = suggestion(&status, "descartes worker --engine URL").expect(&status);
    let first = stays(&machines.world, "first", &typed_in.replace("URL", url));
    eventually("all is done", SOON, || {
        let status = machines.typed(&["loop", "status"]).stdout();
        status.contains("3 of 3 done")
    });
    // A second machine with the same line.
    let second = stays(&machines.world, "second", &line);
    let twins = ["first", "second"];
    let hint = "descartes engine join-token {name}-2";
    let world = &machines.world;
    eventually("they see each other", SOON, || {
        twins
            .iter()
            .any(|name| said(world, name).contains("join-token w1-2"))
    });
    let told = twins.map(|name| said(world, name)).concat();
    machines.follow(&told, hint).assert_code(0);
    end(second);
    end(first);
    // A loop without workers names how to have some.
    world.write("ROADMAP.md", "# Roadmap: R\n## Tasks\n- [ ] **a**: One\n");
    world.git(["add", "ROADMAP.md"]);
    world.git(["commit", "--quiet", "--message", "more"]);
    let agent = world.agent("write by-worker x ;; promise");
    let alone = [
        "loop",
        "start",
        "--prompt",
        "go",
        "--command",
        &agent,
        "--name",
        "alone",
        "--force",
    ];
    machines.typed(&alone).assert_code(0);
    let none = machines.typed(&["loop", "workers", "alone"]);
    let hint = "descartes roadmap run ROADMAP.md --workers URL";
    let run = suggestion(&none.stderr(), hint).expect(hint);
    let run = run.replace("URL", &format!("nats://{address}"));
    machines.worker("w3", &[]);
    let world = &machines.world;
    let run = format!("{run} --verify ls --command {}", shell_words::quote(&agent));
    typed(world, "project", &run).assert_code(0);
}
