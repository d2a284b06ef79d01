//! What large graphs of tasks cost, without agents: `cargo xtask tasks scale` runs it.
//!
//! `task_scale plan SHAPE TASKS`, `task_scale edit FORM TASKS`, `task_scale noop TASKS`,
//! `task_scale schedule SEED`; each prints one line of JSON.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a tool for developers"
)]

use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use descartes_core::tasks::lists::{self, ListSource};
use descartes_core::tasks::{RoadmapSource, ScudSource, TaskSource};
use descartes_kernel::event::Decided;
use descartes_kernel::sched::{
    AttemptEnd, Barrier, CommitEnd, Effect, Input, MergeEnd, SchedConfig, Scheduler,
};
use descartes_kernel::tasks::RoadmapDefaults;
use descartes_plans::graph::{TaskGraph, TaskId, TaskNode, TaskStatus};
use descartes_plans::lists::{ListFormat, ListOptions};
use descartes_plans::roadmap;
use descartes_plans::scud::{self, Form};
use descartes_store::journal::Journal;
use jiff::Timestamp;
use nix::time::{ClockId, clock_gettime};
use serde_json::json;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let told = match words[..] {
        ["plan", "boxes", tasks] => plan_boxes(tasks.parse().unwrap()),
        ["edit", "boxes", tasks] => tick_boxes(tasks.parse().unwrap()),
        ["plan", shape, tasks] => plan(shape, tasks.parse().unwrap()),
        ["edit", form, tasks] => edit(form, tasks.parse().unwrap()),
        ["noop", tasks] => noop(tasks.parse().unwrap()),
        ["schedule", seed] => schedule(seed.parse().unwrap()),
        _ => json!({"error": "plan SHAPE TASKS | edit FORM TASKS | noop TASKS | schedule SEED"}),
    };
    println!("{told}");
}

fn dice(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |sides| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % sides
    }
}

fn dependencies(shape: &str, tasks: usize) -> Vec<Vec<usize>> {
    let mut roll = dice(7);
    let of = |task: usize| match shape {
        _ if task == 0 => Vec::new(),
        "chain" => vec![task - 1],
        "wide" => vec![0],
        _ => (0..roll(4)).map(|_| roll(task)).collect(),
    };
    (0..tasks).map(of).collect()
}

fn scg(shape: &str, tasks: usize) -> String {
    let head = "# SCUD Graph v1\n# Phase: big\n\n@meta {\n  name big\n  updated 2025-01-01T00:00:00+00:00\n}\n\n@nodes\n";
    let mut text = String::from(head);
    for task in 1..=tasks {
        writeln!(
            text,
            "{task} | Task number {task} of a long list | P | 3 | M"
        )
        .unwrap();
    }
    text.push_str("\n@edges\n");
    for (task, before) in dependencies(shape, tasks).iter().enumerate() {
        for before in before {
            writeln!(text, "{} -> {}", task + 1, before + 1).unwrap();
        }
    }
    text.push_str("\n@details\n");
    for task in 1..=tasks {
        writeln!(
            text,
            "{task} | description |\n  What is to be done for number {task}."
        )
        .unwrap();
    }
    text
}

fn plan(shape: &str, tasks: usize) -> serde_json::Value {
    let text = scg(shape, tasks);
    let since = busy_ms();
    let file = scud::parse(&text, &Form::Scg).unwrap();
    let (findings, graph) = file.checked("big");
    assert!(findings.is_empty());
    let plan = graph.unwrap().plan().unwrap();
    let spent = busy_ms() - since;
    assert!(!plan.waves().is_empty());
    json!({"ms": spent, "peak_kib": peak_kib()})
}

fn boxes(tasks: usize) -> String {
    let mut text = String::from("# Tasks\n");
    for task in 1..=tasks {
        if task % 10 == 1 {
            writeln!(text, "\n## {}. Group\n", task / 10 + 1).unwrap();
        }
        writeln!(
            text,
            "- [ ] {}.{} Do number {task}",
            (task - 1) / 10 + 1,
            (task - 1) % 10 + 1
        )
        .unwrap();
    }
    text
}

