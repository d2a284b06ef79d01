//! Tasks that somebody else marks or removes while the loop runs: an agent with a text editor is
//! enough. They are not run, not called proven, and told wherever the result is.

use descartes_testkit::World;
use descartes_testkit::world::Finished;

use crate::task_common::{graph, repository, run, said, scud_project, statuses};

const ROWS: &str = "1 | One | P | 1 | H\n2 | Two | P | 1 | M\n3 | Three | P | 1 | M";
const NOT_PROVEN: &str = "marked by others, not proven";

/// An agent that does this for the first task, then its work.
fn agent(world: &World, first: &str) -> String {
    let file = world.project().join(".scud/tasks/tasks.scg");
    let script = format!(
        "#!/bin/sh\nFILE={file}\nROADMAP={project}/ROADMAP.md\n\
         case $DESCARTES_TASK_ID in 1|a) {first} ;; esac\n\
         echo x > work-$DESCARTES_TASK_ID\necho '<promise>COMPLETE</promise>'\n",
        file = file.display(),
        project = world.project().display(),
    );
    let program = world.program("marking-agent", &script);
    program.display().to_string()
}

fn start(world: &World, first: &str, flags: &[&str]) -> Finished {
    let agent = agent(world, first);
    let words = ["loop", "start", "--scud-tag", "auth", "--command", &agent];
    run(world, &[&words[..], flags].concat())
}

fn roadmap(world: &World, first: &str, flags: &[&str]) -> Finished {
    let agent = agent(world, first);
    let words = ["roadmap", "run", "ROADMAP.md", "--command", &agent];
    run(world, &[&words[..], flags].concat())
}

const MARKS: &str = "sed -i 's/^2 | Two | P/2 | Two | D/; s/^3 | Three | P/3 | Three | C/' $FILE";

#[test]
fn what_an_agent_marked_is_told_everywhere_and_accepted_by_a_person_alone() {
    let world = scud_project(graph(ROWS, ""));
    let ended = start(&world, MARKS, &["--verify", "true"]);
    ended.assert_code(6);
    let told = said(&ended);
    assert!(
        told.contains("2 Two: marked done, its gates pass"),
        "{told}"
    );
    assert!(told.contains("3 Three: marked cancelled"), "{told}");
    assert_eq!(told.matches(NOT_PROVEN).count(), 2, "{told}");
    assert!(
        told.contains("descartes loop resume --trust-marks"),
        "{told}"
    );
    assert_eq!(statuses(&world), "DDC", "marks are left as they are");
    assert!(world.has("work-1") && !world.has("work-2") && !world.has("work-3"));

    let status = run(&world, &["loop", "status"]);
    assert!(
        status
            .stdout()
            .contains("Marked by others, not proven: 2 Two")
    );
    assert!(
        status.stdout().contains("Tasks: 1 of 3 done"),
        "{}",
        status.stdout()
    );
    let json = run(&world, &["loop", "status", "--json"]).stdout();
    assert!(json.contains("marked_tasks"), "{json}");
    run(&world, &["report", "--output", "page.html"]).assert_code(0);
    assert!(
        world
            .read("page.html")
            .contains("Marked by others, not proven")
    );

    run(&world, &["loop", "resume"]).assert_code(6);
    let mut within = world.descartes(["loop", "resume", "--trust-marks"]);
    within.env("DESCARTES_LOOP_ID", "some-loop");
    world.run(within).assert_code(65);
    let accepted = run(&world, &["loop", "resume", "--trust-marks"]);
    accepted.assert_code(0);
    assert!(said(&accepted).contains(NOT_PROVEN), "{}", said(&accepted));
}

#[test]
fn marks_are_trusted_from_the_start_where_a_person_says_so() {
    let world = scud_project(graph(ROWS, ""));
    start(&world, MARKS, &["--verify", "true", "--trust-marks"]).assert_code(0);
    let plain = run(
        &world,
        &[
            "loop",
            "start",
            "--command",
            "true",
            "--prompt",
            "x",
            "--trust-marks",
        ],
    );
    plain.assert_code(64);
}

