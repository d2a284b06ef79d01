//! Wordings and events that mean: wait until.
//!
//! [`told`] reads free text (an agent's final message, the stderr of a run that failed) and
//! is strict, since agents write about limits as well as meet them. [`told_in_error`] reads
//! what is known to be an error message. Both take the present and the local time zone as
//! values; a clock time without a zone is local, and one that has passed means tomorrow.

mod clock;
mod headers;
mod line;
mod normalize;
mod phrases;
mod when;
mod whose;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};

pub use headers::{kind_of_status, reset_in_headers};
pub use when::reset_in;

const WORDS_KEPT: usize = 300;

/// The longest windows of providers are weeks: a reset further away is a mistake of whoever told it.
pub const FARTHEST: SignedDuration = SignedDuration::from_hours(8 * 24);

/// What a provider lets an agent know: wait, or mend your login.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct ReportedLimit {
    /// What kind of hindrance it is.
    pub kind: LimitKind,
    /// When it ends, where that was told.
    pub until: Option<Timestamp>,
    /// The agent's words, shortened.
    pub words: String,
}

impl ReportedLimit {
    /// What of it is believed at this time: a reset that is too far away is not, however it was
    /// told, and the words say so.
    #[must_use]
    pub fn believed(&self, now: Timestamp) -> Self {
        match self.until {
            Some(until) if until.duration_since(now) > FARTHEST => Self {
                kind: self.kind,
                until: None,
                words: format!(
                    "{} (ignoring a reset at {until}: more than 8 days away)",
                    self.words
                ),
            },
            _ => self.clone(),
        }
    }
}

/// Kinds of hindrance on the provider's side.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// A plan's or account's quota is used up.
    Usage,
    /// Too many requests or tokens in a short time.
    Rate,
    /// The provider has trouble of its own.
    Overload,
    /// The provider cannot be reached.
    Network,
    /// The key or login is wrong: waiting does not help.
    Login,
}

/// Whether free text says that the provider hinders the agent, and until when.
///
/// Prose about limits is not taken for a limit: a line must begin like an error message, or
/// be such a statement itself. In long text only the last lines count.
pub fn told(text: &str, now: Timestamp, local: &TimeZone) -> Option<ReportedLimit> {
    told_if(text, now, local, |_, _| true)
}

/// The same for the output of an agent in plain text, where its tools and the work itself speak as well: what
/// they say of a server on this machine, or of nobody knows which, is no limit of its provider.
pub fn told_in_output(text: &str, now: Timestamp, local: &TimeZone) -> Option<ReportedLimit> {
    told_if(text, now, local, whose::is_the_providers)
}

fn told_if(
    text: &str,
    now: Timestamp,
    local: &TimeZone,
    counts: impl Fn(&str, LimitKind) -> bool,
) -> Option<ReportedLimit> {
    let lines = line::candidates(text);
    let (index, kind) = lines.iter().enumerate().rev().find_map(|(index, found)| {
        let after = lines.get(index + 1).map_or("", |next| next.norm.as_str());
        let kind = line::kind_of(found, after)?;
        counts(line::undecorated(&found.norm), kind).then_some((index, kind))
    })?;
    let said = &lines[index..lines.len().min(index + 3)];
    let norm: Vec<&str> = said.iter().map(|line| line.norm.as_str()).collect();
    Some(ReportedLimit {
        kind,
        until: when::reset_in(&norm.join("\n"), now, local),
        words: shorten(said.first().map_or("", |line| line.raw)),
    })
}

/// The same for text that is known to be an error message, told by the agent as such.
pub fn told_in_error(text: &str, now: Timestamp, local: &TimeZone) -> Option<ReportedLimit> {
    Some(ReportedLimit {
        kind: kind_in_error(text)?,
        until: reset_in(text, now, local),
        words: shorten(text),
    })
}

/// What kind of hindrance an error message tells of, if any.
pub fn kind_in_error(text: &str) -> Option<LimitKind> {
    let norm = normalize::normalize(text);
    phrases::statement(&norm)
        .or_else(|| phrases::inside(&norm))
        .or_else(|| phrases::http_status(&norm).and_then(kind_of_status))
}

/// A text's beginning on one line, for people.
pub(crate) fn shorten(text: &str) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if words.len() + word.len() > WORDS_KEPT {
            let room = WORDS_KEPT.saturating_sub(words.len());
            words.extend(word.chars().take(room / 4));
            words.push('…');
            return words;
        }
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
    }
    words
}

#[cfg(test)]
mod tests;