/// Boxes of another tool: recognised, read, planned.
fn plan_boxes(tasks: usize) -> serde_json::Value {
    let (folder, path) = boxes_at(tasks);
    let since = busy_ms();
    let found = lists::find(folder.path().join(CHANGE).as_path(), None);
    assert!(found.is_ok());
    let options = ListOptions::default();
    let read = lists::read_list(&path, ListFormat::OpenSpec, options, None, &[]).unwrap();
    assert_eq!(read.list.tasks.len(), tasks);
    let plan = read.list.graph(options).plan().unwrap();
    let spent = busy_ms() - since;
    assert!(!plan.waves().is_empty());
    json!({"ms": spent, "peak_kib": peak_kib()})
}

const CHANGE: &str = "openspec/changes/big";

fn boxes_at(tasks: usize) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let change = folder.path().join(CHANGE);
    std::fs::create_dir_all(&change).unwrap();
    std::fs::write(change.join("proposal.md"), "## Why\n").unwrap();
    let path = change.join("tasks.md");
    std::fs::write(&path, boxes(tasks)).unwrap();
    (folder, path)
}

/// One tick among many boxes, with read, check, write and sync: on a processor, and by the clock.
fn tick_boxes(tasks: usize) -> serde_json::Value {
    let (_folder, path) = boxes_at(tasks);
    let options = ListOptions::default();
    let mut source = ListSource::new(&path, ListFormat::OpenSpec, options, None);
    let ids: Vec<TaskId> = {
        let loaded = source.load().unwrap();
        let nodes = loaded.plan.graph().nodes();
        (1..=20).map(|n| nodes[n * tasks / 21].id.clone()).collect()
    };
    let (mut text_ms, mut durable_ms) = (Vec::new(), Vec::new());
    for id in &ids {
        let (busy, since) = (busy_ms(), Instant::now());
        source.set(id, TaskStatus::Done).unwrap();
        text_ms.push(busy_ms() - busy);
        durable_ms.push(ms(since));
    }
    let ticked = std::fs::read_to_string(&path).unwrap();
    assert_eq!(ticked.matches("[x]").count(), ids.len());
    json!({"text_ms": text_ms, "durable_ms": durable_ms})
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.trim().split(' ').next()?.parse().ok());
    number.unwrap_or(0)
}

/// Time of this thread on a processor: what runs beside it does not count.
fn busy_ms() -> f64 {
    let spent = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    std::time::Duration::from(spent).as_secs_f64() * 1e3
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// The text alone, then the whole of it: lock, read, check, write, sync.
fn edit(form: &str, tasks: usize) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    let (name, text) = match form {
        "scg" => ("tasks.scg", scg("random", tasks)),
        "json" => {
            let list: Vec<serde_json::Value> = (1..=tasks)
                .map(|id| json!({"id": id.to_string(), "title": format!("Task {id}"), "status": "pending", "dependencies": []}))
                .collect();
            let map = json!({"big": {"name": "big", "tasks": list}});
            ("tasks.json", serde_json::to_string_pretty(&map).unwrap())
        }
        _ => {
            let mut text = String::from("# Roadmap: big\n## Tasks\n");
            for task in 1..=tasks {
                writeln!(
                    text,
                    "- [ ] **{task}**: Do number {task}\n  - timeout: 20min"
                )
                .unwrap();
            }
            ("ROADMAP.md", text)
        }
    };
    let path = folder.path().join(name);
    std::fs::write(&path, &text).unwrap();
    let now = Timestamp::now();
    let pure = |id: &str| {
        let since = busy_ms();
        let new = match form {
            "scg" | "json" => {
                let form = Form::of_file_name(name).unwrap();
                let done = TaskStatus::Done;
                scud::set_status(&text, &form, "big", id, None, done, now)
                    .unwrap()
                    .new_text
            }
            _ => roadmap::tick(&text, id).unwrap().new_text,
        };
        let spent = busy_ms() - since;
        assert_ne!(new, text);
        spent
    };
    let mut source: Box<dyn TaskSource> = match form {
        "roadmap" => Box::new(RoadmapSource::new(&path, &RoadmapDefaults::default())),
        _ => Box::new(ScudSource::new(&path, "big", folder.path()).unwrap()),
    };
    source.load().unwrap();
    let ids: Vec<String> = (1..=20).map(|n| (n * tasks / 21).to_string()).collect();
    let text_ms: Vec<f64> = ids.iter().map(|id| pure(id)).collect();
    let durable_ms: Vec<f64> = ids
        .iter()
        .map(|id| {
            let since = Instant::now();
            source
                .set(&TaskId::from(id.as_str()), TaskStatus::Done)
                .unwrap();
            ms(since)
        })
        .collect();
    json!({"text_ms": text_ms, "durable_ms": durable_ms})
}

