use super::*;
use crate::agent::ResultState;
use crate::agent::StreamKind;
use crate::agent::testing::{call, events, failed_tools, read, summary, text};

const OPENCODE: StreamKind = StreamKind::OpenCode;

fn line(kind: &str, part: &str) -> String {
    format!(
        r#"{{"type":"{kind}","timestamp":1794705711380,"sessionID":"ses_1","part":{{{part}}}}}"#
    )
}

fn said(message: &str, text: &str) -> String {
    line(
        "text",
        &format!(r#""messageID":"{message}","type":"text","text":"{text}""#),
    )
}

fn finished(reason: &str) -> String {
    line(
        "step_finish",
        &format!(
            r#""messageID":"m","reason":"{reason}","tokens":{{"total":159,"input":120,"output":21,"reasoning":9,"cache":{{"write":2,"read":7}}}},"cost":0.00027"#
        ),
    )
}

fn bash(status: &str, more: &str) -> String {
    line(
        "tool_use",
        &format!(
            r#""type":"tool","tool":"bash","callID":"c1","state":{{"status":"{status}","input":{{"command":"cargo test"}}{more}}}"#
        ),
    )
}

fn error(data: &str) -> String {
    format!(
        r#"{{"type":"error","timestamp":1794702328409,"sessionID":"ses_1","error":{{"name":"APIError","data":{{{data}}}}}}}"#
    )
}

fn run() -> String {
    [
        line("step_start", r#""messageID":"m1""#),
        said("m1", "I will test."),
        bash(
            "completed",
            r#","output":"ok","metadata":{"exit":1},"time":{"start":1000,"end":4200}"#,
        ),
        finished("tool-calls"),
        line("step_start", r#""messageID":"m2""#),
        line("reasoning", r#""messageID":"m2","text":"hm""#),
        said("m2", "All done."),
        said("m2", "<promise>COMPLETE</promise>"),
        finished("stop"),
    ]
    .join("\n")
}

#[test]
fn a_run_is_told_event_by_event() {
    let got = events(OPENCODE, &run());
    assert!(matches!(&got[0], AgentEvent::Session { id: Some(id), .. } if id == "ses_1"));
    assert_eq!(got[1], AgentEvent::Step);
    assert_eq!(got[2], text(0, Piece::Block, "I will test."));
    assert_eq!(got[3], call("c1", "bash", "$ cargo test"));
    let answered = AgentEvent::ToolResult {
        id: "c1".into(),
        outcome: ToolOutcome::Exit(1),
        duration: Some(Duration::from_millis(3200)),
        preview: "ok".into(),
    };
    assert_eq!(got[4], answered);
    let summary = summary(OPENCODE, &run());
    assert_eq!(summary.result(), ResultState::Ok);
    assert_eq!(
        summary.final_text(),
        "All done.\n<promise>COMPLETE</promise>"
    );
    let usage = summary.usage();
    assert_eq!(
        (usage.input, usage.output, usage.reasoning),
        (Some(240), Some(60), Some(18))
    );
    assert_eq!((usage.cache_read, usage.cache_write), (Some(14), Some(4)));
    assert_eq!(summary.cost(), Some(MicroUsd(540)));
}

#[test]
fn a_step_after_the_last_one_takes_the_result_back() {
    let more = format!("{}\n{}", run(), line("step_start", ""));
    assert!(!summary(OPENCODE, &more).has_result());
    let first: String = run().lines().take(4).collect::<Vec<_>>().join("\n");
    assert!(!summary(OPENCODE, &first).has_result());
}

#[test]
fn endless_steps_are_counted() {
    let loops = vec![line("step_start", ""); 50].join("\n");
    assert_eq!(summary(OPENCODE, &loops).empty_steps, 50);
}

#[test]
fn errors_tell_their_kind_and_when_to_come_back() {
    use LimitKind::*;
    let provider = FailureKind::Provider;
    let table = [
        (
            r#""message":"slow","statusCode":429,"responseHeaders":{"retry-after":"90"}"#,
            provider(Rate),
            Some("2026-11-15T00:26:58.409Z"),
        ),
        (
            r#""message":"The usage limit has been reached","statusCode":429,"responseHeaders":{"x-codex-primary-reset-at":"1794706240"}"#,
            provider(Usage),
            Some("2026-11-15T01:30:40Z"),
        ),
        (
            r#""message":"The usage limit has been reached","statusCode":429,"responseBody":"{\"error\":{\"resets_in_seconds\":3600}}""#,
            provider(Usage),
            Some("2026-11-15T01:25:28.409Z"),
        ),
        (
            r#""message":"The server had an error","statusCode":500,"isRetryable":true"#,
            provider(Overload),
            None,
        ),
        (
            r#""message":"Incorrect API key provided: x","statusCode":401"#,
            provider(Login),
            None,
        ),
        (
            r#""message":"{\"message\":\"Overloaded\",\"code\":\"overloaded\"}""#,
            provider(Overload),
            None,
        ),
        (
            r#""message":"odd","isRetryable":true"#,
            provider(Overload),
            None,
        ),
        (r#""message":"odd""#, FailureKind::Other, None),
    ];
    let now = "2026-11-15T00:30:00Z".parse().unwrap();
    for (data, kind, until) in table {
        let got = summary(OPENCODE, &error(data));
        assert!(
            matches!(got.result(), ResultState::Error(failure) if failure.kind == kind),
            "{data}"
        );
        let limit = got.limit(now, &jiff::tz::TimeZone::UTC);
        assert_eq!(
            limit.and_then(|told| told.until),
            until.map(|at| at.parse().unwrap()),
            "{data}"
        );
    }
    let auth = r#"{"type":"error","error":{"name":"ProviderAuthError","data":{}}}"#;
    assert!(
        matches!(summary(OPENCODE, auth).result(), ResultState::Error(failure) if failure.kind == provider(Login))
    );
}

#[test]
fn an_error_after_the_end_is_the_end() {
    let stream = format!("{}\n{}", run(), error(r#""message":"boom""#));
    assert!(matches!(
        summary(OPENCODE, &stream).result(),
        ResultState::Error(_)
    ));
}

#[test]
fn an_answer_cut_by_length_is_a_warning() {
    let stream = format!("{}\n{}", said("m1", "half an ans"), finished("length"));
    assert!(
        events(OPENCODE, &stream)
            .iter()
            .any(|event| matches!(event, AgentEvent::Warning { .. }))
    );
    assert_eq!(summary(OPENCODE, &stream).result(), ResultState::Ok);
    let filtered = summary(OPENCODE, &finished("content-filter")).result();
    assert!(matches!(filtered, ResultState::Error(_)));
}

#[test]
fn rejected_tools_are_denials() {
    let rejected = bash(
        "error",
        r#","error":"The user rejected permission to use this specific tool call.""#,
    );
    let got = summary(OPENCODE, &rejected);
    assert_eq!(
        (got.denials.len(), failed_tools(OPENCODE, &rejected)),
        (1, 1)
    );
    assert_eq!(got.denials[0].rule, "bash(cargo test)");
}

#[test]
fn unknown_kinds_are_counted() {
    let (_, trouble) = read(OPENCODE, &line("hologram", r#""text":"x""#));
    assert_eq!(trouble.unknown_kinds, ["hologram"]);
}
