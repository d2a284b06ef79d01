//! Snapshots in git: what is seen, and what is not touched.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use descartes_core::worktree::{Tree, TreeHash, TreeKind, TreeOptions, Watching};

use crate::world::{World, git_tree, snap};

#[test]
fn a_snapshot_is_the_tree_that_git_would_write() {
    let world = World::repository();
    let mut tree = world.tree();
    assert_eq!(tree.kind(), TreeKind::Git { root: world.dir() });
    let first = snap(&mut tree);
    assert_eq!(git_tree(&first), world.truth());
    assert_eq!(first.head, Some(world.git(&["rev-parse", "HEAD"])));
    world.write("a.txt", "changed\n");
    world.write("new/deep/file.txt", "new\n");
    world.remove("src/b.txt");
    let second = snap(&mut tree);
    assert_eq!(git_tree(&second), world.truth());
    assert_eq!(first.differs(&second), Some(true));
    assert_eq!(second.differs(&snap(&mut tree)), Some(false));
}

#[test]
fn index_refs_and_objects_of_the_user_are_not_touched() {
    let world = World::repository();
    world.write("staged.txt", "staged\n");
    world.git(&["add", "staged.txt"]);
    world.hook("post-index-change", "touch .git/hook-ran");
    let before = world.repository_bytes();
    let mut tree = world.tree();
    let first = snap(&mut tree);
    world.write("a.txt", "changed\n");
    world.write("big.bin", vec![7; 300_000]);
    let second = snap(&mut tree);
    tree.diff(&first, &second, Default::default()).unwrap();
    tree.rewind(&first, "before").unwrap();
    assert_eq!(world.repository_bytes(), before);
    assert_eq!(
        world.git(&["diff", "--cached", "--name-only"]),
        "staged.txt"
    );
}

#[test]
fn an_edit_of_the_same_size_in_the_same_instant_is_seen() {
    for watching in [Watching::WherePossible, Watching::Never] {
        let world = World::repository();
        let mut tree = world.tree_at(&world.dir(), watching);
        let mut last = snap(&mut tree);
        for round in 0..200u8 {
            world.write("a.txt", [b'a', round]);
            let next = snap(&mut tree);
            assert_eq!(last.differs(&next), Some(true), "{watching:?} {round}");
            last = next;
        }
        assert_eq!(git_tree(&last), world.truth());
    }
}

#[test]
fn a_file_whose_times_were_set_back_is_seen() {
    for watching in [Watching::WherePossible, Watching::Never] {
        let world = World::repository();
        let mut tree = world.tree_at(&world.dir(), watching);
        let path = world.dir().join("a.txt");
        let old = fs::metadata(&path).unwrap().modified().unwrap();
        let first = snap(&mut tree);
        world.write("a.txt", "A\n");
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(old)
            .unwrap();
        assert_eq!(first.differs(&snap(&mut tree)), Some(true), "{watching:?}");
    }
}

#[test]
fn ignored_files_are_no_evidence() {
    let world = World::repository();
    world.write(".gitignore", "target/\n*.log\n!keep.log\n");
    world.write("target/old", "1");
    let mut tree = world.tree();
    let first = snap(&mut tree);
    world.write("target/new/deep", "2");
    world.write("src/x.log", "3");
    world.write("empty/only.log", "4");
    world.write(".descartes/loop-state.json", "{}");
    world.write("src/.descartes/loop-state.json", "{}");
    let second = snap(&mut tree);
    assert_eq!(first.differs(&second), Some(false));
    world.write("empty/keep.log", "5");
    let third = snap(&mut tree);
    assert_eq!(second.differs(&third), Some(true));
    assert_eq!(git_tree(&third), world.truth());
}

#[test]
fn new_ignore_rules_hold_from_the_next_snapshot_on() {
    let world = World::repository();
    world.write("out/x", "1");
    let mut tree = world.tree();
    snap(&mut tree);
    for (path, rules) in [
        (".gitignore", "out/\n"),
        ("out/.gitignore", "*\n"),
        (".git/info/exclude", "out/x\n"),
        (".gitignore", "nothing\n"),
    ] {
        world.write(path, rules);
        assert_eq!(git_tree(&snap(&mut tree)), world.truth(), "{path}");
    }
    fs::write(world.home().join("ignored"), "a.txt\nout/\n").unwrap();
    world.git(&["config", "core.excludesFile", "~/ignored"]);
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
    world.git(&["config", "core.excludesFile", "~/ignored-not"]);
    world.remove(".gitignore");
    world.remove("out/.gitignore");
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
}

#[test]
fn a_rule_file_that_is_ignored_itself_is_obeyed() {
    let world = World::repository();
    world.write(".git/info/exclude", ".gitignore\n.gitattributes\n");
    world.write(".gitignore", "*.tmp\n");
    world.write("x.tmp", "1");
    let mut tree = world.tree();
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
    world.write(".gitignore", "nothing\n");
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
    world.write(".gitattributes", "*.txt text eol=crlf\n");
    world.write("a.txt", "one\r\ntwo\r\n");
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
}

#[test]
fn an_ignored_file_counts_once_it_is_committed_by_force() {
    let world = World::repository();
    world.write(".gitignore", "*.key\n");
    world.write("x.key", "1");
    let mut tree = world.tree();
    snap(&mut tree);
    world.git(&["add", "-f", "x.key"]);
    world.git(&["commit", "-q", "-m", "force"]);
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
    world.write("x.key", "2");
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
}

