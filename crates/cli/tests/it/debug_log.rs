//! `DESCARTES_LOG` and the log of a loop in the background: something to debug with, and nothing
//! that is nobody's business.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use descartes_testkit::{World, eventually};

use crate::common::{CLAIMS, descartes, loop_dir, start, start_command, state};

const SOON: Duration = descartes_testkit::PATIENCE;
const KEY: &str = "sk-ant-api03-Zx81Qm4Tn7Lw2Kc9Vb5Rd3Fg6Hj8Ps1Ya4Ue7Io2Mn5Bx8Cz3Lk6";

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Waits until the host in the background has left its loop; gives its log.
fn log_of_ended_host(world: &World) -> String {
    let log = loop_dir(world).join("host.log");
    eventually("the host's end", SOON, || {
        read(&log).contains("host leaves")
    });
    read(&log)
}

#[test]
fn a_loop_in_the_background_leaves_its_log_at_info() {
    let world = World::in_memory();
    start(&world, "@1 print hm\n@2 promise", &["--detach"]).assert_code(0);
    let log = log_of_ended_host(&world);
    let id = state(&world)["loop_id"].as_str().unwrap().to_owned();
    for words in [
        "in the background version=",
        "creating a loop loop_id=",
        &format!("loop{{id={id}}}: host begins dir="),
        &format!("loop{{id={id}}}:run{{run=2}}: agent started iteration=2"),
        "agent ended ended_by=Exit exit=Some(Code(0))",
        "host leaves reason=CompletionPromiseDetected",
    ] {
        assert!(log.contains(words), "{words}: {log}");
    }
    assert!(!log.contains(" DEBUG "), "{log}");
    let doctor = descartes(&world, &["doctor"]).stdout();
    let path = loop_dir(&world).join("host.log").display().to_string();
    assert!(
        doctor.contains(&path) && doctor.contains("DESCARTES_LOG"),
        "{doctor}"
    );
}

#[test]
fn no_log_holds_the_prompt_the_environment_or_what_agents_and_gates_print() {
    let world = World::in_memory();
    world.git_init();
    let script = format!(
        "print OUTPUT-WORD {KEY}\nsh echo ERROR-WORD {KEY} >&2\n@1 wait-file go 60s\n@2-9 promise"
    );
    let flags = [
        "--prompt",
        "PROMPT-WORD",
        "--env",
        "SOME_NAME=VALUE-WORD",
        "--verify",
        "echo GATE-WORD; test -e done || { touch done; false; }",
        "--detach",
        "--auto-commit",
        "--commit-template",
        "COMMIT-WORD",
    ];
    let mut command = start_command(&world, &script, &flags);
    command.env("DESCARTES_LOG", "trace");
    command.env("OTHER_NAME", "INHERITED-WORD");
    world.run(command).assert_code(0);
    descartes(&world, &["loop", "say", "NOTE-WORD"]).assert_code(0);
    world.write("go", "");
    let log = log_of_ended_host(&world);
    for words in [
        "next action action=Start",
        "input input=RunEnded",
        "event appended seq=0 event=LoopCreated",
        "lock taken path=",
        "git verb=commit code=0 ms=",
        "command accepted command=Say",
        "gate ended gate=1",
        "guard started pid=",
    ] {
        assert!(log.contains(words), "{words}: {log}");
    }
    for word in [
        "PROMPT",
        "OUTPUT",
        "ERROR",
        "GATE",
        "NOTE",
        "VALUE",
        "INHERITED",
        "COMMIT",
    ] {
        assert!(!log.contains(&format!("{word}-WORD")), "{word}: {log}");
    }
    for word in ["SOME_NAME", "OTHER_NAME", "sk-ant-"] {
        assert!(!log.contains(word), "{word}: {log}");
    }
}

