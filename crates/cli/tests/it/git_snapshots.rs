//! Snapshots of the work tree: what they take, what they say, and what goes back.

use std::fs;
use std::path::Path;

use descartes_testkit::{World, eventually};

use crate::common::{descartes, events, loop_dir, start};

fn repository() -> World {
    let world = World::in_memory();
    world.git_init();
    world
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => bytes_in(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// Each iteration writes 600 kB that no compression makes smaller. Room is made while an agent works:
/// this one waits for it, as one that works for minutes would.
fn fills(world: &World) -> String {
    let objects = world.state().join("loops/*/objects");
    let used = format!(
        "find {} -type f -path '*/??/*' -printf '%b\\n' | awk '{{ all += $1 }} END {{ print all * 512 }}'",
        objects.display()
    );
    format!(
        "sh head -c 600000 /dev/urandom > big.bin\n\
         sh n=0; while [ $n -lt 300 ] && [ $({used}) -gt 2000000 ]; do n=$((n+1)); sleep 0.05; done\n\
         @1-7 print hm\n@8 promise"
    )
}

#[test]
fn snapshots_keep_to_their_budget_and_what_was_dropped_is_said() {
    let world = repository();
    start(&world, &fills(&world), &["--max-snapshots", "2MB"]).assert_code(0);
    let used = bytes_in(&loop_dir(&world).join("objects"));
    assert!(used < 3_000_000, "{used}");
    let said: Vec<String> = events(&world, "warning")
        .iter()
        .map(|warning| warning["message"].as_str().unwrap().to_owned())
        .filter(|message| message.contains("--max-snapshots"))
        .collect();
    assert_eq!(said.len(), 1, "{said:?}");
    for verb in [["diff", "1"], ["rewind", "1"]] {
        let old = descartes(&world, &["loop", verb[0], verb[1]]);
        old.assert_code(65);
        assert!(old.stderr().contains("was dropped"), "{old}");
    }
    descartes(&world, &["loop", "diff", "8", "--stat"]).assert_code(0);
    descartes(&world, &["loop", "rewind", "7", "--yes"]).assert_code(0);
}

/// One of a snapshot's calls is slow, where this holds.
fn slow_git(world: &World, condition: &str) {
    let mut which = world.command("sh");
    which.args(["-c", "command -v git"]);
    let git = world.run(which).stdout();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *ls-files*) {condition} && exec sleep 60;; esac\nexec {} \"$@\"\n",
        git.trim()
    );
    world.program("git", &script);
}

#[test]
fn a_measure_that_was_late_once_on_a_busy_machine_is_made_again() {
    let world = repository();
    let late = world.root().join("late");
    slow_git(&world, &format!("mkdir {} 2>/dev/null", late.display()));
    start(&world, "print hm", &["--stall-after", "1"]).assert_code(4);
    assert!(late.exists());
    assert_eq!(events(&world, "iteration_finished").len(), 2);
    assert_eq!(events(&world, "warning"), [""; 0]);
}

#[test]
fn measuring_that_takes_too_long_is_said_once_and_in_the_status() {
    let world = repository();
    slow_git(&world, "true");
    let script = "print hm\nwait-file go";
    let flags = ["--detach", "--stall-after", "1", "-m", "3"];
    start(&world, script, &flags).assert_code(0);
    descartes_testkit::eventually("the agent", std::time::Duration::from_secs(60), || {
        !events(&world, "run_started").is_empty()
    });
    let status = descartes(&world, &["loop", "status"]).stdout();
    assert!(
        status.contains("Progress: unknown, stall detection is off"),
        "{status}"
    );
    world.write("go", "");
    descartes_testkit::eventually("the end", std::time::Duration::from_secs(120), || {
        !events(&world, "loop_finished").is_empty()
    });
    let end = &events(&world, "loop_finished")[0];
    assert_eq!(end["reason"]["type"], "max_iterations_reached", "{end}");
    let said: Vec<String> = events(&world, "warning")
        .iter()
        .map(|warning| warning["message"].as_str().unwrap().to_owned())
        .filter(|message| message.contains("stall detection is off"))
        .collect();
    assert!(said[0].contains("took longer than 2s"), "{said:?}");
}