#[test]
fn line_ends_are_those_of_the_user() {
    let world = World::repository();
    world.write(".gitattributes", "*.txt text=auto\n");
    let mut tree = world.tree();
    snap(&mut tree);
    world.write("crlf.txt", "a\r\nb\r\n");
    world.write("lf.txt", "a\nb\n");
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
    world.write("new/.gitattributes", "* text\n");
    world.write("new/y", "a\r\n");
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
}

#[test]
fn carriage_returns_in_the_index_stay_with_autocrlf() {
    let world = World::repository();
    world.write("crlf.txt", "a\r\nb\r\n");
    world.commit("crlf");
    world.git(&["config", "core.autocrlf", "true"]);
    let mut tree = world.tree();
    snap(&mut tree);
    world.write("crlf.txt", "a\r\nb\r\nc\r\n");
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
}

#[test]
fn the_executable_bit_is_seen() {
    let world = World::repository();
    let mut tree = world.tree();
    let first = snap(&mut tree);
    let path = world.dir().join("a.txt");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    let second = snap(&mut tree);
    assert_eq!(first.differs(&second), Some(true));
    assert_eq!(git_tree(&second), world.truth());
    world.git(&["config", "core.fileMode", "false"]);
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
    world.write("src/b.txt", "again\n");
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
}

#[test]
fn changed_files_are_counted_from_the_mark() {
    let world = World::repository();
    let mut tree = world.tree();
    assert_eq!(snap(&mut tree).changed, None);
    tree.mark();
    assert_eq!(snap(&mut tree).changed, Some(0));
    world.write("a.txt", "x\n");
    world.write("new/one", "1");
    world.write("new/two", "2");
    assert_eq!(snap(&mut tree).changed, Some(3));
    world.write("a.txt", "a\n");
    fs::remove_dir_all(world.dir().join("src")).unwrap();
    assert_eq!(snap(&mut tree).changed, Some(3), "one is back, one is gone");
    world.write(".gitignore", "new\n");
    assert_eq!(
        snap(&mut tree).changed,
        Some(2),
        "a rule file, and one is gone"
    );
    tree.mark();
    assert_eq!(snap(&mut tree).changed, Some(0));
}

#[test]
fn folders_that_move_or_come_back_are_followed() {
    let world = World::repository();
    let dir = world.dir();
    let mut tree = world.tree();
    snap(&mut tree);
    fs::rename(dir.join("src"), dir.join("moved")).unwrap();
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
    world.write("moved/b.txt", "after the move\n");
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
    fs::remove_dir_all(dir.join("moved")).unwrap();
    world.write("moved/inner/c.txt", "made anew\n");
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
    world.write("moved/inner/c.txt", "and changed\n");
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
    fs::rename(dir.join("moved"), world.beside("away")).unwrap();
    fs::write(world.beside("away/inner/c.txt"), "elsewhere").unwrap();
    fs::create_dir(dir.join("moved")).unwrap();
    world.write("moved/d.txt", "in its place\n");
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
    world.write("moved/d.txt", "still seen\n");
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
}

#[test]
fn more_events_than_the_queue_holds_are_no_matter() {
    let world = World::repository();
    let mut tree = world.tree();
    snap(&mut tree);
    // Two files in turn, so that the kernel cannot merge the events.
    let open = |path| {
        fs::File::options()
            .append(true)
            .open(world.dir().join(path))
            .unwrap()
    };
    let mut files = [open("a.txt"), open("src/b.txt")];
    for n in 0..20_000 {
        files[n % 2].write_all(b"x").unwrap();
    }
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
}

#[test]
fn a_budget_that_is_too_small_gives_unknown_and_says_so() {
    let world = World::repository();
    let mut tree = world.tree();
    for tries in 1..=4 {
        let TreeHash::Unknown { reason } = tree.snapshot(Duration::ZERO).tree else {
            panic!()
        };
        assert_eq!(
            reason.contains("took longer than 0ns"),
            tries <= 3,
            "{tries}: {reason}"
        );
        assert_eq!(
            reason.contains("not tried any more"),
            tries > 3,
            "{tries}: {reason}"
        );
    }
}

#[test]
fn a_budget_that_ran_out_does_not_hide_changes() {
    for watching in [Watching::WherePossible, Watching::Never] {
        let world = World::repository();
        let mut tree = world.tree_at(&world.dir(), watching);
        let first = snap(&mut tree);
        world.write("a.txt", "changed\n");
        world.write("new/x", "new\n");
        let late = tree.snapshot(Duration::ZERO);
        assert_eq!(first.differs(&late), None);
        assert_eq!(git_tree(&snap(&mut tree)), world.truth());
    }
}

#[test]
fn a_state_file_that_lies_in_the_work_tree_does_not_count() {
    let world = World::repository();
    world.write("loop.json", "1");
    world.write("states/loops/journal", "1");
    world.commit("the state is tracked, even");
    let apart = vec![world.dir().join("loop.json"), world.dir().join("states")];
    let options = TreeOptions {
        git: world.settings(),
        apart,
        ..TreeOptions::default()
    };
    let objects = world.dir().join("states/objects");
    let mut tree = Tree::open_with(&world.dir(), &objects, options);
    let first = snap(&mut tree);
    world.write("loop.json", "2");
    world.write("states/loops/journal", "2");
    assert_eq!(first.differs(&snap(&mut tree)), Some(false));
    world.write("a.txt", "x");
    assert_eq!(first.differs(&snap(&mut tree)), Some(true));
}
