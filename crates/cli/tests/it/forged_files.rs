//! Files in the reach of agents say whatever was written into them: who holds a loop is asked of the
//! kernel, and what cannot be read is refused, not passed over.

use std::io::Write;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::time::Duration;

use descartes_testkit::world::bins;
use descartes_testkit::{World, eventually, eventually_some};

use crate::common::{CLAIMS, descartes, events, loop_dir, loops, start, start_command};
use crate::task_common::{WORKS, graph, run, said, scud_project};

const SOON: Duration = descartes_testkit::PATIENCE;
const STATE: &str = ".descartes/loop-state.json";

/// A loop in the background whose agent waits.
fn waiting(world: &World) {
    start(
        world,
        "write at-work x ;; sh until [ -e go ]; do sleep 0.1; done ;; promise",
        &["--detach"],
    )
    .assert_code(0);
    eventually("the agent", SOON, || world.has("at-work"));
}

#[test]
fn a_forged_state_file_hides_no_running_loop_and_keeps_nobody_from_ending_it() {
    let world = World::in_memory();
    waiting(&world);
    let mut forged: serde_json::Value = serde_json::from_str(&world.read(STATE)).unwrap();
    forged["loop_id"] = "01900000-0000-7000-8000-000000000000".into();
    forged["completed"] = true.into();
    forged["exit_reason"] = serde_json::json!({"type": "completion_promise_detected"});
    world.write(STATE, forged.to_string());
    let status = descartes(&world, &["loop", "status"]).stdout();
    assert!(status.contains("Completed: No"), "{status}");
    descartes(&world, &["loop", "say", "hello"]).assert_code(0);
    descartes(&world, &["loop", "cancel"]).assert_code(0);
    assert_eq!(events(&world, "loop_finished").len(), 1);
}

#[test]
fn whoever_else_listens_on_the_control_socket_has_no_say() {
    for answer in [
        "garbage\n",
        "{\"answer\":\"refused\",\"message\":\"no\",\"hint\":\"no\"}\n",
        "{\"answer\":\"effective\",\"id\":1,\"message\":\"done\"}\n",
    ] {
        let world = World::in_memory();
        waiting(&world);
        let host = std::fs::read_to_string(loop_dir(&world).join("host.json")).unwrap();
        let host: serde_json::Value = serde_json::from_str(&host).unwrap();
        let socket = host["socket"].as_str().unwrap().to_owned();
        // Its host looks every now and then whether it is there, and may be quicker.
        let listener = eventually_some("a socket of ours", SOON, || {
            drop(std::fs::remove_file(&socket));
            UnixListener::bind(&socket).ok()
        });
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                drop(stream.unwrap().write_all(answer.as_bytes()));
            }
        });
        let set = descartes(&world, &["loop", "set", "-m", "50"]);
        // Its host may listen anew by then; whatever is said to be changed is.
        let changed = events(&world, "config_changed").len();
        assert_eq!(set.code() == Some(0), changed == 1, "{set}");
        let cancelled = descartes(&world, &["loop", "cancel"]);
        cancelled.assert_code(0);
        assert_eq!(events(&world, "loop_finished").len(), 1, "{cancelled}");
        world.assert_no_survivors();
    }
}

#[test]
fn a_forged_lock_has_nobody_else_ended() {
    let world = World::in_memory();
    waiting(&world);
    let mut other = Command::new("sleep").arg("600").spawn().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", other.id())).unwrap();
    let start_time = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19);
    let start_time: u64 = start_time.unwrap().parse().unwrap();
    let mut files = vec![
        loop_dir(&world).join("lock"),
        world.path(STATE.to_owned() + ".lock"),
    ];
    files.extend(
        std::fs::read_dir(world.state().join("locks"))
            .unwrap()
            .map(|entry| entry.unwrap().path()),
    );
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let line = text.lines().next().unwrap();
        let mut holder: serde_json::Value = serde_json::from_str(line).unwrap();
        holder["pid"] = other.id().into();
        holder["start_time"] = start_time.into();
        std::fs::write(&file, format!("{holder}\n")).unwrap();
    }
    let host = std::fs::read_to_string(loop_dir(&world).join("host.json")).unwrap();
    let host: serde_json::Value = serde_json::from_str(&host).unwrap();
    std::fs::remove_file(host["socket"].as_str().unwrap()).unwrap();
    descartes(&world, &["loop", "cancel"]).assert_code(0);
    assert!(
        other.try_wait().unwrap().is_none(),
        "the wrong one was ended"
    );
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(events(&world, "loop_finished").len(), 1);
}

