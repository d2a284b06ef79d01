//! Plans whose tasks are headings `### Task N: …` and whose boxes are steps (superpowers, ralphex).

use super::boxes::{CheckBox, Document, check_box, struck};
use super::format::ListFormat;
use super::markdown::{UniqueIds, human_reason};
use super::model::{ListGate, ListSection, ListTask, TaskList};
use super::order::chain;
use crate::graph::TaskStatus;
use crate::roadmap::lines::LineKind;
use crate::roadmap::task_heading::task_heading;

/// Reads a plan; `done` are the tasks that a ledger beside it calls complete.
pub(super) fn read(text: &str, done: &[String]) -> TaskList {
    let doc = Document::read(text, |_| None);
    let mut list = TaskList::new(ListFormat::Plan);
    list.findings.clone_from(&doc.findings);
    let mut ids = UniqueIds::default();
    let heads: Vec<Option<(&str, &str)>> = {
        let all = doc.headings.iter();
        all.map(|heading| task_heading(heading.text, &WORDS))
            .collect()
    };
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
    let steps: Vec<CheckBox<'_>> = inside.filter_map(check_box).filter(is_step).collect();
    let ticked = !steps.is_empty() && steps.iter().all(CheckBox::is_done);
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

fn leave_out_the_rest(doc: &Document<'_>, heads: &[Option<(&str, &str)>], list: &mut TaskList) {
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
            let command = line.text.split('`').nth(1).map(str::trim);
            gates.extend(
                command
                    .filter(|command| !command.is_empty())
                    .map(|command| ListGate {
                        command: command.to_owned(),
                        from: format!("`Validation Commands`, line {}", line.number),
                    }),
            );
        }
    }
    gates
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
