//! Agents that fail, hang or do nothing.

use descartes_kernel::config::{IterativeLoopConfig, Permissions};
use descartes_kernel::event::*;
use descartes_kernel::outcome::IterativeExitReason as Reason;
use descartes_kernel::state::{GateSummary, IterationSummary};
use descartes_kernel::step::{Action, ClosingFacts, Input, plan, react};
use descartes_kernel::transition::{apply, begin};

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
fn a_failure_that_moved_files_is_work_unless_it_came_at_the_start() {
    let at = |duration_ms| RunFacts {
        duration_ms,
        ..fails()
    };
    let told = |output| RunFacts {
        tokens: Some(Tokens {
            output: Some(output),
            ..Tokens::default()
        }),
        ..at(12)
    };
    let killed = RunFacts {
        exit: Some(ExitStatus::Signal(11)),
        ..at(12)
    };
    let silent = RunFacts {
        did_nothing: true,
        exit: Some(ExitStatus::Code(0)),
        ..at(12)
    };
    let timed_out = RunFacts {
        ended_by: EndedBy::Timeout,
        ..at(1000)
    };
    for (facts, is_work) in [
        (at(12), false),
        (at(4_999), false),
        (at(5_000), true),
        (killed, false),
        (silent, false),
        (told(0), false),
        (told(9), true),
        // Ended by us: how short it was says nothing about the agent.
        (timed_out, true),
    ] {
        let mut sim = Sim::new(IterativeLoopConfig {
            max_iterations: Some(9),
            ..config()
        });
        let reason = sim.end(|_| turn(facts.clone()));
        if is_work {
            assert_eq!(reason, Reason::MaxIterationsReached, "{facts:?}");
            assert!(sim.waits.is_empty());
        } else {
            assert!(
                matches!(reason, Reason::AgentFailed { failures: 5, .. }),
                "{reason:?}: {facts:?}"
            );
            assert_eq!(sim.waits, [1, 2, 4, 8]);
        }
    }
}

