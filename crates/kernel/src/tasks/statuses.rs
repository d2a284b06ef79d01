//! The statuses of tasks that landed, as a change of the task file that is committed.
//!
//! The file is a person's. Its statuses are committed only where nothing else of it differs from
//! what is committed already; then the new text is the committed one with the statuses of what
//! landed, and of nothing else: another task may be at work meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::config::TaskFile;
use descartes_plans::graph::{TaskId, TaskStatus};
use descartes_plans::lists::{
    self, KnownTask, ListContext, ListFile, ListFormat, ListOptions, ListTask, TaskList,
};
use descartes_plans::roadmap::{self, CheckMark};
use descartes_plans::scud::{self, Form};

/// What a loop has to do with the statuses of its tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskMarks {
    /// Tasks whose work is in what lands, proven by this loop.
    pub landed: Vec<TaskId>,
    /// Tasks whose statuses this loop has written.
    pub ours: BTreeSet<TaskId>,
    /// All tasks with their titles: by these a list is told from one that was numbered anew.
    pub titles: Vec<KnownTask>,
}

/// What becomes of a committed task file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusText {
    /// It gets another text.
    New {
        text: String,
        /// Tasks that it marks done.
        tasks: Vec<TaskId>,
    },
    /// It says so already.
    Same,
    /// It is left as it is; why.
    LeftAlone(String),
}

const MORE: &str = "it differs from the committed version by more than this loop's status changes";

/// The committed text with the statuses of what landed, where the working copy differs from it by
/// statuses of this loop alone.
pub fn landed_text(
    file: &TaskFile,
    committed: &str,
    working: &str,
    marks: &TaskMarks,
    now: Timestamp,
) -> StatusText {
    let landed = match file {
        TaskFile::Scud { tag, file } => {
            let name = file.file_name().map(|name| name.to_string_lossy());
            let form = name.and_then(|name| Form::of_file_name(&name));
            match form {
                Some(form) => Scud { form, tag }.landed(committed, working, marks, now),
                None => None,
            }
        }
        TaskFile::Roadmap { .. } => roadmap_text(committed, working, marks),
        // Nothing of it is in a file.
        TaskFile::Tracker(_) => return StatusText::Same,
        TaskFile::List { .. } => {
            let versions = [FileVersions {
                path: String::new(),
                committed: committed.to_owned(),
                working: working.to_owned(),
            }];
            let found = landed_list(file, &versions, None, marks);
            return found.into_iter().next().unwrap_or(StatusText::Same);
        }
    };
    match landed {
        None => StatusText::LeftAlone(MORE.to_owned()),
        Some((text, _)) if text == committed => StatusText::Same,
        Some((text, tasks)) => StatusText::New { text, tasks },
    }
}

struct Scud<'a> {
    form: Form,
    tag: &'a str,
}

