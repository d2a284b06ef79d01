//! What a killed host leaves behind stands in nobody's way: its guard is waited for, what outlived both
//! is ended before anything new begins, and files that somebody deleted are made whole again.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use descartes_testkit::{World, eventually, eventually_some, process};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{CLAIMS, descartes, events, start, start_command, state};

const SOON: Duration = descartes_testkit::PATIENCE;

fn spawn(world: &World, script: &str, flags: &[&str]) -> Child {
    start_command(world, script, flags)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn pid_in(world: &World, file: &str) -> Pid {
    eventually("the agent", SOON, || {
        world.has(file) && !world.read(file).trim().is_empty()
    });
    Pid::from_raw(world.read(file).trim().parse().unwrap())
}

/// The host may be making files ahead at the same time.
fn remove_all(folder: PathBuf) {
    eventually("nothing left", SOON, || {
        drop(fs::remove_dir_all(&folder));
        !folder.exists()
    });
}

fn lives(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| !state.starts_with(['Z', 'X']))
}

/// The guard of the loop's first run.
fn guard_of(world: &World) -> Pid {
    let record = eventually_some("the run's record", SOON, || {
        events(world, "run_started").into_iter().next()
    });
    Pid::from_raw(i32::try_from(record["guard_pid"].as_i64().unwrap()).unwrap())
}

/// Kills host and guard in the same instant, as `pkill -9 descartes` does.
fn kill_host_and_guard(world: &World, host: &mut Child) {
    let guard = guard_of(world);
    let host_pid = Pid::from_raw(host.id().cast_signed());
    // The host lets no guard stay stopped.
    for pid in [host_pid, guard] {
        process::stop(pid.as_raw());
    }
    for pid in [guard, host_pid] {
        kill(pid, Signal::SIGKILL).unwrap();
    }
    host.wait().unwrap();
}

#[test]
fn an_iteration_that_died_with_its_host_is_told_as_lost_everywhere() {
    let world = World::in_memory();
    let script = "sh [ -e pid ] && exit 0; echo $$ > pid; exec sleep 1000";
    let mut host = spawn(&world, script, &["-m", "2", "--name", "auth"]);
    pid_in(&world, "pid");
    kill_host_and_guard(&world, &mut host);
    let verb = |words: &[&str]| descartes(&world, &[&["loop"], words].concat());
    let tells = |what: &str, words: &str| {
        let run = verb(&[what]);
        assert!(run.stdout().contains(words), "{words}: {run}");
    };
    tells("status", "  Iterations: 0 done, 1 lost\n");
    tells("list", "0/2, 1 lost");
    let resumed = verb(&["resume"]);
    resumed.assert_code(2);
    let told = resumed.stdout();
    assert!(told.contains("0 iterations done before, 1 lost"), "{told}");
    assert!(told.contains("2 of at most 2, 1 lost"), "{told}");
    tells("status", "  Iterations: 1 done, 1 lost\n");
    tells("list", "1/2, 1 lost");
    let json = verb(&["status", "--json"]).stdout();
    assert!(
        json.contains("\"lost\":1") || json.contains("\"lost\": 1"),
        "{json}"
    );
    world.assert_no_survivors();
}

/// With the mark and, as `env -i` leaves it, without.
#[test]
fn a_start_over_a_dead_loop_ends_its_agent_first() {
    for agent in [
        "sh echo $$ > pid; exec sleep 1000",
        "sh echo $$ > pid; exec env -i sleep 1000",
    ] {
        let world = World::in_memory();
        let mut host = spawn(&world, agent, &[]);
        let agent = pid_in(&world, "pid");
        kill_host_and_guard(&world, &mut host);
        assert!(lives(agent));
        let run = start(&world, CLAIMS, &["--force"]);
        run.assert_code(0);
        assert!(
            run.stderr().contains("left behind by the dead host"),
            "{run}"
        );
        assert!(!lives(agent));
    }
}

#[test]
fn a_cancel_of_a_dead_loop_ends_its_agent_without_the_mark_too() {
    let world = World::in_memory();
    let mut host = spawn(&world, "sh echo $$ > pid; exec env -i sleep 1000", &[]);
    let agent = pid_in(&world, "pid");
    kill_host_and_guard(&world, &mut host);
    let run = descartes(&world, &["loop", "cancel"]);
    run.assert_code(0);
    assert!(!lives(agent), "{run}");
}

