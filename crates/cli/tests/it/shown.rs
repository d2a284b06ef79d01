//! Whatever anybody wrote (an agent, a gate, a file's name, a loop's name, a prompt): nothing that
//! a terminal obeys, that hides text or reorders it reaches a screen or a pipe, and no secret.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;
use std::time::Duration;

use descartes_testkit::pty::Size;
use descartes_testkit::world::Finished;
use descartes_testkit::{Pty, World};
use descartes_text::display::is_visible;

use crate::common::{descartes, start_command};
use crate::task_common;

/// A title, a cleared screen, C1 twice, a turned line, a tag, a hidden word.
const NASTY: &str = "na\u{1b}]0;pwn\u{7}st\u{1b}[2Jy\u{9b}31m\u{9d}0;c1\u{9c}\u{202e}\u{2066}\u{200b}\u{e0041}\u{1b}[8mhid";
const KEY: &str = "glpat-aB3dE6gH9jK2mN5pQ8sT";
const LONG: Duration = descartes_testkit::PATIENCE;

#[track_caller]
fn assert_safe(what: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let odd = text
        .chars()
        .find(|c| !is_visible(*c) && !matches!(c, '\n' | '\t'));
    assert_eq!(odd, None, "{what} shows {odd:?}:\n{text:?}");
    assert!(
        std::str::from_utf8(bytes).is_ok(),
        "{what} is no UTF-8: {text}"
    );
}

#[track_caller]
fn assert_all_safe(what: &str, run: &Finished) {
    assert_safe(what, &run.stdout);
    assert_safe(what, &run.stderr);
}

#[track_caller]
fn assert_masked(what: &str, run: &Finished) {
    assert_all_safe(what, run);
    let all = run.stdout() + &run.stderr();
    assert!(!all.contains(KEY), "{what} shows a secret: {all}");
}

/// Says and does everything that is nasty.
fn nasty_agent(world: &World) -> String {
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' 'words {NASTY} {KEY}' 'password=hunter2x'\n\
         printf '%s\\n' 'trouble {NASTY} {KEY}' >&2\nprintf '\\233\\235raw \\377\\n'\n\
         echo x > 'file {NASTY}'\nprintf '%s\\n' $$ 'line {NASTY} {KEY}' > content.txt\n\
         sleep 0.01\nexit ${{CODE:-0}}\n"
    );
    let path = world.program("nasty-agent", &script);
    path.to_string_lossy().into_owned()
}

