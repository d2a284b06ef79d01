//! What a dry run says of a config, whatever kind of loop it is for.

use descartes_agents::agent::Permissions;
use descartes_kernel::config::IterativeLoopConfig;
use descartes_text::units::{Secs, show_usd};

use crate::view::words;

pub(super) fn gates(config: &IterativeLoopConfig) -> Vec<(&'static str, String)> {
    let row = |gate: &String| ("gate", gate.clone());
    config.verify.iter().map(row).collect()
}

pub(super) fn permissions(config: &IterativeLoopConfig) -> &'static str {
    match config.permissions {
        Permissions::Agent => "what the agent's own settings allow",
        Permissions::Edit => "edit: it may change files",
        Permissions::All => "all: it may do anything that the sandbox allows",
    }
}

/// How often, how long, for how much.
pub(super) fn limits(config: &IterativeLoopConfig) -> Vec<(&'static str, String)> {
    let none = || "no limit".to_owned();
    let time = |limit: Option<Secs>| limit.map_or_else(none, |Secs(limit)| words::seconds(limit));
    let iterations = config.max_iterations;
    vec![
        (
            "iterations",
            iterations.map_or_else(none, |limit| format!("at most {limit}")),
        ),
        ("each at most", time(config.iteration_timeout_secs)),
        ("total at most", budgets(config)),
        ("hung after", time(Some(config.idle_timeout_secs))),
    ]
}

fn budgets(config: &IterativeLoopConfig) -> String {
    let parts: Vec<String> = [
        config
            .max_duration_secs
            .map(|Secs(limit)| words::seconds(limit)),
        config.max_cost_usd.map(show_usd),
        config.max_tokens.map(words::tokens),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() {
        "no limit".to_owned()
    } else {
        parts.join(", ")
    }
}
