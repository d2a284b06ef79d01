//! A piece of a log, as lines for a person, wherever in gigabytes it stands. Nothing but the
//! piece is read.

use std::fs::File;
use std::os::unix::fs::FileExt;

use descartes_agents::reader::Source;
use descartes_text::display::{self, Colours};
use descartes_text::units::cut_str;

use super::{Prose, RunLog, Thoughts, Tools, Transcript, TranscriptEntry};
use crate::ClientError;
use crate::error::at;

/// Bytes of a line that are shown; the log holds them all.
const LONGEST_LINE: usize = 2 << 10;

/// Which piece of a log is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPosition {
    /// From the line at this byte on.
    From(u64),
    /// Up to the line at this byte.
    Before(u64),
    /// The end of the log.
    End,
}

/// A line for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The byte of the log at which what it shows begins.
    pub offset: u64,
    /// What it shows.
    pub text: String,
}

/// A piece of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogWindow {
    /// The byte at which it begins.
    pub begin: u64,
    /// The byte behind its last one.
    pub end: u64,
    /// Bytes in the log when it was read.
    pub size: u64,
    pub lines: Vec<LogLine>,
}

impl RunLog {
    /// Reads a piece of about `most` bytes and makes lines of it: what was said, for an agent
    /// that is understood; else the text, safe and masked. A log that is not there yet is empty.
    pub fn window(
        &self,
        source: Source,
        place: LogPosition,
        most: usize,
    ) -> Result<LogWindow, ClientError> {
        self.check()?;
        let path = self.path(source);
        let file = match descartes_store::safe_open::open_read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(LogWindow::default());
            }
            other => other.map_err(at("read", &path))?,
        };
        let size = file.metadata().map_err(at("read", &path))?.len();
        let (mut begin, end) = match place {
            LogPosition::From(from) => (from.min(size), from.saturating_add(most as u64).min(size)),
            LogPosition::Before(end) => (end.min(size).saturating_sub(most as u64), end.min(size)),
            LogPosition::End => (size.saturating_sub(most as u64), size),
        };
        // One byte more tells whether the piece begins with a line.
        let look_back = u64::from(begin > 0);
        let mut bytes = vec![0; usize::try_from(end - begin + look_back).unwrap_or(0)];
        let read = fill(&file, &mut bytes, begin - look_back).map_err(at("read", &path))?;
        bytes.truncate(read);
        let mut piece = &bytes[..];
        if look_back == 1 {
            // A line longer than the piece is shown from where the piece begins.
            let skip = memchr_newline(piece).map_or(1, |place| place + 1);
            let skip = if skip >= piece.len() {
                1.min(piece.len())
            } else {
                skip
            };
            begin = begin - 1 + skip as u64;
            piece = &piece[skip..];
        }
        let at_end = begin + piece.len() as u64 >= size;
        if !at_end && let Some(last) = piece.iter().rposition(|byte| *byte == b'\n') {
            piece = &piece[..=last];
        }
        let lines = match self.parser().filter(|_| source == Source::Stdout) {
            Some(parser) => said(Transcript::new(parser), piece, begin),
            None => plain(piece, begin),
        };
        Ok(LogWindow {
            begin,
            end: begin + piece.len() as u64,
            size,
            lines,
        })
    }
}

fn memchr_newline(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

fn fill(file: &File, bytes: &mut [u8], from: u64) -> std::io::Result<usize> {
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], from + read as u64) {
            Ok(0) => break,
            Ok(n) => read += n,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

fn plain(piece: &[u8], begin: u64) -> Vec<LogLine> {
    let mut offset = begin;
    let mut lines = Vec::new();
    for line in piece.split_inclusive(|byte| *byte == b'\n') {
        let shown = &line[..line.len().min(LONGEST_LINE * 2)];
        // A carriage return within a line draws over it: each drawing is a line of its own.
        lines.extend(readable(shown).map(|text| LogLine { offset, text }));
        offset += line.len() as u64;
    }
    lines
}

fn said(mut transcript: Transcript, piece: &[u8], begin: u64) -> Vec<LogLine> {
    let mut prose = Prose::new(Thoughts::Hidden, Tools::WhenCalled);
    let (mut lines, mut open) = (Vec::<(u64, String)>::new(), false);
    let mut offset = begin;
    for line in piece.split_inclusive(|byte| *byte == b'\n') {
        let (mut told, mut text) = (Vec::<TranscriptEntry>::new(), String::new());
        transcript.push(line, &mut told);
        told.iter().for_each(|said| prose.write(said, &mut text));
        for part in text.split_inclusive('\n') {
            match lines.last_mut() {
                Some((_, last)) if open => last.push_str(part),
                _ => lines.push((offset, part.to_owned())),
            }
            open = !part.ends_with('\n');
        }
        offset += line.len() as u64;
    }
    let shown = lines.into_iter().flat_map(|(offset, text)| {
        let texts: Vec<String> = readable(text.as_bytes()).collect();
        texts.into_iter().map(move |text| LogLine { offset, text })
    });
    shown.collect()
}

/// The text of one line, made safe and masked.
fn readable(line: &[u8]) -> impl Iterator<Item = String> + use<> {
    let text = display::bytes(line, Colours::Drop).to_text();
    let lines: Vec<String> = text
        .trim_end_matches('\n')
        .split('\n')
        .map(|line| match cut_str(line, LONGEST_LINE) {
            cut if cut.len() < line.len() => format!("{cut} …"),
            whole => whole.replace('\t', "    "),
        })
        .collect();
    lines.into_iter()
}
