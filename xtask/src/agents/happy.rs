//! Two iterations: the first claims too early and is refused by the gate, the second is proven.

use std::time::{Duration, Instant};

use descartes_testkit::real_clis::{Options, RealCli, Tells};
use serde_json::{Value, json};

use super::stage::{Build, STARTUP_TIMEOUT, Stage, must};
use super::table::{Table, seconds};
use crate::lab::Form;

/// Runs it.
pub fn run(stage: &Build<'_>, form: Form, table: &mut Table) -> Result<(), String> {
    let mut stage = stage("loop");
    let turns = turns(stage.cli);
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

/// Each iteration writes a file and claims; only the second writes what the gate wants.
fn turns(cli: RealCli) -> Value {
    let used = |mut turn: Value, input: u64, output: u64| {
        turn["usage"] = json!({"input": input, "output": output});
        turn
    };
    let run = |words: &str, text: &str, input: u64| {
        let claim = "\n\n<promise>COMPLETE</promise>";
        let write = |words: &str| cli.writes(words, "work.txt", text);
        match cli.requests_of_a_run() {
            1 => vec![used(write(&format!("{words}{claim}")), input, 60)],
            _ => vec![
                used(write(words), input, 40),
                used(cli.ends(&format!("So it is.{claim}")), input + 50, 20),
            ],
        }
    };
    let (first, second) = (
        run("I begin.", "one\n", 900),
        run("The gate is right.", "one\ntwo\n", 990),
    );
    json!([first, second].concat())
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
    must(
        stage.requests() == 2 * stage.cli.requests_of_a_run(),
        || format!("{} requests", stage.requests()),
    )?;
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
    let wanted = (cli.tells() != Tells::Nothing).then_some(60);
    must(output == wanted, || {
        format!("60 tokens were written, {} told", facts["tokens"])
    })?;
    must(facts["trouble"].is_null(), || {
        format!("{} lines not understood", facts["trouble"])
    })?;
    let tells_cost = cli.tells() == Tells::Cost;
    must(facts["cost"].is_object() == tells_cost, || {
        format!("cost {}", facts["cost"])
    })
}
