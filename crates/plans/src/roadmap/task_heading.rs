//! Headings of plans that are tasks: `Task 2: …`, and what people write for it.

/// The number and the title of a heading that begins with one of these words: `Task 2.5: Name`,
/// `**TASK #2** - Name`, `✅ Task 2 (P0): Name`, `Task 2/5: Name`.
pub(crate) fn task_heading<'a>(heading: &'a str, words: &[&str]) -> Option<(&'a str, &'a str)> {
    read_heading(heading, words, |rest| {
        plain(rest).or_else(|| separated(rest))
    })
}

/// The same for headings that may also be something else: `Task 2 Name`, `Task 2 of 5: Name`,
/// `Task B: Name`.
pub(crate) fn loose_task_heading<'a>(
    heading: &'a str,
    words: &[&str],
) -> Option<(&'a str, &'a str)> {
    read_heading(heading, words, |rest| {
        lettered(rest).or_else(|| followed(rest))
    })
}

/// The number and the title of `2. Name`, `2.1 Name` or `2) Name`.
pub(crate) fn numbered_heading(heading: &str) -> Option<(&str, &str)> {
    let bare = undecorated(heading);
    let end = bare.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let number = bare[..end].trim_end_matches('.');
    let behind = &bare[number.len()..];
    let title = behind.strip_prefix(['.', ')', ':']).unwrap_or(behind);
    let is_counted = title.len() < behind.len() || number.contains('.');
    let is_number = number.starts_with(|c: char| c.is_ascii_digit()) && is_counted;
    let is_apart = title.starts_with(' ') && !title.trim().is_empty();
    (is_number && is_apart).then(|| (number, title.trim().trim_end_matches(['*', '_'])))
}

/// The id and the title of `US-1.2: Name` or `BUG-7 — Name`.
pub(crate) fn story_heading(heading: &str) -> Option<(&str, &str)> {
    let bare = undecorated(heading);
    let letters = bare.bytes().take_while(u8::is_ascii_uppercase).count();
    let number = bare[letters..].strip_prefix('-')?;
    let end = number.find(|c: char| !(c.is_ascii_digit() || c == '.'));
    let number = number[..end.unwrap_or(number.len())].trim_end_matches('.');
    let (id, behind) = bare.split_at(letters + 1 + number.len());
    let is_id = (1..=8).contains(&letters) && number.starts_with(|c: char| c.is_ascii_digit());
    let title = behind_separator(behind).filter(|title| is_id && !title.is_empty())?;
    Some((id, title.trim_end_matches(['*', '_'])))
}

/// The number and the title of `Cycle 2 — Name`, whatever the word.
pub(crate) fn counted_heading(heading: &str) -> Option<(&str, &str)> {
    read_heading(heading, &[], |rest| plain(rest).or_else(|| separated(rest)))
}

/// The word that a heading begins with.
pub(crate) fn heading_word(heading: &str) -> Option<&str> {
    undecorated(heading).split(' ').next()
}

fn read_heading<'a>(
    heading: &'a str,
    words: &[&str],
    read: fn(&'a str) -> Option<(&'a str, &'a str)>,
) -> Option<(&'a str, &'a str)> {
    let bare = undecorated(heading);
    let (word, rest) = bare.split_once(' ')?;
    let is_known = match words {
        [] => word.chars().all(char::is_alphabetic),
        _ => words.iter().any(|known| known.eq_ignore_ascii_case(word)),
    };
    if !is_known {
        return None;
    }
    let (number, title) = read(rest.trim_start())?;
    // `**Task 2: Name**`, `**Task 2:** Name`: what was opened before the word.
    let marks = &heading[..heading.len() - bare.len()];
    let title = match ["**", "__", "~~"]
        .into_iter()
        .find(|mark| !marks.is_empty() && marks.contains(mark))
    {
        Some(mark) => {
            let title = title.strip_suffix(mark).unwrap_or(title);
            title.strip_prefix(mark).unwrap_or(title)
        }
        None => title,
    };
    Some((without_total(number), title.trim()))
}

/// `2` of `2/5`.
fn without_total(number: &str) -> &str {
    match number.split_once('/') {
        Some((number, total)) if total.bytes().all(|byte| byte.is_ascii_digit()) => number,
        _ => number,
    }
}

