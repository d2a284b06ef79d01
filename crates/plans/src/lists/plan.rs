//! Plans whose tasks are headings `### Task N: …` and whose boxes are steps (superpowers, ralphex).

use std::collections::BTreeMap;
use std::rc::Rc;

use super::asides::Asides;
use super::boxes::{CheckBox, Document, Item, check_box, heading_box, struck};
use super::file_order::chain;
use super::format::ListFormat;
use super::markdown::{UniqueIds, human_reason};
use super::model::{ListGate, ListSection, ListTask, TaskList};
use crate::graph::TaskStatus;
use crate::graph::hash::NameSet;
use crate::roadmap::lines::{LineKind, lines};
use crate::roadmap::task_heading::{
    counted_heading, heading_word, loose_task_heading, numbered_heading, story_heading,
    task_heading,
};

/// Reads a plan; `done` are the tasks that a ledger beside it calls complete.
pub(super) fn read(text: &str, done: &[String]) -> TaskList {
    let doc = Document::read(text, |_| None);
    let mut list = TaskList::new(ListFormat::Plan);
    list.findings.clone_from(&doc.findings);
    let mut ids = UniqueIds::default();
    let heads = heads(&doc, &Asides::of(&doc));
    for (at, heading) in doc.headings.iter().enumerate() {
        let Some((number, title)) = heads[at] else {
            continue;
        };
        if struck(heading.text).is_some() {
            list.leave_out(heading.line, heading.text, "it is struck through");
            continue;
        }
        let mut next = (at + 1..heads.len())
            .filter(|next| doc.headings[*next].level <= heading.level || heads[*next].is_some());
        let end = next.next().map_or(u32::MAX, |next| doc.headings[next].line);
        let id = ids.take(number, heading.line, &mut list);
        let task = task(&doc, id, title, heading.line..end, done);
        if task.marks.is_empty() {
            list.warn(
                task.line,
                format!(
                    "task `{}` has no box: that it is done is known to this run alone",
                    task.id
                ),
            );
        }
        list.tasks.push(task);
    }
    leave_out_the_rest(&doc, &heads, &mut list);
    if let Some(at) = heads.iter().position(Option::is_some) {
        list.introduction = doc.text_before(doc.headings[at].line);
    }
    list.gates = validation_commands(&doc);
    propose_gates(&mut list);
    chain(&mut list);
    list
}

/// `Task 2.5: Name` or `Iteration 1: Name`.
const WORDS: [&str; 2] = ["task", "iteration"];

/// The number and the title of each heading that is a task, by position.
type TaskHeads<'a> = Vec<Option<(&'a str, &'a str)>>;

/// The tasks of a plan: `Task N: …`; with boxes under it also `Task N …` and `Task A: …`; and where
/// there is no such heading, `US-1: …`, whose boxes are what it has to come up to; `Cycle N: …` with any
/// word, where the boxes are steps; `1. …`; or `Cycle N: …` all the same.
fn heads<'a>(doc: &Document<'a>, asides: &Asides) -> TaskHeads<'a> {
    let all = doc.headings.iter();
    let mut heads: TaskHeads<'a> = all
        .map(|heading| task_heading(heading.text, &WORDS))
        .collect();
    let mut taken: NameSet<&str> = heads.iter().flatten().map(|(number, _)| *number).collect();
    let work: Vec<&Item<'a>> = doc
        .items
        .iter()
        .filter(|item| asides.is_work(item))
        .collect();
    let loose = |at: usize| loose_task_heading(doc.headings[at].text, &WORDS);
    let own = (0..heads.len()).filter(|at| heads[*at].is_none() && has_own_box(doc, *at));
    let own = own.filter_map(|at| Some((at, loose(at)?)));
    let mut found: BTreeMap<usize, (&str, &str)> = own.collect();
    found.extend(with_boxes(&work, &heads, loose));
    for (at, found) in found {
        if taken.insert(found.0) {
            heads[at] = Some(found);
        }
    }
    if taken.is_empty() {
        let found = stories(doc, asides, &heads);
        let found = found.or_else(|| {
            let counted = counted_parts(doc, &work, &heads);
            if !counted.is_empty() && are_steps(&work) {
                return Some(counted);
            }
            let numbered = |at: usize| numbered_heading(doc.headings[at].text);
            let numbered = with_boxes(&work, &heads, numbered);
            Some(match numbered.is_empty() {
                true => counted,
                false => numbered,
            })
        });
        for (at, found) in found.into_iter().flatten() {
            heads[at] = Some(found);
        }
    }
    heads
}

