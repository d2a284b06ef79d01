//! Refs of a task loop that somebody deleted while no host ran: merged work that has not landed is
//! found again by what the journal knows, or done again.

use descartes_testkit::World;

use crate::landing::tasks;
use crate::task_common::{kill_when_held, run, said};

/// Task 1 is merged, task 2 is at work, and its host is killed.
fn killed() -> World {
    let world = tasks(2);
    let held = world.root().join("held");
    let script = format!(
        "[ $DESCARTES_TASK_ID = 2 ] && [ ! -e {held} ] && {{ echo x > {held}; exec sleep 1000; }}\n\
         echo $DESCARTES_TASK_ID >> {root}/runs\necho x > work-$DESCARTES_TASK_ID",
        held = held.display(),
        root = world.root().display(),
    );
    kill_when_held(&world, &script, &[], &held);
    world
}

fn refs(world: &World, folder: &str) -> Vec<String> {
    let listed = world.git(["for-each-ref", "--format=%(refname)", folder]);
    listed.lines().map(str::to_owned).collect()
}

fn delete(world: &World, names: &[String]) {
    for name in names {
        world.git(["update-ref", "-d", name]);
    }
}

fn both_landed(world: &World) {
    let landed = run(world, &["loop", "resume"]);
    landed.assert_code(0);
    for file in ["work-1", "work-2"] {
        let name = format!("main:{file}");
        assert_eq!(world.git(["show", &name]), "x", "{landed}");
    }
    let words = "refs/descartes/auth/merged was deleted";
    assert!(said(&landed).contains(words), "{landed}");
}

#[test]
fn merged_work_whose_ref_was_deleted_is_found_again() {
    for all in [false, true] {
        let world = killed();
        match all {
            false => delete(&world, &["refs/descartes/auth/merged".to_owned()]),
            true => delete(&world, &refs(&world, "refs/descartes/auth")),
        }
        both_landed(&world);
        let runs = std::fs::read_to_string(world.root().join("runs")).unwrap();
        assert_eq!(runs, "1\n2\n", "task 1 is not run again");
    }
}

#[test]
fn tasks_whose_merged_work_is_gone_for_good_are_run_again() {
    let world = killed();
    delete(&world, &refs(&world, "refs/descartes/auth"));
    std::fs::remove_dir_all(world.state().join("worktrees")).unwrap();
    world.git(["worktree", "prune"]);
    delete(&world, &refs(&world, "refs/heads/descartes"));
    world.git(["reflog", "expire", "--expire=now", "--all"]);
    world.git(["gc", "--quiet", "--prune=now"]);
    both_landed(&world);
    let runs = std::fs::read_to_string(world.root().join("runs")).unwrap();
    assert_eq!(runs, "1\n1\n2\n");
}
