//! Field paths: `data.usage.input`, `message.content[].text`, `models.*.tokens`.

use std::borrow::Cow;

use crate::agent::json::JsonValue;

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

/// Whether a path can be read.
pub(super) fn check(path: &str) -> Result<(), PathError> {
    let is_wrong = |part: &str| match part.trim_end_matches("[]") {
        "" => part.is_empty(),
        "*" => false,
        name => name.contains(['[', ']', '*', ' ']),
    };
    match path.split('.').any(is_wrong) {
        true => Err(PathError {
            path: path.to_owned(),
        }),
        false => Ok(()),
    }
}

/// The values at a path.
pub(super) fn all<'j, 'a>(value: &'j JsonValue<'a>, path: &str) -> Vec<&'j JsonValue<'a>> {
    let mut found = vec![value];
    for part in path.split('.') {
        let name = part.trim_end_matches("[]");
        match name {
            "" => {}
            "*" => found = found.into_iter().flat_map(fields).collect(),
            name => found = found.into_iter().map(|value| &value[name]).collect(),
        }
        for _ in 0..(part.len() - name.len()) / 2 {
            found = found.into_iter().flat_map(JsonValue::list).collect();
        }
    }
    found
}

fn fields<'j, 'a>(value: &'j JsonValue<'a>) -> impl Iterator<Item = &'j JsonValue<'a>> {
    value.entries().iter().map(|(_, value)| value)
}

/// The plain value at a path. Of several, texts are joined by lines and numbers are added.
pub(super) fn plain<'j>(value: &'j JsonValue<'_>, path: &str) -> JsonValue<'j> {
    if !path.contains(['[', '*']) {
        let found = path.split('.').fold(value, |value, name| &value[name]);
        return borrowed(found);
    }
    let values = all(value, path).into_iter().map(borrowed);
    values.fold(JsonValue::Null, |before, more| match (before, more) {
        (before, JsonValue::Null) => before,
        (JsonValue::Text(before), JsonValue::Text(more)) => {
            JsonValue::Text(Cow::Owned(format!("{before}\n{more}")))
        }
        (JsonValue::Number(before), JsonValue::Number(more)) => JsonValue::Number(before + more),
        (_, more) => more,
    })
}

fn borrowed<'j>(value: &'j JsonValue<'_>) -> JsonValue<'j> {
    match value {
        JsonValue::Text(text) => JsonValue::Text(Cow::Borrowed(text)),
        JsonValue::Number(number) => JsonValue::Number(*number),
        JsonValue::Flag(flag) => JsonValue::Flag(*flag),
        JsonValue::Null | JsonValue::List(_) | JsonValue::Object(_) => JsonValue::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_find_their_values_and_pass_over_the_rest() {
        let json = r#"{"type":"x","a":{"b":1.5,"c":[{"t":"one"},{"u":2},{"t":"two"}]},"m":{"p":{"n":2},"q":{"n":3}},"ok":true,"deep":[[["z"]]],"null":null}"#;
        let values = JsonValue::read(json.as_bytes()).unwrap();
        let text = |text: &'static str| JsonValue::Text(text.into());
        let table = [
            ("type", text("x")),
            ("a.b", JsonValue::Number(1.5)),
            ("a.c[].t", text("one\ntwo")),
            ("m.*.n", JsonValue::Number(5.0)),
            ("ok", JsonValue::Flag(true)),
            ("deep[][][]", text("z")),
            ("none.at.all", JsonValue::Null),
            ("null", JsonValue::Null),
        ];
        for (path, want) in table {
            check(path).unwrap();
            assert_eq!(plain(&values[0], path), want, "{path}");
        }
    }

    #[test]
    fn a_wrong_shape_reads_as_absent() {
        for json in ["[]", r#"{"a":[{"b":1}]}"#, r#"{"a":"b"}"#] {
            let values = JsonValue::read(json.as_bytes()).unwrap();
            assert_eq!(plain(&values[0], "a.b"), JsonValue::Null, "{json}");
        }
    }

    #[test]
    fn wrong_paths_are_refused() {
        for path in ["", ".", "a..b", "a.", "a[0]", "a b", "a*"] {
            assert!(check(path).is_err(), "{path}");
        }
    }
}
