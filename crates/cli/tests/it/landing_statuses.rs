//! The statuses of tasks land with their work, and nothing else of a person's task file does.

use std::path::PathBuf;
use std::time::Duration;

use descartes_testkit::World;

use crate::landing::{tasks, with_agent};
use crate::task_common::{graph, repository, roadmap, run, said, scud_project, statuses};

const FILE: &str = ".scud/tasks/tasks.scg";

/// A git that does this before it is itself, with `real` for the real one and `host` for the process
/// that has it called.
pub(crate) fn git_that(world: &World, does: &str) {
    let path = std::env::var_os("PATH").unwrap();
    let real = std::env::split_paths(&path)
        .map(|folder| folder.join("git"))
        .find(|git| git.is_file())
        .unwrap();
    let once = world.root().join("once");
    let script = format!(
        "#!/bin/sh\nreal={}\nonce={}\nhost() {{ sed -n 's/^PPid:[^0-9]*//p' /proc/$PPID/status; }}\n{does}\nexec $real \"$@\"\n",
        real.display(),
        once.display()
    );
    world.program("git", &script);
}

/// What was committed since the world began.
fn log(world: &World) -> Vec<String> {
    let log = world.git(["log", "--format=%s"]);
    let since = log.lines().filter(|subject| *subject != "begin");
    since.map(str::to_owned).collect()
}

#[test]
fn statuses_land_as_a_last_commit_of_their_own() {
    let world = scud_project(graph(
        "1 | A | P | 1 | M\n2 | B | P | 1 | M",
        "\n@edges\n2 -> 1\n",
    ));
    let script = "echo x > work-$DESCARTES_TASK_ID";
    let done = with_agent(&world, script, &["--json", "--verify", "true"]);
    done.assert_code(0);
    assert_eq!(
        log(&world),
        [
            "chore(auth): mark task 2 done",
            "feat(auth): complete wave 2",
            "chore(auth): mark task 1 done",
            "feat(auth): complete wave 1",
            "tasks",
        ]
    );
    assert_eq!(
        world.git(["status", "--porcelain", "--", ".scud/tasks"]),
        ""
    );
    let changed = world.git(["diff", "--name-only", "HEAD~1", "HEAD"]);
    assert_eq!(changed, FILE);
    assert_eq!(statuses(&world), "DD");
    // The record says which commit was proven, and which came on top.
    let landed = done.stdout();
    let landed = landed
        .lines()
        .rfind(|line| line.contains("\"work_landed\""));
    let landed = landed.unwrap_or_default();
    let [top, proven] = ["HEAD", "HEAD~1"].map(|name| world.git(["rev-parse", name]));
    assert!(
        landed.contains(&format!("\"commit\":\"{proven}\""))
            && landed.contains(&format!("\"statuses\":\"{top}\"")),
        "{landed}"
    );
}

#[test]
fn boxes_of_a_roadmap_land_ticked() {
    let world = repository("ROADMAP.md", "- [ ] **a**: First\n- [ ] **b**: Second\n");
    roadmap(&world, "write ${DESCARTES_TASK_ID} x", &[]).assert_code(0);
    assert_eq!(world.git(["status", "--porcelain"]), "");
    let text = world.git(["show", "HEAD:ROADMAP.md"]);
    assert_eq!(text.matches("[x]").count(), 2, "{text}");
}

#[test]
fn what_another_task_is_at_does_not_land() {
    let world = tasks(2);
    let rows = "git show main:.scud/tasks/tasks.scg";
    let script = format!(
        "if [ $DESCARTES_TASK_ID = 2 ]; then
until {rows} | grep -q '^1 .* D '; do sleep 0.1; done; {rows} | grep '^2 ' > ../../../row; fi
echo x > work-$DESCARTES_TASK_ID"
    );
    let flags = ["--verify", "true", "--parallel", "2", "--no-wave-barrier"];
    with_agent(&world, &script, &flags).assert_code(0);
    let row = std::fs::read_to_string(world.state().join("row")).unwrap();
    assert!(row.contains("| P |"), "{row}");
    assert_eq!(
        world.git(["status", "--porcelain", "--", ".scud/tasks"]),
        ""
    );
}

