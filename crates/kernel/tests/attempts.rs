//! The rule for attempts at tasks as a table: no process, no clock.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::event::*;
use descartes_kernel::fleet::KnownOffer;
use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::sched::AttemptEnd;
use descartes_kernel::state::{LoopState, Spent};
use descartes_kernel::step::{Action, Agents, ClosingFacts, Input, plan_attempt, react};
use descartes_kernel::tasks::{attempt_end, is_unheard_proof};
use descartes_kernel::transition::{apply, begin};
use descartes_plans::graph::Proof;
use descartes_text::units::Secs;
use jiff::Timestamp;

#[derive(Clone, Copy, PartialEq)]
enum Gate {
    None,
    Green,
    Red,
}

#[derive(Clone, Copy)]
struct Case {
    proof: Proof,
    exit: i32,
    claims: bool,
    changes: bool,
    gate: Gate,
}

const AGENTS: Agents = Agents {
    count: 1,
    stall_default: 0,
};

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

struct Sim(LoopState);

impl Sim {
    fn new(proof: Proof, gate: Gate) -> Self {
        let config = IterativeLoopConfig {
            command: "agent".into(),
            prompt: "do".into(),
            completion_promise: (proof != Proof::Exit).then(|| "COMPLETE".into()),
            max_iterations: Some(3),
            verify: (gate != Gate::None)
                .then(|| "true".into())
                .into_iter()
                .collect(),
            proof: Some(proof),
            ..Default::default()
        };
        let event = Event::LoopCreated {
            loop_id: "id".into(),
            name: "n".into(),
            config: Box::new(config),
            started_at: now(),
            iterations: 0,
            summaries: vec![],
            spent: None,
            ended: None,
        };
        Self(begin(&record(0, event)).unwrap())
    }

    fn input(&mut self, input: &Input) {
        for event in react(&self.0, input, AGENTS, now()) {
            self.append(event.into());
        }
    }

    fn append(&mut self, event: Event) {
        let next = record(self.0.seq + 1, event);
        apply(&mut self.0, &next).unwrap();
    }

    /// One attempt to its end; tells which gates were run.
    fn attempt(&mut self, until: u32, facts: &RunFacts, changes: bool, gate: Gate) -> u32 {
        self.attempt_with_end(until, facts, changes, gate, |reason| reason)
    }

    /// The same where its loop ends for another reason than the policy's.
    fn attempt_with_end(
        &mut self,
        until: u32,
        facts: &RunFacts,
        changes: bool,
        gate: Gate,
        end: impl Fn(IterativeExitReason) -> IterativeExitReason,
    ) -> u32 {
        let mut gates = 0;
        loop {
            match plan_attempt(&self.0, AGENTS, until, now()) {
                Action::Start { run, iteration, .. } => self.append(Event::RunStarted {
                    run,
                    iteration,
                    agent: 0,
                    guard_pid: None,
                    prompt: "hash".into(),
                    prompt_bytes: 2,
                    before: tree("before"),
                    notes: vec![],
                }),
                Action::Watch => self.input(&Input::RunEnded(Box::new(facts.clone()))),
                Action::Gate { index, command } => {
                    gates += 1;
                    let code = i32::from(gate == Gate::Red);
                    self.input(&Input::GateEnded(Box::new(GateFacts {
                        gate: index,
                        command,
                        end: GateEnd::Exit(ExitStatus::Code(code)),
                        duration_ms: 1,
                        tail: "assert failed".into(),
                        tree_before: None,
                        tree_after: None,
                    })));
                }
                Action::Close => self.input(&Input::Closed(ClosingFacts {
                    after: tree(if changes { "after" } else { "before" }),
                    ..Default::default()
                })),
                Action::Finish(reason) => {
                    let reason = end(reason);
                    self.append(Event::LoopFinished { reason });
                }
                _ => return gates,
            }
        }
    }
}

fn record(seq: u64, event: Event) -> Record {
    Record {
        v: FORMAT,
        seq,
        at: now(),
        event,
    }
}

fn tree(hash: &str) -> TreeFacts {
    TreeFacts {
        tree: Some(hash.into()),
        ..TreeFacts::default()
    }
}

fn facts(exit: i32, claims: bool) -> RunFacts {
    serde_json::from_value(serde_json::json!({
        "ended_by": "exit", "exit": {"code": exit}, "duration_ms": 60_000, "stdout_bytes": 0,
        "stderr_bytes": 0, "preview": "", "claim": claims.then_some("COMPLETE"),
    }))
    .unwrap()
}

