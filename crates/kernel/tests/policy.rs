//! The policy of a loop as a table: scripted agents, no process, no clock.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::time::Duration;

use descartes_kernel::config::{ConfigChange, IterativeLoopConfig};
use descartes_kernel::control::{Command, Grace};
use descartes_kernel::event::*;
use descartes_kernel::outcome::IterativeExitReason as Reason;
use descartes_kernel::state::LoopState;
use descartes_kernel::step::{Action, Agents, ClosingFacts, Input, plan, react};
use descartes_kernel::transition::{apply, begin, checkpoint, fold, fold_end};
use descartes_kernel::units::Secs;
use jiff::Timestamp;
use proptest::prelude::*;

fn facts() -> RunFacts {
    RunFacts {
        ended_by: EndedBy::Exit,
        exit: Some(ExitStatus::Code(0)),
        duration_ms: 1000,
        stdout_bytes: 10,
        stderr_bytes: 0,
        preview: "hello".into(),
        claim: None,
        abort: None,
        error: None,
        limit: None,
        idle_hands: false,
        tokens: None,
        cost: None,
        leftovers: 0,
        survivors: vec![],
        log_dropped: 0,
        trouble: 0,
        denied: vec![],
    }
}

fn claims() -> RunFacts {
    RunFacts {
        claim: Some("COMPLETE".into()),
        ..facts()
    }
}

fn fails() -> RunFacts {
    RunFacts {
        exit: Some(ExitStatus::Code(1)),
        ..facts()
    }
}

fn limited(until: Option<&str>) -> RunFacts {
    let until = until.map(|t| t.parse().unwrap());
    RunFacts {
        limit: Some(LimitTold {
            kind: LimitKind::Usage,
            until,
            words: "limit".into(),
        }),
        ..fails()
    }
}

/// What a scripted world answers for one run.
struct Turn {
    facts: RunFacts,
    gates: Vec<i32>,
    moved: bool,
}

fn turn(facts: RunFacts) -> Turn {
    Turn {
        facts,
        gates: vec![],
        moved: true,
    }
}

struct Sim {
    state: LoopState,
    journal: Vec<Record>,
    agents: Agents,
    now: Timestamp,
    tree: u32,
    started: Vec<(u32, u32)>,
    waits: Vec<i64>,
}

fn config() -> IterativeLoopConfig {
    IterativeLoopConfig {
        command: "agent".into(),
        prompt: "do".into(),
        completion_promise: Some("COMPLETE".into()),
        max_iterations: Some(20),
        ..Default::default()
    }
}

impl Sim {
    fn new(config: IterativeLoopConfig) -> Self {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let first = Record {
            v: FORMAT,
            seq: 0,
            at: now,
            event: Event::LoopCreated {
                loop_id: "id".into(),
                name: "n".into(),
                config: Box::new(config),
                started_at: now,
                iterations: 0,
                summaries: vec![],
                spent: None,
                ended: None,
            },
        };
        let state = begin(&first).unwrap();
        let agents = Agents {
            count: 1,
            stall_default: 0,
        };
        let (started, waits) = (vec![], vec![]);
        Self {
            state,
            journal: vec![first],
            agents,
            now,
            tree: 0,
            started,
            waits,
        }
    }

    fn append(&mut self, event: Event) {
        let record = Record {
            v: FORMAT,
            seq: self.state.seq + 1,
            at: self.now,
            event,
        };
        apply(&mut self.state, &record).unwrap();
        self.journal.push(record);
        // Recovery must always arrive where the live loop is.
        assert_eq!(fold(&self.journal).unwrap().unwrap(), self.state);
    }

    fn input(&mut self, input: &Input) {
        for event in react(&self.state, input, self.agents, self.now) {
            self.append(event);
        }
    }

    fn facts_of_tree(&self) -> TreeFacts {
        TreeFacts {
            tree: Some(self.tree.to_string()),
            ..TreeFacts::default()
        }
    }

