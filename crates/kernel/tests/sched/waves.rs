//! Waves, barriers, and what is written before what is done.

use descartes_kernel::sched::{
    Barrier, Effect, Event, Input, MergeEnd, Outcome, SchedConfig, Scheduler,
};

use crate::desk::{Desk, GREEN, diamond, plan, task, two_at_a_time};

#[test]
fn waves_run_one_after_the_other_and_are_committed() {
    let mut desk = Desk::new(diamond(), two_at_a_time());
    assert_eq!(desk.begin(), ["start 1#1@0"]);
    assert_eq!(desk.end("1", GREEN), ["merge 1"]);
    assert_eq!(desk.merged("1"), ["done 1", "commit 1: 1"]);
    assert_eq!(desk.committed(1), ["start 2#1@0", "start 3#1@1"]);
    assert_eq!(desk.end("3", GREEN), ["merge 3"]);
    assert_eq!(desk.end("2", GREEN), [""; 0], "one merge at a time");
    assert_eq!(desk.merged("3"), ["done 3", "merge 2"]);
    assert_eq!(desk.merged("2"), ["done 2", "commit 2: 3 2"]);
    assert_eq!(desk.committed(2), ["start 4#1@0"]);
    assert_eq!(desk.through("4"), ["done 4", "commit 3: 4"]);
    assert_eq!(desk.committed(3), ["finish"]);
    assert_eq!(*desk.outcome(), Outcome::Complete);
    assert_eq!(desk.ended.unwrap().account.done.len(), 4);
    assert_eq!(desk.scheduler.iterations(), 4);
}

#[test]
fn the_intent_is_written_before_the_act() {
    let mut scheduler = Scheduler::new(plan(vec![task("1")]), SchedConfig::default());
    let effects = scheduler.advance(&Input::Begin);
    let kinds: Vec<&str> = effects
        .iter()
        .map(|effect| match effect {
            Effect::Append(event) => match event.of_tasks() {
                Some(Event::Began { .. }) => "began",
                Some(Event::AttemptStarted { .. }) => "intent",
                _ => "other",
            },
            Effect::Claim { .. } => "claim",
            Effect::StartAttempt { .. } => "start",
            _ => "other",
        })
        .collect();
    assert_eq!(kinds, ["began", "intent", "claim", "start"]);
}

#[test]
fn without_barriers_a_task_starts_when_what_it_needs_is_merged() {
    let nodes = vec![
        task("1"),
        task("2"),
        task("3").after(["1"]),
        task("4").after(["3"]),
    ];
    let mut desk = Desk::new(
        nodes,
        SchedConfig {
            barrier: Barrier::Off,
            ..two_at_a_time()
        },
    );
    assert_eq!(desk.begin(), ["start 1#1@0", "start 2#1@1"]);
    assert_eq!(desk.end("1", GREEN), ["merge 1"]);
    assert_eq!(
        desk.merged("1"),
        ["done 1", "start 3#1@0"],
        "task 2 of wave 1 still runs"
    );
    desk.end("3", GREEN);
    assert_eq!(desk.merged("3"), ["done 3", "start 4#1@0"]);
    assert_eq!(desk.through("2"), ["done 2", "commit 1: 1 2"]);
    assert_eq!(
        desk.committed(1),
        ["commit 2: 3"],
        "waves are marked in their order"
    );
    assert_eq!(
        desk.end("4", GREEN),
        [""; 0],
        "a merge waits for the commit of a wave: both move the same refs"
    );
    assert_eq!(desk.committed(2), ["merge 4"]);
    assert_eq!(desk.merged("4"), ["done 4", "commit 3: 4"]);
    assert_eq!(desk.committed(3), ["finish"]);
}

#[test]
fn with_one_slot_a_task_starts_when_the_one_before_is_merged_or_sent_back() {
    let mut desk = Desk::new(vec![task("1"), task("2")], SchedConfig::default());
    assert_eq!(desk.begin(), ["start 1#1@0"]);
    assert_eq!(desk.end("1", GREEN), ["merge 1"]);
    let red = MergeEnd::Red {
        tail: "red".to_owned(),
    };
    let task_1 = || "1".into();
    assert_eq!(
        desk.put(Input::Merged {
            task: task_1(),
            end: red
        }),
        ["start 1#2@0"]
    );
    assert_eq!(desk.end("1", GREEN), ["merge 1"]);
    assert_eq!(
        desk.put(Input::Merged {
            task: task_1(),
            end: MergeEnd::Merged
        }),
        ["done 1", "start 2#1@0"]
    );
}

#[test]
fn a_merge_that_was_stopped_is_done_again_and_costs_nothing() {
    let mut desk = Desk::new(vec![task("1")], SchedConfig::default());
    desk.begin();
    desk.end("1", GREEN);
    desk.put(Input::Cancel);
    let end = MergeEnd::Interrupted;
    let task_1 = || "1".into();
    assert_eq!(
        desk.put(Input::Merged {
            task: task_1(),
            end
        }),
        ["finish"]
    );
    desk.die(vec![task("1")], SchedConfig::default());
    assert_eq!(desk.begin(), ["merge 1"]);
    assert_eq!(
        desk.put(Input::Merged {
            task: task_1(),
            end: MergeEnd::Merged
        }),
        ["done 1", "commit 1: 1"]
    );
}
