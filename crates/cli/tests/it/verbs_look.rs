//! Looking at real loops: status, list, history, logs.

use std::process::Stdio;
use std::time::Duration;

use descartes_testkit::pty::Size;
use descartes_testkit::world::Finished;
use descartes_testkit::{Pty, World, eventually};
use serde_json::Value;

use crate::common::{descartes, json_lines, loop_dir, start, state};

const SOON: Duration = descartes_testkit::PATIENCE;

fn verb(world: &World, arguments: &[&str]) -> Finished {
    let run = descartes(world, &[&["loop"], arguments].concat());
    run.assert_code(0);
    run
}

#[test]
fn the_status_block_is_the_documented_one() {
    let world = World::in_memory();
    start(
        &world,
        "print hi",
        &["-m", "2", "--name", "auth", "--verify", "true"],
    )
    .assert_code(2);
    let block = verb(&world, &["status"]).stdout();
    let lines: Vec<&str> = block.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "Loop Status",
            "===========",
            "  State file: .descartes/loop-state.json",
            "  Iteration: 2"
        ]
    );
    assert!(
        lines[4].starts_with("  Started: 20") && lines[4].ends_with('Z'),
        "{block}"
    );
    assert_eq!(lines[5], "  State: Stopped (iteration limit)");
    assert_eq!(lines[6], "  Completed: Yes");
    assert_eq!(lines[7], "  Exit reason: Iteration limit reached");
    let config = lines.iter().position(|line| *line == "Config:").unwrap();
    assert_eq!(lines[config - 1], "");
    assert!(lines[config + 1].starts_with("  Command: env "), "{block}");
    assert_eq!(lines[config + 2], "  Max iterations: 2");
    assert_eq!(lines[config + 3], "  Completion promise: \"COMPLETE\"");
    assert!(block.contains("  Gate: true\n"), "{block}");
    let json: Value =
        serde_json::from_str(&verb(&world, &["status", "--json", "auth"]).stdout()).unwrap();
    assert_eq!(json["status"], "ended");
    assert_eq!(json["reason"]["type"], "max_iterations_reached");
    assert_eq!(json["config"], state(&world)["config"]);
    assert_eq!(json["iteration_summaries"].as_array().unwrap().len(), 2);
    assert_eq!(json["pid"], Value::Null);
    // From elsewhere, by name and by file.
    let mut elsewhere = world.descartes(["loop", "status", "auth"]);
    elsewhere.current_dir(world.root());
    let block = world.run(elsewhere).assert_code(0).stdout();
    assert!(
        block.contains("project/.descartes/loop-state.json"),
        "{block}"
    );
    let file = world
        .path(".descartes/loop-state.json")
        .display()
        .to_string();
    verb(&world, &["status", "--state-file", &file]);
}

#[test]
fn a_watched_status_is_kept_current_until_the_end() {
    let world = World::in_memory();
    let script = "append seen x\nwait-file go-${ITERATION}";
    start(&world, script, &["--detach", "-m", "2", "--name", "auth"]).assert_code(0);
    eventually("the agent", SOON, || world.has("seen"));
    let (blocks, lines) = (world.root().join("blocks"), world.root().join("lines"));
    let watch = |flags: &[&str], to: &std::path::Path| {
        let mut command = world.descartes([&["loop", "status", "--watch"], flags].concat());
        let out = std::fs::File::create(to).unwrap();
        command.stdout(out).spawn().unwrap()
    };
    let mut human = watch(&[], &blocks);
    let mut json = watch(&["--json"], &lines);
    let mut terminal = world.descartes(["loop", "status", "--watch"]);
    terminal.env("TERM", "xterm");
    let mut pty = Pty::spawn(&terminal, Size::default());
    pty.wait_text("Now: iteration 1");
    let text = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    eventually("both", SOON, || {
        text(&blocks).contains("Now") && text(&lines).ends_with('\n')
    });
    world.write("go-1", "");
    pty.wait_text("  Iteration: 1");
    eventually("both", SOON, || {
        text(&blocks).contains("  Iteration: 1\n") && text(&lines).lines().count() >= 2
    });
    world.write("go-2", "");
    assert_eq!(pty.wait(SOON).code(), Some(0));
    let screen = pty.screen();
    assert_eq!(
        screen.matches("Loop Status").count(),
        1,
        "drawn in its place: {screen}"
    );
    assert!(screen.contains("Completed: Yes"), "{screen}");
    assert!(human.wait().unwrap().success() && json.wait().unwrap().success());
    let last = text(&blocks);
    let last = last.rsplit("Loop Status").next().unwrap();
    assert!(last.contains("Completed: Yes"), "{last}");
    let rows = json_lines(&text(&lines));
    assert!(rows.len() >= 3, "{}", rows.len());
    assert_eq!(rows.last().unwrap()["status"], "ended");
}

