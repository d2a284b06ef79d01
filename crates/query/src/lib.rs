//! All journals as SQL tables.
//!
//! The tables live in `index.db` in the state root. They hold nothing that the journals do not:
//! the file can be deleted at any time, and is caught up with the journals before it is asked.
//! A person's SQL can read it and change nothing.

mod ask;
mod fold;
mod index;
mod journals;

use std::path::Path;

pub use ask::Answer;
pub use index::Index;
pub use rusqlite::types::Value as SqlValue;

/// The tables, with a comment on every column that needs one.
pub const SCHEMA: &str = include_str!("schema.sql");

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The SQL says nothing that can be answered.
    #[error("{message}")]
    Sql {
        /// SQLite's words.
        message: String,
        /// The byte at which it was lost.
        offset: Option<usize>,
    },
    /// The SQL would change something.
    #[error("only queries are allowed: this would change the index")]
    Changes,
    /// The SQL asks for nothing.
    #[error("the query is empty")]
    NoQuestion,
    #[error("the index {path}: {source}")]
    Index {
        path: String,
        /// SQLite's words.
        source: rusqlite::Error,
    },
    /// The state folder.
    #[error(transparent)]
    Disk(#[from] descartes_store::IoError),
}

/// Names the index in an error of the database.
pub(crate) fn at(path: &Path) -> impl Fn(rusqlite::Error) -> QueryError + use<> {
    let path = path.display().to_string();
    move |source| QueryError::Index {
        path: path.clone(),
        source,
    }
}
