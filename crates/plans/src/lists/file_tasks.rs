//! Formats with a file for each task: Backlog.md, tk, ccpm, and folders of tickets.

use std::borrow::Cow;

use super::boxes::check_box;
use super::format::ListFormat;
use super::front_matter::{Field, FrontMatter};
use super::markdown::{UniqueIds, human_reason};
use super::model::{ListFile, ListTask, Mark, TaskList};
use super::order::ListOrder;
use crate::graph::hash::NameMap;
use crate::graph::{Priority, TaskStatus, natural_cmp};
use crate::roadmap::lines::{RoadmapLine, lines};

/// Reads the files of a folder; `config` is the tool's own, where it has one.
pub(super) fn read(format: ListFormat, files: &[ListFile], config: Option<&str>) -> TaskList {
    let mut list = TaskList::new(format);
    let words = Words::of(format, config);
    let mut ids = UniqueIds::default();
    let mut rows: Vec<TaskLinks> = Vec::new();
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by(|a, b| natural_cmp(&files[*a].path, &files[*b].path));
    for at in order {
        let file = &files[at];
        let Some((mut task, row)) = read_file(format, at, file, &words) else {
            list.leave_out(1, &file.path, "it has no id and no status");
            continue;
        };
        task.id = ids.take(&task.id, 1, &mut list);
        rows.push(row);
        list.tasks.push(task);
    }
    resolve(&mut list, rows);
    name_files(&mut list, files);
    list
}

/// What is said of a task is said of its file.
fn name_files(list: &mut TaskList, files: &[ListFile]) {
    if list.findings.is_empty() {
        return;
    }
    let tasks = list.tasks.iter();
    let files_of: NameMap<&str, usize> = tasks.map(|task| (task.id.as_str(), task.file)).collect();
    for finding in &mut list.findings {
        // The last id of "this one is called `a-2`", and the first of every other message.
        let mut ids = finding.message.split('`').skip(1).step_by(2);
        let id = match finding.message.starts_with("there is a task") {
            true => ids.last(),
            false => ids.next(),
        };
        let file = id.and_then(|id| files_of.get(id));
        if let Some(file) = file.and_then(|at| files.get(*at)) {
            finding.message = format!("{}: {}", file.path, finding.message);
        }
    }
}

struct TaskLinks {
    depends: Vec<String>,
    parent: Option<String>,
    conflicts: Vec<String>,
}

/// The words of a format for its statuses.
struct Words {
    done: Cow<'static, str>,
    open: Cow<'static, str>,
    /// Where the format says what is worked on.
    doing: Option<Cow<'static, str>>,
    /// Every word that means done.
    all_done: Vec<String>,
}

impl Words {
    fn of(format: ListFormat, config: Option<&str>) -> Self {
        let config = config.map(FrontMatter::whole).unwrap_or_default();
        let statuses = config.list("statuses");
        let own = |word: &str| Cow::Owned(word.to_owned());
        let (done, open) = match format {
            ListFormat::Backlog => {
                let first = config.text("default_status");
                let first = first.or(statuses.first().map(String::as_str));
                let done = statuses.last().map(|done| own(done));
                (
                    done.unwrap_or("Done".into()),
                    first.map_or("To Do".into(), own),
                )
            }
            ListFormat::Tickets => ("done".into(), "ready-for-agent".into()),
            _ => ("closed".into(), "open".into()),
        };
        let is_doing = |word: &&String| {
            let word = word.to_lowercase();
            ["in progress", "in-progress", "in_progress", "doing"].contains(&word.as_str())
        };
        let doing = match format {
            ListFormat::Backlog if statuses.is_empty() => Some("In Progress".into()),
            ListFormat::Backlog => statuses.iter().find(is_doing).map(|word| own(word)),
            ListFormat::Tk => Some("in_progress".into()),
            ListFormat::Ccpm => Some("in-progress".into()),
            _ => None,
        };
        let mut all_done = vec![done.to_lowercase()];
        if format != ListFormat::Backlog {
            let more = ["closed", "done", "completed", "resolved", "wontfix"];
            all_done.extend(more.map(str::to_owned));
        }
        Self {
            done,
            open,
            doing,
            all_done,
        }
    }

