//! Output for people: the agent's words, a line for each tool, nothing that a terminal would
//! obey but colours, and what looks like a secret masked.

use std::io;

use descartes_agents::reader::Source;
use descartes_client::logs::{RunLog, Thoughts, Tools};
use descartes_text::display::{Clean, Colours, Shown, one_line};

use super::lines::WholeLines;
use super::raw::LastLines;
use super::{ShowOutput, write};
use crate::args::loops::LogsArgs;
use crate::printer::{Out, Printer};
use crate::style::{Paint, Tone};
use crate::view::voice::Speech;

pub(super) struct Human {
    /// What stands in front of an iteration's number in its heading.
    task: String,
    /// Where others speak as well.
    lines: Option<WholeLines>,
    paint: Paint,
    colours: Colours,
    speech: Speech,
    /// The stream that the last line came from, and whether that line is open.
    at: Option<Source>,
    open: bool,
    runs: u32,
    follow: bool,
    last: Option<LastLines>,
}

impl Human {
    pub(super) fn new(args: &LogsArgs, printer: &Printer) -> Self {
        let colours = printer.out.colours();
        let thoughts = match args.thinking {
            true => Thoughts::Shown,
            false => Thoughts::Hidden,
        };
        let tools = match args.follow {
            true => Tools::WhenCalled,
            false => Tools::WhenDone,
        };
        let clean = [Clean::new(colours), Clean::new(colours)];
        Self {
            task: String::new(),
            lines: None,
            paint: printer.out,
            colours,
            speech: Speech::new(clean, thoughts, tools),
            at: None,
            open: false,
            runs: 0,
            follow: args.follow,
            last: args.lines.map(LastLines::new),
        }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.lines {
            Some(lines) => {
                let whole = lines.push(bytes);
                self.put_as_is(&whole)
            }
            None => self.put_as_is(bytes),
        }
    }

    fn put_as_is(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.last {
            Some(last) => {
                last.push(bytes);
                Ok(())
            }
            None => write(Out, bytes),
        }
    }

    /// Text of a stream; where the stream changes, a line is ended and its name told.
    fn safe(&mut self, source: Source, safe: &Shown) -> io::Result<()> {
        if safe.is_empty() {
            return Ok(());
        }
        let mut out = Vec::new();
        if self.at != Some(source) {
            self.end_line(&mut out);
            let name = match (source, self.at) {
                (Source::Stderr, _) => Some("[standard error]"),
                (Source::Stdout, at) => at.map(|_| "[standard output]"),
            };
            if let Some(name) = name {
                out.extend_from_slice(self.paint.text(Tone::Dim, name).as_bytes());
                out.push(b'\n');
            }
            self.at = Some(source);
        }
        out.extend_from_slice(safe.as_bytes());
        self.open = !safe.ends_line();
        self.put(&out)
    }

    fn end_line(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.open) {
            if self.colours == Colours::Keep {
                out.extend_from_slice(b"\x1b[0m");
            }
            out.push(b'\n');
        }
    }
}

impl ShowOutput for Human {
    fn task(&mut self, task: &str) {
        let task = one_line(task);
        self.task = format!("task {task}, ");
        let reset: &[u8] = match self.colours {
            Colours::Keep => b"\x1b[0m",
            Colours::Drop => b"",
        };
        self.lines = Some(WholeLines::behind(format!("[{task}] "), reset));
    }

    fn begin(&mut self, log: &RunLog) -> io::Result<()> {
        self.speech.begin(log.transcript());
        self.at = None;
        self.runs += 1;
        if !self.follow {
            return Ok(());
        }
        let heading = format!("--- {}iteration {} ---", self.task, log.iteration);
        let heading = self.paint.text(Tone::Strong, &heading);
        let gap = match self.runs > 1 && self.lines.is_none() {
            true => "\n",
            false => "",
        };
        self.put_as_is(format!("{gap}{heading}\n").as_bytes())
    }

    fn output(&mut self, source: Source, bytes: &[u8]) -> io::Result<()> {
        let safe = self.speech.push(source, bytes, None);
        self.safe(source, &safe)
    }

    fn caught_up(&mut self) -> io::Result<()> {
        let rest = self.last.take().map(|mut last| last.take());
        write(Out, &rest.unwrap_or_default())
    }

    fn end(&mut self) -> io::Result<()> {
        for (source, rest) in self.speech.finish() {
            self.safe(source, &rest)?;
        }
        let mut out = Vec::new();
        self.end_line(&mut out);
        self.put(&out)?;
        match (&mut self.last, self.follow) {
            (Some(last), false) => write(Out, &last.take()),
            _ => Ok(()),
        }
    }
}
