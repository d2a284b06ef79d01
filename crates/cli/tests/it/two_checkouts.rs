//! Task loops of one tag in one repository: its refs are shared by all checkouts, and each loop has
//! its own work alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use descartes_testkit::world::Finished;
use descartes_testkit::{World, eventually};

use crate::task_common::{graph, left, repository, said};

/// A machine with much else to do.
const BOUNDED: Duration = Duration::from_secs(180);
const ROADMAP: &str = "- [ ] **a**: First\n- [ ] **b**: Second\n";

/// The first attempt of all works; later ones wait for the file `go`.
const SECOND_WAITS: &str = "if-file ../../../ran touch ../../../begun\n\
    if-file ../../../ran wait-file ../../../go\n\
    append ../../../ran ${DESCARTES_TASK_ID}\n\
    write first-${DESCARTES_TASK_ID} x\npromise";
/// Every attempt waits for it.
const WAITS: &str = "touch ../../../begun\nwait-file ../../../go\n\
    write first-${DESCARTES_TASK_ID} x\npromise";
const WORKS: &str = "write second-${DESCARTES_TASK_ID} x\npromise";

/// A second checkout, with the branch `feat` and a commit that only it has.
fn second_checkout(world: &World) -> PathBuf {
    let second = world.root().join("second");
    let path = second.to_str().unwrap();
    world.git(["worktree", "add", "--quiet", "-b", "feat", path]);
    fs::write(second.join("feat-only"), "x").unwrap();
    world.git(["-C", path, "add", "feat-only"]);
    world.git(["-C", path, "commit", "--quiet", "--message", "of feat"]);
    second
}

#[track_caller]
fn at(world: &World, dir: &Path, words: &[&str]) -> Finished {
    let mut command = world.descartes(words);
    command.current_dir(dir);
    world.run_within(command, BOUNDED)
}

/// Starts the first loop, and waits until an agent of it waits.
fn begin(world: &World, words: &[&str], script: &str) -> Child {
    let agent = world.agent(script);
    let mut command = world.descartes([words, &["--command", &agent]].concat());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    eventually("an agent waits", BOUNDED, || {
        world.state().join("begun").exists()
    });
    child
}

fn go(world: &World) {
    fs::write(world.state().join("go"), "").unwrap();
}

fn kill(world: &World, mut host: Child) {
    host.kill().unwrap();
    host.wait().unwrap();
    eventually("its agent is gone", BOUNDED, || {
        world.processes().is_empty()
    });
}

/// Files that a branch has beside those of the tasks.
fn files(world: &World, branch: &str) -> Vec<String> {
    let listed = world.git(["ls-tree", "-r", "--name-only", branch]);
    let made = |name: &&str| name.starts_with("first") || name.starts_with("second");
    let kept = |name: &&str| made(name) || *name == "feat-only";
    listed.lines().filter(kept).map(str::to_owned).collect()
}

fn refs(world: &World, of: &[&str]) -> String {
    let words = ["for-each-ref", "--format=%(refname) %(objectname)"];
    world.git([&words[..], of].concat())
}

#[track_caller]
fn assert_only_own_work(world: &World) {
    assert_eq!(files(world, "main"), ["first-a", "first-b"]);
    let feat = ["feat-only", "second-a", "second-b"];
    assert_eq!(files(world, "feat"), feat);
    let main = world.git(["log", "--format=%s", "main"]);
    assert!(!main.contains("of feat"), "{main}");
    let ours = [
        "refs/heads/descartes",
        "refs/heads/descartes-kept",
        "refs/descartes",
    ];
    assert_eq!(refs(world, &ours).trim(), "");
}

