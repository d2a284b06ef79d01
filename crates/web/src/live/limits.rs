//! The limits of a loop, as the form that changes them shows them.

use descartes_kernel::config::IterativeLoopConfig;
use descartes_views::words;

/// The name of its field, what it is called, and how it stands.
pub type ShownLimit = (&'static str, &'static str, String);

/// What can be changed, and how it stands.
pub fn limits(config: &IterativeLoopConfig) -> Vec<ShownLimit> {
    let time = |limit: Option<descartes_text::units::Secs>| {
        limit.map_or_else(|| "none".to_owned(), |limit| words::seconds(limit.0))
    };
    let number = |limit: Option<String>| limit.unwrap_or_else(|| "none".to_owned());
    let iterations = config.max_iterations.map(|most| most.to_string());
    vec![
        (
            "max_iterations",
            "iterations",
            iterations.unwrap_or_else(|| "unlimited".to_owned()),
        ),
        (
            "max_cost",
            "cost in $",
            number(config.max_cost_usd.map(|usd| format!("{usd:.2}"))),
        ),
        (
            "max_tokens",
            "tokens",
            number(config.max_tokens.map(|most| most.to_string())),
        ),
        (
            "max_duration",
            "time in all",
            time(config.max_duration_secs),
        ),
        (
            "timeout",
            "time of an iteration",
            time(config.iteration_timeout_secs),
        ),
        (
            "idle_timeout",
            "time without output",
            time(Some(config.idle_timeout_secs)),
        ),
        (
            "max_failures",
            "failures in a row",
            config.max_failures.to_string(),
        ),
        (
            "stall_after",
            "iterations without progress",
            config
                .stall_after
                .map_or_else(|| "as the agent's".to_owned(), |most| most.to_string()),
        ),
    ]
}
