//! What is a person's stays theirs when work lands: files that git ignores, the branch that they
//! are on, commits that they took back, and what a clone does not have.

use descartes_testkit::World;

use crate::landing::{tasks, with_agent};
use crate::task_common::{run, said};

/// Commits everything that is there.
fn commit(world: &World, message: &str) {
    world.git(["add", "-A"]);
    world.git(["commit", "-qm", message]);
}

/// Makes the project a clone of itself, with these flags.
fn cloned(world: &World, flags: &[&str]) {
    let (project, origin) = (world.project(), world.state().join("origin"));
    let clone = world.state().join("clone");
    world.git(["clone", "-q", "--bare", ".", origin.to_str().unwrap()]);
    let git = |words: &[&str]| {
        let mut git = world.command("git");
        git.current_dir(&origin).args(words);
        world.run(git).assert_code(0);
    };
    git(&["config", "uploadpack.allowFilter", "true"]);
    git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let (url, to) = (
        format!("file://{}", origin.display()),
        clone.to_str().unwrap(),
    );
    git(&[&["clone", "-q"], flags, &[&url, to]].concat());
    std::fs::remove_dir_all(project.join(".git")).unwrap();
    std::fs::rename(clone.join(".git"), project.join(".git")).unwrap();
}

#[test]
fn files_that_git_ignores_are_not_overwritten() {
    let forced = "echo agent > .env; git add -f .env";
    let unignored = "sed -i /env/d .gitignore; echo agent > .env";
    let folder = "echo agent > data; git add -f data";
    let within = "mkdir -p note; echo agent > note/x; git add -f note/x";
    for (script, mine) in [
        (forced, ".env"),
        (unignored, ".env"),
        (folder, "data/db"),
        (within, "note"),
    ] {
        let world = tasks(1);
        world.write(".gitignore", ".env\ndata\nnote\n");
        commit(&world, "files");
        world.write(mine, "mine");
        let head = world.git(["rev-parse", "HEAD"]);
        let done = with_agent(&world, script, &["--verify", "true"]);
        done.assert_code(6);
        assert_eq!(world.read(mine), "mine", "{script}: {done}");
        assert_eq!(world.git(["rev-parse", "HEAD"]), head, "{done}");
        let name = mine.split('/').next().unwrap();
        assert!(said(&done).contains(name), "{done}");
        // Out of the way, it lands.
        std::fs::rename(world.path(name), world.state().join("away")).unwrap();
        run(&world, &["work", "land"]).assert_code(0);
        assert!(world.has(name), "{script}");
    }
}

#[test]
fn work_in_a_shallow_clone_lands() {
    for (flags, gate) in [(vec![], "true"), (vec!["--no-wave-barrier"], "ls work-*")] {
        let world = tasks(2);
        for n in 0..4 {
            world.write("base", n.to_string());
            commit(&world, "more");
        }
        cloned(&world, &["--depth", "1"]);
        let flags = [&["--verify", gate], &flags[..]].concat();
        let done = with_agent(&world, "echo x > work-$DESCARTES_TASK_ID", &flags);
        done.assert_code(0);
        let tree = world.git(["ls-tree", "--name-only", "main"]);
        assert!(tree.contains("work-1") && tree.contains("work-2"), "{done}");
    }
}

/// Work that waits for `main`, with what keeps it from landing gone.
fn waiting() -> World {
    let world = tasks(1);
    world.write("work", "mine");
    with_agent(&world, "echo agent > work", &["--verify", "true"]).assert_code(6);
    std::fs::remove_file(world.path("work")).unwrap();
    // The task file holds statuses that are in no commit.
    world.git(["stash", "-q"]);
    world
}

