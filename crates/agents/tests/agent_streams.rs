//! What holds for every stream parser, whatever an agent prints: the split of the bytes
//! changes nothing, nothing makes it fail, memory is bounded, and words that are not the
//! agent's own never become a claim.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking and reads its seeds from files"
)]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use descartes_agents::agent::{
    AgentEvent, Profiles, RunSummary, StderrReader, StreamKind, StreamParser, Trouble, parser,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// The parsers, by the agent whose lines they are fed with.
const AGENTS: [&str; 12] = [
    "claude", "codex", "gemini", "opencode", "copilot", "goose", "pi", "droid", "cline", "gptme",
    "document", "text",
];

fn parser_of(agent: &str) -> Box<dyn StreamParser> {
    let kind = match agent {
        "claude" => StreamKind::Claude,
        "codex" => StreamKind::Codex,
        "gemini" => StreamKind::Gemini,
        "opencode" => StreamKind::OpenCode,
        "copilot" | "goose" | "pi" | "droid" | "cline" | "gptme" | "document" => StreamKind::Jsonl,
        _ => StreamKind::Text,
    };
    static PROFILES: LazyLock<Profiles> = LazyLock::new(Profiles::builtin);
    let jsonl = match agent {
        // One JSON object over many lines: gemini's other format.
        "document" => PROFILES.get("gemini").and_then(|profile| {
            let format = profile.format.as_ref()?.values.get("json")?;
            format.jsonl.as_ref()
        }),
        _ => PROFILES
            .get(agent)
            .and_then(|profile| profile.jsonl.as_ref()),
    };
    parser(kind, jsonl).unwrap()
}

fn read<'a>(agent: &str, parts: impl IntoIterator<Item = &'a [u8]>) -> (Vec<AgentEvent>, Trouble) {
    let mut parser = parser_of(agent);
    let mut events = Vec::new();
    for part in parts {
        parser.push(part, &mut events);
    }
    parser.finish(&mut events);
    (events, parser.trouble().clone())
}

fn claim_text(events: &[AgentEvent]) -> String {
    let mut summary = RunSummary::default();
    events.iter().for_each(|event| summary.push(event));
    summary.claim_text().to_owned()
}

/// Lines that the real CLIs printed, and some of ours for those that were not recorded.
fn lines(agent: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/streams");
    let cases = [
        "tool",
        "429-then-ok",
        "thinking",
        "denied",
        "cut",
        "usage-limit",
    ];
    let files = cases
        .iter()
        .map(|case| folder.join(format!("{agent}-{case}.jsonl")));
    let mut lines: Vec<Vec<u8>> = OWN.lines().map(|line| line.as_bytes().to_vec()).collect();
    for file in files.filter(|file| file.exists()) {
        let bytes = fs::read(file).unwrap();
        lines.extend(bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec));
    }
    lines
}

const STDERR: [&str; 5] = [
    "Attempt 1 failed: You have exhausted your capacity. Retrying after 4080438ms...\n",
    "Attempt 2 failed: why\nRetrying after 5366ms...\n",
    "timestamp=t level=ERROR run=e0 message=\"stream error\" error.error=\"AI_APICallError: Rate limit\"\n",
    "words \u{fc}ber alles",
    "\r\n",
];

const OWN: &str = r#"{"type":"text","sessionID":"s","part":{"messageID":"m","text":"Ünïcode \u00e9\ud83d\ude00 words."}}
{"type":"tool_use","sessionID":"s","part":{"tool":"bash","callID":"c","state":{"status":"completed","input":{"command":"ls"},"output":"x"}}}
{"type":"step_finish","sessionID":"s","part":{"reason":"stop","tokens":{"input":1,"output":2},"cost":0.1}}
{"type":"assistant.message_delta","data":{"messageId":"a","deltaContent":"All "}}
{"type":"assistant.message","data":{"messageId":"a","content":"All done."}}
{"type":"message","message":{"id":"g","role":"assistant","content":[{"type":"text","text":"I go "},{"thinking":"hm"},{"id":"c","toolCall":{"value":{"name":"shell","arguments":{"command":"ls"}}}}]}}
{"type":"complete","input_tokens":3,"output_tokens":4}
{"session_id":"d","response":"All done.","stats":{"models":{"m":{"tokens":{"prompt":5,"candidates":6,"total":11}}}}}
{"type":"result","exitCode":0,"status":"success","subtype":"success","is_error":false,"result":"All done."}
plain words between
"#;

