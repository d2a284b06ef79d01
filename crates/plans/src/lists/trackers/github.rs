//! Issues of GitHub, as `gh` prints them.

use serde_json::Value;

use super::calls::{Outward, TrackerCommands, TrackerRequest, answer, main_answer, words};
use super::issue_text::{blockers, children, is_closed};
use super::parts::{drop_strange_parents, outside};
use crate::graph::TaskStatus;
use crate::lists::format::ListFormat;
use crate::lists::model::{ListFile, ListTask, TaskList};
use crate::lists::order::ListOrder;
use descartes_text::finding::{Finding, Place};

/// Fields that every `gh` knows.
const FIELDS: &str = "number,title,body,labels,assignees,state,comments";
/// Fields of newer ones: the order, as GitHub itself keeps it.
const MORE_FIELDS: &str = "parent,blockedBy,subIssues";
/// More issues are not listed at once.
const MOST: usize = 1_000;
/// Issues outside of the list that are looked up.
const LOOKED_UP: usize = 50;
/// Whose comment can take the place of the description.
const TRUSTED: [&str; 3] = ["OWNER", "MEMBER", "COLLABORATOR"];

pub(super) fn commands(label: Option<&str>, outward: Outward) -> TrackerCommands {
    let mut list = words("gh issue list --state open");
    if let Some(label) = label {
        list.extend(["--label".to_owned(), label.to_owned()]);
    }
    list.extend(["--limit".to_owned(), MOST.to_string()]);
    list.extend(["--json".to_owned(), format!("{FIELDS},{MORE_FIELDS}")]);
    TrackerCommands {
        list,
        done: outward
            .close
            .then(|| words("gh issue close {id} --reason completed")),
        claim: outward
            .claim
            .then(|| words("gh issue edit {id} --add-assignee @me")),
        release: outward
            .claim
            .then(|| words("gh issue edit {id} --remove-assignee @me")),
        reopen: outward.close.then(|| words("gh issue reopen {id}")),
    }
}

/// An older `gh` does not know the fields of the order.
pub(super) fn older(command: &[String], complaint: &str) -> Option<Vec<String>> {
    let newer = format!("{FIELDS},{MORE_FIELDS}");
    let fits = complaint.contains("Unknown JSON field") && command.contains(&newer);
    let word = |word: &String| match *word == newer {
        true => FIELDS.to_owned(),
        false => word.clone(),
    };
    fits.then(|| command.iter().map(word).collect())
}

pub(super) fn wanted(answers: &[ListFile]) -> Vec<TrackerRequest> {
    let issues = parse(main_answer(answers)).unwrap_or_default();
    let mut wanted = Vec::new();
    if issues.iter().any(|issue| !logins(issue).is_empty()) {
        let words = ["gh", "api", "user", "--jq", ".login"];
        wanted.push(TrackerRequest::new("user", &words));
    }
    for id in &outside(read(answers), LOOKED_UP) {
        let words = ["gh", "issue", "view", id, "--json", "number,state,title"];
        wanted.push(TrackerRequest::new(format!("issue/{id}"), &words));
    }
    wanted
}

