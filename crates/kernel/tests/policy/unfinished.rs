//! Loops that were left in the middle of something.

use descartes_kernel::config::{ConfigChange, IterativeLoopConfig};
use descartes_kernel::control::{Command, Grace};
use descartes_kernel::event::*;
use descartes_kernel::outcome::IterativeExitReason as Reason;
use descartes_kernel::state::{Phase, RunInfo};
use descartes_kernel::step::{
    Action, ClosingFacts, Input, LastSeen, LeftChanges, LeftWork, Standstill, TakeUp,
    cancel_stopped, close_unfinished, left_trees, plan, standstill, take_up,
};
use descartes_plans::graph::Proof;
use jiff::Timestamp;

use crate::world::*;

fn tokens(output: u64) -> Option<Tokens> {
    Some(Tokens {
        output: Some(output),
        ..Tokens::default()
    })
}

const PAID: Option<Cost> = Some(Cost {
    micros: 300,
    estimated: false,
});

/// A run that was last seen after so many seconds, and that told what it spent.
fn seen(run: &RunInfo, seconds: i64) -> LastSeen {
    LastSeen {
        at: Timestamp::from_second(run.started_at.as_second() + seconds).ok(),
        tokens: tokens(40),
        cost: PAID,
    }
}

/// Where a host can die or give up.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Left {
    BeforeTheFirst,
    Running,
    AgentGone,
    BetweenGates,
    Over,
}

fn left(at: Left) -> Sim {
    let mut sim = Sim::new(IterativeLoopConfig {
        verify: vec!["a".into(), "b".into()],
        ..config()
    });
    if at == Left::BeforeTheFirst {
        return sim;
    }
    sim.start(1, 1, 0);
    if at == Left::Running {
        return sim;
    }
    let facts = RunFacts {
        tokens: tokens(50),
        cost: PAID,
        ..claims()
    };
    sim.input(&Input::RunEnded(Box::new(facts)));
    if at == Left::AgentGone {
        return sim;
    }
    sim.input(&Input::GateEnded(Box::new(gate(0, "a", 0))));
    if at == Left::Over {
        sim.input(&Input::Broken("no room".into()));
    }
    sim
}

#[test]
fn an_iteration_that_cannot_be_finished_is_closed_by_one_rule() {
    // Where it was left; the time that counts and the tokens, where there is something to close.
    let table = [
        (Left::BeforeTheFirst, None),
        (Left::Running, Some((7_000, Some(40)))),
        (Left::AgentGone, Some((1_000, Some(50)))),
        (Left::BetweenGates, Some((1_010, Some(50)))),
        (Left::Over, None),
    ];
    for (at, wanted) in table {
        let mut sim = left(at);
        let closed = close_unfinished(&sim.state, |run| seen(run, 7));
        assert_eq!(closed.is_some(), wanted.is_some(), "{at:?}");
        let (Some(event), Some((ms, tokens))) = (closed, wanted) else {
            continue;
        };
        sim.append(event.into());
        let spent = sim.state.spent;
        assert_eq!((spent.ms, spent.tokens), (ms, tokens), "{at:?}");
        assert_eq!(spent.cost_micros, Some(300), "{at:?}");
        assert_eq!(sim.state.iterations, 1, "its number is used up");
        assert_eq!(sim.state.phase, Phase::READY);
        assert!(close_unfinished(&sim.state, |run| seen(run, 7)).is_none());
    }
}

#[test]
fn a_run_of_which_nothing_is_known_costs_nothing() {
    let mut sim = left(Left::Running);
    let closed = close_unfinished(&sim.state, |run| LastSeen {
        // A clock that was put back.
        at: Timestamp::from_second(run.started_at.as_second() - 60).ok(),
        tokens: Some(Tokens::default()),
        cost: None,
    });
    sim.append(closed.unwrap().into());
    assert_eq!(sim.state.spent, Default::default());
}

fn taken_up(sim: &mut Sim, change: &ConfigChange, reported: Option<u32>) -> Vec<&'static str> {
    let from = None;
    let taken = TakeUp {
        change,
        from,
        reported,
        judged: LeftWork::Unknown,
    };
    let events = take_up(&sim.state, taken, |run| seen(run, 7));
    kinds_of(sim, events)
}

/// Writes them down.
fn kinds_of(sim: &mut Sim, events: Vec<Decided>) -> Vec<&'static str> {
    let kind = |event: &Decided| match **event {
        Event::IterationInterrupted { .. } => "interrupted",
        Event::LoopReopened => "reopened",
        Event::ConfigChanged { .. } => "changed",
        _ => "other",
    };
    let kinds = events.iter().map(kind).collect();
    events
        .into_iter()
        .for_each(|event| sim.append(event.into()));
    kinds
}