/// `B: Name`, `B2 — Name`, `B (P0)` or `B`: one letter, perhaps with a number.
fn lettered(rest: &str) -> Option<(&str, &str)> {
    let letter = rest.chars().next().filter(char::is_ascii_uppercase)?;
    let behind = &rest[letter.len_utf8()..];
    let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
    let (number, behind) = rest.split_at(1 + digits);
    if behind.starts_with(|c: char| c.is_alphanumeric()) {
        return None;
    }
    Some((number, behind_separator(behind)?))
}

/// `2 Name` or `2 of 5: Name`.
fn followed(rest: &str) -> Option<(&str, &str)> {
    let (number, title) = rest.split_once(' ')?;
    let bare = number.strip_prefix('T').unwrap_or(number);
    let is_number = bare.starts_with(|c: char| c.is_ascii_digit())
        && bare
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !is_number {
        return None;
    }
    let begins = |title: &&str| {
        let begin = title.get(..3);
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case("of "))
    };
    let total = Some(title).filter(begins).map(|title| {
        let rest = &title[3..];
        rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count())
    });
    let title = match total {
        Some((total, behind)) if !total.is_empty() => behind_separator(behind)?,
        _ => title,
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
    let rest = rest.strip_prefix('#').unwrap_or(rest);
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/'));
    let end = rest.find(is_end).unwrap_or(rest.len());
    let number = rest[..end].trim_end_matches(['.', '-']);
    let digits = number.strip_prefix(['T', 't']).unwrap_or(number);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    Some((number, behind_separator(&rest[number.len()..])?))
}

/// The title behind `: `, ` — `, ` (P0): ` and the like; nothing at all is a title too.
fn behind_separator(text: &str) -> Option<&str> {
    const SIGNS: [char; 8] = [':', '：', '.', ')', '-', '–', '—', '、'];
    let behind = text.trim_start_matches(['*', '_', ' ']);
    let behind = match behind
        .strip_prefix('(')
        .and_then(|inside| inside.split_once(')'))
    {
        Some((_, behind)) => behind.trim_start(),
        None => behind,
    };
    let title = behind.trim_start_matches(SIGNS);
    let is_separated = behind.is_empty() || title.len() < behind.len();
    is_separated.then(|| title.trim())
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
            ("Task 2/5: B", "2", "B"),
            ("Task 2/5", "2", ""),
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

    #[test]
    fn headings_that_may_be_tasks_are_told_apart() {
        for (heading, number, title) in [
            ("Task 2 Build", "2", "Build"),
            ("Task 2.1 Build it", "2.1", "Build it"),
            ("Task 2 of 5: Build", "2", "Build"),
            ("TASK 2 OF 5", "2", ""),
            ("Task 2 of the plan", "2", "of the plan"),
            ("Task T002 [P] [US1]: Build", "T002", "[P] [US1]: Build"),
            ("**Task 2 Build**", "2", "Build"),
            ("Task B: Build", "B", "Build"),
            ("Task B2 — Build", "B2", "Build"),
            ("Task B (not begun)", "B", ""),
            ("Task B", "B", ""),
        ] {
            let found = loose_task_heading(heading, &["task"]);
            assert_eq!(found, Some((number, title)), "{heading}");
        }
        for heading in [
            "Task list",
            "Task A bug in the parser",
            "Task AB: x",
            "Task b: x",
            "Tasks 2 Build",
            "Task 2x Build",
            "Task",
        ] {
            assert_eq!(loose_task_heading(heading, &["task"]), None, "{heading}");
        }
    }

    #[test]
    fn numbered_headings_have_a_number_and_a_title() {
        for (heading, number, title) in [
            ("1. Build", "1", "Build"),
            ("2.1 Build", "2.1", "Build"),
            ("2.1. Build", "2.1", "Build"),
            ("3) Build", "3", "Build"),
            ("**4. Build**", "4", "Build"),
            ("✅ 5: Build", "5", "Build"),
        ] {
            assert_eq!(
                numbered_heading(heading),
                Some((number, title)),
                "{heading}"
            );
        }
        for heading in ["2026 plans", "1.Build", "1.", "v1. Build", "Build 1. x", ""] {
            assert_eq!(numbered_heading(heading), None, "{heading}");
        }
    }
}
