//! Which parser reads an agent's output.

use super::dialect::{JsonLines, StreamParser};
use super::jsonl::{JsonlMap, JsonlParser, PathError};
use super::{StreamKind, claude, codex, gemini, opencode, text};

/// The parser of a stream. `jsonl` tells the field paths for [`StreamKind::Jsonl`].
pub fn parser(
    kind: StreamKind,
    jsonl: Option<&JsonlMap>,
) -> Result<Box<dyn StreamParser>, PathError> {
    Ok(match kind {
        StreamKind::Claude => Box::new(JsonLines::new(claude::Claude::default())),
        StreamKind::Codex => Box::new(JsonLines::new(codex::Codex::default())),
        StreamKind::Gemini => Box::new(JsonLines::new(gemini::Gemini::default())),
        StreamKind::OpenCode => Box::new(JsonLines::new(opencode::OpenCode::default())),
        StreamKind::Jsonl => JsonlParser::boxed(&jsonl.cloned().unwrap_or_default())?,
        StreamKind::Text => Box::new(text::Text::default()),
    })
}
