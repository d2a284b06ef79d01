//! Limits told by HTTP: status codes and response headers.

use jiff::{SignedDuration, Timestamp};

use super::{LimitKind, when};

/// What an HTTP status means for an agent.
pub fn kind_of_status(status: u16) -> Option<LimitKind> {
    match status {
        401 | 403 => Some(LimitKind::Login),
        402 => Some(LimitKind::Usage),
        429 => Some(LimitKind::Rate),
        408 => Some(LimitKind::Network),
        500 | 502..=504 | 520..=529 => Some(LimitKind::Overload),
        _ => None,
    }
}

/// When the headers of a refusal, answered `at` that time, say that it may be tried again.
///
/// `retry-after` comes first (seconds or a date), then the resets of the windows that are
/// used up, then any reset.
pub fn reset_in_headers<'a>(
    headers: impl Iterator<Item = (&'a str, &'a str)> + Clone,
    at: Timestamp,
) -> Option<Timestamp> {
    let get = |name: &str| {
        headers
            .clone()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    };
    let millis = || get("retry-after-ms").and_then(|ms| after(at, ms.trim().parse().ok()?, 1e3));
    let retry = || get("retry-after").and_then(|value| retry_after(value, at));
    millis()
        .or_else(retry)
        .or_else(|| codex_windows(&get, at))
        .or_else(|| {
            let unified = get("anthropic-ratelimit-unified-reset").and_then(|v| instant(v, at));
            unified.or_else(|| used_up(&get, at))
        })
}

fn retry_after(value: &str, at: Timestamp) -> Option<Timestamp> {
    let value = value.trim();
    match value.parse::<f64>() {
        Ok(seconds) => after(at, seconds, 1.0),
        Err(_) => instant(value, at),
    }
}

/// A date, an epoch or a duration such as `6m0s`.
fn instant(value: &str, at: Timestamp) -> Option<Timestamp> {
    let value = value.trim();
    jiff::fmt::rfc2822::parse(value)
        .map(|zoned| zoned.timestamp())
        .or_else(|_| value.parse::<Timestamp>())
        .ok()
        .or_else(|| when::epoch(value))
        .or_else(|| {
            when::duration(&value.to_ascii_lowercase()).and_then(|d| at.checked_add(d).ok())
        })
}

fn after(at: Timestamp, amount: f64, per_second: f64) -> Option<Timestamp> {
    let seconds = amount / per_second;
    (0.0..3e6)
        .contains(&seconds)
        .then(|| {
            at.checked_add(SignedDuration::from_millis((seconds * 1e3) as i64))
                .ok()
        })
        .flatten()
}

/// The later reset of the windows that are full; of the first one where none says so.
fn codex_windows<'a>(get: &impl Fn(&str) -> Option<&'a str>, at: Timestamp) -> Option<Timestamp> {
    let window = |name: &str| {
        let full = get(&format!("x-codex-{name}-used-percent"))
            .and_then(|used| used.trim().parse::<f64>().ok())
            .is_some_and(|used| used >= 100.0);
        let reset = get(&format!("x-codex-{name}-reset-at"))
            .and_then(when::epoch)
            .or_else(|| {
                let seconds = get(&format!("x-codex-{name}-reset-after-seconds"))?;
                after(at, seconds.trim().parse().ok()?, 1.0)
            })?;
        Some((full, reset))
    };
    let windows = [window("primary"), window("secondary")];
    let full = windows
        .iter()
        .flatten()
        .filter(|(full, _)| *full)
        .map(|(_, reset)| *reset);
    full.max()
        .or_else(|| windows.iter().flatten().map(|(_, reset)| *reset).next())
}

const WINDOWS: [(&str, &str); 5] = [
    (
        "x-ratelimit-remaining-requests",
        "x-ratelimit-reset-requests",
    ),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    (
        "anthropic-ratelimit-requests-remaining",
        "anthropic-ratelimit-requests-reset",
    ),
    (
        "anthropic-ratelimit-tokens-remaining",
        "anthropic-ratelimit-tokens-reset",
    ),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
];

fn used_up<'a>(get: &impl Fn(&str) -> Option<&'a str>, at: Timestamp) -> Option<Timestamp> {
    WINDOWS
        .iter()
        .filter(|(remaining, _)| get(remaining).is_some_and(|left| left.trim() == "0"))
        .filter_map(|(_, reset)| instant(get(reset)?, at))
        .max()
}
