//! Field paths: `data.usage.input`, `message.content[].text`, `models.*.tokens`.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::agent::tool::{self, ToolInput};

/// A field path that cannot be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "`{path}` is not a valid field path: use names separated by dots, [] for every element of a \
     list, * for any name"
)]
pub struct PathError {
    /// The path as it was written.
    pub path: String,
}

/// The value at a path. Of several, texts are joined by lines and numbers are added.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Text(String),
    Number(f64),
    Truth(bool),
}

/// Paths as a tree, so that one walk over a line finds all of them and skips the rest.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths {
    root: Node,
    names: Vec<String>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    slot: Option<usize>,
    /// The value is a tool's input, wanted as one line.
    input: bool,
    keys: Vec<(String, Node)>,
    any: Option<Box<Node>>,
    each: Option<Box<Node>>,
}

impl Paths {
    /// The place at which a path's value will be found.
    pub fn slot(&mut self, path: &str) -> Result<usize, PathError> {
        self.add(path, path.to_owned()).map(|(slot, _)| slot)
    }

    /// The same for a tool's input, which is kept as one line.
    pub fn input_slot(&mut self, path: &str) -> Result<usize, PathError> {
        let (slot, node) = self.add(path, format!("input {path}"))?;
        node.input = true;
        Ok(slot)
    }

    fn add(&mut self, path: &str, name: String) -> Result<(usize, &mut Node), PathError> {
        let steps = steps(path)?;
        let mut node = &mut self.root;
        for step in steps {
            node = node.child(step);
        }
        let slot = *node.slot.get_or_insert_with(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        Ok((slot, node))
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Reads one JSON value and gives what stands at the paths.
    pub fn read(&self, json: &[u8]) -> Result<Vec<Option<Scalar>>, serde_json::Error> {
        let mut found = vec![None; self.len()];
        let mut from = serde_json::Deserializer::from_slice(json);
        let walk = Walk {
            node: &self.root,
            found: &mut found,
        };
        walk.deserialize(&mut from)?;
        from.end()?;
        Ok(found)
    }
}

enum Step<'a> {
    Key(&'a str),
    Any,
    Each,
}

fn steps(path: &str) -> Result<Vec<Step<'_>>, PathError> {
    let wrong = || PathError {
        path: path.to_owned(),
    };
    let mut steps = Vec::new();
    for part in path.split('.') {
        let name = part.trim_end_matches("[]");
        let lists = (part.len() - name.len()) / 2;
        match name {
            "" if lists == 0 => return Err(wrong()),
            "" => {}
            "*" => steps.push(Step::Any),
            name if name.contains(['[', ']', '*', ' ']) => return Err(wrong()),
            name => steps.push(Step::Key(name)),
        }
        steps.extend((0..lists).map(|_| Step::Each));
    }
    Ok(steps)
}

impl Node {
    fn child(&mut self, step: Step<'_>) -> &mut Self {
        match step {
            Step::Any => self.any.get_or_insert_default(),
            Step::Each => self.each.get_or_insert_default(),
            Step::Key(key) => {
                let at = self
                    .keys
                    .iter()
                    .position(|(name, _)| name == key)
                    .unwrap_or_else(|| {
                        self.keys.push((key.to_owned(), Self::default()));
                        self.keys.len() - 1
                    });
                &mut self.keys[at].1
            }
        }
    }

    fn under(&self, key: &str) -> Option<&Self> {
        let named = self
            .keys
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, node)| node);
        named.or(self.any.as_deref())
    }
}

struct Walk<'t, 'f> {
    node: &'t Node,
    found: &'f mut Vec<Option<Scalar>>,
}

impl Walk<'_, '_> {
    fn keep(self, value: Scalar) {
        let Some(slot) = self.node.slot else { return };
        let kept = &mut self.found[slot];
        match (kept.as_mut(), value) {
            (Some(Scalar::Text(before)), Scalar::Text(more)) => {
                before.push('\n');
                before.push_str(&more);
            }
            (Some(Scalar::Number(before)), Scalar::Number(more)) => *before += more,
            (_, value) => *kept = Some(value),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }
    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.keep(Scalar::Truth(value));
        Ok(())
    }
    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.keep(Scalar::Number(value as f64));
        Ok(())
    }
    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.keep(Scalar::Number(value as f64));
        Ok(())
    }
    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.keep(Scalar::Number(value));
        Ok(())
    }
    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        if self.node.slot.is_some() {
            self.keep(Scalar::Text(value.to_owned()));
        }
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if self.node.input {
            let from = serde::de::value::MapAccessDeserializer::new(map);
            let input: ToolInput<'de> = serde::Deserialize::deserialize(from)?;
            self.keep(Scalar::Text(
                tool::summary("", &input, None).trim().to_owned(),
            ));
            return Ok(());
        }
        let Walk { node, found } = self;
        while let Some(Key(key)) = map.next_key()? {
            match node.under(&key) {
                Some(node) => map.next_value_seed(Walk {
                    node,
                    found: &mut *found,
                })?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Walk { node, found } = self;
        match node.each.as_deref() {
            Some(node) => {
                while seq
                    .next_element_seed(Walk {
                        node,
                        found: &mut *found,
                    })?
                    .is_some()
                {}
            }
            None => while seq.next_element::<IgnoredAny>()?.is_some() {},
        }
        Ok(())
    }
}

#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn read(paths: &[&str], json: &str) -> Vec<Option<Scalar>> {
        let mut tree = Paths::default();
        for path in paths {
            tree.slot(path).unwrap();
        }
        tree.read(json.as_bytes()).unwrap()
    }

    fn text(text: &str) -> Option<Scalar> {
        Some(Scalar::Text(text.into()))
    }

    #[test]
    fn paths_find_their_values_and_pass_over_the_rest() {
        let json = r#"{"type":"x","a":{"b":1.5,"c":[{"t":"one"},{"u":2},{"t":"two"}]},"m":{"p":{"n":2},"q":{"n":3}},"ok":true,"deep":[[["z"]]],"null":null}"#;
        let got = read(
            &[
                "type",
                "a.b",
                "a.c[].t",
                "m.*.n",
                "ok",
                "deep[][][]",
                "none.at.all",
                "null",
            ],
            json,
        );
        let want = vec![
            text("x"),
            Some(Scalar::Number(1.5)),
            text("one\ntwo"),
            Some(Scalar::Number(5.0)),
            Some(Scalar::Truth(true)),
            text("z"),
            None,
            None,
        ];
        assert_eq!(got, want);
    }

    #[test]
    fn a_wrong_shape_reads_as_absent() {
        for json in [
            "1",
            "\"a\"",
            "[]",
            "null",
            r#"{"a":[{"b":1}]}"#,
            r#"{"a":"b"}"#,
        ] {
            assert_eq!(read(&["a.b"], json), [None], "{json}");
        }
    }

    #[test]
    fn inputs_of_tools_become_a_line() {
        let mut tree = Paths::default();
        tree.input_slot("args").unwrap();
        let got = tree
            .read(br#"{"args":{"command":"cargo test","other":[1]}}"#)
            .unwrap();
        assert_eq!(got, [text("$ cargo test")]);
    }

    #[test]
    fn wrong_paths_are_refused() {
        for path in ["", ".", "a..b", "a.", "a[0]", "a b", "a*"] {
            assert!(steps(path).is_err(), "{path}");
        }
    }
}
