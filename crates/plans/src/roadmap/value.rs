//! Values of properties, as people write them.

use std::time::Duration;

use descartes_text::units::parse_duration;

/// A value, and what stood behind it that means nothing.
pub(super) type Read<'a, T> = Option<(T, &'a str)>;

/// A time: `30` (minutes), `45min`, `1h30m`, `90s`, `30 minutes`.
pub(super) fn duration(text: &str) -> Read<'_, Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text.trim();
    while let Some((number, after)) = number(rest) {
        let unit_end = after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let unit = &after[..unit_end];
        match parse_duration(&format!("{number}{unit}")) {
            Ok(part) if !unit.is_empty() => {
                total += part;
                rest = after[unit_end..].trim_start();
            }
            // A bare number means minutes, when it is the first.
            _ if total.is_zero() => {
                total = parse_duration(&format!("{number}m")).ok()?;
                rest = after;
                break;
            }
            _ => break,
        }
    }
    (!total.is_zero()).then_some((total, rest))
}

/// The number at the begin of a text, and what follows it.
fn number(text: &str) -> Option<(&str, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let number = text[..end].trim_end_matches('.');
    (!number.is_empty()).then(|| (number, text[number.len()..].trim_start()))
}

/// A whole number, from 0.
pub(super) fn count(text: &str) -> Read<'_, u32> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim_start()))
}

pub(super) fn real(text: &str) -> Read<'_, f64> {
    let (number, rest) = number(text.trim())?;
    Some((number.parse().ok()?, rest))
}

/// Yes or no.
pub(super) fn flag(text: &str) -> Read<'_, bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" | "on" | "y" => Some((true, "")),
        "false" | "no" | "0" | "off" | "n" => Some((false, "")),
        _ => None,
    }
}

/// A text without the quotes around it.
pub(super) fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let pairs = [('"', '"'), ('\'', '\''), ('`', '`'), ('“', '”')];
    let inner = pairs.iter().find_map(|(open, close)| {
        let inner = text.strip_prefix(*open)?.strip_suffix(*close)?;
        (!inner.contains([*open, *close])).then_some(inner)
    });
    inner.unwrap_or(text)
}

/// Items of `a, b`, `[a, b]`, `none`, each with the byte at which it begins.
pub(super) fn list(text: &str) -> Vec<(usize, &str)> {
    let inner = text.trim();
    let inner = inner
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
        .unwrap_or(inner);
    let base = offset_in(text, inner);
    let mut items = Vec::new();
    let mut at = 0;
    for piece in inner.split([',', ';']) {
        let item = unquoted(unwrapped(piece.trim()));
        if !item.is_empty() && !is_none(item) {
            items.push((base + at + offset_in(piece, item), item));
        }
        at += piece.len() + 1;
    }
    items
}

/// A text without the asterisks of bold letters around it.
fn unwrapped(text: &str) -> &str {
    text.strip_prefix("**")
        .and_then(|inner| inner.strip_suffix("**"))
        .unwrap_or(text)
        .trim()
}

fn is_none(item: &str) -> bool {
    ["none", "-", "–", "—", "n/a", "nothing"]
        .iter()
        .any(|none| item.eq_ignore_ascii_case(none))
}

/// Where a part of a text begins in it.
pub(super) fn offset_in(whole: &str, part: &str) -> usize {
    (part.as_ptr() as usize)
        .saturating_sub(whole.as_ptr() as usize)
        .min(whole.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_minutes_unless_they_say_otherwise() {
        let minutes =
            |text: &'static str| duration(text).map(|(time, rest)| (time.as_secs(), rest));
        assert_eq!(minutes("30"), Some((1800, "")));
        assert_eq!(minutes("45min"), Some((2700, "")));
        assert_eq!(minutes("1h"), Some((3600, "")), "upstream reads one minute");
        assert_eq!(
            minutes("90s"),
            Some((90, "")),
            "upstream reads ninety minutes"
        );
        assert_eq!(minutes("1h30m"), Some((5400, "")));
        assert_eq!(minutes(" 1 hour 30 minutes "), Some((5400, "")));
        assert_eq!(minutes("1.5h"), Some((5400, "")));
        assert_eq!(minutes("20 min (hard)"), Some((1200, "(hard)")));
        assert_eq!(minutes("20 per task"), Some((1200, "per task")));
        for text in ["", "soon", "h", "0", "-5min", "."] {
            assert_eq!(minutes(text), None, "{text}");
        }
    }

    #[test]
    fn lists_know_where_their_items_stand() {
        let read = |text: &'static str| list(text);
        assert_eq!(read("a, b"), [(0, "a"), (3, "b")]);
        assert_eq!(
            read("[a, b]"),
            [(1, "a"), (4, "b")],
            "upstream reads `[a` and `b]`"
        );
        assert_eq!(read("`a`, **b**"), [(1, "a"), (7, "b")]);
        assert_eq!(read(" none"), []);
        assert_eq!(read(""), []);
    }

    #[test]
    fn quotes_are_no_part_of_a_value() {
        assert_eq!(unquoted("\"DONE\""), "DONE");
        assert_eq!(unquoted(" `DONE` "), "DONE");
        assert_eq!(unquoted("it's"), "it's");
        assert_eq!(unquoted("\"a\" and \"b\""), "\"a\" and \"b\"");
        assert_eq!(flag("Yes").map(|(yes, _)| yes), Some(true));
        assert_eq!(flag("maybe"), None);
    }
}
