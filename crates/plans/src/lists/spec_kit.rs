//! `tasks.md` of spec-kit: ids such as `T001`, phases, `[P]` and `[US1]`.

use super::boxes::{Document, Item};
use super::format::ListFormat;
use super::markdown::{UniqueIds, note_marks, task_of};
use super::model::{ListOptions, TaskList};
use super::named_edges::{named_edges, range};
use super::order::{FileOrder, ListOrder};

pub(super) fn read(text: &str, options: ListOptions) -> TaskList {
    let mut doc = Document::read(text, name);
    // A list that explains the notation: `- [P] tasks = different files`.
    doc.items.retain(|item| item.checkbox.mark != 'P');
    let mut list = TaskList::new(ListFormat::SpecKit);
    list.findings.clone_from(&doc.findings);
    let mut gone = doc.leave_out_struck(&mut list);
    note_marks(&doc, &mut list);
    let mut ids = UniqueIds::default();
    let mut rows: Vec<TaskPlace> = Vec::new();
    let sections = doc.sections();
    for item in &doc.items {
        let (line, shown) = (item.checkbox.line, item.checkbox.text);
        let Some(wanted) = &item.id else {
            list.leave_out(line, shown, "it has no task id such as T001");
            continue;
        };
        let labels = Labels::of(item.title);
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
            group: group_of(&doc, item),
            story: labels.story.clone(),
            parallel: labels.parallel,
            named: named(&doc, item),
        });
        list.tasks.push(task);
    }
    if let Some(first) = doc.items.first() {
        list.introduction = introduction(&doc, first);
    }
    let mut order = ListOrder::without(&list, gone);
    for (at, task) in list.tasks.iter().enumerate() {
        let inside = covered(&task.id).into_iter();
        inside.for_each(|id| order.add_name(id, at));
    }
    set_order(&mut order, &list, &rows, options);
    let named = list.tasks.iter().zip(rows);
    let named = named.map(|(task, row)| (task.id.clone(), row.named));
    let named = named.collect();
    order.add_named(&mut list, named);
    order.finish(&mut list);
    list
}

/// What decides the order of a task.
struct TaskPlace {
    phase: Option<u32>,
    /// The headings above it.
    group: Vec<usize>,
    story: Option<String>,
    parallel: bool,
    named: Vec<String>,
}

fn group_of(doc: &Document<'_>, item: &Item<'_>) -> Vec<usize> {
    let above = item.under.iter().copied();
    above.filter(|at| doc.headings[*at].level <= 3).collect()
}

/// The template explains its own syntax before the first phase: no agent needs that.
fn introduction(doc: &Document<'_>, first: &Item<'_>) -> String {
    let end = doc.headings.iter().find(|heading| heading.level == 2);
    let end = end.map_or(first.checkbox.line, |heading| heading.line);
    doc.text_before(end)
}

fn named(doc: &Document<'_>, item: &Item<'_>) -> Vec<String> {
    let above = item.under.iter().map(|at| doc.headings[*at]);
    let above = above.filter(|heading| heading.level >= 3);
    let mut all = named_edges(item.title, id_length);
    all.extend(named_edges(&item.body, id_length));
    for heading in above {
        all.extend(named_edges(heading.text, id_length));
    }
    all
}

/// Phases one after the other; in a phase its groups, and in these runs of `[P]` together. With
/// `--stories` the phases of stories run side by side.
fn set_order(order: &mut ListOrder, list: &TaskList, rows: &[TaskPlace], options: ListOptions) {
    let phases = phases(rows);
    let mut outer = FileOrder::default();
    for (at, phase) in phases.iter().enumerate() {
        let is_story = options.stories && is_story(&rows[phase.clone()]);
        let beside = at > 0 && is_story && is_story_at(rows, &phases, at - 1);
        if !beside {
            outer.barrier();
        }
        let mut inner = FileOrder::after(outer.entrance(is_story));
        let mut group = None;
        for at in phase.clone() {
            if group.replace(&rows[at].group) != Some(&rows[at].group) {
                inner.barrier();
            }
            let before = match list.tasks[at].optional {
                true => inner.entrance(rows[at].parallel),
                false => inner.next(at, rows[at].parallel),
            };
            order.set(at, before);
        }
        let end = inner.end();
        outer.next_as(end, is_story);
    }
}

