//! Nothing that agents or people made is lost on the way from a worktree into the user's branch.

use std::path::PathBuf;

use descartes_testkit::World;
use descartes_testkit::world::Finished;

use crate::task_common::{graph, run, said, scud_project, statuses};

/// A repository with so many tasks that do not depend on each other.
pub fn tasks(count: u32) -> World {
    let rows: Vec<String> = (1..=count)
        .map(|n| format!("{n} | Task {n} | P | 1 | M"))
        .collect();
    scud_project(graph(&rows.join("\n"), "\n@edges\n"))
}

/// Runs the tag with a shell script for an agent; it claims when it ends.
#[track_caller]
pub fn with_agent(world: &World, script: &str, flags: &[&str]) -> Finished {
    let path = world.state().join("agent.sh");
    std::fs::create_dir_all(world.state()).unwrap();
    let text = format!("{script}\necho '<promise>COMPLETE</promise>'\n");
    std::fs::write(&path, text).unwrap();
    let agent = format!("sh {}", path.display());
    let words = ["loop", "start", "--scud-tag", "auth", "--command", &agent];
    run(world, &[&words[..], flags].concat())
}

pub fn set_up_by(world: &World, setup: &str) {
    let config = world.home().join(".config/descartes/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(config, format!("worktree_setup = \"{setup}\"\n")).unwrap();
}

/// Worktrees of ours that are there.
fn worktrees(world: &World) -> Vec<PathBuf> {
    let listed = world.git(["worktree", "list", "--porcelain"]);
    let paths = listed
        .lines()
        .filter_map(|line| line.strip_prefix("worktree "));
    paths.skip(1).map(PathBuf::from).collect()
}

const NESTED: &str = "mkdir -p app; cd app; git init -q .; echo content > f; git add .
git -c user.name=a -c user.email=a@b commit -qm inner; cd ..; echo x > other";

#[test]
fn a_repository_inside_the_tree_goes_back_to_its_agent() {
    let world = tasks(1);
    let script = format!("if [ -d app/.git ]; then rm -rf app/.git; else\n{NESTED}\nfi");
    let done = with_agent(&world, &script, &["--verify", "test -e app/f"]);
    done.assert_code(0);
    assert!(said(&done).contains("a separate git repository"), "{done}");
    assert_eq!(world.git(["show", "HEAD:app/f"]), "content");
    assert_eq!(worktrees(&world), [""; 0].map(PathBuf::from));
}

#[test]
fn a_worktree_with_a_repository_that_is_found_nowhere_else_is_kept_and_named() {
    let world = tasks(2);
    let script = format!("if [ $DESCARTES_TASK_ID = 1 ]; then\n{NESTED}\nelse echo y > work; fi");
    let done = with_agent(&world, &script, &["--verify", "test -e app/ -o -e work"]);
    done.assert_code(6);
    assert_eq!(statuses(&world), "BD");
    let tree = world.git(["ls-tree", "-r", "HEAD"]);
    assert!(!tree.contains("160000"), "{tree}");
    let kept: Vec<PathBuf> = worktrees(&world)
        .into_iter()
        .filter(|path| path.join("app/f").exists())
        .collect();
    assert_eq!(kept.len(), 1, "{done}");
    let path = kept[0].to_str().unwrap();
    for words in [
        said(&done),
        run(&world, &["work"]).stdout(),
        run(&world, &["loop", "status"]).stdout(),
    ] {
        assert!(
            words.contains(path) && words.contains("the repository app"),
            "{words}"
        );
    }
    // A later loop of the tag works elsewhere, and leaves it alone.
    with_agent(&world, "echo z > again", &["--force", "--verify", "true"]);
    assert!(kept[0].join("app/.git").exists());
}

