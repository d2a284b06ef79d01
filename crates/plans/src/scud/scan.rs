//! The lines of a graph file, one after the other, with their meaning and place.
//!
//! Reader and editor share this scanner, so that a cell is found where it was read. It follows
//! SCUD's own rules, and departs from them only where those lose an author's text: an indented
//! line under `@details` is text even when it begins with `@`, blank lines inside a text are
//! kept, and rows of an unknown section belong to that section.

use std::ops::Range;

use memchr::memchr;

/// What a graph file begins with.
pub(super) const HEADER: &str = "# SCUD Graph";

/// A section of a graph file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Meta,
    Nodes,
    Edges,
    Parents,
    Assignments,
    Agents,
    Details,
    /// A section of other tools, or before the first one.
    Other,
}

impl Section {
    fn of(line: &str) -> Self {
        match line.trim_end_matches(['{', ' ']) {
            "@meta" => Self::Meta,
            "@nodes" => Self::Nodes,
            "@edges" => Self::Edges,
            "@parents" => Self::Parents,
            "@assignments" => Self::Assignments,
            "@agents" => Self::Agents,
            "@details" => Self::Details,
            _ => Self::Other,
        }
    }
}

/// What a line means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScgItem<'a> {
    /// The first line of a tag's part.
    Phase,
    /// The line that names the tag.
    Tag(&'a str),
    /// The begin of a section, as written.
    Section(Section, &'a str),
    /// A row of a section, trimmed.
    Row(Section, &'a str),
    /// A line of a text under `@details`, without its indentation.
    Text(&'a str),
    /// A blank line where a text may go on.
    Blank,
    /// A line before any tag's part that is not the header.
    Stray(&'a str),
}

/// A line with its meaning.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScgLine<'a> {
    pub(super) item: ScgItem<'a>,
    /// The line, from 1.
    pub(super) number: u32,
    /// The byte at which the row or text begins.
    pub(super) start: usize,
    /// Whether the line ends in CR LF.
    pub(super) crlf: bool,
}

/// Reads a graph file line by line.
#[derive(Clone, Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    number: u32,
    state: ScanState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScanState {
    /// Before a header.
    Outside,
    /// After a header: the tag's line is next.
    Header,
    /// In a section, and whether a text has begun in it.
    Inside(Section, TextOpen),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextOpen {
    No,
    Yes,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        // A byte order mark is not a character of the file.
        let at = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Self {
            text,
            at,
            number: 0,
            state: ScanState::Outside,
        }
    }

    /// The next line without its end, where it begins, and whether it ended in CR LF.
    fn next_line(&mut self) -> Option<(&'a str, usize, bool)> {
        let rest = &self.text[self.at..];
        if rest.is_empty() {
            return None;
        }
        let start = self.at;
        let end = memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
        self.at = (start + end + 1).min(self.text.len());
        self.number += 1;
        let line = &rest[..end];
        match line.strip_suffix('\r') {
            Some(line) => Some((line, start, true)),
            None => Some((line, start, false)),
        }
    }

    /// Whether the next line that says anything begins another tag's part.
    fn header_follows(&self) -> bool {
        self.text[self.at..].trim_start().starts_with(HEADER)
    }

    fn item(&mut self, line: &'a str) -> Option<ScgItem<'a>> {
        let (_, trimmed) = trim_at(line);
        match self.state {
            ScanState::Outside if trimmed.is_empty() => None,
            ScanState::Outside if line.starts_with(HEADER) => {
                self.state = ScanState::Header;
                Some(ScgItem::Phase)
            }
            ScanState::Outside => Some(ScgItem::Stray(trimmed)),
            ScanState::Header => {
                self.state = ScanState::Inside(Section::Other, TextOpen::No);
                let tag = line
                    .strip_prefix("# Phase:")
                    .or_else(|| line.strip_prefix("# Epic:"));
                Some(tag.map_or(ScgItem::Stray(trimmed), |tag| ScgItem::Tag(tag.trim())))
            }
            ScanState::Inside(section, open) => self.inside(section, open, line, trimmed),
        }
    }

    fn inside(
        &mut self,
        section: Section,
        open: TextOpen,
        line: &'a str,
        trimmed: &'a str,
    ) -> Option<ScgItem<'a>> {
        let may_go_on = section == Section::Details && open == TextOpen::Yes;
        if line == "---" && self.header_follows() {
            self.state = ScanState::Outside;
            return None;
        }
        if trimmed.is_empty() {
            return may_go_on.then_some(ScgItem::Blank);
        }
        if may_go_on && let Some(text) = line.strip_prefix("  ") {
            return Some(ScgItem::Text(text));
        }
        if trimmed.starts_with('@') {
            let section = Section::of(trimmed);
            self.state = ScanState::Inside(section, TextOpen::No);
            return Some(ScgItem::Section(section, trimmed));
        }
        if trimmed == "}" || trimmed.starts_with('#') {
            return None;
        }
        if section == Section::Details {
            self.state = ScanState::Inside(section, TextOpen::Yes);
        }
        Some(ScgItem::Row(section, trimmed))
    }
}

impl<'a> Iterator for Scanner<'a> {
    type Item = ScgLine<'a>;

    fn next(&mut self) -> Option<ScgLine<'a>> {
        loop {
            let (line, begin, crlf) = self.next_line()?;
            let Some(item) = self.item(line) else {
                continue;
            };
            let indent = match item {
                ScgItem::Text(_) => 2,
                _ if line.starts_with(|c: char| c.is_ascii_graphic()) => 0,
                _ => line.len() - line.trim_start().len(),
            };
            return Some(ScgLine {
                item,
                number: self.number,
                start: begin + indent,
                crlf,
            });
        }
    }
}

/// As [`str::trim`], with the byte at which the rest begins; quick where nothing or one space is
/// to be taken away.
fn trim_at(text: &str) -> (usize, &str) {
    let lead = usize::from(text.starts_with(' '));
    let inner = &text[lead..];
    let inner = inner.strip_suffix(' ').unwrap_or(inner);
    let is_plain = match inner.as_bytes() {
        [one] => one.is_ascii_graphic(),
        [first, .., last] => first.is_ascii_graphic() && last.is_ascii_graphic(),
        [] => false,
    };
    match is_plain {
        true => (lead, inner),
        false => (text.len() - text.trim_start().len(), text.trim()),
    }
}

/// The cells of a row, trimmed, each with its place in the row; `\|` and `\\` do not end a cell.
pub(super) fn cells(row: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let start = next?;
        let end = cell_end(row, start);
        next = (end < row.len()).then_some(end + 1);
        let cell = &row[start..end];
        let (lead, inner) = trim_at(cell);
        // An empty cell has its place after one space, where a value would be written.
        let lead = match inner {
            "" => usize::from(cell.starts_with(' ')),
            _ => lead,
        };
        let lead = start + lead;
        Some((inner, lead..lead + inner.len()))
    })
}

