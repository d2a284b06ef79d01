//! The scheduler of task loops, as a table: what happens, and what follows.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use descartes_kernel::graph::{OnFail, Plan, Proof, TaskGraph, TaskNode, TaskStatus};
use descartes_kernel::outcome::Budget;
use descartes_kernel::sched::{
    AttemptEnd, Barrier, BlockReason, CommitEnd, Effect, Ended, Event, EvidenceKind, Gates,
    Grouping, Input, MergeEnd, Outcome, SchedConfig, Scheduler, StopReason, TaskState, WaveState,
};
use jiff::Timestamp;

fn task(id: &str) -> TaskNode {
    TaskNode::new(id, format!("task {id}"))
}

fn plan(nodes: Vec<TaskNode>) -> Plan {
    TaskGraph::new(nodes).plan().unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

const GREEN: AttemptEnd = AttemptEnd::Green {
    changed: true,
    claimed: true,
};

/// A scheduler, what it asked for since last looked at, and its journal.
struct Desk {
    scheduler: Scheduler,
    journal: Vec<Event>,
    ended: Option<Ended>,
}

impl Desk {
    fn new(nodes: Vec<TaskNode>, config: SchedConfig) -> Self {
        Self {
            scheduler: Scheduler::new(plan(nodes), config),
            journal: Vec::new(),
            ended: None,
        }
    }

    /// Takes an input; answers with the acts in short words.
    fn put(&mut self, input: Input) -> Vec<String> {
        let effects = self.scheduler.advance(&input);
        self.write(effects)
    }

    fn write(&mut self, effects: Vec<Effect>) -> Vec<String> {
        effects
            .into_iter()
            .filter_map(|effect| self.word(effect))
            .collect()
    }

    fn word(&mut self, effect: Effect) -> Option<String> {
        Some(match effect {
            Effect::Append(event) => {
                self.journal.push(event);
                return None;
            }
            Effect::Claim { .. } => return None,
            Effect::StartAttempt { slot, tasks } => {
                let tasks: Vec<String> = tasks
                    .iter()
                    .map(|given| format!("{}#{}", given.task, given.attempt))
                    .collect();
                format!("start {}@{slot}", tasks.join("+"))
            }
            Effect::StopAttempts => "stop".to_owned(),
            Effect::Abandon { task } => format!("abandon {task}"),
            Effect::Merge { task } => format!("merge {task}"),
            Effect::MarkDone { task } => format!("done {task}"),
            Effect::MarkBlocked { task, .. } => format!("blocked {task}"),
            Effect::Release { task } => format!("release {task}"),
            Effect::CommitWave { wave, tasks } => {
                let tasks: Vec<&str> = tasks.iter().map(|task| task.as_str()).collect();
                format!("commit {wave}: {}", tasks.join(" "))
            }
            Effect::Wait { until } => format!("wait {}", until.as_second()),
            Effect::Finish(ended) => {
                self.ended = Some(*ended);
                "finish".to_owned()
            }
        })
    }

    fn begin(&mut self) -> Vec<String> {
        self.put(Input::Begin)
    }

    fn end(&mut self, task: &str, end: AttemptEnd) -> Vec<String> {
        self.put(Input::Finished {
            task: task.into(),
            end,
        })
    }

    fn red(&mut self, task: &str) -> Vec<String> {
        self.end(
            task,
            AttemptEnd::Red {
                tail: format!("{task} is red"),
            },
        )
    }

    fn merged(&mut self, task: &str) -> Vec<String> {
        self.put(Input::Merged {
            task: task.into(),
            end: MergeEnd::Merged,
        })
    }

    fn committed(&mut self, wave: u32) -> Vec<String> {
        self.put(Input::WaveCommitted {
            wave,
            end: CommitEnd::Committed { commit: None },
        })
    }

    fn seen(&mut self, task: &str, status: TaskStatus) -> Vec<String> {
        self.put(Input::StatusSeen {
            task: task.into(),
            status,
        })
    }

    /// A task that is done at once.
    fn through(&mut self, task: &str) -> Vec<String> {
        self.end(task, GREEN);
        self.merged(task)
    }

    fn outcome(&self) -> &Outcome {
        &self.ended.as_ref().unwrap().outcome
    }

    /// The host dies, and another one takes up the journal.
    fn die(&mut self, nodes: Vec<TaskNode>, config: SchedConfig) {
        self.scheduler = Scheduler::recover(plan(nodes), config, &self.journal).unwrap();
    }
}

fn two_at_a_time() -> SchedConfig {
    SchedConfig {
        slots: 2,
        ..SchedConfig::default()
    }
}

fn diamond() -> Vec<TaskNode> {
    vec![
        task("1"),
        task("2").after(["1"]),
        task("3").after(["1"]),
        task("4").after(["2", "3"]),
    ]
}

#[test]
fn waves_run_one_after_the_other_and_are_committed() {
    let mut desk = Desk::new(diamond(), two_at_a_time());
    assert_eq!(desk.begin(), ["start 1#1@0"]);
    assert_eq!(desk.end("1", GREEN), ["merge 1"]);
    assert_eq!(desk.merged("1"), ["done 1", "commit 1: 1"]);
    assert_eq!(desk.committed(1), ["start 2#1@0", "start 3#1@1"]);
    assert_eq!(desk.end("3", GREEN), ["merge 3"]);
    assert_eq!(desk.end("2", GREEN), [""; 0], "one merge at a time");
    assert_eq!(desk.merged("3"), ["done 3", "merge 2"]);
    assert_eq!(desk.merged("2"), ["done 2", "commit 2: 3 2"]);
    assert_eq!(desk.committed(2), ["start 4#1@0"]);
    assert_eq!(desk.through("4"), ["done 4", "commit 3: 4"]);
    assert_eq!(desk.committed(3), ["finish"]);
    assert_eq!(*desk.outcome(), Outcome::Complete);
    assert_eq!(desk.ended.unwrap().account.done.len(), 4);
    assert_eq!(desk.scheduler.iterations(), 4);
}

#[test]
fn the_intent_is_written_before_the_act() {
    let mut scheduler = Scheduler::new(plan(vec![task("1")]), SchedConfig::default());
    let effects = scheduler.advance(&Input::Begin);
    let kinds: Vec<&str> = effects
        .iter()
        .map(|effect| match effect {
            Effect::Append(Event::Began { .. }) => "began",
            Effect::Append(Event::AttemptStarted { .. }) => "intent",
            Effect::Claim { .. } => "claim",
            Effect::StartAttempt { .. } => "start",
            _ => "other",
        })
        .collect();
    assert_eq!(kinds, ["began", "intent", "claim", "start"]);
}

#[test]
fn without_barriers_a_task_starts_when_what_it_needs_is_merged() {
    let nodes = vec![
        task("1"),
        task("2"),
        task("3").after(["1"]),
        task("4").after(["3"]),
    ];
    let mut desk = Desk::new(
        nodes,
        SchedConfig {
            barrier: Barrier::Off,
            ..two_at_a_time()
        },
    );
    assert_eq!(desk.begin(), ["start 1#1@0", "start 2#1@1"]);
    assert_eq!(desk.end("1", GREEN), ["merge 1"]);
    assert_eq!(
        desk.merged("1"),
        ["done 1", "start 3#1@0"],
        "task 2 of wave 1 still runs"
    );
    desk.end("3", GREEN);
    assert_eq!(desk.merged("3"), ["done 3", "start 4#1@0"]);
    assert_eq!(desk.through("2"), ["done 2", "commit 1: 1 2"]);
    assert_eq!(
        desk.committed(1),
        ["commit 2: 3"],
        "waves are marked in their order"
    );
    assert_eq!(desk.through("4"), ["done 4"]);
    assert_eq!(desk.committed(2), ["commit 3: 4"]);
    assert_eq!(desk.committed(3), ["finish"]);
}

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
        matches!(&account.blocked[0].reason, BlockReason::Attempts { last } if last.text == "exit 7")
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
fn an_agent_that_did_nothing_has_failed_even_where_all_is_green() {
    let green = |changed, claimed| AttemptEnd::Green { changed, claimed };
    let mut desk = Desk::new(vec![task("1")], SchedConfig::default());
    desk.begin();
    assert_eq!(desk.end("1", green(false, false)), ["start 1#2@0"]);
    assert!(matches!(
        desk.journal.iter().rev().nth(1),
        Some(Event::AttemptEnded { next: descartes_kernel::sched::Next::Retry { evidence }, .. })
            if evidence.kind == EvidenceKind::NothingDone
    ));
    assert_eq!(
        desk.end("1", green(true, false)),
        ["merge 1"],
        "a changed tree and a green gate are enough"
    );

    let mut bare = Desk::new(
        vec![task("1")],
        SchedConfig {
            gates: Gates::None,
            ..SchedConfig::default()
        },
    );
    bare.begin();
    assert_eq!(
        bare.end("1", green(true, false)),
        ["start 1#2@0"],
        "without a gate the promise is needed"
    );
    assert_eq!(bare.end("1", green(false, true)), ["merge 1"]);
}

#[test]
fn what_proves_a_task_is_its_authors_choice() {
    let green = |changed, claimed| AttemptEnd::Green { changed, claimed };
    let mut promise = task("loops");
    promise.rules.proof = Proof::Promise;
    let mut exit = task("plain");
    exit.rules.proof = Proof::Exit;
    exit.rules.max_attempts = Some(1);
    let mut desk = Desk::new(vec![promise, exit], two_at_a_time());
    desk.begin();
    assert_eq!(desk.end("loops", green(true, false)), ["start loops#2@0"]);
    assert_eq!(desk.end("plain", green(false, false)), ["merge plain"]);
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

#[test]
fn a_providers_limit_is_no_attempt_and_stops_that_agent_alone() {
    let mut other = task("2");
    other.agent = Some("codex".to_owned());
    let mut later = task("4");
    later.agent = Some("codex".to_owned());
    let mut desk = Desk::new(vec![task("1"), other, task("3"), later], two_at_a_time());
    assert_eq!(desk.begin(), ["start 1#1@0", "start 2#1@1"]);
    for _ in 0..5 {
        let limited = AttemptEnd::Limited { until: at(100) };
        assert_eq!(
            desk.end("1", limited),
            ["wait 100", "start 4#1@0"],
            "3 waits, 4 goes on"
        );
        assert_eq!(desk.put(Input::Wake { now: at(50) }), ["wait 100"]);
        desk.end("4", AttemptEnd::Limited { until: at(200) });
        assert_eq!(
            desk.put(Input::RetryNow),
            ["start 1#1@0"],
            "still the first attempt"
        );
    }
    assert_eq!(desk.scheduler.iterations(), 2, "only what runs now counts");
    desk.end("1", AttemptEnd::Limited { until: at(300) });
    desk.end("2", AttemptEnd::Limited { until: at(400) });
    assert!(desk.ended.is_none(), "waiting is no end");
    assert_eq!(
        desk.put(Input::Wake { now: at(300) }),
        ["wait 400", "start 1#1@1"]
    );
}

#[test]
fn limits_of_attempts_end_the_loop_and_say_what_is_open() {
    let config = SchedConfig {
        max_iterations: Some(2),
        ..SchedConfig::default()
    };
    let mut desk = Desk::new(vec![task("1"), task("2"), task("3")], config);
    desk.begin();
    desk.through("1");
    assert_eq!(
        desk.red("2"),
        ["release 2", "finish"],
        "what was claimed is given back"
    );
    assert_eq!(*desk.outcome(), Outcome::MaxIterations { limit: 2 });
    assert_eq!(desk.ended.as_ref().unwrap().exit_reason().exit_code(), 2);
    assert_eq!(desk.ended.as_ref().unwrap().account.open.len(), 2);
    desk.die(
        vec![task("1"), task("2"), task("3")],
        SchedConfig {
            max_iterations: Some(3),
            ..config
        },
    );
    assert_eq!(
        desk.begin(),
        ["start 2#2@0"],
        "counters go on where they were"
    );
}

#[test]
fn the_last_allowed_attempt_may_complete_the_loop() {
    let config = SchedConfig {
        max_iterations: Some(1),
        ..SchedConfig::default()
    };
    let mut desk = Desk::new(vec![task("1")], config);
    desk.begin();
    desk.through("1");
    desk.committed(1);
    assert_eq!(*desk.outcome(), Outcome::Complete);
}

#[test]
fn a_pause_holds_before_the_next_attempt() {
    let mut desk = Desk::new(vec![task("1"), task("2")], SchedConfig::default());
    desk.begin();
    desk.put(Input::Pause);
    assert_eq!(desk.through("1"), ["done 1"]);
    assert!(desk.scheduler.is_paused());
    assert_eq!(desk.put(Input::Unpause), ["start 2#1@0"]);
}

#[test]
fn the_first_interrupt_finishes_what_runs_the_second_ends_it() {
    let mut desk = Desk::new(vec![task("1"), task("2"), task("3")], two_at_a_time());
    desk.begin();
    assert_eq!(desk.put(Input::Drain), [""; 0]);
    assert_eq!(desk.end("1", GREEN), ["merge 1"]);
    assert_eq!(desk.merged("1"), ["done 1"]);
    assert_eq!(desk.put(Input::Cancel), ["stop"]);
    assert_eq!(
        desk.end("2", AttemptEnd::Interrupted),
        ["release 2", "finish"]
    );
    assert_eq!(
        *desk.outcome(),
        Outcome::Stopped {
            why: StopReason::Cancelled
        }
    );
    let account = desk.ended.as_ref().unwrap().account.clone();
    assert_eq!((account.done.len(), account.open.len()), (1, 2));
    desk.die(vec![task("1"), task("2"), task("3")], two_at_a_time());
    assert_eq!(desk.begin(), ["start 2#2@1", "start 3#1@0"]);
    desk.through("2");
    assert_eq!(
        desk.through("3"),
        ["done 3", "commit 1: 1 2 3"],
        "the wave is whole in its commit"
    );
}

#[test]
fn a_budget_ends_what_runs_and_keeps_its_work_for_later() {
    let mut desk = Desk::new(vec![task("1"), task("2")], SchedConfig::default());
    desk.begin();
    assert_eq!(
        desk.put(Input::BudgetReached {
            budget: Budget::Cost,
            limit: 5.0,
            used: 5.2
        }),
        ["stop"]
    );
    assert_eq!(desk.end("1", GREEN), ["finish"], "nothing more is merged");
    assert!(matches!(
        desk.outcome(),
        Outcome::Stopped {
            why: StopReason::Budget { .. }
        }
    ));
    desk.die(vec![task("1"), task("2")], SchedConfig::default());
    assert_eq!(
        desk.begin(),
        ["merge 1", "start 2#1@0"],
        "the green work is merged, not done again"
    );
}

#[test]
fn statuses_in_the_file_count_at_the_begin() {
    let mut nodes = diamond();
    nodes.push(task("5"));
    nodes.push(task("6").after(["5"]));
    nodes[0].status = TaskStatus::Done;
    nodes[1].status = TaskStatus::InProgress;
    nodes[2].status = TaskStatus::Review;
    nodes[4].status = TaskStatus::Cancelled;
    let mut desk = Desk::new(nodes, two_at_a_time());
    assert_eq!(
        desk.begin(),
        ["start 2#1@0"],
        "in progress is taken up again; done, held and cancelled are not"
    );
    assert_eq!(desk.through("2"), ["done 2", "commit 2: 2"]);
    desk.committed(2);
    let account = desk.ended.unwrap().account;
    assert_eq!(account.left_out, ["5"]);
    let held: Vec<String> = account
        .held
        .iter()
        .map(|held| format!("{} {:?} {:?}", held.task, held.status, held.by))
        .collect();
    assert_eq!(
        held,
        ["3 Some(Review) []", "6 None [\"5\"]", "4 None [\"3\"]"]
    );
}

#[test]
fn cancelled_and_deferred_tasks_do_not_keep_a_loop_from_being_complete() {
    let mut nodes = vec![task("1"), task("2"), task("3")];
    nodes[1].status = TaskStatus::Cancelled;
    nodes[2].status = TaskStatus::Deferred;
    let mut desk = Desk::new(nodes, SchedConfig::default());
    desk.begin();
    desk.through("1");
    desk.committed(1);
    assert_eq!(*desk.outcome(), Outcome::Complete);
}

#[test]
fn a_loop_whose_tasks_are_all_blocked_is_not_complete() {
    // Upstream says "All tasks complete!" and exits 0.
    let mut nodes = diamond();
    nodes[0].status = TaskStatus::Failed;
    let mut desk = Desk::new(nodes, SchedConfig::default());
    assert_eq!(desk.begin(), ["finish"]);
    assert_eq!(*desk.outcome(), Outcome::TasksBlocked);
    let mut empty = Desk::new(Vec::new(), SchedConfig::default());
    empty.begin();
    assert_eq!(*empty.outcome(), Outcome::Complete);
}

#[test]
fn people_may_change_statuses_while_the_loop_runs() {
    let mut desk = Desk::new(
        diamond(),
        SchedConfig {
            max_attempts: 1,
            ..two_at_a_time()
        },
    );
    desk.begin();
    desk.red("1");
    assert!(desk.ended.is_some());
    let mut desk = Desk::new(
        vec![
            task("1"),
            task("2"),
            task("3").after(["1"]),
            task("4"),
            task("5"),
        ],
        SchedConfig {
            max_attempts: 1,
            ..two_at_a_time()
        },
    );
    desk.begin();
    assert_eq!(desk.red("1"), ["blocked 1", "start 4#1@0"]);
    assert_eq!(desk.seen("5", TaskStatus::Cancelled), [""; 0]);
    assert_eq!(
        desk.seen("1", TaskStatus::Pending),
        [""; 0],
        "opened again, it waits for a slot"
    );
    assert_eq!(
        desk.end("4", GREEN),
        ["merge 4", "start 1#2@0"],
        "and has all its attempts again"
    );
    desk.merged("4");
    desk.seen("2", TaskStatus::Cancelled);
    desk.seen("2", TaskStatus::InProgress);
    assert_eq!(desk.seen("2", TaskStatus::Deferred), [""; 0]);
    assert_eq!(
        desk.end("2", GREEN),
        [""; 0],
        "what a person took out is not merged"
    );
    assert!(matches!(
        desk.scheduler.state("2"),
        Some(TaskState::LeftOut {
            status: TaskStatus::Deferred
        })
    ));
    desk.seen("1", TaskStatus::Review);
    desk.seen("1", TaskStatus::InProgress);
    assert_eq!(
        desk.through("1"),
        ["done 1", "commit 1: 4 1"],
        "a wish may be taken back"
    );
}

#[test]
fn an_agent_cannot_make_its_own_task_done() {
    let mut desk = Desk::new(vec![task("1")], SchedConfig::default());
    desk.begin();
    let effects = desk.scheduler.advance(&Input::StatusSeen {
        task: "1".into(),
        status: TaskStatus::Done,
    });
    assert_eq!(
        effects,
        [Effect::Claim { task: "1".into() }],
        "it is put back to in progress"
    );
    assert_eq!(desk.red("1"), ["start 1#2@0"]);
}

#[test]
fn stale_writes_of_other_tools_are_set_right_and_not_believed() {
    let mut desk = Desk::new(
        vec![task("1"), task("2").after(["1"])],
        SchedConfig {
            max_attempts: 1,
            ..SchedConfig::default()
        },
    );
    desk.begin();
    desk.through("1");
    desk.committed(1);
    assert_eq!(desk.seen("1", TaskStatus::InProgress), ["done 1"]);
    assert_eq!(desk.seen("1", TaskStatus::Pending), ["done 1"]);
    assert_eq!(desk.seen("1", TaskStatus::Done), [""; 0]);
    desk.put(Input::Pause);
    desk.red("2");
    assert!(desk.ended.is_some());
}

#[test]
fn a_task_that_somebody_else_took_is_left_to_them() {
    let mut desk = Desk::new(
        vec![task("1"), task("2"), task("3").after(["2"])],
        SchedConfig::default(),
    );
    desk.begin();
    desk.seen("2", TaskStatus::InProgress);
    assert_eq!(desk.through("1"), ["done 1", "commit 1: 1"]);
    assert_eq!(desk.committed(1), ["finish"]);
    assert_eq!(
        desk.ended.as_ref().unwrap().account.held[0].status,
        Some(TaskStatus::InProgress)
    );

    let mut desk = Desk::new(
        vec![task("1"), task("2"), task("3").after(["2"])],
        SchedConfig::default(),
    );
    desk.begin();
    desk.seen("2", TaskStatus::InProgress);
    desk.seen("2", TaskStatus::Done);
    desk.through("1");
    assert_eq!(desk.committed(1), ["start 3#1@0"], "what they did counts");
}

#[test]
fn a_claim_that_met_another_status_costs_nothing() {
    let mut desk = Desk::new(vec![task("1"), task("2")], SchedConfig::default());
    desk.begin();
    let refused = Input::ClaimRefused {
        task: "1".into(),
        found: TaskStatus::Cancelled,
    };
    assert_eq!(desk.put(refused), ["start 2#1@0"]);
    assert_eq!(desk.scheduler.iterations(), 1);
    desk.through("2");
    desk.committed(1);
    assert_eq!(*desk.outcome(), Outcome::Complete);
}

#[test]
fn what_follows_a_failure_is_its_authors_choice() {
    let nodes = |on_fail| {
        let mut first = task("1");
        first.rules.on_fail = on_fail;
        first.rules.max_attempts = Some(1);
        vec![first, task("2").after(["1"]), task("3")]
    };
    let mut skip = Desk::new(nodes(OnFail::Skip), SchedConfig::default());
    skip.begin();
    assert_eq!(skip.red("1"), ["release 1", "start 3#1@0"]);
    skip.through("3");
    assert_eq!(
        skip.committed(1),
        ["start 2#1@0"],
        "what depends on a task that is passed over goes on"
    );
    skip.through("2");
    skip.committed(2);
    assert_eq!(*skip.outcome(), Outcome::Complete);
    assert_eq!(
        skip.ended.unwrap().account.passed.len(),
        1,
        "and the failure is told"
    );

    let mut stop = Desk::new(nodes(OnFail::Stop), two_at_a_time());
    stop.begin();
    assert_eq!(stop.red("1"), ["blocked 1"]);
    stop.end("3", GREEN);
    stop.merged("3");
    assert_eq!(
        stop.committed(1),
        ["finish"],
        "what ran is finished, nothing new starts"
    );
    assert!(matches!(
        stop.outcome(),
        Outcome::Stopped {
            why: StopReason::TaskFailed { .. }
        }
    ));
}

#[test]
fn the_parts_of_a_task_run_before_what_waits_for_the_whole() {
    let mut whole = task("2").after(["1"]);
    whole.status = TaskStatus::Expanded;
    let nodes = vec![
        task("1"),
        whole,
        task("2.1").part_of("2"),
        task("2.2").part_of("2"),
        task("3").after(["2"]),
    ];
    let mut desk = Desk::new(nodes, two_at_a_time());
    assert_eq!(desk.begin(), ["start 1#1@0"]);
    desk.through("1");
    assert_eq!(desk.committed(1), ["start 2.1#1@0", "start 2.2#1@1"]);
    desk.through("2.1");
    desk.through("2.2");
    assert_eq!(desk.committed(2), ["start 3#1@0"]);
    assert_eq!(
        desk.scheduler.account().total(),
        4,
        "the whole is no work of its own"
    );
}

#[test]
fn tasks_of_another_tag_are_waited_for() {
    let mut foreign = task("other:1");
    foreign.origin = descartes_kernel::graph::Origin::Foreign;
    let nodes = vec![task("1"), task("2").after(["other:1"]), foreign];
    let mut desk = Desk::new(nodes.clone(), SchedConfig::default());
    assert_eq!(desk.begin(), ["start 1#1@0"]);
    assert_eq!(desk.seen("other:1", TaskStatus::Done), [""; 0]);
    assert_eq!(desk.end("1", GREEN), ["merge 1", "start 2#1@0"]);
    let mut desk = Desk::new(nodes, SchedConfig::default());
    desk.begin();
    desk.through("1");
    desk.committed(1);
    assert_eq!(desk.ended.unwrap().account.held[0].by, ["other:1"]);
}

#[test]
fn one_agent_may_be_given_a_whole_wave() {
    let config = SchedConfig {
        grouping: Grouping::Wave,
        slots: 3,
        ..SchedConfig::default()
    };
    let mut desk = Desk::new(vec![task("1"), task("2"), task("3").after(["1"])], config);
    assert_eq!(desk.begin(), ["start 1#1+2#1@0"]);
    desk.end("1", GREEN);
    assert_eq!(
        desk.red("2"),
        ["start 2#2@0"],
        "what was not green is given again"
    );
    desk.merged("1");
    desk.end("2", GREEN);
    assert_eq!(desk.merged("2"), ["done 2", "commit 1: 1 2"]);
    assert_eq!(desk.committed(1), ["start 3#1@0"]);
    assert_eq!(
        desk.scheduler.iterations(),
        3,
        "an agent with a wave makes one attempt"
    );
}

#[test]
fn a_wave_that_cannot_be_committed_stops_the_loop_and_is_committed_on_resume() {
    let nodes = || vec![task("1"), task("2").after(["1"])];
    let mut desk = Desk::new(nodes(), SchedConfig::default());
    desk.begin();
    desk.through("1");
    let failed = CommitEnd::Failed {
        message: "no identity".to_owned(),
    };
    assert_eq!(
        desk.put(Input::WaveCommitted {
            wave: 1,
            end: failed
        }),
        ["finish"]
    );
    assert!(matches!(
        desk.outcome(),
        Outcome::Stopped {
            why: StopReason::CommitFailed { wave: 1, .. }
        }
    ));
    desk.die(nodes(), SchedConfig::default());
    assert_eq!(desk.begin(), ["commit 1: 1"]);
    assert_eq!(desk.committed(1), ["start 2#1@0"]);
}

#[test]
fn what_a_dead_host_left_is_taken_up_again() {
    let mut desk = Desk::new(diamond(), two_at_a_time());
    desk.begin();
    desk.die(diamond(), two_at_a_time());
    assert_eq!(
        desk.begin(),
        ["start 1#2@0"],
        "its number is used up, its attempts are not"
    );
    desk.end("1", GREEN);
    desk.die(diamond(), two_at_a_time());
    assert_eq!(desk.begin(), ["merge 1"]);
    desk.merged("1");
    desk.die(diamond(), two_at_a_time());
    assert_eq!(desk.begin(), ["commit 1: 1"]);
    desk.committed(1);
    desk.end("2", AttemptEnd::Limited { until: at(77) });
    desk.end("3", AttemptEnd::Limited { until: at(77) });
    desk.die(diamond(), two_at_a_time());
    assert_eq!(desk.begin(), ["wait 77"], "a wait survives");
    assert_eq!(
        desk.put(Input::Wake { now: at(78) }),
        ["start 2#1@0", "start 3#1@1"]
    );
    desk.die(diamond(), two_at_a_time());
    desk.seen("2", TaskStatus::Cancelled);
    assert_eq!(
        desk.begin(),
        ["start 3#2@1"],
        "what a person changed meanwhile counts"
    );
}

#[test]
fn a_done_task_whose_mark_was_lost_with_the_host_stays_done() {
    let nodes = || vec![task("1"), task("2").after(["1"])];
    let mut desk = Desk::new(nodes(), SchedConfig::default());
    desk.begin();
    desk.through("1");
    desk.die(nodes(), SchedConfig::default());
    assert_eq!(desk.seen("1", TaskStatus::InProgress), [""; 0]);
    assert_eq!(desk.begin(), ["commit 1: 1"]);
    let file = [TaskStatus::InProgress, TaskStatus::Pending];
    let differences = desk.scheduler.differences(&file);
    assert_eq!(differences.len(), 1);
    assert_eq!(
        desk.put(differences[0].clone()),
        ["done 1"],
        "and its mark is set again"
    );
    desk.die(nodes(), SchedConfig::default());
    desk.seen("1", TaskStatus::Pending);
    desk.begin();
    assert_eq!(
        desk.committed(1),
        ["start 1#1@0"],
        "a person may reset it between two starts"
    );
}

#[test]
fn a_journal_of_another_file_is_refused() {
    let events = [Event::MergeStarted { task: "1".into() }];
    let error =
        Scheduler::recover(plan(vec![task("1")]), SchedConfig::default(), &events).unwrap_err();
    assert!(error.to_string().contains("merge_started"), "{error}");
    let gone = [Event::AttemptStarted {
        task: "9".into(),
        slot: 0,
        attempt: 1,
    }];
    let scheduler =
        Scheduler::recover(plan(vec![task("1")]), SchedConfig::default(), &gone).unwrap();
    assert_eq!(
        scheduler.iterations(),
        1,
        "what a task cost that is gone was spent"
    );
}

#[test]
fn tasks_may_be_added_and_taken_out_while_the_loop_runs() {
    let mut desk = Desk::new(vec![task("1"), task("2"), task("3")], two_at_a_time());
    desk.begin();
    desk.through("1");
    let mut old = task("5");
    old.status = TaskStatus::Done;
    let wider = || {
        vec![
            task("1"),
            task("3"),
            task("4").after(["3", "5"]),
            old.clone(),
        ]
    };
    let effects = desk.scheduler.replan(plan(wider()));
    assert_eq!(desk.write(effects), ["abandon 2"]);
    assert_eq!(
        desk.end("2", GREEN),
        [""; 0],
        "a task that is gone ends unheard"
    );
    assert_eq!(desk.through("3"), ["done 3", "commit 1: 1 3"]);
    assert_eq!(desk.committed(1), ["start 4#1@0"]);
    desk.die(wider(), two_at_a_time());
    assert_eq!(
        desk.begin(),
        ["start 4#2@0"],
        "the journal holds for the new plan"
    );
    desk.through("4");
    desk.committed(2);
    assert_eq!(*desk.outcome(), Outcome::Complete);
}

#[test]
fn events_read_back_from_the_journal() {
    let mut desk = Desk::new(diamond(), two_at_a_time());
    desk.begin();
    desk.red("1");
    desk.end("1", AttemptEnd::Limited { until: at(5) });
    desk.put(Input::RetryNow);
    desk.seen("1", TaskStatus::Review);
    desk.seen("4", TaskStatus::Cancelled);
    desk.put(Input::Pause);
    desk.put(Input::Cancel);
    desk.end("1", GREEN);
    assert!(desk.journal.len() > 9);
    for event in &desk.journal {
        let line = serde_json::to_string(event).unwrap();
        assert_eq!(
            &serde_json::from_str::<Event>(&line).unwrap(),
            event,
            "{line}"
        );
    }
}
