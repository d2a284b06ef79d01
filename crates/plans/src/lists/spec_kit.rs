//! `tasks.md` of spec-kit: ids such as `T001`, phases, `[P]` and `[US1]`.

use super::bare_boxes::bare_boxes;
use super::boxes::{Document, Heading, Item};
use super::file_order::FileOrder;
use super::format::ListFormat;
use super::id_ranges::{IdNumbers, NamedIds};
use super::markdown::{UniqueIds, note_marks, task_of};
use super::model::{ListOptions, TaskList};
use super::named_edges::named_edges;
use super::order::ListOrder;
use super::sequence::PlacedTask;
use crate::graph::hash::NameSet;

pub(super) fn read(text: &str, options: ListOptions) -> TaskList {
    let mut doc = Document::read_where(text, name, bare_boxes);
    let mut list = TaskList::new(ListFormat::SpecKit);
    list.findings.clone_from(&doc.findings);
    leave_out_labels(&mut doc, &mut list);
    let gone = doc.leave_out_struck(&mut list).into_iter();
    let mut gone: Vec<NamedIds> = gone.map(NamedIds::One).collect();
    note_marks(&doc, &mut list);
    let mut ids = UniqueIds::default();
    let mut rows: Vec<TaskPlace> = Vec::new();
    let sections = doc.sections();
    let mentions = Mentions::of(&doc);
    for item in &doc.items {
        let (line, shown) = (item.checkbox.line, item.checkbox.text);
        if let Some(why) = mentions.why(&doc, item) {
            list.leave_out(line, shown, why);
            continue;
        }
        let Some(wanted) = &item.id else {
            list.leave_out(line, shown, "it has no task id such as T001");
            continue;
        };
        let mut labels = Labels::of(item.title);
        labels.take_before(item.checkbox.text);
        if let Some(word) = labels.gone.filter(|_| !item.checkbox.is_done()) {
            list.leave_out(line, shown, format!("it says {word}"));
            gone.extend(covered(wanted));
            continue;
        }
        let id = ids.take(wanted, line, &mut list);
        let phase = doc.heading_at(item, 2);
        let mut task = task_of(item, id, phase.map(|at| sections[at].clone()));
        task.title = labels.rest.to_owned();
        task.optional |= labels.deferred;
        task.refers_to.extend(labels.story.clone());
        rows.push(TaskPlace {
            phase: phase.map(|at| doc.headings[at].line),
            group: heading_up_to(&doc, item, 3),
            story: labels.story.clone(),
            parallel: labels.parallel,
            named: mentions.named(item),
        });
        list.tasks.push(task);
    }
    if let Some(first) = doc.items.first() {
        list.introduction = introduction(&doc, first);
    }
    let mut order = ListOrder::without(&list, gone);
    for (at, task) in list.tasks.iter().enumerate() {
        let inside = summed_up(&task.id).into_iter().flatten();
        inside.for_each(|ids| order.add_names(ids, at));
    }
    let named = rows.iter_mut().map(|row| std::mem::take(&mut row.named));
    order.name(&mut list, named);
    let placed = order.sequence(&mut list);
    set_order(&mut order, &list, &rows, &placed, options);
    order.finish(&mut list);
    list
}

/// Leaves out what has a label where a checkbox belongs: `- [P] T003, T004 can run together`. Without an
/// id it explains the notation, and that is not worth a word.
fn leave_out_labels(doc: &mut Document<'_>, list: &mut TaskList) {
    doc.items.retain(|item| {
        let is_label = item.checkbox.mark == 'P';
        if is_label && item.id.is_some() {
            let (line, text) = (item.checkbox.line, item.checkbox.text);
            list.leave_out(line, text, "it has [P] where a checkbox belongs");
        }
        !is_label
    });
}

/// What decides the order of a task.
struct TaskPlace {
    phase: Option<u32>,
    /// The deepest heading above it that tells groups of a phase apart, which stands for those above.
    group: Option<usize>,
    story: Option<String>,
    parallel: bool,
    named: Vec<NamedIds>,
}

/// The deepest heading above an item that is of such a level.
fn heading_up_to(doc: &Document<'_>, item: &Item<'_>, level: usize) -> Option<usize> {
    let mut above = item.under.iter().rev().copied();
    above.find(|at| doc.headings[*at].level <= level)
}