#[test]
fn in_the_users_own_tree_marks_are_told_as_well() {
    let world = scud_project(graph(ROWS, ""));
    let ended = start(&world, MARKS, &["--verify", "test -e work-1", "--in-place"]);
    ended.assert_code(6);
    let told = said(&ended);
    assert!(
        told.contains("2 Two: marked done, its gates pass"),
        "{told}"
    );
}

#[test]
fn a_removed_task_is_told_and_satisfies_nobody() {
    let world = scud_project(graph(ROWS, ""));
    // Long enough for the loop to believe that it is gone.
    let ended = start(
        &world,
        "sed -i '/^2 | Two/d' $FILE; sleep 3",
        &["--verify", "true"],
    );
    ended.assert_code(6);
    let told = said(&ended);
    assert!(
        told.contains("removed from the file: marked by others"),
        "{told}"
    );
    assert!(world.has("work-3"));
}

const ROADMAP: &str = "# Roadmap\n\n## Tasks\n- [ ] **a**: First\n- [ ] **b**: Second\n  \
    - check: test -e work-b\n- [ ] **c**: Third\n  - depends: b\n  - check: test -e work-c\n";

#[test]
fn boxes_that_were_ticked_too_early_are_opened_again_and_the_tasks_are_run() {
    let world = repository("ROADMAP.md", ROADMAP);
    let ticks = "sed -i 's/\\[ \\]/[x]/' $ROADMAP\n\
        until grep -q '\\[ \\] \\*\\*b' $ROADMAP; do sleep 0.1; done";
    let ended = roadmap(&world, ticks, &["--timeout", "100s"]);
    ended.assert_code(0);
    let told = said(&ended);
    assert!(
        told.contains("task b: marked done by others, but a gate fails"),
        "{told}"
    );
    assert!(world.has("work-b") && world.has("work-c"));
    assert_eq!(world.read("ROADMAP.md").matches("[x]").count(), 3);
}

#[test]
fn a_second_mark_stays_and_is_worth_nothing_to_others() {
    let world = repository("ROADMAP.md", ROADMAP);
    // It ticks the box, waits until it is open again, ticks it again, and waits to be seen.
    let ticks = "sed -i 's/\\[ \\] \\*\\*b/[x] **b/' $ROADMAP\n\
        until grep -q '\\[ \\] \\*\\*b' $ROADMAP; do sleep 0.1; done\n\
        sed -i 's/\\[ \\] \\*\\*b/[x] **b/' $ROADMAP";
    let ended = roadmap(&world, ticks, &["--timeout", "100s"]);
    ended.assert_code(6);
    let told = said(&ended);
    assert!(
        told.contains("b Second: marked done, a gate fails"),
        "{told}"
    );
    assert!(
        told.contains("task c was not started: it is waiting for b"),
        "{told}"
    );
    let status = run(&world, &["roadmap", "status", "ROADMAP.md"]);
    assert!(status.stdout().contains(NOT_PROVEN), "{}", status.stdout());
    assert!(!world.has("work-c"));
}

#[test]
fn a_box_that_is_opened_while_the_loop_runs_is_ticked_again_and_that_is_said_once() {
    let world = repository("ROADMAP.md", ROADMAP);
    let file = world.path("ROADMAP.md");
    // The agents of the other two tasks open the box of the first.
    let script = format!(
        "sh t() {{ until grep -q '\\[x\\] \\*\\*a' {0}; do sleep 0.05; done; }}; \
         [ $DESCARTES_TASK_ID = a ] || {{ t; sed -i 's/\\[x\\] \\*\\*a/[ ] **a/' {0}; t; }}\n\
         write work-${{DESCARTES_TASK_ID}} x ;; promise",
        file.display()
    );
    let ended = crate::task_common::roadmap(&world, &script, &["--timeout", "100s"]);
    ended.assert_code(0);
    let words = "task a is done and proven, but was opened again";
    assert_eq!(said(&ended).matches(words).count(), 1, "{ended}");
    assert_eq!(world.read("ROADMAP.md").matches("[x]").count(), 3);
}
