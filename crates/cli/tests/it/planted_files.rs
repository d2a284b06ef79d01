//! What an agent or a cloned repository plants in the place of our files is refused: nothing behind
//! a link is read, changed, renamed or emptied, and nothing waits for a FIFO.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use descartes_testkit::World;
use descartes_testkit::world::Finished;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::common::{CLAIMS, descartes, events, start, state};

const PRECIOUS: &str = "ssh-ed25519 AAAA… person\n";

/// A file of the person's that no command has a reason to touch.
fn precious(world: &World) -> PathBuf {
    let path = world.home().join("authorized_keys");
    fs::write(&path, PRECIOUS).unwrap();
    path
}

#[track_caller]
fn assert_untouched(path: &PathBuf) {
    let meta = fs::symlink_metadata(path).unwrap();
    assert!(meta.is_file(), "{path:?}");
    assert_eq!(fs::read_to_string(path).unwrap(), PRECIOUS);
}

#[track_caller]
fn assert_refused(run: &Finished, words: &str) {
    run.assert_code(65);
    assert!(run.stderr().contains(words), "{run}");
    assert!(run.stderr().contains("hint:"), "{run}");
}

#[test]
fn a_linked_lock_refuses_the_start_and_its_target_is_untouched() {
    let world = World::in_memory();
    let target = precious(&world);
    fs::create_dir(world.path(".descartes")).unwrap();
    symlink(&target, world.path(".descartes/loop-state.json.lock")).unwrap();
    for flags in [&[][..], &["--force"]] {
        let run = start(&world, CLAIMS, flags);
        assert_refused(&run, "loop-state.json.lock is a symbolic link");
        assert!(run.stderr().contains("rm "), "{run}");
        assert_untouched(&target);
    }
    // What the hint says helps.
    fs::remove_file(world.path(".descartes/loop-state.json.lock")).unwrap();
    start(&world, CLAIMS, &[]).assert_code(0);
}

#[test]
fn a_lock_that_is_another_name_of_a_file_is_refused() {
    let world = World::in_memory();
    let target = precious(&world);
    fs::create_dir(world.path(".descartes")).unwrap();
    fs::hard_link(&target, world.path(".descartes/loop-state.json.lock")).unwrap();
    assert_refused(&start(&world, CLAIMS, &[]), "hard link");
    assert_untouched(&target);
}

#[test]
fn links_that_the_agent_plants_in_its_run_are_followed_by_nobody() {
    let world = World::in_memory();
    let target = precious(&world);
    let plant = |name: &str| {
        let name = format!(".descartes/loop-state.json{name}");
        format!("sh rm -f {name}; ln -s {} {name}\n", target.display())
    };
    let script = format!(
        "@1 print one\n@2 {}{}{}@3 promise",
        plant(""),
        plant(".lock"),
        plant(".tmp")
    );
    let run = start(&world, &script, &["-m", "5"]);
    run.assert_code(0);
    assert_untouched(&target);
    // The state file is a file again.
    assert_eq!(state(&world)["iteration"], 3);
    assert!(run.stderr().contains("symbolic link") || run.stdout().contains("symbolic link"));
}

#[test]
fn a_linked_descartes_folder_is_refused_and_named() {
    let world = World::in_memory();
    let elsewhere = world.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("loop-state.json"), PRECIOUS).unwrap();
    fs::write(elsewhere.join("config.toml"), "max_iterations = 1\n").unwrap();
    symlink(&elsewhere, world.path(".descartes")).unwrap();
    for flags in [&[][..], &["--force"], &["-s", "own.json"]] {
        assert_refused(
            &start(&world, CLAIMS, flags),
            ".descartes is a symbolic link",
        );
    }
    for verb in [&["loop", "status"][..], &["loop", "resume"], &["init"]] {
        assert_refused(&descartes(&world, verb), ".descartes is a symbolic link");
    }
    assert_untouched(&elsewhere.join("loop-state.json"));
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 2);
}

#[test]
fn a_project_behind_a_link_is_the_persons_own_business() {
    let world = World::in_memory();
    let link = world.root().join("linked");
    symlink(world.project(), &link).unwrap();
    let dir = link.to_str().unwrap();
    start(&world, CLAIMS, &["--working-dir", dir]).assert_code(0);
    let file = link.join(".descartes/loop-state.json");
    let run = descartes(&world, &["loop", "status", "-s", file.to_str().unwrap()]);
    run.assert_code(0);
    assert_eq!(state(&world)["completed"], true);
}

#[test]
fn a_linked_state_file_is_not_read_and_force_renames_the_link_alone() {
    let world = World::in_memory();
    start(&world, CLAIMS, &[]).assert_code(0);
    let target = precious(&world);
    let file = world.path(".descartes/loop-state.json");
    fs::remove_file(&file).unwrap();
    symlink(&target, &file).unwrap();
    for verb in ["status", "resume", "cancel"] {
        let run = descartes(&world, &["loop", verb]);
        assert_refused(&run, "loop-state.json is a symbolic link");
    }
    assert_refused(&start(&world, CLAIMS, &[]), "is a symbolic link");
    start(&world, CLAIMS, &["--force"]).assert_code(0);
    assert_untouched(&target);
    assert!(fs::symlink_metadata(&file).unwrap().is_file());
}

