//! A roadmap made once from a plan that cannot be run in place.

use std::collections::HashSet;
use std::fmt::Write;

use serde_json::Value;

use super::boxes::{Document, check_box, slug};
use super::front_matter::FrontMatter;
use super::model::ListFile;
use crate::roadmap::lines::LineKind;

/// What a plan was read as, and the roadmap that it comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// What people call such a plan.
    pub what: &'static str,
    /// The text of the roadmap.
    pub roadmap: String,
    pub tasks: usize,
}

#[derive(Clone, Debug, Default)]
struct Task {
    id: String,
    title: String,
    body: String,
    depends: Vec<String>,
    files: Vec<String>,
    /// Commands that the plan proposes as proofs.
    checks: Vec<String>,
    mark: char,
}

impl Task {
    fn new(id: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            mark: ' ',
            ..Self::default()
        }
    }

    fn done(mut self, done: bool) -> Self {
        if done {
            self.mark = 'x';
        }
        self
    }
}

/// Reads the tasks of a plan; none where it is not of that kind.
type ReadPlan = fn(&[ListFile]) -> Vec<Task>;

/// Makes a roadmap of these files, which are a plan or the plans of one folder; `name` is what the whole is
/// called, `from` where it lies. `None` where there is nothing to make tasks of.
pub fn import(name: &str, from: &str, files: &[ListFile]) -> Option<Imported> {
    let readers: [(&'static str, ReadPlan); 7] = [
        ("GSD plans", gsd_plans),
        ("Spec Kitty work packages", spec_kitty),
        ("a cueloop queue", queue),
        ("a list of ralphy tasks", ralphy),
        ("BMAD epics", bmad_epics),
        ("a GSD roadmap", gsd_roadmap),
        ("a plan in prose", prose),
    ];
    readers.into_iter().find_map(|(what, read)| {
        let tasks = read(files);
        (!tasks.is_empty()).then(|| Imported {
            what,
            tasks: tasks.len(),
            roadmap: render(name, from, tasks),
        })
    })
}

fn render(name: &str, from: &str, tasks: Vec<Task>) -> String {
    let mut text = format!(
        "# Roadmap: {name}\n\nMade from {from}. Read it before you run it: order and checks are proposals.\n\n## Tasks\n"
    );
    let mut given: HashSet<String> = HashSet::new();
    let known: HashSet<String> = tasks.iter().map(|task| task.id.clone()).collect();
    for task in tasks {
        let mut id = task.id.clone();
        let mut number = 2;
        while !given.insert(id.clone()) {
            id = format!("{}-{number}", task.id);
            number += 1;
        }
        let title = task.title.split_whitespace().collect::<Vec<_>>().join(" ");
        // Text in memory: writing to it does not fail.
        let _ = writeln!(text, "- [{}] **{id}**: {title}", task.mark);
        let depends: Vec<&str> = {
            let all = task.depends.iter().map(String::as_str);
            all.filter(|on| known.contains(*on) && *on != id).collect()
        };
        for (key, value) in [
            ("depends", depends.join(", ")),
            ("files", task.files.join(", ")),
        ] {
            if !value.is_empty() {
                let _ = writeln!(text, "  - {key}: {value}");
            }
        }
        for check in &task.checks {
            let _ = writeln!(
                text,
                "  <!-- - check: {} -->",
                check.replace("--", "-\u{2011}")
            );
        }
        for line in task.body.lines() {
            let _ = writeln!(text, "{}", format!("  > {line}").trim_end());
        }
    }
    text
}

/// Every task after the one before it.
fn chained(mut tasks: Vec<Task>) -> Vec<Task> {
    for at in 1..tasks.len() {
        let before = tasks[at - 1].id.clone();
        tasks[at].depends.push(before);
    }
    tasks
}

fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".md").unwrap_or(name)
}

/// `01-02-PLAN.md`, done where `01-02-SUMMARY.md` is there.
fn gsd_plans(files: &[ListFile]) -> Vec<Task> {
    let name = |file: &ListFile| stem(&file.path).strip_suffix("-PLAN").map(str::to_owned);
    let plans = files.iter().filter_map(|file| Some((name(file)?, file)));
    let is_done = |id: &str| {
        files
            .iter()
            .any(|file| stem(&file.path) == format!("{id}-SUMMARY"))
    };
    let plan = |(id, file): (String, &ListFile)| {
        let front = FrontMatter::read(&file.text);
        let body = file.text[front.end.min(file.text.len())..].trim();
        let objective = between(body, "<objective>", "</objective>")
            .into_iter()
            .next();
        let named = between(body, "<name>", "</name>").into_iter().next();
        let title = objective.or(named).unwrap_or_else(|| format!("Plan {id}"));
        let title = title.lines().next().unwrap_or_default().to_owned();
        Task {
            depends: front.list("depends_on"),
            files: front.list("files_modified"),
            checks: between(body, "<verify>", "</verify>"),
            body: body.to_owned(),
            ..Task::new(id.clone(), title)
        }
        .done(is_done(&id))
    };
    plans.map(plan).collect()
}

