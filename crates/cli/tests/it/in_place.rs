//! Task loops in the user's own tree: what a task proved stays proven, whatever later agents do to
//! the tree, and waves land on the branch that the loop began on.

use descartes_testkit::World;

use crate::landing::{tasks, with_agent};
use crate::task_common::{graph, kill_when_held, run, said, scud_project};

/// Task 1 makes a file and changes another.
const FIRST: &str = "[ $DESCARTES_TASK_ID = 1 ] && echo more >> base";
const WORK: &str = "echo x > work-$DESCARTES_TASK_ID";

/// A repository with tasks and a file that they may change.
fn project(count: u32) -> World {
    let world = tasks(count);
    world.write("base", "base\n");
    world.git(["add", "-A"]);
    world.git(["commit", "-qm", "base"]);
    world
}

fn second(does: &str) -> String {
    format!("{FIRST}\n[ $DESCARTES_TASK_ID = 2 ] && {{ {does}; }}\n{WORK}")
}

/// Nothing of it is the agents' work; a report that an agent writes itself is.
#[test]
fn what_gates_leave_in_place_is_not_committed() {
    let world = scud_project(graph(
        "1 | One | P | 1 | H\n2 | Two | P | 1 | M",
        "\n@edges\n2 -> 1\n",
    ));
    let script =
        "echo x > work-$DESCARTES_TASK_ID; [ $DESCARTES_TASK_ID = 1 ] || echo mine > report-2";
    let gate = "echo gate > litter; [ -e report-2 ] || echo gate > report-2";
    let done = crate::landing::with_agent(&world, script, &["--in-place", "--verify", gate]);
    done.assert_code(0);
    let names = world.git(["ls-tree", "-r", "--name-only", "HEAD"]);
    let names: Vec<&str> = names.lines().collect();
    for made in ["report-2", "work-1", "work-2"] {
        assert!(names.contains(&made), "{names:?} {done}");
    }
    assert!(!names.contains(&"litter"), "{names:?} {done}");
    assert_eq!(world.git(["show", "HEAD:report-2"]), "mine");
    assert!(world.has("litter"));
    assert!(
        said(&done).contains("left by gates, and not committed: litter"),
        "{done}"
    );
}

#[test]
fn what_one_agent_proved_no_other_agent_takes_back() {
    for command in [
        "git clean -fdq",
        "git stash -qu",
        "git checkout -q .",
        "git reset -q --hard",
        "git clean -fdq; git checkout -q .",
    ] {
        for flags in [&[][..], &["--no-auto-commit-waves"]] {
            let world = project(3);
            let flags = [&["--in-place", "--verify", "true"], flags].concat();
            let done = with_agent(&world, &second(command), &flags);
            done.assert_code(0);
            assert_eq!(world.read("base"), "base\nmore\n", "{command}: {done}");
            for task in ["work-1", "work-2", "work-3"] {
                assert!(world.has(task), "{command}: {task}: {done}");
            }
            let words = "task 2 removed or reset finished work of other tasks";
            assert!(said(&done).contains(words), "{command}: {done}");
            if flags.len() == 3 {
                let landed = world.git(["ls-tree", "--name-only", "main"]);
                assert!(landed.contains("work-1"), "{command}: {done}");
                let base = world.git(["show", "main:base"]);
                assert_eq!(base, "base\nmore", "{command}: {done}");
                let subjects = world.git(["log", "--format=%s", "-2"]);
                assert_eq!(subjects, "feat(auth): complete wave 1\nbase", "{done}");
            }
        }
    }
}

#[test]
fn a_failed_attempt_takes_nothing_back_either() {
    let world = project(2);
    let script = second("git clean -fdq; git checkout -q .; exit 1");
    let flags = [
        "--in-place",
        "--verify",
        "true",
        "--max-iterations-per-task",
    ];
    let done = with_agent(&world, &script, &[&flags[..], &["1"]].concat());
    done.assert_code(6);
    assert_eq!(world.git(["show", "main:base"]), "base\nmore", "{done}");
    assert_eq!(world.git(["show", "main:work-1"]), "x", "{done}");
}

#[test]
fn a_later_task_may_edit_and_delete_files_of_an_earlier_one() {
    let world = project(2);
    let script = "case $DESCARTES_TASK_ID in\n\
        1) echo x > keep; echo x > rename; echo one > both;;\n\
        2) mv rename renamed; echo two >> both;;\nesac";
    let done = with_agent(&world, script, &["--in-place", "--verify", "true"]);
    done.assert_code(0);
    assert!(!said(&done).contains("removed or reset"), "{done}");
    let landed = world.git(["ls-tree", "--name-only", "main"]);
    assert!(
        landed.contains("renamed") && !landed.contains("rename\n"),
        "{done}"
    );
    assert_eq!(world.git(["show", "main:both"]), "one\ntwo", "{done}");
}

