//! `loop resume`: goes on where a loop was, with what the flags change.

use std::time::Duration;

use descartes_testkit::{World, eventually};
use serde_json::json;

use crate::common::{claude_result, descartes, events, journal, loop_dir, prints, start, state};

/// A loop that stopped at its limit after this many iterations.
fn stopped(script: &str, flags: &[&str]) -> World {
    let world = World::in_memory();
    start(&world, script, &[&["-m", "1"], flags].concat()).assert_code(2);
    world
}

#[track_caller]
fn resume(world: &World, flags: &[&str]) -> descartes_testkit::world::Finished {
    descartes(world, &[&["loop", "resume"], flags].concat())
}

#[test]
fn a_loop_at_its_limit_needs_a_new_one() {
    let world = stopped("@1 print hm\n@2- promise", &[]);
    let run = resume(&world, &[]);
    run.assert_code(2);
    assert!(run.stderr().contains("--max-iterations"), "{run}");
    assert_eq!(events(&world, "run_started").len(), 1);
    resume(&world, &["--max-iterations", "5"]).assert_code(0);
    assert_eq!(state(&world)["iteration"], 2);
    let done = resume(&world, &[]);
    done.assert_code(0);
    assert!(done.stderr().contains("already done"), "{done}");
}

#[test]
fn a_loop_is_found_by_id_by_name_and_by_state_file() {
    let world = stopped("promise NEVER", &["--name", "auth", "-s", "elsewhere.json"]);
    let id = loop_dir(&world)
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    for which in [
        &["auth"][..],
        &[&id],
        &[&id[..13]],
        &["--state-file", "elsewhere.json"],
    ] {
        let more = (events(&world, "run_started").len() + 1).to_string();
        resume(&world, &[which, &["--max-iterations", &more]].concat()).assert_code(2);
        assert_eq!(
            events(&world, "run_started").len().to_string(),
            more,
            "{which:?}"
        );
    }
}

#[test]
fn gates_and_their_time_limit_change() {
    let world = stopped("promise", &["--verify", "false"]);
    let flags = [
        "--max-iterations",
        "2",
        "--verify",
        "sleep 60",
        "--verify-timeout",
        "200ms",
    ];
    resume(&world, &flags).assert_code(2);
    let gates = events(&world, "gate_finished");
    assert_eq!(
        (&gates[1]["command"], &gates[1]["end"]),
        (&json!("sleep 60"), &json!("timeout"))
    );
    let flags = ["--verify", "true", "--verify-timeout", "1m"];
    resume(&world, &[&["--max-iterations", "3"], &flags[..]].concat()).assert_code(0);
}

#[test]
fn thoughts_are_shown_on_request() {
    let thought = r#"print {"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"thinking","thinking":"Hm, why."}]}}"#;
    let understood = ["--backend", "claude", "--permissions", "edit"];
    let world = stopped(thought, &understood);
    let run = resume(&world, &["--max-iterations", "2", "--show-thinking"]);
    assert!(run.stdout().contains("~ Hm, why."), "{run}");
}

#[test]
fn the_prompt_changes() {
    let world = stopped("save-prompt seen", &["-p", "first"]);
    resume(&world, &["--max-iterations", "2", "--prompt", "second"]).assert_code(2);
    assert!(world.read("seen").starts_with("second"));
    world.write("PROMPT.md", "third");
    resume(
        &world,
        &["--max-iterations", "3", "--prompt-file", "PROMPT.md"],
    )
    .assert_code(2);
    assert!(world.read("seen").starts_with("third"));
}

#[test]
fn variables_for_the_agent_are_given_again() {
    let world = stopped("dump-env seen", &["--env", "KEY=one"]);
    resume(&world, &["--max-iterations", "2", "--env", "KEY=two"]).assert_code(2);
    assert!(world.read("seen").contains("KEY=two"));
}

