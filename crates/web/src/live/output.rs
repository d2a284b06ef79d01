//! The end of what an agent prints: its words and a line for each tool, cleaned and masked. Only the
//! last lines are held.

use std::collections::VecDeque;

use descartes_agents::reader::Source;
use descartes_client::logs::{
    LogPosition, Prose, RunLog, Thoughts, Tools, Transcript, TranscriptEntry,
};
use descartes_text::display::{self, Colours};
use descartes_text::units::{cut_str, show_size};

/// Lines that are held.
const LINES: usize = 400;
/// Bytes of a line that are shown; the log holds them all.
const LONGEST_LINE: usize = 2 << 10;
/// A line without an end is ended here.
const OPEN_LINE: usize = 16 << 10;
/// Bytes of the end of a log that are read where nothing is followed.
const END: usize = 48 << 10;

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    Said,
    /// Standard error.
    Error,
    /// Our own words: a run begins, something was left out.
    Mark,
}

impl LineKind {
    pub fn class(self) -> &'static str {
        match self {
            Self::Said => "",
            Self::Error => "err",
            Self::Mark => "mark",
        }
    }
}

/// The last lines, numbered from the first that was ever held.
#[derive(Clone, Debug, Default)]
pub struct OutputTail {
    first: u64,
    lines: VecDeque<(LineKind, String)>,
    /// The line that is being printed.
    open: Option<(LineKind, String)>,
}

impl OutputTail {
    /// The number of the first line that may still change.
    pub fn settled(&self) -> u64 {
        self.first + self.lines.len() as u64
    }

    /// Lines from this number on, as far as they are held, and the number of the first of them.
    pub fn from(&self, number: u64) -> (u64, impl Iterator<Item = &(LineKind, String)>) {
        let begin = number.clamp(self.first, self.settled());
        let skip = usize::try_from(begin - self.first).unwrap_or(0);
        (begin, self.lines.iter().skip(skip).chain(&self.open))
    }

    fn push(&mut self, kind: LineKind, text: &str) {
        if self.lines.len() == LINES {
            self.lines.pop_front();
            self.first += 1;
        }
        self.lines.push_back((kind, shown(text)));
    }
}

fn shown(line: &str) -> String {
    // What is drawn over was not meant to be read.
    let line = line.trim_end_matches('\r');
    let line = line.rsplit_once('\r').map_or(line, |(_, last)| last);
    let clean = display::text(line, Colours::Drop);
    let clean = clean.trim_end_matches('\n').replace('\n', " ");
    match cut_str(&clean, LONGEST_LINE) {
        cut if cut.len() < clean.len() => format!("{cut} …"),
        whole => whole.to_owned(),
    }
}

/// Turns bytes of a run into lines.
pub struct OutputReader {
    tail: OutputTail,
    run: Option<u64>,
    transcript: Option<Transcript>,
    prose: Prose,
    /// What was begun and not ended, of the words and of each plain stream.
    words: String,
    held: [Vec<u8>; 2],
    /// Whether a stream was entered in the middle of a line.
    amid: [bool; 2],
}

impl Default for OutputReader {
    fn default() -> Self {
        Self {
            tail: OutputTail::default(),
            run: None,
            transcript: None,
            prose: Prose::new(Thoughts::Hidden, Tools::WhenCalled),
            words: String::new(),
            held: Default::default(),
            amid: [false; 2],
        }
    }
}

impl OutputReader {
    /// The end of the last run's log, for a loop in which no agent is at work.
    pub fn read_last(&mut self, log: &RunLog) {
        self.mark(&format!("iteration {}", log.iteration));
        for source in [Source::Stdout, Source::Stderr] {
            let window = log.window(source, LogPosition::End, END);
            for line in window.into_iter().flat_map(|window| window.lines) {
                self.tail.push(kind(source), &line.text);
            }
        }
    }

    pub fn tail(&mut self) -> OutputTail {
        let open = match (self.words.is_empty(), &self.held) {
            (false, _) => Some((LineKind::Said, shown(&self.words))),
            (true, [out, _]) if !out.is_empty() => {
                Some((LineKind::Said, shown(&String::from_utf8_lossy(out))))
            }
            (true, [_, err]) if !err.is_empty() => {
                Some((LineKind::Error, shown(&String::from_utf8_lossy(err))))
            }
            _ => None,
        };
        self.tail.open = open;
        self.tail.clone()
    }

    pub fn output(&mut self, log: &RunLog, source: Source, bytes: &[u8]) {
        self.enter(log);
        let at = source as usize;
        let bytes = match std::mem::take(&mut self.amid[at]) {
            false => bytes,
            true => match bytes.iter().position(|byte| *byte == b'\n') {
                Some(end) => &bytes[end + 1..],
                None => {
                    self.amid[at] = true;
                    return;
                }
            },
        };
        match (&mut self.transcript, source) {
            (Some(transcript), Source::Stdout) => {
                let mut told = Vec::<TranscriptEntry>::new();
                transcript.push(bytes, &mut told);
                let words = &mut self.words;
                told.iter().for_each(|entry| self.prose.write(entry, words));
                self.settle_words();
            }
            _ => self.plain(source, bytes),
        }
    }

    pub fn skipped(&mut self, log: &RunLog, source: Source, bytes: u64) {
        self.enter(log);
        self.end_lines();
        self.mark(&format!("{} left out here", show_size(bytes)));
        if source == Source::Stdout && self.transcript.is_some() {
            self.transcript = log.transcript();
        }
        self.amid[source as usize] = true;
    }

    /// A run has ended: what it began to say is all that it said.
    pub fn end_lines(&mut self) {
        let words = std::mem::take(&mut self.words);
        if !words.is_empty() {
            self.tail.push(LineKind::Said, &words);
        }
        for source in [Source::Stdout, Source::Stderr] {
            let line = std::mem::take(&mut self.held[source as usize]);
            if !line.is_empty() {
                let text = String::from_utf8_lossy(&line).into_owned();
                self.tail.push(kind(source), &text);
            }
        }
    }

    fn enter(&mut self, log: &RunLog) {
        if self.run == Some(log.run) {
            return;
        }
        self.end_lines();
        self.run = Some(log.run);
        self.amid = [false; 2];
        self.prose = Prose::new(Thoughts::Hidden, Tools::WhenCalled);
        self.transcript = log.transcript();
        self.mark(&format!("iteration {}", log.iteration));
    }

    fn mark(&mut self, text: &str) {
        self.tail.push(LineKind::Mark, text);
    }

    fn settle_words(&mut self) {
        while let Some(end) = self.words.find('\n') {
            let line: String = self.words.drain(..=end).collect();
            self.tail.push(LineKind::Said, line.trim_end_matches('\n'));
        }
        if self.words.len() > OPEN_LINE {
            let line = std::mem::take(&mut self.words);
            self.tail.push(LineKind::Said, &line);
        }
    }

    fn plain(&mut self, source: Source, bytes: &[u8]) {
        let at = source as usize;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.held[at].extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.held[at].len() > OPEN_LINE {
                let line = std::mem::take(&mut self.held[at]);
                let text = String::from_utf8_lossy(&line).into_owned();
                self.tail.push(kind(source), text.trim_end_matches('\n'));
            }
        }
    }
}

fn kind(source: Source) -> LineKind {
    match source {
        Source::Stdout => LineKind::Said,
        Source::Stderr => LineKind::Error,
    }
}
