//! What a loop has used.

use descartes_agents::run::Cost;
use serde::{Deserialize, Serialize};

/// What a loop has used so far. Unknown stays unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// Time of agents and gates.
    pub ms: u64,
    /// Tokens, as far as told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Millionths of a dollar, as far as told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// Whether a part of the cost is from a price table.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl Spent {
    /// The cost, as a whole.
    pub fn cost(&self) -> Option<Cost> {
        self.cost_micros.map(|micros| Cost {
            micros,
            estimated: self.estimated,
        })
    }

    /// The sum; what neither side knows stays unknown.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let add = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (known, None) | (None, known) => known,
        };
        Self {
            ms: self.ms.saturating_add(other.ms),
            tokens: add(self.tokens, other.tokens),
            cost_micros: add(self.cost_micros, other.cost_micros),
            estimated: self.estimated || other.estimated,
        }
    }

    /// What was used since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let less = |new: Option<u64>, old: Option<u64>| {
            new.map(|new| new.saturating_sub(old.unwrap_or(0)))
        };
        Self {
            ms: self.ms.saturating_sub(before.ms),
            tokens: less(self.tokens, before.tokens),
            cost_micros: less(self.cost_micros, before.cost_micros),
            estimated: self.estimated,
        }
    }
}