#[test]
fn a_tag_is_worked_on_in_one_checkout_at_a_time() {
    let rows = "a | First | P | 1 | H\nb | Second | P | 1 | H";
    let scud = ["loop", "start", "--scud-tag", "auth"];
    for (file, text, words, tag) in [
        (
            "ROADMAP.md",
            ROADMAP.to_owned(),
            &["roadmap", "run", "ROADMAP.md"][..],
            "roadmap",
        ),
        (".scud/tasks/tasks.scg", graph(rows, ""), &scud, "auth"),
    ] {
        let world = repository(file, text);
        let second = second_checkout(&world);
        let mut first = begin(&world, words, WAITS);
        let agent = world.agent(WORKS);
        let words = [words, &["--command", &agent]].concat();
        let refused = at(&world, &second, &words);
        // Another folder for state does not make other refs.
        let elsewhere = world.root().join("elsewhere");
        let mut command = world.descartes(&words);
        command.current_dir(&second);
        command.env("DESCARTES_STATE_DIR", &elsewhere);
        let also = world.run_within(command, BOUNDED);
        for refused in [refused, also] {
            refused.assert_code(65);
            let told = format!("another run is already working on the tag `{tag}`");
            assert!(refused.stderr().contains(&told), "{refused}");
            let where_to = format!(" in {} (pid {})", world.project().display(), first.id());
            assert!(refused.stderr().contains(&where_to), "{refused}");
        }
        go(&world);
        assert!(first.wait().unwrap().success());
        at(&world, &second, &words).assert_code(0);
        assert_only_own_work(&world);
    }
}

#[test]
fn what_the_refusal_says_to_type_ends_the_other_loop() {
    let world = repository("ROADMAP.md", ROADMAP);
    let second = second_checkout(&world);
    let run = ["roadmap", "run", "ROADMAP.md"];
    let mut first = begin(&world, &run, WAITS);
    let agent = world.agent(WORKS);
    let words = [&run[..], &["--command", &agent]].concat();
    let refused = at(&world, &second, &words);
    refused.assert_code(65);
    let stderr = refused.stderr();
    let typed = stderr.split("end it: descartes ").nth(1).unwrap();
    let typed: Vec<&str> = typed.lines().next().unwrap().split(' ').collect();
    at(&world, &second, &typed).assert_code(0);
    assert_eq!(first.wait().unwrap().code(), Some(130));
    at(&world, &second, &words).assert_code(0);
    let feat = ["feat-only", "second-a", "second-b"];
    assert_eq!(files(&world, "feat"), feat);
}

#[test]
fn a_loop_leaves_alone_what_one_of_another_checkout_left() {
    // Versions before wrote nothing down about whose refs are: worktrees tell.
    for is_written_down in [true, false] {
        let world = repository("ROADMAP.md", ROADMAP);
        let second = second_checkout(&world);
        let run = ["roadmap", "run", "ROADMAP.md"];
        kill(&world, begin(&world, &run, SECOND_WAITS));
        if !is_written_down {
            fs::remove_dir_all(world.path(".git/descartes-loops")).unwrap();
        }
        let ours = ["refs/heads/descartes", "refs/descartes"];
        let before = refs(&world, &ours);
        assert!(
            before.contains("refs/heads/descartes/roadmap/a"),
            "{before}"
        );
        let agent = world.agent(WORKS);
        let words = [&run[..], &["--command", &agent]].concat();
        let ended = at(&world, &second, &words);
        ended.assert_code(0);
        assert!(said(&ended).contains("descartes/roadmap@2"), "{ended}");
        assert_eq!(refs(&world, &ours), before);
        go(&world);
        at(&world, &world.project(), &["loop", "resume"]).assert_code(0);
        assert_only_own_work(&world);
        assert_eq!(left(&world, "ran"), "a\nb\n", "nothing was done again");
    }
}