fn nodes(tasks: usize) -> Vec<TaskNode> {
    let ids: Vec<String> = (0..tasks).map(|task| format!("t{task}")).collect();
    let before = dependencies("random", tasks);
    let node = |(task, id): (usize, &String)| {
        let before = before[task].iter().map(|before| ids[*before].as_str());
        TaskNode::new(id.as_str(), "").after(before)
    };
    ids.iter().enumerate().map(node).collect()
}

/// Tasks that do nothing, two at a time: a process for each, every decision in the journal, which
/// is synced in groups.
fn noop(tasks: usize) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(&folder.path().join("journal.jsonl")).unwrap();
    let (tell, told) = channel::<Decided>();
    let writer = std::thread::spawn(move || {
        while let Ok(first) = told.recv() {
            for event in std::iter::once(first).chain(told.try_iter()) {
                journal.append_later(Timestamp::now(), &event).unwrap();
            }
            journal.sync().unwrap();
        }
    });
    let since = Instant::now();
    let config = SchedConfig {
        slots: 2,
        barrier: Barrier::Off,
        max_iterations: None,
        ..SchedConfig::default()
    };
    let plan = TaskGraph::new(nodes(tasks)).plan().unwrap();
    let mut scheduler = Scheduler::new(plan, config);
    let (done_tx, done_rx) = channel();
    let slots: Vec<_> = (0..2)
        .map(|_| {
            let (tx, rx): (_, Receiver<TaskId>) = channel();
            let done = done_tx.clone();
            std::thread::spawn(move || {
                for task in rx {
                    assert!(Command::new("true").status().unwrap().success());
                    done.send(task).unwrap();
                }
            });
            tx
        })
        .collect();
    let mut inputs = VecDeque::from([Input::Begin]);
    let (mut done, mut over) = (0, false);
    while !over {
        let input = inputs.pop_front().unwrap_or_else(|| {
            let task = done_rx.recv().unwrap();
            let end = AttemptEnd::Green {
                changed: true,
                claimed: true,
                unproven: false,
            };
            Input::Finished { task, end }
        });
        for effect in scheduler.advance(&input) {
            match effect {
                Effect::Append(event) => tell.send(*event).unwrap(),
                Effect::StartAttempt { slot, tasks } => {
                    slots[slot as usize % 2]
                        .send(tasks[0].task.clone())
                        .unwrap();
                }
                Effect::Merge { task } => {
                    let end = MergeEnd::Merged;
                    inputs.push_back(Input::Merged { task, end });
                }
                Effect::CommitWave { wave, .. } => {
                    let end = CommitEnd::Committed { commit: None };
                    inputs.push_back(Input::WaveCommitted { wave, end });
                }
                Effect::MarkDone { .. } => done += 1,
                Effect::Finish(_) => over = true,
                _ => {}
            }
        }
    }
    drop(tell);
    writer.join().unwrap();
    json!({"seconds": since.elapsed().as_secs_f64(), "done": done, "peak_kib": peak_kib()})
}

