//! Issues of beads, as `bd` and `br` print them.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::calls::{Outward, TrackerCommands, TrackerRequest, main_answer, words};
use crate::graph::{Priority, TaskStatus};
use crate::lists::format::ListFormat;
use crate::lists::model::{ListFile, ListTask, TaskList};
use crate::lists::order::ListOrder;
use descartes_text::finding::{Finding, Place};

/// Issues that are asked for in one call.
const TOGETHER: usize = 50;

/// Which program keeps a database, by its `metadata.json`: that of the format first.
pub fn program(metadata: &str) -> [&'static str; 2] {
    let metadata: Value = serde_json::from_str(metadata).unwrap_or_default();
    match metadata["backend"].as_str() {
        Some(_) => ["bd", "br"],
        None if metadata["jsonl_export"].is_string() => ["br", "bd"],
        None => ["bd", "br"],
    }
}

pub(super) fn commands(program: &str, label: Option<&str>, outward: Outward) -> TrackerCommands {
    let call = |text: &str| {
        let mut call = vec![program.to_owned()];
        call.extend(words(text));
        call
    };
    let mut list = call("list --json --all --limit 0");
    if let Some(label) = label {
        list.extend(["--label".to_owned(), label.to_owned()]);
    }
    let mut done = call("close {id} --reason");
    done.push("done and verified".to_owned());
    let mut release = call("update {id} --status open --assignee");
    release.push(String::new());
    TrackerCommands {
        list,
        done: Some(done),
        claim: outward.claim.then(|| call("update {id} --claim")),
        release: outward.claim.then_some(release),
        reopen: Some(call("update {id} --status open")),
    }
}

pub(super) fn wanted(commands: &TrackerCommands, answers: &[ListFile]) -> Vec<TrackerRequest> {
    let issues = parse(main_answer(answers)).unwrap_or_default();
    // A list counts the dependencies and does not name them.
    let unnamed = issues.iter().filter(|issue| {
        let counted = issue["dependency_count"].as_u64() > Some(0);
        counted && issue.get("dependencies").is_none() && issue["status"] != "closed"
    });
    let ids: Vec<&str> = unnamed.filter_map(|issue| issue["id"].as_str()).collect();
    let program = commands.list.first().map_or("bd", String::as_str);
    let chunks = ids.chunks(TOGETHER).enumerate();
    let request = |(at, ids): (usize, &[&str])| {
        let mut words = vec![program, "show"];
        words.extend(ids);
        words.push("--json");
        TrackerRequest::new(format!("show/{at}"), &words)
    };
    chunks.map(request).collect()
}

/// An array, the same in an envelope, or one object a line.
fn parse(text: &str) -> Result<Vec<Value>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Array(issues)) => return Ok(issues),
        Ok(Value::Object(mut envelope)) => {
            for name in ["data", "issues"] {
                if let Some(Value::Array(issues)) = envelope.remove(name) {
                    return Ok(issues);
                }
            }
            if envelope.contains_key("id") {
                return Ok(vec![Value::Object(envelope)]);
            }
            return Err("a list of issues was expected".to_owned());
        }
        Ok(Value::Null) => return Ok(Vec::new()),
        _ => {}
    }
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let line = |line: &str| serde_json::from_str(line).map_err(|error| error.to_string());
    lines.map(line).collect()
}

/// Reads issues. `claims`: we say ourselves what we work on, so that what is in progress may be ours.
pub(super) fn read(answers: &[ListFile], claims: bool) -> TaskList {
    let mut list = TaskList::new(ListFormat::Beads);
    let mut issues = match parse(main_answer(answers)) {
        Ok(issues) => issues,
        Err(why) => {
            let message = format!("the answer of beads cannot be read: {why}");
            list.findings.push(Finding::error(Place::FILE, message));
            return list;
        }
    };
    issues.sort_by(|a, b| {
        let key = |issue: &Value| issue["priority"].as_u64().unwrap_or(2);
        let id = |issue: &Value| issue["id"].as_str().unwrap_or_default().to_owned();
        (key(a), id(a)).cmp(&(key(b), id(b)))
    });
    let shown = shown(answers);
    let mut edges = Vec::new();
    let mut parts: Vec<(String, String)> = Vec::new();
    let mut gone = HashSet::new();
    for issue in &issues {
        let Some(id) = issue["id"].as_str() else {
            continue;
        };
        if issue["status"] == "tombstone" {
            gone.insert(id.to_owned());
            continue;
        }
        let full = shown.get(id).unwrap_or(issue);
        let links = links(full);
        let mut task = task(issue, full, id, claims);
        for link in &links {
            match link.kind.as_str() {
                "blocks" | "waits-for" => {}
                "conditional-blocks" if !task.is_done() => {
                    let on = &link.on;
                    task.human = Some(format!("it is done only if {on} fails"));
                }
                "parent-child" => parts.push((id.to_owned(), link.on.clone())),
                _ => {}
            }
        }
        if let Some(parent) = issue["parent"].as_str() {
            parts.push((id.to_owned(), parent.to_owned()));
        }
        if let Some(why) = set_aside(issue) {
            list.leave_out(0, &format!("{id} {}", task.title), why);
            continue;
        }
        let blocks = links
            .into_iter()
            .filter(|link| matches!(link.kind.as_str(), "blocks" | "waits-for"));
        let on: Vec<String> = blocks
            .map(|link| {
                gone.extend(link.is_closed.then(|| link.on.clone()));
                link.on
            })
            .collect();
        if task.status == TaskStatus::Blocked && !on.is_empty() {
            task.status = TaskStatus::Pending;
        }
        edges.push((id.to_owned(), on));
        list.tasks.push(task);
    }
    join_parts(&mut list, &mut edges, &parts);
    // Done tasks of the list stay what others were done after.
    let here: HashSet<&str> = list.tasks.iter().map(|task| task.id.as_str()).collect();
    for (_, on) in &mut edges {
        on.retain(|id| here.contains(id.as_str()) || !gone.contains(id));
    }
    let mut order = ListOrder::new(&list);
    order.add_unordered(&mut list, edges);
    order.finish(&mut list);
    list
}

