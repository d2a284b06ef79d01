//! Which commands a tracker has, and what is asked next.

use std::collections::BTreeSet;

use serde_json::Value;

use super::calls::{Outward, TrackerCommands, TrackerRequest};
use super::{beads, github, gitlab};
use crate::lists::format::ListFormat;
use crate::lists::model::ListFile;

impl TrackerCommands {
    /// Those of a tracker that is known here. `program` is the one that was found, `label` what its issues
    /// have in common.
    pub fn of(format: ListFormat, program: &str, label: Option<&str>, outward: Outward) -> Self {
        match format {
            ListFormat::Beads => beads::commands(program, label, outward),
            ListFormat::GitLab => gitlab::commands(label, outward),
            _ => github::commands(label, outward),
        }
    }
}

/// The commands that a config names, each a line for a shell.
pub fn custom_commands(table: &toml::Table) -> Result<TrackerCommands, String> {
    const KNOWN: [&str; 5] = ["list", "done", "claim", "release", "reopen"];
    if let Some(other) = table.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        let known = KNOWN.join(", ");
        return Err(format!("`{other}` is unknown; it takes {known}"));
    }
    let get = |key: &str| match table.get(key) {
        None => Ok(None),
        Some(toml::Value::String(text)) if !text.trim().is_empty() => Ok(Some(
            ["sh", "-c", text.as_str()].map(str::to_owned).to_vec(),
        )),
        Some(_) => Err(format!("`{key}` must be a command in quotes")),
    };
    let needed = |key: &str| get(key)?.ok_or_else(|| format!("`{key}` is missing"));
    Ok(TrackerCommands {
        list: needed("list")?,
        done: Some(needed("done")?),
        claim: get("claim")?,
        release: get("release")?,
        reopen: get("reopen")?,
    })
}

/// What is to be asked next, from the answers so far; nothing that was asked before.
pub fn wanted(
    format: ListFormat,
    commands: &TrackerCommands,
    answers: &[ListFile],
) -> Vec<TrackerRequest> {
    let mut wanted = match format {
        ListFormat::Beads => beads::wanted(commands, answers),
        ListFormat::GitHub => github::wanted(answers),
        ListFormat::GitLab => gitlab::wanted(commands, answers),
        _ => Vec::new(),
    };
    wanted.retain(|request| answers.iter().all(|answer| answer.path != request.name));
    wanted
}

/// The question for an older version of a program that did not understand the first one.
pub fn instead(format: ListFormat, words: &[String], complaint: &str) -> Option<Vec<String>> {
    match format {
        ListFormat::GitHub => github::older(words, complaint),
        _ => None,
    }
}

/// The answer to the question for the list, with tasks that were done here and that it no longer names: a
/// tracker lists what is open, and a task that was closed is no task that was given up.
pub fn with_finished(
    format: ListFormat,
    before: &str,
    now: String,
    finished: &BTreeSet<String>,
) -> String {
    let (key, status, done) = match format {
        ListFormat::GitHub => ("number", "state", "CLOSED"),
        ListFormat::GitLab => ("iid", "state", "closed"),
        ListFormat::Command => ("id", "status", "done"),
        // It lists closed ones, too.
        _ => return now,
    };
    let parse = |text: &str| serde_json::from_str::<Vec<Value>>(text);
    let (Ok(before), Ok(mut entries)) = (parse(before), parse(&now)) else {
        return now;
    };
    let id = |entry: &Value| match &entry[key] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let named: BTreeSet<String> = entries.iter().map(id).collect();
    let gone = before
        .into_iter()
        .filter(|entry| finished.contains(&id(entry)) && !named.contains(&id(entry)));
    let gone: Vec<Value> = gone
        .map(|mut entry| {
            entry[status] = done.into();
            entry
        })
        .collect();
    if gone.is_empty() {
        return now;
    }
    entries.extend(gone);
    Value::Array(entries).to_string()
}

/// What a list of a tracker is called: in branches, commits and the name of its state file.
pub fn list_name(source: &str, label: Option<&str>) -> String {
    let label = label.map(|label| {
        let plain = |c: char| if c.is_alphanumeric() { c } else { '-' };
        let label: String = label.chars().map(plain).collect();
        format!("-{}", label.trim_matches('-').to_lowercase())
    });
    format!("{source}{}", label.unwrap_or_default())
}