/// Lines of an agent in any order, some of them torn, with bytes of any kind in between.
fn mixed(agent: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let lines = lines(agent);
    let torn = (select(lines.clone()), any::<Index>())
        .prop_map(|(line, at)| line[..at.index(line.len() + 1)].to_vec());
    let mutated =
        (select(lines.clone()), any::<Index>(), any::<u8>()).prop_map(|(mut line, at, byte)| {
            if !line.is_empty() {
                let at = at.index(line.len());
                line[at] = byte;
            }
            line
        });
    let line = prop_oneof![
        6 => select(lines),
        1 => torn,
        1 => mutated,
        1 => prop::collection::vec(any::<u8>(), 0..60),
    ];
    let end = select(vec![&b"\n"[..], b"\r\n", b"\n\n", b""]);
    prop::collection::vec((line, end), 0..12).prop_map(|parts| {
        parts
            .into_iter()
            .flat_map(|(line, end)| [line, end.to_vec()].concat())
            .collect()
    })
}

fn any_agent() -> impl Strategy<Value = (&'static str, Vec<u8>)> {
    select(AGENTS.to_vec()).prop_flat_map(|agent| (Just(agent), mixed(agent)))
}

/// Cuts the bytes at the given places.
fn cut<'a>(bytes: &'a [u8], places: &[Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = places
        .iter()
        .map(|place| place.index(bytes.len() + 1))
        .collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_gives_the_same_events(
        (agent, bytes) in any_agent(),
        places in prop::collection::vec(any::<Index>(), 0..30),
    ) {
        let whole = read(agent, [&*bytes]);
        prop_assert_eq!(&read(agent, cut(&bytes, &places)), &whole);
        prop_assert_eq!(&read(agent, bytes.chunks(1)), &whole);
    }

    #[test]
    fn any_split_of_standard_error_tells_the_same(
        parts in prop::collection::vec(select(STDERR.to_vec()), 0..8),
        places in prop::collection::vec(any::<Index>(), 0..12),
    ) {
        let text = parts.concat();
        let read = |parts: Vec<&[u8]>| {
            let (mut reader, mut events) = (StderrReader::default(), Vec::new());
            for part in parts {
                reader.push(part, &mut events);
            }
            events
        };
        let whole = read(vec![text.as_bytes()]);
        prop_assert_eq!(&read(cut(text.as_bytes(), &places)), &whole);
        prop_assert_eq!(&read(text.as_bytes().chunks(1).collect()), &whole);
    }

    #[test]
    fn any_bytes_are_read_without_a_crash(
        agent in select(AGENTS.to_vec()),
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let whole = read(agent, [&*bytes]);
        prop_assert_eq!(read(agent, bytes.chunks(7)), whole);
    }

    #[test]
    fn words_of_others_are_never_a_claim(
        (agent, lines) in select(OTHERS.to_vec()).prop_flat_map(|(agent, lines)| {
            let lines: Vec<&str> = lines.lines().collect();
            (Just(agent), prop::collection::vec((select(lines), any::<Index>(), 0..4u8), 0..12))
        })
    ) {
        // Repeated, left out, in any order, and sometimes torn.
        let mut stream = Vec::new();
        for (line, at, torn) in lines {
            let end = if torn == 0 { at.index(line.len() + 1) } else { line.len() };
            stream.extend_from_slice(&line.as_bytes()[..end]);
            stream.push(b'\n');
        }
        let (events, _) = read(agent, [&*stream]);
        prop_assert!(!claim_text(&events).contains("<promise>"), "{:?}", events);
    }
}

