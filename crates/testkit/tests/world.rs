//! The hermetic world.

use std::time::Duration;

use descartes_testkit::World;

#[test]
fn commands_see_the_world_and_nothing_else() {
    let world = World::new();
    let run = world.run(world.command("env"));
    let root = world.root().display().to_string();
    let machine = [
        "PATH=",
        "LANG=",
        "TZ=",
        "USER=",
        "SHELL=",
        "GIT_",
        "TEST_WORLD_OF_DESCARTES=",
    ];
    for line in run.stdout().lines() {
        assert!(
            line.contains(&root) || machine.iter().any(|name| line.starts_with(name)),
            "from outside: {line}"
        );
    }
    assert!(run.stdout().contains(&format!("HOME={root}/home")));
    assert!(
        run.stdout()
            .contains(&format!("DESCARTES_STATE_DIR={root}/state"))
    );
}

#[test]
fn git_works_without_the_person_of_this_machine() {
    let world = World::new();
    world.git_init();
    assert_eq!(
        world.git(["log", "--format=%an <%ae>"]),
        "Test Person <person@example.com>"
    );
    assert_eq!(world.git(["branch", "--show-current"]), "main");
}

#[test]
fn an_agent_is_a_command_line_that_can_be_quoted() {
    let world = World::new();
    let line = world.agent("print hello from ${ITERATION}");
    let mut command = world.command("sh");
    command.args(["-c", &line]).env("DESCARTES_ITERATION", "4");
    assert_eq!(world.run(command).stdout(), "hello from 4\n");
}

#[test]
fn programs_of_the_test_stand_first_on_the_path() {
    let world = World::new();
    world.program("git", "#!/bin/sh\necho not git\n");
    let mut command = world.command("sh");
    command.args(["-c", "git"]);
    assert_eq!(world.run(command).stdout(), "not git\n");
}

#[test]
#[should_panic(expected = "still running after")]
fn a_command_that_does_not_end_fails_the_test() {
    let world = World::new();
    world.run_within(
        world.agent_command("print so far\nhang"),
        Duration::from_millis(200),
    );
}

#[test]
fn a_child_that_holds_the_output_does_not_hold_the_test() {
    let world = World::new();
    let run = world.run(world.agent_command("spawn-child setsid pids\nprint done"));
    assert_eq!(run.assert_code(0).stdout(), "done\n");
    assert_eq!(world.processes().len(), 1);
}
