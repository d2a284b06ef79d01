//! What a task loop decides about its attempts and its end.

use std::time::Duration;

use descartes_kernel::budget::Reached;
use descartes_kernel::config::{IterativeLoopConfig, Permissions};
use descartes_kernel::event::*;
use descartes_kernel::outcome::IterativeExitReason as Reason;
use descartes_kernel::outcome::{Budget, Unlanded};
use descartes_kernel::sched::{AttemptEnd, Input, Outcome, StopReason};
use descartes_kernel::state::{IterativeLoopState, Kept, Spent};
use descartes_kernel::tasks::{
    AttemptOf, AttemptTrouble, EarlyEnd, EndedAttempt, Gates, Landing, OwnLimits, ProvenStep,
    RoadmapDefaults, TaskBrief, TaskFile, TasksConfig, TasksState, WorkBase, attempt_change,
    attempt_config, end_after_landing, ends_all_tasks, growth_config, shown_wait,
};
use descartes_plans::graph::{Proof, Rules};
use descartes_text::units::Secs;

use crate::world::*;

/// Ends one after the other and whether each left work, tasks that are done; whether that is the end.
type Case<'a> = (&'a [(AttemptEnd, bool)], usize, bool);

#[test]
fn an_agent_that_fails_before_anything_was_done_fails_for_every_task() {
    let failed = || AttemptEnd::Failed {
        message: "no such model".into(),
    };
    let red = || AttemptEnd::Red { tail: "x".into() };
    let limited = || AttemptEnd::Limited {
        until: "2026-03-01T12:00:00Z".parse().unwrap(),
        login: None,
    };
    let table: [Case<'_>; 7] = [
        (&[(failed(), false), (failed(), false)], 0, false),
        (
            &[(failed(), false), (failed(), false), (failed(), false)],
            0,
            true,
        ),
        (
            &[(failed(), false), (failed(), false), (failed(), false)],
            1,
            false,
        ),
        (
            &[(failed(), false), (failed(), true), (failed(), false)],
            0,
            false,
        ),
        (
            &[
                (failed(), false),
                (failed(), false),
                (red(), false),
                (failed(), false),
            ],
            0,
            false,
        ),
        (
            &[
                (failed(), false),
                (limited(), false),
                (AttemptEnd::NothingDone, false),
                (failed(), false),
                (AttemptEnd::Interrupted, false),
                (failed(), false),
            ],
            0,
            true,
        ),
        (&[(AttemptEnd::NothingDone, false)], 0, false),
    ];
    for (row, (ends, done, wanted)) in table.iter().enumerate() {
        let mut early = EarlyEnd::default();
        let mut then = None;
        for (end, worked) in *ends {
            let attempt = EndedAttempt {
                worked: *worked,
                ..ended(end.clone())
            };
            then = early.attempt_over(attempt, *done, 3, None).1;
        }
        let over = Reason::AgentFailed {
            failures: 3,
            last: "no such model".into(),
        };
        assert_eq!(then, wanted.then_some(Input::Cancel), "row {row}");
        assert_eq!(early.into_reason(), wanted.then_some(over), "row {row}");
    }
}

fn ended(end: AttemptEnd) -> EndedAttempt {
    EndedAttempt {
        work: "1".to_owned(),
        end,
        ends_all: None,
        trouble: None,
        worked: false,
        denied: false,
        is_last: true,
    }
}

