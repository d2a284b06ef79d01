//! The config of the loop in which one task is attempted: the task's own wishes over those of the task
//! loop, within what is left of its budgets.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Map;

use super::config::{TaskFile, TasksConfig};
use super::outcome::Gates;
use serde::{Deserialize, Serialize};

use crate::budget;
use crate::config::{ConfigChange, IterativeLoopConfig};
use crate::outcome::{Budget, IterativeExitReason};
use crate::sandbox::{LevelReason, SandboxConfig, SandboxLevel};
use crate::state::{IterativeLoopState, LoopState, Spent};
use descartes_agents::promise::PromiseMatch;
use descartes_plans::graph::{Proof, Rules};
use descartes_plans::spec::TaskText;
use descartes_text::units::Secs;

/// What an agent is to know about one task, and what holds for it alone.
#[derive(Clone, Debug, Default)]
pub struct TaskBrief {
    /// The task in words.
    pub text: TaskText,
    /// The promise, where it is the task's own.
    pub promise: Option<String>,
    /// How it must stand in the output, where the task says so.
    pub promise_match: Option<PromiseMatch>,
    /// Time for one attempt.
    pub timeout: Option<Duration>,
    /// Gates of its own and of its list, before those of the loop.
    pub gates: Vec<String>,
    /// Time for each gate.
    pub gate_timeout: Option<Duration>,
    /// Where in the tree it is worked on.
    pub cwd: Option<String>,
    /// The agent that it asks for: a profile or a command.
    pub agent: Option<String>,
    /// Agents that take over where that one is limited or failing.
    pub fallback: Vec<String>,
    /// The model that it asks for.
    pub model: Option<String>,
    /// Time for all attempts together.
    pub max_time: Option<Duration>,
    /// Dollars for all attempts together.
    pub max_cost: Option<f64>,
    /// How long its agent may be silent.
    pub idle_timeout: Option<Duration>,
    /// What its agent prints when it cannot be done.
    pub abort_promise: Option<String>,
    /// Attempts without progress before a nudge; twice as many block it.
    pub stall_after: Option<u32>,
    /// How far it is confined at least.
    pub sandbox: Option<SandboxLevel>,
    /// The heading that it stands under, in lists whose tasks have no ids of their own.
    pub under: Option<String>,
    /// The line of its commit that tells an issue tracker that it is done.
    pub trailer: Option<String>,
}

/// Gates of the tasks themselves and of their list, then those of the loop. Nothing else says which gates a
/// task has, or whether it has any.
pub fn attempt_gates(parent: &IterativeLoopConfig, briefs: &[TaskBrief]) -> Vec<String> {
    let mut gates: Vec<String> = Vec::new();
    let own = briefs.iter().flat_map(|brief| &brief.gates);
    for gate in own.chain(&parent.verify) {
        if !gates.contains(gate) {
            gates.push(gate.clone());
        }
    }
    gates
}

/// Whether each of these tasks has a gate.
pub fn gates_of_all<'a>(
    parent: &IterativeLoopConfig,
    mut briefs: impl Iterator<Item = &'a TaskBrief>,
) -> Gates {
    let has_any =
        |brief: &TaskBrief| !attempt_gates(parent, std::slice::from_ref(brief)).is_empty();
    match briefs.all(has_any) {
        true => Gates::All,
        false => Gates::NotAll,
    }
}

/// The sandbox of whatever runs the work of these tasks: the strictest that the loop or one of them asks
/// for. A task is never confined less than its loop, whatever its file says: agents can write that.
pub fn tasks_sandbox(parent: &SandboxConfig, briefs: &[TaskBrief]) -> SandboxConfig {
    let mut sandbox = parent.clone();
    let asked = briefs.iter().filter_map(|brief| brief.sandbox);
    for level in asked.filter(|level| *level != SandboxLevel::Off) {
        sandbox.ask(level, LevelReason::Task);
    }
    sandbox
}