fn tree(tree: Option<&str>) -> TreeFacts {
    TreeFacts {
        tree: tree.map(str::to_owned),
        ..TreeFacts::default()
    }
}

/// A loop whose agent left this tree, or one of which nobody knows, and whose host died in its gates. The tree
/// before it is `0`.
fn judging(tree_after: Option<&str>, proof: Option<Proof>) -> Sim {
    let mut sim = Sim::new(IterativeLoopConfig {
        verify: vec!["a".into(), "b".into()],
        proof,
        ..config()
    });
    sim.start(1, 1, 0);
    sim.input(&Input::RunEnded(Box::new(RunFacts {
        tree_after: tree_after.map(str::to_owned),
        ..claims()
    })));
    sim
}

/// Whether the iteration is closed instead of judged, and what is told.
fn is_closed(sim: &Sim, judged: LeftWork<'_>) -> (bool, Option<String>) {
    let taken = TakeUp {
        change: &ConfigChange::default(),
        from: None,
        reported: Some(0),
        judged,
    };
    let events = take_up(&sim.state, taken, |run| seen(run, 7));
    let is_closed = |event: &Decided| matches!(**event, Event::IterationInterrupted { .. });
    let closed = events.iter().any(is_closed);
    (closed, judged.notice(&sim.state))
}

#[test]
fn what_is_judged_goes_on_only_where_the_work_of_its_agent_is() {
    let (before, left, other, unknown) = (
        tree(Some("0")),
        tree(Some("1")),
        tree(Some("2")),
        tree(None),
    );
    let work = Some(Proof::Work);
    let now = |tree| LeftWork::Now(tree, None);
    for (tree_after, proof, judged, wanted) in [
        (Some("1"), None, LeftWork::Unknown, false),
        (Some("1"), None, LeftWork::Elsewhere, true),
        (Some("1"), None, now(&left), false),
        (Some("1"), None, now(&unknown), false),
        // As it was before the agent began: nothing of its work is there.
        (Some("1"), None, now(&before), true),
        (Some("1"), work, now(&before), true),
        // Without git nobody knows what changed: a gate may have written something.
        (Some("1"), None, now(&other), false),
        // It changed nothing, and nothing is lost.
        (Some("0"), None, now(&before), false),
        (Some("0"), work, now(&before), false),
        // Journals of 0.1 do not say what it left.
        (None, None, now(&before), false),
        (None, work, now(&before), true),
        (None, work, now(&other), false),
        (None, work, LeftWork::Elsewhere, true),
    ] {
        let sim = judging(tree_after, proof);
        let (closed, notice) = is_closed(&sim, judged);
        assert_eq!(closed, wanted, "{tree_after:?} {proof:?} {judged:?}");
        let is_told = wanted && !matches!(judged, LeftWork::Elsewhere);
        assert_eq!(notice.is_some(), is_told, "{judged:?}");
    }
}

#[test]
fn files_that_the_loop_did_not_change_may_change_before_a_resume() {
    let now = tree(Some("2"));
    let sim = judging(Some("1"), None);
    for (of_loop, meanwhile, wanted) in [
        (&["a"][..], &["b"][..], None),
        (&[], &["b"], None),
        (&["a", "b"], &["b"], Some(" (b)")),
        (
            &["a", "b", "c", "d", "e"],
            &["a", "b", "c", "d", "e", "f"],
            Some(" (a, b, c, 2 more)"),
        ),
    ] {
        let paths = |names: &[&str]| names.iter().map(Into::into).collect();
        let changes = LeftChanges {
            of_loop: paths(of_loop),
            meanwhile: paths(meanwhile),
        };
        let wanted = wanted.map(|files| {
            format!(
                "the work tree changed while descartes was not running{files}: the agent runs again"
            )
        });
        let judged = LeftWork::Now(&now, Some(&changes));
        assert_eq!(is_closed(&sim, judged), (wanted.is_some(), wanted));
    }
}

