//! What agents do to git itself: named pipes that it would wait for, and settings of the repository
//! that keep it from working in the user's checkout.

use std::time::Duration;

use crate::common::start_command;
use crate::landing::{tasks, with_agent};
use crate::task_common::{kill_when_held, run, said};

const WORK: &str = "echo x > work-$DESCARTES_TASK_ID";

#[test]
fn a_named_pipe_that_git_would_wait_for_goes_back_to_its_agent() {
    for name in [".gitattributes", "sub/.gitignore", ".gitmodules"] {
        let world = tasks(2);
        let once = world.root().join("once");
        let script = format!(
            "mkdir -p sub; {WORK}; [ -e {once} ] || {{ touch {once}; mkfifo {name}; }}",
            once = once.display()
        );
        let done = with_agent(&world, &script, &["--verify", "true"]);
        done.assert_code(0);
        let words = format!("would wait for it forever: {name}: removed");
        assert!(said(&done).contains(&words), "{done}");
        assert!(
            said(&done).contains("2 attempts") || said(&done).contains("attempt 2"),
            "{done}"
        );
        for file in ["main:work-1", "main:work-2"] {
            assert_eq!(world.git(["show", file]), "x", "{done}");
        }
    }
}

#[test]
fn a_named_pipe_of_an_agent_whose_host_was_killed_holds_nobody_up() {
    let world = tasks(1);
    let held = world.root().join("held");
    let script = format!(
        "[ -e {held} ] || {{ mkfifo .gitignore; touch {held}; exec sleep 1000; }}\n{WORK}",
        held = held.display(),
    );
    kill_when_held(&world, &script, &[], &held);
    let done = run(&world, &["loop", "resume"]);
    done.assert_code(0);
    assert_eq!(world.git(["show", "main:work-1"]), "x", "{done}");
}

#[test]
fn a_commit_of_a_plain_loop_does_not_wait_for_a_named_pipe() {
    let world = tasks(1);
    let script = "sh mkfifo .gitattributes; echo x > out ;; promise";
    let command = start_command(&world, script, &["--auto-commit", "--verify", "true"]);
    let done = world.run_within(command, Duration::from_secs(60));
    let words = ".gitattributes is a named pipe, and git would wait for it forever";
    assert!(said(&done).contains(words), "{done}");
    assert!(said(&done).contains("rm .gitattributes"), "{done}");
}

#[test]
fn a_wave_in_place_does_not_wait_for_a_named_pipe() {
    let world = tasks(1);
    let script = format!("mkfifo .gitignore; {WORK}");
    let refused = with_agent(&world, &script, &["--in-place", "--verify", "true"]);
    refused.assert_code(1);
    assert!(said(&refused).contains("rm .gitignore"), "{refused}");
    std::fs::remove_file(world.path(".gitignore")).unwrap();
    let done = run(&world, &["loop", "resume"]);
    done.assert_code(0);
    assert_eq!(world.git(["show", "main:work-1"]), "x", "{done}");
}

#[test]
fn settings_that_keep_git_from_working_are_told_with_what_undoes_them() {
    for (does, undo) in [
        ("core.bare true", vec!["config", "core.bare", "false"]),
        (
            "core.worktree /nowhere",
            vec!["config", "--unset", "core.worktree"],
        ),
    ] {
        let world = tasks(2);
        let script = format!("{WORK}; [ $DESCARTES_TASK_ID = 1 ] && git config {does}");
        let done = with_agent(&world, &script, &["--verify", "true"]);
        done.assert_code(0);
        let typed = format!("type: git {}", undo.join(" "));
        assert_eq!(said(&done).matches(&typed).count(), 1, "{does}: {done}");
        world.git(undo);
        world.git(["status"]);
        assert_eq!(world.git(["show", "main:work-2"]), "x", "{done}");
    }
}

#[test]
fn a_wave_in_place_is_not_called_complete_where_git_does_not_work() {
    for (does, undo) in [
        ("core.bare true", vec!["config", "core.bare", "false"]),
        (
            "core.worktree /nowhere",
            vec!["config", "--unset", "core.worktree"],
        ),
    ] {
        let world = tasks(1);
        let script = format!("{WORK}; git config {does}");
        let refused = with_agent(&world, &script, &["--in-place", "--verify", "true"]);
        refused.assert_code(1);
        let typed = format!(
            "could not be committed: {}",
            does.replace(' ', " was set to `")
        );
        assert!(said(&refused).contains(&typed), "{refused}");
        let typed = format!("type: git {}", undo.join(" "));
        assert!(said(&refused).contains(&typed), "{refused}");
        world.git(undo);
        let done = run(&world, &["loop", "resume"]);
        done.assert_code(0);
        assert_eq!(world.git(["show", "main:work-1"]), "x", "{done}");
    }
}
