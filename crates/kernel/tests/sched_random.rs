//! The scheduler under any order of inputs, with crashes, and its schedules on random graphs.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use descartes_kernel::outcome::Budget;
use descartes_kernel::sched::{
    AttemptEnd, Barrier, CommitEnd, Effect, Ended, Event, Grouping, Input, MarkEnd, MergeEnd,
    Outcome, SchedConfig, Scheduler, TaskState, TrainEnd,
};
use descartes_kernel::tasks::{PlannedTask, TasksState};
use descartes_plans::graph::{
    OnFail, Plan, Priority, Proof, TaskGraph, TaskId, TaskIx, TaskNode, TaskStatus,
};
use jiff::Timestamp;
use proptest::prelude::*;

/// Everything outside the scheduler, and the laws that it must keep.
struct World {
    nodes: Vec<TaskNode>,
    config: SchedConfig,
    scheduler: Scheduler,
    journal: Vec<Event>,
    /// What views fold: plans and events in their order.
    told: Vec<Told>,
    /// Tasks that somebody took out of the file; they may come back.
    gone: Vec<TaskNode>,
    /// Tasks that were added so far, each with a name of its own.
    added: usize,
    /// Tasks that an agent was ever given.
    attempted: BTreeSet<TaskId>,
    /// Merged, and in no commit of a wave yet.
    unlanded: BTreeSet<TaskId>,
    /// Attempts and merges that are to be ended since their task is gone.
    abandoned: BTreeSet<TaskId>,
    running: BTreeMap<TaskId, u32>,
    merging: Option<TaskId>,
    /// The train, its members, and how many of them are being gated.
    train: Option<(u32, Vec<TaskId>, Option<u32>)>,
    /// How many members of the train are merged.
    train_merged: usize,
    committing: Option<u32>,
    merged: BTreeSet<String>,
    /// The same, with those that a person opened again.
    ever_merged: BTreeSet<String>,
    /// Tasks that counted as done without a merge: by the file, a person, or passed over.
    excused: BTreeSet<String>,
    /// The task whose mark the gates are asked about.
    checking: Option<TaskId>,
    /// Marks that were taken back.
    set_back: BTreeSet<String>,
    /// The task file is not there.
    away: bool,
    stopped: bool,
    waiting: bool,
    ended: Option<Ended>,
}

/// One thing that views are told.
enum Told {
    Plan(Vec<PlannedTask>),
    Event(Event),
}

fn planned(plan: &Plan) -> Vec<PlannedTask> {
    let graph = plan.graph();
    let work = (0..graph.nodes().len() as TaskIx).filter(|task| graph.is_work(*task));
    let planned = work.map(|task| PlannedTask {
        id: graph.node(task).id.clone(),
        title: String::new(),
        wave: plan.wave_of(task),
        complexity: 0,
        after: Vec::new(),
        commands: None,
        under: None,
        after_blocks: Vec::new(),
    });
    planned.collect()
}

fn plan_of(nodes: &[TaskNode]) -> Plan {
    TaskGraph::new(nodes.to_vec()).plan().unwrap()
}

impl World {
    fn new(nodes: Vec<TaskNode>, config: SchedConfig) -> Self {
        let scheduler = Scheduler::new(plan_of(&nodes), config);
        let done = nodes.iter().filter(|node| node.status == TaskStatus::Done);
        let excused = done.map(|node| node.id.to_string()).collect();
        Self {
            told: vec![Told::Plan(planned(scheduler.plan()))],
            gone: Vec::new(),
            added: 0,
            attempted: BTreeSet::new(),
            unlanded: BTreeSet::new(),
            abandoned: BTreeSet::new(),
            nodes,
            config,
            scheduler,
            journal: Vec::new(),
            running: BTreeMap::new(),
            merging: None,
            train: None,
            train_merged: 0,
            committing: None,
            merged: BTreeSet::new(),
            ever_merged: BTreeSet::new(),
            excused,
            checking: None,
            set_back: BTreeSet::new(),
            away: false,
            stopped: false,
            waiting: false,
            ended: None,
        }
    }