/// Git sees no file there.
#[test]
fn what_is_written_where_a_submodule_is_not_checked_out_is_not_lost() {
    for (agent, setup, code) in [
        // It is told, and writes elsewhere.
        (
            "[ -e lib/feature.txt ] && mv lib/feature.txt . || echo work > lib/feature.txt",
            None,
            0,
        ),
        // It goes on, and is blocked; its worktree stays.
        ("echo work > lib/feature.txt", None, 6),
        // What the setup left there is nobody's work.
        ("echo work > feature.txt", Some("echo x > lib/vendored"), 0),
    ] {
        let world = tasks(1);
        let sub = world.root().join("sub");
        let path = sub.display().to_string();
        world.git(["init", "-q", &path]);
        let commit = ["commit", "--quiet", "--allow-empty", "-m", "begin"];
        world.git([&["-C", &path][..], &commit].concat());
        let file = ["-c", "protocol.file.allow=always"];
        world.git([&file[..], &["submodule", "--quiet", "add", &path, "lib"]].concat());
        world.git(["commit", "-qm", "submodule"]);
        if let Some(setup) = setup {
            set_up_by(&world, setup);
        }
        let flags = ["--verify", "true", "--max-iterations-per-task", "2"];
        let run = with_agent(&world, agent, &flags);
        run.assert_code(code);
        match code {
            0 => assert_eq!(world.read("feature.txt"), "work\n", "{run}"),
            _ => {
                let told = said(&run);
                assert!(told.contains("not checked out here"), "{run}");
                let kept = worktrees(&world);
                let mut kept = kept.iter().map(|tree| tree.join("lib/feature.txt"));
                assert!(kept.any(|file| file.exists()), "{run}");
            }
        }
    }
}

/// Neither the rules nor what they hide would be in a commit.
#[test]
fn what_an_ignore_file_hides_that_is_ignored_itself_is_not_lost() {
    for (agent, setup, code) in [
        // It is told, and takes the file away.
        (
            "[ -e new.txt ] && rm .gitignore || { echo work > new.txt; echo '*' > .gitignore; }",
            None,
            0,
        ),
        // It goes on, and is blocked; its worktree stays.
        ("echo work > new.txt; echo '*' > .gitignore", None, 6),
        (
            "echo work > old/new.txt; echo '*' > old/.gitignore",
            None,
            6,
        ),
        // No rule names the folder, and all that is in it is hidden.
        (
            "mkdir -p new; echo work > new/new.txt; printf '.gitignore\\n*.txt\\n' > .gitignore",
            None,
            6,
        ),
        // So do the caches of many tools: no work is beside them.
        (
            "mkdir -p cache; echo x > cache/x; echo '*' > cache/.gitignore; echo work > new.txt",
            None,
            0,
        ),
        // Nor does a file hide work that hides nothing but itself.
        ("echo .gitignore > .gitignore; echo work > new.txt", None, 0),
        // What the setup makes is nobody's work.
        (
            "echo work > new.txt",
            Some("echo x > old/x; echo '*' > old/.gitignore"),
            0,
        ),
    ] {
        let world = tasks(1);
        if let Some(setup) = setup {
            set_up_by(&world, setup);
        }
        world.write("old/file", "x\n");
        world.git(["add", "old"]);
        world.git(["commit", "-qm", "old"]);
        let flags = ["--verify", "true", "--max-iterations-per-task", "2"];
        let run = with_agent(&world, agent, &flags);
        run.assert_code(code);
        match code {
            0 => assert_eq!(world.read("new.txt"), "work\n", "{run}"),
            _ => {
                let told = said(&run);
                assert!(told.contains("is ignored by git itself"), "{run}");
                let kept = worktrees(&world);
                let mut kept = kept.iter().flat_map(|tree| {
                    ["new.txt", "old/new.txt", "new/new.txt"].map(|name| tree.join(name))
                });
                assert!(kept.any(|file| file.exists()), "{run}");
            }
        }
    }
}

