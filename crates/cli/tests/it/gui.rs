//! `descartes gui` finds the window, or says how to get it.

use std::process::Command;

use descartes_testkit::World;
use descartes_testkit::pty::Size;

use crate::hint_rows::{shell, suggestion};
use crate::watch_common::{on_terminal, quits, sees};

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
    let world = World::in_memory();
    let mut command = alone(&world);
    command.arg("gui");
    let run = world.run(command);
    run.assert_code(65);
    let told = run.stderr();
    assert!(told.contains("not installed"), "{told}");
    assert!(told.contains("cargo install --path crates/gui"), "{told}");
    assert!(!told.contains("cargo install descartes"), "{told}");
    // What does the same in a terminal.
    let line = suggestion(&told, "descartes watch").expect(&told);
    let mut shell = shell(&world, "project", &line);
    let mut pty = on_terminal(&mut shell, Size::default());
    sees(&pty, "no loop yet: descartes loop start, or descartes demo");
    quits(&mut pty);
}

/// A program that answers as our window does, and says where it lies when it is started.
fn window(at: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'descartes-gui {version} (window of descartes loops)'; \
         else echo {at} \"$@\"; fi\n"
    )
}

#[test]
fn it_starts_the_window_that_lies_beside_it_or_in_the_path() {
    let world = World::in_memory();
    world.program("descartes-gui", &window("path"));
    let mut command = alone(&world);
    command.args(["gui", "--dark", "auth"]);
    assert_eq!(world.run(command).stdout(), "path --dark auth\n");

    let mut command = alone(&world);
    let beside = world.root().join("alone/descartes-gui");
    std::fs::copy(world.program("other", &window("beside")), &beside).unwrap();
    command.arg("gui");
    assert_eq!(world.run(command).stdout(), "beside\n");
}

#[test]
fn a_program_of_the_same_name_that_is_not_ours_is_not_started() {
    for answer in [
        "descartes-gui 0.3.7",
        concat!("descartes-gui ", env!("CARGO_PKG_VERSION")),
        "",
    ] {
        let world = World::in_memory();
        let foreign = format!(
            "#!/bin/sh\nif [ \"$1\" = --version ]; then echo '{answer}'; else touch started; fi\n"
        );
        let foreign = world.program("descartes-gui", &foreign);
        let mut command = alone(&world);
        command.arg("gui");
        let run = world.run(command);
        run.assert_code(65);
        let told = run.stderr();
        assert!(told.contains(&foreign.display().to_string()), "{told}");
        assert!(told.contains("cargo install --path crates/gui"), "{told}");
        assert!(!world.has("started"));
        // One in the path still counts where the one beside is another's.
        let beside = world.root().join("alone/descartes-gui");
        std::fs::copy(&foreign, beside).unwrap();
        world.program("descartes-gui", &window("path"));
        let mut command = alone(&world);
        command.arg("gui");
        assert_eq!(world.run(command).stdout(), "path\n");
    }
}

/// The registry's crates of these names are other people's.
#[test]
fn nothing_tells_anybody_to_install_other_peoples_crates() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.join("crates"), root.join("docs"), root.join("plugins")];
    let mut files = vec![root.join("README.md")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    for file in files {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        if name.ends_with("tests/it/gui.rs") {
            continue;
        }
        assert!(!text.contains("cargo install descartes"), "{name}");
        assert!(!text.contains("cargo add descartes"), "{name}");
        if name.ends_with("Cargo.toml") {
            assert!(text.contains("publish = false"), "{name}");
        }
    }
}