/// What an attempt is made of.
#[derive(Clone, Debug)]
pub struct AttemptOf<'a> {
    /// The config of the task loop.
    pub parent: &'a IterativeLoopConfig,
    /// What it says about tasks.
    pub tasks: &'a TasksConfig,
    /// The tasks that the agent is given: one, or those of a wave.
    pub briefs: &'a [TaskBrief],
    /// The rules of the first of them.
    pub rules: Rules,
    /// Which attempt it is, from 1.
    pub attempt: u32,
    /// What the task loop has spent, with what its agents at work have told.
    pub spent: &'a Spent,
}

/// The config of an attempt, except for its agent, which the first of its tasks may choose.
pub fn attempt_config(
    of: &AttemptOf<'_>,
    prompt: String,
    state_file: PathBuf,
) -> IterativeLoopConfig {
    let parent = of.parent;
    let none = TaskBrief::default();
    let first = of.briefs.first().unwrap_or(&none);
    let roadmap = matches!(of.tasks.source, TaskFile::Roadmap { .. });
    let attempts = of.rules.max_attempts;
    let attempts = attempts.unwrap_or(of.tasks.max_iterations_per_task);
    let config = IterativeLoopConfig {
        completion_promise: match (roadmap, of.rules.proof) {
            (_, Proof::Exit) => None,
            (true, _) => first.promise.clone(),
            (false, _) => parent.completion_promise.clone(),
        },
        promise_match: match roadmap {
            true => {
                let how = first.promise_match.or(parent.promise_match);
                Some(how.unwrap_or(PromiseMatch::Tagged))
            }
            false => parent.promise_match,
        },
        promise_hint: Some(parent.promise_hint.unwrap_or(true)),
        verify: attempt_gates(parent, of.briefs),
        verify_timeout_secs: first.gate_timeout.map_or(parent.verify_timeout_secs, Secs),
        max_iterations: Some(attempts.max(of.attempt)),
        iteration_timeout_secs: parent.iteration_timeout_secs.or(first.timeout.map(Secs)),
        stall_after: Some(first.stall_after.or(parent.stall_after).unwrap_or(0)),
        idle_timeout_secs: first.idle_timeout.map_or(parent.idle_timeout_secs, Secs),
        abort_promise: first.abort_promise.clone().or(parent.abort_promise.clone()),
        // Failures are counted by the task loop, over all tasks.
        max_failures: u32::MAX,
        proof: Some(of.rules.proof),
        model: first.model.clone().or(parent.model.clone()),
        sandbox: tasks_sandbox(&parent.sandbox, of.briefs),
        ..parent.clone()
    };
    within(config, of.spent, prompt, state_file)
}

/// The config of the loop in which an agent is asked for one more task.
pub fn growth_config(
    parent: &IterativeLoopConfig,
    spent: &Spent,
    prompt: String,
    state_file: PathBuf,
) -> IterativeLoopConfig {
    let config = IterativeLoopConfig {
        completion_promise: None,
        verify: Vec::new(),
        max_iterations: Some(1),
        stall_after: Some(0),
        proof: Some(Proof::Exit),
        ..parent.clone()
    };
    within(config, spent, prompt, state_file)
}

/// A loop within a task loop: with what is left of its budgets, and nothing that is the whole's alone.
fn within(
    mut config: IterativeLoopConfig,
    spent: &Spent,
    prompt: String,
    state_file: PathBuf,
) -> IterativeLoopConfig {
    let left = budget::left(&config, spent).on_top_of(&Spent::default());
    config.max_duration_secs = left.max_duration_secs;
    config.max_tokens = left.max_tokens;
    config.max_cost_usd = left.max_cost_usd;
    IterativeLoopConfig {
        prompt,
        prompt_file: None,
        state_file: Some(state_file),
        spec_files: Vec::new(),
        spec_prefix: None,
        git: Default::default(),
        tasks: None,
        extra: Map::new(),
        ..config
    }
}

/// Limits of a task's own for all its attempts together, beside those of the whole loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnLimits {
    pub time: Option<Duration>,
    pub cost: Option<f64>,
}

