//! What people, agents and other tools do to the task file meanwhile.

use descartes_kernel::sched::{Effect, Input, MarkEnd, Outcome, SchedConfig, TaskState};
use descartes_plans::graph::{TaskNode, TaskStatus};

use crate::desk::{Desk, GREEN, diamond, task, two_at_a_time};

#[test]
fn statuses_in_the_file_count_at_the_begin() {
    let mut nodes = diamond();
    nodes.push(task("5"));
    nodes.push(task("6").after(["5"]));
    nodes[0].status = TaskStatus::Done;
    nodes[1].status = TaskStatus::InProgress;
    nodes[2].status = TaskStatus::Review;
    nodes[4].status = TaskStatus::Cancelled;
    let mut desk = Desk::new(nodes, two_at_a_time());
    assert_eq!(
        desk.begin(),
        ["start 2#1@0"],
        "in progress is taken up again; done, held and cancelled are not"
    );
    assert_eq!(desk.through("2"), ["done 2", "commit 2: 2"]);
    desk.committed(2);
    let account = desk.ended.unwrap().account;
    assert_eq!(account.left_out, ["5"]);
    let held: Vec<String> = account
        .held
        .iter()
        .map(|held| format!("{} {:?} {:?}", held.task, held.status, held.by))
        .collect();
    assert_eq!(
        held,
        ["3 Some(Review) []", "6 None [\"5\"]", "4 None [\"3\"]"]
    );
}

#[test]
fn cancelled_and_deferred_tasks_do_not_keep_a_loop_from_being_complete() {
    let mut nodes = vec![task("1"), task("2"), task("3")];
    nodes[1].status = TaskStatus::Cancelled;
    nodes[2].status = TaskStatus::Deferred;
    let mut desk = Desk::new(nodes, SchedConfig::default());
    desk.begin();
    desk.through("1");
    desk.committed(1);
    assert_eq!(*desk.outcome(), Outcome::Complete);
}

#[test]
fn a_loop_whose_tasks_are_all_blocked_is_not_complete() {
    // Upstream says "All tasks complete!" and exits 0.
    let mut nodes = diamond();
    nodes[0].status = TaskStatus::Failed;
    let mut desk = Desk::new(nodes, SchedConfig::default());
    assert_eq!(desk.begin(), ["finish"]);
    assert_eq!(*desk.outcome(), Outcome::TasksBlocked);
    let mut empty = Desk::new(Vec::new(), SchedConfig::default());
    empty.begin();
    assert_eq!(*empty.outcome(), Outcome::Complete);
}

#[test]
fn people_may_change_statuses_while_the_loop_runs() {
    let mut desk = Desk::new(
        diamond(),
        SchedConfig {
            max_attempts: 1,
            ..two_at_a_time()
        },
    );
    desk.begin();
    desk.red("1");
    assert!(desk.ended.is_some());
    let mut desk = Desk::new(
        vec![
            task("1"),
            task("2"),
            task("3").after(["1"]),
            task("4"),
            task("5"),
        ],
        SchedConfig {
            max_attempts: 1,
            ..two_at_a_time()
        },
    );
    desk.begin();
    assert_eq!(desk.red("1"), ["blocked 1", "start 4#1@0"]);
    assert_eq!(desk.seen("5", TaskStatus::Cancelled), [""; 0]);
    assert_eq!(
        desk.seen("1", TaskStatus::Pending),
        [""; 0],
        "opened again, it waits for a slot"
    );
    assert_eq!(
        desk.end("4", GREEN),
        ["merge 4", "start 1#2@0"],
        "and has all its attempts again"
    );
    desk.merged("4");
    desk.seen("2", TaskStatus::Cancelled);
    desk.seen("2", TaskStatus::InProgress);
    assert_eq!(desk.seen("2", TaskStatus::Deferred), [""; 0]);
    assert_eq!(
        desk.end("2", GREEN),
        [""; 0],
        "what a person took out is not merged"
    );
    assert!(matches!(
        desk.scheduler.state("2"),
        Some(TaskState::MarkedOut {
            status: TaskStatus::Deferred
        })
    ));
    desk.seen("1", TaskStatus::Review);
    desk.seen("1", TaskStatus::InProgress);
    assert_eq!(
        desk.through("1"),
        ["done 1", "commit 1: 4 1"],
        "a wish may be taken back"
    );
}

#[test]
fn an_agent_cannot_make_its_own_task_done() {
    let mut desk = Desk::new(vec![task("1")], SchedConfig::default());
    desk.begin();
    let effects = desk.scheduler.advance(&Input::StatusSeen {
        task: "1".into(),
        status: TaskStatus::Done,
    });
    assert_eq!(
        effects,
        [Effect::Claim { task: "1".into() }],
        "it is put back to in progress"
    );
    assert_eq!(desk.red("1"), ["start 1#2@0"]);
}

#[test]
fn stale_writes_of_other_tools_are_set_right_and_not_believed() {
    let mut desk = Desk::new(
        vec![task("1"), task("2").after(["1"])],
        SchedConfig {
            max_attempts: 1,
            ..SchedConfig::default()
        },
    );
    desk.begin();
    desk.through("1");
    desk.committed(1);
    assert_eq!(desk.seen("1", TaskStatus::InProgress), ["done 1"]);
    assert_eq!(desk.seen("1", TaskStatus::Pending), ["done 1"]);
    assert_eq!(desk.seen("1", TaskStatus::Done), [""; 0]);
    desk.put(Input::Pause);
    desk.red("2");
    assert!(desk.ended.is_some());
}

#[test]
fn a_task_that_was_done_before_and_is_opened_is_run() {
    let done = TaskNode {
        status: TaskStatus::Done,
        ..task("1")
    };
    let mut desk = Desk::new(vec![done, task("2")], two_at_a_time());
    desk.begin();
    assert_eq!(desk.seen("1", TaskStatus::Pending), ["start 1#1@1"]);
    desk.through("1");
    assert_eq!(desk.seen("1", TaskStatus::Pending), ["done 1"]);
}

#[test]
fn a_task_that_somebody_else_took_is_left_to_them() {
    let mut desk = Desk::new(
        vec![task("1"), task("2"), task("3").after(["2"])],
        SchedConfig::default(),
    );
    desk.begin();
    desk.seen("2", TaskStatus::InProgress);
    assert_eq!(desk.through("1"), ["done 1", "commit 1: 1"]);
    assert_eq!(desk.committed(1), ["finish"]);
    assert_eq!(
        desk.ended.as_ref().unwrap().account.held[0].status,
        Some(TaskStatus::InProgress)
    );

    let mut desk = Desk::new(
        vec![task("1"), task("2"), task("3").after(["2"])],
        SchedConfig::default(),
    );
    desk.begin();
    desk.seen("2", TaskStatus::InProgress);
    desk.seen("2", TaskStatus::Done);
    desk.checked("2", MarkEnd::Green);
    desk.through("1");
    assert_eq!(desk.committed(1), ["start 3#1@0"], "what they did counts");
}

#[test]
fn a_claim_that_met_another_status_costs_nothing() {
    let mut desk = Desk::new(vec![task("1"), task("2")], SchedConfig::default());
    desk.begin();
    let refused = Input::ClaimRefused {
        task: "1".into(),
        found: TaskStatus::Cancelled,
    };
    assert_eq!(desk.put(refused), ["start 2#1@0"]);
    assert_eq!(desk.scheduler.iterations(), 1);
    desk.through("2");
    desk.committed(1);
    assert_eq!(*desk.outcome(), Outcome::TasksBlocked, "and is told");
}
