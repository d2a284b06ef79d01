//! JSON of any shape as a tree that borrows from its line.
//!
//! A stream of a newer agent may put an object where a string stood. Such a field reads as absent,
//! and the line around it is still understood.

use std::borrow::Cow;
use std::fmt;
use std::ops::Index;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

/// So many values of a line are kept: a line of nothing but small values takes no more memory than
/// one long text.
const MOST_VALUES: usize = 250_000;
/// What is nested deeper is passed over; serde_json gives up at 128.
const DEEPEST: usize = 100;
const PREVIEW_BYTES: usize = 400;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum JsonValue<'a> {
    #[default]
    Null,
    Flag(bool),
    Number(f64),
    Text(Cow<'a, str>),
    List(Vec<JsonValue<'a>>),
    Object(Vec<(Cow<'a, str>, JsonValue<'a>)>),
}

/// A field of an object; `Null` where there is none.
impl<'a> Index<&str> for JsonValue<'a> {
    type Output = JsonValue<'a>;

    fn index(&self, key: &str) -> &JsonValue<'a> {
        let mut entries = self.entries().iter();
        entries
            .find(|(name, _)| name == key)
            .map_or(&JsonValue::Null, |(_, value)| value)
    }
}

impl<'a> JsonValue<'a> {
    /// The values on a line, of which there should be one: all must be well formed before any is
    /// taken.
    pub fn read(line: &'a [u8]) -> Result<Vec<Self>, serde_json::Error> {
        let mut from = serde_json::Deserializer::from_slice(line);
        let mut left = MOST_VALUES;
        let mut values = Vec::new();
        while values.is_empty() || from.end().is_err() {
            let tree = ValueReader {
                left: &mut left,
                depth: 0,
            };
            values.push(tree.deserialize(&mut from)?);
        }
        Ok(values)
    }

    /// Objects as they are, and those in lists.
    pub fn objects(values: Vec<Self>) -> Result<Vec<Self>, serde_json::Error> {
        let mut objects = Vec::with_capacity(values.len());
        for value in values {
            match value {
                Self::Object(_) => objects.push(value),
                Self::List(list) if list.iter().all(Self::is_object) => objects.extend(list),
                _ => return Err(serde_json::Error::custom("not an object")),
            }
        }
        Ok(objects)
    }

    pub fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    pub fn entries(&self) -> &[(Cow<'a, str>, Self)] {
        match self {
            Self::Object(entries) => entries,
            _ => &[],
        }
    }

    pub fn list(&self) -> &[Self] {
        match self {
            Self::List(list) => list,
            _ => &[],
        }
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The text, or the empty one.
    pub fn or_empty(&self) -> &str {
        self.text().unwrap_or_default()
    }

    pub fn is(&self, text: &str) -> bool {
        self.text() == Some(text)
    }

    /// An own copy of a text that is not empty.
    pub fn owned(&self) -> Option<String> {
        self.text()
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    }

    pub fn flag(&self) -> Option<bool> {
        match self {
            Self::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// A count: not negative, within what a float counts exactly.
    pub fn count(&self) -> Option<u64> {
        let number = self.number().filter(|n| (0.0..9e15).contains(n));
        number.map(|n| n as u64)
    }

    pub fn int(&self) -> Option<i64> {
        let number = self.number().filter(|n| n.abs() < 9e15);
        number.map(|n| n as i64)
    }

    /// A count that fits a smaller type.
    pub fn small<T: TryFrom<u64>>(&self) -> Option<T> {
        self.count().and_then(|count| count.try_into().ok())
    }

    /// A text, or a list of texts as one command line.
    pub fn describe(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Text(text) => Some(Cow::Borrowed(text)),
            Self::List(list) => {
                let words: Vec<String> = list.iter().filter_map(Self::owned).collect();
                (!words.is_empty()).then(|| Cow::Owned(shell_words::join(words)))
            }
            _ => None,
        }
    }

    /// The beginning of a text that may be long: a string, or blocks with a `text`.
    pub fn preview(&self) -> String {
        match self {
            Self::Text(text) => head(text, PREVIEW_BYTES).to_owned(),
            Self::Object(_) => self["text"].preview(),
            Self::List(list) => {
                let mut text = String::new();
                for part in list.iter().map(Self::preview) {
                    if text.len() < PREVIEW_BYTES && !part.is_empty() {
                        let gap = if text.is_empty() { "" } else { "\n" };
                        text.push_str(gap);
                        text.push_str(head(&part, PREVIEW_BYTES - text.len()));
                    }
                }
                text
            }
            _ => String::new(),
        }
    }
}

/// A text's beginning, cut between characters.
pub(super) fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Half a character of UTF-16, which agents leave where they cut a text, is no JSON: each is
/// replaced. So are bytes that are no UTF-8.
pub(super) fn mended(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    let mut mended = String::with_capacity(line.len());
    let mut rest = &*line;
    while let Some(at) = rest.find('\\') {
        mended.push_str(&rest[..at]);
        rest = &rest[at..];
        let unit = |from: usize| {
            let digits = rest.get(from..from + 6)?.strip_prefix("\\u")?;
            u16::from_str_radix(digits, 16).ok()
        };
        let (escape, bytes) = match (unit(0), unit(6)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => (&rest[..12], 12),
            (Some(0xd800..0xe000), _) => ("\u{fffd}", 6),
            (Some(_), _) => (&rest[..6], 6),
            (None, _) => {
                let bytes = rest.chars().take(2).map(char::len_utf8).sum();
                (&rest[..bytes], bytes)
            }
        };
        mended.push_str(escape);
        rest = &rest[bytes..];
    }
    mended + rest
}

/// Reads a value as far as there is room for it.
struct ValueReader<'l> {
    left: &'l mut usize,
    depth: usize,
}

impl ValueReader<'_> {
    fn child(&mut self) -> ValueReader<'_> {
        ValueReader {
            left: self.left,
            depth: self.depth + 1,
        }
    }
}

