//! What a reader of a task file has to say about it, with the place.

use std::fmt;

use serde::{Deserialize, Serialize};
use strsim::levenshtein;

/// A place in a text file, counted from 1; line 0 is the file as a whole.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Place {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl Place {
    /// The file as a whole.
    pub const FILE: Self = Self { line: 0, column: 0 };

    /// The first column of a line.
    pub const fn line(line: u32) -> Self {
        Self { line, column: 1 }
    }

    /// A line and a column.
    pub const fn at(line: u32, column: u32) -> Self {
        Self { line, column }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is started before this is mended.
    Error,
    /// Something would be lost or read otherwise than its author meant.
    Warning,
    /// Worth knowing.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        })
    }
}

/// One thing that was found in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The line, from 1; 0 is the file as a whole.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// How much it matters.
    pub severity: Severity,
    /// What is there, in lower case, without a period.
    pub message: String,
    /// What to write instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Finding {
    /// A finding without a hint.
    pub fn new(severity: Severity, place: Place, message: impl Into<String>) -> Self {
        let Place { line, column } = place;
        Self {
            line,
            column,
            severity,
            message: message.into(),
            hint: None,
        }
    }

    /// An error at a place.
    pub fn error(place: Place, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, place, message)
    }

    /// A warning at a place.
    pub fn warning(place: Place, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, place, message)
    }

    /// A note at a place.
    pub fn note(place: Place, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, place, message)
    }

    /// The same finding with what to write instead.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Where it was found.
    pub fn place(&self) -> Place {
        Place {
            line: self.line,
            column: self.column,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "{}: ", self.place())?;
        }
        write!(f, "{}: {}", self.severity, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " (hint: {hint})"),
            None => Ok(()),
        }
    }
}

/// Puts findings in the order of the file, errors first within a line.
pub fn sort(findings: &mut [Finding]) {
    findings.sort_by(|a, b| {
        (a.line, a.column, a.severity, &a.message).cmp(&(b.line, b.column, b.severity, &b.message))
    });
}

/// Whether any finding is an error.
pub fn has_errors(findings: &[Finding]) -> bool {
    findings
        .iter()
        .any(|finding| finding.severity == Severity::Error)
}

/// The candidate nearest to a mistyped word, when it is near enough to be meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).clamp(1, 4);
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= limit * 4)
        .map(|candidate| (levenshtein(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_one_line_with_its_place_and_hint() {
        let finding = Finding::warning(Place::at(7, 5), "unknown key `tiemout`")
            .hint("did you mean `timeout`?");
        assert_eq!(
            finding.to_string(),
            "7:5: warning: unknown key `tiemout` (hint: did you mean `timeout`?)"
        );
        assert_eq!(
            Finding::error(Place::FILE, "no tasks").to_string(),
            "error: no tasks"
        );
    }

    #[test]
    fn the_nearest_word_is_offered_only_when_it_is_near() {
        let keys = ["timeout", "depends", "success"];
        assert_eq!(nearest("tiemout", keys), Some("timeout"));
        assert_eq!(nearest("Depend", keys), Some("depends"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(nearest("", keys), None);
    }

    #[test]
    fn findings_stand_in_the_order_of_the_file() {
        let mut findings = vec![
            Finding::note(Place::line(3), "c"),
            Finding::warning(Place::line(1), "b"),
            Finding::error(Place::line(1), "a"),
        ];
        sort(&mut findings);
        let order: Vec<&str> = findings.iter().map(|f| f.message.as_str()).collect();
        assert_eq!(order, ["a", "b", "c"]);
        assert!(has_errors(&findings));
    }
}
