//! A list as a graph of tasks to run.

use super::block_table::BlockTable;
use super::model::{ListOptions, ListTask, TaskList};
use crate::graph::hash::NameMap;
use crate::graph::{Dependency, Joint, TaskGraph, TaskId, TaskIx, TaskNode, TaskStatus};
use descartes_text::finding::{self, Finding, Place};

impl TaskList {
    /// Whether a task is passed over, and why.
    pub fn passed_over(task: &ListTask, options: ListOptions) -> Option<String> {
        match &task.human {
            _ if task.is_done() => None,
            _ if task.optional && !options.optional => {
                Some("it is optional (--optional runs it)".to_owned())
            }
            Some(reason) if options.skip_human => Some(format!("it is for a person: {reason}")),
            _ => None,
        }
    }

    /// Why a task cannot be started, although the list has it.
    pub fn held_reason(task: &ListTask) -> Option<String> {
        match (&task.human, task.unknown.first()) {
            _ if task.is_done() || task.container => None,
            (Some(reason), _) => Some(format!(
                "it is for a person: {reason} (--skip-human passes over it)"
            )),
            (None, Some(unknown)) => Some(format!(
                "it depends on `{unknown}`, which is not in the list"
            )),
            _ => None,
        }
    }

    /// The graph of what is run. Whoever waits for a task that is passed over waits for what that one
    /// waits for.
    pub fn graph(&self, options: ListOptions) -> TaskGraph {
        let graph = RunGraph::of(self, options);
        let ids = graph.ids();
        let mut targets = Vec::with_capacity(self.tasks.len());
        let runs = self.tasks.iter().zip(&graph.vertices);
        let runs = runs.filter(|(_, vertex)| matches!(vertex, RunVertex::Task(_)));
        let nodes = runs.map(|(task, _)| graph.node(task, &ids, &mut targets));
        TaskGraph::build(nodes.collect(), &targets, graph.joints())
    }

    /// Everything that there is to say about it before it is run.
    pub fn check(&self, options: ListOptions) -> Vec<Finding> {
        let graph = self.graph(options);
        let mut findings = self.findings.clone();
        findings.extend(graph.check().iter().map(|problem| problem.finding(&graph)));
        for task in self
            .tasks
            .iter()
            .filter(|task| Self::passed_over(task, options).is_none())
        {
            if let Some(reason) = task.human.as_ref().and_then(|_| Self::held_reason(task)) {
                let message = format!("task `{}` is held: {reason}", task.id);
                findings.push(Finding::warning(Place::line(task.line), message));
            }
        }
        if self.tasks.is_empty() && !finding::has_errors(&findings) {
            let message = format!("{} with no tasks in it", self.format.describe());
            findings.push(Finding::error(Place::FILE, message));
        }
        finding::sort(&mut findings);
        findings
    }
}

/// What a task of the list is in the graph.
#[derive(Clone, Copy, Debug)]
enum RunVertex {
    /// A task, by position.
    Task(TaskIx),
    /// A joint, by position: the task is passed over.
    Joint(u32),
}

/// The graph of a list while it is made: blocks are joints, and so are tasks that are passed over.
struct RunGraph<'a> {
    list: &'a TaskList,
    /// By position in the list.
    vertices: Vec<RunVertex>,
    /// Positions of the tasks that are passed over, by id.
    passed: NameMap<&'a str, usize>,
    blocks: BlockTable<'a>,
}

impl<'a> RunGraph<'a> {
    fn of(list: &'a TaskList, options: ListOptions) -> Self {
        let blocks = BlockTable::new(list.tasks.iter().flat_map(|task| &task.blocks));
        let mut passed = NameMap::default();
        let mut next = 0;
        let mut vertices = Vec::with_capacity(list.tasks.len());
        for (at, task) in list.tasks.iter().enumerate() {
            vertices.push(match TaskList::passed_over(task, options) {
                None => {
                    next += 1;
                    RunVertex::Task(next - 1)
                }
                Some(_) => {
                    passed.insert(task.id.as_str(), at);
                    RunVertex::Joint((blocks.rows.len() + passed.len() - 1) as u32)
                }
            });
        }
        Self {
            list,
            vertices,
            passed,
            blocks,
        }
    }

