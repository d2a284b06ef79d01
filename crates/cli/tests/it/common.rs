//! What the tests share.

use std::path::{Path, PathBuf};
use std::process::Command;

use descartes_testkit::World;
use descartes_testkit::world::Finished;
use serde_json::Value;

/// An agent that claims at once.
pub const CLAIMS: &str = "promise";

/// `loop start` with this script and these flags; the prompt is `go`.
pub fn start_command(world: &World, script: &str, flags: &[&str]) -> Command {
    let agent = world.agent(script);
    let mut command = world.descartes(["loop", "start", "--command", &agent]);
    let own_prompt = flags
        .iter()
        .any(|flag| matches!(*flag, "-p" | "--prompt" | "--prompt-file"));
    if !own_prompt {
        command.args(["--prompt", "go"]);
    }
    command.args(flags);
    command
}

/// Runs `loop start` to its end.
#[track_caller]
pub fn start(world: &World, script: &str, flags: &[&str]) -> Finished {
    world.run(start_command(world, script, flags))
}

/// Runs any other command to its end.
#[track_caller]
pub fn descartes(world: &World, arguments: &[&str]) -> Finished {
    world.run(world.descartes(arguments))
}

/// The folder of the world's only loop.
#[track_caller]
pub fn loop_dir(world: &World) -> PathBuf {
    let loops = loops(world);
    assert_eq!(loops.len(), 1, "{loops:?}");
    loops[0].clone()
}

/// The folders of all loops of the world.
pub fn loops(world: &World) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(world.state().join("loops"));
    let mut found: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// The records of the world's only loop. A line without an end is still being written.
#[track_caller]
pub fn journal(world: &World) -> Vec<Value> {
    journal_in(&loop_dir(world))
}

/// The records of the loop of this folder. Its host may be in the middle of writing another.
#[track_caller]
pub fn journal_in(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("journal.jsonl")).unwrap();
    json_lines(&text[..text.rfind('\n').map_or(0, |end| end + 1)])
}

/// Every line as JSON.
#[track_caller]
pub fn json_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

/// The records of this kind.
#[track_caller]
pub fn events(world: &World, kind: &str) -> Vec<Value> {
    journal(world)
        .into_iter()
        .filter(|record| record["kind"] == kind)
        .collect()
}

/// The state file.
#[track_caller]
pub fn state(world: &World) -> Value {
    serde_json::from_str(&world.read(".descartes/loop-state.json")).unwrap()
}

/// A line of claude's stream: the final message, with what it cost.
pub fn claude_result(text: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"m","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}}}
{{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"{text}","session_id":"s","total_cost_usd":0.5,"usage":{{"input_tokens":600,"output_tokens":400}},"permission_denials":[]}}"#
    )
}

/// A script that prints these lines.
pub fn prints(lines: &str) -> String {
    lines
        .lines()
        .map(|line| format!("print {line}\n"))
        .collect()
}
