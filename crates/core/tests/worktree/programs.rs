//! What somebody put into git's settings is not run when the work tree is measured, compared or
//! put back, and what a commit runs leaves nothing behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use descartes_core::worktree::{ChangeStatus, CommitOutcome, DiffOptions};

use crate::world::{World, git_tree, snap};

/// A program that leaves a file behind, and then does what is asked.
fn program(world: &World, name: &str, then: &str) -> PathBuf {
    let path = world.beside(name);
    let mark = world.beside("was-run");
    let script = format!("#!/bin/sh\necho {name} >> {}\n{then}\n", mark.display());
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn was_run(world: &World) -> String {
    fs::read_to_string(world.beside("was-run")).unwrap_or_default()
}

fn configure(world: &World, dir: &Path, key: &str, value: &Path) {
    world.git_in(dir, &["config", key, value.to_str().unwrap()]);
}

/// Everything that an agent can have git start.
fn plant(world: &World) {
    let dir = world.dir();
    let pass = program(world, "filter", "cat");
    let fail = program(world, "other", "exit 1");
    for key in ["filter.mine.clean", "filter.mine.smudge"] {
        configure(world, &dir, key, &pass);
    }
    configure(world, &dir, "filter.lasting.process", &fail);
    for key in [
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.askPass",
        "core.alternateRefsCommand",
        "diff.external",
        "diff.mine.textconv",
        "diff.mine.command",
        "gpg.program",
        "interactive.diffFilter",
    ] {
        configure(world, &dir, key, &fail);
    }
    world.git(&["config", "log.showSignature", "true"]);
    world.git(&["config", "alias.add", &format!("!{}", fail.display())]);
    let mine = "*.mine filter=mine diff=mine\n*.lasting filter=lasting\n";
    world.write(".gitattributes", mine);
    for hook in [
        "post-index-change",
        "reference-transaction",
        "post-checkout",
    ] {
        world.hook(hook, &fail.display().to_string());
    }
}

#[test]
fn measuring_comparing_and_going_back_run_no_program() {
    let world = World::repository();
    world.write("known.mine", "known\n");
    world.commit("known");
    let mut tree = world.tree();
    snap(&mut tree);
    plant(&world);
    world.write("new.mine", "one\n");
    world.write("new.lasting", "one\n");
    let first = snap(&mut tree);
    world.write("new.mine", "two\n");
    world.write("known.mine", "changed\n");
    world.write("new.lasting", "two\n");
    let second = snap(&mut tree);
    assert_eq!(first.differs(&second), Some(true));
    let patch = tree.diff(&first, &second, DiffOptions::default()).unwrap();
    let patch = String::from_utf8(patch).unwrap();
    assert!(
        patch.contains("+changed") && patch.contains("-one"),
        "{patch}"
    );
    tree.rewind(&first, "back").unwrap();
    assert_eq!(world.read("new.mine"), "one\n");
    assert_eq!(world.read("known.mine"), "known\n");
    assert_eq!(world.read("new.lasting"), "one\n");
    // A tree that is opened anew, with all of it in place already.
    let mut again = world.tree();
    snap(&mut again);
    again.rewind(&second, "forth").unwrap();
    assert_eq!(world.read("new.mine"), "two\n");
    assert_eq!(was_run(&world), "");
}

#[test]
fn a_file_that_a_filter_changes_is_kept_as_it_is() {
    let world = World::repository();
    world.git(&["config", "filter.up.clean", "tr a-z A-Z"]);
    world.git(&["config", "filter.up.smudge", "tr A-Z a-z"]);
    world.git(&["config", "filter.up.required", "true"]);
    world.write(".gitattributes", "*.up filter=up\n");
    world.write("x.up", "Mixed Case\n");
    world.commit("filtered");
    let mut tree = world.tree();
    let first = snap(&mut tree);
    world.write("x.up", "something else\n");
    let second = snap(&mut tree);
    assert_eq!(first.differs(&second), Some(true));
    tree.rewind(&first, "back").unwrap();
    assert_eq!(world.read("x.up"), "Mixed Case\n");
    assert_eq!(snap(&mut tree).tree, first.tree);
}

#[test]
fn a_large_file_that_a_filter_changes_comes_back_through_it() {
    let world = World::repository();
    world.git(&["config", "filter.up.clean", "tr a-z A-Z"]);
    world.git(&["config", "filter.up.smudge", "tr A-Z a-z"]);
    world.write(".gitattributes", "*.up filter=up\n");
    let content = "abcdefgh".repeat(9 << 20);
    world.write("x.up", &content);
    world.commit("filtered");
    let mut tree = world.tree();
    let first = snap(&mut tree);
    world.write("x.up", "something else\n");
    snap(&mut tree);
    tree.rewind(&first, "back").unwrap();
    assert!(world.read("x.up") == content);
}

#[test]
fn repositories_inside_are_not_asked_with_settings_of_their_own() {
    let world = World::repository();
    let inner = world.dir().join("inner");
    fs::create_dir(&inner).unwrap();
    world.git_in(&inner, &["init", "-q", "-b", "main"]);
    world.git_in(&inner, &["config", "user.name", "Ann"]);
    world.git_in(&inner, &["config", "user.email", "ann@example.org"]);
    fs::write(inner.join("file"), "one\n").unwrap();
    world.git_in(&inner, &["add", "file"]);
    world.git_in(&inner, &["commit", "-q", "-m", "inner"]);
    world.git(&["-c", "advice.addEmbeddedRepo=false", "add", "inner"]);
    world.git(&["commit", "-q", "-m", "outer"]);
    configure(
        &world,
        &inner,
        "core.fsmonitor",
        &program(&world, "fsmonitor", "exit 1"),
    );
    let mut tree = world.tree();
    let first = snap(&mut tree);
    fs::write(inner.join("file"), "two\n").unwrap();
    let second = snap(&mut tree);
    assert_eq!(was_run(&world), "");
    assert_eq!(first.differs(&second), Some(true), "its content counts");
    let done = tree.rewind(&first, "back").unwrap();
    assert_eq!(done.nested, [PathBuf::from("inner")], "and is not put back");
    let mut anew = world.tree();
    world.git_in(
        &inner,
        &[
            "-c",
            "core.fsmonitor=false",
            "commit",
            "-q",
            "-a",
            "-m",
            "two",
        ],
    );
    let moved = snap(&mut anew);
    assert_ne!(
        git_tree(&moved),
        git_tree(&first),
        "another commit is another tree"
    );
    assert_eq!(was_run(&world), "");
}

#[test]
fn what_a_hook_leaves_behind_is_ended_and_what_it_says_is_cut() {
    let world = World::repository();
    let pid = world.beside("pid");
    world.hook(
        "pre-commit",
        &format!(
            "setsid sleep 1000 & echo $! > {}\nyes 'a line that is said again' | head -n 400000 >&2\nexit 1",
            pid.display()
        ),
    );
    world.write("a.txt", "x\n");
    let CommitOutcome::Failed { message } = world.tree().commit_all("x") else {
        panic!("the hook refuses it");
    };
    assert!(message.len() < 5_000, "{}", message.len());
    assert!(message.contains("a line that is said again"), "{message}");
    let pid = fs::read_to_string(pid).unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
}

#[test]
fn a_repository_that_says_it_is_elsewhere_is_still_measured_here() {
    let world = World::repository();
    let mut tree = world.tree();
    let first = snap(&mut tree);
    let other = world.beside("other-place");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("a.txt"), "of somebody else\n").unwrap();
    configure(&world, &world.dir(), "core.worktree", &other);
    world.write("a.txt", "changed\n");
    let second = snap(&mut tree);
    assert_eq!(first.differs(&second), Some(true));
    tree.rewind(&first, "back").unwrap();
    assert_eq!(world.read("a.txt"), "a\n");
    let there = fs::read_to_string(other.join("a.txt")).unwrap();
    assert_eq!(there, "of somebody else\n");
}

