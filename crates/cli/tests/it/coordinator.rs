//! A coordinator that dies while its workers are at work, with the real descartes-fleet and a real nats-server.

use std::path::PathBuf;

use descartes_testkit::wait::{eventually, eventually_some};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::hint_rows::{suggestion, typed};
use crate::workers::{LONG, Machines, WorkingMachines, waits_for};

/// Well formed, and nobody's.
const KEY: &str = "SUAEL6GG2L2HIF7DUGZJGMRUFKXELGGYFMHF76UO2AYBG3K4YLWR3FKC2Q";

/// The folder of the task loop.
fn folder(machines: &Machines, id: &str) -> PathBuf {
    machines.world.state().join("loops").join(id)
}

/// Kills the host of a task loop, and with it everything that ends with it.
pub fn kill_host(machines: &Machines, id: &str) {
    let host = std::fs::read_to_string(folder(machines, id).join("host.json")).unwrap();
    let host: Value = serde_json::from_str(&host).unwrap();
    let host = Pid::from_raw(i32::try_from(host["pid"].as_i64().unwrap()).unwrap());
    kill(host, Signal::SIGKILL).unwrap();
    eventually("its host is gone", LONG, || kill(host, None).is_err());
}

/// How often the journal of a task loop has a record of this kind about a task.
pub fn written(machines: &Machines, id: &str, kind: &str, task: &str) -> usize {
    let text = std::fs::read_to_string(folder(machines, id).join("journal.jsonl")).unwrap();
    let records = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let mut events = Vec::new();
    for record in records {
        let record: Value = record;
        let of_tasks = record["kind"] == "tasks";
        events.push(if of_tasks {
            record["event"].clone()
        } else {
            record
        });
    }
    let of_kind = events.iter().filter(|event| event["kind"] == kind);
    of_kind.filter(|event| event["task"] == task).count()
}

/// How often a worker said this about a task.
pub fn said(machines: &Machines, task: &str, what: &str) -> usize {
    let told = machines.told_by("w1");
    let of_task = format!("task {task} of loop");
    let lines = told.lines().filter(|line| line.contains(&of_task));
    lines.filter(|line| line.ends_with(what)).count()
}

/// Everything about a task was done and written down once.
pub fn assert_once(machines: &Machines, id: &str, task: &str) {
    for what in [": begun", ": handed in"] {
        assert_eq!(said(machines, task, what), 1, "task {task}{what}");
    }
    for kind in ["attempt_started", "attempt_ended", "task_run"] {
        assert_eq!(written(machines, id, kind, task), 1, "{kind} of {task}");
    }
}

fn results(machines: &Machines) -> usize {
    let results = machines.world.root().join("state-w1/fleet/w1/results");
    std::fs::read_dir(results).into_iter().flatten().count()
}

#[test]
fn what_was_handed_in_while_the_coordinator_was_away_is_taken_once() {
    let Some(working) = Machines::at_work("a dead coordinator", "w1") else {
        return;
    };
    let WorkingMachines {
        machines,
        go,
        child,
        ..
    } = working;
    let parent = child["parent"].as_str().unwrap();
    kill_host(&machines, parent);
    // Killed again, before it could do anything, and while it follows the attempt.
    machines
        .typed(&["loop", "resume", "--detach"])
        .assert_code(0);
    kill_host(&machines, parent);
    machines
        .typed(&["loop", "resume", "--detach"])
        .assert_code(0);
    eventually("its attempt was taken up", LONG, || {
        written(&machines, parent, "task_loop", "1") >= 2
    });
    kill_host(&machines, parent);
    std::fs::write(&go, "").unwrap();
    eventually("it was handed in", LONG, || {
        said(&machines, "1", ": handed in") == 1
    });
    assert_eq!(results(&machines), 1);
    machines.typed(&["loop", "resume"]).assert_code(0);
    for task in ["1", "2", "3"] {
        assert_once(&machines, parent, task);
    }
    let id = child["loop_id"].as_str().unwrap();
    let journal = "journal.jsonl";
    let there = machines.world.root().join("state-w1/loops").join(id);
    let here = folder(&machines, id);
    assert_eq!(
        std::fs::read(here.join(journal)).unwrap(),
        std::fs::read(there.join(journal)).unwrap()
    );
    eventually("nothing is kept", LONG, || results(&machines) == 0);
}