/// Issues with all there is to say about them.
fn shown(answers: &[ListFile]) -> HashMap<String, Value> {
    let answers = answers
        .iter()
        .filter(|answer| answer.path.starts_with("show/"));
    let issues = answers.flat_map(|answer| parse(&answer.text).unwrap_or_default());
    let named = issues.filter_map(|issue| Some((issue["id"].as_str()?.to_owned(), issue)));
    named.collect()
}

struct BeadsLink {
    on: String,
    kind: String,
    is_closed: bool,
}

/// Its dependencies: as they are stored, or as other issues with the kind of the tie.
fn links(issue: &Value) -> Vec<BeadsLink> {
    let all = issue["dependencies"].as_array().into_iter().flatten();
    let link = |link: &Value| {
        let on = link["depends_on_id"].as_str().or(link["id"].as_str())?;
        let kind = link["type"].as_str().or(link["dependency_type"].as_str());
        Some(BeadsLink {
            on: on.to_owned(),
            // Older versions write it with an underscore.
            kind: kind.unwrap_or("blocks").replace('_', "-"),
            is_closed: link["status"].as_str() == Some("closed"),
        })
    };
    all.filter_map(link).collect()
}

fn task(issue: &Value, full: &Value, id: &str, claims: bool) -> ListTask {
    let text = |name: &str| {
        let text = full[name].as_str().or(issue[name].as_str());
        text.unwrap_or_default().trim()
    };
    let mut body = text("description").to_owned();
    let parts = [
        ("Acceptance criteria", "acceptance_criteria"),
        ("Design", "design"),
        ("Notes", "notes"),
    ];
    for (title, name) in parts {
        if !text(name).is_empty() {
            body.push_str(&format!("\n\n## {title}\n\n{}", text(name)));
        }
    }
    let word = issue["status"].as_str().unwrap_or("open");
    let assignee = issue["assignee"].as_str().unwrap_or_default();
    let status = match word {
        "closed" => TaskStatus::Done,
        "blocked" => TaskStatus::Blocked,
        "in_progress" | "hooked" => TaskStatus::InProgress,
        _ => TaskStatus::Pending,
    };
    let human = match word {
        "in_progress" | "hooked" if !claims && !assignee.is_empty() => {
            Some(format!("{assignee} is working on it"))
        }
        "open" | "in_progress" | "hooked" | "blocked" | "closed" => None,
        other => Some(format!("its status is `{other}`")),
    };
    let is_decision = issue["issue_type"] == "decision";
    ListTask {
        id: id.to_owned(),
        has_own_id: true,
        title: text("title").to_owned(),
        body: body.trim().to_owned(),
        status,
        priority: match issue["priority"].as_u64() {
            Some(0) => Priority::Critical,
            Some(1) => Priority::High,
            Some(3..) => Priority::Low,
            _ => Priority::default(),
        },
        container: issue["issue_type"] == "epic",
        human: human.or_else(|| is_decision.then(|| "it is a decision".to_owned())),
        ..ListTask::default()
    }
}

/// Why an issue is left out.
fn set_aside(issue: &Value) -> Option<&'static str> {
    match issue["status"].as_str()? {
        "deferred" => Some("it is deferred"),
        "pinned" => Some("it is pinned"),
        _ => None,
    }
}

/// Parts of an epic belong to it. A task with parts is work of its own: it is done after them.
fn join_parts(
    list: &mut TaskList,
    edges: &mut Vec<(String, Vec<String>)>,
    parts: &[(String, String)],
) {
    let places: HashMap<String, usize> = {
        let all = list.tasks.iter().enumerate();
        all.map(|(at, task)| (task.id.clone(), at)).collect()
    };
    for (part, whole) in parts {
        let Some(is_epic) = places.get(whole).map(|at| list.tasks[*at].container) else {
            continue;
        };
        if !is_epic {
            edges.push((whole.clone(), vec![part.clone()]));
        } else if let Some(at) = places.get(part) {
            let task = &mut list.tasks[*at];
            task.parent.get_or_insert_with(|| whole.clone());
        }
    }
    super::parts::drop_strange_parents(list);
}
