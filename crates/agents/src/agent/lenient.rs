//! JSON values that take what they expect and pass over everything else.
//!
//! A stream of a newer agent may put an object where a string stood. Such a field reads as
//! absent; the line around it is still understood. Bodies that nobody wants are skipped
//! without being copied.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// What a lenient value makes of each kind of JSON; what it does not name reads as absent.
pub(super) trait Lenient<'de>: Sized + Default {
    fn string(_: Cow<'de, str>) -> Self {
        Self::default()
    }
    /// A string that had to be unescaped: it is not copied where only a part is wanted.
    fn unescaped(value: &str) -> Self {
        Self::string(Cow::Owned(value.to_owned()))
    }
    fn number(_: f64) -> Self {
        Self::default()
    }
    fn boolean(_: bool) -> Self {
        Self::default()
    }
    fn map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
    fn seq<A: SeqAccess<'de>>(mut seq: A) -> Result<Self, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

/// Reads a lenient value.
pub(super) fn read<'de, T: Lenient<'de>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    from.deserialize_any(Any(PhantomData))
}

struct Any<T>(PhantomData<T>);

impl<'de, T: Lenient<'de>> Visitor<'de> for Any<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }
    fn visit_bool<E>(self, value: bool) -> Result<T, E> {
        Ok(T::boolean(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<T, E> {
        Ok(T::number(value as f64))
    }
    fn visit_u64<E>(self, value: u64) -> Result<T, E> {
        Ok(T::number(value as f64))
    }
    fn visit_f64<E>(self, value: f64) -> Result<T, E> {
        Ok(T::number(value))
    }
    fn visit_str<E>(self, value: &str) -> Result<T, E> {
        Ok(T::unescaped(value))
    }
    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<T, E> {
        Ok(T::string(Cow::Borrowed(value)))
    }
    fn visit_string<E>(self, value: String) -> Result<T, E> {
        Ok(T::string(Cow::Owned(value)))
    }
    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::map(map)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<T, A::Error> {
        T::seq(seq)
    }
}

macro_rules! lenient {
    ($($kind:ident $(<$($arg:tt),*>)?),*) => {$(
        impl<'de $(, $($arg: Deserialize<'de>),*)?> Deserialize<'de> for $kind $(<$($arg),*>)? {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                read(from)
            }
        }
    )*};
}
lenient!(Num, Flag, Preview, Obj<T>, List<T>);

#[derive(Clone, Debug, Default)]
pub(super) struct Str<'a>(pub Option<Cow<'a, str>>);

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        read(from)
    }
}

impl<'de: 'a, 'a> Lenient<'de> for Str<'a> {
    fn string(value: Cow<'de, str>) -> Self {
        Self(Some(value))
    }
}

impl Str<'_> {
    pub fn as_deref(&self) -> Option<&str> {
        self.0.as_deref()
    }
    /// The string, or the empty one.
    pub fn or_empty(&self) -> &str {
        self.as_deref().unwrap_or_default()
    }
    pub fn is(&self, value: &str) -> bool {
        self.as_deref() == Some(value)
    }
    /// An own copy of a string that is not empty.
    pub fn owned(&self) -> Option<String> {
        self.as_deref()
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    }
}

/// A string, or a list of strings as one line.
#[derive(Clone, Debug, Default)]
pub(super) struct Words<'a>(pub Option<Cow<'a, str>>);

impl<'de: 'a, 'a> Deserialize<'de> for Words<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        read(from)
    }
}

impl<'de: 'a, 'a> Lenient<'de> for Words<'a> {
    fn string(value: Cow<'de, str>) -> Self {
        Self(Some(value))
    }
    fn seq<A: SeqAccess<'de>>(mut seq: A) -> Result<Self, A::Error> {
        let mut words: Vec<String> = Vec::new();
        while let Some(word) = seq.next_element::<Str<'de>>()? {
            words.extend(word.owned());
        }
        Ok(Self(
            (!words.is_empty()).then(|| Cow::Owned(shell_words::join(words))),
        ))
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Num(pub Option<f64>);

