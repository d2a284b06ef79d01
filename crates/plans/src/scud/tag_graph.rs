//! The graph of a tag, by the rules of readiness that descartes keeps.
//!
//! A dependency is looked for in its own tag first; `tag:id` names a task of another tag; a bare
//! id is never matched in another tag. Only done counts as done: an expanded task is done when
//! all its subtasks are.

use super::model::{ScudFile, ScudTag, ScudTask};
use crate::graph::hash::NameMap;
use crate::graph::{Dependency, Origin, Problem, TaskGraph, TaskId, TaskIx, TaskNode, TaskStatus};
use descartes_text::finding::{self, Finding, Place};

impl ScudFile {
    /// The graph of a tag; `None` where there is no such tag.
    pub fn graph(&self, tag: &str) -> Option<TaskGraph> {
        let tag = self.tag(tag)?;
        let mut nodes: Vec<TaskNode> = tag.tasks.iter().map(node_of).collect();
        let ids: Vec<TaskId> = nodes.iter().map(|node| node.id.clone()).collect();
        let mut own: NameMap<&str, TaskIx> = NameMap::default();
        for (task, id) in ids.iter().enumerate() {
            own.entry(id.as_str()).or_insert(task as TaskIx);
        }
        let mut others = Others {
            file: self,
            tag,
            index: None,
            known: NameMap::default(),
            nodes: Vec::new(),
        };
        let mut targets = Vec::new();
        for (task, node) in tag.tasks.iter().zip(&mut nodes) {
            node.dependencies.reserve_exact(task.dependencies.len());
            for dependency in &task.dependencies {
                let target = own.get(dependency.id.as_str()).copied();
                let id = match target {
                    Some(task) => ids[task as usize].clone(),
                    None => others.resolve(&dependency.id, |id| {
                        own.get(id).map(|task| ids[*task as usize].clone())
                    }),
                };
                targets.push(target);
                let place = Place::line(dependency.line);
                node.dependencies.push(Dependency { id, place });
            }
        }
        nodes.extend(others.nodes);
        Some(TaskGraph::resolved(nodes, &targets))
    }

    /// Everything that there is to say about a tag before it is run: what is odd in the file, what
    /// is wrong with the graph, in the order of the file.
    pub fn check(&self, tag: &str) -> Vec<Finding> {
        self.checked(tag).0
    }

    /// The findings of [`ScudFile::check`], and the graph that was looked at.
    pub fn checked(&self, tag: &str) -> (Vec<Finding>, Option<TaskGraph>) {
        let Some((part, graph)) = self.tag(tag).zip(self.graph(tag)) else {
            return (vec![self.unknown_tag(tag)], None);
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
        (findings, Some(graph))
    }

    fn unknown_tag(&self, tag: &str) -> Finding {
        let names: Vec<&str> = self.tag_names().collect();
        let finding = Finding::error(Place::FILE, format!("there is no tag `{tag}`"));
        match names.as_slice() {
            [] => finding.hint(format!(
                "the file has no tags; one begins with the lines `# Phase: {tag}` and `@nodes`, then a line for each \
                 task: `1 | First task | P | 3 | M`"
            )),
            names => finding.hint(format!("known tags: {}", names.join(", "))),
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
                "to refer to the one in tag `{0}`, write `{0}:{id}`",
                other.name
            )),
            None => finding,
        }
    }
}

/// Tasks of other tags, as far as a tag waits for them.
struct Others<'a> {
    file: &'a ScudFile,
    tag: &'a ScudTag,
    /// Made when a tag names another one: most never do.
    index: Option<TaskLookup<'a>>,
    known: NameMap<&'a str, TaskId>,
    nodes: Vec<TaskNode>,
}

impl<'a> Others<'a> {
    /// The task that is meant by an id which is none of the tag's own.
    fn resolve(&mut self, id: &'a str, own: impl Fn(&str) -> Option<TaskId>) -> TaskId {
        if let Some(known) = self.known.get(id) {
            return known.clone();
        }
        let index = self.index.get_or_insert_with(|| TaskLookup::new(self.file));
        for (at, _) in id.match_indices(':') {
            let (name, local) = (&id[..at], &id[at + 1..]);
            if let Some(own) = own(local).filter(|_| name == self.tag.name) {
                return own;
            }
            if let Some(task) = index.find(name, local) {
                let mut node = TaskNode::new(id, task.title.clone());
                node.origin = Origin::Foreign;
                node.place = Place::line(task.line);
                let done = index.is_satisfied(name, task, 0);
                node.status = if done { TaskStatus::Done } else { task.status };
                self.known.insert(id, node.id.clone());
                self.nodes.push(node);
                break;
            }
        }
        self.known
            .get(id)
            .cloned()
            .unwrap_or_else(|| TaskId::from(id))
    }
}

/// All tasks of a file by tag and id.
struct TaskLookup<'a> {
    tags: NameMap<&'a str, NameMap<&'a str, &'a ScudTask>>,
}

impl<'a> TaskLookup<'a> {
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
            "task `{}` is {} and has subtasks: only the subtasks are worked on",
            task.id, task.status
        );
        Finding::note(Place::line(task.line), message)
            .hint("set it to expanded (X) so that SCUD offers them too")
    })
}
