//! `descartes install codex|gemini|opencode|cursor`: the entry stands in each one's settings, every other
//! byte stays, and `uninstall` takes just that back.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use descartes_testkit::World;
use descartes_testkit::pty::{Pty, Size};

use crate::common::descartes;

const SOON: Duration = descartes_testkit::PATIENCE;

/// Each program, its settings file below home, and one as a person writes it.
const CLIENTS: [(&str, &str, &str); 4] = [
    (
        "codex",
        ".codex/config.toml",
        "# mine\nmodel = \"gpt\"   # the good one\n\n[mcp_servers.docs]\ncommand = \"x\"\n\n[tui]\nnotifications = true\n",
    ),
    (
        "gemini",
        ".gemini/settings.json",
        "{\n  // mine\n  \"theme\": \"Atom\",\n  \"mcpServers\": {\n    \"docs\": { \"command\": \"x\" } // keep\n  }\n}\n",
    ),
    (
        "opencode",
        ".config/opencode/opencode.jsonc",
        "{\n\t\"$schema\": \"https://opencode.ai/config.json\",\n\t\"mcp\": {\n\t}, /* none */\n}\n",
    ),
    ("cursor", ".cursor/mcp.json", "{\"mcpServers\":{}}"),
];

/// A world whose settings file of a program has this text.
fn with_settings(path: &str, text: &str) -> (World, PathBuf) {
    let world = World::in_memory();
    let file = world.home().join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, text).unwrap();
    (world, file)
}

#[test]
fn the_entry_is_shown_and_written_once_and_taken_back_to_the_byte() {
    for (tool, path, text) in CLIENTS {
        let (world, file) = with_settings(path, text);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let run = descartes(&world, &["install", tool, "--yes"]);
        run.assert_code(0);
        assert_eq!(run.stdout().trim(), file.display().to_string());
        assert!(
            run.stderr().contains("+ ") && run.stderr().contains("mcp"),
            "{run}"
        );
        let come = std::fs::read_to_string(&file).unwrap();
        assert!(
            come.contains("descartes") && come.len() > text.len(),
            "{come}"
        );
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        descartes(&world, &["install", tool, "--yes"]).assert_code(0);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), come, "once");
        let run = descartes(&world, &["uninstall", tool, "--yes"]);
        run.assert_code(0);
        assert!(run.stderr().contains("- "), "{run}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        descartes(&world, &["uninstall", tool, "--yes"]).assert_code(65);
    }
}

#[test]
fn a_file_that_was_not_there_is_made_and_goes_again() {
    for (tool, path, _) in CLIENTS {
        let world = World::in_memory();
        let file = world.home().join(path.replace(".jsonc", ".json"));
        descartes(&world, &["install", tool, "-y"]).assert_code(0);
        assert!(
            std::fs::read_to_string(&file)
                .unwrap()
                .contains("descartes"),
            "{tool}"
        );
        descartes(&world, &["uninstall", tool, "-y"]).assert_code(0);
        assert!(!file.parent().unwrap().exists(), "{tool}");
        descartes(&world, &["install", tool, "--project", "--yes"]).assert_code(0);
        assert!(!file.exists(), "{tool}: the project's is the project's");
        descartes(&world, &["uninstall", tool, "--project", "--yes"]).assert_code(0);
        assert_eq!(
            std::fs::read_dir(world.project()).unwrap().count(),
            0,
            "{tool}"
        );
    }
}

#[test]
fn what_was_edited_since_stays_when_the_entry_goes() {
    let (world, file) = with_settings(CLIENTS[1].1, CLIENTS[1].2);
    descartes(&world, &["install", "gemini", "--yes"]).assert_code(0);
    let come = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, come.replace("Atom", "Dracula")).unwrap();
    descartes(&world, &["uninstall", "gemini", "--yes"]).assert_code(0);
    let left = std::fs::read_to_string(&file).unwrap();
    assert_eq!(left, CLIENTS[1].2.replace("Atom", "Dracula"));
    let (world, file) = with_settings(CLIENTS[0].1, CLIENTS[0].2);
    descartes(&world, &["install", "codex", "--yes"]).assert_code(0);
    let come = std::fs::read_to_string(&file).unwrap();
    // Flags that a person gave the server are part of the entry.
    let edited = come.replace("[\"mcp\"]", "[\"mcp\", \"--permissions\", \"edit\"]") + "\n[more]\n";
    assert_ne!(edited, come);
    std::fs::write(&file, &edited).unwrap();
    let run = descartes(&world, &["install", "codex", "--yes"]);
    run.assert_code(65);
    assert!(
        run.stderr().contains("descartes install codex --force"),
        "{run}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), edited);
    descartes(&world, &["uninstall", "codex", "--yes"]).assert_code(0);
    let left = std::fs::read_to_string(&file).unwrap();
    assert!(
        left.starts_with(CLIENTS[0].2) && left.ends_with("[more]\n"),
        "{left}"
    );
    assert!(!left.contains("descartes"), "{left}");
}