/// It cannot be changed by a flag, and without it no agent begins.
#[test]
fn a_setup_that_was_mended_in_the_config_is_used_by_a_resume() {
    let world = tasks(1);
    set_up_by(&world, "exit 4");
    let first = with_agent(&world, "echo work > new.txt", &["--verify", "true"]);
    first.assert_code(1);
    assert!(
        said(&first).contains("worktree_setup `exit 4` failed"),
        "{first}"
    );
    set_up_by(&world, "touch ../set-up");
    let again = run(&world, &["loop", "resume"]);
    again.assert_code(0);
    assert_eq!(world.read("new.txt"), "work\n", "{again}");
    assert!(said(&again).contains("worktree_setup"), "{again}");
}

/// Its files are in no commit: a new worktree would be without them, and the agent would do as it is told.
#[test]
fn a_task_goes_on_in_the_worktree_that_was_kept_for_it() {
    for agent in [
        "[ -e new.txt ] && rm .gitignore || { echo work > new.txt; echo '*' > .gitignore; }",
        "[ -e app/new.txt ] && rm -rf app/.git && mv app/new.txt . || { git init -q app; echo work > app/new.txt; }",
    ] {
        let world = tasks(1);
        let flags = ["--verify", "true", "--max-iterations-per-task", "1"];
        let run_once = with_agent(&world, agent, &flags);
        run_once.assert_code(6);
        assert_eq!(worktrees(&world).len(), 1, "{run_once}");
        let again = run(&world, &["loop", "resume", "--retry-blocked"]);
        again.assert_code(0);
        assert_eq!(world.read("new.txt"), "work\n", "{again}");
        assert!(worktrees(&world).is_empty(), "{again}");
    }
}

/// Its slot is another's the next time: the prompt says where the files are.
#[test]
fn a_task_is_told_of_the_worktree_that_was_kept_in_another_slot() {
    let world = tasks(3);
    // The second and third are blocked one after the other in the same slot.
    let agent = "at=../../..; case $DESCARTES_TASK_ID in\n\
        1) until [ -e $at/third ]; do sleep 0.05; done; echo one > one.txt;;\n\
        2) [ -e $at/second ] || { touch $at/second; exit; }; echo two > two.txt;;\n\
        3) touch $at/third; kept=$(printf '%s\\n' \"$*\" | sed -n 's/^\\(\\/.*\\): the repository app$/\\1/p')\n\
        if [ -n \"$kept\" ]; then cp \"$kept/app/new.txt\" .\n\
        else git init -q app; echo work > app/new.txt; fi;;\nesac";
    let flags = [
        "--verify",
        "true",
        "--parallel",
        "2",
        "--max-iterations-per-task",
        "1",
    ];
    with_agent(&world, agent, &flags).assert_code(6);
    let again = run(&world, &["loop", "resume", "--retry-blocked"]);
    again.assert_code(0);
    assert_eq!(world.read("two.txt"), "two\n", "{again}");
    assert_eq!(world.read("new.txt"), "work\n", "{again}");
}

/// The setup of a new worktree runs over what the task's last attempt committed.
#[test]
fn a_setup_that_fails_by_what_a_task_left_is_for_its_agent_to_mend() {
    let world = tasks(1);
    set_up_by(&world, "test ! -e broken");
    let agent = "[ -e broken ] && rm broken && echo work > new.txt || touch broken";
    let flags = [
        "--verify",
        "test -e new.txt",
        "--max-iterations-per-task",
        "1",
    ];
    with_agent(&world, agent, &flags).assert_code(6);
    let again = run(&world, &["loop", "resume", "--retry-blocked"]);
    again.assert_code(0);
    assert_eq!(world.read("new.txt"), "work\n", "{again}");
    assert!(!world.has("broken"), "{again}");
}

