//! The scripted agent's language, run for real.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use descartes_testkit::agent::flood::Pattern;
use descartes_testkit::stamp::{self, Edge};
use descartes_testkit::world::Finished;
use descartes_testkit::{World, eventually, process, wait};
use nix::sys::signal::Signal;

const SOON: Duration = descartes_testkit::PATIENCE;

fn play(world: &World, script: &str) -> Finished {
    world.run(world.agent_command(script))
}

#[test]
fn it_speaks_on_both_streams_and_exits_as_told() {
    let world = World::new();
    let run = play(
        &world,
        "print hello\nerr trouble\nprintf a\\x1b[1m\\xff\nexit 7\nprint never",
    );
    assert_eq!(run.code(), Some(7));
    assert_eq!(run.stdout, b"hello\na\x1b[1m\xff");
    assert_eq!(run.stderr, b"trouble\n");
}

#[test]
fn the_promise_is_tagged() {
    let world = World::new();
    let run = play(&world, "promise\npromise ALL GREEN");
    assert_eq!(
        run.stdout(),
        "<promise>COMPLETE</promise>\n<promise>ALL GREEN</promise>\n"
    );
}

#[test]
fn a_script_file_is_read_when_no_script_is_inline() {
    let world = World::new();
    let mut command = world.command(descartes_testkit::scripted_agent());
    command.env("SCRIPTED_AGENT_FILE", world.script("print from the file"));
    assert_eq!(world.run(command).stdout(), "from the file\n");
}

#[test]
fn the_iteration_comes_from_descartes_or_from_a_counter() {
    let world = World::new();
    let script = "@1 print one\n@2 print two\n@* print more ${ITERATION}";
    let mut told = world.agent_command(script);
    told.env("DESCARTES_ITERATION", "2");
    assert_eq!(world.run(told).stdout(), "two\n");
    let counted: Vec<String> = (0..4)
        .map(|_| {
            let mut command = world.agent_command(script);
            command.env("SCRIPTED_AGENT_COUNTER", world.path("counter"));
            world.run(command).stdout()
        })
        .collect();
    assert_eq!(counted, ["one\n", "two\n", "more 3\n", "more 4\n"]);
}

#[test]
fn a_script_that_cannot_be_carried_out_says_why() {
    let world = World::new();
    let run = play(&world, "print a\ndance wildly");
    assert_eq!(run.code(), Some(70));
    assert!(
        run.stderr().contains("line 2: no verb is called \"dance\""),
        "{run}"
    );
    assert_eq!(play(&world, "delete nothing").code(), Some(70));
    assert_eq!(play(&world, "sleep long").code(), Some(70));
}

#[test]
fn a_flood_is_predictable_to_the_byte() {
    let world = World::new();
    for (name, pattern) in [
        ("lines", Pattern::Lines),
        ("oneline", Pattern::OneLine),
        ("binary", Pattern::Binary),
    ] {
        let run = play(&world, &format!("flood 200001 {name}"));
        assert_eq!(run.stdout.len(), 200_001);
        assert!(pattern.matches(0, &run.stdout));
        assert!(pattern.matches(100, &run.stdout[100..]));
        assert!(!pattern.matches(101, &run.stdout[100..]));
    }
    let run = play(&world, "flood 3M binary stderr");
    assert_eq!((run.stdout.len(), run.stderr.len()), (0, 3 << 20));
    assert!(std::str::from_utf8(&run.stderr).is_err());
}

#[test]
fn split_output_arrives_whole() {
    let world = World::new();
    assert_eq!(play(&world, "flush-split each ab\\ncd").stdout(), "ab\ncd");
    assert_eq!(
        play(&world, "flush-split 2,3 pause 2ms abcdef").stdout(),
        "abcdef"
    );
}

#[test]
fn split_output_is_several_writes() {
    let world = World::new();
    let (mut reading, writing) = std::io::pipe().unwrap();
    let mut command = world.agent_command("flush-split 3 pause 3s abcdef");
    let mut child = command.stdout(writing).spawn().unwrap();
    drop(command);
    let mut buffer = [0; 16];
    assert_eq!(std::io::Read::read(&mut reading, &mut buffer).unwrap(), 3);
    child.wait().unwrap();
}

