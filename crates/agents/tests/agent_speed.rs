//! How fast the stream parsers read. To be run optimized, on a quiet machine:
//! `cargo test --release -p descartes-agents --test agent_speed -- --ignored --nocapture`
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a measurement reads the clock and the system, and fails by panicking"
)]

use std::time::Instant;

use descartes_agents::agent::{Profiles, StreamKind, parser};

const TARGET: f64 = 200.0;
const BYTES: usize = 200 * 1024 * 1024;
/// What may be added while 200 MB are read.
const MORE_MEMORY: f64 = 8.0;
const CHUNK: usize = 64 * 1024;

/// A tool's output as it stands in JSON: mostly words, an escape every line.
fn output(lines: usize) -> String {
    r#"test parser::tests::a_line_is_read ... ok\n"#.repeat(lines)
}

/// A turn of an agent: some words, a command, an output of some kilobytes, words again.
fn turn(agent: &str) -> String {
    let out = output(100);
    match agent {
        "claude" => format!(
            r#"{{"type":"assistant","message":{{"id":"m1","type":"message","role":"assistant","model":"big-1","content":[{{"type":"text","text":"I will run the tests and look at what they say."}}],"stop_reason":null,"usage":{{"input_tokens":1000,"cache_read_input_tokens":400,"output_tokens":1}}}},"parent_tool_use_id":null,"session_id":"0b71802f-b885-4618-b8d4-658f04cc2b45","uuid":"b42ff223-8a4d-4772-829f-a163956e367c"}}
{{"type":"assistant","message":{{"id":"m1","role":"assistant","model":"big-1","content":[{{"type":"tool_use","id":"t1","name":"Bash","input":{{"command":"cargo test"}}}}],"stop_reason":null,"usage":{{"input_tokens":1000,"output_tokens":1}}}},"parent_tool_use_id":null}}
{{"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"t1","type":"tool_result","content":"{out}","is_error":false}}]}},"parent_tool_use_id":null,"tool_use_result":{{"stdout":"{out}","stderr":"","interrupted":false}}}}
"#
        ),
        "codex" => format!(
            r#"{{"type":"item.completed","item":{{"id":"item_1","type":"agent_message","text":"I will run the tests and look at what they say."}}}}
{{"type":"item.started","item":{{"id":"item_2","type":"command_execution","command":"/bin/bash -lc 'cargo test'","aggregated_output":"","exit_code":null,"status":"in_progress"}}}}
{{"type":"item.completed","item":{{"id":"item_2","type":"command_execution","command":"/bin/bash -lc 'cargo test'","aggregated_output":"{out}","exit_code":0,"status":"completed"}}}}
"#
        ),
        "gemini" => format!(
            r#"{{"type":"message","timestamp":"2026-11-15T01:21:28.921Z","role":"assistant","content":"I will run the tests","delta":true}}
{{"type":"message","timestamp":"2026-11-15T01:21:28.939Z","role":"assistant","content":" and look at what they say.","delta":true}}
{{"type":"tool_use","timestamp":"2026-11-15T01:21:29.228Z","tool_name":"run_shell_command","tool_id":"c1","parameters":{{"command":"cargo test"}}}}
{{"type":"tool_result","timestamp":"2026-11-15T01:21:29.402Z","tool_id":"c1","status":"success","output":"{out}"}}
"#
        ),
        "opencode" => format!(
            r#"{{"type":"step_start","timestamp":1794705711380,"sessionID":"ses_1","part":{{"id":"prt_1","messageID":"msg_1","sessionID":"ses_1","type":"step-start"}}}}
{{"type":"text","timestamp":1794705711381,"sessionID":"ses_1","part":{{"id":"prt_2","messageID":"msg_1","sessionID":"ses_1","type":"text","text":"I will run the tests and look at what they say."}}}}
{{"type":"tool_use","timestamp":1794705711586,"sessionID":"ses_1","part":{{"type":"tool","tool":"bash","callID":"c1","state":{{"status":"completed","input":{{"command":"cargo test"}},"output":"{out}","metadata":{{"output":"{out}","exit":0}},"time":{{"start":1,"end":2}}}}}}}}
{{"type":"step_finish","timestamp":1794705711684,"sessionID":"ses_1","part":{{"reason":"tool-calls","tokens":{{"input":600,"output":50,"reasoning":0,"cache":{{"write":0,"read":400}}}},"cost":0.00085}}}}
"#
        ),
        "copilot" => format!(
            r#"{{"type":"assistant.message_delta","data":{{"messageId":"06a34baf","deltaContent":"I will run the tests"}},"ephemeral":true,"id":"3cbbe017","timestamp":"2026-11-15T01:06:56.754Z"}}
{{"type":"assistant.message","data":{{"messageId":"06a34baf","content":"I will run the tests","toolRequests":[]}},"id":"bfb661f2"}}
{{"type":"tool.execution_start","data":{{"toolCallId":"c1","toolName":"bash","arguments":{{"command":"cargo test"}}}}}}
{{"type":"tool.execution_complete","data":{{"toolCallId":"c1","shellExecution":{{"exitCode":0}},"success":true,"result":{{"content":"{out}","detailedContent":"{out}"}}}}}}
"#
        ),
        _ => output(100).replace("\\n", "\n"),
    }
}

fn resident_mib() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: f64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096.0 / f64::from(1 << 20)
}

#[test]
#[ignore = "a measurement, for an optimized build on a quiet machine"]
fn streams_are_read_at_200_megabytes_a_second() {
    let profiles = Profiles::builtin();
    let table = [
        ("claude", StreamKind::Claude),
        ("codex", StreamKind::Codex),
        ("gemini", StreamKind::Gemini),
        ("opencode", StreamKind::OpenCode),
        ("copilot", StreamKind::Jsonl),
        ("text", StreamKind::Text),
    ];
    let mut slow = Vec::new();
    for (agent, kind) in table {
        let jsonl = profiles
            .get(agent)
            .and_then(|profile| profile.jsonl.as_ref());
        let mut parser = parser(kind, jsonl).unwrap();
        let turn = turn(agent);
        let stream = turn.repeat(8 * 1024 * 1024 / turn.len() + 1);
        let mut events = Vec::new();
        // The first round takes what it needs; from then on nothing may grow.
        for chunk in stream.as_bytes().chunks(CHUNK) {
            parser.push(chunk, &mut events);
            events.clear();
        }
        let before = resident_mib();
        let (mut read, mut told) = (0, 0);
        let start = Instant::now();
        while read < BYTES {
            for chunk in stream.as_bytes().chunks(CHUNK) {
                parser.push(chunk, &mut events);
                told += events.len();
                events.clear();
            }
            read += stream.len();
        }
        let rate = read as f64 / 1e6 / start.elapsed().as_secs_f64();
        let grown = (resident_mib() - before).max(0.0);
        println!("{agent}: {rate:.0} MB/s, {grown:.1} MiB more memory, {told} events");
        assert!(grown < MORE_MEMORY, "{agent}: {grown} MiB more");
        assert!(
            parser.trouble().is_none(),
            "{agent}: {:?}",
            parser.trouble()
        );
        if rate < TARGET {
            slow.push(agent);
        }
    }
    assert!(slow.is_empty(), "slower than {TARGET} MB/s: {slow:?}");
}
