use super::*;
use crate::agent::{Profiles, ResultState, RunSummary};

fn map(text: &str) -> JsonlMap {
    toml::from_str(text).unwrap()
}

fn read(map: &JsonlMap, stream: &str) -> (Vec<AgentEvent>, Trouble) {
    let mut parser = JsonlParser::boxed(map).unwrap();
    let mut events = Vec::new();
    parser.push(stream.as_bytes(), &mut events);
    parser.finish(&mut events);
    (events, parser.trouble().clone())
}

fn summary(map: &JsonlMap, stream: &str) -> RunSummary {
    let (events, trouble) = read(map, stream);
    let mut summary = RunSummary::default();
    events.iter().for_each(|event| summary.push(event));
    summary.finish(&trouble);
    summary
}

#[test]
fn a_path_alone_is_enough_for_the_text() {
    let map = map("text = \"message.content\"");
    let stream = "{\"message\":{\"content\":\"Hello.\"}}\nnoise\n{\"other\":1}\n{\"message\":{\"content\":\"Done.\"}}\n";
    let got = summary(&map, stream);
    assert_eq!(got.final_text(), "Done.");
    assert_eq!(
        (got.trouble.noise_lines, got.trouble.unknown_events),
        (1, 1)
    );
    assert_eq!(got.result(), ResultState::Missing);
}