#[test]
fn limits_of_time_and_failure_change() {
    let world = stopped("@1 print hm\n@2- hang", &["--kill-grace", "100ms"]);
    resume(&world, &["--max-iterations", "2", "--timeout", "200ms"]).assert_code(2);
    resume(
        &world,
        &[
            "--max-iterations",
            "3",
            "--timeout",
            "1h",
            "--idle-timeout",
            "200ms",
        ],
    )
    .assert_code(2);
    let ended: Vec<_> = events(&world, "agent_ended")
        .iter()
        .map(|e| e["ended_by"].clone())
        .collect();
    assert_eq!(ended[1..], [json!("timeout"), json!("idle")]);
    let flags = [
        "--max-iterations",
        "9",
        "--idle-timeout",
        "1h",
        "--max-duration",
        "1s",
    ];
    resume(&world, &flags).assert_code(3);
    let failing = stopped("@1 print hm\n@2- exit 3", &[]);
    resume(&failing, &["--max-iterations", "9", "--max-failures", "1"]).assert_code(7);
}

#[test]
fn stall_threshold_changes() {
    let world = World::in_memory();
    world.git_init();
    start(&world, "print hm", &["-m", "1"]).assert_code(2);
    resume(&world, &["--max-iterations", "9", "--stall-after", "1"]).assert_code(4);
}

#[test]
fn budgets_of_cost_and_tokens_and_the_model_change() {
    let script = format!("dump-argv seen\n{}", prints(&claude_result("hm")));
    let agent = [
        "--backend",
        "claude",
        "--permissions",
        "edit",
        "--stall-after",
        "0",
    ];
    let world = stopped(&script, &agent);
    resume(
        &world,
        &[
            "--max-iterations",
            "9",
            "--max-cost",
            "0.75",
            "--model",
            "opus-9",
        ],
    )
    .assert_code(3);
    assert!(world.read("seen").contains("opus-9"));
    resume(&world, &["--max-cost", "9", "--max-tokens", "2500"]).assert_code(3);
    assert_eq!(state(&world)["exit_reason"]["budget"], "tokens");
}

#[test]
fn a_model_that_the_agent_cannot_be_told_is_refused_and_nothing_goes_on() {
    let world = stopped("print hm", &[]);
    let before = state(&world);
    let refused = resume(&world, &["--max-iterations", "9", "--model", "m1"]);
    refused.assert_code(64);
    assert!(
        refused.stderr().contains("`generic` has no flag"),
        "{refused}"
    );
    assert!(refused.stderr().contains("\nhint: "), "{refused}");
    assert_eq!(state(&world), before);
}

#[test]
fn budgets_go_on_from_the_state_file_where_the_journal_is_gone() {
    let script = prints(&claude_result("hm"));
    let claude = ["--backend", "claude", "--permissions", "edit"];
    let budgets = [
        ("--max-cost", "0.9", "1.9"),
        ("--max-tokens", "1500", "3500"),
    ];
    for (flag, budget, more) in budgets {
        let world = World::in_memory();
        let flags = [
            &claude[..],
            &["-m", "9", "--stall-after", "0", flag, budget],
        ]
        .concat();
        start(&world, &script, &flags).assert_code(3);
        assert_eq!(state(&world)["iteration"], 2);
        let spent = state(&world)["spent"].clone();
        std::fs::remove_dir_all(loop_dir(&world)).unwrap();
        resume(&world, &[]).assert_code(3);
        assert_eq!(events(&world, "run_started").len(), 0, "{flag}");
        assert_eq!(state(&world)["spent"], spent, "{flag}");
        resume(&world, &[flag, more]).assert_code(3);
        assert_eq!(state(&world)["iteration"], 4, "{flag}");
    }
}

#[test]
fn json_gives_the_records_from_here_on() {
    let world = stopped("@1 print hm\n@2- promise", &[]);
    let before = journal(&world).len() as u64;
    let run = resume(&world, &["--max-iterations", "2", "--json"]);
    run.assert_code(0);
    let records = crate::common::json_lines(&run.stdout());
    assert_eq!(records[0]["seq"], before, "{run}");
    assert_eq!(records.len() as u64, journal(&world).len() as u64 - before);
}

#[test]
fn detach_resumes_in_the_background() {
    let world = stopped("@1 print hm\n@2- promise", &[]);
    resume(&world, &["--max-iterations", "2", "--detach"]).assert_code(0);
    eventually("its end", Duration::from_secs(60), || {
        state(&world)["iteration"] == 2 && state(&world)["completed"] == true
    });
    let done = resume(&world, &["--detach"]);
    done.assert_code(0);
    assert!(done.stderr().contains("already done"), "{done}");
}

