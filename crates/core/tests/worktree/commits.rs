//! Commits, branches and tags.

use descartes_core::worktree::{CommitOutcome, Tree, TreeOptions, WorktreeError};

use crate::world::World;

fn failed(outcome: CommitOutcome) -> String {
    match outcome {
        CommitOutcome::Failed { message } => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn everything_is_committed_but_what_is_ours() {
    let world = World::repository();
    world.write("a.txt", "changed\n");
    world.write("-new *.txt", "new\n");
    world.remove("src/b.txt");
    world.write(".descartes/loop-state.json", "{}");
    world.write("src/.descartes/config.toml", "");
    world.write("state.json", "{}");
    let apart = vec![world.dir().join("state.json")];
    let options = TreeOptions {
        git: world.settings(),
        apart,
        ..TreeOptions::default()
    };
    let tree = Tree::open_with(&world.dir().join("src"), &world.objects(), options);
    let CommitOutcome::Made { hash } = tree.commit_all("loop: iteration 3") else {
        panic!()
    };
    assert_eq!(hash, world.git(&["rev-parse", "HEAD"]));
    assert_eq!(
        world.git(&["log", "-1", "--format=%B"]).trim(),
        "loop: iteration 3"
    );
    let names = world.git(&["show", "--format=", "--name-status", "HEAD"]);
    assert_eq!(names, "A\t-new *.txt\nM\ta.txt\nD\tsrc/b.txt");
    assert_eq!(tree.commit_all("again"), CommitOutcome::Nothing);
}

#[test]
fn a_file_of_ours_that_is_staged_or_tracked_stays_out() {
    let world = World::repository();
    world.write(".descartes/config.toml", "a = 1\n");
    world.git(&["add", "-f", ".descartes/config.toml"]);
    let tree = world.tree();
    assert_eq!(tree.commit_all("nothing of theirs"), CommitOutcome::Nothing);
    world.write("a.txt", "x\n");
    world.write("new.txt", "x\n");
    assert!(matches!(
        tree.commit_all("theirs"),
        CommitOutcome::Made { .. }
    ));
    assert_eq!(
        world.git(&["show", "--format=", "--name-only", "HEAD"]),
        "a.txt\nnew.txt"
    );
    assert_eq!(
        world.git(&["diff", "--cached", "--name-only"]),
        ".descartes/config.toml"
    );
    world.git(&["commit", "-q", "-m", "the user's own"]);
    world.write(".descartes/config.toml", "a = 2\n");
    assert_eq!(tree.commit_all("ours"), CommitOutcome::Nothing);
}

#[test]
fn the_first_commit_of_a_repository() {
    let world = World::unborn();
    let tree = world.tree();
    assert_eq!(tree.commit_all("nothing"), CommitOutcome::Nothing);
    world.write("a.txt", "a\n");
    assert!(matches!(
        tree.commit_all("first"),
        CommitOutcome::Made { .. }
    ));
}

#[test]
fn on_a_detached_head() {
    let world = World::repository();
    world.git(&["checkout", "-q", "--detach"]);
    world.write("a.txt", "x\n");
    let CommitOutcome::Made { hash } = world.tree().commit_all("detached") else {
        panic!()
    };
    assert_eq!(hash, world.git(&["rev-parse", "HEAD"]));
    assert_ne!(hash, world.git(&["rev-parse", "main"]));
}

#[test]
fn a_hook_that_refuses_is_quoted_and_nothing_is_lost() {
    let world = World::repository();
    world.hook("pre-commit", "echo 'lint: no tabs please' >&2; exit 1");
    world.write("a.txt", "x\n");
    let message = failed(world.tree().commit_all("x"));
    assert!(message.contains("lint: no tabs please"), "{message}");
    assert_eq!(world.read("a.txt"), "x\n");
    world.hook("pre-commit", "exit 0");
    world.hook("commit-msg", "echo 'Signed' >> \"$1\"");
    assert!(matches!(
        world.tree().commit_all("x"),
        CommitOutcome::Made { .. }
    ));
    assert!(
        world.git(&["log", "-1", "--format=%B"]).contains("Signed"),
        "hooks run"
    );
}

#[test]
fn a_hook_that_leaves_a_process_behind_is_not_waited_for() {
    let world = World::repository();
    // It keeps both outputs open.
    world.hook("pre-commit", "sleep 1000 &");
    world.write("a.txt", "x\n");
    let began = std::time::Instant::now();
    assert!(matches!(
        world.tree().commit_all("x"),
        CommitOutcome::Made { .. }
    ));
    assert!(began.elapsed() < std::time::Duration::from_secs(300));
}

#[test]
fn without_an_identity_git_is_quoted() {
    let world = World::repository();
    world.git(&["config", "--unset", "user.email"]);
    world.git(&["config", "user.useConfigOnly", "true"]);
    world.write("a.txt", "x\n");
    let message = failed(world.tree().commit_all("x"));
    assert!(message.contains("user.email"), "{message}");
}

#[test]
fn conflicts_are_never_committed() {
    let world = World::repository();
    world.git(&["checkout", "-q", "-b", "side"]);
    world.write("a.txt", "side\n");
    world.commit("side");
    world.git(&["checkout", "-q", "main"]);
    world.write("a.txt", "main\n");
    world.commit("main");
    let head = world.git(&["rev-parse", "HEAD"]);
    world.try_git(&world.dir(), &["merge", "side"], &[]);
    let message = failed(world.tree().commit_all("x"));
    assert!(message.contains("git merge --abort"), "{message}");
    world.git(&["merge", "--abort"]);
    world.try_git(&world.dir(), &["rebase", "side"], &[]);
    let message = failed(world.tree().commit_all("x"));
    assert!(message.contains("git rebase --abort"), "{message}");
    world.git(&["rebase", "--abort"]);
    // A conflict that no file in the repository's folder tells of.
    world.write("a.txt", "stashed\n");
    world.git(&["stash", "-q"]);
    world.write("a.txt", "other\n");
    world.commit("other");
    world.try_git(&world.dir(), &["stash", "pop"], &[]);
    let message = failed(world.tree().commit_all("x"));
    assert!(
        message.contains("there are unresolved conflicts, for example in a.txt"),
        "{message}"
    );
    assert_eq!(world.git(&["rev-parse", "HEAD~1"]), head);
}

#[test]
fn a_branch_takes_the_changes_along() {
    for world in [World::repository(), World::unborn()] {
        world.write("new.txt", "x\n");
        let tree = world.tree();
        tree.create_branch("loop/2026-01-02T03-04").unwrap();
        assert_eq!(
            world.git(&["symbolic-ref", "--short", "HEAD"]),
            "loop/2026-01-02T03-04"
        );
        assert!(world.exists("new.txt"));
    }
}

#[test]
fn branches_and_tags_with_wrong_names_are_refused() {
    let world = World::repository();
    let tree = world.tree();
    for name in ["", "a b", "-x", "a..b", "x.lock", "a\nb"] {
        for error in [
            tree.create_branch(name).unwrap_err(),
            tree.tag(name).unwrap_err(),
        ] {
            assert!(
                matches!(error, WorktreeError::BadName { .. }),
                "{name:?}: {error}"
            );
        }
    }
    let error = tree.create_branch("main").unwrap_err();
    assert_eq!(error.to_string(), "a branch named \"main\" already exists");
    assert_eq!(error.hint().unwrap(), "git switch main");
}

#[test]
fn tags_are_made_once() {
    let world = World::repository();
    world.git(&["config", "tag.gpgSign", "true"]);
    let tree = world.tree();
    tree.tag("descartes/auth/3").unwrap();
    assert_eq!(
        world.git(&["rev-parse", "descartes/auth/3"]),
        world.git(&["rev-parse", "HEAD"])
    );
    tree.tag("descartes/auth/3").unwrap();
    world.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    let error = tree.tag("descartes/auth/3").unwrap_err();
    assert!(matches!(error, WorktreeError::Exists { .. }), "{error}");
    let unborn = World::unborn();
    assert!(unborn.tree().tag("x").is_err());
}
