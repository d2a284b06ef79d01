//! The graph itself: names resolved, edges in two flat tables.
//!
//! A task with subtasks is a group: its subtasks are the work. Each group has two vertices: its
//! exit (satisfied when all subtasks are) at the task's own index, and its entrance (satisfied
//! when what the group depends on is). Subtasks wait for the entrance, dependents for the exit;
//! so inherited dependencies cost one edge each, and every check and plan is O(V + E). A joint is a
//! vertex of its own, behind those of tasks and groups.

use std::collections::hash_map::Entry;

use super::edges::Edges;
use super::hash::NameMap;
use super::{Joint, Origin, Problem, TaskId, TaskNode, TaskStatus};

/// The position of a task in its graph.
pub type TaskIx = u32;

/// Tasks with their dependencies, as they were written; not yet known to be sound.
#[derive(Clone, Debug)]
pub struct TaskGraph {
    nodes: Vec<TaskNode>,
    index: NameMap<TaskId, TaskIx>,
    /// The task's own dependencies that exist, without repeats.
    own: Edges,
    children: Edges,
    parent: Vec<Option<TaskIx>>,
    /// For each task with subtasks, the vertex of its entrance.
    entrance: Vec<Option<u32>>,
    /// For each entrance, its task.
    groups: Vec<TaskIx>,
    pub(super) joints: Vec<Joint>,
    pub(super) preds: Edges,
    pub(super) succs: Edges,
    pub(super) problems: Vec<Problem>,
}

impl TaskGraph {
    /// Builds a graph; what is wrong with it is told by [`TaskGraph::check`].
    ///
    /// The order of the tasks is the order of their file, and the last word where nothing else
    /// decides which of two tasks comes first.
    pub fn new(nodes: Vec<TaskNode>) -> Self {
        Self::resolved(nodes, &[])
    }

    /// As [`TaskGraph::new`], where the caller has found dependencies already: `targets` names
    /// the tasks of all dependencies, one after the other. Names are dear to look up in large
    /// graphs.
    pub fn resolved(nodes: Vec<TaskNode>, targets: &[Option<TaskIx>]) -> Self {
        Self::build(nodes, targets, Vec::new())
    }

    /// As [`TaskGraph::new`], with joints for tasks that wait for many others at once.
    pub fn with_joints(nodes: Vec<TaskNode>, joints: Vec<Joint>) -> Self {
        Self::build(nodes, &[], joints)
    }

    /// The same graph with other tasks in the places of its own.
    #[must_use]
    pub fn with_nodes(&self, nodes: Vec<TaskNode>) -> Self {
        Self::with_joints(nodes, self.joints.clone())
    }

    /// As [`TaskGraph::resolved`] and [`TaskGraph::with_joints`] at once.
    pub(crate) fn build(
        nodes: Vec<TaskNode>,
        targets: &[Option<TaskIx>],
        joints: Vec<Joint>,
    ) -> Self {
        let mut problems = Vec::new();
        let index = index_of(&nodes, &mut problems);
        let own = resolve_dependencies(&nodes, &index, targets, &mut problems);
        let (parent, family) = resolve_parents(&nodes, &index, &mut problems);
        let children = Edges::group(nodes.len(), &family);
        let (entrance, groups) = entrances(nodes.len(), &children);
        let mut pairs = vertex_edges(&own, &children, &parent, &entrance);
        let first_joint = nodes.len() + groups.len();
        add_joint_edges(&nodes, &joints, &entrance, first_joint as u32, &mut pairs);
        let vertices = first_joint + joints.len();
        let preds = Edges::group(vertices, &pairs);
        let succs = Edges::group_reversed(vertices, &pairs);
        Self {
            nodes,
            index,
            own,
            children,
            parent,
            entrance,
            groups,
            joints,
            preds,
            succs,
            problems,
        }
    }

    /// All tasks, in the order of the file.
    pub fn nodes(&self) -> &[TaskNode] {
        &self.nodes
    }

    pub fn node(&self, task: TaskIx) -> &TaskNode {
        &self.nodes[task as usize]
    }

    /// The task of that name.
    pub fn find(&self, id: &str) -> Option<TaskIx> {
        self.index.get(id).copied()
    }

    /// What a task itself names, without what it inherits and what stands before its joints.
    pub fn dependencies(&self, task: TaskIx) -> &[TaskIx] {
        self.own.of(task)
    }

    /// The subtasks of a task.
    pub fn subtasks(&self, task: TaskIx) -> &[TaskIx] {
        self.children.of(task)
    }

    /// The task that a task is a part of.
    pub fn parent(&self, task: TaskIx) -> Option<TaskIx> {
        self.parent[task as usize]
    }

    /// Whether a task is work of this loop: no group, and not another tag's.
    pub fn is_work(&self, task: TaskIx) -> bool {
        self.entrance[task as usize].is_none() && self.node(task).origin == Origin::Own
    }

    pub(super) fn vertices(&self) -> usize {
        self.nodes.len() + self.groups.len() + self.joints.len()
    }

    /// The task that a vertex belongs to; none for a joint.
    pub(super) fn task_of(&self, vertex: u32) -> Option<TaskIx> {
        match (vertex as usize).checked_sub(self.nodes.len()) {
            Some(group) => self.groups.get(group).copied(),
            None => Some(vertex),
        }
    }

    /// The vertex of a joint.
    pub(super) fn joint_vertex(&self, joint: u32) -> u32 {
        (self.nodes.len() + self.groups.len()) as u32 + joint
    }

    /// Whether a vertex is a joint.
    pub(super) fn is_joint(&self, vertex: u32) -> bool {
        vertex >= self.joint_vertex(0)
    }