#[test]
fn loops_are_listed_newest_first_with_their_state() {
    let world = World::in_memory();
    verb(&world, &["list"]);
    start(&world, "promise", &["--name", "first"]).assert_code(0);
    start(
        &world,
        "exit 0",
        &["--name", "second", "-m", "1", "-s", "two.json"],
    )
    .assert_code(2);
    let other = world.root().join("other");
    std::fs::create_dir(&other).unwrap();
    let dir = other.display().to_string();
    start(&world, "hang", &["--name", "third", "-w", &dir, "--detach"]).assert_code(0);
    let list = verb(&world, &["list"]).stdout();
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 3, "{list}");
    assert!(lines[0].starts_with("ID "), "{list}");
    assert!(
        lines[1].contains("second")
            && lines[1].contains("Iteration limit reached")
            && lines[1].contains("1/1"),
        "{list}"
    );
    assert!(
        lines[2].contains("first") && lines[2].contains("Completed (promise)"),
        "{list}"
    );
    let all = verb(&world, &["list", "--all"]).stdout();
    let newest = all.lines().nth(1).unwrap();
    assert!(
        newest.contains("third") && newest.contains("other"),
        "{all}"
    );
    let rows: Value =
        serde_json::from_str(&verb(&world, &["list", "--all", "--json"]).stdout()).unwrap();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 3);
    assert!(
        rows[0]["pid"].is_u64() && rows[1]["status"] == "ended",
        "{rows:?}"
    );
    // One that cannot be read does not hide the others.
    let id = rows[1]["loop_id"].as_str().unwrap();
    let journal = world.state().join("loops").join(id).join("journal.jsonl");
    std::fs::write(journal, "what\nis this\n").unwrap();
    let list = verb(&world, &["list"]).stdout();
    assert!(
        list.contains("unreadable") && list.contains("first"),
        "{list}"
    );
    descartes(&world, &["loop", "cancel", "third", "--now"]).assert_code(0);
}

#[test]
fn history_has_a_row_for_each_iteration() {
    let world = World::in_memory();
    world.git_init();
    let script = "@1 write a.txt x\nprint look at this\n@2 err oh\nexit 3\n@3 promise\nwrite ok y";
    start(
        &world,
        script,
        &["--verify", "true", "--verify", "test -e ok"],
    )
    .assert_code(0);
    let table = verb(&world, &["history"]).stdout();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0][..5], ["#", "DURATION", "EXIT", "PROMISE", "RESULT"]);
    assert_eq!(
        (rows[1][0], rows[1][2], rows[1][3], rows[1][4], rows[1][6]),
        ("1", "0", "–", "worked", "1"),
        "{table}"
    );
    assert!(
        table.lines().nth(1).unwrap().ends_with("look at this"),
        "{table}"
    );
    assert_eq!(
        (rows[2][0], rows[2][2], rows[2][4]),
        ("2", "3", "failed"),
        "{table}"
    );
    assert_eq!(
        (rows[3][3], rows[3][4], rows[3][5]),
        ("claimed", "done", "green"),
        "{table}"
    );
    assert!(table.contains(" – "), "unknown tokens are no zero: {table}");
    let last = verb(&world, &["history", "-n", "1"]).stdout();
    assert_eq!(last.lines().count(), 2, "{last}");
    let json = json_lines(&verb(&world, &["history", "--json"]).stdout());
    assert_eq!(json.len(), 3);
    assert_eq!(json[2]["gates"].as_array().unwrap().len(), 2);
    assert!(json[2]["tokens"].is_null());
}

