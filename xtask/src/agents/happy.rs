//! Two iterations: the first claims too early and is refused by the gate, the second is proven.

use std::time::{Duration, Instant};

use descartes_testkit::real_clis::{Options, RealCli};
use serde_json::{Value, json};

use super::stage::{Build, STARTUP_TIMEOUT, Stage, must};
use super::table::{Table, seconds};
use crate::lab::Form;

/// Runs it.
pub fn run(stage: &Build<'_>, form: Form, table: &mut Table) -> Result<(), String> {
    let mut stage = stage("loop");
    let turns = json!([
        {"text": "I begin.", "tool": {"shell": "echo one > work.txt"}, "usage": {"input": 900, "output": 40}},
        {"text": "It is written.\n\n<promise>COMPLETE</promise>", "usage": {"input": 950, "output": 20}},
        {"text": "The gate is right.", "tool": {"shell": "echo two >> work.txt"}, "usage": {"input": 990, "output": 40}},
        {"text": "Now it is.\n\n<promise>COMPLETE</promise>", "usage": {"input": 999, "output": 20}},
    ]);
    stage.script(turns, &Options::default())?;
    let program = stage.program()?;
    let command = stage.start(&program, &["--verify", "grep two work.txt", "-m", "5"])?;
    let began = Instant::now();
    let seen = match stage.world.watch(command, STARTUP_TIMEOUT * 2) {
        Ok(run) => judge(&stage, form, run.code(), began.elapsed())
            .map_err(|wrong| format!("{wrong}\n{run}")),
        Err(so_far) => Err(format!("did not end\n{so_far}")),
    };
    table.add(stage.cli.name(), "loop", seen);
    Ok(())
}

fn judge(
    stage: &Stage<'_>,
    form: Form,
    code: Option<i32>,
    time: Duration,
) -> Result<String, String> {
    must(code == Some(0), || format!("exit code {code:?}"))?;
    let verdicts: Vec<Value> = stage
        .records("iteration_finished")
        .iter()
        .map(|record| record["verdict"].clone())
        .collect();
    must(verdicts == ["refused", "promise"], || {
        format!("verdicts {verdicts:?}")
    })?;
    must(stage.world.read("work.txt") == "one\ntwo\n", || {
        "the tool calls did not write the file".to_owned()
    })?;
    must(stage.requests() == 4, || {
        format!("{} requests", stage.requests())
    })?;
    let told = |words: &str| stage.prompts().iter().any(|text| text.contains(words));
    must(
        told("This is iteration 2") || told("grep two work.txt"),
        || format!("the refusal did not reach the agent: {:?}", stage.prompts()),
    )?;
    for record in stage.records("agent_ended") {
        judge_receipt(stage.cli, &record)?;
    }
    stage.gone(form.deadline(Duration::from_secs(2)))?;
    Ok(format!("2 iterations in {}", seconds(time)))
}

fn judge_receipt(cli: RealCli, facts: &Value) -> Result<(), String> {
    let output = facts["tokens"]["output"].as_u64();
    must(output == Some(60), || {
        format!("60 tokens were written, {} told", facts["tokens"])
    })?;
    must(facts["trouble"].is_null(), || {
        format!("{} lines not understood", facts["trouble"])
    })?;
    let tells_cost = matches!(cli, RealCli::Claude | RealCli::OpenCode);
    must(facts["cost"].is_object() == tells_cost, || {
        format!("cost {}", facts["cost"])
    })
}
