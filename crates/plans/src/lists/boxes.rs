//! Check lists in Markdown: boxes with what stands under them and the headings above them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::rc::Rc;

use super::model::{ListSection, Mark, TaskList};
use crate::graph::TaskStatus;
use crate::roadmap::lines::{LineKind, RoadmapLine, lines};
use descartes_text::finding::Finding;

/// A list item with a checkbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CheckBox<'a> {
    pub(super) line: u32,
    /// Columns of white space before the bullet.
    pub(super) indent: usize,
    /// What stands between the brackets; a blank where nothing does.
    pub(super) mark: char,
    /// Where that stands in the file; empty for `[]`.
    pub(super) span: Range<usize>,
    /// `[ ]*`: the task may be left out.
    pub(super) starred: bool,
    /// The number of `1. [ ]`.
    pub(super) number: Option<&'a str>,
    pub(super) text: &'a str,
}

impl CheckBox<'_> {
    pub(super) fn is_done(&self) -> bool {
        matches!(self.mark, 'x' | 'X')
    }

    /// What the mark says; somebody else's mark for work in progress says no more than "not done".
    pub(super) fn status(&self) -> TaskStatus {
        match self.mark {
            _ if self.is_done() => TaskStatus::Done,
            '-' | '~' | '/' => TaskStatus::InProgress,
            _ => TaskStatus::Pending,
        }
    }

    /// The change that ticks it.
    pub(super) fn mark(&self, file: usize) -> Mark {
        let open = match self.span.is_empty() {
            true => "",
            false => " ",
        };
        Mark {
            file,
            span: self.span.clone(),
            done: Cow::Borrowed("x"),
            open: Cow::Borrowed(open),
            doing: None,
            is_done: self.is_done(),
        }
    }
}

/// A box with what belongs to it.
#[derive(Clone, Debug)]
pub(super) struct Item<'a> {
    pub(super) checkbox: CheckBox<'a>,
    /// Its name, where the format knows one.
    pub(super) id: Option<String>,
    /// What follows the name.
    pub(super) title: &'a str,
    /// The whole text is struck through: nobody is to do it.
    struck: bool,
    /// Boxes under it that have no name of their own.
    pub(super) steps: Vec<CheckBox<'a>>,
    /// What stands under it.
    pub(super) body: String,
    /// The headings above it, by position in [`Document::headings`]: second level, then deeper.
    pub(super) under: Rc<[usize]>,
}

impl Item<'_> {
    /// Whether nobody is to do it.
    pub(super) fn is_struck(&self) -> bool {
        self.struck
    }

    /// The change that ticks it and its steps.
    pub(super) fn marks(&self) -> Vec<Mark> {
        let all = std::iter::once(&self.checkbox).chain(&self.steps);
        all.map(|checkbox| checkbox.mark(0)).collect()
    }
}

/// A heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heading<'a> {
    pub(super) level: usize,
    pub(super) text: &'a str,
    pub(super) line: u32,
}

impl Heading<'_> {
    /// What an agent can be given as a whole.
    fn section(&self) -> ListSection {
        ListSection {
            id: slug(self.text),
            title: self.text.to_owned(),
        }
    }
}

/// A Markdown file as boxes under headings.
#[derive(Clone, Debug)]
pub(super) struct Document<'a> {
    pub(super) lines: Vec<RoadmapLine<'a>>,
    pub(super) headings: Vec<Heading<'a>>,
    pub(super) items: Vec<Item<'a>>,
    pub(super) findings: Vec<Finding>,
}

/// How a format names its tasks: the name, and what follows it.
pub(super) type ReadName = fn(&str) -> Option<(String, &str)>;

impl<'a> Document<'a> {
    /// Reads a text; `name` finds the name at the start of a box's text.
    pub(super) fn read(text: &'a str, name: ReadName) -> Self {
        Self::read_where(text, name, |_| Vec::new())
    }