    /// Whether a vertex is a task of its own, rather than a group's entrance or exit.
    pub(super) fn is_leaf(&self, vertex: u32) -> bool {
        (vertex as usize) < self.nodes.len() && self.entrance[vertex as usize].is_none()
    }

    pub(super) fn entrance(&self, task: TaskIx) -> Option<u32> {
        self.entrance[task as usize]
    }

    pub(super) fn status(&self, task: TaskIx) -> TaskStatus {
        self.node(task).status
    }
}

fn index_of(nodes: &[TaskNode], problems: &mut Vec<Problem>) -> NameMap<TaskId, TaskIx> {
    let mut index = NameMap::with_capacity_and_hasher(nodes.len(), Default::default());
    for (task, node) in nodes.iter().enumerate() {
        match index.entry(node.id.clone()) {
            Entry::Vacant(free) => {
                free.insert(task as TaskIx);
            }
            Entry::Occupied(first) => {
                let first = nodes[*first.get() as usize].place;
                let (task, place) = (node.id.clone(), node.place);
                problems.push(Problem::DuplicateId { task, first, place });
            }
        }
    }
    index
}

fn resolve_dependencies(
    nodes: &[TaskNode],
    index: &NameMap<TaskId, TaskIx>,
    targets: &[Option<TaskIx>],
    problems: &mut Vec<Problem>,
) -> Edges {
    let mut targets = targets.iter().copied();
    let mut pairs = Vec::with_capacity(nodes.iter().map(|node| node.dependencies.len()).sum());
    // The last task that named each task: a repeated dependency is the same one.
    let mut named_by = vec![TaskIx::MAX; nodes.len()];
    for (task, node) in nodes.iter().enumerate() {
        let task = task as TaskIx;
        for dependency in &node.dependencies {
            let place = dependency.place;
            let known = targets.next().flatten();
            match known.or_else(|| index.get(&dependency.id).copied()) {
                _ if dependency.id == node.id => {
                    problems.push(Problem::SelfDependency {
                        task: node.id.clone(),
                        place,
                    });
                }
                None => problems.push(Problem::UnknownDependency {
                    task: node.id.clone(),
                    dependency: dependency.id.clone(),
                    place,
                }),
                Some(target) if named_by[target as usize] == task => {}
                Some(target) => {
                    named_by[target as usize] = task;
                    pairs.push((task, target));
                }
            }
        }
    }
    Edges::group(nodes.len(), &pairs)
}

type Family = (Vec<Option<TaskIx>>, Vec<(u32, u32)>);

fn resolve_parents(
    nodes: &[TaskNode],
    index: &NameMap<TaskId, TaskIx>,
    problems: &mut Vec<Problem>,
) -> Family {
    let mut parents = vec![None; nodes.len()];
    let mut family = Vec::new();
    let mut has_subtasks = vec![false; nodes.len()];
    for (task, node) in nodes.iter().enumerate() {
        let Some(parent) = &node.parent else { continue };
        match index.get(parent) {
            Some(found) if *found as usize == task => problems.push(Problem::Cycle {
                path: vec![node.id.clone()],
                tangled: 1,
                place: node.place,
            }),
            Some(found) => {
                parents[task] = Some(*found);
                has_subtasks[*found as usize] = true;
                family.push((*found, task as TaskIx));
            }
            None => problems.push(Problem::UnknownParent {
                task: node.id.clone(),
                parent: parent.clone(),
                place: node.place,
            }),
        }
    }
    for (node, has_subtasks) in nodes.iter().zip(has_subtasks) {
        let expanded = node.status == TaskStatus::Expanded && node.origin == Origin::Own;
        if expanded && !has_subtasks {
            let (task, place) = (node.id.clone(), node.place);
            problems.push(Problem::ExpandedWithoutSubtasks { task, place });
        }
    }
    (parents, family)
}

fn entrances(tasks: usize, children: &Edges) -> (Vec<Option<u32>>, Vec<TaskIx>) {
    let mut groups = Vec::new();
    let mut entrance = vec![None; tasks];
    for (task, slot) in entrance.iter_mut().enumerate() {
        if !children.of(task as u32).is_empty() {
            *slot = Some((tasks + groups.len()) as u32);
            groups.push(task as TaskIx);
        }
    }
    (entrance, groups)
}

/// Pairs (vertex, what it waits for).
fn vertex_edges(
    own: &Edges,
    children: &Edges,
    parent: &[Option<TaskIx>],
    entrance: &[Option<u32>],
) -> Vec<(u32, u32)> {
    let mut pairs = Vec::with_capacity(own.len() + 2 * children.len());
    for task in 0..entrance.len() as u32 {
        // What the task waits for is awaited at the entrance of a group, else at the task.
        let start = entrance[task as usize].unwrap_or(task);
        pairs.extend(own.of(task).iter().map(|dependency| (start, *dependency)));
        let above = parent[task as usize].and_then(|parent| entrance[parent as usize]);
        pairs.extend(above.map(|entrance| (start, entrance)));
        pairs.extend(children.of(task).iter().map(|child| (task, *child)));
    }
    pairs
}

/// Pairs of tasks that wait for joints, and of joints with what they wait for.
fn add_joint_edges(
    nodes: &[TaskNode],
    joints: &[Joint],
    entrance: &[Option<u32>],
    first: u32,
    pairs: &mut Vec<(u32, u32)>,
) {
    for (joint, at) in joints.iter().zip(first..) {
        pairs.extend(joint.tasks.iter().map(|task| (at, *task)));
        pairs.extend(joint.joints.iter().map(|before| (at, first + before)));
    }
    for (task, node) in nodes.iter().enumerate() {
        let start = entrance[task].unwrap_or(task as u32);
        pairs.extend(node.joints.iter().map(|joint| (start, first + joint)));
    }
}