/// The template explains its own syntax before the first phase: no agent needs that.
fn introduction(doc: &Document<'_>, first: &Item<'_>) -> String {
    let end = doc.headings.iter().find(|heading| heading.level == 2);
    let end = end.map_or(first.checkbox.line, |heading| heading.line);
    doc.text_before(end)
}

/// What tells boxes that only speak of tasks from those that are some.
struct Mentions<'a> {
    /// Whether a heading is over examples, by position.
    shows: Vec<bool>,
    /// What a heading below those of phases names, by position.
    named: Vec<Vec<NamedIds>>,
    /// Every id that a box begins with.
    ids: NameSet<&'a str>,
    /// The same by number.
    numbers: IdNumbers,
}

impl<'a> Mentions<'a> {
    fn of(doc: &'a Document<'_>) -> Self {
        let shows = |heading: &Heading<'_>| {
            let text = heading.text.to_lowercase();
            let shown = ["example", "opportunit"];
            text.contains("parallel") && shown.iter().any(|word| text.contains(word))
        };
        let named = |heading: &Heading<'_>| match heading.level {
            0..3 => Vec::new(),
            _ => named_edges(heading.text, id_length),
        };
        let ids = doc.items.iter().filter_map(|item| item.id.as_deref());
        let ids: NameSet<&str> = ids.collect();
        let mut numbers = IdNumbers::default();
        if ids.iter().any(|id| id.contains("-T")) {
            ids.iter().for_each(|id| numbers.add(id, 0));
        }
        Self {
            shows: doc.headings.iter().map(shows).collect(),
            named: doc.headings.iter().map(named).collect(),
            ids,
            numbers,
        }
    }

    /// Why a box is no task.
    fn why(&self, doc: &Document<'_>, item: &Item<'_>) -> Option<String> {
        if let Some(at) = item.under.iter().find(|at| self.shows[**at]) {
            return Some(format!("it stands under `{}`", doc.headings[*at].text));
        }
        let id = item.id.as_ref()?;
        let mut inside = summed_up(id)?.into_iter();
        let other = inside.find_map(|ids| match ids {
            NamedIds::One(one) => Some(one).filter(|one| self.ids.contains(one.as_str())),
            NamedIds::Range(range) => self.numbers.first_in(&range),
        })?;
        Some(format!("it sums up tasks such as {other}"))
    }

    /// What a box and the headings above it name.
    fn named(&self, item: &Item<'_>) -> Vec<NamedIds> {
        let mut all = named_edges(item.title, id_length);
        all.extend(named_edges(&item.body, id_length));
        let above = item.under.iter().flat_map(|at| &self.named[*at]);
        all.extend(above.cloned());
        // `T001-Based` in a sentence speaks of `T001`.
        for ids in &mut all {
            if let NamedIds::One(id) = ids
                && !self.ids.contains(id.as_str())
                && let Some(short) = short(id).filter(|short| self.ids.contains(short))
            {
                *id = short.to_owned();
            }
        }
        all
    }
}

/// An id without the word behind its number.
fn short(id: &str) -> Option<&str> {
    let number = id.find(|c: char| c.is_ascii_digit())?;
    let end = id[number..].find(['-', '_'])?;
    Some(&id[..number + end])
}

/// Phases one after the other; in a phase its groups, and in these runs of `[P]` together. With
/// `--stories` the phases of stories run side by side.
fn set_order(
    order: &mut ListOrder,
    list: &TaskList,
    rows: &[TaskPlace],
    placed: &[PlacedTask],
    options: ListOptions,
) {
    let place = |placed: &PlacedTask| &rows[placed.beside];
    let mut outer = FileOrder::default();
    let mut after_story = false;
    for phase in placed.chunk_by(|one, next| place(one).phase == place(next).phase) {
        let has_story = |placed: &PlacedTask| place(placed).story.is_some();
        let is_story = phase.iter().all(has_story);
        if !(options.stories && is_story && after_story) {
            outer.barrier();
        }
        after_story = is_story;
        let mut inner = FileOrder::after(outer.entrance(options.stories && is_story));
        let mut group = None;
        for placed in phase {
            let (at, here) = (placed.at, place(placed).group);
            if group.replace(here) != Some(here) {
                inner.barrier();
            }
            let before = match list.tasks[at].optional {
                true => inner.entrance(rows[at].parallel),
                false => inner.next(at, rows[at].parallel),
            };
            order.set(at, before);
        }
        outer.next_as(inner.end(), options.stories && is_story);
    }
}