#[test]
fn what_a_gate_wrote_is_no_change_and_all_of_the_loops_work_counts() {
    let mut sim = judging(Some("1"), None);
    let wrote = GateFacts {
        tree_after: Some("3".into()),
        ..gate(0, "a", 0)
    };
    sim.input(&Input::GateEnded(Box::new(wrote)));
    let now = tree(Some("3"));
    assert!(!is_closed(&sim, LeftWork::Now(&now, None)).0);
    let trees = left_trees(&sim.state).unwrap();
    assert_eq!((trees.agent, trees.last), ("1", "3"));
    // A second iteration that only looks and claims.
    let mut sim = judging(Some("1"), None);
    let after = tree(Some("1"));
    sim.input(&Input::GateEnded(Box::new(gate(0, "a", 1))));
    sim.tree = 1;
    sim.input(&Input::Closed(ClosingFacts {
        after,
        ..ClosingFacts::default()
    }));
    sim.start(2, 2, 0);
    sim.input(&Input::RunEnded(Box::new(RunFacts {
        tree_after: Some("1".into()),
        ..claims()
    })));
    assert_eq!(left_trees(&sim.state).unwrap().before, ["0", "1"]);
    let first = tree(Some("0"));
    assert!(is_closed(&sim, LeftWork::Now(&first, None)).0);
}

#[test]
fn what_is_judged_goes_on_where_it_was_and_what_ran_is_closed() {
    let none = ConfigChange::default();
    let more = ConfigChange {
        max_iterations: Some(Some(30)),
        ..Default::default()
    };
    let table: [(Left, &ConfigChange, &[&str]); 6] = [
        (Left::BeforeTheFirst, &none, &[]),
        (Left::Running, &none, &["interrupted"]),
        (Left::Running, &more, &["interrupted", "changed"]),
        (Left::AgentGone, &none, &[]),
        (Left::BetweenGates, &more, &["changed"]),
        (Left::Over, &none, &["reopened"]),
    ];
    for (at, change, wanted) in table {
        let mut sim = left(at);
        assert_eq!(taken_up(&mut sim, change, None), wanted, "{at:?}");
        let next = plan(&sim.state, sim.agents, sim.now);
        let goes_on = match at {
            Left::AgentGone => matches!(next, Action::Gate { index: 0, .. }),
            Left::BetweenGates => matches!(next, Action::Gate { index: 1, .. }),
            _ => matches!(next, Action::Start { .. }),
        };
        assert!(goes_on, "{at:?}: {next:?}");
    }
}

#[test]
fn a_proof_that_the_task_loop_has_not_heard_of_stays_as_it_is() {
    let done = || {
        let mut sim = Sim::new(config());
        sim.end(|_| turn(claims()));
        sim
    };
    let none = ConfigChange::default();
    assert_eq!(taken_up(&mut done(), &none, None), ["reopened"]);
    assert_eq!(taken_up(&mut done(), &none, Some(1)), ["reopened"]);
    let unheard: [&str; 0] = [];
    assert_eq!(taken_up(&mut done(), &none, Some(0)), unheard);
}

/// What is suggested is typed as it stands, until it goes on.
#[test]
fn every_limit_that_is_reached_is_raised_by_what_is_suggested() {
    let mut sim = Sim::new(IterativeLoopConfig {
        max_iterations: Some(2),
        max_cost_usd: Some(2.0),
        max_tokens: Some(1_000_000),
        ..config()
    });
    sim.end(|_| turn(facts()));
    sim.state.spent.cost_micros = Some(2_000_000);
    let table = [
        (
            ConfigChange::default(),
            "--max-cost 4.00 --max-iterations 4",
        ),
        (
            ConfigChange {
                max_cost_usd: Some(7.5),
                ..Default::default()
            },
            "--max-iterations 4 --max-cost 7.5",
        ),
        (
            ConfigChange {
                max_iterations: Some(Some(9)),
                sandbox_write: vec!["/h/my dir".into()],
                ..Default::default()
            },
            "--max-cost 4.00 --max-iterations 9 --sandbox-write '/h/my dir'",
        ),
    ];
    for (change, flags) in table {
        match standstill(&sim.state, &change) {
            Some(Standstill::AtLimit { resume_flags, .. }) => assert_eq!(resume_flags, flags),
            other => panic!("{flags}: {other:?}"),
        }
    }
    let typed = ConfigChange {
        max_cost_usd: Some(4.0),
        max_iterations: Some(Some(4)),
        ..Default::default()
    };
    assert_eq!(standstill(&sim.state, &typed), None);
}