    fn put(&mut self, input: Input) {
        for effect in self.scheduler.advance(&input) {
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        assert!(
            self.ended.is_none() || matches!(effect, Effect::Append(_)),
            "nothing is asked for after the end: {effect:?}"
        );
        match effect {
            Effect::Append(event) => {
                let event = event.of_tasks().unwrap().clone();
                if let Event::AttemptEnded { task, next, .. } | Event::MergeEnded { task, next, .. } =
                    &event
                    && matches!(next, descartes_kernel::sched::Next::Pass { .. })
                {
                    self.excused.insert(task.to_string());
                }
                self.stopped |= matches!(event, Event::Stopping { .. });
                match &event {
                    Event::MergeEnded { task, .. } => drop(self.abandoned.remove(task)),
                    Event::TrainEnded { .. } => {
                        // Whoever ran is not in a train.
                        let running = &self.running;
                        self.abandoned.retain(|task| running.contains_key(task));
                    }
                    _ => {}
                }
                self.told.push(Told::Event(event.clone()));
                self.journal.push(event);
            }
            Effect::StartAttempt { slot, tasks } => {
                assert!(!tasks.is_empty());
                assert!(!self.away, "nothing starts without the task file");
                assert!(
                    !self.config.shared_tree || self.checking.is_none(),
                    "no agent works where gates run"
                );
                assert!(slot < self.config.slots, "slot {slot} exists");
                assert!(
                    !self.running.values().any(|busy| *busy == slot),
                    "slot {slot} is free"
                );
                for given in tasks {
                    self.check_start(&given.task);
                    self.attempted.insert(given.task.clone());
                    let twice = self.running.insert(given.task.clone(), slot);
                    assert!(twice.is_none(), "{} runs once", given.task);
                }
            }
            Effect::Merge { task } => {
                assert!(self.is_quiet(), "one merge at a time");
                assert!(
                    self.committing.is_none(),
                    "nothing else while a wave is committed"
                );
                assert!(self.is_known(&task), "{task} is in the file");
                self.merging = Some(task);
            }
            Effect::StackTrain { train, tasks } => {
                assert!(self.is_quiet(), "one train at a time");
                assert!(tasks.len() > 1 && tasks.len() <= self.config.merge_batch as usize);
                self.train = Some((train, tasks, None));
                self.train_merged = 0;
            }
            Effect::GateTrain {
                train,
                tasks,
                members,
            } => {
                assert!(self.is_quiet(), "one stack at a time");
                assert!(members > 0 && members as usize <= tasks.len());
                self.train = Some((train, tasks, Some(members)));
            }
            Effect::CommitWave { wave, tasks } => {
                assert!(self.committing.is_none() && !tasks.is_empty());
                assert!(
                    self.checking.is_none(),
                    "gates run on a tree that is left alone"
                );
                for task in &tasks {
                    assert!(self.ever_merged.contains(task.as_str()), "{task} is merged");
                }
                self.committing = Some(wave);
            }
            Effect::MarkDone { task } => {
                assert!(
                    self.merged.contains(task.as_str()) || self.excused.contains(task.as_str())
                );
                let by_file = self.excused.contains(task.as_str());
                assert!(by_file || self.attempted.contains(&task), "{task} ran");
            }
            Effect::Abandon { task } => {
                let train = self.train.iter().flat_map(|(_, tasks, _)| tasks);
                let merging = train.chain(&self.merging).any(|merging| *merging == task);
                assert!(
                    merging || self.running.contains_key(&task),
                    "{task} is under way"
                );
                self.abandoned.insert(task);
            }
            Effect::CheckMark { task } => {
                assert!(self.is_quiet(), "gates run on a tree that is left alone");
                assert!(self.committing.is_none());
                assert!(!self.config.shared_tree || self.running.is_empty());
                self.checking = Some(task);
            }
            Effect::SetBack { task, .. } => {
                assert!(
                    self.set_back.insert(task.to_string()),
                    "a mark is taken back once"
                );
            }
            Effect::Wait { .. } => self.waiting = true,
            Effect::Finish(ended) => {
                assert!(
                    self.running.is_empty() && self.is_quiet(),
                    "nothing runs at the end"
                );
                assert!(
                    !self.away || self.stopped,
                    "nothing ends without the task file, unless somebody wants it to"
                );
                self.check_account(&ended);
                self.ended = Some(*ended);
            }
            Effect::Claim { .. }
            | Effect::StopAttempts
            | Effect::EndRuns { .. }
            | Effect::MarkBlocked { .. }
            | Effect::Release { .. } => {}
        }
    }

    /// No task before everything that it depends on is merged.
    fn check_start(&self, id: &TaskId) {
        let plan = self.scheduler.plan();
        let task = plan.graph().find(id).unwrap();
        for before in plan.graph().all_dependencies(task) {
            assert!(
                self.is_in(before),
                "{id} waits for {}",
                plan.graph().node(before).id
            );
        }
        assert!(!self.merged.contains(id.as_str()), "{id} is not done again");
        assert_ne!(self.merging.as_ref(), Some(id));
        let train = self.train.iter().flat_map(|(_, tasks, _)| tasks);
        assert!(
            !train
                .into_iter()
                .any(|task| task == id && !self.merged.contains(id.as_str()))
        );
    }

    fn is_in(&self, task: TaskIx) -> bool {
        let graph = self.scheduler.plan().graph();
        let id = graph.node(task).id.as_str();
        let parts = graph.subtasks(task);
        self.merged.contains(id)
            || self.excused.contains(id)
            || (!parts.is_empty() && parts.iter().all(|part| self.is_in(*part)))
    }

    fn check_account(&self, ended: &Ended) {
        let account = &ended.account;
        let graph = self.scheduler.plan().graph();
        let work = (0..graph.nodes().len() as TaskIx)
            .filter(|task| graph.is_work(*task))
            .count();
        let blocked = account
            .blocked
            .iter()
            .chain(&account.passed)
            .map(|task| &task.task);
        let held = account.held.iter().map(|held| &held.task);
        let marked = account.marked.iter().map(|marked| &marked.task);
        let simple = account
            .done
            .iter()
            .chain(&account.left_out)
            .chain(&account.open);
        let all: BTreeSet<&str> = simple
            .chain(blocked)
            .chain(held)
            .chain(marked)
            .map(|id| id.as_str())
            .collect();
        let gone = account.marked.iter();
        let gone = gone
            .filter(|marked| !self.is_known(&marked.task))
            .inspect(|marked| assert_eq!(marked.status, None))
            .count();
        assert_eq!(
            (all.len(), account.total()),
            (work + gone, work + gone),
            "each task stands in one list"
        );
        for id in &account.done {
            assert!(
                self.merged.contains(id.as_str()) || self.excused.contains(id.as_str()),
                "{id}"
            );
        }
        for marked in account.marked.iter().filter(|it| self.is_known(&it.task)) {
            let state = self.scheduler.state(&marked.task);
            assert!(state.is_some_and(TaskState::is_marked), "{}", marked.task);
            assert_eq!(marked.trusted, self.config.trust_marks);
        }
        if matches!(ended.outcome, Outcome::Complete | Outcome::TasksBlocked) {
            assert_eq!(self.unlanded.len(), 0, "what is merged lands");
        }
        match ended.outcome {
            Outcome::Complete => {
                assert!(account.is_complete());
                assert!(
                    account.marked.is_empty() || self.config.trust_marks,
                    "what others marked is not proven"
                );
            }
            Outcome::TasksBlocked => {
                assert!(
                    account.open.is_empty(),
                    "what can be done is done before the end"
                );
                assert!(
                    account
                        .held
                        .iter()
                        .all(|held| held.status.is_some() || !held.by.is_empty())
                );
            }
            Outcome::MaxIterations { .. } | Outcome::Stopped { .. } => {}
        }
    }

    fn finish(&mut self, which: usize, end: AttemptEnd) {
        if let Some(task) = self
            .running
            .keys()
            .nth(which % self.running.len().max(1))
            .cloned()
        {
            self.running.remove(&task);
            let was_abandoned = self.abandoned.remove(&task);
            let before = self.scheduler.state(&task).cloned();
            self.put(Input::Finished {
                task: task.clone(),
                end,
            });
            if was_abandoned {
                let now = self.scheduler.state(&task);
                let lands = now == Some(&TaskState::Landing) && before.as_ref() != now;
                assert!(!lands, "{task}: an abandoned attempt proves nothing");
            }
        }
    }

    fn is_known(&self, id: &TaskId) -> bool {
        self.scheduler.plan().graph().find(id).is_some()
    }

    fn has_merged(&mut self, task: &TaskId) {
        if self.is_known(task) {
            self.merged.insert(task.to_string());
        }
        self.ever_merged.insert(task.to_string());
        self.unlanded.insert(task.clone());
    }

    /// Somebody edits the task file.
    fn edit(&mut self, kind: usize, which: usize) {
        let mut nodes = self.nodes.clone();
        let at = which % nodes.len();
        let id = nodes[at].id.clone();
        let mut back = None;
        match kind {
            // A line is taken out, and nobody waits for it any more.
            0 if nodes.len() > 1 => {
                self.gone.push(nodes.remove(at));
                untie(&mut nodes, &id);
            }
            // It gets another name, as where its text is its name.
            1 => {
                self.added += 1;
                self.gone.push(nodes[at].clone());
                nodes[at].id = format!("n{}", self.added).as_str().into();
                let name = nodes[at].id.clone();
                untie(&mut nodes, &id);
                nodes[at].title = format!("{name} once was {id}");
            }
            // It is written twice, with new dependencies or none.
            2 => {
                self.added += 1;
                let mut twin = nodes[at].clone();
                twin.id = format!("n{}", self.added).as_str().into();
                if which.is_multiple_of(3) && !self.scheduler.plan().graph().nodes().is_empty() {
                    twin = twin.after([id.as_str()]);
                }
                if which.is_multiple_of(7) {
                    twin.status = TaskStatus::Done;
                }
                nodes.push(twin);
            }
            3 => {
                let other = (which / nodes.len()) % nodes.len();
                nodes.swap(at, other);
            }
            4 => nodes[at].title.push('!'),
            // What was taken out comes back, perhaps ticked.
            _ => {
                let Some(mut node) = self.gone.pop() else {
                    return;
                };
                if which.is_multiple_of(5) {
                    node.status = TaskStatus::Done;
                }
                node.dependencies.clear();
                node.parent = None;
                if nodes.iter().any(|known| known.id == node.id) {
                    return;
                }
                back = Some(node.id.clone());
                nodes.push(node);
            }
        }
        let Ok(plan) = TaskGraph::new(nodes.clone()).plan() else {
            // The loop goes on with what it knew; so does this world.
            let lost = back.and_then(|id| nodes.into_iter().find(|node| node.id == id));
            self.gone.extend(lost);
            return;
        };
        let old = std::mem::replace(&mut self.nodes, nodes);
        for node in old
            .iter()
            .filter(|node| plan.graph().find(&node.id).is_none())
        {
            self.merged.remove(node.id.as_str());
            self.excused.remove(node.id.as_str());
            self.set_back.remove(node.id.as_str());
        }
        let graph = plan.graph();
        for task in 0..graph.nodes().len() as TaskIx {
            let node = graph.node(task);
            let before = self.scheduler.plan().graph();
            let was_work = before
                .find(&node.id)
                .is_some_and(|task| before.is_work(task));
            if was_work != graph.is_work(task) {
                // It became a group, or is none any more: it stands as the file says.
                self.merged.remove(node.id.as_str());
                self.set_back.remove(node.id.as_str());
                match node.status == TaskStatus::Done && !graph.is_work(task) {
                    true => self.excused.insert(node.id.to_string()),
                    false => self.excused.remove(node.id.as_str()),
                };
            }
        }
        self.told.push(Told::Plan(planned(&plan)));
        for effect in self.scheduler.replan(plan) {
            self.carry_out(effect);
        }
        self.check_fold();
    }

    fn is_quiet(&self) -> bool {
        self.merging.is_none() && self.train.is_none() && self.checking.is_none()
    }

    /// A step of the train ends as a merge would.
    fn train_step(&mut self, end: MergeEnd) {
        let Some((train, tasks, members)) = self.train.take() else {
            return;
        };
        let Some(members) = members else {
            let (mut out, mut held) = (Vec::new(), Vec::new());
            match end {
                MergeEnd::Merged | MergeEnd::Interrupted => {}
                MergeEnd::Red { .. } => held.extend(tasks.last().cloned()),
                end => out.push((tasks[0].clone(), end)),
            }
            return self.put(Input::TrainStacked { train, out, held });
        };
        let last = tasks[members as usize - 1].clone();
        let end = match end {
            MergeEnd::Merged => {
                // A member that was merged earlier may have been opened again since.
                let landed = tasks[self.train_merged..members as usize].to_vec();
                self.train_merged = members as usize;
                landed.iter().for_each(|task| self.has_merged(task));
                TrainEnd::Green
            }
            MergeEnd::Red { tail } => TrainEnd::Red {
                tail,
                check_of: None,
            },
            MergeEnd::Conflict { tail } => TrainEnd::Red {
                tail,
                check_of: Some(last),
            },
            MergeEnd::Failed { message } => TrainEnd::Failed { message },
            MergeEnd::Interrupted => TrainEnd::Interrupted,
        };
        self.put(Input::TrainGated {
            train,
            members,
            end,
            gate_ms: 1,
        });
    }

    fn merge(&mut self, end: MergeEnd) {
        if self.train.is_some() {
            return self.train_step(end);
        }
        if let Some(task) = self.merging.take() {
            self.abandoned.remove(&task);
            if end == MergeEnd::Merged {
                self.has_merged(&task);
            }
            self.put(Input::Merged { task, end });
        }
    }

    fn commit(&mut self, end: CommitEnd) {
        if let Some(wave) = self.committing.take() {
            let started = self.journal.iter().rev().find_map(|event| match event {
                Event::WaveCommitStarted { tasks, .. } => Some(tasks),
                _ => None,
            });
            if matches!(end, CommitEnd::Committed { .. }) {
                for task in started.into_iter().flatten() {
                    self.unlanded.remove(task);
                }
            }
            self.put(Input::WaveCommitted { wave, end });
        }
    }

    /// The gates answer for a task that somebody else marked done.
    fn check(&mut self, end: MarkEnd) {
        let Some(task) = self.checking.take() else {
            return;
        };
        let marked = |world: &Self| {
            let state = world.scheduler.state(&task);
            matches!(state, Some(TaskState::MarkedDone { .. }))
        };
        let satisfies = match end {
            MarkEnd::Green | MarkEnd::NoGate => true,
            MarkEnd::Red { .. } => self.config.trust_marks && self.set_back.contains(task.as_str()),
            MarkEnd::Interrupted => false,
        };
        if marked(self) && satisfies {
            self.excused.insert(task.to_string());
        }
        let input = Input::MarkChecked {
            task: task.clone(),
            end,
        };
        self.put(input);
    }

    /// The fold that views, the state file and `query` tell tells of every task what the scheduler does.
    fn check_fold(&self) {
        let plan = self.scheduler.plan();
        let graph = plan.graph();
        let work = (0..graph.nodes().len() as TaskIx).filter(|task| graph.is_work(*task));
        let mut folded = TasksState::default();
        for told in &self.told {
            match told {
                Told::Plan(tasks) => drop(folded.plan("tag", tasks, &[])),
                Told::Event(event) => drop(folded.apply(event, Timestamp::UNIX_EPOCH)),
            }
        }
        let statuses = self.scheduler.statuses();
        for task in work.filter(|_| folded.begun()) {
            let id = &graph.node(task).id;
            let (entry, ours) = (&folded.tasks[id], statuses[task as usize]);
            // What a file says of a task that nobody works on is told as it stands there.
            let resting = ours == TaskStatus::Pending && entry.status == TaskStatus::InProgress;
            let told = if resting { ours } else { entry.status };
            assert_eq!(told, ours, "task {id}: {:?}", self.journal);
        }
    }

    /// The host dies between two inputs; another one folds the journal and goes on.
    fn die(&mut self) {
        self.check_fold();
        let recovered =
            Scheduler::recover(plan_of(&self.nodes), self.config, &self.journal).unwrap();
        assert_eq!(recovered.account(), self.scheduler.account());
        assert_eq!(recovered.statuses(), self.scheduler.statuses());
        assert_eq!(recovered.iterations(), self.scheduler.iterations());
        assert_eq!(recovered.wave_progress(), self.scheduler.wave_progress());
        self.scheduler = recovered;
        self.running.clear();
        (self.merging, self.committing, self.checking) = (None, None, None);
        self.train = None;
        self.abandoned.clear();
        self.ended = None;
        self.away = false;
        self.put(Input::Begin);
    }

    fn seen(&mut self, which: usize, status: TaskStatus) {
        let node = &self.nodes[which % self.nodes.len()];
        let id = node.id.clone();
        let task = self.scheduler.plan().graph().find(&id).unwrap();
        let done = |world: &Self| world.scheduler.statuses()[task as usize] == TaskStatus::Done;
        let was_done = done(self);
        if !self.scheduler.plan().graph().is_work(task) && status == TaskStatus::Done {
            // A group that is called done counts for those who wait for it.
            self.excused.insert(id.to_string());
        }
        self.put(Input::StatusSeen {
            task: id.clone(),
            status,
        });
        if !done(self) && (was_done || status == TaskStatus::Done) {
            self.excused.remove(id.as_str());
            self.merged.remove(id.as_str());
        }
        let state = self.scheduler.state(&id);
        if !done(self) && !state.is_some_and(TaskState::is_marked) {
            self.unlanded.remove(&id);
        }
    }

    /// Lets everything end well.
    fn run_to_the_end(&mut self) {
        self.put(Input::Unpause);
        self.away = false;
        self.put(Input::FileBack);
        let green = AttemptEnd::Green {
            changed: true,
            claimed: true,
            unproven: false,
        };
        for _ in 0..20 * self.nodes.len() + 20 {
            if self.ended.is_some() {
                return;
            }
            self.finish(0, green.clone());
            self.finish(0, green.clone());
            self.merge(MergeEnd::Merged);
            self.check(MarkEnd::Green);
            self.commit(CommitEnd::Committed { commit: None });
            if self.waiting {
                self.waiting = false;
                self.put(Input::RetryNow);
            }
        }
        assert!(
            self.ended.is_some(),
            "a loop in which all goes well ends: {:?}",
            self.scheduler.account()
        );
    }
}

/// Nobody waits for a task any more, and it has no parts.
fn untie(nodes: &mut [TaskNode], id: &TaskId) {
    for node in nodes {
        node.dependencies.retain(|dependency| dependency.id != *id);
        if node.parent.as_ref() == Some(id) {
            node.parent = None;
        }
    }
}

/// How many random worlds are tried: a campaign takes more of them.
#[expect(
    clippy::disallowed_methods,
    reason = "the kernel itself reads no environment"
)]
fn worlds() -> u32 {
    let asked = std::env::var("DESCARTES_RANDOM_WORLDS").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(600)
}

