//! Cost at scale. The bounds are generous, because tests run unoptimised beside other tests; what
//! they catch is a cost that grows faster than the graph. The numbers are printed.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a measure needs a clock")]
#![expect(clippy::print_stdout, reason = "a measure is told")]

use std::collections::VecDeque;
use std::fmt::Write;
use std::time::{Duration, Instant};

use descartes_kernel::sched::{
    AttemptEnd, Barrier, CommitEnd, Effect, Input, MergeEnd, Outcome, SchedConfig, Scheduler,
};
use descartes_plans::graph::{TaskGraph, TaskNode, TaskStatus};
use descartes_plans::roadmap;
use descartes_plans::scud::{self, Form};

/// How much slower than a release build a test may be.
const SLACK: u32 = 10;

#[derive(Clone, Copy, Debug)]
enum Shape {
    Chain,
    Wide,
    Random,
}

const SHAPES: [Shape; 3] = [Shape::Chain, Shape::Wide, Shape::Random];

/// What each task depends on.
fn dependencies(shape: Shape, tasks: usize) -> Vec<Vec<usize>> {
    let mut seed = 7_u64;
    let mut roll = |sides: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % sides
    };
    let of = |task: usize| match shape {
        _ if task == 0 => Vec::new(),
        Shape::Chain => vec![task - 1],
        Shape::Wide => vec![0],
        Shape::Random => (0..roll(4)).map(|_| roll(task)).collect(),
    };
    (0..tasks).map(of).collect()
}

