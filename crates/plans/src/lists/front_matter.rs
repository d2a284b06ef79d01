//! Files with front matter, one for each task: the few lines of YAML that are needed of it.

use std::ops::Range;

/// A value of the front matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Field {
    /// Where its text stands, without quotes; empty where it is a list of lines.
    pub(super) span: Range<usize>,
    pub(super) line: u32,
    /// The text, or the entries of a list.
    pub(super) values: Vec<String>,
}

impl Field {
    pub(super) fn text(&self) -> &str {
        self.values.first().map_or("", String::as_str)
    }
}

/// The lines between the first two `---`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FrontMatter<'a> {
    fields: Vec<(&'a str, Field)>,
    /// The byte behind it.
    pub(super) end: usize,
}

impl<'a> FrontMatter<'a> {
    /// Reads it; empty where the file has none.
    pub(super) fn read(text: &'a str) -> Self {
        let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
        let mut rows = rows(text, start);
        if rows.next().is_none_or(|row| row.text.trim_end() != "---") {
            return Self::default();
        }
        Self::read_rows(rows, true)
    }

    /// Reads a whole file of YAML as such lines.
    pub(super) fn whole(text: &'a str) -> Self {
        Self::read_rows(rows(text, 0), false)
    }

    fn read_rows(rows: impl Iterator<Item = YamlLine<'a>>, fenced: bool) -> Self {
        let mut read = Self::default();
        for row in rows {
            read.end = row.start + row.text.len();
            if fenced && row.text.trim_end() == "---" {
                return read;
            }
            read.take(&row);
        }
        match fenced {
            // Never closed: no front matter.
            true => Self::default(),
            false => read,
        }
    }

    fn take(&mut self, row: &YamlLine<'a>) {
        let text = row.text;
        let is_indented = text.starts_with([' ', '\t']);
        if let Some(entry) = text.trim_start().strip_prefix("- ") {
            if let Some((_, field)) = self.fields.last_mut() {
                field.values.push(unquoted(entry).to_owned());
            }
            return;
        }
        let Some((key, value)) = text.split_once(':') else {
            return;
        };
        if is_indented || key.trim().is_empty() || key.starts_with('#') {
            return;
        }
        let inner = without_comment(value);
        let bare = unquoted(inner);
        let lead = value.len() - value.trim_start().len();
        let quote = usize::from(bare.len() < inner.trim().len());
        let start = row.start + key.len() + 1 + lead + quote;
        let values = match bare
            .strip_prefix('[')
            .and_then(|list| list.strip_suffix(']'))
        {
            Some(list) => entries(list),
            None if bare.is_empty() => Vec::new(),
            None => vec![bare.to_owned()],
        };
        let field = Field {
            span: start..start + bare.len(),
            line: row.number,
            values,
        };
        self.fields.push((key.trim(), field));
    }

    pub(super) fn get(&self, name: &str) -> Option<&Field> {
        let found = self
            .fields
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, field)| field)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.get(name)
            .map(Field::text)
            .filter(|text| !text.is_empty())
    }

    pub(super) fn list(&self, name: &str) -> Vec<String> {
        self.get(name)
            .map_or_else(Vec::new, |field| field.values.clone())
    }
}

struct YamlLine<'a> {
    number: u32,
    start: usize,
    text: &'a str,
}

fn rows(text: &str, start: usize) -> impl Iterator<Item = YamlLine<'_>> {
    let mut at = start;
    text[start..]
        .split_inclusive('\n')
        .zip(1..)
        .map(move |(line, number)| {
            let start = at;
            at += line.len();
            YamlLine {
                number,
                start,
                text: line.trim_end_matches(['\n', '\r']),
            }
        })
}

fn entries(list: &str) -> Vec<String> {
    let all = list.split(',').map(unquoted).map(str::to_owned);
    all.filter(|entry| !entry.is_empty()).collect()
}

/// A value without quotes around it.
fn unquoted(text: &str) -> &str {
    let text = text.trim();
    for quote in ['"', '\''] {
        let inner = text
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote));
        if let Some(inner) = inner {
            return inner;
        }
    }
    text
}

/// A value without a comment behind it.
fn without_comment(value: &str) -> &str {
    let trimmed = value.trim_start();
    let from = value.len() - trimmed.len();
    let quoted = trimmed.chars().next().filter(|c| ['"', '\''].contains(c));
    let search = match quoted {
        Some(quote) => trimmed[1..].find(quote).map_or(from, |at| from + at + 2),
        None => from,
    };
    let behind = &value[search..];
    let comment = behind.match_indices('#').map(|(at, _)| &behind[..at]);
    let before = comment.filter_map(|before| before.strip_suffix(' '));
    match before.map(str::len).next() {
        Some(at) => &value[..search + at],
        None => value,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_comment_begins_behind_a_blank(value in "(a| |#|##|'|\"|é){0,8}") {
            let quoted = value.trim_start().starts_with(['"', '\'']);
            let end = value[value.len() - value.trim_start().len()..].find(" #");
            let end = end.map(|at| value.len() - value.trim_start().len() + at);
            prop_assert!(quoted || without_comment(&value) == &value[..end.unwrap_or(value.len())]);
        }
    }

    #[test]
    fn values_are_found_where_they_stand() {
        let text = "---\r\nid: TASK-1\nstatus: 'To Do' # a comment\ndeps: [a, \"b\"]\nlist:\n  - x\n  - 'y'\nempty: []\n---\nstatus: no\n";
        let read = FrontMatter::read(text);
        let status = read.get("status").unwrap();
        assert_eq!(&text[status.span.clone()], "To Do");
        assert_eq!(read.list("deps"), ["a", "b"]);
        assert_eq!(read.list("list"), ["x", "y"]);
        assert_eq!(read.list("empty"), Vec::<String>::new());
        assert_eq!(read.text("id"), Some("TASK-1"));
        assert!(text[read.end..].contains("status: no"));
        assert_eq!(FrontMatter::read("---\nid: 1\n"), FrontMatter::default());
    }
}