#[test]
fn nothing_is_changed_without_an_answer() {
    let (tool, path, text) = CLIENTS[0];
    let (world, file) = with_settings(path, text);
    let run = descartes(&world, &["install", tool]);
    run.assert_code(65);
    assert!(
        run.stderr().contains("descartes install codex --yes"),
        "{run}"
    );
    assert!(
        run.stderr().contains("+ [mcp_servers.descartes]"),
        "shown all the same: {run}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    for (answer, code) in [("n\r", 65), ("y\r", 0)] {
        let mut pty = Pty::spawn(&world.descartes(["install", tool]), Size::default());
        pty.wait_text("write it? [y/N]");
        pty.send(answer);
        assert_eq!(pty.wait(SOON).code(), Some(code));
        let come = std::fs::read_to_string(&file).unwrap();
        assert_eq!(come.contains("descartes"), code == 0);
    }
}

#[test]
fn what_cannot_be_read_or_is_not_ours_is_left_alone() {
    for (tool, path, text, said) in [
        (
            "codex",
            ".codex/config.toml",
            "a = 1\nb = = 2\n",
            "config.toml:2:",
        ),
        (
            "gemini",
            ".gemini/settings.json",
            "{\n  \"a\": 1\n  \"b\": 2\n}\n",
            "settings.json:3:3: expected `,` or `}`",
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            "{\"mcpServers\": []}",
            "mcp.json:1:16: `mcpServers` is no object",
        ),
        (
            "opencode",
            ".config/opencode/opencode.json",
            "[]",
            "opencode.json:1:1: expected an object",
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            "{\"mcpServers\":{\"descartes\":{\"url\":\"x\"}}}",
            "is not of descartes",
        ),
    ] {
        let (world, file) = with_settings(path, text);
        let run = descartes(&world, &["install", tool, "--yes"]);
        run.assert_code(65);
        assert!(
            run.stderr().contains(said) && run.stderr().contains("hint:"),
            "{run}"
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
    let foreign = "{\"mcpServers\":{\"a\":{},\"descartes\":{\"url\":\"x\"}}}";
    let (world, file) = with_settings(".cursor/mcp.json", foreign);
    descartes(&world, &["uninstall", "cursor", "--yes"]).assert_code(65);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), foreign);
    descartes(&world, &["install", "cursor", "--yes", "--force"]).assert_code(0);
    let come = std::fs::read_to_string(&file).unwrap();
    assert!(come.contains("\"mcp\"") && !come.contains("url"), "{come}");
    descartes(&world, &["uninstall", "cursor", "--yes"]).assert_code(0);
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        "{\"mcpServers\":{\"a\":{}}}"
    );
}

#[test]
fn a_link_stays_a_link_and_places_of_ones_own_are_used() {
    let world = World::in_memory();
    let real = world.write("dotfiles/codex.toml", "model = \"x\"\n");
    let folder = world.root().join("own");
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(&real, folder.join("config.toml")).unwrap();
    let mut command = world.descartes(["install", "codex", "--yes"]);
    command.env("CODEX_HOME", &folder);
    world.run(command).assert_code(0);
    assert!(folder.join("config.toml").is_symlink());
    let text = std::fs::read_to_string(real).unwrap();
    assert!(
        text.starts_with("model = \"x\"\n\n[mcp_servers.descartes]\n"),
        "{text}"
    );
    let run = descartes(&world, &["install", "claude", "--yes"]);
    run.assert_code(64);
    assert!(run.stderr().contains("--yes"), "{run}");
}

#[test]
fn an_agent_enters_nothing_into_anybodys_settings() {
    let world = World::in_memory();
    let program = descartes_testkit::world::bins::descartes()
        .display()
        .to_string();
    let agent = world.program(
        "agent.sh",
        &format!("#!/bin/sh\n'{program}' install codex --yes 2>said; echo $? >code\necho '<promise>COMPLETE</promise>'\n"),
    );
    let agent = agent.display().to_string();
    descartes(
        &world,
        &["loop", "start", "-c", &agent, "-p", "go", "-m", "1"],
    )
    .assert_code(0);
    assert_eq!(world.read("code").trim(), "65", "{}", world.read("said"));
    assert!(!world.home().join(".codex").exists());
}
