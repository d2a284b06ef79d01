//! BMAD: `sprint-status.yaml` lists the stories, each with a file of its own.

use std::collections::HashMap;

use super::boxes::{Document, check_box};
use super::file_order::chain;
use super::format::ListFormat;
use super::front_matter::FrontMatter;
use super::markdown::UniqueIds;
use super::model::{ListFile, ListSection, ListTask, Mark, TaskList};
use crate::graph::TaskStatus;
use crate::roadmap::lines::{LineKind, lines};

/// The status file is the first of `files`, stories are the others.
pub(super) fn read(files: &[ListFile]) -> TaskList {
    let mut list = TaskList::new(ListFormat::Bmad);
    let Some(status) = files.first() else {
        return list;
    };
    let mut ids = UniqueIds::default();
    let mut named: HashMap<&str, usize> = HashMap::new();
    for (at, file) in files.iter().enumerate().skip(1) {
        let name = file.path.rsplit('/').next().unwrap_or(&file.path);
        named.entry(name).or_insert(at);
    }
    for row in rows(&status.text) {
        if row.key.starts_with("epic-") {
            continue;
        }
        let names = [format!("{}.md", row.key), format!("spec-{}.md", row.key)];
        let found = names.iter().filter_map(|name| named.get(name.as_str()));
        let file = found.min().copied();
        let is_done = matches!(row.value, "review" | "done");
        let Some(at) = file else {
            match is_done {
                true => list.tasks.push(done_without_file(&row)),
                false => list.leave_out(row.line, row.key, "it has no story file yet"),
            }
            continue;
        };
        let id = ids.take(row.key, row.line, &mut list);
        let mut task = story(at, &files[at], id);
        task.status = match row.value {
            _ if is_done => TaskStatus::Done,
            "in-progress" => TaskStatus::InProgress,
            "ready-for-dev" => TaskStatus::Pending,
            _ => {
                let why = format!("its status is `{}`, not `ready-for-dev`", row.value);
                list.leave_out(row.line, row.key, why);
                continue;
            }
        };
        task.line = row.line;
        task.marks.insert(
            0,
            Mark {
                file: 0,
                span: row.span.clone(),
                done: "review".into(),
                open: "ready-for-dev".into(),
                doing: None,
                is_done,
            },
        );
        list.tasks.push(task);
    }
    chain(&mut list);
    list
}

struct StoryRow<'a> {
    key: &'a str,
    value: &'a str,
    span: std::ops::Range<usize>,
    line: u32,
}

/// The entries under `development_status:`.
fn rows(text: &str) -> Vec<StoryRow<'_>> {
    let mut inside = false;
    let mut start = 0;
    // What stands deeper than the first entry belongs to the entry above it.
    let mut depth = None;
    let mut found = Vec::new();
    for (line, number) in text.split_inclusive('\n').zip(1..) {
        let (at, bare) = (start, line.trim_end());
        start += line.len();
        if !bare.starts_with([' ', '\t']) {
            if !bare.is_empty() && !bare.starts_with('#') {
                inside = bare.starts_with("development_status:");
            }
            continue;
        }
        let Some((key, value)) = bare.split_once(':').filter(|_| inside) else {
            continue;
        };
        let indent = key.len() - key.trim_start().len();
        if key.trim_start().starts_with('#') || *depth.get_or_insert(indent) < indent {
            continue;
        }
        let value = value.split(" #").next().unwrap_or(value);
        let lead = value.len() - value.trim_start().len();
        let from = at + key.len() + 1 + lead;
        let (key, value) = (key.trim(), value.trim());
        found.push(StoryRow {
            key,
            value,
            span: from..from + value.len(),
            line: number,
        });
    }
    found
}

/// A story whose file is gone, and whose work is done.
fn done_without_file(row: &StoryRow<'_>) -> ListTask {
    ListTask {
        id: row.key.to_owned(),
        has_own_id: true,
        title: row.key.to_owned(),
        status: TaskStatus::Done,
        line: row.line,
        ..ListTask::default()
    }
}

fn story(at: usize, file: &ListFile, id: String) -> ListTask {
    let front = FrontMatter::read(&file.text);
    let doc = Document::read(&file.text, |_| None);
    let heading = doc.headings.iter().find(|heading| heading.level == 1);
    let title = front.text("title").map(str::to_owned);
    let title = title.or_else(|| heading.map(|heading| heading.text.to_owned()));
    let epic = id.split('-').next().unwrap_or(&id).to_owned();
    let mut marks = Vec::new();
    if let Some(field) = front.get("status") {
        marks.push(status_mark(
            at,
            field.span.clone(),
            field.text(),
            "in-review",
        ));
    } else if let Some((span, word)) = status_line(&file.text) {
        marks.push(status_mark(at, span, &word, "review"));
    }
    let in_tasks = |item: &super::boxes::Item<'_>| {
        let above = item.under.iter().map(|at| doc.headings[*at].text);
        above.into_iter().any(|text| text.starts_with("Tasks"))
    };
    for item in doc.items.iter().filter(|item| in_tasks(item)) {
        marks.extend(
            item.marks()
                .into_iter()
                .map(|mark| Mark { file: at, ..mark }),
        );
    }
    ListTask {
        has_own_id: true,
        title: title.unwrap_or_else(|| id.clone()),
        body: file.text[front.end.min(file.text.len())..]
            .trim()
            .to_owned(),
        gates: verification(&doc),
        section: Some(ListSection {
            title: format!("Epic {epic}"),
            id: format!("epic-{epic}"),
        }),
        file: at,
        marks,
        id,
        ..ListTask::default()
    }
}

fn status_mark(file: usize, span: std::ops::Range<usize>, word: &str, done: &'static str) -> Mark {
    Mark {
        file,
        span,
        done: done.into(),
        open: "ready-for-dev".into(),
        doing: None,
        is_done: matches!(word, "review" | "in-review" | "done"),
    }
}

/// `Status: ready-for-dev` in a line of its own.
fn status_line(text: &str) -> Option<(std::ops::Range<usize>, String)> {
    let all = lines(text, &mut Vec::new());
    let plain = all
        .iter()
        .filter(|line| line.kind == LineKind::Plain && check_box(line).is_none());
    let mut found = plain.filter_map(|line| {
        let value = line.text.strip_prefix("Status:")?;
        let word = value.trim();
        let start = line.end() - value.trim_start().len();
        Some((start..start + word.len(), word.to_owned()))
    });
    found.next()
}

/// Commands in backticks under `## Verification`, behind `**Commands:**`.
fn verification(doc: &Document<'_>) -> Vec<String> {
    let (mut inside, mut commands) = (false, false);
    let mut found = Vec::new();
    for line in doc.lines.iter().filter(|line| line.kind == LineKind::Plain) {
        if let Some((_, heading)) = line.heading() {
            inside = heading.eq_ignore_ascii_case("verification");
            commands = false;
        } else if inside && line.text.trim().starts_with("**") {
            commands = line.text.trim().trim_matches('*').trim_end_matches(':') == "Commands";
        } else if inside && commands && line.text.trim_start().starts_with('-') {
            let command = line.text.split('`').nth(1).map(str::trim);
            found.extend(command.filter(|text| !text.is_empty()).map(str::to_owned));
        }
    }
    found
}
