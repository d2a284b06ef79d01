//! An answer before it is put into a vendor's words, and the frames of a stream after.

use serde_json::Value;

use super::script::{Fault, Turn, Usage};

/// A tool call that the model makes.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) args: Value,
}

impl Call {
    /// The arguments as JSON text.
    pub(super) fn arguments(&self) -> String {
        self.args.to_string()
    }
}

/// What the model answers.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub(super) number: u64,
    pub(super) model: String,
    pub(super) thinking: Option<String>,
    pub(super) text: Option<String>,
    pub(super) calls: Vec<Call>,
    pub(super) usage: Usage,
    stop: Option<String>,
    chunk: usize,
}

impl Reply {
    pub(super) fn new(turn: &Turn, calls: Vec<Call>, model: &str, number: u64) -> Self {
        let is_empty = turn.fault == Some(Fault::Empty);
        let breaks = matches!(
            turn.fault,
            Some(Fault::Cut | Fault::Stall | Fault::StreamError)
        );
        let partial = || breaks.then(|| "a partial answer that never completes".to_owned());
        Self {
            number,
            model: model.to_owned(),
            thinking: turn.thinking.clone().filter(|_| !is_empty),
            text: turn.text.clone().or_else(partial).filter(|_| !is_empty),
            calls: if is_empty { Vec::new() } else { calls },
            usage: turn.usage,
            stop: turn.stop.clone(),
            chunk: turn.chunk.unwrap_or(20).max(1),
        }
    }

    /// The reason to stop: the script's, else the one for tool calls, else the usual one.
    pub(super) fn stop<'a>(
        &'a self,
        max_tokens: &'a str,
        tools: &'a str,
        usual: &'a str,
    ) -> &'a str {
        match self.stop.as_deref() {
            Some("max_tokens") => max_tokens,
            Some(other) => other,
            None if self.calls.is_empty() => usual,
            None => tools,
        }
    }

    /// True when the script stopped the model for want of tokens.
    pub(super) fn is_cut_short(&self) -> bool {
        self.stop.as_deref() == Some("max_tokens")
    }

    /// A text in the pieces in which it is streamed.
    pub(super) fn pieces(&self, text: &str) -> Vec<String> {
        let characters: Vec<char> = text.chars().collect();
        characters
            .chunks(self.chunk)
            .map(|piece| piece.iter().collect())
            .collect()
    }
}

/// One event of a stream.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    name: Option<&'static str>,
    data: String,
    /// True for a piece of the answer, false for what surrounds it.
    pub(super) is_piece: bool,
}

impl Frame {
    /// An event with a name.
    pub(super) fn named(name: &'static str, data: &Value) -> Self {
        Self {
            name: Some(name),
            data: data.to_string(),
            is_piece: false,
        }
    }

    /// An event without a name.
    pub(super) fn plain(data: &Value) -> Self {
        Self {
            name: None,
            data: data.to_string(),
            is_piece: false,
        }
    }

    /// The mark by which OpenAI's chat streams end.
    pub(super) fn done() -> Self {
        Self {
            name: None,
            data: "[DONE]".into(),
            is_piece: false,
        }
    }

    /// The same event as a piece of the answer.
    pub(super) fn piece(self) -> Self {
        Self {
            is_piece: true,
            ..self
        }
    }

    /// The bytes on the wire.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let name = self
            .name
            .map(|name| format!("event: {name}\n"))
            .unwrap_or_default();
        format!("{name}data: {}\n\n", self.data).into_bytes()
    }
}