/// What stands between two marks, each time.
fn between(text: &str, open: &str, close: &str) -> Vec<String> {
    let parts = text.split(open).skip(1);
    let inner = parts.filter_map(|part| part.split_once(close));
    let inner = inner.map(|(inner, _)| inner.trim().to_owned());
    inner.filter(|inner| !inner.is_empty()).collect()
}

/// `WP01-name.md` with front matter.
fn spec_kitty(files: &[ListFile]) -> Vec<Task> {
    let package = |file: &ListFile| {
        let id = stem(&file.path).split('-').next()?;
        let digits = id.strip_prefix("WP")?;
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let front = FrontMatter::read(&file.text);
        let title = front.text("title").unwrap_or(id).to_owned();
        Some(
            Task {
                depends: front.list("dependencies"),
                body: file.text[front.end.min(file.text.len())..]
                    .trim()
                    .to_owned(),
                ..Task::new(id, title)
            }
            .done(front.text("lane") == Some("done")),
        )
    };
    files.iter().filter_map(package).collect()
}

/// `.ralph/queue.jsonc`: JSON with comments.
fn queue(files: &[ListFile]) -> Vec<Task> {
    let [file] = files else {
        return Vec::new();
    };
    let value: Value = match serde_json::from_str(&without_comments(&file.text)) {
        Ok(value) => value,
        Err(_) => return Vec::new(),
    };
    let tasks = value.get("tasks").and_then(Value::as_array);
    let text = |task: &Value, name: &str| task.get(name).and_then(Value::as_str).map(str::to_owned);
    let list = |task: &Value, name: &str| -> Vec<String> {
        let all = task
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let read = |task: &Value| {
        let (id, title) = (text(task, "id")?, text(task, "title")?);
        let status = text(task, "status").unwrap_or_default();
        let mut read = Task {
            depends: list(task, "depends_on"),
            body: list(task, "plan").join("\n"),
            ..Task::new(slug_or(&id, "task"), title)
        }
        .done(status == "done");
        if status == "rejected" {
            read.mark = '-';
        }
        read.depends = read.depends.iter().map(|on| slug_or(on, "task")).collect();
        Some(read)
    };
    tasks.into_iter().flatten().filter_map(read).collect()
}

fn slug_or(text: &str, other: &str) -> String {
    match slug(text) {
        slug if slug.is_empty() => other.to_owned(),
        slug => slug,
    }
}

/// JSON without `//` and `/* */`, and without commas before a closing bracket.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '"' {
            let end = string_end(rest);
            out.push_str(&rest[..end]);
            rest = &rest[end..];
        } else if let Some(line) = rest.strip_prefix("//") {
            rest = line.find('\n').map_or("", |at| &line[at..]);
        } else if let Some(block) = rest.strip_prefix("/*") {
            rest = block.find("*/").map_or("", |at| &block[at + 2..]);
        } else {
            if matches!(c, ']' | '}') {
                let kept = out.trim_end().trim_end_matches(',').len();
                out.truncate(kept);
            }
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// Where a string that begins a text ends.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// `tasks:` with `- title: …`, `completed: …`, `parallel_group: …`.
fn ralphy(files: &[ListFile]) -> Vec<Task> {
    let [file] = files else {
        return Vec::new();
    };
    let is_yaml = file.path.ends_with(".yaml") || file.path.ends_with(".yml");
    let mut rows: Vec<(Task, Option<String>)> = Vec::new();
    for line in file.text.lines().filter(|_| is_yaml) {
        let bare = line.trim().trim_start_matches("- ");
        let Some((key, value)) = bare.split_once(':') else {
            continue;
        };
        let value = value.trim().trim_matches(['"', '\'']).to_owned();
        match (key.trim(), rows.last_mut()) {
            ("title", _) if line.trim().starts_with('-') => {
                rows.push((Task::new(slug_or(&value, "task"), value), None));
            }
            ("completed", Some((task, _))) if value == "true" => task.mark = 'x',
            ("description", Some((task, _))) => task.body = value,
            ("parallel_group", Some((_, group))) => *group = Some(value),
            _ => {}
        }
    }
    // Tasks of one group run together; groups one after the other.
    let mut before: Vec<String> = Vec::new();
    let mut here: Vec<String> = Vec::new();
    let mut last: Option<Option<String>> = None;
    let mut tasks = Vec::new();
    for (mut task, group) in rows {
        if group.is_none() || last.as_ref() != Some(&group) {
            before = std::mem::take(&mut here);
        }
        task.depends.clone_from(&before);
        here.push(task.id.clone());
        last = Some(group);
        tasks.push(task);
    }
    tasks
}

/// `### Story 1.2: …` under `## Epic 1: …`.
fn bmad_epics(files: &[ListFile]) -> Vec<Task> {
    let mut tasks = Vec::new();
    for file in files {
        for (heading, body) in sections(&file.text) {
            let Some(rest) = heading.strip_prefix("Story ") else {
                continue;
            };
            let (number, title) = rest.split_once(':').unwrap_or((rest, ""));
            let number = number.trim().replace('.', "-");
            if number.starts_with(|c: char| c.is_ascii_digit()) {
                tasks.push(Task {
                    body,
                    ..Task::new(format!("story-{}", slug(&number)), title.trim())
                });
            }
        }
    }
    chained(tasks)
}

/// `- [ ] **Phase 1: Data** - read` of a GSD roadmap without plans.
fn gsd_roadmap(files: &[ListFile]) -> Vec<Task> {
    let [file] = files else {
        return Vec::new();
    };
    let doc = Document::read(&file.text, |_| None);
    let phase = |item: &super::boxes::Item<'_>| {
        let text = item.checkbox.text.trim_start_matches('*');
        let (number, rest) = text.strip_prefix("Phase ")?.split_once(':')?;
        let title = rest.replace("**", "");
        let id = format!("phase-{}", slug(number));
        Some(Task::new(id, title.trim()).done(item.checkbox.is_done()))
    };
    chained(doc.items.iter().filter_map(phase).collect())
}

