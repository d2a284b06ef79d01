//! Boxes without a bullet: `[ ] T03 text`. A line of prose, a legend or a wrapped line is none.

use super::boxes::{CheckBox, bare_box, check_box, columns};
use super::plain_ids::id_length;
use crate::roadmap::lines::{LineKind, RoadmapLine};

/// Which lines are such boxes, by position.
pub(super) fn bare_boxes(lines: &[RoadmapLine<'_>]) -> Vec<bool> {
    let found: Vec<Option<CheckBox<'_>>> = lines.iter().map(candidate).collect();
    if found.iter().all(Option::is_none) {
        return vec![false; lines.len()];
    }
    // Beside boxes with bullets, one without is an explanation of the signs, unless it has an id.
    let has_bullets = lines.iter().any(|line| check_box(line).is_some());
    let has_id = |found: &CheckBox<'_>| id_length(found.text).is_some();
    let mut is_box = vec![false; lines.len()];
    for at in 0..lines.len() {
        let Some(found) = &found[at] else { continue };
        let may_begin = at == 0 || begins(&lines[at - 1], is_box[at - 1], &lines[at]);
        is_box[at] = may_begin && (!has_bullets || has_id(found));
    }
    let all = || (0..lines.len()).filter(|at| is_box[*at]);
    let is_list = all().count() > 1 || all().any(|at| found[at].as_ref().is_some_and(has_id));
    match is_list {
        true => is_box,
        false => vec![false; lines.len()],
    }
}

/// Whether a box may stand below a line: what follows words of a sentence belongs to them.
fn begins(before: &RoadmapLine<'_>, is_box: bool, line: &RoadmapLine<'_>) -> bool {
    let text = before.text.trim();
    is_box
        || text.is_empty()
        || before.kind != LineKind::Plain
        || before.heading().is_some()
        || check_box(before).is_some()
        || text.ends_with(':')
        || text.bytes().all(|byte| byte == b'-')
        // Deeper lines are the body of the box above.
        || columns(before.text) > columns(line.text)
}

fn candidate<'a>(line: &RoadmapLine<'a>) -> Option<CheckBox<'a>> {
    let found = bare_box(line)?;
    is_work(found.text).then_some(found)
}

/// Words that explain what a box means.
const SIGNS: [&str; 20] = [
    "todo",
    "to do",
    "open",
    "pending",
    "not started",
    "not done",
    "incomplete",
    "unchecked",
    "empty",
    "done",
    "complete",
    "completed",
    "finished",
    "checked",
    "yes",
    "no",
    "in progress",
    "task",
    "pass",
    "fail",
];

/// Whether a text is work rather than the meaning of a sign.
fn is_work(text: &str) -> bool {
    let shows_boxes = ["[ ]", "[x]", "[X]"]
        .iter()
        .any(|shown| text.contains(shown));
    let begins = text.chars().next();
    let begins =
        begins.is_some_and(|c| c.is_alphanumeric() || !c.is_ascii() || "`*_~\"'([#@<$".contains(c));
    let is_dash = text.starts_with(['–', '—', '→', '⇒', '…']);
    let plain = text.to_lowercase();
    let plain = plain.trim_matches(|c: char| !c.is_alphanumeric());
    let is_sign = SIGNS.contains(&plain)
        || SIGNS.iter().any(|sign| {
            let rest = plain.strip_prefix(sign);
            rest.is_some_and(|rest| rest.trim_start().starts_with(['=', ',', ';', '/', '(']))
        });
    let is_meaning = plain.starts_with("means ") || plain.starts_with("= ");
    begins && !is_dash && !shows_boxes && !is_sign && !is_meaning
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roadmap::lines::lines;

    fn found(text: &str) -> Vec<&str> {
        let all = lines(text, &mut Vec::new());
        let is_box = bare_boxes(&all);
        let boxes = all.iter().zip(is_box).filter(|(_, is_box)| *is_box);
        boxes.map(|(line, _)| line.text.trim()).collect()
    }

    #[test]
    fn boxes_without_a_bullet_are_lines_of_their_own() {
        for (text, expected) in [
            ("[ ] T03 a\n", vec!["[ ] T03 a"]),
            ("[ ] Add a\n[x] Add b\n", vec!["[ ] Add a", "[x] Add b"]),
            (
                "Tasks:\n  [ ] Add a\n    more\n  [X] Add b\n",
                vec!["[ ] Add a", "[X] Add b"],
            ),
            // One alone may be anything.
            ("[ ] Add a\n", vec![]),
            // Beside boxes with bullets only what has an id.
            ("- [ ] Add a\n\n[ ] Add b\n[ ] Add c\n", vec![]),
            ("- [ ] Add a\n\n[ ] T2 Add b\n", vec!["[ ] T2 Add b"]),
            // Legends.
            ("[ ] open\n[x] done\n", vec![]),
            ("[ ] = not yet\n[x] = there\n", vec![]),
            ("[ ] - not yet\n[x] - there\n", vec![]),
            ("[ ] todo, [x] done\n[ ] a [x] b\n", vec![]),
            // Wrapped lines and code.
            ("Write\n[ ] Add a\nor\n[ ] Add b\n", vec![]),
            ("```\n[ ] Add a\n[ ] Add b\n```\n", vec![]),
            ("[x](a) b\n[ ](c) d\n", vec![]),
            ("[] Add a\n[-] Add b\n[ ]Add c\n", vec![]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }
}
