//! What makes a task done, red or blocked.

use descartes_kernel::sched::{
    AttemptEnd, BlockReason, Effect, Event, EvidenceKind, Input, MergeEnd, Outcome, SchedConfig,
    TaskState, WaveState,
};
use descartes_plans::graph::Proof;

use crate::desk::{Desk, GREEN, diamond, task, two_at_a_time};

#[test]
fn agents_that_fail_block_their_task_and_never_finish_it() {
    // Upstream: every agent exits 7, and all five tasks are "done".
    let mut desk = Desk::new(diamond(), two_at_a_time());
    desk.begin();
    let fail = || AttemptEnd::Failed {
        message: "exit 7".to_owned(),
    };
    assert_eq!(desk.end("1", fail()), ["start 1#2@0"]);
    assert_eq!(desk.end("1", fail()), ["start 1#3@0"]);
    assert_eq!(desk.end("1", fail()), ["blocked 1", "finish"]);
    assert_eq!(*desk.outcome(), Outcome::TasksBlocked);
    let ended = desk.ended.unwrap();
    assert_eq!(ended.exit_reason().exit_code(), 6);
    assert_eq!(ended.account.not_done(), ["1", "2", "3", "4"]);
    let account = ended.account;
    assert_eq!(account.blocked[0].attempts, 3);
    assert!(
        matches!(&account.blocked[0].reason, BlockReason::Attempts { last, .. } if last.text == "exit 7")
    );
    let held: Vec<(&str, Vec<&str>)> = account
        .held
        .iter()
        .map(|held| {
            (
                held.task.as_str(),
                held.by.iter().map(|id| id.as_str()).collect(),
            )
        })
        .collect();
    assert_eq!(
        held,
        [("2", vec!["1"]), ("3", vec!["1"]), ("4", vec!["2", "3"])]
    );
}

#[test]
fn a_blocked_task_holds_what_depends_on_it_and_nothing_else() {
    let mut desk = Desk::new(diamond(), two_at_a_time());
    desk.begin();
    desk.through("1");
    desk.committed(1);
    for _ in 0..2 {
        desk.red("2");
    }
    assert_eq!(desk.red("2"), ["blocked 2"]);
    assert_eq!(
        desk.through("3"),
        ["done 3", "commit 2: 3"],
        "a wave with a blocked task is committed"
    );
    assert_eq!(desk.committed(2), ["finish"]);
    assert_eq!(*desk.outcome(), Outcome::TasksBlocked);
    let waves: Vec<WaveState> = desk
        .scheduler
        .wave_progress()
        .iter()
        .map(|wave| wave.state)
        .collect();
    assert_eq!(waves, [WaveState::Over; 3]);
    assert_eq!(desk.scheduler.wave_progress()[1].stuck, 1);
}

#[test]
fn what_an_attempt_lacks_is_judged_where_its_gates_are_known() {
    let mut desk = Desk::new(vec![task("1")], SchedConfig::default());
    desk.begin();
    assert_eq!(
        desk.end("1", AttemptEnd::NothingDone),
        ["start 1#2@0"],
        "an agent that did nothing has failed"
    );
    assert!(matches!(
        desk.journal.iter().rev().nth(1),
        Some(Event::AttemptEnded { next: descartes_kernel::sched::Next::Retry { evidence }, .. })
            if evidence.kind == EvidenceKind::NothingDone
    ));
    let by_gates = AttemptEnd::Green {
        changed: true,
        claimed: false,
        unproven: false,
    };
    assert_eq!(
        desk.end("1", by_gates),
        ["merge 1"],
        "a changed tree and a green gate are enough"
    );
}

#[test]
fn what_proves_a_task_is_its_authors_choice() {
    let by_exit = AttemptEnd::Green {
        changed: true,
        claimed: false,
        unproven: true,
    };
    let mut promise = task("loops");
    promise.rules.proof = Proof::Promise;
    let mut exit = task("plain");
    exit.rules.proof = Proof::Exit;
    exit.rules.max_attempts = Some(1);
    let mut desk = Desk::new(vec![promise, exit], two_at_a_time());
    desk.begin();
    assert_eq!(
        desk.end("loops", AttemptEnd::NoPromise),
        ["start loops#2@0"]
    );
    assert_eq!(desk.end("plain", by_exit), ["merge plain"]);
    desk.put(Input::Merged {
        task: "plain".into(),
        end: MergeEnd::Red {
            tail: String::new(),
        },
    });
    assert!(
        matches!(
            desk.scheduler.state("plain"),
            Some(TaskState::Blocked { .. })
        ),
        "its one attempt is used up"
    );
}

#[test]
fn an_agent_that_says_it_cannot_be_done_is_believed_at_once() {
    let mut desk = Desk::new(vec![task("1")], SchedConfig::default());
    desk.begin();
    let words = AttemptEnd::BlockedByAgent {
        message: "no key".to_owned(),
    };
    assert_eq!(desk.end("1", words), ["blocked 1", "finish"]);
    assert!(matches!(
        desk.scheduler.state("1"),
        Some(TaskState::Blocked { reason: BlockReason::Agent { message } }) if message == "no key"
    ));
}

#[test]
fn a_conflict_or_red_merge_goes_back_to_the_agent_with_the_evidence() {
    let mut desk = Desk::new(vec![task("1"), task("2")], two_at_a_time());
    desk.begin();
    desk.end("1", GREEN);
    let conflict = MergeEnd::Conflict {
        tail: "src/lib.rs".to_owned(),
    };
    let effects = desk.scheduler.advance(&Input::Merged {
        task: "1".into(),
        end: conflict,
    });
    let evidence = effects.iter().find_map(|effect| match effect {
        Effect::StartAttempt { tasks, .. } => tasks[0].evidence.clone(),
        _ => None,
    });
    assert_eq!(evidence.unwrap().text, "src/lib.rs");
    assert_eq!(desk.scheduler.running().len(), 2);
    desk.end("1", GREEN);
    assert_eq!(
        desk.put(Input::Merged {
            task: "1".into(),
            end: MergeEnd::Failed {
                message: "hook refused".to_owned()
            }
        }),
        ["blocked 1"],
        "a failed commit blocks its task"
    );
}
