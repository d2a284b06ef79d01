//! One field that differs between two configs, for a person.

use serde::{Deserialize, Serialize};

/// Characters of a value that are shown.
const SHOWN: usize = 100;

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldChange {
    /// Its name, as it stands in the state file: `verify`, `backend.prompt_mode`.
    pub field: String,
    /// What it was.
    pub from: String,
    pub to: String,
}

impl FieldChange {
    /// A change of something that is no field of the config; values are shortened.
    pub(crate) fn new(field: &str, from: &str, to: &str) -> Self {
        Self {
            field: field.to_owned(),
            from: cut(from.to_owned()),
            to: cut(to.to_owned()),
        }
    }

    /// For a person: `verify: ["make test"] -> ["true"]`.
    pub fn describe(&self) -> String {
        format!("{}: {} -> {}", self.field, self.from, self.to)
    }
}

/// At most so many characters as are shown of a value.
pub(crate) fn cut(text: String) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Fields of which less is tighter.
const LIMITS: [&str; 11] = [
    "max_iterations",
    "max_duration_secs",
    "max_cost_usd",
    "max_tokens",
    "iteration_timeout_secs",
    "idle_timeout_secs",
    "max_failures",
    "max_log_bytes",
    "verify_timeout_secs",
    "max_spec_tokens",
    "stall_after",
];

/// Whether it is a field of which less is tighter.
pub(crate) fn is_limit(field: &str) -> bool {
    LIMITS.contains(&field)
}
