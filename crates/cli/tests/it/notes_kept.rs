//! What a person said and what a stalled agent is told stand in every prompt until an iteration that
//! counted had them: over limits, crashes and resumes, in task loops too.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use descartes_testkit::{World, eventually};
use serde_json::Value;

use crate::common::{descartes, events, journal_in, loops};
use crate::task_common::{graph, run, scud_project};

const SOON: Duration = descartes_testkit::PATIENCE;

/// An agent that counts its runs, keeps the prompt of each, and then does what `cases` says of it.
fn agent(world: &World, cases: &str) -> String {
    let root = world.root().display();
    let script = format!(
        "#!/bin/sh\ncd_root='{root}'\n\
         n=$(($(cat $cd_root/n 2>/dev/null || echo 0) + 1)); echo $n > $cd_root/n\n\
         printf %s \"$1\" > $cd_root/part; mv $cd_root/part $cd_root/seen-$n\n\
         await() {{ until [ -e $cd_root/$1 ]; do sleep 0.05; done; }}\n\
         case $n in\n{cases}\nesac\n"
    );
    world.program("agent", &script).display().to_string()
}

const LIMITED: &str = "echo 'rate limit exceeded, try again in 1 second' >&2; exit 1";

/// Which of the runs so far were told this.
fn told(world: &World, words: &str) -> String {
    let seen = |n| std::fs::read_to_string(world.root().join(format!("seen-{n}"))).ok();
    let runs = (1..).map_while(seen);
    runs.map(|prompt| match prompt.contains(words) {
        true => '+',
        false => '-',
    })
    .collect()
}

#[track_caller]
fn at_run(world: &World, n: u32) {
    let file = world.root().join(format!("seen-{n}"));
    eventually(&format!("run {n}"), SOON, || file.exists());
}

fn leave(world: &World, name: &str) {
    std::fs::write(world.root().join(name), "").unwrap();
}