#[test]
fn an_engine_that_lost_its_disk_meanwhile_costs_no_attempt() {
    let Some(working) = Machines::at_work("an engine without its disk", "w1") else {
        return;
    };
    let WorkingMachines {
        machines,
        address,
        go,
        child,
    } = working;
    let parent = child["parent"].as_str().unwrap();
    kill_host(&machines, parent);
    machines.engine(&["stop"]).assert_code(0);
    // Without its engine the loop is not taken up, and nothing of it is lost.
    let refused = machines.typed(&["loop", "resume"]);
    refused.assert_code(65);
    let told = refused.stderr();
    assert!(
        told.contains("no engine answers") && told.contains("descartes engine start"),
        "{told}"
    );
    std::fs::remove_dir_all(machines.world.state().join("engine/data")).unwrap();
    machines
        .engine(&["start", "--listen", &address])
        .assert_code(0);
    machines
        .typed(&["loop", "resume", "--detach"])
        .assert_code(0);
    eventually("its attempt was taken up", LONG, || {
        written(&machines, parent, "task_loop", "1") >= 2
    });
    std::fs::write(&go, "").unwrap();
    let done = || {
        let status = machines.typed(&["loop", "status", parent, "--json"]);
        let status: Value = serde_json::from_str(&status.stdout()).ok()?;
        (status["completed"] == true).then_some(())
    };
    eventually_some("all is done", LONG, done);
    for task in ["1", "2", "3"] {
        assert_once(&machines, parent, task);
    }
}

#[test]
fn what_a_person_took_out_while_the_coordinator_was_away_is_ended() {
    let Some(working) = Machines::at_work("a task that was taken out", "w1") else {
        return;
    };
    let WorkingMachines {
        machines, child, ..
    } = working;
    let parent = child["parent"].as_str().unwrap();
    kill_host(&machines, parent);
    let file = ".scud/tasks/tasks.scg";
    let text = machines.world.read(file);
    let changed = text.replace("1 | One | I", "1 | One | C");
    assert_ne!(text, changed, "{text}");
    machines.world.write(file, changed);
    machines
        .typed(&["loop", "resume", "--detach"])
        .assert_code(0);
    eventually("its worker ends it", LONG, || {
        said(&machines, "1", ": taken back, in vain") == 1
    });
    machines.running_child("2");
    machines
        .typed(&["loop", "cancel", parent, "--now"])
        .assert_code(0);
    eventually("nothing is kept", LONG, || results(&machines) == 0);
}

/// Whether an agent is there, on whichever machine.
fn is_agent_there(machines: &Machines) -> bool {
    let root = machines.world.root().to_str().unwrap();
    let mark = format!("SCRIPTED_AGENT_FILE={root}");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let environments = processes.filter_map(|one| std::fs::read(one.path().join("environ")).ok());
    let mut environments = environments.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    environments.any(|environment| environment.contains(&mark))
}

#[test]
fn who_cancels_a_loop_whose_coordinator_died_stops_its_agents_elsewhere() {
    let Some(working) = Machines::at_work("a cancelled loop without a host", "w1") else {
        return;
    };
    let WorkingMachines {
        machines,
        go,
        child,
        ..
    } = working;
    let parent = child["parent"].as_str().unwrap();
    kill_host(&machines, parent);
    assert!(is_agent_there(&machines));
    let status = machines.typed(&["loop", "status", parent]).stdout();
    let workers = status.lines().find(|line| line.starts_with("  Workers: "));
    let workers = workers.expect(&status);
    assert!(workers.contains("task 1 at w1"), "{workers}");
    let cancelled = machines.follow(workers, "descartes loop cancel {id}");
    cancelled.assert_code(0);
    let told = cancelled.stdout();
    assert!(told.contains("recorded as cancelled"), "{told}");
    let stopped = "w1 stopped at task 1 and handed in its work";
    assert!(told.contains(stopped), "{told}");
    assert!(!is_agent_there(&machines));
    let again = machines.typed(&["loop", "cancel", parent]);
    assert!(
        again.stdout().contains("nothing to cancel"),
        "{}",
        again.stdout()
    );
    let status = machines.typed(&["loop", "status", parent]).stdout();
    assert!(!status.contains("may still be at work"), "{status}");
    // It goes on where it was.
    std::fs::write(&go, "").unwrap();
    machines.typed(&["loop", "resume", parent]).assert_code(0);
}

