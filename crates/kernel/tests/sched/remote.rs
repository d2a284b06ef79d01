//! Attempts that go on without their host: whoever takes the loop up asks for them again, and starts none
//! of them anew.

use std::collections::BTreeSet;

use descartes_kernel::sched::{AttemptEnd, Event, Grouping, Outcome, SchedConfig, Scheduler};
use descartes_plans::graph::{TaskNode, TaskStatus};

use crate::desk::{Desk, GREEN, diamond, plan, task, two_at_a_time};
use crate::trains::go_well;

fn on_workers() -> SchedConfig {
    SchedConfig {
        outlive_host: true,
        ..two_at_a_time()
    }
}

/// What is under way by a journal: task, attempt and slot.
fn under_way(journal: &[Event]) -> BTreeSet<String> {
    let mut under_way = BTreeSet::new();
    for event in journal {
        match event {
            Event::AttemptStarted {
                task,
                slot,
                attempt,
            } => drop(under_way.insert(format!("{task}#{attempt}@{slot}"))),
            Event::AttemptEnded { task, .. } => {
                under_way.retain(|of| !of.starts_with(&format!("{task}#")));
            }
            _ => {}
        }
    }
    under_way
}

fn count_starts(journal: &[Event]) -> usize {
    let starts = journal.iter();
    starts
        .filter(|event| matches!(event, Event::AttemptStarted { .. }))
        .count()
}

#[test]
fn a_host_that_dies_after_any_record_takes_up_what_its_workers_are_at() {
    let nodes = || vec![task("1"), task("2"), task("3").after(["1"])];
    let mut desk = Desk::new(nodes(), on_workers());
    desk.begin();
    desk.red("1");
    desk.end("2", AttemptEnd::Interrupted);
    desk.end("1", GREEN);
    desk.merged("1");
    desk.end("2", GREEN);
    desk.merged("2");
    desk.committed(1);
    desk.end("3", GREEN);
    desk.merged("3");
    desk.committed(2);
    assert_eq!(*desk.outcome(), Outcome::Complete);
    for cut in 1..=desk.journal.len() {
        let left = &desk.journal[..cut];
        let scheduler = Scheduler::recover(plan(nodes()), on_workers(), left).unwrap();
        let mut later = Desk {
            scheduler,
            journal: left.to_vec(),
            ended: None,
        };
        let acts = later.begin();
        let last = left.last();
        let asked: BTreeSet<String> = acts
            .iter()
            .filter_map(|act| act.strip_prefix("start "))
            .map(str::to_owned)
            .collect();
        let before = under_way(left);
        assert!(before.is_subset(&asked), "died after {last:?}: {acts:?}");
        let fresh = count_starts(&later.journal) - count_starts(left);
        assert_eq!(asked.len(), before.len() + fresh, "died after {last:?}");
        let written = &later.journal[cut..];
        let is_ended = |event: &Event| matches!(event, Event::AttemptEnded { .. });
        assert!(!written.iter().any(is_ended), "died after {last:?}");
        // And another time, before anything else happened.
        later.die(nodes(), on_workers());
        let again = later.begin();
        let sorted = |acts: &[String]| acts.iter().cloned().collect::<BTreeSet<_>>();
        assert_eq!(sorted(&acts), sorted(&again), "died twice after {last:?}");
        go_well(&mut later, again);
        assert!(later.ended.is_some(), "died after {last:?}");
        let made = count_starts(&later.journal);
        assert!(made <= 5, "{made} attempts, died after {last:?}");
    }
}

#[test]
fn what_a_person_took_out_meanwhile_is_not_taken_up() {
    let nodes = || vec![task("1"), task("2")];
    let mut desk = Desk::new(nodes(), on_workers());
    assert_eq!(desk.begin(), ["start 1#1@0", "start 2#1@1"]);
    desk.die(nodes(), on_workers());
    desk.seen("2", TaskStatus::Cancelled);
    assert_eq!(desk.begin(), ["start 1#1@0"]);
}

#[test]
fn what_is_no_longer_in_the_file_is_not_taken_up() {
    let mut desk = Desk::new(vec![task("1"), task("2")], on_workers());
    desk.begin();
    desk.die(vec![task("2")], on_workers());
    assert_eq!(desk.begin(), ["start 2#1@1"]);
}

#[test]
fn a_wave_in_the_hands_of_one_agent_is_taken_up_as_one() {
    let config = SchedConfig {
        grouping: Grouping::Wave,
        ..on_workers()
    };
    let nodes = || -> Vec<TaskNode> { vec![task("1"), task("2")] };
    let mut desk = Desk::new(nodes(), config);
    assert_eq!(desk.begin(), ["start 1#1+2#1@0"]);
    desk.die(nodes(), config);
    assert_eq!(desk.begin(), ["start 1#1+2#1@0"]);
}

#[test]
fn fewer_workers_take_up_all_that_is_under_way_and_nothing_else() {
    let mut desk = Desk::new(diamond(), on_workers());
    desk.begin();
    desk.end("1", GREEN);
    desk.merged("1");
    assert_eq!(desk.committed(1), ["start 2#1@0", "start 3#1@1"]);
    let one = SchedConfig {
        slots: 1,
        ..on_workers()
    };
    desk.die(diamond(), one);
    assert_eq!(desk.begin(), ["start 2#1@0", "start 3#1@1"]);
    assert_eq!(desk.end("2", GREEN), ["merge 2"]);
}
