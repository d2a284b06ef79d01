//! A copy of a loop folder of another machine: journal, prompts and logs, byte for byte.
//!
//! [`FolderSource`] is where the loop runs: it gives out pieces of what a copy lacks. [`FolderCopy`] takes
//! them. Both are asked with what the copy has, so that either side may go away and come back.

use crate::layout::LoopDir;
use crate::ops::{self, IoError, Sync};
use crate::safe_open::{self, Options};
use descartes_kernel::fleet::{
    CopiedFile, JournalCopy, TAIL_BYTES, before_run_end, copied_file, journal_copy,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const JOURNAL: &str = "journal.jsonl";
/// Read at once when the end of the last whole line is looked for.
const BLOCK: u64 = 64 << 10;

/// What a copy has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyEnd {
    /// Bytes of the journal.
    pub journal: u64,
    /// The last of them.
    pub tail: Vec<u8>,
    /// By name: bytes of the other files; of those that are written as a whole, a checksum.
    pub files: BTreeMap<String, u64>,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderPiece {
    pub file: String,
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// What a copy lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FolderNews {
    /// Pieces in their order; none: the copy has all. Output comes before the records that end its run.
    Pieces(Vec<FolderPiece>),
    /// The journal is not the one that was copied.
    OtherJournal,
}

/// The folder of a loop that runs here and is copied elsewhere.
#[derive(Debug)]
pub struct FolderSource {
    dir: LoopDir,
}

impl FolderSource {
    pub fn new(dir: LoopDir) -> Self {
        Self { dir }
    }

    /// What a copy lacks: at most about `most` bytes of the journal, and as many of the rest.
    pub fn news(&self, copy: &CopyEnd, most: u64) -> io::Result<FolderNews> {
        // Read first: all output before its last line is in the logs by now.
        let Some(mut journal) = self.journal_piece(copy, most)? else {
            return Ok(FolderNews::OtherJournal);
        };
        let mut pieces = Vec::new();
        let mut left = most;
        let mut fits = true;
        for (name, path) in self.files()? {
            let has = copy.files.get(&name).copied();
            let (piece, is_all) = file_piece(name, &path, has, left)?;
            fits &= is_all;
            if let Some(piece) = piece {
                left = left.saturating_sub(piece.bytes.len() as u64);
                pieces.push(piece);
            }
        }
        if !fits {
            journal.bytes.truncate(before_run_end(&journal.bytes));
        }
        if !journal.bytes.is_empty() {
            pieces.push(journal);
        }
        Ok(FolderNews::Pieces(pieces))
    }

    /// The folders in which something may be written: those of older runs are left as they are.
    pub fn folders(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.dir.path().to_owned(), self.dir.runs()];
        let runs = names_in(&self.dir.runs()).unwrap_or_default();
        folders.extend(runs.last().map(|run| self.dir.runs().join(run)));
        folders
    }

    /// What stands behind the copy, up to the end of the last whole line: half a line may be taken out again.
    fn journal_piece(&self, copy: &CopyEnd, most: u64) -> io::Result<Option<FolderPiece>> {
        let path = self.dir.journal();
        let file = safe_open::open_read(&path)?;
        let end = end_of_lines(&file)?;
        let tail = copy.tail.len() as u64;
        let there = match copy.journal.checked_sub(tail) {
            Some(begin) if copy.journal <= end => Some(read_file(&file, begin, tail)?),
            _ => None,
        };
        Ok(
            match journal_copy(copy.journal, &copy.tail, end, there.as_deref()) {
                JournalCopy::Other => None,
                JournalCopy::Continues => {
                    let mut bytes = read_file(&file, copy.journal, (end - copy.journal).min(most))?;
                    // Lines stay together, unless one is longer than a piece.
                    if let Some(last) = bytes.iter().rposition(|byte| *byte == b'\n') {
                        bytes.truncate(last + 1);
                    }
                    Some(FolderPiece {
                        file: JOURNAL.to_owned(),
                        offset: copy.journal,
                        bytes,
                    })
                }
            },
        )
    }

    /// The files beside the journal, oldest runs first.
    fn files(&self) -> io::Result<Vec<(String, PathBuf)>> {
        let mut files = Vec::new();
        let mut add = |folder: String, path: PathBuf| -> io::Result<()> {
            for name in names_in(&path)? {
                let file = format!("{folder}/{name}");
                if copied_file(&file).is_some() {
                    files.push((file, path.join(name)));
                }
            }
            Ok(())
        };
        add("prompts".to_owned(), self.dir.prompts())?;
        let runs = self.dir.runs();
        for run in names_in(&runs)? {
            add(format!("runs/{run}"), runs.join(&run))?;
        }
        Ok(files)
    }
}

/// What a copy lacks of a file; `None` where it has all. And whether it has all with that.
fn file_piece(
    name: String,
    path: &Path,
    has: Option<u64>,
    most: u64,
) -> io::Result<(Option<FolderPiece>, bool)> {
    let file = match safe_open::open_read(path) {
        // Removed to make room, since it was listed.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok((None, true)),
        other => other?,
    };
    let length = file.metadata()?.len();
    let piece = |offset, bytes| FolderPiece {
        file: name.clone(),
        offset,
        bytes,
    };
    if copied_file(&name) == Some(CopiedFile::Whole) {
        let bytes = read_file(&file, 0, length)?;
        let is_new = has != Some(checksum(&bytes));
        return Ok((is_new.then(|| piece(0, bytes)), true));
    }
    if has == Some(length) {
        return Ok((None, true));
    }
    // A log that was made anew is shorter than its copy.
    let offset = has.filter(|has| *has <= length).unwrap_or(0);
    if most == 0 && length > offset {
        return Ok((None, false));
    }
    let bytes = read_file(&file, offset, (length - offset).min(most))?;
    let is_all = offset + bytes.len() as u64 == length;
    Ok((Some(piece(offset, bytes)), is_all))
}

