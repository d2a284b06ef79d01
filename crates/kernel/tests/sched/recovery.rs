//! Hosts that die, commits that fail, plans that change.

use descartes_kernel::sched::{
    CommitEnd, Event, Input, MarkEnd, Outcome, SchedConfig, Scheduler, StopReason,
};
use descartes_plans::graph::TaskStatus;

use crate::desk::{Desk, GREEN, at, diamond, limited, plan, task, two_at_a_time};

#[test]
fn a_wave_that_cannot_be_committed_stops_the_loop_and_is_committed_on_resume() {
    let nodes = || vec![task("1"), task("2").after(["1"])];
    let mut desk = Desk::new(nodes(), SchedConfig::default());
    desk.begin();
    desk.through("1");
    let failed = CommitEnd::Failed {
        message: "no identity".to_owned(),
    };
    assert_eq!(
        desk.put(Input::WaveCommitted {
            wave: 1,
            end: failed
        }),
        ["finish"]
    );
    assert!(matches!(
        desk.outcome(),
        Outcome::Stopped {
            why: StopReason::CommitFailed { wave: 1, .. }
        }
    ));
    desk.die(nodes(), SchedConfig::default());
    assert_eq!(desk.begin(), ["commit 1: 1"]);
    assert_eq!(desk.committed(1), ["start 2#1@0"]);
}

#[test]
fn what_a_dead_host_left_is_taken_up_again() {
    let mut desk = Desk::new(diamond(), two_at_a_time());
    desk.begin();
    desk.die(diamond(), two_at_a_time());
    assert_eq!(
        desk.begin(),
        ["start 1#2@0"],
        "its number is used up, its attempts are not"
    );
    desk.end("1", GREEN);
    desk.die(diamond(), two_at_a_time());
    assert_eq!(desk.begin(), ["merge 1"]);
    desk.merged("1");
    desk.die(diamond(), two_at_a_time());
    assert_eq!(desk.begin(), ["commit 1: 1"]);
    desk.committed(1);
    desk.end("2", limited(at(77)));
    desk.end("3", limited(at(77)));
    desk.die(diamond(), two_at_a_time());
    assert_eq!(desk.begin(), ["wait 77"], "a wait survives");
    assert_eq!(
        desk.put(Input::Wake { now: at(78) }),
        ["start 2#1@0", "start 3#1@1"]
    );
    desk.die(diamond(), two_at_a_time());
    desk.seen("2", TaskStatus::Cancelled);
    assert_eq!(
        desk.begin(),
        ["start 3#2@1"],
        "what a person changed meanwhile counts"
    );
}

#[test]
fn a_done_task_whose_mark_was_lost_with_the_host_stays_done() {
    let nodes = || vec![task("1"), task("2").after(["1"])];
    let mut desk = Desk::new(nodes(), SchedConfig::default());
    desk.begin();
    desk.through("1");
    desk.die(nodes(), SchedConfig::default());
    assert_eq!(desk.seen("1", TaskStatus::InProgress), [""; 0]);
    assert_eq!(desk.begin(), ["commit 1: 1"]);
    let file = [TaskStatus::InProgress, TaskStatus::Pending];
    let differences = desk.scheduler.differences(&file);
    assert_eq!(differences.len(), 1);
    assert_eq!(
        desk.put(differences[0].clone()),
        ["done 1"],
        "and its mark is set again"
    );
    desk.die(nodes(), SchedConfig::default());
    desk.seen("1", TaskStatus::Pending);
    desk.begin();
    assert_eq!(
        desk.committed(1),
        ["start 1#1@0"],
        "a person may reset it between two starts"
    );
}

#[test]
fn marks_that_were_lost_with_the_host_are_set_when_the_next_one_begins() {
    let nodes = || vec![task("1"), task("2"), task("3").after(["1"])];
    let config = SchedConfig {
        max_attempts: 1,
        ..two_at_a_time()
    };
    let mut desk = Desk::new(nodes(), config);
    desk.begin();
    desk.through("1");
    desk.red("2");
    desk.die(nodes(), config);
    let file = [
        TaskStatus::InProgress,
        TaskStatus::InProgress,
        TaskStatus::Pending,
    ];
    let mut inputs = desk.scheduler.differences(&file);
    inputs.push(Input::Begin);
    let effects = desk.scheduler.advance_all(&inputs);
    let words = desk.write(effects);
    assert!(words.contains(&"done 1".to_owned()), "{words:?}");
    assert!(words.contains(&"blocked 2".to_owned()), "{words:?}");
}

#[test]
fn a_journal_of_another_file_is_refused() {
    let events = [Event::MergeStarted { task: "1".into() }];
    let error =
        Scheduler::recover(plan(vec![task("1")]), SchedConfig::default(), &events).unwrap_err();
    assert!(error.to_string().contains("merge_started"), "{error}");
    let gone = [Event::AttemptStarted {
        task: "9".into(),
        slot: 0,
        attempt: 1,
    }];
    let scheduler =
        Scheduler::recover(plan(vec![task("1")]), SchedConfig::default(), &gone).unwrap();
    assert_eq!(
        scheduler.iterations(),
        1,
        "what a task cost that is gone was spent"
    );
}

#[test]
fn tasks_may_be_added_and_taken_out_while_the_loop_runs() {
    let mut desk = Desk::new(vec![task("1"), task("2"), task("3")], two_at_a_time());
    desk.begin();
    desk.through("1");
    let mut old = task("5");
    old.status = TaskStatus::Done;
    let wider = || {
        vec![
            task("1"),
            task("3"),
            task("4").after(["3", "5"]),
            old.clone(),
        ]
    };
    let effects = desk.scheduler.replan(plan(wider()));
    assert_eq!(desk.write(effects), ["abandon 2", "check 5"]);
    desk.checked("5", MarkEnd::Green);
    assert_eq!(
        desk.end("2", GREEN),
        [""; 0],
        "a task that is gone ends unheard"
    );
    assert_eq!(desk.through("3"), ["done 3", "commit 1: 1 3"]);
    assert_eq!(desk.committed(1), ["start 4#1@0"]);
    desk.die(wider(), two_at_a_time());
    assert_eq!(
        desk.begin(),
        ["start 4#2@0"],
        "the journal holds for the new plan"
    );
    desk.through("4");
    desk.committed(2);
    assert_eq!(*desk.outcome(), Outcome::TasksBlocked);
    let marked = &desk.ended.as_ref().unwrap().account.marked;
    let marked: Vec<&str> = marked.iter().map(|marked| marked.task.as_str()).collect();
    assert_eq!(marked, ["5", "2"], "what nobody has proven is told");
}

#[test]
fn events_read_back_from_the_journal() {
    let mut desk = Desk::new(diamond(), two_at_a_time());
    desk.begin();
    desk.red("1");
    desk.end("1", limited(at(5)));
    desk.put(Input::RetryNow);
    desk.seen("1", TaskStatus::Review);
    desk.seen("4", TaskStatus::Cancelled);
    desk.put(Input::Pause);
    desk.put(Input::Cancel);
    desk.end("1", GREEN);
    assert!(desk.journal.len() > 9);
    for event in &desk.journal {
        let line = serde_json::to_string(event).unwrap();
        assert_eq!(
            &serde_json::from_str::<Event>(&line).unwrap(),
            event,
            "{line}"
        );
    }
}
