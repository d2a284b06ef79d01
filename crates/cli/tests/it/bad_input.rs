//! What cannot work is refused with an error, a hint and an exit code; nothing is changed.

use std::os::unix::fs::PermissionsExt;

use descartes_testkit::World;
use descartes_testkit::world::Finished;

use crate::common::{CLAIMS, descartes, events, loops, start, start_command, state};

/// Refused: said so, and nothing is there that was not there before.
#[track_caller]
fn assert_refused(world: &World, run: &Finished, code: i32, words: &str) {
    run.assert_code(code);
    let err = run.stderr();
    assert!(err.contains("error: ") && err.contains("\nhint: "), "{run}");
    assert!(
        err.to_lowercase().contains(&words.to_lowercase()),
        "{words}: {run}"
    );
    assert_eq!(run.stdout(), "", "{run}");
    assert!(loops(world).is_empty(), "{run}");
    assert!(!world.has("ran"), "{run}");
}

#[test]
fn what_newcomers_type_is_answered_with_what_they_mean() {
    let world = World::in_memory();
    for (words, meant) in [
        (&["start", "-p", "x"][..], "descartes loop start"),
        (&["run"], "descartes loop start"),
        (&["status"], "descartes loop status"),
        (
            &["loop", "start", "fix", "it"],
            "put the whole task in quotes, behind --prompt",
        ),
        (&["loop", "start"], "descartes init"),
        (&["loop", "start", "-p", "x", "--max-duration", "0"], "30m"),
    ] {
        let run = descartes(&world, words);
        assert_refused(&world, &run, 64, meant);
    }
}

#[test]
fn command_lines_that_make_no_loop() {
    let table: [(&[&str], i32, &str); 12] = [
        (&["--command", "my 'agent", "-p", "x"], 64, "quot"),
        (&["--command", "", "-p", "x"], 64, "--command is empty"),
        (
            &["--command", "no-such-agent", "-p", "x"],
            1,
            "no-such-agent",
        ),
        (&["--command", "./plain.txt", "-p", "x"], 1, "plain.txt"),
        (&["--command", "true", "-p", " "], 64, "prompt is empty"),
        (&["--command", "true"], 64, "no prompt"),
        (&["--command", "true", "--prompt-file", "nul.md"], 64, "NUL"),
        (
            &["--command", "true", "--prompt-file", "none.md"],
            64,
            "none.md",
        ),
        (
            &["--command", "true", "-p", "x", "--backend", "clod"],
            64,
            "unknown backend",
        ),
        (
            &["--command", "true", "-p", "x", "-m", "0"],
            64,
            "--max-iterations 0",
        ),
        (
            &["--command", "true", "-p", "x", "-w", "nowhere"],
            64,
            "nowhere",
        ),
        (
            &["--command", "true", "-p", "x", "--verify", "no-such-gate"],
            64,
            "no-such-gate",
        ),
    ];
    for (flags, code, words) in table {
        let world = World::in_memory();
        world.write("plain.txt", "not executable");
        world.write("nul.md", "a\0b");
        let run = descartes(&world, &[&["loop", "start"], flags].concat());
        assert_refused(&world, &run, code, words);
        assert!(!world.has(".descartes"), "{flags:?}");
    }
}

#[test]
fn more_values_that_cannot_be() {
    let table: [(&[&str], &str); 21] = [
        (&["--plan", "nofile"], "--scud-tag"),
        (&["--handoff", "nofile"], "--scud-tag"),
        (&["--parallel"], "--scud-tag"),
        (&["--in-place"], "--scud-tag"),
        (&["--no-wave-barrier"], "--scud-tag"),
        (&["--no-auto-commit-waves"], "--scud-tag"),
        (&["--no-sub-agents"], "--scud-tag"),
        (&["--max-iterations-per-task", "2"], "--scud-tag"),
        (&["--spec-template", "{task}"], "--scud-tag"),
        (&["--timeout", "0"], "--timeout"),
        (&["--verify-timeout", "0s"], "--verify-timeout"),
        (&["--name", " "], "--name"),
        (
            &["--branch", "--branch-template", "b{"],
            "--branch-template",
        ),
        (&["--completion-promise", "<promise>X</promise>"], "promise"),
        (&["--completion-promise", "BLOCKED"], "both"),
        (&["--max-failures", "0"], "--max-failures 0"),
        (&["--verify", ""], "empty gate"),
        (&["--verify", "if then"], "not valid shell syntax"),
        (&["--spec-file", "none.md"], "none.md"),
        (&["--auto-commit", "--commit-template", "{who}"], "{who}"),
        (&["--fallback", "a 'b"], "--fallback"),
    ];
    for (flags, words) in table {
        let world = World::in_memory();
        let run = start(&world, "touch ran", flags);
        assert_refused(&world, &run, 64, words);
    }
    let world = World::in_memory();
    let run = start(&world, "touch ran", &["--max-cost", "5"]);
    assert_refused(&world, &run, 65, "--max-cost");
}

