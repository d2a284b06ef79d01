//! Stories in JSON, each with a boolean `passes` or a `status` (prd.json, feature_list.json and their kin).

use super::file_order::{FileOrder, chain};
use super::format::ListFormat;
use super::json_list::{JsonEntry, whole_list, whole_value};
use super::markdown::UniqueIds;
use super::model::{ListGate, ListTask, Mark, TaskList};
use super::order::ListOrder;
use super::story_status::{StatusWords, are_stories, declared, status_of, status_word};
use crate::graph::{Priority, TaskStatus};
use crate::scud::json_span::LineCounter;
use descartes_text::finding::{Finding, Place};

/// Names of the list in an object.
const LISTS: [&str; 4] = ["userStories", "stories", "features", "tasks"];
const DEPENDS: [&str; 5] = [
    "dependsOn",
    "depends_on",
    "dependencies",
    "blockedBy",
    "blocked_by",
];
/// Names of what is true when a story is done. Only of the first one every story may say nothing.
const PASSES: [&str; 5] = ["passes", "passed", "complete", "completed", "done"];
/// Fields that hold commands, and nothing else.
const COMMANDS: [&str; 7] = [
    "verification_command",
    "verificationCommand",
    "verifyCommands",
    "testCommand",
    "test_command",
    "validationCommand",
    "verifyCommand",
];

pub(super) fn read(text: &str) -> TaskList {
    let mut list = TaskList::new(ListFormat::PassesJson);
    let file = StoryFile::of(text);
    let (found, name, words) = if let Some((found, name)) = file.with_passes() {
        (found, name, None)
    } else if let Some(found) = file.with_status() {
        let words = StatusWords::of(found, &file.declared());
        (found, "status", Some(words))
    } else {
        list.findings.push(not_a_list(text));
        return list;
    };
    let mut lines = LineCounter::new(text);
    let mut ids = UniqueIds::default();
    let mut rows = Vec::new();
    for (at, story) in found.iter().enumerate() {
        let line = lines.line_at(story.start);
        let title = title_of(story).unwrap_or_else(|| format!("Story {}", at + 1));
        let read = match &words {
            Some(words) => words.read(story),
            None => passes_of(story, name),
        };
        let Some((status, marks)) = read else {
            let why = format!("it has no `{name}` that is true or false");
            list.leave_out(line, &title, why);
            continue;
        };
        let own = story.word("id");
        let wanted = own.clone().unwrap_or_else(|| (at + 1).to_string());
        let id = ids.take(&wanted, line, &mut list);
        if words.is_some() && status_of(story).is_none() {
            let word = status_word(story).unwrap_or_default();
            let message = format!("story `{id}` has the unknown status `{word}`: it is held");
            list.warn(line, message);
        }
        list.tasks.push(ListTask {
            has_own_id: own.is_some(),
            body: body_of(story),
            status,
            gates: story.words(&COMMANDS),
            line,
            marks,
            title,
            id,
            ..ListTask::default()
        });
        rows.push(StoryOrder {
            depends: story.words(&DEPENDS),
            priority: priority_of(story),
        });
    }
    set_order(&mut list, rows);
    if let Some(whole) = &file.whole {
        introduce(whole, &mut list);
    }
    if let Some(words) = words {
        words.tell_doubt(&mut list);
    }
    list
}

fn passes_of(story: &JsonEntry<'_>, name: &str) -> Option<(TaskStatus, Vec<Mark>)> {
    let passes = story.value(name)?.as_bool()?;
    let status = match passes {
        true => TaskStatus::Done,
        false => TaskStatus::Pending,
    };
    let mark = Mark {
        file: 0,
        span: story.place(name)?,
        done: "true".into(),
        open: "false".into(),
        doing: None,
        is_done: passes,
    };
    Some((status, vec![mark]))
}

struct StoryOrder {
    depends: Vec<String>,
    priority: Option<f64>,
}

/// A text that may hold stories: in a list, or in an object that holds one.
pub(super) struct StoryFile<'a> {
    pub(super) whole: Option<JsonEntry<'a>>,
    lists: Vec<Vec<JsonEntry<'a>>>,
}

impl<'a> StoryFile<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        if let Some(found) = whole_list(text) {
            return Self {
                whole: None,
                lists: vec![found],
            };
        }
        let whole = JsonEntry::whole(text);
        let named = |whole: &JsonEntry<'a>| {
            let lists = LISTS.iter().filter_map(|name| whole.entries(name));
            lists.collect()
        };
        Self {
            lists: whole.as_ref().map_or_else(Vec::new, named),
            whole,
        }
    }

    /// The stories, and the name of what is true when one is done.
    pub(super) fn with_passes(&self) -> Option<(&[JsonEntry<'a>], &'static str)> {
        self.lists.iter().find_map(|stories| {
            let mut names = PASSES.into_iter();
            let name = names.find(|name| has_passes(stories, name))?;
            Some((stories.as_slice(), name))
        })
    }

    /// The same for stories with a `status`: every object of the list has one that is known.
    pub(super) fn with_status(&self) -> Option<&[JsonEntry<'a>]> {
        let declared = self.declared();
        let mut lists = self.lists.iter().map(Vec::as_slice);
        lists.find(|found| are_stories(found, &declared))
    }

    fn declared(&self) -> Vec<String> {
        self.whole.as_ref().map_or_else(Vec::new, declared)
    }
}

