//! Which tool's list a file is, by its name and place, then by what stands in it.

use descartes_text::shell::word;

use super::asides::Asides;
use super::bare_boxes::bare_boxes;
use super::boxes::{Document, Item};
use super::format::ListFormat;
use super::json_list::whole_value;
use super::passes_json::StoryFile;
use super::{plan, spec_kit, task_master};
use crate::roadmap::{self, ForeignFormat, Whose};

/// What a file was found to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recognized {
    /// A roadmap of ours.
    Roadmap,
    /// A list that is run in place.
    List(ListFormat),
    /// Something that is not run in place: what it is, and what to do instead.
    Other { what: String, instead: String },
}

/// The format that the path of a file tells, whatever stands in it. `path` is absolute.
pub fn by_place(path: &str) -> Option<ListFormat> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (name, folders) = parts.split_last()?;
    let ends = |wanted: &[&str]| folders.ends_with(wanted);
    let above = |at: usize| {
        folders
            .len()
            .checked_sub(at)
            .map_or(&folders[..0], |end| &folders[..end])
    };
    match *name {
        "tasks.md" if above(1).ends_with(&["openspec", "changes"]) => Some(ListFormat::OpenSpec),
        "tasks.md" if above(1).ends_with(&[".kiro", "specs"]) => Some(ListFormat::Kiro),
        "tasks.json" if ends(&[".taskmaster", "tasks"]) => Some(ListFormat::TaskMaster),
        "sprint-status.yaml" | "sprint-status.yml" => Some(ListFormat::Bmad),
        name if name.ends_with(".md") && ends(&["backlog", "tasks"]) => Some(ListFormat::Backlog),
        name if name.ends_with(".md") && folders.last() == Some(&".tickets") => {
            Some(ListFormat::Tk)
        }
        name if name.ends_with(".md") && above(1).ends_with(&[".claude", "epics"]) => {
            Some(ListFormat::Ccpm)
        }
        name if is_ticket(name) && ends(&["issues"]) && above(2).ends_with(&[".scratch"]) => {
            Some(ListFormat::Tickets)
        }
        _ => None,
    }
}

/// `01-header.md`.
fn is_ticket(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_digit()) && name.ends_with(".md")
}

/// The format of a text in `specs/NNN-NAME/tasks.md`, unless that is a roadmap of ours; `beside` is
/// whether the feature's spec or plan is there too.
pub fn by_feature(path: &str, text: &str, beside: bool) -> Option<ListFormat> {
    let mut parts = path.rsplit('/');
    let is_feature = parts.next() == Some("tasks.md")
        && parts
            .next()
            .is_some_and(|folder| folder.starts_with(|c: char| c.is_ascii_digit()))
        && parts.next() == Some("specs");
    (is_feature && roadmap::is_spec_kit(text, beside)).then_some(ListFormat::SpecKit)
}

/// The format of a text, where its place says nothing.
pub fn by_content(path: &str, text: &str) -> Recognized {
    if let Some(format) = by_feature(path, text, false) {
        return Recognized::List(format);
    }
    if is_template(path) {
        return other(
            "a template for issues or pull requests, not a task list",
            "if it is one all the same: --source checklist".to_owned(),
        );
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    if name.ends_with(".jsonl") {
        return lines_of_json(path);
    }
    let is_markdown = name.ends_with(".md") || name.ends_with(".markdown");
    let begins_as_json = text
        .trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with(['{', '[']);
    // A text in Markdown may begin with a link, and any text with a box.
    let may_be_text = is_markdown || begins_with_box(text);
    let is_json = begins_as_json && (!may_be_text || whole_value(text).is_ok());
    if name.ends_with(".json") || is_json {
        return json(path, text);
    }
    if name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".jsonc") {
        return other(
            "a list that is not run in place",
            format!("make a roadmap of it: descartes import {}", word(path)),
        );
    }
    match roadmap::whose(text) {
        Whose::Foreign(ForeignFormat::Plan) if is_plan(text) => Recognized::List(ListFormat::Plan),
        Whose::Foreign(ForeignFormat::Plan) | Whose::Unknown => markdown(path, text),
        Whose::Foreign(ForeignFormat::SpecKit) => Recognized::List(ListFormat::SpecKit),
        Whose::Foreign(ForeignFormat::Kiro) => Recognized::List(ListFormat::Kiro),
        Whose::Foreign(found @ ForeignFormat::Gsd) => other(
            found.describe(),
            format!("make a roadmap of it: descartes import {}", word(path)),
        ),
        Whose::Foreign(found @ ForeignFormat::Conductor) => other(
            found.describe(),
            "run one track: descartes roadmap run conductor/tracks/NAME/plan.md".to_owned(),
        ),
        Whose::Ours => Recognized::Roadmap,
    }
}

