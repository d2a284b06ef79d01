//! Where the values of a JSON text stand, so that one can be changed and the rest kept.

use std::borrow::Cow;
use std::ops::Range;

/// A JSON text that is not whole: the byte at which it stops making sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) at: usize,
}

type Scanned<T> = Result<T, Broken>;

/// A value: its place in the text.
pub(super) type Span = Range<usize>;

/// A member of an object: its key, with the quotes, and its value.
pub(super) type Member = (Span, Span);

/// An item of a list of tasks.
pub(super) struct Item {
    pub(super) span: Span,
    /// What stands in it, where it is an object.
    pub(super) members: Option<Vec<Member>>,
}

/// Goes over a text once, from its begin to its end; what it holds is found on the way.
pub(super) struct JsonScan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> JsonScan<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
        }
    }

    /// Reads an object: `each` is given the key of every member, and reads its value.
    pub(super) fn object(
        &mut self,
        mut each: impl FnMut(&mut Self, Span) -> Scanned<()>,
    ) -> Scanned<()> {
        self.expect(b'{')?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            let key = self.string()?;
            self.expect(b':')?;
            each(self, key)?;
            if !self.more(b'}')? {
                return Ok(());
            }
        }
    }

    /// Reads a list of objects, with the members of each.
    pub(super) fn list(&mut self) -> Scanned<Vec<Item>> {
        let mut items = Vec::new();
        self.expect(b'[')?;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(items);
        }
        loop {
            items.push(self.item()?);
            if !self.more(b']')? {
                return Ok(items);
            }
        }
    }

    fn item(&mut self) -> Scanned<Item> {
        if self.peek() != Some(b'{') {
            let (span, members) = (self.value()?, None);
            return Ok(Item { span, members });
        }
        let start = self.at;
        let mut members = Vec::with_capacity(8);
        self.object(|scan, key| {
            members.push((key, scan.value()?));
            Ok(())
        })?;
        Ok(Item {
            span: start..self.at,
            members: Some(members),
        })
    }

    /// Nothing but white space may follow.
    pub(super) fn end(&mut self) -> Scanned<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.broken()),
        }
    }

    /// Where the next value begins.
    pub(super) fn here(&mut self) -> usize {
        self.peek();
        self.at
    }

    pub(super) fn is_named(&self, key: &Span, name: &str) -> bool {
        key_text(self.text, key) == name
    }
}

/// The name of a member; few are written with escapes.
pub(super) fn key_text<'a>(text: &'a str, key: &Span) -> Cow<'a, str> {
    let raw = &text[key.start + 1..key.end - 1];
    match raw.contains('\\') {
        true => Cow::Owned(string(text, key).unwrap_or_default()),
        false => Cow::Borrowed(raw),
    }
}

/// The text of a string, read.
pub(super) fn string(text: &str, span: &Span) -> Option<String> {
    serde_json::from_str(&text[span.clone()]).ok()
}

