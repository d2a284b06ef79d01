//! Task loops from the command line: real git, real processes, a host that is killed.

use std::process::Command;
use std::time::Duration;

use descartes_testkit::{World, descartes, eventually};

use crate::landing_statuses::git_that;
use crate::task_common::{graph, run, scud_project, statuses};

const TASKS: &str = "# SCUD Graph v1\n# Phase: auth\n\n@nodes\n\
    1 | Model | P | 3 | H\n2 | Store | P | 2 | M\n3 | Wire up | P | 5 | M\n4 | Docs | P | 1 | L\n\n\
    @edges\n3 -> 1\n3 -> 2\n4 -> 3\n";

const ROADMAP: &str = "# Roadmap: Tides\n\n## Objective\nPrint the tides.\n\n## Tasks\n\
    - [ ] **fetch**: Read the table\n  - check: test -f fetch.txt\n\
    - [ ] **print**: Print it\n  - depends: fetch\n  - ralph: true\n  - max_iterations: 4\n";

fn project() -> World {
    let world = scud_project(TASKS);
    world.write("ROADMAP.md", ROADMAP);
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "roadmap"]);
    world
}

fn command(world: &World, words: &[&str]) -> Command {
    let mut command = world.command(descartes());
    command.args(words);
    command
}

const WORKS: &str = "write work-${DESCARTES_TASK_ID}.txt done ;; promise";

#[test]
fn a_tag_is_run_from_the_command_line_and_told_as_it_goes() {
    let world = project();
    let agent = world.agent(WORKS);
    let start = ["loop", "start", "--scud-tag", "auth", "--command", &agent];
    let dry = run(&world, &[&start[..], &["--dry-run"]].concat());
    dry.assert_code(0);
    assert!(dry.stdout().contains("Wire up"), "{}", dry.stdout());
    assert_eq!(statuses(&world), "PPPP", "a dry run writes nothing");
    assert!(!world.project().join(".descartes").exists());

    let done = run(
        &world,
        &[&start[..], &["--verify", "true", "--parallel"]].concat(),
    );
    done.assert_code(0);
    assert_eq!(statuses(&world), "DDDD");
    let told = done.stdout();
    assert!(
        told.contains("task 1: Model") && told.contains("wave 3 complete"),
        "{told}"
    );
    let log = world.git(["log", "--format=%s", "--grep=^feat"]);
    assert_eq!(
        log,
        "feat(auth): complete wave 3\nfeat(auth): complete wave 2\nfeat(auth): complete wave 1"
    );
    let work = run(&world, &["work"]);
    assert!(
        work.stdout().contains("everything has landed"),
        "{}",
        work.stdout()
    );
    let again = run(&world, &["loop", "resume"]);
    again.assert_code(0);
}

#[test]
fn what_cannot_be_run_is_refused_with_its_reason() {
    let world = project();
    let agent = world.agent(WORKS);
    let unknown = run(
        &world,
        &["loop", "start", "--scud-tag", "nope", "--command", &agent],
    );
    unknown.assert_code(65);
    assert!(
        unknown.stderr().contains("known tags: auth"),
        "{}",
        unknown.stderr()
    );
    let empty = World::in_memory();
    let none = run(
        &empty,
        &["loop", "start", "--scud-tag", "auth", "--command", &agent],
    );
    none.assert_code(65);
    let no_git = World::in_memory();
    no_git.write(".scud/tasks/tasks.scg", TASKS);
    let refused = run(
        &no_git,
        &["loop", "start", "--scud-tag", "auth", "--command", &agent],
    );
    refused.assert_code(65);
    assert!(
        refused.stderr().contains("--in-place"),
        "{}",
        refused.stderr()
    );
}

#[test]
fn a_host_that_is_killed_anywhere_leaves_nothing_stranded() {
    let world = project();
    let script = "append ../../../runs ${DESCARTES_TASK_ID} ;; write work-${DESCARTES_TASK_ID}.txt x\n\
        sleep 150ms ;; promise";
    let agent = world.agent(script);
    let gate = "sleep 0.05";
    let mut words = vec![
        "loop",
        "start",
        "--scud-tag",
        "auth",
        "--command",
        &agent,
        "--verify",
        gate,
        "--parallel",
        "2",
    ];
    let mut kills = 0;
    for wait in [400_u64, 700, 1000, 1300, 1700, 2200] {
        let mut child = command(&world, &words)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let end = std::time::Instant::now() + Duration::from_millis(wait);
        while std::time::Instant::now() < end && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            kills += 1;
        }
        child.wait().unwrap();
        eventually(
            "every agent of the dead host is gone",
            Duration::from_secs(60),
            || world.processes().is_empty(),
        );
        if world.project().join(".descartes/loop-state.json").exists() {
            words = vec!["loop", "resume"];
        }
    }
    let done = run(&world, &words);
    done.assert_code(0);
    assert!(kills > 0);
    assert_eq!(statuses(&world), "DDDD");
    for id in 1..=4 {
        assert!(
            world.project().join(format!("work-{id}.txt")).exists(),
            "{id}"
        );
    }
    let log = world.git(["log", "--format=%s"]);
    for wave in 1..=3 {
        let message = format!("feat(auth): complete wave {wave}");
        assert_eq!(log.matches(&message).count(), 1, "{log}");
    }
    assert_eq!(
        world.git(["for-each-ref", "refs/heads/descartes", "refs/descartes"]),
        ""
    );
    assert_eq!(world.git(["status", "--porcelain", "--", "README.md"]), "");
}