#[test]
fn a_commit_inside_a_submodule_that_nobody_can_reach_does_not_land() {
    let world = tasks(1);
    let inner = world.state().join("inner");
    std::fs::create_dir_all(&inner).unwrap();
    let git = |words: &[&str]| {
        let mut git = world.command("git");
        git.current_dir(&inner).args(words);
        world
            .run_within(git, std::time::Duration::from_secs(30))
            .assert_code(0);
    };
    git(&["init", "-q", "."]);
    git(&["commit", "-q", "--allow-empty", "-m", "inner"]);
    let url = inner.to_str().unwrap();
    let file = ["-c", "protocol.file.allow=always"];
    world.git([&file[..], &["submodule", "--quiet", "add", url, "sub"]].concat());
    world.git(["commit", "-qm", "submodule"]);
    let before = world.git(["rev-parse", "HEAD:sub"]);
    let script = "git -c protocol.file.allow=always submodule --quiet update --init
cd sub; echo x > f; git add f; git -c user.name=a -c user.email=a@b commit -qm inside; cd ..";
    let done = with_agent(&world, script, &["--verify", "test -e sub/f"]);
    done.assert_code(6);
    assert!(
        said(&done).contains("not in any repository that others can reach"),
        "{done}"
    );
    assert_eq!(world.git(["rev-parse", "HEAD:sub"]), before);
    let kept = worktrees(&world);
    assert!(
        kept.iter().any(|path| path.join("sub/f").exists()),
        "{done}"
    );
}

#[test]
fn a_worktree_whose_git_file_is_gone_is_mended() {
    let world = tasks(2);
    let script = "rm .git; [ $DESCARTES_TASK_ID = 1 ] || { git init -q .; git add -A
git -c user.name=a -c user.email=a@b commit -qm mine; }; echo x > work-$DESCARTES_TASK_ID";
    let done = with_agent(&world, script, &["--verify", "ls work-*"]);
    done.assert_code(0);
    assert!(world.has("work-1") && world.has("work-2"), "{done}");
    // What the agent made in its place is not thrown away.
    let work = run(&world, &["work"]).stdout();
    assert!(
        work.contains("in place of the worktree's own .git"),
        "{work}"
    );
}

#[test]
fn commits_of_a_person_on_our_branches_are_kept_under_another_name() {
    let world = tasks(1);
    world.write("README.md", "one\n");
    world.git(["add", "."]);
    world.git(["commit", "-qm", "readme"]);
    world.write("README.md", "mine\n");
    let script = "echo agent >> README.md";
    with_agent(&world, script, &["--verify", "true"]).assert_code(6);
    world.git(["checkout", "-q", "--", "README.md"]);
    world.git(["stash", "-q"]);
    world.git(["checkout", "-q", "descartes/auth"]);
    world.write("fix", "by hand");
    world.git(["add", "fix"]);
    world.git(["commit", "-qm", "a person's fix"]);
    let fix = world.git(["rev-parse", "HEAD"]);
    world.git(["checkout", "-q", "main"]);
    world.git(["stash", "pop", "-q"]);
    let again = with_agent(&world, script, &["--force", "--verify", "true"]);
    let kept = format!("descartes-kept/auth/{}", &fix[..12]);
    assert_eq!(world.git(["rev-parse", &kept]), fix, "{again}");
    assert!(said(&again).contains(&kept), "{again}");
    // A branch of that name that a person made, for a task of the loop.
    let world = tasks(1);
    world.git(["checkout", "-q", "-b", "descartes/auth/1"]);
    world.write("mine", "x");
    world.git(["add", "mine"]);
    world.git(["commit", "-qm", "mine"]);
    let mine = world.git(["rev-parse", "HEAD"]);
    world.git(["checkout", "-q", "main"]);
    let done = with_agent(&world, "echo x > work", &["--verify", "test -e work"]);
    done.assert_code(0);
    assert!(world.has("work") && !world.has("mine"), "{done}");
    let all = world.git(["for-each-ref", "--format=%(objectname)", "refs/heads"]);
    assert!(all.contains(&mine), "{done}");
}

