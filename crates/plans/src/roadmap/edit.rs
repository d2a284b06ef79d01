//! Changes to a roadmap: one character of a checkbox, or a task added.

use thiserror::Error;

use super::keys::known_keys;
use super::lines::lines;
use super::model::{CheckMark, Roadmap, RoadmapTask};
use super::parse::{heads, parse};
use super::tasks::TaskHead;

/// A roadmap with something changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The whole file; all other bytes are those of the old one.
    pub new_text: String,
    /// The line that changed or was added first.
    pub line: u32,
}

/// Why a roadmap was not changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EditError {
    /// There is no such task.
    #[error("the roadmap has no task `{id}`{}", did_you_mean(.near))]
    UnknownTask {
        /// The task asked for.
        id: String,
        /// The nearest id that there is.
        near: Option<String>,
    },
    /// Two tasks have that id.
    #[error(
        "`{id}` appears twice in the roadmap, on lines {first} and {second}; give one of them a \
         different id"
    )]
    Twice {
        id: String,
        /// Where it stands first.
        first: u32,
        /// Where it stands again.
        second: u32,
    },
    /// Somebody else changed the checkbox.
    #[error(
        "the checkbox of `{id}` is [{}], not [{}]: someone else changed it",
        .found.character(), .expected.character()
    )]
    Changed {
        id: String,
        /// What was expected.
        expected: CheckMark,
        /// What the file says.
        found: CheckMark,
    },
    /// The checkbox is empty or holds a sign that means nothing.
    #[error("the checkbox of `{id}` on line {line} cannot be updated; change it to [ ]")]
    NoCheckbox { id: String, line: u32 },
    /// A new task that is there already.
    #[error("the roadmap already has that task, as `{id}` on line {line}")]
    Exists {
        /// The task that is there.
        id: String,
        line: u32,
    },
    /// A new task that cannot be written down.
    #[error("`{value}` cannot be used as {what} of a task")]
    BadTask {
        /// What was given.
        value: String,
        /// What it was given as.
        what: &'static str,
    },
}

fn did_you_mean(near: &Option<String>) -> String {
    near.as_ref()
        .map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// Marks a task as done.
pub fn tick(text: &str, id: &str) -> Result<Edit, EditError> {
    set_mark(text, id, None, CheckMark::Done)
}

/// Sets the checkbox of a task, if it still is what was `expected` (`None` accepts any).
///
/// One character changes; where the box already says so, none does.
pub fn set_mark(
    text: &str,
    id: &str,
    expected: Option<CheckMark>,
    new: CheckMark,
) -> Result<Edit, EditError> {
    let heads = heads(text);
    let task = find(&heads, id)?;
    if let Some(expected) = expected.filter(|expected| *expected != task.mark) {
        return Err(EditError::Changed {
            id: id.to_owned(),
            expected,
            found: task.mark,
        });
    }
    let line = task.line;
    let Some(checkbox) = task.checkbox else {
        return Err(EditError::NoCheckbox {
            id: id.to_owned(),
            line,
        });
    };
    let mut new_text = text.to_owned();
    if task.mark != new {
        // Every mark is one byte.
        let character = new.character();
        new_text.replace_range(checkbox..=checkbox, character.encode_utf8(&mut [0; 4]));
    }
    Ok(Edit { new_text, line })
}

/// The mark of a task, if there is one of that id.
pub fn mark_of(text: &str, id: &str) -> Option<CheckMark> {
    let heads = heads(text);
    let found = heads.iter().find(|head| head.id == id);
    found.map(|head| head.mark)
}

fn find<'r>(heads: &'r [TaskHead<'r>], id: &str) -> Result<&'r TaskHead<'r>, EditError> {
    let mut all = heads.iter().filter(|head| head.id == id);
    match (all.next(), all.next()) {
        (Some(task), None) => Ok(task),
        (Some(one), Some(two)) => {
            let (first, second) = (one.line, two.line);
            Err(EditError::Twice {
                id: id.to_owned(),
                first,
                second,
            })
        }
        (None, _) => {
            let ids = heads.iter().map(|head| head.id);
            let near = descartes_text::finding::nearest(id, ids).map(str::to_owned);
            Err(EditError::UnknownTask {
                id: id.to_owned(),
                near,
            })
        }
    }
}

/// A task to be added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewTask {
    pub id: String,
    /// What is to be done, in one line.
    pub description: String,
    /// Its properties, in order.
    pub keys: Vec<(String, String)>,
}