/// Turns one bit in the first journal line that holds `text`.
fn damage(world: &World, text: &str) {
    let path = loop_dir(world).join("journal.jsonl");
    let mut bytes = std::fs::read_to_string(&path).unwrap().into_bytes();
    let place = bytes
        .windows(text.len())
        .position(|at| at == text.as_bytes());
    bytes[place.unwrap() + 1] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
}

#[test]
fn repair_drops_a_damaged_journal_line_and_keeps_a_copy() {
    let world = stopped("@1 print hm\n@2- promise", &[]);
    damage(&world, "\"kind\":\"host_started\"");
    let damaged = std::fs::read(loop_dir(&world).join("journal.jsonl")).unwrap();
    let refused = resume(&world, &["--max-iterations", "2"]);
    refused.assert_code(65);
    assert!(refused.stderr().contains("resume --repair"), "{refused}");
    let repaired = resume(&world, &["--max-iterations", "2", "--repair"]);
    repaired.assert_code(0);
    let said = repaired.stderr();
    assert!(said.contains("dropped 1 damaged line, kept "), "{repaired}");
    assert_eq!(state(&world)["iteration"], 2);
    let copy = loop_dir(&world).join("journal.jsonl.damaged");
    assert_eq!(std::fs::read(copy).unwrap(), damaged);
    let again = resume(&world, &["--repair"]);
    again.assert_code(0);
    assert!(again.stderr().contains("nothing was repaired"), "{again}");
}

#[test]
fn repair_never_forgets_iterations_that_the_state_file_tells_of() {
    let world = stopped("@1 print hm\n@2- promise", &[]);
    damage(&world, "\"kind\":\"run_started\"");
    let cut = resume(&world, &["--max-iterations", "2", "--repair"]);
    cut.assert_code(65);
    let said = cut.stderr();
    assert!(said.contains("dropped 1 damaged line and "), "{cut}");
    assert!(said.contains("the state file records 1"), "{cut}");
    // What the hint says works.
    let folder = loop_dir(&world);
    std::fs::rename(&folder, folder.with_extension("damaged")).unwrap();
    resume(&world, &["--max-iterations", "2"]).assert_code(0);
    assert_eq!(state(&world)["iteration"], 2);
}

#[test]
fn repair_never_forgets_the_end_of_an_iteration() {
    let world = stopped("@1 print hm\n@2- promise", &[]);
    damage(&world, "\"kind\":\"iteration_finished\"");
    let dropped = resume(&world, &["--max-iterations", "2", "--repair"]);
    dropped.assert_code(65);
    let said = dropped.stderr();
    assert!(said.contains("the state file records 1"), "{dropped}");
}

#[test]
fn repair_goes_on_from_the_state_file_without_the_first_journal_line() {
    let world = stopped("@1 print hm\n@2- promise", &[]);
    damage(&world, "\"kind\":\"loop_created\"");
    resume(&world, &["--max-iterations", "2"]).assert_code(65);
    let repaired = resume(&world, &["--max-iterations", "2", "--repair"]);
    repaired.assert_code(0);
    let said = repaired.stderr();
    assert!(said.contains("kept 0 lines"), "{repaired}");
    assert!(
        said.contains("continuing from the state file"),
        "{repaired}"
    );
    assert_eq!(state(&world)["iteration"], 2);
}

#[test]
fn a_file_written_by_hand_is_taken_up() {
    let world = World::in_memory();
    let agent = world.agent("promise DONE_BY_HAND");
    let words = shell_words::split(&agent).unwrap();
    let text = json!({
        "config": {
            "command": words[0], "args": words[1..], "prompt": "go", "completion_promise": "DONE_BY_HAND"
        }
    });
    world.write(".descartes/loop-state.json", text.to_string());
    resume(&world, &[]).assert_code(0);
}

#[test]
fn a_loop_resumed_by_its_id_never_takes_another_loops_state_file() {
    let world = stopped("promise NEVER", &["--name", "old"]);
    start(
        &world,
        "promise NEVER",
        &["-m", "2", "--name", "new", "--force"],
    )
    .assert_code(2);
    let run = resume(&world, &["old", "-m", "3"]);
    run.assert_code(2);
    assert!(run.stderr().contains("kept as "), "{run}");
    assert_eq!(state(&world)["name"], "old");
    assert_eq!(state(&world)["iteration"], 3);
    let aside = run
        .stderr()
        .split("kept as ")
        .nth(1)
        .and_then(|rest| rest.lines().next())
        .unwrap()
        .trim()
        .to_owned();
    let aside: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(aside).unwrap()).unwrap();
    assert_eq!(
        (&aside["name"], &aside["iteration"]),
        (&json!("new"), &json!(2))
    );
}