fn outcome(case: Case) -> &'static str {
    let mut sim = Sim::new(case.proof, case.gate);
    let facts = facts(case.exit, case.claims);
    let gates = sim.attempt(1, &facts, case.changes, case.gate);
    if case.proof != Proof::Promise {
        assert_eq!(
            gates,
            u32::from(case.gate != Gate::None),
            "gates always run"
        );
    }
    match attempt_end(&sim.0, 1) {
        AttemptEnd::Green { unproven: true, .. } => "done, unproven",
        AttemptEnd::Green { .. } => "done",
        AttemptEnd::Red { .. } => "red",
        AttemptEnd::Failed { .. } => "failed",
        AttemptEnd::NoPromise => "no promise",
        AttemptEnd::CutOff { .. } => "cut off",
        AttemptEnd::NothingDone => "nothing",
        _ => "else",
    }
}

#[test]
fn an_attempt_is_done_when_the_agent_ended_well_did_something_and_every_gate_is_green() {
    use Gate::{Green, None, Red};
    use Proof::{Exit, Promise, Work};
    let table = [
        // proof, exit, claims, changes, gate, outcome
        (Work, 0, true, true, Green, "done"),
        (Work, 0, true, false, Green, "done"),
        (Work, 0, false, true, Green, "done"),
        (Work, 0, false, false, Green, "nothing"),
        (Work, 7, true, true, Green, "failed"),
        (Work, 7, false, true, Green, "failed"),
        (Work, 0, true, true, Red, "red"),
        (Work, 0, false, true, Red, "red"),
        (Work, 0, false, false, Red, "red"),
        (Work, 0, true, true, None, "done"),
        (Work, 0, true, false, None, "done"),
        (Work, 0, false, true, None, "no promise"),
        (Work, 0, false, false, None, "nothing"),
        (Work, 7, true, true, None, "failed"),
        (Exit, 0, false, false, Green, "done"),
        (Exit, 0, false, false, None, "nothing"),
        (Exit, 0, false, true, None, "done, unproven"),
        (Exit, 7, false, true, Green, "failed"),
        (Exit, 7, false, true, None, "failed"),
        (Exit, 0, false, true, Red, "red"),
        (Promise, 0, true, false, Green, "done"),
        (Promise, 0, true, true, Red, "red"),
        (Promise, 0, false, true, Green, "no promise"),
        (Promise, 0, false, false, None, "no promise"),
        (Promise, 7, false, true, None, "no promise"),
        (Promise, 0, true, true, None, "done"),
        (Promise, 7, true, true, None, "failed"),
        (Promise, 7, true, true, Green, "failed"),
        (Promise, 7, false, false, None, "failed"),
    ];
    for (proof, exit, claims, changes, gate, expected) in table {
        let case = Case {
            proof,
            exit,
            claims,
            changes,
            gate,
        };
        let told = format!("{proof:?} exit {exit} claims {claims} changes {changes}");
        assert_eq!(outcome(case), expected, "{told}");
    }
}

#[test]
fn an_agent_that_said_something_has_done_what_nobody_asked_a_proof_for() {
    let mut sim = Sim::new(Proof::Exit, Gate::None);
    let says = RunFacts {
        preview: "nothing was to be changed\n".into(),
        ..facts(0, false)
    };
    sim.attempt(1, &says, false, Gate::None);
    let end = attempt_end(&sim.0, 1);
    assert!(
        matches!(end, AttemptEnd::Green { unproven: true, .. }),
        "{end:?}"
    );
}

#[test]
fn an_attempt_that_fails_at_its_start_is_a_failure_whatever_it_changed() {
    let mut sim = Sim::new(Proof::Promise, Gate::None);
    let at_start = RunFacts {
        duration_ms: 5,
        ..facts(7, false)
    };
    sim.attempt(1, &at_start, true, Gate::None);
    let end = attempt_end(&sim.0, 1);
    assert!(matches!(end, AttemptEnd::Failed { .. }), "{end:?}");
}

#[test]
fn a_lent_loop_is_given_back_after_its_attempt_and_goes_on_when_lent_again() {
    let mut sim = Sim::new(Proof::Work, Gate::Red);
    sim.attempt(1, &facts(0, false), true, Gate::Red);
    assert_eq!(sim.0.iterations, 1);
    assert!(
        sim.0.next_prompt.failed_gate.is_some(),
        "the next prompt tells of the gate"
    );
    sim.attempt(2, &facts(0, false), true, Gate::Green);
    assert_eq!(sim.0.iterations, 2);
    let green = AttemptEnd::Green {
        changed: true,
        claimed: false,
        unproven: false,
    };
    assert_eq!(attempt_end(&sim.0, 2), green);
}

