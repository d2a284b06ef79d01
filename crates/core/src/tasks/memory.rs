//! Tasks that live nowhere but in memory: for measures and for programs that make them up.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use descartes_plans::graph::{TaskGraph, TaskId, TaskNode, TaskStatus};
use descartes_plans::spec::TaskText;

use super::source::{Claim, Keeps, Loaded, SourceError, TaskBrief, TaskSource};

/// Tasks in memory; copies share their statuses.
#[derive(Clone, Debug)]
pub struct MemorySource {
    nodes: Arc<Mutex<Vec<TaskNode>>>,
}

impl MemorySource {
    /// These tasks.
    pub fn new(nodes: Vec<TaskNode>) -> Self {
        Self {
            nodes: Arc::new(Mutex::new(nodes)),
        }
    }

    /// The status of every task.
    pub fn statuses(&self) -> Vec<(TaskId, TaskStatus)> {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes
            .iter()
            .map(|node| (node.id.clone(), node.status))
            .collect()
    }
}

impl TaskSource for MemorySource {
    fn load(&mut self) -> Result<Loaded, SourceError> {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let briefs: HashMap<TaskId, TaskBrief> = nodes
            .iter()
            .map(|node| {
                let text = TaskText {
                    id: node.id.to_string(),
                    title: node.title.clone(),
                    ..TaskText::default()
                };
                let brief = TaskBrief {
                    text,
                    ..TaskBrief::default()
                };
                (node.id.clone(), brief)
            })
            .collect();
        let plan = TaskGraph::new(nodes.clone()).plan().map_err(|problems| {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            SourceError::Content {
                path: PathBuf::from("memory"),
                message: lines.join("\n  "),
                hint: "fix the graph".to_owned(),
            }
        })?;
        Ok(Loaded {
            plan,
            briefs,
            guidance: Vec::new(),
            findings: Vec::new(),
        })
    }

    fn news(&mut self) -> Result<Option<Loaded>, SourceError> {
        Ok(None)
    }

    fn claim(&mut self, task: &TaskId) -> Result<Claim, SourceError> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let node = nodes.iter_mut().find(|node| node.id == *task);
        match node {
            Some(node) if matches!(node.status, TaskStatus::Pending | TaskStatus::InProgress) => {
                node.status = TaskStatus::InProgress;
                Ok(Claim::Taken)
            }
            Some(node) => Ok(Claim::Found(node.status)),
            None => Ok(Claim::Found(TaskStatus::Cancelled)),
        }
    }

    fn set(&mut self, task: &TaskId, status: TaskStatus) -> Result<(), SourceError> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(node) = nodes.iter_mut().find(|node| node.id == *task) {
            node.status = status;
        }
        Ok(())
    }

    fn reopen(&mut self, task: &TaskId) -> Result<(), SourceError> {
        self.set(task, TaskStatus::Pending)
    }

    fn forget(&mut self) {}

    fn keeps(&self) -> Keeps {
        Keeps::Every
    }

    fn shielded(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}