    fn status(&self, word: &str) -> TaskStatus {
        let word = word.trim().to_lowercase();
        let first = word.split([' ', '(', '—']).next().unwrap_or(&word);
        if self
            .all_done
            .iter()
            .any(|done| *done == word || done == first)
        {
            return TaskStatus::Done;
        }
        match word.as_str() {
            "blocked" => TaskStatus::Blocked,
            "in progress" | "in-progress" | "in_progress" | "claimed" | "doing" | "review" => {
                TaskStatus::InProgress
            }
            _ => TaskStatus::Pending,
        }
    }
}

fn read_file(
    format: ListFormat,
    at: usize,
    file: &ListFile,
    words: &Words,
) -> Option<(ListTask, TaskLinks)> {
    let front = FrontMatter::read(&file.text);
    let all = lines(&file.text, &mut Vec::new());
    let lines = HeadLines::of(&all);
    let own = match format {
        ListFormat::Tickets => number_of(&file.path),
        ListFormat::Ccpm => stem(&file.path),
        _ => front.text("id").map(str::to_owned),
    }?;
    let field = |name: &str| front.get(name).or_else(|| lines.get(name));
    let status = field("status");
    let word = status.map_or("", Field::text);
    let body = file.text[front.end.min(file.text.len())..]
        .trim()
        .to_owned();
    let title = front.text("title").or_else(|| front.text("name"));
    let heading = first_heading(&body);
    let human = human_of(word, heading);
    let title = title.or(heading).map(str::to_owned);
    let in_done_folder = format == ListFormat::Backlog && file.path.starts_with("completed/");
    let status_now = match in_done_folder {
        true => TaskStatus::Done,
        false => words.status(word),
    };
    let is_wayfinder = format == ListFormat::Tickets && lines.get("type").is_some();
    let done = match is_wayfinder {
        true => Cow::Borrowed("resolved"),
        false => words.done.clone(),
    };
    let mut marks: Vec<Mark> = status
        .iter()
        .map(|field| mark(at, field, words, done.clone()))
        .collect();
    marks.extend(criteria(format, at, &all));
    let depends = ["dependencies", "depends_on", "deps", "blocked by"];
    let depends = depends.iter().find_map(|name| field(name));
    let task = ListTask {
        id: own.clone(),
        has_own_id: true,
        title: title.unwrap_or(own),
        human,
        body,
        status: status_now,
        priority: priority_of(front.text("priority")),
        file: at,
        line: 1,
        marks,
        ..ListTask::default()
    };
    let row = TaskLinks {
        depends: depends.map_or_else(Vec::new, |field| ids_in(format, field)),
        parent: front.text("parent_task_id").map(str::to_owned),
        conflicts: front.list("conflicts_with"),
    };
    Some((task, row))
}

fn mark(file: usize, field: &Field, words: &Words, done: Cow<'static, str>) -> Mark {
    Mark {
        file,
        span: field.span.clone(),
        done,
        open: words.open.clone(),
        doing: words.doing.clone(),
        is_done: words.status(field.text()) == TaskStatus::Done,
    }
}

