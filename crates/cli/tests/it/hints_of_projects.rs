//! Suggestions that are made where no loop is needed, each typed where it is printed.

use std::os::unix::net::UnixListener;

use descartes_testkit::World;
use serde_json::json;

use crate::docs_commands::Situation;
use crate::hint_rows::{row, suggestion, try_rows, typed};
use crate::mcp_client::McpClient;

/// An agent that does what `agents test` asks for.
const WORKS: &str =
    "#!/bin/sh\necho hello > hello.txt\necho done\necho '<promise>COMPLETE</promise>'\n";

/// What the config of the project says; a person agreed to it.
fn configured(text: &str) -> World {
    let world = Situation::Project.world();
    world.configure(text);
    world
}

#[test]
fn what_is_suggested_in_a_project() {
    try_rows(
        || {
            let world = Situation::Project.world();
            world.program("works", WORKS);
            let early = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
            world.write("mcp.json", format!("{early}\n"));
            world
        },
        &[
            row(
                "descartes loop start --prompt go --command nothing-there",
                "descartes agents",
            )
            .says("claude"),
            row("descartes agents", "descartes agents show NAME")
                .fill("NAME", "codex")
                .says("codex"),
            row("descartes agents", "descartes agents test NAME").fill("NAME", "claude"),
            row("descartes --help", "descartes demo"),
            row(
                "descartes roadmap run --check",
                "descartes roadmap check FILE",
            )
            .fill("FILE", "ROADMAP.md"),
            row(
                "descartes roadmap run --status",
                "descartes roadmap status FILE",
            )
            .fill("FILE", "ROADMAP.md"),
            row(
                "descartes roadmap --reset",
                "descartes roadmap reset FILE",
            )
            .fill("FILE", "ROADMAP.md"),
            row(
                "descartes roadmap run --roadmap ROADMAP.md",
                "descartes roadmap run FILE",
            )
            .fill("FILE", "ROADMAP.md")
            .behind(" --permissions edit --verify true"),
            row(
                "descartes loop run",
                "descartes loop start --prompt \"your task\"",
            )
            .behind(" --permissions edit"),
            row(
                "descartes loop start --scud-tag 'make it work'",
                "descartes loop start --prompt {}",
            )
            .behind(" --permissions edit"),
            row(
                "printf '\\377' | descartes loop start --permissions edit --prompt-file -",
                "descartes loop start --prompt-file - < PROMPT.md",
            )
            .behind(" --permissions edit"),
            row("descartes work land nothing", "descartes work"),
            row("descartes agents test generic", "descartes agents test mine").before(
                "mkdir .descartes; printf '[agents.mine]\\ncommand = \"works\"\\n' > .descartes/config.toml
                descartes trust --yes",
            ),
            row(
                "cat mcp.json | descartes mcp",
                "descartes install codex",
            )
            .ends(65)
            .says("--yes"),
            row(
                "descartes mcp --working-dir nowhere",
                "descartes mcp --working-dir DIR",
            )
            .fill("DIR", ".")
            .behind(" </dev/null"),
        ],
    );
}

#[test]
fn what_is_suggested_for_files() {
    try_rows(
        || {
            let world = Situation::Project.world();
            world.write("my notes.md", "# Notes\n\n## Parser\n\nWeeks are wrong.\n");
            world.write("text.md", "just a text\n");
            world.write("my list.yaml", "- one\n- two\n");
            world.write("gsd.md", "# Roadmap\n\n- [ ] **Phase 1: Setup** - begin\n");
            world.write("tracks.md", "# Tracks\n\n- [ ] **Track: One**\n");
            world.write("conductor/tracks/one/plan.md", "# Plan\n- [ ] Task: One\n");
            world.write(".beads/metadata.json", "{}");
            world.write(".beads/issues.jsonl", "{\"id\":\"b-1\",\"title\":\"One\"}\n");
            world.write(
                "ring.md",
                "# Roadmap: Ring\n\n## Tasks\n- [ ] **one**: One\n  - depends: two\n- [ ] **two**: Two\n  - depends: one\n",
            );
            world.write(
                "my own.md",
                "# Roadmap: Own\n\n## Tasks\n- [ ] **one**: One\n  - agent: claude\n",
            );
            let issue = r#"echo '[{"number": 1, "id": "b-1", "title": "One"}]'"#;
            world.program("bd", &format!("#!/bin/sh\n{issue}\n"));
            world
        },
        &[
            row(
                "descartes roadmap run 'my notes.md'",
                "descartes import {0}",
            )
            .says("task"),
            row(
                "descartes roadmap run 'my list.yaml'",
                "descartes import {}",
            ),
            row(
                "descartes roadmap run text.md",
                "descartes loop start --prompt-file {0}",
            )
            .behind(" --permissions edit"),
            row(
                "descartes import text.md",
                "descartes loop start --prompt-file {}",
            )
            .behind(" --permissions edit"),
            row(
                "descartes import 'my notes.md' -o 'my roadmap.md'",
                "descartes roadmap check {}",
            ),
            row(
                "descartes roadmap run tracks.md",
                "descartes roadmap run conductor/tracks/NAME/plan.md",
            )
            .fill("NAME", "one")
            .behind(" --permissions edit --verify true"),
            row(
                "descartes roadmap run .beads/issues.jsonl",
                "descartes roadmap run {}",
            )
            .behind(" --permissions edit --verify true"),
            row(
                "descartes roadmap run PROMPT.md --source beads",
                "descartes roadmap run --source {}",
            )
            .behind(" --permissions edit --verify true"),
            row(
                "descartes roadmap run 'my own.md' --no-task-agents --permissions edit --verify true",
                "descartes roadmap run {}",
            )
            .behind(" --permissions edit --verify true"),
        ],
    );
}

