//! Tables that are part of the program.

use serde::de::DeserializeOwned;
use toml::{Table, Value};

/// Reads one. By way of its values, as a user's tables are read: straight from the text every type would be
/// compiled a second time, hundreds of kilobytes in all.
pub(crate) fn built_in<T: DeserializeOwned>(text: &str) -> Option<T> {
    let table: Table = text.parse().ok()?;
    Value::Table(table).try_into().ok()
}
