//! What `worktree_copy` and `worktree_setup` bring and what gates leave is no work: it never lands.

use descartes_testkit::World;
use descartes_testkit::world::Finished;

use crate::landing::{tasks, with_agent};
use crate::task_common::{run, said};

/// Files of the commit that the user's branch is at.
fn landed(world: &World) -> Vec<String> {
    let listed = world.git(["ls-tree", "-r", "--name-only", "HEAD"]);
    let names = listed.lines().filter(|name| !name.starts_with(".scud"));
    names.map(str::to_owned).collect()
}

/// Runs the tasks, which land; `wanted` are all the files that they make.
#[track_caller]
fn lands(world: &World, agent: &str, flags: &[&str], wanted: &[&str]) -> Finished {
    let before = landed(world);
    let done = with_agent(world, agent, flags);
    done.assert_code(0);
    let mut new = landed(world);
    new.retain(|name| !before.contains(name));
    assert_eq!(new, wanted, "{done}");
    done
}

#[test]
fn files_of_worktree_copy_do_not_land_whatever_their_agents_do() {
    for agent in [
        "echo x > work-$DESCARTES_TASK_ID",
        "echo x > work-$DESCARTES_TASK_ID; git add -A; git commit -qm all",
        "echo x > work-$DESCARTES_TASK_ID; git add -A; echo more >> local.cfg",
        // Nothing says any more that git ignores it.
        "echo x > work-$DESCARTES_TASK_ID; rm .gitignore; git add -A; git commit -qm all",
    ] {
        let world = tasks(2);
        world.configure("worktree_copy = [\"local.cfg\", \"conf\", \"./.env\"]\n");
        world.write(".gitignore", ".env\n");
        world.git(["add", ".gitignore"]);
        world.git(["commit", "-qm", "ignore"]);
        for name in ["local.cfg", "conf/a", "conf/b/c", ".env"] {
            world.write(name, "SECRET\n");
        }
        // It is there in every worktree, also in the second task's and where the gates run again.
        let gate = "grep -q SECRET local.cfg && grep -q SECRET conf/b/c && test -e .env";
        let agent = format!(
            "git() {{ command git -c user.name=a -c user.email=a@b \"$@\"; }}\n\
            grep -q SECRET local.cfg && grep -q SECRET conf/a || exit 1\n{agent}"
        );
        let done = lands(&world, &agent, &["--verify", gate], &["work-1", "work-2"]);
        assert_eq!(world.read("local.cfg"), "SECRET\n");
        let told = said(&done)
            .matches("local.cfg is no work of an agent")
            .count();
        let is_touched = agent.contains("add -A");
        assert_eq!(told, usize::from(is_touched), "{done}");
    }
}

#[test]
fn what_a_setup_leaves_does_not_land_and_is_there_for_every_task() {
    let world = tasks(2);
    world.write("lock", "1\n");
    world.git(["add", "lock"]);
    world.git(["commit", "-qm", "lock"]);
    world.configure(
        "worktree_setup = \"echo x > setup.log; echo 2 > lock; mkdir -p gen; echo x > gen/made\"\n",
    );
    let gate = "test -e setup.log && test -e gen/made && grep -q 2 lock";
    let agent =
        "test -e setup.log && grep -q 2 lock || exit 1\necho x > gen/work-$DESCARTES_TASK_ID";
    lands(
        &world,
        agent,
        &["--verify", gate],
        &["gen/work-1", "gen/work-2"],
    );
    assert_eq!(world.git(["show", "HEAD:lock"]), "1");
}

/// The usual line names a folder, and a link is none.
#[test]
fn a_link_that_a_setup_makes_keeps_no_work_from_landing() {
    for has_folder in [true, false] {
        let world = tasks(2);
        world.write(".gitignore", "node_modules/\n");
        world.git(["add", ".gitignore"]);
        world.git(["commit", "-qm", "ignore"]);
        if has_folder {
            world.write("node_modules/dep", "x");
        }
        let deps = world.root().join("deps");
        std::fs::create_dir_all(&deps).unwrap();
        std::fs::write(deps.join("dep"), "x").unwrap();
        let setup = format!("ln -sfn {} node_modules", deps.display());
        world.configure(format!("worktree_setup = \"{setup}\"\n"));
        let agent = "test -e node_modules/dep || exit 1\necho x > work-$DESCARTES_TASK_ID";
        let flags = ["--verify", "test -e node_modules/dep"];
        lands(&world, agent, &flags, &["work-1", "work-2"]);
        assert_eq!(world.has("node_modules"), has_folder);
    }
}

#[test]
fn what_gates_leave_does_not_land() {
    let world = tasks(2);
    world.write("kept", "one\n");
    world.git(["add", "kept"]);
    world.git(["commit", "-qm", "kept"]);
    // The gate formats what is there, and leaves a report.
    let gate =
        "echo x > gate-made.txt; echo two > kept; for f in work-*; do echo formatted > $f; done";
    let agent = "test -e gate-made.txt && exit 1\necho x > work-$DESCARTES_TASK_ID";
    lands(&world, agent, &["--verify", gate], &["work-1", "work-2"]);
    assert_eq!(world.git(["show", "HEAD:kept"]), "one");
    assert_eq!(world.git(["show", "HEAD:work-2"]), "formatted");
}

/// Also where a gate sent the work back, and its next attempt builds on it.
#[test]
fn what_a_failed_gate_left_is_on_no_branch() {
    let world = tasks(1);
    let gate = "echo x > gate-made.txt; test -e second";
    let agent = "[ -e first ] && echo x > second || echo x > first";
    lands(&world, agent, &["--verify", gate], &["first", "second"]);
}

/// A setup that a killed host left half done is begun anew.
#[test]
fn what_a_killed_setup_left_does_not_land() {
    let world = tasks(1);
    let ready = world.root().join("ready");
    let setup = format!(
        "echo x > half; [ -e {0} ] || {{ touch {0}; sleep 1000; }}",
        ready.display()
    );
    world.configure(format!("worktree_setup = \"{setup}\"\n"));
    crate::task_common::kill_when_held(&world, "echo x > work", &[], &ready);
    run(&world, &["loop", "resume"]).assert_code(0);
    assert!(landed(&world).contains(&"work".to_owned()));
    assert!(!landed(&world).contains(&"half".to_owned()));
}
