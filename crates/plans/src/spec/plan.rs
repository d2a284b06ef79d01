//! The section of a plan that belongs to a task.

use std::collections::BTreeSet;

use crate::roadmap::lines::lines;

/// The section for a task, with its heading and all under it: found by its id, then its title, then
/// the closest heading; `None` where no heading comes near.
pub fn find_section<'a>(plan: &'a str, id: &str, title: &str) -> Option<&'a str> {
    let heads = headings(plan);
    let first = |test: &dyn Fn(&str) -> bool| heads.iter().find(|head| test(head.text));
    let wanted = words(title);
    let head = first(&|text| names_id(text, id))
        .or_else(|| first(&|text| is_title(text, title)))
        .or_else(|| first(&|text| same_words(text, &wanted)))
        .or_else(|| first(&|text| is_numbered(text, id)))
        .or_else(|| first(&|text| holds_words(text, &wanted)))
        .or_else(|| closest(&heads, &wanted))?;
    Some(plan[head.start..head.end].trim_end())
}

struct Heading<'a> {
    level: usize,
    text: &'a str,
    start: usize,
    end: usize,
}

/// All headings with their sections; a single first-level one is the plan's name and no section.
fn headings(plan: &str) -> Vec<Heading<'_>> {
    let all = lines(plan, &mut Vec::new());
    let heads = all
        .iter()
        .filter_map(|line| line.heading().map(|head| (line, head)));
    let mut heads: Vec<Heading<'_>> = heads
        .map(|(line, (level, text))| Heading {
            level,
            text,
            start: line.start,
            end: plan.len(),
        })
        .collect();
    for at in 0..heads.len() {
        let next = heads[at + 1..]
            .iter()
            .find(|next| next.level <= heads[at].level);
        heads[at].end = next.map_or(plan.len(), |next| next.start);
    }
    let names = heads.iter().filter(|head| head.level == 1).count();
    heads.retain(|head| head.level > 1 || names > 1);
    heads
}

/// `Task 3: …`, `[3] …`, `#3`, and a word that is an id anywhere.
fn names_id(heading: &str, id: &str) -> bool {
    places_of(heading, id).any(|at| {
        let before = heading[..at]
            .trim_end_matches(['#', ' ', '-', '_', ':'])
            .to_lowercase();
        let after = &heading[at + id.len()..];
        let marked = heading[..at].ends_with(['#', '[', '(', '`']);
        let bracket_ok = !heading[..at].ends_with(['[', '(']) || after.starts_with([']', ')']);
        let is_word = id.contains(|c: char| c.is_alphabetic());
        is_word || before.ends_with("task") || (marked && bracket_ok)
    })
}

/// `3. …`, `3: …`, `1.2 …`: a number that may count the plan's own sections.
fn is_numbered(heading: &str, id: &str) -> bool {
    places_of(heading, id).any(|at| at == 0)
}

/// Where an id stands as a whole.
fn places_of<'h>(heading: &'h str, id: &'h str) -> impl Iterator<Item = usize> + 'h {
    let part_of_id = |c: char| c.is_alphanumeric() || c == '_';
    let joins = |c: char| matches!(c, '.' | '-' | ':');
    let whole = move |at: &usize| {
        let mut before = heading[..*at].chars().rev();
        let mut after = heading[at + id.len()..].chars();
        let free = |near: Option<char>, far: Option<char>| match near {
            Some(near) if part_of_id(near) => false,
            Some(near) if joins(near) => !far.is_some_and(part_of_id),
            _ => true,
        };
        let (near, far) = (before.next(), before.next());
        // In `task-3` the dash joins two words; the id is the second.
        let before_ok = free(near, far) || near == Some('-');
        before_ok && free(after.next(), after.next())
    };
    heading
        .match_indices(id)
        .map(|(at, _)| at)
        .filter(move |_| !id.is_empty())
        .filter(whole)
}

/// Words in small letters, without numbers and marks.
fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty() && !word.chars().all(|c| c.is_ascii_digit()))
        .map(str::to_lowercase)
        .filter(|word| {
            ![
                "task", "phase", "step", "the", "a", "an", "and", "of", "to", "for", "in",
            ]
            .contains(&word.as_str())
        })
        .collect()
}

/// The title itself, case and blanks aside; the plan may number its sections.
fn is_title(heading: &str, title: &str) -> bool {
    let plain = |text: &str| {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        words.join(" ")
    };
    let unnumbered = heading.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let unnumbered = unnumbered.trim_start_matches([')', ':', ' ']);
    let title = plain(title);
    !title.is_empty()
        && [heading, unnumbered]
            .iter()
            .any(|text| plain(text) == title)
}

