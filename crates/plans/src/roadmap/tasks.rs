//! Tasks: their lines, properties and bodies.

use super::keys::Keys;
use super::lines::{LineKind, RoadmapLine};
use super::model::{CheckMark, Phase, Roadmap, RoadmapTask};
use super::open_task::Open;
use super::property::{looks_like_property, property};
use super::task_line::{Item, Name, item};
use descartes_text::finding::{Finding, Place};

/// Reads the lines of the section that holds the tasks.
pub(super) fn read(lines: &[RoadmapLine<'_>], roadmap: &mut Roadmap) {
    let mut reader = TaskReader {
        base: None,
        open: None,
        roadmap,
    };
    for line in lines {
        reader.take(line);
    }
    reader.close();
}

/// The line on which a task begins, as far as its checkbox is concerned.
pub(super) struct TaskHead<'a> {
    pub(super) id: &'a str,
    pub(super) line: u32,
    pub(super) mark: CheckMark,
    /// The byte of the checkbox's character in the file; `None` where it holds no mark.
    pub(super) checkbox: Option<usize>,
}

/// The heads of the tasks that [`read`] finds in these lines.
pub(super) fn heads<'a>(lines: &[RoadmapLine<'a>], out: &mut Vec<TaskHead<'a>>) {
    let mut base = None;
    for line in lines {
        let Some((found, name)) = item(line).and_then(|item| Some((item, item.name?))) else {
            continue;
        };
        if line.indent() > *base.get_or_insert(line.indent()) {
            continue;
        }
        let mark = CheckMark::of(found.mark).filter(|_| found.checkbox.is_some());
        out.push(TaskHead {
            id: name.id,
            line: line.number,
            mark: mark.unwrap_or_default(),
            checkbox: found
                .checkbox
                .filter(|_| mark.is_some())
                .map(|at| line.start + at),
        });
    }
}

/// A line that looks like a task with an id.
pub(super) fn is_task(line: &RoadmapLine<'_>) -> bool {
    item(line).is_some_and(|item| item.name.is_some())
}

struct TaskReader<'r, 'a> {
    /// How far the first task is indented; deeper ones are parts of a task's text.
    base: Option<usize>,
    open: Option<Open<'a>>,
    roadmap: &'r mut Roadmap,
}

impl<'a> TaskReader<'_, 'a> {
    fn take(&mut self, line: &RoadmapLine<'a>) {
        match (line.kind, line.heading(), item(line)) {
            (LineKind::Comment, ..) => self.comment(line),
            (_, Some((level, name)), _) if level <= 3 => {
                self.close();
                if level == 3 {
                    let phase = Phase {
                        name: phase_name(name).to_owned(),
                        line: line.number,
                    };
                    self.roadmap.phases.push(phase);
                }
            }
            (_, _, Some(item)) => self.item(line, item),
            _ => self.text(line),
        }
    }

    fn comment(&mut self, line: &RoadmapLine<'a>) {
        let inner = RoadmapLine {
            kind: LineKind::Plain,
            ..*line
        };
        if is_task(&inner) {
            let message = "this task is inside a comment and will not run";
            self.roadmap
                .findings
                .push(Finding::note(Place::line(line.number), message));
        }
    }

    fn item(&mut self, line: &RoadmapLine<'a>, found: Item<'a>) {
        let indent = line.indent();
        let base = self.base.unwrap_or(indent);
        match found.name {
            Some(name) if indent <= base => {
                self.base = Some(base);
                self.begin(line, found, name);
            }
            Some(name) => {
                let whole = self.open.as_ref().map_or("", |open| open.task.id.as_str());
                let message = format!(
                    "`{}` is indented, so it is part of the text of `{whole}`, not a task",
                    name.id
                );
                let hint = "to make it a task, indent it like the other tasks";
                self.say(Finding::warning(line.place(indent), message).hint(hint));
                self.text(line);
            }
            None if indent == 0 || self.open.is_none() => {
                self.close();
                let message = format!("a task without an id: `{}`", found.rest);
                let hint = format!("write - [ ] **some-id**: {}", found.rest);
                self.say(Finding::error(line.place(indent), message).hint(hint));
            }
            None => self.text(line),
        }
    }

    fn begin(&mut self, line: &RoadmapLine<'a>, found: Item<'a>, name: Name<'a>) {
        self.close();
        let place = line.place(line.indent());
        let mark = CheckMark::of(found.mark).filter(|_| found.checkbox.is_some());
        if mark.is_none() {
            let message = format!(
                "the checkbox of `{}` is not one of [ ] [x] [X] [-] [!]",
                name.id
            );
            self.say(Finding::error(place, message).hint("write [ ]"));
        }
        if name.description.is_empty() {
            self.say(Finding::warning(
                place,
                format!("task `{}` does not say what to do", name.id),
            ));
        }
        self.open = Some(Open {
            task: RoadmapTask {
                id: name.id.to_owned(),
                description: name.description.to_owned(),
                body: String::new(),
                mark: mark.unwrap_or_default(),
                phase: self.roadmap.phases.len().checked_sub(1),
                keys: Keys::default(),
                place,
                checkbox: line.start + found.checkbox.unwrap_or(0),
                end: line.end(),
            },
            body: Vec::new(),
            given: Vec::new(),
            wrapping: None,
        });
    }

    fn text(&mut self, line: &RoadmapLine<'a>) {
        let findings = &mut self.roadmap.findings;
        let Some(open) = &mut self.open else {
            if line.kind == LineKind::Plain && !line.is_blank() && looks_like_property(line) {
                let message = "this property does not belong to a task";
                findings.push(Finding::warning(Place::line(line.number), message));
            }
            return;
        };
        if !line.is_blank() {
            open.task.end = line.end();
        }
        let is_property = line.kind == LineKind::Plain && property(line, open, findings);
        if !is_property && !open.wrap(line) {
            open.body.push(line.text);
        }
    }

    fn say(&mut self, finding: Finding) {
        self.roadmap.findings.push(finding);
    }

    fn close(&mut self) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        open.task.body = dedent(&open.body);
        promise_in_words(&open.task, &mut self.roadmap.findings);
        self.roadmap.tasks.push(open.task);
    }
}

