//! The view into a pipe or a file: the agent's bytes as they come, and lines of ours that
//! can be told from them.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use descartes_kernel::event::Record;
use descartes_kernel::reader::Source;
use descartes_kernel::state::{LoopState, Spent};
use jiff::tz::TimeZone;

use super::lines::Lines;
use super::live::skip_words;
use super::run::View;
use super::talk::{Role, Talk, opening, tell};
use super::words;
use crate::env::Stream;
use crate::style::{Paint, Tone};

/// Begins each line of ours.
pub const MARK: &str = "[descartes]";

/// The plain view.
pub struct Plain<O, E> {
    out: O,
    err: E,
    paint: Paint,
    /// Cleans what goes to a terminal.
    cleaner: Option<Lines>,
    /// Whether the last byte that was written ended a line.
    line_open: bool,
    /// When the use of tokens was told last.
    told_use: Option<Instant>,
    /// What is to be told of it when the agent's line has ended.
    untold: Option<Spent>,
    zone: TimeZone,
}

/// The use of tokens is told at most so often.
const USE_EVERY: Duration = Duration::from_secs(10);

impl<O: Write + Send, E: Write + Send> Plain<O, E> {
    /// `err` takes the agent's standard error; `leads_to` says where that goes.
    pub fn new(out: O, err: E, paint: Paint, leads_to: Stream) -> Self {
        let cleaner = (leads_to == Stream::Terminal).then(|| Lines::new(Paint::Colour));
        Self {
            out,
            err,
            paint,
            cleaner,
            line_open: false,
            told_use: None,
            untold: None,
            zone: TimeZone::system(),
        }
    }

    /// A line of ours.
    pub fn say(&mut self, talk: &Talk) -> io::Result<()> {
        self.end_line()?;
        let text = self.paint.text(talk.tone, &talk.text);
        match talk.role {
            Role::Heading | Role::Line => writeln!(self.out, "{MARK} {text}")?,
            Role::Quote => writeln!(self.out, "{MARK}   | {text}")?,
        }
        self.out.flush()
    }

    /// Tells what was used so far, between two lines of the agent and not too often.
    fn tell_use(&mut self) -> io::Result<()> {
        let soon = self.told_use.is_some_and(|at| at.elapsed() < USE_EVERY);
        let Some(spent) = self.untold.take_if(|_| !self.line_open && !soon) else {
            return Ok(());
        };
        let words = words::spent(&spent);
        if words.is_empty() {
            return Ok(());
        }
        self.told_use = Some(Instant::now());
        self.say(&Talk {
            role: Role::Line,
            tone: Tone::Dim,
            text: format!("used so far: {}", words.join(", ")),
        })
    }

    fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.line_open) {
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }
}

impl<O: Write + Send, E: Write + Send> View for Plain<O, E> {
    fn open(&mut self, state: &LoopState) -> io::Result<()> {
        self.say(&Talk {
            role: Role::Line,
            tone: Tone::Dim,
            text: opening(state),
        })
    }

    fn close(&mut self) -> io::Result<()> {
        self.run_over()?;
        self.end_line()
    }

    fn record(&mut self, record: &Record, state: &LoopState) -> io::Result<()> {
        for talk in tell(record, state, &self.zone) {
            self.say(&talk)?;
        }
        Ok(())
    }

    fn output(&mut self, source: Source, bytes: &[u8]) -> io::Result<()> {
        match source {
            Source::Stdout if bytes.is_empty() => Ok(()),
            Source::Stdout => {
                self.out.write_all(bytes)?;
                self.line_open = bytes.last() != Some(&b'\n');
                self.out.flush()?;
                self.tell_use()
            }
            // A closed standard error does not end the view.
            Source::Stderr => {
                drop(write_err(&mut self.err, self.cleaner.as_mut(), bytes));
                Ok(())
            }
        }
    }

    fn spent(&mut self, spent: &Spent) -> io::Result<()> {
        self.untold = Some(*spent);
        self.tell_use()
    }

    fn skipped(&mut self, iteration: u32, bytes: u64) -> io::Result<()> {
        self.end_line()?;
        writeln!(self.out, "{}", skip_words(iteration, bytes))
    }

    fn run_over(&mut self) -> io::Result<()> {
        (self.told_use, self.untold) = (None, None);
        if let Some(cleaner) = &mut self.cleaner {
            let err = &mut self.err;
            cleaner.finish(|line| drop(writeln!(err, "{line}")));
        }
        Ok(())
    }
}

fn write_err(err: &mut impl Write, cleaner: Option<&mut Lines>, bytes: &[u8]) -> io::Result<()> {
    match cleaner {
        None => err.write_all(bytes)?,
        Some(cleaner) => {
            let mut result = Ok(());
            cleaner.push(bytes, |line| {
                if result.is_ok() {
                    result = writeln!(err, "{line}");
                }
            });
            result?;
        }
    }
    err.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(role: Role, text: &str) -> Talk {
        Talk {
            role,
            tone: Tone::Good,
            text: text.into(),
        }
    }

    #[test]
    fn bytes_pass_unchanged_and_our_lines_begin_a_line() {
        let mut plain = Plain::new(Vec::new(), Vec::new(), Paint::Plain, Stream::Pipe);
        plain.output(Source::Stdout, b"\xff\x1b[2Jno end").unwrap();
        plain.say(&talk(Role::Line, "hello")).unwrap();
        plain.say(&talk(Role::Quote, "quoted")).unwrap();
        plain.output(Source::Stderr, b"\x1b[2Joops\n").unwrap();
        plain.skipped(3, 312_000_000).unwrap();
        let want = b"\xff\x1b[2Jno end\n[descartes] hello\n[descartes]   | quoted\n\
            [\xe2\x80\xa6 312.0 MB not shown: descartes loop logs 3 \xe2\x80\xa6]\n";
        assert_eq!(plain.out, want);
        assert_eq!(plain.err, b"\x1b[2Joops\n");
    }

    #[test]
    fn standard_error_on_a_terminal_is_cleaned() {
        let mut plain = Plain::new(Vec::new(), Vec::new(), Paint::Plain, Stream::Terminal);
        plain.output(Source::Stderr, b"\x1b[2Joo").unwrap();
        plain.output(Source::Stderr, b"ps").unwrap();
        plain.run_over().unwrap();
        assert_eq!(plain.err, b"oops\n");
    }
}