/// `T001`, in bold letters, in brackets and behind labels or not; `T001-T004` is one task.
pub(super) fn name(text: &str) -> Option<(String, &str)> {
    let (_, text) = labels_before(text);
    let bare = text.trim_start_matches(MARKS);
    let inside = bare.strip_prefix('[');
    let begin = inside.unwrap_or(bare);
    let (id, rest) = begin.split_at(id_length(begin)?);
    let last = rest.strip_prefix(['-', '–', '—']);
    let last = last.and_then(|last| Some(last.split_at(id_length(last)?)));
    let (id, rest) = match last {
        Some((last, rest)) => (format!("{id}-{last}"), rest),
        None => (id.to_owned(), rest),
    };
    let rest = match inside {
        Some(_) => behind_link(rest.strip_prefix(']')?),
        None => rest,
    };
    let rest = rest
        .trim_start_matches(['*', '_', '`', ':', '.'])
        .trim_start();
    let rest = rest.strip_prefix(['-', '–', '—']).unwrap_or(rest);
    Some((id, rest.trim_start()))
}

/// What opens bold letters and the like.
const MARKS: [char; 3] = ['*', '_', '`'];

/// The labels before an id, as in `[P] T001`, and the text from there on.
fn labels_before(text: &str) -> (Vec<&str>, &str) {
    let mut rest = text.trim_start_matches(MARKS);
    let mut labels = Vec::new();
    while let Some((found, behind)) = label(rest).filter(|(found, _)| id_length(found).is_none()) {
        labels.push(found);
        rest = behind.trim_start_matches(MARKS);
    }
    (labels, rest)
}

/// What follows the address of `[T001](file.md)`.
fn behind_link(text: &str) -> &str {
    let address = text.strip_prefix('(');
    let behind = address.and_then(|address| Some(address.split_once(')')?.1));
    behind.unwrap_or(text)
}

/// The ids that one stands for: itself, or those of `T001-T004`.
fn covered(id: &str) -> Vec<NamedIds> {
    let own = NamedIds::One(id.to_owned());
    let inside = summed_up(id).into_iter().flatten();
    std::iter::once(own).chain(inside).collect()
}

/// Those that `T001-T004` stands for beside itself.
fn summed_up(id: &str) -> Option<[NamedIds; 2]> {
    id.find('-')?;
    let (first, last) = id.split_once("-T")?;
    let range = NamedIds::up_to(first, &format!("T{last}"));
    Some([NamedIds::One(first.to_owned()), range])
}

/// The length of an id at the start of a text: `T`, perhaps a dash, three digits or more, perhaps a
/// letter, and what tells parts of one task apart: `T001.2`, `T001-A`, `T001_schema`.
pub(super) fn id_length(text: &str) -> Option<usize> {
    let number = text.strip_prefix('T')?;
    let number = number.strip_prefix('-').unwrap_or(number);
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    let mut end = text.len() - number.len() + digits;
    end += usize::from(text[end..].starts_with(|c: char| c.is_ascii_alphabetic()));
    while let Some(part) = part_length(&text[end..]) {
        end += part;
    }
    let ends = !text[end..].starts_with(|c: char| c.is_alphanumeric());
    (digits >= 3 && ends).then_some(end)
}

/// The length of `.2`, `-A`, `-2` or `_schema`; another id behind a dash is the end of a range.
fn part_length(text: &str) -> Option<usize> {
    let sign = text.chars().next()?;
    let part = text.get(1..)?;
    let digits = part.bytes().take_while(u8::is_ascii_digit).count();
    let word = part.bytes().take_while(u8::is_ascii_alphanumeric).count();
    let length = match sign {
        '.' => digits,
        '_' => word,
        '-' if digits == word && digits < 3 => digits,
        '-' if part.starts_with(|c: char| c.is_ascii_uppercase()) => match id_length(part) {
            None => word,
            Some(_) => 0,
        },
        _ => 0,
    };
    (length > 0).then_some(1 + length)
}