/// The stories of a document, where it has some: a box under them is theirs unless they themselves
/// stand where no work is.
fn stories<'a>(
    doc: &Document<'a>,
    asides: &Asides,
    heads: &TaskHeads<'a>,
) -> Option<BTreeMap<usize, (&'a str, &'a str)>> {
    let story = |at: usize| story_heading(doc.headings[at].text);
    let is_work = |item: &&Item<'a>| {
        let first = item.under.iter().find(|at| story(**at).is_some());
        asides
            .heading(item)
            .is_none_or(|aside| first.is_some_and(|story| *story < aside))
    };
    let boxes: Vec<&Item<'a>> = doc.items.iter().filter(is_work).collect();
    Some(with_boxes(&boxes, heads, story)).filter(|found| !found.is_empty())
}

/// `Cycle 1: …`, `Cycle 2: …`: headings over boxes with one word and a number.
fn counted_parts<'a>(
    doc: &Document<'a>,
    work: &[&Item<'a>],
    heads: &TaskHeads<'a>,
) -> BTreeMap<usize, (&'a str, &'a str)> {
    let text = |at: usize| doc.headings[at].text;
    let found = with_boxes(work, heads, |at| counted_heading(text(at)));
    let mut words = found.keys().map(|at| heading_word(text(*at)));
    let first = words.next().flatten().map(str::to_lowercase);
    let is_same = words.all(|word| word.map(str::to_lowercase) == first);
    match is_same {
        true => found,
        false => BTreeMap::new(),
    }
}

