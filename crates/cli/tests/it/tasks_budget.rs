//! Budgets hold for all agents of a task loop together, while they work, and over dead hosts.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use descartes_testkit::{World, eventually};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::common::{events, journal_in, loops, start_command, state};
use crate::task_common::{graph, run, scud_project, start};

const SOON: Duration = descartes_testkit::PATIENCE;

/// Claude's backend, which tells what it uses.
const CLAUDE: [&str; 4] = ["--backend", "claude", "--permissions", "edit"];

/// A message in the middle of a run, with the tokens that it took: 1,000.
fn told(text: &str) -> String {
    format!(
        r#"print {{"type":"assistant","message":{{"id":"m","model":"small","role":"assistant","content":[{{"type":"text","text":"{text}"}}],"usage":{{"input_tokens":1000,"output_tokens":0}}}}}}"#
    )
}

/// The end of a run, with what it cost: 0.5 dollars.
fn result(text: &str) -> String {
    format!(
        r#"print {{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"{text}","session_id":"s","total_cost_usd":0.5,"usage":{{"input_tokens":1000,"output_tokens":0}},"permission_denials":[]}}"#
    )
}

fn project(tasks: u32) -> World {
    let rows: Vec<String> = (1..=tasks)
        .map(|task| format!("{task} | Task {task} | P | 1 | H"))
        .collect();
    scud_project(graph(&rows.join("\n"), ""))
}

/// The journal of the task loop, which is the oldest of the world.
fn journal(world: &World) -> Vec<Value> {
    journal_in(&loops(world)[0])
}

fn of_kind(world: &World, kind: &str) -> Vec<Value> {
    let records = journal(world).into_iter();
    records.filter(|record| record["kind"] == kind).collect()
}

#[test]
fn what_all_slots_spend_together_ends_what_runs() {
    // Each of four agents tells 1,000 tokens and then works on without end: none reaches a limit
    // alone.
    let script = format!("{}\nhang", told("on it"));
    for (flag, limit, budget, used) in [
        ("--max-tokens", "3500", "tokens", 4000.0),
        ("--max-cost", "3.50", "cost", 4.0),
    ] {
        let world = project(5);
        world.configure("[prices.small]\ninput = 1000.0\noutput = 1000.0\n");
        let flags = [flag, limit, "--model", "small", "--parallel", "4"];
        let flags = [&CLAUDE[..], &flags, &["--verify", "true"]].concat();
        let ended = start(&world, &script, &flags);
        ended.assert_code(3);
        let reason = &state(&world)["exit_reason"];
        assert_eq!(reason["budget"], budget, "{ended}");
        assert_eq!(reason["used"], used, "{ended}");
        let runs = of_kind(&world, "task_run");
        assert_eq!(runs.len(), 4, "the fifth task is not begun: {ended}");
        assert!(
            runs.iter()
                .all(|run| run["summary"]["ended_by"]["budget"] == budget),
            "{runs:?}"
        );
        // None of it is a failed attempt of its task: all are open again.
        assert_eq!(crate::task_common::statuses(&world), "PPPPP");
        world.assert_no_survivors();
    }
}

#[test]
fn an_agent_that_tells_its_cost_at_the_end_ends_the_others_and_its_work_is_kept() {
    let world = project(3);
    let hang = world.path("hang");
    world.write("hang", "");
    // The first task ends once the agent of the second is at work.
    let works = world.root().join("works");
    let script = format!(
        "if-file {hang} sh test $DESCARTES_TASK_ID = 1 || {{ : > {works}; exec sleep 1000; }}\n\
         if-file {hang} sh until test -e {works}; do sleep 0.05; done\n\
         write work-${{DESCARTES_TASK_ID}} x\n{}\n{}",
        told("<promise>COMPLETE</promise>"),
        result("<promise>COMPLETE</promise>"),
        hang = hang.display(),
        works = works.display(),
    );
    let flags = ["--max-cost", "0.4", "--parallel", "2", "--verify", "true"];
    let first = start(&world, &script, &[&CLAUDE[..], &flags].concat());
    first.assert_code(3);
    assert_eq!(state(&world)["tasks_done"], 1, "{first}");
    assert_eq!(of_kind(&world, "task_run").len(), 2, "{first}");
    std::fs::remove_file(hang).unwrap();
    let again = run(&world, &["loop", "resume", "--max-cost", "9"]);
    again.assert_code(0);
    for task in 1..=3 {
        assert!(world.has(format!("work-{task}")), "{again}");
    }
}

/// The time is over while the gates of the first task run; they are finished, and run once more before it lands.
#[test]
fn what_is_claimed_when_the_time_is_over_lands_before_the_loop_ends() {
    let world = scud_project(graph(
        "1 | A | P | 1 | H\n2 | B | P | 1 | H",
        "\n@edges\n2 -> 1\n",
    ));
    let script = "write work-${DESCARTES_TASK_ID} x ;; promise";
    let flags = ["--verify", "sleep 6", "--max-duration", "5s"];
    let ended = start(&world, script, &flags);
    ended.assert_code(3);
    assert_eq!(of_kind(&world, "task_run").len(), 1, "{ended}");
    assert!(world.has("work-1"), "{ended}");
    assert_eq!(crate::task_common::statuses(&world), "DP", "{ended}");
}