#[test]
fn logs_are_the_agents_words_without_what_a_terminal_would_obey() {
    let world = World::in_memory();
    let script = "print iteration ${ITERATION}\nprintf \\e[31mred\\e[0m\\e[2J\\r\\n\nprint key sk-ant-api03-abcdefghijklmnop123456 end\nerrf to \\xff stderr";
    start(&world, script, &["-m", "2"]).assert_code(2);
    let newest = verb(&world, &["logs"]).stdout();
    assert_eq!(
        newest,
        "iteration 2\nred\nkey sk-ant-*** end\n[standard error]\nto \u{fffd} stderr\n"
    );
    let first = verb(&world, &["logs", "1"]).stdout();
    assert!(first.starts_with("iteration 1\n"), "{first}");
    let raw = verb(&world, &["logs", "1", "--raw"]);
    assert_eq!(
        raw.stdout,
        std::fs::read(loop_dir(&world).join("runs/0001/stdout.log")).unwrap()
    );
    assert_eq!(raw.stderr, b"to \xff stderr");
    assert!(raw.stdout().contains("sk-ant-api03-abcdef"), "{raw}");
    let alone = verb(&world, &["logs", "--stderr", "--raw"]);
    assert_eq!(
        (alone.stdout, alone.stderr),
        (b"to \xff stderr".to_vec(), vec![])
    );
    let tail = verb(&world, &["logs", "-n", "1", "--stderr"]).stdout();
    assert_eq!(tail, "to \u{fffd} stderr\n");
    let rows = json_lines(&verb(&world, &["logs", "2", "--json"]).stdout());
    assert_eq!(
        (&rows[0]["text"], &rows[0]["stream"], &rows[0]["iteration"]),
        (&"iteration 2".into(), &"stdout".into(), &2.into())
    );
    assert_eq!(rows[3]["stream"], "stderr");
    let coloured = descartes(&world, &["--color", "always", "loop", "logs", "1"]).stdout();
    assert!(
        coloured.contains("\x1b[31mred\x1b[0m") && !coloured.contains("\x1b[2J"),
        "{coloured:?}"
    );
    for (arguments, words) in [
        (["logs", "9"], "no iteration 9"),
        (["diff", "9"], "no iteration 9"),
    ] {
        let run = descartes(&world, &[&["loop"], &arguments[..]].concat());
        run.assert_code(65);
        assert!(
            run.stderr().contains(words) && run.stderr().contains("history"),
            "{run}"
        );
    }
    std::fs::remove_dir_all(loop_dir(&world).join("runs/0001")).unwrap();
    descartes(&world, &["loop", "logs", "1"]).assert_code(65);
}