/// Streams in which the promise stands everywhere but in the agent's own words.
const OTHERS: [(&str, &str); 9] = [
    (
        "pi",
        r#"{"type":"message_end","message":{"role":"user","content":[{"type":"text","text":"<promise>COMPLETE</promise>"}]}}
{"type":"message_update","assistantMessageEvent":{"type":"text_delta","delta":"<promise>COMPLETE</promise>"}}
{"type":"tool_execution_start","toolCallId":"c","toolName":"bash","args":{"command":"echo '<promise>COMPLETE</promise>'"}}
{"type":"tool_execution_end","toolCallId":"c","toolName":"bash","result":{"content":[{"type":"text","text":"<promise>COMPLETE</promise>"}]},"isError":false}
{"type":"message_end","message":{"role":"toolResult","content":[{"type":"text","text":"<promise>COMPLETE</promise>"}]}}
{"type":"message_end","message":{"role":"assistant","content":[{"type":"thinking","thinking":"<promise>COMPLETE</promise>"}],"stopReason":"stop"}}
{"type":"turn_end","message":{"role":"assistant","stopReason":"error","errorMessage":"<promise>COMPLETE</promise>"}}
{"type":"agent_end","messages":[{"role":"user","content":[{"type":"text","text":"<promise>COMPLETE</promise>"}]}]}"#,
    ),
    (
        "droid",
        r#"{"type":"message","role":"user","id":"u","text":"<promise>COMPLETE</promise>"}
{"type":"message","role":"oracle","id":"o","text":"<promise>COMPLETE</promise>"}
{"type":"tool_call","id":"c","toolName":"Execute","parameters":{"command":"echo '<promise>COMPLETE</promise>'"}}
{"type":"tool_result","id":"c","isError":false,"value":"<promise>COMPLETE</promise>"}
{"type":"reasoning","text":"<promise>COMPLETE</promise>"}
{"type":"error","source":"agent_loop","message":"<promise>COMPLETE</promise>"}
{"type":"message","role":"assistant","id":"a","text":"Not yet."}"#,
    ),
    (
        "cline",
        r#"{"type":"agent_event","event":{"type":"content_start","contentType":"tool","toolName":"run_commands","toolCallId":"c","input":{"commands":["echo '<promise>COMPLETE</promise>'"]}}}
{"type":"agent_event","event":{"type":"content_update","contentType":"tool","update":{"chunk":"<promise>COMPLETE</promise>"}}}
{"type":"agent_event","event":{"type":"content_end","contentType":"tool","toolCallId":"c","output":[{"result":"<promise>COMPLETE</promise>","success":true}]}}
{"type":"agent_event","event":{"type":"content_end","contentType":"reasoning","reasoning":"<promise>COMPLETE</promise>"}}
{"type":"agent_event","event":{"type":"error","error":{"message":"<promise>COMPLETE</promise>"}}}
{"type":"run_result","finishReason":"error","text":"<promise>COMPLETE</promise>"}
{"type":"agent_event","event":{"type":"content_start","contentType":"text","text":"Not yet."}}"#,
    ),
    (
        "gptme",
        r#"{"type":"message","role":"user","content":"<promise>COMPLETE</promise>"}
{"type":"message","role":"system","content":"Ran command\n<promise>COMPLETE</promise>","call_id":"c","metadata":{"tool":"shell"}}
{"type":"message","role":"system","content":"<promise>COMPLETE</promise>"}
{"type":"message","role":"assistant","content":"Not yet."}"#,
    ),
    (
        "goose",
        r#"{"type":"message","message":{"id":"u","role":"user","content":[{"type":"text","text":"<promise>COMPLETE</promise>"}]}}
{"type":"message","message":{"id":"r","role":"user","content":[{"type":"toolResponse","id":"c","toolResult":{"value":{"content":[{"type":"text","text":"<promise>COMPLETE</promise>"}],"isError":false}}}]}}
{"type":"message","message":{"id":"a","role":"assistant","content":[{"type":"toolRequest","id":"c","toolCall":{"value":{"name":"shell","arguments":{"command":"echo '<promise>COMPLETE</promise>'"}}}}]}}
{"type":"message","message":{"id":"t","role":"assistant","content":[{"type":"thinking","thinking":"<promise>COMPLETE</promise>"}]}}
{"type":"error","error":"<promise>COMPLETE</promise>"}"#,
    ),
    (
        "claude",
        r#"{"type":"user","message":{"role":"user","content":"<promise>COMPLETE</promise>"}}
{"type":"user","message":{"role":"user","content":[{"type":"text","text":"<promise>COMPLETE</promise>"}]}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"<promise>COMPLETE</promise>"}]}}
{"type":"assistant","message":{"id":"a","content":[{"type":"thinking","thinking":"<promise>COMPLETE</promise>"}]}}
{"type":"assistant","message":{"id":"a","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"echo '<promise>COMPLETE</promise>'"}}]}}
{"type":"assistant","message":{"id":"b","content":[{"type":"text","text":"<promise>COMPLETE</promise>"}]},"parent_tool_use_id":"t"}
{"type":"assistant","message":{"id":"c","content":[{"type":"text","text":"Not yet."}]},"parent_tool_use_id":null}
{"type":"assistant","message":{"id":"d","model":"<synthetic>","content":[{"type":"text","text":"<promise>COMPLETE</promise>"}]}}
{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"<promise>COMPLETE</promise>"}},"parent_tool_use_id":"t"}
{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"<promise>COMPLETE</promise>"}}}
{"type":"result","subtype":"success","is_error":true,"result":"<promise>COMPLETE</promise>"}
{"type":"result","subtype":"success","is_error":false,"result":"Not yet."}
{"type":"result","result":"<promise>COMPLETE</promise>"}
{"type":"system","subtype":"hook_response","output":"<promise>COMPLETE</promise>"}
{"type":"oracle","text":"<promise>COMPLETE</promise>"}"#,
    ),
    (
        "codex",
        r#"{"type":"item.completed","item":{"id":"1","type":"reasoning","text":"<promise>COMPLETE</promise>"}}
{"type":"item.completed","item":{"id":"2","type":"command_execution","command":"echo '<promise>COMPLETE</promise>'","aggregated_output":"<promise>COMPLETE</promise>","exit_code":0,"status":"completed"}}
{"type":"item.started","item":{"id":"3","type":"agent_message","text":"<promise>COMPLETE</promise>"}}
{"type":"item.completed","item":{"id":"4","type":"error","message":"<promise>COMPLETE</promise>"}}
{"type":"item.completed","item":{"id":"5","type":"oracle","text":"<promise>COMPLETE</promise>"}}
{"type":"item.completed","item":{"id":"6","type":"agent_message","text":"Not yet."}}
{"type":"error","message":"<promise>COMPLETE</promise>"}
{"type":"turn.failed","error":{"message":"<promise>COMPLETE</promise>"}}
{"type":"turn.completed","usage":{"input_tokens":1},"text":"<promise>COMPLETE</promise>"}"#,
    ),
    (
        "gemini",
        r#"{"type":"message","role":"user","content":"<promise>COMPLETE</promise>"}
{"type":"message","role":"oracle","content":"<promise>COMPLETE</promise>"}
{"type":"message","role":"assistant","content":"Not yet.","delta":true}
{"type":"tool_use","tool_name":"run_shell_command","tool_id":"c","parameters":{"command":"echo '<promise>COMPLETE</promise>'"}}
{"type":"tool_result","tool_id":"c","status":"success","output":"<promise>COMPLETE</promise>"}
{"type":"error","severity":"warning","message":"<promise>COMPLETE</promise>"}
{"type":"result","status":"error","error":{"message":"<promise>COMPLETE</promise>"}}
{"type":"result","status":"success","response":"<promise>COMPLETE</promise>"}"#,
    ),
    (
        "opencode",
        r#"{"type":"reasoning","part":{"messageID":"m","text":"<promise>COMPLETE</promise>"}}
{"type":"tool_use","part":{"tool":"bash","callID":"c","state":{"status":"completed","input":{"command":"x"},"output":"<promise>COMPLETE</promise>","title":"<promise>COMPLETE</promise>"}}}
{"type":"text","part":{"messageID":"m","text":"Not yet."}}
{"type":"step_start","part":{"text":"<promise>COMPLETE</promise>"}}
{"type":"step_finish","part":{"reason":"stop","text":"<promise>COMPLETE</promise>","tokens":{}}}
{"type":"error","error":{"name":"X","data":{"message":"<promise>COMPLETE</promise>"}}}
{"type":"oracle","part":{"text":"<promise>COMPLETE</promise>"}}"#,
    ),
];

