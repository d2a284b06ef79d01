//! How a run ended is told by its terminal event and its error flag together, never by its
//! exit code; what never ends is ended.

use std::time::{Duration, Instant};

use crate::stage::{Stage, recording, whole};

/// The loop ends as failed after one iteration whose reason holds `why`.
#[track_caller]
fn fails(agent: &str, script: &str, why: &str) {
    let stage = Stage::new();
    let run = stage.run(agent, script, &["--max-failures", "1"]);
    run.assert_code(7);
    let reason = stage.reason();
    assert_eq!(reason["type"], "agent_failed", "{reason}");
    let last = reason["last"].as_str().unwrap_or_default();
    assert!(last.contains(why), "{script}: {last}");
    assert!(stage.record("agent_ended")["claim"].is_null(), "{script}");
}

#[test]
fn an_error_in_the_stream_is_an_error_whatever_the_exit_code() {
    // Claude says `subtype: success` beside `is_error: true`.
    fails(
        "claude",
        &format!("{}\nexit 0", recording("claude-400")),
        "400",
    );
    // Gemini exits with 0 and says `status: error`.
    fails(
        "gemini",
        &format!("{}\nexit 0", recording("gemini-empty")),
        "empty",
    );
    fails("codex", &format!("{}\nexit 0", recording("codex-400")), "");
    fails(
        "opencode",
        &format!("{}\nexit 0", recording("opencode-400")),
        "",
    );
}

#[test]
fn an_agent_that_did_nothing_has_failed() {
    for agent in ["claude", "codex", "opencode"] {
        fails(
            agent,
            &whole(&format!("{agent}-empty")),
            "produced no output and did nothing",
        );
    }
    fails("claude", "exit 0", "produced no output and did nothing");
}

#[test]
fn a_cli_that_dies_before_its_stream_begins_is_quoted() {
    fails(
        "codex",
        "err error: unexpected argument '--jsonn' found\nexit 2",
        "unexpected argument",
    );
}

#[test]
fn what_was_promised_before_an_error_is_no_claim() {
    let script = r#"print {"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"<promise>COMPLETE</promise>"}]}}
print {"type":"result","subtype":"error_during_execution","is_error":true,"result":"it broke","session_id":"s"}
exit 0"#;
    fails("claude", script, "it broke");
}

#[test]
fn a_process_that_stays_after_its_result_is_ended_after_its_grace() {
    let stage = Stage::new();
    let script = format!("{}\nignore TERM\nhang", recording("claude-ok"));
    let began = Instant::now();
    let run = stage.run("claude", &script, &["-m", "1", "--kill-grace", "1s"]);
    run.assert_code(0);
    let took = began.elapsed();
    assert!(
        (Duration::from_secs(10)..Duration::from_secs(20)).contains(&took),
        "{took:?}"
    );
    assert_eq!(stage.record("agent_ended")["ended_by"], "result");
    stage.world.assert_no_survivors();
}

#[test]
fn an_agent_that_asks_and_asks_and_gets_nothing_is_given_up() {
    let stage = Stage::new();
    let script = format!("{}\nhang", recording("opencode-html"));
    let flags = ["--max-failures", "1", "--kill-grace", "1s"];
    stage.run("opencode", &script, &flags).assert_code(7);
    assert_eq!(stage.record("agent_ended")["ended_by"], "gave");
}

#[test]
fn an_agent_that_goes_in_circles_is_given_up() {
    let step = r#"print {"type":"step_start","sessionID":"s","part":{"messageID":"m${I}"}}"#;
    let words = r#"print {"type":"text","sessionID":"s","part":{"messageID":"m${I}","text":"a partial answer tha"}}"#;
    let overflow = r#"print {"type":"error","sessionID":"s","error":{"name":"ContextOverflowError","data":{"message":"Your input exceeds the context window of this model."}}}"#;
    let many = |lines: &[&str], times: usize| {
        let turn = |i: usize| lines.join("\n").replace("${I}", &i.to_string());
        (0..times).map(turn).collect::<Vec<_>>().join("\n") + "\nhang"
    };
    let cases = [
        (many(&[step, words], 40), "the same answer"),
        (many(&[step, words, overflow], 5), "context window"),
    ];
    for (script, why) in cases {
        let stage = Stage::new();
        let flags = ["--max-failures", "1", "--kill-grace", "1s"];
        stage.run("opencode", &script, &flags).assert_code(7);
        assert_eq!(stage.record("agent_ended")["ended_by"], "gave");
        let last = stage.reason()["last"].as_str().unwrap().to_owned();
        assert!(last.contains(why), "{last}");
    }
}

#[test]
fn a_silent_retry_that_only_the_log_tells_of_is_a_limit() {
    let stage = Stage::new();
    let script = "err timestamp=2026-11-15T06:45:09Z level=ERROR run=e0 message=\"stream error\" error.error=\"AI_APICallError: Rate limit reached for gpt-5 on tokens per min.\"\nhang";
    let flags = ["--idle-timeout", "2s", "--kill-grace", "1s"];
    let running = stage.spawn("opencode", script, &flags);
    let discarded = stage.await_record("run_discarded");
    assert_eq!(discarded["limit"]["kind"], "rate", "{discarded:#}");
    stage.await_record("wait_started");
    running.end();
}

#[test]
fn a_silent_agent_is_hung() {
    let stage = Stage::new();
    let script = format!("{} first 2\nhang", recording("codex-ok"));
    let flags = [
        "--max-failures",
        "1",
        "--idle-timeout",
        "2s",
        "--kill-grace",
        "1s",
    ];
    stage.run("codex", &script, &flags).assert_code(7);
    assert_eq!(stage.record("agent_ended")["ended_by"], "idle");
    assert!(stage.reason()["last"].as_str().unwrap().contains("hung"));
}

#[test]
fn a_denial_loop_ends_with_the_rule_to_add() {
    let stage = Stage::new();
    let run = stage.run("claude", &whole("claude-denied"), &["--max-failures", "2"]);
    run.assert_code(7);
    assert_eq!(stage.starts(), 2);
    let last = stage.reason()["last"].as_str().unwrap().to_owned();
    assert!(last.contains("Bash(echo hello > written.txt)"), "{last}");
    assert!(last.contains("--permissions"), "{last}");
}

#[test]
fn bad_streams_complete_nothing_and_the_trouble_is_on_record() {
    let noise = r#"print {"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"half
printf \xff\xfe\x00{"type":"result"\n
print {"type":"assistant","message":{"content":"not a list"}}
flood 3MB oneline
printf \n
print {"type":"never-seen","x":1}
print {"type":"assistant","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"I go on."}]}}
print {"type":"result","subtype":"success","is_error":false,"result":"I go on.","session_id":"s"}
print {"type":"result","subtype":"success","is_error":false,"result":"I go on.","session_id":"s"}"#;
    let stage = Stage::new();
    stage.run("claude", noise, &["-m", "1"]).assert_code(2);
    let ended = stage.record("agent_ended");
    assert!(ended["claim"].is_null(), "{ended:#}");
    assert!(
        ended["trouble"].as_u64().is_some_and(|lines| lines >= 1),
        "{ended:#}"
    );
}
