//! What a form shows of a loop's settings, and how they become whole again: secrets in them are masked and
//! what no eye sees is left out; what comes back as it was shown means what it stands for.

use std::collections::BTreeMap;

use descartes_text::display::{self, Colours};

/// What stands for a secret.
const MASK: &str = "***";

/// The text as it may be shown.
pub fn masked(raw: &str) -> String {
    display::text(raw, Colours::Drop)
}

/// A line with a masked secret that was changed: nobody can tell what is meant.
#[derive(Debug, PartialEq, Eq)]
pub struct ChangedSecret(pub String);

/// What was typed into a field that was filled in with the masked form of `known`.
pub fn restored(typed: &str, known: &str) -> Result<String, ChangedSecret> {
    let shown = masked(known);
    if typed.trim() == shown.trim() {
        return Ok(known.to_owned());
    }
    if shown == known {
        return Ok(typed.to_owned());
    }
    let lines: BTreeMap<String, &str> = known
        .lines()
        .map(|line| (masked(line).trim().to_owned(), line))
        .collect();
    let has_mask = |word: &&str| word.contains(MASK) && !known.contains(*word);
    let masks: Vec<&str> = shown.split_whitespace().filter(has_mask).collect();
    let whole = |line: &str| match lines.get(line.trim()) {
        Some(known) => Ok((*known).to_owned()),
        None if masks.iter().any(|mask| line.contains(*mask)) => {
            Err(ChangedSecret(line.trim().to_owned()))
        }
        None => Ok(line.to_owned()),
    };
    let lines: Result<Vec<String>, _> = typed.lines().map(whole).collect();
    Ok(lines?.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_masked_means_what_it_stands_for() {
        let key = format!("sk-ant-{}", "a1B2".repeat(10));
        let known = format!("use {key}\nbe brief");
        let shown = masked(&known);
        assert!(!shown.contains(&key), "{shown}");
        let first = shown.lines().next().unwrap();
        for (typed, expected) in [
            (shown.clone(), known.clone()),
            (format!("{shown}\n"), known.clone()),
            (
                format!("{first}\nat length"),
                format!("use {key}\nat length"),
            ),
            ("something else".to_owned(), "something else".to_owned()),
            (known.clone(), known.clone()),
        ] {
            assert_eq!(restored(&typed, &known), Ok(expected), "{typed}");
        }
        let changed = format!("never {first}");
        assert_eq!(
            restored(&changed, &known),
            Err(ChangedSecret(changed.clone()))
        );
        assert_eq!(restored("a *** b", "no secret"), Ok("a *** b".to_owned()));
    }
}
