//! Lists in JSON: stories with `passes`, and Task Master's tasks. Values are changed where they stand.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::scud::json_span::{Members, span, string};

/// One object of a list, with the places of its values.
pub(super) struct JsonEntry<'a> {
    text: &'a str,
    members: Members<'a>,
    pub(super) start: usize,
}

impl<'a> JsonEntry<'a> {
    fn of(text: &'a str, value: &'a RawValue) -> Option<Self> {
        Some(Self {
            members: Members::of(value)?,
            start: span(text, value).start,
            text,
        })
    }

    /// The whole text as an object.
    pub(super) fn whole(text: &'a str) -> Option<Self> {
        Some(Self {
            members: serde_json::from_str(without_mark(text)).ok()?,
            start: text.find('{')?,
            text,
        })
    }

    pub(super) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.members.get(name)
    }

    pub(super) fn value(&self, name: &str) -> Option<Value> {
        serde_json::from_str(self.raw(name)?.get()).ok()
    }

    /// Where a value stands.
    pub(super) fn place(&self, name: &str) -> Option<Range<usize>> {
        self.raw(name).map(|value| span(self.text, value))
    }

    /// A value that is a string.
    fn as_string(&self, name: &str) -> Option<Cow<'a, str>> {
        let raw = self.raw(name)?;
        raw.get().starts_with('"').then(|| string(raw))
    }

    /// A text; lists as lines.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let text = match self.as_string(name) {
            Some(text) => text,
            None => match self.value(name)? {
                Value::Array(list) => {
                    let lines = list.iter().filter_map(plain);
                    let lines: Vec<String> = lines.map(|line| format!("- {line}")).collect();
                    Cow::Owned(lines.join("\n"))
                }
                _ => return None,
            },
        };
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// A string that is not empty.
    pub(super) fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        self.as_string(name).filter(|text| !text.trim().is_empty())
    }

    /// An id or a word: a string or a number.
    pub(super) fn word(&self, name: &str) -> Option<String> {
        match self.as_string(name) {
            Some(text) => Some(text.trim())
                .filter(|text| !text.is_empty())
                .map(str::to_owned),
            None => self.value(name).as_ref().and_then(plain),
        }
    }

    /// Strings and numbers of all of these lists, each once.
    pub(super) fn words(&self, names: &[&str]) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        for value in names.iter().filter_map(|name| self.value(name)) {
            let list = match &value {
                Value::Array(list) => list.as_slice(),
                one => std::slice::from_ref(one),
            };
            for word in list.iter().filter_map(plain) {
                if !words.contains(&word) {
                    words.push(word);
                }
            }
        }
        words
    }

    /// The objects of a list.
    pub(super) fn entries(&self, name: &str) -> Option<Vec<JsonEntry<'a>>> {
        entries(self.text, self.raw(name)?.get())
    }

    /// The object that a value of it is.
    pub(super) fn entry(&self, name: &str) -> Option<JsonEntry<'a>> {
        Self::of(self.text, self.raw(name)?)
    }

    /// All names of its values.
    pub(super) fn names(&self) -> Vec<Cow<'a, str>> {
        let all = self.members.0.iter();
        all.map(|(key, _)| string(key)).collect()
    }
}

/// A text as one value.
pub(super) fn whole_value(text: &str) -> serde_json::Result<&RawValue> {
    serde_json::from_str(without_mark(text))
}

/// The objects of a text that is a list.
pub(super) fn whole_list(text: &str) -> Option<Vec<JsonEntry<'_>>> {
    entries(text, without_mark(text))
}

/// The mark that some editors begin a file with is no part of it.
fn without_mark(text: &str) -> &str {
    text.trim_start_matches('\u{feff}')
}

/// The objects of a value that is a list; other things in it are passed over.
fn entries<'a>(text: &'a str, list: &'a str) -> Option<Vec<JsonEntry<'a>>> {
    let list: Vec<&RawValue> = serde_json::from_str(list).ok()?;
    let all = list.into_iter();
    Some(all.filter_map(|value| JsonEntry::of(text, value)).collect())
}

fn plain(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}