fn any_nodes() -> impl Strategy<Value = Vec<TaskNode>> {
    prop::collection::vec((any::<u32>(), 0_u8..40, 0_u8..12, 0_u8..6), 1..14).prop_map(|rows| {
        let mut nodes: Vec<TaskNode> = Vec::new();
        for (i, (bits, status, kind, rules)) in rows.into_iter().enumerate() {
            let before: Vec<String> = (0..i)
                .filter(|j| bits >> (2 * (j % 16)) & 3 == 3)
                .map(|j| format!("t{j}"))
                .collect();
            let mut node = TaskNode::new(format!("t{i}").as_str(), "a task")
                .after(before.iter().map(String::as_str));
            node.status = match status {
                0 => TaskStatus::Done,
                1 => TaskStatus::Cancelled,
                2 => TaskStatus::Review,
                3 => TaskStatus::InProgress,
                _ => TaskStatus::Pending,
            };
            node.priority = [Priority::High, Priority::Medium, Priority::Low][i % 3];
            node.agent = (kind == 1).then(|| "codex".to_owned());
            if kind == 2 && i > 0 {
                node.dependencies.clear();
                node.parent = Some(format!("t{}", i - 1).as_str().into());
            }
            match rules {
                0 => node.rules.on_fail = OnFail::Skip,
                1 => node.rules.max_attempts = Some(1),
                2 => node.rules.proof = Proof::Promise,
                _ => {}
            }
            nodes.push(node);
        }
        nodes
    })
}

