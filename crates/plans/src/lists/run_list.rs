//! A list as a graph of tasks to run.

use std::collections::HashMap;

use super::model::{ListOptions, ListTask, TaskList};
use crate::graph::{Dependency, TaskGraph, TaskNode, TaskStatus};
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
        let passed: HashMap<&str, &ListTask> = {
            let all = self.tasks.iter();
            let passed = all.filter(|task| Self::passed_over(task, options).is_some());
            passed.map(|task| (task.id.as_str(), task)).collect()
        };
        let runs = self.tasks.iter();
        let runs = runs.filter(|task| !passed.contains_key(task.id.as_str()));
        TaskGraph::new(runs.map(|task| node(task, &passed)).collect())
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

fn node(task: &ListTask, passed: &HashMap<&str, &ListTask>) -> TaskNode {
    let mut node = TaskNode::new(task.id.as_str(), task.title.clone());
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
    let parent = task.parent.as_deref();
    node.parent = parent
        .filter(|parent| !passed.contains_key(parent))
        .map(Into::into);
    let mut depends: Vec<&str> = Vec::new();
    let mut open: Vec<&str> = task.depends.iter().rev().map(String::as_str).collect();
    let mut steps = 0;
    while let Some(on) = open.pop() {
        steps += 1;
        match passed.get(on) {
            Some(other) if steps < 100_000 => {
                open.extend(other.depends.iter().rev().map(String::as_str));
            }
            Some(_) => {}
            None if !depends.contains(&on) => depends.push(on),
            None => {}
        }
    }
    let place = node.place;
    let depends = depends.into_iter().map(|on| Dependency {
        id: on.into(),
        place,
    });
    node.dependencies = depends.collect();
    node
}
