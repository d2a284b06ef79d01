//! Repositories of every shape, and no repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use descartes_core::worktree::{
    Changed, Head, Identity, Tree, TreeKind, TreeOptions, UnderWay, Watching, WorktreeError,
};

use crate::world::{World, git_tree, snap};

fn why(tree: &Tree) -> String {
    match tree.kind() {
        TreeKind::Plain { why } => why,
        TreeKind::Git { root } => panic!("git at {}", root.display()),
    }
}

#[test]
fn before_the_first_commit() {
    let world = World::unborn();
    let mut tree = world.tree();
    let empty = snap(&mut tree);
    assert_eq!(
        (empty.head.clone(), git_tree(&empty)),
        (None, world.truth().as_str())
    );
    world.write("a.txt", "a\n");
    let second = snap(&mut tree);
    assert_eq!(git_tree(&second), world.truth());
    assert_eq!(
        tree.state().unwrap().head,
        Head::Unborn {
            name: "main".into()
        }
    );
    world.commit("first");
    let third = snap(&mut tree);
    assert_eq!(second.tree, third.tree);
    assert_eq!(second.differs(&third), Some(true), "HEAD moved");
}

#[test]
fn a_folder_below_the_root_sees_the_whole_repository() {
    let world = World::repository();
    let mut tree = world.tree_at(&world.dir().join("src"), Watching::WherePossible);
    assert_eq!(tree.kind(), TreeKind::Git { root: world.dir() });
    let first = snap(&mut tree);
    world.write("a.txt", "changed\n");
    assert_eq!(first.differs(&snap(&mut tree)), Some(true));
}

#[test]
fn head_is_read_wherever_it_is_kept() {
    let world = World::repository();
    let mut tree = world.tree();
    let commit = world.git(&["rev-parse", "HEAD"]);
    assert_eq!(tree.head().as_deref(), Some(commit.as_str()));
    world.git(&["pack-refs", "--all"]);
    assert_eq!(tree.head().as_deref(), Some(commit.as_str()));
    assert_eq!(
        tree.state().unwrap().head,
        Head::Branch {
            name: "main".into(),
            commit: commit.clone()
        }
    );
    world.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    world.git(&["symbolic-ref", "HEAD", "refs/heads/alias"]);
    assert_eq!(tree.head().as_deref(), Some(commit.as_str()));
    world.git(&["checkout", "-q", "--detach"]);
    assert_eq!(
        tree.state().unwrap().head,
        Head::Detached {
            commit: commit.clone()
        }
    );
    assert_eq!(snap(&mut tree).head, Some(commit));
}

#[test]
fn other_ref_stores_and_hashes_work() {
    let world = World::plain();
    for args in [&["--object-format=sha256"][..], &["--ref-format=reftable"]] {
        let dir = world.beside(args[0]);
        fs::create_dir(&dir).unwrap();
        let init = [&["init", "-q", "-b", "main"], args].concat();
        if !world.try_git(&dir, &init, &[]).status.success() {
            continue; // An older git.
        }
        fs::write(dir.join("a"), "a").unwrap();
        world.git_in(&dir, &["add", "-A"]);
        world.git_in(
            &dir,
            &[
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b",
                "commit",
                "-qm",
                "x",
            ],
        );
        let objects = world.beside("objects-of").join(args[0]);
        let options = TreeOptions {
            git: world.settings(),
            ..TreeOptions::default()
        };
        let mut tree = Tree::open_with(&dir, &objects, options);
        let first = snap(&mut tree);
        assert_eq!(first.head, Some(world.git_in(&dir, &["rev-parse", "HEAD"])));
        assert_eq!(
            git_tree(&first),
            world.git_in(&dir, &["rev-parse", "HEAD^{tree}"])
        );
        fs::write(dir.join("a"), "b").unwrap();
        let second = snap(&mut tree);
        let patch = tree.diff(&first, &second, Default::default()).unwrap();
        assert!(String::from_utf8(patch).unwrap().contains("+b"));
    }
}

