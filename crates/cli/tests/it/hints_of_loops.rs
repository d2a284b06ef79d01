//! Suggestions that are made for a loop of one agent, each typed where it is printed.

use std::path::PathBuf;

use descartes_testkit::World;

use crate::common::loop_dir;
use crate::docs_commands::Situation::{self, *};
use crate::hint_rows::{Row, row, try_rows, typed};

/// A second loop beside the one that there is.
const START: &str = "descartes loop start --backend claude --permissions edit --prompt go";
/// What a person adds to start one.
const TASK: &str = " --backend claude --permissions edit --prompt go";

#[track_caller]
fn while_it_is(situation: Situation, rows: &[Row]) {
    try_rows(|| situation.world(), rows);
}

fn journal(world: &World) -> PathBuf {
    loop_dir(world).join("journal.jsonl")
}

#[test]
fn what_is_suggested_while_a_loop_runs() {
    while_it_is(
        Running,
        &[
            row("descartes loop kill", "descartes loop cancel --now").says("cancelled"),
            row("descartes stop", "descartes loop cancel").says("cancelled"),
            row(
                "descartes loop say ''",
                "descartes loop say \"use the jiff crate for dates\"",
            )
            .says("accepted"),
            row("descartes loop rewind 1", "descartes loop cancel {}").says("cancelled"),
            row(START, "descartes loop status{id}").says("Running"),
            row(START, "descartes loop cancel{id}").says("cancelled"),
            row(
                "descartes loop start --backend claude --permissions edit --prompt go --name auth --state-file other.json",
                "descartes loop status {id}",
            )
            .says("Running"),
            row(
                "descartes loop pause; descartes loop status",
                "descartes loop unpause",
            ),
            row(
                "descartes loop set --max-iterations 1; descartes loop say 'use tabs'",
                "descartes loop set --max-iterations {}",
            )
            .says("max_iterations"),
        ],
    );
}

#[test]
fn what_is_suggested_for_a_loop_that_is_done() {
    while_it_is(
        Done,
        &[
            row("descartes loop pause", "descartes loop start").behind(TASK),
            row(
                "descartes loop rewind 1 --yes",
                "descartes loop rewind {copy}{}{}",
            )
            .behind(" --yes")
            .says("is as"),
            row(
                "descartes loop start --backend claude --permissions edit --prompt go --state-file other.json --name \"it's\"",
                "descartes loop {verb} {}{rest}",
            )
            .says("promise"),
            row(START, "descartes loop {verb}{rest}").says("promise"),
            row(
                "descartes loop start --backend claude --permissions edit --prompt go --state-file other.json --name=-x",
                "descartes loop {verb}{rest} -- {}",
            )
            .says("promise"),
            row("descartes status", "descartes loop {verb}").says("auth"),
            row("descartes loop resume", "descartes loop start").behind(TASK),
            row(
                "descartes loop rewind 1 --yes; descartes clean --older 0s",
                "descartes loop rewind {newest} {id}",
            )
            .behind(" --yes")
            .says("is as"),
            row(
                "descartes report --output r.html; cat r.html",
                "descartes loop logs {} {id}",
            )
            .says("did it"),
        ],
    );
    try_rows(
        || {
            let world = Project.world();
            typed(&world, "project", &format!("{START} --verify false -m 3")).assert_code(2);
            world
        },
        &[row("descartes loop rewind", "descartes loop rewind 3")],
    );
}

#[test]
fn what_is_suggested_for_a_loop_that_was_interrupted() {
    while_it_is(
        Interrupted,
        &[
            row("descartes loop status", "descartes loop resume"),
            row(START, "descartes loop resume {id}"),
            row("descartes clean --older 0s", "descartes loop resume {}"),
            row("descartes doctor", "descartes loop resume {}"),
            row("descartes loop say 'use tabs'", "descartes loop resume{}"),
            row(
                "sed -i 's/\"loop_id\": \"0/\"loop_id\": \"1/' .descartes/loop-state.json; descartes loop resume",
                "descartes loop resume {was}",
            ),
        ],
    );
}

#[test]
fn what_is_suggested_at_a_limit() {
    while_it_is(
        AtLimit,
        &[
            row("descartes loop resume", "descartes loop resume {flags}").says("done"),
            row(
                "descartes loop start --backend claude --permissions edit --prompt go --force",
                "descartes loop resume {id}",
            )
            .ends(2),
        ],
    );
    while_it_is(
        Edited,
        &[row(
            "descartes loop resume",
            "descartes loop resume --accept-edits",
        )],
    );
    // Another loop has the state file by now.
    try_rows(
        || {
            let world = AtLimit.world();
            std::fs::write(world.root().join("hold"), "").unwrap();
            let other = format!("{START} --name other --force --detach");
            typed(&world, "project", &other).assert_code(0);
            world
        },
        &[row(
            "descartes loop say 'use tabs' auth",
            "descartes loop status",
        )
        .says("other")],
    );
}

