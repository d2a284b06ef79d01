//! What people ask of a loop while it runs.

use descartes_kernel::config::ConfigChange;
use descartes_kernel::config::{IterativeLoopConfig, PromptMode};
use descartes_kernel::control::Command;
use descartes_kernel::control::Grace;
use descartes_kernel::event::*;
use descartes_kernel::outcome::IterativeExitReason as Reason;
use descartes_kernel::step::{
    Action, EndRun, Input, end_run, plan, refusal, settled_by_end, standstill,
};

use crate::world::*;

#[test]
fn pause_holds_before_the_next_iteration_and_is_then_effective() {
    let mut sim = Sim::new(config());
    sim.start(1, 1, 0);
    sim.input(&from_person(Command::Pause));
    assert_eq!(
        sim.state.requests.pending.len(),
        1,
        "accepted, not yet effective"
    );
    assert_eq!(sim.run(|_| turn(facts())), Action::Hold);
    assert_eq!(
        (sim.state.iterations, sim.state.requests.pending.len()),
        (1, 0)
    );
    sim.input(&from_person(Command::Unpause));
    let reason = sim.end(|_| turn(claims()));
    assert_eq!(
        (reason, sim.state.iterations),
        (Reason::CompletionPromiseDetected, 2)
    );
}

#[test]
fn a_host_that_takes_up_a_paused_loop_says_that_it_holds() {
    let mut sim = Sim::new(config());
    sim.input(&from_person(Command::Pause));
    assert_eq!(sim.run(|_| turn(facts())), Action::Hold);
    let held = |sim: &Sim| {
        let paused = |record: &&Record| record.event == Event::Paused;
        sim.journal.iter().filter(paused).count()
    };
    assert_eq!(held(&sim), 1);
    sim.append(Event::HostStarted {
        host: HostFacts::default(),
    });
    assert_eq!(sim.run(|_| turn(facts())), Action::Hold);
    assert_eq!(held(&sim), 2);
}

/// A loop with two gates whose agent claimed, the first gate of which was green when somebody asked for this.
fn stopped_in_its_gates(by: StopBy) -> Sim {
    let mut sim = Sim::new(IterativeLoopConfig {
        verify: vec!["a".into(), "b".into()],
        max_iterations: Some(1),
        ..config()
    });
    sim.start(1, 1, 0);
    sim.input(&Input::RunEnded(Box::new(RunFacts {
        tokens: Some(Tokens {
            output: Some(7),
            ..Tokens::default()
        }),
        ..claims()
    })));
    sim.input(&Input::GateEnded(Box::new(gate(0, "a", 0))));
    if by == StopBy::InterruptAgain {
        sim.input(&Input::Stop(StopBy::Interrupt));
    }
    sim.input(&Input::Stop(by));
    let cancelled = GateFacts {
        end: GateEnd::Cancelled,
        ..gate(1, "b", 1)
    };
    sim.input(&Input::GateEnded(Box::new(cancelled)));
    sim
}

#[test]
fn a_stop_in_the_gates_leaves_the_claim_to_be_judged_by_a_resume() {
    for by in [
        StopBy::HangUp,
        StopBy::Terminate,
        StopBy::InterruptAgain,
        StopBy::Cancel,
        StopBy::Handle,
    ] {
        let mut sim = stopped_in_its_gates(by);
        match by {
            StopBy::HangUp => {
                assert_eq!(sim.run(|_| turn(facts())), Action::Leave(by));
                sim.append(Event::Interrupted { by });
            }
            _ => {
                assert_eq!(sim.end(|_| turn(facts())), Reason::UserCancelled, "{by:?}");
                // What it cost is told with the end, and once.
                assert_eq!(sim.state.spent.tokens, Some(7));
                assert_eq!(standstill(&sim.state, &ConfigChange::default()), None);
                sim.append(Event::LoopReopened);
            }
        }
        // The next host goes on where it was.
        sim.append(Event::HostStarted {
            host: HostFacts::default(),
        });
        let next = plan(&sim.state, sim.agents, sim.now);
        assert!(
            matches!(next, Action::Gate { index: 1, .. }),
            "{by:?}: {next:?}"
        );
        assert_eq!(
            sim.end(|_| turn(facts())),
            Reason::CompletionPromiseDetected,
            "{by:?}"
        );
        assert_eq!((sim.state.iterations, sim.state.runs), (1, 1), "{by:?}");
        assert_eq!(sim.state.spent.tokens, Some(7), "{by:?}");
    }
}

