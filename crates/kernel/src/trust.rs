//! What a project's own files may do only once a person has trusted it: start programs, widen
//! rights. Which keys these are stands with the keys; here is what differs from what was trusted,
//! and how that is shown.

use std::collections::BTreeMap;

/// Keys that need trust, each with its value in one line.
pub type Powers = BTreeMap<String, String>;

/// More of a value than this is not shown, and that is said.
const LONGEST: usize = 2_000;
/// More lines than this are not shown, and that is said.
const MOST_LINES: usize = 200;

/// How a project's keys stand to what was trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No key needs trust.
    Nothing,
    /// All of it was trusted as it is.
    Trusted,
    /// Nothing of it was ever trusted.
    New,
    /// It is not what was trusted.
    Changed,
}

impl Standing {
    /// Judges: `holds` tells whether the trusted hash is that of the keys as they are now.
    pub fn of(now: &Powers, was_trusted: bool, holds: bool) -> Self {
        match (now.is_empty(), was_trusted, holds) {
            (true, ..) => Self::Nothing,
            (false, true, true) => Self::Trusted,
            (false, true, false) => Self::Changed,
            (false, false, _) => Self::New,
        }
    }

    /// Whether everything may be used.
    pub fn may_be_used(self) -> bool {
        matches!(self, Self::Nothing | Self::Trusted)
    }
}

/// The difference between what was trusted and what is there, a line each: `- ` for what was, `+ `
/// for what is. Without something trusted, all of it is new.
pub fn diff(trusted: Option<&Powers>, now: &Powers) -> Vec<String> {
    let none = Powers::new();
    let before = trusted.unwrap_or(&none);
    let mut keys: Vec<&String> = before.keys().chain(now.keys()).collect();
    keys.sort();
    keys.dedup();
    let mut lines = Vec::new();
    for key in keys {
        let (was, is) = (before.get(key), now.get(key));
        if was == is {
            continue;
        }
        lines.extend(was.map(|value| format!("- {}", line(key, value))));
        lines.extend(is.map(|value| format!("+ {}", line(key, value))));
    }
    bounded(lines)
}

/// All keys, a line each.
pub fn listed(now: &Powers) -> Vec<String> {
    bounded(now.iter().map(|(key, value)| line(key, value)).collect())
}

fn line(key: &str, value: &str) -> String {
    match value.char_indices().nth(LONGEST) {
        None => format!("{key} = {value}"),
        Some((end, _)) => {
            let more = value[end..].chars().count();
            format!("{key} = {} … ({more} more characters)", &value[..end])
        }
    }
}

fn bounded(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(MOST_LINES);
    if more > 0 {
        lines.truncate(MOST_LINES);
        lines.push(format!("… and {more} more lines"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn powers(pairs: &[(&str, &str)]) -> Powers {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn only_what_was_trusted_as_it_is_may_be_used() {
        let some = powers(&[("verify", "[\"make\"]")]);
        let table = [
            (Powers::new(), false, false, Standing::Nothing),
            (Powers::new(), true, false, Standing::Nothing),
            (some.clone(), false, false, Standing::New),
            (some.clone(), true, false, Standing::Changed),
            (some, true, true, Standing::Trusted),
        ];
        for (now, was, holds, expected) in table {
            let standing = Standing::of(&now, was, holds);
            assert_eq!(standing, expected, "{now:?} {was} {holds}");
            let usable = matches!(expected, Standing::Nothing | Standing::Trusted);
            assert_eq!(standing.may_be_used(), usable);
        }
    }

    #[test]
    fn a_diff_names_what_was_and_what_is() {
        let before = powers(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let now = powers(&[("a", "1"), ("b", "4"), ("d", "5")]);
        let expected = ["- b = 2", "+ b = 4", "- c = 3", "+ d = 5"];
        assert_eq!(diff(Some(&before), &now), expected);
        assert_eq!(diff(None, &powers(&[("a", "1")])), ["+ a = 1"]);
        assert!(diff(Some(&now), &now).is_empty());
    }

    #[test]
    fn what_is_not_shown_is_said() {
        let long = "ä".repeat(LONGEST + 7);
        let shown = diff(None, &powers(&[("a", &long)]));
        assert!(shown[0].ends_with("… (7 more characters)"), "{}", shown[0]);
        let many: Powers = (0..MOST_LINES + 3)
            .map(|number| (format!("k{number:04}"), String::new()))
            .collect();
        let shown = listed(&many);
        assert_eq!(shown.len(), MOST_LINES + 1);
        assert_eq!(shown.last().map(String::as_str), Some("… and 3 more lines"));
    }
}
