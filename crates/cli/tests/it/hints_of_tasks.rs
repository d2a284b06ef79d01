//! Suggestions that are made for a loop of tasks, each typed where it is printed.

use std::time::Duration;

use descartes_testkit::{World, eventually};

use crate::docs_commands::Situation::{self, *};
use crate::docs_commands::{ended, tasks};
use crate::hint_rows::{Row, row, try_rows, typed};

const SOON: Duration = descartes_testkit::PATIENCE;

/// Prints the id of the newest loop of a task.
const CHILD: &str = "#!/bin/sh\ndescartes query --csv 'select loop_id from loops where parent is not null' | tail -n 1\n";

#[track_caller]
fn while_it_is(situation: Situation, rows: &[Row]) {
    let world = || {
        let world = situation.world();
        world.program("child", CHILD);
        world
    };
    try_rows(world, rows);
}

/// The first of two tasks is at work.
fn at_work() -> World {
    let world = Project.world();
    world.program("child", CHILD);
    std::fs::write(world.root().join("hold"), "").unwrap();
    tasks(&world, &["--verify", "true", "--detach"], 0);
    eventually("the agent", SOON, || world.root().join("seen").exists());
    world
}

/// The only task of a roadmap is at work.
fn roadmap_at_work() -> World {
    let world = Project.world();
    std::fs::write(world.root().join("hold"), "").unwrap();
    let words = "descartes roadmap run ROADMAP.md --permissions edit --verify true --detach";
    typed(&world, "project", words).assert_code(0);
    eventually("the agent", SOON, || world.root().join("seen").exists());
    world
}

#[test]
fn what_is_suggested_while_a_task_loop_runs() {
    try_rows(
        at_work,
        &[
            row(
                "git worktree add -q ../two; cd ../two; descartes loop start --scud-tag auth --permissions edit",
                "descartes loop cancel {cancel}",
            )
            .says("cancelled"),
            row(
                "descartes loop cancel \"$(child)\"",
                "descartes loop cancel {parent}",
            )
            .says("is gone"),
            row(
                "descartes loop cancel \"$(child)\"",
                "descartes loop resume {parent} --retry-blocked",
            )
            .before("rm ../hold")
            .once(ended),
            row("descartes loop set --prompt x", "descartes loop say").behind(" 'use tabs'"),
        ],
    );
    try_rows(
        roadmap_at_work,
        &[row(
            "descartes roadmap reset ROADMAP.md",
            "descartes loop cancel --state-file {}",
        )
        .says("cancelled")],
    );
}

#[test]
fn what_is_suggested_for_tasks_that_are_blocked() {
    while_it_is(
        Blocked,
        &[
            row("descartes loop logs 1", "descartes loop logs ID")
                .fill("ID", "\"$(child)\"")
                .says("did it"),
            row(
                "descartes loop rewind 0 \"$(child)\"",
                "descartes loop diff {}",
            )
            .says("work"),
        ],
    );
    try_rows(
        || {
            let world = Project.world();
            let file = ".scud/tasks/tasks.scg";
            let text = world.read(file).replace(" | P | ", " | B | ");
            world.write(file, text);
            tasks(&world, &["--verify", "true"], 6);
            world
        },
        &[row("descartes loop logs", "descartes loop status {}").says("locked")],
    );
}

#[test]
fn what_is_suggested_for_work_that_waits() {
    while_it_is(
        Unlanded,
        &[
            row("descartes loop status", "descartes work land").says("done: every task"),
            row("descartes work", "descartes work land {tag}").says("done: every task"),
            row("descartes work land", "descartes loop list --children")
                .says("Completed (promise)"),
        ],
    );
}

#[test]
fn what_is_suggested_for_a_task_that_somebody_else_marked() {
    while_it_is(
        Marked,
        &[row(
            "descartes loop resume",
            "descartes loop resume --trust-marks",
        )],
    );
}

#[test]
fn what_is_suggested_for_a_task_that_was_added_with_commands() {
    try_rows(
        || {
            let world = Project.world();
            world.program(
                "adds",
                "#!/bin/sh\necho x > \"x-$DESCARTES_TASK_ID\"\ngrep -q two \"$R\" || printf -- '- [ ] **two**: Two\\n  - check: true\\n' >> \"$R\"\n",
            );
            world
        },
        &[row(
            "export R=$PWD/ROADMAP.md; descartes roadmap run ROADMAP.md --command adds",
            "descartes loop resume --retry-blocked",
        )
        .before("export R=$PWD/ROADMAP.md")],
    );
}