#[test]
fn a_commit_that_a_person_puts_below_an_agents_work_is_kept() {
    let world = tasks(1);
    let checkout = world.project();
    let script = format!(
        "new=$(git commit-tree -p HEAD -m 'a person' 'HEAD^{{tree}}')\n\
         git -C {0} update-ref refs/heads/descartes/auth/1 $new\n\
         echo $new > {0}/../persons\n\
         echo work > work && git add work && git commit -qm 'an agent'\necho more > more",
        checkout.display()
    );
    let done = with_agent(&world, &script, &["--verify", "test -e more"]);
    done.assert_code(0);
    let commit = std::fs::read_to_string(checkout.join("../persons")).unwrap();
    let kept = format!("descartes-kept/auth/{}", &commit[..12]);
    assert_eq!(world.git(["rev-parse", &kept]), commit.trim(), "{done}");
    assert!(said(&done).contains(&kept), "{done}");
    let all = world.git(["for-each-ref", "--format=%(refname)", "refs/heads"]);
    assert_eq!(all.lines().count(), 2, "nothing else: {all}");
    assert!(world.has("work") && world.has("more"), "{done}");
}

#[test]
fn work_that_waits_is_landed_by_a_command_that_works() {
    let world = tasks(1);
    world.write("README.md", "one\n");
    world.git(["add", "."]);
    world.git(["commit", "-qm", "readme"]);
    world.write("README.md", "mine\n");
    let done = with_agent(
        &world,
        "echo agent > README.md",
        &["--verify", "test -e README.md"],
    );
    done.assert_code(6);
    assert!(
        said(&done).contains("would be overwritten by merge: README.md"),
        "{done}"
    );
    let status = run(&world, &["loop", "status"]).stdout();
    assert!(status.contains("descartes work land"), "{status}");
    // Still in the way: nothing is lost, and it says so again.
    run(&world, &["work", "land"]).assert_code(6);
    world.git(["checkout", "-q", "--", "README.md"]);
    // The branch has moved meanwhile: no fast-forward of the old commit can do it.
    world.write("other", "x");
    world.git(["add", "other"]);
    world.git(["commit", "-qm", "meanwhile"]);
    let landed = run(&world, &["work", "land", "auth"]);
    landed.assert_code(0);
    assert_eq!(world.read("README.md").trim(), "agent");
    assert!(world.has("other"));
    let refs = world.git(["for-each-ref", "refs/heads/descartes", "refs/descartes"]);
    assert_eq!(refs, "", "{landed}");
    run(&world, &["work", "land"]).assert_code(0);
    run(&world, &["work", "land", "nothing-of-that-name"]).assert_code(65);
    let status = run(&world, &["loop", "status"]).stdout();
    assert!(status.contains("Completed (gates green)"), "{status}");
}

/// Only the loop's journal knows how its work is proven and lands.
#[test]
fn clean_keeps_the_loop_whose_work_waits_to_land() {
    let world = tasks(1);
    world.write("README.md", "mine\n");
    let script = "echo agent > README.md";
    with_agent(&world, script, &["--verify", "test -e README.md"]).assert_code(6);
    let clean = ["clean", "--older", "0s", "--whole"];
    let asked = run(&world, &clean);
    let said = said(&asked);
    assert!(said.contains("has not landed"), "{asked}");
    assert!(said.contains("&& descartes work land`"), "{asked}");
    run(&world, &[&clean[..], &["--yes"]].concat()).assert_code(0);
    world.git(["checkout", "-q", "--", "README.md"]);
    run(&world, &["work", "land"]).assert_code(0);
    assert_eq!(world.read("README.md").trim(), "agent");
    // Nothing waits any more.
    run(&world, &[&clean[..], &["--yes"]].concat()).assert_code(0);
    let left = run(&world, &["loop", "list", "--all", "--json"]).stdout();
    assert!(!left.contains("\"id\""), "{left}");
}

#[test]
fn a_resumed_loop_lands_what_waits() {
    let world = tasks(1);
    world.write("work", "mine");
    with_agent(&world, "echo agent > work", &["--verify", "true"]).assert_code(6);
    std::fs::remove_file(world.project().join("work")).unwrap();
    run(&world, &["loop", "resume"]).assert_code(0);
    assert_eq!(world.read("work").trim(), "agent");
}

