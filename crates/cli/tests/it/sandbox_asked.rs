//! Levels that tasks, profiles and workers ask for: the strictest holds, and it is never less.

use descartes_testkit::World;
use serde_json::Value;

use crate::sandbox::{has_bwrap, world};
use crate::task_common::run;

/// Writes what it can see of its network and its home, and does its work.
const LOOKS: &str = "tail -n +3 /proc/net/dev | grep -cv lo: > \"net-$DESCARTES_TASK_ID\"
     echo stolen >> ~/.bashrc
     git add -A; git commit -qm work; echo '<promise>COMPLETE</promise>'";

fn bashrc(world: &World) -> String {
    std::fs::read_to_string(world.home().join(".bashrc")).unwrap()
}

/// A folder with the machine's programs, but without bwrap.
pub fn without_bwrap(world: &World) -> String {
    let programs = [
        "sh",
        "true",
        "cat",
        "touch",
        "git",
        "env",
        "test",
        "tail",
        "grep",
        "sleep",
        "setsid",
        "python3",
        "unshare",
        "mount",
        "umount",
        "chown",
        "find",
        "sort",
        "sha256sum",
        "setpriv",
        "ls",
    ];
    for program in programs {
        let places = ["/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/sbin"];
        let mut places = places.iter().map(|folder| format!("{folder}/{program}"));
        let link = world.bin().join(program);
        if let Some(place) = places.find(|place| std::path::Path::new(place).exists()) {
            // A world may have one of its own.
            let _ = std::os::unix::fs::symlink(place, link);
        }
    }
    world.bin().to_string_lossy().into_owned()
}

/// Level and reason of the loops of all tasks, by task.
fn levels(world: &World) -> Vec<(String, String)> {
    let told = run(world, &["loop", "list", "--all", "--children", "--json"]).stdout();
    let told: Value = serde_json::from_str(&told).unwrap();
    let mut found = Vec::new();
    for one in told.as_array().unwrap() {
        let id = one["loop_id"].as_str().unwrap();
        let status = run(world, &["loop", "status", "--json", id]).stdout();
        let status: Value = serde_json::from_str(&status).unwrap();
        let text = |key: &str| status[key].as_str().unwrap_or_default().to_owned();
        found.push((text("sandbox_level"), text("sandbox_why")));
    }
    found.sort();
    found
}

const ROADMAP: &str =
    "# Roadmap: R\n## Tasks\n- [ ] **a**: One\n  - sandbox: strict\n- [ ] **b**: Two\n";

fn roadmap(keys: &str) -> World {
    let world = world(LOOKS);
    world.write("ROADMAP.md", keys);
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "tasks"]);
    world
}

#[test]
fn a_task_is_confined_as_far_as_it_asks_and_the_merged_tree_as_far_as_the_strictest() {
    if !has_bwrap() {
        return;
    }
    let world = roadmap(ROADMAP);
    // The gate runs on the merged tree, too: work of the strict task is in it.
    let gate = "tail -n +3 /proc/net/dev | grep -cv lo: >> ~/gate.txt; true";
    let words = ["roadmap", "run", "ROADMAP.md", "--command", "agent"];
    let flags = ["--verify", gate, "--parallel", "1"];
    let ended = run(&world, &[&words[..], &flags].concat());
    ended.assert_code(0);
    assert_eq!(world.git(["show", "HEAD:net-a"]), "0", "a has no network");
    let found = levels(&world);
    let strict = ("strict".to_owned(), "its task asks for it".to_owned());
    assert!(found.contains(&strict), "{found:?}");
    assert!(
        found.contains(&("off".to_owned(), String::new())),
        "{found:?}"
    );
    // Only b, which asks for nothing, could write outside; no gate on the merged tree could.
    assert_eq!(bashrc(&world), "# mine\nstolen\n");
    let written = std::fs::read_to_string(world.home().join("gate.txt")).unwrap_or_default();
    assert!(
        written.lines().count() <= 1,
        "only the gate of b: {written}"
    );
}

