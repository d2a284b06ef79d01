//! The same for TOML: a table at the end of the file.

use std::ops::Range;

use serde_json::Value;
use toml_edit::{Document, DocumentMut, Item, TableLike, TomlError};

use super::insertion::{Insertion, SettingsProblem};

/// Reads the whole text.
pub fn parse(text: &str) -> Result<Value, SettingsProblem> {
    toml::from_str(text).map_err(|error| problem(text, error.span(), error.message()))
}

fn problem(text: &str, span: Option<Range<usize>>, message: &str) -> SettingsProblem {
    let at = span.map_or(0, |span| span.start);
    SettingsProblem::at(text, at, message.lines().next().unwrap_or_default())
}

/// What is put in so that `container` of the text has this table; none may be there.
pub fn insertions(
    text: &str,
    (container, name): (&str, &str),
    entry: &Value,
) -> Result<Vec<Insertion>, SettingsProblem> {
    let document =
        Document::parse(text).map_err(|error| problem(text, error.span(), error.message()))?;
    match document.get(container) {
        // Where all stand within braces, a table of its own would be a second definition.
        Some(Item::Value(inline)) => {
            let Some(table) = inline.as_inline_table() else {
                return Err(SettingsProblem::at(
                    text,
                    0,
                    &format!("`{container}` is no table"),
                ));
            };
            let end = inline.span().map_or(0, |span| span.end);
            let at = text[..end].trim_end_matches('}').trim_end().len();
            let comma = if table.is_empty() { " " } else { ", " };
            let new = format!("{comma}{name} = {}", in_braces(entry));
            Ok(vec![Insertion::new(at, new)])
        }
        _ => {
            let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
            let mut new = match text {
                "" => String::new(),
                text if text.ends_with('\n') => newline.to_owned(),
                _ => newline.repeat(2),
            };
            new.push_str(&format!("[{container}.{name}]{newline}"));
            for (key, value) in entry.as_object().into_iter().flatten() {
                new.push_str(&format!("{key} = {value}{newline}"));
            }
            Ok(vec![Insertion::new(text.len(), new)])
        }
    }
}

/// Numbers, texts and lists of them are written as in JSON.
fn in_braces(entry: &Value) -> String {
    let members = entry.as_object().into_iter().flatten();
    let members: Vec<String> = members
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    format!("{{ {} }}", members.join(", "))
}

/// The text without the table.
pub fn without(text: &str, (container, name): (&str, &str)) -> Result<String, SettingsProblem> {
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error: TomlError| problem(text, error.span(), error.message()))?;
    if let Some(table) = document
        .get_mut(container)
        .and_then(Item::as_table_like_mut)
    {
        TableLike::remove(table, name);
    }
    Ok(document.to_string())
}
