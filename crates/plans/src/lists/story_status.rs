//! Stories in JSON that say `"status": "done"` or `"state": "done"` where others say `"passes": true`.

use std::borrow::Cow;

use super::json_list::JsonEntry;
use super::model::{Mark, TaskList};
use crate::graph::TaskStatus;

/// Words for what a story's status says. A list with any other word is none that we know.
const WORDS: [(&str, TaskStatus); 35] = [
    ("done", TaskStatus::Done),
    ("completed", TaskStatus::Done),
    ("complete", TaskStatus::Done),
    ("passed", TaskStatus::Done),
    ("passing", TaskStatus::Done),
    ("pass", TaskStatus::Done),
    ("finished", TaskStatus::Done),
    ("implemented", TaskStatus::Done),
    ("closed", TaskStatus::Done),
    ("todo", TaskStatus::Pending),
    ("to-do", TaskStatus::Pending),
    ("pending", TaskStatus::Pending),
    ("open", TaskStatus::Pending),
    ("not-started", TaskStatus::Pending),
    ("not-done", TaskStatus::Pending),
    ("incomplete", TaskStatus::Pending),
    ("not-implemented", TaskStatus::Pending),
    ("planned", TaskStatus::Pending),
    ("backlog", TaskStatus::Pending),
    ("ready", TaskStatus::Pending),
    ("spec-ready", TaskStatus::Pending),
    ("failing", TaskStatus::Pending),
    ("fail", TaskStatus::Pending),
    ("new", TaskStatus::Pending),
    ("in-progress", TaskStatus::InProgress),
    ("doing", TaskStatus::InProgress),
    ("wip", TaskStatus::InProgress),
    ("started", TaskStatus::InProgress),
    ("review", TaskStatus::Review),
    ("in-review", TaskStatus::Review),
    ("blocked", TaskStatus::Blocked),
    ("deferred", TaskStatus::Deferred),
    ("skipped", TaskStatus::Deferred),
    ("cancelled", TaskStatus::Cancelled),
    ("canceled", TaskStatus::Cancelled),
];

/// Names of the status; some files have both.
const STATUS: [&str; 2] = ["status", "state"];

/// The status of a story as it is written.
pub(super) fn status_word<'a>(story: &JsonEntry<'a>) -> Option<Cow<'a, str>> {
    STATUS.iter().find_map(|name| story.string(name))
}

/// What a story's status says.
pub(super) fn status_of(story: &JsonEntry<'_>) -> Option<TaskStatus> {
    meaning(&status_word(story)?)
}

fn meaning(word: &str) -> Option<TaskStatus> {
    let find = |word: &str| {
        let known = WORDS.iter().find(|(known, _)| *known == word);
        known.map(|(_, status)| *status)
    };
    find(word).or_else(|| find(&word.trim().to_lowercase().replace(['_', ' '], "-")))
}

/// Whether objects are stories with a status: each has a title and a status that is known or that the
/// file declares; some have what else stories have.
pub(super) fn are_stories(stories: &[JsonEntry<'_>], declared: &[String]) -> bool {
    let has_title = |story: &JsonEntry<'_>| TITLES.iter().any(|name| story.string(name).is_some());
    let is_declared = |story: &JsonEntry<'_>| {
        let word = status_word(story);
        word.is_some_and(|word| declared.iter().any(|known| *known == word))
    };
    let is_one = |story: &JsonEntry<'_>| {
        has_title(story) && (status_of(story).is_some() || is_declared(story))
    };
    let has_more = |story: &JsonEntry<'_>| MORE.iter().any(|name| story.raw(name).is_some());
    // Parts of tasks are Task Master's, which reads them.
    let has_parts = |story: &JsonEntry<'_>| {
        let parts = story.entries("subtasks");
        parts.is_some_and(|parts| !parts.is_empty())
    };
    !stories.is_empty()
        && stories.iter().all(is_one)
        && stories.iter().any(has_more)
        && !stories.iter().any(has_parts)
}

/// The statuses that a file says are valid, at its top or one level below.
pub(super) fn declared(whole: &JsonEntry<'_>) -> Vec<String> {
    let names = whole.names().into_iter();
    let below = names.filter_map(|name| whole.entry(&name));
    let below: Vec<JsonEntry<'_>> = below.collect();
    let mut all = std::iter::once(whole).chain(&below);
    let found =
        all.find_map(|entry| Some(entry.words(&DECLARED)).filter(|words| !words.is_empty()));
    found.unwrap_or_default()
}

const DECLARED: [&str; 6] = [
    "valid_status",
    "valid_statuses",
    "validStatus",
    "validStatuses",
    "statuses",
    "status_values",
];

const TITLES: [&str; 5] = ["title", "name", "feature", "story", "description"];

const MORE: [&str; 12] = [
    "id",
    "priority",
    "category",
    "description",
    "steps",
    "acceptanceCriteria",
    "acceptance_criteria",
    "acceptance",
    "dependencies",
    "dependsOn",
    "depends_on",
    "verification",
];