impl Scud<'_> {
    fn statuses(&self, text: &str) -> Option<BTreeMap<String, (TaskStatus, Option<String>)>> {
        let file = scud::parse(text, &self.form).ok()?;
        let tasks = file.tag(self.tag)?.tasks.iter();
        let entry = |task: &scud::ScudTask| {
            let parent = task.parent.clone();
            (task.id.clone(), (task.status, parent))
        };
        Some(tasks.map(entry).collect())
    }

    fn set(&self, text: &str, id: &str, status: TaskStatus, now: Timestamp) -> Option<String> {
        let edit = scud::set_status(text, &self.form, self.tag, id, None, status, now).ok()?;
        Some(edit.new_text)
    }

    /// Sets a status in a way that the time of its last change is the same, whatever it was.
    fn touch(&self, text: &str, id: &str, status: TaskStatus, now: Timestamp) -> Option<String> {
        let other = match status {
            TaskStatus::Pending => TaskStatus::InProgress,
            _ => TaskStatus::Pending,
        };
        let text = self.set(text, id, other, now)?;
        self.set(&text, id, status, now)
    }

    fn landed(
        &self,
        committed: &str,
        working: &str,
        marks: &TaskMarks,
        now: Timestamp,
    ) -> Option<(String, Vec<TaskId>)> {
        let (old, new) = (self.statuses(committed)?, self.statuses(working)?);
        let is_parent = |id: &str| {
            new.values()
                .any(|(_, parent)| parent.as_deref() == Some(id))
        };
        // With its last part a task becomes done as well.
        let is_ours = |id: &str, status: TaskStatus| match status {
            TaskStatus::Pending | TaskStatus::InProgress | TaskStatus::Blocked => {
                marks.ours.contains(id)
            }
            TaskStatus::Done => marks.ours.contains(id) || is_parent(id),
            _ => false,
        };
        let (mut one, mut two) = (committed.to_owned(), working.to_owned());
        for (id, (status, _)) in &new {
            let differs = old.get(id).is_none_or(|(before, _)| before != status);
            if differs && !is_ours(id, *status) {
                return None;
            }
            if differs || marks.ours.contains(id.as_str()) {
                one = self.touch(&one, id, *status, now)?;
                two = self.touch(&two, id, *status, now)?;
            }
        }
        if one != two {
            return None;
        }
        let is_new = |id: &&TaskId| {
            let before = old.get(&***id);
            before.is_none_or(|(status, _)| *status != TaskStatus::Done)
        };
        let tasks: Vec<TaskId> = marks.landed.iter().filter(is_new).cloned().collect();
        let mut text = committed.to_owned();
        for id in &tasks {
            text = self.set(&text, id, TaskStatus::Done, now)?;
        }
        // Where they agree, the times of the working copy are the ones to keep.
        let same = !tasks.is_empty() && self.statuses(&text)? == new;
        let text = match same {
            true => working.to_owned(),
            false => text,
        };
        Some((text, tasks))
    }
}

fn roadmap_text(
    committed: &str,
    working: &str,
    marks: &TaskMarks,
) -> Option<(String, Vec<TaskId>)> {
    let mut one = committed.to_owned();
    for id in &marks.ours {
        let mark = roadmap::mark_of(working, id)?;
        if roadmap::mark_of(committed, id)? != mark {
            one = match mark {
                CheckMark::Open | CheckMark::Done => {
                    roadmap::set_mark(&one, id, None, mark).ok()?.new_text
                }
                _ => return None,
            };
        }
    }
    if one != working {
        return None;
    }
    let is_new = |id: &&TaskId| roadmap::mark_of(committed, id) != Some(CheckMark::Done);
    let tasks: Vec<TaskId> = marks.landed.iter().filter(is_new).cloned().collect();
    let mut text = committed.to_owned();
    for id in &tasks {
        text = roadmap::set_mark(&text, id, None, CheckMark::Done)
            .ok()?
            .new_text;
    }
    Some((text, tasks))
}

/// A file of a list as it is committed, and as it is in the user's checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVersions {
    pub path: String,
    pub committed: String,
    pub working: String,
}

/// As [`landed_text`] for a list of another tool, whose tasks may have a file each; one answer for each
/// file. `config` is the tool's own.
pub fn landed_list(
    source: &TaskFile,
    files: &[FileVersions],
    config: Option<String>,
    marks: &TaskMarks,
) -> Vec<StatusText> {
    let TaskFile::List {
        format,
        options,
        tag,
        ..
    } = source
    else {
        return Vec::new();
    };
    let list = ListText {
        format: *format,
        options: *options,
        context: ListContext {
            tag: tag.clone(),
            config,
            known: &marks.titles,
            ..ListContext::default()
        },
    };
    list.landed(files, marks)
}

/// Puts changed files into their places.
fn put(files: &mut [ListFile], changed: Option<Vec<ListFile>>) {
    for new in changed.into_iter().flatten() {
        let old = files.iter_mut().find(|old| old.path == new.path);
        if let Some(old) = old {
            *old = new;
        }
    }
}

struct ListText<'a> {
    format: ListFormat,
    options: ListOptions,
    context: ListContext<'a>,
}

