//! A person's question.

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Error};

use crate::QueryError;

/// What a question came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Its rows, each with a cell for every column.
    pub rows: Vec<Vec<Value>>,
}

pub(crate) fn ask(connection: &Connection, sql: &str) -> Result<Answer, QueryError> {
    let mut statement = connection.prepare(sql).map_err(wrong)?;
    if !statement.readonly() {
        return Err(QueryError::Changes);
    }
    if statement.column_count() == 0 {
        return Err(QueryError::NoQuestion);
    }
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut found = statement.query([]).map_err(wrong)?;
    let mut rows = Vec::new();
    while let Some(row) = found.next().map_err(wrong)? {
        let cells = (0..columns.len()).map(|at| row.get_ref(at).map(cell));
        rows.push(cells.collect::<Result<_, _>>().map_err(wrong)?);
    }
    Ok(Answer { columns, rows })
}

fn cell(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}

fn wrong(error: Error) -> QueryError {
    match error {
        Error::SqlInputError { msg, offset, .. } => QueryError::Sql {
            message: msg,
            offset: usize::try_from(offset).ok(),
        },
        Error::MultipleStatement => QueryError::Sql {
            message: "more than one statement".to_owned(),
            offset: None,
        },
        Error::SqliteFailure(code, _) if code.code == rusqlite::ErrorCode::ReadOnly => {
            QueryError::Changes
        }
        other => QueryError::Sql {
            message: other.to_string(),
            offset: None,
        },
    }
}