    fn start(&mut self, run: u64, iteration: u32, agent: u32) {
        self.started.push((iteration, agent));
        let notes: Vec<u64> = self.state.notes.iter().map(|n| n.id).collect();
        let before = self.facts_of_tree();
        self.append(Event::RunStarted {
            run,
            iteration,
            agent,
            guard_pid: None,
            prompt: "hash".into(),
            prompt_bytes: 2,
            before,
            notes,
        });
    }

    /// Runs until the loop is over, holds or leaves.
    fn run(&mut self, mut script: impl FnMut(u64) -> Turn) -> Action {
        let mut gates = vec![];
        for _ in 0..10_000 {
            match plan(&self.state, self.agents, self.now) {
                Action::Start {
                    run,
                    iteration,
                    agent,
                } => self.start(run, iteration, agent),
                Action::Watch => {
                    let turn = script(self.state.runs);
                    self.tree += u32::from(turn.moved);
                    gates = turn.gates;
                    gates.reverse();
                    self.input(&Input::RunEnded(Box::new(turn.facts)));
                }
                Action::Gate { index, command } => {
                    let code = gates.pop().unwrap_or(0);
                    self.input(&Input::GateEnded(Box::new(gate(index, &command, code))));
                }
                Action::Close => {
                    let after = self.facts_of_tree();
                    self.input(&Input::Closed(ClosingFacts {
                        after,
                        ..Default::default()
                    }));
                }
                Action::Wait(until) => {
                    self.waits.push(until.as_second() - self.now.as_second());
                    self.now = until;
                    self.input(&Input::WaitElapsed);
                }
                Action::Finish(reason) => self.append(Event::LoopFinished { reason }),
                Action::Hold => {
                    self.input(&Input::Held);
                    return Action::Hold;
                }
                other => return other,
            }
        }
        panic!("the loop does not end");
    }

    fn end(&mut self, script: impl FnMut(u64) -> Turn) -> Reason {
        assert_eq!(self.run(script), Action::Over);
        self.state.exit_reason()
    }
}