impl ListText<'_> {
    fn read(&self, files: &[ListFile]) -> TaskList {
        lists::read(self.format, files, &self.context, self.options)
    }

    fn set(&self, files: &mut [ListFile], id: &str, done: bool) {
        let changed = self.read(files).set_done(files, id, done);
        put(files, changed);
    }

    fn landed(&self, files: &[FileVersions], marks: &TaskMarks) -> Vec<StatusText> {
        let file = |path: &str, text: &str| ListFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let committed = files.iter().map(|of| file(&of.path, &of.committed));
        let committed: Vec<ListFile> = committed.collect();
        let working = files.iter().map(|of| file(&of.path, &of.working));
        let working: Vec<ListFile> = working.collect();
        let (old, new) = (self.read(&committed), self.read(&working));
        // With our own marks the committed files are the user's, or somebody changed more.
        let mut ours = committed.clone();
        for id in &marks.ours {
            if let (Some(before), Some(now)) = (old.task(id), new.task(id))
                && before.is_done() != now.is_done()
            {
                self.set(&mut ours, id, now.is_done());
            }
            // That it is worked on is ours as well, and does not land.
            let is_doing = |task: &ListTask| task.status == TaskStatus::InProgress;
            if let (Some(before), Some(now)) = (old.task(id), new.task(id))
                && !now.is_done()
                && is_doing(before) != is_doing(now)
            {
                let changed = self.read(&ours).set_doing(&ours, id, is_doing(now));
                put(&mut ours, changed);
            }
        }
        let is_ours = |at: usize| ours[at] == working[at];
        let is_new = |id: &&TaskId| {
            let task = old.task(id).filter(|task| !task.is_done());
            task.is_some_and(|task| task.marks.iter().all(|mark| is_ours(mark.file)))
        };
        let tasks: Vec<&TaskId> = marks.landed.iter().filter(is_new).collect();
        let mut landed = committed.clone();
        for id in &tasks {
            self.set(&mut landed, id, true);
        }
        let marked_in = |at: usize, id: &TaskId| {
            let task = old.task(id);
            task.is_some_and(|task| task.marks.iter().any(|mark| mark.file == at))
        };
        let answer = |at: usize| match (is_ours(at), landed[at] == committed[at]) {
            (false, _) => StatusText::LeftAlone(MORE.to_owned()),
            (true, true) => StatusText::Same,
            (true, false) => StatusText::New {
                text: landed[at].text.clone(),
                tasks: {
                    let own = tasks.iter().filter(|id| marked_in(at, id));
                    own.map(|id| (*id).clone()).collect()
                },
            },
        };
        (0..files.len()).map(answer).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(landed: &[&str], ours: &[&str]) -> TaskMarks {
        TaskMarks {
            landed: landed.iter().map(|id| (*id).into()).collect(),
            ours: ours.iter().map(|id| (*id).into()).collect(),
            titles: Vec::new(),
        }
    }

    fn scg(letters: &str, more: &str) -> String {
        let rows: Vec<String> = letters
            .chars()
            .enumerate()
            .map(|(at, letter)| format!("{} | Task | {letter} | 1 | M", at + 1))
            .collect();
        format!(
            "# SCUD Graph v1\n# Phase: auth\n\n@nodes\n{}\n{more}\n@edges\n",
            rows.join("\n")
        )
    }

    #[test]
    fn statuses_of_what_landed_and_of_nothing_else_are_committed() {
        let file = TaskFile::Scud {
            tag: "auth".to_owned(),
            file: "x/tasks.scg".into(),
        };
        let new = |letters: &str, tasks: &[&str]| StatusText::New {
            text: scg(letters, ""),
            tasks: tasks.iter().map(|id| (*id).into()).collect(),
        };
        let alone = StatusText::LeftAlone(MORE.to_owned());
        let all = ["1", "2", "3"];
        let table = [
            (
                "PPP",
                "DIP",
                "",
                marks(&["1"], &["1", "2"]),
                new("DPP", &["1"]),
            ),
            (
                "PPP",
                "DBP",
                "",
                marks(&["1"], &["1", "2"]),
                new("DPP", &["1"]),
            ),
            ("PPP", "DDD", "", marks(&all, &all), new("DDD", &all)),
            // Landed before its own status is written.
            ("PPP", "IPP", "", marks(&["1"], &["1"]), new("DPP", &["1"])),
            (
                "DPP",
                "DIP",
                "",
                marks(&["1"], &["1", "2"]),
                StatusText::Same,
            ),
            ("PPP", "PPP", "", marks(&[], &[]), StatusText::Same),
            // A person's: a status, a row, a word.
            ("PPP", "DPD", "", marks(&["1"], &["1"]), alone.clone()),
            ("PPP", "DXP", "", marks(&["1"], &["1", "2"]), alone.clone()),
            ("PPP", "DPPP", "", marks(&["1"], &["1"]), alone.clone()),
            ("PPP", "DPP", "# mine", marks(&["1"], &["1"]), alone.clone()),
        ];
        for (committed, working, more, marks, expected) in table {
            let text = landed_text(
                &file,
                &scg(committed, ""),
                &scg(working, more),
                &marks,
                Timestamp::UNIX_EPOCH,
            );
            assert_eq!(text, expected, "{committed} {working} {more}");
        }
    }

    #[test]
    fn times_of_changes_are_no_difference() {
        let file = TaskFile::Scud {
            tag: "auth".to_owned(),
            file: "auth.json".into(),
        };
        let text = |one: (&str, &str), two: (&str, &str)| {
            let task = |id: u32, (status, time): (&str, &str)| {
                format!(
                    r#"{{"id": "{id}", "title": "T", "description": "", "status": "{status}", "complexity": 1, "priority": "medium", "dependencies": [], "updated_at": "{time}"}}"#
                )
            };
            let (one, two) = (task(1, one), task(2, two));
            format!("{{\"name\": \"auth\", \"tasks\": [\n{one},\n{two}\n]}}\n")
        };
        let (old, new) = (
            "2026-01-01T00:00:00.000000000Z",
            "2026-02-02T00:00:00.000000000Z",
        );
        let committed = text(("pending", old), ("pending", old));
        let working = text(("done", new), ("pending", new));
        let both = marks(&["1"], &["1", "2"]);
        let at = Timestamp::UNIX_EPOCH;
        assert_eq!(
            landed_text(&file, &committed, &working, &both, at),
            StatusText::New {
                text: working.clone(),
                tasks: vec!["1".into()]
            }
        );
        let one = marks(&["1"], &["1"]);
        assert!(matches!(
            landed_text(&file, &committed, &working, &one, at),
            StatusText::LeftAlone(_)
        ));
    }

    #[test]
    fn boxes_of_a_roadmap_are_ticked_one_by_one() {
        let file = TaskFile::Roadmap {
            file: "ROADMAP.md".into(),
            defaults: Default::default(),
        };
        let text = |one: char, two: char, more: &str| {
            format!(
                "# Roadmap: x\n## Tasks\n- [{one}] **a**: First\n- [{two}] **b**: Second\n{more}"
            )
        };
        let at = Timestamp::UNIX_EPOCH;
        let both = marks(&["a"], &["a", "b"]);
        assert_eq!(
            landed_text(&file, &text(' ', ' ', ""), &text('x', ' ', ""), &both, at),
            StatusText::New {
                text: text('x', ' ', ""),
                tasks: vec!["a".into()]
            }
        );
        assert!(matches!(
            landed_text(
                &file,
                &text(' ', ' ', ""),
                &text('x', ' ', "more\n"),
                &both,
                at
            ),
            StatusText::LeftAlone(_)
        ));
        assert!(matches!(
            landed_text(
                &file,
                &text(' ', ' ', ""),
                &text('x', 'x', ""),
                &marks(&["a"], &["a"]),
                at
            ),
            StatusText::LeftAlone(_)
        ));
    }
}
