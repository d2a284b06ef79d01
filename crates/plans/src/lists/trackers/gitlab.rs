//! Issues of GitLab, as `glab` prints them.

use serde_json::Value;

use super::calls::{LIST, Outward, TrackerCommands, TrackerRequest, answer, words};
use super::issue_text::{blockers, children, is_closed};
use super::parts::{drop_strange_parents, outside};
use crate::graph::TaskStatus;
use crate::lists::format::ListFormat;
use crate::lists::model::{ListFile, ListTask, TaskList};
use crate::lists::order::ListOrder;
use descartes_text::finding::{Finding, Place};

/// Issues of one answer.
const PAGE: usize = 100;
const MOST_PAGES: usize = 10;
/// Issues whose links are asked for, and issues outside of the list that are looked up.
const LOOKED_UP: usize = 100;

pub(super) fn commands(label: Option<&str>, outward: Outward) -> TrackerCommands {
    let mut list = words("glab issue list -F json");
    if let Some(label) = label {
        list.extend(["--label".to_owned(), label.to_owned()]);
    }
    list.extend(["--per-page".to_owned(), PAGE.to_string()]);
    let claim = "glab issue update {id} --assignee +@me";
    let release = "glab issue update {id} --assignee -@me";
    TrackerCommands {
        list,
        done: outward.close.then(|| words("glab issue close {id}")),
        claim: outward.claim.then(|| words(claim)),
        release: outward.claim.then(|| words(release)),
        reopen: outward.close.then(|| words("glab issue reopen {id}")),
    }
}

pub(super) fn wanted(commands: &TrackerCommands, answers: &[ListFile]) -> Vec<TrackerRequest> {
    let mut wanted = Vec::new();
    let issues = issues(answers).unwrap_or_default();
    let pages = answers.iter().filter(|answer| is_page(answer)).count();
    if issues.len() == pages * PAGE && pages < MOST_PAGES {
        let page = (pages + 1).to_string();
        let mut words = commands.list.clone();
        words.extend(["--page".to_owned(), page.clone()]);
        let name = format!("{LIST}/{page}");
        // What else there is to ask depends on all of them.
        return vec![TrackerRequest { name, words }];
    }
    if issues.iter().any(|issue| !usernames(issue).is_empty()) {
        wanted.push(TrackerRequest::new("user", &["glab", "api", "user"]));
    }
    for id in issues.iter().filter_map(iid).take(LOOKED_UP) {
        let place = format!("projects/:id/issues/{id}/links");
        wanted.push(TrackerRequest::new(
            format!("links/{id}"),
            &["glab", "api", &place],
        ));
    }
    for id in &outside(read(answers), LOOKED_UP) {
        let words = ["glab", "issue", "view", id, "-F", "json"];
        wanted.push(TrackerRequest::new(format!("issue/{id}"), &words));
    }
    wanted
}

fn is_page(answer: &ListFile) -> bool {
    answer.path == LIST || answer.path.starts_with("list/")
}

