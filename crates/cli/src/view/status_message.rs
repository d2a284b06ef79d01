//! A line between the agent's output.

use crate::style::Tone;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusMessage {
    /// What kind of line it is.
    pub role: Role,
    pub tone: Tone,
    pub text: String,
}

/// Where a line stands in the story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It begins an iteration.
    Heading,
    /// It tells of one.
    Line,
    /// It is quoted from a gate.
    Quote,
}

/// Lines of a failed gate's output that are quoted.
pub const QUOTED: usize = 12;

impl StatusMessage {
    pub fn new(tone: Tone, text: impl Into<String>) -> Self {
        let (role, text) = (Role::Line, text.into());
        Self { role, tone, text }
    }

    pub fn heading(text: String) -> Self {
        let (role, tone) = (Role::Heading, Tone::Strong);
        Self { role, tone, text }
    }

    /// What went wrong, and the last lines of the output that tells why.
    pub fn quoting(head: String, output: &str) -> Vec<Self> {
        let lines: Vec<&str> = output.trim_end().lines().collect();
        let last = &lines[lines.len().saturating_sub(QUOTED)..];
        let quote = |text: &&str| Self {
            role: Role::Quote,
            tone: Tone::Dim,
            text: last_drawn(text),
        };
        let quotes = last.iter().map(quote);
        std::iter::once(bad(head)).chain(quotes).collect()
    }
}

/// What a carriage return left of a line.
fn last_drawn(line: &str) -> String {
    let last = line.trim_end_matches('\r').rsplit('\r').next();
    descartes_text::display::text(
        last.unwrap_or_default(),
        descartes_text::display::Colours::Drop,
    )
}

pub fn normal(text: impl Into<String>) -> StatusMessage {
    StatusMessage::new(Tone::Normal, text)
}

pub fn good(text: impl Into<String>) -> StatusMessage {
    StatusMessage::new(Tone::Good, text)
}

pub fn bad(text: impl Into<String>) -> StatusMessage {
    StatusMessage::new(Tone::Bad, text)
}

pub fn warn(text: impl Into<String>) -> StatusMessage {
    StatusMessage::new(Tone::Warn, text)
}
