//! `descartes gui` finds the window, or says how to get it.

use std::process::Command;

use descartes_testkit::World;

/// The command line, alone in a folder of its own.
fn alone(world: &World) -> Command {
    let folder = world.root().join("alone");
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("descartes");
    std::fs::copy(descartes_testkit::descartes(), &program).unwrap();
    world.command(program)
}

#[test]
fn without_the_window_it_says_how_to_get_it() {
    let world = World::new();
    let mut command = alone(&world);
    command.arg("gui");
    let run = world.run(command);
    run.assert_code(65);
    let told = run.stderr();
    assert!(told.contains("not installed"), "{told}");
    assert!(told.contains("cargo install descartes-gui"), "{told}");
}

#[test]
fn it_starts_the_window_that_lies_beside_it_or_in_the_path() {
    let world = World::new();
    world.program("descartes-gui", "#!/bin/sh\necho path \"$@\"\n");
    let mut command = alone(&world);
    command.args(["gui", "--dark", "auth"]);
    assert_eq!(world.run(command).stdout(), "path --dark auth\n");

    let mut command = alone(&world);
    let beside = world.root().join("alone/descartes-gui");
    std::fs::copy(world.program("other", "#!/bin/sh\necho beside\n"), &beside).unwrap();
    command.arg("gui");
    assert_eq!(world.run(command).stdout(), "beside\n");
}
