//! Streams that are no good: never a crash, never a false completion, and the trouble can be seen.

use serde_json::Value;

use crate::stage::{AGENTS, Stage, recording};

const CLAIM: &str = "<promise>COMPLETE</promise>";

fn said(text: &str) -> String {
    format!(
        r#"print {{"type":"assistant","message":{{"id":"{text}","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

fn result(text: &str) -> String {
    format!(
        r#"print {{"type":"result","subtype":"success","is_error":false,"result":"{text}","session_id":"s"}}"#
    )
}

/// One iteration of claude's stream; what the journal says of it.
fn read(script: &str) -> (Stage, Value) {
    let stage = Stage::new();
    let run = stage.run("claude", script, &["-m", "1", "--max-failures", "9"]);
    assert!(matches!(run.code(), Some(0 | 2)), "{run}");
    let ended = stage.record("agent_ended");
    (stage, ended)
}

#[test]
fn garbage_torn_lines_and_bad_bytes_complete_nothing_and_are_counted() {
    let torn = format!(
        r#"print {{"type":"assistant","message":{{"content":[{{"type":"text","text":"{CLAIM}"#
    );
    let cases = [
        (
            "garbage",
            "printf \\x01\\x02}{][not json at all\\n".to_owned(),
        ),
        ("truncated JSON", torn),
        (
            "invalid UTF-8",
            format!("printf {{\"type\":\"result\",\"result\":\"\\xff\\xfe{CLAIM}\\n"),
        ),
        ("a promise outside of any event", format!("print {CLAIM}")),
    ];
    for (name, script) in cases {
        let (_, ended) = read(&format!("{}\n{script}", said("I work.")));
        assert!(ended["claim"].is_null(), "{name}: {ended:#}");
        // Words between events are no damage: CLIs print warnings there.
        let damaged = name == "truncated JSON" || name == "invalid UTF-8";
        let counted = ended["trouble"].as_u64().unwrap_or(0);
        assert_eq!(counted >= 1, damaged, "{name}: {ended:#}");
    }
}

#[test]
fn a_line_of_200_mb_is_cut_and_what_follows_is_read() {
    let script = format!(
        "{}\nflood 200MB oneline\nprintf \\n\n{}\n{}",
        said("I begin."),
        said(CLAIM),
        result(CLAIM)
    );
    let (_, ended) = read(&script);
    assert_eq!(ended["claim"], "COMPLETE", "{ended:#}");
    assert!(ended["trouble"].as_u64() >= Some(1), "{ended:#}");
    assert!(
        ended["stdout_bytes"].as_u64() > Some(200_000_000),
        "{ended:#}"
    );
}

#[test]
fn the_last_of_two_results_counts_and_the_text_alone_where_there_is_none() {
    let two = [
        said(CLAIM),
        result(CLAIM),
        said("No, wait."),
        result("No, wait."),
    ]
    .join("\n");
    assert!(
        read(&two).1["claim"].is_null(),
        "it went on after its claim"
    );
    let twice = [said(CLAIM), result(CLAIM), result(CLAIM)].join("\n");
    assert_eq!(read(&twice).1["claim"], "COMPLETE");
    assert_eq!(read(&said(CLAIM)).1["claim"], "COMPLETE");
    let none = read(&said("I stop here.")).1;
    assert!(
        none["claim"].is_null() && none["error"].is_null(),
        "{none:#}"
    );
}

#[test]
fn events_in_the_wrong_order_are_read_as_they_come() {
    let answer = r#"print {"type":"user","message":{"role":"user","content":[{"tool_use_id":"t9","type":"tool_result","content":"<promise>COMPLETE</promise>"}]}}"#;
    let call = r#"print {"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t9","name":"Bash","input":{"command":"ls"}}]}}"#;
    let init = r#"print {"type":"system","subtype":"init","session_id":"s","model":"big"}"#;
    let wrong = [&result("I look."), answer, call, &said("I look."), init].join("\n");
    assert!(read(&wrong).1["claim"].is_null());
    // A result that comes first is not the last word of an agent that goes on.
    let early = [&*result(CLAIM), call, &said("Not yet.")].join("\n");
    assert!(read(&early).1["claim"].is_null());
}

#[test]
fn newer_and_older_streams_are_read_as_far_as_they_are_known() {
    let newer = [
        r#"print {"type":"telemetry.v9","payload":{"deep":[1,2,{"x":null}]}}"#,
        r#"print {"type":"assistant","new_field":[],"message":{"id":"m","role":"assistant","content":[{"type":"hologram","data":"<promise>COMPLETE</promise>"},{"type":"text","text":"Nearly.","citations":[]}]}}"#,
    ]
    .join("\n");
    assert!(read(&newer).1["claim"].is_null());
    let newer = [&newer, &*said(CLAIM), &result(CLAIM)].join("\n");
    assert_eq!(read(&newer).1["claim"], "COMPLETE");
    // A much older one: strings where there are lists today.
    let older = format!(
        r#"print {{"type":"assistant","message":{{"role":"assistant","content":"{CLAIM}"}}}}"#
    );
    let ended = read(&older).1;
    // Nothing was understood, so nothing is claimed, and it counts as an agent that did nothing.
    assert!(
        ended["claim"].is_null() && ended["idle_hands"] == true,
        "{ended:#}"
    );
    // Where a stream no longer makes sense, the text format is the way out.
    let stage = Stage::new();
    let command = stage.world.agent("promise") + " --output-format text";
    let mut start = stage
        .world
        .descartes(["loop", "start", "--backend", "claude"]);
    start.args(["--command", &command, "-p", "go", "--permissions", "edit"]);
    stage.world.run(start).assert_code(0);
}

#[test]
fn every_agents_recording_with_its_bytes_damaged_is_survived() {
    for agent in AGENTS {
        let stage = Stage::new();
        let file = recording(&format!("{agent}-tool"));
        let file = file.strip_prefix("stream ").unwrap();
        let mut bytes = std::fs::read(file).unwrap();
        for at in (7..bytes.len()).step_by(61) {
            bytes[at] ^= 0x80;
        }
        let damaged = stage.world.root().join("tmp/damaged");
        std::fs::write(&damaged, bytes).unwrap();
        let script = format!("sh cat '{}'", damaged.display());
        let run = stage.run(agent, &script, &["-m", "1", "--max-failures", "9"]);
        assert!(matches!(run.code(), Some(0 | 2)), "{agent}: {run}");
        assert!(
            stage.record("agent_ended")["trouble"].as_u64() >= Some(1),
            "{agent}"
        );
    }
}

#[test]
fn the_trouble_is_seen_in_the_history_and_by_the_doctor() {
    let torn = r#"print {"type":"assistant","message":{"content":[{"ty"#;
    let (stage, _) = read(&[&*said("I work."), torn, torn, torn].join("\n"));
    let history = stage.world.run(stage.world.descartes(["loop", "history"]));
    assert!(
        history.stdout().contains("3 lines not understood"),
        "{history}"
    );
    let doctor = stage.world.run(stage.world.descartes(["doctor"]));
    let told = doctor.stdout();
    let line = told.lines().find(|line| line.contains("not understood"));
    assert!(line.is_some_and(|line| line.contains("claude")), "{doctor}");
    // A loop that was read well is not mentioned.
    let (stage, _) = read(&[said(CLAIM), result(CLAIM)].join("\n"));
    let doctor = stage.world.run(stage.world.descartes(["doctor"]));
    assert!(!doctor.stdout().contains("not understood"), "{doctor}");
}
