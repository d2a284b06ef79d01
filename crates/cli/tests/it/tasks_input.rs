//! Task files, plans and repositories that are not as they should be: an error or a said decision
//! before any agent starts, and nothing lost.

use std::time::Duration;

use descartes_testkit::{World, eventually};

use crate::task_common::{WORKS, graph, left, run, said, scud_project, start, statuses};

const ROWS: &str = "1 | Model | P | 3 | H\n2 | Store | P | 2 | M\n";
const TRACED: &str = "append ../../../ran ${DESCARTES_TASK_ID} ;; save-prompt ../../../prompt-${DESCARTES_TASK_ID} ;; write work-${DESCARTES_TASK_ID} x ;; promise";

#[test]
fn graphs_that_cannot_be_run() {
    for (text, words) in [
        (graph("", ""), "the tag `auth` has no tasks"),
        (
            graph(ROWS, "@edges\n1 -> 2\n2 -> 1\n"),
            "dependency cycle: 1 → 2 → 1",
        ),
        (
            graph(ROWS, "@edges\n1 -> 1\n"),
            "tasks.scg:9:1: task `1` depends on itself",
        ),
        (
            graph(ROWS, "@edges\n2 -> 9\n"),
            "task `2` depends on `9`, which does not exist",
        ),
        (
            graph("1 | a | P | 1 | M\n1 | b | P | 1 | M\n", ""),
            "the id `1` is already used on line 5",
        ),
        (String::new(), "there are no tasks in it yet"),
        ("{\"auth\": {}}".to_owned(), "tasks.scg"),
    ] {
        let world = scud_project(&text);
        let refused = start(&world, TRACED, &["--verify", "true"]);
        refused.assert_code(65);
        assert!(
            said(&refused).contains(words),
            "{words}\n{}",
            said(&refused)
        );
        assert_eq!(world.read(".scud/tasks/tasks.scg"), text);
        assert!(!world.has(".descartes"), "nothing is begun");
        assert_eq!(left(&world, "ran"), "");
    }
    let world = scud_project(b"# SCUD Graph v1\n# Phase: auth\n@nodes\n1 | \xff | P | 1 | M\n");
    let refused = start(&world, TRACED, &["--verify", "true"]);
    refused.assert_code(65);
    assert!(said(&refused).contains("not UTF-8"), "{}", said(&refused));
}

#[test]
fn a_mistyped_tag_is_answered_with_those_that_are_there() {
    let world = scud_project(graph(ROWS, ""));
    for (tag, hint) in [
        ("nope", "hint: known tags: auth"),
        ("aut", "did you mean --scud-tag auth?"),
    ] {
        let words = ["loop", "start", "-c", "true", "--scud-tag", tag];
        let refused = run(&world, &words);
        refused.assert_code(65);
        assert!(refused.stderr().contains(hint), "{refused}");
    }
}

#[test]
fn a_task_loop_that_could_not_find_any_task_done_is_refused() {
    let world = scud_project(graph(ROWS, ""));
    let refused = start(&world, TRACED, &["--no-promise"]);
    refused.assert_code(64);
    assert!(refused.stderr().contains("hint: add --verify"), "{refused}");
    assert_eq!(left(&world, "ran"), "");
    start(&world, TRACED, &["--no-promise", "--verify", "true"]).assert_code(0);
}

#[test]
fn windows_line_ends_stay() {
    let text = graph(ROWS, "@edges\n2 -> 1\n").replace('\n', "\r\n");
    let world = scud_project(&text);
    start(&world, TRACED, &["--verify", "true"]).assert_code(0);
    let done = text.replace(" | P | ", " | D | ");
    assert_eq!(world.read(".scud/tasks/tasks.scg"), done);
    assert_eq!(left(&world, "ran"), "1\n2\n");
}

#[test]
fn a_file_cut_in_half_while_the_loop_runs_stops_nothing_for_long() {
    let rows = "1 | Model | P | 3 | H\n2 | Store | P | 2 | M\n3 | Wire up | P | 5 | M\n";
    let whole = graph(rows, "@edges\n3 -> 1\n3 -> 2\n");
    let world = scud_project(&whole);
    let script = format!(
        "touch ../../../at-${{DESCARTES_TASK_ID}} ;; unless-file ../../../go wait-file ../../../go 60s ;; {WORKS}"
    );
    start(&world, &script, &["--verify", "true", "--detach"]).assert_code(0);
    eventually("task 1 is at work", Duration::from_secs(60), || {
        world.state().join("at-1").exists()
    });
    let now = world.read(".scud/tasks/tasks.scg");
    world.write(".scud/tasks/tasks.scg", &now[..now.len() / 2]);
    eventually("it is said", Duration::from_secs(60), || {
        let journal = crate::common::loops(&world)
            .into_iter()
            .map(|dir| std::fs::read_to_string(dir.join("journal.jsonl")).unwrap_or_default());
        journal.collect::<String>().contains("tasks.scg")
    });
    world.write(".scud/tasks/tasks.scg", &now);
    std::fs::write(world.state().join("go"), "").unwrap();
    eventually("all is done", Duration::from_secs(120), || {
        statuses(&world) == "DDD"
    });
    eventually("it ends", Duration::from_secs(60), || {
        let status = run(&world, &["loop", "status", "--json"]).stdout();
        serde_json::from_str::<serde_json::Value>(&status).unwrap()["completed"] == true
    });
}