#[test]
fn a_loop_that_begins_anew_is_not_done_before_what_waits_has_landed() {
    let world = tasks(1);
    world.write("work", "mine");
    let start = |flags: &[&str]| {
        let flags = [&["--verify", "true"], flags].concat();
        with_agent(&world, "echo agent > work", &flags)
    };
    start(&[]).assert_code(6);
    assert_eq!(statuses(&world), "D");
    let again = start(&["--force"]);
    again.assert_code(6);
    assert!(
        said(&again).contains("finished work has not landed"),
        "{again}"
    );
    std::fs::remove_file(world.project().join("work")).unwrap();
    let other = world.state().join("other.json");
    start(&["--state-file", other.to_str().unwrap()]).assert_code(0);
    assert_eq!(world.git(["show", "HEAD:work"]), "agent");
    let refs = world.git(["for-each-ref", "refs/heads/descartes", "refs/descartes"]);
    assert_eq!(refs, "");
}

#[test]
fn landing_is_tried_until_it_lands_while_the_branch_moves() {
    let world = tasks(1);
    // The gate itself commits in the user's checkout, five times.
    let project = world.project();
    let gate = format!(
        "n=$(cat {0}/count 2>/dev/null || echo 0); if [ $n -lt 5 ]; then echo $((n+1)) > {0}/count; \
         cd {1} && echo x > other-$n && git add other-$n && git -c user.name=a -c user.email=a@b commit -qm moved; fi",
        world.state().display(),
        project.display()
    );
    let done = with_agent(&world, "echo x > work", &["--verify", &gate]);
    done.assert_code(0);
    assert!(world.has("work"), "{done}");
    let log = world.git(["log", "--format=%s"]);
    assert_eq!(log.matches("moved").count(), 5, "{log}");
}

#[test]
fn ids_that_no_branch_can_have_are_worked_on_like_any_other() {
    let rows = ["yarn.lock", "v1..v2", "1"].map(|id| format!("{id} | T | P | 1 | M"));
    let world = scud_project(graph(&rows.join("\n"), "\n@edges\n"));
    let done = with_agent(
        &world,
        "echo x > \"work-$DESCARTES_TASK_ID\"",
        &["--verify", "ls work-*", "--parallel", "3"],
    );
    done.assert_code(0);
    for id in ["yarn.lock", "v1..v2", "1"] {
        assert!(world.has(format!("work-{id}")), "{id}: {done}");
    }
}

#[test]
fn without_barriers_no_task_is_blocked_by_our_own_hand() {
    for _ in 0..3 {
        let world = tasks(6);
        let flags = ["--verify", "true", "--no-wave-barrier", "--parallel", "4"];
        let done = with_agent(&world, "echo x > work-$DESCARTES_TASK_ID", &flags);
        done.assert_code(0);
        assert_eq!(statuses(&world), "DDDDDD", "{done}");
    }
}

#[test]
fn tasks_one_at_a_time_see_each_others_work() {
    let world = tasks(4);
    let script = "echo \"$DESCARTES_TASK_ID\" >> CHANGES";
    let flags = ["--verify", "true", "--no-wave-barrier"];
    let done = with_agent(&world, script, &flags);
    done.assert_code(0);
    assert_eq!(world.read("CHANGES"), "1\n2\n3\n4\n", "{done}");
    assert!(!said(&done).contains("conflict"), "{done}");
}

#[test]
fn a_fast_forward_that_was_killed_halfway_is_finished() {
    let world = tasks(1);
    // What a git leaves that was killed between the files and the index: files as the new commit
    // has them.
    let gate = format!("cp work {}/work", world.project().display());
    let done = with_agent(&world, "echo agent > work", &["--verify", &gate]);
    done.assert_code(0);
    assert_eq!(world.read("work"), "agent\n");
    let status = world.git(["status", "--porcelain", "--untracked-files=no"]);
    assert!(!status.contains("work"), "{status}");
}

