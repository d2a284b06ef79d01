//! The one writer of a journal.

use super::reserve::Reserve;
use super::scan::{Scan, scan};
use super::{JournalError, Recovered, line};
use crate::debug_log::variant;
use crate::ops::{self, IoError, Sync};
use crate::safe_open::{self, Options};
use descartes_kernel::event::{Decided, Durability, Record};
use jiff::Timestamp;
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use tracing::{debug, warn};

/// Lines that wait in memory are written at the latest when they reach this size.
const BUFFER: usize = 64 << 10;

/// Whether what was written before can be built on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriterTrust {
    Yes,
    /// A sync failed: what was written since the one before may be lost, and no later sync would tell.
    NotSynced,
    /// Something else stands in the file, or half a line.
    Foreign,
}

#[derive(PartialEq)]
enum When {
    Now,
    Later,
}

/// An open journal. Memory does not grow with its length.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Bytes in the file that are ours; anything else there is foreign.
    len: u64,
    next_seq: u64,
    pending: Vec<u8>,
    reserve: Reserve,
    trust: WriterTrust,
    /// Its file was deleted, and made anew since this was last asked.
    made_anew: bool,
}

impl Journal {
    /// Makes a new, empty journal; its folder is made and synced as well.
    pub fn create(path: &Path) -> Result<Self, JournalError> {
        if let Some(folder) = path.parent() {
            ops::make_dir(folder, Sync::Durable)?;
        }
        let file = ops::open(Options::new().read().append().create_new(), path)
            .map_err(ops::at("create", path))?;
        if let Some(folder) = path.parent() {
            ops::sync_dir(folder)?;
        }
        let scan = Scan {
            good: 0,
            next_seq: 0,
            recovered: Recovered::default(),
        };
        Self::from_scan(path, file, &scan)
    }

    /// Opens a journal to go on with it, giving each record to `each` in order.
    ///
    /// A torn end is cut off. Damage elsewhere and newer formats are errors, and change nothing.
    pub fn open_with(
        path: &Path,
        each: impl FnMut(Record),
    ) -> Result<(Self, Recovered), JournalError> {
        let file =
            ops::open(Options::new().read().append(), path).map_err(ops::at("open", path))?;
        let scan = scan(path, &file, each)?;
        let mut journal = Self::from_scan(path, file, &scan)?;
        journal
            .mend(&scan.recovered)
            .map_err(ops::at("mend", path))?;
        Ok((journal, scan.recovered))
    }

    /// As [`open_with`](Self::open_with), with all records in memory.
    pub fn open(path: &Path) -> Result<(Self, Vec<Record>, Recovered), JournalError> {
        let mut records = Vec::new();
        let (journal, recovered) = Self::open_with(path, |record| records.push(record))?;
        Ok((journal, records, recovered))
    }

    fn from_scan(path: &Path, file: File, scan: &Scan) -> Result<Self, JournalError> {
        let reserve = Reserve::beside(path);
        reserve.fill()?;
        Ok(Self {
            path: path.to_owned(),
            file,
            len: scan.good,
            next_seq: scan.next_seq,
            pending: Vec::with_capacity(4 << 10),
            reserve,
            trust: WriterTrust::Yes,
            made_anew: false,
        })
    }

    /// Cuts what is not a whole line, and ends the last one.
    fn mend(&mut self, found: &Recovered) -> std::io::Result<()> {
        if found.cut.is_none() && !found.line_end_added {
            return Ok(());
        }
        ops::set_len(&self.file, self.len)?;
        if found.line_end_added {
            ops::write_all(&self.file, b"\n")?;
            self.len += 1;
        }
        ops::sync_data(&self.file)
    }

    /// The number that the next line gets.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Where the journal lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many bytes the journal has, those in memory included.
    pub fn bytes(&self) -> u64 {
        self.len + self.pending.len() as u64
    }

    /// Looks whether the journal is in its place, and puts it back where somebody deleted it.
    pub fn keep(&mut self) -> Result<(), JournalError> {
        self.check_file()
    }

    /// Whether it was made anew since this was last asked: what lay beside it is gone as well.
    pub fn take_made_anew(&mut self) -> bool {
        std::mem::take(&mut self.made_anew)
    }

    /// Adds one event and returns its number. When this fails, the event is not in the journal,
    /// except that after a failed sync it may be.
    pub fn append(
        &mut self,
        at: Timestamp,
        event: &Decided,
        durability: Durability,
    ) -> Result<u64, JournalError> {
        let seq = self.append_with(at, event, When::Now)?;
        if durability == Durability::Power {
            self.sync()?;
        }
        Ok(seq)
    }

    /// Adds one event that may be lost with this process: it is written with the next one.
    pub fn append_later(&mut self, at: Timestamp, event: &Decided) -> Result<u64, JournalError> {
        self.append_with(at, event, When::Later)
    }

