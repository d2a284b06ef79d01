//! What is left of budgets, wherever it is asked.

use std::time::Duration;

use descartes_kernel::budget::{
    Left, left, reached, time_left_to_close, time_left_to_land, time_reached, with_time,
};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::event::{Cost, Event, RunFacts, Tokens, Verdict};
use descartes_kernel::outcome::Budget;
use descartes_kernel::state::{IterationSummary, LoopState, Spent};
use descartes_kernel::step::{Input, budget_unkept_by_task};
use descartes_text::units::Secs;

use crate::world::*;

fn limits() -> IterativeLoopConfig {
    IterativeLoopConfig {
        max_duration_secs: Some(Secs::new(60)),
        max_tokens: Some(1000),
        max_cost_usd: Some(0.29),
        ..config()
    }
}

fn spent(ms: u64, tokens: Option<u64>, cost_micros: Option<u64>) -> Spent {
    Spent {
        ms,
        tokens,
        cost_micros,
        estimated: false,
    }
}

#[test]
fn what_is_left_and_what_is_reached_agree() {
    let of = |ms, tokens, cost_micros| Left {
        time: Some(Duration::from_millis(ms)),
        tokens: Some(tokens),
        cost_micros: Some(cost_micros),
    };
    let table = [
        (spent(0, None, None), of(60_000, 1000, 290_000), None),
        (spent(59_999, Some(999), Some(289_999)), of(1, 1, 1), None),
        (
            spent(60_000, Some(1), Some(1)),
            of(0, 999, 289_999),
            Some(Budget::Duration),
        ),
        (
            spent(1, Some(2000), Some(1)),
            of(59_999, 0, 289_999),
            Some(Budget::Tokens),
        ),
        (
            spent(1, Some(1), Some(290_000)),
            of(59_999, 999, 0),
            Some(Budget::Cost),
        ),
    ];
    for (spent, wanted, budget) in table {
        assert_eq!(left(&limits(), &spent), wanted, "{spent:?}");
        let over = reached(&limits(), &spent).map(|reached| reached.budget);
        assert_eq!(over, budget, "{spent:?}");
        let time = time_reached(&limits(), &spent).is_some();
        assert_eq!(time, budget == Some(Budget::Duration), "{spent:?}");
    }
    assert_eq!(
        left(&config(), &spent(9, Some(9), Some(9))),
        Left::default()
    );
}

#[test]
fn what_is_left_of_the_whole_comes_on_top_of_what_a_task_used() {
    let whole = left(&limits(), &spent(10_000, Some(100), Some(40_000)));
    let fresh = whole.on_top_of(&Spent::default());
    assert_eq!(fresh.max_duration_secs, Some(Secs::new(50)));
    assert_eq!(
        (fresh.max_tokens, fresh.max_cost_usd),
        (Some(900), Some(0.25))
    );
    let again = whole.on_top_of(&spent(5_000, Some(7), Some(50_000)));
    assert_eq!(again.max_duration_secs, Some(Secs::new(55)));
    assert_eq!(
        (again.max_tokens, again.max_cost_usd),
        (Some(907), Some(0.3))
    );
}

#[test]
fn agent_and_gates_count_while_an_iteration_is_closed() {
    let mut sim = Sim::new(IterativeLoopConfig {
        verify: vec!["a".into()],
        ..limits()
    });
    let secs = |sim: &Sim| time_left_to_close(&sim.state).unwrap().as_millis();
    assert_eq!(secs(&sim), 60_000);
    sim.start(1, 1, 0);
    sim.input(&Input::RunEnded(Box::new(claims())));
    assert_eq!(secs(&sim), 59_000);
    sim.input(&Input::GateEnded(Box::new(gate(0, "a", 0))));
    assert_eq!(secs(&sim), 58_990);
    assert_eq!(time_left_to_close(&Sim::new(config()).state), None);
}

#[test]
fn time_that_is_in_no_record_yet_counts() {
    let told = spent(59_000, Some(1), None);
    let busy = |ms| with_time(&told, Duration::from_millis(ms));
    assert!(time_reached(&limits(), &busy(999)).is_none());
    let over = time_reached(&limits(), &busy(1000)).unwrap();
    assert_eq!((over.limit, over.used), (60.0, 60.0));
    assert_eq!(busy(1000).tokens, Some(1));
}