#[test]
fn a_file_that_a_person_edited_or_staged_is_left_alone_and_that_is_said() {
    for stages in [false, true] {
        let world = tasks(1);
        let text = world.read(FILE).replace("Task 1", "My task");
        world.write(FILE, &text);
        if stages {
            world.git(["add", FILE]);
        }
        let staged = world.git(["diff", "--cached"]);
        let before = world.git(["rev-parse", &format!("HEAD:{FILE}")]);
        let done = with_agent(&world, "echo x > work", &["--verify", "true"]);
        done.assert_code(0);
        assert!(said(&done).contains("are left uncommitted"), "{done}");
        assert_eq!(world.git(["rev-parse", &format!("HEAD:{FILE}")]), before);
        assert_eq!(world.git(["diff", "--cached"]), staged);
        assert_eq!(world.read(FILE), text.replace("| P |", "| D |"));
        assert_eq!(log(&world)[0], "feat(auth): complete wave 1");
    }
}

#[test]
fn without_wave_commits_the_file_stays_as_it_is_in_git() {
    let world = tasks(1);
    let before = world.git(["rev-parse", &format!("HEAD:{FILE}")]);
    let flags = ["--verify", "true", "--no-auto-commit-waves"];
    with_agent(&world, "echo x > work", &flags).assert_code(0);
    assert_eq!(world.git(["rev-parse", &format!("HEAD:{FILE}")]), before);
    assert_eq!(statuses(&world), "D");
}

#[test]
fn where_the_work_cannot_land_nothing_is_left_staged() {
    let world = tasks(1);
    world.write("work", "old\n");
    world.git(["add", "."]);
    world.git(["commit", "-qm", "work"]);
    world.write("work", "mine\n");
    let done = with_agent(&world, "echo x > work", &["--verify", "true"]);
    done.assert_code(6);
    assert_eq!(world.git(["diff", "--cached", "--name-only"]), "");
    assert_eq!(world.read("work"), "mine\n");
    // Once nothing is in the way, both land.
    world.git(["checkout", "--", "work"]);
    run(&world, &["work", "land"]).assert_code(0);
    assert_eq!(world.read("work"), "x\n");
    assert_eq!(log(&world)[0], "chore(auth): mark task 1 done");
}

/// The host dies before the entry of the index is set, before the fast-forward, and after it.
#[test]
fn a_host_that_dies_around_the_landing_leaves_nothing_staged_and_nothing_undone() {
    let dies = "touch $once; kill -9 $(host)";
    let table = [
        ("update-index", format!("{dies}; exit 1"), false),
        ("--ff-only", format!("{dies}; exit 1"), true),
        ("--ff-only", format!("$real \"$@\"; {dies}; exit 1"), false),
    ];
    for (word, does, staged) in table {
        let world = tasks(1);
        let own = "case \"$PWD:$GIT_INDEX_FILE\" in */project:) ;; *) exec $real \"$@\";; esac";
        git_that(
            &world,
            &format!(
                "{own}\ncase \" $* \" in *\" {word} \"*) [ -e $once ] || {{ {does}; }};; esac"
            ),
        );
        let killed = with_agent(&world, "echo x > work", &["--verify", "true"]);
        assert_eq!(killed.code(), None, "{word}: {killed}");
        assert!(world.root().join("once").exists(), "{word}");
        let found = !world.git(["diff", "--cached", "--name-only"]).is_empty();
        assert_eq!(found, staged, "{word} {does}");
        let done = run(&world, &["loop", "resume"]);
        done.assert_code(0);
        assert_eq!(
            log(&world),
            [
                "chore(auth): mark task 1 done",
                "feat(auth): complete wave 1",
                "tasks"
            ],
            "{word} {does}: {done}"
        );
        assert_eq!(
            world.git(["status", "--porcelain", "--", ".scud/tasks"]),
            ""
        );
        assert_eq!(world.git(["for-each-ref", "refs/descartes"]), "", "{word}");
    }
}