#[test]
fn an_understood_stream_is_told_as_words_and_tools() {
    let world = World::in_memory();
    let stream = concat!(
        r#"{"type":"system","subtype":"init","session_id":"s","model":"m","tools":[]}"#,
        "\n",
        r#"{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"thinking","thinking":"let me see"},{"type":"text","text":"I run the tests."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cargo test"}}]}}"#,
        "\n",
        r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"Exit code 1\nboom"}]}}"#,
        "\n",
        r#"{"type":"assistant","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"All done. <promise>COMPLETE</promise>"}]}}"#,
        "\n",
        r#"{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"All done. <promise>COMPLETE</promise>","session_id":"s","total_cost_usd":0.5,"usage":{"input_tokens":600,"output_tokens":400},"permission_denials":[]}"#,
        "\n",
    );
    world.write("stream.jsonl", stream);
    start(
        &world,
        "stream stream.jsonl",
        &["--backend", "claude", "--permissions", "edit"],
    )
    .assert_code(0);
    let logs = verb(&world, &["logs"]).stdout();
    assert_eq!(
        logs,
        "I run the tests.\n$ cargo test  exit 1\nAll done. <promise>COMPLETE</promise>\n"
    );
    let thinking = verb(&world, &["logs", "--thinking"]).stdout();
    assert!(thinking.starts_with("~ let me see\n"), "{thinking}");
    let raw = verb(&world, &["logs", "--raw"]).stdout;
    assert_eq!(raw, stream.as_bytes());
    let events = json_lines(&verb(&world, &["logs", "--json"]).stdout());
    assert!(
        events.iter().any(|event| event["event"] == "tool_call"),
        "{events:?}"
    );
    let history = verb(&world, &["history"]).stdout();
    assert!(
        history.contains("1.0k") && history.contains("$0.50"),
        "{history}"
    );
}

#[test]
fn logs_are_followed_from_iteration_to_iteration() {
    let world = World::in_memory();
    let script = "print begin ${ITERATION}\nwait-file go-${ITERATION}\nprint end ${ITERATION}";
    start(&world, script, &["--detach", "-m", "2"]).assert_code(0);
    let (seen, first) = (world.root().join("seen"), world.root().join("first"));
    let follow = |arguments: &[&str], to: &std::path::Path| {
        let mut command = world.descartes([&["loop", "logs", "-f"], arguments].concat());
        command.stdout(std::fs::File::create(to).unwrap());
        command.spawn().unwrap()
    };
    let tail = world.root().join("tail");
    let mut all = follow(&[], &seen);
    let mut one = follow(&["1"], &first);
    let has = |path: &std::path::Path, words: &str| {
        std::fs::read_to_string(path).unwrap().contains(words)
    };
    eventually("the first words", SOON, || {
        has(&seen, "begin 1") && has(&first, "begin 1")
    });
    assert!(!has(&seen, "end 1"));
    let mut short = follow(&["-n", "1"], &tail);
    eventually("the last line at once", SOON, || has(&tail, "begin 1"));
    world.write("go-1", "");
    eventually("the next iteration", SOON, || has(&seen, "begin 2"));
    assert!(
        one.wait().unwrap().success(),
        "one iteration is over with it"
    );
    world.write("go-2", "");
    assert!(all.wait().unwrap().success() && short.wait().unwrap().success());
    assert!(has(&tail, "end 2") && !has(&tail, "iteration 1"));
    let text = std::fs::read_to_string(&seen).unwrap();
    assert_eq!(
        text,
        "--- iteration 1 ---\nbegin 1\nend 1\n\n--- iteration 2 ---\nbegin 2\nend 2\n"
    );
    assert!(!has(&first, "begin 2"));
    let last = verb(&world, &["logs", "-f", "-n", "1"]).stdout();
    assert_eq!(last, "end 2\n");
    // Of a loop that is over, all there is, and no waiting.
    let over = verb(&world, &["logs", "-f"]).stdout();
    assert!(over.contains("end 2"), "{over}");
}

#[test]
fn a_follower_ends_when_nobody_reads_and_when_the_loop_is_killed() {
    let world = World::in_memory();
    let script = "print begin\nwait-file go\nrepeat 20 print more\nhang";
    start(&world, script, &["--detach"]).assert_code(0);
    let mut command = world.descartes(["loop", "logs", "-f"]);
    let mut reader = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut follower = world.descartes(["loop", "logs", "-f"]);
    let mut follower = follower.stdout(Stdio::null()).spawn().unwrap();
    let mut line = [0; 8];
    std::io::Read::read_exact(&mut reader.stdout.take().unwrap(), &mut line).unwrap();
    world.write("go", "");
    eventually("its end", SOON, || reader.try_wait().unwrap().is_some());
    let host = std::fs::read_to_string(loop_dir(&world).join("host.json")).unwrap();
    let host: Value = serde_json::from_str(&host).unwrap();
    let pid = i32::try_from(host["pid"].as_i64().unwrap()).unwrap();
    descartes_testkit::process::send(pid, nix::sys::signal::Signal::SIGKILL);
    eventually("its end", SOON, || follower.try_wait().unwrap().is_some());
}

