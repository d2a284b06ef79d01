//! What a check of `doctor` found.

use serde::Serialize;

use crate::printer::Printer;
use crate::style::Tone;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Note,
    /// It should be mended: `doctor` exits with 1.
    Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub check: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What was found.
    pub message: String,
    /// What to type next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// As it should be.
pub fn ok(check: &'static str, message: impl Into<String>) -> Finding {
    Finding {
        check,
        level: Level::Ok,
        message: message.into(),
        hint: None,
    }
}

/// Worth knowing.
pub fn note(check: &'static str, message: impl Into<String>, hint: &str) -> Finding {
    let hint = Some(hint.to_owned()).filter(|hint| !hint.is_empty());
    Finding {
        check,
        level: Level::Note,
        message: message.into(),
        hint,
    }
}

/// To be mended.
pub fn problem(
    check: &'static str,
    message: impl Into<String>,
    hint: impl Into<String>,
) -> Finding {
    Finding {
        check,
        level: Level::Problem,
        message: message.into(),
        hint: Some(hint.into()),
    }
}

/// Tells of a check, with its name in so many columns.
pub fn tell(
    level: Level,
    (name, columns): (&str, usize),
    message: &str,
    hint: Option<&String>,
    printer: &Printer,
) {
    let (tone, word) = match level {
        Level::Ok => (Tone::Good, "ok     "),
        Level::Note => (Tone::Warn, "note   "),
        Level::Problem => (Tone::Bad, "problem"),
    };
    let word = printer.out.text(tone, word);
    printer.line(&format!("{word}  {name:<columns$}  {message}"));
    if let Some(hint) = hint {
        printer.line(&format!("{:1$}hint: {hint}", "", columns + 11));
    }
}