#[test]
fn the_log_of_a_loop_never_outgrows_its_bound() {
    let world = World::in_memory();
    start(&world, "@1 print hm\n@2 promise", &["-m", "1"]).assert_code(2);
    let (log, older) = (
        loop_dir(&world).join("host.log"),
        loop_dir(&world).join("host.log.1"),
    );
    let line = "an earlier line\n";
    let half = 512 * 1024;
    std::fs::write(&older, "the oldest line\n".repeat(half / 16)).unwrap();
    std::fs::write(&log, line.repeat(half / line.len())).unwrap();
    let mut resume = world.descartes(["loop", "resume", "-m", "2", "--detach"]);
    resume.env("DESCARTES_LOG", "trace");
    world.run(resume).assert_code(0);
    assert!(log_of_ended_host(&world).contains("host begins"));
    let older = read(&older);
    assert!(older.starts_with(line), "the older half was kept");
    assert!(older.len() + read(&log).len() <= 1 << 20);
}

#[test]
fn in_the_foreground_it_goes_to_standard_error_and_output_stays_as_it_is() {
    let world = World::in_memory();
    let plain = start(&world, CLAIMS, &[]);
    plain.assert_code(0);
    assert!(!plain.stderr().contains("core::host"), "{plain}");
    let mut logged = start_command(&world, CLAIMS, &["--force"]);
    logged.env("DESCARTES_LOG", "debug");
    let logged = world.run(logged);
    logged.assert_code(0);
    assert!(
        logged
            .stderr()
            .contains("DEBUG core::host::driver: loop{id="),
        "{logged}"
    );
    assert!(!logged.stdout().contains("DEBUG"), "{logged}");
    for command in [
        &["loop", "list", "--all", "--json"][..],
        &["loop", "history"],
    ] {
        let plain = descartes(&world, command);
        let mut logged = world.descartes(command);
        logged.env("DESCARTES_LOG", "trace");
        let logged = world.run(logged);
        assert_eq!(plain.stdout(), logged.stdout());
        assert!(logged.stderr().contains("DEBUG cli"), "{logged}");
    }
    let mut part = start_command(&world, CLAIMS, &["--force"]);
    part.env("DESCARTES_LOG", "store=debug");
    let part = world.run(part);
    assert!(part.stderr().contains("DEBUG store::"), "{part}");
    assert!(!part.stderr().contains("core::"), "{part}");
    let mut off = start_command(&world, CLAIMS, &["--force"]);
    off.env("DESCARTES_LOG", "off");
    assert!(!world.run(off).stderr().contains("core::"));
}

#[test]
fn a_value_that_cannot_be_read_is_refused_with_an_example() {
    let world = World::in_memory();
    for (value, named) in [("loud", "`loud`"), ("cor=debug", "`cor`"), ("debug,", "``")] {
        for flags in [&[][..], &["--detach"]] {
            let mut command = start_command(&world, CLAIMS, flags);
            command.env("DESCARTES_LOG", value);
            let run = world.run(command);
            run.assert_code(64);
            let told = run.stderr();
            assert!(
                told.contains(&format!("DESCARTES_LOG={value}")) && told.contains(named),
                "{run}"
            );
            assert!(
                told.contains("hint: for example DESCARTES_LOG=debug"),
                "{run}"
            );
        }
    }
    assert!(!world.has(".descartes"));
    let mut version = world.descartes(["--version"]);
    version.env("DESCARTES_LOG", "loud");
    world.run(version).assert_code(0);
}

#[test]
fn a_standard_error_that_nobody_reads_keeps_no_loop_waiting() {
    let world = World::in_memory();
    let script = "@1-39 print hm\n@40 promise";
    let flags = ["--json", "-m", "50", "--stall-after", "0"];
    let mut command = start_command(&world, script, &flags);
    command.env("DESCARTES_LOG", "trace");
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("its end", SOON, || child.try_wait().unwrap().is_some());
    let mut told = String::new();
    let mut stderr = child.stderr.take().unwrap();
    std::io::Read::read_to_string(&mut stderr, &mut told).unwrap();
    // As much as a pipe holds: more was logged than anybody took.
    assert!(told.len() > 60_000, "{}", told.len());
    assert_eq!(state(&world)["iteration"], 40);
    assert!(child.wait().unwrap().success());
}
