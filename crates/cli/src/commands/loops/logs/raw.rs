//! The bytes as they were printed.

use std::io;

use descartes_agents::reader::Source;
use descartes_client::logs::RunLog;

use super::lines::WholeLines;
use super::{ShowOutput, write};
use crate::args::loops::LogsArgs;
use crate::printer::Out;

/// Standard output goes to ours, standard error to ours; alone it goes to standard output.
pub(super) struct Raw {
    alone: bool,
    last: Option<LastLines>,
    /// Where others speak as well: those of each stream.
    lines: Option<[WholeLines; 2]>,
}

impl Raw {
    pub(super) fn new(args: &LogsArgs) -> Self {
        Self {
            alone: args.stderr,
            last: args.lines.map(LastLines::new),
            lines: None,
        }
    }

    fn take(&mut self, source: Source, bytes: &[u8]) -> io::Result<()> {
        match &mut self.last {
            Some(last) if source == Source::Stdout || self.alone => {
                last.push(bytes);
                Ok(())
            }
            _ => self.put(source, bytes),
        }
    }

    fn put(&self, source: Source, bytes: &[u8]) -> io::Result<()> {
        match source {
            Source::Stderr if !self.alone => write(io::stderr().lock(), bytes),
            _ => write(Out, bytes),
        }
    }
}

impl ShowOutput for Raw {
    fn task(&mut self, _: &str) {
        self.lines = Some(Default::default());
    }

    fn begin(&mut self, _: &RunLog) -> io::Result<()> {
        Ok(())
    }

    fn output(&mut self, source: Source, bytes: &[u8]) -> io::Result<()> {
        match &mut self.lines {
            Some(lines) => {
                let whole = lines[source as usize].push(bytes);
                self.take(source, &whole)
            }
            None => self.take(source, bytes),
        }
    }

    fn caught_up(&mut self) -> io::Result<()> {
        let rest = self.last.take().map(|mut last| last.take());
        write(Out, &rest.unwrap_or_default())
    }

    fn end(&mut self) -> io::Result<()> {
        for source in [Source::Stdout, Source::Stderr] {
            let lines = self.lines.as_mut();
            let left = lines.map(|lines| lines[source as usize].finish());
            self.take(source, &left.unwrap_or_default())?;
        }
        let rest = self.last.as_mut().map(LastLines::take).unwrap_or_default();
        write(Out, &rest)
    }
}

/// The last lines of what is pushed, in bounded memory.
pub(super) struct LastLines {
    most: usize,
    lines: std::collections::VecDeque<Vec<u8>>,
    open: bool,
}

/// A line without an end is cut here.
const LONGEST: usize = 1 << 20;

impl LastLines {
    pub(super) fn new(most: u32) -> Self {
        Self {
            most: most as usize,
            lines: std::collections::VecDeque::new(),
            open: false,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match self.lines.back_mut().filter(|_| self.open) {
                Some(line) => {
                    line.extend_from_slice(piece);
                    let over = line.len().saturating_sub(LONGEST);
                    line.drain(..over);
                }
                None => self.lines.push_back(piece.to_vec()),
            }
            self.open = !piece.ends_with(b"\n");
            while self.lines.len() > self.most {
                self.lines.pop_front();
            }
            if self.lines.is_empty() {
                self.open = false;
            }
        }
    }

    pub(super) fn take(&mut self) -> Vec<u8> {
        self.open = false;
        std::mem::take(&mut self.lines)
            .into_iter()
            .flatten()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_however_they_come() {
        for size in 1..9 {
            let mut last = LastLines::new(2);
            for piece in b"one\ntwo\nthree\nfo".chunks(size) {
                last.push(piece);
            }
            assert_eq!(last.take(), b"three\nfo");
            assert_eq!(last.take(), b"");
        }
        let mut none = LastLines::new(0);
        none.push(b"x\ny");
        assert_eq!(none.take(), b"");
    }
}
