use std::time::Duration;

use super::*;
use crate::agent::testing::{call, events, failed_tools, read, summary, text};
use crate::agent::{ResultState, StreamKind};
use crate::provider_limit::LimitKind;

const GEMINI: StreamKind = StreamKind::Gemini;

const RUN: &str = r#"{"type":"init","timestamp":"2026-11-15T01:21:28.658Z","session_id":"s1","model":"auto"}
{"type":"message","timestamp":"2026-11-15T01:21:28.664Z","role":"user","content":"Say <promise>COMPLETE</promise> when done."}
{"type":"message","timestamp":"2026-11-15T01:21:28.921Z","role":"assistant","content":"I will te","delta":true}
{"type":"message","timestamp":"2026-11-15T01:21:28.939Z","role":"assistant","content":"st.","delta":true}
{"type":"tool_use","timestamp":"2026-11-15T01:21:29.000Z","tool_name":"run_shell_command","tool_id":"c1","parameters":{"command":"cargo test"}}
{"type":"tool_result","timestamp":"2026-11-15T01:21:32.200Z","tool_id":"c1","status":"success","output":"Command exited with code: 7"}
{"type":"message","timestamp":"2026-11-15T01:21:33.000Z","role":"assistant","content":"All done. <promise>C","delta":true}
{"type":"message","timestamp":"2026-11-15T01:21:33.100Z","role":"assistant","content":"OMPLETE</promise>","delta":true}
{"type":"result","timestamp":"2026-11-15T01:21:33.200Z","status":"success","stats":{"total_tokens":2294,"input_tokens":2210,"output_tokens":75,"cached":900,"input":1310,"models":{}}}
"#;

#[test]
fn a_run_is_told_event_by_event() {
    let got = events(GEMINI, RUN);
    assert_eq!(got[1], text(0, Piece::Delta, "I will te"));
    assert_eq!(got[3], call("c1", "run_shell_command", "$ cargo test"));
    let answered = AgentEvent::ToolResult {
        id: "c1".into(),
        outcome: ToolOutcome::Exit(7),
        duration: Some(Duration::from_millis(3200)),
        preview: "Command exited with code: 7".into(),
    };
    assert_eq!(got[4], answered);
    assert_eq!(got[5], text(1, Piece::Delta, "All done. <promise>C"));
    let summary = summary(GEMINI, RUN);
    assert_eq!(summary.result(), ResultState::Ok);
    assert_eq!(
        summary.final_text(),
        "All done. <promise>COMPLETE</promise>"
    );
    let usage = summary.usage();
    assert_eq!((usage.input, usage.cache_read), (Some(1310), Some(900)));
    assert_eq!((usage.output, usage.reasoning), (Some(84), Some(9)));
    assert_eq!(usage.total(), Some(2294));
}

#[test]
fn the_status_tells_errors_whatever_the_exit_code() {
    use LimitKind::*;
    let provider = FailureKind::Provider;
    let result = |error: &str| format!(r#"{{"type":"result","status":"error"{error}}}"#);
    let told = |message: &str| {
        result(&format!(
            r#","error":{{"type":"unknown","message":"{message}"}}"#
        ))
    };
    let severe = |message: &str| {
        format!(
            "{{\"type\":\"error\",\"severity\":\"error\",\"message\":\"{message}\"}}\n{}",
            result("")
        )
    };
    let table = [
        (
            told(
                r"[API Error: Resource has been exhausted (e.g. check quota).\nSuggested retry after 30s.]",
            ),
            provider(Rate),
            Some("2026-11-15T00:30:30Z"),
        ),
        (
            told("[API Error: You have exhausted your daily quota on this model.]"),
            provider(Usage),
            None,
        ),
        (
            told(
                r#"[API Error: {\"error\":{\"code\":500,\"message\":\"An internal error has occurred.\"}}]"#,
            ),
            provider(Overload),
            None,
        ),
        (
            told(r#"[API Error: {\"error\":{\"code\":400,\"message\":\"API key not valid.\"}}]"#),
            provider(Login),
            None,
        ),
        (
            severe("The model returned an empty response with no text or thoughts."),
            FailureKind::EmptyAnswer,
            None,
        ),
        (
            severe("Model stream ended without a finish reason."),
            provider(Network),
            None,
        ),
        (result(""), FailureKind::Other, None),
        (r#"{"type":"result"}"#.to_owned(), FailureKind::Other, None),
    ];
    let now = "2026-11-15T00:30:00Z".parse().unwrap();
    for (stream, kind, until) in table {
        let got = summary(GEMINI, &stream);
        assert!(
            matches!(got.result(), ResultState::Error(failure) if failure.kind == kind),
            "{stream}"
        );
        let limit = got.limit(now, &jiff::tz::TimeZone::UTC);
        assert_eq!(
            limit.and_then(|told| told.until),
            until.map(|at| at.parse().unwrap()),
            "{stream}"
        );
    }
}

#[test]
fn warnings_are_no_errors() {
    let warning = r#"{"type":"error","severity":"warning","message":"Loop detected"}"#;
    assert!(matches!(
        &events(GEMINI, warning)[..],
        [AgentEvent::Warning { .. }]
    ));
    assert_eq!(
        summary(GEMINI, &format!("{warning}\n{RUN}")).result(),
        ResultState::Ok
    );
}

#[test]
fn messages_in_whole_stand_for_themselves() {
    let stream = r#"{"type":"message","role":"assistant","content":"One."}
{"type":"message","role":"assistant","content":"Two."}"#;
    assert_eq!(summary(GEMINI, stream).final_text(), "Two.");
}

#[test]
fn denied_tools_are_told() {
    let stream = r#"{"type":"tool_use","tool_name":"write_file","tool_id":"c1","parameters":{"file_path":"a"}}
{"type":"tool_result","tool_id":"c1","status":"error","error":{"type":"x","message":"Tool execution denied by policy."}}"#;
    let got = summary(GEMINI, stream);
    assert_eq!((got.denials.len(), failed_tools(GEMINI, stream)), (1, 1));
    assert_eq!(got.denials[0].rule, "write_file");
}

#[test]
fn unknown_roles_and_kinds_are_counted() {
    let stream = r#"{"type":"message","role":"oracle","content":"<promise>COMPLETE</promise>"}
{"type":"thought","content":"x"}"#;
    let (_, trouble) = read(GEMINI, stream);
    assert_eq!(trouble.unknown_kinds, ["message/oracle", "thought"]);
    assert!(summary(GEMINI, stream).did_nothing());
}
