//! Merge trains: what is asked for, and when.

use descartes_kernel::sched::{Event, Input, MergeEnd, SchedConfig, Scheduler, TrainEnd};

use crate::desk::{Desk, GREEN, plan, task};

fn config() -> SchedConfig {
    SchedConfig {
        slots: 3,
        merge_batch: 4,
        ..SchedConfig::default()
    }
}

/// Three tasks are done; the first is being merged alone, the other two wait for a train.
fn two_wait() -> Desk {
    let mut desk = Desk::new(vec![task("1"), task("2"), task("3")], config());
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

/// Does what is asked for, and everything goes well, until nothing is asked for any more.
pub fn go_well(desk: &mut Desk, acts: Vec<String>) {
    let mut open: std::collections::VecDeque<String> = acts.into();
    while let Some(act) = open.pop_front() {
        let (what, of) = act.split_once(' ').unwrap_or((&act, ""));
        let train = desk.journal.iter().rev().find_map(|event| match event {
            Event::TrainStarted { train, .. } => Some(*train),
            _ => None,
        });
        let train = train.unwrap_or_default();
        let input = match what {
            "merge" => Input::Merged {
                task: of.into(),
                end: MergeEnd::Merged,
            },
            "stack" => Input::TrainStacked {
                train,
                out: Vec::new(),
                held: Vec::new(),
            },
            "gate" => Input::TrainGated {
                train,
                members: of.split('+').count() as u32,
                end: TrainEnd::Green,
                gate_ms: 1,
            },
            "start" => {
                open.extend(desk.end(of.split('#').next().unwrap(), GREEN));
                continue;
            }
            "commit" => {
                let wave = of.split(':').next().unwrap();
                open.extend(desk.committed(wave.parse().unwrap()));
                continue;
            }
            _ => continue,
        };
        open.extend(desk.put(input));
    }
}

/// The answers to one train: all green; red, and the second of two is to blame; one that does not fit.
fn trains() -> [Vec<Input>; 3] {
    let red = || TrainEnd::Red {
        tail: "1 failed".to_owned(),
        check_of: None,
    };
    let gated = |members, end| Input::TrainGated {
        train: 1,
        members,
        end,
        gate_ms: 1,
    };
    let conflict = MergeEnd::Conflict {
        tail: "in a.rs".to_owned(),
    };
    let stacked = |out| Input::TrainStacked {
        train: 1,
        out,
        held: Vec::new(),
    };
    [
        vec![stacked(Vec::new()), gated(2, TrainEnd::Green)],
        vec![
            stacked(Vec::new()),
            gated(2, red()),
            gated(1, TrainEnd::Green),
            gated(2, red()),
        ],
        vec![
            stacked(vec![("3".into(), conflict)]),
            gated(1, TrainEnd::Green),
        ],
    ]
}

#[test]
fn a_host_that_dies_between_any_two_records_of_a_train_leaves_nothing_that_waits_for_ever() {
    for inputs in trains() {
        let nodes = || vec![task("1"), task("2"), task("3")];
        let mut desk = Desk::new(nodes(), config());
        desk.begin();
        desk.end("1", GREEN);
        desk.end("2", GREEN);
        desk.end("3", GREEN);
        desk.merged("1");
        for input in inputs.clone() {
            desk.put(input);
        }
        for cut in 1..=desk.journal.len() {
            let left = &desk.journal[..cut];
            let scheduler = Scheduler::recover(plan(nodes()), config(), left).unwrap();
            let mut later = Desk {
                scheduler,
                journal: left.to_vec(),
                ended: None,
            };
            let acts = later.begin();
            go_well(&mut later, acts);
            let account = later.scheduler.account();
            assert!(
                later.ended.is_some(),
                "{inputs:?}, died after {:?}: {account:?}",
                left.last()
            );
        }
    }
}