fn spawn(mut command: Command) -> Child {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
    quiet.stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_note_stands_in_every_prompt_until_an_iteration_counted() {
    let world = World::in_memory();
    let cases = format!(
        "1) await go;;\n2) {LIMITED};;\n3) await never;;\n4) await on;;\n5) ;;\n*) echo '<promise>COMPLETE</promise>';;"
    );
    let agent = agent(&world, &cases);
    let words = ["loop", "start", "--prompt", "go", "--command", &agent];
    let mut host = spawn(world.descartes(words));
    at_run(&world, 1);
    let said = descartes(&world, &["loop", "say", "use jiff"]);
    assert!(
        said.stdout().contains("iteration 2 gets the note"),
        "{said}"
    );
    leave(&world, "go");
    at_run(&world, 3);
    assert_eq!(events(&world, "run_discarded").len(), 1);
    assert_eq!(events(&world, "command_effective").len(), 0);
    // The host dies with the run that was told.
    host.kill().unwrap();
    host.wait().unwrap();
    let mut host = spawn(world.descartes(["loop", "resume"]));
    at_run(&world, 4);
    assert_eq!(events(&world, "command_effective").len(), 0);
    let mut waits = world.descartes(["loop", "say", "--wait", "and chrono not"]);
    let waits = waits.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    eventually("the second note", SOON, || {
        events(&world, "command_accepted").len() == 2
    });
    leave(&world, "on");
    assert!(host.wait().unwrap().success());
    assert_eq!(told(&world, "use jiff"), "-+++--");
    assert_eq!(told(&world, "and chrono not"), "----+-");
    let waited = waits.unwrap().wait_with_output().unwrap();
    let waited = String::from_utf8(waited.stdout).unwrap();
    // Two are over before it: the first, and the one that its host died with.
    assert_eq!(waited, "iteration 4 got the note\n");
    let ids: Vec<Value> = events(&world, "command_effective")
        .iter()
        .map(|record| record["id"].clone())
        .collect();
    assert_eq!(ids, [1, 2]);
}

#[test]
fn a_note_that_nobody_has_had_outlives_the_end_of_its_loop() {
    let world = World::in_memory();
    let cases = "1) await go;;\n*) echo '<promise>COMPLETE</promise>';;";
    let agent = agent(&world, cases);
    let words = ["loop", "start", "-m", "1", "--prompt", "go", "--command"];
    let mut command = world.descartes(words);
    command.arg(&agent);
    let mut host = spawn(command);
    at_run(&world, 1);
    let mut waits = world.descartes(["loop", "say", "--wait", "use jiff"]);
    let waits = waits.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    eventually("the note", SOON, || {
        !events(&world, "command_accepted").is_empty()
    });
    leave(&world, "go");
    assert_eq!(host.wait().unwrap().code(), Some(2));
    let waited = waits.unwrap().wait_with_output().unwrap();
    let waited = String::from_utf8(waited.stdout).unwrap();
    assert!(
        waited.contains("the loop ended before the note reached an agent"),
        "{waited}"
    );
    descartes(&world, &["loop", "resume", "-m", "3"]).assert_code(0);
    assert_eq!(told(&world, "use jiff"), "-+");
    assert_eq!(events(&world, "command_effective").len(), 1);
}

#[test]
fn an_ending_tells_of_a_note_that_came_too_late() {
    let world = World::in_memory();
    let agent = agent(&world, "*) await go; echo '<promise>COMPLETE</promise>';;");
    let words = ["loop", "start", "--prompt", "go", "--command", &agent];
    let mut command = world.descartes(words);
    let quiet = command.stdin(Stdio::null()).stderr(Stdio::null());
    let host = quiet.stdout(Stdio::piped()).spawn().unwrap();
    at_run(&world, 1);
    descartes(&world, &["loop", "say", "use jiff"]).assert_code(0);
    leave(&world, "go");
    let ended = host.wait_with_output().unwrap();
    let told = String::from_utf8(ended.stdout).unwrap();
    let words = "not told    your note \"use jiff\": the loop was done before the next prompt";
    assert!(told.contains(words), "{told}");
    let page = descartes(&world, &["report", "--output", "-"]).stdout();
    assert!(page.contains("not delivered"), "{page}");
}

#[test]
fn the_nudge_of_a_stall_is_delivered_to_an_iteration_that_counts() {
    let world = World::in_memory();
    let agent = agent(&world, &format!("3) {LIMITED};;\n*) ;;"));
    let words = ["loop", "start", "--prompt", "go", "--stall-after", "2"];
    let mut command = world.descartes(words);
    command.args(["--command", &agent]);
    world.run(command).assert_code(4);
    assert_eq!(told(&world, "NO PROGRESS"), "--++-");
    assert_eq!(events(&world, "nudged").len(), 1);
}

/// The records of the loop that has tasks.
fn parent_events(world: &World, kind: &str) -> Vec<Value> {
    let plans = |records: &Vec<Value>| records.iter().any(|one| one["kind"] == "tasks_planned");
    let journals = loops(world).into_iter().map(|dir| journal_in(&dir));
    let records = journals.filter(plans).flatten();
    records.filter(|record| record["kind"] == kind).collect()
}

#[test]
fn in_a_task_loop_a_note_stands_in_every_attempt_until_one_counted() {
    let rows = "1 | Model | P | 1 | M\n2 | Routes | P | 1 | M\n3 | Tests | P | 1 | M";
    let world = scud_project(graph(rows, ""));
    let done = "echo x > work-$n; echo '<promise>COMPLETE</promise>'";
    let cases = format!("1) await go; {done};;\n2) {LIMITED};;\n3) await never;;\n*) {done};;");
    let agent = agent(&world, &cases);
    let words = ["loop", "start", "--scud-tag", "auth", "--verify", "true"];
    let mut command = world.descartes(words);
    command.args(["--command", &agent]);
    let mut host = spawn(command);
    at_run(&world, 1);
    let said = run(&world, &["loop", "say", "use pliers"]);
    assert!(
        said.stdout().contains("every attempt that starts"),
        "{said}"
    );
    leave(&world, "go");
    at_run(&world, 3);
    assert_eq!(parent_events(&world, "command_effective").len(), 0);
    host.kill().unwrap();
    host.wait().unwrap();
    run(&world, &["loop", "resume"]).assert_code(0);
    assert_eq!(told(&world, "use pliers"), "-+++-");
    let effective = parent_events(&world, "command_effective");
    let runs = parent_events(&world, "task_run");
    let after = |at: usize| runs[at]["seq"].as_u64().unwrap();
    let seq = effective[0]["seq"].as_u64().unwrap();
    assert_eq!(effective.len(), 1);
    assert!(seq > after(1) && seq < after(2), "{effective:?} {runs:?}");
    world.assert_no_survivors();
}
