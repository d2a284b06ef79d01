//! Where the values of a JSON text stand, so that one can be changed and the rest kept.

use std::ops::Range;

/// A JSON text that is not whole: the byte at which it stops making sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) at: usize,
}

type Found<T> = Result<T, Broken>;

/// A value: its place in the text.
pub(super) type Span = Range<usize>;

/// The members of the object at `span`: key (with its quotes) and value.
pub(super) fn members(text: &str, span: Span) -> Found<Vec<(Span, Span)>> {
    let mut scan = Scan {
        bytes: text.as_bytes(),
        at: span.start,
    };
    let mut members = Vec::new();
    scan.expect(b'{')?;
    if scan.peek() == Some(b'}') {
        return Ok(members);
    }
    loop {
        let key = scan.string()?;
        scan.expect(b':')?;
        let value = scan.value()?;
        members.push((key, value));
        if !scan.more(b'}')? {
            return Ok(members);
        }
    }
}

/// The items of the array at `span`.
pub(super) fn items(text: &str, span: Span) -> Found<Vec<Span>> {
    let mut scan = Scan {
        bytes: text.as_bytes(),
        at: span.start,
    };
    let mut items = Vec::new();
    scan.expect(b'[')?;
    if scan.peek() == Some(b']') {
        return Ok(items);
    }
    loop {
        items.push(scan.value()?);
        if !scan.more(b']')? {
            return Ok(items);
        }
    }
}

/// The one value that a text holds.
pub(super) fn root(text: &str) -> Found<Span> {
    let mut scan = Scan {
        bytes: text.as_bytes(),
        at: 0,
    };
    let span = scan.value()?;
    match scan.peek() {
        None => Ok(span),
        Some(_) => Err(scan.broken()),
    }
}

/// The last member of that name, as JSON readers take it.
pub(super) fn member(text: &str, members: &[(Span, Span)], name: &str) -> Option<Span> {
    let found = members
        .iter()
        .rev()
        .find(|(key, _)| is_named(text, key, name));
    found.map(|(_, value)| value.clone())
}

fn is_named(text: &str, key: &Span, name: &str) -> bool {
    let raw = &text[key.start + 1..key.end - 1];
    raw == name || raw.contains('\\') && string(text, key).as_deref() == Some(name)
}

/// The text of a string, read.
pub(super) fn string(text: &str, span: &Span) -> Option<String> {
    serde_json::from_str(&text[span.clone()]).ok()
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn broken(&self) -> Broken {
        Broken { at: self.at }
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let blank = rest
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        self.at += blank;
        self.bytes.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Found<()> {
        if self.peek() != Some(byte) {
            return Err(self.broken());
        }
        self.at += 1;
        Ok(())
    }

    /// Whether a comma follows rather than the end.
    fn more(&mut self, end: u8) -> Found<bool> {
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

    fn string(&mut self) -> Found<Span> {
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
    fn value(&mut self) -> Found<Span> {
        let start = match self.peek() {
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
    fn plain(&mut self) -> Found<()> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let length = rest.iter().take_while(|byte| is_plain(byte)).count();
        if serde_json::from_slice::<serde::de::IgnoredAny>(&rest[..length]).is_err() {
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

    #[test]
    fn values_are_found_where_they_stand() {
        let text = r#" { "a" : [1, {"x":"]\"}"}, []] , "b":{}, "a":-1.5e3 } "#;
        let all = members(text, root(text).unwrap()).unwrap();
        let values: Vec<&str> = all.iter().map(|(_, value)| &text[value.clone()]).collect();
        assert_eq!(values, [r#"[1, {"x":"]\"}"}, []]"#, "{}", "-1.5e3"]);
        assert_eq!(
            &text[member(text, &all, "a").unwrap()],
            "-1.5e3",
            "the last one counts"
        );
        let list = items(text, all[0].1.clone()).unwrap();
        assert_eq!(list.len(), 3);
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
                prop_assert_eq!(&text[span.clone()], text.trim());
                if let Some(object) = json.as_object() {
                    let all = members(&text, span).unwrap();
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