#[test]
fn gates_in_a_scud_config_that_cannot_be_read_are_not_passed_over() {
    let bad: [(&str, &[u8]); 3] = [
        ("syntax", b"[swarm.backpressure]\ncommands = [\"false\"\n"),
        ("type", b"[swarm.backpressure]\ncommands = \"false\"\n"),
        (
            "bytes",
            b"[swarm.backpressure]\ncommands = [\"false\"] # \xff\n",
        ),
    ];
    for (what, text) in bad {
        let world = scud_project(graph("1 | One | P | 1 | H", ""));
        world.write(".scud/config.toml", text);
        let words = ["loop", "start", "--scud-tag", "auth", "--command"];
        let agent = world.agent(WORKS);
        for flags in [&[][..], &["--trust-config"]] {
            let refused = run(&world, &[&words[..], &[&agent], flags].concat());
            refused.assert_code(65);
            let told = said(&refused);
            assert!(told.contains(".scud/config.toml"), "{what}: {told}");
            assert!(told.contains("--verify"), "{what}: {told}");
        }
        assert!(loops(&world).is_empty());
        // The gates are named by the person: the file does not matter.
        let flags = ["--verify", "true"];
        run(&world, &[&words[..], &[&agent], &flags].concat()).assert_code(0);
    }
    let world = scud_project(graph("1 | One | P | 1 | H", ""));
    let fifo = world.path(".scud/config.toml");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let agent = world.agent(WORKS);
    let words = ["loop", "start", "--scud-tag", "auth", "--command", &agent];
    run(&world, &words).assert_code(65);
    run(&world, &["trust", "--show"]).assert_code(65);
}

#[test]
fn a_device_is_no_state_file_and_stays_as_it_is() {
    use std::os::unix::fs::FileTypeExt;
    let world = World::in_memory();
    let node = world.path("dev");
    let made = Command::new("mknod")
        .arg(&node)
        .args(["c", "1", "3"])
        .stderr(Stdio::null())
        .status();
    if !made.is_ok_and(|made| made.success()) {
        return; // only the administrator makes one
    }
    for flags in [&["-s", "dev"][..], &["-s", "dev", "--force"]] {
        let refused = start(&world, CLAIMS, flags);
        refused.assert_code(65);
        let told = said(&refused);
        assert!(
            told.contains("device") && told.contains("another file"),
            "{told}"
        );
        assert!(!told.contains("mv "), "{told}");
        let meta = std::fs::symlink_metadata(&node).unwrap();
        assert!(meta.file_type().is_char_device());
    }
    // Nor is a folder moved away for it.
    world.write("src/main.rs", "x");
    start(&world, CLAIMS, &["-s", "src", "--force"]).assert_code(65);
    assert!(world.has("src/main.rs"));
    assert!(loops(&world).is_empty());
}

/// Writes `name code` for a command, and what it said.
const TRY: &str =
    "try() { name=$1; shift; \"$@\" >>said 2>&1 </dev/null; echo \"$name $?\" >>codes; }\n";

