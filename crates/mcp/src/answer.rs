//! What a call comes to: JSON for the model, or why not and what to do next.

use descartes_client::ClientError;
use descartes_text::display::{self, Colours};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

/// Why a call was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFailure {
    pub message: String,
    /// What to do instead; may be empty.
    pub hint: String,
}

impl ToolFailure {
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: hint.into(),
        }
    }
}

impl From<ClientError> for ToolFailure {
    fn from(error: ClientError) -> Self {
        Self::new(error.to_string(), error.hint().unwrap_or_default())
    }
}

/// What a call comes to, as a message of the protocol. Failures are results, too: a model reads them
/// and corrects its call, while errors of the protocol are kept from it by some clients.
pub fn of(outcome: Result<Value, ToolFailure>) -> CallToolResult {
    match outcome {
        Ok(value) => told(value, false),
        Err(failure) => told(
            json!({
                "error": display::one_line(&failure.message),
                "hint": display::one_line(&failure.hint),
            }),
            true,
        ),
    }
}

/// The same with secrets masked in every text: whatever is told here goes to the provider of a model.
fn masked(value: Value) -> Value {
    match value {
        Value::String(text) => display::text(&text, Colours::Drop).into(),
        Value::Array(all) => all.into_iter().map(masked).collect(),
        Value::Object(all) => {
            let all = all.into_iter().map(|(key, value)| (key, masked(value)));
            Value::Object(all.collect())
        }
        other => other,
    }
}

/// As text for clients that know nothing else, and structured for those that do.
fn told(value: Value, failed: bool) -> CallToolResult {
    let value = masked(value);
    let text = display::escape_json(&value.to_string());
    let mut result = match failed {
        false => CallToolResult::success(vec![ContentBlock::text(text)]),
        true => CallToolResult::error(vec![ContentBlock::text(text)]),
    };
    result.structured_content = Some(value);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_everything_else_stays() {
        let key = format!("sk-ant-api03-{}", "Ab3".repeat(12));
        let value = json!({
            "loop_id": "0192f6a0-1111-7000-8000-000000000000",
            "path": "/home/ann/p/.descartes/loop-state.json",
            "lines": ["a\tb\n", format!("export ANTHROPIC_API_KEY={key}")],
            "number": 7, "none": null,
        });
        let told = masked(value.clone());
        assert!(!told.to_string().contains(&key), "{told}");
        for same in ["loop_id", "path", "number", "none"] {
            assert_eq!(told[same], value[same]);
        }
        assert_eq!(told["lines"][0], value["lines"][0]);
    }

    #[test]
    fn a_failure_is_a_result_that_a_model_can_read() {
        let result = of(Err(ToolFailure::new("no such loop", "call `list`")));
        assert_eq!(result.is_error, Some(true));
        let told = result.structured_content.unwrap();
        assert_eq!(
            told,
            json!({ "error": "no such loop", "hint": "call `list`" })
        );
    }
}
