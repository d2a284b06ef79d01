//! Agents that fail, hang or do nothing.

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::event::*;
use descartes_kernel::outcome::IterativeExitReason as Reason;

use crate::world::*;

#[test]
fn failures_in_a_row_wait_longer_each_time_and_then_end_the_loop() {
    let mut sim = Sim::new(config());
    let reason = sim.end(|_| Turn {
        moved: false,
        ..turn(fails())
    });
    assert_eq!(
        reason,
        Reason::AgentFailed {
            failures: 5,
            last: "exit code 1".into()
        }
    );
    assert_eq!(sim.waits, [1, 2, 4, 8]);
}

#[test]
fn a_failure_that_moved_files_is_work() {
    let mut sim = Sim::new(IterativeLoopConfig {
        max_iterations: Some(9),
        ..config()
    });
    assert_eq!(sim.end(|_| turn(fails())), Reason::MaxIterationsReached);
    assert!(sim.waits.is_empty());
}

#[test]
fn timeouts_hangs_and_idle_hands_are_failures() {
    for broken in [
        RunFacts {
            ended_by: EndedBy::Timeout,
            exit: Some(ExitStatus::Signal(15)),
            ..facts()
        },
        RunFacts {
            ended_by: EndedBy::Idle,
            exit: Some(ExitStatus::Signal(9)),
            ..facts()
        },
        RunFacts {
            idle_hands: true,
            ..facts()
        },
        RunFacts {
            error: Some("API error".into()),
            ..facts()
        },
    ] {
        let mut sim = Sim::new(config());
        let reason = sim.end(|_| Turn {
            moved: false,
            ..turn(broken.clone())
        });
        assert!(
            matches!(reason, Reason::AgentFailed { failures: 5, .. }),
            "{reason:?}"
        );
    }
}

#[test]
fn a_claim_in_a_timed_out_iteration_counts() {
    let mut sim = Sim::new(config());
    let late = RunFacts {
        ended_by: EndedBy::Timeout,
        ..claims()
    };
    assert_eq!(
        sim.end(|_| turn(late.clone())),
        Reason::CompletionPromiseDetected
    );
}

#[test]
fn a_stall_is_told_first_and_ends_the_loop_at_twice_the_number() {
    let mut sim = Sim::new(IterativeLoopConfig {
        stall_after: Some(3),
        ..config()
    });
    let reason = sim.end(|_| Turn {
        moved: false,
        ..turn(facts())
    });
    assert!(
        matches!(reason, Reason::Stalled { iterations: 6, .. }),
        "{reason:?}"
    );
    let nudges = sim
        .journal
        .iter()
        .filter(|r| matches!(r.event, Event::Nudged { .. }))
        .count();
    assert_eq!(nudges, 1);
    let mut sim = Sim::new(IterativeLoopConfig {
        stall_after: Some(3),
        ..config()
    });
    let slow = sim.end(|run| Turn {
        moved: run % 3 == 0,
        ..turn(facts())
    });
    assert_eq!(
        slow,
        Reason::MaxIterationsReached,
        "slow but real progress is no stall"
    );
}