impl JsonScan<'_> {
    fn broken(&self) -> Broken {
        Broken { at: self.at }
    }

    /// The next byte that is not white space.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\r' | b'\t' | b'\x0c') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Scanned<()> {
        if self.peek() != Some(byte) {
            return Err(self.broken());
        }
        self.at += 1;
        Ok(())
    }

    /// Whether a comma follows rather than the end.
    fn more(&mut self, end: u8) -> Scanned<bool> {
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == end => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.broken()),
        }
    }

    fn string(&mut self) -> Scanned<Span> {
        self.expect(b'"')?;
        let start = self.at - 1;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let mark = memchr::memchr2(b'"', b'\\', rest).ok_or(Broken {
                at: self.bytes.len(),
            })?;
            self.at += mark + 1;
            match rest[mark] {
                b'"' => return Ok(start..self.at),
                _ => self.at += 1,
            }
        }
    }

    /// Skips one value; nesting is counted, not recursed into.
    pub(super) fn value(&mut self) -> Scanned<Span> {
        let start = match self.peek() {
            // The most of all values.
            Some(b'"') => return self.string(),
            Some(_) => self.at,
            None => return Err(self.broken()),
        };
        let mut ends = Vec::new();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.string()?;
                }
                Some(open @ (b'{' | b'[')) => {
                    ends.push(if open == b'{' { b'}' } else { b']' });
                    self.at += 1;
                    if self.peek() != ends.last().copied() {
                        if open == b'{' {
                            self.string()?;
                            self.expect(b':')?;
                        }
                        continue;
                    }
                    self.at += 1;
                    ends.pop();
                }
                _ => self.plain()?,
            }
            // A value has ended; so may the ones around it.
            while let Some(end) = ends.last().copied() {
                if self.more(end)? {
                    if end == b'}' {
                        self.string()?;
                        self.expect(b':')?;
                    }
                    break;
                }
                ends.pop();
            }
            if ends.is_empty() {
                return Ok(start..self.at);
            }
        }
    }

    /// A number or one of the three words.
    fn plain(&mut self) -> Scanned<()> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let length = rest.iter().take_while(|byte| is_plain(byte)).count();
        let is_number = matches!(rest[..length], [b'1'..=b'9', ref more @ ..] if more.iter().all(u8::is_ascii_digit));
        if !is_number && serde_json::from_slice::<serde::de::IgnoredAny>(&rest[..length]).is_err() {
            return Err(self.broken());
        }
        self.at += length;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn root(text: &str) -> Scanned<Span> {
        let mut scan = JsonScan::new(text);
        let span = scan.value()?;
        scan.end().map(|()| span)
    }

    fn members(text: &str) -> Scanned<Vec<Member>> {
        let mut scan = JsonScan::new(text);
        let mut all = Vec::new();
        scan.object(|scan, key| {
            all.push((key, scan.value()?));
            Ok(())
        })?;
        scan.end().map(|()| all)
    }

    #[test]
    fn values_are_found_where_they_stand() {
        let text = r#" { "a" : [1, {"x":"]\"}"}, []] , "b":{}, "a":-1.5e3 } "#;
        let all = members(text).unwrap();
        let values: Vec<&str> = all.iter().map(|(_, value)| &text[value.clone()]).collect();
        assert_eq!(values, [r#"[1, {"x":"]\"}"}, []]"#, "{}", "-1.5e3"]);
        let names: Vec<_> = all.iter().map(|(key, _)| key_text(text, key)).collect();
        assert_eq!(names, ["a", "b", "a"]);
        assert_eq!(key_text(r#""\u0061""#, &(0..8)), "a");
        let list = JsonScan::new(&text[all[0].1.clone()]).list().unwrap();
        assert_eq!(list.len(), 3);
        assert_eq!(list[1].members.as_ref().map(Vec::len), Some(1));
    }

    #[test]
    fn a_text_cut_anywhere_is_broken() {
        let text = r#"{"a":[1,{"x":"y"}],"b":{"c":null}}"#;
        assert!(root(text).is_ok());
        for end in 0..text.len() {
            assert!(root(&text[..end]).is_err(), "cut at {end}");
        }
        for bad in [
            "{,}",
            "[1,]",
            "{\"a\" 1}",
            "[1 2]",
            "[nul]",
            "{} {}",
            "[}",
            "\"\\",
        ] {
            assert!(root(bad).is_err(), "{bad}");
        }
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            "\\PC{0,6}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::hash_map("\\PC{0,3}", inner, 0..4)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_json_is_whole_and_its_parts_read_back(json in any_json()) {
            for text in [json.to_string(), serde_json::to_string_pretty(&json).unwrap()] {
                let span = root(&text).unwrap();
                prop_assert_eq!(&text[span], text.trim());
                if let Some(object) = json.as_object() {
                    let all = members(&text).unwrap();
                    prop_assert_eq!(all.len(), object.len());
                    for ((key, value), (name, wanted)) in all.iter().zip(object) {
                        prop_assert_eq!(&string(&text, key).unwrap(), name);
                        let read: serde_json::Value = serde_json::from_str(&text[value.clone()]).unwrap();
                        prop_assert_eq!(&read, wanted);
                    }
                }
            }
        }

        #[test]
        fn any_text_is_whole_only_if_it_is_json(text in "[\\[\\]{}:,\"a1 \\\\-]{0,16}") {
            let json = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            // Escapes inside strings are not looked at; everything else is.
            if json || !text.contains('\\') {
                prop_assert_eq!(root(&text).is_ok(), json, "{}", text);
            }
        }
    }
}