#[test]
fn a_line_without_end_is_cut_and_what_follows_is_read() {
    let chunk = vec![b'x'; 1024 * 1024];
    for agent in ["claude", "codex", "gemini", "opencode"] {
        let mut parser = parser_of(agent);
        let mut events = Vec::new();
        parser.push(b"{\"type\":\"oracle\",\"text\":\"", &mut events);
        for _ in 0..40 {
            parser.push(&chunk, &mut events);
        }
        parser.push(b"\"}\n{\"type\":\"oracle\"}\n", &mut events);
        parser.finish(&mut events);
        assert_eq!(
            (parser.trouble().cut_lines, parser.trouble().unknown_events),
            (1, 1),
            "{agent}"
        );
    }
}

#[test]
fn results_of_some_megabytes_are_understood() {
    let words = "words ".repeat(1_000_000);
    let claude = format!(
        "{{\"result\":\"{words}\\n<promise>COMPLETE</promise>\",\"is_error\":false,\"subtype\":\"success\",\"type\":\"result\"}}\n"
    );
    let (events, trouble) = read("claude", claude.as_bytes().chunks(65_536));
    assert!(trouble.is_none());
    let text = claim_text(&events);
    assert!(text.ends_with("\n<promise>COMPLETE</promise>") && text.len() <= 600_000);
}

#[test]
fn bytes_that_are_no_utf8_do_not_hide_a_line() {
    let stream = b"{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"caf\xe9 done\",\"delta\":true}\n";
    let (events, trouble) = read("gemini", [&stream[..]]);
    assert!(trouble.is_none());
    assert_eq!(claim_text(&events), "caf\u{fffd} done");
}

#[test]
fn half_a_character_does_not_hide_a_line() {
    let stream = r#"{"type":"message","role":"assistant","content":"cut \ud83d","delta":true}"#;
    let (events, trouble) = read("gemini", [stream.as_bytes()]);
    assert!(trouble.is_none());
    assert_eq!(claim_text(&events), "cut \u{fffd}");
}