#[test]
fn a_fifo_a_folder_or_a_socket_in_the_place_of_our_files_is_an_error_at_once() {
    let world = World::in_memory();
    start(&world, CLAIMS, &[]).assert_code(0);
    for (name, verbs) in [
        (
            ".descartes/loop-state.json",
            &["status", "resume", "cancel"][..],
        ),
        (".descartes/loop-state.json.lock", &["resume", "cancel"]),
    ] {
        let path = world.path(name);
        let kept = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        for (plant, words) in [
            (&|| mkfifo(&path, Mode::S_IRWXU).unwrap() as _, "is a FIFO"),
            (&|| fs::create_dir(&path).unwrap() as _, "is a folder"),
        ] as [(&dyn Fn(), &str); 2]
        {
            plant();
            for verb in verbs {
                let run = descartes(&world, &["loop", verb]);
                assert!(run.stderr().contains(words), "{name} {verb}: {run}");
                run.assert_code(65);
            }
            let run = start(&world, CLAIMS, &[]);
            assert_refused(&run, words);
            fs::remove_file(&path)
                .or_else(|_| fs::remove_dir(&path))
                .unwrap();
        }
        fs::write(&path, kept).unwrap();
    }
}

#[test]
fn a_config_file_or_a_prompt_that_is_no_file_is_an_error_at_once() {
    let world = World::in_memory();
    fs::create_dir(world.path(".descartes")).unwrap();
    let config = world.path(".descartes/config.toml");
    mkfifo(&config, Mode::S_IRWXU).unwrap();
    assert_refused(&start(&world, CLAIMS, &[]), "it is a FIFO");
    fs::remove_file(&config).unwrap();
    mkfifo(&world.path("P"), Mode::S_IRWXU).unwrap();
    let run = start(&world, CLAIMS, &["--prompt-file", "P"]);
    run.assert_code(64);
    assert!(run.stderr().contains("is a FIFO"), "{run}");
    let run = start(&world, CLAIMS, &["--spec-file", "P"]);
    run.assert_code(64);
    assert!(run.stderr().contains("is a FIFO"), "{run}");
}

/// The prompt file lies in the agent's reach: what it becomes is not handed to the next agent.
#[test]
fn a_prompt_file_that_became_a_link_or_a_fifo_ends_the_loop_and_is_not_read() {
    for (plant, words) in [
        (
            "rm P; ln -s ../home/authorized_keys P",
            "P is a symbolic link",
        ),
        ("rm P; mkfifo P", "it is a FIFO"),
    ] {
        let world = World::in_memory();
        let target = precious(&world);
        world.write("P", "the task\n");
        let script = format!("save-prompt seen-${{ITERATION}}\n@1 sh {plant}\n@2- promise");
        let run = start(&world, &script, &["--prompt-file", "P"]);
        run.assert_code(1);
        let said = format!("{}{}", run.stdout(), run.stderr());
        assert!(said.contains(words), "{run}");
        assert!(said.contains("descartes loop resume"), "{run}");
        assert_eq!(events(&world, "run_started").len(), 1);
        assert_untouched(&target);
        // Put back, it goes on.
        fs::remove_file(world.path("P")).unwrap();
        world.write("P", "the task\n");
        descartes(&world, &["loop", "resume"]).assert_code(0);
        assert!(!world.read("seen-2").contains("ssh-ed25519"));
    }
}

#[test]
fn a_prompt_file_that_was_a_link_when_it_was_typed_is_the_file_behind_it() {
    let world = World::in_memory();
    let target = precious(&world);
    world.write("tasks/one.md", "task one\n");
    symlink("tasks/one.md", world.path("P")).unwrap();
    let script = format!(
        "save-prompt seen-${{ITERATION}}\n@1 sh ln -sf {} P\n@2- promise",
        target.display()
    );
    start(&world, &script, &["--prompt-file", "P", "--spec-file", "P"]).assert_code(0);
    for seen in ["seen-1", "seen-2"] {
        assert!(
            world.read(seen).contains("task one"),
            "{}",
            world.read(seen)
        );
        assert!(!world.read(seen).contains("ssh-ed25519"));
    }
}

#[test]
fn clean_deletes_nothing_behind_a_link() {
    let world = World::in_memory();
    start(&world, CLAIMS, &[]).assert_code(0);
    let target = precious(&world);
    let folder = world.root().join("elsewhere");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("kept"), PRECIOUS).unwrap();
    let own = crate::common::loop_dir(&world);
    fs::remove_dir_all(own.join("runs")).unwrap();
    symlink(&folder, own.join("runs")).unwrap();
    symlink(&folder, world.state().join("loops/planted")).unwrap();
    symlink(&target, world.path(".descartes/other.lock")).unwrap();
    let run = descartes(&world, &["clean", "--older", "0s", "--whole", "--yes"]);
    assert!(run.code() == Some(0) || run.code() == Some(1), "{run}");
    assert_untouched(&folder.join("kept"));
    assert_untouched(&target);
}
