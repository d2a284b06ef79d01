//! Providers' limits, logins, fallbacks and budgets.

use std::time::Duration;

use descartes_kernel::config::ConfigChange;
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::event::*;
use descartes_kernel::outcome::IterativeExitReason as Reason;
use descartes_kernel::step::{Action, Input, plan};
use descartes_text::units::Secs;

use crate::world::*;

#[test]
fn a_limit_is_no_iteration_and_waits_for_the_stated_reset() {
    let mut sim = Sim::new(config());
    let reason = sim.end(|run| match run {
        1..=3 => Turn {
            moved: false,
            ..turn(limited(Some("2026-03-01T15:00:00Z")))
        },
        _ => turn(claims()),
    });
    // The second and third tell a reset that is over: then it backs off.
    assert_eq!(sim.waits[0], 3 * 3600);
    assert_eq!(
        (reason, sim.state.iterations),
        (Reason::CompletionPromiseDetected, 1)
    );
    assert_eq!(sim.state.agents.failures, 0);
}

#[test]
fn a_limit_without_a_reset_backs_off_from_a_minute_to_an_hour() {
    let mut sim = Sim::new(config());
    sim.end(|run| {
        if run <= 8 {
            turn(limited(None))
        } else {
            turn(claims())
        }
    });
    assert_eq!(sim.waits, [60, 120, 240, 480, 960, 1920, 3600, 3600]);
    assert_eq!(
        sim.state.spent.ms, 1000,
        "limited runs cost nothing of the budget"
    );
}

#[test]
fn an_agent_that_is_always_told_to_come_again_soon_is_asked_less_and_less() {
    let mut sim = Sim::new(config());
    let soon = |now: jiff::Timestamp| (now + Duration::from_secs(2)).to_string();
    let mut now = sim.now;
    for run in 1..=8 {
        let told = limited(Some(&soon(now)));
        sim.start(run, 1, 0);
        sim.input(&Input::RunEnded(Box::new(told)));
        let Action::Wait(until) = plan(&sim.state, sim.agents, sim.now) else {
            panic!("it does not wait");
        };
        sim.waits.push(until.as_second() - sim.now.as_second());
        now = until;
        sim.now = until;
        sim.input(&Input::WaitElapsed);
    }
    assert_eq!(sim.waits, [2, 2, 2, 2, 2, 60, 120, 240]);
    // A run that counts begins it anew.
    sim.start(9, 1, 0);
    sim.input(&Input::RunEnded(Box::new(facts())));
    sim.end(|run| match run {
        10 => turn(limited(Some(&soon(now)))),
        _ => turn(claims()),
    });
    assert_eq!(sim.waits.last(), Some(&2));
}

#[test]
fn what_a_limited_run_cost_counts_against_the_budget() {
    let cost = Cost {
        micros: 600_000,
        estimated: false,
    };
    let mut sim = Sim::new(IterativeLoopConfig {
        max_cost_usd: Some(1.0),
        ..config()
    });
    let reason = sim.end(|_| {
        turn(RunFacts {
            cost: Some(cost),
            ..limited(None)
        })
    });
    assert!(
        matches!(reason, Reason::BudgetExhausted { .. }),
        "{reason:?}"
    );
    assert_eq!(sim.state.spent.cost_micros, Some(1_200_000));
    assert_eq!(sim.waits, [60], "no wait for a run that cannot come");
}

#[test]
fn a_wrong_login_is_an_error_at_once() {
    let limit = ReportedLimit {
        kind: LimitKind::Login,
        until: None,
        words: "run /login".into(),
    };
    let wrong = RunFacts {
        limit: Some(limit),
        error: Some("401".into()),
        ..fails()
    };
    let mut sim = Sim::new(config());
    let reason = sim.end(|_| Turn {
        moved: false,
        ..turn(wrong.clone())
    });
    assert_eq!(
        reason,
        Reason::AgentFailed {
            failures: 1,
            last: "run /login".into()
        }
    );
}

#[test]
fn a_fallback_takes_over_and_the_first_agent_comes_back_after_its_reset() {
    let mut sim = Sim::new(IterativeLoopConfig {
        max_iterations: Some(3),
        ..config()
    });
    sim.agents.count = 2;
    sim.end(|run| match run {
        1 => turn(limited(Some("2026-03-01T12:00:01Z"))),
        _ => turn(facts()),
    });
    assert_eq!(sim.started, [(1, 0), (1, 1), (2, 1), (3, 1)]);
    sim.now = sim.now.checked_add(Duration::from_secs(60)).unwrap();
    sim.append(Event::LoopReopened);
    let more = ConfigChange {
        max_iterations: Some(Some(4)),
        ..Default::default()
    };
    sim.append(Event::ConfigChanged {
        change: Box::new(more),
        by: "resume".into(),
        from: None,
    });
    sim.end(|_| turn(facts()));
    assert_eq!(sim.started[4], (4, 0));
    // Both limited: the loop waits for the first that is free again.
    let mut sim = Sim::new(config());
    sim.agents.count = 2;
    sim.end(|run| match run {
        1 => turn(limited(Some("2026-03-01T13:00:00Z"))),
        2 => turn(limited(Some("2026-03-01T12:30:00Z"))),
        _ => turn(claims()),
    });
    assert_eq!(
        (sim.waits.as_slice(), sim.started[2]),
        ([1800].as_slice(), (1, 1))
    );
}

