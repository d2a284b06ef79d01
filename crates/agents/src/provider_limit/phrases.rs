//! Whether a text tells of a limit, an overload, a broken network or a wrong login, by the words
//! in `phrases.toml`. Texts are normalized.

use std::sync::LazyLock;

use serde::Deserialize;

use super::LimitKind;
use crate::built_in::built_in;

/// Lists of words, as `phrases.toml` has them.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Phrases {
    login: Vec<String>,
    usage: Vec<String>,
    rate: Vec<String>,
    overload: Vec<String>,
    network: Vec<String>,
    addresses: Vec<String>,
    addresses_whole: Vec<String>,
    qualifiers: Vec<String>,
    goes_on: Vec<String>,
    status_before: Vec<String>,
    pub error_lines: Vec<String>,
    pub own_lines: Vec<String>,
}

pub(super) static PHRASES: LazyLock<Phrases> =
    LazyLock::new(|| built_in(include_str!("phrases.toml")).unwrap_or_default());

impl Phrases {
    /// The first kind with a phrase that is found, in the order of what they say when several stand
    /// in one message.
    fn kind(&self, is_found: impl Fn(&str) -> bool) -> Option<LimitKind> {
        let kinds = [
            (LimitKind::Login, &self.login),
            (LimitKind::Usage, &self.usage),
            (LimitKind::Rate, &self.rate),
            (LimitKind::Overload, &self.overload),
            (LimitKind::Network, &self.network),
        ];
        let found = |(_, phrases): &(_, &Vec<String>)| phrases.iter().any(|one| is_found(one));
        kinds.into_iter().find(found).map(|(kind, _)| kind)
    }
}

/// What an error's line tells of: the words may stand anywhere in it, as whole words.
pub(super) fn inside(norm: &str) -> Option<LimitKind> {
    // A full disk is no provider's limit.
    if norm.contains("disk quota") || norm.contains("edquot") {
        return None;
    }
    PHRASES.kind(|phrase| has_words(norm, phrase))
}

fn has_words(text: &str, phrase: &str) -> bool {
    let word = |c: char| c.is_alphanumeric();
    text.match_indices(phrase).any(|(at, _)| {
        let goes_on = phrase.ends_with(word) && text[at + phrase.len()..].starts_with(word);
        !text[..at].ends_with(word) && !goes_on
    })
}

/// What a line says that is itself the statement: it begins so, and the phrase ends there
/// or goes on as such statements do. "Rate limit reached handler added" is none.
pub(super) fn statement(norm: &str) -> Option<LimitKind> {
    let norm = norm.trim_start();
    let states = |phrase: &str| norm.strip_prefix(phrase).is_some_and(ends_or_goes_on);
    addressed(norm)
        .or_else(|| limit_reached(norm))
        .or_else(|| PHRASES.kind(states))
}

pub(super) fn is_second_person(norm: &str) -> bool {
    addressed(norm).is_some()
}

fn addressed(norm: &str) -> Option<LimitKind> {
    let what = ["limit", "quota", "capacity", "credits", "usage"];
    let near = |rest: &str| {
        let clause = rest
            .split(['.', ',', ';', '·', '!', '?'])
            .next()
            .unwrap_or(rest);
        clause.len() <= 60 && what.iter().any(|word| has_words(clause, word))
    };
    let mut addresses = PHRASES.addresses.iter();
    let by_name = addresses.any(|start| norm.strip_prefix(&**start).is_some_and(near));
    if !by_name && !begins(norm, &PHRASES.addresses_whole) {
        return None;
    }
    let head = norm.split(['.', '·']).next().unwrap_or(norm);
    let kind = if has_words(head, "rate limit") || has_words(head, "rate limited") {
        LimitKind::Rate
    } else {
        LimitKind::Usage
    };
    Some(kind)
}

/// `5-hour limit reached …`, `Claude AI usage limit reached|…`, `the quota has been exceeded`.
fn limit_reached(norm: &str) -> Option<LimitKind> {
    let mut rest = norm;
    let mut kind = LimitKind::Usage;
    for _ in 0..6 {
        let (word, after) = rest.split_once(' ')?;
        if word == "limit" || word == "quota" {
            let reached = [
                "reached",
                "exceeded",
                "hit",
                "has been reached",
                "has been exceeded",
            ];
            let ended = reached.iter().filter_map(|verb| after.strip_prefix(verb));
            return ended.into_iter().any(ends_or_goes_on).then_some(kind);
        }
        if !PHRASES.qualifiers.iter().any(|known| known == word) {
            return None;
        }
        if ["rate", "request", "requests", "token", "tokens"].contains(&word) {
            kind = LimitKind::Rate;
        }
        rest = after;
    }
    None
}

fn ends_or_goes_on(rest: &str) -> bool {
    let rest = match rest.strip_prefix(' ') {
        Some(rest) => rest,
        None if rest.is_empty() => return true,
        None => return rest.starts_with(['.', ',', ':', ';', '!', '|', '·', ')', ']', '"', '\'']),
    };
    rest.is_empty()
        || rest.starts_with(['·', '∙', '•', '|', '—', '–', '-', '(', '['])
        || begins(rest, &PHRASES.goes_on)
}

/// Whether a text begins with one of these.
pub(super) fn begins(text: &str, starts: &[String]) -> bool {
    starts.iter().any(|start| text.starts_with(start))
}

/// An HTTP status of 400 or above that an error message names.
pub(super) fn http_status(norm: &str) -> Option<u16> {
    let number = |text: &str| -> Option<u16> {
        let digits = text.get(..3)?;
        let whole = !text[3..].starts_with(|c: char| c.is_ascii_alphanumeric());
        let status: u16 = digits.parse().ok()?;
        (whole && (400..600).contains(&status)).then_some(status)
    };
    number(norm).or_else(|| {
        PHRASES.status_before.iter().find_map(|before| {
            norm.match_indices(&**before)
                .find_map(|(at, _)| number(&norm[at + before.len()..]))
        })
    })
}
