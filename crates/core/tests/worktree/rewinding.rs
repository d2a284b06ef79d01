//! Putting the work tree back, and back again.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use descartes_core::worktree::{Snapshot, TreeHash, Watching, WorktreeError};

use crate::world::{World, git_tree, snap};

#[test]
fn the_work_tree_is_put_back_and_the_safety_copy_is_the_way_back() {
    let world = World::repository();
    world.write("tool", "#!/bin/sh\n");
    fs::set_permissions(world.dir().join("tool"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("a.txt", world.dir().join("link")).unwrap();
    let mut tree = world.tree();
    let first = snap(&mut tree);
    let head = world.git(&["rev-parse", "HEAD"]);
    world.write("a.txt", "changed\n");
    world.write("new/deep/file.txt", "new\n");
    world.remove("src/b.txt");
    world.remove("tool");
    world.remove("link");
    world.commit("all of it is committed");
    world.write("uncommitted.txt", "precious\n");
    let moved = world.git(&["rev-parse", "HEAD"]);
    let second = snap(&mut tree);

    let done = tree.rewind(&first, "before-rewind-1").unwrap();
    assert_eq!(done.restored.len(), 4);
    assert_eq!(done.removed.len(), 2);
    assert_eq!(done.skipped, Vec::<PathBuf>::new());
    assert_eq!(world.read("a.txt"), "a\n");
    assert!(!world.exists("new") && !world.exists("uncommitted.txt"));
    assert_eq!(
        fs::read_link(world.dir().join("link")).unwrap(),
        PathBuf::from("a.txt")
    );
    assert_eq!(snap(&mut tree).tree, first.tree);
    assert_eq!(world.git(&["rev-parse", "HEAD"]), moved, "HEAD stays");
    assert_ne!(head, moved);
    assert_eq!(
        world.git(&["diff", "--cached", "--name-only"]),
        "",
        "the index stays"
    );

    let mut tree = world.tree();
    assert_eq!(tree.safety_copies(), ["before-rewind-1"]);
    let copy = tree.safety_copy("before-rewind-1").unwrap();
    assert_eq!(copy.tree, second.tree);
    tree.rewind(&copy, "before-rewind-2").unwrap();
    assert_eq!(world.read("uncommitted.txt"), "precious\n");
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
}

#[test]
fn ignored_files_are_not_touched_even_where_they_are_in_the_way() {
    let world = World::repository();
    world.write("data", "a file\n");
    world.write("cfg/x", "x\n");
    world.write("folder/inner", "inner\n");
    let mut tree = world.tree();
    let first = snap(&mut tree);
    for path in ["data", "cfg/x", "folder/inner"] {
        world.remove(path);
    }
    fs::remove_dir(world.dir().join("cfg")).unwrap();
    world.write(".gitignore", "data/\ncfg\ninner\n");
    world.write("data/precious", "1");
    world.write("cfg", "2");
    world.write("folder/inner", "3");
    let done = tree.rewind(&first, "s").unwrap();
    let skipped = ["cfg/x", "data", "folder/inner"].map(PathBuf::from);
    assert_eq!(done.skipped, skipped);
    assert_eq!(world.read("data/precious"), "1");
    assert_eq!(world.read("cfg"), "2");
    assert_eq!(world.read("folder/inner"), "3");
}

#[test]
fn files_and_folders_change_places() {
    let world = World::repository();
    world.write("x", "file\n");
    world.write("y/z", "in a folder\n");
    symlink("src", world.dir().join("l")).unwrap();
    let mut tree = world.tree();
    let first = snap(&mut tree);
    world.remove("x");
    world.write("x/inner", "folder by now\n");
    fs::remove_dir_all(world.dir().join("y")).unwrap();
    symlink("src", world.dir().join("y")).unwrap();
    world.remove("l");
    world.write("l/inner", "folder by now\n");
    let second = snap(&mut tree);
    tree.rewind(&first, "one").unwrap();
    assert_eq!(snap(&mut tree).tree, first.tree);
    assert!(
        !world.exists("src/z"),
        "nothing was written through the link"
    );
    tree.rewind(&second, "two").unwrap();
    assert_eq!(snap(&mut tree).tree, second.tree);
}

#[test]
fn our_own_files_stay() {
    let world = World::repository();
    world.write(".descartes/config.toml", "1");
    world.git(&["add", "-f", "."]);
    world.git(&["commit", "-q", "-m", "tracked"]);
    let mut tree = world.tree();
    let first = snap(&mut tree);
    world.write(".descartes/config.toml", "2");
    world.write("a.txt", "x\n");
    tree.rewind(&first, "s").unwrap();
    assert_eq!(world.read(".descartes/config.toml"), "2");
    assert_eq!(world.read("a.txt"), "a\n");
}

#[test]
fn nothing_is_touched_without_a_safety_copy() {
    let world = World::repository();
    let mut tree = world.tree();
    let first = snap(&mut tree);
    world.write("a.txt", "x\n");
    for name in ["", "../x", "a/b", ".hidden"] {
        let error = tree.rewind(&first, name).unwrap_err();
        assert!(matches!(error, WorktreeError::BadName { .. }), "{error}");
    }
    fs::write(world.objects().join("safety"), "in the way").unwrap();
    assert!(tree.rewind(&first, "s").is_err());
    fs::remove_file(world.objects().join("safety")).unwrap();
    let lost = TreeHash::Git {
        tree: "1".repeat(40),
        nested: None,
    };
    assert!(tree.rewind(&Snapshot::recorded(None, lost), "s").is_err());
    assert_eq!(world.read("a.txt"), "x\n");
    world.write("b.txt", "y\n");
    let error = tree.rewind(&first, "s").unwrap_err();
    assert!(
        matches!(error, WorktreeError::Exists { .. }),
        "an older copy is kept: {error}"
    );
    assert!(world.exists("b.txt"));
}

/// A loop may work in one folder of a repository: the rest is somebody else's.
#[test]
fn only_the_working_directory_is_put_back_unless_all_is_asked_for() {
    let world = World::repository();
    world.write("service/s.txt", "1\n");
    world.commit("service");
    let mut tree = world.tree_at(&world.dir().join("service"), Watching::WherePossible);
    let first = snap(&mut tree);
    world.write("service/s.txt", "2\n");
    world.write("service/new.txt", "new\n");
    world.write("service2/mine.txt", "mine\n");
    world.write("a.txt", "mine\n");
    let done = tree.rewind(&first, "one").unwrap();
    assert_eq!(world.read("service/s.txt"), "1\n");
    assert!(!world.exists("service/new.txt"));
    assert_eq!(world.read("a.txt"), "mine\n");
    assert_eq!(world.read("service2/mine.txt"), "mine\n");
    let outside = ["a.txt", "service2/mine.txt"].map(PathBuf::from);
    assert_eq!(done.outside, outside);
    let done = tree.rewind_whole_tree(&first, "two").unwrap();
    assert_eq!(done.outside, Vec::<PathBuf>::new());
    assert_eq!(world.read("a.txt"), "a\n");
    assert!(!world.exists("service2"));
}
