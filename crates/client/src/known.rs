//! What is known of agents.

use std::sync::Arc;

use descartes_agents::agent::Profiles;
use descartes_agents::price::Prices;

/// What is known of agents: needed to read what they said and what it cost.
#[derive(Clone, Debug)]
pub struct Known {
    /// Agents, built-in ones and the user's.
    pub profiles: Arc<Profiles>,
    /// Prices for agents that tell tokens only.
    pub prices: Arc<Prices>,
}

impl Known {
    /// The built-in agents, no prices.
    pub fn builtin() -> Self {
        Self {
            profiles: Arc::new(Profiles::builtin()),
            prices: Arc::default(),
        }
    }
}
