//! What to look for, and how it must stand.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Longest text of a promise, in bytes.
const MAX_TEXT: usize = 256;

/// Words that ordinary output holds by itself.
const WEAK: [&str; 16] = [
    "done",
    "success",
    "successful",
    "ok",
    "okay",
    "yes",
    "true",
    "finished",
    "finish",
    "ready",
    "pass",
    "passed",
    "end",
    "fixed",
    "stop",
    "exit",
];

/// How the promise must stand in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromiseMatch {
    /// Only `<promise>TEXT</promise>`.
    Tagged,
    /// Also TEXT alone on a line, in its own case.
    Line,
    /// Also TEXT alone on a line, in any case: tasks that set `require_xml_format: false`.
    LineAnyCase,
    /// Also TEXT as whole words in a line.
    Anywhere,
}

impl PromiseMatch {
    /// What a flag or a config file may say.
    pub const NAMES: &'static [&'static str] = &["tagged", "line", "anywhere"];

    /// What `require_xml_format` means.
    pub fn of_xml_format(required: bool) -> Self {
        match required {
            true => Self::Tagged,
            false => Self::LineAnyCase,
        }
    }
}

impl fmt::Display for PromiseMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tagged => "tagged",
            Self::Line => "line",
            Self::LineAnyCase => "line_any_case",
            Self::Anywhere => "anywhere",
        })
    }
}

/// Why a promise cannot be looked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromiseError {
    /// Nothing but white space.
    #[error("the promise is empty; to run without a promise use --no-promise")]
    Empty,
    /// Over 256 bytes.
    #[error("the promise is {0} bytes long; at most 256 are allowed")]
    TooLong(usize),
    /// It holds `<`.
    #[error("the promise {0:?} contains `<`; give only the text, without the <promise> tag")]
    AngleBracket(String),
    /// It holds a control character.
    #[error("the promise {0:?} contains a control character; use plain text on one line")]
    ControlCharacter(String),
    /// Done and abort cannot be told apart.
    #[error("the completion promise and the abort promise are both {0:?}; change one of them")]
    Same(String),
}

/// The promises of a loop and how they must stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromiseSpec {
    /// Text that claims the work done.
    pub done: Option<String>,
    /// Text that claims it impossible; always tagged.
    pub abort: Option<String>,
    /// How `done` must stand.
    pub mode: PromiseMatch,
}

impl PromiseSpec {
    /// Refuses texts that could never be found or told apart.
    pub fn check(&self) -> Result<(), PromiseError> {
        for text in self.done.iter().chain(&self.abort) {
            check_text(text)?;
        }
        match (&self.done, &self.abort) {
            (Some(done), Some(abort)) if done.trim().eq_ignore_ascii_case(abort.trim()) => {
                Err(PromiseError::Same(done.clone()))
            }
            _ => Ok(()),
        }
    }

    /// A warning where ordinary output is likely to hold the promise by accident.
    pub fn weak_warning(&self) -> Option<String> {
        let text = self.done.as_deref()?.trim();
        let weak = text.len() < 3 || WEAK.iter().any(|word| word.eq_ignore_ascii_case(text));
        (weak && self.mode != PromiseMatch::Tagged).then(|| {
            format!(
                "the promise {text:?} is a common word that ordinary output may contain; choose \
                 a more distinctive text, or use --promise-match tagged"
            )
        })
    }
}

fn check_text(text: &str) -> Result<(), PromiseError> {
    if text.trim().is_empty() {
        return Err(PromiseError::Empty);
    }
    if text.len() > MAX_TEXT {
        return Err(PromiseError::TooLong(text.len()));
    }
    if text.contains('<') {
        return Err(PromiseError::AngleBracket(text.to_owned()));
    }
    if text.chars().any(char::is_control) {
        return Err(PromiseError::ControlCharacter(text.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(done: &str, mode: PromiseMatch) -> PromiseSpec {
        PromiseSpec {
            done: Some(done.to_owned()),
            abort: Some("BLOCKED".to_owned()),
            mode,
        }
    }

    #[test]
    fn texts_are_checked_to_the_byte() {
        let check = |text: &str| spec(text, PromiseMatch::Tagged).check();
        assert_eq!(check("X"), Ok(()));
        assert_eq!(check(&"é".repeat(128)), Ok(()));
        assert_eq!(check(&"x".repeat(257)), Err(PromiseError::TooLong(257)));
        assert_eq!(check(" \t"), Err(PromiseError::Empty));
        assert_eq!(check(""), Err(PromiseError::Empty));
        assert_eq!(check("a<b"), Err(PromiseError::AngleBracket("a<b".into())));
        for text in ["a\nb", "a\u{1b}b", "a\u{7f}", "a\u{85}b"] {
            assert_eq!(
                check(text),
                Err(PromiseError::ControlCharacter(text.into()))
            );
        }
        assert_eq!(
            check(" blocked "),
            Err(PromiseError::Same(" blocked ".into()))
        );
    }

    #[test]
    fn a_spec_without_promises_is_fine() {
        let none = PromiseSpec {
            done: None,
            abort: None,
            mode: PromiseMatch::Line,
        };
        assert_eq!(none.check(), Ok(()));
        assert_eq!(none.weak_warning(), None);
    }

    #[test]
    fn only_weak_texts_outside_a_tag_are_warned_about() {
        for weak in ["DONE", "success", "Ok"] {
            assert!(spec(weak, PromiseMatch::Line).weak_warning().is_some());
            assert!(spec(weak, PromiseMatch::Anywhere).weak_warning().is_some());
            assert_eq!(spec(weak, PromiseMatch::Tagged).weak_warning(), None);
        }
        assert_eq!(spec("COMPLETE", PromiseMatch::Line).weak_warning(), None);
    }
}