/// Adds a task behind the last one, in the line ends of the file.
pub fn append_task(text: &str, task: &NewTask) -> Result<Edit, EditError> {
    let roadmap = parse(text);
    refuse_bad(task)?;
    refuse_known(&roadmap, task)?;
    let windows = text
        .split_once('\n')
        .is_some_and(|(first, _)| first.ends_with('\r'));
    let end = if windows { "\r\n" } else { "\n" };
    let mut block = format!("- [ ] **{}**: {}", task.id, task.description);
    for (key, value) in &task.keys {
        block.push_str(&format!("{end}  - {key}: {value}"));
    }
    let (at, insert) = match roadmap.tasks.last() {
        Some(last) => (last.end, format!("{end}{block}")),
        None => place_of_first(text, &block, end),
    };
    let new_text = format!("{}{insert}{}", &text[..at], &text[at..]);
    let added = text[..at].matches('\n').count()
        + insert
            .find("- [ ]")
            .map_or(0, |begin| insert[..begin].matches('\n').count());
    Ok(Edit {
        new_text,
        line: added as u32 + 1,
    })
}

fn refuse_bad(task: &NewTask) -> Result<(), EditError> {
    let bad = |value: &str, what| {
        Err(EditError::BadTask {
            value: value.to_owned(),
            what,
        })
    };
    let one_line = |text: &str| !text.trim().is_empty() && !text.contains(char::is_control);
    if !one_line(&task.id) || task.id.contains(['*', '`', ',', ';']) || task.id.trim() != task.id {
        return bad(&task.id, "the id");
    }
    if !one_line(&task.description) {
        return bad(&task.description, "the description");
    }
    match task
        .keys
        .iter()
        .find(|(key, value)| !one_line(value) || !known_keys().any(|known| known == key))
    {
        Some((key, value)) => bad(&format!("{key}: {value}"), "a property"),
        None => Ok(()),
    }
}

fn refuse_known(roadmap: &Roadmap, task: &NewTask) -> Result<(), EditError> {
    let plain = |text: &str| {
        text.split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .to_lowercase()
    };
    let description = plain(&task.description);
    let same = |old: &&RoadmapTask| old.id == task.id || plain(&old.description) == description;
    match roadmap.tasks.iter().find(same) {
        Some(old) => Err(EditError::Exists {
            id: old.id.clone(),
            line: old.place.line,
        }),
        None => Ok(()),
    }
}

/// Where the first task of a file goes, and what is written there.
fn place_of_first(text: &str, block: &str, end: &str) -> (usize, String) {
    let all = lines(text, &mut Vec::new());
    let heading = |name: &str| {
        all.iter().find(|line| {
            line.heading()
                .is_some_and(|(level, text)| level == 2 && text.eq_ignore_ascii_case(name))
        })
    };
    if let Some(tasks) = heading("tasks") {
        return (tasks.end(), format!("{end}{block}"));
    }
    if let Some(growth) = heading("growth mode") {
        return (growth.start, format!("## Tasks{end}{block}{end}{end}"));
    }
    let gap = match text {
        "" => String::new(),
        text if text.ends_with('\n') => end.to_owned(),
        _ => format!("{end}{end}"),
    };
    (text.len(), format!("{gap}## Tasks{end}{block}{end}"))
}