/// `[P] [US1]` before the text.
struct Labels<'a> {
    parallel: bool,
    deferred: bool,
    story: Option<String>,
    /// The word that says that nobody is to do it.
    gone: Option<&'static str>,
    rest: &'a str,
}

/// Words in capitals that begin a task that nobody is to do.
const GONE: [&str; 6] = [
    "DROPPED",
    "REMOVED",
    "CANCELLED",
    "CANCELED",
    "OBSOLETE",
    "SUPERSEDED",
];

impl<'a> Labels<'a> {
    fn of(text: &'a str) -> Self {
        let mut labels = Self {
            parallel: false,
            deferred: false,
            story: None,
            gone: None,
            rest: text,
        };
        while let Some((label, behind)) = label(behind_signs(labels.rest)) {
            labels.take(label);
            labels.rest = behind;
        }
        // `**[T001] [P]** text`: what was opened before the id.
        if let Some(closed) = labels.rest.strip_prefix("**")
            && labels.rest.matches("**").count() % 2 == 1
        {
            labels.rest = closed.trim_start();
        }
        let bare = labels.rest.trim_start_matches(['*', '_', '(']);
        let word = bare.split(|c: char| !c.is_alphabetic()).next();
        labels.gone = labels.gone.or(word.and_then(given_up));
        labels
    }

    /// Those before the id of a box.
    fn take_before(&mut self, text: &str) {
        for label in labels_before(text).0 {
            self.take(label);
        }
    }

    fn take(&mut self, label: &str) {
        match label {
            "P" => self.parallel = true,
            "DEFERRED" => self.deferred = true,
            story if is_story_label(story) => self.story = Some(story.to_owned()),
            other => self.gone = self.gone.or(given_up(other)),
        }
    }
}

/// What follows pictures: `⏳ [P]`.
fn behind_signs(text: &str) -> &str {
    text.trim_start_matches(|c: char| !c.is_ascii() && !c.is_alphanumeric())
        .trim_start()
}

fn given_up(word: &str) -> Option<&'static str> {
    GONE.into_iter().find(|known| *known == word)
}

/// `[P]` or `` `[SETUP]` `` at the start of a text: capitals and digits; also `[deps: T001]`, which is read
/// where dependencies are.
fn label(text: &str) -> Option<(&str, &str)> {
    let bare = text.trim_start_matches('`');
    let (label, behind) = bare.strip_prefix('[')?.split_once(']')?;
    let is_capital = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-';
    let is_label = !label.is_empty() && label.len() <= 16 && label.chars().all(is_capital);
    let word = label.split_once(':').map(|(word, _)| word);
    let is_edge =
        word.is_some_and(|word| EDGES.iter().any(|known| word.eq_ignore_ascii_case(known)));
    (is_label || is_edge).then(|| (label, behind.trim_start_matches('`').trim_start()))
}

/// Words of labels that name dependencies.
const EDGES: [&str; 4] = ["deps", "depends", "depends on", "dependencies"];

fn is_story_label(label: &str) -> bool {
    let digits = label.strip_prefix("US");
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// The section of a spec that tells a story: `### User Story 1 - …`.
pub fn story_section(spec: &str, story: &str) -> Option<String> {
    let number = story.strip_prefix("US")?;
    let doc = Document::read(spec, |_| None);
    let wanted = format!("user story {number}");
    let starts = |text: &str| {
        let text = text.to_lowercase();
        text.strip_prefix(&wanted)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let at = doc
        .headings
        .iter()
        .position(|heading| starts(heading.text))?;
    let from = doc.headings[at];
    let to = doc.headings[at + 1..]
        .iter()
        .find(|next| next.level <= from.level);
    let to = to.map_or(u32::MAX, |next| next.line);
    let lines = doc
        .lines
        .iter()
        .filter(|line| line.number >= from.line && line.number < to);
    let lines: Vec<&str> = lines.map(|line| line.text).collect();
    Some(lines.join("\n").trim().to_owned())
}
