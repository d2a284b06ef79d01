//! M13: who is called stuck, after how many iterations, and who is not; and what a provider's
//! limit costs.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::lab::{Lab, Row, Rows, Trial, Trouble, Verdict};

/// `--stall-after`; a loop is stopped at twice as many.
const AFTER: u64 = 2;

/// More than any verdict needs.
const MOST: &str = "9";

/// What must come of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truth {
    /// It is stuck: said after so many iterations.
    Stuck,
    /// It works: never said.
    Works,
    /// The contract takes any change of the tree for progress; a person may not.
    Change,
}

/// Where it works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Git,
    Folder,
}

struct Agent {
    what: &'static str,
    script: &'static str,
    gate: Option<&'static str>,
    place: Place,
    truth: Truth,
}

const fn agent(what: &'static str, script: &'static str, truth: Truth) -> Agent {
    Agent {
        what,
        script,
        gate: None,
        place: Place::Git,
        truth,
    }
}

const AGENTS: [Agent; 10] = [
    agent(
        "says the same every time",
        "print still looking",
        Truth::Stuck,
    ),
    agent(
        "says something else every time, does nothing",
        "print ${PID}",
        Truth::Stuck,
    ),
    agent("is back at once", "", Truth::Stuck),
    Agent {
        place: Place::Folder,
        ..agent(
            "says the same, without git",
            "print still looking",
            Truth::Stuck,
        )
    },
    agent(
        "commits every time",
        "append work ${PID}\ngit-commit more",
        Truth::Works,
    ),
    agent("writes every time", "append work ${PID}", Truth::Works),
    Agent {
        place: Place::Folder,
        ..agent(
            "writes every time, without git",
            "append work ${PID}",
            Truth::Works,
        )
    },
    Agent {
        gate: Some("test -f never"),
        ..agent(
            "writes every time, the same gate is red",
            "append work ${PID}\npromise",
            Truth::Works,
        )
    },
    agent(
        "turns one line to and fro",
        "sh if [ -f a ]; then rm a; else touch a; fi",
        Truth::Change,
    ),
    agent(
        "changes a time in a file, and nothing else",
        "sh date +%N > when",
        Truth::Change,
    ),
];

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let rounds = lab.form.pick(1, 3);
    let mut rows = Vec::new();
    for agent in &AGENTS {
        rows.push(stuck(lab, agent, rounds)?);
    }
    for cli in ["claude", "gemini", "opencode"] {
        rows.push(limited(lab, cli, rounds)?);
    }
    rows.push(told_by_a_tool(lab, rounds)?);
    Ok(rows)
}

fn stuck(lab: &Lab, agent: &Agent, rounds: u64) -> Result<Row, Trouble> {
    let mut lost = Vec::new();
    let mut seen = Vec::new();
    for _ in 0..rounds {
        let trial = Trial::new(lab);
        if agent.place == Place::Git {
            trial.world.git_init();
        }
        let after = AFTER.to_string();
        let mut flags = vec!["--stall-after", &after, "--max-iterations", MOST];
        flags.extend(agent.gate.into_iter().flat_map(|gate| ["--verify", gate]));
        let ended = trial.run(trial.start(agent.script, &flags))?;
        let iterations = trial.events("iteration_finished").len() as u64;
        let right = match agent.truth {
            Truth::Stuck => ended.code() == Some(4) && iterations == 2 * AFTER,
            Truth::Works => ended.code() == Some(2),
            Truth::Change => matches!(ended.code(), Some(2 | 4)),
        };
        seen.push((ended.code(), iterations));
        if !right {
            lost.push(format!("{iterations} iterations; {ended}"));
        }
    }
    let stalls = seen.iter().filter(|(code, _)| *code == Some(4)).count();
    let iterations = seen.last().map_or(0, |(_, iterations)| *iterations);
    let mut row = Row::count("M13", format!("agent {}", agent.what), rounds, &lost);
    row.ours = match stalls {
        0 => format!("goes on (all {iterations} iterations)"),
        _ => format!("called stalled after {iterations} iterations"),
    };
    (row.floor, row.bar) = match agent.truth {
        Truth::Stuck => ("–".to_owned(), format!("stalled after {}", 2 * AFTER)),
        Truth::Works => ("–".to_owned(), "goes on".to_owned()),
        Truth::Change => ("–".to_owned(), "–".to_owned()),
    };
    row.raw = json!({ "seen": seen, "lost": lost });
    if agent.truth == Truth::Change && lost.is_empty() {
        row.verdict = Verdict::Shown;
    }
    Ok(row)
}