#[test]
fn a_linked_work_tree() {
    let world = World::repository();
    let linked = world.beside("linked");
    world.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "side",
        linked.to_str().unwrap(),
    ]);
    let mut tree = world.tree_at(&linked, Watching::WherePossible);
    let first = snap(&mut tree);
    assert_eq!(git_tree(&first), world.git(&["rev-parse", "HEAD^{tree}"]));
    let Head::Branch { name, .. } = tree.state().unwrap().head else {
        panic!()
    };
    assert_eq!(name, "side");
    fs::write(linked.join("a.txt"), "x\n").unwrap();
    assert_eq!(first.differs(&snap(&mut tree)), Some(true));
    assert_eq!(
        world.git(&["status", "--porcelain"]),
        "",
        "the other one is untouched"
    );
}

#[test]
fn a_submodule_counts_with_its_commit_and_its_files() {
    let inner = World::repository();
    let world = World::repository();
    let from = inner.dir();
    let add = [
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
    ];
    world.git(&[&add[..], &[from.to_str().unwrap(), "sub"]].concat());
    world.commit("with a submodule");
    let mut tree = world.tree();
    let first = snap(&mut tree);
    assert_eq!(git_tree(&first), world.truth());
    world.write("sub/a.txt", "work in the submodule\n");
    let second = snap(&mut tree);
    assert_eq!(
        git_tree(&first),
        git_tree(&second),
        "git does not keep its files"
    );
    assert_eq!(first.differs(&second), Some(true), "but they are evidence");
    let sub = world.dir().join("sub");
    world.git_in(
        &sub,
        &[
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-qam",
            "x",
        ],
    );
    let third = snap(&mut tree);
    assert_eq!(git_tree(&third), world.truth());
    assert_eq!(second.differs(&third), Some(true));
    assert_eq!(third.differs(&snap(&mut tree)), Some(false));
    fs::remove_dir_all(&sub).unwrap();
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
}

#[test]
fn a_repository_that_appears_inside_is_handled() {
    let world = World::repository();
    let mut tree = world.tree();
    let first = snap(&mut tree);
    world.write("clone/x.txt", "x\n");
    let clone = world.dir().join("clone");
    world.git_in(&clone, &["init", "-q"]);
    let second = snap(&mut tree);
    assert_eq!(
        git_tree(&first),
        git_tree(&second),
        "without a commit git cannot take it"
    );
    world.write("clone/x.txt", "y\n");
    let third = snap(&mut tree);
    assert_eq!(second.differs(&third), Some(true));
    world.git_in(&clone, &["add", "-A"]);
    world.git_in(
        &clone,
        &[
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-qm",
            "x",
        ],
    );
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
    fs::remove_dir_all(clone.join(".git")).unwrap();
    assert_eq!(
        git_tree(&snap(&mut tree)),
        world.truth(),
        "an ordinary folder by now"
    );
    world.write("clone/x.txt", "z\n");
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
}

#[test]
fn files_outside_of_a_sparse_checkout_are_left_alone() {
    let world = World::repository();
    let mut tree = world.tree();
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
    world.git(&["sparse-checkout", "set", "--no-cone", "/src"]);
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
}

#[test]
fn what_is_changed_outside_of_a_sparse_checkout_is_seen() {
    let world = World::repository();
    world.git(&["sparse-checkout", "set", "--no-cone", "/src"]);
    let mut tree = world.tree();
    let before = git_tree(&snap(&mut tree)).to_owned();
    assert_eq!(before, world.truth());
    for (file, text) in [("a.txt", "x\n"), ("new.txt", "y\n")] {
        world.write(file, text);
        let after = git_tree(&snap(&mut tree)).to_owned();
        assert_eq!(after, world.truth(), "{file}");
        assert_ne!(after, before, "{file}");
    }
}