/// Replacing what one depends on may be the task; a gate of the other one says whether it was.
#[test]
fn a_task_may_replace_the_work_that_it_depends_on_unless_a_gate_fails() {
    for (gate, code) in [("true", 0), ("test -e draft || test ! -e done-1", 6)] {
        let world = World::in_memory();
        world.git_init();
        let rows = "1 | Draft | P | 1 | M\n2 | Final | P | 1 | M";
        world.write(".scud/tasks/tasks.scg", graph(rows, "\n@edges\n2 -> 1\n"));
        world.git(["add", "-A"]);
        world.git(["commit", "-qm", "tasks"]);
        let script = "case $DESCARTES_TASK_ID in\n\
            1) echo x > draft;;\n2) mv draft final; echo x > done-1;;\nesac";
        let flags = ["--in-place", "--no-auto-commit-waves", "--verify", gate];
        let flags = [&flags[..], &["--max-iterations-per-task", "1"]].concat();
        let done = with_agent(&world, script, &flags);
        done.assert_code(code);
        assert!(world.has("final"), "{done}");
    }
}

#[test]
fn without_git_it_is_said_that_work_is_gone() {
    for (gate, code) in [("true", 0), ("test -e work-1 || test ! -e work-2", 1)] {
        let world = World::in_memory();
        let rows = "1 | One | P | 1 | M\n2 | Two | P | 1 | M";
        world.write(".scud/tasks/tasks.scg", graph(rows, "\n@edges\n"));
        let script = format!("[ $DESCARTES_TASK_ID = 2 ] && rm -f work-1\n{WORK}");
        let flags = ["--in-place", "--verify", gate, "--max-iterations-per-task"];
        let done = with_agent(&world, &script, &[&flags[..], &["1"]].concat());
        done.assert_code(code);
        if code == 0 {
            let words = "work-1 (task 1): could not be put back";
            assert!(said(&done).contains(words), "{done}");
        }
    }
}

#[test]
fn a_wave_is_committed_on_the_branch_that_the_loop_began_on_and_on_no_other() {
    for (switch, named) in [
        ("git checkout -q -b other", "(other)"),
        ("git checkout -q --detach", "no branch is checked out"),
    ] {
        let world = project(2);
        let main = world.git(["rev-parse", "main"]);
        let flags = ["--in-place", "--verify", "true"];
        let refused = with_agent(&world, &second(switch), &flags);
        refused.assert_code(1);
        for words in [named, "type first: git checkout main"] {
            assert!(said(&refused).contains(words), "{switch}: {refused}");
        }
        assert_eq!(world.git(["rev-parse", "main"]), main, "{refused}");
        assert_eq!(world.git(["rev-parse", "HEAD"]), main, "{refused}");
        world.git(["checkout", "-q", "main"]);
        let landed = run(&world, &["loop", "resume"]);
        landed.assert_code(0);
        assert_eq!(world.git(["show", "main:work-1"]), "x", "{landed}");
        assert_eq!(world.git(["show", "main:work-2"]), "x", "{landed}");
    }
}

#[test]
fn the_way_back_from_an_agents_own_branch_works_as_it_is_typed() {
    let world = project(2);
    let switch = "git checkout -q -b own; echo two >> base; git add -A; git commit -qm own";
    let refused = with_agent(&world, &second(switch), &["--in-place", "--verify", "true"]);
    refused.assert_code(1);
    let words = said(&refused);
    let typed = words
        .lines()
        .find_map(|line| line.split_once("type first: "));
    let (_, typed) = typed.expect("the command is named");
    let mut shell = world.command("sh");
    shell.args(["-ec", typed]);
    let typed = world.run(shell);
    typed.assert_code(0);
    assert_eq!(world.git(["branch", "--show-current"]), "main", "{typed}");
    let landed = run(&world, &["loop", "resume"]);
    landed.assert_code(0);
    assert_eq!(
        world.git(["show", "main:base"]),
        "base\nmore\ntwo",
        "{landed}"
    );
    for task in ["main:work-1", "main:work-2"] {
        assert_eq!(world.git(["show", task]), "x", "{landed}");
    }
}

#[test]
fn agents_that_commit_in_place_are_fine() {
    let world = project(2);
    let commits = format!("{FIRST}\n{WORK}\ngit add -A; git commit -qm mine-$DESCARTES_TASK_ID");
    let done = with_agent(&world, &commits, &["--in-place", "--verify", "true"]);
    done.assert_code(0);
    assert!(!said(&done).contains("warning"), "{done}");
    let subjects = world.git(["log", "--format=%s", "main"]);
    assert!(
        subjects.contains("mine-1") && subjects.contains("mine-2"),
        "{done}"
    );
}

#[test]
fn work_that_an_agent_took_back_before_its_host_was_killed_is_put_back_at_the_resume() {
    let world = project(2);
    let held = world.root().join("held");
    let script = format!(
        "{FIRST}\n[ $DESCARTES_TASK_ID = 2 ] && {{ git clean -fdq; git checkout -q .\n\
         [ -e {held} ] || {{ echo x > {held}; exec sleep 1000; }}; }}\n{WORK}",
        held = held.display(),
    );
    kill_when_held(&world, &script, &["--in-place"], &held);
    assert!(!world.has("work-1"));
    let done = run(&world, &["loop", "resume"]);
    done.assert_code(0);
    assert_eq!(world.git(["show", "main:base"]), "base\nmore", "{done}");
    assert_eq!(world.git(["show", "main:work-1"]), "x", "{done}");
}
