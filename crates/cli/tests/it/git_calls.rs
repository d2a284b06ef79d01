//! Gits that a loop starts: they can be stopped, say little, leave nothing behind, and do what they
//! are for whatever git is told to do elsewhere.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use descartes_testkit::{World, eventually};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{descartes, events, loop_dir, start, start_command, state};
use crate::task_common::{self, graph, scud_project, statuses};

const SOON: Duration = descartes_testkit::PATIENCE;
/// A machine with much else to do, and far less than a hook that never ends.
const BOUNDED: Duration = Duration::from_secs(120);
const WORKS: &str = "append notes.txt line\nprint hm";

fn hook(world: &World, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = world.write(
        format!(".git/hooks/{name}"),
        format!("#!/bin/sh\n{script}\n"),
    );
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A loop whose commit is in a hook that never ends.
fn in_a_hook(flags: &[&str]) -> (World, Child) {
    let world = World::in_memory();
    world.git_init();
    hook(
        &world,
        "pre-commit",
        "trap '' INT TERM\nsetsid sleep 9999 &\ntouch .git/in-hook\nwhile :; do sleep 9999; done",
    );
    let flags = [
        &["--auto-commit", "--kill-grace", "200ms", "-m", "3"],
        flags,
    ]
    .concat();
    let mut command = start_command(&world, WORKS, &flags);
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the hook", SOON, || world.has(".git/in-hook"));
    (world, child)
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

#[track_caller]
fn ends(world: &World, child: &mut Child, code: i32) {
    let began = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(code));
    assert!(began.elapsed() < BOUNDED, "{:?}", began.elapsed());
    world.assert_no_survivors();
    assert_eq!(events(world, "iteration_finished").len(), 1);
    let warnings = events(world, "warning");
    let told = |warning: &serde_json::Value| {
        let words = warning["message"].as_str().unwrap();
        words.starts_with("no commit: git") && words.len() < 5_000
    };
    assert!(warnings.iter().any(told), "{warnings:?}");
}

#[test]
fn a_hook_that_hangs_answers_to_every_stop() {
    let (world, mut child) = in_a_hook(&[]);
    eventually("what it is at", SOON, || !events(&world, "busy").is_empty());
    let status = descartes(&world, &["loop", "status"]).stdout();
    assert!(
        status.contains("In progress: committing: running git hooks"),
        "{status}"
    );
    send(&child, Signal::SIGTERM);
    ends(&world, &mut child, 143);
    assert!(world.has("notes.txt"), "the work stays");

    for flags in [&["cancel"][..], &["cancel", "--now"]] {
        let (world, mut child) = in_a_hook(&[]);
        let words = [&["loop"], flags].concat();
        descartes(&world, &words).assert_code(0);
        ends(&world, &mut child, 130);
        assert_eq!(state(&world)["exit_reason"]["type"], "user_cancelled");
    }

    let (world, mut child) = in_a_hook(&[]);
    send(&child, Signal::SIGINT);
    eventually("the first press", SOON, || {
        !events(&world, "stop_requested").is_empty()
    });
    assert!(
        child.try_wait().unwrap().is_none(),
        "the iteration is finished first"
    );
    send(&child, Signal::SIGINT);
    ends(&world, &mut child, 130);
}

#[test]
fn a_hook_that_hangs_ends_with_the_time_of_the_loop() {
    let (world, mut child) = in_a_hook(&["--max-duration", "12s"]);
    ends(&world, &mut child, 3);
}

#[test]
fn a_host_that_is_killed_takes_its_hooks_along() {
    let (world, mut child) = in_a_hook(&[]);
    send(&child, Signal::SIGKILL);
    child.wait().unwrap();
    eventually("the end of the hook", SOON, || world.processes().is_empty());
}

#[test]
fn a_hook_that_says_much_does_not_fill_the_journal() {
    let world = World::in_memory();
    world.git_init();
    hook(
        &world,
        "pre-commit",
        "yes 'the same words again and again' | head -c 60000000 >&2\necho at last >&2\nexit 1",
    );
    start(&world, WORKS, &["--auto-commit", "-m", "2"]).assert_code(2);
    let journal = std::fs::metadata(loop_dir(&world).join("journal.jsonl")).unwrap();
    assert!(journal.len() < 100_000, "{}", journal.len());
    let warnings = events(&world, "warning");
    let words = warnings[0]["message"].as_str().unwrap();
    assert!(words.ends_with("at last"), "{words}");
}

#[test]
fn what_an_agent_puts_into_git_is_not_left_running() {
    let world = World::in_memory();
    world.git_init();
    let left = "setsid sleep 9999 & echo $! >> $HOME/left";
    let filter = world.program(
        "filter",
        &format!("#!/bin/sh\n({left}) >/dev/null 2>&1\nexec cat\n"),
    );
    let other = world.program(
        "other",
        &format!("#!/bin/sh\n({left}) >/dev/null 2>&1\nexit 1\n"),
    );
    let agent = format!(
        "sh git config filter.mine.clean {filter}\nsh git config core.fsmonitor {other}\n\
         sh printf '* filter=mine\\n' > .gitattributes\n\
         sh printf '#!/bin/sh\\n{other}\\nexit 0\\n' > .git/hooks/pre-commit\n\
         sh chmod +x .git/hooks/pre-commit\nappend notes.txt line\nprint hm",
        filter = filter.display(),
        other = other.display(),
    );
    start(&world, &agent, &["-m", "3"]).assert_code(2);
    assert!(
        !world.home().join("left").exists(),
        "measuring starts nothing"
    );
    start(&world, &agent, &["-m", "3", "--auto-commit", "--force"]).assert_code(2);
    assert!(
        world.home().join("left").exists(),
        "hooks and filters are the user's"
    );
    world.assert_no_survivors();
    assert_eq!(world.git(["log", "-1", "--format=%s"]), "loop: iteration 3");
}

/// Settings that people have, and some that nobody should have.
const ODD: &str = r#"
[merge]
	ff = false
	verifySignatures = true
	conflictStyle = diff3
	renames = false
	autoStash = true
	log = true
[branch "main"]
	mergeOptions = --no-ff --squash
[commit]
	verbose = 2
	cleanup = strip
	template = /nowhere/template
	status = true
[core]
	pager = false
	editor = false
	quotePath = true
	whitespace = cr-at-eol
	abbrev = 4
	untrackedCache = true
	fsmonitor = false
[diff]
	external = false
	noprefix = true
	mnemonicPrefix = true
	renames = copies
	ignoreSubmodules = all
	orderFile = /nowhere/order
	algorithm = histogram
	colorMoved = zebra
	relative = true
[rerere]
	enabled = true
	autoUpdate = true
[status]
	showUntrackedFiles = no
	branch = true
	short = true
[log]
	showSignature = true
	decorate = full
[format]
	pretty = full
[color]
	ui = always
	diff = always
	status = always
[column]
	ui = always
[submodule]
	recurse = true
[checkout]
	guess = false
[advice]
	diverging = true
[i18n]
	logOutputEncoding = latin1
[alias]
	add = !false
	commit = !false
	merge = !false
[gc]
	auto = 1
[feature]
	manyFiles = true
[worktree]
	guessRemote = true
[pull]
	rebase = true
	ff = only
[rebase]
	autoStash = true
[clean]
	requireForce = true
[gpg]
	program = false
[tag]
	gpgSign = true
"#;

fn odd_settings(world: &World) {
    let mut settings = std::fs::read_to_string(world.home().join(".gitconfig")).unwrap_or_default();
    settings.push_str(ODD);
    std::fs::write(world.home().join(".gitconfig"), settings).unwrap();
}

#[test]
fn loops_do_what_they_do_whatever_git_is_told_elsewhere() {
    let world = World::in_memory();
    world.git_init();
    odd_settings(&world);
    let script = "append notes.txt line\n@1 print hm\n@2 promise";
    let mut command = start_command(
        &world,
        script,
        &[
            "--auto-commit",
            "--branch",
            "--tag-green",
            "--verify",
            "true",
        ],
    );
    let elsewhere = world.path("elsewhere");
    for (key, value) in [
        ("GIT_DIR", elsewhere.as_os_str()),
        ("GIT_INDEX_FILE", elsewhere.as_os_str()),
        ("GIT_WORK_TREE", elsewhere.as_os_str()),
        ("GIT_EXTERNAL_DIFF", "false".as_ref()),
        ("GIT_TRACE", "2".as_ref()),
        ("GIT_PAGER", "false".as_ref()),
        ("GIT_LITERAL_PATHSPECS", "1".as_ref()),
    ] {
        command.env(key, value);
    }
    world.run(command).assert_code(0);
    let warnings = events(&world, "warning");
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(events(&world, "tagged").len(), 1);
    let log = world.git(["-c", "log.showSignature=false", "log", "--format=%s"]);
    assert_eq!(log, "loop: iteration 2\nloop: iteration 1\nbegin");
    let diff = descartes(&world, &["loop", "diff", "2"]).stdout();
    assert!(diff.contains("+++ b/notes.txt"), "{diff}");
    descartes(&world, &["loop", "rewind", "1", "--yes"]).assert_code(0);
    assert_eq!(world.read("notes.txt"), "line\n");
}

#[test]
fn task_loops_land_whatever_git_is_told_elsewhere() {
    for more in ["", "[merge]\n\tff = only\n"] {
        let rows = "1 | One | P | 0 | H\n2 | Two | P | 0 | H\n3 | Three | P | 0 | H";
        let world = scud_project(graph(rows, "\n@edges\n3 -> 1\n"));
        odd_settings(&world);
        let path = world.home().join(".gitconfig");
        let settings = std::fs::read_to_string(&path).unwrap() + more;
        std::fs::write(path, settings).unwrap();
        let run = task_common::start(
            &world,
            task_common::WORKS,
            &["--parallel", "2", "--verify", "true"],
        );
        run.assert_code(0);
        assert_eq!(statuses(&world), "DDD", "{run}");
        for id in 1..=3 {
            assert!(world.has(format!("work-{id}")), "{run}");
        }
    }
}

#[test]
fn the_commit_of_a_task_answers_to_a_stop() {
    let rows = "1 | One | P | 0 | H";
    let world = scud_project(graph(rows, ""));
    hook(
        &world,
        "pre-commit",
        &format!(
            "setsid sleep 9999 &\ntouch {}\nexec sleep 9999",
            world.path("in-hook").display()
        ),
    );
    let agent = world.agent(task_common::WORKS);
    let words = [
        "loop",
        "start",
        "--scud-tag",
        "auth",
        "--command",
        &agent,
        "--verify",
        "true",
    ];
    let mut child = world
        .descartes(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the hook", SOON, || world.has("in-hook"));
    let began = Instant::now();
    send(&child, Signal::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert!(began.elapsed() < BOUNDED, "{:?}", began.elapsed());
    world.assert_no_survivors();
}