#[test]
fn the_prompt_is_echoed_by_whichever_way_it_came() {
    let world = World::new();
    let mut by_argument = world.agent_command("echo-prompt");
    by_argument.args(["--flag", "the prompt"]);
    assert_eq!(world.run(by_argument).stdout(), "the prompt");
    let mut by_environment = world.agent_command("echo-prompt env\nsave-prompt saved env");
    by_environment.env("PROMPT", "from env");
    assert_eq!(world.run(by_environment).stdout(), "from env");
    assert_eq!(world.read("saved"), "from env");
    let mut by_file = world.agent_command("echo-prompt file");
    by_file.arg(world.write("prompt.md", "from file"));
    assert_eq!(world.run(by_file).stdout(), "from file");
}

#[test]
fn standard_input_is_read_to_its_end() {
    let world = World::new();
    let mut command = world.agent_command("read-stdin-to got");
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"a\nb\xff").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(fs::read(world.path("got")).unwrap(), b"a\nb\xff");
}

#[test]
fn it_works_in_the_tree() {
    let world = World::new();
    let script = "write a/b.txt one ${ITERATION}\nappend a/b.txt two\ntouch empty\nmkdir d/e\n\
                  write \"with space\" x\ndelete empty\nrm d\nrm not-there";
    play(&world, script).assert_code(0);
    assert_eq!(world.read("a/b.txt"), "one 1\ntwo\n");
    assert_eq!(world.read("with space"), "x\n");
    assert!(!world.has("empty") && !world.has("d"));
}

#[test]
fn it_commits_and_cleans() {
    let world = World::new();
    world.git_init();
    play(
        &world,
        "write new.txt x\ngit-commit second: one\nwrite junk y\ngit-clean",
    )
    .assert_code(0);
    assert_eq!(world.git(["log", "-1", "--format=%s"]), "second: one");
    assert!(world.has("new.txt") && !world.has("junk"));
}

#[test]
fn shell_failures_end_the_script() {
    let world = World::new();
    assert_eq!(
        play(&world, "sh echo hi\nsh exit 3\nprint never").stdout(),
        "hi\n"
    );
    assert_eq!(play(&world, "sh exit 3").code(), Some(3));
}

#[test]
fn verbs_can_be_repeated_and_conditional() {
    let world = World::new();
    let run = play(
        &world,
        "repeat 3 print x\nunless-file f write f 1\nif-file f print f is there",
    );
    assert_eq!(run.stdout(), "x\nx\nx\nf is there\n");
    assert_eq!(
        play(&world, "if-file f exit 4\nprint never").code(),
        Some(4)
    );
}

#[test]
fn it_waits_for_a_file() {
    let world = World::new();
    let mut child = world
        .agent_command("touch ready\nwait-file go\nexit 5")
        .spawn()
        .unwrap();
    eventually("the agent is ready", SOON, || world.has("ready"));
    assert!(child.try_wait().unwrap().is_none());
    world.write("go", "");
    assert_eq!(child.wait().unwrap().code(), Some(5));
    assert_eq!(play(&world, "wait-file never 10ms").code(), Some(70));
}

#[test]
fn it_dies_by_a_signal() {
    let world = World::new();
    for signal in ["TERM", "KILL", "SEGV"] {
        let run = play(&world, &format!("die {signal}"));
        let expected: Signal = format!("SIG{signal}").parse().unwrap();
        assert_eq!(run.status.signal(), Some(expected as i32));
    }
}

#[test]
fn an_ignored_signal_does_nothing() {
    let world = World::new();
    let script = "ignore TERM\nignore INT\ntouch ready\nwait-file go\nexit 6";
    let mut child = world.agent_command(script).spawn().unwrap();
    eventually("the agent is ready", SOON, || world.has("ready"));
    let pid = i32::try_from(child.id()).unwrap();
    process::send(pid, Signal::SIGTERM);
    process::send(pid, Signal::SIGINT);
    world.write("go", "");
    assert_eq!(child.wait().unwrap().code(), Some(6));
}

#[test]
fn a_signal_can_be_noted_and_answered() {
    let world = World::new();
    let script = "stamp stamps\non-signal INT notes stay\non-signal TERM notes after 50ms exit 9\n\
                  touch ready\nhang";
    let mut child = world.agent_command(script).spawn().unwrap();
    eventually("the agent is ready", SOON, || world.has("ready"));
    let pid = i32::try_from(child.id()).unwrap();
    process::send(pid, Signal::SIGINT);
    assert_eq!(wait::file_text(&world.path("notes"), SOON), "SIGINT\n");
    process::send(pid, Signal::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(9));
    assert_eq!(world.read("notes"), "SIGINT\nSIGTERM\n");
    assert_eq!(stamp::read(&world.path("stamps")).len(), 2);
}