#[test]
fn what_ends_a_task_loop_early_and_what_its_scheduler_hears() {
    let reached = Reached {
        budget: Budget::Tokens,
        limit: 5.0,
        used: 6.0,
    };
    let green = || AttemptEnd::NothingDone;
    let disk = || Reason::Error {
        message: "disk full".into(),
    };
    let of = |ends_all: Option<Reason>, trouble: Option<&str>| EndedAttempt {
        ends_all,
        trouble: trouble.map(|it| AttemptTrouble::Host(it.to_owned())),
        ..ended(green())
    };
    let budget = Some(Input::from(reached));
    let interrupted = AttemptEnd::Interrupted;
    let table = [
        // Nothing in the way.
        (of(None, None), None, green(), None, None),
        // A budget of the whole: the scheduler is told, and says itself how the loop ends.
        (of(None, None), Some(reached), green(), budget.clone(), None),
        (
            of(Some(reached.exit_reason()), None),
            None,
            interrupted.clone(),
            budget,
            None,
        ),
        // Trouble of the host ends all, and is told before anything else.
        (
            of(Some(reached.exit_reason()), Some("disk full")),
            Some(reached),
            interrupted,
            Some(Input::Cancel),
            Some(disk()),
        ),
    ];
    for (row, (attempt, reached, end, then, reason)) in table.into_iter().enumerate() {
        let mut early = EarlyEnd::default();
        assert_eq!(
            early.attempt_over(attempt, 0, 3, reached),
            (end, then),
            "row {row}"
        );
        assert_eq!(early.is_decided(), reason.is_some(), "row {row}");
        // The first reason holds.
        early.time_is_up(Reached {
            budget: Budget::Duration,
            limit: 1.0,
            used: 1.0,
        });
        let late = Reason::BudgetExhausted {
            budget: Budget::Duration,
            limit: 1.0,
            used: 1.0,
        };
        assert_eq!(
            early.into_reason(),
            Some(reason.unwrap_or(late)),
            "row {row}"
        );
    }
}

#[test]
fn what_goes_wrong_on_a_workers_machine_ends_no_task_loop_that_others_go_on_with() {
    const FULL: &str = "w2: disk full";
    let worker = Some(AttemptTrouble::Worker(FULL.to_owned()));
    let agent = Some(AttemptTrouble::Agent("not logged in".to_owned()));
    // Each attempt, and whether no other was under way.
    let of = |troubles: &[(&Option<AttemptTrouble>, bool)]| -> Vec<_> {
        let owned = troubles.iter();
        owned
            .map(|(trouble, last)| ((*trouble).clone(), *last))
            .collect()
    };
    let nobody = Reason::AgentFailed {
        failures: 3,
        last: "not logged in".into(),
    };
    let table = [
        // A worker that cannot work at all holds up nobody, however often.
        (of(&[(&worker, true); 9]), None),
        // An agent that one worker cannot use, while another is at work.
        (of(&[(&agent, false); 9]), None),
        // Nobody can.
        (
            of(&[(&agent, false), (&agent, true), (&agent, true)]),
            Some(nobody),
        ),
        (
            of(&[
                (&agent, true),
                (&agent, true),
                (&None, true),
                (&agent, true),
            ]),
            None,
        ),
        (of(&[(&agent, true), (&agent, true), (&worker, true)]), None),
    ];
    for (row, (attempts, reason)) in table.into_iter().enumerate() {
        let mut early = EarlyEnd::default();
        for (trouble, is_last) in attempts {
            let wanted = match trouble.is_some() {
                true => AttemptEnd::Interrupted,
                false => AttemptEnd::NothingDone,
            };
            let attempt = EndedAttempt {
                trouble,
                is_last,
                ..ended(AttemptEnd::NothingDone)
            };
            assert_eq!(
                early.attempt_over(attempt, 0, 3, None).0,
                wanted,
                "row {row}"
            );
        }
        assert_eq!(early.into_reason(), reason, "row {row}");
    }
}

