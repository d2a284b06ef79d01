//! Tokens, in the spellings of claude and of those that took its stream over.

use crate::agent::json::JsonValue;
use crate::agent::usage::Usage;

/// Qwen counts what came from a cache as input too, which shows in its total.
pub(super) fn tokens(of: &JsonValue<'_>) -> Usage {
    let first = |names: &[&str]| names.iter().find_map(|name| of[*name].count());
    let input = first(&["input_tokens", "inputTokens"]);
    let output = first(&["output_tokens", "outputTokens"]);
    let cache_read = first(&[
        "cache_read_input_tokens",
        "cacheReadInputTokens",
        "cacheReadTokens",
    ]);
    let all = input.zip(output).map(|(input, output)| input + output);
    let included = match all.is_some() && all == of["total_tokens"].count() {
        true => cache_read.unwrap_or(0),
        false => 0,
    };
    Usage {
        input: input.map(|all| all.saturating_sub(included)),
        output,
        cache_read,
        cache_write: first(&[
            "cache_creation_input_tokens",
            "cacheCreationInputTokens",
            "cacheWriteTokens",
        ]),
        reasoning: None,
    }
}