#[test]
fn plans_and_specs_that_do_not_fit_are_told() {
    let world = scud_project(graph(ROWS, ""));
    world.write("plan.md", "# Plan\n## Something else entirely\nNot this.\n");
    world.write("big.md", "word ".repeat(20_000));
    let flags = [
        "--verify",
        "true",
        "--plan",
        "plan.md",
        "--spec-file",
        "big.md",
    ];
    let done = start(
        &world,
        TRACED,
        &[&flags[..], &["--max-spec-tokens", "500"]].concat(),
    );
    done.assert_code(0);
    let words = said(&done);
    assert!(
        words.contains("the plan has no section for task `1`"),
        "{words}"
    );
    assert!(
        words.contains("big.md") && words.contains("tokens"),
        "{words}"
    );
    let prompt = left(&world, "prompt-1");
    assert!(
        prompt.contains("Model") && prompt.len() < 8_000,
        "{}",
        prompt.len()
    );

    let missing = start(&world, TRACED, &["--force", "--plan", "nowhere.md"]);
    missing.assert_code(64);
    assert!(said(&missing).contains("nowhere.md"), "{}", said(&missing));
}

fn files(world: &World) -> Vec<String> {
    let status = world.git(["status", "--porcelain"]);
    status
        .lines()
        .map(|line| line.trim().to_owned())
        .filter(|line| !line.contains(".scud"))
        .collect()
}

#[test]
fn changes_of_the_users_own_stay_where_they_are() {
    let world = scud_project(graph(ROWS, ""));
    world.write("README.md", "mine\n");
    world.write("staged.txt", "staged\n");
    world.git(["add", "staged.txt"]);
    world.write("new.txt", "new\n");
    let before = files(&world);
    start(&world, TRACED, &["--verify", "test ! -f new.txt"]).assert_code(0);
    assert_eq!(files(&world), before);
    assert_eq!(world.read("README.md"), "mine\n");
    let changed = world.git(["log", "--format=", "--name-only", "-1", "--grep=^feat"]);
    assert_eq!(changed, "work-1\nwork-2");
}

#[test]
fn repositories_that_cannot_carry_worktrees_are_told() {
    let world = World::in_memory();
    world.git(["init", "--quiet"]);
    world.write(".scud/tasks/tasks.scg", graph(ROWS, ""));
    let refused = start(&world, TRACED, &["--verify", "true"]);
    refused.assert_code(65);
    assert!(
        said(&refused).contains("worktrees need a commit to start from"),
        "{}",
        said(&refused)
    );
    assert_eq!(statuses(&world), "PP");

    let world = World::in_memory();
    world.write(".scud/tasks/tasks.scg", graph(ROWS, ""));
    let refused = start(&world, TRACED, &["--verify", "true"]);
    refused.assert_code(65);
    assert!(said(&refused).contains("--in-place"), "{}", said(&refused));
    start(&world, WORKS, &["--verify", "true", "--in-place"]).assert_code(0);
    assert_eq!(statuses(&world), "DD");

    let world = World::in_memory();
    world.write(".scud/tasks/tasks.scg", graph(ROWS, ""));
    world.write(".descartes/config.toml", "in_place = true\n");
    start(&world, WORKS, &["--verify", "true"]).assert_code(0);
    assert_eq!(statuses(&world), "DD");
    assert!(world.has("work-1"));
}

#[test]
fn a_submodule_is_said_and_stays_as_it_is() {
    let library = World::in_memory();
    library.git_init();
    let world = scud_project(graph(ROWS, ""));
    let from = library.project().to_string_lossy().into_owned();
    let allow = "protocol.file.allow=always";
    world.git(["-c", allow, "submodule", "--quiet", "add", &from, "lib"]);
    world.git(["commit", "--quiet", "--message", "library"]);
    let at = world.git(["rev-parse", "HEAD:lib"]);
    let done = start(&world, TRACED, &["--verify", "true"]);
    done.assert_code(0);
    assert!(said(&done).contains("submodules"), "{}", said(&done));
    assert_eq!(world.git(["rev-parse", "HEAD:lib"]), at);
    assert!(world.has("lib/README.md"));
    assert_eq!(files(&world), Vec::<String>::new());
}