impl OwnLimits {
    /// The tighter of a limit of the whole and the task's own.
    pub fn tighten(&self, time: &mut Option<Secs>, cost: &mut Option<f64>) {
        if let Some(own) = self.time {
            *time = Some(Secs(time.map_or(own, |whole| whole.0.min(own))));
        }
        if let Some(own) = self.cost {
            *cost = Some(cost.map_or(own, |whole| whole.min(own)));
        }
    }

    /// Whether a budget that was used up is the task's alone.
    pub fn is_limit(&self, reason: &IterativeExitReason) -> bool {
        let IterativeExitReason::BudgetExhausted { budget, limit, .. } = reason else {
            return false;
        };
        let own = match budget {
            Budget::Duration => self.time.map(|time| time.as_secs_f64()),
            Budget::Cost => self.cost,
            Budget::Tokens => None,
        };
        own.is_some_and(|own| own <= *limit)
    }
}

/// What changes in the loop of a task, as `before` tells of it, for its next attempt. Budgets are the
/// task loop's: what is left of them stands in `config`, and comes on top of what this task used.
pub fn attempt_change(
    config: &IterativeLoopConfig,
    own: &OwnLimits,
    before: Option<&IterativeLoopState>,
) -> ConfigChange {
    let spent = before.and_then(|state| state.spent).unwrap_or_default();
    let budgets = budget::left(config, &Spent::default()).on_top_of(&spent);
    let mut change = ConfigChange {
        max_iterations: Some(config.max_iterations),
        max_duration_secs: budgets.max_duration_secs,
        max_tokens: budgets.max_tokens,
        max_cost_usd: budgets.max_cost_usd,
        prompt: Some(config.prompt.clone()),
        verify: Some(config.verify.clone()),
        model: config.model.clone(),
        iteration_timeout_secs: config.iteration_timeout_secs,
        idle_timeout_secs: Some(config.idle_timeout_secs),
        verify_timeout_secs: Some(config.verify_timeout_secs),
        stall_after: config.stall_after,
        ..ConfigChange::default()
    };
    own.tighten(&mut change.max_duration_secs, &mut change.max_cost_usd);
    if let Some(before) = before.map(|state| &state.config) {
        // The task loop may have been resumed with another agent, or other rights for it.
        let permissions = Some(config.permissions);
        change.permissions = permissions.filter(|now| *now != before.permissions);
        change.prompt_mode = config.backend.prompt_mode;
        let agent = Some(config.agent()).filter(|now| *now != before.agent());
        change.agent = agent.map(Box::new);
        // Or in another sandbox. One that an attempt found for itself stays, and so does what the profile of
        // its agent asks for beyond this.
        let level = config.sandbox.level;
        let by_profile = matches!(before.sandbox.why, Some(LevelReason::Profile(_)));
        let is_kept = level == before.sandbox.level || (by_profile && level < before.sandbox.level);
        change.sandbox = level.filter(|_| !is_kept);
        let why = config.sandbox.why.clone();
        change.sandbox_why = why.filter(|_| change.sandbox.is_some());
        let new = |now: &[PathBuf], before: &[PathBuf]| {
            let new = now.iter().filter(|path| !before.contains(path));
            new.cloned().collect()
        };
        change.sandbox_write = new(&config.sandbox.write, &before.sandbox.write);
        change.sandbox_read = new(&config.sandbox.read, &before.sandbox.read);
    }
    change
}

/// What would stop every other attempt as well as the one that this loop was: a wrong login, an agent
/// that cannot be started, a budget of the whole.
pub fn ends_all_tasks(state: &LoopState, own: &OwnLimits) -> Option<IterativeExitReason> {
    match state.exit_reason() {
        reason if own.is_limit(&reason) => None,
        reason @ (IterativeExitReason::Error { .. }
        | IterativeExitReason::BudgetExhausted { .. }) => Some(reason),
        reason @ IterativeExitReason::AgentFailed { .. } if state.agents.fatal.is_some() => {
            Some(reason)
        }
        _ => None,
    }
}
