//! Tasks that a command of the user's prints, in a shape of our own: that of `roadmap check --json`.

use serde_json::Value;

use super::calls::main_answer;
use crate::graph::{Priority, TaskStatus};
use crate::lists::format::ListFormat;
use crate::lists::model::{ListFile, ListTask, TaskList};
use crate::lists::order::ListOrder;
use descartes_text::finding::{Finding, Place};

pub(super) fn read(answers: &[ListFile]) -> TaskList {
    let mut list = TaskList::new(ListFormat::Command);
    let mut fail = |message: String| {
        let finding = Finding::error(Place::FILE, message);
        list.findings.push(finding.hint(
            "the command must print [{\"id\": \"1\", \"title\": \"…\", \"status\": \"todo\", \
             \"depends\": []}, …]",
        ));
    };
    let entries = match serde_json::from_str::<Value>(main_answer(answers)) {
        Ok(Value::Array(entries)) => entries,
        Ok(Value::Object(mut object)) => match object.remove("tasks") {
            Some(Value::Array(entries)) => entries,
            _ => {
                fail("the command printed an object without a list `tasks`".to_owned());
                return list;
            }
        },
        Ok(_) => {
            fail("the command printed no list of tasks".to_owned());
            return list;
        }
        Err(error) => {
            fail(format!("the command did not print JSON: {error}"));
            return list;
        }
    };
    let mut edges = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let (number, id) = (at + 1, word(&entry["id"]));
        let Some(id) = id else {
            fail(format!("task {number} of the command has no `id`"));
            continue;
        };
        if list.tasks.iter().any(|task| task.id == id) {
            fail(format!("two tasks of the command have the id `{id}`"));
            continue;
        }
        match task(entry, &id) {
            Ok(task) => list.tasks.push(task),
            Err(why) => {
                fail(format!("task `{id}` of the command: {why}"));
                continue;
            }
        }
        let on = ["depends", "dependencies", "blocked_by"];
        let on = on.iter().find_map(|name| entry[*name].as_array());
        let on = on.into_iter().flatten().filter_map(word).collect();
        edges.push((id, on));
    }
    super::parts::drop_strange_parents(&mut list);
    let mut order = ListOrder::new(&list);
    order.add_unordered(&mut list, edges);
    order.finish(&mut list);
    list
}

fn task(entry: &Value, id: &str) -> Result<ListTask, String> {
    let text = |names: &[&str]| {
        let found = names.iter().find_map(|name| entry[*name].as_str());
        found.unwrap_or_default().trim().to_owned()
    };
    let title = text(&["title", "name", "summary"]);
    let status = match entry["status"].as_str().map(str::to_lowercase).as_deref() {
        None | Some("todo" | "open" | "pending" | "opened" | "new") => TaskStatus::Pending,
        Some("doing" | "in_progress" | "in-progress") => TaskStatus::InProgress,
        Some("done" | "closed" | "completed") => TaskStatus::Done,
        Some(other) => {
            return Err(format!(
                "its status `{other}` is none of todo, doing and done"
            ));
        }
    };
    let flag = |name: &str| entry[name].as_bool().unwrap_or(false);
    Ok(ListTask {
        id: id.to_owned(),
        has_own_id: true,
        title: match title.is_empty() {
            true => id.to_owned(),
            false => title,
        },
        body: text(&["body", "description"]),
        status,
        optional: flag("optional"),
        container: flag("container"),
        parent: word(&entry["parent"]),
        priority: word(&entry["priority"])
            .and_then(|word| Priority::from_word(&word.to_lowercase()))
            .unwrap_or_default(),
        ..ListTask::default()
    })
}

fn word(value: &Value) -> Option<String> {
    let word = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    (!word.is_empty()).then_some(word)
}