#[test]
fn work_lands_on_the_branch_that_the_loop_began_on_and_on_no_other() {
    for elsewhere in [vec!["--detach"], vec!["-b", "release"]] {
        for command in [&["work", "land"][..], &["loop", "resume"]] {
            let world = waiting();
            let main = world.git(["rev-parse", "main"]);
            world.git([&["checkout", "-q"], &elsewhere[..]].concat());
            let before = world.git(["rev-parse", "HEAD"]);
            let refused = run(&world, command);
            refused.assert_code(6);
            assert!(said(&refused).contains("git checkout main"), "{refused}");
            assert_eq!(world.git(["rev-parse", "HEAD"]), before, "{refused}");
            assert_eq!(world.git(["rev-parse", "main"]), main, "{refused}");
            world.git(["checkout", "-q", "main"]);
            let landed = run(&world, command);
            landed.assert_code(0);
            assert_eq!(world.git(["show", "main:work"]), "agent", "{landed}");
        }
    }
}

#[test]
fn a_person_who_looks_at_the_branch_on_which_work_waits_loses_nothing() {
    let world = waiting();
    world.git(["checkout", "-q", "descartes/auth"]);
    run(&world, &["work", "land"]).assert_code(65);
    assert_eq!(world.git(["show", "descartes/auth:work"]), "agent");
    world.git(["checkout", "-q", "main"]);
    run(&world, &["work", "land"]).assert_code(0);
    assert_eq!(world.git(["show", "main:work"]), "agent");
}

/// Takes back the last commit, in the user's checkout.
const AMEND: &str = "git rm -q --cached key; rm key; git commit -q --amend --allow-empty -m fixed";
const RESET: &str = "git reset -q --hard HEAD~1";

#[test]
fn commits_that_a_person_took_back_do_not_come_back() {
    // By the first task, by the second one at work beside it, and between two attempts.
    let once = "[ $DESCARTES_TASK_ID = 1 ] && TAKE";
    let beside = "if [ $DESCARTES_TASK_ID = 1 ]; then until [ -e STATE/two ]; do sleep 0.1; done; TAKE
else touch STATE/two; until ! git -C PROJECT cat-file -e main:key 2>/dev/null; do sleep 0.1; done; fi";
    let retried = "if [ ! -e work-1 ]; then TAKE; fi";
    let table = [
        (once, AMEND, vec![], "true"),
        (once, RESET, vec!["--no-wave-barrier"], "true"),
        (
            beside,
            RESET,
            vec!["--parallel", "2", "--no-wave-barrier"],
            "true",
        ),
        (beside, AMEND, vec!["--parallel", "2"], "true"),
        (
            retried,
            AMEND,
            vec!["--no-wave-barrier"],
            "test -e STATE/again || { touch STATE/again; false; }",
        ),
    ];
    for (script, take, flags, gate) in table {
        let world = tasks(2);
        world.write("key", "secret");
        commit(&world, "a mistake");
        let (project, state) = (world.project(), world.state());
        let fill = |text: &str| {
            let take = format!("{{ ( cd {} && {take} ); }}", project.display());
            text.replace("TAKE", &take)
                .replace("STATE", state.to_str().unwrap())
                .replace("PROJECT", project.to_str().unwrap())
        };
        let script = format!("{}\necho x > work-$DESCARTES_TASK_ID", fill(script));
        let gate = fill(gate);
        let flags = [&["--verify", gate.as_str()], &flags[..]].concat();
        let done = with_agent(&world, &script, &flags);
        done.assert_code(0);
        let tree = world.git(["ls-tree", "--name-only", "main"]);
        assert!(tree.contains("work-1") && tree.contains("work-2"), "{done}");
        assert!(!tree.contains("key"), "{script} {flags:?}: {done}");
        let log = world.git(["log", "--format=%s", "main"]);
        assert!(!log.contains("a mistake"), "{log}");
    }
}

