//! What a task's author may ask for, and tasks of several parts or tags.

use descartes_kernel::sched::{Grouping, Outcome, SchedConfig, StopReason};
use descartes_plans::graph::{OnFail, TaskStatus};

use crate::desk::{Desk, GREEN, task, two_at_a_time};

#[test]
fn what_follows_a_failure_is_its_authors_choice() {
    let nodes = |on_fail| {
        let mut first = task("1");
        first.rules.on_fail = on_fail;
        first.rules.max_attempts = Some(1);
        vec![first, task("2").after(["1"]), task("3")]
    };
    let mut skip = Desk::new(nodes(OnFail::Skip), SchedConfig::default());
    skip.begin();
    assert_eq!(skip.red("1"), ["release 1", "start 3#1@0"]);
    skip.through("3");
    assert_eq!(
        skip.committed(1),
        ["start 2#1@0"],
        "what depends on a task that is passed over goes on"
    );
    skip.through("2");
    skip.committed(2);
    assert_eq!(*skip.outcome(), Outcome::Complete);
    assert_eq!(
        skip.ended.unwrap().account.passed.len(),
        1,
        "and the failure is told"
    );

    let mut stop = Desk::new(nodes(OnFail::Stop), two_at_a_time());
    stop.begin();
    assert_eq!(stop.red("1"), ["blocked 1"]);
    stop.end("3", GREEN);
    stop.merged("3");
    assert_eq!(
        stop.committed(1),
        ["finish"],
        "what ran is finished, nothing new starts"
    );
    assert!(matches!(
        stop.outcome(),
        Outcome::Stopped {
            why: StopReason::TaskFailed { .. }
        }
    ));
}

#[test]
fn the_parts_of_a_task_run_before_what_waits_for_the_whole() {
    let mut whole = task("2").after(["1"]);
    whole.status = TaskStatus::Expanded;
    let nodes = vec![
        task("1"),
        whole,
        task("2.1").part_of("2"),
        task("2.2").part_of("2"),
        task("3").after(["2"]),
    ];
    let mut desk = Desk::new(nodes, two_at_a_time());
    assert_eq!(desk.begin(), ["start 1#1@0"]);
    desk.through("1");
    assert_eq!(desk.committed(1), ["start 2.1#1@0", "start 2.2#1@1"]);
    desk.through("2.1");
    desk.through("2.2");
    assert_eq!(desk.committed(2), ["start 3#1@0"]);
    assert_eq!(
        desk.scheduler.account().total(),
        4,
        "the whole is no work of its own"
    );
}

#[test]
fn tasks_of_another_tag_are_waited_for() {
    let mut foreign = task("other:1");
    foreign.origin = descartes_plans::graph::Origin::Foreign;
    let nodes = vec![task("1"), task("2").after(["other:1"]), foreign];
    let mut desk = Desk::new(nodes.clone(), SchedConfig::default());
    assert_eq!(desk.begin(), ["start 1#1@0"]);
    assert_eq!(desk.seen("other:1", TaskStatus::Done), [""; 0]);
    assert_eq!(
        desk.end("1", GREEN),
        ["merge 1"],
        "with one slot the next task builds on the one before"
    );
    assert_eq!(desk.merged("1"), ["done 1", "start 2#1@0"]);
    let mut desk = Desk::new(nodes, SchedConfig::default());
    desk.begin();
    desk.through("1");
    desk.committed(1);
    assert_eq!(desk.ended.unwrap().account.held[0].by, ["other:1"]);
}

#[test]
fn one_agent_may_be_given_a_whole_wave() {
    let config = SchedConfig {
        grouping: Grouping::Wave,
        slots: 3,
        ..SchedConfig::default()
    };
    let mut desk = Desk::new(vec![task("1"), task("2"), task("3").after(["1"])], config);
    assert_eq!(desk.begin(), ["start 1#1+2#1@0"]);
    desk.end("1", GREEN);
    assert_eq!(
        desk.red("2"),
        ["start 2#2@0"],
        "what was not green is given again"
    );
    desk.merged("1");
    desk.end("2", GREEN);
    assert_eq!(desk.merged("2"), ["done 2", "commit 1: 1 2"]);
    assert_eq!(desk.committed(1), ["start 3#1@0"]);
    assert_eq!(
        desk.scheduler.iterations(),
        3,
        "an agent with a wave makes one attempt"
    );
}
