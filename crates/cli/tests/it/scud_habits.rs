//! What goes wrong in SCUD's own loops and files, done right, with the real binary.
//!
//! | what goes wrong elsewhere | shown here by |
//! |---|---|
//! | agents that exit 7 count as done | `agents_that_fail_or_do_nothing_finish_no_task` |
//! | "all complete" with tasks that never ran, or in a ring | the same, `tasks_input::graphs_that_cannot_be_run` |
//! | the next wave never comes while a child of the agent lives | `what_an_agent_leaves_running_holds_nothing_up` |
//! | statuses set in a worktree are not seen, or overwrite the project's | `copies_of_the_task_file_in_worktrees_decide_nothing` |
//! | a gate that prints much hangs; only its first words are kept; a cut character panics | `gates_may_print_what_they_like` |
//! | a gate's time limit leaves its children | `a_gate_that_takes_too_long_leaves_nothing_behind` |
//! | an agent that fills its standard error hangs | `an_agent_may_fill_both_its_outputs` |
//! | prompts of all projects share one temporary file | `two_projects_with_the_same_ids_do_not_meet` |
//! | no time limit for a task, no way to go on after one | `a_task_that_hangs_is_ended_and_the_rest_is_done` |
//! | dependencies that failed, wait or are gone count as met | `only_done_meets_a_dependency` |
//! | what waits for an expanded task runs too soon or never | `an_expanded_task_is_done_when_its_parts_are` |
//! | a status change drops texts, sections, rows and edges | `odd_files_keep_every_byte`, and the kernel's `scud` tests |
//! | counts leave out parts and states; long foreign titles panic | `every_task_is_counted_and_every_title_shown` |
//! | two swarms of one tag | `one_tag_is_run_once_at_a_time` |
//!
//! The rest is pure and stands in the kernel's tests: ids of other tags (`scud`), waves in one
//! order (`scud`, `graph`). Lost updates, and a file that is empty for a moment: `store::task_file`,
//! the scheduler's `others`, and `cargo xtask tasks scud` with the real one. Hooks of the user's:
//! `install`.

use std::fs::File;
use std::time::{Duration, Instant};

use descartes_testkit::{World, eventually};
use serde_json::Value;

use crate::task_common::{WORKS, graph, left, run, said, scud_project, start, statuses};

fn two_waves() -> World {
    let rows = "1 | Model | P | 3 | H\n2 | Store | P | 2 | M\n3 | Wire up | P | 5 | M\n";
    scud_project(graph(rows, "@edges\n3 -> 1\n3 -> 2\n"))
}

fn status_of(world: &World) -> Value {
    let status = run(world, &["loop", "status", "--json"]);
    serde_json::from_str(&status.stdout()).unwrap()
}

#[test]
fn agents_that_fail_or_do_nothing_finish_no_task() {
    let gate = ["--verify", "true", "--max-iterations-per-task", "1"];
    for (script, flags) in [
        ("exit 7", &gate[..]),
        (
            "write work-${DESCARTES_TASK_ID} x ;; promise ;; exit 7",
            &gate,
        ),
        ("print all tasks are complete", &gate),
        // Without a gate the promise is needed, and work alone is none.
        ("write work-${DESCARTES_TASK_ID} x", &gate[2..]),
    ] {
        let world = two_waves();
        let ended = start(&world, script, flags);
        assert!(
            matches!(ended.code(), Some(6 | 7)),
            "{script}: {}",
            said(&ended)
        );
        let left = statuses(&world);
        assert!(
            !left.contains('D') && left.ends_with('P'),
            "{script}: {left}"
        );
        assert!(!left.contains('I'), "{script}: {left}");
        assert!(!said(&ended).contains("complete wave"), "{}", said(&ended));
        assert_eq!(status_of(&world)["wave_commits"], serde_json::json!([]));
    }
}

#[test]
fn what_an_agent_leaves_running_holds_nothing_up() {
    let world = two_waves();
    let script = format!("spawn-child setsid-double-fork ../../../children ;; {WORKS}");
    start(&world, &script, &["--verify", "true"]).assert_code(0);
    assert_eq!(statuses(&world), "DDD");
    assert_eq!(left(&world, "children").lines().count(), 3);
    world.assert_no_survivors();
}

