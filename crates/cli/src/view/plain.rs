//! The view into a pipe or a file: the agent's words as they come, cleaned and masked, and lines
//! of ours that can be told from them.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use descartes_agents::reader::Source;
use descartes_kernel::event::Record;
use descartes_kernel::state::{LoopState, Spent};
use descartes_text::display::{self, Clean, Colours, Shown};
use jiff::tz::TimeZone;

use super::live::skip_words;
use super::record_messages::{opening, tell};
use super::run::View;
use super::status_message::{Role, StatusMessage};
use super::words;
use crate::style::{Paint, Tone};

/// Begins each line of ours.
pub const MARK: &str = "[descartes]";

/// The plain view.
pub struct Plain<O, E> {
    out: O,
    err: E,
    paint: Paint,
    /// Colours of standard error.
    err_paint: Paint,
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
    /// `err` takes the agent's standard error.
    pub fn new((out, paint): (O, Paint), (err, err_paint): (E, Paint)) -> Self {
        Self {
            out,
            err,
            paint,
            err_paint,
            line_open: false,
            told_use: None,
            untold: None,
            zone: TimeZone::system(),
        }
    }

    /// A line of ours.
    pub fn say(&mut self, talk: &StatusMessage) -> io::Result<()> {
        self.end_line()?;
        let text = display::text(&talk.text, Colours::Drop);
        let text = self.paint.text(talk.tone, &text);
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
        let text = format!("used so far: {}", words.join(", "));
        self.say(&StatusMessage::new(Tone::Dim, text))
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
        self.say(&StatusMessage::new(Tone::Dim, opening(state)))
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

    fn cleaner(&self, source: Source) -> Clean {
        Clean::new(match source {
            Source::Stdout => self.paint.colours(),
            Source::Stderr => self.err_paint.colours(),
        })
    }

    fn output(&mut self, source: Source, shown: &Shown) -> io::Result<()> {
        match source {
            Source::Stdout if shown.is_empty() => Ok(()),
            Source::Stdout => {
                self.out.write_all(shown.as_bytes())?;
                self.line_open = !shown.ends_line();
                self.out.flush()?;
                self.tell_use()
            }
            // A closed standard error does not end the view.
            Source::Stderr => {
                let err = &mut self.err;
                drop(err.write_all(shown.as_bytes()).and_then(|()| err.flush()));
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
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(role: Role, text: &str) -> StatusMessage {
        StatusMessage {
            role,
            tone: Tone::Good,
            text: text.into(),
        }
    }

    #[test]
    fn output_is_cleaned_and_our_lines_begin_a_line() {
        let mut plain = Plain::new((Vec::new(), Paint::Plain), (Vec::new(), Paint::Plain));
        let shown = |plain: &Plain<Vec<u8>, Vec<u8>>, source, bytes| {
            let (mut clean, mut shown) = (plain.cleaner(source), Shown::default());
            clean.push(bytes, &mut shown);
            clean.finish(&mut shown);
            shown
        };
        let words = shown(&plain, Source::Stdout, b"\xff\x1b[2Jno \x1b[31mend");
        plain.output(Source::Stdout, &words).unwrap();
        plain
            .say(&talk(Role::Line, "hello\u{1b}]0;x\u{7}"))
            .unwrap();
        plain.say(&talk(Role::Quote, "quoted\u{202e}")).unwrap();
        let words = shown(&plain, Source::Stderr, b"\x1b[2Joops\n");
        plain.output(Source::Stderr, &words).unwrap();
        plain.skipped(3, 312_000_000).unwrap();
        let want = "\u{fffd}no end\n[descartes] hello\n[descartes]   | quoted\n\
            [… 312.0 MB not shown: descartes loop logs 3 …]\n";
        assert_eq!(String::from_utf8(plain.out).unwrap(), want);
        assert_eq!(plain.err, b"oops\n");
    }
}
