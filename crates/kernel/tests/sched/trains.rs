//! Merge trains: what is asked for, and when.

use descartes_kernel::sched::{Input, MergeEnd, SchedConfig, TrainEnd};

use crate::desk::{Desk, GREEN, task};

/// Three tasks are done; the first is being merged alone, the other two wait for a train.
fn two_wait() -> Desk {
    let config = SchedConfig {
        slots: 3,
        merge_batch: 4,
        ..SchedConfig::default()
    };
    let mut desk = Desk::new(vec![task("1"), task("2"), task("3")], config);
    desk.begin();
    assert_eq!(desk.end("1", GREEN), ["merge 1"]);
    desk.end("2", GREEN);
    desk.end("3", GREEN);
    assert_eq!(desk.merged("1"), ["done 1", "stack 2+3"]);
    let stacked = Input::TrainStacked {
        train: 1,
        out: Vec::new(),
        held: Vec::new(),
    };
    assert_eq!(desk.put(stacked), ["gate 2+3"]);
    desk
}

fn gated(desk: &mut Desk, end: TrainEnd) -> Vec<String> {
    desk.put(Input::TrainGated {
        train: 1,
        members: 2,
        end,
        gate_ms: 1,
    })
}

#[test]
fn a_train_whose_gates_could_not_run_is_merged_one_by_one_and_not_gated_beside_it() {
    let mut desk = two_wait();
    let message = "cannot start the guard".to_owned();
    let acts = gated(&mut desk, TrainEnd::Failed { message });
    assert_eq!(acts, ["merge 2"]);
    assert_eq!(desk.merged("2"), ["done 2", "merge 3"]);
}

#[test]
fn a_train_that_was_interrupted_is_stacked_again_and_not_gated_beside_it() {
    let mut desk = two_wait();
    assert_eq!(gated(&mut desk, TrainEnd::Interrupted), ["stack 2+3"]);
}

#[test]
fn a_green_train_lands_all_its_members() {
    let mut desk = two_wait();
    let acts = gated(&mut desk, TrainEnd::Green);
    assert_eq!(acts, ["done 2", "done 3", "commit 1: 1 2 3"]);
}

#[test]
fn after_a_red_train_half_of_it_is_gated() {
    let mut desk = two_wait();
    let red = TrainEnd::Red {
        tail: "1 failed".to_owned(),
        check_of: None,
    };
    assert_eq!(gated(&mut desk, red), ["gate 2"]);
    let end = MergeEnd::Interrupted;
    let task = "2".into();
    assert!(
        desk.put(Input::Merged { task, end }).is_empty(),
        "no merge is under way"
    );
}