fn any_config() -> impl Strategy<Value = SchedConfig> {
    (
        1_u32..4,
        any::<bool>(),
        0_u8..5,
        prop::option::of(1_u32..30),
        0_u8..6,
        1_u32..5,
    )
        .prop_map(
            |(slots, barrier, grouping, max_iterations, marks, merge_batch)| SchedConfig {
                merge_batch,
                trust_marks: marks == 0,
                shared_tree: marks % 3 == 1,
                slots,
                barrier: if barrier { Barrier::On } else { Barrier::Off },
                grouping: if grouping == 0 {
                    Grouping::Wave
                } else {
                    Grouping::Task
                },
                max_iterations,
                ..SchedConfig::default()
            },
        )
}

fn step(world: &mut World, kind: u8, which: usize, clock: i64) {
    let tail = || "why".to_owned();
    match kind {
        0..8 => world.finish(
            which,
            AttemptEnd::Green {
                changed: true,
                claimed: !which.is_multiple_of(3),
                unproven: false,
            },
        ),
        8..12 => world.finish(which, AttemptEnd::Red { tail: tail() }),
        12..14 => world.finish(which, AttemptEnd::Failed { message: tail() }),
        14 => world.finish(which, AttemptEnd::BlockedByAgent { message: tail() }),
        15..17 => {
            let until = Timestamp::from_second(clock + 10).unwrap();
            world.finish(which, AttemptEnd::Limited { until, login: None });
        }
        17 => world.finish(which, AttemptEnd::Interrupted),
        18..26 => world.merge(MergeEnd::Merged),
        26 => world.merge(MergeEnd::Conflict { tail: tail() }),
        27 => world.merge(MergeEnd::Red { tail: tail() }),
        28 => world.merge(MergeEnd::Failed { message: tail() }),
        29..33 => world.commit(CommitEnd::Committed { commit: None }),
        33 => world.put(Input::Pause),
        34 => world.put(Input::Unpause),
        35..37 => world.put(Input::Wake {
            now: Timestamp::from_second(clock).unwrap(),
        }),
        37 => world.put(Input::RetryNow),
        38..40 => world.seen(which, TaskStatus::ALL[which % 9]),
        40 => world.seen(which, TaskStatus::Pending),
        41..43 => world.die(),
        43 if which.is_multiple_of(8) => world.put(Input::Drain),
        44 if which.is_multiple_of(16) => world.put(Input::Cancel),
        45 if which.is_multiple_of(16) => world.put(Input::BudgetReached {
            budget: Budget::Tokens,
            limit: 1.0,
            used: 2.0,
        }),
        46 if which.is_multiple_of(8) => world.commit(CommitEnd::Failed { message: tail() }),
        47..50 => world.check(MarkEnd::Green),
        50 => world.check(MarkEnd::NoGate),
        51..54 => world.check(MarkEnd::Red { tail: tail() }),
        54 => world.check(MarkEnd::Interrupted),
        55..58 => world.seen(which, TaskStatus::Done),
        58 => world.put(Input::RetryBlocked),
        59 => {
            world.away = true;
            world.put(Input::FileAway);
        }
        60..62 => {
            world.away = false;
            world.put(Input::FileBack);
        }
        62..70 => world.edit(0, which),
        70..78 => world.edit((kind - 70) as usize % 6, which),
        78 => world.edit(5, which),
        _ => world.put(Input::Finished {
            task: "nobody".into(),
            end: AttemptEnd::Interrupted,
        }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(worlds()))]

    #[test]
    fn no_order_of_inputs_breaks_a_law(
        nodes in any_nodes(),
        config in any_config(),
        steps in prop::collection::vec((0_u8..80, any::<u16>()), 0..150),
    ) {
        prop_assume!(TaskGraph::new(nodes.clone()).plan().is_ok());
        let mut world = World::new(nodes, config);
        world.put(Input::Begin);
        for (clock, (kind, which)) in steps.into_iter().enumerate() {
            if world.ended.is_some() {
                break;
            }
            step(&mut world, kind, which as usize, clock as i64);
        }
        world.run_to_the_end();
        let limit = world.config.max_iterations.unwrap_or(u32::MAX);
        prop_assert!(world.scheduler.iterations() <= limit);
        // An ended loop hears nothing any more, and is the same for whoever reads its journal.
        let ended = world.ended.clone();
        world.put(Input::Wake { now: Timestamp::from_second(9999).unwrap() });
        world.check_fold();
        let again = Scheduler::recover(plan_of(&world.nodes), world.config, &world.journal).unwrap();
        prop_assert_eq!(again.outcome(), ended.as_ref().map(|ended| &ended.outcome));
    }

    #[test]
    fn the_same_inputs_give_the_same_effects(nodes in any_nodes(), config in any_config()) {
        prop_assume!(TaskGraph::new(nodes.clone()).plan().is_ok());
        let journal = |nodes: Vec<TaskNode>| {
            let mut world = World::new(nodes, config);
            world.put(Input::Begin);
            world.run_to_the_end();
            world.journal
        };
        prop_assert_eq!(journal(nodes.clone()), journal(nodes));
    }
}