#[test]
fn work_that_cannot_be_taken_in_blocks_its_task_and_is_the_end_where_it_is_that_of_several() {
    const GONE: &str = "w2: its branch is gone";
    /// The task of an attempt, whether its work was lost, and whether that blocks it.
    type LostWork = (&'static str, bool, bool);
    let table: [(&[LostWork], bool); 5] = [
        (&[("1", true, false), ("2", true, false)], false),
        // Each of them is paid for.
        (&[("1", true, false), ("1", true, true)], false),
        (
            &[
                ("1", true, false),
                ("2", false, false),
                ("1", true, true),
                ("1", true, false),
            ],
            false,
        ),
        (
            &[("1", true, false), ("1", false, false), ("1", true, false)],
            false,
        ),
        (
            &[("1", true, false), ("1", true, true), ("2", true, false)],
            true,
        ),
    ];
    for (row, (attempts, is_end)) in table.into_iter().enumerate() {
        let mut early = EarlyEnd::default();
        for (work, is_lost, blocks) in attempts {
            let lost = || AttemptTrouble::Handover(GONE.to_owned());
            let attempt = EndedAttempt {
                work: (*work).to_owned(),
                trouble: is_lost.then(lost),
                ..ended(AttemptEnd::NothingDone)
            };
            let wanted = match (is_lost, blocks) {
                (true, true) => AttemptEnd::NotTakenIn {
                    message: GONE.to_owned(),
                },
                (true, false) => AttemptEnd::Interrupted,
                (false, _) => AttemptEnd::NothingDone,
            };
            let end = early.attempt_over(attempt, 0, 3, None).0;
            assert_eq!(end, wanted, "row {row}");
        }
        let reason = is_end.then(|| Reason::Error {
            message: GONE.to_owned(),
        });
        assert_eq!(early.into_reason(), reason, "row {row}");
    }
}

#[test]
fn what_a_workers_host_says_is_told_apart() {
    let error = || Reason::Error {
        message: "no journal".into(),
    };
    let login = || Reason::AgentFailed {
        failures: 1,
        last: "not logged in".into(),
    };
    let budget = || Reason::BudgetExhausted {
        budget: Budget::Tokens,
        limit: 1.0,
        used: 2.0,
    };
    let disk = || Some("disk full".to_owned());
    let said = |text: &str| text.to_owned();
    let table = [
        (None, None, true, (None, None)),
        (
            disk(),
            None,
            false,
            (Some(AttemptTrouble::Worker(said("disk full"))), None),
        ),
        (
            disk(),
            None,
            true,
            (Some(AttemptTrouble::Handover(said("disk full"))), None),
        ),
        (
            None,
            Some(error()),
            true,
            (Some(AttemptTrouble::Worker(said("no journal"))), None),
        ),
        (
            None,
            Some(login()),
            true,
            (Some(AttemptTrouble::Agent(said("not logged in"))), None),
        ),
        (None, Some(budget()), true, (None, Some(budget()))),
    ];
    for (row, (trouble, ends_all, had_run, wanted)) in table.into_iter().enumerate() {
        let told = AttemptTrouble::of_worker(trouble, ends_all, had_run);
        assert_eq!(told, wanted, "row {row}");
    }
}

#[test]
fn who_leaves_a_task_loop_as_it_is_and_when_the_rest_lands() {
    let cancelled = Outcome::Stopped {
        why: StopReason::Cancelled,
    };
    let none = EarlyEnd::default();
    let mut broken = EarlyEnd::default();
    let attempt = EndedAttempt {
        trouble: Some(AttemptTrouble::Host("disk full".into())),
        ..ended(AttemptEnd::Interrupted)
    };
    broken.attempt_over(attempt, 0, 3, None);
    let hung_up = Some(StopBy::HangUp);
    assert_eq!(none.leaves(hung_up, &cancelled), hung_up);
    assert_eq!(none.leaves(Some(StopBy::Cancel), &cancelled), None);
    assert_eq!(none.leaves(hung_up, &Outcome::Complete), None);
    assert_eq!(broken.leaves(hung_up, &cancelled), None);
    let landing = ready();
    assert!(none.lands_rest(None, Some(&landing)));
    assert!(!none.lands_rest(None, None));
    assert!(!none.lands_rest(hung_up, Some(&landing)));
    assert!(!broken.lands_rest(None, Some(&landing)));
}

fn ready() -> Landing {
    Landing::Ready {
        commit: "c".into(),
        branch: "descartes/auth".into(),
        why: "dirty".into(),
        by_hand: None,
        full_disk: false,
    }
}

#[test]
fn a_loop_that_was_taken_up_to_land_ends_as_it_had_and_done_is_what_landed() {
    let blocked = |tasks: &[&str], unlanded: bool| Reason::TasksBlocked {
        tasks: tasks.iter().map(|task| (*task).into()).collect(),
        unlanded: unlanded.then(|| Unlanded {
            branch: "descartes/auth".into(),
            why: "dirty".into(),
            full_disk: false,
        }),
    };
    let landed = Landing::Landed {
        commit: "c".into(),
        statuses: None,
    };
    let table = [
        (
            blocked(&[], true),
            Some(landed.clone()),
            Reason::GatesPassed,
        ),
        (blocked(&[], true), Some(ready()), blocked(&[], true)),
        (
            blocked(&["1"], true),
            Some(landed.clone()),
            blocked(&["1"], false),
        ),
        (Reason::GatesPassed, Some(ready()), blocked(&[], true)),
        (Reason::UserCancelled, Some(ready()), Reason::UserCancelled),
        (
            Reason::MaxIterationsReached,
            None,
            Reason::MaxIterationsReached,
        ),
    ];
    for (before, landing, wanted) in table {
        let reason = end_after_landing(&before, Gates::All, landing.as_ref());
        assert_eq!(reason, wanted, "{before:?} {landing:?}");
    }
    let promised = end_after_landing(&blocked(&[], true), Gates::NotAll, None);
    assert_eq!(promised, Reason::CompletionPromiseDetected);
}

fn tasks(source: TaskFile) -> TasksConfig {
    let json = serde_json::json!({ "source": source });
    serde_json::from_value(json).unwrap()
}

fn roadmap() -> TasksConfig {
    tasks(TaskFile::Roadmap {
        file: "ROADMAP.md".into(),
        defaults: RoadmapDefaults::default(),
    })
}

fn parent() -> IterativeLoopConfig {
    IterativeLoopConfig {
        verify: vec!["make".into(), "lint".into()],
        max_cost_usd: Some(2.0),
        max_tokens: Some(100),
        max_duration_secs: Some(Secs::new(60)),
        tasks: Some(Box::new(roadmap())),
        ..config()
    }
}

fn used() -> Spent {
    Spent {
        ms: 10_000,
        tokens: Some(150),
        cost_micros: Some(500_000),
        estimated: false,
    }
}

#[test]
fn an_attempt_has_the_wishes_of_its_task_and_what_is_left_of_the_whole() {
    let (parent, roadmap) = (parent(), roadmap());
    let brief = TaskBrief {
        gates: vec!["make".into(), "own".into()],
        promise: Some("OWN".into()),
        gate_timeout: Some(Duration::from_secs(7)),
        model: Some("small".into()),
        ..TaskBrief::default()
    };
    let of = AttemptOf {
        parent: &parent,
        tasks: &roadmap,
        briefs: &[brief],
        rules: Rules {
            max_attempts: Some(2),
            ..Rules::default()
        },
        attempt: 3,
        spent: &used(),
    };
    let config = attempt_config(&of, "do 1".into(), "tasks/1.json".into());
    assert_eq!(config.verify, ["make", "own", "lint"]);
    assert_eq!(config.completion_promise.as_deref(), Some("OWN"));
    assert_eq!(config.verify_timeout_secs, Secs::new(7));
    assert_eq!(config.model.as_deref(), Some("small"));
    assert_eq!(config.max_iterations, Some(3), "never less than this one");
    assert_eq!(config.max_duration_secs, Some(Secs::new(50)));
    assert_eq!(
        (config.max_cost_usd, config.max_tokens),
        (Some(1.5), Some(0))
    );
    assert_eq!(config.max_failures, u32::MAX);
    assert!(config.tasks.is_none() && config.prompt == "do 1");
    let exit = AttemptOf {
        rules: Rules {
            proof: Proof::Exit,
            ..Rules::default()
        },
        ..of.clone()
    };
    let config = attempt_config(&exit, String::new(), "x".into());
    assert_eq!(
        (config.completion_promise, config.proof),
        (None, Some(Proof::Exit))
    );
    let scud = tasks(TaskFile::Scud {
        tag: "auth".into(),
        file: "tasks.scg".into(),
    });
    let tagged = AttemptOf { tasks: &scud, ..of };
    let config = attempt_config(&tagged, String::new(), "x".into());
    assert_eq!(config.completion_promise.as_deref(), Some("COMPLETE"));
    let growth = growth_config(&parent, &used(), "more?".into(), "x".into());
    assert_eq!((growth.verify.len(), growth.max_iterations), (0, Some(1)));
    assert_eq!(growth.max_cost_usd, Some(1.5), "a question costs, too");
}

#[test]
fn the_next_attempt_gets_what_is_left_on_top_of_what_its_loop_used() {
    let sim = Sim::new(config());
    let before = IterativeLoopState {
        spent: Some(used()),
        ..sim.state.project(&Kept::default())
    };
    let left = IterativeLoopConfig {
        max_cost_usd: Some(1.5),
        max_duration_secs: Some(Secs::new(50)),
        permissions: Permissions::All,
        ..config()
    };
    let own = |cost| OwnLimits { time: None, cost };
    let change = attempt_change(&left, &own(None), Some(&before));
    assert_eq!(change.max_cost_usd, Some(2.0));
    assert_eq!(change.max_duration_secs, Some(Secs::new(60)));
    assert_eq!(change.max_tokens, None);
    let same = attempt_change(&before.config, &own(None), Some(&before));
    assert_eq!((same.permissions, same.agent), (None, None));
    let tight = attempt_change(&left, &own(Some(0.75)), Some(&before));
    assert_eq!(tight.max_cost_usd, Some(0.75));
    // A limit of the task's own blocks the task; one of the whole ends all.
    let over = |limit| Reason::BudgetExhausted {
        budget: Budget::Cost,
        limit,
        used: 3.0,
    };
    for (limit, ends) in [(0.75, false), (0.5, true)] {
        let mut sim = Sim::new(config());
        let reason = over(limit);
        sim.append(Event::LoopFinished {
            reason: reason.clone(),
        });
        let ended = ends_all_tasks(&sim.state, &own(Some(0.75)));
        assert_eq!(ended, ends.then_some(reason));
    }
}

#[test]
fn a_wait_is_shown_once() {
    let mut sim = Sim::new(parent());
    let until = "2026-03-01T15:00:00Z".parse().unwrap();
    sim.append(shown_wait(&sim.state, until).unwrap().into());
    assert_eq!(sim.state.wait().unwrap().until, until);
    assert!(shown_wait(&sim.state, until).is_none());
}

/// What tasks proved in place since the last commit: a host that takes the loop up puts it back.
#[test]
fn what_is_proven_in_place_is_known_until_it_is_committed() {
    let base = |tree: &str, last: Option<&str>| WorkBase {
        tree: Some(tree.to_owned()),
        last: last.map(|task| ProvenStep {
            task: task.to_owned(),
            tree: format!("after-{task}"),
        }),
        ..WorkBase::default()
    };
    let mut state = TasksState::default();
    for (base, known) in [
        (base("first", None), ""),
        (base("first", Some("a")), "a"),
        (base("first", Some("b")), "a b"),
        (base("second", None), ""),
        (base("second", Some("c")), "c"),
    ] {
        state.build_on(&base);
        let steps: Vec<&str> = state.steps.iter().map(|step| step.task.as_str()).collect();
        assert_eq!(steps.join(" "), known);
        assert_eq!(state.base, Some(base));
    }
}

#[test]
fn tools_denied_at_two_attempts_in_a_row_end_a_task_loop_where_nothing_is_done() {
    let failed = || AttemptEnd::Failed {
        message: "it was denied tools: Bash".into(),
    };
    let attempt = |denied| EndedAttempt {
        denied,
        ..ended(failed())
    };
    for (row, done, ends) in [
        (&[true, true][..], 0, true),
        (&[true, false, true], 0, false),
        (&[true, true], 1, false),
    ] {
        let mut early = EarlyEnd::default();
        for denied in row {
            early.attempt_over(attempt(*denied), done, 5, None);
        }
        assert_eq!(early.is_decided(), ends, "{row:?}");
    }
}
