//! Snapshots of the work tree: what they take, what they say, and what goes back.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use descartes_testkit::{World, eventually};
use nix::sys::signal::Signal;

use crate::common::{descartes, events, loop_dir, start, start_command};
use crate::signals::{code, send};

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

/// One of a snapshot's calls does this first.
fn changed_git(world: &World, first: &str) {
    let mut which = world.command("sh");
    which.args(["-c", "command -v git"]);
    let git = world.run(which).stdout();
    let git = git.trim();
    let script =
        format!("#!/bin/sh\ncase \"$*\" in *ls-files*) {first};; esac\nexec {git} \"$@\"\n");
    world.program("git", &script);
}

fn warnings(world: &World) -> Vec<String> {
    let warnings = events(world, "warning");
    let message = |warning: &serde_json::Value| warning["message"].as_str().unwrap().to_owned();
    warnings.iter().map(message).collect()
}

#[test]
fn a_slow_measure_is_said_once_and_counts_like_any_other() {
    let world = repository();
    changed_git(&world, "sleep 3");
    start(&world, "write file ${ITERATION}", &["-m", "2"]).assert_code(2);
    let busy = events(&world, "busy");
    let measuring = |event: &&serde_json::Value| event["what"] == "measuring the work tree";
    assert_eq!(busy.iter().filter(measuring).count(), 1, "{busy:?}");
    assert_eq!(warnings(&world), [""; 0]);
    let diff = descartes(&world, &["loop", "diff", "1"]);
    diff.assert_code(0);
    assert!(diff.stdout().contains("+1"), "{diff}");
}

#[test]
fn a_work_tree_that_cannot_be_measured_is_said_and_shown_in_the_status() {
    let world = repository();
    changed_git(&world, "echo no >&2; exit 1");
    let script = "print hm\nwait-file go";
    let flags = ["--detach", "--stall-after", "1", "-m", "3"];
    start(&world, script, &flags).assert_code(0);
    eventually("the agent", Duration::from_secs(60), || {
        !events(&world, "run_started").is_empty()
    });
    let status = descartes(&world, &["loop", "status"]).stdout();
    assert!(
        status.contains("Progress: unknown, stall detection is off"),
        "{status}"
    );
    world.write("go", "");
    eventually("the end", Duration::from_secs(120), || {
        !events(&world, "loop_finished").is_empty()
    });
    let end = &events(&world, "loop_finished")[0];
    assert_eq!(end["reason"]["type"], "max_iterations_reached", "{end}");
    let mut said = warnings(&world);
    said.retain(|message| message.contains("stall detection is off"));
    assert_eq!(said.len(), 1, "{said:?}");
}

#[test]
fn a_stop_is_heard_while_the_work_tree_is_measured() {
    let world = repository();
    let measuring = world.root().join("measuring");
    let waits = format!("echo $$ > {}; exec sleep 600", measuring.display());
    changed_git(&world, &waits);
    let mut child = start_command(&world, "promise", &[])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the measure", Duration::from_secs(60), || {
        fs::read_to_string(&measuring).is_ok_and(|pid| pid.ends_with('\n'))
    });
    send(&child, Signal::SIGTERM);
    assert_eq!(code(&mut child), 143);
    assert_eq!(events(&world, "run_started").len(), 0);
    let pid = fs::read_to_string(&measuring).unwrap();
    let git = Path::new("/proc").join(pid.trim());
    assert!(!git.exists(), "the measure's git is still there");
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
    let soon = Duration::from_secs(60);
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