/// A small generator of our own, so that graphs are the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn random_graph(dice: &mut Dice, tasks: usize, edges: u64) -> Vec<TaskNode> {
    let mut nodes: Vec<TaskNode> = Vec::new();
    for i in 0..tasks {
        let mut node = TaskNode::new(format!("t{i}").as_str(), "a task");
        for _ in 0..dice.roll(edges + 1) {
            if i > 0 {
                let before = format!("t{}", dice.roll(i as u64));
                node = node.after([before.as_str()]);
            }
        }
        node.weight = 1 + dice.roll(1_000_000) as u32;
        nodes.push(node);
    }
    nodes
}

/// How long the scheduler takes when each task takes its weight, and merges and commits no time.
fn makespan(nodes: &[TaskNode], config: SchedConfig) -> u64 {
    let mut scheduler = Scheduler::new(plan_of(nodes), config);
    let mut clock = 0;
    let mut running: BinaryHeap<std::cmp::Reverse<(u64, TaskIx)>> = BinaryHeap::new();
    let mut inputs = vec![Input::Begin];
    loop {
        while let Some(input) = inputs.pop() {
            for effect in scheduler.advance(&input) {
                match effect {
                    Effect::StartAttempt { tasks, .. } => {
                        let task = scheduler.plan().graph().find(&tasks[0].task).unwrap();
                        let weight = u64::from(nodes[task as usize].weight);
                        running.push(std::cmp::Reverse((clock + weight, task)));
                    }
                    Effect::Merge { task } => inputs.push(Input::Merged {
                        task,
                        end: MergeEnd::Merged,
                    }),
                    Effect::CommitWave { wave, .. } => {
                        let end = CommitEnd::Committed { commit: None };
                        inputs.push(Input::WaveCommitted { wave, end });
                    }
                    Effect::Finish(ended) => assert_eq!(ended.outcome, Outcome::Complete),
                    _ => {}
                }
            }
        }
        let Some(std::cmp::Reverse((end, task))) = running.pop() else {
            return clock;
        };
        clock = end;
        let id = nodes[task as usize].id.clone();
        inputs.push(Input::Finished {
            task: id,
            end: AttemptEnd::Green {
                changed: true,
                claimed: true,
                unproven: false,
            },
        });
    }
}

