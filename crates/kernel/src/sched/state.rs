//! What the scheduler knows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::config::Barrier;
use super::record::{Lane, Record, Slot, Stop, TaskState};
use super::train::Train;
use super::{Event, IllegalEvent, Outcome, SchedConfig};
use descartes_plans::graph::{Frontier, Mark, Origin, Plan, TaskId, TaskIx};

/// The scheduler of one task loop.
#[derive(Clone, Debug)]
pub struct Scheduler {
    pub(super) plan: Plan,
    pub(super) config: SchedConfig,
    pub(super) frontier: Frontier,
    pub(super) records: Vec<Record>,
    /// By task: its place in the order in which tasks are started.
    pub(super) rank: Vec<u32>,
    pub(super) by_rank: Vec<TaskIx>,
    pub(super) lanes: Vec<Lane>,
    pub(super) lane_of: Vec<u32>,
    /// By wave, from 0: tasks that may still be done.
    pub(super) open: Vec<u32>,
    pub(super) open_waves: BTreeSet<u32>,
    /// By wave, from 0: tasks that are done and in no commit of their wave.
    pub(super) landed: Vec<Vec<TaskIx>>,
    pub(super) landed_waves: BTreeSet<u32>,
    /// Merged work of tasks that are no longer in the file, in no commit of a wave.
    pub(super) landed_gone: Vec<TaskId>,
    pub(super) queue: VecDeque<TaskIx>,
    /// The task that is being merged; it may have left the file since.
    pub(super) merging: Option<TaskId>,
    /// Work that is merged together.
    pub(super) train: Option<Train>,
    /// Trains so far.
    pub(super) trains: u32,
    /// How long the next may be: shorter after a failed gate, longer after green.
    pub(super) batch: u32,
    /// Tasks that others marked done and whose gates are still to be run.
    pub(super) checks: VecDeque<TaskIx>,
    /// The task whose mark the gates are run for.
    pub(super) checking: Option<TaskId>,
    /// Tasks that others took out of the file while the loop ran, before they were done.
    pub(super) removed: BTreeSet<TaskId>,
    /// Slots of attempts at tasks that are no work of the plan any more. A slot is free again when
    /// its attempt has ended, whatever happened to its task.
    pub(super) strays: BTreeMap<TaskId, u32>,
    /// Tasks that left the file while they were at work or being merged: what comes of that is not
    /// theirs, even where they are back.
    pub(super) abandoned: BTreeSet<TaskId>,
    /// The wave that is being committed, from 0, and what was done in it.
    pub(super) committing: Option<(u32, Vec<TaskId>)>,
    pub(super) slots: Vec<Slot>,
    pub(super) running: u32,
    pub(super) iterations: u32,
    pub(super) begun: bool,
    /// Whether this process has begun; not part of the journal.
    pub(super) live: bool,
    pub(super) paused: bool,
    /// Whether the task file can be read and written; not part of the journal.
    pub(super) file_away: bool,
    /// Room for the tasks of one change, used again from change to change.
    changed: Vec<TaskIx>,
    pub(super) stop: Option<Stop>,
    pub(super) ended: Option<Outcome>,
}

impl Scheduler {
    /// A scheduler that has not begun; statuses in the file count from [`super::Input::Begin`] on.
    pub fn new(plan: Plan, config: SchedConfig) -> Self {
        let tasks = plan.graph().nodes().len();
        let waves = plan.waves().len();
        let (lanes, lane_of) = lanes_of(&plan);
        let by_rank = order_of(&plan, config.barrier);
        let mut rank = vec![u32::MAX; tasks];
        for (place, task) in by_rank.iter().enumerate() {
            rank[*task as usize] = place as u32;
        }
        let config = SchedConfig {
            slots: config.slots.max(1),
            ..config
        };
        let mut scheduler = Self {
            frontier: Frontier::new(&plan, |_| Mark::Open),
            records: vec![Record::new(TaskState::Pending); tasks],
            rank,
            by_rank,
            lanes,
            lane_of,
            open: vec![0; waves],
            open_waves: BTreeSet::new(),
            landed: vec![Vec::new(); waves],
            landed_waves: BTreeSet::new(),
            landed_gone: Vec::new(),
            queue: VecDeque::new(),
            merging: None,
            train: None,
            trains: 0,
            batch: config.merge_batch.max(1),
            checks: VecDeque::new(),
            checking: None,
            removed: BTreeSet::new(),
            strays: BTreeMap::new(),
            abandoned: BTreeSet::new(),
            committing: None,
            slots: vec![Slot::default(); config.slots as usize],
            running: 0,
            iterations: 0,
            begun: false,
            live: false,
            paused: false,
            file_away: false,
            changed: Vec::new(),
            stop: None,
            ended: None,
            plan,
            config,
        };
        scheduler.refresh_all();
        scheduler
    }