#[test]
fn copies_of_the_task_file_in_worktrees_decide_nothing() {
    // The agent does as SCUD tells it: sets its status where it works, and commits all there is.
    let script = "write work-${DESCARTES_TASK_ID} x\n\
        sh sed -i \"s/^${DESCARTES_TASK_ID} \\\\(.*\\\\)| P |/${DESCARTES_TASK_ID} \\\\1| D |/\" .scud/tasks/tasks.scg\n\
        write .scud/notes.txt stale\ngit-commit mine\npromise";
    let world = two_waves();
    start(&world, script, &["--verify", "true", "--parallel", "2"]).assert_code(0);
    assert_eq!(statuses(&world), "DDD");
    for id in 1..=3 {
        assert!(world.has(format!("work-{id}")), "{id}");
    }
    let touched = world.git(["log", "--format=%s", "HEAD", "--", ".scud"]);
    let touched: Vec<&str> = touched.lines().collect();
    let expected = [
        "chore(auth): mark task 3 done",
        "chore(auth): mark tasks 1, 2 done",
        "tasks",
    ];
    assert_eq!(touched, expected);
    assert!(!world.has(".scud/notes.txt"));

    // With a gate that stays red, its own word makes nothing done.
    let world = two_waves();
    let flags = ["--verify", "false", "--max-iterations-per-task", "1"];
    start(&world, script, &flags).assert_code(6);
    assert_eq!(statuses(&world), "BBP");
}

#[test]
fn gates_may_print_what_they_like() {
    let world = two_waves();
    // Much on both outputs, a character of two bytes at every place, and the error at the end.
    let gate = "yes é | head -c 200001; yes ü | head -c 200001 >&2; \
        echo 'the error stands at the end'; test -f second";
    let script = "save-prompt ../../../prompt-${DESCARTES_TASK_ID}-${ITERATION}\n\
        write work-${DESCARTES_TASK_ID} x\n@2 write second x\n@all promise";
    let since = Instant::now();
    start(&world, script, &["--verify", gate]).assert_code(0);
    assert!(since.elapsed() < Duration::from_secs(120));
    assert_eq!(statuses(&world), "DDD");
    let second = left(&world, "prompt-1-2");
    assert!(second.contains("the error stands at the end"), "{second}");
    assert!(second.len() < 20_000, "{}", second.len());
}

#[test]
fn a_gate_that_takes_too_long_leaves_nothing_behind() {
    let world = two_waves();
    let gate = "sleep 600 & (setsid sleep 601 &) ; sleep 602";
    let flags = ["--verify", gate, "--verify-timeout", "500ms"];
    let flags = [&flags[..], &["--max-iterations-per-task", "1"]].concat();
    let ended = start(&world, WORKS, &flags);
    ended.assert_code(6);
    world.assert_no_survivors();
    assert_eq!(statuses(&world), "BBP");
    assert!(
        said(&ended).contains("verification failed"),
        "{}",
        said(&ended)
    );
}

#[test]
fn an_agent_may_fill_both_its_outputs() {
    let world = two_waves();
    let script = format!("flood 300K lines stderr ;; flood 300K lines ;; {WORKS}");
    start(&world, &script, &["--verify", "true"]).assert_code(0);
    assert_eq!(statuses(&world), "DDD");
}

#[test]
fn two_projects_with_the_same_ids_do_not_meet() {
    let world = two_waves();
    let other = world.root().join("other");
    world.git(["clone", "--quiet", ".", &other.to_string_lossy()]);
    let text = world
        .read(".scud/tasks/tasks.scg")
        .replace("Model", "Harbour");
    std::fs::write(other.join(".scud/tasks/tasks.scg"), text).unwrap();
    let script = format!("save-prompt ${{HOME}}/${{SIDE}}-${{DESCARTES_TASK_ID}} ;; {WORKS}");
    let agent = world.agent(&script);
    let begin = |side: &str, dir: &std::path::Path| {
        let words = ["loop", "start", "--scud-tag", "auth", "--command", &agent];
        let mut command = world.descartes(words);
        command.args(["--verify", "true"]).env("SIDE", side);
        command.current_dir(dir).stdout(std::process::Stdio::null());
        command.stderr(std::process::Stdio::null()).spawn().unwrap()
    };
    let mut both = [begin("one", &world.project()), begin("two", &other)];
    for child in &mut both {
        assert!(child.wait().unwrap().success());
    }
    let prompt = |name: &str| std::fs::read_to_string(world.home().join(name)).unwrap();
    assert!(prompt("one-1").contains("Model") && !prompt("one-1").contains("Harbour"));
    assert!(prompt("two-1").contains("Harbour") && !prompt("two-1").contains("Model"));
}

