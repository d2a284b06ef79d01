//! Nobody prints but the printer: standard output is data, standard error is talk.

use std::io::{self, IsTerminal, Write};

use crate::args::ColorChoice;
use crate::env::{Environment, Stream};
use crate::error::CliError;
use crate::style::{Paint, Tone};

/// Where words go.
#[derive(Clone, Copy, Debug)]
pub struct Printer {
    /// Colours of standard output.
    pub out: Paint,
    /// Colours of standard error.
    pub err: Paint,
}

impl Printer {
    /// A printer for this process's streams.
    pub fn new(choice: ColorChoice, environment: &Environment) -> Self {
        Self {
            out: environment.paint(choice, Stream::of(&io::stdout())),
            err: environment.paint(choice, Stream::of(&io::stderr())),
        }
    }

    /// Text on standard output, as it is. A reader that is gone is no error of ours.
    pub fn data(&self, text: &str) {
        let mut out = io::stdout().lock();
        drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
    }

    /// Bytes on standard output. An error tells that nobody reads any more, for those who
    /// would write for ever.
    pub fn bytes(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush())
    }

    /// Asks the person at the terminal; where there is none, the answer is no.
    pub fn ask(&self, question: &str) -> bool {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return false;
        }
        let mut err = io::stderr().lock();
        drop(write!(err, "{question} [y/N] ").and_then(|()| err.flush()));
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer);
        read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
    }

    /// A line on standard output.
    pub fn line(&self, text: &str) {
        self.data(&format!("{text}\n"));
    }

    /// A line on standard error.
    pub fn talk(&self, text: &str) {
        // In one piece: standard error is not buffered, and others write to the same terminal.
        let line = format!("{text}\n");
        drop(io::stderr().lock().write_all(line.as_bytes()));
    }

    /// Something that a person may want to know.
    pub fn note(&self, text: &str) {
        self.talk(&format!("{} {text}", self.err.text(Tone::Strong, "note:")));
    }

    /// Something that a person should look at.
    pub fn warning(&self, text: &str) {
        self.talk(&format!("{} {text}", self.err.text(Tone::Warn, "warning:")));
    }

    /// What to type next.
    pub fn hint(&self, text: &str) {
        self.talk(&format!("{} {text}", self.err.text(Tone::Good, "hint:")));
    }

    /// An error with its causes and hints.
    pub fn error(&self, error: &CliError) {
        self.talk(&format!("{} {error}", self.err.text(Tone::Bad, "error:")));
        for cause in error.causes() {
            self.talk(&format!("{} {cause}", self.err.text(Tone::Bad, "  cause:")));
        }
        for hint in error.hints() {
            self.hint(&hint);
        }
    }
}
