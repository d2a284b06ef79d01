//! Where the values of a JSON text stand, so that one can be changed and the rest kept.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Keys and values of an object in their order, also those of a name that was there before.
#[derive(Default)]
pub(crate) struct Members<'a>(pub(crate) Vec<(&'a RawValue, &'a RawValue)>);

impl<'a> Members<'a> {
    /// The members of a value that is an object.
    pub(crate) fn of(value: &'a RawValue) -> Option<Self> {
        serde_json::from_str(value.get()).ok()
    }

    /// The value of that name; of two the last, as for other readers.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let mut members = self.0.iter().rev();
        let found = members.find(|(key, _)| is_string(key, name));
        found.map(|(_, value)| *value)
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Members::default())
    }
}

impl<'de> Visitor<'de> for Members<'de> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some(member) = map.next_entry()? {
            self.0.push(member);
        }
        Ok(self)
    }
}

/// The text of a string; few are written with escapes.
pub(crate) fn string(value: &RawValue) -> Cow<'_, str> {
    let raw = value.get();
    let inside = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"'));
    let raw = inside.unwrap_or(raw);
    match raw.contains('\\') {
        true => Cow::Owned(serde_json::from_str(value.get()).unwrap_or_default()),
        false => Cow::Borrowed(raw),
    }
}

/// Whether a value is that string. Escapes are longer than what they stand for.
fn is_string(value: &RawValue, wanted: &str) -> bool {
    let raw = value.get();
    match raw.len().cmp(&(wanted.len() + 2)) {
        Ordering::Less => false,
        Ordering::Equal => raw[1..].starts_with(wanted) && !wanted.contains('\\'),
        Ordering::Greater => raw.contains('\\') && string(value) == wanted,
    }
}

/// Where a value stands in its text.
pub(crate) fn span(text: &str, value: &RawValue) -> Range<usize> {
    let start = (value.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    start..start + value.get().len()
}

/// Counts lines while moving forward, so that a long file is read once.
pub(crate) struct LineCounter<'a> {
    text: &'a str,
    at: usize,
    line: u32,
}

impl<'a> LineCounter<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            line: 1,
        }
    }

    pub(crate) fn line_at(&mut self, at: usize) -> u32 {
        let between = self.text.as_bytes().get(self.at..at).unwrap_or_default();
        self.line += memchr::memchr_iter(b'\n', between).count() as u32;
        self.at = self.at.max(at);
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_where_they_stand() {
        let text = r#" { "a" : [1, {"x":"]\"}"}, []] , "b":{}, "\u0061":-1.5e3 } "#;
        let Members(all) = serde_json::from_str(text).unwrap();
        let values: Vec<&str> = all
            .iter()
            .map(|(_, value)| &text[span(text, value)])
            .collect();
        assert_eq!(values, [r#"[1, {"x":"]\"}"}, []]"#, "{}", "-1.5e3"]);
        let names: Vec<_> = all.iter().map(|(key, _)| string(key)).collect();
        assert_eq!(names, ["a", "b", "a"]);
        assert_eq!(Members(all).get("a").unwrap().get(), "-1.5e3");
    }

    #[test]
    fn names_are_found_in_every_spelling() {
        let text = r#"{"a":1,"\u0062":2,"\\n":3,"\n":4,"é\t":5,"":6,"c\"":7,"ab":8}"#;
        let members: Members<'_> = serde_json::from_str(text).unwrap();
        for name in [
            "a", "b", "\\n", "\n", "é\t", "", "c\"", "ab", "u", "\\u0062", "c", "c\\",
        ] {
            let slow = members.0.iter().rev().find(|(key, _)| {
                let key: String = serde_json::from_str(key.get()).unwrap();
                key == name
            });
            let expected = slow.map(|(_, value)| value.get());
            assert_eq!(members.get(name).map(RawValue::get), expected, "{name}");
        }
    }

    #[test]
    fn a_text_cut_anywhere_is_refused() {
        let text = r#"{"a":[1,{"x":"y"}],"b":{"c":null}}"#;
        for end in 0..text.len() {
            assert!(serde_json::from_str::<Members<'_>>(&text[..end]).is_err());
        }
    }
}
