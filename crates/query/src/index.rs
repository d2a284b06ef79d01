//! The file that holds the tables.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use descartes_store::layout::StateRoot;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use tracing::{debug, warn};

use crate::ask::{Answer, ask};
use crate::{QueryError, SCHEMA, at, journals};

/// Raised with every change of the tables: an index of another version is made anew.
const VERSION: i64 = 2;

/// How far each journal has been read.
const JOURNALS: &str = "create table _journals (\
    loop_id text primary key, inode integer not null, offset integer not null);\
    create index gates_of on gates (loop_id, iteration);\
    create index attempts_of on attempts (loop_id, task);\
    create index waits_of on waits (loop_id);\
    create index commands_of on commands (loop_id)";

/// Another process may be catching up.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(20);

/// The tables over all journals of a state root.
#[derive(Debug)]
pub struct Index {
    connection: Connection,
    root: StateRoot,
}

impl Index {
    /// Opens the index of a state root and catches up with its journals. Gives what could not be
    /// read. An index that is damaged or of another version is made anew; where the folder cannot
    /// be written, the tables are held in memory.
    pub fn open(root: &StateRoot) -> Result<(Self, Vec<String>), QueryError> {
        match Self::open_file(root) {
            Err(QueryError::Index { source, .. }) if is_damage(&source) => {
                warn!(path = %root.index().display(), error = %source, "index rebuilt");
                remove(&root.index());
                Self::open_file(root)
            }
            Err(QueryError::Index { source, .. }) if is_refusal(&source) => {
                warn!(path = %root.index().display(), error = %source, "index held in memory");
                let connection = Connection::open_in_memory().map_err(at(&root.index()))?;
                Self::catch_up(connection, root)
            }
            other => other,
        }
    }

    fn open_file(root: &StateRoot) -> Result<(Self, Vec<String>), QueryError> {
        let path = root.index();
        if !root.loops().is_dir() {
            // No loop was ever started here: there is nothing to index, and nothing is written.
            let connection = Connection::open_in_memory().map_err(at(&path))?;
            return Self::catch_up(connection, root);
        }
        let flags = OpenFlags::default() & !OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(&path, flags).map_err(at(&path))?;
        make_private(&path);
        connection
            .busy_timeout(CATCH_UP_TIMEOUT)
            .map_err(at(&path))?;
        // Everything in it can be read again from the journals: a power cut may cost it.
        connection
            .pragma_update(None, "synchronous", "off")
            .map_err(at(&path))?;
        Self::catch_up(connection, root)
    }

    fn catch_up(
        mut connection: Connection,
        root: &StateRoot,
    ) -> Result<(Self, Vec<String>), QueryError> {
        let (path, began) = (root.index(), Instant::now());
        let trouble = {
            let change = connection
                .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
                .map_err(at(&path))?;
            make(&change).map_err(at(&path))?;
            let trouble = journals::catch_up(&change, root)?;
            change.commit().map_err(at(&path))?;
            trouble
        };
        let ms = began.elapsed().as_millis() as u64;
        debug!(path = %path.display(), unreadable = trouble.len(), ms, "index caught up");
        connection
            .pragma_update(None, "query_only", "on")
            .map_err(at(&path))?;
        let root = root.clone();
        Ok((Self { connection, root }, trouble))
    }

    /// Answers a question in SQL. Nothing can be changed by it.
    pub fn ask(&self, sql: &str) -> Result<Answer, QueryError> {
        ask(&self.connection, sql)
    }

    /// The file of the index.
    pub fn path(&self) -> PathBuf {
        self.root.index()
    }
}

/// Makes the tables, unless they are there.
fn make(connection: &Connection) -> rusqlite::Result<()> {
    let version: i64 = connection.query_row("pragma user_version", [], |row| row.get(0))?;
    if version == VERSION {
        return Ok(());
    }
    let names: Vec<String> = connection
        .prepare("select name from sqlite_master where type = 'table'")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for name in names {
        connection.execute_batch(&format!("drop table \"{}\"", name.replace('"', "\"\"")))?;
    }
    connection.execute_batch(SCHEMA)?;
    connection.execute_batch(JOURNALS)?;
    connection.pragma_update(None, "user_version", VERSION)
}

/// What agents said is nobody else's business.
fn make_private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o600);
    // On a file system without modes there is nothing to hide behind.
    drop(std::fs::set_permissions(path, mode));
}

fn remove(path: &Path) {
    let mut journal = path.as_os_str().to_owned();
    journal.push("-journal");
    for path in [path.to_owned(), journal.into()] {
        // One that cannot be removed is told by the next attempt to open it.
        drop(std::fs::remove_file(path));
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    ) || matches!(error, rusqlite::Error::SqliteFailure(code, _) if code.code == ErrorCode::Unknown)
}

fn is_refusal(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied)
    )
}