#[test]
fn what_is_suggested_in_a_copy_of_a_project() {
    while_it_is(
        Copied,
        &[
            row("descartes loop resume", "descartes loop resume --here{}")
                .place("copy")
                .says("independent"),
            row(
                "descartes loop resume --here",
                "descartes loop history {}",
            )
            .place("copy"),
            row(
                "sed -i 's/\"max_iterations\": [0-9]*,/\"max_iterations\": 9,/' .descartes/loop-state.json
                descartes loop resume --here",
                "descartes loop resume --here --accept-edits",
            )
            .place("copy"),
        ],
    );
}

/// A loop whose state file has another name than the usual one, in a copy.
#[test]
fn what_is_suggested_for_a_copied_state_file_of_another_name() {
    try_rows(
        || {
            let world = Project.world();
            let start = format!("{START} --verify false -m 1 --state-file 'my loop.json'");
            typed(&world, "project", &start).assert_code(2);
            typed(&world, ".", "cp -a project copy").assert_code(0);
            world
        },
        &[row(
            "sed -i 's/\"max_iterations\": 1,/\"max_iterations\": 2,/' 'my loop.json'
                descartes loop resume --here --state-file 'my loop.json'",
            "descartes loop resume --here{} --accept-edits",
        )
        .place("copy")
        .ends(2)
        .says("iteration 2 of at most 2")],
    );
}

#[test]
fn what_is_suggested_for_a_damaged_journal() {
    try_rows(
        || {
            let world = Interrupted.world();
            let text = std::fs::read_to_string(journal(&world)).unwrap();
            let (first, rest) = text.split_once('\n').unwrap();
            let (_, rest) = rest.split_once('\n').unwrap();
            std::fs::write(journal(&world), format!("{first}\nnonsense\n{rest}")).unwrap();
            world
        },
        &[row(
            "descartes loop resume",
            "descartes loop resume --repair drops the damaged line and keeps a copy of the file",
        )
        .fill(" drops the damaged line and keeps a copy of the file", "")],
    );
    try_rows(
        || {
            let world = Interrupted.world();
            std::fs::write(journal(&world), "").unwrap();
            world
        },
        &[
            row(
                "rm .descartes/loop-state.json; descartes loop resume auth",
                "descartes loop start --force",
            )
            .behind(TASK),
            row(
                "descartes loop resume",
                "descartes loop resume --state-file {1}",
            )
            .before("cd ..; for l in state/loops/*; do mv $l $l.damaged; done; cd project"),
        ],
    );
}

#[test]
fn what_is_suggested_for_a_state_file_that_never_ran() {
    try_rows(
        || {
            let world = Project.world();
            let state = r#"{"version": "1.0", "iteration": 0, "config": {"command": "claude", "args": [],
                "prompt": "go", "completion_promise": "COMPLETE", "max_iterations": 1}}"#;
            world.write("my state.json", state);
            world
        },
        &[
            row(
                "descartes loop history --state-file 'my state.json'",
                "descartes loop resume --state-file {}",
            )
            .ends(2)
            .says("iteration limit"),
            row("descartes loop resume", "descartes loop start").behind(TASK),
            row(
                "mkdir .descartes; echo '{' > .descartes/loop-state.json; descartes loop resume",
                "descartes loop list",
            ),
            row(
                "mkdir .descartes; echo '{' > .descartes/loop-state.json; descartes loop resume",
                "descartes loop start --force",
            )
            .behind(TASK),
        ],
    );
}

#[test]
fn what_is_suggested_when_a_state_file_is_changed_by_its_agent() {
    try_rows(
        || {
            let world = Project.world();
            world.program(
                "edits",
                "#!/bin/sh\nsed -i 's/\"max_iterations\": 2,/\"max_iterations\": 9,/' .descartes/loop-state.json\n",
            );
            world
        },
        &[row(
            "descartes loop start --command edits --prompt go -m 2",
            "descartes loop set",
        )
        .behind(" --max-iterations 3")],
    );
}

#[test]
fn what_is_suggested_for_output_that_is_not_understood() {
    try_rows(
        || {
            let world = Project.world();
            world.program(
                "claude",
                "#!/bin/sh\necho '{\"type\":'\necho '{\"type\":'\n",
            );
            let start = format!("{START} -m 1");
            typed(&world, "project", &start);
            world
        },
        &[row("descartes doctor", "descartes loop logs --raw {}").says("type")],
    );
}

#[test]
fn what_is_suggested_for_files_outside_of_the_folder_of_a_loop() {
    try_rows(
        || {
            let world = Project.world();
            world.write("sub/a.txt", "a");
            world.git(["add", "."]);
            world.git(["commit", "--quiet", "--message", "sub"]);
            world.program(
                "works",
                "#!/bin/sh\necho b > a.txt\necho b > ../PROMPT.md\n",
            );
            let start = "descartes loop start --command works --prompt go -m 1";
            typed(&world, "project/sub", start).assert_code(2);
            world
        },
        &[row(
            "descartes loop rewind 0 --yes",
            "descartes loop rewind {target}{} --whole-repository",
        )
        .place("project/sub")
        .behind(" --yes")],
    );
}
