//! A task while its block is read.

use super::lines::{LineKind, RoadmapLine};
use super::model::RoadmapTask;

/// A task while its block is read.
pub(super) struct Open<'a> {
    pub(super) task: RoadmapTask,
    pub(super) body: Vec<&'a str>,
    /// Keys that were given, with their lines.
    pub(super) given: Vec<(&'static str, u32)>,
    /// The text property of the line before, and how far its bullet is indented.
    pub(super) wrapping: Option<(&'static str, usize)>,
}

impl Open<'_> {
    /// Whether a line goes on with the text of the property before it.
    pub(super) fn wrap(&mut self, line: &RoadmapLine<'_>) -> bool {
        let Some((key, indent)) = self.wrapping.take() else {
            return false;
        };
        let goes_on = line.kind == LineKind::Plain
            && line.indent() > indent
            && !line.is_blank()
            && !line.text.trim_start().starts_with(['-', '*', '+'])
            && self.task.keys.wrap(key, line.text.trim());
        if goes_on {
            self.wrapping = Some((key, indent));
        }
        goes_on
    }
}