#[test]
fn a_branch_that_was_asked_for_is_made_and_the_work_lands_there() {
    let world = tasks(1);
    let before = world.git(["rev-parse", "main"]);
    let flags = [
        "--verify",
        "true",
        "--branch",
        "--branch-template",
        "work/x",
    ];
    with_agent(&world, "echo x > work", &flags).assert_code(0);
    assert_eq!(world.git(["branch", "--show-current"]), "work/x");
    assert_eq!(world.git(["show", "HEAD:work"]), "x");
    assert_eq!(world.git(["rev-parse", "main"]), before);
    let world = repository("ROADMAP.md", "- [ ] **a**: First\n");
    let flags = ["--branch", "--branch-template", "work/y"];
    roadmap(&world, "write ${DESCARTES_TASK_ID} x", &flags).assert_code(0);
    assert_eq!(world.git(["branch", "--show-current"]), "work/y");
    assert_eq!(world.git(["show", "HEAD:a"]), "x");
    assert_eq!(log(&world).len(), 3);
}

#[test]
fn a_loop_with_a_branch_of_its_own_lands_nowhere_else_when_it_is_taken_up() {
    let world = tasks(1);
    git_that(
        &world,
        "case \" $* \" in *\" --ff-only \"*) [ -e $once ] || { touch $once; kill -9 $(host); exit 1; };; esac",
    );
    let before = world.git(["rev-parse", "main"]);
    let flags = [
        "--verify",
        "true",
        "--branch",
        "--branch-template",
        "work/x",
    ];
    let killed = with_agent(&world, "echo x > work", &flags);
    assert_eq!(killed.code(), None, "{killed}");
    // The next host puts it back; a person cannot switch before.
    world.git(["reset", "--quiet"]);
    world.git(["switch", "--quiet", "--discard-changes", "main"]);
    let done = run(&world, &["loop", "resume"]);
    assert_eq!(world.git(["rev-parse", "main"]), before, "{done}");
    world.git(["switch", "--quiet", "--discard-changes", "work/x"]);
    run(&world, &["loop", "resume"]);
    assert_eq!(world.git(["show", "work/x:work"]), "x");
}

#[test]
fn what_agents_will_not_see_is_named_at_the_start() {
    let world = tasks(1);
    world.write("tracked", "a");
    world.git(["add", "."]);
    world.git(["commit", "-qm", "tracked"]);
    world.write("tracked", "b");
    for n in 1..7 {
        world.write(format!("new-{n}"), "x");
    }
    world.write("copied", "x");
    let config = world.home().join(".config/descartes");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), "worktree_copy = [\"copied\"]\n").unwrap();
    let done = with_agent(&world, "echo x > work", &["--verify", "true"]);
    done.assert_code(0);
    let words = said(&done);
    let line = words
        .lines()
        .find(|line| line.contains("will not see uncommitted changes"));
    let line = line.unwrap_or_default();
    assert!(
        line.contains("tracked, new-1") && line.contains("and 2 other files"),
        "{words}"
    );
    assert!(
        line.contains("worktree_copy") && line.contains("--in-place"),
        "{line}"
    );
    assert!(
        !line.contains("copied,") && !line.contains(".scud"),
        "{line}"
    );
    assert_eq!(words.matches("will not see").count(), 1, "{words}");
}

