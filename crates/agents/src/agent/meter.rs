//! What a run has used, from what its agent told.

use super::event::{AgentEvent, UsageScope};
use super::usage::{MicroUsd, Usage};

/// Adds up what a run tells of its use, on the way and at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Meter {
    steps_usage: Usage,
    steps_cost: Option<MicroUsd>,
    run_usage: Option<Usage>,
    run_cost: Option<MicroUsd>,
}

impl Meter {
    /// Takes one event in; most tell nothing of it.
    pub fn push(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Usage {
                scope: UsageScope::Step,
                usage,
                cost,
            } => {
                self.steps_usage = self.steps_usage.plus(usage);
                if let Some(cost) = cost {
                    self.steps_cost = Some(self.steps_cost.unwrap_or_default().plus(*cost));
                }
            }
            AgentEvent::Usage {
                scope: UsageScope::Run,
                usage,
                cost,
            } => self.count_run(Some(*usage), *cost),
            AgentEvent::Result(result) => self.count_run(result.usage, result.cost),
            _ => {}
        }
    }

    fn count_run(&mut self, usage: Option<Usage>, cost: Option<MicroUsd>) {
        self.run_usage = usage.filter(|usage| !usage.is_unknown()).or(self.run_usage);
        self.run_cost = cost.or(self.run_cost);
    }

    /// Tokens: the agent's own total, else the sum of what it told on the way.
    pub fn usage(&self) -> Usage {
        self.run_usage.unwrap_or(self.steps_usage)
    }

    /// Cost, or `None` where the agent tells none.
    pub fn cost(&self) -> Option<MicroUsd> {
        self.run_cost.or(self.steps_cost)
    }
}
