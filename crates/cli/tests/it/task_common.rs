//! What the tests of task loops share.

use std::time::Duration;

use descartes_testkit::World;
use descartes_testkit::world::Finished;

/// Writes a file of the task's own, and claims.
pub const WORKS: &str = "write work-${DESCARTES_TASK_ID} x ;; promise";

/// The rows and the rest of a graph file with the tag `auth`.
pub fn graph(rows: &str, rest: &str) -> String {
    format!("# SCUD Graph v1\n# Phase: auth\n\n@nodes\n{rows}\n{rest}")
}

/// A repository whose only content is this file.
pub fn repository(name: &str, content: impl AsRef<[u8]>) -> World {
    let world = World::new();
    world.git_init();
    world.write(name, content);
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "tasks"]);
    world
}

/// A repository with these tasks.
pub fn scud_project(tasks: impl AsRef<[u8]>) -> World {
    repository(".scud/tasks/tasks.scg", tasks)
}

/// Runs descartes to its end.
#[track_caller]
pub fn run(world: &World, words: &[&str]) -> Finished {
    world.run_within(world.descartes(words), Duration::from_secs(180))
}

/// Runs the tag `auth` with an agent of this script.
#[track_caller]
pub fn start(world: &World, script: &str, flags: &[&str]) -> Finished {
    let agent = world.agent(script);
    let words = ["loop", "start", "--scud-tag", "auth", "--command", &agent];
    run(world, &[&words[..], flags].concat())
}

/// Runs `ROADMAP.md` with an agent of this script.
#[track_caller]
pub fn roadmap(world: &World, script: &str, flags: &[&str]) -> Finished {
    let agent = world.agent(script);
    let words = ["roadmap", "run", "ROADMAP.md", "--command", &agent];
    run(world, &[&words[..], flags].concat())
}

/// The status of each row, as the file has it.
pub fn statuses(world: &World) -> String {
    let text = world.read(".scud/tasks/tasks.scg");
    let rows = text.lines().filter(|line| line.matches('|').count() == 4);
    rows.filter_map(|row| row.split(" | ").nth(2)).collect()
}

/// What an agent left in the state folder, which is three folders above its worktree.
pub fn left(world: &World, name: &str) -> String {
    std::fs::read_to_string(world.state().join(name)).unwrap_or_default()
}

/// All that was said.
pub fn said(finished: &Finished) -> String {
    format!("{}{}", finished.stdout(), finished.stderr())
}