#[test]
fn two_lists_of_one_name_have_their_work_apart() {
    let world = repository("one/ROADMAP.md", ROADMAP);
    world.write("two/ROADMAP.md", ROADMAP);
    world.git(["add", "two"]);
    world.git(["commit", "--quiet", "--message", "another list"]);
    let one = ["one/ROADMAP.md", "--state-file", ".descartes/one.json"];
    let one = [&["roadmap", "run"], &one[..]].concat();
    let first = begin(&world, &one, SECOND_WAITS);
    let agent = world.agent(WORKS);
    let two = ["two/ROADMAP.md", "--state-file", ".descartes/two.json"];
    let two = [&["roadmap", "run"], &two[..], &["--command", &agent]].concat();
    let refused = at(&world, &world.project(), &two);
    refused.assert_code(65);
    let told = "another run is already working on the tag `roadmap`";
    assert!(refused.stderr().contains(told), "{refused}");
    kill(&world, first);
    at(&world, &world.project(), &two).assert_code(0);
    assert_eq!(files(&world, "main"), ["second-a", "second-b"]);
    go(&world);
    let resume = ["loop", "resume", "--state-file", ".descartes/one.json"];
    at(&world, &world.project(), &resume).assert_code(0);
    let all = ["first-a", "first-b", "second-a", "second-b"];
    assert_eq!(files(&world, "main"), all);
    assert_eq!(left(&world, "ran"), "a\nb\n", "nothing was done again");
    for list in ["one/ROADMAP.md", "two/ROADMAP.md"] {
        assert_eq!(world.read(list).matches("[x]").count(), 2, "{list}");
    }
}

#[test]
fn what_was_left_for_one_branch_does_not_land_on_another() {
    let world = repository("ROADMAP.md", ROADMAP);
    world.git(["checkout", "--quiet", "-b", "feat"]);
    world.write("feat-only", "x");
    world.git(["add", "feat-only"]);
    world.git(["commit", "--quiet", "--message", "of feat"]);
    let run = ["roadmap", "run", "ROADMAP.md"];
    kill(&world, begin(&world, &run, SECOND_WAITS));
    world.git(["checkout", "--quiet", "--", "ROADMAP.md"]);
    world.git(["checkout", "--quiet", "main"]);
    let agent = world.agent(WORKS);
    let words = [&run[..], &["--command", &agent, "--force"]].concat();
    let ended = at(&world, &world.project(), &words);
    ended.assert_code(0);
    assert!(said(&ended).contains("for the branch feat"), "{ended}");
    assert_eq!(files(&world, "main"), ["second-a", "second-b"]);
    go(&world);
    // As the start says how to return to it.
    let id = said(&ended);
    let id = id.split("`descartes loop resume ").nth(1).unwrap();
    let id = id.split('`').next().unwrap();
    world.git(["checkout", "--quiet", "feat"]);
    at(&world, &world.project(), &["loop", "resume", id]).assert_code(0);
    let feat = ["feat-only", "first-a", "first-b"];
    assert_eq!(files(&world, "feat"), feat);
    assert_eq!(left(&world, "ran"), "a\nb\n", "nothing was done again");
}

/// `git worktree move` leaves the repository, and with it all links, where they are.
#[test]
fn a_linked_checkout_that_was_moved_goes_on_with_what_its_agents_left() {
    let world = repository("ROADMAP.md", ROADMAP);
    let second = second_checkout(&world);
    // Only the first attempt makes a file before it waits.
    let script = "unless-file ../../../begun write first-half x\n".to_owned() + WAITS;
    let agent = world.agent(&script);
    let mut command = world.descartes(["roadmap", "run", "ROADMAP.md", "--command", &agent]);
    command.current_dir(&second);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let host = command.spawn().unwrap();
    eventually("an agent waits", BOUNDED, || {
        world.state().join("begun").exists()
    });
    kill(&world, host);
    go(&world);
    let third = world.root().join("third");
    let (from, to) = (second.to_str().unwrap(), third.to_str().unwrap());
    world.git(["worktree", "move", from, to]);
    let file = [".descartes/roadmap-ROADMAP.json"];
    let words = [&["loop", "resume", "--here", "--state-file"][..], &file].concat();
    let resumed = at(&world, &third, &words);
    resumed.assert_code(0);
    let landed = ["feat-only", "first-a", "first-b", "first-half"];
    assert_eq!(files(&world, "feat"), landed, "{resumed}");
    let listed = world.git(["worktree", "list", "--porcelain"]);
    assert_eq!(listed.matches("worktree ").count(), 2, "{listed}");
}
