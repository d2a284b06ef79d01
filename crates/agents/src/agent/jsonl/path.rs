//! Field paths: `data.usage.input`, `message.content[].text`, `models.*.tokens`.

use std::borrow::Cow;

use crate::agent::json::Json;

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
pub(super) fn all<'j, 'a>(value: &'j Json<'a>, path: &str) -> Vec<&'j Json<'a>> {
    let mut found = vec![value];
    for part in path.split('.') {
        let name = part.trim_end_matches("[]");
        match name {
            "" => {}
            "*" => found = found.into_iter().flat_map(fields).collect(),
            name => found = found.into_iter().map(|value| &value[name]).collect(),
        }
        for _ in 0..(part.len() - name.len()) / 2 {
            found = found.into_iter().flat_map(Json::list).collect();
        }
    }
    found
}

fn fields<'j, 'a>(value: &'j Json<'a>) -> impl Iterator<Item = &'j Json<'a>> {
    value.entries().iter().map(|(_, value)| value)
}

/// The plain value at a path. Of several, texts are joined by lines and numbers are added.
pub(super) fn plain<'j>(value: &'j Json<'_>, path: &str) -> Json<'j> {
    if !path.contains(['[', '*']) {
        let found = path.split('.').fold(value, |value, name| &value[name]);
        return borrowed(found);
    }
    let values = all(value, path).into_iter().map(borrowed);
    values.fold(Json::Null, |before, more| match (before, more) {
        (before, Json::Null) => before,
        (Json::Text(before), Json::Text(more)) => {
            Json::Text(Cow::Owned(format!("{before}\n{more}")))
        }
        (Json::Number(before), Json::Number(more)) => Json::Number(before + more),
        (_, more) => more,
    })
}

fn borrowed<'j>(value: &'j Json<'_>) -> Json<'j> {
    match value {
        Json::Text(text) => Json::Text(Cow::Borrowed(text)),
        Json::Number(number) => Json::Number(*number),
        Json::Flag(flag) => Json::Flag(*flag),
        Json::Null | Json::List(_) | Json::Object(_) => Json::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_find_their_values_and_pass_over_the_rest() {
        let json = r#"{"type":"x","a":{"b":1.5,"c":[{"t":"one"},{"u":2},{"t":"two"}]},"m":{"p":{"n":2},"q":{"n":3}},"ok":true,"deep":[[["z"]]],"null":null}"#;
        let values = Json::read(json.as_bytes()).unwrap();
        let text = |text: &'static str| Json::Text(text.into());
        let table = [
            ("type", text("x")),
            ("a.b", Json::Number(1.5)),
            ("a.c[].t", text("one\ntwo")),
            ("m.*.n", Json::Number(5.0)),
            ("ok", Json::Flag(true)),
            ("deep[][][]", text("z")),
            ("none.at.all", Json::Null),
            ("null", Json::Null),
        ];
        for (path, want) in table {
            check(path).unwrap();
            assert_eq!(plain(&values[0], path), want, "{path}");
        }
    }

    #[test]
    fn a_wrong_shape_reads_as_absent() {
        for json in ["[]", r#"{"a":[{"b":1}]}"#, r#"{"a":"b"}"#] {
            let values = Json::read(json.as_bytes()).unwrap();
            assert_eq!(plain(&values[0], "a.b"), Json::Null, "{json}");
        }
    }

    #[test]
    fn wrong_paths_are_refused() {
        for path in ["", ".", "a..b", "a.", "a[0]", "a b", "a*"] {
            assert!(check(path).is_err(), "{path}");
        }
    }
}
