//! The shape of a stream: which events it has, and which fields stand in them. Two versions of a CLI
//! are told apart by it, whatever their values are.

use std::collections::BTreeSet;

use serde_json::Value;

/// Fields whose keys are data, not format: below them nothing is looked at.
const DATA: [&str; 5] = ["input", "arguments", "args", "parameters", "modelUsage"];

/// A line for each event and each field in it: `result`, `result: usage.input_tokens`.
pub fn shape(stream: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let lines = stream.lines();
    for value in lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let kind = kind(&value);
        fields(&value, "", &mut |path| {
            found.insert(format!("{kind}: {path}"));
        });
        found.insert(kind);
    }
    found
}

/// What one stream has and the other has not. Of an event that is new as a whole only its name is told.
pub fn more(than: &BTreeSet<String>, stream: &BTreeSet<String>) -> Vec<String> {
    let new = stream.difference(than);
    let of_known = |line: &&String| match line.split_once(": ") {
        Some((kind, _)) => than.contains(kind),
        None => true,
    };
    new.filter(of_known).cloned().collect()
}

fn kind(value: &Value) -> String {
    let parts = ["/type", "/subtype", "/role", "/event/type", "/item/type"];
    let parts = parts
        .iter()
        .filter_map(|path| value.pointer(path)?.as_str());
    let parts: Vec<&str> = parts.collect();
    match parts.is_empty() {
        true => "without a kind".to_owned(),
        false => parts.join("/"),
    }
}

fn fields(value: &Value, path: &str, tell: &mut impl FnMut(&str)) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                let path = match path {
                    "" => key.clone(),
                    path => format!("{path}.{key}"),
                };
                tell(&path);
                if !DATA.contains(&key.as_str()) {
                    fields(value, &path, tell);
                }
            }
        }
        Value::Array(values) => {
            let path = format!("{path}[]");
            values.iter().for_each(|value| fields(value, &path, tell));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_events_and_fields_are_told_and_values_are_not() {
        let old = shape("words\n{\"type\":\"a\",\"n\":1,\"input\":{\"x\":1}}\n");
        let same = shape("{\"type\":\"a\",\"n\":2,\"input\":{\"y\":1}}\n");
        assert!(more(&old, &same).is_empty() && more(&same, &old).is_empty());
        let new = shape(
            "{\"type\":\"a\",\"n\":1,\"input\":{},\"list\":[{\"deep\":1}]}\n{\"type\":\"b\",\"m\":1}\n",
        );
        assert_eq!(more(&old, &new), ["a: list", "a: list[].deep", "b"]);
        assert!(more(&new, &old).is_empty());
    }
}