/// The words that a file has for done and for open.
pub(super) struct StatusWords {
    /// For each name of the status.
    fields: Vec<FieldWords>,
    /// What is not clear about the word for done.
    doubt: Option<String>,
}

struct FieldWords {
    name: &'static str,
    done: String,
    open: String,
}

impl StatusWords {
    pub(super) fn of(stories: &[JsonEntry<'_>], declared: &[String]) -> Self {
        let mut doubt = None;
        let mut fields = Vec::new();
        for name in STATUS {
            if stories.iter().any(|story| story.string(name).is_some()) {
                let (words, unclear) = FieldWords::of(name, stories, declared);
                fields.push(words);
                doubt = doubt.or(unclear);
            }
        }
        Self { fields, doubt }
    }

    /// What a story says, and the changes that set it. One that was given up holds nobody.
    pub(super) fn read(&self, story: &JsonEntry<'_>) -> Option<(TaskStatus, Vec<Mark>)> {
        let status = match status_of(story) {
            Some(TaskStatus::Cancelled) => TaskStatus::Done,
            Some(other) => other,
            None => TaskStatus::Blocked,
        };
        let is_done = status == TaskStatus::Done;
        let marks = self.fields.iter();
        let marks = marks.filter_map(|field| field.mark(story, is_done));
        let marks: Vec<Mark> = marks.collect();
        (!marks.is_empty()).then_some((status, marks))
    }

    /// Says which word is written where that is not clear.
    pub(super) fn tell_doubt(&self, list: &mut TaskList) {
        let is_open = list.tasks.iter().any(|task| !task.is_done());
        let doubt = self.doubt.as_ref().filter(|_| is_open);
        if let Some((doubt, words)) = doubt.zip(self.fields.first()) {
            let message = format!(
                "{doubt}: `{}` is written for one that is proven",
                words.done
            );
            list.warn(1, message);
        }
    }
}

impl FieldWords {
    /// Its words, and what is not clear about them.
    fn of(
        name: &'static str,
        stories: &[JsonEntry<'_>],
        declared: &[String],
    ) -> (Self, Option<String>) {
        let mut done = used(name, stories, TaskStatus::Done);
        let valid = declared
            .iter()
            .find(|word| meaning(word) == Some(TaskStatus::Done));
        if let Some(valid) = valid.filter(|_| done.len() != 1) {
            done = vec![valid.clone()];
        }
        let open = used(name, stories, TaskStatus::Pending);
        let doubt = match done.as_slice() {
            [_] => None,
            [] => {
                Some("no story is done yet, so the file does not say its word for that".to_owned())
            }
            [first, others @ ..] => Some(format!(
                "the file says `{first}` and `{}` for stories that are done",
                others.join("`, `")
            )),
        };
        let open = open.into_iter().next();
        let open = open.unwrap_or_else(|| "pending".to_owned());
        let done = done.into_iter().next();
        let done = done.unwrap_or_else(|| written_as(&open, "done"));
        (Self { name, done, open }, doubt)
    }

    fn mark(&self, story: &JsonEntry<'_>, is_done: bool) -> Option<Mark> {
        let quoted = |word: &str| serde_json::Value::from(word).to_string();
        story.string(self.name)?;
        let now = story.raw(self.name)?.get().to_owned();
        Some(Mark {
            file: 0,
            span: story.place(self.name)?,
            done: match is_done {
                true => now.clone().into(),
                false => quoted(&self.done).into(),
            },
            open: match is_done {
                true => quoted(&self.open).into(),
                false => now.into(),
            },
            doing: None,
            is_done,
        })
    }
}

/// The spellings of a status, the most frequent first.
fn used(name: &str, stories: &[JsonEntry<'_>], status: TaskStatus) -> Vec<String> {
    let mut words: Vec<(Cow<'_, str>, usize)> = Vec::new();
    let own = stories.iter().filter_map(|story| story.string(name));
    for word in own.filter(|word| meaning(word) == Some(status)) {
        match words.iter_mut().find(|(known, _)| *known == word) {
            Some((_, count)) => *count += 1,
            None => words.push((word, 1)),
        }
    }
    words.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let words = words.into_iter();
    words.map(|(word, _)| word.into_owned()).collect()
}

/// A word in capitals or small letters, as another one is.
fn written_as(other: &str, word: &str) -> String {
    let letters = || other.chars().filter(|c| c.is_alphabetic());
    let first = word.chars().next().unwrap_or_default();
    match (letters().all(char::is_uppercase), letters().next()) {
        (true, Some(_)) => word.to_uppercase(),
        (_, Some(upper)) if upper.is_uppercase() => {
            first.to_uppercase().chain(word.chars().skip(1)).collect()
        }
        _ => word.to_owned(),
    }
}