    /// The same; `bare` says of lines whether they are boxes without a bullet.
    pub(super) fn read_where(
        text: &'a str,
        name: ReadName,
        bare: fn(&[RoadmapLine<'a>]) -> Vec<bool>,
    ) -> Self {
        let mut findings = Vec::new();
        let lines = lines(text, &mut findings);
        let bare = bare(&lines);
        let mut reader = BoxReader {
            name,
            headings: Vec::new(),
            open_headings: Rc::default(),
            items: Vec::new(),
            open: None,
            body: Vec::new(),
        };
        for (at, line) in lines.iter().enumerate() {
            match bare.get(at).is_some_and(|is_bare| *is_bare) {
                true => reader.take_bare(line),
                false => reader.take(line),
            }
        }
        reader.close();
        let (headings, items) = (reader.headings, reader.items);
        Self {
            lines,
            headings,
            items,
            findings,
        }
    }

    /// Leaves out what is struck through; answers its names, for which nobody waits.
    pub(super) fn leave_out_struck(&mut self, list: &mut TaskList) -> HashSet<String> {
        let mut names = HashSet::new();
        self.items.retain(|item| {
            if item.struck {
                let (line, text) = (item.checkbox.line, item.checkbox.text);
                list.leave_out(line, text, "it is struck through");
                names.extend(item.id.clone());
            }
            !item.struck
        });
        names
    }

    /// What an agent can be given as a whole, for every heading.
    pub(super) fn sections(&self) -> Vec<ListSection> {
        self.headings.iter().map(Heading::section).collect()
    }

    /// The position of the heading of that level above an item.
    pub(super) fn heading_at(&self, item: &Item<'_>, level: usize) -> Option<usize> {
        let mut above = item.under.iter().rev();
        above.find(|at| self.headings[**at].level == level).copied()
    }

    /// What stands before a line, without comments.
    pub(super) fn text_before(&self, line: u32) -> String {
        let seen = self.lines.iter().take_while(|seen| seen.number < line);
        let seen = seen.filter(|seen| seen.kind != LineKind::Comment);
        let text: Vec<&str> = seen.map(|seen| seen.text).collect();
        text.join("\n").trim().to_owned()
    }
}

struct BoxReader<'a> {
    name: ReadName,
    headings: Vec<Heading<'a>>,
    /// Positions of the headings that hold now.
    open_headings: Rc<[usize]>,
    items: Vec<Item<'a>>,
    /// Where lines go: the last item, while they are deeper than it.
    open: Option<usize>,
    body: Vec<&'a str>,
}

impl<'a> BoxReader<'a> {
    fn take(&mut self, line: &RoadmapLine<'a>) {
        if let Some((level, text)) = line.heading() {
            self.close();
            self.take_heading(level, text, line.number);
        } else if let Some(checkbox) = check_box(line) {
            self.take_box(checkbox, line.text);
        } else if line.kind != LineKind::Comment {
            self.take_text(line);
        }
    }

    fn take_bare(&mut self, line: &RoadmapLine<'a>) {
        if let Some(checkbox) = bare_box(line) {
            self.take_box(checkbox, line.text);
        }
    }

    fn take_heading(&mut self, level: usize, text: &'a str, line: u32) {
        let headings = &self.headings;
        let above = self.open_headings.iter().copied();
        let above = above.filter(|at| headings[*at].level < level);
        self.open_headings = above.chain([headings.len()]).collect();
        self.headings.push(Heading { level, text, line });
    }

    fn take_box(&mut self, checkbox: CheckBox<'a>, line: &'a str) {
        let gone = struck(checkbox.text);
        let named = (self.name)(gone.unwrap_or(checkbox.text));
        let is_deeper = |at: usize| checkbox.indent > self.items[at].checkbox.indent;
        match (self.open.filter(|at| is_deeper(*at)), named) {
            (Some(at), None) => {
                self.body.push(line);
                if gone.is_none() {
                    self.items[at].steps.push(checkbox);
                }
            }
            (_, named) => self.begin(checkbox, named, gone.is_some()),
        }
    }

    fn begin(&mut self, checkbox: CheckBox<'a>, named: Option<(String, &'a str)>, gone: bool) {
        self.close();
        let (id, title) = match named {
            Some((id, title)) => (Some(id), closed(checkbox.text, title)),
            None => (None, checkbox.text),
        };
        self.open = Some(self.items.len());
        self.items.push(Item {
            id,
            title: title.trim(),
            // What is done was not given up.
            struck: !checkbox.is_done() && (gone || struck(title.trim()).is_some()),
            checkbox,
            steps: Vec::new(),
            body: String::new(),
            under: Rc::clone(&self.open_headings),
        });
    }