#[test]
fn a_loop_that_is_not_there_or_not_clear_is_refused_by_every_verb() {
    let world = World::in_memory();
    let verbs: [&[&str]; 10] = [
        &["status"],
        &["history"],
        &["logs"],
        &["cancel"],
        &["pause"],
        &["unpause"],
        &["say", "x"],
        &["set", "-m", "3"],
        &["diff"],
        &["rewind", "1"],
    ];
    for verb in verbs {
        let none = descartes(&world, &[&["loop"], verb].concat());
        none.assert_code(65);
        assert!(none.stderr().contains("there is no loop here"), "{none}");
        assert!(none.stderr().contains("hint: "), "{none}");
        let unknown = descartes(&world, &[&["loop"], verb, &["nosuch"]].concat());
        unknown.assert_code(65);
        assert!(unknown.stderr().contains("nosuch"), "{unknown}");
        assert_eq!(unknown.stdout(), "");
    }
    start(&world, "promise", &["--name", "auth"]).assert_code(0);
    start(&world, "promise", &["--name", "auth", "-s", "two.json"]).assert_code(0);
    for verb in verbs {
        let many = descartes(&world, &[&["loop"], verb, &["auth"]].concat());
        many.assert_code(65);
        assert!(many.stderr().contains("matches 2 loops"), "{many}");
    }
    let ids = |run: &Finished| {
        run.stderr()
            .lines()
            .filter(|line| line.starts_with("  0"))
            .count()
    };
    assert_eq!(ids(&descartes(&world, &["loop", "status", "auth"])), 2);
    for number in ["0", "00", "7"] {
        for verb in ["diff", "logs"] {
            let two = world.path("two.json");
            let path = two.to_str().unwrap();
            let none = descartes(&world, &["loop", verb, number, path]);
            none.assert_code(65);
            assert!(
                none.stderr().contains("there is only iteration 1"),
                "{none}"
            );
        }
    }
    // Torn, but its journal knows better; without one it is an error with its place.
    world.write(".descartes/loop-state.json", "{\"version\": \"1.0\", ");
    let run = verb(&world, &["status"]);
    assert!(
        run.stderr().contains("the next resume rebuilds it"),
        "{run}"
    );
    world.write("torn.json", "{\"version\": \"1.0\", ");
    let torn = descartes(&world, &["loop", "status", "-s", "torn.json"]);
    torn.assert_code(65);
    assert!(torn.stderr().contains("byte 18"), "{torn}");
}

#[test]
fn status_tells_of_the_last_iteration_and_of_a_pause_that_is_asked_for() {
    let world = World::in_memory();
    let script = "@2 touch began\n@2 wait-file go\n@3- promise";
    start(&world, script, &["--detach"]).assert_code(0);
    eventually("the second iteration", SOON, || world.has("began"));
    let status = || descartes(&world, &["loop", "status"]).stdout().to_owned();
    let before = status();
    assert!(before.contains("\n  Last iteration: 20"), "{before}");
    assert!(!before.contains("Pause"), "{before}");
    descartes(&world, &["loop", "pause"]).assert_code(0);
    let asked = status();
    assert!(
        asked.contains("  Pause: requested, takes effect once this iteration ends"),
        "{asked}"
    );
    world.write("go", "");
    eventually("it is paused", SOON, || status().contains("  Paused: "));
    assert!(!status().contains("Pause: requested"), "{}", status());
    descartes(&world, &["loop", "unpause"]).assert_code(0);
    eventually("its end", SOON, || status().contains("Completed: Yes"));
}