#[test]
fn who_cancels_while_the_engine_is_away_is_told_who_is_still_at_work() {
    let Some(working) = Machines::at_work("a cancel without an engine", "w1") else {
        return;
    };
    let WorkingMachines {
        machines,
        address,
        child,
        ..
    } = working;
    let parent = child["parent"].as_str().unwrap();
    machines.engine(&["stop"]).assert_code(0);
    let cancelled = machines.typed(&["loop", "cancel", parent, "--now"]);
    cancelled.assert_code(1);
    let told = cancelled.stderr();
    assert!(
        told.contains("cannot be told to stop (task 1 at w1"),
        "{told}"
    );
    let hint = format!("descartes loop cancel {parent}");
    assert!(told.contains(&hint), "{told}");
    let json = machines.typed(&["loop", "cancel", parent, "--json"]);
    json.assert_code(1);
    let value: Value = serde_json::from_str(&json.stdout()).unwrap();
    let message = value["message"].as_str().unwrap();
    assert!(message.contains("task 1 at w1"), "{value}");
    machines
        .engine(&["start", "--listen", &address])
        .assert_code(0);
    let again = machines.typed(&["loop", "cancel", parent]);
    again.assert_code(0);
    let told = again.stdout();
    assert!(told.contains("w1 stopped at task 1"), "{told}");
    assert!(!is_agent_there(&machines));
}

#[test]
fn who_starts_over_after_the_coordinator_died_has_no_agent_of_before_at_work() {
    let Some(working) = Machines::at_work("a loop that is started over", "w1") else {
        return;
    };
    let WorkingMachines {
        machines,
        address,
        go,
        child,
    } = working;
    let parent = child["parent"].as_str().unwrap();
    kill_host(&machines, parent);
    std::fs::remove_file(&go).unwrap_or_default();
    let url = format!("nats://{address}");
    let agent = machines.world.agent(&waits_for(&go));
    let words = ["loop", "start", "--scud-tag", "auth", "--workers", &url];
    let more = ["--verify", "ls", "--detach", "--force", "--command", &agent];
    let started = machines.typed(&[&words[..], &more].concat());
    started.assert_code(0);
    let told = started.stderr();
    assert!(told.contains("w1 stopped at task 1"), "{told}");
    assert_eq!(said(&machines, "1", ": handed in"), 1);
    std::fs::write(&go, "").unwrap();
}