#[test]
fn a_working_directory_that_cannot_be_read() {
    if nix::unistd::geteuid().is_root() {
        return; // Root reads everything.
    }
    let world = World::in_memory();
    let dir = world.path("closed");
    std::fs::create_dir(&dir).unwrap();
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o0)).unwrap();
    let run = start(&world, "touch ran", &["-w", "closed"]);
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_refused(&world, &run, 64, "closed");
}

#[test]
fn state_files_that_are_torn_foreign_or_newer_are_named_and_kept() {
    let table = [
        (r#"{"version":"1.0","config":{"command":"x"#, "byte"),
        ("", "empty"),
        ("hello, world", "byte"),
        (r#"{"version":"1.0","something":"else"}"#, "config"),
        (
            r#"{"version":"9.0","config":{"command":"x","prompt":"y"}}"#,
            "9.0",
        ),
    ];
    for (text, words) in table {
        for verb in ["start", "resume"] {
            let world = World::in_memory();
            world.write(".descartes/loop-state.json", text);
            let run = match verb {
                "start" => start(&world, "touch ran", &[]),
                _ => descartes(&world, &["loop", "resume"]),
            };
            assert_refused(&world, &run, 65, words);
            assert!(run.stderr().contains("loop-state.json"), "{run}");
            assert_eq!(world.read(".descartes/loop-state.json"), text);
        }
    }
}

#[test]
fn a_state_file_that_a_live_loop_holds() {
    let world = World::in_memory();
    let mut first = start_command(
        &world,
        "touch up\nwait-file go\npromise",
        &["--name", "first"],
    );
    let mut child = first.stdout(std::process::Stdio::null()).spawn().unwrap();
    descartes_testkit::eventually("the first loop", std::time::Duration::from_secs(60), || {
        world.has("up")
    });
    for run in [
        start(&world, CLAIMS, &[]),
        start(&world, CLAIMS, &["--force"]),
        descartes(&world, &["loop", "resume"]),
    ] {
        run.assert_code(65);
        let err = run.stderr();
        assert!(err.contains(&format!("pid {}", child.id())), "{run}");
        assert!(
            err.contains("hint: ") && err.contains("loop cancel"),
            "{run}"
        );
    }
    assert_eq!(loops(&world).len(), 1);
    world.write("go", "");
    assert!(child.wait().unwrap().success());
}

#[test]
fn no_state_file_to_resume() {
    let world = World::in_memory();
    let run = descartes(&world, &["loop", "resume"]);
    assert_refused(&world, &run, 65, "no state file");
    let run = descartes(&world, &["loop", "resume", "nobody"]);
    assert_refused(&world, &run, 65, "no loop");
}

#[test]
fn git_that_refuses_a_commit_is_a_warning_and_the_loop_goes_on() {
    let script = "append work.txt x\npromise";
    let identity = World::in_memory();
    identity.git_init();
    std::fs::write(
        identity.home().join(".gitconfig"),
        "[user]\n\tuseConfigOnly = true\n",
    )
    .unwrap();
    let hook = World::in_memory();
    hook.git_init();
    let path = hook.write(
        ".git/hooks/pre-commit",
        "#!/bin/sh\necho the hook says no >&2\nexit 1\n",
    );
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    for (world, words) in [(identity, "identity"), (hook, "the hook says no")] {
        world.write("mine.txt", "staged by the person\n");
        world.git(["add", "mine.txt"]);
        start(&world, script, &["--auto-commit"]).assert_code(0);
        let warnings = events(&world, "warning");
        let told = warnings.iter().any(|warning| {
            warning["message"]
                .as_str()
                .unwrap()
                .to_lowercase()
                .contains(words)
        });
        assert!(told, "{words}: {warnings:?}");
        assert_eq!(world.git(["log", "--format=%s"]), "begin");
        assert!(world.has("work.txt"));
        let staged = world.git(["diff", "--cached", "--name-only"]);
        assert_eq!(staged, "mine.txt");
    }
}

#[test]
fn a_detached_head_and_no_repository_do_not_stop_a_loop() {
    let script = "append work.txt x\npromise";
    let detached = World::in_memory();
    detached.git_init();
    detached.git(["checkout", "--quiet", "--detach"]);
    start(&detached, script, &["--auto-commit"]).assert_code(0);
    assert_eq!(
        detached.git(["log", "-1", "--format=%s"]),
        "loop: iteration 1"
    );
    let none = World::in_memory();
    start(&none, script, &["--auto-commit"]).assert_code(0);
    assert_eq!(state(&none)["iteration"], 1);
}

#[test]
fn a_merge_under_way_is_left_to_the_person() {
    let world = World::in_memory();
    world.git_init();
    world.git(["checkout", "--quiet", "-b", "other"]);
    world.write("README.md", "theirs\n");
    world.git(["commit", "--quiet", "--all", "--message", "theirs"]);
    world.git(["checkout", "--quiet", "main"]);
    world.write("README.md", "ours\n");
    world.git(["commit", "--quiet", "--all", "--message", "ours"]);
    let mut merge = world.command("git");
    merge.args(["merge", "--quiet", "other"]);
    world.run(merge).assert_code(1);
    start(&world, "append work.txt x\npromise", &["--auto-commit"]).assert_code(0);
    assert!(world.has(".git/MERGE_HEAD"));
    assert_eq!(world.git(["log", "-1", "--format=%s"]), "ours");
    let told = events(&world, "warning")
        .iter()
        .any(|warning| warning["message"].as_str().unwrap().contains("merge"));
    assert!(told);
}

#[test]
fn a_machine_without_git_runs_loops_and_says_what_is_missing() {
    let world = World::in_memory();
    for name in ["sh", "env", "touch"] {
        let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|folder| folder.join(name))
            .find(|path| path.is_file());
        std::os::unix::fs::symlink(found.unwrap(), world.bin().join(name)).unwrap();
    }
    let mut command = start_command(&world, "append work.txt x\npromise", &["--auto-commit"]);
    command.env("PATH", world.bin());
    let run = world.run(command);
    run.assert_code(0);
    let told = events(&world, "warning")
        .iter()
        .any(|warning| warning["message"].as_str().unwrap().contains("git"));
    assert!(told, "{run}");
    let mut doctor = world.descartes(["doctor"]);
    doctor.env("PATH", world.bin());
    let run = world.run(doctor);
    run.assert_code(1);
    assert!(run.stdout().contains("git is not installed"), "{run}");
}

#[test]
fn branch_without_a_repository_is_refused() {
    let world = World::in_memory();
    let run = start(&world, "touch ran", &["--branch"]);
    assert_refused(&world, &run, 65, "branch");
}

#[test]
fn settings_that_cannot_be_used_name_their_place() {
    let world = World::in_memory();
    world.write(".descartes/config.toml", "max_iterations = \"soon\"\n");
    let run = start(&world, "touch ran", &[]);
    assert_refused(&world, &run, 64, "config.toml:1");
    let world = World::in_memory();
    let mut command = start_command(&world, "touch ran", &[]);
    command.env("DESCARTES_TIMEOUT", "soon");
    let run = world.run(command);
    assert_refused(&world, &run, 64, "DESCARTES_TIMEOUT");
}

#[test]
fn an_agent_without_a_program_cannot_be_tested_and_is_told_so() {
    let world = World::in_memory();
    let run = descartes(&world, &["agents", "test", "generic"]);
    run.assert_code(64);
    assert!(run.stderr().contains("`generic` names no program"), "{run}");
    assert!(run.stderr().contains("[agents.mine]"), "{run}");
    // What the hint says works.
    let agent = world.agent("write hello.txt hello ;; promise");
    let config = format!("[agents.mine]\ncommand = {agent:?}\n");
    world.write(".descartes/config.toml", &config);
    descartes(&world, &["trust", "--yes"]).assert_code(0);
    descartes(&world, &["agents", "test", "mine"]).assert_code(0);
}
