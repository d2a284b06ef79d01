//! Every command that is suggested does what it says when it is typed as it stands, wherever the project lies.

use std::path::{Path, PathBuf};

use descartes_testkit::World;
use descartes_testkit::world::{Finished, bins};

use crate::common::start_command;
use crate::task_common::{WORKS, graph, run, scud_project};

/// Words in capitals that a person fills in.
const FILLED_IN: [&str; 8] = ["NAME", "URL", "HOST", "DIR", "FILE", "ID", "…", "VERB"];

/// What is not typed by every test: it stays until it is ended, or is about a port or the agents of this machine.
const NOT_TYPED: [&str; 10] = [
    "descartes watch",
    "descartes serve",
    "descartes gui",
    "descartes mcp",
    "descartes worker",
    "descartes engine",
    "descartes loop logs -f",
    "descartes agents test",
    "descartes demo",
    // It asks for the task, which only the person knows.
    "descartes loop start",
];

/// The commands among hints and next steps, where they end.
fn hinted(run: &Finished) -> Vec<String> {
    let said = run.stdout() + "\n" + &run.stderr();
    let is_hint = |line: &&str| {
        let line = line.trim_start();
        ["hint: ", "next ", "descartes "]
            .iter()
            .any(|begin| line.starts_with(begin))
    };
    let mut found: Vec<String> = Vec::new();
    for line in said.lines().filter(is_hint) {
        for (at, _) in line.match_indices("descartes ") {
            // As it stands in a manual page, it is a name.
            if !line[at + "descartes ".len()..].starts_with(char::is_alphabetic) {
                continue;
            }
            let command = &line[at..];
            let ends = ["`", ";", ")", ", ", " (", ": "];
            let end = ends.iter().filter_map(|end| command.find(end)).min();
            let command = command[..end.unwrap_or(command.len())].trim();
            let is_filled_in = |word: &str| FILLED_IN.contains(&word);
            let skipped = NOT_TYPED.iter().any(|known| command.starts_with(known));
            let known = found.iter().any(|known| known == command);
            if !(skipped || known || command.split(' ').any(is_filled_in)) {
                found.push(command.to_owned());
            }
        }
    }
    found
}

/// What was suggested and, typed as it stands, is refused as a wrong command line, or says the same again.
pub fn that_fail(world: &World, ended: &Finished) -> Vec<String> {
    let mut wrong = Vec::new();
    for line in hinted(ended) {
        let run = typed_in(world, &world.project(), &line);
        let repeats = !run.stderr().trim().is_empty() && run.stderr() == ended.stderr();
        if repeats || matches!(run.code(), Some(64 | 127)) {
            wrong.push(format!("{line}: {run}"));
        }
    }
    wrong
}

/// A folder whose name no shell takes as it is.
const PLACE: &str = "my dir's";

fn place(world: &World) -> PathBuf {
    let dir = world.project().join(PLACE);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// Runs a line through a shell, as a person would who copies it.
fn typed(world: &World, line: &str) -> Finished {
    typed_in(world, &place(world), line)
}

fn typed_in(world: &World, dir: &Path, line: &str) -> Finished {
    let mut command = world.command("sh");
    let bin = bins::descartes().parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    command.env(
        "PATH",
        format!("{}:{}:{path}", bin.display(), world.bin().display()),
    );
    command.current_dir(dir).arg("-c").arg(line);
    world.run(command)
}

/// The commands among what was said.
fn suggested(run: &Finished) -> Vec<String> {
    let said = run.stdout() + &run.stderr();
    let lines = said.lines().filter_map(|line| {
        let at = line
            .find("descartes loop ")
            .or_else(|| line.find("descartes roadmap "))?;
        let command = &line[at..];
        let end = command.find('`').unwrap_or(command.len());
        Some(command[..end].trim().to_owned())
    });
    lines.collect()
}

#[test]
fn what_is_suggested_can_be_typed_in_a_folder_with_blanks_and_quotes() {
    let world = World::in_memory();
    world.git_init();
    let state = place(&world).join("state file.json");
    let flags = ["-m", "1", "--name", "it's mine"];
    let mut command = start_command(&world, "write a.txt ${ITERATION}", &flags);
    command
        .current_dir(place(&world))
        .arg("--state-file")
        .arg(&state);
    let ended = world.run(command);
    ended.assert_code(2);
    let next = suggested(&ended);
    assert!(
        next.iter()
            .any(|line| line.starts_with("descartes loop resume")),
        "{ended}"
    );
    for line in &next {
        let run = typed(&world, line);
        // A limit is a limit; but each of them finds the loop.
        assert!(matches!(run.code(), Some(0 | 2)), "{line}: {run}");
    }
    let quoted = r"'it'\''s mine'";
    let rewound = typed(&world, &format!("descartes loop rewind 0 {quoted} --yes"));
    rewound.assert_code(0);
    for line in suggested(&rewound) {
        typed(&world, &format!("{line} --yes")).assert_code(0);
    }
    let file = place(&world).join("my plan.md");
    std::fs::write(&file, "just a text\n").unwrap();
    let refused = typed(&world, "descartes import 'my plan.md'");
    let said = refused.stderr();
    assert!(said.contains("--prompt-file 'my plan.md'"), "{refused}");
}

/// What stands in a folder that was moved names the file of a loop that has another than the usual one.
#[test]
fn a_moved_state_file_is_named_as_a_shell_takes_it() {
    let world = World::in_memory();
    world.git_init();
    let dir = place(&world);
    let mut command = start_command(&world, "write a.txt x", &["-m", "1"]);
    command.current_dir(&dir).args(["--state-file", "one.json"]);
    world.run(command).assert_code(2);
    std::fs::rename(dir.join("one.json"), dir.join("it's one.json")).unwrap();
    let run = typed(
        &world,
        "descartes loop diff 1 --state-file \"it's one.json\"",
    );
    run.assert_code(65);
    let hints = suggested(&run);
    let resume = hints
        .iter()
        .find(|line| line.contains("resume --here"))
        .expect("a hint");
    let resumed = typed(&world, &format!("{resume} -m 2"));
    assert_eq!(resumed.code(), Some(2), "{resume}: {resumed}");
}

/// Tasks that an earlier loop left blocked in their file: what is named next is not the same again.
#[test]
fn what_is_named_for_tasks_that_were_blocked_before_tries_them() {
    let world = scud_project(graph("1 | One | B | 1 | H\n2 | Two | B | 1 | H", ""));
    let agent = world.agent(WORKS);
    let words = ["loop", "start", "--scud-tag", "auth", "--command", &agent];
    let blocked = run(&world, &[&words[..], &["--verify", "true"]].concat());
    blocked.assert_code(6);
    let next = suggested(&blocked);
    let next = next.iter().find(|line| line.contains("loop resume"));
    typed_in(&world, &world.project(), next.expect("a hint")).assert_code(0);
}