#[test]
fn stamps_tell_start_and_end_and_a_kill_leaves_the_start() {
    let world = World::new();
    let before = stamp::now_ns();
    play(&world, "sleep 20ms\nstamp stamps\nsleep 20ms");
    play(&world, "stamp stamps\ndie KILL");
    play(&world, "stamp stamps\nsh kill -9 $PPID");
    let stamps = stamp::read(&world.path("stamps"));
    let edges: Vec<Edge> = stamps.iter().map(|stamp| stamp.edge).collect();
    assert_eq!(
        edges,
        [Edge::Start, Edge::End, Edge::Start, Edge::End, Edge::Start]
    );
    assert!(stamps[0].ns >= before && stamps[1].ns - stamps[0].ns >= 40_000_000);
    assert_eq!(stamp::gaps_ns(&stamps).len(), 2);
}

#[test]
fn closed_output_ends_for_the_reader_while_the_agent_lives() {
    let world = World::new();
    let (mut reading, writing) = std::io::pipe().unwrap();
    let script = "print last\nclose-stdout\nprint lost\nwait-file go";
    let mut command = world.agent_command(script);
    let mut child = command.stdout(writing).spawn().unwrap();
    drop(command);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut reading, &mut text).unwrap();
    assert_eq!(text, "last\n");
    assert!(child.try_wait().unwrap().is_none());
    world.write("go", "");
    assert!(child.wait().unwrap().success());
}

#[test]
fn it_tells_what_it_was_given() {
    let world = World::new();
    let script = "dump-env env\ndump-argv argv\ndump-fds fds\ndump-ids ids\ntty-check";
    let mut command = world.agent_command(script);
    command
        .args(["a b", "c"])
        .stdin(Stdio::null())
        .env("EXTRA", "1");
    let run = world.run(command);
    assert!(
        run.stdout()
            .starts_with("stdin=none stdout=none stderr=none"),
        "{run}"
    );
    assert!(world.read("env").contains("EXTRA=1\n"));
    assert!(world.read("env").contains("TZ=UTC\n"));
    assert_eq!(world.read("argv"), "a b\nc\n");
    let fds = world.read("fds");
    let targets: Vec<&str> = fds.lines().take(3).collect();
    assert_eq!(targets[0], "0 /dev/null");
    assert!(
        targets[1].ends_with("/stdout") && targets[2].ends_with("/stderr"),
        "{fds}"
    );
    assert!(world.read("ids").starts_with("pid="));
}

#[test]
fn recorded_streams_are_replayed() {
    let world = World::new();
    world.write("s.jsonl", "{\"a\":1}\n{\"b\":2}\n{\"c\":3}");
    assert_eq!(
        play(&world, "stream s.jsonl").stdout(),
        "{\"a\":1}\n{\"b\":2}\n{\"c\":3}"
    );
    assert_eq!(
        play(&world, "stream s.jsonl first 2 pause 1ms").stdout(),
        "{\"a\":1}\n{\"b\":2}\n"
    );
}

#[test]
fn limits_name_a_reset_that_is_yet_to_come() {
    let world = World::new();
    let run = play(&world, "stream-limit claude 1h");
    assert_eq!(run.code(), Some(1));
    assert!(
        run.stdout()
            .contains("\"status\":\"rejected\",\"resetsAt\":"),
        "{run}"
    );
    assert!(
        play(&world, "stream-limit gemini 90s")
            .stdout()
            .contains("retry after 90s")
    );
    assert_eq!(play(&world, "stream-limit gemini 90s").code(), Some(173));
    assert!(
        play(&world, "stream-limit codex 90s")
            .stdout()
            .contains("try again at ")
    );
    assert!(
        play(&world, "stream-limit opencode 90s")
            .stdout()
            .contains("\"retry-after\":\"90\"")
    );
}

#[test]
fn burning_takes_cpu_and_the_time_told() {
    let world = World::new();
    let start = Instant::now();
    play(&world, "cpu 50ms").assert_code(0);
    assert!(start.elapsed() >= Duration::from_millis(50));
}
