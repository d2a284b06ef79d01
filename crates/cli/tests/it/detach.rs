//! `--detach`: the loop outlives the command that started it.

use std::process::Stdio;
use std::time::Duration;

use descartes_testkit::{World, eventually, process};

use crate::common::{CLAIMS, descartes, events, loop_dir, loops, start, state};

const SOON: Duration = descartes_testkit::PATIENCE;

#[test]
fn a_name_that_a_running_loop_goes_by_is_refused() {
    let world = World::in_memory();
    start(&world, "hang", &["--detach", "--name", "auth"]).assert_code(0);
    let id = state(&world)["loop_id"].as_str().unwrap().to_owned();
    for flags in [&[][..], &["--detach"]] {
        let flags = [&["--name", "auth", "-s", "two.json"], flags].concat();
        let second = start(&world, "promise", &flags);
        second.assert_code(65);
        assert!(second.stderr().contains(&id), "{second}");
        assert!(
            second.stderr().contains("choose another --name"),
            "{second}"
        );
        assert!(!world.has("two.json"));
    }
    descartes(&world, &["loop", "cancel", "--now", "auth"]).assert_code(0);
    start(&world, "promise", &["--name", "auth", "-s", "two.json"]).assert_code(0);
}

#[test]
fn of_two_loops_that_take_a_name_in_the_same_instant_one_gets_it() {
    let world = World::in_memory();
    let agent = world.agent("wait-file go 60s\npromise");
    for round in 0..20 {
        let name = format!("auth-{round}");
        let racers = ["one", "two"].map(|file| {
            let state = format!("{file}-{round}.json");
            let words = ["loop", "start", "--prompt", "go", "--command", &agent];
            let mut command = world.descartes(words);
            command.args(["--detach", "--name", &name, "-s", &state]);
            let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
            command.spawn().unwrap()
        });
        let ended = racers.map(|racer| racer.wait_with_output().unwrap());
        let mut codes = ended.each_ref().map(|end| end.status.code());
        codes.sort_unstable();
        assert_eq!(codes, [Some(0), Some(65)], "round {round}: {ended:?}");
        let loser = ended.iter().find(|end| !end.status.success()).unwrap();
        let words = String::from_utf8_lossy(&loser.stderr);
        assert!(words.contains("choose another --name"), "{words}");
        descartes(&world, &["loop", "cancel", "--now", &name]).assert_code(0);
    }
    world.assert_no_survivors();
}

#[test]
fn detach_prints_the_id_and_the_loop_goes_on_alone() {
    let world = World::in_memory();
    let script = "tty-check\nwait-file go\npromise";
    let run = start(
        &world,
        script,
        &["--detach", "--name", "auth", "--env", "KEY=value"],
    );
    run.assert_code(0);
    let id = run.stdout().trim().to_owned();
    assert!(loop_dir(&world).ends_with(&id), "{run}");
    assert!(
        run.stderr().contains("descartes loop logs auth -f"),
        "{run}"
    );
    let host: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(loop_dir(&world).join("host.json")).unwrap())
            .unwrap();
    let pid = i32::try_from(host["pid"].as_i64().unwrap()).unwrap();
    let found = process::find(pid).expect("the host in the background");
    assert_eq!(found.sid, pid, "a session of its own");
    world.write("go", "");
    eventually("its end", SOON, || state(&world)["completed"] == true);
    assert_eq!(
        state(&world)["exit_reason"]["type"],
        "completion_promise_detected"
    );
    eventually("no process", SOON, || !process::is_alive(pid));
    let log = std::fs::read_to_string(loop_dir(&world).join("host.log")).unwrap();
    assert!(!log.contains(" ERROR ") && !log.contains(" WARN "), "{log}");
    world.assert_no_survivors();
}

#[test]
fn detach_with_json_tells_id_name_and_pid() {
    let world = World::in_memory();
    let run = start(&world, CLAIMS, &["--detach", "--json", "--name", "auth"]);
    run.assert_code(0);
    let told: serde_json::Value = serde_json::from_str(&run.stdout()).unwrap();
    assert_eq!(told["name"], "auth");
    assert!(
        told["pid"].is_u64() && told["loop_id"].is_string(),
        "{told}"
    );
    eventually("its end", SOON, || {
        !events(&world, "loop_finished").is_empty()
    });
}

#[test]
fn errors_of_the_background_are_told_in_front_with_their_exit_code() {
    let world = World::in_memory();
    start(&world, "print hm", &["-m", "1"]).assert_code(2);
    let run = start(&world, CLAIMS, &["--detach"]);
    run.assert_code(65);
    assert!(
        run.stderr().contains("error: ") && run.stderr().contains("--force"),
        "{run}"
    );
    assert_eq!(run.stdout(), "");
    assert_eq!(loops(&world).len(), 1);
    let missing = World::in_memory();
    let run =
        missing.run(missing.descartes(["loop", "-c", "no-such-agent", "-p", "x", "--detach"]));
    run.assert_code(1);
    assert!(run.stderr().contains("no-such-agent"), "{run}");
    world.assert_no_survivors();
}
