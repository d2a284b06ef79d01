//! JSON as people write it into settings, with comments and commas behind the last member: read with
//! the places of its members, so that one can be put in or taken out and every other byte stays.

use std::ops::Range;

use serde_json::{Map, Value};

use super::insertion::{Insertion, SettingsProblem};

/// Deeper than any settings file.
const DEEPEST: usize = 64;

/// A value and where it stands.
#[derive(Debug)]
pub struct JsonNode {
    pub value: Value,
    span: Range<usize>,
    /// Those of an object.
    members: Vec<JsonMember>,
}

#[derive(Debug)]
struct JsonMember {
    key: String,
    start: usize,
    node: JsonNode,
    /// The comma behind it.
    comma: Option<usize>,
}

impl JsonNode {
    fn member(&self, key: &str) -> Option<(usize, &JsonMember)> {
        // The last of two with one name holds.
        let mut members = self.members.iter().enumerate().rev();
        members.find(|(_, member)| member.key == key)
    }
}

/// Reads the whole text.
pub fn parse(text: &str) -> Result<JsonNode, SettingsProblem> {
    let mut reader = JsonReader {
        text,
        at: text.len() - text.trim_start_matches('\u{feff}').len(),
    };
    reader.gap()?;
    let node = reader.value(0)?;
    reader.gap()?;
    match reader.at == text.len() {
        true => Ok(node),
        false => Err(reader.wrong("something stands behind the end")),
    }
}

struct JsonReader<'t> {
    text: &'t str,
    at: usize,
}

impl JsonReader<'_> {
    fn wrong(&self, what: &str) -> SettingsProblem {
        SettingsProblem::at(self.text, self.at, what)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Passes over spaces and comments.
    fn gap(&mut self) -> Result<(), SettingsProblem> {
        loop {
            let rest = &self.text[self.at..];
            self.at += rest.len() - rest.trim_start().len();
            let rest = &self.text[self.at..];
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let end = rest.find("*/");
                self.at += end.ok_or_else(|| self.wrong("a comment does not end"))? + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<JsonNode, SettingsProblem> {
        if depth > DEEPEST {
            return Err(self.wrong("too deep"));
        }
        let start = self.at;
        let (value, members) = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => (self.array(depth)?, Vec::new()),
            Some(b'"') => (Value::String(self.string()?), Vec::new()),
            _ => (self.word()?, Vec::new()),
        };
        let span = start..self.at;
        Ok(JsonNode {
            value,
            span,
            members,
        })
    }

    fn object(&mut self, depth: usize) -> Result<(Value, Vec<JsonMember>), SettingsProblem> {
        let (mut map, mut members) = (Map::new(), Vec::new());
        self.at += 1;
        loop {
            self.gap()?;
            let start = self.at;
            match self.peek() {
                Some(b'}') => break,
                Some(b'"') => {}
                _ => return Err(self.wrong("expected `\"` or `}`")),
            }
            let key = self.string()?;
            self.gap()?;
            if self.peek() != Some(b':') {
                return Err(self.wrong("expected `:`"));
            }
            self.at += 1;
            self.gap()?;
            let node = self.value(depth + 1)?;
            map.insert(key.clone(), node.value.clone());
            let comma = self.comma(b'}')?;
            members.push(JsonMember {
                key,
                start,
                node,
                comma,
            });
        }
        self.at += 1;
        Ok((Value::Object(map), members))
    }

    fn array(&mut self, depth: usize) -> Result<Value, SettingsProblem> {
        let mut all = Vec::new();
        self.at += 1;
        loop {
            self.gap()?;
            if self.peek() == Some(b']') {
                break;
            }
            all.push(self.value(depth + 1)?.value);
            self.comma(b']')?;
        }
        self.at += 1;
        Ok(Value::Array(all))
    }

    /// The comma behind a member, or the end of what it is in.
    fn comma(&mut self, end: u8) -> Result<Option<usize>, SettingsProblem> {
        let before = self.at;
        self.gap()?;
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(Some(self.at - 1))
            }
            Some(byte) if byte == end => {
                self.at = before;
                self.gap()?;
                Ok(None)
            }
            _ => Err(self.wrong(&format!("expected `,` or `{}`", char::from(end)))),
        }
    }

    fn string(&mut self) -> Result<String, SettingsProblem> {
        let bytes = self.text.as_bytes();
        let mut end = self.at + 1;
        while let Some(byte) = bytes.get(end) {
            match byte {
                b'"' => {
                    let read = serde_json::from_str(&self.text[self.at..=end]);
                    let text = read.map_err(|_| self.wrong("a text cannot be read"))?;
                    self.at = end + 1;
                    return Ok(text);
                }
                b'\\' => end += 2,
                b'\n' => break,
                _ => end += 1,
            }
        }
        Err(self.wrong("a text does not end"))
    }

    fn word(&mut self) -> Result<Value, SettingsProblem> {
        let rest = &self.text[self.at..];
        let ends = |c: char| c.is_whitespace() || ",]}:/\"".contains(c);
        let word = &rest[..rest.find(ends).unwrap_or(rest.len())];
        let value = serde_json::from_str(word).map_err(|_| match word {
            "" => self.wrong("expected a value"),
            word => self.wrong(&format!("`{word}` is no value")),
        })?;
        self.at += word.len();
        Ok(value)
    }
}

