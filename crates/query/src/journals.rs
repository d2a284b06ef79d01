//! Brings the tables up to where the journals are.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;

use descartes_store::catalog::{self, LoopEntry};
use descartes_store::journal::JournalReader;
use descartes_store::layout::StateRoot;
use rusqlite::{Connection, params};

use crate::QueryError;
use crate::at;
use crate::fold::Fold;

const TABLES: &str =
    "loops iterations runs gates tasks attempts waves waits commands events _journals";

#[derive(Clone, Copy, PartialEq, Eq)]
struct ReadPosition {
    inode: u64,
    offset: u64,
}

/// Reads what is new in every journal; gives what could not be read.
pub(crate) fn catch_up(
    connection: &Connection,
    root: &StateRoot,
) -> Result<Vec<String>, QueryError> {
    let sql = at(&root.index());
    let mut known = known(connection).map_err(&sql)?;
    let mut trouble = Vec::new();
    for entry in catalog::list(root)? {
        let before = known.remove(&entry.meta.id);
        let Ok(meta) = descartes_store::safe_open::metadata(&entry.dir.journal()) else {
            continue;
        };
        let same = before.filter(|read| read.inode == meta.ino() && read.offset <= meta.len());
        if let (Some(_), None) = (before, same) {
            // Made anew since: what was read is no longer what stands there.
            forget(connection, &entry.meta.id).map_err(&sql)?;
        }
        let from = same.map_or(0, |read| read.offset);
        if same.is_some() && from == meta.len() {
            continue;
        }
        match read(connection, &entry, from) {
            Ok(offset) => {
                let read = ReadPosition {
                    inode: meta.ino(),
                    offset,
                };
                remember(connection, &entry.meta.id, read).map_err(&sql)?;
            }
            Err(Trouble::Sql(error)) => return Err(sql(error)),
            Err(Trouble::Journal(words)) => {
                // Half a journal would answer as if it were the whole.
                forget(connection, &entry.meta.id).map_err(&sql)?;
                trouble.push(format!("loop {} is not in it: {words}", entry.meta.name));
            }
        }
    }
    for gone in known.keys() {
        forget(connection, gone).map_err(&sql)?;
    }
    Ok(trouble)
}

enum Trouble {
    Sql(rusqlite::Error),
    Journal(String),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

fn read(connection: &Connection, entry: &LoopEntry, from: u64) -> Result<u64, Trouble> {
    let journal =
        |error: descartes_store::journal::JournalError| Trouble::Journal(error.to_string());
    let mut reader = JournalReader::open_at(&entry.dir.journal(), from).map_err(journal)?;
    let fold = Fold::new(connection, entry);
    let mut failed = None;
    reader
        .for_each_new(|record| {
            if failed.is_none() {
                failed = fold.take(&record).err();
            }
        })
        .map_err(journal)?;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(reader.offset()),
    }
}

fn known(connection: &Connection) -> rusqlite::Result<HashMap<String, ReadPosition>> {
    let mut statement = connection.prepare("select loop_id, inode, offset from _journals")?;
    let rows = statement.query_map([], |row| {
        let read = ReadPosition {
            inode: row.get::<_, i64>(1)? as u64,
            offset: row.get::<_, i64>(2)? as u64,
        };
        Ok((row.get(0)?, read))
    })?;
    rows.collect()
}

fn remember(connection: &Connection, id: &str, read: ReadPosition) -> rusqlite::Result<()> {
    connection
        .prepare_cached("insert or replace into _journals values (?1, ?2, ?3)")?
        .execute(params![id, read.inode as i64, read.offset as i64])
        .map(drop)
}

fn forget(connection: &Connection, id: &str) -> rusqlite::Result<()> {
    for table in TABLES.split(' ') {
        connection.execute(&format!("delete from {table} where loop_id = ?1"), [id])?;
    }
    Ok(())
}
