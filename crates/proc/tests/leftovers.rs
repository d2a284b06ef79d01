//! Leftovers are found by their mark.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{LONG, Processes, fresh_mark};
use descartes_proc::{Ended, Fate, MARK, process_alive, start_time, sweep_marked};

/// A marked shell; waits until it has said as many process ids as asked.
fn marked(mark: &str, script: &str, count: usize) -> (Child, Processes) {
    let mut command = Command::new("sh");
    command
        .args(["-c", script])
        .env(MARK, mark)
        .stdout(Stdio::piped());
    let mut shell = command.spawn().unwrap();
    let lines = BufReader::new(shell.stdout.take().unwrap())
        .lines()
        .take(count);
    let lines: Vec<String> = lines.map(Result::unwrap).collect();
    (shell, Processes::from_lines(&lines.join("\n")))
}

#[test]
fn what_a_marked_process_started_goes_with_it_whatever_its_environment() {
    let mark = fresh_mark();
    let script =
        "env -i sh -c 'echo $$; setsid sh -c \"echo \\$\\$; sleep 600\" & sleep 600' & wait";
    let (mut shell, processes) = marked(&mark, script, 2);
    assert_eq!(processes.alive(), 2);
    let ended = sweep_marked(MARK, &mark, 0, LONG);
    assert_eq!(processes.left_after(Duration::ZERO), 0);
    assert!(ended.len() >= 3, "{ended:?}");
    shell.wait().unwrap();
}

#[test]
fn what_lost_its_environment_and_ignores_sigterm_is_still_known_when_its_parents_are_gone() {
    let mark = fresh_mark();
    let script = "env -i sh -c 'trap \"\" TERM; echo $$; sleep 600' & wait";
    let (mut shell, processes) = marked(&mark, script, 1);
    let ended = sweep_marked(MARK, &mark, 0, LONG);
    assert_eq!(processes.left_after(Duration::ZERO), 0);
    assert!(ended.iter().all(|one| one.fate == Fate::Gone), "{ended:?}");
    shell.wait().unwrap();
}

#[test]
fn only_the_very_mark_counts() {
    let mark = fresh_mark();
    let (mut shell, processes) = marked(&format!("{mark}0"), "echo $$; exec sleep 600", 1);
    assert_eq!(sweep_marked(MARK, &mark, 0, LONG), []);
    assert_eq!(
        sweep_marked("ESCARTES_LOOP_ID", &format!("{mark}0"), 0, LONG),
        []
    );
    assert_eq!(processes.alive(), 1);
    let (pid, start_time) = (shell.id(), start_time(shell.id()).unwrap());
    assert_eq!(
        sweep_marked(MARK, &format!("{mark}0"), start_time + 1, LONG),
        []
    );
    assert!(process_alive(pid, start_time));
    let ended = sweep_marked(MARK, &format!("{mark}0"), start_time, LONG);
    let command = "sleep".into();
    assert_eq!(
        ended,
        [Ended {
            pid,
            start_time,
            command,
            fate: Fate::Gone
        }]
    );
    shell.wait().unwrap();
}

#[test]
fn a_leftover_that_ignores_sigterm_is_killed_and_one_that_obeys_may_clean_up() {
    let dir = tempfile::tempdir().unwrap();
    let mark = fresh_mark();
    let cleaned = dir.path().join("cleaned");
    let obeys = format!(
        "trap ': > {}; exit' TERM; echo $$; while :; do sleep 0.01; done",
        cleaned.display()
    );
    let (mut obeying, _) = marked(&mark, &obeys, 1);
    let (mut deaf, _) = marked(
        &mark,
        "trap '' TERM; echo $$; while :; do sleep 0.01; done",
        1,
    );
    let ended = sweep_marked(MARK, &mark, 0, LONG);
    assert!(
        ended.iter().all(|ended| ended.fate == Fate::Gone),
        "{ended:?}"
    );
    assert!(cleaned.exists());
    obeying.wait().unwrap();
    deaf.wait().unwrap();
}
