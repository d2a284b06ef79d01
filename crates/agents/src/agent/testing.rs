//! What the tests of all parsers share.

use super::{AgentEvent, Piece, RunSummary, StreamKind, Trouble, parser};

/// The events of a stream, and what could not be read.
pub(super) fn read(kind: StreamKind, stream: &str) -> (Vec<AgentEvent>, Trouble) {
    let mut parser = parser(kind, None).unwrap();
    let mut events = Vec::new();
    parser.push(stream.as_bytes(), &mut events);
    parser.finish(&mut events);
    (events, parser.trouble().clone())
}

/// The events of a stream that must be understood in whole.
pub(super) fn events(kind: StreamKind, stream: &str) -> Vec<AgentEvent> {
    let (events, trouble) = read(kind, stream);
    assert!(trouble.is_none(), "{trouble:?}");
    events
}

/// The events of a stream, folded.
pub(super) fn summary(kind: StreamKind, stream: &str) -> RunSummary {
    let (events, trouble) = read(kind, stream);
    let mut summary = RunSummary::default();
    events.iter().for_each(|event| summary.push(event));
    summary.finish(&trouble);
    summary
}

/// How many tools failed.
pub(super) fn failed_tools(kind: StreamKind, stream: &str) -> usize {
    let (events, _) = read(kind, stream);
    let failed = |event: &&AgentEvent| matches!(event, AgentEvent::ToolResult { outcome, .. } if !outcome.is_ok());
    events.iter().filter(failed).count()
}

pub(super) fn text(message: u32, piece: Piece, text: &str) -> AgentEvent {
    AgentEvent::Text {
        message,
        piece,
        text: text.into(),
    }
}

pub(super) fn call(id: &str, name: &str, summary: &str) -> AgentEvent {
    AgentEvent::ToolCall {
        id: id.into(),
        name: name.into(),
        summary: summary.into(),
    }
}
