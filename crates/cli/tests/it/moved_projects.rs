//! A state file that lies elsewhere than its loop says: nothing is done in another folder than the one
//! that was asked for, and `resume --here` goes on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use descartes_testkit::World;
use descartes_testkit::world::Finished;
use serde_json::Value;

use crate::common::{descartes, json_lines, loops, start};

/// A loop of two iterations that each wrote a file, at its limit.
fn stopped() -> World {
    let world = World::in_memory();
    world.git_init();
    world.write("P.md", "the task\n");
    let script = "sh pwd >> where; echo ${ITERATION} > made-${ITERATION}\n@5- promise";
    start(&world, script, &["-m", "2", "--prompt-file", "P.md"]).assert_code(2);
    world
}

fn copy(world: &World, name: &str) -> PathBuf {
    let to = world.root().join(name);
    let mut copy = Command::new("cp");
    copy.args(["-a"]).arg(world.project()).arg(&to);
    assert!(copy.status().unwrap().success());
    to
}

#[track_caller]
fn at(world: &World, dir: &Path, words: &[&str]) -> Finished {
    let mut command = world.descartes(words);
    command.current_dir(dir);
    world.run(command)
}

fn state_in(dir: &Path) -> Value {
    serde_json::from_slice(&fs::read(dir.join(".descartes/loop-state.json")).unwrap()).unwrap()
}

fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    found.sort();
    found
}

#[test]
fn in_a_copied_project_nothing_is_done_to_the_original() {
    let world = stopped();
    let copied = copy(&world, "copy");
    fs::write(world.path("new-in-original"), "mine").unwrap();
    let before = files(&world.project());
    let journal = fs::read(loops(&world)[0].join("journal.jsonl")).unwrap();
    for words in [
        &["loop", "rewind", "1", "--yes"][..],
        &["loop", "diff", "1"],
        &["loop", "resume", "-m", "9"],
        &["loop", "cancel"],
        &["loop", "set", "-m", "9"],
        &["loop", "say", "hello"],
        &["loop", "pause"],
    ] {
        let run = at(&world, &copied, words);
        run.assert_code(65);
        assert!(run.stderr().contains("is a copy"), "{run}");
        assert!(
            run.stderr().contains("descartes loop resume --here"),
            "{run}"
        );
    }
    assert_eq!(files(&world.project()), before);
    let now = fs::read(loops(&world)[0].join("journal.jsonl")).unwrap();
    assert_eq!(now, journal);
    let status = at(&world, &copied, &["loop", "status"]);
    status.assert_code(0);
    assert!(status.stderr().contains("is a copy"), "{status}");
    assert!(status.stderr().contains("resume --here"), "{status}");
}

#[test]
fn a_copy_that_is_taken_over_is_a_loop_of_its_own() {
    let world = stopped();
    let copied = copy(&world, "copy");
    let old = state_in(&world.project())["loop_id"].clone();
    let run = at(&world, &copied, &["loop", "resume", "--here", "-m", "3"]);
    run.assert_code(2);
    assert!(
        run.stderr()
            .contains(&format!("loop history {}", old.as_str().unwrap())),
        "{run}"
    );
    let here = fs::read_to_string(copied.join("where")).unwrap();
    assert_eq!(here.lines().last(), copied.canonicalize().unwrap().to_str());
    assert!(copied.join("made-3").is_file() && !world.has("made-3"));
    let (ours, theirs) = (state_in(&copied), state_in(&world.project()));
    assert_ne!(ours["loop_id"], old);
    assert_eq!(
        (&ours["iteration"], &theirs["iteration"]),
        (&3.into(), &2.into())
    );
    assert_eq!(theirs["loop_id"], old);
    assert_eq!(
        ours["config"]["prompt_file"],
        copied.join("P.md").to_str().unwrap()
    );
    // Both go on, each in its own folder; nothing needs the flag any more.
    at(&world, &copied, &["loop", "resume", "-m", "4"]).assert_code(2);
    at(&world, &world.project(), &["loop", "resume", "-m", "3"]).assert_code(2);
    assert!(copied.join("made-4").is_file() && world.has("made-3") && !world.has("made-4"));
    at(&world, &copied, &["loop", "rewind", "3", "--yes"]).assert_code(0);
    assert!(!copied.join("made-4").is_file() && world.has("made-3"));
    // What it was before is told by the one it was copied from.
    let history = at(
        &world,
        &copied,
        &["loop", "history", old.as_str().unwrap(), "--json"],
    );
    assert!(json_lines(&history.stdout()).len() >= 2, "{history}");
}

