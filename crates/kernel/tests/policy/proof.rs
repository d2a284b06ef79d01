//! When a loop is done: the promise is a claim, the gate is the fact.

use descartes_kernel::config::{ConfigChange, IterativeLoopConfig};
use descartes_kernel::control::Command;
use descartes_kernel::event::*;
use descartes_kernel::outcome::IterativeExitReason as Reason;
use descartes_kernel::step::{Action, Input, plan};
use descartes_text::units::Secs;

use crate::world::*;

#[test]
fn a_promise_without_gates_completes() {
    let mut sim = Sim::new(config());
    let reason = sim.end(|run| {
        if run == 3 {
            turn(claims())
        } else {
            turn(facts())
        }
    });
    assert_eq!(
        (reason, sim.state.iterations),
        (Reason::CompletionPromiseDetected, 3)
    );
    assert_eq!(sim.state.completion.unwrap().1, "COMPLETE");
}

#[test]
fn a_promise_is_refused_until_every_gate_is_green() {
    let verify = vec!["a".to_owned(), "b".to_owned()];
    let mut sim = Sim::new(IterativeLoopConfig { verify, ..config() });
    let reason = sim.end(|run| {
        let gates = match run {
            1 => vec![1],
            2 => vec![0, 1],
            _ => vec![0, 0],
        };
        Turn {
            gates,
            ..turn(claims())
        }
    });
    assert_eq!(
        (reason, sim.state.iterations),
        (Reason::CompletionPromiseDetected, 3)
    );
    let count = |n: u32| {
        let of =
            |r: &&Record| matches!(&r.event, Event::GateFinished{iteration, ..} if *iteration == n);
        sim.journal.iter().filter(of).count()
    };
    assert_eq!(
        (count(1), count(2), count(3)),
        (1, 2, 2),
        "stop at the first red gate"
    );
}

#[test]
fn gates_do_not_run_without_a_claim_unless_they_alone_decide() {
    let verify = vec!["a".to_owned()];
    let mut sim = Sim::new(IterativeLoopConfig {
        verify: verify.clone(),
        max_iterations: Some(2),
        ..config()
    });
    assert_eq!(sim.end(|_| turn(facts())), Reason::MaxIterationsReached);
    assert!(
        !sim.journal
            .iter()
            .any(|r| matches!(r.event, Event::GateFinished { .. }))
    );
    let free = IterativeLoopConfig {
        verify,
        completion_promise: None,
        ..config()
    };
    let mut sim = Sim::new(free);
    let reason = sim.end(|run| Turn {
        gates: vec![i32::from(run < 4)],
        ..turn(facts())
    });
    assert_eq!((reason, sim.state.iterations), (Reason::GatesPassed, 4));
}

#[test]
fn without_promise_and_gate_exit_code_zero_decides() {
    let mut sim = Sim::new(IterativeLoopConfig {
        completion_promise: None,
        ..config()
    });
    let reason = sim.end(|run| {
        if run == 2 {
            turn(facts())
        } else {
            turn(fails())
        }
    });
    assert_eq!((reason, sim.state.iterations), (Reason::ProcessSuccess, 2));
}

#[test]
fn completion_in_the_last_allowed_iteration_counts() {
    let mut sim = Sim::new(IterativeLoopConfig {
        max_iterations: Some(3),
        ..config()
    });
    let reason = sim.end(|run| {
        if run == 3 {
            turn(claims())
        } else {
            turn(facts())
        }
    });
    assert_eq!(reason, Reason::CompletionPromiseDetected);
    let mut sim = Sim::new(IterativeLoopConfig {
        max_duration_secs: Some(Secs::new(1)),
        ..config()
    });
    assert_eq!(
        sim.end(|_| turn(claims())),
        Reason::CompletionPromiseDetected
    );
}

#[test]
fn an_abort_ends_the_loop_with_the_agents_words() {
    let mut sim = Sim::new(IterativeLoopConfig {
        verify: vec!["a".into()],
        ..config()
    });
    let blocked = RunFacts {
        abort: Some("no database".into()),
        ..facts()
    };
    let reason = sim.end(|_| turn(blocked.clone()));
    assert_eq!(
        reason,
        Reason::AgentBlocked {
            message: "no database".into()
        }
    );
}