#[test]
fn a_loop_whose_engine_is_gone_for_good_goes_on_with_another() {
    let Some(working) = Machines::at_work("another engine", "w1") else {
        return;
    };
    let WorkingMachines {
        mut machines,
        address,
        go,
        child,
    } = working;
    let parent = child["parent"].as_str().unwrap();
    kill_host(&machines, parent);
    // As long as it answers it has what workers hand in.
    let other = machines.free_address();
    let url = format!("nats://{other}");
    let with_key = format!("nats://coordinator@{other}?key={KEY}");
    let refused = machines.typed(&["loop", "resume", parent, "--workers", &with_key]);
    refused.assert_code(65);
    assert!(
        refused.stderr().contains("still answers"),
        "{}",
        refused.stderr()
    );
    // Nor is anything kept of what was refused.
    assert!(!machines.world.state().join("engine-keys").exists());
    machines.engine(&["stop"]).assert_code(0);
    let refused = machines.typed(&["loop", "resume", parent]);
    refused.assert_code(65);
    let hint = "descartes loop resume --workers URL";
    let again = suggestion(&refused.stderr(), hint).expect(hint);
    // The machine is lost with all that lay on it.
    drop(machines.take_worker().kill());
    std::fs::remove_dir_all(machines.world.state().join("engine")).unwrap();
    machines
        .engine(&["start", "--listen", &other])
        .assert_code(0);
    assert_ne!(address, other);
    machines.worker("w2", &[]);
    std::fs::write(&go, "").unwrap();
    let again = again.replace("URL", &url);
    typed(&machines.world, "project", &again).assert_code(0);
    let status = machines.typed(&["loop", "status", parent]).stdout();
    let change = format!(r#"tasks.workers: "nats://{address}" -> "{url}""#);
    assert!(status.contains(&change), "{status}");
    let files = machines.world.git(["ls-tree", "--name-only", "HEAD"]);
    for task in 1..=3 {
        assert!(files.contains(&format!("work-{task}.txt")), "{files}");
    }
}

#[test]
fn one_engine_by_another_spelling_is_no_other_engine() {
    let Some(working) = Machines::at_work("another spelling", "w1") else {
        return;
    };
    let WorkingMachines {
        machines,
        address,
        go,
        child,
    } = working;
    let parent = child["parent"].as_str().unwrap();
    kill_host(&machines, parent);
    let port = address.rsplit_once(':').unwrap().1;
    let url = format!("nats://coordinator@localhost:{port}");
    std::fs::write(&go, "").unwrap();
    let resumed = machines.typed(&["loop", "resume", parent, "--workers", &url]);
    resumed.assert_code(0);
    let told = resumed.stderr();
    assert!(!told.contains("is done again"), "{told}");
    // What its worker was at counts: no task was begun twice.
    let status = machines.typed(&["loop", "status", parent, "--json"]);
    let status: Value = serde_json::from_str(&status.stdout()).unwrap();
    assert_eq!(status["iteration"], 3, "{status}");
}

#[test]
fn a_remote_task_that_a_person_cancels_is_not_offered_again() {
    let Some(working) = Machines::at_work("a cancelled task", "w1") else {
        return;
    };
    let WorkingMachines {
        machines,
        go,
        child,
        ..
    } = working;
    let (id, parent) = (
        child["loop_id"].as_str().unwrap(),
        child["parent"].as_str().unwrap(),
    );
    let cancelled = machines.typed(&["loop", "cancel", id]);
    cancelled.assert_code(0);
    let told = cancelled.stdout();
    assert!(told.contains("its task is blocked"), "{told}");
    std::fs::write(&go, "").unwrap();
    eventually("the whole is over", LONG, || {
        machines
            .typed(&["loop", "status", parent, "--json"])
            .stdout()
            .contains("tasks_blocked")
    });
    let files = machines.world.git(["ls-tree", "--name-only", "HEAD"]);
    assert!(!files.contains("work-1.txt"), "{files}");
    assert!(files.contains("work-2.txt"), "{files}");
}

#[test]
fn a_loop_that_was_cancelled_needs_its_engine_no_more() {
    let Some(working) = Machines::at_work("a cancel without need", "w1") else {
        return;
    };
    let WorkingMachines {
        machines, child, ..
    } = working;
    let parent = child["parent"].as_str().unwrap();
    let cancelled = machines.typed(&["loop", "cancel", parent]);
    cancelled.assert_code(0);
    let told = cancelled.stdout();
    assert!(told.contains("every process of the loop is gone"), "{told}");
    assert!(!is_agent_there(&machines));
    let status = machines.typed(&["loop", "status", parent]).stdout();
    assert!(!status.contains("may still be at work"), "{status}");
    machines.engine(&["stop"]).assert_code(0);
    let again = machines.typed(&["loop", "cancel", parent]);
    again.assert_code(0);
    assert!(
        again.stdout().contains("nothing to cancel"),
        "{}",
        again.stdout()
    );
}

#[test]
fn who_cancels_a_loop_with_a_frozen_worker_is_told_of_it() {
    let Some(working) = Machines::at_work("a frozen worker", "w1") else {
        return;
    };
    let WorkingMachines {
        mut machines,
        child,
        ..
    } = working;
    let parent = child["parent"].as_str().unwrap();
    let mut worker = machines.take_worker();
    let pid = Pid::from_raw(worker.id().cast_signed());
    kill(pid, Signal::SIGSTOP).unwrap();
    let cancelled = machines.typed(&["loop", "cancel", parent, "--now"]);
    cancelled.assert_code(0);
    let told = cancelled.stdout();
    assert!(
        told.contains("task 1 was taken back from w1, which does not answer"),
        "{told}"
    );
    worker.kill().unwrap();
    worker.wait().unwrap();
}

#[test]
fn who_replaced_a_loop_while_its_engine_was_away_can_stop_its_agents_later() {
    let Some(working) = Machines::at_work("a replaced loop", "w1") else {
        return;
    };
    let WorkingMachines {
        machines,
        address,
        go,
        child,
    } = working;
    let parent = child["parent"].as_str().unwrap();
    kill_host(&machines, parent);
    machines.engine(&["stop"]).assert_code(0);
    let agent = machines.world.agent(&waits_for(&go));
    let words = ["loop", "start", "--scud-tag", "auth", "--verify", "ls"];
    let more = ["--detach", "--force", "--command", &agent];
    let started = machines.typed(&[&words[..], &more].concat());
    started.assert_code(0);
    let hint = format!("descartes loop cancel {parent}");
    assert!(started.stderr().contains(&hint), "{}", started.stderr());
    machines
        .engine(&["start", "--listen", &address])
        .assert_code(0);
    // The new loop is running in its place.
    let cancelled = machines.typed(&["loop", "cancel", parent]);
    cancelled.assert_code(0);
    let told = cancelled.stdout();
    assert!(told.contains("w1 stopped at task 1"), "{told}");
    std::fs::write(&go, "").unwrap();
}