#[test]
fn a_state_file_whose_id_was_altered_begins_nothing_by_itself() {
    let world = stopped("promise NEVER", &["--name", "old"]);
    let path = ".descartes/loop-state.json";
    let id = state(&world)["loop_id"].as_str().unwrap().to_owned();
    let other = format!("f{}", &id[1..]);
    let iterations = state(&world)["iteration"].clone();
    for altered in [
        world.read(path).replace(&id, &other),
        world.read(path).replace(&id, &id.replace('-', "#")),
        world.read(path).replace("\"loop_id\"", "\"loop_ie\""),
    ] {
        world.write(path, &altered);
        let run = resume(&world, &["-m", "20"]);
        run.assert_code(65);
        assert!(
            run.stderr().contains("no journal") || run.stderr().contains("no longer names a loop"),
            "{run}"
        );
        assert!(
            run.stderr()
                .contains(&format!("descartes loop resume {id}")),
            "{run}"
        );
        assert_eq!(world.read(path), altered, "nothing was written");
    }
    resume(&world, &[&id, "-m", "2"]).assert_code(2);
    assert_eq!(state(&world)["loop_id"], id.as_str());
    assert!(state(&world)["iteration"].as_u64() > iterations.as_u64());
}

#[test]
fn a_lower_count_in_an_edited_state_file_uses_no_number_again() {
    let world = stopped("promise NEVER", &[]);
    let done = state(&world)["iteration"].as_u64().unwrap();
    let path = ".descartes/loop-state.json";
    let edited = world
        .read(path)
        .replace(&format!("\"iteration\": {done}"), "\"iteration\": 0");
    world.write(path, edited);
    let limit = (done + 1).to_string();
    let run = resume(&world, &["-m", &limit]);
    run.assert_code(2);
    assert!(
        run.stderr().contains("the journal's count is used"),
        "{run}"
    );
    assert_eq!(state(&world)["iteration"], done + 1);
}

#[test]
fn a_journal_that_lost_finished_iterations_is_refused_and_left_as_it_is() {
    let world = World::in_memory();
    start(&world, "print hm", &["-m", "3"]).assert_code(2);
    let path = loop_dir(&world).join("journal.jsonl");
    let whole = std::fs::read_to_string(&path).unwrap();
    let second = whole.find(r#""iteration":2"#).unwrap();
    let cut = &whole[..=whole[..second].rfind('\n').unwrap()];
    std::fs::write(&path, cut).unwrap();
    let run = resume(&world, &["--max-iterations", "9"]);
    run.assert_code(65);
    assert!(
        run.stderr().contains("the end of the journal is missing"),
        "{run}"
    );
    assert!(run.stderr().contains("restore the journal"), "{run}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), cut);
    std::fs::write(&path, &whole).unwrap();
    resume(&world, &["--max-iterations", "4"]).assert_code(2);
    let numbers: Vec<_> = events(&world, "iteration_finished")
        .iter()
        .map(|event| event["iteration"].clone())
        .collect();
    assert_eq!(numbers, [json!(1), json!(2), json!(3), json!(4)]);
}

/// The state file of a loop that was interrupted, changed as an agent could have done it.
fn edited(flags: &[&str], edit: impl FnOnce(&mut serde_json::Value)) -> World {
    let world = World::in_memory();
    let mut child = crate::common::start_command(
        &world,
        "@1 append pid ${PID}\nsleep 1000\n@2- promise",
        flags,
    )
    .stdout(std::process::Stdio::null())
    .stderr(std::process::Stdio::null())
    .spawn()
    .unwrap();
    eventually("the agent", Duration::from_secs(60), || world.has("pid"));
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the guard's end", Duration::from_secs(60), || {
        world.processes().is_empty()
    });
    let mut file = state(&world);
    edit(&mut file);
    world.write(".descartes/loop-state.json", file.to_string());
    world
}

const LOOSE: [&str; 4] = ["--verify", "false", "-m", "2"];