fn parse(text: &str) -> Result<Vec<Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Array(issues)) => Ok(issues),
        Ok(_) => Err("a list of issues was expected".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads issues; the oldest first.
pub(super) fn read(answers: &[ListFile]) -> TaskList {
    let mut list = TaskList::new(ListFormat::GitHub);
    let mut issues = match parse(main_answer(answers)) {
        Ok(issues) => issues,
        Err(why) => {
            let message = format!("the answer of gh cannot be read: {why}");
            list.findings.push(Finding::error(Place::FILE, message));
            return list;
        }
    };
    if issues.len() >= MOST {
        list.warn(
            0,
            format!("only {MOST} issues were read: narrow them with a label"),
        );
    }
    issues.sort_by_key(|issue| issue["number"].as_u64());
    let user = answer(answers, "user").unwrap_or_default().trim();
    let is_old = issues.iter().all(|issue| issue.get("blockedBy").is_none());
    if is_old && !issues.is_empty() {
        list.note(
            0,
            "this gh does not tell the dependencies that GitHub keeps: only those in the text \
             of issues are known (update gh)",
        );
    }
    let mut edges = Vec::new();
    for issue in &issues {
        let Some(number) = issue["number"].as_u64() else {
            continue;
        };
        let id = number.to_string();
        let task = task(issue, &id);
        if let Some(why) = left_out(issue, user) {
            list.leave_out(0, &format!("#{id} {}", task.title), why);
            continue;
        }
        edges.push((id, waits_for(issue)));
        list.tasks.push(task);
    }
    link_parts(&mut list, &issues);
    satisfy(&mut edges, &issues, answers, &list);
    let mut order = ListOrder::new(&list);
    order.add_unordered(&mut list, edges);
    order.finish(&mut list);
    list
}

fn task(issue: &Value, id: &str) -> ListTask {
    let text = |name: &str| issue[name].as_str().unwrap_or_default().to_owned();
    let labels = labels(issue);
    let human = ["ready-for-human", "needs-triage", "needs-info"];
    let human = human.iter().find(|name| labels.iter().any(|l| l == *name));
    ListTask {
        id: id.to_owned(),
        has_own_id: true,
        title: text("title"),
        body: brief(issue).unwrap_or_else(|| text("body")),
        status: match issue["state"].as_str() {
            Some("CLOSED") => TaskStatus::Done,
            _ => TaskStatus::Pending,
        },
        container: issue["subIssues"]["totalCount"].as_u64() > Some(0),
        parent: issue["parent"]["number"]
            .as_u64()
            .map(|parent| parent.to_string()),
        human: human.map(|name| format!("it is labelled `{name}`")),
        closes: Some(format!("Closes #{id}")),
        ..ListTask::default()
    }
}

/// The last comment that is the contract, of somebody who belongs to the project.
fn brief(issue: &Value) -> Option<String> {
    let comments = issue["comments"].as_array()?.iter().rev();
    let is_trusted = |comment: &&Value| {
        let by = comment["authorAssociation"].as_str().unwrap_or_default();
        TRUSTED.contains(&by)
    };
    let mut bodies = comments
        .filter(is_trusted)
        .filter_map(|comment| comment["body"].as_str());
    let is_brief = |body: &&str| {
        body.lines()
            .any(|line| line.trim_end().eq_ignore_ascii_case("## agent brief"))
    };
    bodies.find(is_brief).map(str::to_owned)
}

fn labels(issue: &Value) -> Vec<String> {
    let labels = issue["labels"].as_array().into_iter().flatten();
    let name = |label: &Value| label["name"].as_str().or(label.as_str()).map(str::to_owned);
    labels.filter_map(name).collect()
}

fn logins(issue: &Value) -> Vec<&str> {
    let people = issue["assignees"].as_array().into_iter().flatten();
    people
        .filter_map(|person| person["login"].as_str())
        .collect()
}

fn left_out(issue: &Value, user: &str) -> Option<String> {
    let labels = labels(issue);
    let never = ["wontfix", "duplicate", "invalid"];
    if let Some(label) = never.iter().find(|name| labels.iter().any(|l| l == *name)) {
        return Some(format!("it is labelled `{label}`"));
    }
    let others = logins(issue);
    let is_mine = !user.is_empty() && others.contains(&user);
    let first = others.first().filter(|_| !is_mine)?;
    Some(format!("{first} is assigned to it"))
}

/// What an issue waits for, by GitHub's own word and by its text.
fn waits_for(issue: &Value) -> Vec<String> {
    let native = issue["blockedBy"]["nodes"].as_array().into_iter().flatten();
    let number = |node: &Value| node["number"].as_u64().map(|id| id.to_string());
    let mut ids: Vec<String> = native.filter_map(number).collect();
    let body = issue["body"].as_str().unwrap_or_default();
    for id in blockers(body) {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

/// Parts that only a parent names.
fn link_parts(list: &mut TaskList, issues: &[Value]) {
    for issue in issues {
        let Some(parent) = issue["number"].as_u64().map(|id| id.to_string()) else {
            continue;
        };
        let nodes = issue["subIssues"]["nodes"].as_array().into_iter().flatten();
        let number = |node: &Value| node["number"].as_u64().map(|id| id.to_string());
        let mut parts: Vec<String> = nodes.filter_map(number).collect();
        parts.extend(children(issue["body"].as_str().unwrap_or_default()));
        parts.retain(|part| *part != parent);
        if parts.is_empty() {
            continue;
        }
        for task in &mut list.tasks {
            if task.id == parent {
                task.container = true;
            } else if parts.contains(&task.id) {
                task.parent.get_or_insert_with(|| parent.clone());
            }
        }
    }
    drop_strange_parents(list);
}

/// Whoever is closed is waited for by nobody, in the list or not.
fn satisfy(
    edges: &mut [(String, Vec<String>)],
    issues: &[Value],
    answers: &[ListFile],
    list: &TaskList,
) {
    let told = issues.iter().flat_map(|issue| {
        let nodes = issue["blockedBy"]["nodes"].as_array().into_iter().flatten();
        nodes.filter(|node| node["state"].as_str() == Some("CLOSED"))
    });
    let mut closed: Vec<String> = told
        .filter_map(|node| node["number"].as_u64())
        .map(|id| id.to_string())
        .collect();
    for answer in answers {
        let Some(id) = answer.path.strip_prefix("issue/") else {
            continue;
        };
        let issue: Value = serde_json::from_str(&answer.text).unwrap_or_default();
        if issue["state"].as_str().is_some_and(is_closed) {
            closed.push(id.to_owned());
        }
    }
    for (_, on) in edges.iter_mut() {
        on.retain(|id| list.task(id).is_some() || !closed.contains(id));
    }
}