#[test]
fn rules_apply_to_their_events_alone() {
    let map = map(r#"
        ignore = ["ping", "debug.*"]
        text = [{ kind = "say", when = { role = "assistant" }, path = "text" }, { kind = "shout", path = "text" }]
        session = { kind = "hello", id = "id", model = "m" }
        tool = { kind = "call", id = "id", name = "name", input = "input" }
        tool_result = { kind = "return", id = "id", exit = "code", output = "out" }
        usage = { kind = "say", input = "tokens.in", output = "tokens.out", cost = "usd" }
        retry = { kind = "again", attempt = "n", max = "of", after_ms = "ms", why = "why" }
        limit = { kind = "limit", until = "reset", words = "words" }
        error = { kind = "oops", message = "text", status = "status" }
        result = { kind = "bye", ok = "status", text = "last", turns = "turns" }
    "#);
    let stream = r#"{"type":"hello","id":"s1","m":"big"}
{"type":"ping"}
{"type":"debug.trace","text":"<promise>COMPLETE</promise>"}
{"type":"say","role":"user","text":"<promise>COMPLETE</promise>"}
{"type":"say","role":"assistant","text":"Looking.","tokens":{"in":5,"out":2},"usd":0.5}
{"type":"call","id":"c1","name":"shell","input":{"command":"ls"}}
{"type":"return","id":"c1","code":3,"out":"x"}
{"type":"again","n":1,"of":3,"ms":250,"why":"429"}
{"type":"shout","text":"All done."}
{"type":"bye","status":"success","turns":2}"#;
    let (events, trouble) = read(&map, stream);
    assert!(trouble.is_none(), "{trouble:?}");
    let retry = AgentEvent::Retry {
        attempt: Some(1),
        max: Some(3),
        after: Some(Duration::from_millis(250)),
        why: "429".into(),
    };
    assert!(events.contains(&retry));
    let got = summary(&map, stream);
    assert_eq!(got.result(), ResultState::Ok);
    assert_eq!(got.final_text(), "All done.");
    assert_eq!((got.model.as_deref(), got.tool_calls), (Some("big"), 1));
    assert!(matches!(&events[0], AgentEvent::Session { id: Some(id), .. } if id == "s1"));
    assert!(matches!(events.last(), Some(AgentEvent::Result(result)) if result.turns == Some(2)));
    // The echo of the prompt has no tokens: nothing is made up for it.
    assert_eq!(
        (got.usage().total(), got.cost()),
        (Some(7), Some(MicroUsd(500_000)))
    );

    let limited = summary(
        &map,
        r#"{"type":"limit","reset":1794706358,"words":"usage limit reached"}"#,
    );
    let now = "2026-11-15T00:30:00Z".parse().unwrap();
    let told = limited.limit(now, &jiff::tz::TimeZone::UTC).unwrap();
    assert_eq!(
        (told.kind, told.until),
        (LimitKind::Usage, Timestamp::from_second(1_794_706_358).ok())
    );
    let failed = summary(&map, r#"{"type":"oops","text":"slow down","status":429}"#).result();
    assert!(
        matches!(failed, ResultState::Error(failure) if failure.kind == FailureKind::Provider(LimitKind::Rate))
    );
    let bad = summary(&map, r#"{"type":"bye","status":"error"}"#).result();
    assert!(matches!(bad, ResultState::Error(_)));
}

#[test]
fn copilots_stream_is_read_by_its_profile() {
    let profiles = Profiles::builtin();
    let map = profiles.get("copilot").unwrap().jsonl.clone().unwrap();
    let stream = r#"{"type":"session.tools_updated","data":{"model":"m"}}
{"type":"user.message","data":{"content":"Say <promise>COMPLETE</promise>"}}
{"type":"model.call_start","data":{"turnId":"0"}}
{"type":"assistant.message_delta","data":{"messageId":"a","deltaContent":"I will te"}}
{"type":"assistant.message_delta","data":{"messageId":"a","deltaContent":"st."}}
{"type":"assistant.message","data":{"messageId":"a","content":"I will test.","toolRequests":[{"name":"bash"}]}}
{"type":"tool.execution_start","data":{"toolCallId":"c","toolName":"bash","arguments":{"command":"cargo test"}}}
{"type":"tool.execution_complete","data":{"toolCallId":"c","shellExecution":{"exitCode":0},"success":true,"result":{"content":"ok"}}}
{"type":"assistant.message_delta","data":{"messageId":"b","deltaContent":"All done. <promise>C"}}
{"type":"assistant.message_delta","data":{"messageId":"b","deltaContent":"OMPLETE</promise>"}}
{"type":"assistant.message","data":{"messageId":"b","content":"All done. <promise>COMPLETE</promise>"}}
{"type":"result","sessionId":"s","exitCode":0,"usage":{"premiumRequests":0}}"#;
    let got = summary(&map, stream);
    assert_eq!(got.final_text(), "All done. <promise>COMPLETE</promise>");
    assert_eq!((got.result(), got.tool_calls), (ResultState::Ok, 1));
    assert!(got.trouble.is_none());
    let limited = r#"{"type":"assistant.turn_retry","data":{"reason":"rate_limit"}}
{"type":"session.error","data":{"errorType":"rate_limit","message":"Last error: 429 Please try again in 5s.","statusCode":429}}
{"type":"result","exitCode":1}"#;
    let now = "2026-11-15T00:30:00Z".parse().unwrap();
    let told = summary(&map, limited)
        .limit(now, &jiff::tz::TimeZone::UTC)
        .unwrap();
    assert_eq!(
        (told.kind, told.until.unwrap().to_string().as_str()),
        (LimitKind::Rate, "2026-11-15T00:30:05Z")
    );
}

#[test]
fn gemini_in_one_document_is_read_by_its_profile() {
    let profiles = Profiles::builtin();
    let format = profiles.get("gemini").unwrap().format.clone().unwrap();
    let map = format.values["json"].jsonl.clone().unwrap();
    let stream = "Loaded credentials.\n{\n  \"session_id\": \"s\",\n  \"response\": \"All done.\",\n  \"stats\": {\"models\": {\"a\": {\"tokens\": {\"prompt\": 10, \"candidates\": 5, \"total\": 15, \"cached\": 0}}, \"b\": {\"tokens\": {\"prompt\": 20, \"candidates\": 7, \"total\": 30, \"cached\": 4}}}}\n}\n";
    let got = summary(&map, stream);
    assert_eq!(
        (got.final_text(), got.result()),
        ("All done.", ResultState::Ok)
    );
    let usage = got.usage();
    assert_eq!(
        (usage.input, usage.cache_read, usage.output, usage.reasoning),
        (Some(26), Some(4), Some(15), Some(3))
    );
    let failed = summary(
        &map,
        "{\"session_id\":\"s\",\"error\":{\"message\":\"boom\"}}",
    )
    .result();
    assert!(matches!(failed, ResultState::Error(failure) if failure.message == "boom"));
    for broken in [
        "{\"response\": \"<promise>COMPLETE</promise>\"",
        "nothing",
        "",
    ] {
        assert_eq!(summary(&map, broken).final_text(), "", "{broken}");
    }
}

#[test]
fn deltas_without_ids_end_at_a_tool_call() {
    let map = map("delta = \"d\"\ntool = { name = \"t\" }");
    let stream =
        "{\"d\":\"One\"}\n{\"d\":\" two\"}\n{\"t\":\"ls\"}\n{\"d\":\"Th\"}\n{\"d\":\"ree\"}";
    assert_eq!(summary(&map, stream).final_text(), "Three");
}

#[test]
fn a_result_known_by_its_fields_must_have_one() {
    let map = map("text = \"say\"\nresult.ok = \"ok\"");
    assert!(!summary(&map, "{\"say\":\"x\"}").has_result());
    assert!(summary(&map, "{\"say\":\"x\"}\n{\"ok\":true}").has_result());
    let map = self::map("result = { when = { role = \"agent\" }, text = \"last\" }");
    assert!(!summary(&map, "{\"role\":\"agent\",\"say\":\"x\"}").has_result());
    assert!(summary(&map, "{\"role\":\"agent\",\"last\":\"x\"}").has_result());
}

#[test]
fn tools_are_timed_and_denials_are_told() {
    let map = map(r#"
        kind = ["type", "what"]
        tool = { kind = "tool/begin", id = "id", name = "name", input = "input", at = "ms" }
        tool_result = { kind = "tool/end", id = "id", output = "out", exit_after = "exit ", error = "why", denied = "not allowed", at = "ms" }
        warning = { kind = "note", unless = { level = "debug" }, message = "text" }
        result = { kind = "end", outcome = "failed" }
        usage = { kind = "end", input = "tokens", scope = "result" }
    "#);
    let stream = r#"{"type":"tool","what":"begin","id":"a","name":"shell","input":{"command":"ls"},"ms":1794706358000}
{"type":"tool","what":"end","id":"a","out":"exit 3 at once","ms":1794706358250}
{"type":"tool","what":"begin","id":"b","name":"write","input":{"path":"x"}}
{"type":"tool","what":"end","id":"b","why":"This is not allowed here."}
{"type":"note","level":"debug","text":"hm"}
{"type":"note","text":"mind the gap"}
{"type":"end","tokens":7}"#;
    let (events, trouble) = read(&map, stream);
    assert!(trouble.is_none(), "{trouble:?}");
    let answered = AgentEvent::ToolResult {
        id: "a".into(),
        outcome: ToolOutcome::Exit(3),
        duration: Some(Duration::from_millis(250)),
        preview: "exit 3 at once".into(),
    };
    assert_eq!(events[1], answered);
    let denied = |tool: &str| {
        AgentEvent::Denied(Denial {
            tool: tool.into(),
            rule: tool.into(),
        })
    };
    assert_eq!(events[3], denied("write"));
    let warnings = events
        .iter()
        .filter(|event| matches!(event, AgentEvent::Warning { .. }));
    assert_eq!(warnings.count(), 1);
    let got = summary(&map, stream);
    assert!(matches!(got.result(), ResultState::Error(_)));
    assert_eq!(got.usage().input, Some(7));
}

#[test]
fn a_star_stands_for_anything_and_a_tool_may_tell_that_it_failed() {
    let map = map(r#"
        text = { kind = "say", path = "t" }
        tool = { kind = "call", id = "id", name = "n" }
        tool_result = { kind = "back", id = "id", failed = "wrong", output = "o", exit_after = "[code " }
        error = { kind = "say", when = { t = "Ran into: *" }, message = "t" }
    "#);
    let stream = r#"{"type":"call","id":"a","n":"shell"}
{"type":"back","id":"a","wrong":true}
{"type":"call","id":"b","n":"shell"}
{"type":"back","id":"b","wrong":false}
{"type":"call","id":"c","n":"shell"}
{"type":"back","id":"c","o":"[code 7]\nmore"}
{"type":"say","t":"I Ran into: nothing"}"#;
    let (events, _) = read(&map, stream);
    let outcomes: Vec<ToolOutcome> = events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::ToolResult { outcome, .. } => Some(*outcome),
            _ => None,
        })
        .collect();
    let want = [
        ToolOutcome::of(None, Some(false)),
        ToolOutcome::of(None, Some(true)),
        ToolOutcome::of(Some(7), None),
    ];
    assert_eq!(outcomes, want);
    assert_eq!(summary(&map, stream).result(), ResultState::Missing);
    let failed = summary(
        &map,
        r#"{"type":"say","t":"Ran into: Rate limit exceeded"}"#,
    );
    assert!(
        matches!(failed.result(), ResultState::Error(failure) if failure.kind == FailureKind::Provider(LimitKind::Rate))
    );
    assert_eq!(failed.claim_text(), "");
}