#[test]
fn budgets_end_the_loop_and_survive_a_resume() {
    let spend = RunFacts {
        tokens: Some(Tokens {
            output: Some(400),
            ..Tokens::default()
        }),
        cost: Some(Cost {
            micros: 400_000,
            estimated: false,
        }),
        ..facts()
    };
    let cases = [
        IterativeLoopConfig {
            max_tokens: Some(1000),
            ..config()
        },
        IterativeLoopConfig {
            max_cost_usd: Some(1.0),
            ..config()
        },
        IterativeLoopConfig {
            max_duration_secs: Some(Secs::new(3)),
            ..config()
        },
    ];
    for config in cases {
        let mut sim = Sim::new(config);
        let reason = sim.end(|_| turn(spend.clone()));
        assert!(
            matches!(reason, Reason::BudgetExhausted { .. }),
            "{reason:?}"
        );
        assert_eq!(sim.state.iterations, 3);
        sim.append(Event::LoopReopened);
        assert!(matches!(
            sim.end(|_| turn(spend.clone())),
            Reason::BudgetExhausted { .. }
        ));
        assert_eq!(sim.state.iterations, 3, "a budget never restarts");
    }
}

#[test]
fn nobody_waits_where_a_limit_ends_the_loop() {
    let waits = |sim: &Sim| {
        let started = |record: &&Record| matches!(record.event, Event::WaitStarted { .. });
        sim.journal.iter().filter(started).count()
    };
    // Two failures, one wait between them: the limit ends the loop after the second.
    let mut sim = Sim::new(IterativeLoopConfig {
        max_iterations: Some(2),
        ..config()
    });
    let reason = sim.end(|_| Turn {
        moved: false,
        ..turn(fails())
    });
    assert_eq!(reason, Reason::MaxIterationsReached);
    assert_eq!(waits(&sim), 1);
}

#[test]
fn an_agent_that_does_nothing_is_started_ever_more_slowly() {
    let nothing = || Turn {
        moved: false,
        ..turn(facts())
    };
    let endless = || IterativeLoopConfig {
        max_iterations: None,
        ..config()
    };
    let mut sim = Sim::new(endless());
    let end = sim.end(|run| match run {
        1..=13 => nothing(),
        // It did something: from there on it counts anew.
        14 => turn(facts()),
        15..=19 => nothing(),
        _ => turn(claims()),
    });
    assert_eq!(end, Reason::CompletionPromiseDetected);
    assert_eq!(sim.waits, [1, 2, 4, 8, 16, 32, 60, 60, 60, 1]);
    let why: Vec<String> = sim
        .journal
        .iter()
        .filter_map(|record| match &record.event {
            Event::WaitStarted { reason, .. } => Some(reason.describe()),
            _ => None,
        })
        .collect();
    assert_eq!(
        why[0],
        "the agent ended at once and did nothing, 5 times in a row"
    );
    // Work that is quick, that fails, that is paid for or that takes its time is none of it; nor is a loop that
    // has another end.
    let slow = RunFacts {
        duration_ms: 6000,
        ..facts()
    };
    let paid = RunFacts {
        tokens: Some(Tokens {
            output: Some(7),
            ..Tokens::default()
        }),
        ..facts()
    };
    let limited = |max_iterations, stall_after| IterativeLoopConfig {
        max_iterations,
        stall_after,
        ..config()
    };
    let table: [(IterativeLoopConfig, Turn); 5] = [
        (endless(), turn(facts())),
        (
            endless(),
            Turn {
                moved: false,
                ..turn(slow)
            },
        ),
        (
            endless(),
            Turn {
                moved: false,
                ..turn(paid)
            },
        ),
        (limited(Some(1000), None), nothing()),
        (limited(None, Some(500)), nothing()),
    ];
    for (case, (config, every)) in table.into_iter().enumerate() {
        let mut sim = Sim::new(config);
        sim.end(|run| match run {
            100 => turn(claims()),
            _ => Turn {
                facts: every.facts.clone(),
                gates: vec![],
                moved: every.moved,
            },
        });
        assert_eq!(sim.waits, [0_i64; 0], "case {case}");
    }
}