/// The makespan of our scheduler in a world of known durations, beside that of a list schedule
/// and the bound that no schedule can beat.
fn schedule(seed: u64) -> serde_json::Value {
    let mut roll = dice(seed);
    let (tasks, slots) = (40 + roll(160), 2 + roll(7));
    let before: Vec<Vec<usize>> = (0..tasks)
        .map(|task| match task {
            0 => Vec::new(),
            _ => (0..roll(3)).map(|_| roll(task)).collect(),
        })
        .collect();
    let lengths: Vec<u64> = (0..tasks).map(|_| 1 + roll(100) as u64).collect();
    let ids: Vec<String> = (0..tasks).map(|task| format!("{}", task + 1)).collect();
    let nodes: Vec<TaskNode> = (0..tasks)
        .map(|task| {
            let before = before[task].iter().map(|before| ids[*before].as_str());
            TaskNode::new(ids[task].as_str(), "").after(before)
        })
        .collect();
    let plan = TaskGraph::new(nodes).plan().unwrap();
    let run = |barrier| {
        let config = SchedConfig {
            slots: slots as u32,
            barrier,
            max_iterations: None,
            ..SchedConfig::default()
        };
        simulate(Scheduler::new(plan.clone(), config), &lengths)
    };
    let mut ends = vec![0; tasks];
    for task in 0..tasks {
        let ready = before[task].iter().map(|before| ends[*before]).max();
        ends[task] = ready.unwrap_or(0) + lengths[task];
    }
    let path = ends.iter().max().copied().unwrap_or(0);
    let work = lengths.iter().sum::<u64>().div_ceil(slots as u64);
    json!({
        "ours": run(Barrier::Off), "barrier": run(Barrier::On),
        "list": list_schedule(&before, &lengths, slots), "bound": path.max(work),
    })
}

fn simulate(mut scheduler: Scheduler, lengths: &[u64]) -> u64 {
    let mut now = 0;
    let mut running: BTreeMap<(u64, String), TaskId> = BTreeMap::new();
    let mut inputs = VecDeque::from([Input::Begin]);
    loop {
        let Some(input) = inputs.pop_front() else {
            let Some(((end, _), task)) = running.pop_first() else {
                return now;
            };
            now = end;
            let end = AttemptEnd::Green {
                changed: true,
                claimed: true,
                unproven: false,
            };
            inputs.push_back(Input::Finished { task, end });
            continue;
        };
        for effect in scheduler.advance(&input) {
            match effect {
                Effect::StartAttempt { tasks, .. } => {
                    let task = tasks[0].task.clone();
                    let length = lengths[task.parse::<usize>().unwrap() - 1];
                    running.insert((now + length, task.to_string()), task);
                }
                Effect::Merge { task } => {
                    let end = MergeEnd::Merged;
                    inputs.push_back(Input::Merged { task, end });
                }
                Effect::CommitWave { wave, .. } => {
                    let end = CommitEnd::Committed { commit: None };
                    inputs.push_back(Input::WaveCommitted { wave, end });
                }
                _ => {}
            }
        }
    }
}

/// Whenever a slot is free it takes the first ready task in the order of the file.
fn list_schedule(before: &[Vec<usize>], lengths: &[u64], slots: usize) -> u64 {
    let mut open: Vec<usize> = before.iter().map(Vec::len).collect();
    let mut running: BinaryHeap<std::cmp::Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut waiting: std::collections::BTreeSet<usize> =
        (0..open.len()).filter(|task| open[*task] == 0).collect();
    let mut now = 0;
    loop {
        while running.len() < slots
            && let Some(task) = waiting.pop_first()
        {
            running.push(std::cmp::Reverse((now + lengths[task], task)));
        }
        let Some(std::cmp::Reverse((end, done))) = running.pop() else {
            return now;
        };
        now = end;
        for (task, deps) in before.iter().enumerate() {
            let met = deps.iter().filter(|dep| **dep == done).count();
            if met > 0 {
                open[task] -= met;
                if open[task] == 0 {
                    waiting.insert(task);
                }
            }
        }
    }
}
