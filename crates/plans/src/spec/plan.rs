//! The section of a plan that belongs to a task.

use std::collections::BTreeSet;

use crate::roadmap::lines::lines;

/// How a section was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// Its heading names the task's id.
    Id,
    /// Its heading is the task's title, or holds it.
    Title,
    /// Its heading has most words in common with the title.
    Closest,
}

/// A section of a plan: its heading and everything under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanSection<'a> {
    /// The heading's text.
    pub heading: &'a str,
    /// The section with its heading and its subsections.
    pub text: &'a str,
    /// The line of the heading, from 1.
    pub line: u32,
    /// How it was found.
    pub found_by: FoundBy,
}

/// Finds the section for a task: by its id, then its title, then the closest heading; `None` where
/// no heading comes near.
pub fn find_section<'a>(plan: &'a str, id: &str, title: &str) -> Option<PlanSection<'a>> {
    let heads = headings(plan);
    let first = |test: &dyn Fn(&Heading<'a>) -> bool| heads.iter().find(|head| test(head));
    let wanted = words(title);
    let found = first(&|head| names_id(head.text, id))
        .map(|head| (head, FoundBy::Id))
        .or_else(|| {
            first(&|head| same_words(head.text, &wanted)).map(|head| (head, FoundBy::Title))
        })
        .or_else(|| first(&|head| is_numbered(head.text, id)).map(|head| (head, FoundBy::Id)))
        .or_else(|| {
            first(&|head| holds_words(head.text, &wanted)).map(|head| (head, FoundBy::Title))
        })
        .or_else(|| closest(&heads, &wanted).map(|head| (head, FoundBy::Closest)));
    let (head, found_by) = found?;
    let text = plan[head.start..head.end].trim_end();
    Some(PlanSection {
        heading: head.text,
        text,
        line: head.line,
        found_by,
    })
}

struct Heading<'a> {
    level: usize,
    text: &'a str,
    line: u32,
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
            line: line.number,
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

    fn find(id: &str, title: &str) -> Option<(&'static str, FoundBy)> {
        find_section(PLAN, id, title).map(|section| (section.heading, section.found_by))
    }

    #[test]
    fn sections_are_found_by_id_then_title_then_the_closest_heading() {
        assert_eq!(find("2.1", "x"), Some(("Task 2.1: axes", FoundBy::Id)));
        assert_eq!(find("2.10", "x"), Some(("Task 2.10: ticks", FoundBy::Id)));
        assert_eq!(
            find("print-lines", "x"),
            Some(("print-lines (output)", FoundBy::Id))
        );
        assert_eq!(
            find("3", "x"),
            Some(("3. Draw the daily curve", FoundBy::Id))
        );
        assert_eq!(
            find("8", "Data model"),
            Some(("Data model", FoundBy::Title))
        );
        assert_eq!(
            find("8", "Draw the daily curve of Brest"),
            Some(("3. Draw the daily curve", FoundBy::Title))
        );
        assert_eq!(
            find("8", "Warn early of spring tides"),
            Some(("Warn about high spring tides early", FoundBy::Closest))
        );
    }

    #[test]
    fn a_number_is_not_mistaken_for_an_id() {
        assert_eq!(
            find("1", "Data model"),
            Some(("Data model", FoundBy::Title)),
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
        assert_eq!(section.text, "## Data model\nrows\n### Tables\nmore");
        assert_eq!(section.line, 6);
        let last = find_section(PLAN, "8", "phase lines print output").unwrap();
        assert_eq!(last.text, "## print-lines (output)\nfour");
    }
}
