//! A line under a task that says something about it: `- key: value`.

use super::keys::{idle, known_keys};
use super::lines::RoadmapLine;
use super::open_task::Open;
use super::value::offset_in;
use descartes_text::finding::{Finding, Place, nearest};

/// Takes a line as a property, if it is one.
pub(super) fn property(
    line: &RoadmapLine<'_>,
    open: &mut Open<'_>,
    findings: &mut Vec<Finding>,
) -> bool {
    let Some((raw, value)) = bullet_key(line.text) else {
        warn_of_bare_property(line, findings);
        return false;
    };
    let place = line.place(offset_in(line.text, raw));
    let Some(key) = known(raw) else {
        if is_key_like(raw) && !value.starts_with("//") {
            unknown_key(raw, place, findings);
        }
        return false;
    };
    if let Some((_, first)) = open
        .given
        .iter()
        .find(|(given, _)| *given == key && key != "check")
    {
        let message = format!("`{key}` is set again (first on line {first}): this value is used");
        findings.push(Finding::warning(place, message));
    }
    open.given.push((key, line.number));
    open.wrapping = Some((key, line.indent()));
    let start = offset_in(line.text, value);
    match open.task.keys.set(key, value, |at| line.place(start + at)) {
        Ok("") => findings.extend(idle(key, value, place)),
        Ok(rest) => {
            let message = format!("`{rest}` after the value of `{key}` is ignored");
            findings.push(Finding::warning(
                line.place(offset_in(line.text, rest)),
                message,
            ));
        }
        Err(bad) => {
            let message = format!("invalid value in `{key}: {}`", value.trim());
            findings.push(Finding::error(place, message).hint(format!("write {}", bad.wanted)));
        }
    }
    true
}

/// `- key: value`, in any spelling of the key.
fn bullet_key(text: &str) -> Option<(&str, &str)> {
    let rest = text.trim_start().strip_prefix(['-', '*', '+'])?;
    key_value(rest)
}

fn key_value(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.trim().split_once(':')?;
    // `**key:** value` closes its marks behind the colon.
    let open_mark = key.starts_with("**") && !key.ends_with("**");
    let value = value
        .strip_prefix("**")
        .filter(|_| open_mark)
        .unwrap_or(value);
    let key = key.trim_matches(['*', '`']).trim();
    (!key.is_empty() && key.len() <= 40).then(|| (key, value.trim()))
}

/// The key that a spelling means: `max-iterations`, `Max iterations`.
fn known(raw: &str) -> Option<&'static str> {
    let key = raw.to_ascii_lowercase().replace(['-', ' '], "_");
    known_keys().find(|known| *known == key)
}

/// A single word in small letters is meant as a key; anything else is a sentence.
fn is_key_like(raw: &str) -> bool {
    raw.bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

fn unknown_key(raw: &str, place: Place, findings: &mut Vec<Finding>) {
    let meant = match raw {
        "verify" | "gate" | "test" => Some("check"),
        "after" | "dependencies" | "depends_on" | "needs" => Some("depends"),
        "iterations" | "attempts" => Some("max_iterations"),
        "promise" => Some("completion_promise"),
        "command" => Some("agent"),
        "goal" => return,
        other => nearest(other, known_keys()),
    };
    let finding = Finding::warning(
        place,
        format!("unknown key `{raw}`: the line is treated as text"),
    );
    findings.push(match meant {
        Some(meant) => finding.hint(format!("did you mean `{meant}`?")),
        None => finding,
    });
}

/// A known key without its bullet is text, and hardly meant as such.
fn warn_of_bare_property(line: &RoadmapLine<'_>, findings: &mut Vec<Finding>) {
    let Some((raw, value)) = key_value(line.text) else {
        return;
    };
    if is_key_like(raw) && known(raw).is_some() && !value.is_empty() {
        let place = line.place(line.indent());
        let message = format!("`{raw}:` without a bullet is treated as text");
        findings.push(Finding::warning(place, message).hint(format!("write - {raw}: {value}")));
    }
}

pub(super) fn looks_like_property(line: &RoadmapLine<'_>) -> bool {
    bullet_key(line.text).is_some_and(|(raw, _)| is_key_like(raw) && known(raw).is_some())
}
