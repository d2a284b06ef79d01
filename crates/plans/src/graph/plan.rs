//! A sound graph, planned: waves, and how much work hangs on each task.

use super::{Origin, Problem, TaskGraph, TaskIx, TaskStatus};
use descartes_text::finding::Severity;

/// A graph without errors, with its waves.
///
/// Waves are counted over all tasks, done ones included, so that a task's wave stays the same
/// from one start of a loop to the next. Inside a wave the urgent come first, then the order of
/// the file decides.
#[derive(Clone, Debug)]
pub struct Plan {
    graph: TaskGraph,
    /// Vertices with what they wait for before them.
    order: Vec<u32>,
    /// By vertex: the wave in which it is satisfied.
    levels: Vec<u32>,
    /// By vertex: the weight of the heaviest chain that begins with it.
    tails: Vec<u64>,
    waves: Vec<Vec<TaskIx>>,
}

impl TaskGraph {
    /// Plans a graph, or tells every error in it. O(V + E).
    pub fn plan(self) -> Result<Plan, Vec<Problem>> {
        let (order, left) = self.sorted();
        let sound = self
            .problems
            .iter()
            .all(|problem| problem.severity() != Severity::Error);
        if !sound || !left.is_empty() {
            let mut problems = self.check();
            problems.retain(|problem| problem.severity() == Severity::Error);
            return Err(problems);
        }
        let levels = self.levels(&order);
        let tails = self.tails(&order);
        let waves = self.waves(&levels);
        Ok(Plan {
            graph: self,
            order,
            levels,
            tails,
            waves,
        })
    }

    fn levels(&self, order: &[u32]) -> Vec<u32> {
        let mut levels = vec![0_u32; self.vertices()];
        for vertex in order.iter().copied() {
            let before = self
                .preds
                .of(vertex)
                .iter()
                .map(|v| levels[*v as usize])
                .max();
            let own = u32::from(self.is_leaf(vertex) && self.is_work(vertex));
            levels[vertex as usize] = before.unwrap_or(0) + own;
        }
        levels
    }

    fn tails(&self, order: &[u32]) -> Vec<u64> {
        let mut tails = vec![0_u64; self.vertices()];
        for vertex in order.iter().rev().copied() {
            let after = self
                .succs
                .of(vertex)
                .iter()
                .map(|v| tails[*v as usize])
                .max();
            tails[vertex as usize] = after.unwrap_or(0) + self.weight(vertex);
        }
        tails
    }

    /// What is still to be spent on a vertex: groups cost nothing, finished tasks no more.
    fn weight(&self, vertex: u32) -> u64 {
        let is_work = self.is_leaf(vertex) && self.is_work(vertex);
        if is_work && self.status(vertex) != TaskStatus::Done {
            u64::from(self.node(vertex).weight.max(1))
        } else {
            0
        }
    }

    fn waves(&self, levels: &[u32]) -> Vec<Vec<TaskIx>> {
        let tasks = 0..self.nodes().len() as TaskIx;
        let work = tasks.filter(|task| self.is_work(*task));
        let mut waves: Vec<Vec<TaskIx>> = Vec::new();
        for task in work {
            let wave = levels[task as usize] as usize;
            if waves.len() < wave {
                waves.resize_with(wave, Vec::new);
            }
            waves[wave - 1].push(task);
        }
        for wave in &mut waves {
            wave.sort_by_key(|task| (self.node(*task).priority, *task));
        }
        waves
    }
}

impl Plan {
    pub fn graph(&self) -> &TaskGraph {
        &self.graph
    }

    /// The waves, first one first; each holds work alone, no groups.
    pub fn waves(&self) -> &[Vec<TaskIx>] {
        &self.waves
    }

    /// The wave of a task, from 1; of a group, the wave of its last subtask. A task of another
    /// tag stands in wave 0.
    pub fn wave_of(&self, task: TaskIx) -> u32 {
        self.levels[task as usize]
    }

    /// The weight of the heaviest chain of open tasks that begins with this one.
    pub fn tail(&self, task: TaskIx) -> u64 {
        self.tails[task as usize]
    }

    /// The weight of the heaviest chain of all: no schedule can be shorter.
    pub fn critical_path(&self) -> u64 {
        self.tails.iter().copied().max().unwrap_or(0)
    }

    /// The status that counts for a task: its own, unless it is open and a task that it is a part
    /// of is held or left out.
    pub fn effective_statuses(&self) -> Vec<TaskStatus> {
        let graph = &self.graph;
        let mut statuses: Vec<TaskStatus> = graph.nodes().iter().map(|node| node.status).collect();
        let mut above = vec![None; graph.vertices()];
        for vertex in self.order.iter().copied() {
            let Some(task) = graph.task_of(vertex) else {
                continue;
            };
            let inherited = graph
                .parent(task)
                .and_then(|parent| graph.entrance(parent))
                .and_then(|entrance| above[entrance as usize]);
            let open = matches!(
                graph.status(task),
                TaskStatus::Pending | TaskStatus::InProgress
            );
            if let Some(status) = inherited.filter(|_| open) {
                statuses[task as usize] = status;
            }
            let own = statuses[task as usize];
            above[vertex as usize] = Some(own)
                .filter(|own| own.is_held() || own.is_left_out())
                .or(inherited);
        }
        statuses
    }

    /// The vertices, each after what it waits for.
    pub(super) fn order(&self) -> &[u32] {
        &self.order
    }

    /// The joints of the graph, each after those that it waits for.
    pub fn joints(&self) -> impl Iterator<Item = u32> + '_ {
        let first = self.graph.joint_vertex(0);
        let order = self.order.iter().copied();
        order
            .filter(move |vertex| *vertex >= first)
            .map(move |vertex| vertex - first)
    }

    /// Tasks of other tags that work of this one waits for.
    pub fn foreign(&self) -> impl Iterator<Item = TaskIx> + '_ {
        let tasks = 0..self.graph.nodes().len() as TaskIx;
        tasks.filter(|task| self.graph.node(*task).origin == Origin::Foreign)
    }
}
