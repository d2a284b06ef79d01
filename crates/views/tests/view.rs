//! What a person sees of a loop, folded from records.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::control::Command;
use descartes_kernel::event::{
    Event, FORMAT, LimitKind, Record, ReportedLimit, TreeFacts, Verdict, WaitEnd, WaitReason,
};
use descartes_kernel::sched::{self, AttemptEnd, BlockReason, Next};
use descartes_kernel::state::{GateSummary, IterationSummary, LoopState, Spent};
use descartes_kernel::tasks::{PlannedTask, TasksState};
use descartes_kernel::transition::fold;
use descartes_views::tone::Tone;
use descartes_views::view::{Head, Life, Status, Story, active_tasks, status_block, waves};
use jiff::Timestamp;
use serde_json::json;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_750_000_000 + second).unwrap()
}

/// Records one second apart, after the loop was created.
fn records(limit: Option<u32>, events: Vec<Event>) -> Vec<Record> {
    let created = Event::LoopCreated {
        loop_id: "01".into(),
        name: "auth".into(),
        config: Box::new(IterativeLoopConfig {
            command: "agent".into(),
            max_iterations: limit,
            ..Default::default()
        }),
        started_at: at(0),
        iterations: 0,
        summaries: Vec::new(),
        spent: None,
        ended: None,
    };
    let numbered = std::iter::once(created).chain(events).enumerate();
    numbered
        .map(|(seq, event)| Record {
            v: FORMAT,
            seq: seq as u64,
            at: at(seq as i64),
            event,
        })
        .collect()
}

fn started(iteration: u32, notes: Vec<u64>) -> Event {
    Event::RunStarted {
        run: u64::from(iteration),
        iteration,
        agent: 0,
        guard_pid: None,
        prompt: String::new(),
        prompt_bytes: 0,
        before: TreeFacts::default(),
        notes,
    }
}

fn state(records: &[Record]) -> LoopState {
    fold(records).unwrap().unwrap()
}

#[test]
fn a_limit_is_no_goal_and_none_has_no_bar() {
    let running = records(Some(20), vec![started(1, Vec::new())]);
    let head = Head::of(&state(&running), Life::Alive);
    assert_eq!(head.progress(), "iteration 1 of at most 20");
    assert_eq!(head.fraction(), Some(0.05));
    assert_eq!(head.elapsed(at(61)), Duration::from_secs(61));
    let unlimited = records(None, vec![started(1, Vec::new())]);
    let head = Head::of(&state(&unlimited), Life::Gone);
    assert_eq!(
        (head.progress().as_str(), head.fraction()),
        ("iteration 1, no limit", None)
    );
    assert_eq!(head.status, Status::Interrupted);
}