#[test]
fn no_verb_shows_what_a_terminal_obeys_nor_a_secret() {
    let world = World::in_memory();
    world.git_init();
    world.write("kept.txt", "kept");
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", NASTY]);
    let agent = nasty_agent(&world);
    let gate = format!("printf '%s\\n' 'gate {NASTY} {KEY}'; false # {NASTY}");
    let prompt = format!("do {NASTY} with {KEY}");
    let start: Vec<&str> = vec![
        "loop",
        "start",
        "--command",
        &agent,
        "--name",
        NASTY,
        "--prompt",
        &prompt,
        "--verify",
        &gate,
        "--no-promise",
        "-m",
        "2",
    ];
    let dry = descartes(&world, &[&start[..], &["--dry-run"]].concat());
    dry.assert_code(0);
    assert_masked("--dry-run", &dry);
    let run = descartes(&world, &start);
    run.assert_code(2);
    assert_masked("loop start", &run);
    let out = run.stdout();
    assert!(
        out.contains("words nasty") && out.contains("password=***"),
        "{out}"
    );
    assert!(run.stderr().contains("trouble nasty"), "{run}");
    let again = descartes(&world, &[&start[..], &["--force", "--json"]].concat());
    assert_all_safe("loop start --json", &again);
    let output = world.root().join("page.html");
    let output = output.to_string_lossy().into_owned();
    let sql = "select * from loops, iterations limit 3";
    // What is for people is masked as well; what is for programs is exact.
    let verbs: [&[&str]; 42] = [
        &["loop", "status"],
        &["loop", "list"],
        &["loop", "list", "--all", "--children"],
        &["loop", "history"],
        &["loop", "logs"],
        &["loop", "logs", "1", "--stderr"],
        &["loop", "logs", "-f"],
        &["loop", "diff", "1"],
        &["loop", "diff", "1", "--stat"],
        &["loop", "rewind", "0"],
        &["loop", "rewind", "1", "--yes"],
        &["loop", "rewind", "--copies"],
        &["loop", "rewind", NASTY, "--yes"],
        &["loop", "say", NASTY],
        &["loop", "set", "--verify", NASTY],
        &["loop", "pause"],
        &["loop", "cancel"],
        &["loop", "status", NASTY],
        &["loop", "status", "--state-file", NASTY],
        &["loop", "start", "--command", "'", "--prompt", NASTY],
        &[
            "loop",
            "start",
            "--command",
            NASTY,
            "--prompt",
            "x",
            "--force",
        ],
        &["loop", "start", "--backend", NASTY, "--prompt", "x"],
        &["loop", "start", "--prompt-file", NASTY],
        &["loop", "start", "--working-dir", NASTY, "--prompt", "x"],
        &["loop", "start", NASTY],
        &["loop", NASTY],
        &["loop", "start", "--max-iterations", NASTY],
        &["loop", "resume", NASTY],
        &["agents", "show", NASTY],
        &["completions", NASTY],
        &["query", sql],
        &["query", sql, "--csv"],
        &["query", NASTY],
        &["report", "--output", "-"],
        &["report", "--output", &output],
        &["work"],
        &["clean", "--older", "0s"],
        &["config", "show"],
        &["doctor"],
        &["roadmap", "check", NASTY],
        &["roadmap", "run", NASTY],
        &["spec", NASTY, "--roadmap", NASTY],
    ];
    for verb in verbs {
        let run = world.run_within(world.descartes(verb), LONG);
        assert_masked(&verb.join(" "), &run);
    }
    for verb in [
        &["loop", "status", "--json"][..],
        &["loop", "list", "--all", "--json"],
        &["loop", "history", "--json"],
        &["loop", "logs", "--json"],
        &["loop", "diff", "1", "--json"],
        &["loop", "rewind", "1", "--yes", "--json"],
        &["query", sql, "--json"],
        &["work", "--json"],
        &["config", "show", "--json"],
        &["clean", "--json"],
    ] {
        let run = world.run_within(world.descartes(verb), LONG);
        assert_all_safe(&verb.join(" "), &run);
    }
    // The way to the bytes.
    let raw = descartes(&world, &["loop", "logs", "--raw"]);
    assert!(
        raw.stdout().contains(NASTY) && raw.stdout().contains(KEY),
        "{raw}"
    );
    let patch = descartes(&world, &["loop", "diff", "1", "--raw"]);
    assert!(patch.stdout().contains(NASTY), "{patch}");
    let shown = descartes(&world, &["loop", "diff", "1"]);
    assert!(shown.stderr().contains("--raw"), "{shown}");
    let page = std::fs::read(output).unwrap();
    assert_safe("the page", &page);
    assert!(!String::from_utf8_lossy(&page).contains(KEY));
}