fn done(cli: &str) -> &'static str {
    match cli {
        "claude" => {
            r#"{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"<promise>COMPLETE</promise>","session_id":"s","total_cost_usd":0,"usage":{"input_tokens":1,"output_tokens":1}}"#
        }
        "gemini" => concat!(
            r#"{"type":"init","session_id":"s","model":"m"}"#,
            "\n",
            r#"{"type":"message","role":"assistant","content":"<promise>COMPLETE</promise>","delta":true}"#,
            "\n",
            r#"{"type":"result","status":"success","stats":{"total_tokens":2,"input_tokens":1,"output_tokens":1,"cached":0}}"#
        ),
        _ => concat!(
            r#"{"type":"text","timestamp":1,"sessionID":"s","part":{"id":"p","messageID":"m","sessionID":"s","type":"text","text":"<promise>COMPLETE</promise>","time":{"start":1,"end":2}}}"#,
            "\n",
            r#"{"type":"step_finish","timestamp":1,"sessionID":"s","part":{"id":"q","messageID":"m","sessionID":"s","reason":"stop","type":"step-finish","tokens":{"input":1,"output":1,"reasoning":0,"cache":{"read":0,"write":0}},"cost":0}}"#
        ),
    }
}

/// Nothing is counted, and the agent is asked again when the limit ends, to the second.
fn limited(lab: &Lab, cli: &str, rounds: u64) -> Result<Row, Trouble> {
    let (mut lost, mut late) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let trial = Trial::new(lab);
        trial.world.write("done.jsonl", format!("{}\n", done(cli)));
        let script = format!(
            "if-file met stream done.jsonl\nif-file met exit 0\ntouch met\nstream-limit {cli} 3s"
        );
        let flags = [
            "--backend",
            cli,
            "--permissions",
            "edit",
            "--sandbox",
            "off",
            "--max-iterations",
            "1",
        ];
        let ended = trial.run(trial.start(&script, &flags))?;
        let counted = trial.events("iteration_finished").len();
        let runs = trial.events("run_started");
        let until = trial.events("run_discarded");
        let at = |value: Option<&Value>, key: &str| -> Option<Timestamp> {
            value?[key].as_str()?.parse().ok()
        };
        let asked = at(runs.get(1), "at").zip(at(until.first(), "retry_at"));
        match asked {
            Some((asked, reset)) if counted == 1 && ended.code() == Some(0) => {
                late.push(asked.duration_since(reset).as_secs_f64());
            }
            _ => lost.push(format!("{counted} iterations counted; {ended}")),
        }
    }
    let worst = late.iter().copied().fold(0.0, f64::max);
    if late.iter().any(|late| *late < 0.0) {
        lost.push(format!("asked again before the reset: {late:?}"));
    }
    let what = format!("{cli} meets its provider's limit for 3 s");
    let mut row = Row::count("M13", what, rounds, &lost);
    if row.verdict == Verdict::Met {
        row.verdict = lab.form.judge(worst <= 1.0, || {
            format!("asked again {worst:.2} s after the reset")
        });
    }
    row.ours = format!("0 iterations counted, asked again {worst:.2} s after the reset");
    (row.floor, row.bar) = ("0 s".to_owned(), "0 counted, within 1 s".to_owned());
    row.raw = json!({ "late_s": late, "lost": lost });
    Ok(row)
}

/// The words of a limit in a tool's result are nobody's limit.
fn told_by_a_tool(lab: &Lab, rounds: u64) -> Result<Row, Trouble> {
    let mut lost = Vec::new();
    for _ in 0..rounds {
        let trial = Trial::new(lab);
        let tool = r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"You've hit your limit · resets 5pm (UTC)"}]},"session_id":"s"}"#;
        trial
            .world
            .write("done.jsonl", format!("{tool}\n{}\n", done("claude")));
        let flags = ["--backend", "claude", "--permissions", "edit"];
        let ended = trial.run(trial.start("stream done.jsonl", &flags))?;
        let waits = trial.events("wait_started").len();
        if ended.code() != Some(0) || waits > 0 {
            lost.push(format!("{waits} waits; {ended}"));
        }
    }
    Ok(Row::count(
        "M13",
        "a tool's result has the words of a limit",
        rounds,
        &lost,
    ))
}
