//! The real agent CLIs against the scripted model server. Skipped, and said so, where they are not
//! installed: `cargo run -p descartes-testkit --bin descartes-real-agents install`.
#![expect(
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and says when it was skipped"
)]

use std::time::Duration;

use descartes_testkit::World;
use descartes_testkit::model::ModelServer;
use descartes_testkit::real_clis::{Launch, Options, Permission, PromptBy, RealCli, record};
use serde_json::{Value, json};

/// opencode takes its time to start on a busy machine.
const LONG: Duration = descartes_testkit::PATIENCE;

fn prepared(
    cli: RealCli,
    script: Value,
    options: &Options,
) -> Option<(World, ModelServer, Launch)> {
    let (world, server) = (World::new(), ModelServer::start().unwrap());
    server.lane("t", cli.script(&script));
    let Some(launch) = cli.launch(&world, &server.url("t"), options) else {
        eprintln!("skipped: {} is not installed", cli.name());
        return None;
    };
    Some((world, server, launch))
}

fn writes_a_file(cli: RealCli) {
    let script = json!([
        cli.writes("I will write it.", "written.txt", "hello\n"),
        cli.ends("It is written. <promise>COMPLETE</promise>"),
    ]);
    let Some((world, server, launch)) = prepared(cli, script, &Options::default()) else {
        return;
    };
    let prompt = "Write a file.\nThen say so — verbatim: \"ü\".";
    let run = world.run_within(launch.command(&world, prompt), LONG);
    run.assert_code(0);
    assert_eq!(world.read("written.txt"), "hello\n", "{run}");
    let log = server.log("t");
    let turns: Vec<_> = log.iter().filter_map(|entry| entry.turn).collect();
    assert!(
        turns.starts_with(&[0]) && turns.len() >= cli.requests_of_a_run(),
        "{turns:?}"
    );
    // Some put words of their own around it.
    let first = log.iter().find(|entry| entry.turn == Some(0)).unwrap();
    assert!(
        first.users.iter().any(|text| text.head.contains(prompt)),
        "{:?}",
        first.users
    );
}

#[test]
fn claude_writes_a_file() {
    writes_a_file(RealCli::Claude);
}

#[test]
fn codex_writes_a_file() {
    writes_a_file(RealCli::Codex);
}

#[test]
#[ignore = "slow to start; part of the whole matrix"]
fn gemini_writes_a_file() {
    writes_a_file(RealCli::Gemini);
}

#[test]
#[ignore = "slow to start; part of the whole matrix"]
fn opencode_writes_a_file() {
    writes_a_file(RealCli::OpenCode);
}

#[test]
#[ignore = "slow to start; part of the whole matrix"]
fn the_others_write_a_file() {
    let others = RealCli::ALL.into_iter();
    others
        .filter(|cli| !RealCli::FIRST.contains(cli))
        .for_each(writes_a_file);
}

#[test]
fn without_permission_claude_writes_nothing_and_says_so() {
    let script = json!([{"tool": {"shell": "echo hello > written.txt"}}, {"text": "I could not."}]);
    let options = Options {
        permission: Permission::Agent,
        ..Options::default()
    };
    let Some((world, _server, launch)) = prepared(RealCli::Claude, script, &options) else {
        return;
    };
    let run = world.run_within(launch.command(&world, "go"), LONG);
    assert!(!world.has("written.txt"));
    assert!(run.stdout().contains("permission_denials\":[{"), "{run}");
}

#[test]
fn recordings_hold_no_place_of_this_machine() {
    let server = ModelServer::start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let cases = record::cases();
    let case = cases.iter().find(|case| case.name == "tool").unwrap();
    let Some(recorded) = record::record(&server, RealCli::Codex, case, folder.path()) else {
        eprintln!("skipped: codex is not installed");
        return;
    };
    assert_eq!((recorded.exit, recorded.requests), (Some(0), 2));
    let stream = std::fs::read_to_string(folder.path().join("codex-tool.jsonl")).unwrap();
    assert!(stream.contains("<promise>COMPLETE</promise>"));
    assert!(
        !stream.contains(&server.root_url()) && !stream.contains("/dw-"),
        "{stream}"
    );
}

#[test]
fn command_lines_are_quoted_for_a_shell() {
    let launch = Launch {
        program: "/a b/claude".into(),
        arguments: vec!["-p".into(), "x y".into()],
        environment: Vec::new(),
        prompt: PromptBy::Stdin,
    };
    assert_eq!(launch.command_line(), "'/a b/claude' -p 'x y'");
}
