//! What people see of an agent that is understood: its words, a line a tool, thoughts on request,
//! tokens and cost as they come.

use descartes_testkit::eventually;
use descartes_testkit::world::Finished;

use crate::stage::{SOON, Stage, recording};

/// A run whose tool takes a moment, fails, and is followed by words.
const WITH_A_TOOL: &str = r#"print {"type":"assistant","message":{"id":"m","role":"assistant","model":"big","content":[{"type":"thinking","thinking":"Hm, the tests first."},{"type":"text","text":"I look."}],"usage":{"input_tokens":1200,"output_tokens":1}}}
print {"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cargo test"}}],"usage":{"input_tokens":1200,"output_tokens":1}}}
sleep 1200ms
print {"type":"user","message":{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":"Exit code 1\nfailed","is_error":true}]}}
print {"type":"assistant","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"It is red."}],"usage":{"input_tokens":1300,"output_tokens":1}}}
print {"type":"result","subtype":"success","is_error":false,"result":"It is red.","session_id":"s","total_cost_usd":0.25,"usage":{"input_tokens":2500,"output_tokens":60}}"#;

fn shown(flags: &[&str]) -> (Stage, Finished) {
    let stage = Stage::new();
    let flags = [&["-m", "1"], flags].concat();
    let run = stage.run("claude", WITH_A_TOOL, &flags);
    (stage, run)
}

#[test]
fn a_tool_is_a_line_with_its_exit_and_its_time() {
    let stage = Stage::new();
    // Its time begins to count when the call is there to be seen, however busy the machine is.
    let script = WITH_A_TOOL.replace("sleep 1200ms", "wait-file called\nsleep 1200ms");
    let shown = stage.world.root().join("shown");
    let mut command = stage.command("claude", &script, &["-m", "1"]);
    let mut run = command
        .stdout(std::fs::File::create(&shown).unwrap())
        .spawn()
        .unwrap();
    let out = || std::fs::read_to_string(&shown).unwrap();
    eventually("the call", SOON, || out().contains("$ cargo test"));
    stage.world.write("called", "");
    run.wait().unwrap();
    let out = out();
    let line = out.lines().find(|line| line.starts_with("$ cargo test"));
    let line = line.unwrap_or_else(|| panic!("{out}"));
    let told = line.strip_prefix("$ cargo test  exit 1  ").unwrap_or(line);
    let took: f64 = told.trim_end_matches(" s").parse().expect(line);
    assert!((1.2..60.0).contains(&took), "{line}");
    let words = out.find("I look.").zip(out.find("It is red."));
    assert!(words.is_some_and(|(a, b)| a < b), "{out}");
}

#[test]
fn tokens_and_cost_are_told_while_they_are_spent_and_at_the_end() {
    let (_, run) = shown(&[]);
    let out = run.stdout();
    let first = out.find("[descartes] used so far: 1.2k tokens\n");
    assert!(first.is_some() && first < out.find("agent ended"), "{run}");
    assert!(out.contains("exit code 0, 2.6k tokens, $0.25"), "{run}");
}

#[test]
fn thoughts_are_shown_on_request_live_and_in_logs() {
    let (stage, run) = shown(&[]);
    assert!(!run.stdout().contains("Hm, the tests"), "{run}");
    let logs = |flags: &[&str]| {
        let mut command = stage.world.descartes(["loop", "logs", "1"]);
        command.args(flags);
        stage.world.run(command).stdout()
    };
    assert!(!logs(&[]).contains("Hm, the tests"));
    for flag in ["--thinking", "--show-thinking"] {
        assert!(logs(&[flag]).contains("~ Hm, the tests first."));
    }
    let (_, run) = shown(&["--show-thinking"]);
    assert!(run.stdout().contains("~ Hm, the tests first."), "{run}");
}

#[test]
fn recorded_thoughts_of_every_agent_that_tells_them_are_shown() {
    for agent in ["claude", "codex"] {
        let stage = Stage::new();
        let script = recording(&format!("{agent}-thinking"));
        let run = stage.run(agent, &script, &["-m", "1", "--show-thinking"]);
        assert!(
            run.stdout().lines().any(|line| line.starts_with("~ ")),
            "{agent}: {run}"
        );
    }
}
