//! The graph of a tag, by the rules of readiness that descartes keeps.
//!
//! A dependency is looked for in its own tag first; `tag:id` names a task of another tag; a bare
//! id is never matched in another tag. Only done counts as done: an expanded task is done when
//! all its subtasks are.

use super::model::{ScudFile, ScudTag, ScudTask};
use crate::finding::{self, Finding, Place};
use crate::graph::hash::{NameMap, NameSet};
use crate::graph::{Dependency, Origin, Problem, TaskGraph, TaskNode, TaskStatus};

impl ScudFile {
    /// The graph of a tag; `None` where there is no such tag.
    pub fn graph(&self, tag: &str) -> Option<TaskGraph> {
        let tag = self.tag(tag)?;
        let index = Index::new(self);
        let mut foreign: Vec<TaskNode> = Vec::new();
        let mut known: NameSet<String> = NameSet::default();
        let mut nodes: Vec<TaskNode> = Vec::with_capacity(tag.tasks.len());
        for task in &tag.tasks {
            let mut node = node_of(task);
            for dependency in &task.dependencies {
                let place = Place::line(dependency.line);
                let id = match index.resolve(tag, &dependency.id) {
                    Target::Own(id) => id,
                    Target::Foreign(node) => {
                        let id = node.id.to_string();
                        if known.insert(id.clone()) {
                            foreign.push(*node);
                        }
                        id
                    }
                };
                node.dependencies.push(Dependency {
                    id: id.into(),
                    place,
                });
            }
            nodes.push(node);
        }
        nodes.extend(foreign);
        Some(TaskGraph::new(nodes))
    }

    /// Everything that there is to say about a tag before it is run: what is odd in the file, what
    /// is wrong with the graph, in the order of the file.
    pub fn check(&self, tag: &str) -> Vec<Finding> {
        let Some((part, graph)) = self.tag(tag).zip(self.graph(tag)) else {
            return vec![self.unknown_tag(tag)];
        };
        let mut findings: Vec<Finding> = self.findings_of(part).cloned().collect();
        findings.extend(graph.check().iter().map(|problem| {
            let finding = problem.finding(&graph);
            match problem {
                Problem::UnknownDependency { dependency, .. } => {
                    self.offer_other_tag(part, dependency, finding)
                }
                _ => finding,
            }
        }));
        findings.extend(part.tasks.iter().filter_map(unexpanded));
        if part.tasks.is_empty() {
            findings.push(Finding::error(
                Place::line(part.line),
                format!("the tag `{tag}` has no tasks"),
            ));
        }
        if part.is_pipeline {
            let message =
                format!("the tag `{tag}` is a pipeline: its edges are steps, not dependencies");
            findings.push(Finding::error(Place::line(part.line), message).hint("run it with scud"));
        }
        finding::sort(&mut findings);
        findings
    }

    fn unknown_tag(&self, tag: &str) -> Finding {
        let names: Vec<&str> = self.tag_names().collect();
        let finding = Finding::error(Place::FILE, format!("there is no tag `{tag}`"));
        match names.as_slice() {
            [] => finding.hint("the file has no tags"),
            names => finding.hint(format!("there are: {}", names.join(", "))),
        }
    }

    /// Findings on the lines of this tag, and those about the file as a whole.
    fn findings_of<'a>(&'a self, tag: &ScudTag) -> impl Iterator<Item = &'a Finding> {
        let start = tag.line.saturating_sub(1);
        let end = self
            .tags
            .iter()
            .map(|other| other.line)
            .filter(|line| *line > tag.line)
            .min();
        let end = end.map_or(u32::MAX, |line| line.saturating_sub(1));
        self.findings
            .iter()
            .filter(move |finding| finding.line <= 1 || (start..end).contains(&finding.line))
    }

    /// A bare id that another tag has is not meant by itself, but may be what the author meant.
    fn offer_other_tag(&self, tag: &ScudTag, id: &str, finding: Finding) -> Finding {
        let other = self
            .tags
            .iter()
            .find(|other| other.name != tag.name && other.task(id).is_some());
        match other {
            Some(other) => finding.hint(format!(
                "for the one of tag `{0}` write `{0}:{id}`",
                other.name
            )),
            None => finding,
        }
    }
}

/// All tasks of a file by tag and id.
struct Index<'a> {
    tags: NameMap<&'a str, NameMap<&'a str, &'a ScudTask>>,
}

impl<'a> Index<'a> {
    fn new(file: &'a ScudFile) -> Self {
        let tasks = |tag: &'a ScudTag| {
            tag.tasks
                .iter()
                .map(|task| (task.id.as_str(), task))
                .collect()
        };
        Self {
            tags: file
                .tags
                .iter()
                .map(|tag| (tag.name.as_str(), tasks(tag)))
                .collect(),
        }
    }

    fn find(&self, tag: &str, id: &str) -> Option<&'a ScudTask> {
        self.tags.get(tag)?.get(id).copied()
    }

    fn resolve(&self, tag: &ScudTag, id: &str) -> Target {
        if self.find(&tag.name, id).is_some() {
            return Target::Own(id.to_owned());
        }
        for (at, _) in id.match_indices(':') {
            let (name, local) = (&id[..at], &id[at + 1..]);
            let Some(task) = self.find(name, local) else {
                continue;
            };
            if name == tag.name {
                return Target::Own(local.to_owned());
            }
            let mut node = TaskNode::new(id, task.title.clone());
            node.origin = Origin::Foreign;
            node.place = Place::line(task.line);
            let done = self.is_satisfied(name, task, 0);
            node.status = if done { TaskStatus::Done } else { task.status };
            return Target::Foreign(Box::new(node));
        }
        Target::Own(id.to_owned())
    }

    /// Done, or expanded with all subtasks satisfied; deep families are cut off, as a ring is.
    fn is_satisfied(&self, tag: &str, task: &ScudTask, depth: u32) -> bool {
        let part_done = |part: &String| {
            self.find(tag, part)
                .is_some_and(|part| self.is_satisfied(tag, part, depth + 1))
        };
        match task.status {
            TaskStatus::Done => true,
            TaskStatus::Expanded if depth < 16 && !task.subtasks.is_empty() => {
                task.subtasks.iter().all(part_done)
            }
            _ => false,
        }
    }
}

enum Target {
    /// A task of this tag, or one that is nowhere.
    Own(String),
    Foreign(Box<TaskNode>),
}

fn node_of(task: &ScudTask) -> TaskNode {
    let mut node = TaskNode::new(task.id.as_str(), task.title.clone());
    node.status = task.status;
    node.priority = task.priority;
    node.weight = task.complexity;
    node.parent = task.parent.as_deref().map(Into::into);
    node.place = Place::line(task.line);
    node
}

fn unexpanded(task: &ScudTask) -> Option<Finding> {
    let open = matches!(task.status, TaskStatus::Pending | TaskStatus::InProgress);
    (open && !task.subtasks.is_empty()).then(|| {
        let message = format!(
            "task `{}` is {} and has subtasks: they are the work",
            task.id, task.status
        );
        Finding::note(Place::line(task.line), message)
            .hint("SCUD offers them when it is expanded (X)")
    })
}
