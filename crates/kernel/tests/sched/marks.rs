//! Tasks that somebody else marks or removes while the loop runs: not run, not proven, told.

use descartes_kernel::sched::{
    Input, MarkCheck, MarkEnd, MarkedTask, Outcome, SchedConfig, TaskState,
};
use descartes_plans::graph::TaskStatus::{self, Cancelled, Deferred, Done, Pending};

use crate::desk::{Desk, GREEN, plan, task, two_at_a_time};

fn red() -> MarkEnd {
    MarkEnd::Red {
        tail: "`make`: exit code 2".to_owned(),
    }
}

fn marked(desk: &Desk) -> Vec<(String, Option<TaskStatus>, Option<MarkCheck>)> {
    let row = |marked: &MarkedTask| (marked.task.to_string(), marked.status, marked.check);
    let ended = desk.ended.as_ref().unwrap();
    ended.account.marked.iter().map(row).collect()
}

#[test]
fn a_task_that_was_marked_done_is_checked_and_not_run_and_not_proven() {
    for (end, check) in [
        (MarkEnd::Green, MarkCheck::Green),
        (MarkEnd::NoGate, MarkCheck::NoGate),
    ] {
        let nodes = vec![task("1"), task("2"), task("3").after(["2"])];
        let mut desk = Desk::new(nodes, SchedConfig::default());
        assert_eq!(desk.begin(), ["start 1#1@0"]);
        assert_eq!(desk.seen("2", Done), ["check 2"]);
        assert_eq!(desk.seen("2", Done), [""; 0], "the same mark is no news");
        assert_eq!(desk.checked("2", end), [""; 0]);
        assert_eq!(desk.through("1"), ["done 1", "commit 1: 1"]);
        assert_eq!(desk.committed(1), ["start 3#1@0"], "its dependents run");
        desk.through("3");
        assert_eq!(desk.committed(2), ["finish"]);
        assert_eq!(*desk.outcome(), Outcome::TasksBlocked);
        assert_eq!(marked(&desk), [("2".to_owned(), Some(Done), Some(check))]);
        let reason = desk.ended.as_ref().unwrap().exit_reason();
        assert_eq!(reason.exit_code(), 6);
    }
}

#[test]
fn a_mark_that_a_gate_contradicts_is_taken_back_once() {
    let nodes = vec![task("1"), task("2"), task("3").after(["2"])];
    let mut desk = Desk::new(nodes, SchedConfig::default());
    desk.begin();
    desk.seen("2", Done);
    assert_eq!(desk.checked("2", red()), ["set back 2"]);
    assert_eq!(desk.scheduler.state("2"), Some(&TaskState::Pending));
    assert_eq!(desk.seen("2", Done), ["check 2"]);
    assert_eq!(desk.checked("2", red()), [""; 0], "the second mark stays");
    desk.through("1");
    assert_eq!(desk.committed(1), ["finish"], "and satisfies nobody");
    assert_eq!(
        marked(&desk),
        [("2".to_owned(), Some(Done), Some(MarkCheck::Red))]
    );
    let account = &desk.ended.as_ref().unwrap().account;
    assert_eq!(account.held[0].by, ["2"]);
    assert_eq!(account.not_done(), ["3", "2"]);
}

#[test]
fn a_task_that_was_set_back_is_run_and_knows_why() {
    let mut desk = Desk::new(vec![task("1"), task("2")], SchedConfig::default());
    desk.begin();
    desk.seen("2", Done);
    desk.checked("2", red());
    // With one slot the next task starts from what this one comes to.
    assert_eq!(desk.end("1", GREEN), ["merge 1"]);
    assert_eq!(desk.merged("1"), ["done 1", "start 2#1@0"]);
    desk.through("2");
    assert_eq!(desk.committed(1), ["finish"]);
    assert_eq!(*desk.outcome(), Outcome::Complete);
}