#[test]
fn a_task_that_hangs_is_ended_and_the_rest_is_done() {
    let world = two_waves();
    let script = "unless-file ../../../go if-file ../../../at-1 touch ../../../at-2\n\
        touch ../../../at-1\nunless-file ../../../go unless-file ../../../at-2 hang\n\
        write work-${DESCARTES_TASK_ID} x ;; promise";
    let flags = ["--verify", "true", "--timeout", "6s", "--kill-grace"];
    let flags = [&flags[..], &["100ms", "--max-iterations-per-task", "1"]].concat();
    let ended = start(&world, script, &flags);
    ended.assert_code(6);
    assert_eq!(statuses(&world), "BDP");
    assert!(
        said(&ended).contains("task 3 was not started: it is waiting for 1"),
        "{}",
        said(&ended)
    );
    // A person opens it again; the same loop goes on.
    std::fs::write(world.state().join("go"), "").unwrap();
    let text = world.read(".scud/tasks/tasks.scg");
    world.write(".scud/tasks/tasks.scg", text.replace("| B |", "| P |"));
    run(&world, &["loop", "resume"]).assert_code(0);
    assert_eq!(statuses(&world), "DDD");
}

#[test]
fn only_done_meets_a_dependency() {
    let rows = "1 | a | B | 1 | M\n2 | b | ! | 1 | M\n3 | c | C | 1 | M\n4 | d | F | 1 | M\n\
        5 | e | R | 1 | M\n6 | f | D | 1 | M\n";
    let waits = "11 | w1 | P | 1 | M\n12 | w2 | P | 1 | M\n13 | w3 | P | 1 | M\n\
        14 | w4 | P | 1 | M\n15 | w5 | P | 1 | M\n16 | w6 | P | 1 | M\n";
    let edges = "@edges\n11 -> 1\n12 -> 2\n13 -> 3\n14 -> 4\n15 -> 5\n16 -> 6\n";
    let world = scud_project(graph(&format!("{rows}{waits}"), edges));
    let script = format!("append ../../../ran ${{DESCARTES_TASK_ID}} ;; {WORKS}");
    let ended = start(&world, &script, &["--verify", "true"]);
    ended.assert_code(6);
    assert_eq!(left(&world, "ran"), "16\n");
    assert_eq!(statuses(&world), "B!CFRDPPPPPD");
    for (task, before) in [(11, 1), (12, 2), (13, 3), (14, 4), (15, 5)] {
        let words = format!("task {task} was not started: it is waiting for {before}");
        assert!(said(&ended).contains(&words), "{words}: {}", said(&ended));
    }
}

#[test]
fn an_expanded_task_is_done_when_its_parts_are() {
    let rows = "1 | Whole | X | 5 | M\n1.1 | Part | P | 1 | M\n1.2 | Part | P | 1 | M\n\
        2 | After the whole | P | 1 | M\n";
    let rest = "@edges\n2 -> 1\n1.2 -> 1.1\n\n@parents\n1: 1.1, 1.2\n";
    let world = scud_project(graph(rows, rest));
    let script = format!("append ../../../ran ${{DESCARTES_TASK_ID}} ;; {WORKS}");
    start(&world, &script, &["--verify", "true"]).assert_code(0);
    assert_eq!(left(&world, "ran"), "1.1\n1.2\n2\n");
    assert_eq!(statuses(&world), "DDDD");
}