#[test]
fn a_preparation_that_fails_is_tried_again_before_it_costs_anything() {
    let world = tasks(1);
    git_that(
        &world,
        "case \" $* \" in *\" checkout --quiet \"*\" descartes/auth/1 \"*) [ -e $once.2 ] || {
[ -e $once ] && touch $once.2; touch $once
echo \"fatal: failed to read worktrees/slot-0/commondir: No such file\" >&2; exit 128; };; esac",
    );
    // Nothing is made in the folder of worktrees while agents work.
    let script = "test -e ../merged/.git && echo x > work";
    let done = with_agent(&world, script, &["--verify", "test -e work"]);
    done.assert_code(0);
    assert!(PathBuf::from(format!("{}.2", world.root().join("once").display())).exists());
    let rows = run(&world, &["loop", "history"]).stdout();
    assert!(!rows.contains("2  "), "{rows}");
}

#[test]
fn conflict_markers_do_not_land_though_git_was_told_that_all_is_resolved() {
    let world = tasks(2);
    world.write("list", "begin\n");
    world.git(["add", "."]);
    world.git(["commit", "-qm", "list"]);
    let script = "here=../../..
if grep -q '<<<<<<<' list; then
  if [ -e $here/tried ]; then printf 'begin\\n1\\n2\\n' > list; else touch $here/tried; git add -A; fi
else echo $DESCARTES_TASK_ID >> list; touch $here/begun-$DESCARTES_TASK_ID
until [ -e $here/begun-1 -a -e $here/begun-2 ]; do sleep 0.1; done; fi; date > stamp-$DESCARTES_TASK_ID";
    let done = with_agent(&world, script, &["--verify", "true", "--parallel", "2"]);
    done.assert_code(0);
    assert!(
        said(&done).contains("still contains conflict markers"),
        "{done}"
    );
    assert_eq!(world.git(["show", "HEAD:list"]), "begin\n1\n2");
}

#[test]
fn conflict_markers_of_an_agents_own_merge_do_not_land_from_any_branch() {
    for away in ["", "git checkout -qb feature/x;"] {
        let world = tasks(1);
        world.write("list", "begin\n");
        world.git(["add", "."]);
        world.git(["commit", "-qm", "list"]);
        world.git(["checkout", "-qb", "other"]);
        world.write("list", "begin\n2\n");
        world.git(["commit", "-qam", "two"]);
        world.git(["checkout", "-q", "-"]);
        // The second attempt does something else, and only the third looks at the conflict.
        let script = format!(
            "here=../../..
if [ -e $here/second ]; then printf 'begin\\n1\\n2\\n' > list
elif [ -e $here/first ]; then touch $here/second; date > stamp
else touch $here/first; {away} echo 1 >> list; git commit -qam one; git merge other || true; fi"
        );
        let done = with_agent(&world, &script, &["--verify", "true"]);
        done.assert_code(0);
        assert_eq!(
            world.git(["show", "HEAD:list"]),
            "begin\n1\n2",
            "{away}: {done}"
        );
        assert!(
            said(&done).contains("list still contains conflict markers"),
            "{done}"
        );
    }
}

#[test]
fn records_of_ours_that_an_agent_moved_are_put_back() {
    let world = tasks(1);
    let script = "git update-ref -d refs/descartes/auth/ours/1; echo x > work";
    let done = with_agent(&world, script, &["--verify", "true"]);
    done.assert_code(0);
    assert!(said(&done).contains("someone else moved"), "{done}");
    assert_eq!(world.git(["show", "HEAD:work"]), "x");
}

#[test]
fn gates_of_a_task_run_in_its_folder_on_the_merged_tree_too() {
    let text = "- [ ] **a**: First\n  - cwd: sub\n  - check: test -e here\n- [ ] **b**: Second\n";
    let world = repository("ROADMAP.md", text);
    world.write("sub/keep", "x");
    world.git(["add", "."]);
    world.git(["commit", "-qm", "sub"]);
    let done = roadmap(&world, "write here x", &["--verify", "test -e here"]);
    done.assert_code(0);
    assert_eq!(world.git(["show", "HEAD:sub/here"]), "x");
}

