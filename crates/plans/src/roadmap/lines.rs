//! A Markdown text as lines, with code fences and comments told apart.

use std::ops::Range;

use descartes_text::finding::{Finding, Place};

/// What a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// Text that means what it says.
    Plain,
    /// A fence, or code between fences: text and nothing else.
    Code,
    /// A comment: not there.
    Comment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoadmapLine<'a> {
    /// The line, from 1.
    pub number: u32,
    /// The byte at which it begins.
    pub start: usize,
    /// Its text without the line end.
    pub text: &'a str,
    pub kind: LineKind,
    /// The level of the heading that it is by the line under it.
    pub underlined: Option<usize>,
}

impl<'a> RoadmapLine<'a> {
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// White space at its begin, in bytes.
    pub fn indent(&self) -> usize {
        self.text.len() - self.text.trim_start().len()
    }

    /// The byte just behind its text.
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// A place in it, by byte.
    pub fn place(&self, byte: usize) -> Place {
        let before = self.text.get(..byte).unwrap_or(self.text);
        Place::at(self.number, before.chars().count() as u32 + 1)
    }

    /// Level and text of a heading.
    pub fn heading(&self) -> Option<(usize, &'a str)> {
        if self.kind != LineKind::Plain {
            return None;
        }
        if let Some(level) = self.underlined {
            return Some((level, self.text.trim()));
        }
        let level = self.text.bytes().take_while(|byte| *byte == b'#').count();
        let rest = &self.text[level..];
        let is_heading = (1..=6).contains(&level) && rest.starts_with([' ', '\t']);
        is_heading.then(|| (level, rest.trim().trim_end_matches('#').trim_end()))
    }
}

/// Splits a text into lines and finds its fences and comments.
pub fn lines<'a>(text: &'a str, findings: &mut Vec<Finding>) -> Vec<RoadmapLine<'a>> {
    let mut all: Vec<RoadmapLine<'a>> = Vec::new();
    let mut start = if text.starts_with('\u{feff}') { 3 } else { 0 };
    while start < text.len() {
        let end =
            memchr::memchr(b'\n', &text.as_bytes()[start..]).map_or(text.len(), |at| start + at);
        let line = &text[start..end];
        let number = all.len() as u32 + 1;
        let text = line.strip_suffix('\r').unwrap_or(line);
        all.push(RoadmapLine {
            number,
            start,
            text,
            kind: LineKind::Plain,
            underlined: None,
        });
        start = end + 1;
    }
    let mut at = 0;
    let mut unclosed = Unclosed::default();
    while at < all.len() {
        at = match opening(&all[at]) {
            None => at + 1,
            Some(opening) => hide(&mut all, at, opening, &mut unclosed, findings),
        };
    }
    underline(&mut all);
    all
}