#[test]
fn every_state_has_its_word_for_people_and_is_told_once() {
    use descartes_kernel::outcome::{Budget, IterativeExitReason as Reason, Unlanded};
    let text = || "x".to_owned();
    let blocked = |tasks: &[&str], unlanded| Reason::TasksBlocked {
        tasks: tasks.iter().map(|task| (*task).to_owned()).collect(),
        unlanded,
    };
    let unlanded = Unlanded {
        branch: text(),
        why: text(),
        full_disk: false,
    };
    let table = [
        (
            Reason::CompletionPromiseDetected,
            "Done, unproven",
            "Completed (promise)",
        ),
        (
            Reason::ProcessSuccess,
            "Done, unproven",
            "Completed (exit 0)",
        ),
        (Reason::GatesPassed, "Done", "Completed (gates green)"),
        (
            Reason::MaxIterationsReached,
            "Stopped (iteration limit)",
            "Iteration limit reached",
        ),
        (
            Reason::BudgetExhausted {
                budget: Budget::Cost,
                limit: 0.002,
                used: 0.009,
            },
            "Stopped (budget)",
            "Budget used up (cost budget used up ($0.0090 of $0.0020))",
        ),
        (
            Reason::Stalled {
                iterations: 2,
                evidence: text(),
            },
            "Stopped (no progress)",
            "Stalled (2 iterations without progress (x))",
        ),
        (
            Reason::AgentBlocked { message: text() },
            "Stopped (blocked by the agent)",
            "Blocked by the agent (x)",
        ),
        (
            Reason::AgentFailed {
                failures: 5,
                last: text(),
            },
            "Stopped (agent failed)",
            "Agent failed (the agent failed 5 times in a row: x)",
        ),
        (
            blocked(&["1", "2"], None),
            "Stopped (tasks blocked)",
            "Tasks blocked (1, 2)",
        ),
        (
            blocked(&[], Some(unlanded)),
            "Stopped (work not landed)",
            "Work not landed (finished work has not landed: x)",
        ),
        (Reason::Error { message: text() }, "Failed", "Error (x)"),
        (Reason::UserCancelled, "Cancelled", "Cancelled"),
    ];
    for (reason, people, exit) in table {
        let ended = state(&records(Some(2), vec![Event::LoopFinished { reason }]));
        let block = status_block(&ended, Life::Gone, at(9));
        let lines = format!("  State: {people}\n  Completed: Yes\n  Exit reason: {exit}\n");
        assert!(block.contains(&lines), "{lines}{block}");
    }
    let reason = blocked(&["1", "2"], None);
    let sentence = Status::Ended { reason }.end_sentence();
    assert_eq!(
        sentence.as_deref(),
        Some("tasks blocked: 1, 2"),
        "where no bracket holds it"
    );
    let running = state(&records(None, vec![started(1, Vec::new())]));
    let block = |life| status_block(&running, life, at(9));
    assert!(block(Life::Alive).contains("  State: Running\n  Completed: No\n"));
    assert!(block(Life::Gone).contains("  State: Interrupted\n  Completed: No\n"));
    assert!(block(Life::Gone).contains("  Iterations: 0 done, 1 lost\n"));
}

#[test]
fn waits_count_down_and_are_remembered_with_their_end() {
    let limit = ReportedLimit {
        kind: LimitKind::Usage,
        words: "usage limit".into(),
        until: None,
    };
    let mut events = vec![Event::WaitStarted {
        until: at(100),
        reason: WaitReason::Limit(limit),
    }];
    let waiting = records(Some(20), events.clone());
    let head = Head::of(&state(&waiting), Life::Alive);
    assert!(head.waits(at(40)).unwrap().starts_with("waiting 1m"));
    assert!(head.waits(at(400)).unwrap().starts_with("waiting 0s"));
    events.push(Event::WaitEnded { by: WaitEnd::Retry });
    let mut story = Story::new(10);
    records(Some(20), events).iter().for_each(|r| story.push(r));
    let wait = &story.waits()[0];
    assert_eq!((wait.why.as_str(), wait.since), ("usage limit", at(1)));
    assert_eq!(wait.ended, Some((at(2), WaitEnd::Retry)));
}

#[test]
fn a_note_is_told_with_the_iteration_that_got_it_and_old_ones_are_forgotten() {
    let say = |id: u64| Event::CommandAccepted {
        id,
        command: Command::Say {
            text: format!("note {id}"),
        },
        from: None,
    };
    let all = records(Some(20), vec![say(0), started(1, vec![0]), say(1), say(2)]);
    let mut story = Story::new(2);
    all[..4].iter().for_each(|r| story.push(r));
    let given: Vec<_> = story.notes().iter().map(|note| note.given_to).collect();
    assert_eq!(given, [Some(1), None]);
    story.push(&all[4]);
    let texts: Vec<_> = story.notes().iter().map(|n| n.text.as_str()).collect();
    assert_eq!(texts, ["note 1", "note 2"]);
    let mut late = Story::new(2);
    late.take_state(&state(&all));
    let given: Vec<_> = late.notes().iter().map(|note| note.given_to).collect();
    assert_eq!(
        given,
        [Some(1), None, None],
        "what still waits is known of old"
    );
}

