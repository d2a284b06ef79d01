//! The work tree of real loops, in real git: diff and rewind; and making room.

use std::fs::File;
use std::time::Duration;

use descartes_testkit::pty::Size;
use descartes_testkit::world::Finished;
use descartes_testkit::{Pty, World, eventually};
use serde_json::Value;

use crate::common::{descartes, events, loop_dir, start, start_command};

const SOON: Duration = descartes_testkit::PATIENCE;
const WORK: &str = "write a.txt ${ITERATION}\n@1 write one.txt first\n@2 rm one.txt\nwrite two.txt second\n@3 sh git add -A && git commit -qm third\nwrite three.txt third";

fn verb(world: &World, arguments: &[&str]) -> Finished {
    descartes(world, &[&["loop"], arguments].concat())
}

fn worked(world: &World) {
    world.git_init();
    world.write(".gitignore", "ignored\n");
    world.write("ignored", "mine\n");
    start(world, WORK, &["-m", "3", "--name", "auth"]).assert_code(2);
}

#[test]
fn diff_tells_what_an_iteration_changed_and_nothing_else() {
    let world = World::in_memory();
    worked(&world);
    let second = verb(&world, &["diff", "2"]);
    second.assert_code(0);
    let patch = second.stdout();
    assert!(
        patch.contains("--- a/a.txt") && patch.contains("-1\n+2\n"),
        "{patch}"
    );
    assert!(
        patch.contains("one.txt") && patch.contains("+second"),
        "{patch}"
    );
    assert!(
        !patch.contains("three.txt") && !patch.contains("ignored"),
        "{patch}"
    );
    assert!(!patch.contains('\x1b'));
    let stat = verb(&world, &["diff", "2", "--stat", "auth"]).stdout();
    assert!(stat.contains("a.txt") && stat.contains("| "), "{stat}");
    let files: Value =
        serde_json::from_str(&verb(&world, &["diff", "1", "--json"]).stdout()).unwrap();
    let paths: Vec<&str> = files["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["a.txt", "one.txt"]);
    let newest = verb(&world, &["diff"]).stdout();
    assert!(newest.contains("three.txt"), "{newest}");
    let coloured = descartes(&world, &["--color", "always", "loop", "diff", "2"]).stdout();
    assert!(coloured.contains("\x1b["), "{coloured:?}");
}

#[test]
fn changes_in_a_repository_inside_the_work_tree_are_told_wherever_they_are_not_shown() {
    let world = World::in_memory();
    world.git_init();
    for words in [
        "init --quiet inner",
        "-C inner commit --quiet --allow-empty --message begin",
    ] {
        world.git(words.split(' '));
    }
    let work =
        "@1 sh mkdir -p inner && echo one > inner/file && git -C inner add .\n@2 print nothing";
    let run = start(&world, work, &["-m", "2", "--stall-after", "9"]);
    run.assert_code(2);
    let told = run.stdout();
    assert!(
        told.contains("iteration 1: worked, files changed only in repositories inside")
            && told.contains("iteration 2: worked, 0 files changed"),
        "{run}"
    );
    let first = verb(&world, &["diff", "1"]);
    first.assert_code(0);
    assert!(
        first.stdout().is_empty() && !first.stderr().contains("changed nothing"),
        "{first}"
    );
    let hint = first.stderr();
    let hint = hint.lines().find_map(|line| line.strip_prefix("hint: "));
    let mut shell = world.command("sh");
    let shown = world.run({
        shell.args(["-c", hint.unwrap()]);
        shell
    });
    assert!(shown.stdout().contains("+one"), "{shown}");
    let json: Value =
        serde_json::from_str(&verb(&world, &["diff", "1", "--json"]).stdout()).unwrap();
    assert_eq!(json["repositories"], serde_json::json!(["inner"]), "{json}");
    let second = verb(&world, &["diff", "2"]).stderr();
    assert!(second.contains("iteration 2 changed nothing"), "{second}");
    let back = verb(&world, &["rewind", "0", "--yes"]).stderr();
    assert!(
        back.contains("not restored, because it is a separate repository: inner"),
        "{back}"
    );
    let back = verb(&world, &["rewind", "0", "--yes", "--json"]).stdout();
    let back: Value = serde_json::from_str(&back).unwrap();
    assert_eq!(back["nested"], serde_json::json!(["inner"]), "{back}");
}

#[test]
fn rewind_puts_the_tree_back_and_tells_the_way_forth_again() {
    let world = World::in_memory();
    worked(&world);
    world.write("mine.txt", "not committed anywhere\n");
    let head = world.git(["rev-parse", "HEAD"]);
    let no = verb(&world, &["rewind", "1"]);
    no.assert_code(65);
    assert!(
        no.stderr().contains("a.txt") && no.stderr().contains("--yes"),
        "{no}"
    );
    assert!(world.has("three.txt"), "nothing was changed");
    let run = verb(&world, &["rewind", "1", "--yes"]);
    run.assert_code(0);
    assert_eq!(world.read("a.txt"), "1\n");
    assert!(world.has("one.txt") && !world.has("two.txt") && !world.has("three.txt"));
    assert!(!world.has("mine.txt"), "it was not there then");
    assert_eq!(world.read("ignored"), "mine\n");
    assert_eq!(world.git(["rev-parse", "HEAD"]), head, "HEAD stays");
    let back = run
        .stderr()
        .split("to undo: descartes ")
        .nth(1)
        .unwrap()
        .trim()
        .to_owned();
    let copies = verb(&world, &["rewind", "--copies"]).stdout();
    assert!(back.contains(copies.trim()), "{copies}: {back}");
    let mut words: Vec<&str> = back.split(' ').collect();
    words.push("--yes");
    descartes(&world, &words).assert_code(0);
    assert_eq!(world.read("a.txt"), "3\n");
    assert_eq!(world.read("mine.txt"), "not committed anywhere\n");
    assert!(world.has("three.txt") && !world.has("one.txt"));
    let warnings = events(&world, "warning");
    assert!(
        warnings[0]["message"]
            .as_str()
            .unwrap()
            .contains("restored to iteration 1"),
        "{warnings:?}"
    );
    verb(&world, &["rewind", "0", "--yes", "--json"]).assert_code(0);
    assert!(!world.has("a.txt") && world.has("README.md"));
    let again = verb(&world, &["rewind", "0", "--yes"]);
    again.assert_code(0);
    assert!(again.stdout().contains("already"), "{again}");
    for (to, words) in [("9", "no iteration 9"), ("no-such-copy", "no-such-copy")] {
        let run = verb(&world, &["rewind", to, "--yes"]);
        assert_ne!(run.code(), Some(0));
        assert!(run.stderr().contains(words), "{run}");
    }
    verb(&world, &["rewind"]).assert_code(64);
}

#[test]
fn rewind_leaves_the_log_alone_that_the_loop_itself_was_printed_to() {
    let world = World::in_memory();
    world.git_init();
    let mut command = start_command(&world, WORK, &["-m", "2", "--name", "told"]);
    let log = File::create(world.path("run.log")).unwrap();
    command.stdout(log.try_clone().unwrap()).stderr(log);
    assert_eq!(command.status().unwrap().code(), Some(2));
    let printed = world.read("run.log");
    assert!(printed.contains("iteration"), "{printed}");
    start(
        &world,
        "write c.txt c",
        &["-m", "1", "--name", "later", "--force"],
    )
    .assert_code(2);
    for name in ["later", "told"] {
        let run = verb(&world, &["rewind", "0", name, "--yes", "--json"]);
        run.assert_code(0);
        assert!(world.has("run.log"), "{run}");
        assert_eq!(world.read("run.log"), printed);
    }
    assert!(!world.has("a.txt"));
}

/// A loop in a folder of a repository: what a person did elsewhere is none of its business.
#[test]
fn rewind_of_a_loop_in_a_subfolder_leaves_the_rest_of_the_repository_alone() {
    let world = World::in_memory();
    world.git_init();
    world.write("service/s.txt", "0\n");
    world.git(["add", "."]);
    world.git(["commit", "-qm", "service"]);
    let work = "write s.txt ${ITERATION}\n@2 write ../other/o.txt by the agent";
    start(&world, work, &["-m", "2", "-w", "service", "--name", "sub"]).assert_code(2);
    world.write("README.md", "changed by a person\n");
    world.write("mine.txt", "made by a person\n");
    let diff = verb(&world, &["diff", "2", "sub"]);
    diff.assert_code(0);
    assert!(diff.stdout().contains("other/o.txt"), "{diff}");
    let note = "1 file outside of service, the loop's working directory, changed as well";
    assert!(diff.stderr().contains(note), "{diff}");
    let json: Value =
        serde_json::from_str(&verb(&world, &["diff", "2", "sub", "--json"]).stdout()).unwrap();
    let outside = |n: usize| json["files"][n]["outside"].as_bool();
    assert_eq!(
        (outside(0), outside(1)),
        (Some(true), Some(false)),
        "{json}"
    );
    let run = verb(&world, &["rewind", "1", "sub", "--yes"]);
    run.assert_code(0);
    assert_eq!(world.read("service/s.txt"), "1\n");
    assert!(world.has("other/o.txt") && world.has("mine.txt"), "{run}");
    assert_eq!(world.read("README.md"), "changed by a person\n");
    let whole = "descartes loop rewind 1 sub --whole-repository";
    let said = run.stderr();
    assert!(said.contains("3 files of the repository outside"), "{said}");
    assert!(said.contains(whole), "{said}");
    let again = verb(&world, &["rewind", "1", "sub", "--yes"]);
    again.assert_code(0);
    assert!(again.stdout().contains("already"), "{again}");
    assert!(again.stderr().contains(whole), "{again}");
    verb(
        &world,
        &["rewind", "1", "sub", "--whole-repository", "--yes"],
    )
    .assert_code(0);
    assert!(!world.has("other/o.txt") && !world.has("mine.txt"));
}

#[test]
fn rewind_leaves_our_own_files_alone_wherever_they_lie() {
    let world = World::in_memory();
    world.git_init();
    let script = "write a.txt ${ITERATION}";
    start(
        &world,
        script,
        &["-m", "2", "-s", "here.json", "--name", "here"],
    )
    .assert_code(2);
    start(&world, script, &["-m", "1", "-s", "other.json"]).assert_code(2);
    let (ours, other) = (world.read("here.json"), world.read("other.json"));
    let diff = verb(&world, &["diff", "1", "here", "--stat"]).stdout();
    assert!(diff.contains("a.txt") && !diff.contains("json"), "{diff}");
    verb(&world, &["rewind", "0", "here", "--yes"]).assert_code(0);
    assert!(!world.has("a.txt"));
    assert!(world.has("here.json.lock") && world.has("other.json.lock"));
    assert_eq!(world.read("other.json"), other);
    assert_ne!(
        world.read("here.json"),
        ours,
        "the note in its journal is folded in"
    );
    assert!(
        verb(&world, &["status", "-s", "here.json"])
            .stdout()
            .contains("Iteration: 2")
    );
}

#[test]
fn rewind_asks_the_person_at_the_terminal() {
    let world = World::in_memory();
    worked(&world);
    for (answer, code, left) in [("n\r", 65, "3\n"), ("y\r", 0, "1\n")] {
        let mut pty = Pty::spawn(&world.descartes(["loop", "rewind", "1"]), Size::default());
        pty.wait_text("rewind? [y/N]");
        pty.send(answer);
        assert_eq!(pty.wait(SOON).code(), Some(code));
        assert_eq!(world.read("a.txt"), left);
    }
}

#[test]
fn rewind_and_diff_are_refused_with_the_reason_where_they_cannot_be() {
    let world = World::in_memory();
    start(&world, WORK.split("\n@3").next().unwrap(), &["-m", "2"]).assert_code(2);
    for arguments in [&["diff", "1"][..], &["rewind", "1", "--yes"]] {
        let run = verb(&world, arguments);
        run.assert_code(65);
        let command = format!("descartes loop {} needs git", arguments[0]);
        assert!(run.stderr().contains(&command), "{run}");
        assert!(run.stderr().contains("hint: "), "{run}");
    }
    assert_eq!(world.read("a.txt"), "2\n");
    let world = World::in_memory();
    world.git_init();
    let script = "write a.txt ${ITERATION}\n@2 touch here\nhang";
    start(&world, script, &["--detach", "--name", "auth"]).assert_code(0);
    eventually("the agent", SOON, || world.has("here"));
    let run = verb(&world, &["rewind", "1", "--yes"]);
    run.assert_code(65);
    assert!(
        run.stderr().contains("the loop is running (pid ")
            && run.stderr().contains("loop cancel auth"),
        "{run}"
    );
    // What it has done so far can be looked at.
    let so_far = verb(&world, &["diff"]).stdout();
    assert!(so_far.contains("here"), "{so_far}");
    verb(&world, &["cancel", "--now"]).assert_code(0);
    verb(&world, &["rewind", "1", "--yes"]).assert_code(0);
    assert_eq!(world.read("a.txt"), "1\n");
}

#[test]
fn clean_lists_first_and_keeps_what_is_not_over() {
    let world = World::in_memory();
    start(&world, "print much", &["-m", "1", "--name", "old"]).assert_code(2);
    let dir = loop_dir(&world);
    start(
        &world,
        "touch here\nhang",
        &["--detach", "--name", "live", "-s", "live.json"],
    )
    .assert_code(0);
    eventually("the agent", SOON, || world.has("here"));
    let young = descartes(&world, &["clean"]);
    young.assert_code(0);
    assert!(
        young
            .stderr()
            .contains("nothing to remove that is older than 30d"),
        "{young}"
    );
    let listed = descartes(&world, &["clean", "--older", "0s"]);
    listed.assert_code(0);
    assert!(
        listed.stdout().contains("logs and snapshots of old"),
        "{listed}"
    );
    assert!(!listed.stdout().contains("live"), "{listed}");
    assert!(
        listed.stderr().contains("descartes clean --older 0s --yes"),
        "{listed}"
    );
    assert!(
        listed.stderr().contains("nothing was removed") && dir.join("runs").exists(),
        "{listed}"
    );
    let plan: Value =
        serde_json::from_str(&descartes(&world, &["clean", "--older", "0s", "--json"]).stdout())
            .unwrap();
    assert_eq!(
        (&plan["removed"], &plan["items"][0]["name"]),
        (&false.into(), &"old".into())
    );
    let done = descartes(&world, &["clean", "--older", "0s", "--yes"]);
    done.assert_code(0);
    assert!(
        done.stdout().contains("freed") && !dir.join("runs").exists(),
        "{done}"
    );
    assert!(
        verb(&world, &["history", "old"])
            .stdout()
            .contains("worked")
    );
    verb(&world, &["logs", "old"]).assert_code(65);
    descartes(&world, &["clean", "--older", "0s", "--whole", "--yes"]).assert_code(0);
    let locks = || {
        std::fs::read_dir(world.state().join("locks"))
            .unwrap()
            .count()
    };
    assert!(locks() > 0);
    assert!(
        !world.path(".descartes/loop-state.json.lock").exists(),
        "the lock beside the old loop's state file"
    );
    std::fs::remove_dir_all(world.path(".descartes")).unwrap();
    let cleaned = descartes(&world, &["clean", "--yes"]);
    cleaned.assert_code(0);
    assert!(
        cleaned.stdout().contains("not held by any process"),
        "{cleaned}"
    );
    assert_eq!(locks(), 1, "the other state file is there");
    assert!(!dir.exists());
    verb(&world, &["cancel", "live", "--now"]).assert_code(0);
    world.assert_no_survivors();
}