#[test]
fn a_host_that_could_not_go_on_fails_no_task_and_takes_back_no_proof() {
    let full = |_| IterativeExitReason::Error {
        message: "no space left".into(),
    };
    // Before its end was on record the attempt was proven.
    let mut sim = Sim::new(Proof::Work, Gate::Green);
    sim.attempt_with_end(1, &facts(0, true), true, Gate::Green, full);
    assert!(is_unheard_proof(&sim.0, 0));
    let green = AttemptEnd::Green {
        changed: true,
        claimed: true,
        unproven: false,
    };
    assert_eq!(attempt_end(&sim.0, 1), green);
    // It was not even begun, or not judged.
    for iterations in [0, 1] {
        let mut sim = Sim::new(Proof::Work, Gate::Red);
        if iterations == 1 {
            sim.attempt(1, &facts(0, false), true, Gate::Red);
        }
        sim.append(Event::LoopFinished {
            reason: full(IterativeExitReason::Running),
        });
        assert_eq!(attempt_end(&sim.0, 1), AttemptEnd::Interrupted);
    }
}

#[test]
fn a_limit_gives_the_loop_back_at_once_and_costs_no_attempt() {
    let mut sim = Sim::new(Proof::Work, Gate::Green);
    let until: Timestamp = "2026-03-01T14:00:00Z".parse().unwrap();
    let limited = RunFacts {
        limit: Some(ReportedLimit {
            kind: LimitKind::Usage,
            until: Some(until),
            words: "limit".into(),
        }),
        ..facts(1, false)
    };
    sim.attempt(1, &limited, false, Gate::Green);
    assert_eq!(
        attempt_end(&sim.0, 1),
        AttemptEnd::Limited { until, login: None }
    );
    assert_eq!(sim.0.iterations, 0);
}

#[test]
fn the_result_of_an_offer_is_known_from_its_record_to_the_next_offer() {
    let mut sim = Sim::new(Proof::Work, Gate::None);
    let offered = |epoch| Event::TaskOffered {
        task: "1".into(),
        offer: KnownOffer {
            is_left: false,
            attempt: 1,
            epoch,
            memory: 0,
        },
    };
    let run = || Event::TaskRun {
        task: "1".into(),
        loop_id: "child".into(),
        iterations: 1,
        summary: Box::default(),
        spent: Spent::default(),
        wall_ms: None,
    };
    let over = |epoch| Event::OfferOver {
        task: "1".into(),
        epoch,
    };
    for (event, is_known) in [
        // Made here, and by nobody else.
        (run(), false),
        (offered(1), false),
        (run(), true),
        (offered(2), false),
        // Its worker never began, and it was taken back.
        (over(2), true),
        (offered(3), false),
        (run(), true),
    ] {
        sim.append(event);
        let tasks = sim.0.tasks.as_ref().unwrap();
        assert_eq!(tasks.has_result("1"), is_known, "{:?}", tasks.offers);
    }
}

#[test]
fn an_attempt_that_ran_out_of_time_says_so_and_how_much_it_had() {
    let timed_out = |ended_by| RunFacts {
        ended_by,
        ..facts(0, false)
    };
    for proof in [Proof::Promise, Proof::Work, Proof::Exit] {
        for (changes, gate) in [
            (true, Gate::None),
            (false, Gate::None),
            (true, Gate::Green),
            (true, Gate::Red),
        ] {
            let mut sim = Sim::new(proof, gate);
            sim.0.config.iteration_timeout_secs = Some(Secs::new(90));
            sim.attempt(1, &timed_out(EndedBy::Timeout), changes, gate);
            let AttemptEnd::CutOff {
                message,
                tail,
                timeout,
            } = attempt_end(&sim.0, 1)
            else {
                panic!("{proof:?}: {:?}", attempt_end(&sim.0, 1));
            };
            assert_eq!(message, "it reached its timeout of 1m30s");
            assert_eq!(timeout, Some(Secs::new(90)));
            // Gates of a loop that waits for a promise run where that was claimed.
            let is_red = gate == Gate::Red && proof != Proof::Promise;
            assert_eq!(tail.contains("assert failed"), is_red, "{proof:?}: {tail}");
        }
    }
    let mut sim = Sim::new(Proof::Promise, Gate::None);
    sim.attempt(1, &timed_out(EndedBy::Idle), true, Gate::None);
    let end = attempt_end(&sim.0, 1);
    assert!(
        matches!(end, AttemptEnd::CutOff { timeout: None, .. }),
        "{end:?}"
    );
}