/// A plain list schedule, longest chain first, written down a second time.
fn list_schedule(nodes: &[TaskNode], slots: usize) -> u64 {
    let n = nodes.len();
    let index = |id: &str| id[1..].parse::<usize>().unwrap();
    let before: Vec<BTreeSet<usize>> = nodes
        .iter()
        .map(|node| node.dependencies.iter().map(|dep| index(&dep.id)).collect())
        .collect();
    let mut tail = vec![0_u64; n];
    for task in (0..n).rev() {
        tail[task] += u64::from(nodes[task].weight);
        for dep in &before[task] {
            tail[*dep] = tail[*dep].max(tail[task]);
        }
    }
    let (mut clock, mut done, mut running) = (0, vec![false; n], Vec::<(u64, usize)>::new());
    let mut started = vec![false; n];
    loop {
        let mut ready: Vec<usize> = (0..n)
            .filter(|task| !started[*task] && before[*task].iter().all(|dep| done[*dep]))
            .collect();
        ready.sort_by_key(|task| (std::cmp::Reverse(tail[*task]), *task));
        for task in ready.into_iter().take(slots - running.len()) {
            started[task] = true;
            running.push((clock + u64::from(nodes[task].weight), task));
        }
        let Some(next) = running.iter().map(|(end, _)| *end).min() else {
            return clock;
        };
        clock = next;
        running.retain(|(end, task)| {
            done[*task] |= *end == clock;
            *end > clock
        });
    }
}