#[test]
fn a_loop_stands_still_where_it_is_done_or_at_a_limit_that_nobody_raised() {
    let limit = |limit| ConfigChange {
        max_iterations: Some(Some(limit)),
        ..Default::default()
    };
    let none = ConfigChange::default();
    let at_limit = |flags: &str| {
        Some(Standstill::AtLimit {
            reason: Reason::MaxIterationsReached,
            resume_flags: flags.to_owned(),
        })
    };
    let mut two = Sim::new(IterativeLoopConfig {
        max_iterations: Some(2),
        ..config()
    });
    two.end(|_| turn(facts()));
    let same = standstill(&two.state, &none);
    assert!(
        matches!(&same, Some(Standstill::AtLimit { reason, .. }) if *reason == Reason::MaxIterationsReached),
        "{same:?}"
    );
    let Some(Standstill::AtLimit { resume_flags, .. }) = same else {
        panic!("not at its limit");
    };
    assert_eq!(standstill(&two.state, &limit(1)), at_limit(&resume_flags));
    assert_eq!(standstill(&two.state, &limit(3)), None);
    // Failures in a row begin anew with a resume; a proof does not.
    let mut failed = Sim::new(config());
    failed.end(|_| Turn {
        moved: false,
        ..turn(fails())
    });
    assert_eq!(standstill(&failed.state, &none), None);
    let mut done = Sim::new(config());
    done.end(|_| turn(claims()));
    let is_done = Some(Standstill::Done(Reason::CompletionPromiseDetected));
    assert_eq!(standstill(&done.state, &limit(99)), is_done);
    // Proven, and its host died before it could end the loop: no limit stands before that.
    let mut proven = Sim::new(config());
    proven.end(|_| turn(claims()));
    proven.state.phase = Phase::READY;
    assert_eq!(standstill(&proven.state, &limit(1)), None);
    // What is under way is closed or judged first.
    let mut running = left(Left::Running);
    running.state.config.max_iterations = Some(0);
    assert_eq!(standstill(&running.state, &none), None);
}

#[test]
fn a_loop_that_nobody_runs_is_cancelled_as_its_host_would_have() {
    let cancel = Command::Cancel { grace: Grace::Ask };
    for at in [Left::BeforeTheFirst, Left::Running, Left::BetweenGates] {
        let mut sim = left(at);
        sim.input(&from_person(Command::Pause));
        let text = "use jiff".to_owned();
        sim.input(&from_person(Command::Say { text }));
        let events = cancel_stopped(&sim.state, &cancel, None, sim.now, |run| seen(run, 7));
        events
            .into_iter()
            .for_each(|event| sim.append(event.into()));
        assert_eq!(sim.state.exit_reason(), Reason::UserCancelled, "{at:?}");
        let pending: Vec<u64> = sim
            .state
            .requests
            .pending
            .iter()
            .map(|(id, _)| *id)
            .collect();
        assert_eq!(pending, [2], "the note stays, pause and cancel are settled");
        let begun = at != Left::BeforeTheFirst;
        assert_eq!(sim.state.spent.cost_micros.is_some(), begun, "{at:?}");
        // A claim is left to be judged by a resume.
        let is_lost = at == Left::Running;
        assert_eq!(sim.state.iterations, u32::from(is_lost), "{at:?}");
        assert_eq!(sim.state.unjudged().is_some(), begun && !is_lost, "{at:?}");
        let again = cancel_stopped(&sim.state, &cancel, None, sim.now, |run| seen(run, 7));
        assert!(again.is_empty(), "it is over");
    }
}

#[test]
fn a_claim_that_was_left_by_a_cancel_is_judged_where_its_work_and_its_task_are_the_same() {
    let cancel = Command::Cancel { grace: Grace::Ask };
    let prompt = |text: &str| ConfigChange {
        prompt: Some(text.to_owned()),
        ..Default::default()
    };
    let none = ConfigChange::default();
    let elsewhere = tree(Some("0"));
    let table: [(&ConfigChange, LeftWork<'_>, &[&str]); 4] = [
        (&none, LeftWork::Unknown, &["reopened"]),
        (
            &none,
            LeftWork::Now(&elsewhere, None),
            &["reopened", "interrupted"],
        ),
        (&prompt("do"), LeftWork::Unknown, &["reopened", "changed"]),
        (
            &prompt("do something else"),
            LeftWork::Unknown,
            &["reopened", "interrupted", "changed"],
        ),
    ];
    for (change, judged, wanted) in table {
        let mut sim = judging(Some("1"), None);
        let events = cancel_stopped(&sim.state, &cancel, None, sim.now, |run| seen(run, 7));
        events
            .into_iter()
            .for_each(|event| sim.append(event.into()));
        let taken = TakeUp {
            change,
            from: None,
            reported: None,
            judged,
        };
        let events = take_up(&sim.state, taken, |run| seen(run, 7));
        let is_told = judged.notice(&sim.state).is_some();
        assert_eq!(is_told, !matches!(judged, LeftWork::Unknown));
        assert_eq!(kinds_of(&mut sim, events), wanted);
        let next = plan(&sim.state, sim.agents, sim.now);
        let is_judged = !wanted.contains(&"interrupted");
        assert_eq!(matches!(next, Action::Gate { index: 0, .. }), is_judged);
        assert_eq!(sim.state.iterations, u32::from(!is_judged));
    }
}
