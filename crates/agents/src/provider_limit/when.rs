//! When a limit ends, as messages say it: durations, epochs, dates and clock times.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use super::clock;
use super::normalize::normalize;
use descartes_text::units::unit_secs;

/// No provider's window is longer; anything beyond is a misreading.
const FARTHEST: SignedDuration = SignedDuration::from_hours(40 * 24);

const MARKERS: [&str; 9] = [
    "resets",
    "reset",
    "try again",
    "retry",
    "retrying",
    "available again",
    "available",
    "until",
    "wait",
];
const CONNECTORS: [&str; 7] = [" at", " on", " in", " after", " for", " around", ":"];

/// Keys of JSON bodies and headers, with what their numbers count.
const KEYS: [(&str, TimeKey); 13] = [
    ("resets_at", TimeKey::Instant),
    ("resetsat", TimeKey::Instant),
    ("reset_at", TimeKey::Instant),
    ("reset-at", TimeKey::Instant),
    ("resets_in_seconds", TimeKey::Seconds),
    ("reset-after-seconds", TimeKey::Seconds),
    ("reset_after_seconds", TimeKey::Seconds),
    ("retry-after-ms", TimeKey::Millis),
    ("retry-after", TimeKey::Seconds),
    ("retry_after", TimeKey::Seconds),
    ("retryafter", TimeKey::Seconds),
    ("retrydelayms", TimeKey::Millis),
    ("retrydelay", TimeKey::Seconds),
];

#[derive(Clone, Copy)]
enum TimeKey {
    Instant,
    Seconds,
    Millis,
}

/// The instant at which a message says that one may go on, or `None` where it says none.
///
/// A clock time without a zone is taken in `local`. One that has passed means tomorrow,
/// but one that has just passed (two minutes) means now: the message was read late.
pub fn reset_in(text: &str, now: Timestamp, local: &TimeZone) -> Option<Timestamp> {
    let norm = normalize(text);
    let mut found: Vec<(usize, Timestamp)> = Vec::new();
    found.extend(after_bar(&norm));
    found.extend(by_key(&norm, now));
    found.extend(by_marker(&norm, now, local));
    found.retain(|(_, at)| at.duration_since(now) <= FARTHEST);
    found
        .into_iter()
        .min_by_key(|(place, _)| *place)
        .map(|(_, at)| at)
}

/// Whether the text has words by which a reset is announced.
pub(super) fn has_marker(norm: &str) -> bool {
    MARKERS[..4]
        .iter()
        .any(|marker| places(norm, marker).next().is_some())
}

/// `…limit reached|1794706358`
fn after_bar(norm: &str) -> Option<(usize, Timestamp)> {
    norm.match_indices('|')
        .find_map(|(at, _)| Some((at, epoch(&norm[at + 1..])?)))
}

/// Seconds or milliseconds since 1970 at the text's beginning.
pub(super) fn epoch(text: &str) -> Option<Timestamp> {
    let text = text.trim_start();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: i64 = text[..digits].parse().ok()?;
    match digits {
        10 => Timestamp::from_second(number).ok(),
        13 => Timestamp::from_millisecond(number).ok(),
        _ => None,
    }
}

fn by_key(norm: &str, now: Timestamp) -> impl Iterator<Item = (usize, Timestamp)> {
    KEYS.iter().filter_map(move |(key, kind)| {
        places(norm, key).find_map(|at| {
            let rest = norm[at + key.len()..].trim_start_matches(['"', '\'', ':', '=', ' ', '\\']);
            Some((at, keyed(rest, *kind, now)?))
        })
    })
}

fn keyed(rest: &str, kind: TimeKey, now: Timestamp) -> Option<Timestamp> {
    let dated = || {
        let value = rest
            .split(['"', '\'', '\n', '}', ']'])
            .next()
            .unwrap_or(rest)
            .trim();
        let iso = value.to_ascii_uppercase().parse::<Timestamp>().ok();
        iso.or_else(|| Some(jiff::fmt::rfc2822::parse(value).ok()?.timestamp()))
    };
    let number = || {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        rest[..end].trim_end_matches('.').parse::<f64>().ok()
    };
    let later = |millis: f64| {
        now.checked_add(SignedDuration::from_millis(millis as i64))
            .ok()
    };
    match kind {
        TimeKey::Instant => epoch(rest).or_else(dated),
        TimeKey::Seconds => duration(rest)
            .and_then(|after| now.checked_add(after).ok())
            .or_else(|| later(number()? * 1e3))
            .or_else(dated),
        TimeKey::Millis => later(number()?),
    }
}

fn by_marker(
    norm: &str,
    now: Timestamp,
    local: &TimeZone,
) -> impl Iterator<Item = (usize, Timestamp)> {
    MARKERS.iter().flat_map(move |marker| {
        places(norm, marker).filter_map(move |at| {
            let rest = connected(&norm[at + marker.len()..])?;
            let after = || now.checked_add(duration(rest)?).ok();
            Some((at, after().or_else(|| clock::instant(rest, now, local))?))
        })
    })
}

fn connected(rest: &str) -> Option<&str> {
    let rest = CONNECTORS
        .iter()
        .find_map(|word| rest.strip_prefix(word))
        .unwrap_or(rest);
    rest.starts_with(' ').then(|| rest.trim_start())
}

fn places<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(|at| !text[..*at].ends_with(|c: char| c.is_ascii_alphanumeric()))
}

/// A duration at the text's beginning: `3 hours 20 minutes`, `1h0m0s`, `1.5s`, `an hour`.
pub(super) fn duration(text: &str) -> Option<SignedDuration> {
    let mut rest = text;
    let mut millis: Option<f64> = None;
    while let Some((part, after)) = duration_part(rest) {
        millis = Some(millis.unwrap_or(0.0) + part);
        let after = after.trim_start_matches([' ', ',']);
        rest = after.strip_prefix("and ").unwrap_or(after);
    }
    let millis = millis.filter(|millis| (0.0..=1e11).contains(millis))?;
    Some(SignedDuration::from_millis(millis as i64))
}

fn duration_part(text: &str) -> Option<(f64, &str)> {
    let (amount, rest) = amount(text)?;
    let end = rest
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(rest.len());
    let millis = unit_secs(&rest[..end])? * 1e3;
    Some((amount * millis, &rest[end..]))
}

fn amount(text: &str) -> Option<(f64, &str)> {
    if let Some(rest) = text.strip_prefix("an ").or_else(|| text.strip_prefix("a ")) {
        return Some((1.0, rest));
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let number = text[..end].parse().ok()?;
    Some((number, text[end..].trim_start_matches(' ')))
}

#[cfg(test)]
mod tests;