impl<'de> DeserializeSeed<'de> for ValueReader<'_> {
    type Value = JsonValue<'de>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<JsonValue<'de>, D::Error> {
        if *self.left == 0 || self.depth > DEEPEST {
            return from
                .deserialize_ignored_any(IgnoredAny)
                .map(|_| JsonValue::Null);
        }
        *self.left -= 1;
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueReader<'_> {
    type Value = JsonValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }
    fn visit_bool<E>(self, value: bool) -> Result<JsonValue<'de>, E> {
        Ok(JsonValue::Flag(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<JsonValue<'de>, E> {
        Ok(JsonValue::Number(value as f64))
    }
    fn visit_u64<E>(self, value: u64) -> Result<JsonValue<'de>, E> {
        Ok(JsonValue::Number(value as f64))
    }
    fn visit_f64<E>(self, value: f64) -> Result<JsonValue<'de>, E> {
        Ok(JsonValue::Number(value))
    }
    fn visit_str<E>(self, value: &str) -> Result<JsonValue<'de>, E> {
        Ok(JsonValue::Text(Cow::Owned(value.to_owned())))
    }
    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<JsonValue<'de>, E> {
        Ok(JsonValue::Text(Cow::Borrowed(value)))
    }
    fn visit_unit<E>(self) -> Result<JsonValue<'de>, E> {
        Ok(JsonValue::Null)
    }
    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<JsonValue<'de>, A::Error> {
        let mut entries = Vec::new();
        while let Some(Key(key)) = map.next_key()? {
            let value = map.next_value_seed(self.child())?;
            if value != JsonValue::Null {
                entries.push((key, value));
            }
        }
        Ok(JsonValue::Object(entries))
    }
    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<JsonValue<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element_seed(self.child())? {
            if *self.left > 0 {
                list.push(value);
            }
        }
        Ok(JsonValue::List(list))
    }
}

#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> JsonValue<'_> {
        JsonValue::read(json.as_bytes()).unwrap().remove(0)
    }

    #[test]
    fn each_kind_is_read_as_itself_and_as_nothing_else() {
        let values = [
            "1",
            "-2.5",
            "true",
            "null",
            "\"x\"",
            "[1,[2]]",
            "{\"a\":{\"b\":[]}}",
        ];
        for value in values {
            let json = format!(r#"{{"v":{value}}}"#);
            let got = &read(&json)["v"];
            assert_eq!(got.text().is_some(), value == "\"x\"");
            assert_eq!(got.number().is_some(), value == "1" || value == "-2.5");
            assert_eq!(got.flag().is_some(), value == "true");
            assert_eq!(got.is_object(), value.starts_with('{'));
            assert_eq!(got.list().len(), if value.starts_with('[') { 2 } else { 0 });
            assert_eq!(got["none"]["at all"], JsonValue::Null);
        }
    }

    #[test]
    fn previews_are_short_and_join_blocks() {
        let long = "ä".repeat(1000);
        let json = format!(r#"[{{"type":"text","text":"one"}},"two",{{"image":1}},"{long}"]"#);
        let preview = read(&json).preview();
        assert!(preview.starts_with("one\ntwo\nä"));
        assert!(preview.len() <= PREVIEW_BYTES);
        assert_eq!(
            read(r#"["sh","-c","a b"]"#).describe().as_deref(),
            Some("sh -c 'a b'")
        );
    }

    #[test]
    fn what_is_too_deep_or_too_much_is_passed_over() {
        let deep = format!(r#"{{"a":{}1{},"b":2}}"#, "[".repeat(1000), "]".repeat(1000));
        assert_eq!(read(&deep)["b"].count(), Some(2));
        let many = format!(r#"{{"a":[{}1],"b":2}}"#, "0,".repeat(MOST_VALUES));
        assert!(read(&many)["a"].list().len() < MOST_VALUES);
    }

    #[test]
    fn halves_of_characters_are_replaced() {
        let table = [
            (r"a\ud83d b", "a\u{fffd} b"),
            (r"a\udc00", "a\u{fffd}"),
            (r"\ud83d\ude00\u00e4", r"\ud83d\ude00\u00e4"),
            (r"\\ud83d \", r"\\ud83d \"),
            (r"\ud83d\n", "\u{fffd}\\n"),
        ];
        for (line, want) in table {
            assert_eq!(mended(line.as_bytes()), want, "{line}");
        }
    }
}