fn gate(gate: u32, command: &str, code: i32) -> GateFacts {
    GateFacts {
        gate,
        command: command.into(),
        end: GateEnd::Exit(ExitStatus::Code(code)),
        duration_ms: 10,
        tail: "tail".into(),
        tree_before: None,
        tree_after: None,
    }
}

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
    assert_eq!(sim.state.failures, 0);
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
fn a_wrong_login_is_an_error_at_once() {
    let limit = LimitTold {
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
        change: more,
        by: "resume".into(),
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
fn pause_holds_before_the_next_iteration_and_is_then_effective() {
    let mut sim = Sim::new(config());
    sim.start(1, 1, 0);
    sim.input(&Input::Command(Command::Pause));
    assert_eq!(sim.state.pending.len(), 1, "accepted, not yet effective");
    assert_eq!(sim.run(|_| turn(facts())), Action::Hold);
    assert_eq!((sim.state.iterations, sim.state.pending.len()), (1, 0));
    sim.input(&Input::Command(Command::Unpause));
    let reason = sim.end(|_| turn(claims()));
    assert_eq!(
        (reason, sim.state.iterations),
        (Reason::CompletionPromiseDetected, 2)
    );
}

#[test]
fn a_note_is_given_once() {
    let mut sim = Sim::new(config());
    sim.input(&Input::Command(Command::Say {
        text: "use jiff".into(),
    }));
    assert_eq!(sim.state.notes.len(), 1);
    sim.start(1, 1, 0);
    assert!(sim.state.notes.is_empty());
}

#[test]
fn one_interrupt_finishes_the_iteration_and_starts_nothing() {
    let mut sim = Sim::new(config());
    sim.start(1, 1, 0);
    sim.input(&Input::Stop(StopBy::Interrupt));
    assert_eq!(sim.end(|_| turn(facts())), Reason::UserCancelled);
    assert_eq!(sim.started.len(), 1);
    let mut sim = Sim::new(config());
    sim.start(1, 1, 0);
    sim.input(&Input::Stop(StopBy::Interrupt));
    assert_eq!(
        sim.end(|_| turn(claims())),
        Reason::CompletionPromiseDetected
    );
}

#[test]
fn a_closed_terminal_leaves_the_loop_to_be_resumed() {
    let mut sim = Sim::new(config());
    sim.start(1, 1, 0);
    sim.input(&Input::Stop(StopBy::HangUp));
    let cancelled = RunFacts {
        ended_by: EndedBy::Cancel,
        ..facts()
    };
    assert_eq!(
        sim.run(|_| turn(cancelled.clone())),
        Action::Leave(StopBy::HangUp)
    );
    sim.append(Event::Interrupted { by: StopBy::HangUp });
    assert_eq!(sim.state.exit_reason(), Reason::Running);
    sim.append(Event::HostStarted {
        host: HostFacts::default(),
    });
    assert_eq!(
        sim.end(|_| turn(claims())),
        Reason::CompletionPromiseDetected
    );
}

#[test]
fn cancel_stops_the_gates_and_ends_the_loop() {
    let mut sim = Sim::new(IterativeLoopConfig {
        verify: vec!["a".into()],
        ..config()
    });
    sim.start(1, 1, 0);
    sim.input(&Input::RunEnded(Box::new(claims())));
    sim.input(&Input::Command(Command::Cancel { grace: Grace::Ask }));
    assert_eq!(plan(&sim.state, sim.agents, sim.now), Action::Close);
    assert_eq!(sim.end(|_| turn(facts())), Reason::UserCancelled);
}

#[test]
fn retry_now_ends_a_wait() {
    let mut sim = Sim::new(config());
    sim.start(1, 1, 0);
    sim.input(&Input::RunEnded(Box::new(limited(Some(
        "2026-03-02T00:00:00Z",
    )))));
    assert!(matches!(
        plan(&sim.state, sim.agents, sim.now),
        Action::Wait(_)
    ));
    sim.input(&Input::Command(Command::RetryNow));
    assert!(matches!(
        plan(&sim.state, sim.agents, sim.now),
        Action::Start { run: 2, .. }
    ));
}

#[test]
fn set_changes_a_running_loop() {
    let mut sim = Sim::new(IterativeLoopConfig {
        max_iterations: Some(2),
        ..config()
    });
    let change = ConfigChange {
        max_iterations: Some(Some(5)),
        ..Default::default()
    };
    sim.input(&Input::Command(Command::Set {
        change: Box::new(change),
    }));
    assert!(sim.state.pending.is_empty());
    assert_eq!(sim.end(|_| turn(facts())), Reason::MaxIterationsReached);
    assert_eq!(sim.state.iterations, 5);
}

fn any_turn() -> impl Strategy<Value = (u8, Vec<i32>, bool)> {
    (0_u8..8, prop::collection::vec(0..2, 0..3), any::<bool>())
}

/// The journal with a checkpoint at this place, everything written and read back.
fn with_checkpoint(journal: &[Record], at: usize) -> Vec<Record> {
    let state = fold(&journal[..at]).unwrap().unwrap();
    let mut events: Vec<Event> = journal.iter().map(|r| r.event.clone()).collect();
    let state = Box::new(state);
    events.insert(at, Event::Checkpoint { state });
    let record = |(seq, event): (usize, Event)| {
        let at = journal[seq.min(journal.len() - 1)].at;
        let seq = seq as u64;
        let v = FORMAT;
        let line = serde_json::to_string(&Record { v, seq, at, event }).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    events.into_iter().enumerate().map(record).collect()
}

#[test]
fn checkpoints_come_due_with_records_and_never_behind_an_end() {
    let fallback = vec!["other".to_owned()];
    let mut sim = Sim::new(IterativeLoopConfig {
        fallback,
        ..config()
    });
    sim.agents.count = 2;
    sim.run(|run| match run {
        1 => turn(limited(Some("2026-03-01T13:00:00Z"))),
        2 => Turn {
            moved: false,
            ..turn(fails())
        },
        _ => turn(claims()),
    });
    let middle = sim.journal.len() - 4;
    let mut state = fold(&sim.journal[..middle]).unwrap().unwrap();
    assert!(!state.limited.is_empty() && !state.agent_failures.is_empty());
    assert_eq!(checkpoint(&state), None);
    state.checkpoint = 1;
    state.seq = 1024;
    assert_eq!(checkpoint(&state), None);
    state.seq += 1;
    assert!(checkpoint(&state).is_some());
    sim.state.seq = 5000;
    assert_eq!(checkpoint(&sim.state), None, "it is over");
    let with = with_checkpoint(&sim.journal, middle);
    assert_eq!(fold_end(&with[middle..]).unwrap(), fold(&with).unwrap());
    assert_eq!(fold_end(&with[middle + 1..]).unwrap(), None);
}

#[test]
fn what_is_asked_of_an_ended_loop_holds_after_its_resume() {
    let mut sim = Sim::new(config());
    sim.input(&Input::Command(Command::Pause));
    sim.append(Event::LoopFinished {
        reason: Reason::UserCancelled,
    });
    sim.append(Event::LoopReopened);
    assert!(matches!(
        plan(&sim.state, sim.agents, sim.now),
        Action::Start { .. }
    ));
    sim.append(Event::LoopFinished {
        reason: Reason::UserCancelled,
    });
    sim.input(&Input::Command(Command::Pause));
    sim.input(&Input::Command(Command::Say {
        text: "look".into(),
    }));
    sim.append(Event::LoopReopened);
    assert_eq!(plan(&sim.state, sim.agents, sim.now), Action::Hold);
    assert_eq!(sim.state.notes[0].text, "look");
}

proptest! {
    /// Whatever agents and people do: numbers follow on, nothing is called done without
    /// its green gates, and cutting the journal anywhere folds to a state that plans on.
    #[test]
    fn every_loop_keeps_its_promises(
        turns in prop::collection::vec(any_turn(), 1..30),
        gates in 0_usize..3,
        promise in any::<bool>(),
        place in any::<prop::sample::Index>(),
    ) {
        let verify: Vec<String> = (0..gates).map(|i| format!("g{i}")).collect();
        let completion_promise = promise.then(|| "COMPLETE".to_owned());
        let mut sim = Sim::new(IterativeLoopConfig {
            verify: verify.clone(), completion_promise, stall_after: Some(4), ..config()
        });
        let mut script = turns.iter().cycle();
        let reason = sim.end(|_| {
            let (kind, gates, moved) = script.next().unwrap().clone();
            let facts = match kind {
                0 => claims(),
                1 => fails(),
                2 if promise => RunFacts { ended_by: EndedBy::Idle, ..facts() },
                3 => RunFacts { error: Some("e".into()), ..facts() },
                _ => facts(),
            };
            Turn { facts, gates, moved }
        });
        if reason.is_success() && gates > 0 {
            let last = sim.state.iterations;
            let green = sim.journal.iter().filter(|r| matches!(&r.event,
                Event::GateFinished { iteration, facts } if *iteration == last && facts.passed()));
            prop_assert_eq!(green.count(), gates);
        }
        prop_assert!(sim.state.iterations <= 20);
        for cut in 1..sim.journal.len() {
            let state = fold(&sim.journal[..cut]).unwrap().unwrap();
            let action = plan(&state, sim.agents, sim.now);
            prop_assert!(action != Action::Over);
        }
        let cut = 1 + place.index(sim.journal.len() - 1);
        let with = with_checkpoint(&sim.journal, cut);
        prop_assert_eq!(fold_end(&with[cut..]).unwrap(), fold(&with).unwrap());
    }
}
