//! Which tasks may start now, kept up to date as tasks are done, blocked or taken up again.

use super::hash::NameSet;
use super::{Origin, Plan, TaskIx};

/// What is known about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// To be done.
    Open,
    /// Being done: it is neither ready nor out of reach, whatever happens before it.
    Busy,
    /// Done: what waits for it may go on.
    Done,
    /// Not going to be done: what waits for it is out of reach.
    Stuck,
}

/// The state of every vertex of a plan, changed one task at a time.
///
/// A change costs the edges behind the vertices that change with it, no more.
#[derive(Clone, Debug)]
pub struct Frontier {
    marks: Vec<Mark>,
    /// By vertex: how many vertices before it are not yet satisfied.
    unmet: Vec<u32>,
    /// By vertex: how many vertices before it are out of reach.
    stuck: Vec<u32>,
    satisfied: Vec<bool>,
    hopeless: Vec<bool>,
}

impl Frontier {
    /// The frontier of a plan in which each task has the mark given for it.
    ///
    /// A group that is marked done is satisfied whatever its subtasks are; any other mark of a
    /// group means that its subtasks decide.
    pub fn new(plan: &Plan, mark: impl Fn(TaskIx) -> Mark) -> Self {
        let graph = plan.graph();
        let vertices = graph.vertices();
        let mut frontier = Self {
            marks: (0..graph.nodes().len() as TaskIx).map(mark).collect(),
            unmet: (0..vertices as u32)
                .map(|v| graph.preds.of(v).len() as u32)
                .collect(),
            stuck: vec![0; vertices],
            satisfied: vec![false; vertices],
            hopeless: vec![false; vertices],
        };
        for vertex in plan.order().iter().copied() {
            let (satisfied, hopeless) = frontier.judge(plan, vertex);
            frontier.satisfied[vertex as usize] = satisfied;
            frontier.hopeless[vertex as usize] = hopeless;
            for after in graph.succs.of(vertex) {
                frontier.unmet[*after as usize] -= u32::from(satisfied);
                frontier.stuck[*after as usize] += u32::from(hopeless);
            }
        }
        frontier
    }

    /// What is known about a task.
    pub fn mark(&self, task: TaskIx) -> Mark {
        self.marks[task as usize]
    }

    /// Whether a task may start: open, and everything before it is done.
    pub fn is_ready(&self, task: TaskIx) -> bool {
        self.marks[task as usize] == Mark::Open && self.unmet[task as usize] == 0
    }

    /// Whether a task may still be done, by itself or by what stands before it.
    pub fn is_alive(&self, task: TaskIx) -> bool {
        match self.marks[task as usize] {
            Mark::Busy => true,
            Mark::Open => !self.hopeless[task as usize],
            Mark::Done | Mark::Stuck => false,
        }
    }

    /// Whether what waits for a task or group may go on, as far as it is concerned.
    pub fn is_satisfied(&self, task: TaskIx) -> bool {
        self.satisfied[task as usize]
    }

    /// Changes what is known about a task; `changed` is told each task of whose readiness or
    /// reach that makes a difference, this one first.
    pub fn set(&mut self, plan: &Plan, task: TaskIx, mark: Mark, changed: &mut Vec<TaskIx>) {
        self.marks[task as usize] = mark;
        changed.push(task);
        let mut queue = vec![task];
        while let Some(vertex) = queue.pop() {
            let (satisfied, hopeless) = self.judge(plan, vertex);
            let was_satisfied = std::mem::replace(&mut self.satisfied[vertex as usize], satisfied);
            let was_hopeless = std::mem::replace(&mut self.hopeless[vertex as usize], hopeless);
            if (was_satisfied, was_hopeless) == (satisfied, hopeless) {
                continue;
            }
            for after in plan.graph().succs.of(vertex).iter().copied() {
                let slot = after as usize;
                self.unmet[slot] += u32::from(was_satisfied);
                self.unmet[slot] -= u32::from(satisfied);
                self.stuck[slot] += u32::from(hopeless);
                self.stuck[slot] -= u32::from(was_hopeless);
                if plan.graph().is_leaf(after) {
                    changed.push(after);
                }
                queue.push(after);
            }
        }
    }

    /// Whether a vertex is satisfied, and whether it is out of reach.
    fn judge(&self, plan: &Plan, vertex: u32) -> (bool, bool) {
        let slot = vertex as usize;
        let graph = plan.graph();
        if graph.is_leaf(vertex) {
            return match self.marks[slot] {
                Mark::Open => {
                    let foreign = graph.node(vertex).origin == Origin::Foreign;
                    (false, self.stuck[slot] > 0 || foreign)
                }
                Mark::Busy => (false, false),
                Mark::Done => (true, false),
                Mark::Stuck => (false, true),
            };
        }
        let forced = self.marks.get(slot) == Some(&Mark::Done);
        let satisfied = forced || self.unmet[slot] == 0;
        (satisfied, !satisfied && self.stuck[slot] > 0)
    }

    /// The open tasks that wait for this one alone, leaving aside those behind whole groups.
    pub fn released_by(&self, plan: &Plan, task: TaskIx) -> Vec<TaskIx> {
        let graph = plan.graph();
        let mut released = Vec::new();
        let mut open = vec![task];
        while let Some(vertex) = open.pop() {
            let behind = graph.succs.of(vertex).iter().copied();
            for after in behind.filter(|after| self.unmet[*after as usize] == 1) {
                let is_open = self.marks.get(after as usize) == Some(&Mark::Open);
                match graph.is_joint(after) {
                    true => open.push(after),
                    false if is_open && graph.is_leaf(after) => released.push(after),
                    false => {}
                }
            }
        }
        released
    }

    /// The tasks right before this one that are out of reach or never come, at most so many.
    pub fn blockers(&self, plan: &Plan, task: TaskIx, most: usize) -> Vec<TaskIx> {
        let graph = plan.graph();
        let is_hopeless = |vertex: u32| self.hopeless[vertex as usize];
        let joints = graph.all_joints(task).into_iter();
        let stuck = joints.filter(|joint| is_hopeless(graph.joint_vertex(*joint)));
        let behind_joints = stuck.flat_map(|joint| graph.before_joint(joint));
        let mut seen = NameSet::default();
        let all = behind_joints.chain(graph.named_dependencies(task));
        all.filter(|before| is_hopeless(*before) && seen.insert(*before))
            .take(most)
            .collect()
    }
}