/// All that a status change of SCUD's own would drop.
const ODD: &str = "@weave\nw:1 | src lock | P\n\n@details\n1 | description |\n  First.\n\n  \
    @staticmethod stays\n  # so does a heading\n  ---\n  and this.\n1 | remarks |\n  Ours.\n\
    42 | description |\n  Of nobody.\n";

#[test]
fn odd_files_keep_every_byte() {
    let rows =
        "1 | Größe über alles \\| ⚓ | P | 3 | H | role=x scope=y\nnot a row\n2 | b | P | 1 | M\n";
    let long = "x".repeat(100_000);
    let text = graph(
        rows,
        &format!("@edges\n2 -> 1\n1 ~~ 2 | reason=x\n\n{ODD}2 | details |\n  {long}\n"),
    );
    let world = scud_project(&text);
    let script = format!("save-prompt ../../../prompt-${{DESCARTES_TASK_ID}} ;; {WORKS}");
    let refused = start(&world, &script, &["--verify", "true"]);
    refused.assert_code(65);
    assert!(
        said(&refused).contains("tasks.scg:6:1: SCUD drops this row"),
        "{}",
        said(&refused)
    );

    let text = text.replace("not a row\n", "");
    world.write(".scud/tasks/tasks.scg", &text);
    start(&world, &script, &["--verify", "true"]).assert_code(0);
    assert_eq!(
        world.read(".scud/tasks/tasks.scg"),
        text.replace(" | P | ", " | D | ")
    );
    let prompt = left(&world, "prompt-1");
    for line in [
        "@staticmethod stays",
        "# so does a heading",
        "and this.",
        "Ours.",
    ] {
        assert!(prompt.contains(line), "{line}: {prompt}");
    }
    assert!(!world.has("work-w:1"), "no task was made of a foreign row");
}

#[test]
fn every_task_is_counted_and_every_title_shown() {
    let title = "Ärgerlich lange Überschriften über das größte Schiff ⛴ im Hafen von Brest";
    let rows = format!(
        "1 | {title} | X | 5 | M\n1.1 | {title} | P | 1 | M\n1.2 | {title} | ! | 1 | M\n\
         2 | {title} | R | 1 | M\n3 | {title} | F | 1 | M\n"
    );
    let world = scud_project(graph(&rows, "@parents\n1: 1.1, 1.2\n"));
    let ended = start(&world, WORKS, &["--verify", "true"]);
    ended.assert_code(6);
    assert!(said(&ended).contains("größte Schiff"), "{}", said(&ended));
    let status = run(&world, &["loop", "status"]);
    status.assert_code(0);
    assert!(
        status.stdout().contains("Tasks: 1 of 4 done"),
        "{}",
        status.stdout()
    );
    for words in [
        &["graph", "--scud-tag", "auth"][..],
        &["graph", "--scud-tag", "auth", "--format", "svg"],
        &["spec", "1.1", "--scud-tag", "auth"],
        &["loop", "history"],
        &["loop", "list"],
        &["work"],
    ] {
        run(&world, words).assert_code(0);
    }
}

#[test]
fn one_tag_is_run_once_at_a_time() {
    let world = two_waves();
    let lock = world.project().join(".scud/swarm/auth.lock");
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    let held = File::create(&lock).unwrap();
    held.lock().unwrap();
    let refused = start(&world, WORKS, &["--verify", "true"]);
    refused.assert_code(65);
    assert!(said(&refused).contains("auth.lock"), "{}", said(&refused));
    assert_eq!(statuses(&world), "PPP");
    drop(held);
    // While ours runs, SCUD's own swarm finds the lock taken.
    let script = format!("wait-file ../../../go 60s ;; {WORKS}");
    start(&world, &script, &["--verify", "true", "--detach"]).assert_code(0);
    eventually("it holds the lock", Duration::from_secs(60), || {
        File::open(&lock).unwrap().try_lock().is_err()
    });
    std::fs::write(world.state().join("go"), "").unwrap();
    eventually("it ends", Duration::from_secs(120), || {
        status_of(&world)["completed"] == true
    });
    eventually("the lock is free", Duration::from_secs(30), || {
        File::open(&lock).unwrap().try_lock().is_ok()
    });
}