    /// Blocks, then tasks that are passed over.
    fn joints(&self) -> Vec<Joint> {
        let blocks = self.blocks.rows.iter().map(|row| {
            let mut joint = Joint::default();
            joint.joints.extend(row.rows());
            for at in row.tasks {
                match self.vertices[*at as usize] {
                    RunVertex::Task(task) => joint.tasks.push(task),
                    RunVertex::Joint(other) => joint.joints.push(other),
                }
            }
            joint
        });
        let places: NameMap<&str, usize> = match self.passed.is_empty() {
            true => NameMap::default(),
            false => {
                let all = self.list.tasks.iter().enumerate();
                all.map(|(at, task)| (task.id.as_str(), at)).collect()
            }
        };
        let both = self.list.tasks.iter().zip(&self.vertices);
        let passed = both.filter(|(_, vertex)| matches!(vertex, RunVertex::Joint(_)));
        let passed = passed.map(|(task, _)| {
            let mut joint = Joint {
                joints: self.joints_of(task),
                ..Joint::default()
            };
            let known = task.depends.iter().filter_map(|on| places.get(on.as_str()));
            let known = known.map(|at| self.vertices[*at]);
            joint.tasks.extend(known.filter_map(|vertex| match vertex {
                RunVertex::Task(task) => Some(task),
                RunVertex::Joint(_) => None,
            }));
            joint
        });
        blocks.chain(passed).collect()
    }

    /// The joints that a task waits for.
    fn joints_of(&self, task: &ListTask) -> Vec<u32> {
        let blocks = task.blocks.iter();
        let blocks = blocks.filter_map(|block| self.blocks.number(block));
        let passed = task
            .depends
            .iter()
            .filter_map(|on| self.passed.get(on.as_str()));
        let passed = passed.filter_map(|at| match self.vertices[*at] {
            RunVertex::Joint(joint) => Some(joint),
            RunVertex::Task(_) => None,
        });
        blocks.chain(passed).collect()
    }

    /// The tasks that are run, by id.
    fn ids(&self) -> NameMap<&'a str, (TaskId, TaskIx)> {
        let all = self.list.tasks.iter().zip(&self.vertices);
        let mut ids = NameMap::with_capacity_and_hasher(self.vertices.len(), Default::default());
        for (task, vertex) in all {
            if let RunVertex::Task(at) = vertex {
                let id = task.id.as_str();
                ids.entry(id).or_insert_with(|| (id.into(), *at));
            }
        }
        ids
    }

    /// A task of the graph; adds the positions of what it waits for to `targets`.
    fn node(
        &self,
        task: &ListTask,
        ids: &NameMap<&str, (TaskId, TaskIx)>,
        targets: &mut Vec<Option<TaskIx>>,
    ) -> TaskNode {
        let id = |id: &str| match ids.get(id) {
            Some((id, at)) => (id.clone(), Some(*at)),
            None => (id.into(), None),
        };
        let mut node = TaskNode::new(id(&task.id).0, task.title.clone());
        node.status = match task.status {
            // Somebody else's mark: a crashed tool leaves it behind.
            TaskStatus::InProgress => TaskStatus::Pending,
            TaskStatus::Pending if TaskList::held_reason(task).is_some() => TaskStatus::Blocked,
            // What it is made of decides.
            _ if task.container => TaskStatus::Pending,
            other => other,
        };
        node.place = Place::line(task.line);
        node.priority = task.priority;
        let is_run = |id: &&str| !self.passed.contains_key(id);
        node.parent = task.parent.as_deref().filter(is_run).map(|on| id(on).0);
        node.joints = self.joints_of(task);
        let place = node.place;
        node.dependencies.reserve_exact(task.depends.len());
        for on in task.depends.iter().map(String::as_str).filter(is_run) {
            let (id, at) = id(on);
            node.dependencies.push(Dependency { id, place });
            targets.push(at);
        }
        node
    }
}