#[test]
fn cancelled_deferred_and_removed_tasks_satisfy_nobody() {
    for status in [Cancelled, Deferred] {
        let nodes = vec![task("1"), task("2"), task("3").after(["2"])];
        let mut desk = Desk::new(nodes, SchedConfig::default());
        desk.begin();
        assert_eq!(desk.seen("2", status), [""; 0]);
        desk.through("1");
        assert_eq!(desk.committed(1), ["finish"]);
        assert_eq!(marked(&desk), [("2".to_owned(), Some(status), None)]);
        assert_eq!(*desk.outcome(), Outcome::TasksBlocked);
    }
    let mut desk = Desk::new(vec![task("1"), task("2")], SchedConfig::default());
    desk.begin();
    let effects = desk.scheduler.replan(plan(vec![task("1")]));
    desk.write(effects);
    desk.die(vec![task("1")], SchedConfig::default());
    desk.begin();
    desk.through("1");
    desk.committed(1);
    assert_eq!(marked(&desk), [("2".to_owned(), None, None)]);
    assert_eq!(*desk.outcome(), Outcome::TasksBlocked);
}

#[test]
fn a_task_that_is_taken_out_while_it_runs_is_told() {
    let mut desk = Desk::new(vec![task("1")], SchedConfig::default());
    desk.begin();
    desk.seen("1", Cancelled);
    assert_eq!(desk.end("1", GREEN), ["finish"]);
    assert_eq!(marked(&desk), [("1".to_owned(), Some(Cancelled), None)]);
}

#[test]
fn a_removed_task_that_was_done_or_comes_back_is_not_missed() {
    let nodes = || vec![task("1"), task("2").after(["1"]), task("3").after(["1"])];
    let mut desk = Desk::new(nodes(), SchedConfig::default());
    desk.begin();
    desk.through("1");
    desk.committed(1);
    let effects = desk.scheduler.replan(plan(vec![task("2"), task("3")]));
    desk.write(effects);
    let effects = desk.scheduler.replan(plan(vec![task("2")]));
    desk.write(effects);
    let effects = desk.scheduler.replan(plan(vec![task("2"), task("3")]));
    desk.write(effects);
    desk.through("2");
    desk.through("3");
    desk.committed(1);
    assert_eq!(*desk.outcome(), Outcome::Complete);
}

#[test]
fn a_new_task_that_is_written_down_as_done_is_a_mark() {
    let mut desk = Desk::new(vec![task("1")], SchedConfig::default());
    desk.begin();
    let mut new = task("2");
    new.status = Done;
    let effects = desk.scheduler.replan(plan(vec![task("1"), new]));
    assert_eq!(desk.write(effects), ["check 2"]);
    desk.checked("2", MarkEnd::Green);
    desk.through("1");
    desk.committed(1);
    assert_eq!(*desk.outcome(), Outcome::TasksBlocked);
}

#[test]
fn marks_of_people_before_the_start_and_after_the_end_are_trusted() {
    let mut nodes = vec![task("1"), task("2"), task("3")];
    nodes[1].status = Done;
    let config = SchedConfig {
        max_attempts: 1,
        ..SchedConfig::default()
    };
    let mut desk = Desk::new(nodes.clone(), config);
    desk.begin();
    desk.red("1");
    desk.through("3");
    desk.committed(1);
    assert_eq!(*desk.outcome(), Outcome::TasksBlocked);
    assert!(marked(&desk).is_empty());
    // The loop is over: what is written now is a person's.
    desk.die(nodes, config);
    desk.seen("1", Done);
    desk.begin();
    assert_eq!(*desk.outcome(), Outcome::Complete);
}

#[test]
fn what_was_marked_while_a_host_was_dead_is_not_trusted() {
    let nodes = vec![task("1"), task("2")];
    let mut desk = Desk::new(nodes.clone(), SchedConfig::default());
    desk.begin();
    desk.die(nodes, SchedConfig::default());
    desk.seen("2", Done);
    assert_eq!(desk.begin(), ["check 2", "start 1#2@0"]);
}

#[test]
fn a_check_that_a_dead_host_began_is_made_again() {
    let nodes = vec![task("1"), task("2")];
    let mut desk = Desk::new(nodes.clone(), SchedConfig::default());
    desk.begin();
    desk.seen("2", Done);
    desk.die(nodes, SchedConfig::default());
    assert_eq!(desk.begin(), ["check 2", "start 1#2@0"]);
}