fn same_words(heading: &str, wanted: &[String]) -> bool {
    !wanted.is_empty() && words(heading) == wanted
}

/// One holds all words of the other in their order; a single word proves nothing.
fn holds_words(heading: &str, wanted: &[String]) -> bool {
    let words = words(heading);
    let holds = |long: &[String], short: &[String]| {
        short.len() >= 2 && long.windows(short.len()).any(|window| window == short)
    };
    holds(&words, wanted) || holds(wanted, &words)
}

/// The heading with most words in common, if that is at least half of both.
fn closest<'h, 'a>(heads: &'h [Heading<'a>], wanted: &[String]) -> Option<&'h Heading<'a>> {
    let wanted: BTreeSet<&str> = wanted.iter().map(String::as_str).collect();
    let mut best: Option<(usize, usize, &Heading<'a>)> = None;
    for head in heads {
        let own = words(head.text);
        let own: BTreeSet<&str> = own.iter().map(String::as_str).collect();
        let (common, sum) = (own.intersection(&wanted).count(), own.len() + wanted.len());
        // Compared as fractions of whole numbers, so that equal ones stay equal.
        let better = best.is_none_or(|(best, best_sum, _)| common * best_sum > best * sum);
        if common > 0 && 4 * common >= sum && better {
            best = Some((common, sum, head));
        }
    }
    best.map(|(_, _, head)| head)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "# Harbour plan\n\n## 1. Overview\nall\n\n## Data model\nrows\n### Tables\nmore\n\n\
        ## Task 2.1: axes\nscale\n```\n## Task 9\n```\n\n## Task 2.10: ticks\nten\n\n## 3. Draw the daily curve\ncurve\n\n\
        ## Warn about high spring tides early\nwarn\n\n## print-lines (output)\nfour\n\n## Phase 7\nlast\n";

    fn find(id: &str, title: &str) -> Option<&'static str> {
        let heading = find_section(PLAN, id, title)?.lines().next()?;
        heading.strip_prefix("## ")
    }

    #[test]
    fn sections_are_found_by_id_then_title_then_the_closest_heading() {
        assert_eq!(find("2.1", "x"), Some("Task 2.1: axes"));
        assert_eq!(find("2.10", "x"), Some("Task 2.10: ticks"));
        assert_eq!(find("print-lines", "x"), Some("print-lines (output)"));
        assert_eq!(find("3", "x"), Some("3. Draw the daily curve"));
        assert_eq!(find("8", "Data model"), Some("Data model"));
        assert_eq!(
            find("8", "Draw the daily curve of Brest"),
            Some("3. Draw the daily curve")
        );
        assert_eq!(
            find("8", "Warn early of spring tides"),
            Some("Warn about high spring tides early")
        );
    }

    #[test]
    fn a_heading_that_is_the_title_is_found_whatever_its_words() {
        let plan = "## Task A\na\n## Task B\nb\n## 3. Phase  two\nc\n## the and\nd\n";
        for (title, text) in [
            ("Task A", "a"),
            ("task b ", "b"),
            ("Phase Two", "c"),
            ("The and", "d"),
        ] {
            let section = find_section(plan, "9", title).unwrap_or_default();
            assert_eq!(section.lines().last(), Some(text), "{title}");
        }
        assert_eq!(find_section(plan, "9", ""), None);
    }

    #[test]
    fn a_number_is_not_mistaken_for_an_id() {
        assert_eq!(
            find("1", "Data model"),
            Some("Data model"),
            "headings may count themselves"
        );
        assert_eq!(find("7", "zzz"), None, "a phase is no task");
        assert_eq!(find("2", "zzz"), None, "2.1 is not 2");
        assert_eq!(find("9", "zzz"), None, "code is no heading");
        assert_eq!(find("0", "zzz"), None);
        assert_eq!(
            find_section("# Only a name\ntext", "1", "Only a name"),
            None
        );
    }

    #[test]
    fn a_section_has_its_subsections_and_ends_before_the_next() {
        let section = find_section(PLAN, "8", "Data model").unwrap();
        assert_eq!(section, "## Data model\nrows\n### Tables\nmore");
        let last = find_section(PLAN, "8", "phase lines print output").unwrap();
        assert_eq!(last, "## print-lines (output)\nfour");
    }
}