fn cell_end(row: &str, start: usize) -> usize {
    let bytes = row.as_bytes();
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'|' => return at,
            b'\\' if matches!(bytes.get(at + 1), Some(b'|' | b'\\')) => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// A title as people see it.
pub(super) fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => out.push('\n'),
            Some(mark @ ('\\' | '|')) => out.push(mark),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}

/// Splits a row of `@parents`. Ids may hold colons, so the first colon after which the left side
/// is a known id ends the parent; where none is, the first colon does, as for SCUD.
pub(super) fn split_parent(row: &str, is_known: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    let splits = row
        .match_indices(':')
        .map(|(at, _)| (row[..at].trim(), &row[at + 1..]));
    splits
        .clone()
        .find(|(parent, _)| is_known(parent))
        .or_else(|| splits.clone().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_know_their_place_and_escaped_bars() {
        let row = r"1 | a \| b \\| P ||  x";
        let found: Vec<_> = cells(row).collect();
        let inner: Vec<&str> = found.iter().map(|(cell, _)| *cell).collect();
        assert_eq!(inner, ["1", r"a \| b \\", "P", "", "x"]);
        for (cell, place) in found {
            assert_eq!(&row[place], cell);
        }
        assert_eq!(unescape(r"a \| b \\ \n \x \"), "a | b \\ \n \\x \\");
    }

    #[test]
    fn namespaced_parents_keep_their_children() {
        let known = |id: &str| matches!(id, "auth:1" | "2");
        assert_eq!(
            split_parent("auth:1: auth:1.1", known),
            Some(("auth:1", " auth:1.1"))
        );
        assert_eq!(split_parent("2: 2.1, 2.2", known), Some(("2", " 2.1, 2.2")));
        assert_eq!(split_parent("9: 9.1", known), Some(("9", " 9.1")));
        assert_eq!(split_parent("none", known), None);
    }

    #[test]
    fn phases_split_at_a_rule_before_a_header_alone() {
        let text = "# SCUD Graph v1\r\n# Phase: a\r\n@details\r\n1 | description |\r\n---\r\n  x\r\n---\r\n\r\n# SCUD Graph v1\r\n# Epic: b\r\n";
        let tags: Vec<&str> = Scanner::new(text)
            .filter_map(|line| match line.item {
                ScgItem::Tag(tag) => Some(tag),
                _ => None,
            })
            .collect();
        assert_eq!(tags, ["a", "b"]);
    }
}