fn issues(answers: &[ListFile]) -> Result<Vec<Value>, String> {
    let mut all = Vec::new();
    for answer in answers.iter().filter(|answer| is_page(answer)) {
        match serde_json::from_str(&answer.text) {
            Ok(Value::Array(issues)) => all.extend(issues),
            Ok(Value::Null) => {}
            Ok(_) => return Err("a list of issues was expected".to_owned()),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(all)
}

fn iid(issue: &Value) -> Option<u64> {
    issue["iid"].as_u64()
}

fn usernames(issue: &Value) -> Vec<&str> {
    let people = issue["assignees"].as_array().into_iter().flatten();
    people
        .filter_map(|person| person["username"].as_str())
        .collect()
}

pub(super) fn read(answers: &[ListFile]) -> TaskList {
    let mut list = TaskList::new(ListFormat::GitLab);
    let mut issues = match issues(answers) {
        Ok(issues) => issues,
        Err(why) => {
            let message = format!("the answer of glab cannot be read: {why}");
            list.findings.push(Finding::error(Place::FILE, message));
            return list;
        }
    };
    issues.sort_by_key(iid);
    if issues.len() >= PAGE * MOST_PAGES {
        let most = PAGE * MOST_PAGES;
        list.warn(
            0,
            format!("only {most} issues were read: narrow them with a label"),
        );
    }
    let user: Value = answer(answers, "user")
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let user = user["username"].as_str().unwrap_or_default();
    let (mut edges, mut closed) = (Vec::new(), Vec::new());
    for issue in &issues {
        let Some(id) = iid(issue).map(|id| id.to_string()) else {
            continue;
        };
        let task = task(issue, &id);
        if let Some(why) = left_out(issue, user) {
            list.leave_out(0, &format!("#{id} {}", task.title), why);
            continue;
        }
        let mut on = blockers(&task.body);
        for (other, is_done) in linked(answers, &id) {
            closed.extend(is_done.then(|| other.clone()));
            on.push(other);
        }
        edges.push((id, on));
        list.tasks.push(task);
    }
    let parts: Vec<(String, Vec<String>)> = {
        let all = list.tasks.iter();
        all.map(|task| (task.id.clone(), children(&task.body)))
            .collect()
    };
    for (parent, parts) in parts.iter().filter(|(_, parts)| !parts.is_empty()) {
        for task in &mut list.tasks {
            if task.id == *parent {
                task.container = true;
            } else if parts.contains(&task.id) {
                task.parent.get_or_insert_with(|| parent.clone());
            }
        }
    }
    drop_strange_parents(&mut list);
    let is_done = |id: &String| {
        let text = answer(answers, &format!("issue/{id}")).unwrap_or_default();
        let issue: Value = serde_json::from_str(text).unwrap_or_default();
        issue["state"].as_str().is_some_and(is_closed)
    };
    for (_, on) in &mut edges {
        on.retain(|id| list.task(id).is_some() || !(is_done(id) || closed.contains(id)));
        on.dedup();
    }
    let mut order = ListOrder::new(&list);
    order.add_unordered(&mut list, edges);
    order.finish(&mut list);
    list
}

fn task(issue: &Value, id: &str) -> ListTask {
    let text = |name: &str| issue[name].as_str().unwrap_or_default().to_owned();
    let human = ["ready-for-human", "needs-triage", "needs-info"];
    let labels = labels(issue);
    let human = human.iter().find(|name| labels.contains(name));
    ListTask {
        id: id.to_owned(),
        has_own_id: true,
        title: text("title"),
        body: text("description"),
        status: match issue["state"].as_str().is_some_and(is_closed) {
            true => TaskStatus::Done,
            false => TaskStatus::Pending,
        },
        human: human.map(|name| format!("it is labelled `{name}`")),
        closes: Some(format!("Closes #{id}")),
        ..ListTask::default()
    }
}

fn labels(issue: &Value) -> Vec<&str> {
    let labels = issue["labels"].as_array().into_iter().flatten();
    labels.filter_map(Value::as_str).collect()
}

fn left_out(issue: &Value, user: &str) -> Option<String> {
    let labels = labels(issue);
    let never = ["wontfix", "duplicate", "invalid"];
    if let Some(label) = never.iter().find(|name| labels.contains(name)) {
        return Some(format!("it is labelled `{label}`"));
    }
    let people = usernames(issue);
    let is_mine = !user.is_empty() && people.contains(&user);
    let first = people.first().filter(|_| !is_mine)?;
    Some(format!("{first} is assigned to it"))
}

/// What an issue waits for, by its links, and whether that is closed.
fn linked(answers: &[ListFile], id: &str) -> Vec<(String, bool)> {
    let text = answer(answers, &format!("links/{id}")).unwrap_or_default();
    let links: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    let blocks = links
        .iter()
        .filter(|link| link["link_type"].as_str() == Some("is_blocked_by"));
    blocks
        .filter_map(|link| {
            let is_done = link["state"].as_str().is_some_and(is_closed);
            Some((iid(link)?.to_string(), is_done))
        })
        .collect()
}
