//! A person always gets through to a loop: past silent clients, crowds, those who never read, and a
//! process that is stopped.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use descartes_testkit::{World, eventually, process};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::common::{descartes, events, loop_dir, start, start_command};
use crate::task_common;

const SOON: Duration = descartes_testkit::PATIENCE;

/// A loop in the background whose agent waits for leave to end.
fn running() -> World {
    let world = World::in_memory();
    start(
        &world,
        "touch up\nwait-file go",
        &["--detach", "--name", "auth", "-m", "1"],
    )
    .assert_code(0);
    eventually("the agent", SOON, || world.has("up"));
    world
}

fn host(world: &World) -> (i32, PathBuf) {
    let text = std::fs::read(loop_dir(world).join("host.json")).unwrap();
    let host: Value = serde_json::from_slice(&text).unwrap();
    let pid = i32::try_from(host["pid"].as_i64().unwrap()).unwrap();
    (pid, PathBuf::from(host["socket"].as_str().unwrap()))
}

fn descriptors(pid: i32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .count()
}

fn state_of(pid: i32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = stat
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest.trim_start());
    rest.chars().next().unwrap_or('X')
}

#[test]
fn silent_clients_are_dropped_and_never_stand_in_anybodys_way() {
    let world = running();
    let (pid, socket) = host(&world);
    let before = descriptors(pid);
    let silent: Vec<UnixStream> = (0..300)
        .map(|_| UnixStream::connect(&socket).unwrap())
        .collect();
    let said = descartes(&world, &["loop", "say", "still there?"]);
    said.assert_code(0);
    assert!(
        descriptors(pid) < before + 100,
        "{} descriptors",
        descriptors(pid)
    );
    for mut stream in &silent {
        stream.set_read_timeout(Some(SOON)).unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0, "dropped");
    }
    eventually("the places are free again", SOON, || {
        descriptors(pid) <= before + 2
    });
    descartes(&world, &["loop", "cancel"]).assert_code(0);
    world.assert_no_survivors();
}

#[test]
fn a_loop_without_descriptors_left_does_not_spin_and_is_still_reached() {
    let world = World::in_memory();
    let agent = world.agent("touch up\nwait-file go");
    let mut limited = world.command("sh");
    limited
        .args(["-c", "ulimit -n 48; exec \"$@\"", "sh"])
        .arg(descartes_testkit::world::bins::descartes())
        .args([
            "loop",
            "start",
            "--detach",
            "--prompt",
            "go",
            "--command",
            &agent,
        ]);
    world.run(limited).assert_code(0);
    eventually("the agent", SOON, || world.has("up"));
    let (pid, socket) = host(&world);
    let silent: Vec<UnixStream> = (0..100)
        .map_while(|_| UnixStream::connect(&socket).ok())
        .collect();
    let before = ticks(pid);
    descartes(&world, &["loop", "say", "still there?"]).assert_code(0);
    std::thread::sleep(Duration::from_secs(2));
    assert!(ticks(pid) - before < 100, "a second of work in two");
    descartes(&world, &["loop", "cancel"]).assert_code(0);
    drop(silent);
}

