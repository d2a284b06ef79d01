//! One config file: every value checked where it stands.

use super::settings::key_named;
use super::{ConfigError, DEFAULT_TOML, Kind};
use crate::ops::IoError;
use serde::Deserialize;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Value};

/// A config file that is longer was not written by a person.
pub(super) const LARGEST: u64 = 1024 * 1024;

/// The text of a file, opened by `open`; one that is not there has none.
pub(super) fn read_if_there(
    path: &Path,
    open: impl Fn(&Path) -> std::io::Result<File>,
) -> Result<Option<String>, ConfigError> {
    let read = |file: File| {
        let mut bytes = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = match open(path).and_then(read) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(IoError::new("read", path, error).into()),
    };
    if bytes.len() as u64 > LARGEST {
        return Err(ConfigError::TooLarge {
            path: path.to_owned(),
            size: std::fs::metadata(path).map_or(bytes.len() as u64, |meta| meta.len()),
        });
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let text = String::from_utf8_lossy(valid);
        ConfigPlace::new(path, &text).error(
            Some(valid.len()..valid.len()),
            "the file is not UTF-8".to_owned(),
        )
    })?;
    Ok(Some(text))
}

/// One setting as it stands in a file.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// The key; entries of tables come as `table.entry`.
    pub(super) key: String,
    /// Checked, in its one form.
    pub(super) value: Value,
    /// The line, from 1.
    pub(super) line: usize,
}

/// What stands in a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Parsed {
    pub(super) settings: Vec<Setting>,
    /// Keys that are none, with their lines.
    pub(super) unknown: Vec<(String, usize)>,
}

/// The settings of the built-in file. A command reads its layers more than once, and these never change.
pub(super) fn defaults() -> Result<Parsed, ConfigError> {
    static READ: OnceLock<Parsed> = OnceLock::new();
    if let Some(read) = READ.get() {
        return Ok(read.clone());
    }
    let read = parse(DEFAULT_TOML, Path::new("default.toml"))?;
    Ok(READ.get_or_init(|| read).clone())
}

/// Reads the settings in `text`, which stands in the file at `path`.
pub(super) fn parse(text: &str, path: &Path) -> Result<Parsed, ConfigError> {
    let place = ConfigPlace::new(path, text);
    let syntax = |error: toml::de::Error| place.error(error.span(), error.message().to_owned());
    let table = DeTable::parse(text).map_err(syntax)?;
    let mut out = Parsed::default();
    for (key, spanned) in table.into_inner() {
        let (line, _) = place.line_and_column(key.span().start);
        let (name, span) = (key.get_ref().as_ref(), spanned.span());
        let value = |value| Value::deserialize(ValueDeserializer::from(value)).map_err(syntax);
        match (key_named(name), spanned.into_inner()) {
            (Some(known), DeValue::Table(entries)) if known.kind == Kind::Tables => {
                for (entry, spanned) in entries {
                    let (at, entry) = (entry.span().start, entry.into_inner());
                    let value = value(spanned)?;
                    if !value.is_table() {
                        let why = format!("`{name}.{entry}`: expected a table");
                        return Err(place.error(Some(at..at), why));
                    }
                    out.settings.push(Setting {
                        key: format!("{name}.{entry}"),
                        value,
                        line: place.line_and_column(at).0,
                    });
                }
            }
            (Some(known), found) => {
                let wrong = |why| place.error(Some(span.clone()), format!("`{name}`: {why}"));
                let value = value(Spanned::new(span.clone(), found))?;
                let value = known.checked(value).map_err(wrong)?;
                out.settings.push(Setting {
                    key: name.to_owned(),
                    value,
                    line,
                });
            }
            _ => out.unknown.push((name.to_owned(), line)),
        }
    }
    Ok(out)
}

struct ConfigPlace<'a> {
    path: &'a Path,
    text: &'a str,
    /// Where each line begins.
    lines: Vec<usize>,
}

impl<'a> ConfigPlace<'a> {
    fn new(path: &'a Path, text: &'a str) -> Self {
        let ends = text.match_indices('\n');
        let lines = std::iter::once(0)
            .chain(ends.map(|(at, _)| at + 1))
            .collect();
        Self { path, text, lines }
    }

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
        let byte = match self.text.is_char_boundary(byte) {
            true => byte,
            false => self.text.len(),
        };
        let line = self.lines.partition_point(|start| *start <= byte).max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or(0);
        (line, self.text[start..byte].chars().count() + 1)
    }
}