/// `Phase 2: Output` is called "Output".
fn phase_name(heading: &str) -> &str {
    let after = heading.strip_prefix("Phase").map(str::trim_start);
    let name = after.map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    match (after, name) {
        (Some(after), Some(name)) if after.len() > name.len() => {
            let name = name.trim_start_matches([':', ' ', '\t', '-', '–', '—']);
            if name.is_empty() { heading } else { name }
        }
        _ => heading,
    }
}

/// Lines without their common indentation, and without what only separates them from others:
/// blank lines around them, and rules behind them.
fn dedent(lines: &[&str]) -> String {
    let is_blank = |line: &&str| line.trim().is_empty();
    let start = lines
        .iter()
        .position(|line| !is_blank(line))
        .unwrap_or(lines.len());
    let says = |line: &&str| !is_blank(line) && !is_rule(line);
    let end = lines.iter().rposition(says).map_or(start, |end| end + 1);
    let lines = &lines[start.min(end)..end];
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let common = lines
        .iter()
        .filter(|line| !is_blank(line))
        .map(indent)
        .min()
        .unwrap_or(0);
    let cut = lines
        .iter()
        .map(|line| line.get(common..).unwrap_or("").trim_end());
    cut.collect::<Vec<_>>().join("\n")
}

/// A line that only draws a line.
fn is_rule(line: &str) -> bool {
    let marks: String = line.chars().filter(|c| !c.is_whitespace()).collect();
    ['-', '*', '_']
        .iter()
        .any(|mark| marks.len() >= 3 && marks.chars().all(|c| c == *mark))
}

/// A text that asks for another promise than the one that is waited for.
fn promise_in_words(task: &RoadmapTask, findings: &mut Vec<Finding>) {
    if task.keys.ralph != Some(true) {
        return;
    }
    let waited = task
        .keys
        .completion_promise
        .as_deref()
        .unwrap_or("COMPLETE");
    let text = [task.description.as_str(), task.body.as_str()].join("\n");
    let told = text
        .split("<promise>")
        .nth(1)
        .and_then(|rest| rest.split_once("</promise>"));
    if let Some((told, _)) = told.filter(|(told, _)| !told.trim().eq_ignore_ascii_case(waited)) {
        let told = told.trim();
        let message =
            format!("the text asks for the promise `{told}`, but the task expects `{waited}`");
        let hint = format!("write - completion_promise: {told}");
        findings.push(Finding::warning(task.place, message).hint(hint));
    }
}