fn checksum(bytes: &[u8]) -> u64 {
    u64::from(crc32fast::hash(bytes))
}

/// Names in their order; none where there is no such folder.
fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    let names = match safe_open::names_in(folder) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        other => other?,
    };
    let mut names: Vec<String> = names
        .into_iter()
        .filter_map(|name| name.into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

fn read_file(file: &File, offset: u64, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(most).unwrap_or(usize::MAX)];
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(read);
    Ok(bytes)
}

/// The byte behind the last line end.
fn end_of_lines(file: &File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    while end > 0 {
        let begin = end.saturating_sub(BLOCK);
        let block = read_file(file, begin, end - begin)?;
        if let Some(last) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(begin + last as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

/// Why a piece was not taken.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// It is no file that is copied, or does not begin where the copy ends.
    #[error("a piece of `{0}` that does not fit")]
    Unfit(String),
    /// The system refused.
    #[error(transparent)]
    Io(#[from] IoError),
}

/// A copy of a loop folder of another machine. Whoever has it holds the lock of the loop.
#[derive(Debug)]
pub struct FolderCopy {
    dir: LoopDir,
    journal: File,
    end: CopyEnd,
    /// Bytes of logs that it may still take.
    room: u64,
}

impl FolderCopy {
    /// Goes on with the copy in a folder, or begins one there. Beyond `most_logs` bytes of logs nothing
    /// more of them is taken.
    pub fn open(dir: LoopDir, most_logs: u64) -> Result<Self, IoError> {
        ops::make_dir(dir.path(), Sync::Lazy)?;
        let path = dir.journal();
        let journal = ops::open(Options::new().read().append().create(), &path)
            .map_err(ops::at("open", &path))?;
        let source = FolderSource::new(dir.clone());
        let list = || -> io::Result<CopyEnd> {
            let length = journal.metadata()?.len();
            let tail = length.min(TAIL_BYTES as u64);
            let mut files = BTreeMap::new();
            for (name, path) in source.files()? {
                let has = match copied_file(&name) {
                    Some(CopiedFile::Whole) => checksum(&safe_open::read(&path)?),
                    _ => safe_open::metadata(&path)?.len(),
                };
                files.insert(name, has);
            }
            Ok(CopyEnd {
                journal: length,
                tail: read_file(&journal, length - tail, tail)?,
                files,
            })
        };
        let end = list().map_err(ops::at("read", dir.path()))?;
        let growing = end.files.iter();
        let growing = growing.filter(|(name, _)| copied_file(name) == Some(CopiedFile::Growing));
        let used: u64 = growing.map(|(_, bytes)| bytes).sum();
        Ok(Self {
            dir,
            journal,
            end,
            room: most_logs.saturating_sub(used),
        })
    }

    /// The folder.
    pub fn dir(&self) -> &LoopDir {
        &self.dir
    }

    /// What it has.
    pub fn end(&self) -> &CopyEnd {
        &self.end
    }

    /// Takes a piece.
    pub fn take(&mut self, piece: &FolderPiece) -> Result<(), CopyError> {
        match copied_file(&piece.file) {
            None => Err(CopyError::Unfit(piece.file.clone())),
            Some(CopiedFile::Journal) => self.take_journal(piece),
            Some(CopiedFile::Growing) => self.take_growing(piece),
            Some(CopiedFile::Whole) => {
                let path = self.dir.path().join(&piece.file);
                ops::replace(&path, &piece.bytes, Sync::Lazy)?;
                let sum = checksum(&piece.bytes);
                self.end.files.insert(piece.file.clone(), sum);
                Ok(())
            }
        }
    }

    fn take_journal(&mut self, piece: &FolderPiece) -> Result<(), CopyError> {
        if piece.offset != self.end.journal {
            return Err(CopyError::Unfit(piece.file.clone()));
        }
        let path = self.dir.journal();
        ops::write_all(&self.journal, &piece.bytes).map_err(ops::at("write", &path))?;
        self.end.journal += piece.bytes.len() as u64;
        self.end.tail.extend(&piece.bytes);
        let extra = self.end.tail.len().saturating_sub(TAIL_BYTES);
        self.end.tail.drain(..extra);
        Ok(())
    }

    fn take_growing(&mut self, piece: &FolderPiece) -> Result<(), CopyError> {
        let has = self.end.files.get(&piece.file).copied().unwrap_or(0);
        if piece.offset > has {
            return Err(CopyError::Unfit(piece.file.clone()));
        }
        let end = piece.offset + piece.bytes.len() as u64;
        let grows = end.saturating_sub(has);
        if grows > self.room {
            // It counts as copied: nobody asks for it again.
            self.end.files.insert(piece.file.clone(), end);
            return Ok(());
        }
        let path = self.dir.path().join(&piece.file);
        if let Some(folder) = path.parent() {
            ops::make_dir(folder, Sync::Lazy)?;
        }
        let file =
            ops::open(Options::new().write().create(), &path).map_err(ops::at("create", &path))?;
        let write = || {
            if piece.offset < has {
                ops::set_len(&file, piece.offset)?;
            }
            ops::write_all_at(&file, &piece.bytes, piece.offset)
        };
        write().map_err(ops::at("write", &path))?;
        self.room -= grows;
        self.end.files.insert(piece.file.clone(), end);
        Ok(())
    }
}