#[test]
fn a_budget_that_the_agent_does_not_tell_anything_about_is_warned_of_once() {
    let priced = || IterativeLoopConfig {
        max_cost_usd: Some(1.0),
        max_tokens: Some(1_000_000),
        max_iterations: Some(4),
        ..config()
    };
    let cost = Some(Cost {
        micros: 1,
        estimated: false,
    });
    let tokens = Tokens {
        input: Some(1),
        ..Tokens::default()
    };
    for (told, expected) in [
        (facts(), Some("--max-cost")),
        (RunFacts { cost, ..facts() }, Some("--max-tokens")),
        (
            RunFacts {
                cost,
                tokens: Some(tokens),
                ..facts()
            },
            None,
        ),
    ] {
        let mut sim = Sim::new(priced());
        // The first one fails: that tells nothing.
        sim.end(|run| match run {
            1 => Turn {
                moved: false,
                ..turn(fails())
            },
            _ => turn(told.clone()),
        });
        let warnings = sim.journal.iter().filter_map(|record| match &record.event {
            Event::Warning { message, .. } => Some(message.clone()),
            _ => None,
        });
        let warnings: Vec<String> = warnings.collect();
        assert_eq!(warnings.len(), usize::from(expected.is_some()));
        if let Some(flag) = expected {
            assert!(warnings[0].contains(flag), "{warnings:?}");
        }
    }
}

#[test]
fn a_task_loop_is_warned_once_of_a_budget_that_an_agent_of_its_tasks_does_not_tell_about() {
    let run = |verdict, cost_usd, tokens| IterationSummary {
        verdict: Some(verdict),
        cost_usd,
        tokens,
        ..IterationSummary::default()
    };
    let told = |state: &LoopState, run: &IterationSummary| {
        budget_unkept_by_task(state, "7", run).map(|event| match event.into() {
            Event::Warning { message, .. } => message,
            other => panic!("{other:?}"),
        })
    };
    let mut sim = Sim::new(limits());
    let silent = run(Verdict::Promise, None, None);
    let failed = run(Verdict::Failed("x".into()), None, None);
    let full = run(Verdict::Promise, Some(0.1), Some(10));
    for quiet in [&failed, &full] {
        assert_eq!(told(&sim.state, quiet), None);
        sim.state.summaries.push_back(quiet.clone());
    }
    let words = told(&sim.state, &silent).unwrap();
    assert!(
        words.contains("task 7") && words.contains("--max-cost"),
        "{words}"
    );
    let cheap = run(Verdict::Worked, Some(0.1), None);
    assert!(told(&sim.state, &cheap).unwrap().contains("--max-tokens"));
    sim.state.summaries.push_back(silent.clone());
    assert_eq!(told(&sim.state, &silent), None);
    // Nobody asked for a budget.
    let free = Sim::new(config());
    assert_eq!(told(&free.state, &silent), None);
}

#[test]
fn proven_work_lands_in_the_time_of_its_gates_whatever_is_left() {
    let secs = Duration::from_secs;
    let config = |gates: usize| IterativeLoopConfig {
        verify: vec!["true".into(); gates],
        verify_timeout_secs: Secs::new(20),
        ..limits()
    };
    // Gates, what is spent, how long it has taken, what is left.
    for (gates, ms, busy, left) in [
        (1, 0, 0, 60),
        (1, 30_000, 5, 25),
        (1, 50_000, 5, 15),
        (1, 60_000, 5, 15),
        (1, 90_000, 20, 0),
        (3, 60_000, 20, 40),
        (0, 60_000, 20, 0),
    ] {
        let got = time_left_to_land(&config(gates), &spent(ms, None, None), secs(busy));
        assert_eq!(got, Some(secs(left)), "{gates} {ms} {busy}");
    }
    let free = IterativeLoopConfig::default();
    assert_eq!(
        time_left_to_land(&free, &spent(1, None, None), secs(9)),
        None
    );
}
