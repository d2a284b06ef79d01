//! Streaming search for the completion promise.

use serde::{Deserialize, Serialize};

/// How the promise must stand in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromiseMatch {
    /// Only `<promise>TEXT</promise>`.
    Tagged,
    /// Also TEXT alone on a line.
    Line,
    /// Also TEXT as whole words in a line.
    Anywhere,
}