    /// The last words of a loop on a full disk: gives the reserve back and appends durably. Also after
    /// a sync that failed: nobody goes on behind them.
    pub fn append_from_reserve(
        &mut self,
        at: Timestamp,
        event: &Decided,
    ) -> Result<u64, JournalError> {
        self.reserve.release()?;
        let trust = self.trust;
        if trust == WriterTrust::NotSynced {
            self.trust = WriterTrust::Yes;
        }
        let appended = self.append(at, event, Durability::Power);
        if self.trust == WriterTrust::Yes {
            self.trust = trust;
        }
        appended
    }

    fn append_with(
        &mut self,
        at: Timestamp,
        event: &Decided,
        when: When,
    ) -> Result<u64, JournalError> {
        if self.trust != WriterTrust::Yes {
            return Err(JournalError::Poisoned {
                path: self.path.clone(),
            });
        }
        let seq = self.next_seq;
        let before = self.pending.len();
        line::encode(&mut self.pending, seq, at, &**event).map_err(JournalError::Encode)?;
        let write_now = when == When::Now || self.pending.len() >= BUFFER;
        if write_now && let Err(error) = self.write_pending() {
            self.pending.truncate(before);
            return Err(error);
        }
        self.next_seq = seq + 1;
        debug!(seq, event = %variant(&**event), "event appended");
        Ok(seq)
    }

    /// Writes what waits in memory.
    pub fn flush(&mut self) -> Result<(), JournalError> {
        match self.pending.is_empty() {
            true => Ok(()),
            false => self.write_pending(),
        }
    }

    /// Brings everything appended so far through a power cut. Where that fails nothing more is
    /// appended: systems forget what they could not write, and the next sync would succeed.
    pub fn sync(&mut self) -> Result<(), JournalError> {
        self.flush()?;
        ops::sync_data(&self.file).map_err(|error| {
            self.trust = WriterTrust::NotSynced;
            self.failed("sync", error)
        })
    }

    fn write_pending(&mut self) -> Result<(), JournalError> {
        self.check_file()?;
        if let Err(error) = ops::write_all(&self.file, &self.pending) {
            // Part of a line may be in the file: take it out, or never write behind it.
            if ops::set_len(&self.file, self.len).is_err() {
                self.trust = WriterTrust::Foreign;
            }
            return Err(self.failed("write", error));
        }
        self.len += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Agents delete and edit files; what we write must go where readers look, and after
    /// nothing but our own lines.
    fn check_file(&mut self) -> Result<(), JournalError> {
        let ours = self
            .file
            .metadata()
            .map_err(ops::at("inspect", &self.path))?;
        if ours.len() != self.len {
            let what = format!("{} bytes where {} were expected", ours.len(), self.len);
            return Err(self.foreign(what));
        }
        match safe_open::metadata(&self.path) {
            Ok(there) if same_file(&there, &ours) => Ok(()),
            Ok(_) => Err(self.foreign("it was replaced by another file".to_owned())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(self.make_anew()?),
            Err(error) => Err(IoError::new("inspect", &self.path, error).into()),
        }
    }

    fn foreign(&mut self, what: String) -> JournalError {
        self.trust = WriterTrust::Foreign;
        warn!(path = %self.path.display(), what, "journal was changed by others");
        JournalError::Foreign {
            path: self.path.clone(),
            what,
        }
    }

    /// The name is gone but the file is not while we hold it: copy it to where it was.
    fn make_anew(&mut self) -> Result<(), IoError> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        ops::make_dir(folder, Sync::Durable)?;
        let staged = ops::beside(&self.path, ".new");
        ops::remove_file(&staged)?;
        let copy = ops::open(Options::new().read().append().create_new(), &staged)
            .map_err(ops::at("create", &staged))?;
        self.copy_to(&copy).map_err(ops::at("write", &staged))?;
        ops::rename(&staged, &self.path)?;
        ops::sync_dir(folder)?;
        warn!(path = %self.path.display(), "journal was deleted and is back");
        self.file = copy;
        self.made_anew = true;
        self.reserve.fill()
    }

    fn copy_to(&self, copy: &File) -> std::io::Result<()> {
        let mut chunk = vec![0; 256 << 10];
        let mut done = 0;
        while done < self.len {
            let want = chunk.len().min((self.len - done) as usize);
            self.file.read_exact_at(&mut chunk[..want], done)?;
            ops::write_all(copy, &chunk[..want])?;
            done += want as u64;
        }
        ops::sync_data(copy)
    }

    fn failed(&self, action: &'static str, error: std::io::Error) -> JournalError {
        warn!(path = %self.path.display(), action, %error, "journal failed");
        let full = ops::is_full(&error);
        let error = IoError::new(action, &self.path, error);
        match full {
            true => JournalError::Full(error),
            false => JournalError::Io(error),
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self.trust == WriterTrust::Yes {
            // Nobody is left to tell; buffered lines are those that may be lost.
            let _ = self.flush();
        }
    }
}

pub(super) fn same_file(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}