#[test]
fn schedules_without_barriers_are_as_short_as_a_list_schedule() {
    let mut dice = Dice(11);
    let (mut worst, mut with_barriers, mut bound) = (1.0_f64, 0.0, 0.0);
    let rounds = 120;
    for round in 0..rounds {
        let tasks = 5 + dice.roll(120) as usize;
        let nodes = random_graph(&mut dice, tasks, 1 + round % 4);
        let slots = 1 + (round % 6) as u32;
        let free = SchedConfig {
            slots,
            max_iterations: None,
            barrier: Barrier::Off,
            ..SchedConfig::default()
        };
        let ours = makespan(&nodes, free);
        let list = list_schedule(&nodes, slots as usize);
        let waves = makespan(
            &nodes,
            SchedConfig {
                barrier: Barrier::On,
                ..free
            },
        );
        let work: u64 = nodes.iter().map(|node| u64::from(node.weight)).sum();
        let floor = plan_of(&nodes)
            .critical_path()
            .max(work.div_ceil(u64::from(slots)));
        assert!(ours >= floor && waves >= floor);
        worst = worst.max(ours as f64 / list as f64);
        with_barriers += waves as f64 / list as f64 / rounds as f64;
        bound += ours as f64 / floor as f64 / rounds as f64;
    }
    println!(
        "worst {worst:.3} of a list schedule; mean {bound:.3} of the floor; waves {with_barriers:.3} of a list schedule"
    );
    assert!(
        worst <= 1.05,
        "at most 1.05 of a list schedule, not {worst:.3}"
    );
}