#[test]
fn a_roadmap_is_checked_run_shown_and_reset() {
    let world = project();
    let check = run(&world, &["roadmap", "check", "ROADMAP.md"]);
    check.assert_code(0);
    world.write(
        "bad.md",
        "# Roadmap: x\n## Tasks\n- [ ] **a**: A\n  - tiemout: 5min\n  - depends: b\n",
    );
    let bad = run(&world, &["roadmap", "check", "bad.md"]);
    bad.assert_code(1);
    assert!(bad.stdout().contains("bad.md:4:"), "{}", bad.stdout());
    let refused = run(&world, &["roadmap", "run", "bad.md", "--command", "true"]);
    refused.assert_code(65);

    // The looping task gives its promise at its second attempt.
    let script = "write ${DESCARTES_TASK_ID}.txt x\n@2 promise";
    let agent = world.agent(script);
    let words = ["roadmap", "run", "ROADMAP.md", "--command", &agent];
    let dry = run(&world, &[&words[..], &["--dry-run"]].concat());
    dry.assert_code(0);
    assert!(!world.project().join(".descartes").exists());
    let done = run(&world, &words);
    done.assert_code(0);
    let text = std::fs::read_to_string(world.project().join("ROADMAP.md")).unwrap();
    assert_eq!(text, ROADMAP.replace("[ ]", "[x]"));
    assert!(world.project().join("print.txt").exists());
    let status = run(&world, &["roadmap", "status", "ROADMAP.md"]);
    assert!(
        status.stdout().contains("2 of 2 tasks done, 3 iterations"),
        "{}",
        status.stdout()
    );
    let reset = run(&world, &["roadmap", "reset", "ROADMAP.md"]);
    reset.assert_code(0);
    let status = run(&world, &["roadmap", "status", "ROADMAP.md"]);
    assert!(
        status.stdout().contains("not run yet"),
        "{}",
        status.stdout()
    );
}

#[test]
fn a_roadmap_task_that_is_not_reached_is_blocked_and_its_box_stays_open() {
    let world = project();
    let agent = world.agent("print nothing to see");
    let done = run(
        &world,
        &[
            "roadmap",
            "run",
            "ROADMAP.md",
            "--command",
            &agent,
            "--ralph-default-iterations",
            "2",
        ],
    );
    done.assert_code(6);
    let text = std::fs::read_to_string(world.project().join("ROADMAP.md")).unwrap();
    assert_eq!(text, ROADMAP);
    let status = run(&world, &["roadmap", "status", "ROADMAP.md"]);
    assert!(
        status.stdout().contains("blocked     fetch"),
        "{}",
        status.stdout()
    );
}

#[test]
fn specs_and_graphs_are_shown() {
    let world = project();
    world.write(
        "plan.md",
        "# Plan\n## Task 3: wiring\nSolder it.\n## Task 4\nLater.\n",
    );
    let spec = run(
        &world,
        &[
            "spec",
            "3",
            "--scud-tag",
            "auth",
            "--plan",
            "plan.md",
            "--verify",
            "make",
        ],
    );
    spec.assert_code(0);
    assert!(spec.stdout().contains("Solder it.") && !spec.stdout().contains("Later."));
    assert!(
        spec.stderr().contains("tokens in total"),
        "{}",
        spec.stderr()
    );
    run(&world, &["spec", "33", "--scud-tag", "auth"]).assert_code(65);
    for (format, words) in [
        ("text", "Wire up"),
        ("mermaid", "flowchart"),
        ("svg", "<svg"),
    ] {
        let graph = run(&world, &["graph", "--scud-tag", "auth", "--format", format]);
        graph.assert_code(0);
        assert!(
            graph.stdout().contains(words),
            "{format}: {}",
            graph.stdout()
        );
    }
    run(&world, &["graph", "--roadmap", "ROADMAP.md"]).assert_code(0);
    run(&world, &["graph"]).assert_code(64);
}

/// Starts the tag with these flags, and gives how it ended and the prompts of its agents.
fn with_flags(world: &World, flags: &[&str], code: i32) -> String {
    let script = "save-prompt ../../../prompt-${DESCARTES_TASK_ID}-${ITERATION}\n\
        append ../../../ran ${DESCARTES_TASK_ID} ;; write work-${ITERATION}-${DESCARTES_TASK_ID} x ;; promise";
    let agent = world.agent(script);
    let start = ["loop", "start", "--scud-tag", "auth", "--command", &agent];
    run(world, &[&start[..], flags].concat()).assert_code(code);
    std::fs::read_to_string(world.state().join("ran")).unwrap_or_default()
}

