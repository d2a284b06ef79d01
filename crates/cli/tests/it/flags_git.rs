//! Flags that work in git.

use descartes_testkit::World;

use crate::common::start;

fn repository() -> World {
    let world = World::in_memory();
    world.git_init();
    world
}

const WORKS: &str = "append notes.txt line\n@1 print hm\n@2 promise";

#[test]
fn auto_commit_commits_each_iteration_by_its_template() {
    let world = repository();
    start(&world, WORKS, &["--auto-commit"]).assert_code(0);
    let log = world.git(["log", "--format=%s"]);
    assert_eq!(log, "loop: iteration 2\nloop: iteration 1\nbegin");
    assert!(
        world
            .git(["ls-files"])
            .lines()
            .all(|file| !file.starts_with(".descartes"))
    );
    let named = repository();
    let flags = [
        "--auto-commit",
        "--commit-template",
        "wip {iteration} of {name}",
        "--name",
        "auth",
    ];
    start(&named, WORKS, &flags).assert_code(0);
    assert_eq!(named.git(["log", "-1", "--format=%s"]), "wip 2 of auth");
    let none = repository();
    start(&none, WORKS, &[]).assert_code(0);
    assert_eq!(none.git(["log", "--format=%s"]), "begin");
}

#[test]
fn branch_is_made_first_by_its_template() {
    let world = repository();
    start(&world, WORKS, &["--branch"]).assert_code(0);
    assert!(world.git(["branch", "--show-current"]).starts_with("loop/"));
    let named = repository();
    start(
        &named,
        WORKS,
        &[
            "--branch",
            "--branch-template",
            "try/{name}",
            "--name",
            "auth",
        ],
    )
    .assert_code(0);
    assert_eq!(named.git(["branch", "--show-current"]), "try/auth");
}

#[test]
fn a_branch_that_cannot_be_made_leaves_the_old_state_file_where_it_is() {
    let world = repository();
    world.git(["branch", "foo"]);
    start(&world, WORKS, &[]).assert_code(0);
    let before = world.read(".descartes/loop-state.json");
    let flags = ["--force", "--branch", "--branch-template", "foo"];
    start(&world, WORKS, &flags).assert_code(65);
    assert_eq!(world.read(".descartes/loop-state.json"), before);
    let folder = std::fs::read_dir(world.path(".descartes")).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut dated = names.filter(|name| name.starts_with("loop-state.json.2"));
    assert_eq!(dated.next(), None);
}

#[test]
fn tag_green_marks_what_was_proven() {
    let world = repository();
    let flags = [
        "--auto-commit",
        "--tag-green",
        "--name",
        "auth",
        "--verify",
        "true",
    ];
    start(&world, WORKS, &flags).assert_code(0);
    assert_eq!(world.git(["tag"]), "descartes/auth/2");
    let none = repository();
    start(
        &none,
        WORKS,
        &["--auto-commit", "--name", "auth", "--verify", "true"],
    )
    .assert_code(0);
    assert_eq!(none.git(["tag"]), "");
}