/// Boxes that are ticked with the task: all of a ticket's, the acceptance criteria of Backlog.md.
fn criteria(format: ListFormat, file: usize, all: &[RoadmapLine<'_>]) -> Vec<Mark> {
    let is_ticked = |text: &str| match format {
        ListFormat::Backlog => text.starts_with('#'),
        _ => true,
    };
    match format {
        ListFormat::Backlog | ListFormat::Tickets => all
            .iter()
            .filter_map(check_box)
            .filter(|found| is_ticked(found.text))
            .map(|found| found.mark(file))
            .collect(),
        _ => Vec::new(),
    }
}

fn human_of(word: &str, heading: Option<&str>) -> Option<String> {
    match word.trim().to_lowercase().as_str() {
        word @ ("ready-for-human" | "needs-triage" | "needs-info") => {
            Some(format!("its status is `{word}`"))
        }
        _ => heading.and_then(|title| human_reason(title, "")),
    }
}

fn priority_of(word: Option<&str>) -> Priority {
    match word.map(str::to_lowercase).as_deref() {
        Some("0" | "p0") => Priority::Critical,
        Some("1" | "p1") => Priority::High,
        Some("3" | "4" | "p3") => Priority::Low,
        Some(word) => Priority::from_word(word).unwrap_or_default(),
        None => Priority::default(),
    }
}

/// Ids of a list; in tickets the numbers of a sentence: `01 (Header line), 02`.
fn ids_in(format: ListFormat, field: &Field) -> Vec<String> {
    if format != ListFormat::Tickets {
        return field.values.clone();
    }
    let text = field.values.join(",");
    let parts = text.split([',', ';', '&']).map(str::trim);
    let number = |part: &str| {
        let part = part.trim_start_matches(['#', '[', '`']);
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        (!digits.is_empty()).then_some(digits)
    };
    parts.filter_map(number).collect()
}

/// `01` of `issues/01-header-line.md`.
fn number_of(path: &str) -> Option<String> {
    let stem = stem(path)?;
    let digits: String = stem.chars().take_while(char::is_ascii_digit).collect();
    (!digits.is_empty()).then_some(digits)
}

fn stem(path: &str) -> Option<String> {
    let name = path.rsplit('/').next()?;
    name.strip_suffix(".md").map(str::to_owned)
}

fn first_heading(text: &str) -> Option<&str> {
    let all = lines(text, &mut Vec::new());
    let mut headings = all.iter().filter_map(RoadmapLine::heading);
    headings.find_map(|(level, heading)| (level == 1).then_some(heading))
}

/// `Status: done` and `**Blocked by:** 01` among the first lines of a ticket.
struct HeadLines {
    fields: Vec<(&'static str, Field)>,
}

impl HeadLines {
    fn of(all: &[RoadmapLine<'_>]) -> Self {
        let fields = all.iter().filter_map(|line| {
            let bare = line.text.trim_start_matches('*');
            let (key, value) = bare.split_once(':')?;
            let known = ["status", "blocked by", "type"];
            let key = key.trim_end_matches('*').trim().to_lowercase();
            let key = known.into_iter().find(|known| *known == key)?;
            if line.heading().is_some() || check_box(line).is_some() {
                return None;
            }
            let inner = value.trim_start_matches('*').trim();
            let lead = line.text.len() - value.trim_start_matches('*').trim_start().len();
            let start = line.start + lead;
            let field = Field {
                span: start..start + inner.len(),
                line: line.number,
                values: vec![inner.to_owned()],
            };
            Some((key, field))
        });
        Self {
            fields: fields.collect(),
        }
    }

    fn get(&self, name: &str) -> Option<&Field> {
        let found = self.fields.iter().find(|(key, _)| *key == name);
        found.map(|(_, field)| field)
    }
}

/// Ids are compared without case and leading zeros. A task with parts is done after them.
fn resolve(list: &mut TaskList, rows: Vec<TaskLinks>) {
    let key = |id: &str| {
        let (letters, digits) =
            id.split_at(id.find(|c: char| c.is_ascii_digit()).unwrap_or(id.len()));
        let mut key = letters.to_lowercase();
        key.push_str(digits.trim_start_matches('0'));
        match key.is_ascii() {
            true => key.make_ascii_lowercase(),
            false => key = key.to_lowercase(),
        }
        key
    };
    let known: NameMap<String, String> = {
        let all = list.tasks.iter();
        all.map(|task| (key(&task.id), task.id.clone())).collect()
    };
    let named = |wanted: &String| known.get(&key(wanted)).unwrap_or(wanted).clone();
    let places: NameMap<&str, usize> = {
        let all = list.tasks.iter().enumerate();
        all.map(|(at, task)| (task.id.as_str(), at)).collect()
    };
    let mut edges: Vec<(String, Vec<String>)> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let id = list.tasks[at].id.clone();
        edges.push((id.clone(), row.depends.iter().map(named).collect()));
        if let Some(parent) = row.parent.as_ref().map(named) {
            edges.push((parent, vec![id.clone()]));
        }
        // Of two that may not run together, the second waits.
        let earlier = |other: &String| places.get(other.as_str()).is_some_and(|place| *place < at);
        let conflicts = row.conflicts.iter().map(named).filter(earlier);
        let conflicts: Vec<String> = conflicts.collect();
        if !conflicts.is_empty() {
            edges.push((id, conflicts));
        }
    }
    // Files stand in no order.
    let mut order = ListOrder::new(list);
    order.add_unordered(list, edges);
    order.finish(list);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lists::boxes::Document;

    proptest! {
        #[test]
        fn the_first_heading_is_that_of_the_document(
            text in "((# a|## b|#c|# |```|~~~|<!--|-->|- \\[ \\] d|  # e|é)\n){0,9}",
        ) {
            let doc = Document::read(&text, |_| None);
            let first = doc.headings.iter().find(|heading| heading.level == 1);
            prop_assert_eq!(first_heading(&text), first.map(|heading| heading.text));
        }
    }
}
