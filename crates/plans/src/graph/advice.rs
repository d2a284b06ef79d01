//! What to write instead, where something is wrong with a graph.

use super::{Problem, TaskGraph};
use descartes_text::finding::{Finding, nearest};

impl Problem {
    /// The same as a finding, with what to write instead.
    pub fn finding(&self, graph: &TaskGraph) -> Finding {
        Finding {
            hint: self.advice(graph),
            ..Finding::new(self.severity(), self.place(), self.to_string())
        }
    }

    fn advice(&self, graph: &TaskGraph) -> Option<String> {
        let ids = || graph.nodes().iter().map(|node| node.id.as_str());
        match self {
            Self::Cycle { .. } => Some("remove one of these dependencies".to_owned()),
            Self::UnknownDependency {
                dependency: name, ..
            }
            | Self::UnknownParent { parent: name, .. } => {
                nearest(name, ids()).map(|near| format!("did you mean `{near}`?"))
            }
            Self::SelfDependency { .. } => Some("remove it".to_owned()),
            Self::DuplicateId { .. } => Some("give one of them a different id".to_owned()),
            Self::ExpandedWithoutSubtasks { .. } => {
                Some("set it to pending, or add its subtasks".to_owned())
            }
        }
    }
}
