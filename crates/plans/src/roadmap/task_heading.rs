//! Headings of plans that are tasks: `Task 2: …`, and what people write for it.

/// The number and the title of a heading that begins with one of these words: `Task 2.5: Name`,
/// `**TASK #2** - Name`, `✅ Task 2 (P0): Name`.
pub(crate) fn task_heading<'a>(heading: &'a str, words: &[&str]) -> Option<(&'a str, &'a str)> {
    let bare = undecorated(heading);
    let (word, rest) = bare.split_once(' ')?;
    if !words.iter().any(|known| known.eq_ignore_ascii_case(word)) {
        return None;
    }
    let rest = rest.trim_start();
    let (number, title) = plain(rest).or_else(|| separated(rest))?;
    // `**Task 2: Name**`, `**Task 2:** Name`: what was opened before the word.
    let marks = &heading[..heading.len() - bare.len()];
    let title = match ["**", "__", "~~"]
        .into_iter()
        .find(|mark| marks.contains(mark))
    {
        Some(mark) => {
            let title = title.strip_suffix(mark).unwrap_or(title);
            title.strip_prefix(mark).unwrap_or(title)
        }
        None => title,
    };
    Some((number, title.trim()))
}

/// What follows signs and a label: `✅ `, `**`, `[Final] `.
fn undecorated(heading: &str) -> &str {
    let is_sign = |c: char| !c.is_alphanumeric() && c != '[';
    let bare = heading.trim_start_matches(is_sign);
    let label = bare.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match label {
        Some((label, behind)) if label.len() <= 16 => behind.trim_start_matches(is_sign),
        _ => bare,
    }
}

/// `2.5: Name`, `2-b: Name` or `2`.
fn plain(rest: &str) -> Option<(&str, &str)> {
    let (number, title) = rest.split_once(':').unwrap_or((rest, ""));
    let number = number.trim_end();
    let is_plain = |c: char| c.is_ascii() && !c.is_whitespace() && c != '*' && c != ')';
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(is_plain)
        && !number.ends_with('.');
    is_number.then(|| (number, title.trim()))
}

/// `2 — Name`, `2. Name`, `2) Name`, `#2 - Name`, `T002: Name`, `2 (P0): Name`, `2：Name`.
fn separated(rest: &str) -> Option<(&str, &str)> {
    const SIGNS: [char; 8] = [':', '：', '.', ')', '-', '–', '—', '、'];
    let rest = rest.strip_prefix('#').unwrap_or(rest);
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/'));
    let end = rest.find(is_end).unwrap_or(rest.len());
    let number = rest[..end].trim_end_matches(['.', '-']);
    let digits = number.strip_prefix(['T', 't']).unwrap_or(number);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let behind = rest[number.len()..].trim_start_matches(['*', '_', ' ']);
    let behind = match behind
        .strip_prefix('(')
        .and_then(|inside| inside.split_once(')'))
    {
        Some((_, behind)) => behind.trim_start(),
        None => behind,
    };
    let title = behind.trim_start_matches(SIGNS);
    let is_separated = behind.is_empty() || title.len() < behind.len();
    is_separated.then(|| (number, title.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_known_in_every_spelling_of_a_heading() {
        for (heading, number, title) in [
            ("Task 2: B", "2", "B"),
            ("Task 2.5: B", "2.5", "B"),
            ("Task 2-b: B", "2-b", "B"),
            ("Task 2", "2", ""),
            ("Task 2 : B", "2", "B"),
            ("Task 2 — B: c", "2", "B: c"),
            ("Task 2—B", "2", "B"),
            ("Task 2. B", "2", "B"),
            ("Task 2.", "2", ""),
            ("Task 2.1 - B", "2.1", "B"),
            ("Task 2 - B", "2", "B"),
            ("Task 2) B", "2", "B"),
            ("Task 2 (P0): B", "2", "B"),
            ("Task 2：甲 乙", "2", "甲 乙"),
            ("**Task 2: B**", "2", "B"),
            ("**Task 2:** B", "2", "B"),
            ("**Task 2** - B", "2", "B"),
            ("✅ Task 2: B", "2", "B"),
            ("[Final] Task 2: B", "2", "B"),
            ("TASK 2: B", "2", "B"),
            ("Task #2: B", "2", "B"),
            ("Task T002: B", "T002", "B"),
            ("Task 2: `a` and **b**", "2", "`a` and **b**"),
            ("Task 2: ends with a star*", "2", "ends with a star*"),
        ] {
            let found = task_heading(heading, &["task"]);
            assert_eq!(found, Some((number, title)), "{heading}");
        }
        for heading in [
            "Task list",
            "Tasks 1: a",
            "Task 2 follow-ups",
            "Task A: b",
            "Iteration 1: a",
            "Notes on Task 2: a",
            "Task",
            "",
        ] {
            assert_eq!(task_heading(heading, &["task"]), None, "{heading}");
        }
    }
}