#[test]
fn trusted_marks_count_as_they_say() {
    let nodes = vec![task("1"), task("2"), task("3").after(["2"])];
    let config = SchedConfig::default();
    let mut desk = Desk::new(nodes.clone(), config);
    desk.begin();
    desk.seen("2", Done);
    desk.checked("2", red());
    desk.seen("2", Done);
    desk.checked("2", red());
    desk.through("1");
    desk.committed(1);
    assert_eq!(*desk.outcome(), Outcome::TasksBlocked);
    let trusting = SchedConfig {
        trust_marks: true,
        ..config
    };
    desk.die(nodes, trusting);
    assert_eq!(desk.begin(), ["start 3#1@0"]);
    desk.through("3");
    desk.committed(2);
    assert_eq!(*desk.outcome(), Outcome::Complete);
    assert!(marked(&desk).len() == 1, "and are told all the same");
}

#[test]
fn gates_for_a_mark_do_not_run_where_an_agent_works() {
    let config = SchedConfig {
        shared_tree: true,
        ..SchedConfig::default()
    };
    let nodes = vec![task("1"), task("2"), task("3")];
    let mut desk = Desk::new(nodes, config);
    desk.begin();
    assert_eq!(desk.seen("2", Done), [""; 0]);
    assert_eq!(desk.through("1"), ["done 1", "check 2"]);
    assert_eq!(desk.checked("2", MarkEnd::Green), ["start 3#1@0"]);
}

#[test]
fn a_stopped_loop_asks_no_gates_and_forgets_no_mark() {
    let nodes = vec![task("1"), task("2"), task("3")];
    let mut desk = Desk::new(nodes.clone(), two_at_a_time());
    desk.begin();
    desk.seen("3", Done);
    assert_eq!(desk.put(Input::Cancel), ["stop"]);
    desk.checked("3", MarkEnd::Interrupted);
    desk.end("1", descartes_kernel::sched::AttemptEnd::Interrupted);
    desk.end("2", descartes_kernel::sched::AttemptEnd::Interrupted);
    assert_eq!(
        marked(&desk),
        [("3".to_owned(), Some(Done), Some(MarkCheck::Waiting))]
    );
    desk.die(nodes, two_at_a_time());
    assert!(desk.begin().contains(&"check 3".to_owned()));
}

#[test]
fn a_marked_task_that_is_opened_again_is_run() {
    let mut desk = Desk::new(vec![task("1"), task("2")], SchedConfig::default());
    desk.begin();
    desk.seen("2", Done);
    desk.seen("2", Pending);
    assert_eq!(desk.checked("2", MarkEnd::Green), [""; 0]);
    // With one slot the next task starts from what this one comes to.
    assert_eq!(desk.end("1", GREEN), ["merge 1"]);
    assert_eq!(desk.merged("1"), ["done 1", "start 2#1@0"]);
    desk.through("2");
    desk.committed(1);
    assert_eq!(*desk.outcome(), Outcome::Complete);
}

#[test]
fn blocked_tasks_are_tried_again_with_all_their_attempts() {
    let config = SchedConfig {
        max_attempts: 2,
        ..SchedConfig::default()
    };
    let mut nodes = vec![task("1"), task("2").after(["1"]), task("3")];
    nodes[2].status = TaskStatus::Blocked;
    let mut desk = Desk::new(nodes.clone(), config);
    desk.begin();
    desk.red("1");
    assert_eq!(desk.red("1"), ["blocked 1", "finish"]);
    desk.die(nodes, config);
    let effects = desk
        .scheduler
        .advance_all(&[Input::Begin, Input::RetryBlocked]);
    assert_eq!(
        desk.write(effects),
        ["release 1", "release 3", "start 1#3@0"]
    );
    assert_eq!(desk.red("1"), ["start 1#4@0"], "two attempts again");
    desk.through("1");
    desk.through("3");
    desk.committed(1);
    desk.through("2");
    desk.committed(2);
    assert_eq!(*desk.outcome(), Outcome::Complete);
}

#[test]
fn without_the_task_file_green_work_lands_and_nothing_starts_or_ends() {
    let mut desk = Desk::new(vec![task("1"), task("2")], two_at_a_time());
    desk.begin();
    desk.put(Input::FileAway);
    desk.red("2");
    assert_eq!(desk.through("1"), ["done 1"]);
    assert_eq!(desk.put(Input::FileBack), ["start 2#2@1"]);
    desk.put(Input::FileAway);
    assert_eq!(desk.through("2"), ["done 2", "commit 1: 1 2"]);
    assert_eq!(desk.committed(1), [""; 0]);
    assert_eq!(desk.put(Input::FileBack), ["finish"]);
    assert_eq!(*desk.outcome(), Outcome::Complete);
}