#[test]
fn a_merge_under_way_is_seen_and_measured() {
    let world = World::repository();
    world.git(&["checkout", "-q", "-b", "side"]);
    world.write("a.txt", "side\n");
    world.commit("side");
    world.git(&["checkout", "-q", "main"]);
    world.write("a.txt", "main\n");
    world.commit("main");
    assert!(
        !world
            .try_git(&world.dir(), &["merge", "side"], &[])
            .status
            .success()
    );
    let mut tree = world.tree();
    assert_eq!(tree.state().unwrap().under_way, Some(UnderWay::Merge));
    let before = world.repository_bytes();
    assert_eq!(git_tree(&snap(&mut tree)), world.truth());
    assert_eq!(
        world.repository_bytes(),
        before,
        "the conflict is still in the index"
    );
    world.git(&["merge", "--abort"]);
    assert!(
        !world
            .try_git(&world.dir(), &["rebase", "side"], &[])
            .status
            .success()
    );
    assert_eq!(tree.state().unwrap().under_way, Some(UnderWay::Rebase));
}

#[test]
fn identity_known_and_missing() {
    let world = World::repository();
    let known = Identity::Known("Ann <ann@example.org>".into());
    assert_eq!(world.tree().state().unwrap().identity, known);
    world.git(&["config", "--unset", "user.email"]);
    world.git(&["config", "user.useConfigOnly", "true"]);
    let Identity::Missing { message } = world.tree().state().unwrap().identity else {
        panic!()
    };
    assert!(message.contains("email"), "{message}");
}

#[test]
fn without_git_everything_that_needs_it_says_so() {
    let world = World::plain();
    let mut tree = world.tree();
    assert_eq!(why(&tree), "this folder is not in a git repository");
    let taken = snap(&mut tree);
    let refused = [
        tree.diff(&taken, &taken, Default::default()).unwrap_err(),
        tree.rewind(&taken, "x").unwrap_err(),
        tree.create_branch("x").unwrap_err(),
        tree.tag("x").unwrap_err(),
        tree.state().unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(error, WorktreeError::NotGit { .. }));
        assert!(
            error
                .to_string()
                .ends_with("needs git: this folder is not in a git repository")
        );
        assert!(error.hint().unwrap().contains("git init"));
    }
}

#[test]
fn a_repository_where_git_is_missing_is_a_plain_folder() {
    let world = World::repository();
    let git = world.settings().env("PATH", "/nowhere");
    let options = TreeOptions {
        git,
        ..TreeOptions::default()
    };
    let mut tree = Tree::open_with(&world.dir(), &world.objects(), options);
    assert_eq!(why(&tree), "git is not installed, or not on PATH");
    let first = snap(&mut tree);
    assert_eq!(first.head, None);
    world.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    assert_eq!(
        first.differs(&snap(&mut tree)),
        Some(false),
        "its .git does not count"
    );
    world.write("a.txt", "x\n");
    assert_eq!(first.differs(&snap(&mut tree)), Some(true));
}

#[test]
fn folders_that_git_cannot_serve_are_plain_with_the_reason() {
    let world = World::repository();
    world.write(".gitignore", "sandbox\n");
    world.write("sandbox/x", "x");
    let tree = world.tree_at(&world.dir().join("sandbox"), Watching::WherePossible);
    assert!(why(&tree).ends_with("ignores it"), "{}", why(&tree));
    let bare = world.beside("bare.git");
    world.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    let tree = world.tree_at(&bare, Watching::WherePossible);
    assert!(why(&tree).contains("without a work tree"), "{}", why(&tree));
    let tree = world.tree_at(Path::new("/no/such/folder"), Watching::WherePossible);
    assert_eq!(why(&tree), "there is no folder /no/such/folder");
}

#[test]
fn a_home_that_is_missing_is_no_matter() {
    let world = World::repository();
    for git in [
        world.settings().env_remove("HOME"),
        world.settings().env("HOME", "/nowhere"),
    ] {
        let options = TreeOptions {
            git,
            ..TreeOptions::default()
        };
        let mut tree = Tree::open_with(&world.dir(), &world.objects(), options);
        assert_eq!(git_tree(&snap(&mut tree)), world.truth());
    }
}

#[test]
fn an_object_folder_that_cannot_be_made_gives_unknown_with_the_path() {
    let world = World::repository();
    fs::write(world.objects(), "in the way").unwrap();
    let taken = world.tree().snapshot(crate::world::BUDGET);
    assert!(taken.tree.to_string().contains("objects"), "{}", taken.tree);
    assert!(taken.tree.to_string().starts_with("unknown:"));
    assert_eq!(taken.head, Some(world.git(&["rev-parse", "HEAD"])));
}

