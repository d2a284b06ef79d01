use super::*;
use crate::agent::testing::{call, events, failed_tools, read, summary, text};
use crate::agent::{FailureKind, ResultState, StreamKind};
use crate::provider_limit::LimitKind;

const CODEX: StreamKind = StreamKind::Codex;

const RUN: &str = r#"{"type":"thread.started","thread_id":"t-1"}
{"type":"item.completed","item":{"id":"item_0","type":"error","message":"Model metadata not found."}}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_1","type":"reasoning","text":"hm"}}
{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"I will test."}}
{"type":"item.started","item":{"id":"item_3","type":"command_execution","command":"/bin/bash -lc 'cargo test'","aggregated_output":"","exit_code":null,"status":"in_progress"}}
{"type":"item.completed","item":{"id":"item_3","type":"command_execution","command":"/bin/bash -lc 'cargo test'","aggregated_output":"<promise>COMPLETE</promise>","exit_code":101,"status":"failed"}}
{"type":"item.completed","item":{"id":"item_4","type":"file_change","changes":[{"path":"src/a.rs","kind":"update"},{"path":"b","kind":"add"}],"status":"completed"}}
{"type":"item.completed","item":{"id":"item_5","type":"agent_message","text":"All done. <promise>COMPLETE</promise>"}}
{"type":"turn.completed","usage":{"input_tokens":2200,"cached_input_tokens":900,"output_tokens":70,"reasoning_output_tokens":9}}
"#;

#[test]
fn a_run_is_told_event_by_event() {
    let got = events(CODEX, RUN);
    assert!(matches!(&got[0], AgentEvent::Session { id: Some(id), .. } if id == "t-1"));
    assert!(matches!(&got[1], AgentEvent::Warning { .. }));
    assert_eq!(got[2], AgentEvent::Step);
    assert_eq!(got[4], text(0, Piece::Block, "I will test."));
    assert_eq!(got[5], call("item_3", "shell", "$ cargo test"));
    assert!(matches!(
        &got[6],
        AgentEvent::ToolResult {
            outcome: ToolOutcome::Exit(101),
            ..
        }
    ));
    assert_eq!(got[7], call("item_4", "patch", "edit src/a.rs, b"));
    assert!(matches!(
        &got[8],
        AgentEvent::ToolResult {
            outcome: ToolOutcome::Ok,
            ..
        }
    ));
    let summary = summary(CODEX, RUN);
    assert_eq!(summary.result(), ResultState::Ok);
    assert_eq!(
        summary.final_text(),
        "All done. <promise>COMPLETE</promise>"
    );
    let usage = summary.usage();
    assert_eq!(
        (usage.input, usage.cache_read, usage.output, usage.reasoning),
        (Some(1300), Some(900), Some(70), Some(9))
    );
    assert_eq!((summary.cost(), summary.tool_calls), (None, 2));
}

#[test]
fn reconnecting_is_a_retry_and_no_error() {
    let line = |message: &str| format!(r#"{{"type":"error","message":"{message}"}}"#);
    let again = line("Reconnecting... 2/5 (last status: 429 Too Many Requests)");
    let want = AgentEvent::Retry {
        attempt: Some(2),
        max: Some(5),
        after: None,
        why: "last status: 429 Too Many Requests".into(),
    };
    assert_eq!(events(CODEX, &again), [want]);
    let recovered = format!("{again}\n{RUN}");
    assert_eq!(summary(CODEX, &recovered).result(), ResultState::Ok);
    assert_eq!(summary(CODEX, &again).result(), ResultState::Missing);
}

#[test]
fn failed_turns_tell_why() {
    use LimitKind::*;
    let provider = FailureKind::Provider;
    let table = [
        (
            "You’ve hit your usage limit. Upgrade to Pro or try again at 1:18 AM.",
            provider(Usage),
            Some("2026-11-15T01:18:00Z"),
        ),
        (
            "exceeded retry limit, last status: 429 Too Many Requests, request id: r",
            provider(Rate),
            None,
        ),
        (
            "rate limit exceeded: Please try again in 1.5s.",
            provider(Rate),
            Some("2026-11-15T00:30:01.5Z"),
        ),
        (
            "We’re currently experiencing high demand, which may cause temporary errors.",
            provider(Overload),
            None,
        ),
        (
            "unexpected status 401 Unauthorized: Incorrect API key provided: x",
            provider(Login),
            None,
        ),
        (
            "Quota exceeded. Check your plan and billing details.",
            provider(Usage),
            None,
        ),
        (
            "Incomplete response returned, reason: max_output_tokens",
            FailureKind::MaxTokens,
            None,
        ),
        (
            "stream disconnected before completion: connection reset",
            provider(Network),
            None,
        ),
    ];
    let now = "2026-11-15T00:30:00Z".parse().unwrap();
    for (message, kind, until) in table {
        let stream = format!(
            "{{\"type\":\"error\",\"message\":\"{message}\"}}\n{{\"type\":\"turn.failed\",\"error\":{{\"message\":\"{message}\"}}}}"
        );
        let got = summary(CODEX, &stream);
        assert!(
            matches!(got.result(), ResultState::Error(failure) if failure.kind == kind),
            "{message}"
        );
        let told = got.limit(now, &jiff::tz::TimeZone::UTC);
        assert_eq!(
            told.and_then(|told| told.until),
            until.map(|at| at.parse().unwrap()),
            "{message}"
        );
        assert!(got.did_nothing());
    }
}

#[test]
fn a_tool_that_runs_is_known_when_the_stream_ends() {
    let stream: String = RUN
        .lines()
        .take(6)
        .map(|line| format!("{line}\n"))
        .collect();
    let got = summary(CODEX, &stream);
    let running = call("item_3", "shell", "$ cargo test");
    assert_eq!(events(CODEX, &stream).last(), Some(&running));
    assert_eq!(got.result(), ResultState::Missing);
}

#[test]
fn declined_commands_are_denials() {
    let line = r#"{"type":"item.completed","item":{"id":"i","type":"command_execution","command":"rm x","status":"declined"}}"#;
    let got = summary(CODEX, line);
    assert_eq!((got.denials.len(), failed_tools(CODEX, line)), (1, 1));
}

#[test]
fn other_tools_are_calls_and_unknown_items_are_counted() {
    let stream = r#"{"type":"item.started","item":{"id":"a","type":"mcp_tool_call","server":"db","tool":"query","arguments":{"query":"select 1"},"status":"in_progress"}}
{"type":"item.completed","item":{"id":"a","type":"mcp_tool_call","server":"db","tool":"query","arguments":{},"status":"failed"}}
{"type":"item.completed","item":{"id":"b","type":"web_search","query":"rust"}}
{"type":"item.updated","item":{"id":"c","type":"todo_list","items":[]}}
{"type":"item.completed","item":{"id":"d","type":"hologram"}}
{"type":"turn.paused"}"#;
    let (got, trouble) = read(CODEX, stream);
    assert_eq!(got[0], call("a", "db.query", "db.query select 1"));
    assert!(matches!(
        &got[1],
        AgentEvent::ToolResult {
            outcome: ToolOutcome::Failed,
            ..
        }
    ));
    assert_eq!(got[2], call("b", "web_search", "search rust"));
    assert_eq!(trouble.unknown_kinds, ["item/hologram", "turn.paused"]);
}

#[test]
fn an_empty_turn_did_nothing() {
    let stream = r#"{"type":"turn.started"}
{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":0}}"#;
    let got = summary(CODEX, stream);
    assert!(got.did_nothing());
    assert_eq!(
        (got.result(), got.usage().output),
        (ResultState::Ok, Some(0))
    );
}