/// Finds headings that are told by a line of `=` or `-` under them, which is nothing else then.
fn underline(all: &mut [RoadmapLine<'_>]) {
    // What stands between such lines at the start of a file is no text of it.
    let is_mark = |line: &RoadmapLine<'_>| line.text.trim_end() == "---";
    let front = match all.first().is_some_and(is_mark) {
        true => all.iter().skip(1).position(is_mark).map_or(0, |at| at + 2),
        false => 0,
    };
    for at in (front + 1)..all.len() {
        let Some(level) = underline_level(&all[at]) else {
            continue;
        };
        let begins = at == front + 1 || ends_text(&all[at - 2]);
        if begins && may_be_title(&all[at - 1]) {
            all[at - 1].underlined = Some(level);
            all[at].kind = LineKind::Comment;
        }
    }
}

fn underline_level(line: &RoadmapLine<'_>) -> Option<usize> {
    let text = line.text.trim();
    let is_line = |mark: char| text.len() >= 2 && text.chars().all(|c| c == mark);
    let is_plain = line.kind == LineKind::Plain && line.indent() < 4;
    match text.chars().next()? {
        '=' if is_plain && is_line('=') => Some(1),
        '-' if is_plain && is_line('-') => Some(2),
        _ => None,
    }
}

/// Whether a paragraph may begin below it.
fn ends_text(line: &RoadmapLine<'_>) -> bool {
    line.is_blank() || line.kind != LineKind::Plain || line.heading().is_some()
}

/// Whether it is a line of text, and no item, quote, row or heading.
fn may_be_title(line: &RoadmapLine<'_>) -> bool {
    let text = line.text.trim();
    let is_item = text.starts_with(['-', '*', '+']) && text[1..].starts_with([' ', '\t', '[']);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let is_numbered = digits > 0 && text[digits..].starts_with([')', '.']);
    let is_other = text.starts_with(['>', '|', '[', '<']) || underline_level(line).is_some();
    line.kind == LineKind::Plain
        && !line.is_blank()
        && line.indent() < 4
        && line.heading().is_none()
        && !(is_item || is_numbered || is_other)
}

/// Ends that are nowhere below: they are not looked for again, for a file may have thousands of
/// such lines.
#[derive(Default)]
struct Unclosed {
    comment: bool,
    /// The shortest fence that is open to the end, of backticks and of tildes.
    fences: [Option<usize>; 2],
}

enum Opening {
    Fence { mark: char, length: usize },
    Comment,
}

fn opening(line: &RoadmapLine<'_>) -> Option<Opening> {
    let text = line.text.trim_start();
    if text.starts_with("<!--") {
        return Some(Opening::Comment);
    }
    let mark = text
        .chars()
        .next()
        .filter(|mark| ['`', '~'].contains(mark))?;
    let length = text
        .chars()
        .take_while(|character| *character == mark)
        .count();
    // Backticks later in the line make it code inside a sentence.
    let is_fence = length >= 3 && !(mark == '`' && text[length..].contains('`'));
    is_fence.then_some(Opening::Fence { mark, length })
}

/// Marks a fence or comment that begins at `at`; answers where to go on.
fn hide(
    all: &mut [RoadmapLine<'_>],
    at: usize,
    opening: Opening,
    unclosed: &mut Unclosed,
    findings: &mut Vec<Finding>,
) -> usize {
    let place = Place::line(all[at].number);
    let (kind, found) = match opening {
        Opening::Comment => (LineKind::Comment, unclosed.comment_end(all, at)),
        Opening::Fence { mark, length } => {
            (LineKind::Code, unclosed.fence_end(all, at, mark, length))
        }
    };
    let Some(range) = found else {
        let what = if kind == LineKind::Comment {
            "comment"
        } else {
            "code fence"
        };
        let message =
            format!("this {what} is never closed: the rest is read as if it had not been opened");
        findings.push(Finding::warning(place, message).hint("close it"));
        return at + 1;
    };
    let end = range.end;
    for line in &mut all[range] {
        line.kind = kind;
    }
    end
}

impl Unclosed {
    fn comment_end(&mut self, all: &[RoadmapLine<'_>], at: usize) -> Option<Range<usize>> {
        if self.comment {
            return None;
        }
        let end = (at..all.len()).find(|line| all[*line].text.contains("-->"));
        self.comment = end.is_none();
        Some(at..end? + 1)
    }

    /// A fence inside a list ends with the list, as in Markdown.
    fn fence_end(
        &mut self,
        all: &[RoadmapLine<'_>],
        at: usize,
        mark: char,
        length: usize,
    ) -> Option<Range<usize>> {
        let open = &mut self.fences[usize::from(mark == '~')];
        if open.is_some_and(|open| length >= open) {
            return None;
        }
        let inside_list = all[at].indent() > 0;
        // A fence that is shown in the code stands further in.
        let deepest = all[at].indent() + 3;
        for (offset, line) in all[at + 1..].iter().enumerate() {
            let text = line.text.trim();
            let is_fence = text.len() >= length && text.chars().all(|character| character == mark);
            if is_fence && line.indent() <= deepest {
                return Some(at..at + offset + 2);
            }
            if inside_list && !line.is_blank() && line.indent() == 0 {
                return None;
            }
        }
        *open = Some(length);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_under_a_text_makes_it_a_heading_where_markdown_says_so() {
        let heads = |text: &str| -> Vec<(usize, String)> {
            let all = lines(text, &mut Vec::new());
            let heads = all.iter().filter_map(RoadmapLine::heading);
            heads
                .map(|(level, text)| (level, text.to_owned()))
                .collect()
        };
        for (text, wanted) in [
            (
                "Plan\n====\n\nDone\n----\n- [ ] a\n",
                &[(1, "Plan"), (2, "Done")][..],
            ),
            ("- [ ] a\n\n Done \r\n---\r\n", &[(2, "Done")]),
            ("# H\nDone\n--\n", &[(1, "H"), (2, "Done")]),
            ("---\ntitle: x\n---\nDone\n---\n", &[(2, "Done")]),
            ("- [ ] a\n---\n", &[]),
            ("1. a\n---\n", &[]),
            ("a\nb\n---\n", &[]),
            ("a\n\n---\n", &[]),
            ("| a |\n---\n", &[]),
            ("```\nDone\n---\n```\n", &[]),
            ("a\n-\n", &[]),
        ] {
            let wanted: Vec<(usize, String)> = wanted
                .iter()
                .map(|(level, text)| (*level, (*text).to_owned()))
                .collect();
            assert_eq!(heads(text), wanted, "{text:?}");
        }
    }

    #[test]
    fn code_and_comments_are_told_apart_from_text() {
        let text = "a\n```\n# no heading\n```\n<!-- x\n-->\n## H ##\r\n  ~~~sh\n  b\n- c\n";
        let mut findings = Vec::new();
        let all = lines(text, &mut findings);
        let kinds: Vec<LineKind> = all.iter().map(|line| line.kind).collect();
        use LineKind::{Code, Comment, Plain};
        assert_eq!(
            kinds,
            [
                Plain, Code, Code, Code, Comment, Comment, Plain, Plain, Plain, Plain
            ]
        );
        assert_eq!(all[6].heading(), Some((2, "H")));
        assert_eq!(all[2].heading(), None);
        assert_eq!(
            findings.len(),
            1,
            "the fence that the list ended: {findings:?}"
        );
        assert_eq!(findings[0].line, 8);
        for line in &all {
            assert_eq!(&text[line.start..line.end()], line.text);
        }
    }
}
