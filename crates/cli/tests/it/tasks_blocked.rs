//! Blocked tasks, and those that only take long: each has all its attempts, is blocked alone, and
//! is tried again when a person says so.

use std::process::Stdio;
use std::time::Duration;

use descartes_testkit::World;
use descartes_testkit::wait::{eventually, eventually_some};
use descartes_testkit::world::Finished;
use serde_json::Value;

use crate::task_common::{graph, repository, run, said, scud_project, statuses};

const LONG: Duration = descartes_testkit::PATIENCE;

/// Works at every attempt, and claims at this one.
fn slow_agent(world: &World, claims_at: u32) -> String {
    let script = format!(
        "#!/bin/sh\nN=$(cat count-$DESCARTES_TASK_ID 2>/dev/null || echo 0)\nN=$((N + 1))\n\
         echo $N > count-$DESCARTES_TASK_ID\n\
         case $DESCARTES_TASK_ID in quick) N=99 ;; esac\n\
         if [ $N -ge {claims_at} ]; then echo '<promise>COMPLETE</promise>'; fi\n"
    );
    world.program("slow-agent", &script).display().to_string()
}

fn roadmap(world: &World, agent: &str, flags: &[&str]) -> Finished {
    let words = ["roadmap", "run", "ROADMAP.md", "--command", agent];
    run(world, &[&words[..], flags].concat())
}

#[test]
fn a_looping_task_has_all_its_iterations() {
    let world = repository(
        "ROADMAP.md",
        "# Roadmap\n\n## Tasks\n- [ ] **long**: Long\n  - ralph: true\n\
         - [ ] **quick**: Quick\n  - ralph: true\n",
    );
    let agent = slow_agent(&world, 8);
    roadmap(&world, &agent, &[]).assert_code(0);
    assert_eq!(world.read("count-long").trim(), "8");
}

#[test]
fn a_looping_task_that_is_used_up_is_blocked_alone_with_count_and_limit() {
    let world = repository(
        "ROADMAP.md",
        "# Roadmap\n\n## Tasks\n- [ ] **long**: Long\n  - ralph: true\n  - max_iterations: 7\n\
         - [ ] **quick**: Quick\n  - ralph: true\n",
    );
    let agent = slow_agent(&world, 9);
    let ended = roadmap(&world, &agent, &[]);
    ended.assert_code(6);
    let told = said(&ended);
    assert!(told.contains("7 of 7 attempts used"), "{told}");
    assert!(
        told.contains("the agent did not print the promise"),
        "{told}"
    );
    assert!(world.read("ROADMAP.md").contains("[x] **quick**"), "{told}");
    let children = run(&world, &["loop", "list", "--children"]).stdout();
    assert!(
        !children.to_lowercase().contains("interrupted"),
        "{children}"
    );
    // It goes on where it was, with seven more.
    let again = roadmap(&world, &agent, &["--retry-blocked"]);
    again.assert_code(0);
    assert_eq!(world.read("count-long").trim(), "9");
}

#[test]
fn tasks_without_a_gate_that_do_not_promise_at_once_are_no_failing_agent() {
    let world = scud_project(graph(
        "1 | One | P | 1 | H\n2 | Two | P | 1 | M\n3 | Three | P | 1 | M",
        "",
    ));
    let agent = slow_agent(&world, 3);
    let words = ["loop", "start", "--scud-tag", "auth", "--command", &agent];
    let ended = run(&world, &[&words[..], &["--parallel", "3"]].concat());
    ended.assert_code(0);
    assert_eq!(statuses(&world), "DDD");
}