#[test]
fn an_attempt_shows_work_by_files_that_more_than_a_failed_start_left() {
    let at = |text: &str| Some(text.parse().unwrap());
    let failed = |files, completed_at: &str, tokens| IterationSummary {
        started_at: at("2026-03-01T12:00:00Z"),
        completed_at: at(completed_at),
        ended_by: Some(EndedBy::Exit),
        verdict: Some(Verdict::Failed("exit code 1".into())),
        files,
        tokens,
        gates: vec![GateSummary {
            command: "true".into(),
            exit_code: Some(0),
            duration_ms: 30_000,
            cancelled: false,
        }],
        ..IterationSummary::default()
    };
    let (soon, later) = ("2026-03-01T12:00:31Z", "2026-03-01T12:00:41Z");
    let worked = IterationSummary {
        verdict: Some(Verdict::Worked),
        ..failed(Some(1), soon, None)
    };
    for (summary, shows_work) in [
        // The time of its gates is not the agent's.
        (failed(Some(1), soon, None), false),
        (failed(Some(1), soon, Some(9)), true),
        (failed(Some(1), later, None), true),
        (failed(Some(0), later, None), false),
        (failed(None, later, None), false),
        (worked, true),
    ] {
        assert_eq!(summary.shows_work(), shows_work, "{summary:?}");
    }
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
            did_nothing: true,
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

/// Whether each run's prompt held the nudge.
fn nudges(sim: &mut Sim, mut script: impl FnMut(u64) -> Turn) -> (Vec<bool>, Reason) {
    let mut told = vec![];
    let reason = sim.end(&mut script);
    let mut state = begin(&sim.journal[0]).unwrap();
    for record in &sim.journal[1..] {
        if let Event::RunStarted { .. } = record.event {
            told.push(state.progress.nudge_due().is_some());
        }
        apply(&mut state, record).unwrap();
    }
    (told, reason)
}

#[test]
fn a_nudge_stands_in_every_prompt_until_an_iteration_counted() {
    let mut sim = Sim::new(IterativeLoopConfig {
        stall_after: Some(2),
        ..config()
    });
    let still = |facts| Turn {
        moved: false,
        ..turn(facts)
    };
    let (told, reason) = nudges(&mut sim, |run| match run {
        3 => still(limited(Some("2026-03-01T15:00:00Z"))),
        _ => still(facts()),
    });
    assert_eq!(told, [false, false, true, true, false]);
    assert!(matches!(reason, Reason::Stalled { iterations: 4, .. }));
}

#[test]
fn a_nudge_that_a_dead_host_did_not_write_comes_with_the_next_start() {
    let mut sim = Sim::new(IterativeLoopConfig {
        stall_after: Some(2),
        ..config()
    });
    for run in 1..=2 {
        sim.start(run, run as u32, 0);
        sim.input(&Input::RunEnded(Box::new(facts())));
        let after = sim.facts_of_tree();
        let closing = ClosingFacts {
            after,
            ..Default::default()
        };
        let events = react(&sim.state, &Input::Closed(closing), sim.agents, sim.now);
        sim.append(events[0].clone().into());
    }
    assert!(
        sim.state.progress.nudge_due().is_none(),
        "its record is lost"
    );
    sim.start(3, 3, 0);
    assert!(sim.state.progress.nudge_due().is_some());
}

#[test]
fn an_agent_is_nudged_also_where_the_number_was_lowered_meanwhile() {
    let mut sim = Sim::new(IterativeLoopConfig {
        stall_after: Some(9),
        ..config()
    });
    let still = || Turn {
        moved: false,
        ..turn(facts())
    };
    for run in 1..=4 {
        sim.start(run, run as u32, 0);
        sim.input(&Input::RunEnded(Box::new(facts())));
        let after = sim.facts_of_tree();
        sim.input(&Input::Closed(ClosingFacts {
            after,
            ..Default::default()
        }));
    }
    let change = descartes_kernel::config::ConfigChange {
        stall_after: Some(3),
        ..Default::default()
    };
    let change = Box::new(change);
    sim.input(&from_person(descartes_kernel::control::Command::Set {
        change,
    }));
    let (told, reason) = nudges(&mut sim, |_| still());
    assert_eq!(told, [false, false, false, false, true, false]);
    assert!(matches!(reason, Reason::Stalled { iterations: 6, .. }));
}

/// Which agent ran each iteration, given the agents whose runs fail and how long a run takes.
fn agents_of(seconds: i64, fails_at: impl Fn(u64, u32) -> bool) -> (Vec<u32>, Vec<i64>) {
    let mut sim = Sim::new(IterativeLoopConfig {
        max_iterations: Some(8),
        ..config()
    });
    sim.agents.count = 2;
    let mut before = 0;
    while sim.state.iterations < 8 && sim.state.exit_reason() == Reason::Running {
        let run = sim.state.runs + 1;
        let (now, agents) = (sim.now, sim.agents);
        let Action::Start { agent, .. } = plan(&sim.state, agents, now) else {
            before += 1;
            assert!(before < 50, "the loop does not go on");
            let Action::Wait(until) = plan(&sim.state, agents, now) else {
                break;
            };
            sim.waits.push(until.as_second() - now.as_second());
            sim.now = until;
            sim.input(&Input::WaitElapsed);
            continue;
        };
        let iteration = sim.state.iterations + 1;
        sim.start(run, iteration, agent);
        sim.now = sim
            .now
            .checked_add(jiff::SignedDuration::from_secs(seconds))
            .unwrap();
        let failed = fails_at(run, agent);
        sim.tree += u32::from(!failed);
        let facts = if failed {
            crate::world::fails()
        } else {
            facts()
        };
        sim.input(&Input::RunEnded(Box::new(facts)));
        let after = sim.facts_of_tree();
        sim.input(&Input::Closed(ClosingFacts {
            after,
            ..Default::default()
        }));
    }
    let started = sim.started.iter().map(|(_, agent)| *agent).collect();
    (started, sim.waits)
}

#[test]
fn an_agent_that_failed_gets_its_turn_again_once_its_rest_is_over() {
    // One failure, then the fallback for one run of 30 s: the rest of 1 s is over.
    let (agents, waits) = agents_of(30, |run, _| run == 1);
    assert_eq!(agents, [0, 1, 0, 0, 0, 0, 0, 0]);
    assert!(waits.is_empty());
    // Quick runs: the fallback works until the rest is over, no longer.
    let (agents, _) = agents_of(0, |run, _| run == 1);
    assert_eq!(agents, [0, 1, 1, 1, 1, 1, 1, 1]);
    // It fails again and again: it rests longer each time (1, 2, 4, 8 s), the fallback works.
    let (agents, _) = agents_of(3, |_, agent| agent == 0);
    assert_eq!(agents, [0, 1, 0, 1, 0, 1, 1, 0]);
}

#[test]
fn where_every_agent_rests_the_loop_waits_for_the_first() {
    let (agents, waits) = agents_of(0, |_, _| true);
    assert_eq!(agents, [0, 1, 0, 1, 0]);
    assert_eq!(waits, [1, 2]);
}

#[test]
fn an_agent_that_fails_while_the_other_is_limited_is_not_asked_without_rest() {
    let mut sim = Sim::new(config());
    sim.agents.count = 2;
    let reason = sim.end(|run| match run {
        1 => turn(limited(Some("2026-03-01T15:00:00Z"))),
        _ => Turn {
            moved: false,
            ..turn(fails())
        },
    });
    assert!(matches!(reason, Reason::AgentFailed { failures: 5, .. }));
    assert_eq!(sim.waits, [1, 2, 4, 8]);
}

#[test]
fn tools_denied_twice_in_a_row_end_the_loop_and_name_what_allows_them() {
    let denied = || RunFacts {
        duration_ms: 60_000,
        denied: vec!["Bash(make test)".into()],
        ..facts()
    };
    let still = |facts| Turn {
        moved: false,
        ..turn(facts)
    };
    for (permissions, words) in [
        (Permissions::Agent, "allow them with --permissions all"),
        (Permissions::Edit, "allow them with --permissions all"),
        (
            Permissions::All,
            "it has --permissions all, so its own settings deny them",
        ),
    ] {
        let mut sim = Sim::new(IterativeLoopConfig {
            permissions,
            ..config()
        });
        let last = format!("it was denied tools: Bash(make test); {words}");
        assert_eq!(
            sim.end(|_| still(denied())),
            Reason::AgentFailed { failures: 2, last }
        );
        assert_eq!(sim.waits, [1], "nobody waits for the end");
    }
    // One that worked all the same goes on, and another failure in between begins anew.
    let limited = || IterativeLoopConfig {
        max_iterations: Some(4),
        ..config()
    };
    let mut sim = Sim::new(limited());
    assert_eq!(sim.end(|_| turn(denied())), Reason::MaxIterationsReached);
    let summary = sim.state.summaries.back().unwrap();
    assert_eq!(summary.denied, ["Bash(make test)"]);
    let mut sim = Sim::new(limited());
    let reason = sim.end(|n| match n % 2 {
        0 => still(denied()),
        _ => still(fails()),
    });
    assert_eq!(reason, Reason::MaxIterationsReached);
}
