//! One config file: every value checked where it stands.

use super::keys::refuse_zero;
use super::{ConfigError, Kind, Layers, Source, kind_of};
use crate::ops::IoError;
use std::ops::Range;
use std::path::Path;
use toml::Value;
use toml::de::{DeTable, DeValue};

/// Adds a file's settings, read by `read`; one that is not there has none.
pub(super) fn add_if_there(
    layers: &mut Layers,
    path: &Path,
    read: impl Fn(&Path) -> std::io::Result<Vec<u8>>,
    source: impl Fn(usize) -> Source,
) -> Result<(), ConfigError> {
    match read(path) {
        Ok(bytes) => {
            let text = String::from_utf8(bytes).map_err(|error| {
                let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                let place = Place {
                    path,
                    text: &String::from_utf8_lossy(valid),
                };
                place.error(
                    Some(valid.len()..valid.len()),
                    "the file is not UTF-8".to_owned(),
                )
            })?;
            add(layers, &text, path, source)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(IoError::new("read", path, error).into()),
    }
}

/// Adds the settings in `text`, which stands in the file at `path`.
pub(super) fn add(
    layers: &mut Layers,
    text: &str,
    path: &Path,
    source: impl Fn(usize) -> Source,
) -> Result<(), ConfigError> {
    let place = Place { path, text };
    let syntax = |error: toml::de::Error| place.error(error.span(), error.message().to_owned());
    let spans = DeTable::parse(text).map_err(syntax)?;
    let mut values: toml::Table = text.parse().map_err(syntax)?;
    for (key, spanned) in spans.get_ref() {
        let (line, _) = place.line_and_column(key.span().start);
        let (name, value) = (
            key.get_ref().as_ref(),
            values.remove(key.get_ref().as_ref()),
        );
        match (kind_of(name), value) {
            (Some(Kind::Tables), Some(Value::Table(entries))) => {
                for (entry, value) in entries {
                    let at = entry_start(spanned.get_ref(), &entry).unwrap_or(key.span().start);
                    if !value.is_table() {
                        let why = format!("`{name}.{entry}`: a table is needed");
                        return Err(place.error(Some(at..at), why));
                    }
                    let source = source(place.line_and_column(at).0);
                    layers.put(
                        name,
                        Value::Table([(entry, value)].into_iter().collect()),
                        &source,
                    );
                }
            }
            (Some(kind), Some(value)) => {
                let wrong = |why| place.error(Some(spanned.span()), format!("`{name}`: {why}"));
                let value = kind.normalise(value).map_err(wrong)?;
                refuse_zero(name, &value).map_err(wrong)?;
                layers.put(name, value, &source(line));
            }
            _ => layers.warn(format!("{}:{line}", path.display()), name),
        }
    }
    Ok(())
}

fn entry_start(table: &DeValue<'_>, entry: &str) -> Option<usize> {
    let (key, _) = table
        .as_table()?
        .iter()
        .find(|(key, _)| key.get_ref() == entry)?;
    Some(key.span().start)
}

struct Place<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Place<'_> {
    fn error(&self, span: Option<Range<usize>>, why: String) -> ConfigError {
        let (line, column) = self.line_and_column(span.map_or(0, |span| span.start));
        ConfigError::File {
            path: self.path.to_owned(),
            line,
            column,
            why,
        }
    }

    /// Both from 1; columns count characters.
    fn line_and_column(&self, byte: usize) -> (usize, usize) {
        let before = self.text.get(..byte).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        (
            before.matches('\n').count() + 1,
            before[line_start..].chars().count() + 1,
        )
    }
}