#[test]
fn names_that_look_like_patterns_are_names() {
    let world = World::repository();
    let mut tree = world.tree();
    let first = snap(&mut tree);
    let names = [
        ":!foo",
        ":(exclude)x",
        ":/top",
        "*.txt",
        "[a]",
        "-dash",
        "\"q\"",
    ];
    for name in names {
        world.write(name, "one\n");
    }
    let second = snap(&mut tree);
    assert_eq!(git_tree(&second), world.truth());
    let changed = tree.changed_files(&first, &second).unwrap();
    assert_eq!(changed.len(), names.len());
    assert!(
        changed
            .iter()
            .all(|file| file.status == ChangeStatus::Added)
    );
    for name in names {
        world.write(name, "two\n");
    }
    snap(&mut tree);
    tree.rewind(&second, "back").unwrap();
    for name in names {
        assert_eq!(world.read(name), "one\n", "{name}");
    }
    tree.rewind(&first, "further").unwrap();
    assert!(names.iter().all(|name| !world.exists(name)));
}

#[test]
fn a_file_with_two_names_is_seen_to_change_under_both() {
    let world = World::repository();
    fs::create_dir(world.dir().join("other")).unwrap();
    let (one, two) = (
        world.dir().join("src/b.txt"),
        world.dir().join("other/b.txt"),
    );
    fs::hard_link(&one, &two).unwrap();
    let mut tree = world.tree();
    snap(&mut tree);
    for content in ["first\n", "second\n", "third\n"] {
        fs::write(&one, content).unwrap();
        assert_eq!(git_tree(&snap(&mut tree)), world.truth(), "{content}");
    }
}

#[test]
fn what_was_ignored_then_is_left_alone() {
    let world = World::repository();
    world.write(".gitignore", "secret.env\nnode_modules/\n");
    world.write("secret.env", "precious\n");
    world.write("node_modules/x/y.js", "1\n");
    let exclude = world.dir().join(".git/info/exclude");
    fs::create_dir_all(exclude.parent().unwrap()).unwrap();
    fs::write(&exclude, "data.db\n").unwrap();
    world.write("data.db", "rows\n");
    world.write("src/b.txt", "at one\n");
    let mut tree = world.tree();
    let first = snap(&mut tree);
    world.remove(".gitignore");
    fs::write(&exclude, "").unwrap();
    world.write("src/b.txt", "at two\n");
    world.write("new.txt", "made later\n");
    snap(&mut tree);
    let done = tree.rewind(&first, "back").unwrap();
    assert_eq!(world.read("secret.env"), "precious\n");
    assert_eq!(world.read("node_modules/x/y.js"), "1\n");
    assert_eq!(world.read("data.db"), "rows\n");
    assert_eq!(world.read("src/b.txt"), "at one\n");
    assert!(!world.exists("new.txt"));
    let mut kept = done.kept;
    kept.sort();
    let names = ["data.db", "node_modules/x/y.js", "secret.env"];
    assert_eq!(kept, names.map(PathBuf::from));
}