#[test]
fn a_failure_costs_its_descendants_and_nobody_else() {
    let mut dice = Dice(5);
    for _ in 0..40 {
        let nodes = random_graph(&mut dice, 40, 2);
        let broken = dice.roll(40) as usize;
        let config = SchedConfig {
            slots: 3,
            max_attempts: 1,
            max_iterations: None,
            barrier: Barrier::Off,
            ..SchedConfig::default()
        };
        let mut world = World::new(nodes.clone(), config);
        world.put(Input::Begin);
        while world.ended.is_none() {
            let slot = world.running.keys().position(|id| *id == nodes[broken].id);
            match slot {
                Some(slot) => world.finish(
                    slot,
                    AttemptEnd::Red {
                        tail: String::new(),
                    },
                ),
                None => world.finish(
                    0,
                    AttemptEnd::Green {
                        changed: true,
                        claimed: true,
                        unproven: false,
                    },
                ),
            }
            world.merge(MergeEnd::Merged);
            world.commit(CommitEnd::Committed { commit: None });
        }
        let mut behind = BTreeSet::from([broken]);
        for (task, node) in nodes.iter().enumerate() {
            let waits = node
                .dependencies
                .iter()
                .any(|dep| behind.contains(&dep.id[1..].parse().unwrap()));
            if waits {
                behind.insert(task);
            }
        }
        let account = world.ended.unwrap().account;
        assert_eq!(account.blocked.len(), 1);
        assert_eq!(account.held.len(), behind.len() - 1);
        assert_eq!(account.done.len(), nodes.len() - behind.len());
    }
}
