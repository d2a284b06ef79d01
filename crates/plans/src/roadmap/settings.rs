//! What holds for a task once its own words, the file's and the defaults are put together.

use std::time::Duration;

use super::model::{Roadmap, RoadmapTask};
use crate::graph::{Proof, Rules, TaskGraph};

/// What holds where the file does not say: `--ralph-default-iterations` and its like.
#[derive(Clone, Debug, PartialEq)]
pub struct Defaults {
    /// Attempts of a looping task.
    pub iterations: u32,
    /// The promise of a looping task.
    pub promise: String,
    /// Time for one attempt.
    pub timeout: Duration,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            iterations: 30,
            promise: "COMPLETE".to_owned(),
            timeout: Duration::from_secs(30 * 60),
        }
    }
}

/// What holds for one task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSettings {
    /// The promise that it loops until; `None` for a task that is done when its agent ends well
    /// and its gates are green.
    pub promise: Option<String>,
    /// At most so many attempts.
    pub max_attempts: u32,
    /// Time for one attempt.
    pub timeout: Duration,
    /// Gates, in order.
    pub gates: Vec<String>,
    /// Where it is worked on.
    pub cwd: Option<String>,
}

impl Roadmap {
    /// What holds for a task.
    pub fn settings(&self, task: &RoadmapTask, defaults: &Defaults) -> TaskSettings {
        let keys = &task.keys;
        // A promise that is named is waited for, unless the file says not to.
        let loops = keys.ralph.unwrap_or(keys.completion_promise.is_some());
        let promise = keys
            .completion_promise
            .clone()
            .unwrap_or_else(|| defaults.promise.clone());
        let retries = keys.retries.or(self.constraints.retries).unwrap_or(0);
        let max_attempts = match (keys.max_iterations, loops) {
            (Some(iterations), _) => iterations,
            (None, true) => defaults.iterations,
            (None, false) => retries.saturating_add(1),
        };
        TaskSettings {
            promise: loops.then_some(promise),
            max_attempts: max_attempts.max(1),
            timeout: keys
                .timeout
                .or(self.constraints.max_time)
                .unwrap_or(defaults.timeout),
            gates: gates(task),
            cwd: keys.cwd.clone().or_else(|| self.constraints.cwd.clone()),
        }
    }

    /// The graph of the tasks, each with the rules that hold for it.
    pub fn graph_with(&self, defaults: &Defaults) -> TaskGraph {
        let mut nodes = self.graph().nodes().to_vec();
        for (node, task) in nodes.iter_mut().zip(&self.tasks) {
            let settings = self.settings(task, defaults);
            let proof = if settings.promise.is_some() {
                Proof::Promise
            } else {
                Proof::Exit
            };
            let on_fail = task.keys.on_fail.unwrap_or_default();
            node.rules = Rules {
                max_attempts: Some(settings.max_attempts),
                proof,
                on_fail,
            };
        }
        TaskGraph::new(nodes)
    }
}

/// The commands of `check:`, and the tests where `require_tests` asks for them.
fn gates(task: &RoadmapTask) -> Vec<String> {
    let mut gates = task.keys.check.clone();
    if task.keys.require_tests == Some(true) {
        let path = task.keys.test_path.as_deref().unwrap_or("tests");
        gates.push(format!("pytest {}", shell_words::quote(path)));
    }
    gates
}
