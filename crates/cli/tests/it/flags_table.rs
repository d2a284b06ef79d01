//! Every flag of `loop start` and `loop resume` has a test that fails if it changes nothing.

use std::collections::BTreeSet;

use descartes_testkit::World;

use crate::common::descartes;

/// Flags and the file that tests them.
const START: &[(&str, &str)] = &[
    ("--abort-promise", "flags_done"),
    ("--auto-commit", "flags_git"),
    ("--backend", "flags_agent"),
    ("--branch", "flags_git"),
    ("--branch-template", "flags_git"),
    ("--color", "flags_place"),
    ("--command", "flags_agent"),
    ("--commit-template", "flags_git"),
    ("--completion-promise", "flags_done"),
    ("--detach", "detach"),
    ("--dry-run", "flags_place"),
    ("--env", "flags_agent"),
    ("--fallback", "flags_agent"),
    ("--force", "flags_place"),
    ("--fresh-context", "flags_agent"),
    ("--idle-timeout", "flags_limits"),
    ("--iteration-context", "flags_agent"),
    ("--json", "flags_place"),
    ("--kill-grace", "flags_limits"),
    ("--max-cost", "flags_limits"),
    ("--max-duration", "flags_limits"),
    ("--max-failures", "flags_limits"),
    ("--max-iterations", "flags_limits"),
    ("--max-log", "flags_limits"),
    ("--max-snapshots", "git_snapshots"),
    ("--max-spec-tokens", "flags_agent"),
    ("--max-tokens", "flags_limits"),
    ("--model", "flags_agent"),
    ("--name", "flags_place"),
    ("--nested", "steer_within"),
    ("--no-promise", "flags_done"),
    ("--permissions", "flags_agent"),
    ("--promise-grace", "flags_done"),
    ("--promise-hint", "flags_done"),
    ("--promise-match", "flags_done"),
    ("--prompt", "flags_agent"),
    ("--prompt-file", "flags_agent"),
    ("--prompt-mode", "flags_agent"),
    ("--show-thinking", "flags_place"),
    ("--spec-file", "flags_agent"),
    ("--stall-after", "flags_limits"),
    ("--state-file", "flags_place"),
    ("--tag-green", "flags_git"),
    ("--timeout", "flags_limits"),
    ("--verify", "flags_done"),
    ("--verify-timeout", "flags_done"),
    ("--working-dir", "flags_place"),
    ("--scud-tag", "tasks"),
    ("--plan", "tasks"),
    ("--handoff", "tasks"),
    ("--max-iterations-per-task", "tasks"),
    ("--no-sub-agents", "tasks"),
    ("--no-auto-commit-waves", "tasks"),
    ("--no-wave-barrier", "tasks"),
    ("--spec-template", "tasks"),
    ("--in-place", "tasks"),
    ("--parallel", "tasks"),
    ("--trust-config", "trust"),
    ("--trust-marks", "tasks_marked"),
    ("--help", "help"),
];

const RESUME: &[&str] = &[
    "--accept-edits",
    "--here",
    "--working-dir",
    "--color",
    "--detach",
    "--env",
    "--help",
    "--idle-timeout",
    "--json",
    "--max-cost",
    "--max-duration",
    "--max-failures",
    "--max-iterations",
    "--max-tokens",
    "--model",
    "--prompt",
    "--prompt-file",
    "--repair",
    "--retry-blocked",
    "--show-thinking",
    "--stall-after",
    "--state-file",
    "--timeout",
    "--trust-config",
    "--trust-marks",
    "--verify",
];

fn flags_of(verb: &str) -> BTreeSet<String> {
    let help = descartes(&World::new(), &["loop", verb, "--help"]);
    let words = help.stdout();
    let lines = words
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with('-'));
    let long = |line: &str| {
        line.split([' ', ',', '<'])
            .find(|word| word.starts_with("--"))
            .map(str::to_owned)
    };
    lines.filter_map(long).collect()
}

#[test]
fn every_flag_of_start_is_in_the_table_and_in_its_test() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let known: BTreeSet<String> = START.iter().map(|(flag, _)| (*flag).to_owned()).collect();
    assert_eq!(flags_of("start"), known);
    for (flag, file) in START {
        let text = std::fs::read_to_string(folder.join(format!("{file}.rs"))).unwrap();
        let short = match *flag {
            "--command" => "\"-c\"",
            "--prompt" => "\"-p\"",
            "--max-iterations" => "\"-m\"",
            "--working-dir" => "\"-w\"",
            "--state-file" => "\"-s\"",
            other => other,
        };
        assert!(
            text.contains(&format!("\"{flag}\"")) || text.contains(short),
            "{flag} in {file}"
        );
    }
}

#[test]
fn every_flag_of_resume_is_in_its_test() {
    let text = concat!(
        include_str!("resume.rs"),
        include_str!("moved_projects.rs"),
        include_str!("tasks_blocked.rs")
    );
    let known: BTreeSet<String> = RESUME
        .iter()
        .map(|flag| (*flag).to_owned())
        .chain(["--verify-timeout".to_owned()])
        .collect();
    assert_eq!(flags_of("resume"), known);
    let elsewhere = ["--color", "--help"];
    for flag in known
        .iter()
        .filter(|flag| !elsewhere.contains(&flag.as_str()))
    {
        assert!(text.contains(&format!("\"{flag}\"")), "{flag}");
    }
}