#[test]
fn waves_tell_label_and_bar_from_the_same_numbers() {
    let task = |id: &str, wave| -> PlannedTask {
        serde_json::from_value(json!({"id": id, "title": "t", "wave": wave})).unwrap()
    };
    let begin = |id: &str, slot| sched::Event::AttemptStarted {
        task: id.into(),
        slot,
        attempt: 1,
    };
    let end = |id: &str, next| sched::Event::AttemptEnded {
        task: id.into(),
        end: AttemptEnd::Interrupted,
        next,
    };
    let reason = BlockReason::Agent {
        message: "no key".into(),
    };
    let steps = [
        begin("1", 0),
        end("1", Next::Done),
        begin("2", 0),
        end("2", Next::Done),
        begin("3", 0),
        end("3", Next::Block { reason }),
        begin("4", 0),
    ];
    let mut events = vec![Event::TasksPlanned {
        held: Vec::new(),
        tag: "auth".into(),
        tasks: vec![
            task("1", 1),
            task("2", 1),
            task("3", 2),
            task("4", 3),
            task("5", 3),
            task("6", 4),
        ],
        blocks: Vec::new(),
    }];
    events.extend(steps.map(|event| Event::Tasks {
        event: Box::new(event),
    }));
    let state = state(&records(Some(100), events));
    let rows = waves(state.tasks.as_deref().unwrap());
    let labels: Vec<String> = rows.iter().map(|row| row.label().text).collect();
    assert_eq!(
        labels,
        [
            "Complete (2 tasks)",
            "Blocked (0/1 task)",
            "In Progress (0/2 tasks)",
            "Pending (1 task)"
        ]
    );
    assert_eq!(rows[0].fraction(), 1.0);
    assert_eq!(rows[2].label().tone, Tone::Strong);
    let head = Head::of(&state, Life::Alive);
    assert_eq!(head.progress(), "2 of 6 tasks done");
}

#[test]
fn runs_of_tasks_are_rows_of_the_history() {
    let summary = IterationSummary {
        iteration: 1,
        exit_code: Some(0),
        verdict: Some(Verdict::Refused),
        gates: vec![GateSummary {
            command: "make".into(),
            exit_code: Some(2),
            duration_ms: 7,
            cancelled: false,
        }],
        ..Default::default()
    };
    let run = Event::TaskRun {
        task: "3".into(),
        loop_id: "02".into(),
        iterations: 2,
        summary: Box::new(summary),
        spent: Spent {
            ms: 1500,
            tokens: Some(10),
            ..Default::default()
        },
        wall_ms: None,
    };
    let mut story = Story::new(10);
    records(Some(20), vec![run])
        .iter()
        .for_each(|r| story.push(r));
    let row = &story.rows()[0];
    let Some((task, loop_id)) = &row.task else {
        panic!("{row:?}")
    };
    assert_eq!((&**task, loop_id.as_str()), ("3", "02"));
    assert_eq!((row.iteration, row.duration_ms), (2, 1500));
    assert!(row.claimed && !row.gates[0].passed());
}

#[test]
fn every_task_of_a_train_is_shown_as_being_merged() {
    let planned = |id: &str| PlannedTask {
        id: id.into(),
        title: format!("title of {id}"),
        wave: 1,
        complexity: 0,
        after: Vec::new(),
        commands: None,
        under: None,
        after_blocks: Vec::new(),
    };
    let mut tasks = TasksState::default();
    tasks.plan("auth", &["1", "2", "3"].map(planned), &[]);
    let train = sched::Event::TrainStarted {
        train: 1,
        tasks: ["1", "2", "3"].map(Into::into).to_vec(),
    };
    tasks.apply(&train, at(1));
    let rows = |tasks: &TasksState| -> Vec<String> {
        let rows = active_tasks(tasks, at(2)).into_iter();
        rows.map(|row| format!("{} {}", row.id, row.note)).collect()
    };
    let note = "being merged together with 2 others";
    assert_eq!(
        rows(&tasks),
        ["1", "2", "3"].map(|id| format!("{id} {note}"))
    );
    let ended = sched::Event::TrainEnded {
        train: 1,
        back: Vec::new(),
    };
    tasks.apply(&ended, at(3));
    let alone = sched::Event::MergeStarted { task: "2".into() };
    tasks.apply(&alone, at(4));
    assert_eq!(rows(&tasks), ["2 being merged"]);
}