/// Bullets of the first level, or else headings: what a person plans in.
fn prose(files: &[ListFile]) -> Vec<Task> {
    let [file] = files else {
        return Vec::new();
    };
    let doc = Document::read(&file.text, |_| None);
    let mut tasks = Vec::new();
    let mut heading = String::new();
    let mut seen = HashSet::new();
    for line in &doc.lines {
        if let Some((_, text)) = line.heading() {
            heading = text.to_lowercase();
            continue;
        }
        let is_over = ["done", "completed", "notes", "out of scope"];
        let skipped = is_over.iter().any(|word| heading.starts_with(word));
        let bullet = bullet_of(line.text).filter(|_| line.kind == LineKind::Plain && !skipped);
        let Some(text) = bullet.filter(|_| check_box(line).is_none()) else {
            continue;
        };
        let plain = text.replace(['*', '`'], "");
        let first: String = plain
            .split([':', '.', '('])
            .next()
            .unwrap_or(&plain)
            .to_owned();
        let id = slug_or(&first, "task");
        if seen.insert(plain.clone()) {
            tasks.push(Task::new(id, plain));
        }
    }
    if tasks.is_empty() {
        let all = sections(&file.text).into_iter();
        let all = all.filter(|(_, body)| !body.trim().is_empty());
        tasks = all
            .map(|(heading, body)| Task {
                body,
                ..Task::new(slug_or(&heading, "task"), heading)
            })
            .collect();
    }
    chained(tasks)
}

fn bullet_of(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
    let numbered = || {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        line[digits..].strip_prefix(". ").filter(|_| digits > 0)
    };
    rest.or_else(numbered)
        .map(str::trim)
        .filter(|text| !text.is_empty() && !text.starts_with('~'))
}

/// Headings below the first with what stands under them, up to the next heading.
fn sections(text: &str) -> Vec<(String, String)> {
    let doc = Document::read(text, |_| None);
    let mut found: Vec<(String, String)> = Vec::new();
    let mut level_seen = 0;
    for line in &doc.lines {
        if let Some((level, heading)) = line.heading() {
            level_seen = level;
            if level > 1 {
                found.push((heading.to_owned(), String::new()));
            }
        } else if let Some((_, body)) = found.last_mut().filter(|_| level_seen > 1) {
            body.push_str(line.text);
            body.push('\n');
        }
    }
    for (_, body) in &mut found {
        *body = body.trim().to_owned();
    }
    found
}
