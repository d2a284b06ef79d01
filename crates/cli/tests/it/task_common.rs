//! What the tests of task loops share.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use descartes_testkit::world::Finished;
use descartes_testkit::{World, eventually};

/// Writes a file of the task's own, and claims.
pub const WORKS: &str = "write work-${DESCARTES_TASK_ID} x ;; promise";

/// The rows and the rest of a graph file with the tag `auth`.
pub fn graph(rows: &str, rest: &str) -> String {
    format!("# SCUD Graph v1\n# Phase: auth\n\n@nodes\n{rows}\n{rest}")
}

/// A repository whose only content is this file.
pub fn repository(name: &str, content: impl AsRef<[u8]>) -> World {
    begun(World::in_memory(), name, content)
}

/// The same, where agents or gates are to run in a sandbox.
pub fn repository_on_disk(name: &str, content: impl AsRef<[u8]>) -> World {
    begun(World::new(), name, content)
}

fn begun(world: World, name: &str, content: impl AsRef<[u8]>) -> World {
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

/// Runs descartes until this is so, and kills it then.
#[track_caller]
pub fn kill_when(world: &World, words: &[&str], what: &str, is_so: impl FnMut() -> bool) {
    let mut host = world.descartes(words);
    let host = host.stdout(Stdio::null()).stderr(Stdio::null());
    let mut host = host.spawn().unwrap();
    eventually(what, Duration::from_secs(60), is_so);
    host.kill().unwrap();
    host.wait().unwrap();
}

/// Runs the tag `auth` with a shell script for an agent, which claims when it ends, and kills the host
/// once there is this file.
#[track_caller]
pub fn kill_when_held(world: &World, script: &str, flags: &[&str], held: &Path) {
    let agent = world.root().join("agent.sh");
    let script = format!("{script}\necho '<promise>COMPLETE</promise>'\n");
    std::fs::write(&agent, script).unwrap();
    let agent = format!("sh {}", agent.display());
    let words = ["loop", "start", "--scud-tag", "auth", "--command", &agent];
    let words = [&words[..], &["--verify", "true"], flags].concat();
    kill_when(world, &words, "an agent is held", || held.exists());
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
