//! A text under `@details`.

#[derive(Default)]
pub(super) struct ScgText<'a> {
    pub(super) line: u32,
    pub(super) id: &'a str,
    pub(super) field: &'a str,
    pub(super) lines: Vec<&'a str>,
    /// Blank lines that belong to the text if it goes on.
    pub(super) blanks: usize,
    pub(super) warned: bool,
}

impl<'a> ScgText<'a> {
    pub(super) fn push(&mut self, line: &'a str) {
        if !self.lines.is_empty() {
            self.lines.extend(std::iter::repeat_n("", self.blanks));
        }
        self.blanks = 0;
        self.lines.push(line);
    }
}