#[test]
fn from_within_no_state_file_of_another_loop_is_taken_whatever_its_locks_and_folders_say() {
    let world = World::in_memory();
    let roadmap = "# Roadmap: R\n\n## Tasks\n- [ ] **a**: First\n  - check: 'false'\n";
    world.write("ROADMAP.md", roadmap);
    start(
        &world,
        CLAIMS,
        &["-s", "stopped.json", "-m", "1", "--verify", "false"],
    )
    .assert_code(2);
    let agent = world.agent(CLAIMS);
    let words = [
        "roadmap",
        "run",
        "ROADMAP.md",
        "--in-place",
        "--command",
        &agent,
    ];
    run(&world, &words);
    let program = bins::descartes().display().to_string();
    let script = format!(
        "#!/bin/sh\n{TRY}export DESCARTES_NESTED=1\n\
         try reset env DESCARTES_STATE_DIR='{state}' {program} roadmap reset ROADMAP.md\n\
         rm -f .descartes/*.lock\n\
         export DESCARTES_STATE_DIR=\"$PWD/other\"\n\
         try resume {program} loop resume --verify true --accept-edits\n\
         try over {program} loop start --nested --force -s stopped.json -c true -p x --no-promise\n\
         try own {program} loop start --nested -s own.json -c true -p x --no-promise\n\
         echo '<promise>COMPLETE</promise>'\n",
        state = world.state().display()
    );
    let agent = world.program("agent.sh", &script);
    let mut command =
        world.descartes(["loop", "start", "-p", "go", "-m", "1", "--verify", "false"]);
    command.arg("--command").arg(agent);
    world.run(command).assert_code(2);
    assert_eq!(
        world.read("codes"),
        "reset 65\nresume 65\nover 65\nown 0\n",
        "{}",
        world.read("said")
    );
}

#[test]
fn a_pid_namespace_hides_no_agent() {
    let world = World::in_memory();
    let unshare = ["-Urpf", "--mount-proc"];
    let probe = Command::new("unshare")
        .args(unshare)
        .arg("true")
        .stderr(Stdio::null())
        .status();
    if !probe.is_ok_and(|probe| probe.success()) {
        return; // not allowed here
    }
    world.write(".descartes/config.toml", "verify = [\"true\"]\n");
    start(
        &world,
        CLAIMS,
        &[
            "-s",
            "stopped.json",
            "-m",
            "1",
            "--verify",
            "false",
            "--trust-config",
        ],
    )
    .assert_code(2);
    let program = bins::descartes().display().to_string();
    let script = format!(
        "#!/bin/sh\n{TRY}\
         inside() {{ name=$1; shift; try $name unshare -Urpf --mount-proc env -u DESCARTES_LOOP_ID \"$@\"; }}\n\
         beside() {{ name=$1; shift; try $name unshare -Urpf env -u DESCARTES_LOOP_ID \"$@\"; }}\n\
         export DESCARTES_STATE_DIR='{state}'\n\
         inside trust {program} trust --yes\n\
         beside trust {program} trust --yes\n\
         inside resume {program} loop resume -s stopped.json --verify true -m 9 --trust-config\n\
         inside clean {program} clean --older 0s --yes --whole\n\
         inside over {program} loop start --force -s stopped.json -c true -p x --no-promise\n\
         echo '<promise>COMPLETE</promise>'\n",
        state = world.state().display()
    );
    let agent = world.program("agent.sh", &script);
    let mut command = world.descartes([
        "loop",
        "start",
        "-p",
        "go",
        "-m",
        "1",
        "--verify",
        "false",
        "--trust-config",
    ]);
    command.arg("--command").arg(agent);
    world.run(command).assert_code(2);
    assert_eq!(
        world.read("codes"),
        "trust 65\ntrust 65\nresume 65\nclean 65\nover 65\n",
        "{}",
        world.read("said")
    );
}

#[test]
fn a_limit_of_file_sizes_ends_no_host() {
    let world = World::in_memory();
    let mut command = start_command(
        &world,
        "sh head -c 3000000 /dev/zero | tr '\\0' x ;; promise",
        &["-m", "1"],
    );
    let program = command.get_program().to_owned();
    let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    command = world.command("sh");
    command
        .args(["-c", "ulimit -f 2000; exec \"$@\"", "sh"])
        .arg(program)
        .args(args);
    let ended = world.run(command);
    assert!(ended.code().is_some(), "ended by a signal: {ended}");
    assert_eq!(events(&world, "loop_finished").len(), 1, "{ended}");
}

#[test]
fn a_spec_file_that_is_printed_claims_nothing() {
    let world = World::in_memory();
    world.write(
        "spec.md",
        "# Parser\nWhen all is done print <promise>COMPLETE</promise> alone.\nThen stop.\n",
    );
    let flags = ["--spec-file", "spec.md", "-m", "1"];
    start(&world, "sh cat spec.md", &flags).assert_code(2);
    let other = World::in_memory();
    other.write("spec.md", world.read("spec.md"));
    start(&other, CLAIMS, &flags).assert_code(0);
}
