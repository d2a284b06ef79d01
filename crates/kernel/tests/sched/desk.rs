//! A scheduler whose acts are told in short words.

use descartes_kernel::sched::{
    AttemptEnd, CommitEnd, Effect, Ended, Event, Input, MarkEnd, MergeEnd, Outcome, SchedConfig,
    Scheduler,
};
use descartes_plans::graph::{Plan, TaskGraph, TaskNode, TaskStatus};
use jiff::Timestamp;

pub fn task(id: &str) -> TaskNode {
    TaskNode::new(id, format!("task {id}"))
}

pub fn plan(nodes: Vec<TaskNode>) -> Plan {
    TaskGraph::new(nodes).plan().unwrap()
}

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A provider's limit that holds for everybody.
pub fn limited(until: Timestamp) -> AttemptEnd {
    AttemptEnd::Limited { until, login: None }
}

pub const GREEN: AttemptEnd = AttemptEnd::Green {
    changed: true,
    claimed: true,
    unproven: false,
};

/// A scheduler, what it asked for since last looked at, and its journal.
pub struct Desk {
    pub scheduler: Scheduler,
    pub journal: Vec<Event>,
    pub ended: Option<Ended>,
}

impl Desk {
    pub fn new(nodes: Vec<TaskNode>, config: SchedConfig) -> Self {
        Self {
            scheduler: Scheduler::new(plan(nodes), config),
            journal: Vec::new(),
            ended: None,
        }
    }

    /// Takes an input; answers with the acts in short words.
    pub fn put(&mut self, input: Input) -> Vec<String> {
        let effects = self.scheduler.advance(&input);
        self.write(effects)
    }

    pub fn write(&mut self, effects: Vec<Effect>) -> Vec<String> {
        effects
            .into_iter()
            .filter_map(|effect| self.word(effect))
            .collect()
    }

    fn word(&mut self, effect: Effect) -> Option<String> {
        Some(match effect {
            Effect::Append(event) => {
                self.journal.push(event.of_tasks().unwrap().clone());
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
            Effect::EndRuns { .. } => "end runs".to_owned(),
            Effect::Abandon { task } => format!("abandon {task}"),
            Effect::Merge { task } => format!("merge {task}"),
            Effect::StackTrain { tasks, .. } => format!("stack {}", tasks.join("+")),
            Effect::GateTrain { tasks, members, .. } => {
                format!("gate {}", tasks[..members as usize].join("+"))
            }
            Effect::MarkDone { task } => format!("done {task}"),
            Effect::MarkBlocked { task, .. } => format!("blocked {task}"),
            Effect::Release { task } => format!("release {task}"),
            Effect::CheckMark { task } => format!("check {task}"),
            Effect::SetBack { task, .. } => format!("set back {task}"),
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

    pub fn begin(&mut self) -> Vec<String> {
        self.put(Input::Begin)
    }

    pub fn end(&mut self, task: &str, end: AttemptEnd) -> Vec<String> {
        self.put(Input::Finished {
            task: task.into(),
            end,
        })
    }

    pub fn red(&mut self, task: &str) -> Vec<String> {
        self.end(
            task,
            AttemptEnd::Red {
                tail: format!("{task} is red"),
            },
        )
    }

    pub fn merged(&mut self, task: &str) -> Vec<String> {
        self.put(Input::Merged {
            task: task.into(),
            end: MergeEnd::Merged,
        })
    }

    pub fn committed(&mut self, wave: u32) -> Vec<String> {
        self.put(Input::WaveCommitted {
            wave,
            end: CommitEnd::Committed { commit: None },
        })
    }

    pub fn seen(&mut self, task: &str, status: TaskStatus) -> Vec<String> {
        self.put(Input::StatusSeen {
            task: task.into(),
            status,
        })
    }

    /// The gates answer for a task that somebody else marked done.
    pub fn checked(&mut self, task: &str, end: MarkEnd) -> Vec<String> {
        let task = task.into();
        self.put(Input::MarkChecked { task, end })
    }

    /// A task that is done at once.
    pub fn through(&mut self, task: &str) -> Vec<String> {
        self.end(task, GREEN);
        self.merged(task)
    }

    pub fn outcome(&self) -> &Outcome {
        &self.ended.as_ref().unwrap().outcome
    }

    /// The host dies, and another one takes up the journal.
    pub fn die(&mut self, nodes: Vec<TaskNode>, config: SchedConfig) {
        self.scheduler = Scheduler::recover(plan(nodes), config, &self.journal).unwrap();
    }
}

pub fn two_at_a_time() -> SchedConfig {
    SchedConfig {
        slots: 2,
        ..SchedConfig::default()
    }
}

pub fn diamond() -> Vec<TaskNode> {
    vec![
        task("1"),
        task("2").after(["1"]),
        task("3").after(["1"]),
        task("4").after(["2", "3"]),
    ]
}
