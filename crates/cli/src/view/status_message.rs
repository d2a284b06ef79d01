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