/// Clock ticks of work so far.
fn ticks(pid: i32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn a_socket_that_somebody_deleted_is_listened_on_anew() {
    let world = running();
    let (_, socket) = host(&world);
    std::fs::remove_file(&socket).unwrap();
    eventually("it is back", SOON, || socket.exists());
    let said = descartes(&world, &["loop", "say", "still there?"]);
    said.assert_code(0);
    std::fs::remove_dir_all(socket.parent().unwrap()).unwrap();
    eventually("it is back with its folder", SOON, || socket.exists());
    descartes(&world, &["loop", "say", "and now?"]).assert_code(0);
    assert_eq!(events(&world, "command_accepted").len(), 2);
    descartes(&world, &["loop", "cancel"]).assert_code(0);
    assert!(!socket.exists());
    world.assert_no_survivors();
}

#[test]
fn a_client_that_never_reads_holds_up_nobody() {
    let world = running();
    let (_, socket) = host(&world);
    let mut greedy = UnixStream::connect(&socket).unwrap();
    greedy.set_write_timeout(Some(SOON)).unwrap();
    let pings = "{\"v\":1,\"command\":\"ping\"}\n".repeat(1000);
    // Its answers fill the buffers, and then it is cut off.
    eventually("it is cut off", SOON, || {
        greedy.write_all(pings.as_bytes()).is_err()
    });
    let begun = Instant::now();
    descartes(&world, &["loop", "say", "hello"]).assert_code(0);
    assert!(begun.elapsed() < Duration::from_secs(30));
    descartes(&world, &["loop", "cancel"]).assert_code(0);
}

/// No test of its own: this program as an agent that crowds its loop's socket.
#[test]
#[ignore = "the agent of another test"]
fn crowd() {
    let Ok(socket) = std::env::var("CROWD_SOCKET_OF") else {
        return;
    };
    let host = std::fs::read_dir(socket).unwrap().flatten().next().unwrap();
    let host: Value =
        serde_json::from_slice(&std::fs::read(host.path().join("host.json")).unwrap()).unwrap();
    let socket = host["socket"].as_str().unwrap();
    let held: Vec<_> = (0..800)
        .map_while(|_| UnixStream::connect(socket).ok())
        .collect();
    std::fs::write("crowded", held.len().to_string()).unwrap();
    // And goes on, a few at a time, until it is ended.
    loop {
        let some: Vec<_> = (0..50)
            .map_while(|_| UnixStream::connect(socket).ok())
            .collect();
        std::thread::sleep(Duration::from_millis(5));
        drop(some);
    }
}

#[test]
fn a_crowd_from_within_takes_no_place_from_a_person() {
    let world = World::in_memory();
    let me = std::env::current_exe().unwrap();
    let agent = world.program(
        "agent.sh",
        &format!(
            "#!/bin/sh\nexport CROWD_SOCKET_OF='{}/loops'\nexec '{}' --exact steer_crowd::crowd --ignored\n",
            world.state().display(),
            me.display()
        ),
    );
    let agent = agent.display().to_string();
    let words = [
        "loop",
        "start",
        "--detach",
        "--command",
        &agent,
        "--prompt",
        "go",
        "-m",
        "1",
    ];
    descartes(&world, &words).assert_code(0);
    eventually("the crowd", SOON, || world.has("crowded"));
    let (pid, _) = host(&world);
    assert!(descriptors(pid) < 120, "{} descriptors", descriptors(pid));
    for word in ["one", "two", "three"] {
        descartes(&world, &["loop", "say", word]).assert_code(0);
    }
    descartes(&world, &["loop", "cancel", "--now"]).assert_code(0);
    world.assert_no_survivors();
}

#[test]
fn every_attempt_gives_back_its_socket_and_its_thread() {
    let tasks: String = (1..=12)
        .map(|n| format!("- [ ] **t{n}**: do {n}\n"))
        .collect();
    let world = task_common::repository("ROADMAP.md", format!("## Tasks\n\n{tasks}"));
    let counts = world.root().join("counts");
    let agent = world.program(
        "agent.sh",
        &format!(
            "#!/bin/sh\nread _ _ _ host _ </proc/$PPID/stat\n\
             echo $(ls /proc/$host/fd | wc -l) $(ls /proc/$host/task | wc -l) >>'{}'\n\
             echo x >work-$$\necho '<promise>COMPLETE</promise>'\n",
            counts.display()
        ),
    );
    let agent = agent.display().to_string();
    let words = [
        "roadmap",
        "run",
        "ROADMAP.md",
        "--command",
        &agent,
        "--verify",
        "true",
    ];
    task_common::run(&world, &words).assert_code(0);
    let text = std::fs::read_to_string(counts).unwrap();
    let counts: Vec<Vec<usize>> = text
        .lines()
        .map(|line| line.split(' ').map(|n| n.parse().unwrap()).collect())
        .collect();
    assert_eq!(counts.len(), 12, "{text}");
    for (what, at) in [("descriptors", 0), ("threads", 1)] {
        let (early, late) = (counts[2][at], counts[11][at]);
        assert!(late <= early + 4, "{what}: {text}");
    }
}

/// A loop in the foreground, as a job of its own.
fn job(world: &World, script: &str) -> Child {
    let child = start_command(world, script, &["-m", "1"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    eventually("the agent", SOON, || world.has("up"));
    child
}

/// The agents of a loop, which are below its guard.
fn agents(host: i32) -> Vec<i32> {
    let below = process::descendants(host);
    let agents = below.iter().filter(|one| !one.command.contains("__guard"));
    agents.map(|one| one.pid).collect()
}

#[test]
fn ctrl_z_stops_the_agent_too_and_the_time_counts_nowhere() {
    let world = World::in_memory();
    let mut child = job(&world, "touch up\nwait-file go\npromise");
    let pid = i32::try_from(child.id()).unwrap();
    let all = agents(pid);
    assert!(!all.is_empty());
    kill(Pid::from_raw(pid), Signal::SIGTSTP).unwrap();
    eventually("host and agent are stopped", SOON, || {
        state_of(pid) == 'T' && all.iter().all(|one| state_of(*one) == 'T')
    });
    for verb in [
        &["say", "hello"][..],
        &["pause"],
        &["set", "--max-iterations", "9"],
    ] {
        let run = descartes(&world, &[&["loop"], verb].concat());
        run.assert_code(65);
        assert!(run.stderr().contains(&format!("kill -CONT {pid}")), "{run}");
    }
    let status = descartes(&world, &["loop", "status"]);
    assert!(status.stderr().contains("is stopped"), "{status}");
    // Time that must not be counted has to pass.
    std::thread::sleep(Duration::from_secs(3));
    let stopped_for = 3000;
    let begun = events(&world, "run_started")[0]["at"]
        .as_str()
        .unwrap()
        .to_owned();
    kill(Pid::from_raw(pid), Signal::SIGCONT).unwrap();
    eventually("the agent goes on", SOON, || {
        all.iter().all(|one| state_of(*one) != 'T')
    });
    world.write("go", "");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let ended = &events(&world, "agent_ended")[0];
    let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_millisecond();
    let wall = at(ended["at"].as_str().unwrap()) - at(&begun);
    let counted = ended["duration_ms"].as_i64().unwrap();
    assert!(
        counted <= wall - stopped_for + 500,
        "{counted} of {wall} ms"
    );
    world.assert_no_survivors();
}

#[test]
fn cancel_wakes_a_stopped_loop_and_ends_it() {
    for (signal, now) in [(Signal::SIGSTOP, false), (Signal::SIGTSTP, true)] {
        let world = World::in_memory();
        let mut child = job(&world, "touch up\nhang");
        let pid = i32::try_from(child.id()).unwrap();
        kill(Pid::from_raw(pid), signal).unwrap();
        eventually("it is stopped", SOON, || state_of(pid) == 'T');
        let words: &[&str] = if now {
            &["loop", "cancel", "--now"]
        } else {
            &["loop", "cancel"]
        };
        let begun = Instant::now();
        let run = descartes(&world, words);
        run.assert_code(0);
        assert!(begun.elapsed() < Duration::from_secs(30), "{run}");
        assert!(child.wait().unwrap().code().is_some());
        world.assert_no_survivors();
    }
}

#[test]
fn a_loop_that_does_not_answer_is_cancelled_by_a_signal() {
    let world = running();
    let (pid, socket) = host(&world);
    // Somebody else's socket in its place, which takes everything and says nothing.
    let other = socket.with_extension("other");
    let _silent = std::os::unix::net::UnixListener::bind(&other).unwrap();
    std::fs::rename(&other, &socket).unwrap();
    let run = world.run_within(world.descartes(["loop", "cancel"]), SOON * 2);
    run.assert_code(0);
    assert!(
        run.stderr()
            .contains(&format!("sent SIGTERM to process {pid}")),
        "{run}"
    );
    world.assert_no_survivors();
}