/// Whether the boxes under the headings of a document are steps of one task each: they say so, or under
/// each heading stand the same ones: `RED: …`, `GREEN: …`.
fn are_steps(work: &[&Item<'_>]) -> bool {
    work.iter().all(|item| says_step(item.title)) || repeat_each_other(work)
}

fn repeat_each_other(work: &[&Item<'_>]) -> bool {
    let is_beside = |one: &Item<'_>, next: &Item<'_>| {
        Rc::ptr_eq(&one.under, &next.under) || one.under == next.under
    };
    let parts = work.chunk_by(|one, next| is_beside(one, next));
    let mut parts = parts.map(|part| part.iter().map(|item| step_name(item.title)));
    let Some(first) = parts.next().map(Iterator::collect::<Vec<String>>) else {
        return false;
    };
    let unlike: NameSet<&str> = first.iter().map(String::as_str).collect();
    let mut count = 1;
    let is_same = parts.all(|part| {
        count += 1;
        part.eq(first.iter().map(String::as_str))
    });
    is_same && count > 1 && first.len() > 1 && unlike.len() == first.len()
}

/// What stands before a colon or a dash; all of it, where there is none.
fn step_name(title: &str) -> String {
    let bare = title.trim_start_matches(|c: char| !c.is_alphanumeric());
    let ends = [":", " - ", " – ", " — ", " ("];
    let signs = bare.match_indices([':', ' ']).map(|(at, _)| at);
    let mut found = signs.filter(|at| ends.iter().any(|end| bare[*at..].starts_with(end)));
    let name = &bare[..found.next().unwrap_or(bare.len())];
    let name = name.trim_end_matches(|c: char| !c.is_alphanumeric());
    name.to_lowercase()
}

/// `**Step 2: …**`.
fn says_step(title: &str) -> bool {
    let title = title.trim_start_matches(|c: char| !c.is_alphanumeric());
    let rest = title
        .get(..5)
        .filter(|word| word.eq_ignore_ascii_case("step "));
    rest.is_some() && title[5..].starts_with(|c: char| c.is_ascii_digit())
}

/// Whether there is a box under `Task N: …`: most plans tell with their first lines.
pub(super) fn has_plain_task(text: &str) -> bool {
    let mut inside = None;
    for line in lines(text, &mut Vec::new()) {
        if let Some((level, heading)) = line.heading() {
            let is_task = task_heading(heading, &WORDS).is_some();
            inside = match is_task {
                true => Some(level),
                false => inside.filter(|above| level > *above),
            };
        } else if inside.is_some() && check_box(&line).is_some() {
            return true;
        }
    }
    false
}

/// Whether a task of the plan has a box, of its own or under it.
pub(super) fn has_boxes(doc: &Document<'_>) -> bool {
    have_boxes(doc, &heads(doc, &Asides::of(doc)))
}

fn have_boxes(doc: &Document<'_>, heads: &TaskHeads<'_>) -> bool {
    let is_head = |at: &usize| heads[*at].is_some();
    let has_step = |item: &Item<'_>| item.under.iter().any(is_head);
    doc.items.iter().any(has_step)
        || (0..heads.len()).any(|at| is_head(&at) && has_own_box(doc, at))
}

/// Whether a heading has a box.
fn has_own_box(doc: &Document<'_>, at: usize) -> bool {
    // Lines are counted from 1.
    let line = doc
        .lines
        .get(doc.headings[at].line.saturating_sub(1) as usize);
    line.and_then(heading_box).is_some()
}

/// The headings that `read` reads and that are the nearest tasks above a box, in the order of the file.
fn with_boxes<'a>(
    boxes: &[&Item<'a>],
    heads: &TaskHeads<'a>,
    read: impl Fn(usize) -> Option<(&'a str, &'a str)>,
) -> BTreeMap<usize, (&'a str, &'a str)> {
    let nearest = |item: &&Item<'a>| {
        let mut above = item.under.iter().rev().copied();
        above.find_map(|at| match heads[at] {
            Some(_) => Some(None),
            None => Some(Some((at, read(at)?))),
        })
    };
    let parts = side_by_side(boxes);
    parts
        .filter_map(|part| nearest(&part[0]))
        .flatten()
        .collect()
}

/// Boxes side by side, which are under the same headings; never none.
fn side_by_side<'b, 'a>(boxes: &'b [&'b Item<'a>]) -> impl Iterator<Item = &'b [&'b Item<'a>]> {
    boxes.chunk_by(|one, next| Rc::ptr_eq(&one.under, &next.under))
}

/// Whether a text without `Task N: …` headings is a plan all the same: every box that may be work stands
/// under a heading that may be a task. Numbers alone, and `Week N` over boxes that are no steps, tell only
/// in a folder of plans.
pub(super) fn is_loose_plan(doc: &Document<'_>, is_plan_folder: bool) -> bool {
    let asides = Asides::of(doc);
    let heads = heads(doc, &asides);
    let work = doc.items.iter().filter(|item| asides.is_work(item));
    let work: Vec<&Item<'_>> = work.collect();
    let are_steps = are_steps(&work);
    let told = |at: &usize| {
        let text = doc.headings[*at].text;
        let is_task = || {
            let named = loose_task_heading(text, &WORDS).or_else(|| story_heading(text));
            let counted = || counted_heading(text).filter(|_| are_steps);
            named.or_else(counted).is_some()
        };
        heads[*at].is_some() && (is_plan_folder || is_task())
    };
    let is_told = side_by_side(&work).all(|part| part[0].under.iter().any(told));
    is_told && heads.iter().flatten().count() > 1 && have_boxes(doc, &heads)
}

fn task(
    doc: &Document<'_>,
    id: String,
    title: &str,
    lines: std::ops::Range<u32>,
    done: &[String],
) -> ListTask {
    // Lines are counted from 1.
    let first = lines.start.saturating_sub(1) as usize;
    let inside = doc.lines.iter().skip(first);
    let inside = inside.take_while(|line| lines.contains(&line.number));
    let body: Vec<&str> = inside.clone().skip(1).map(|line| line.text).collect();
    let own = doc.lines.get(first).and_then(heading_box);
    let steps = inside.filter_map(check_box).filter(is_step);
    let steps: Vec<CheckBox<'_>> = own.clone().into_iter().chain(steps).collect();
    // The box of the heading speaks for the whole.
    let ticked = match &own {
        Some(own) => own.is_done(),
        None => !steps.is_empty() && steps.iter().all(CheckBox::is_done),
    };
    let body = body.join("\n").trim().to_owned();
    ListTask {
        has_own_id: true,
        title: match title.is_empty() {
            true => format!("Task {id}"),
            false => title.to_owned(),
        },
        status: match ticked || done.contains(&id) {
            true => TaskStatus::Done,
            false => TaskStatus::Pending,
        },
        human: human_reason(title, ""),
        body,
        section: Some(ListSection {
            id: id.clone(),
            title: title.to_owned(),
        }),
        line: lines.start,
        marks: steps.iter().map(|step| step.mark(0)).collect(),
        id,
        ..ListTask::default()
    }
}

/// A box that shows a box explains how to tick; one that is struck through is no work.
fn is_step(step: &CheckBox<'_>) -> bool {
    !step.text.contains("[ ]") && struck(step.text).is_none()
}

fn leave_out_the_rest(doc: &Document<'_>, heads: &TaskHeads<'_>, list: &mut TaskList) {
    for item in &doc.items {
        let is_inside = item.under.iter().any(|at| heads[*at].is_some());
        if !is_inside {
            let (line, text) = (item.checkbox.line, item.checkbox.text);
            list.leave_out(line, text, "it stands under no `Task N` heading");
        }
    }
}

/// Commands in backticks under `## Validation Commands`: written to be run.
fn validation_commands(doc: &Document<'_>) -> Vec<ListGate> {
    let mut inside = false;
    let mut gates = Vec::new();
    for line in doc.lines.iter().filter(|line| line.kind == LineKind::Plain) {
        if let Some((_, heading)) = line.heading() {
            inside = heading.eq_ignore_ascii_case("validation commands");
        } else if inside {
            gates.extend(listed_command(line.text).map(|command| ListGate {
                command: command.to_owned(),
                from: format!("`Validation Commands`, line {}", line.number),
            }));
        }
    }
    gates
}

/// The command of `- \`make test\` (all of it)`, `- Backend: \`make test\`` or a line of its own. In a
/// sentence it is no command.
fn listed_command(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once('`')?;
    let (command, _) = rest.split_once('`')?;
    let before = before.rsplit(']').next().unwrap_or(before);
    let before = before.trim_start_matches(|c: char| !c.is_alphabetic());
    let is_label = before.is_empty() || before.trim_end().ends_with(':');
    let command = Some(command.trim());
    command.filter(|command| is_label && !command.is_empty())
}

/// `Run: \`cmd\`` with `Expected: PASS`: a model's words, shown and not run.
fn propose_gates(list: &mut TaskList) {
    let mut notes = Vec::new();
    for task in &list.tasks {
        let lines: Vec<&str> = task.body.lines().map(str::trim).collect();
        let passes = lines
            .windows(2)
            .rev()
            .find(|pair| pair[0].starts_with("Run:") && pair[1].starts_with("Expected: PASS"));
        if let Some(command) = passes.and_then(|pair| pair[0].split('`').nth(1)) {
            notes.push((
                task.line,
                format!("it can be checked with --verify '{command}'"),
            ));
        }
    }
    for (line, text) in notes {
        list.note(line, text);
    }
}

/// Tasks that superpowers' own ledger calls complete: `Task 2: complete (…)`.
pub fn ledger_done(ledger: &str) -> Vec<String> {
    let done = |line: &str| {
        let (number, rest) = line.trim().strip_prefix("Task ")?.split_once(':')?;
        rest.trim_start()
            .starts_with("complete")
            .then(|| number.trim().to_owned())
    };
    ledger.lines().filter_map(done).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_step_is_named_up_to_the_first_sign(title in "(a|B| |:|-| - | – |—| — | \\(|é|\\*\\*){0,8}") {
            let bare = title.trim_start_matches(|c: char| !c.is_alphanumeric());
            let ends = [":", " - ", " – ", " — ", " ("];
            let end = ends.iter().filter_map(|end| bare.find(end)).min();
            let name = &bare[..end.unwrap_or(bare.len())];
            let name = name.trim_end_matches(|c: char| !c.is_alphanumeric());
            prop_assert_eq!(step_name(&title), name.to_lowercase());
        }
    }
}
