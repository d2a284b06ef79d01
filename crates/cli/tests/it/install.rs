//! `descartes install claude`, looked at from outside and by the real Claude Code.

use std::time::Duration;

use descartes_testkit::model::ModelServer;
use descartes_testkit::real_clis::{Options, Permission, RealCli};
use descartes_testkit::{World, eventually};
use serde_json::{Value, json};

use crate::common::{descartes, json_lines};

const LONG: Duration = descartes_testkit::PATIENCE;
const PLUGIN: &str = ".claude/skills/ralph-wiggum";

/// Everything below a folder, sorted.
fn below(folder: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten().flatten() {
            match entry.path().is_dir() {
                true => open.push(entry.path()),
                false => found.push(
                    entry
                        .path()
                        .strip_prefix(folder)
                        .unwrap()
                        .display()
                        .to_string(),
                ),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn exactly_what_was_written_is_taken_away() {
    let world = World::in_memory();
    let mine = world.home().join(".claude/skills/mine/SKILL.md");
    std::fs::create_dir_all(mine.parent().unwrap()).unwrap();
    std::fs::write(&mine, "mine").unwrap();
    let before = below(&world.home());
    descartes(&world, &["uninstall", "claude"]).assert_code(65);
    let installed = descartes(&world, &["install", "claude"]);
    installed.assert_code(0);
    let folder = world.home().join(PLUGIN);
    assert_eq!(installed.stdout().trim(), folder.display().to_string());
    for name in ["ralph-loop", "cancel-ralph", "help"] {
        assert!(
            folder.join(format!("commands/{name}.md")).is_file(),
            "{name}"
        );
    }
    descartes(&world, &["install", "claude", "--user"]).assert_code(0);
    descartes(&world, &["uninstall", "claude"]).assert_code(0);
    assert_eq!(below(&world.home()), before);
    descartes(&world, &["install", "claude", "--project"]).assert_code(0);
    assert!(world.has(format!("{PLUGIN}/.claude-plugin/plugin.json")));
    assert_eq!(
        below(&world.home()),
        before,
        "the project's is the project's"
    );
    descartes(&world, &["uninstall", "claude", "--project"]).assert_code(0);
    assert!(!world.has(PLUGIN));
}

#[test]
fn what_a_person_edited_or_wrote_is_neither_replaced_nor_removed() {
    let world = World::in_memory();
    descartes(&world, &["install", "claude", "--project"]).assert_code(0);
    let edited = format!("{PLUGIN}/commands/help.md");
    world.write(&edited, "my own help");
    for verb in ["install", "uninstall"] {
        let run = descartes(&world, &[verb, "claude", "--project"]);
        run.assert_code(65);
        assert!(
            run.stderr().contains("help.md") && run.stderr().contains("--force"),
            "{run}"
        );
        assert_eq!(world.read(&edited), "my own help");
        assert!(
            world.has(format!("{PLUGIN}/commands/ralph-loop.md")),
            "nothing was done"
        );
    }
    descartes(&world, &["install", "claude", "--project", "--force"]).assert_code(0);
    assert!(world.read(&edited).contains("ralph-wiggum"));
    descartes(&world, &["uninstall", "claude", "--project"]).assert_code(0);
    world.write(format!("{PLUGIN}/SKILL.md"), "another's");
    let run = descartes(&world, &["install", "claude", "--project"]);
    run.assert_code(65);
    assert!(run.stderr().contains("not written by descartes"), "{run}");
    descartes(&world, &["install", "emacs"]).assert_code(64);
}

#[test]
fn real_claude_lists_the_commands_and_one_of_them_starts_a_real_loop() {
    let (world, server) = (World::in_memory(), ModelServer::start().unwrap());
    server.lane(
        "t",
        json!([{"text": "It was started."}, {"text": "It was started."}]),
    );
    let options = Options {
        permission: Permission::Agent,
        ..Options::default()
    };
    let Some(launch) = RealCli::Claude.launch(&world, &server.url("t"), &options) else {
        eprintln!("skipped: claude is not installed");
        return;
    };
    world.git_init();
    world.write(
        ".scud/tasks/tasks.scg",
        "# SCUD Graph v1\n# Phase: auth\n\n@nodes\n1 | Model | P | 3 | H\n",
    );
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "tasks"]);
    std::os::unix::fs::symlink(
        descartes_testkit::descartes(),
        world.bin().join("descartes"),
    )
    .unwrap();
    world.program(
        "worker",
        "#!/bin/sh\necho done > work-$DESCARTES_TASK_ID.txt\necho '<promise>COMPLETE</promise>'\n",
    );
    descartes(&world, &["install", "claude"]).assert_code(0);
    let typed =
        "/ralph-wiggum:ralph-loop auth --command worker --verify 'test -e work-1.txt' --name night";
    let run = world.run_within(launch.command(&world, typed), LONG);
    run.assert_code(0);
    let said = json_lines(&run.stdout());
    let init = said.iter().find(|line| line["subtype"] == "init").unwrap();
    let commands: Vec<&str> = init["slash_commands"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    for name in ["ralph-loop", "cancel-ralph", "help"] {
        assert!(
            commands.contains(&&*format!("ralph-wiggum:{name}")),
            "{commands:?}"
        );
    }
    eventually("the loop's end", LONG, || {
        let list = descartes(&world, &["loop", "status", "night", "--json"]).stdout();
        serde_json::from_str::<Value>(&list).is_ok_and(|state| state["status"] == "ended")
    });
    let state: Value =
        serde_json::from_str(&descartes(&world, &["loop", "status", "night", "--json"]).stdout())
            .unwrap();
    assert_eq!(state["reason"]["type"], "gates_passed", "{state}");
    assert!(world.has("work-1.txt"), "its work has landed");
    // What the loop printed stands in what the model was told.
    let log = server.log("t");
    let told = |text: &str| {
        log.iter()
            .flat_map(|entry| &entry.users)
            .any(|user| user.head.contains(text) || user.tail.contains(text))
    };
    assert!(told("running in the background"), "{log:?}");
    world.assert_no_survivors();
}

/// The shell commands of a slash command, with what was typed behind it.
fn shell_of(world: &World, command: &str, typed: &str) -> Vec<String> {
    let file = world
        .home()
        .join(PLUGIN)
        .join(format!("commands/{command}.md"));
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("!`"));
    let lines = lines.map(|line| line.trim_end_matches('`').replace("$ARGUMENTS", typed));
    lines.collect()
}

/// A slash command whose shell fails is shown as a shell failure, and Claude never hears of it.
#[test]
fn a_refusal_of_a_slash_command_is_told_and_not_a_failure_of_the_shell() {
    let world = World::in_memory();
    world.git_init();
    world.write(
        ".scud/tasks/tasks.scg",
        "# SCUD Graph v1\n# Phase: auth\n\n@nodes\n1 | Model | P | 3 | H\n",
    );
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "tasks"]);
    world.write("plan.md", "# Plan\n");
    world.program("claude", "#!/bin/sh\nexit 0\n");
    descartes(&world, &["install", "claude"]).assert_code(0);
    let folder = descartes_testkit::descartes().parent().unwrap().to_owned();
    let path = format!(
        "{}:{}:/usr/bin:/bin",
        world.bin().display(),
        folder.display()
    );
    for (command, typed, told) in [
        // As it stands in the guide: its agents could not ask.
        ("ralph-loop", "auth --plan plan.md", "--permissions edit"),
        ("ralph-loop", "nope", "nope"),
        ("ralph-loop", "auth --parallel many", "many"),
        ("ralph-loop", "", "--scud-tag"),
        ("cancel-ralph", "nobody", "nobody"),
    ] {
        let shell = shell_of(&world, command, typed);
        assert_eq!(shell.len(), 1, "{command}");
        let mut run = world.command("bash");
        run.args(["-c", &shell[0]]).env("PATH", &path);
        let run = world.run(run);
        run.assert_code(0);
        assert!(run.stdout().contains("error:"), "{typed}: {run}");
        assert!(run.stdout().contains(told), "{typed}: {run}");
        assert!(run.stdout().contains("(exit code 6"), "{typed}: {run}");
    }
    assert!(crate::common::loops(&world).is_empty());
}

#[test]
fn real_claude_hears_why_a_loop_was_not_started() {
    let (world, server) = (World::in_memory(), ModelServer::start().unwrap());
    server.lane("t", json!([{"text": "I see."}, {"text": "I see."}]));
    let options = Options {
        permission: Permission::Agent,
        ..Options::default()
    };
    let Some(launch) = RealCli::Claude.launch(&world, &server.url("t"), &options) else {
        eprintln!("skipped: claude is not installed");
        return;
    };
    std::os::unix::fs::symlink(
        descartes_testkit::descartes(),
        world.bin().join("descartes"),
    )
    .unwrap();
    descartes(&world, &["install", "claude"]).assert_code(0);
    let typed = "/ralph-wiggum:ralph-loop auth --plan plan.md";
    let run = world.run_within(launch.command(&world, typed), LONG);
    run.assert_code(0);
    assert!(!run.stdout().contains("Shell command failed"), "{run}");
    let log = server.log("t");
    let told = |text: &str| {
        log.iter()
            .flat_map(|entry| &entry.users)
            .any(|user| user.head.contains(text) || user.tail.contains(text))
    };
    assert!(told("This command was run"), "{log:?}");
}