fn has_passes(stories: &[JsonEntry<'_>], name: &str) -> bool {
    let says = |story: &JsonEntry<'_>| {
        let passes = story.value(name).and_then(|passes| passes.as_bool());
        passes.is_some() && title_of(story).is_some()
    };
    match name == PASSES[0] {
        true => stories.iter().any(|story| story.raw(name).is_some()),
        false => !stories.is_empty() && stories.iter().all(says),
    }
}

pub(super) fn not_a_list(text: &str) -> Finding {
    let keys = JsonEntry::whole(text).map(|whole| whole.names().join(", "));
    let message = match (whole_value(text), keys) {
        (Err(error), _) => format!("this is not valid JSON: {error}"),
        (_, Some(keys)) => {
            format!("there is no list of stories with `passes` or a status; its keys are: {keys}")
        }
        _ => "there is no list of stories with `passes` or a status".to_owned(),
    };
    Finding::error(Place::FILE, message).hint(
        "stories are objects with `passes`, or each with a title and a `status` such as todo or \
         done, in a list, or under `userStories`",
    )
}

fn title_of(story: &JsonEntry<'_>) -> Option<String> {
    let named = ["title", "name", "feature", "story", "description"];
    let text = named.iter().find_map(|name| story.text(name))?;
    text.lines().next().map(str::to_owned)
}

fn body_of(story: &JsonEntry<'_>) -> String {
    let mut parts = Vec::new();
    if let Some(text) = story.text("description") {
        parts.push(text);
    }
    for (name, heading) in [
        ("acceptanceCriteria", "Acceptance criteria"),
        ("acceptance_criteria", "Acceptance criteria"),
        ("acceptance", "Acceptance criteria"),
        ("steps", "Steps"),
        ("notes", "Notes"),
    ] {
        if let Some(text) = story.text(name) {
            parts.push(format!("{heading}:\n{text}"));
        }
    }
    parts.join("\n\n")
}

fn priority_of(story: &JsonEntry<'_>) -> Option<f64> {
    let word = story.word("priority")?;
    if let Ok(number) = word.parse::<f64>() {
        return Some(number);
    }
    Priority::from_word(&word).map(|priority| f64::from(priority as u8))
}

/// Dependencies where the file has any; else one after the other by priority, those of one priority
/// together; else one after the other.
fn set_order(list: &mut TaskList, rows: Vec<StoryOrder>) {
    if rows.iter().any(|row| !row.depends.is_empty()) {
        let mut named = Vec::new();
        for (task, row) in list.tasks.iter().zip(rows) {
            named.push((task.id.clone(), row.depends));
        }
        let mut order = ListOrder::new(list);
        order.add_unordered(list, named);
        order.finish(list);
        return;
    }
    if rows.iter().all(|row| row.priority.is_none()) {
        chain(list);
        return;
    }
    let mut sorted: Vec<usize> = (0..list.tasks.len()).collect();
    let priority = |at: &usize| rows[*at].priority.unwrap_or(f64::MAX);
    sorted.sort_by(|a, b| priority(a).total_cmp(&priority(b)));
    let mut order = ListOrder::by_position(list.tasks.len());
    let mut levels = FileOrder::default();
    let mut last = None;
    for at in sorted {
        if last.is_some_and(|last: f64| last.total_cmp(&priority(&at)).is_ne()) {
            levels.barrier();
        }
        last = Some(priority(&at));
        order.set(at, levels.next(at, true));
    }
    order.finish(list);
}

fn introduce(whole: &JsonEntry<'_>, list: &mut TaskList) {
    let mut parts = Vec::new();
    parts.extend(["project", "name"].iter().find_map(|name| whole.text(name)));
    parts.extend(whole.text("description"));
    list.introduction = parts.join("\n\n");
    let gates = whole.words(&COMMANDS).into_iter();
    list.gates.extend(gates.map(|command| ListGate {
        command,
        from: "the file as a whole".to_owned(),
    }));
    if let Some(branch) = whole.text("branchName") {
        let line = 1;
        list.note(
            line,
            format!(
                "the file names the branch `{branch}`; work lands on the branch that is checked out"
            ),
        );
    }
}