#[test]
fn files_that_a_killed_git_left_half_written_do_not_keep_work_from_landing() {
    let world = tasks(1);
    // Runs in the user's checkout when the fast-forward comes to the file `c`: `a` and `b` are
    // written, then it is as if the git had been killed within `d`, and a person writes `a`.
    let kills = format!(
        "#!/bin/sh\ncat > {1}/c\nif [ \"$PWD\" = {0} ] && [ ! -e {1}/killed ]; then touch {1}/killed\n\
         printf 'the beg' > {0}/d; printf '' > {0}/changed; printf mine > {0}/a; rm -f {0}/.git/index.lock; kill -9 $PPID; fi\ncat {1}/c\n",
        world.project().display(),
        world.state().display()
    );
    let kills = world.program("smudge", &kills);
    world.write(".gitattributes", "c filter=kills\n");
    world.write("changed", "old\n");
    world.git(["config", "filter.kills.smudge", kills.to_str().unwrap()]);
    world.git(["add", "."]);
    world.git(["commit", "-qm", "files"]);
    let script = "for f in a b c; do echo $f > $f; done; echo 'the beginning and the end' > d
echo new > changed";
    let done = with_agent(&world, script, &["--verify", "true"]);
    done.assert_code(6);
    assert!(world.state().join("killed").exists(), "{done}");
    assert_eq!(world.read("d"), "the beg");
    // What is a person's own is not touched.
    run(&world, &["work", "land"]).assert_code(6);
    assert_eq!(
        (world.read("a"), world.read("d")),
        ("mine".into(), "the beg".into())
    );
    world.write("a", "a\n");
    let landed = run(&world, &["work", "land"]);
    landed.assert_code(0);
    assert_eq!(world.read("d"), "the beginning and the end\n");
    assert_eq!(world.read("changed"), "new\n");
    let status = world.git(["status", "--porcelain", "--untracked-files=no"]);
    assert!(!status.contains("changed"), "{status}");
}

#[test]
fn many_files_of_a_killed_fast_forward_are_no_trouble() {
    let world = tasks(1);
    let gate = format!(
        "cp a-file-with-a-long-name-* {}/ 2>/dev/null; true",
        world.project().display()
    );
    let script = "for n in $(seq 0 299); do echo $n > a-file-with-a-long-name-$n; done";
    let done = with_agent(&world, script, &["--verify", &gate]);
    done.assert_code(0);
    let tree = world.git(["ls-tree", "--name-only", "main"]);
    assert_eq!(tree.matches("a-file-with").count(), 300, "{done}");
}

#[test]
fn work_that_waits_follows_its_branch_to_another_name() {
    let waiting = || {
        let world = tasks(1);
        world.write("work", "mine");
        with_agent(&world, "echo agent > work", &["--verify", "true"]).assert_code(6);
        std::fs::remove_file(world.project().join("work")).unwrap();
        world
    };
    let world = waiting();
    world.git(["branch", "-m", "main", "trunk"]);
    let landed = run(&world, &["work", "land"]);
    landed.assert_code(0);
    assert!(said(&landed).contains("renamed to trunk"), "{landed}");
    assert_eq!(world.git(["show", "trunk:work"]), "agent", "{landed}");
    // One that was deleted has no other name, and what is told to be typed works.
    let world = waiting();
    world.git(["checkout", "-q", "-b", "other"]);
    world.git(["branch", "-q", "-D", "main"]);
    let refused = run(&world, &["work", "land"]);
    refused.assert_code(6);
    assert!(said(&refused).contains("git checkout -b main"), "{refused}");
    world.git(["checkout", "-q", "-b", "main"]);
    let landed = run(&world, &["work", "land"]);
    landed.assert_code(0);
    assert_eq!(world.git(["show", "main:work"]), "agent", "{landed}");
}