#[test]
fn the_words_of_an_agent_that_is_understood_are_cleaned_and_masked_wherever_they_are_told() {
    let world = World::in_memory();
    let words = serde_json::to_string(&format!("API Error: {NASTY} {KEY}")).unwrap();
    let line = format!(
        r#"{{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":1,"result":{words},"session_id":"s","permission_denials":[]}}"#
    );
    let text = serde_json::to_string(&format!("I say {NASTY}\u{1b}[31m {KEY}")).unwrap();
    let said = format!(
        r#"{{"type":"assistant","message":{{"id":"m","role":"assistant","content":[{{"type":"text","text":{text}}}]}}}}"#
    );
    world.write("said", format!("{said}\n{line}\n"));
    let agent = world.program("claude", "#!/bin/sh\ncat said\nexit 1\n");
    let agent = agent.to_string_lossy().into_owned();
    let start = [
        "loop",
        "start",
        "--command",
        &agent,
        "--backend",
        "claude",
        "--permissions",
        "edit",
        "--prompt",
        "x",
        "-m",
        "1",
        "--max-failures",
        "1",
    ];
    let run = descartes(&world, &start);
    assert_masked("loop start", &run);
    assert!(run.stdout().contains("I say nasty"), "{run}");
    assert!(run.stdout().contains("!! API Error: nasty"), "{run}");
    for verb in [
        &["loop", "status"][..],
        &["loop", "history"],
        &["loop", "logs"],
        &["loop", "list"],
        &["report", "--output", "-"],
    ] {
        let run = descartes(&world, verb);
        assert_masked(&verb.join(" "), &run);
    }
    let status = descartes(&world, &["loop", "status"]).stdout();
    assert!(status.contains("API Error: nasty"), "{status}");
}

#[test]
fn on_a_terminal_only_harmless_colours_pass() {
    let world = World::in_memory();
    let agent = nasty_agent(&world);
    let mut command = world.descartes([
        "loop",
        "start",
        "--command",
        &agent,
        "--name",
        NASTY,
        "--prompt",
        NASTY,
        "--no-promise",
        "-m",
        "2",
        "--verify",
        &format!("echo '{NASTY} {KEY}'; exit 1"),
    ]);
    command.env("TERM", "xterm-256color");
    let mut pty = Pty::spawn(&command, Size::default());
    assert_eq!(pty.wait(LONG).code(), Some(2));
    assert_tame("loop start", &pty.raw());
    for verb in [
        &["loop", "status"][..],
        &["loop", "logs"],
        &["loop", "history"],
    ] {
        let mut command = world.descartes(verb);
        command.env("TERM", "xterm-256color");
        let mut pty = Pty::spawn(&command, Size::default());
        assert_eq!(pty.wait(LONG).code(), Some(0));
        assert_tame(&verb.join(" "), &pty.raw());
    }
    let mut command = world.descartes(["watch"]);
    command.env("TERM", "xterm-256color");
    let mut pty = Pty::spawn(&command, Size::default());
    pty.wait_text("Iteration limit");
    for key in ["1", "2", "3", "4", "5"] {
        pty.send(key);
        pty.wait_screen(LONG, |screen| !screen.is_empty());
    }
    pty.send("q");
    pty.wait(LONG);
    assert_tame("watch", &pty.raw());
}

/// Our own drawing moves the cursor; theirs must not.
#[track_caller]
fn assert_tame(what: &str, raw: &[u8]) {
    let text = String::from_utf8_lossy(raw);
    for bad in [
        "pwn",
        "0;c1",
        "\u{1b}]",
        "\u{1b}[8m",
        ";8m",
        "\u{202e}",
        "\u{2066}",
        "\u{200b}",
        "\u{e0041}",
        "\u{9b}",
        "\u{9d}",
        KEY,
    ] {
        assert!(!text.contains(bad), "{what} shows {bad:?}: {text:?}");
    }
}