#[test]
fn gates_that_are_replaced_before_the_resume_judge_the_claim_that_was_left() {
    let mut sim = stopped_in_its_gates(StopBy::Terminate);
    assert_eq!(sim.end(|_| turn(facts())), Reason::UserCancelled);
    sim.append(Event::LoopReopened);
    sim.append(Event::ConfigChanged {
        change: Box::new(ConfigChange {
            verify: Some(vec!["c".into()]),
            ..ConfigChange::default()
        }),
        by: "resume".into(),
        from: None,
    });
    let next = plan(&sim.state, sim.agents, sim.now);
    let command = "c".to_owned();
    assert_eq!(next, Action::Gate { index: 0, command });
}

#[test]
fn a_note_that_no_prompt_can_carry_is_refused() {
    let say = Command::Say {
        text: "use jiff".into(),
    };
    for (mode, is_refused) in [
        (None, false),
        (Some(PromptMode::Stdin), false),
        (Some(PromptMode::None), true),
    ] {
        let mut config = config();
        config.backend.prompt_mode = mode;
        let mut sim = Sim::new(config);
        let refused = refusal(&sim.state, &say);
        assert_eq!(refused.is_some(), is_refused, "{mode:?}: {refused:?}");
        assert_eq!(refusal(&sim.state, &Command::Pause), None);
        sim.append(Event::LoopFinished {
            reason: Reason::UserCancelled,
        });
        assert_eq!(refusal(&sim.state, &say), refused);
    }
}