fn is_story(rows: &[TaskPlace]) -> bool {
    !rows.is_empty() && rows.iter().all(|row| row.story.is_some())
}

fn is_story_at(rows: &[TaskPlace], phases: &[std::ops::Range<usize>], at: usize) -> bool {
    phases
        .get(at)
        .is_some_and(|phase| is_story(&rows[phase.clone()]))
}

/// Runs of rows in one phase.
fn phases(rows: &[TaskPlace]) -> Vec<std::ops::Range<usize>> {
    let mut phases: Vec<std::ops::Range<usize>> = Vec::new();
    for at in 0..rows.len() {
        match phases.last_mut() {
            Some(last) if rows[last.start].phase == rows[at].phase => last.end = at + 1,
            _ => phases.push(at..at + 1),
        }
    }
    phases
}

/// `T001`, in bold letters or not; `T001-T004` is one task.
pub(super) fn name(text: &str) -> Option<(String, &str)> {
    let bare = text.trim_start_matches(['*', '_', '`']);
    let (id, rest) = bare.split_at(id_length(bare)?);
    let last = rest.strip_prefix(['-', '–', '—']);
    let last = last.and_then(|last| Some(last.split_at(id_length(last)?)));
    let (id, rest) = match last {
        Some((last, rest)) => (format!("{id}-{last}"), rest),
        None => (id.to_owned(), rest),
    };
    let rest = rest.trim_start_matches(['*', '_', '`', ':', '.']);
    Some((id, rest.trim_start()))
}

/// The ids that one stands for: itself, or those of `T001-T004`.
fn covered(id: &str) -> Vec<String> {
    let mut all = vec![id.to_owned()];
    if let Some((first, last)) = id.split_once("-T") {
        all.push(first.to_owned());
        all.extend(range(first, &format!("T{last}")));
    }
    all
}

/// The length of an id at the start of a text: `T`, three digits or more, perhaps a letter, perhaps
/// numbers of parts as in `T001.2`.
pub(super) fn id_length(text: &str) -> Option<usize> {
    let count = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let digits = count(text.strip_prefix('T')?);
    let mut end = 1 + digits;
    end += usize::from(text[end..].starts_with(|c: char| c.is_ascii_lowercase()));
    while let Some(part) = text[end..].strip_prefix('.').map(count) {
        if part == 0 {
            break;
        }
        end += 1 + part;
    }
    let ends = !text[end..].starts_with(|c: char| c.is_alphanumeric());
    (digits >= 3 && ends).then_some(end)
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
        let gone = |word: &str| GONE.into_iter().find(|known| *known == word);
        while let Some((label, behind)) = label(labels.rest) {
            match label {
                "P" => labels.parallel = true,
                "DEFERRED" => labels.deferred = true,
                story if is_story_label(story) => labels.story = Some(story.to_owned()),
                other => labels.gone = labels.gone.or(gone(other)),
            }
            labels.rest = behind;
        }
        let bare = labels.rest.trim_start_matches(['*', '_', '(']);
        let word = bare.split(|c: char| !c.is_alphabetic()).next();
        labels.gone = labels.gone.or(word.and_then(gone));
        labels
    }
}

/// `[P]` or `` `[SETUP]` `` at the start of a text: capitals and digits.
fn label(text: &str) -> Option<(&str, &str)> {
    let bare = text.trim_start_matches('`');
    let (label, behind) = bare.strip_prefix('[')?.split_once(']')?;
    let is_label = !label.is_empty()
        && label.len() <= 16
        && label
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-');
    is_label.then(|| (label, behind.trim_start_matches('`').trim_start()))
}

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