#[test]
fn blocked_tasks_are_named_and_tried_again_once_their_cause_is_mended() {
    let world = scud_project(graph("1 | One | P | 1 | H\n2 | Two | P | 1 | M", ""));
    let mended = world.root().join("mended");
    // Red for the second task until somebody mends it.
    let gate = format!("test ! -e work-2 || test -e {}", mended.display());
    let agent = world.agent(crate::task_common::WORKS);
    let words = ["loop", "start", "--scud-tag", "auth", "--command", &agent];
    let ended = run(&world, &[&words[..], &["--verify", &gate]].concat());
    ended.assert_code(6);
    let told = said(&ended);
    assert!(
        told.contains("blocked     2 Two: 3 of 3 attempts used"),
        "{told}"
    );
    assert!(
        told.contains("descartes loop resume --retry-blocked"),
        "{told}"
    );
    assert_eq!(statuses(&world), "DB");
    let log = world.git(["log", "--format=%s", "-1", "--grep=^feat"]);
    assert_eq!(log, "feat(auth): wave 1, 1 of 2 tasks");
    let children = run(&world, &["loop", "list", "--children"]).stdout();
    assert!(
        !children.to_lowercase().contains("interrupted"),
        "{children}"
    );

    run(&world, &["loop", "resume"]).assert_code(6);
    std::fs::write(&mended, "").unwrap();
    let again = run(&world, &["loop", "resume", "--retry-blocked"]);
    again.assert_code(0);
    assert_eq!(statuses(&world), "DD");
    let log = world.git(["log", "--format=%s", "-1", "--grep=^feat"]);
    assert_eq!(log, "feat(auth): complete wave 1");
}

#[test]
fn flags_about_tasks_are_refused_for_a_loop_with_one_prompt() {
    let world = World::in_memory();
    let words = ["loop", "start", "--command", "true", "--prompt", "x"];
    run(&world, &[&words[..], &["--max-iterations", "1"]].concat()).assert_code(2);
    for flag in ["--retry-blocked", "--trust-marks"] {
        let refused = run(&world, &["loop", "resume", flag]);
        refused.assert_code(64);
        assert!(said(&refused).contains(flag), "{}", said(&refused));
    }
}

/// A person cancels the loop of the first task, which waits for a file; the second one is done all the same.
fn cancel_one_task(world: &World, flags: &[&str]) {
    let go = world.root().join("go");
    let agent = world.program(
        "waits",
        &format!(
            "#!/bin/sh\n[ -e {0} ] || [ $DESCARTES_TASK_ID = 2 ] || sleep 600\n\
             echo done > work-$DESCARTES_TASK_ID; echo '<promise>COMPLETE</promise>'\n",
            go.display()
        ),
    );
    let agent = agent.display().to_string();
    let words = ["loop", "start", "--scud-tag", "auth", "--command", &agent];
    let more = ["--verify", "true", "--parallel", "2"];
    let mut host = world.descartes([&words[..], &more, flags].concat());
    host.stdout(Stdio::null()).stderr(Stdio::null());
    let mut host = host.spawn().unwrap();
    let child = eventually_some("the loop of the task", LONG, || {
        let listed = run(world, &["loop", "list", "--all", "--children", "--json"]).stdout();
        let listed: Value = serde_json::from_str(&listed).ok()?;
        let mut found = listed.as_array()?.iter();
        let found = found.find(|entry| entry["task"] == "1" && entry["status"] == "running");
        found.cloned()
    });
    let (id, parent) = (
        child["loop_id"].as_str().unwrap(),
        child["parent"].as_str().unwrap(),
    );
    let cancelled = run(world, &["loop", "cancel", id]);
    cancelled.assert_code(0);
    let told = cancelled.stdout();
    assert!(told.contains("its task is blocked"), "{told}");
    host.wait().unwrap();
    eventually("the whole is over", LONG, || {
        run(world, &["loop", "status", parent, "--json"])
            .stdout()
            .contains("tasks_blocked")
    });
    assert_eq!(statuses(world), "BD");
    let status = run(world, &["loop", "status", parent]).stdout();
    assert!(status.contains("it was cancelled"), "{status}");
    std::fs::write(&go, "").unwrap();
    run(world, &["loop", "resume", parent, "--retry-blocked"]).assert_code(0);
    assert_eq!(statuses(world), "DD");
}

#[test]
fn a_task_that_a_person_cancels_is_not_begun_again() {
    for flags in [&[][..], &["--detach"]] {
        let world = scud_project(graph("1 | One | P | 1 | H\n2 | Two | P | 1 | M", ""));
        cancel_one_task(&world, flags);
    }
}