    /// A scheduler as its journal left it. Events about tasks that are no longer in the file are
    /// passed over.
    pub fn recover<'e>(
        plan: Plan,
        config: SchedConfig,
        events: impl IntoIterator<Item = &'e Event>,
    ) -> Result<Self, IllegalEvent> {
        let mut scheduler = Self::new(plan, config);
        for event in events {
            scheduler.apply(event)?;
        }
        Ok(scheduler)
    }

    /// Other limits from now on; slots that run are not taken away.
    pub fn reconfigure(&mut self, config: SchedConfig) {
        let slots = config.slots.max(1);
        if self.slots.len() < slots as usize {
            self.slots.resize(slots as usize, Slot::default());
        }
        if self.config.merge_batch != config.merge_batch {
            self.batch = config.merge_batch.max(1);
        }
        self.config = SchedConfig { slots, ..config };
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Where a task stands.
    pub fn state(&self, id: &str) -> Option<&TaskState> {
        self.plan
            .graph()
            .find(id)
            .map(|task| &self.record(task).state)
    }

    /// Attempts made over all tasks, those that met a limit aside.
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// Whether nothing new is started for now.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// How the loop ended, once it has.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.ended.as_ref()
    }

    pub(super) fn record(&self, task: TaskIx) -> &Record {
        &self.records[task as usize]
    }

    pub(super) fn record_mut(&mut self, task: TaskIx) -> &mut Record {
        &mut self.records[task as usize]
    }

    /// The task of that name, where it is work of the plan.
    pub(super) fn work(&self, id: &str) -> Option<TaskIx> {
        let graph = self.plan.graph();
        graph.find(id).filter(|task| graph.is_work(*task))
    }

    /// Whether it is being merged, alone or with others.
    pub(super) fn is_being_merged(&self, id: &TaskId) -> bool {
        let train = self.train.as_ref();
        self.merging.as_ref() == Some(id) || train.is_some_and(|train| train.waits(id))
    }

    pub(super) fn id(&self, task: TaskIx) -> TaskId {
        self.plan.graph().node(task).id.clone()
    }

    /// The wave of a task, from 0.
    pub(super) fn wave(&self, task: TaskIx) -> u32 {
        self.plan.wave_of(task).saturating_sub(1)
    }

    pub(super) fn lane_mut(&mut self, task: TaskIx) -> &mut Lane {
        &mut self.lanes[self.lane_of[task as usize] as usize]
    }

    /// Changes where a task stands, and what follows for the tasks behind it.
    pub(super) fn set_state(&mut self, task: TaskIx, state: TaskState) {
        let mark = state.mark(self.config.trust_marks);
        self.record_mut(task).state = state;
        self.set_mark(task, mark);
    }

    pub(super) fn set_mark(&mut self, task: TaskIx, mark: Mark) {
        let mut changed = std::mem::take(&mut self.changed);
        self.frontier.set(&self.plan, task, mark, &mut changed);
        for task in changed.drain(..) {
            self.refresh(task);
        }
        self.changed = changed;
    }

    /// Statuses all at once, as at the begin.
    pub(super) fn set_all(&mut self, states: impl Iterator<Item = (TaskIx, TaskState)>) {
        for (task, state) in states {
            self.record_mut(task).state = state;
        }
        let trust = self.config.trust_marks;
        let marks: Vec<Mark> = self
            .records
            .iter()
            .map(|record| record.state.mark(trust))
            .collect();
        self.frontier = Frontier::new(&self.plan, |task| marks[task as usize]);
        self.refresh_all();
    }

    pub(super) fn refresh_all(&mut self) {
        for task in 0..self.records.len() as TaskIx {
            self.refresh(task);
        }
    }

    /// Puts a task into the sets that it belongs to, and out of the others.
    fn refresh(&mut self, task: TaskIx) {
        if !self.plan.graph().is_work(task) {
            return;
        }
        let (is_ready, is_open) = (self.frontier.is_ready(task), self.frontier.is_alive(task));
        let rank = self.rank[task as usize];
        let record = self.record_mut(task);
        let was_ready = std::mem::replace(&mut record.is_ready, is_ready);
        let was_open = std::mem::replace(&mut record.is_open, is_open);
        match (was_ready, is_ready) {
            (false, true) => drop(self.lane_mut(task).ready.insert(rank)),
            (true, false) => drop(self.lane_mut(task).ready.remove(&rank)),
            _ => {}
        }
        if was_open != is_open {
            self.count_open(task);
        }
    }

    /// Counts a task into its wave or out of it.
    fn count_open(&mut self, task: TaskIx) {
        let wave = self.wave(task);
        let is_open = self.record(task).is_open;
        let open = &mut self.open[wave as usize];
        *open = if is_open { *open + 1 } else { *open - 1 };
        match (*open, is_open) {
            (1, true) => self.open_waves.insert(wave),
            (0, false) => self.open_waves.remove(&wave),
            _ => false,
        };
    }
}

/// The order in which tasks are started where several may. With waves: the wave, then the order
/// inside it. Without: the urgent first, then those with the longest chain behind them.
fn order_of(plan: &Plan, barrier: Barrier) -> Vec<TaskIx> {
    let mut order: Vec<TaskIx> = plan.waves().iter().flatten().copied().collect();
    if barrier == Barrier::Off {
        let priority = |task: &TaskIx| plan.graph().node(*task).priority;
        order.sort_by_key(|task| (priority(task), std::cmp::Reverse(plan.tail(*task)), *task));
    }
    order
}

fn lanes_of(plan: &Plan) -> (Vec<Lane>, Vec<u32>) {
    let mut lanes = vec![Lane::default()];
    let mut lane_of = Vec::with_capacity(plan.graph().nodes().len());
    for node in plan.graph().nodes() {
        let own = node.agent.as_ref().filter(|_| node.origin == Origin::Own);
        let known = lanes.iter().position(|lane| lane.agent.as_ref() == own);
        lane_of.push(known.unwrap_or_else(|| {
            lanes.push(Lane {
                agent: own.cloned(),
                ..Lane::default()
            });
            lanes.len() - 1
        }) as u32);
    }
    (lanes, lane_of)
}