#[test]
fn a_resume_right_after_a_kill_waits_for_the_guard_says_so_and_wakes_one_that_is_stopped() {
    let world = World::in_memory();
    let script = "@1 sh echo ${PID} > pid\n   ignore TERM\n   hang\n@2- promise";
    let mut host = spawn(&world, script, &[]);
    pid_in(&world, "pid");
    // Its death wakes the guard, which then gives the agent half a second: it is stopped again meanwhile.
    let guard = guard_of(&world);
    host.kill().unwrap();
    host.wait().unwrap();
    process::send(guard.as_raw(), Signal::SIGSTOP);
    let said = world.root().join("said");
    let mut resume = world
        .descartes(["loop", "resume"])
        .stdout(Stdio::null())
        .stderr(fs::File::create(&said).unwrap())
        .spawn()
        .unwrap();
    eventually("the wait is told", SOON, || {
        let said = fs::read_to_string(&said).unwrap();
        said.contains("waiting until its guard")
    });
    assert_eq!(resume.wait().unwrap().code(), Some(0));
    assert!(!lives(guard));
}

#[test]
fn a_state_folder_that_is_deleted_is_made_whole_while_the_loop_runs() {
    let world = World::in_memory();
    let script = "@1 print one\n@2 sh echo $$ > pid; while [ ! -e go ]; do sleep 0.05; done\n@3 save-prompt seen\n   promise";
    let mut host = spawn(&world, script, &[]);
    pid_in(&world, "pid");
    let id = state(&world)["loop_id"].as_str().unwrap().to_owned();
    remove_all(world.state().join("loops"));
    remove_all(world.state().join("locks"));
    descartes(&world, &["loop", "say", "look at the tests"]).assert_code(0);
    let status = descartes(&world, &["loop", "status", &id]);
    status.assert_code(0);
    assert!(status.stdout().contains("Running"), "{status}");
    let folder = world.state().join("loops").join(&id);
    for file in ["meta.json", "host.json", "journal.jsonl", "lock"] {
        assert!(folder.join(file).is_file(), "{file}");
    }
    world.write("go", "");
    assert_eq!(host.wait().unwrap().code(), Some(0));
    assert!(world.read("seen").contains("look at the tests"));
    let history = descartes(&world, &["loop", "history", "--json"]);
    assert_eq!(history.stdout().lines().count(), 3, "{history}");
}

#[test]
fn a_running_loop_whose_state_folder_is_gone_is_cancelled() {
    let world = World::in_memory();
    let mut host = spawn(&world, "sh echo $$ > pid; exec sleep 1000", &[]);
    let agent = pid_in(&world, "pid");
    remove_all(world.state());
    descartes(&world, &["loop", "cancel"]).assert_code(0);
    assert_eq!(host.wait().unwrap().code(), Some(130));
    assert!(!lives(agent));
    descartes(&world, &["loop", "history"]).assert_code(0);
}

#[test]
fn a_directory_whose_name_is_no_utf8_is_worked_in() {
    let world = World::in_memory();
    let dir = world
        .root()
        .join(std::ffi::OsStr::from_bytes(b"pr\xff\xfej"));
    fs::create_dir(&dir).unwrap();
    let prompt: PathBuf = dir.join(std::ffi::OsStr::from_bytes(b"P\xe9.md"));
    fs::write(&prompt, "the task\n").unwrap();
    let agent = world.agent("@1 print one\n@2- promise");
    let at = |words: &[&str]| {
        let mut command = world.descartes(words);
        command.current_dir(&dir);
        command
    };
    let mut command = at(&[
        "loop",
        "start",
        "-m",
        "1",
        "--command",
        &agent,
        "--prompt-file",
    ]);
    command.arg(prompt.file_name().unwrap());
    world.run(command).assert_code(2);
    world.run(at(&["loop", "resume", "-m", "2"])).assert_code(0);
    for words in [
        &["loop", "status", "--json"][..],
        &["loop", "list", "--json"],
        &["loop", "history"],
        &["loop", "logs"],
    ] {
        let run = world.run(at(words));
        run.assert_code(0);
        if words[1] == "status" {
            assert!(run.stdout().contains("pr%FF%FEj"), "{run}");
        }
    }
    let mut command = at(&[
        "loop",
        "start",
        "--detach",
        "--force",
        "-p",
        "go",
        "--command",
    ]);
    command.arg(&agent);
    world.run(command).assert_code(0);
    eventually("the end", SOON, || {
        let status = world.run(at(&["loop", "status"]));
        status.stdout().contains("Completed: Yes")
    });
}

#[test]
fn a_project_with_its_state_file_elsewhere_is_not_written_to() {
    let world = World::in_memory();
    let file = world.root().join("state.json");
    start(&world, CLAIMS, &["--state-file", file.to_str().unwrap()]).assert_code(0);
    assert!(file.is_file());
    assert_eq!(fs::read_dir(world.project()).unwrap().count(), 0);
}