#[test]
fn a_task_never_loosens_what_its_loop_has_and_a_wrong_level_is_an_error() {
    let off = "# Roadmap: R\n## Tasks\n- [ ] **a**: One\n  - sandbox: off\n";
    let world = roadmap(off);
    let checked = run(&world, &["roadmap", "check", "ROADMAP.md"]);
    checked.assert_code(0);
    let said = checked.stdout() + &checked.stderr();
    assert!(said.contains("never confined less than its loop"), "{said}");
    if has_bwrap() {
        let words = ["roadmap", "run", "ROADMAP.md", "--command", "agent"];
        let flags = ["--sandbox", "workspace"];
        run(&world, &[&words[..], &flags].concat()).assert_code(0);
        assert_eq!(bashrc(&world), "# mine\n");
    }
    world.write("ROADMAP.md", off.replace("off", "tight"));
    let wrong = run(&world, &["roadmap", "check", "ROADMAP.md"]);
    let said = wrong.stdout() + &wrong.stderr();
    assert!(said.contains("write workspace or strict"), "{said}");
    assert_ne!(wrong.code(), Some(0));
}

#[test]
fn a_level_that_a_task_asks_for_and_the_machine_cannot_is_refused_before_anything_begins() {
    let world = roadmap(ROADMAP);
    let path = without_bwrap(&world);
    let mut command = world.descartes(["roadmap", "run", "ROADMAP.md", "--command", "agent"]);
    command.env("PATH", path);
    let refused = world.run(command);
    refused.assert_code(65);
    let said = refused.stderr();
    assert!(said.contains("bwrap is not installed"), "{said}");
    assert_eq!(bashrc(&world), "# mine\n", "nothing was begun");
}

#[test]
fn a_profile_asks_for_a_level_and_the_strictest_holds() {
    if !has_bwrap() {
        return;
    }
    let profile = "[agents.mine]\ncommand = \"agent\"\nsandbox.level = \"workspace\"\n";
    for (flags, level, why) in [
        (&[][..], "workspace", "the profile of mine asks for it"),
        (
            &["--sandbox", "off"],
            "workspace",
            "the profile of mine asks for it",
        ),
        (&["--sandbox", "strict"], "strict", "asked for"),
    ] {
        let world = world("echo stolen >> ~/.bashrc; echo COMPLETE");
        let config = world.home().join(".config/descartes/config.toml");
        std::fs::create_dir_all(config.parent().unwrap()).unwrap();
        std::fs::write(config, profile).unwrap();
        let words = ["loop", "start", "--backend", "mine", "--prompt", "go"];
        let ended = run(&world, &[&words[..], flags].concat());
        ended.assert_code(0);
        assert_eq!(bashrc(&world), "# mine\n", "{flags:?}");
        let told = run(&world, &["loop", "status", "--json"]).stdout();
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["sandbox_level"], level, "{flags:?}");
        assert_eq!(told["sandbox_why"], why, "{flags:?}");
        // A person who resumes it cannot take it away, either.
        let resumed = run(&world, &["loop", "resume", "--sandbox", "off", "-m", "9"]);
        let told = run(&world, &["loop", "status", "--json"]).stdout();
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_ne!(told["sandbox_level"], "off", "{resumed}");
    }
}

#[test]
fn a_sandbox_of_the_agents_own_is_turned_off_and_that_is_said() {
    if !has_bwrap() {
        return;
    }
    let message = r#"{"type":"result","subtype":"success","is_error":false,"result":"<promise>COMPLETE</promise>"}"#;
    let world = world("");
    let claude = format!("#!/bin/sh\necho \"$@\" > args.txt\necho '{message}'\n");
    world.program("claude", &claude);
    let words = ["loop", "start", "--command", "claude", "--prompt", "go"];
    let ended = run(&world, &[&words[..], &["--permissions", "all"]].concat());
    ended.assert_code(0);
    let args = world.read("args.txt");
    assert!(
        args.contains(r#"--settings {"sandbox":{"enabled":false}}"#),
        "{args}"
    );
    let said = ended.stdout() + &ended.stderr();
    assert!(said.contains("the agent's own sandbox is off"), "{said}");
    for (backend, word) in [
        ("claude", r#"{"sandbox":{"enabled":false}}"#),
        ("codex", "--sandbox danger-full-access"),
        ("gemini", "GEMINI_SANDBOX=false"),
    ] {
        let told = run(&world, &["sandbox", "explain", "--backend", backend]).stdout();
        let line = told.lines().find(|line| line.starts_with("turned off: "));
        let line = line.unwrap_or_default();
        assert!(line.contains(word), "{backend}: {told}");
    }
    // Without ours around it, its own stays as the user has it.
    let alone = ["--permissions", "edit", "--sandbox", "off", "--force"];
    run(&world, &[&words[..], &alone].concat()).assert_code(0);
    assert!(!world.read("args.txt").contains("--settings"));
}
