//! A line between the agent's output.

use crate::style::Tone;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusMessage {
    /// What kind of line it is.
    pub role: Role,
    /// Its colour.
    pub tone: Tone,
    /// Its text.
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