#[test]
fn a_landing_that_conflicts_tells_what_brings_it_in() {
    let world = tasks(2);
    world.write("base", "base\n");
    commit(&world, "base");
    let project = world.project();
    let script = format!(
        "if [ $DESCARTES_TASK_ID = 1 ]; then echo agent > base; else echo x > other
cd {} && echo person > base && git commit -qm person -- base; fi",
        project.display()
    );
    let done = with_agent(&world, &script, &["--verify", "grep -q . base"]);
    done.assert_code(6);
    let told = "git merge descartes/auth";
    let status = run(&world, &["loop", "status"]).stdout();
    for words in [said(&done), status] {
        assert!(words.contains(told), "{words}");
        assert!(!words.contains("work land"), "{words}");
    }
    let mut merge = world.command("sh");
    merge.args(["-c", &format!("cd {}; {told}", project.display())]);
    world.run(merge).assert_code(1);
    world.write("base", "both\n");
    world.git(["add", "base"]);
    world.git(["commit", "-qm", "both"]);
    let landed = run(&world, &["work", "land"]);
    landed.assert_code(0);
    assert_eq!(world.git(["for-each-ref", "refs/heads/descartes"]), "");
}

#[test]
fn what_stands_for_an_object_in_its_place_does_not_land() {
    let world = tasks(1);
    let script = "echo good > value; git add value; git commit -qm value
git replace $(git rev-parse HEAD:value) $(echo bad | git hash-object -w --stdin)";
    with_agent(&world, script, &["--verify", "grep -q good value"]).assert_code(0);
    assert_eq!(world.read("value"), "good\n");
}

#[test]
fn the_reason_is_told_where_many_files_are_in_the_way() {
    let world = tasks(1);
    for n in 0..300 {
        world.write(format!("a-file-with-a-long-name-{n}"), "mine");
    }
    let script = "for n in $(seq 0 299); do echo agent > a-file-with-a-long-name-$n; done";
    let done = with_agent(&world, script, &["--verify", "true"]);
    done.assert_code(6);
    let words = said(&done);
    assert!(words.contains("would be overwritten"), "{words}");
    assert!(words.contains("a-file-with-a-long-name-"), "{words}");
}

#[test]
fn work_in_a_clone_of_a_part_lands() {
    for sparse in [false, true] {
        let world = tasks(2);
        world.write("here/file", "1");
        world.write("elsewhere/file", "1");
        commit(&world, "one");
        world.write("here/file", "2");
        world.write("elsewhere/file", "2");
        commit(&world, "two");
        let flags: &[&str] = match sparse {
            true => &["--filter=blob:none", "--sparse"],
            false => &["--filter=blob:none"],
        };
        cloned(&world, flags);
        if sparse {
            world.git(["sparse-checkout", "set", "here", ".scud"]);
        }
        let script =
            "echo x > here/work-$DESCARTES_TASK_ID; mkdir -p elsewhere; echo 3 > elsewhere/file
echo x > elsewhere/work-$DESCARTES_TASK_ID";
        let gate = "test -e here/file && ls here/work-*";
        let done = with_agent(&world, script, &["--verify", gate]);
        done.assert_code(0);
        let tree = world.git(["ls-tree", "-r", "--name-only", "main"]);
        for file in [
            "here/work-1",
            "here/work-2",
            "elsewhere/work-1",
            "elsewhere/work-2",
        ] {
            assert!(tree.contains(file), "{sparse}: {done}");
        }
        let changed = world.git(["show", "main:elsewhere/file"]);
        assert_eq!(
            changed, "3",
            "work outside of the part is work: {sparse}: {done}"
        );
        assert_eq!(world.has("elsewhere/file"), !sparse, "{done}");
    }
}

#[test]
fn refs_that_an_agent_deletes_or_moves_lose_no_work() {
    let world = tasks(2);
    let script = "echo x > work-$DESCARTES_TASK_ID; if [ $DESCARTES_TASK_ID = 1 ]; then touch bad; else
git for-each-ref --format='delete %(refname)' refs/descartes refs/heads/descartes | grep -v /2$ | git update-ref --stdin; fi";
    let flags = [
        "--verify",
        "test ! -e bad",
        "--max-iterations-per-task",
        "1",
    ];
    let done = with_agent(&world, script, &flags);
    done.assert_code(6);
    assert!(world.has("work-2"), "{done}");
    assert_eq!(world.git(["show", "descartes/auth/1:work-1"]), "x");
    assert!(
        said(&done).contains("deleted the branch descartes/auth/1"),
        "{done}"
    );
}
