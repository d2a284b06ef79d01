//! What changed between two snapshots.

use std::path::PathBuf;
use std::time::Duration;

use descartes_core::worktree::{
    Change, ChangeStatus, Changed, DiffColour, DiffOptions, DiffShape, Lines, Snapshot, TreeHash,
};

use crate::world::{World, snap};

#[test]
fn a_diff_shows_files_that_git_does_not_track() {
    let world = World::repository();
    let mut tree = world.tree();
    let first = snap(&mut tree);
    world.write("a.txt", "changed\n");
    world.write("new.txt", "new\n");
    world.remove("src/b.txt");
    let second = snap(&mut tree);
    let show = |shape, colour| {
        let bytes = tree
            .diff(&first, &second, DiffOptions { shape, colour })
            .unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let patch = show(DiffShape::Patch, DiffColour::Never);
    assert!(
        patch.contains("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+changed\n"),
        "{patch}"
    );
    assert!(show(DiffShape::Patch, DiffColour::Always).contains("\x1b["));
    let stat = show(DiffShape::Stat, DiffColour::Never);
    assert!(
        stat.contains("3 files changed, 2 insertions(+), 2 deletions(-)"),
        "{stat}"
    );
    let names = show(DiffShape::NameStatus, DiffColour::Never);
    assert_eq!(names, "M\ta.txt\nA\tnew.txt\nD\tsrc/b.txt\n");
    let changed = |path: &str, status| Changed {
        path: PathBuf::from(path),
        status,
    };
    assert_eq!(
        tree.changed_files(&first, &second).unwrap(),
        [
            changed("a.txt", ChangeStatus::Modified),
            changed("new.txt", ChangeStatus::Added),
            changed("src/b.txt", ChangeStatus::Removed),
        ]
    );
}

#[test]
fn lines_are_counted_for_many_changes_at_once_and_what_git_does_not_know_stays_unknown() {
    let world = World::repository();
    let mut tree = world.tree();
    let first = snap(&mut tree);
    world.write("a.txt", "one\ntwo\nthree\n");
    world.write("picture", b"\0\x01\n\x02\n");
    let second = snap(&mut tree);
    world.remove("src/b.txt");
    let third = snap(&mut tree);
    let lost = TreeHash::Git {
        tree: "1".repeat(40),
        nested: None,
    };
    let reason = "it was not measured".to_owned();
    let unknown = Snapshot::recorded(None, TreeHash::Unknown { reason });
    let between = |from: &Snapshot, to: &Snapshot| Change::Between(from.clone(), to.clone());
    let mut changes = vec![
        between(&first, &second),
        between(&first, &Snapshot::recorded(None, lost)),
        between(&unknown, &second),
        between(&second, &third),
        between(&third, &third),
        Change::Commit(first.head.clone().unwrap()),
        Change::Commit("HEAD --output=stolen".to_owned()),
        Change::Commit("2".repeat(40)),
        Change::Commit("abc".to_owned()),
    ];
    // More than one git is asked.
    changes.extend((0..200).map(|_| between(&first, &third)));
    let lines = |added, removed| Some(Lines { added, removed });
    let counted = tree.lines(&changes, Duration::from_secs(60));
    let (special, many) = counted.split_at(9);
    assert_eq!(
        special[..5],
        [lines(3, 1), None, None, lines(0, 1), lines(0, 0)]
    );
    assert!(
        special[5].is_some_and(|lines| lines.added >= 2),
        "{special:?}"
    );
    assert_eq!(special[6..], [None, None, None]);
    assert_eq!(many, vec![lines(3, 2); 200]);
    assert_eq!(tree.lines(&changes[..1], Duration::ZERO), [None]);
}

#[test]
fn a_diff_can_be_made_from_what_was_written_down() {
    let world = World::repository();
    let mut tree = world.tree();
    let first = snap(&mut tree).tree.to_string();
    world.write("a.txt", "changed\n");
    let second = snap(&mut tree).tree.to_string();
    drop(tree);
    let recorded = |text: &str| Snapshot::recorded(None, text.parse().unwrap());
    let changed = world
        .tree()
        .changed_files(&recorded(&first), &recorded(&second))
        .unwrap();
    assert_eq!(changed.len(), 1);
}

#[test]
fn patches_are_exact_whatever_the_bytes() {
    let world = World::repository();
    let mut tree = world.tree();
    world.write("latin.txt", b"caf\xe9\n");
    let first = snap(&mut tree);
    world.write("latin.txt", b"th\xe9\n");
    let second = snap(&mut tree);
    let patch = tree.diff(&first, &second, DiffOptions::default()).unwrap();
    assert!(patch.windows(5).any(|w| w == b"+th\xe9\n"));
}

#[test]
fn a_snapshot_that_is_unknown_or_lost_is_said() {
    let world = World::repository();
    let mut tree = world.tree();
    let known = snap(&mut tree);
    let reason = "measuring the work tree took longer than 2s".to_owned();
    let unknown = Snapshot::recorded(None, TreeHash::Unknown { reason });
    let error = tree.changed_files(&known, &unknown).unwrap_err();
    assert!(
        error.to_string().ends_with("took longer than 2s"),
        "{error}"
    );
    let lost = TreeHash::Git {
        tree: "1".repeat(40),
        nested: None,
    };
    let error = tree
        .changed_files(&known, &Snapshot::recorded(None, lost))
        .unwrap_err();
    assert!(
        error.to_string().starts_with("git diff-tree failed"),
        "{error}"
    );
    assert!(error.hint().is_some());
}
