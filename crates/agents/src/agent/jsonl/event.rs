//! One value of a stream, with the rules that apply to it.

use std::borrow::Cow;

use jiff::Timestamp;

use super::map::{Condition, JsonlMap, ResultRule, Rule, Rules};
use super::path;
use crate::agent::json::JsonValue;

const WORDS_FOR_SUCCESS: [&str; 7] = [
    "success",
    "ok",
    "completed",
    "complete",
    "done",
    "0",
    "true",
];

pub(super) struct JsonlEvent<'v> {
    value: &'v JsonValue<'v>,
    pub kind: Option<Cow<'v, str>>,
}

impl<'v> JsonlEvent<'v> {
    pub fn new(map: &JsonlMap, value: &'v JsonValue<'v>) -> Self {
        let kind = match map.kind.0.as_slice() {
            [] => value["type"].text().map(Cow::Borrowed),
            paths => {
                let parts = paths
                    .iter()
                    .filter_map(|path| match path::plain(value, path) {
                        JsonValue::Text(part) => Some(part),
                        _ => None,
                    });
                parts.reduce(|kind, part| Cow::Owned(format!("{kind}/{part}")))
            }
        };
        Self { value, kind }
    }

    /// The rules that apply.
    pub fn matching<'r, R: Rule>(&self, rules: &'r Rules<R>) -> impl Iterator<Item = &'r R> {
        rules.0.iter().filter(|rule| self.is_meant(*rule))
    }

    /// The rules of results that apply. One that names an event by its kind says something by being
    /// there; one that is known by its fields alone must have one of them.
    pub fn results<'r>(&self, map: &'r JsonlMap) -> impl Iterator<Item = &'r ResultRule> {
        self.matching(&map.result)
            .filter(|rule| rule.kind.is_some() || self.has_any(&rule.paths()))
    }

    /// A rule that names neither a kind nor values must find one of its fields.
    fn is_meant(&self, rule: &impl Rule) -> bool {
        let Condition { kind, when, unless } = rule.condition();
        let stands = |(path, want): (&String, &String)| {
            text(path::plain(self.value, path)).is_some_and(|value| match want.strip_suffix('*') {
                Some(start) => value.starts_with(start),
                None => value == *want,
            })
        };
        (kind.is_none() || kind == self.kind.as_deref())
            && when.iter().all(stands)
            && !unless.iter().any(stands)
            && (kind.is_some() || !when.is_empty() || self.has_any(&rule.paths()))
    }

    fn has_any(&self, paths: &[&str]) -> bool {
        let mut values = paths.iter().map(|path| path::plain(self.value, path));
        values.any(|value| value != JsonValue::Null)
    }

    /// Whether the kind is one that a rule names or that is known to say nothing.
    pub fn is_known(&self, map: &JsonlMap) -> bool {
        let kind = self.kind.as_deref().unwrap_or_default();
        let is_ignored = |known: &String| match known.strip_suffix('*') {
            Some(start) => kind.starts_with(start),
            None => kind == known,
        };
        map.ignore.iter().any(is_ignored)
            || map.rules().any(|rule| rule.condition().kind == Some(kind))
    }

    /// The plain value at a path.
    pub fn plain(&self, path: &Option<String>) -> JsonValue<'v> {
        path.as_ref()
            .map_or(JsonValue::Null, |path| path::plain(self.value, path))
    }

    /// The first object at a path.
    pub fn object(&self, path: &Option<String>) -> &'v JsonValue<'v> {
        let found = path.iter().flat_map(|path| path::all(self.value, path));
        let mut objects = found.filter(|value| value.is_object());
        objects.next().unwrap_or(&JsonValue::Null)
    }

    /// The beginning of what stands at a path, where that is no plain value.
    pub fn preview(&self, path: &Option<String>) -> String {
        let mut found = path.iter().flat_map(|path| path::all(self.value, path));
        found.next().map(JsonValue::preview).unwrap_or_default()
    }

    pub fn text(&self, path: &Option<String>) -> Option<String> {
        text(self.plain(path)).map(Cow::into_owned)
    }

    pub fn number(&self, path: &Option<String>) -> Option<f64> {
        match self.plain(path) {
            JsonValue::Text(text) => text.trim().parse().ok(),
            value => value.number(),
        }
    }

    pub fn count(&self, path: &Option<String>) -> Option<u64> {
        JsonValue::Number(self.number(path)?).count()
    }
}

/// A value as text that is not empty.
pub(super) fn text(value: JsonValue<'_>) -> Option<Cow<'_, str>> {
    match value {
        JsonValue::Text(text) => Some(text).filter(|text| !text.is_empty()),
        JsonValue::Number(number) => Some(Cow::Owned(number.to_string())),
        JsonValue::Flag(flag) => Some(Cow::Owned(flag.to_string())),
        _ => None,
    }
}

/// True, 0 as an exit code has it, or a word for success.
pub(super) fn is_good(value: &JsonValue<'_>) -> Option<bool> {
    match value {
        JsonValue::Flag(flag) => Some(*flag),
        JsonValue::Number(number) => Some(*number == 0.0),
        JsonValue::Text(text) => Some(WORDS_FOR_SUCCESS.contains(&&**text)),
        _ => None,
    }
}

/// Seconds or milliseconds since 1970, or a date.
pub(super) fn instant(value: &JsonValue<'_>) -> Option<Timestamp> {
    match value {
        JsonValue::Number(n) if *n > 1e12 => Timestamp::from_millisecond(*n as i64).ok(),
        JsonValue::Number(n) if *n > 1e9 => Timestamp::from_second(*n as i64).ok(),
        JsonValue::Text(text) => text.parse().ok(),
        _ => None,
    }
}