/// Whether a text begins with a box that has no bullet.
fn begins_with_box(text: &str) -> bool {
    let begin = text.trim_start_matches('\u{feff}').trim_start();
    ["[ ] ", "[x] ", "[X] "]
        .iter()
        .any(|sign| begin.starts_with(sign))
}

/// Whether tasks of a plan have boxes: a report on tasks has none, or elsewhere.
fn is_plan(text: &str) -> bool {
    plan::has_plain_task(text) || plan::has_boxes(&Document::read(text, |_| None))
}

fn markdown(path: &str, text: &str) -> Recognized {
    let doc = Document::read_where(text, spec_kit::name, bare_boxes);
    let asides = Asides::of(&doc);
    let work: Vec<&Item<'_>> = doc
        .items
        .iter()
        .filter(|item| asides.is_work(item))
        .collect();
    let named = work.iter().filter(|item| item.id.is_some()).count();
    // One box that speaks of a task makes no list of spec-kit's, which has an id for each.
    if named > 0 && named * 2 >= work.len() {
        return Recognized::List(ListFormat::SpecKit);
    }
    let is_plan = match doc.items.is_empty() {
        true => plan::has_boxes(&doc),
        false => plan::is_loose_plan(&doc, is_in_plans(path)),
    };
    if is_plan {
        return Recognized::List(ListFormat::Plan);
    }
    if !doc.items.is_empty() {
        return Recognized::List(ListFormat::Checklist);
    }
    other(
        "a text without checkboxes",
        format!(
            "make a roadmap of its headings or lists: descartes import {0}; or give it to one \
             agent: descartes loop start --prompt-file {0}",
            word(path)
        ),
    )
}

fn json(path: &str, text: &str) -> Recognized {
    let file = StoryFile::of(text);
    if file.with_passes().is_some() {
        return Recognized::List(ListFormat::PassesJson);
    }
    let may_be_untagged = path.ends_with("tasks/tasks.json");
    let mut whole = file.whole.iter();
    if whole.any(|whole| task_master::looks_like(whole, may_be_untagged)) {
        return Recognized::List(ListFormat::TaskMaster);
    }
    if file.with_status().is_some() {
        return Recognized::List(ListFormat::PassesJson);
    }
    let error = super::passes_json::not_a_list(text);
    other(
        format!("JSON that is not run in place: {}", error.message),
        error.hint.unwrap_or_default(),
    )
}

/// `docs/plans/x.md`.
fn is_in_plans(path: &str) -> bool {
    path.rsplit('/').skip(1).any(|folder| folder == "plans")
}

/// `.github/ISSUE_TEMPLATE/x.md`, `pull_request_template.md`.
fn is_template(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let mut parts = path.rsplit('/').take(2);
    let is_one = |part: &str| {
        part.starts_with("issue_template") || part.starts_with("pull_request_template")
    };
    parts.any(is_one)
}

fn lines_of_json(path: &str) -> Recognized {
    match path.rsplit_once("/.beads/") {
        Some((project, _)) => other(
            "an export of beads",
            format!(
                "name the folder: descartes roadmap run {}",
                word(&format!("{project}/.beads"))
            ),
        ),
        None => other(
            "JSON in lines, which is not run in place",
            "print its tasks by the commands of a [source.NAME] in the config".to_owned(),
        ),
    }
}

fn other(what: impl Into<String>, instead: String) -> Recognized {
    Recognized::Other {
        what: what.into(),
        instead,
    }
}