#[test]
fn a_moved_project_goes_on_as_the_same_loop() {
    let world = stopped();
    let id = state_in(&world.project())["loop_id"].clone();
    let moved = world.root().join("moved");
    fs::rename(world.project(), &moved).unwrap();
    let status = at(&world, &moved, &["loop", "status"]);
    status.assert_code(0);
    assert!(status.stderr().contains("was moved"), "{status}");
    let run = at(&world, &moved, &["loop", "resume", "-m", "3"]);
    run.assert_code(65);
    assert!(
        run.stderr().contains("descartes loop resume --here"),
        "{run}"
    );
    at(&world, &moved, &["loop", "resume", "--here", "-m", "3"]).assert_code(2);
    assert!(moved.join("made-3").is_file());
    let state = state_in(&moved);
    assert_eq!((&state["loop_id"], &state["iteration"]), (&id, &3.into()));
    assert_eq!(loops(&world).len(), 1);
    // From now on it is at home here.
    at(&world, &moved, &["loop", "resume", "-m", "4"]).assert_code(2);
    at(&world, &moved, &["loop", "rewind", "1", "--yes"]).assert_code(0);
    assert!(!moved.join("made-2").exists() && moved.join("made-1").is_file());
    let history = at(&world, &moved, &["loop", "history", "--json"]);
    assert_eq!(json_lines(&history.stdout()).len(), 4, "{history}");
    let list = at(&world, &moved, &["loop", "list", "--json"]);
    assert!(list.stdout().contains(id.as_str().unwrap()), "{list}");
}

#[test]
fn a_loop_whose_directory_is_gone_goes_on_where_working_dir_says() {
    let world = World::in_memory();
    let elsewhere = world.root().join("state.json");
    let file = elsewhere.to_str().unwrap();
    let script = "sh pwd >> where\n@5- promise";
    start(
        &world,
        script,
        &["-m", "1", "--state-file", file, "--name", "far"],
    )
    .assert_code(2);
    let moved = world.root().join("moved");
    fs::rename(world.project(), &moved).unwrap();
    let run = at(&world, world.root(), &["loop", "resume", "far", "-m", "2"]);
    assert_ne!(run.code(), Some(2), "{run}");
    assert!(run.stderr().contains("--working-dir"), "{run}");
    let words = ["loop", "resume", "far", "-m", "2", "--working-dir", "moved"];
    at(&world, world.root(), &words).assert_code(2);
    assert_eq!(
        fs::read_to_string(moved.join("where"))
            .unwrap()
            .lines()
            .count(),
        2
    );
    let none = ["loop", "resume", "far", "--working-dir", "nowhere"];
    at(&world, world.root(), &none).assert_code(64);
}

#[test]
fn a_copy_on_a_machine_without_the_journal_is_told_apart_too() {
    let world = stopped();
    let copied = copy(&world, "copy");
    fs::remove_dir_all(world.state().join("loops")).unwrap();
    let run = at(&world, &copied, &["loop", "resume", "-m", "3"]);
    run.assert_code(65);
    assert!(run.stderr().contains("is a copy"), "{run}");
    at(&world, &copied, &["loop", "resume", "--here", "-m", "3"]).assert_code(2);
    assert!(copied.join("made-3").is_file() && !world.has("made-3"));
}

#[test]
fn here_means_nothing_new_where_the_loop_is_at_home() {
    let world = stopped();
    descartes(&world, &["loop", "resume", "--here", "-m", "3"]).assert_code(2);
    assert_eq!(loops(&world).len(), 1);
    assert_eq!(state_in(&world.project())["iteration"], 3);
}