#[test]
fn a_budget_that_no_agent_tells_anything_about_is_warned_of_once() {
    let world = project(3);
    // A result without figures.
    let script = format!(
        "write work-${{DESCARTES_TASK_ID}} x\n{}",
        r#"print {"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"<promise>COMPLETE</promise>","session_id":"s","permission_denials":[]}"#
    );
    let flags = ["--max-cost", "9", "--verify", "true"];
    let ended = start(&world, &script, &[&CLAUDE[..], &flags].concat());
    ended.assert_code(0);
    let warnings = of_kind(&world, "warning");
    let told = warnings.iter().filter_map(|one| one["message"].as_str());
    let told: Vec<&str> = told.filter(|words| words.contains("--max-cost")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("the agent of task 1 told no cost"),
        "{told:?}"
    );
}

#[test]
fn a_loop_that_is_done_when_its_budget_is_reached_is_done() {
    let world = project(1);
    let script = format!(
        "write work x\n{}\n{}",
        told("<promise>COMPLETE</promise>"),
        result("<promise>COMPLETE</promise>")
    );
    let flags = ["--max-cost", "0.4", "--verify", "true"];
    start(&world, &script, &[&CLAUDE[..], &flags].concat()).assert_code(0);
    assert!(world.has("work"));
}

/// Time is counted once, however many agents are at work: four wait for each other and then work for
/// three seconds.
#[test]
fn time_is_that_of_the_loop_and_not_of_each_agent() {
    let world = project(4);
    let here = world.root().join("here");
    std::fs::create_dir_all(&here).unwrap();
    let script = format!(
        "sh touch {0}/$DESCARTES_TASK_ID; until test $(ls {0} | wc -l) = 4; do sleep 0.05; done; sleep 3\n\
         write work-${{DESCARTES_TASK_ID}} x ;; promise",
        here.display()
    );
    let script = script.as_str();
    let flags = ["--parallel", "4", "--verify", "true"];
    start(&world, script, &flags).assert_code(0);
    let runs = of_kind(&world, "task_run");
    let sum = |key: &str| -> u64 { runs.iter().map(|run| run[key].as_u64().unwrap()).sum() };
    let alone: u64 = runs
        .iter()
        .map(|run| run["spent"]["ms"].as_u64().unwrap())
        .sum();
    assert!(alone >= 12_000, "{runs:?}");
    assert!(sum("wall_ms") < alone, "{runs:?}");
    let spent = state(&world)["spent"]["ms"].as_u64().unwrap();
    assert_eq!(spent, sum("wall_ms"));
}

fn spawn(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Kills the host; its guard ends the agent.
fn kill_host(mut host: Child) {
    kill(Pid::from_raw(host.id().cast_signed()), Signal::SIGKILL).unwrap();
    host.wait().unwrap();
}

fn has_told(world: &World) -> bool {
    let logs = loops(world).into_iter().map(|dir| dir.join("runs"));
    let runs = logs.filter_map(|runs| std::fs::read_dir(runs).ok());
    let mut files = runs.flatten().flatten().map(|run| run.path());
    files.any(|run| {
        std::fs::read_to_string(run.join("stdout.log")).is_ok_and(|text| text.contains("usage"))
    })
}

#[test]
fn a_run_that_died_with_its_host_is_priced_and_counts_against_the_budget() {
    let world = World::in_memory();
    world.configure("[prices.small]\ninput = 1000.0\noutput = 1000.0\n");
    let script = format!("{}\nhang", told("on it"));
    let flags = [&CLAUDE[..], &["--model", "small", "--max-cost", "1.5"]].concat();
    let host = spawn(start_command(&world, &script, &flags));
    eventually("what the agent used", SOON, || has_told(&world));
    kill_host(host);
    // A dollar of the dead run and one of the next are over 1.50.
    let resumed = run(&world, &["loop", "resume"]);
    resumed.assert_code(3);
    let interrupted = events(&world, "iteration_interrupted");
    assert_eq!(interrupted.len(), 1, "{resumed}");
    assert_eq!(interrupted[0]["cost"]["micros"], 1_000_000, "{resumed}");
    assert_eq!(state(&world)["spent"]["cost_micros"], 2_000_000);
}

#[test]
fn an_attempt_that_died_with_its_host_counts_against_the_budget_of_the_task_loop() {
    let world = project(1);
    let script = format!("{}\nhang", told("on it"));
    let flags = ["--max-tokens", "1500", "--verify", "true"];
    let agent = world.agent(&script);
    let words = ["loop", "start", "--scud-tag", "auth", "--command", &agent];
    let host = spawn(world.descartes([&words[..], &CLAUDE, &flags].concat()));
    eventually("what the agent used", SOON, || has_told(&world));
    kill_host(host);
    let resumed = run(&world, &["loop", "resume"]);
    // 1,000 of the dead run and 1,000 of the next are over 1,500.
    resumed.assert_code(3);
    let lost = of_kind(&world, "task_spent");
    assert_eq!(lost.len(), 1, "{resumed}");
    assert_eq!(lost[0]["spent"]["tokens"], 1000);
    assert_eq!(state(&world)["spent"]["tokens"], 2000);
}