#[test]
fn what_is_suggested_in_a_configured_project() {
    try_rows(
        || configured("permissions = \"edit\"\n"),
        &[row(
            "descartes loop start",
            "descartes loop start --prompt \"Make every test pass\"",
        )],
    );
    try_rows(
        || configured("colour = true\n"),
        &[row("descartes doctor", "descartes config defaults").says("default_agent")],
    );
    try_rows(
        || configured("[agents.mine]\ncommand = 3\n"),
        &[row("descartes agents", "descartes config show")],
    );
    try_rows(
        || Situation::Untrusted.world(),
        &[row("descartes config show", "descartes trust --show{}").says("verify")],
    );
}

#[test]
fn what_is_suggested_after_init() {
    try_rows(
        || Situation::Project.world(),
        &[row("descartes init", "descartes loop start").behind(" --permissions edit")],
    );
}

#[test]
fn what_is_suggested_after_a_demo() {
    // What the demo made stands on the line before.
    let dir = "cd \"$(ls -td \"$TMPDIR\"/*demo* | head -n 1)\"";
    try_rows(
        || Situation::Project.world(),
        &[
            row("descartes demo", "descartes loop logs 1").before(dir),
            row("descartes demo", "descartes loop diff 2").before(dir),
            row("descartes demo", "descartes init"),
            row("descartes demo", "descartes loop start --command claude").before("descartes init"),
        ],
    );
}

#[test]
fn what_is_suggested_for_what_lies_around() {
    try_rows(
        || {
            let world = Situation::Done.world();
            let folder = world.runtime().join("descartes");
            std::fs::create_dir_all(&folder).unwrap();
            drop(UnixListener::bind(folder.join("x.sock")).unwrap());
            world
        },
        &[
            row("descartes doctor", "descartes clean").says("dead socket"),
            row(
                "descartes clean --older 0s --whole",
                "descartes clean{flags} --yes",
            )
            .says("removed"),
        ],
    );
}

#[test]
fn what_is_suggested_by_install() {
    try_rows(
        || {
            let world = Situation::Project.world();
            let folder = ".claude/skills/ralph-wiggum/mine.md";
            world.write(folder, "mine");
            let home = world.home().join(folder);
            std::fs::create_dir_all(home.parent().unwrap()).unwrap();
            std::fs::write(home, "mine").unwrap();
            world
        },
        &[
            row(
                "descartes install claude",
                "descartes install claude{} --force",
            ),
            row(
                "descartes install claude --project",
                "descartes install claude{} --force",
            )
            .says("project/.claude"),
        ],
    );
    try_rows(
        || {
            let world = Situation::Installed.world();
            let changed = |file: &str, from: &str, to: &str| {
                let path = world.home().join(file);
                let text = std::fs::read_to_string(&path).expect(file);
                assert!(text.contains(from), "{text}");
                std::fs::write(path, text.replace(from, to)).unwrap();
            };
            changed(".gemini/settings.json", "\"mcp\"", "\"mcp\", \"--color\"");
            let plugin = ".claude/skills/ralph-wiggum/.claude-plugin/plugin.json";
            changed(plugin, "descartes", "mine");
            world
        },
        &[
            row(
                "descartes install gemini",
                "descartes {verb} {}{place} --force",
            )
            .behind(" --yes")
            .says("settings.json"),
            row(
                "descartes install codex --project",
                "descartes {verb} {}{} --yes",
            )
            .says("project/.codex"),
            row(
                "descartes install claude",
                "descartes {verb} claude {place} --force",
            )
            .says("ralph-wiggum"),
            row(
                "descartes install claude --project --yes",
                "descartes {verb} claude{}",
            )
            .says("project/.claude"),
        ],
    );
    try_rows(
        || Situation::Installed.world(),
        &[
            row(
                "rm -r .claude; descartes uninstall claude --project",
                "descartes uninstall claude --user",
            )
            .says("removed"),
            row(
                "descartes uninstall codex --project",
                "descartes uninstall {tool} --user",
            )
            .behind(" --yes"),
        ],
    );
}

/// The descriptions of tools name commands that print the same.
#[test]
fn what_is_named_to_agents_in_descriptions_of_tools() {
    let world = Situation::Done.world();
    let mut client = McpClient::start(&world, &[]);
    let told = client.request("tools/list", &json!({})).to_string();
    client.leave();
    for (named, behind) in [
        ("descartes loop list --json", ""),
        ("descartes loop history --json", ""),
        ("descartes roadmap check --json", " ROADMAP.md"),
    ] {
        let line = suggestion(&told, named).expect(named);
        let run = typed(&world, "project", &format!("{line}{behind}"));
        run.assert_code(0);
        assert!(run.stdout().starts_with(['{', '[']), "{run}");
    }
}