#[test]
fn nothing_is_restored_under_an_agent_that_works_elsewhere_in_the_repository() {
    let world = repository();
    start(&world, "write file ${ITERATION}", &["-m", "2"]).assert_code(2);
    let sub = world.path("sub");
    std::fs::create_dir_all(&sub).unwrap();
    world.program(
        "holds",
        "#!/bin/sh\ntouch held\nwhile :; do sleep 0.1; done\n",
    );
    let words = "loop start --command holds --prompt go --detach --name below --kill-grace 1s";
    let words: Vec<&str> = words.split(' ').collect();
    let mut below = world.descartes(&words);
    below.current_dir(&sub);
    world.run(below).assert_code(0);
    let soon = std::time::Duration::from_secs(60);
    eventually("the agent below", soon, || world.has("sub/held"));
    let run = descartes(&world, &["loop", "rewind", "1", "--yes"]);
    run.assert_code(65);
    assert!(
        run.stderr().contains("descartes loop cancel below"),
        "{run}"
    );
    assert_eq!(world.read("file").trim(), "2");
    descartes(&world, &["loop", "cancel", "below", "--now"]).assert_code(0);
    descartes(&world, &["loop", "rewind", "1", "--yes"]).assert_code(0);
    assert_eq!(world.read("file").trim(), "1");
}

#[test]
fn rewind_leaves_ignored_files_and_clean_keeps_safety_copies() {
    let world = repository();
    world.write(".gitignore", "secret.env\n");
    world.write("secret.env", "precious\n");
    world.git(["add", ".gitignore"]);
    world.git(["commit", "--quiet", "--message", "rules"]);
    let script = "append a.txt line\n@1 print hm\n@2 rm .gitignore\n@2 promise";
    start(&world, script, &[]).assert_code(0);
    assert!(!world.has(".gitignore"));
    world.write("mine.txt", "not committed anywhere\n");
    let run = descartes(&world, &["loop", "rewind", "1", "--yes"]);
    run.assert_code(0);
    assert_eq!(world.read("secret.env"), "precious\n");
    assert!(run.stderr().contains("ignored then: secret.env"), "{run}");
    assert!(run.stdout().contains("except for what is listed"), "{run}");
    assert!(!world.has("mine.txt"));

    let copies = descartes(&world, &["loop", "rewind", "--list"]).stdout();
    let cleaned = descartes(&world, &["clean", "--older", "0s", "--whole", "--yes"]);
    cleaned.assert_code(0);
    assert!(cleaned.stderr().contains("1 safety copy"), "{cleaned}");
    let said = cleaned.stderr();
    let back = said.split("go back with `descartes ").nth(1).unwrap();
    let back = back.split('`').next().unwrap();
    assert!(back.contains(copies.trim()), "{back}");
    let mut words: Vec<&str> = back.split(' ').collect();
    words.push("--yes");
    descartes(&world, &words).assert_code(0);
    assert_eq!(world.read("mine.txt"), "not committed anywhere\n");

    descartes(
        &world,
        &[
            "clean",
            "--older",
            "0s",
            "--whole",
            "--safety-copies",
            "--yes",
        ],
    )
    .assert_code(0);
    assert_eq!(crate::common::loops(&world).len(), 0);
}

#[test]
fn where_git_cannot_be_used_the_hint_is_about_that() {
    let bare = World::in_memory();
    start(&bare, "promise", &[]).assert_code(0);
    let none = descartes(&bare, &["loop", "diff", "1"]);
    assert!(none.stderr().contains("git init"), "{none}");
    bare.git(["init", "--quiet", "--bare", "."]);
    let without = descartes(&bare, &["loop", "diff", "1"]);
    without.assert_code(65);
    assert!(without.stderr().contains("git worktree add"), "{without}");
    assert!(!without.stderr().contains("git init"), "{without}");

    let world = repository();
    start(&world, "promise", &[]).assert_code(0);
    let mut foreign = world.descartes(["loop", "diff", "1"]);
    foreign.env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1");
    let foreign = world.run(foreign);
    foreign.assert_code(65);
    assert!(foreign.stderr().contains("safe.directory"), "{foreign}");
    let mut missing = world.descartes(["loop", "diff", "1"]);
    missing.env("PATH", world.path("nowhere"));
    let missing = world.run(missing);
    missing.assert_code(65);
    assert!(missing.stderr().contains("install git"), "{missing}");
    assert!(!missing.stderr().contains("git init"), "{missing}");
}