/// A loop of the version before branches had records, and odd ids their own names.
#[test]
fn a_loop_of_an_earlier_version_goes_on_with_its_branches() {
    let world = repository("ROADMAP.md", "- [ ] **a:b**: First\n");
    let script = "if [ -e ../../../go ]; then test -e begun && echo y > rest
else echo x > begun; touch ../../../begun; sleep 600; fi";
    let path = world.state().join("agent.sh");
    std::fs::create_dir_all(world.state()).unwrap();
    std::fs::write(&path, script).unwrap();
    let agent = format!("sh {}", path.display());
    let words = ["roadmap", "run", "ROADMAP.md", "--command", &agent];
    let mut host = world.descartes(words);
    host.stdout(std::process::Stdio::null());
    host.stderr(std::process::Stdio::null());
    let mut host = host.spawn().unwrap();
    let soon = Duration::from_secs(60);
    descartes_testkit::eventually("an agent works", soon, || {
        world.state().join("begun").exists()
    });
    host.kill().unwrap();
    host.wait().unwrap();
    descartes_testkit::eventually("its agent is gone", soon, || world.processes().is_empty());
    std::fs::write(world.state().join("go"), "").unwrap();
    // As that version left it.
    let trees = world.state().join("worktrees");
    let folder = std::fs::read_dir(&trees).unwrap().flatten();
    let folder = folder
        .map(|entry| entry.path())
        .find(|path| path.join("slot-0").exists());
    let folder = folder.unwrap();
    std::fs::remove_dir_all(folder.join("control")).unwrap();
    let old = "descartes/roadmap/a-b-04a01160";
    let slot = folder.join("slot-0");
    world.git(["-C", slot.to_str().unwrap(), "branch", "-m", old]);
    let records = world.git([
        "for-each-ref",
        "--format=%(refname)",
        "refs/descartes/roadmap/ours",
    ]);
    for record in records.lines() {
        world.git(["update-ref", "-d", record]);
    }
    let done = run(&world, &words);
    done.assert_code(0);
    assert_eq!(world.git(["show", "HEAD:begun"]), "x", "{done}");
    assert_eq!(world.git(["for-each-ref", "refs/heads/descartes-kept"]), "");
}

/// A hook that never ends, and a branch that moves whenever the gates run.
#[test]
fn the_time_budget_ends_landings_and_hooks_too() {
    for hook in [true, false] {
        let world = tasks(1);
        let gate = match hook {
            true => {
                let path = world.write(".git/hooks/pre-commit", "#!/bin/sh\nexec sleep 600\n");
                use std::os::unix::fs::PermissionsExt;
                let mode = std::fs::Permissions::from_mode(0o755);
                std::fs::set_permissions(path, mode).unwrap();
                "true".to_owned()
            }
            false => format!(
                "sleep 0.3; cd {} && date +%N > moved && git add moved && git commit -qm moved",
                world.project().display()
            ),
        };
        let began = std::time::Instant::now();
        // Long enough for the agent to finish before, however busy the machine is.
        let flags = [
            "--verify",
            &gate,
            "--verify-timeout",
            "20s",
            "--max-duration",
            "15s",
        ];
        let done = with_agent(&world, "echo x > work", &flags);
        done.assert_code(3);
        assert!(began.elapsed() < Duration::from_secs(120), "{done}");
        assert!(!world.has("work"), "{done}");
        // What was finished is not lost.
        let tree = world.git(["log", "--all", "--format=", "--name-only"]);
        assert!(tree.lines().any(|name| name == "work"), "{done}");
        world.assert_no_survivors();
    }
}

#[test]
fn work_whose_changed_files_cannot_be_told_does_not_land() {
    let world = repository("ROADMAP.md", "- [ ] **a**: First\n  - files: a\n");
    git_that(
        &world,
        "case \"$*\" in *\":(exclude)\"*) echo 'fatal: no' >&2; exit 128;; esac",
    );
    let done = roadmap(&world, "write ${DESCARTES_TASK_ID} x", &[]);
    done.assert_code(6);
    assert!(
        said(&done).contains("cannot determine which files it changed"),
        "{done}"
    );
    assert!(!world.has("a"), "{done}");
}