/// Gates that a person replaces while an iteration is judged: the old ones prove nothing, those that stay are
/// not run again.
#[test]
fn only_the_gates_in_force_prove_a_claim() {
    let gates = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    for (ran, replaced_by, then_run) in [
        // While the first one runs, or after it.
        (&["weak"][..], &["tests"][..], &["tests"][..]),
        (&["weak"], &["weak", "tests"], &["tests"]),
        (&["a", "b"], &["a", "c"], &["c"]),
        (&["a", "b"], &["c", "b"], &["c", "b"]),
        (&["a", "b"], &["b", "a"], &["b", "a"]),
        (&["a", "b"], &["a"], &[]),
        (&["a", "b"], &["a", "b"], &[]),
    ] {
        let mut sim = Sim::new(IterativeLoopConfig {
            verify: gates(ran),
            ..config()
        });
        sim.start(1, 1, 0);
        sim.input(&Input::RunEnded(Box::new(claims())));
        let change = ConfigChange {
            verify: Some(gates(replaced_by)),
            ..ConfigChange::default()
        };
        let set = from_person(Command::Set {
            change: Box::new(change),
        });
        let (last, before) = ran.split_last().unwrap();
        for (index, command) in (0..).zip(before) {
            sim.input(&Input::GateEnded(Box::new(gate(index, command, 0))));
        }
        sim.input(&set);
        let last_index = u32::try_from(before.len()).unwrap();
        sim.input(&Input::GateEnded(Box::new(gate(last_index, last, 0))));
        for wanted in then_run {
            let Action::Gate { index, command } = plan(&sim.state, sim.agents, sim.now) else {
                panic!("{ran:?} {replaced_by:?}: {wanted} does not run");
            };
            assert_eq!(command, *wanted);
            sim.input(&Input::GateEnded(Box::new(gate(index, &command, 0))));
        }
        let reason = sim.end(|_| turn(facts()));
        assert_eq!(reason, Reason::CompletionPromiseDetected);
        let time = 10 * (ran.len() + then_run.len()) as u64;
        assert_eq!(sim.state.spent.ms, 1000 + time, "{ran:?} {replaced_by:?}");
    }
}

#[test]
fn nobody_is_asked_to_make_a_gate_green_that_was_replaced() {
    for (replaced_by, is_told) in [("make test", false), ("make tset", true)] {
        let mut sim = Sim::new(IterativeLoopConfig {
            verify: vec!["make tset".into()],
            max_iterations: Some(1),
            ..config()
        });
        let reason = sim.end(|_| Turn {
            gates: vec![2],
            ..turn(claims())
        });
        assert_eq!(reason, Reason::MaxIterationsReached);
        assert!(sim.state.next_prompt.failed_gate.is_some());
        let change = ConfigChange {
            verify: Some(vec![replaced_by.into()]),
            ..ConfigChange::default()
        };
        sim.input(&from_person(Command::Set {
            change: Box::new(change),
        }));
        assert_eq!(sim.state.next_prompt.failed_gate.is_some(), is_told);
    }
}

#[test]
fn a_claim_whose_gates_a_stop_kept_from_running_is_neither_refused_nor_lost() {
    let mut sim = Sim::new(IterativeLoopConfig {
        verify: vec!["a".into()],
        ..config()
    });
    sim.start(1, 1, 0);
    sim.input(&Input::RunEnded(Box::new(claims())));
    sim.input(&Input::Stop(StopBy::Terminate));
    assert_eq!(sim.end(|_| turn(facts())), Reason::UserCancelled);
    assert_eq!(sim.state.verdict, None);
    assert!(sim.state.unjudged().is_some());
}

#[test]
fn a_proof_of_files_that_nobody_changed_is_told_from_one_of_work() {
    let gated = IterativeLoopConfig {
        verify: vec!["a".into()],
        ..config()
    };
    let alone = IterativeLoopConfig {
        completion_promise: None,
        ..gated.clone()
    };
    // What each iteration changes; the last one is done.
    for (config, moves, untouched) in [
        (&gated, &[false][..], true),
        (&gated, &[false, false], true),
        (&gated, &[true], false),
        (&gated, &[true, false], false),
        (&alone, &[false], true),
        (&alone, &[true], false),
        // Nothing is proven there.
        (&super::world::config(), &[false], false),
    ] {
        let mut sim = Sim::new(config.clone());
        let last = moves.len() as u64;
        let end = sim.end(|run| Turn {
            moved: moves[run as usize - 1],
            gates: vec![i32::from(run < last)],
            ..turn(if run < last { facts() } else { claims() })
        });
        assert!(end.is_success(), "{moves:?}: {end:?}");
        assert_eq!(sim.state.is_proven_untouched(), untouched, "{moves:?}");
    }
}