#[test]
fn a_note_is_given_until_a_run_counts() {
    let mut sim = Sim::new(config());
    sim.input(&from_person(Command::Say {
        text: "use jiff".into(),
    }));
    assert_eq!(sim.state.next_prompt.notes.len(), 1);
    // The first run meets a limit, so that the second is told as well; the third is not.
    sim.end(|run| match run {
        1 => turn(limited(Some("2026-03-01T15:00:00Z"))),
        2 => turn(facts()),
        _ => turn(claims()),
    });
    let given: Vec<usize> = sim
        .journal
        .iter()
        .filter_map(|record| match &record.event {
            Event::RunStarted { notes, .. } => Some(notes.len()),
            _ => None,
        })
        .collect();
    assert_eq!(given, [1, 1, 0]);
    assert!(sim.state.next_prompt.notes.is_empty());
    // Effective when the run that counted is over, not when one starts.
    let order: Vec<&str> = sim
        .journal
        .iter()
        .filter_map(|record| match &record.event {
            Event::RunDiscarded { .. } => Some("discarded"),
            Event::IterationFinished { .. } => Some("finished"),
            Event::CommandEffective { .. } => Some("effective"),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["discarded", "finished", "effective", "finished"]);
}

#[test]
fn a_note_outlives_a_stopped_run_and_the_end_of_the_loop() {
    let mut sim = Sim::new(config());
    let text = "use jiff".to_owned();
    sim.input(&from_person(Command::Say { text }));
    sim.start(1, 1, 0);
    sim.input(&from_person(Command::Cancel { grace: Grace::Ask }));
    let stopped = RunFacts {
        ended_by: EndedBy::Cancel,
        ..facts()
    };
    assert_eq!(sim.end(|_| turn(stopped.clone())), Reason::UserCancelled);
    for event in settled_by_end(&sim.state) {
        sim.append(event.into());
    }
    let pending: Vec<u64> = sim
        .state
        .requests
        .pending
        .iter()
        .map(|(id, _)| *id)
        .collect();
    assert_eq!(pending, [1], "the cancel is settled, the note is not");
    sim.append(Event::LoopReopened);
    assert_eq!(
        sim.end(|_| turn(claims())),
        Reason::CompletionPromiseDetected
    );
    assert!(sim.state.next_prompt.notes.is_empty() && sim.state.requests.pending.is_empty());
}

#[test]
fn what_a_person_said_and_held_stands_among_the_changes() {
    let mut sim = Sim::new(config());
    let long = "a".repeat(300);
    sim.input(&from_person(Command::Say { text: long }));
    sim.input(&from_person(Command::Pause));
    sim.input(&from_person(Command::Pause));
    sim.input(&from_person(Command::Unpause));
    sim.input(&from_person(Command::Unpause));
    sim.input(&from_person(Command::RetryNow));
    let told: Vec<String> = sim.state.changes.iter().map(|one| one.describe()).collect();
    let note = format!("note: none -> {}…, by say", "a".repeat(100));
    assert_eq!(
        told,
        [
            note.as_str(),
            "paused: no -> yes, by pause",
            "paused: yes -> no, by unpause",
        ]
    );
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
fn every_interrupt_is_on_record_and_each_ends_more_than_the_one_before() {
    use StopBy::{Cancel, HangUp, Interrupt, InterruptAgain, Terminate};
    let (ask, kill) = (Some(EndRun::Ask), Some(EndRun::Kill));
    // What is asked for one after the other: how the run is ended, and what stands afterwards.
    let table: [&[(StopBy, Option<EndRun>, StopBy)]; 7] = [
        &[
            (Interrupt, None, Interrupt),
            (Interrupt, ask, InterruptAgain),
            (Interrupt, kill, InterruptAgain),
        ],
        &[(Interrupt, None, Interrupt), (Terminate, ask, Terminate)],
        &[(Terminate, ask, Terminate), (HangUp, ask, Terminate)],
        &[
            (Cancel, ask, Cancel),
            (Interrupt, kill, Cancel),
            (Interrupt, kill, Cancel),
        ],
        // They keep their exit codes, 143 and 129, and a closed terminal leaves the loop resumable.
        &[(Terminate, ask, Terminate), (Interrupt, kill, Terminate)],
        &[(HangUp, ask, HangUp), (Interrupt, kill, HangUp)],
        &[(HangUp, ask, HangUp), (HangUp, ask, HangUp)],
    ];
    for row in table {
        let mut sim = Sim::new(config());
        sim.start(1, 1, 0);
        for (by, ends, stands) in row {
            let (input, before) = (Input::Stop(*by), sim.journal.len());
            assert_eq!(end_run(&sim.state, &input), *ends, "{row:?}");
            sim.input(&input);
            assert_eq!(sim.state.requests.stop, Some(*stands), "{row:?}");
            let told = sim.journal.len() > before;
            assert!(told || *by != Interrupt, "{row:?}");
        }
        let killed = end_run(&sim.state, &Input::Kill(Terminate));
        assert_eq!(killed, kill);
    }
    let cancel = |grace| from_person(Command::Cancel { grace });
    let sim = Sim::new(config());
    assert_eq!(end_run(&sim.state, &cancel(Grace::Ask)), ask);
    assert_eq!(end_run(&sim.state, &cancel(Grace::Skip)), kill);
    assert_eq!(end_run(&sim.state, &from_person(Command::Pause)), None);
}

#[test]
fn without_a_budget_no_run_begins_and_none_is_judged_less() {
    let mut sim = Sim::new(config());
    assert_eq!(end_run(&sim.state, &Input::BudgetGone), Some(EndRun::Ask));
    sim.input(&Input::BudgetGone);
    assert_eq!(sim.state.requests.stop, Some(StopBy::HangUp));
    let mut sim = Sim::new(config());
    sim.start(1, 1, 0);
    assert_eq!(end_run(&sim.state, &Input::BudgetGone), None);
    sim.input(&Input::BudgetGone);
    assert_eq!(sim.state.requests.stop, None);
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
    sim.input(&from_person(Command::Cancel { grace: Grace::Ask }));
    let next = plan(&sim.state, sim.agents, sim.now);
    assert_eq!(next, Action::Finish(Reason::UserCancelled));
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
    sim.input(&from_person(Command::RetryNow));
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
    sim.input(&from_person(Command::Set {
        change: Box::new(change),
    }));
    assert!(sim.state.requests.pending.is_empty());
    assert_eq!(sim.end(|_| turn(facts())), Reason::MaxIterationsReached);
    assert_eq!(sim.state.iterations, 5);
}

#[test]
fn what_a_resume_alone_may_change_is_refused_to_a_running_loop() {
    let sim = Sim::new(config());
    for (change, hint) in [
        (
            ConfigChange {
                trust_marks: Some(true),
                ..Default::default()
            },
            "descartes loop resume --trust-marks",
        ),
        (
            ConfigChange {
                worktree_setup: Some("make ready".to_owned()),
                ..Default::default()
            },
            "change worktree_setup in the config, then: descartes loop resume",
        ),
    ] {
        let change = Box::new(change);
        let refused = refusal(&sim.state, &Command::Set { change });
        assert_eq!(refused.map(|why| why.hint).as_deref(), Some(hint));
    }
}