/// What an agent may tell git about files, or have it believe, hides none of its changes: not from a
/// loop that goes on, not from one that was taken up again, and not from who looks later.
#[test]
fn an_index_that_lies_hides_no_change() {
    type Lie = (&'static str, fn(&World));
    let lies: &[Lie] = &[
        ("assume-unchanged", |world| {
            world.git(&["update-index", "--assume-unchanged", "a.txt"]);
            world.write("a.txt", "b\n");
        }),
        ("skip-worktree", |world| {
            world.git(&["update-index", "--skip-worktree", "a.txt"]);
            world.write("a.txt", "b\n");
        }),
        ("skip-worktree and removed", |world| {
            world.git(&["update-index", "--skip-worktree", "a.txt"]);
            world.remove("a.txt");
        }),
        (
            "equal size, time restored, change time not looked at",
            |world| {
                world.git(&["config", "core.trustctime", "false"]);
                world.git(&["config", "core.checkStat", "minimal"]);
                world.git(&["update-index", "--refresh"]);
                edit_unseen(world);
            },
        ),
        (
            "metadata of the changed file with the hash of the old one",
            |world| {
                edit_unseen(world);
                plant(world);
            },
        ),
    ];
    for (lie, tell) in lies {
        let world = World::repository();
        let old = fs::FileTimes::new()
            .set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000));
        let file = fs::File::options()
            .write(true)
            .open(world.dir().join("a.txt"))
            .unwrap();
        file.set_times(old).unwrap();
        world.git(&["update-index", "--refresh"]);
        let mut tree = world.tree();
        let before = snap(&mut tree);
        tell(&world);
        let held = world.exists("a.txt").then(|| world.read("a.txt"));
        // Rules that change have git take the next snapshot again.
        world.write(".gitignore", "nothing\n");
        let after = snap(&mut tree);
        let changed = |changed: Vec<Changed>| -> Vec<PathBuf> {
            changed.into_iter().map(|changed| changed.path).collect()
        };
        let expected = [".gitignore", "a.txt"].map(PathBuf::from);
        let seen = changed(tree.changed_files(&before, &after).unwrap());
        assert_eq!(seen, expected, "{lie}");
        let mut later = world.tree_after_agents();
        assert_eq!(snap(&mut later).tree, after.tree, "{lie}");
        let mut later = world.tree_after_agents();
        later.rewind(&before, "back").unwrap();
        assert_eq!(world.read("a.txt"), "a\n", "{lie}");
        let copy = later.safety_copy("back").unwrap();
        later.rewind(&copy, "forth").unwrap();
        assert_eq!(
            world.exists("a.txt").then(|| world.read("a.txt")),
            held,
            "{lie}"
        );
    }
}

/// The same size, and the modification time of before.
fn edit_unseen(world: &World) {
    let path = world.dir().join("a.txt");
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    world.write("a.txt", "b\n");
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(time).unwrap();
}

/// Has the index say that the file as it lies there has the content of before.
fn plant(world: &World) {
    let path = world.dir().join(".git/index");
    let old = fs::read(&path).unwrap();
    let hash = world.git(&["rev-parse", "HEAD:a.txt"]);
    let bytes = |hash: &str| -> Vec<u8> {
        let pair = |n: usize| u8::from_str_radix(&hash[n..n + 2], 16).unwrap();
        (0..hash.len()).step_by(2).map(pair).collect()
    };
    let was = bytes(&hash);
    assert!(old.windows(20).any(|window| window == was));
    world.git(&["config", "index.skipHash", "true"]);
    world.git(&["add", "a.txt"]);
    let now = bytes(&world.git(&["rev-parse", ":a.txt"]));
    let mut index = fs::read(&path).unwrap();
    let at = index.windows(20).position(|window| window == now).unwrap();
    index[at..at + 20].copy_from_slice(&was);
    // No checksum, as `index.skipHash` leaves it.
    let end = index.len() - 20;
    index[end..].fill(0);
    fs::write(&path, index).unwrap();
    let status = world.git(&["status", "--porcelain", "a.txt"]);
    assert_eq!(status, "", "git itself is deceived");
}
