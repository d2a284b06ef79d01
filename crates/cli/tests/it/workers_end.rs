//! A worker that is told to end while its engine is away, with real processes.

use std::path::Path;
use std::time::{Duration, Instant};

use descartes_testkit::wait::{eventually, eventually_some};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::workers::{LONG, Machines, WorkingMachines};

/// Sends these signals to the worker `w1`, and waits for its end; how long it took.
fn end(machines: &mut Machines, signals: &[Signal]) -> Duration {
    let mut worker = machines.take_worker();
    let began = Instant::now();
    let pid = Pid::from_raw(worker.id().cast_signed());
    for (number, signal) in signals.iter().enumerate() {
        kill(pid, *signal).unwrap();
        eventually("the signal is heard", LONG, || {
            let told = machines.told_by("w1");
            let lines = told
                .lines()
                .filter(|line| line.contains("finishing ") || line.contains("ending "));
            lines.count() > number
        });
    }
    let ended = eventually_some("it ends", LONG, || worker.try_wait().unwrap());
    assert_eq!(ended.code(), Some(0), "{}", machines.told_by("w1"));
    began.elapsed()
}

/// The file that the worker says it keeps its result in.
fn kept_file(machines: &Machines) -> String {
    let told = machines.told_by("w1");
    let kept = told.split_once("it is kept in ").map(|(_, rest)| rest);
    let file = kept.and_then(|rest| rest.split_once(".json"));
    let file = format!("{}.json", file.expect(&told).0);
    assert!(Path::new(&file).is_file(), "{told}");
    file
}

/// Starts engine and worker again; all is done. How often the first task was offered.
fn finish(machines: &mut Machines, address: &str, child: &Value) -> usize {
    machines
        .engine(&["start", "--listen", address])
        .assert_code(0);
    let path = machines.path();
    machines.start_worker("w1", &[], &path);
    let parent = child["parent"].as_str().unwrap();
    eventually("all is done", LONG, || {
        let status = machines.typed(&["loop", "status", parent, "--json"]);
        let status: Value = serde_json::from_str(&status.stdout()).unwrap();
        status["completed"] == true
    });
    let journal = machines.world.state().join("loops").join(parent);
    let journal = std::fs::read_to_string(journal.join("journal.jsonl")).unwrap();
    let events = journal.lines().map(|line| {
        let record: Value = serde_json::from_str(line).unwrap();
        record.to_string()
    });
    let offers = events.filter(|event| event.contains("task_offered"));
    let of_first = offers.filter(|event| event.contains(r#""task":"1""#));
    of_first.count()
}

#[test]
fn a_worker_that_is_told_to_end_does_not_wait_for_an_engine_that_is_away() {
    let Some(working) = Machines::at_work("a worker that ends", "w1") else {
        return;
    };
    let WorkingMachines {
        mut machines,
        address,
        go,
        child,
    } = working;
    machines.engine(&["stop"]).assert_code(0);
    std::fs::write(&go, "").unwrap();
    let took = end(&mut machines, &[Signal::SIGINT]);
    // Finished, then half a minute for the engine.
    assert!(took < Duration::from_secs(60), "{took:?}");
    let kept = kept_file(&machines);
    // What was finished is handed in by the next start: nobody does it again.
    assert_eq!(finish(&mut machines, &address, &child), 1);
    eventually("it is not kept for ever", LONG, || {
        !Path::new(&kept).exists()
    });
}

#[test]
fn a_worker_that_is_told_to_end_twice_ends_at_once_and_loses_nothing() {
    let Some(working) = Machines::at_work("a worker in a hurry", "w1") else {
        return;
    };
    let WorkingMachines {
        mut machines,
        address,
        go,
        child,
    } = working;
    machines.engine(&["stop"]).assert_code(0);
    let took = end(&mut machines, &[Signal::SIGTERM, Signal::SIGTERM]);
    assert!(took < Duration::from_secs(20), "{took:?}");
    kept_file(&machines);
    std::fs::write(&go, "").unwrap();
    // The interrupted attempt is told, and the task offered once more.
    assert_eq!(finish(&mut machines, &address, &child), 2);
}