#[test]
fn every_flag_of_task_loops_changes_what_happens() {
    let world = project();
    world.write("plan.md", "# Plan\n## Task 3\nSolder it.\n");
    world.write("notes.md", "Mind the gap.\n");
    let template = "TOLD {task} {plan} {custom} {verification}";
    let flags = [
        "--plan",
        "plan.md",
        "--handoff",
        "notes.md",
        "--spec-template",
        template,
    ];
    with_flags(&world, &[&flags[..], &["--verify", "true"]].concat(), 0);
    let prompt = std::fs::read_to_string(world.state().join("prompt-3-1")).unwrap();
    assert!(prompt.starts_with("TOLD # Task 3"), "{prompt}");
    assert!(prompt.contains("Solder it.") && prompt.contains("Mind the gap."));

    let world = project();
    let ran = with_flags(
        &world,
        &["--max-iterations-per-task", "2", "--verify", "false"],
        6,
    );
    assert_eq!(ran, "1\n1\n2\n2\n");

    let world = project();
    let ran = with_flags(&world, &["--no-sub-agents", "--verify", "true"], 0);
    assert_eq!(ran, "1,2\n3\n4\n");
    assert_eq!(statuses(&world), "DDDD");

    let world = project();
    with_flags(&world, &["--no-wave-barrier", "--verify", "true"], 0);
    assert!(world.git(["log", "--format=%s"]).contains("[1] Model"));

    let world = project();
    with_flags(&world, &["--no-auto-commit-waves", "--verify", "true"], 0);
    assert!(!world.git(["log", "--format=%s"]).contains("complete wave"));
    assert!(world.project().join("work-1-4").exists());

    let world = project();
    world.write("mine.txt", "mine");
    with_flags(&world, &["--in-place", "--verify", "true"], 65);
    with_flags(&world, &["--in-place", "--parallel", "2"], 64);
}

#[test]
fn a_task_loop_is_seen_and_steered_like_any_other() {
    let world = project();
    let agent = world.agent("unless-file ../../../go wait-file ../../../go 60s ;; write work-${DESCARTES_TASK_ID} x ;; promise");
    let start = [
        "loop",
        "start",
        "--scud-tag",
        "auth",
        "--command",
        &agent,
        "--verify",
        "true",
        "--detach",
    ];
    run(&world, &start).assert_code(0);
    let mut status = String::new();
    eventually("the first task runs", Duration::from_secs(60), || {
        status = run(&world, &["loop", "status"]).stdout();
        status.contains("Task: 1 Model")
    });
    assert!(
        status.contains("Tasks: 0 of 4 done") && status.contains("Wave: 1 of 3"),
        "{status}"
    );
    // Decided, then written into the file.
    eventually("the first task is marked", Duration::from_secs(60), || {
        statuses(&world) == "IPPP"
    });
    run(&world, &["loop", "say", "use pliers"]).assert_code(0);
    let cancelled = run(&world, &["loop", "cancel"]);
    cancelled.assert_code(0);
    world.assert_no_survivors();
    assert_eq!(statuses(&world), "PPPP");
    let status = run(&world, &["loop", "status"]).stdout();
    assert!(status.contains("Cancelled"), "{status}");
    std::fs::write(world.state().join("go"), "").unwrap();
    run(&world, &["loop", "resume"]).assert_code(0);
    assert_eq!(statuses(&world), "DDDD");
}

/// What git is at when somebody cancels: making the worktree ready, a look that hangs, taking the
/// agent's work into safety.
#[test]
fn a_cancel_in_mid_git_is_a_cancel_and_nothing_is_lost() {
    for held in [
        "clean --quiet",
        "checkout --quiet",
        "diff --cached",
        "commit --quiet",
    ] {
        let world = scud_project(graph("1 | A | P | 1 | M", ""));
        let reached = world.root().join("reached");
        let hold = format!(
            "case \"$*\" in *\"{held}\"*) if [ ! -e {at} ]; then : > {at}; exec sleep 100; fi;; esac",
            at = reached.display()
        );
        git_that(&world, &hold);
        let agent = world.agent(WORKS);
        let start = ["loop", "start", "--scud-tag", "auth", "--command", &agent];
        let flags = ["--verify", "true", "--detach"];
        run(&world, &[&start[..], &flags].concat()).assert_code(0);
        eventually(held, Duration::from_secs(60), || reached.exists());
        run(&world, &["loop", "cancel"]).assert_code(0);
        world.assert_no_survivors();
        assert_eq!(statuses(&world), "P", "{held}");
        let status = run(&world, &["loop", "status"]).stdout();
        assert!(
            status.contains("Exit reason: Cancelled"),
            "{held}: {status}"
        );
        run(&world, &["loop", "resume"]).assert_code(0);
        assert_eq!(statuses(&world), "D", "{held}");
        assert_eq!(world.read("work-1.txt").trim(), "done", "{held}");
    }
}
