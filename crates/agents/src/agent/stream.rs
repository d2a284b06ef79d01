//! Which parser reads an agent's output.

use std::sync::LazyLock;

use super::dialect::{JsonLines, StreamParser};
use super::jsonl::{JsonlMap, JsonlParser, PathError};
use super::{StreamKind, claude, codex, opencode, text};
use crate::built_in::built_in;

static GEMINI: LazyLock<JsonlMap> =
    LazyLock::new(|| built_in(include_str!("gemini.toml")).unwrap_or_default());

/// The parser of a stream. `jsonl` tells the field paths for [`StreamKind::Jsonl`].
pub fn parser(
    kind: StreamKind,
    jsonl: Option<&JsonlMap>,
) -> Result<Box<dyn StreamParser>, PathError> {
    Ok(match kind {
        StreamKind::Claude => Box::new(JsonLines::new(claude::Claude::default())),
        StreamKind::Codex => Box::new(JsonLines::new(codex::Codex::default())),
        StreamKind::Gemini => JsonlParser::boxed(&GEMINI)?,
        StreamKind::OpenCode => Box::new(JsonLines::new(opencode::OpenCode::default())),
        StreamKind::Jsonl => JsonlParser::boxed(&jsonl.cloned().unwrap_or_default())?,
        StreamKind::Text => Box::new(text::Text::default()),
    })
}