    fn take_text(&mut self, line: &RoadmapLine<'a>) {
        let Some(at) = self.open else {
            return;
        };
        let is_inside = line.kind == LineKind::Code || line.is_blank();
        if !is_inside && columns(line.text) <= self.items[at].checkbox.indent {
            self.close();
            return;
        }
        self.body.push(line.text);
    }

    fn close(&mut self) {
        let body = std::mem::take(&mut self.body);
        if let Some(at) = self.open.take() {
            self.items[at].body = dedent(&body);
        }
    }
}

/// Reads `- [ ] text`, `1. [x] text`, `* [] text` and the like.
pub(super) fn check_box<'a>(line: &RoadmapLine<'a>) -> Option<CheckBox<'a>> {
    if line.kind != LineKind::Plain {
        return None;
    }
    let (number, after) = behind_bullet(line.text.trim_start())?;
    box_at(line, number, after)
}

/// Reads `[ ] text` and `[x] text`, where that is a box at all.
pub(super) fn bare_box<'a>(line: &RoadmapLine<'a>) -> Option<CheckBox<'a>> {
    let text = line.text.trim_start();
    let is_box = ["[ ] ", "[x] ", "[X] "]
        .iter()
        .any(|sign| text.starts_with(sign));
    let found = Some(line).filter(|line| is_box && line.kind == LineKind::Plain);
    found.and_then(|line| box_at(line, None, text))
}

/// Reads `### [ ] text`. Other marks than those of boxes are labels there.
pub(super) fn heading_box<'a>(line: &RoadmapLine<'a>) -> Option<CheckBox<'a>> {
    line.heading()?;
    let after = line.text.trim_start_matches(['#', ' ', '\t', '*', '_']);
    let found = box_at(line, None, after)?;
    matches!(found.mark, ' ' | 'x' | 'X' | '-' | '~' | '/').then_some(found)
}

/// Reads a box behind the bullet or the signs of a heading.
fn box_at<'a>(
    line: &RoadmapLine<'a>,
    number: Option<&'a str>,
    after: &'a str,
) -> Option<CheckBox<'a>> {
    let inside = after.trim_start().strip_prefix('[')?;
    let (between, behind) = inside.split_once(']')?;
    let sign = between.trim();
    // Some signs have a second character that says how they look.
    let mark = sign.trim_end_matches('\u{fe0f}');
    if mark.chars().count() > 1 || behind.starts_with(['(', '[']) {
        return None;
    }
    let start = line.start + line.text.len() - inside.len();
    let lead = between.len() - between.trim_start().len();
    let span = match (mark.chars().next(), between.is_empty()) {
        (Some(_), _) => start + lead..start + lead + sign.len(),
        (None, true) => start..start,
        // All of it: `[x ]` is shown as no box.
        (None, false) => start..start + between.len(),
    };
    let starred = behind.starts_with('*') && !behind.starts_with("**");
    let text = if starred { &behind[1..] } else { behind };
    Some(CheckBox {
        line: line.number,
        indent: columns(line.text),
        mark: mark.chars().next().unwrap_or(' '),
        span,
        starred,
        number,
        text: text.trim(),
    })
}

/// What follows `-`, `*`, `+`, `1.` or `1)`, behind the number.
fn behind_bullet(text: &str) -> Option<(Option<&str>, &str)> {
    if let Some(rest) = text.strip_prefix(['-', '*', '+']) {
        return Some((None, rest));
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if !(1..=9).contains(&digits) {
        return None;
    }
    let rest = text[digits..].strip_prefix(['.', ')'])?;
    Some((Some(&text[..digits]), rest))
}

/// What follows the name in `**1. text**`, without the marks that close what began before it.
fn closed<'a>(text: &str, title: &'a str) -> &'a str {
    let is_open = text.starts_with("**") && title.matches("**").count() % 2 == 1;
    title
        .strip_suffix("**")
        .filter(|_| is_open)
        .unwrap_or(title)
}

/// Words that begin a remark behind what is struck through. Other words may be what is to be done instead.
const REMARKS: [&str; 17] = [
    "not",
    "no",
    "removed",
    "dropped",
    "deleted",
    "cancelled",
    "canceled",
    "obsolete",
    "superseded",
    "skipped",
    "deferred",
    "moved",
    "merged",
    "replaced",
    "duplicate",
    "done",
    "won",
];