impl<'de> Lenient<'de> for Num {
    fn number(value: f64) -> Self {
        Self(Some(value))
    }
}

impl Num {
    /// A count: not negative, within what a float counts exactly.
    pub fn count(self) -> Option<u64> {
        self.0.filter(|n| (0.0..9e15).contains(n)).map(|n| n as u64)
    }
    pub fn int(self) -> Option<i64> {
        self.0.filter(|n| n.abs() < 9e15).map(|n| n as i64)
    }
}

/// A truth value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flag(pub Option<bool>);

impl<'de> Lenient<'de> for Flag {
    fn boolean(value: bool) -> Self {
        Self(Some(value))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Obj<T>(pub Option<T>);

impl<T> Default for Obj<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Lenient<'de> for Obj<T> {
    fn map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|value| Self(Some(value)))
    }
}

#[derive(Clone, Debug)]
pub(super) struct List<T>(pub Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Lenient<'de> for List<T> {
    fn seq<A: SeqAccess<'de>>(mut seq: A) -> Result<Self, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element()? {
            values.push(value);
        }
        Ok(Self(values))
    }
}

/// The beginning of a text that may be long: a string, or blocks with a `text`.
#[derive(Clone, Debug, Default)]
pub(super) struct Preview(pub String);

const PREVIEW_BYTES: usize = 400;

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Block {
    text: Preview,
}

impl<'de> Lenient<'de> for Preview {
    fn string(value: Cow<'de, str>) -> Self {
        Self::unescaped(&value)
    }
    fn unescaped(value: &str) -> Self {
        Self(head(value, PREVIEW_BYTES).to_owned())
    }
    fn map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        Ok(Block::deserialize(MapAccessDeserializer::new(map))?.text)
    }
    fn seq<A: SeqAccess<'de>>(mut seq: A) -> Result<Self, A::Error> {
        let mut text = String::new();
        while let Some(Preview(part)) = seq.next_element()? {
            if text.len() < PREVIEW_BYTES && !part.is_empty() {
                let gap = if text.is_empty() { "" } else { "\n" };
                text.push_str(gap);
                text.push_str(head(&part, PREVIEW_BYTES - text.len()));
            }
        }
        Ok(Self(text))
    }
}

/// A text's beginning, cut between characters.
pub(super) fn head(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct All<'a> {
        #[serde(borrow)]
        s: Str<'a>,
        n: Num,
        f: Flag,
        #[serde(borrow)]
        o: Obj<Box<All<'a>>>,
        #[serde(borrow)]
        l: List<Str<'a>>,
        p: Preview,
        #[serde(borrow)]
        w: Words<'a>,
    }

    #[test]
    fn each_takes_its_own_kind_and_passes_over_the_others() {
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
            let json = format!(
                r#"{{"s":{value},"n":{value},"f":{value},"o":{value},"l":{value},"p":{value},"w":{value},"z":{value}}}"#
            );
            let all: All<'_> = serde_json::from_str(&json).unwrap();
            assert_eq!(all.s.0.is_some(), value == "\"x\"");
            assert_eq!(all.n.0.is_some(), value == "1" || value == "-2.5");
            assert_eq!(all.f.0.is_some(), value == "true");
            assert_eq!(all.o.0.is_some(), value.starts_with('{'));
            assert_eq!(all.l.0.len(), if value.starts_with('[') { 2 } else { 0 });
        }
    }

    #[test]
    fn previews_are_short_and_join_blocks() {
        let long = "ä".repeat(1000);
        let json =
            format!(r#"{{"p":[{{"type":"text","text":"one"}},"two",{{"image":1}},"{long}"]}}"#);
        let all: All<'_> = serde_json::from_str(&json).unwrap();
        assert!(all.p.0.starts_with("one\ntwo\nä"));
        assert!(all.p.0.len() <= PREVIEW_BYTES);
        let words: All<'_> = serde_json::from_str(r#"{"w":["sh","-c","a b"]}"#).unwrap();
        assert_eq!(words.w.0.as_deref(), Some("sh -c 'a b'"));
    }
}