fn scg(shape: Shape, tasks: usize) -> String {
    let mut text = String::from(
        "# SCUD Graph v1\n# Phase: big\n\n@meta {\n  name big\n  updated 2025-01-01T00:00:00+00:00\n}\n\n@nodes\n",
    );
    for task in 0..tasks {
        writeln!(
            text,
            "{} | Task number {task} of a long list | P | 3 | M",
            task + 1
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
    for task in 0..tasks {
        writeln!(
            text,
            "{} | description |\n  What is to be done for number {task}.",
            task + 1
        )
        .unwrap();
    }
    text
}

/// Time that this thread has spent on a processor, so that other tests do not count; wall clock
/// where the system does not tell.
fn spent(since: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|told| told.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| since.elapsed(), Duration::from_nanos)
}

/// The shortest of three.
fn best<T>(mut work: impl FnMut() -> T) -> (Duration, T) {
    let start = Instant::now();
    let mut rounds = (0..3).map(|_| {
        let before = spent(start);
        let made = work();
        (spent(start) - before, made)
    });
    let first = rounds.next().unwrap();
    rounds.fold(
        first,
        |best, next| if next.0 < best.0 { next } else { best },
    )
}

fn read_check_and_plan(text: &str) -> usize {
    let file = scud::parse(text, &Form::Scg).unwrap();
    assert!(file.check("big").is_empty());
    file.graph("big").unwrap().plan().unwrap().waves().len()
}

#[test]
fn ten_thousand_tasks_are_read_checked_and_planned_in_a_moment() {
    for shape in SHAPES {
        let text = scg(shape, 10_000);
        let (time, waves) = best(|| read_check_and_plan(&text));
        println!(
            "{shape:?}: 10,000 tasks, {} kB, {waves} waves: {time:?}",
            text.len() / 1000
        );
        assert!(
            time < SLACK * Duration::from_millis(100),
            "{shape:?}: {time:?}"
        );
    }
}

fn compare(shape: Shape, tasks: usize) {
    let (small_text, large_text) = (scg(shape, tasks), scg(shape, 10 * tasks));
    // As many tasks on both sides: what a thread has spent is told in steps of its time slices.
    let (small, _) = best(|| (0..10).map(|_| read_check_and_plan(&small_text)).max());
    let (large, _) = best(|| read_check_and_plan(&large_text));
    println!(
        "{shape:?}: {small:?} for 10 times {tasks}, {large:?} for {}",
        10 * tasks
    );
    assert!(
        large < 4 * small,
        "ten times the tasks, not a hundred times the cost: {shape:?}: {small:?}, {large:?}"
    );
}

#[test]
fn ten_times_the_tasks_cost_about_ten_times_as_much() {
    for shape in SHAPES {
        compare(shape, 3_000);
    }
}

#[test]
#[ignore = "takes its time where it is not optimised"]
fn a_hundred_thousand_tasks_stay_linear() {
    for shape in SHAPES {
        compare(shape, 10_000);
    }
}

#[test]
fn a_million_edges_are_planned() {
    let ids: Vec<String> = (0..2_000).map(|task| format!("t{task}")).collect();
    let mut nodes: Vec<TaskNode> = ids
        .iter()
        .map(|id| TaskNode::new(id.as_str(), ""))
        .collect();
    for task in 0..nodes.len() {
        let before = ids[task.saturating_sub(510)..task]
            .iter()
            .map(String::as_str);
        nodes[task] = nodes[task].clone().after(before);
    }
    let edges: usize = nodes.iter().map(|node| node.dependencies.len()).sum();
    assert!(edges > 880_000, "{edges}");
    let (time, waves) = best(|| TaskGraph::new(nodes.clone()).plan().unwrap().waves().len());
    println!("{edges} edges, {waves} waves: {time:?}");
    assert!(time < SLACK * Duration::from_millis(300), "{time:?}");
}

#[test]
fn one_status_in_a_file_of_ten_thousand_tasks_is_changed_at_once() {
    let text = scg(Shape::Random, 10_000);
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let set = |text: &str, form: &Form| {
        scud::set_status(
            text,
            form,
            "big",
            "7001",
            Some(TaskStatus::Pending),
            TaskStatus::Done,
            now,
        )
        .unwrap()
    };
    let (time, edit) = best(|| set(&text, &Form::Scg));
    let changed = text
        .lines()
        .zip(edit.new_text.lines())
        .filter(|(a, b)| a != b)
        .count();
    assert_eq!((changed, edit.changes.len()), (2, 1));
    println!("one cell of {} kB: {time:?}", text.len() / 1000);
    assert!(time < SLACK * Duration::from_millis(10), "{time:?}");

    let list: Vec<serde_json::Value> = (0..10_000)
        .map(|id| serde_json::json!({"id": id, "title": format!("Task {id}"), "status": "pending", "dependencies": []}))
        .collect();
    let json = serde_json::json!({"big": {"name": "big", "tasks": list}}).to_string();
    let (time, _) = best(|| set(&json, &Form::TagMap));
    println!("one cell of {} kB of JSON: {time:?}", json.len() / 1000);
    assert!(time < 6 * SLACK * Duration::from_millis(10), "{time:?}");
}

#[test]
fn a_roadmap_of_ten_thousand_tasks_is_read_and_ticked() {
    let mut text = String::from("# Roadmap: big\n## Tasks\n");
    for task in 0..10_000_usize {
        let before = task.saturating_sub(1);
        writeln!(
            text,
            "- [ ] **t{task}**: Do number {task}\n  - depends: {}\n  - timeout: 20min",
            if task == 0 {
                "none".to_owned()
            } else {
                format!("t{before}")
            }
        )
        .unwrap();
    }
    let (time, _) = best(|| roadmap::parse(&text).graph().plan().unwrap());
    println!("roadmap of 10,000 tasks: {time:?}");
    assert!(time < SLACK * Duration::from_millis(100), "{time:?}");
    let (time, edit) = best(|| roadmap::tick(&text, "t9999").unwrap());
    println!("one tick: {time:?}");
    assert_eq!(edit.new_text.len(), text.len());
    assert!(time < SLACK * Duration::from_millis(50), "{time:?}");
}

/// Drives tasks that take no time through a scheduler; answers with how many were done.
fn step_through(mut scheduler: Scheduler) -> usize {
    let mut inputs = VecDeque::from([Input::Begin]);
    let mut done = 0;
    while let Some(input) = inputs.pop_front() {
        for effect in scheduler.advance(&input) {
            match effect {
                Effect::StartAttempt { tasks, .. } => {
                    inputs.extend(tasks.into_iter().map(|given| {
                        let end = AttemptEnd::Green {
                            changed: true,
                            claimed: true,
                            unproven: false,
                        };
                        Input::Finished {
                            task: given.task,
                            end,
                        }
                    }))
                }
                Effect::Merge { task } => inputs.push_back(Input::Merged {
                    task,
                    end: MergeEnd::Merged,
                }),
                Effect::CommitWave { wave, .. } => {
                    inputs.push_back(Input::WaveCommitted {
                        wave,
                        end: CommitEnd::Committed { commit: None },
                    });
                }
                Effect::MarkDone { .. } => done += 1,
                Effect::Finish(ended) => assert_eq!(ended.outcome, Outcome::Complete),
                _ => {}
            }
        }
    }
    done
}

#[test]
fn ten_thousand_tasks_are_stepped_through_in_a_moment() {
    for shape in SHAPES {
        let text = scg(shape, 10_000);
        let graph = scud::parse(&text, &Form::Scg)
            .unwrap()
            .graph("big")
            .unwrap();
        let plan = graph.plan().unwrap();
        for barrier in [Barrier::On, Barrier::Off] {
            let config = SchedConfig {
                slots: 2,
                barrier,
                max_iterations: None,
                ..SchedConfig::default()
            };
            let mut schedulers = vec![Scheduler::new(plan.clone(), config); 3];
            let (time, done) = best(|| step_through(schedulers.pop().unwrap()));
            println!("{shape:?}, barrier {barrier:?}: {done} tasks in {time:?}");
            assert_eq!(done, 10_000);
            assert!(
                time < SLACK * Duration::from_millis(50),
                "{shape:?}: {time:?}"
            );
        }
    }
}