/// A text that is struck through, with a remark behind it at most: `~~a~~ (not needed)`.
pub(super) fn struck(text: &str) -> Option<&str> {
    let text = text.trim_start_matches(['*', '_']);
    let (inside, behind) = text.strip_prefix("~~")?.split_once("~~")?;
    let mut words = behind.split(|c: char| !c.is_alphanumeric());
    let word = words.find(|word| !word.is_empty());
    let is_remark = |word: &str| REMARKS.iter().any(|known| known.eq_ignore_ascii_case(word));
    let is_aside = behind.trim_start().starts_with(['(', '（', '—', '–']);
    (is_aside || word.is_none_or(is_remark)).then_some(inside)
}

/// Columns of white space; a tab goes to the next fourth one.
pub(super) fn columns(text: &str) -> usize {
    let blanks = text.chars().take_while(|c| c.is_whitespace());
    blanks.fold(0, |column, c| match c {
        '\t' => column / 4 * 4 + 4,
        _ => column + 1,
    })
}

/// Lines without their common indentation and without blank lines around them.
pub(super) fn dedent(lines: &[&str]) -> String {
    let says = |line: &&&str| !line.trim().is_empty();
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let common = lines.iter().filter(says).map(indent).min().unwrap_or(0);
    let cut = lines.iter().map(|line| line.get(common..).unwrap_or(""));
    let cut: Vec<&str> = cut.map(str::trim_end).collect();
    cut.join("\n").trim_matches('\n').to_owned()
}

/// Boxes of a text that are not ticked.
pub fn open_boxes(text: &str) -> usize {
    let all = lines(text, &mut Vec::new());
    let boxes = all.iter().filter_map(check_box);
    boxes.filter(|found| !found.is_done()).count()
}

/// A name in small letters, digits and dashes.
pub(super) fn slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        match c.is_alphanumeric() {
            true => out.push(c),
            false if !out.ends_with('-') && !out.is_empty() => out.push('-'),
            false => {}
        }
    }
    let cut: String = out.chars().take(40).collect();
    cut.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<CheckBox<'_>> {
        let all = lines(text, &mut Vec::new());
        check_box(&all[0])
    }

    #[test]
    fn boxes_are_read_in_every_spelling() {
        for (text, mark, rest) in [
            ("- [ ] a", ' ', "a"),
            ("-[ ] a", ' ', "a"),
            ("* [x] a", 'x', "a"),
            ("+ [ X ] a", 'X', "a"),
            ("1. [ ] a", ' ', "a"),
            ("12) [~] a", '~', "a"),
            ("\t- [] a", ' ', "a"),
            ("- [  ] a", ' ', "a"),
            ("- [ ]* a", ' ', "a"),
            ("- [ ] **a**", ' ', "**a**"),
        ] {
            let found = read(text).unwrap();
            assert_eq!((found.mark, found.text), (mark, rest), "{text}");
            let mut ticked = text.to_owned();
            ticked.replace_range(found.span.clone(), "x");
            // What is ticked already stays as it is.
            assert!(mark != ' ' || !ticked.contains("x ]"), "{ticked}");
            let again = read(&ticked).unwrap();
            assert!(again.is_done(), "{ticked}");
            assert_eq!(again.text, rest, "{ticked}");
        }
        for text in [
            "- [a](b)", "- [ab] c", "[ ] a", "- a [x]", "- [", "- [a][b]",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert!(read("- [ ]* a").unwrap().starred);
        assert!(!read("- [ ] **a**").unwrap().starred);
    }

    #[test]
    fn what_is_deeper_than_a_box_belongs_to_it() {
        let text = "## H\n- [ ] a\n\n\n  more\n  - [x] step\n  ```\n  - [ ] code\n  ```\n- plain\n  - [ ] alone\n<!--\n- [ ] no\n-->\n- [ ] b\ntext\n    not of b\n";
        let read = Document::read(text, |_| None);
        let titles: Vec<&str> = read.items.iter().map(|item| item.title).collect();
        assert_eq!(titles, ["a", "alone", "b"]);
        assert_eq!(read.items[0].steps.len(), 1);
        assert!(read.items[0].body.starts_with("more\n- [x] step"));
        assert_eq!(read.items[2].body, "");
        let heading = read.heading_at(&read.items[0], 2).unwrap();
        assert_eq!(read.headings[heading].text, "H");
    }
}
