//! Limits, budgets, pauses and signals.

use descartes_kernel::fleet::AgentLogin;
use descartes_kernel::outcome::Budget;
use descartes_kernel::sched::{AttemptEnd, Input, Outcome, SchedConfig, StopReason};

use crate::desk::{Desk, GREEN, at, limited, task, two_at_a_time};

#[test]
fn a_providers_limit_is_no_attempt_and_stops_that_agent_alone() {
    let mut other = task("2");
    other.agent = Some("codex".to_owned());
    let mut later = task("4");
    later.agent = Some("codex".to_owned());
    let mut desk = Desk::new(vec![task("1"), other, task("3"), later], two_at_a_time());
    assert_eq!(desk.begin(), ["start 1#1@0", "start 2#1@1"]);
    for _ in 0..5 {
        assert_eq!(
            desk.end("1", limited(at(100))),
            ["wait 100", "start 4#1@0"],
            "3 waits, 4 goes on"
        );
        assert_eq!(desk.put(Input::Wake { now: at(50) }), ["wait 100"]);
        desk.end("4", limited(at(200)));
        assert_eq!(
            desk.put(Input::RetryNow),
            ["start 1#1@0"],
            "still the first attempt"
        );
    }
    assert_eq!(desk.scheduler.iterations(), 2, "only what runs now counts");
    desk.end("1", limited(at(300)));
    desk.end("2", limited(at(400)));
    assert!(desk.ended.is_none(), "waiting is no end");
    assert_eq!(
        desk.put(Input::Wake { now: at(300) }),
        ["wait 400", "start 1#1@1"]
    );
}

#[test]
fn a_limit_of_one_workers_login_is_no_attempt_and_holds_no_task() {
    let mut desk = Desk::new(vec![task("1"), task("2"), task("3")], two_at_a_time());
    desk.begin();
    let login = Some(AgentLogin {
        agent: "claude".to_owned(),
        login: "anna".to_owned(),
    });
    let until = at(100);
    assert_eq!(
        desk.end("1", AttemptEnd::Limited { until, login }),
        ["start 1#1@0"],
        "a worker with another login may take it, and it is still the first attempt"
    );
}

#[test]
fn limits_of_attempts_end_the_loop_and_say_what_is_open() {
    let config = SchedConfig {
        max_iterations: Some(2),
        ..SchedConfig::default()
    };
    let mut desk = Desk::new(vec![task("1"), task("2"), task("3")], config);
    desk.begin();
    desk.through("1");
    assert_eq!(
        desk.red("2"),
        ["release 2", "finish"],
        "what was claimed is given back"
    );
    assert_eq!(*desk.outcome(), Outcome::MaxIterations { limit: 2 });
    assert_eq!(desk.ended.as_ref().unwrap().exit_reason().exit_code(), 2);
    assert_eq!(desk.ended.as_ref().unwrap().account.open.len(), 2);
    desk.die(
        vec![task("1"), task("2"), task("3")],
        SchedConfig {
            max_iterations: Some(3),
            ..config
        },
    );
    assert_eq!(
        desk.begin(),
        ["start 2#2@0"],
        "counters go on where they were"
    );
}

#[test]
fn the_last_allowed_attempt_may_complete_the_loop() {
    let config = SchedConfig {
        max_iterations: Some(1),
        ..SchedConfig::default()
    };
    let mut desk = Desk::new(vec![task("1")], config);
    desk.begin();
    desk.through("1");
    desk.committed(1);
    assert_eq!(*desk.outcome(), Outcome::Complete);
}

#[test]
fn a_pause_holds_before_the_next_attempt() {
    let mut desk = Desk::new(vec![task("1"), task("2")], SchedConfig::default());
    desk.begin();
    desk.put(Input::Pause);
    assert_eq!(desk.through("1"), ["done 1"]);
    assert!(desk.scheduler.is_paused());
    assert_eq!(desk.put(Input::Unpause), ["start 2#1@0"]);
}

#[test]
fn the_first_interrupt_finishes_what_runs_the_second_ends_it() {
    let mut desk = Desk::new(vec![task("1"), task("2"), task("3")], two_at_a_time());
    desk.begin();
    assert_eq!(desk.put(Input::Drain), [""; 0]);
    assert_eq!(desk.end("1", GREEN), ["merge 1"]);
    assert_eq!(desk.merged("1"), ["done 1"]);
    assert_eq!(desk.put(Input::Cancel), ["stop"]);
    assert_eq!(
        desk.end("2", AttemptEnd::Interrupted),
        ["release 2", "finish"]
    );
    assert_eq!(
        *desk.outcome(),
        Outcome::Stopped {
            why: StopReason::Cancelled
        }
    );
    let account = desk.ended.as_ref().unwrap().account.clone();
    assert_eq!((account.done.len(), account.open.len()), (1, 2));
    desk.die(vec![task("1"), task("2"), task("3")], two_at_a_time());
    assert_eq!(desk.begin(), ["start 2#2@1", "start 3#1@0"]);
    desk.through("2");
    assert_eq!(
        desk.through("3"),
        ["done 3", "commit 1: 1 2 3"],
        "the wave is whole in its commit"
    );
}

fn budget_reached() -> Input {
    Input::BudgetReached {
        budget: Budget::Cost,
        limit: 5.0,
        used: 5.2,
    }
}

#[test]
fn a_budget_ends_what_runs_and_what_that_proved_is_still_merged() {
    let tasks = || vec![task("1"), task("2"), task("3")];
    let mut desk = Desk::new(tasks(), two_at_a_time());
    desk.begin();
    assert_eq!(desk.put(budget_reached()), ["end runs"]);
    assert!(desk.put(budget_reached()).is_empty(), "said once");
    // The one was proven when it was ended; the other had only begun.
    assert_eq!(desk.end("1", GREEN), ["merge 1"]);
    assert!(
        desk.end("2", AttemptEnd::Interrupted).is_empty(),
        "nothing new starts"
    );
    assert_eq!(desk.merged("1"), ["done 1", "release 2", "finish"]);
    assert!(matches!(
        desk.outcome(),
        Outcome::Stopped {
            why: StopReason::Budget { .. }
        }
    ));
    desk.die(tasks(), two_at_a_time());
    assert_eq!(
        desk.begin(),
        ["start 2#2@1", "start 3#1@0"],
        "none of it is a failed attempt"
    );
}

#[test]
fn a_budget_that_the_last_task_reaches_ends_no_loop_that_is_done() {
    let mut desk = Desk::new(vec![task("1")], SchedConfig::default());
    desk.begin();
    desk.put(budget_reached());
    desk.end("1", GREEN);
    desk.merged("1");
    desk.committed(1);
    assert_eq!(*desk.outcome(), Outcome::Complete);
}
