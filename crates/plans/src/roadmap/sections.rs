//! The sections around the tasks.

use super::lines::RoadmapLine;
use super::model::{CheckMark, Constraints, Criterion};
use super::task_line::item;
use super::value::{count, duration};
use descartes_text::finding::Finding;

/// The text of a section, for prompts.
pub(super) fn prose(lines: &[RoadmapLine<'_>]) -> String {
    let text: Vec<&str> = lines.iter().map(|line| line.text).collect();
    text.join("\n").trim().to_owned()
}

/// "Constraints": times, retries and a folder are taken, everything else is kept for the prompt.
pub(super) fn constraints(lines: &[RoadmapLine<'_>], findings: &mut Vec<Finding>) -> Constraints {
    let mut found = Constraints::default();
    for line in lines.iter().filter(|line| !line.is_blank()) {
        let text = line.text.trim().trim_start_matches(['-', '*', '+']).trim();
        let lower = text.to_lowercase();
        let value = text.split_once(':').map_or(text, |(_, value)| value.trim());
        let mut bad = |what: &str| {
            let message = format!("no valid {what} in `{text}`");
            findings.push(Finding::error(line.place(line.indent()), message));
        };
        if lower.contains("max time") || lower.contains("timeout") {
            match from_first_digit(value).and_then(duration) {
                Some((time, _)) => found.max_time = Some(time),
                None => bad("time"),
            }
        } else if lower.contains("retries") {
            match from_first_digit(value).and_then(count) {
                Some((retries, _)) => found.retries = Some(retries),
                None => bad("number"),
            }
        } else if lower.contains("working directory") || lower.starts_with("cwd") {
            // The case of a path is kept.
            match value.trim_matches('`') {
                "" => bad("folder"),
                folder => found.cwd = Some(folder.to_owned()),
            }
        } else if !text.is_empty() {
            found.other.push(text.to_owned());
        }
    }
    found
}

fn from_first_digit(text: &str) -> Option<&str> {
    text.find(|c: char| c.is_ascii_digit())
        .map(|at| &text[at..])
}

/// "Success Criteria": one each bullet, with or without a checkbox.
pub(super) fn criteria(lines: &[RoadmapLine<'_>]) -> Vec<Criterion> {
    let mut found: Vec<Criterion> = Vec::new();
    for line in lines.iter().filter(|line| !line.is_blank()) {
        let bullet = line
            .text
            .trim_start()
            .strip_prefix(['-', '*', '+'])
            .map(str::trim);
        let (text, mark) = match (item(line), bullet) {
            (Some(item), _) => (item.rest, CheckMark::of(item.mark).unwrap_or_default()),
            (None, Some(text)) => (text, CheckMark::Open),
            (None, None) => match found.last_mut() {
                Some(last) if line.indent() > 0 => {
                    last.text.push(' ');
                    last.text.push_str(line.text.trim());
                    continue;
                }
                _ => (line.text.trim(), CheckMark::Open),
            },
        };
        found.push(Criterion {
            text: text.to_owned(),
            mark,
            line: line.number,
        });
    }
    found
}

/// "Growth Mode": numbered items and bullets; the prose around them is for people.
pub(super) fn growth(lines: &[RoadmapLine<'_>]) -> Vec<String> {
    let idea = |line: &RoadmapLine<'_>| {
        let text = line.text.trim_start();
        let bullet = text
            .strip_prefix(['-', '*', '+'])
            .filter(|rest| rest.starts_with(' '));
        let after = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let numbered = after
            .strip_prefix(['.', ')'])
            .filter(|_| after.len() < text.len());
        let idea = numbered.or(bullet)?.trim();
        (!idea.is_empty()).then(|| idea.to_owned())
    };
    lines.iter().filter_map(idea).collect()
}
