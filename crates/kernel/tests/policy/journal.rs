//! The journal: whatever happens, it folds to the same state.

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::control::Command;
use descartes_kernel::event::*;
use descartes_kernel::outcome::IterativeExitReason as Reason;
use descartes_kernel::state::LoopState;
use descartes_kernel::step::{Action, plan};
use descartes_kernel::transition::{checkpoint, fold, fold_end};
use proptest::prelude::*;

use crate::world::*;

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
    assert!(!state.agents.limited.is_empty() && !state.agents.agent_failures.is_empty());
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

/// Other versions read checkpoints too: the fields keep the names and places of version 0.1.
#[test]
fn a_checkpoint_keeps_the_shape_that_older_versions_read() {
    let mut sim = Sim::new(config());
    sim.append(Event::WaitStarted {
        until: sim.now,
        reason: WaitReason::Failures(1),
    });
    sim.append(Event::Nudged { iterations: 4 });
    let stored = serde_json::to_value(&sim.state).unwrap();
    let field = |name: &str| &stored[name];
    assert_eq!(field("phase"), "ready");
    assert_eq!(field("wait")["until"], sim.now.to_string());
    assert_eq!((field("nudge"), field("nudged")), (&true.into(), &4.into()));
    assert_eq!((field("pause"), field("still")), (&"no".into(), &0.into()));
    for name in [
        "stop",
        "pending",
        "failures",
        "last_failure",
        "fatal",
        "limit_runs",
        "limited",
        "agent_failures",
        "trees",
        "red",
        "refusal",
        "notes",
        "after",
        "next_command",
    ] {
        assert!(stored.get(name).is_some(), "{name} is missing");
    }
    let read: LoopState = serde_json::from_value(stored).unwrap();
    assert_eq!(read, sim.state);
}

#[test]
fn what_is_asked_of_an_ended_loop_holds_after_its_resume() {
    let mut sim = Sim::new(config());
    sim.input(&from_person(Command::Pause));
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
    sim.input(&from_person(Command::Pause));
    sim.input(&from_person(Command::Say {
        text: "look".into(),
    }));
    sim.append(Event::LoopReopened);
    assert_eq!(plan(&sim.state, sim.agents, sim.now), Action::Hold);
    assert_eq!(sim.state.next_prompt.notes[0].text, "look");
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
