//! Files that are no ordinary files, and names that are no ordinary names.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use descartes_core::worktree::{Tree, Watching};
use nix::sys::stat::Mode;
use nix::unistd::{geteuid, mkfifo};

use crate::world::{World, git_tree, snap};

#[test]
fn pipes_sockets_and_link_loops_do_not_hang() {
    let world = World::repository();
    let dir = world.dir();
    mkfifo(&dir.join("pipe"), Mode::from_bits_truncate(0o644)).unwrap();
    mkfifo(&dir.join(".gitignore"), Mode::from_bits_truncate(0o644)).unwrap();
    let _socket = UnixListener::bind(dir.join("socket")).unwrap();
    symlink(".", dir.join("loop")).unwrap();
    symlink("b", dir.join("a")).unwrap();
    symlink("a", dir.join("b")).unwrap();
    symlink("/nowhere", dir.join("dangling")).unwrap();
    fs::remove_file(dir.join(".gitignore")).unwrap();
    let mut tree = world.tree();
    let first = snap(&mut tree);
    assert_eq!(git_tree(&first), world.truth());
    mkfifo(&dir.join("src/pipe"), Mode::from_bits_truncate(0o644)).unwrap();
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
    fs::remove_file(dir.join("pipe")).unwrap();
    world.write("pipe", "a file by now");
    fs::remove_file(dir.join("a")).unwrap();
    fs::create_dir(dir.join("a")).unwrap();
    world.write("a/file", "a folder by now");
    fs::remove_file(dir.join("dangling")).unwrap();
    symlink("/elsewhere", dir.join("dangling")).unwrap();
    let second = snap(&mut tree);
    assert_eq!(git_tree(&second), world.truth());
    assert_eq!(first.differs(&second), Some(true));
}

#[test]
fn the_same_in_a_plain_folder() {
    let world = World::plain();
    let dir = world.dir();
    mkfifo(&dir.join("pipe"), Mode::from_bits_truncate(0o644)).unwrap();
    mkfifo(&dir.join(".gitignore"), Mode::from_bits_truncate(0o644)).unwrap();
    let _socket = UnixListener::bind(dir.join("socket")).unwrap();
    symlink(".", dir.join("loop")).unwrap();
    symlink("/one", dir.join("link")).unwrap();
    let mut tree = world.tree();
    let first = snap(&mut tree);
    fs::remove_file(dir.join("link")).unwrap();
    symlink("/two", dir.join("link")).unwrap();
    assert_eq!(first.differs(&snap(&mut tree)), Some(true));
}

#[test]
fn names_of_any_bytes() {
    for world in [World::repository(), World::plain()] {
        let names: [&[u8]; 6] = [
            b"\xff\xfe",
            b"new\nline",
            b"\"quoted\"",
            b"back\\slash",
            b" space ",
            b":(top)x",
        ];
        let mut tree = world.tree();
        let first = snap(&mut tree);
        let write = |content: &str| {
            for name in names {
                fs::write(world.dir().join(OsStr::from_bytes(name)), content).unwrap();
            }
            // Over the size that is written without git.
            fs::write(world.dir().join("big\nname"), content.repeat(200_000)).unwrap();
        };
        write("1");
        let second = snap(&mut tree);
        write("2");
        let third = snap(&mut tree);
        assert_eq!(first.differs(&second), Some(true));
        assert_eq!(second.differs(&third), Some(true));
        if third.tree.git_tree().is_some() {
            assert_eq!(git_tree(&third), world.truth());
            assert_eq!(tree.changed_files(&first, &third).unwrap().len(), 7);
            tree.rewind(&second, "names").unwrap();
            assert_eq!(fs::read(world.dir().join("new\nline")).unwrap(), b"1");
        }
    }
}

#[test]
fn files_of_every_size_are_kept_whole() {
    let world = World::repository();
    let mut tree = world.tree();
    snap(&mut tree);
    for size in [0, 1, 65_520, 65_535, 65_536, 131_072, 131_073, 1_000_000] {
        world.write("sized.bin", vec![b'x'; size]);
        let taken = snap(&mut tree);
        assert_eq!(git_tree(&taken), world.truth(), "{size}");
        world.write("sized.bin", "else");
        tree.rewind(&taken, &format!("size-{size}")).unwrap();
        assert_eq!(world.read("sized.bin").len(), size);
    }
}

#[test]
fn huge_files_are_told_apart_without_being_read() {
    let world = World::plain();
    let file = fs::File::create(world.dir().join("huge")).unwrap();
    file.set_len(200 << 30).unwrap();
    let mut tree = world.tree();
    let first = snap(&mut tree);
    file.set_len((200 << 30) + 1).unwrap();
    assert_eq!(first.differs(&snap(&mut tree)), Some(true));
}

#[test]
fn what_cannot_be_read_is_left_out() {
    if geteuid().is_root() {
        return; // Nothing is unreadable to root.
    }
    let world = World::repository();
    let mut tree = world.tree();
    snap(&mut tree);
    for path in ["secret", "a.txt"] {
        world.write(path, "x");
        let closed = fs::Permissions::from_mode(0o000);
        fs::set_permissions(world.dir().join(path), closed).unwrap();
    }
    fs::create_dir(world.dir().join("closed")).unwrap();
    fs::set_permissions(
        world.dir().join("closed"),
        fs::Permissions::from_mode(0o000),
    )
    .unwrap();
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
    assert_eq!(git_tree(&snap(&mut world.tree())), world.truth());
    fs::set_permissions(
        world.dir().join("closed"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
}

#[test]
fn a_working_directory_that_goes_away_is_said() {
    for world in [World::repository(), World::plain()] {
        let mut tree: Tree = world.tree_at(&world.dir(), Watching::WherePossible);
        snap(&mut tree);
        fs::rename(world.dir(), world.beside("gone")).unwrap();
        let taken = tree.snapshot(crate::world::BUDGET);
        assert!(
            taken.tree.to_string().starts_with("unknown:"),
            "{}",
            taken.tree
        );
    }
}