/// What is put in so that `container` of the text has this member; none may be there.
pub fn insertions(
    text: &str,
    (container, name): (&str, &str),
    entry: &Value,
) -> Result<Vec<Insertion>, SettingsProblem> {
    if text.trim().is_empty() {
        let whole = format!(
            "{{\n  {}\n}}\n",
            member(container, &around(name, entry), "  ", "  ", "\n")
        );
        return Ok(vec![Insertion::new(text.len(), whole)]);
    }
    let root = parse(text)?;
    if !root.value.is_object() {
        return Err(SettingsProblem::at(
            text,
            root.span.start,
            "expected an object: {",
        ));
    }
    match root.member(container) {
        None => Ok(into(text, &root, &root, container, &around(name, entry))),
        Some((_, found)) if found.node.value.is_object() => {
            Ok(into(text, &root, &found.node, name, entry))
        }
        Some((_, found)) => {
            let what = format!("`{container}` is no object");
            Err(SettingsProblem::at(text, found.node.span.start, &what))
        }
    }
}

fn around(name: &str, entry: &Value) -> Value {
    let mut map = Map::new();
    map.insert(name.to_owned(), entry.clone());
    Value::Object(map)
}

/// `"key": value` over several lines, of which the first is not indented.
fn member(key: &str, value: &Value, indent: &str, unit: &str, newline: &str) -> String {
    let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
    let lines = pretty.lines().enumerate().map(|(at, line)| {
        let depth = (line.len() - line.trim_start().len()) / 2;
        match at {
            0 => line.to_owned(),
            _ => format!(
                "{newline}{indent}{}{}",
                unit.repeat(depth),
                line.trim_start()
            ),
        }
    });
    format!("{}: {}", Value::from(key), lines.collect::<String>())
}

/// Puts a member behind the last one of an object, as that is written.
fn into(
    text: &str,
    root: &JsonNode,
    object: &JsonNode,
    key: &str,
    value: &Value,
) -> Vec<Insertion> {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let outer = indent_of(text, object.span.start);
    let unit = root
        .members
        .first()
        .map(|first| indent_of(text, first.start))
        .filter(|unit| !unit.is_empty())
        .unwrap_or("  ");
    let Some((first, last)) = object.members.first().zip(object.members.last()) else {
        let indent = format!("{outer}{unit}");
        let mut new = format!(
            "{newline}{indent}{}",
            member(key, value, &indent, unit, newline)
        );
        let inner = &text[object.span.start + 1..object.span.end - 1];
        if !inner.contains('\n') {
            new.push_str(&format!("{newline}{outer}"));
        }
        return vec![Insertion::new(object.span.start + 1, new)];
    };
    let end = last.node.span.end;
    if !text[object.span.start..first.start].contains('\n') {
        let new = format!("{}: {value}", Value::from(key));
        return vec![match last.comma {
            Some(comma) => Insertion::new(comma + 1, format!(" {new}")),
            None => Insertion::new(end, format!(", {new}")),
        }];
    }
    let indent = indent_of(text, first.start);
    let new = format!(
        "{newline}{indent}{}",
        member(key, value, indent, unit, newline)
    );
    match last.comma {
        Some(comma) => vec![Insertion::new(end_of_line(text, comma + 1), new + ",")],
        None => vec![
            Insertion::new(end, ",".to_owned()),
            Insertion::new(end_of_line(text, end), new),
        ],
    }
}

/// The spaces at the beginning of the line in which this stands.
fn indent_of(text: &str, at: usize) -> &str {
    let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let rest = &text[line..at];
    &rest[..rest.len() - rest.trim_start().len()]
}

/// The end of the line where nothing but a comment stands in the rest of it, else this very place.
fn end_of_line(text: &str, from: usize) -> usize {
    let mut at = from;
    loop {
        let rest = &text[at..];
        let skipped = rest.trim_start_matches([' ', '\t']);
        at += rest.len() - skipped.len();
        if skipped.starts_with("//") {
            let end = skipped.find('\n').unwrap_or(skipped.len());
            return at + skipped[..end].trim_end_matches('\r').len();
        }
        match skipped.strip_prefix("/*").and_then(|rest| rest.find("*/")) {
            Some(end) if !skipped[..end + 4].contains('\n') => at += end + 4,
            _ => break,
        }
    }
    match text[at..].starts_with(['\r', '\n']) {
        true => text[..at].trim_end_matches([' ', '\t']).len().max(from),
        false => from,
    }
}

/// What is cut out so that `container` has this member no more.
pub fn cuts(
    text: &str,
    (container, name): (&str, &str),
) -> Result<Vec<Range<usize>>, SettingsProblem> {
    let root = parse(text)?;
    let Some((_, found)) = root.member(container) else {
        return Ok(Vec::new());
    };
    let object = &found.node;
    let Some((index, member)) = object.member(name) else {
        return Ok(Vec::new());
    };
    let spaces = &text[..member.start];
    let before = spaces.trim_end_matches([' ', '\t']);
    let start = match before.strip_suffix('\n') {
        Some(line) => line.trim_end_matches('\r').len(),
        None if index > 0 => before.len(),
        None => member.start,
    };
    let end = member.comma.map_or(member.node.span.end, |comma| comma + 1);
    let mut cuts = Vec::new();
    let is_last = index + 1 == object.members.len();
    if is_last
        && member.comma.is_none()
        && let Some(comma) = index
            .checked_sub(1)
            .and_then(|before| object.members[before].comma)
    {
        cuts.push(comma..comma + 1);
    }
    cuts.push(start..end);
    Ok(cuts)
}