fn loosen(file: &mut serde_json::Value) {
    file["config"]["verify"] = json!(["true"]);
    file["config"]["max_iterations"] = json!(500);
    file["config"]["prompt"] = json!("something else");
}

#[test]
fn an_edit_that_loosens_a_loop_is_named_and_does_not_hold() {
    let world = edited(&LOOSE, loosen);
    let status = descartes(&world, &["loop", "status"]);
    assert!(status.stderr().contains("--accept-edits"), "{status}");
    let run = resume(&world, &[]);
    run.assert_code(2);
    let words = run.stderr();
    assert!(words.contains(r#"verify: ["false"] -> ["true"]"#), "{run}");
    assert!(words.contains("max_iterations: 2 -> 500"), "{run}");
    assert!(
        words.contains(r#"applied: prompt: "go" -> "something else""#),
        "{run}"
    );
    assert!(!run.to_string().contains("gate file"), "{run}");
    assert_eq!(state(&world)["config"]["verify"], json!(["false"]));
    assert_eq!(state(&world)["config"]["max_iterations"], 2);
    assert_eq!(state(&world)["config"]["prompt"], "something else");
    let status = descartes(&world, &["loop", "status"]).stdout();
    assert!(status.contains("by state file"), "{status}");
    // What was written there is not lost.
    assert!(words.contains("as it was edited is kept as"), "{run}");
    let copies = kept_edits(&world);
    assert_eq!(copies.len(), 1);
    let copy: serde_json::Value = serde_json::from_str(&copies[0]).unwrap();
    assert_eq!(copy["config"]["verify"], json!(["true"]));
}

/// Copies of edited state files.
fn kept_edits(world: &World) -> Vec<String> {
    let folder = std::fs::read_dir(world.path(".descartes")).unwrap();
    let names = folder.flatten().map(|entry| entry.path());
    let copies = names.filter(|path| path.display().to_string().contains(".json.edited."));
    copies
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect()
}

#[test]
fn an_edit_is_kept_when_a_command_writes_the_state_file_and_while_the_loop_runs() {
    let world = edited(&LOOSE, loosen);
    let said = descartes(&world, &["loop", "say", "hello"]);
    said.assert_code(0);
    assert!(
        said.to_string().contains("as it was edited is kept as"),
        "{said}"
    );
    assert_eq!(kept_edits(&world).len(), 1);
    let world = World::in_memory();
    let script = "@1 write .descartes/loop-state.json {\"mine\":true}\n@* promise";
    let run = start(&world, script, &[]);
    run.assert_code(0);
    assert!(run.to_string().contains("changed by someone else"), "{run}");
    assert_eq!(kept_edits(&world), ["{\"mine\":true}\n"]);
}

#[test]
fn an_edit_that_a_person_accepts_holds_as_it_is() {
    let world = edited(&LOOSE, loosen);
    let run = resume(&world, &["--accept-edits"]);
    run.assert_code(0);
    assert!(
        run.stderr().contains(r#"verify: ["false"] -> ["true"]"#),
        "{run}"
    );
    assert!(!run.to_string().contains("gate file"), "{run}");
    assert_eq!(state(&world)["config"]["max_iterations"], 500);
}

#[test]
fn a_loop_whose_name_was_taken_out_of_its_file_is_not_begun_from_it() {
    let take_out = |file: &mut serde_json::Value| {
        loosen(file);
        let fields = file.as_object_mut().unwrap();
        fields.remove("loop_id");
        fields.remove("journal");
    };
    let world = edited(&LOOSE, take_out);
    let run = resume(&world, &[]);
    run.assert_code(65);
    assert!(run.stderr().contains("--accept-edits"), "{run}");
    assert_eq!(events(&world, "run_started").len(), 1);
    resume(&world, &["--accept-edits", "--detach"]).assert_code(0);
    descartes(&world, &["loop", "cancel", "--now"]).assert_code(0);
}

#[test]
fn a_config_that_changed_since_is_not_used_before_it_is_trusted() {
    let world = World::in_memory();
    world.configure("on_event = 'touch told'\n");
    let script = "write .descartes/config.toml on_event=\"touch evil\"";
    start(&world, script, &["-m", "1"]).assert_code(2);
    let run = descartes(&world, &["loop", "resume", "-m", "2"]);
    run.assert_code(65);
    assert!(
        run.stderr().contains("+ on_event = [\"touch evil\"]"),
        "{run}"
    );
    assert!(run.stderr().contains("--trust-config"), "{run}");
    assert!(!world.has("evil"));
    descartes(&world, &["loop", "resume", "-m", "2", "--trust-config"]).assert_code(2);
    eventually("the hook", Duration::from_secs(60), || world.has("evil"));
}

#[test]
fn the_way_of_the_prompt_and_the_rights_of_the_agent_change() {
    let script = "dump-argv argv\n@2 read-stdin-to got";
    let world = stopped(script, &["-p", "the task"]);
    resume(&world, &["--max-iterations", "2", "--prompt-mode", "stdin"]).assert_code(2);
    assert!(world.read("got").starts_with("the task"));
    assert_eq!(state(&world)["config"]["backend"]["prompt_mode"], "stdin");
    // The command is the person's own: it stays, and is understood as claude.
    let denied = resume(&world, &["--max-iterations", "3", "--backend", "claude"]);
    denied.assert_code(65);
    assert!(denied.stderr().contains("--permissions edit"), "{denied}");
    let flags = ["--max-iterations", "3", "--backend", "claude"];
    let flags = [&flags[..], &["--permissions", "edit", "--model", "opus"]].concat();
    resume(&world, &flags).assert_code(2);
    let argv = world.read("argv");
    assert!(
        argv.contains("acceptEdits") && argv.contains("opus"),
        "{argv}"
    );
    let config = &state(&world)["config"];
    assert_eq!(config["backend"]["backend_type"], "claude");
    assert_eq!(config["backend"]["output_format"], "stream-json");
    assert_eq!(config["permissions"], "edit");
    assert_eq!(config["prompt"], "the task");
    for (flag, value) in [
        ("--backend", "nobody"),
        ("--permissions", "root"),
        ("--prompt-mode", "pigeon"),
    ] {
        let wrong = resume(&world, &["--max-iterations", "9", flag, value]);
        wrong.assert_code(64);
        assert!(wrong.stderr().contains(value), "{wrong}");
    }
}

#[test]
fn another_backend_brings_its_own_command_where_the_old_one_ran_its_own() {
    let world = World::in_memory();
    world.program("claude", "#!/bin/sh\ncat >/dev/null\ntouch claude-ran\n");
    world.program("codex", "#!/bin/sh\ncat >/dev/null\ntouch codex-ran\n");
    let flags = ["--permissions", "edit", "-m", "1", "-p", "go"];
    descartes(&world, &[&["loop", "start"], &flags[..]].concat()).assert_code(2);
    assert!(world.has("claude-ran") && !world.has("codex-ran"));
    resume(&world, &["--max-iterations", "2", "--backend", "codex"]).assert_code(2);
    assert!(world.has("codex-ran"));
    assert_eq!(state(&world)["config"]["command"], "codex");
}

/// As a host leaves it that was killed between the last record and the state file.
#[test]
fn whoever_takes_a_loop_whose_state_file_is_behind_its_journal_brings_it_up_to_date() {
    let world = World::in_memory();
    let older = "sh cp .descartes/loop-state.json older.json ;; promise";
    start(&world, older, &["-m", "1"]).assert_code(0);
    let behind = || {
        let older = world.read("older.json");
        world.write(".descartes/loop-state.json", &older);
        assert_eq!(state(&world)["completed"], false);
    };
    behind();
    let status = descartes(&world, &["loop", "status"]);
    assert!(status.stdout().contains("Completed: Yes"), "{status}");
    resume(&world, &[]).assert_code(0);
    assert_eq!(state(&world)["completed"], true);
    assert_eq!(
        state(&world)["exit_reason"]["type"],
        "completion_promise_detected"
    );
    behind();
    descartes(&world, &["loop", "cancel"]).assert_code(0);
    assert_eq!(state(&world)["completed"], true);
    // A start takes it for what it is, and keeps it as such.
    behind();
    start(&world, "promise", &["-m", "1"]).assert_code(0);
    let kept = std::fs::read_dir(world.path(".descartes")).unwrap();
    let kept: Vec<_> = kept
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().contains("loop-state.json.2"))
        .collect();
    let kept: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&kept[0]).unwrap()).unwrap();
    assert_eq!(kept["completed"], true);
}