#[test]
fn tasks_and_branches_are_shown_cleaned() {
    let tasks = format!("# Roadmap: {NASTY}\n\n## Tasks\n- [ ] **a**: Do {NASTY} {KEY}\n");
    let world = task_common::repository("ROADMAP.md", tasks);
    let agent = nasty_agent(&world);
    let roadmap = ["roadmap", "run", "ROADMAP.md", "--command", &agent];
    let run = task_common::run(&world, &roadmap);
    assert_masked("roadmap run", &run);
    for verb in [
        &["roadmap", "status", "ROADMAP.md"][..],
        &["roadmap", "check", "ROADMAP.md"],
        &["graph", "--roadmap", "ROADMAP.md"],
        &["graph", "--roadmap", "ROADMAP.md", "--format", "mermaid"],
        &["graph", "--roadmap", "ROADMAP.md", "--format", "svg"],
        &["spec", "a", "--roadmap", "ROADMAP.md"],
        &["loop", "list", "--all", "--children"],
        &["loop", "list", "--all", "--json"],
        &["work"],
        &["work", "--json"],
    ] {
        let run = task_common::run(&world, verb);
        assert_all_safe(&verb.join(" "), &run);
    }
}

#[test]
fn arguments_that_are_no_text_are_refused_in_text() {
    let world = World::in_memory();
    for verb in [
        &["loop", "status"][..],
        &["loop", "start", "--prompt"],
        &["loop"],
    ] {
        let mut command = world.descartes(verb);
        command.arg(OsStr::from_bytes(b"\xff\x9b2J\x1b[2J"));
        let run = world.run(command);
        assert_all_safe(&verb.join(" "), &run);
        assert_ne!(run.code(), Some(0));
    }
}

#[test]
fn output_that_cannot_be_written_is_no_success() {
    let world = World::in_memory();
    start_command(&world, "print hello\npromise", &[])
        .status()
        .unwrap();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for verb in [
        &["loop", "status"][..],
        &["loop", "status", "--json"],
        &["loop", "list"],
        &["loop", "list", "--json"],
        &["loop", "history"],
        &["loop", "history", "--json"],
        &["loop", "logs"],
        &["loop", "logs", "--raw"],
        &["loop", "logs", "--json"],
        &["loop", "status", "--watch"],
        &["query", "select name from loops"],
        &["query", "select name from loops", "--json"],
        &["query", "--schema"],
        &["report", "--output", "-"],
        &["completions", "bash"],
        &["man"],
        &["config", "show"],
        &["config", "defaults"],
        &["agents"],
        &["agents", "show", "claude"],
        &["doctor"],
        &["--help"],
        &["--version"],
        &["loop", "start", "--help"],
        &[
            "loop",
            "start",
            "--command",
            "true",
            "--prompt",
            "x",
            "--dry-run",
            "--force",
        ],
    ] {
        let mut command = world.descartes(verb);
        command.stdout(Stdio::from(full())).stderr(Stdio::piped());
        let ended = command.spawn().unwrap().wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(1), "{verb:?}: {said}");
        assert!(
            said.contains("cannot write to standard output"),
            "{verb:?}: {said}"
        );
        assert!(said.contains("No space left"), "{verb:?}: {said}");
        // A reader that has seen enough is no error.
        let mut command = world.descartes(verb);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(
            !said.contains("panic") && !said.contains("cannot write"),
            "{verb:?}: {said}"
        );
        assert_ne!(ended.status.code(), None, "{verb:?}");
    }
}

#[test]
fn a_variable_can_be_inherited_so_that_no_list_of_processes_shows_it() {
    let world = World::in_memory();
    let agent = world.agent("dump-env seen\npromise");
    let flags = [
        "loop",
        "start",
        "--command",
        &agent,
        "--prompt",
        "x",
        "--env",
        "MY_KEY",
    ];
    let missing = descartes(&world, &flags);
    missing.assert_code(64);
    assert!(missing.stderr().contains("--env MY_KEY"), "{missing}");
    assert!(
        missing.stderr().contains("hint: export MY_KEY"),
        "{missing}"
    );
    let mut command = world.descartes(flags);
    command.env("MY_KEY", "s3cret-value");
    world.run(command).assert_code(0);
    assert!(world.read("seen").contains("MY_KEY=s3cret-value"));
    let state = world.read(".descartes/loop-state.json");
    assert!(
        state.contains("MY_KEY") && !state.contains("s3cret-value"),
        "{state}"
    );
}
