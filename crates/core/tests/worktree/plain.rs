//! Folders without git.

use std::fs;
use std::path::Path;
use std::time::Duration;

use descartes_core::worktree::{Tree, TreeHash, TreeOptions, Watching};
use sha2::{Digest, Sha256};

use crate::world::{World, snap};

/// The hash that is made without any memory.
fn fresh(world: &World) -> TreeHash {
    let objects = tempfile::tempdir().unwrap();
    let options = TreeOptions {
        git: world.settings(),
        ..TreeOptions::default()
    };
    snap(&mut Tree::open_with(&world.dir(), objects.path(), options)).tree
}

#[test]
fn content_decides() {
    for watching in [Watching::WherePossible, Watching::Never] {
        let world = World::plain();
        let mut tree = world.tree_at(&world.dir(), watching);
        let empty = snap(&mut tree);
        world.write("a", "1");
        world.write("b/c/d", "2");
        let first = snap(&mut tree);
        assert_eq!(empty.differs(&first), Some(true));
        world.write("a", "1");
        assert_eq!(
            first.differs(&snap(&mut tree)),
            Some(false),
            "written again, the same"
        );
        world.write("a", "3");
        let second = snap(&mut tree);
        assert_eq!(first.differs(&second), Some(true));
        world.write("a", "1");
        assert_eq!(snap(&mut tree).tree, first.tree);
        fs::rename(world.dir().join("b"), world.dir().join("e")).unwrap();
        assert_ne!(snap(&mut tree).tree, first.tree, "a name counts");
        fs::create_dir(world.dir().join("nothing")).unwrap();
        assert_eq!(snap(&mut tree).tree, fresh(&world));
    }
}

#[test]
fn an_ignore_file_is_obeyed_and_its_changes_too() {
    let world = World::plain();
    world.write(".gitignore", "build/\n*.log\n");
    world.write("keep", "1");
    world.write("sub/.gitignore", "!important.log\n");
    let mut tree = world.tree();
    let first = snap(&mut tree);
    world.write("build/x", "1");
    world.write("a.log", "1");
    world.write("sub/b.log", "1");
    world.write(".descartes/state", "1");
    world.write(".git/x", "1");
    assert_eq!(first.differs(&snap(&mut tree)), Some(false));
    world.write("sub/important.log", "1");
    let second = snap(&mut tree);
    assert_eq!(first.differs(&second), Some(true));
    world.write(".gitignore", "*.log\n");
    let third = snap(&mut tree);
    assert_eq!(second.differs(&third), Some(true));
    assert_eq!(third.tree, fresh(&world));
    world.write("build/x", "2");
    assert_eq!(
        third.differs(&snap(&mut tree)),
        Some(true),
        "it counts by now"
    );
}

#[test]
fn changed_files_are_counted_without_git() {
    let world = World::plain();
    world.write("a", "1");
    let mut tree = world.tree();
    snap(&mut tree);
    tree.mark();
    world.write("a", "2");
    world.write("b", "2");
    assert_eq!(snap(&mut tree).changed, Some(2));
    world.write(".gitignore", "b\n");
    assert_eq!(
        snap(&mut tree).changed,
        Some(2),
        "a and the rules; b no longer counts"
    );
}

#[test]
fn what_was_read_once_is_remembered_by_the_next_process() {
    let world = World::plain();
    world.write("a", "1");
    world.write("sub/b", "2");
    wait_until_at_rest(&world);
    let first = snap(&mut world.tree());
    assert_eq!(snap(&mut world.tree()).tree, first.tree);

    // A memory that is wrong, but whole, is believed: so it is used.
    let path = world.objects().join("content-hashes");
    let good = fs::read(&path).unwrap();
    let mut wrong = good[..good.len() - 32].to_vec();
    *wrong.last_mut().unwrap() ^= 1;
    wrong.extend_from_slice(&Sha256::digest(&wrong));
    fs::write(&path, &wrong).unwrap();
    assert_ne!(snap(&mut world.tree()).tree, first.tree);

    fs::write(&path, &good).unwrap();
    world.write("sub/b", "3");
    let second = snap(&mut world.tree());
    assert_eq!(second.tree, fresh(&world));
    assert_ne!(second.tree, first.tree);
    for damaged in [&good[..good.len() / 2], b"", b"something else"] {
        fs::write(&path, damaged).unwrap();
        assert_eq!(snap(&mut world.tree()).tree, second.tree);
    }
}

/// Files that were changed within the last ticks of the clock are not remembered.
fn wait_until_at_rest(world: &World) {
    let probe = world.beside("probe");
    let time = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    let written = time(&world.dir().join("sub/b"));
    loop {
        fs::write(&probe, "x").unwrap();
        if time(&probe).duration_since(written).unwrap() > Duration::from_millis(50) {
            return;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_budget_that_runs_out_keeps_what_was_read() {
    let world = World::plain();
    for n in 0..40 {
        world.write(&format!("f{n}"), vec![n; 1 << 20]);
    }
    let mut tree = world.tree();
    let late = tree.snapshot(Duration::ZERO);
    assert!(matches!(late.tree, TreeHash::Unknown { .. }));
    assert_eq!(snap(&mut tree).tree, fresh(&world));
}

#[test]
fn more_folders_than_can_be_watched_are_measured_all_the_same() {
    let world = World::plain();
    for n in 0..4_200 {
        fs::create_dir(world.dir().join(format!("d{n}"))).unwrap();
    }
    world.write("d17/deep/x", "1");
    let mut tree = world.tree();
    let mut last = snap(&mut tree);
    for round in 0..3 {
        world.write("d17/deep/x", format!("{round} again"));
        world.write(&format!("d4199/{round}"), "new");
        let next = snap(&mut tree);
        assert_eq!(last.differs(&next), Some(true));
        last = next;
    }
    assert_eq!(last.tree, fresh(&world));
}
