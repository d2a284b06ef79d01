use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::agent::testing::{call, events, read, summary, text};
use crate::agent::{Denial, MicroUsd, ResultState, StreamKind, UsageScope};
use crate::provider_limit::{LimitKind, ReportedLimit};

const CLAUDE: StreamKind = StreamKind::Claude;

const INIT: &str = r#"{"type":"system","subtype":"init","cwd":"/home/me/p","session_id":"s1","tools":["Bash"],"model":"big-1","claude_code_version":"2.1.325"}"#;

fn said(id: &str, block: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"{id}","model":"big-1","role":"assistant","content":[{block}],"stop_reason":null,"usage":{{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":1}}}},"parent_tool_use_id":null,"session_id":"s1"}}"#
    )
}

fn words(id: &str, words: &str) -> String {
    said(id, &format!(r#"{{"type":"text","text":"{words}"}}"#))
}

fn bash(id: &str, call: &str, command: &str) -> String {
    said(
        id,
        &format!(
            r#"{{"type":"tool_use","id":"{call}","name":"Bash","input":{{"command":"{command}"}}}}"#
        ),
    )
}

fn answered(call: &str, content: &str, is_error: bool) -> String {
    format!(
        r#"{{"type":"user","message":{{"role":"user","content":[{{"type":"tool_result","content":{content},"is_error":{is_error},"tool_use_id":"{call}"}}]}},"parent_tool_use_id":null,"tool_use_result":{{"stdout":"x"}}}}"#
    )
}

/// The newest version puts the type near the line's end.
fn ended(fields: &str) -> String {
    format!(
        r#"{{"duration_ms":9,"session_id":"s1","total_cost_usd":0.0125,"usage":{{"input_tokens":20,"cache_read_input_tokens":8,"cache_creation_input_tokens":0,"output_tokens":7}},"modelUsage":{{"big-1":{{"inputTokens":20,"outputTokens":7,"cacheReadInputTokens":8,"cacheCreationInputTokens":0}},"small-1":{{"inputTokens":3,"outputTokens":2}}}},{fields},"type":"result","uuid":"u"}}"#
    )
}

const DONE: &str = r#""subtype":"success","is_error":false,"api_error_status":null,"num_turns":2,"result":"All done. <promise>COMPLETE</promise>""#;

fn stream(lines: &[String]) -> String {
    lines.join("\n")
}

fn usage(input: u64, cache_read: u64) -> AgentEvent {
    AgentEvent::Usage {
        scope: UsageScope::Step,
        usage: Usage {
            input: Some(input),
            cache_read: Some(cache_read),
            ..Usage::default()
        },
        cost: None,
    }
}

#[test]
fn a_run_is_told_event_by_event() {
    let stream = stream(&[
        INIT.into(),
        words("m1", "I will look."),
        bash("m1", "t1", "cargo test"),
        answered("t1", r#""Exit code 101\nfailed""#, true),
        words("m2", "All done. <promise>COMPLETE</promise>"),
        ended(DONE),
    ]);
    let got = events(CLAUDE, &stream);
    let session = AgentEvent::Session {
        id: Some("s1".into()),
        model: Some("big-1".into()),
        version: Some("2.1.325".into()),
    };
    let failed = AgentEvent::ToolResult {
        id: "t1".into(),
        outcome: ToolOutcome::Exit(101),
        duration: None,
        preview: "Exit code 101\nfailed".into(),
    };
    let want = vec![
        session,
        usage(10, 4),
        text(0, Piece::Block, "I will look."),
        call("t1", "Bash", "$ cargo test"),
        failed,
        usage(10, 4),
        text(1, Piece::Block, "All done. <promise>COMPLETE</promise>"),
    ];
    assert_eq!(got[..7], want);
    let summary = summary(CLAUDE, &stream);
    assert_eq!(summary.result(), ResultState::Ok);
    assert_eq!(
        summary.final_text(),
        "All done. <promise>COMPLETE</promise>"
    );
    assert_eq!(summary.usage().total(), Some(40));
    assert_eq!(summary.cost(), Some(MicroUsd(12_500)));
}

#[test]
fn the_result_alone_is_a_run_too() {
    let one = summary(CLAUDE, &ended(DONE));
    assert_eq!((one.result(), one.did_nothing()), (ResultState::Ok, false));
    let list = summary(CLAUDE, &format!("[{INIT},{}]", ended(DONE)));
    assert_eq!(list.final_text(), "All done. <promise>COMPLETE</promise>");
}

#[test]
fn errors_are_told_by_the_flag_and_not_by_the_subtype() {
    use LimitKind::*;
    let provider = FailureKind::Provider;
    let table = [
        (
            r#""subtype":"success","is_error":true,"api_error_status":401,"result":"Invalid API key · Fix external API key""#,
            provider(Login),
        ),
        (
            r#""subtype":"success","is_error":true,"api_error_status":429,"result":"API Error: Request rejected (429) · slow down""#,
            provider(Rate),
        ),
        (
            r#""subtype":"success","is_error":true,"api_error_status":429,"result":"You've hit your limit · resets 1:32am (UTC)""#,
            provider(Usage),
        ),
        (
            r#""subtype":"success","is_error":true,"api_error_status":529,"result":"API Error: 529 Overloaded""#,
            provider(Overload),
        ),
        (
            r#""subtype":"success","is_error":true,"api_error_status":null,"result":"API Error: the 64000 output token maximum was exceeded""#,
            FailureKind::MaxTokens,
        ),
        (
            r#""subtype":"error_max_turns","is_error":true,"errors":["Reached maximum number of turns (1)"]"#,
            FailureKind::OwnLimit,
        ),
        (
            r#""subtype":"error_max_budget_usd","is_error":true"#,
            FailureKind::OwnLimit,
        ),
        (
            r#""subtype":"error_during_execution","is_error":true,"errors":["[ede_diagnostic] x=1"]"#,
            FailureKind::Interrupted,
        ),
        // Said by neither: no success is made up.
        (
            r#""result":"All done. <promise>COMPLETE</promise>""#,
            FailureKind::Other,
        ),
        (
            r#""subtype":"success","is_error":false,"api_error_status":500,"result":"x""#,
            provider(Overload),
        ),
    ];
    for (fields, want) in table {
        match summary(CLAUDE, &ended(fields)).result() {
            ResultState::Error(failure) => {
                assert_eq!(failure.kind, want, "{fields}");
                assert!(!failure.message.contains("ede_diagnostic"));
            }
            other => panic!("{fields}: {other:?}"),
        }
    }
}

#[test]
fn words_of_claude_itself_are_not_the_models() {
    let error = r#"{"type":"assistant","message":{"id":"x","model":"<synthetic>","content":[{"type":"text","text":"API Error: 500 Internal server error"}]},"error":"server_error"}"#;
    let remark = r#"{"type":"assistant","message":{"id":"y","model":"<synthetic>","content":[{"type":"text","text":"No response requested."}]}}"#;
    let got = events(CLAUDE, &format!("{error}\n{remark}"));
    assert!(
        matches!(&got[0], AgentEvent::Failed(failure) if failure.kind == FailureKind::Provider(LimitKind::Overload))
    );
    assert!(matches!(&got[1], AgentEvent::Warning { .. }));
    assert!(summary(CLAUDE, error).did_nothing());
}

#[test]
fn pieces_and_the_whole_are_one_text() {
    let event = |event: &str| {
        format!(r#"{{"type":"stream_event","event":{event},"parent_tool_use_id":null}}"#)
    };
    let delta = |text: &str| {
        event(&format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#
        ))
    };
    let block = || {
        event(
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        )
    };
    let thought = event(
        r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"hm"}}"#,
    );
    let lines = [
        event(r#"{"type":"message_start","message":{"id":"m1","usage":{"input_tokens":3}}}"#),
        event(r#"{"type":"content_block_start","content_block":{"type":"thinking"}}"#),
        thought,
        said("m1", r#"{"type":"thinking","thinking":"hm"}"#),
        block(),
        delta("One "),
        delta("two. "),
        words("m1", "One two. "),
        block(),
        delta("<promise>COM"),
        delta("PLETE</promise>"),
        words("m1", "<promise>COMPLETE</promise>"),
        event(
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":30}}"#,
        ),
        event(r#"{"type":"message_stop"}"#),
    ];
    let got = summary(CLAUDE, &stream(&lines));
    assert_eq!(got.final_text(), "One two. \n<promise>COMPLETE</promise>");
    assert_eq!(got.usage().output, Some(30));
    let thoughts = events(CLAUDE, &stream(&lines));
    let thoughts = thoughts
        .iter()
        .filter(|event| matches!(event, AgentEvent::Thinking { .. }));
    assert_eq!(thoughts.count(), 1);
    // A piece that was lost is made good by the whole.
    let torn = [
        lines[0].clone(),
        block(),
        delta("<promise>COM"),
        words("m1", "<promise>COMPLETE</promise>"),
    ];
    assert!(
        summary(CLAUDE, &stream(&torn))
            .final_text()
            .ends_with("\n<promise>COMPLETE</promise>")
    );
}

#[test]
fn agents_of_the_agent_do_not_speak_for_it() {
    let sub = words("m9", "<promise>COMPLETE</promise>").replace(
        r#""parent_tool_use_id":null"#,
        r#""parent_tool_use_id":"t1""#,
    );
    let got = summary(CLAUDE, &stream(&[words("m1", "Let me ask."), sub.clone()]));
    assert_eq!(got.final_text(), "Let me ask.");
    assert!(
        events(CLAUDE, &sub)
            .iter()
            .any(|event| matches!(event, AgentEvent::Subagent { .. }))
    );
}

#[test]
fn limits_and_warnings_come_with_their_reset() {
    let event =
        |info: &str| format!(r#"{{"type":"rate_limit_event","rate_limit_info":{{{info}}}}}"#);
    let at = |second| Timestamp::from_second(second).ok();
    let rejected = event(
        r#""status":"rejected","resetsAt":1794706358,"rateLimitType":"five_hour","isUsingOverage":false"#,
    );
    let told = |words: &str| ReportedLimit {
        kind: LimitKind::Usage,
        until: at(1_794_706_358),
        words: words.into(),
    };
    assert_eq!(
        events(CLAUDE, &rejected),
        [AgentEvent::Limit {
            told: told("five hour limit reached")
        }]
    );
    let near = event(
        r#""status":"allowed_warning","resetsAt":1794706358,"rateLimitType":"seven_day","utilization":0.92"#,
    );
    let warning = AgentEvent::LimitWarning {
        told: told("seven day limit is near"),
        used_percent: Some(92),
    };
    assert_eq!(events(CLAUDE, &near), [warning]);
    for quiet in [
        r#""status":"allowed""#,
        r#""status":"rejected","isUsingOverage":true"#,
    ] {
        assert!(events(CLAUDE, &event(quiet)).is_empty());
    }
    let now = "2026-11-15T00:30:00Z".parse().unwrap();
    let limited = r#""subtype":"success","is_error":true,"api_error_status":429,"result":"You've hit your limit · resets 1:32am (UTC)""#;
    let limit =
        summary(CLAUDE, &stream(&[rejected, ended(limited)])).limit(now, &jiff::tz::TimeZone::UTC);
    assert_eq!(limit.map(|told| told.until), Some(at(1_794_706_358)));
}

#[test]
fn a_limits_text_in_a_tools_result_is_no_limit() {
    let read = answered(
        "t1",
        r#""You've hit your limit · resets 1:32am (UTC)""#,
        false,
    );
    let got = summary(CLAUDE, &stream(&[bash("m1", "t1", "cat notes"), read]));
    let now = "2026-11-15T00:30:00Z".parse().unwrap();
    assert_eq!(got.limit(now, &jiff::tz::TimeZone::UTC), None);
    assert_eq!(got.result(), ResultState::Missing);
}

#[test]
fn denials_are_told_once_with_the_rule_that_helps() {
    let refused = r#""Claude requested permissions to use Bash, but you haven't granted it yet.""#;
    let denied = r#""subtype":"success","is_error":false,"result":"x","permission_denials":[{"tool_name":"Bash","tool_use_id":"t1","tool_input":{"command":"npm install"}},{"tool_name":"Write","tool_use_id":"t2","tool_input":{"file_path":"a"}}]"#;
    let now =
        r#"{"type":"system","subtype":"permission_denied","tool_name":"Bash","tool_use_id":"t1"}"#;
    let lines = [
        bash("m1", "t1", "npm install"),
        now.into(),
        answered("t1", refused, true),
        ended(denied),
    ];
    let got = summary(CLAUDE, &stream(&lines));
    let denial = |tool: &str, rule: &str| Denial {
        tool: tool.into(),
        rule: rule.into(),
    };
    assert_eq!(
        got.denials,
        [
            denial("Bash", "Bash(npm install)"),
            denial("Write", "Write")
        ]
    );
}

#[test]
fn retries_are_told() {
    let line = r#"{"type":"system","subtype":"api_retry","attempt":2,"max_retries":10,"retry_delay_ms":1148.5,"error_status":429,"error":"rate_limit"}"#;
    let want = AgentEvent::Retry {
        attempt: Some(2),
        max: Some(10),
        after: Some(Duration::from_millis(1148)),
        why: "429 rate_limit".into(),
    };
    assert_eq!(events(CLAUDE, line), [want]);
}

#[test]
fn an_interruption_without_result_is_an_error() {
    let line = r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#;
    let result = summary(CLAUDE, &stream(&[words("m1", "Working."), line.into()])).result();
    assert!(
        matches!(result, ResultState::Error(failure) if failure.kind == FailureKind::Interrupted)
    );
}

#[test]
fn a_prompt_that_is_repeated_is_not_the_agents() {
    let echo = r#"{"type":"user","message":{"role":"user","content":"Say <promise>COMPLETE</promise>"},"isReplay":true}"#;
    let block = r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"Say <promise>COMPLETE</promise>"}]}}"#;
    assert!(events(CLAUDE, &format!("{echo}\n{block}")).is_empty());
}

#[test]
fn what_is_not_known_is_counted_and_passed_over() {
    let lines = [
        r#"{"type":"brand_new","x":[1,2]}"#.to_owned(),
        r#"{"type":"system","subtype":"brand_new"}"#.to_owned(),
        said(
            "m1",
            r#"{"type":"hologram","text":"<promise>COMPLETE</promise>"}"#,
        ),
        r#"{"no":"type"}"#.to_owned(),
        r#"{"type":"assistant","message":"a string"}"#.to_owned(),
        r#"{"type":["list"],"message":{"content":7}}"#.to_owned(),
        "plain words".to_owned(),
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"cut"#.to_owned(),
        words("m2", "Still here."),
    ];
    let (_, trouble) = read(CLAUDE, &stream(&lines));
    assert_eq!(
        (
            trouble.unknown_events,
            trouble.noise_lines,
            trouble.bad_lines
        ),
        (5, 1, 1)
    );
    assert_eq!(
        trouble.unknown_kinds,
        ["brand_new", "system/brand_new", "assistant/hologram", ""]
    );
    assert_eq!(summary(CLAUDE, &stream(&lines)).final_text(), "Still here.");
}

#[test]
fn calls_of_cursor_are_read_too() {
    let started = r#"{"type":"tool_call","subtype":"started","call_id":"c1","tool_call":{"shellToolCall":{"args":{"command":"ls"}}}}"#;
    let completed = r#"{"type":"tool_call","subtype":"completed","call_id":"c1","tool_call":{"shellToolCall":{"args":{"command":"ls"},"result":{"success":{"exitCode":2}}}}}"#;
    let got = events(CLAUDE, &format!("{started}\n{completed}"));
    assert_eq!(got[0], call("c1", "shell", "$ ls"));
    assert!(matches!(
        &got[1],
        AgentEvent::ToolResult {
            outcome: ToolOutcome::Exit(2),
            ..
        }
    ));
}
