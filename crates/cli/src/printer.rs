//! Nobody prints but the printer: standard output is data, standard error is talk. Everything that
//! goes through it is cleaned and masked ([`descartes_text::display`]), so that no name, word or
//! file of anybody reaches a terminal as it is; [`Printer::json`] escapes instead, and
//! [`Printer::exact`] is for what we made ourselves and for bytes that were asked for as bytes.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use descartes_text::display;
use nix::errno::Errno;
use nix::sys::stat::SFlag;

use serde::Serialize;

use crate::args::ColorChoice;
use crate::env::{Environment, Stream};
use crate::error::CliError;
use crate::style::{Paint, Tone};

/// Why standard output could not be written; what a command says at its end.
static FAILED: OnceLock<io::Error> = OnceLock::new();

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

    /// Text on standard output, cleaned and masked. A reader that is gone is no error of ours.
    pub fn data(&self, text: &str) {
        drop(self.try_data(text));
    }

    /// The same. An error tells that nobody reads any more, for those who would write for ever.
    pub fn try_data(&self, text: &str) -> io::Result<()> {
        let shown = display::text(text, self.out.colours());
        self.exact(shown.as_bytes())
    }

    /// A value for programs, in one line: whatever a terminal would obey is escaped.
    pub fn json(&self, value: &impl Serialize) {
        drop(self.try_json(value));
    }

    /// The same. An error tells that nobody reads any more.
    pub fn try_json(&self, value: &impl Serialize) -> io::Result<()> {
        self.json_text(&serde_json::to_string(value)?)
    }

    /// The same for JSON that is made already.
    pub fn json_text(&self, json: &str) -> io::Result<()> {
        let line = format!("{}\n", display::escape_json(json.trim_end()));
        self.exact(line.as_bytes())
    }

    /// Bytes on standard output as they are.
    pub fn exact(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = Out;
        out.write_all(bytes).and_then(|()| out.flush())
    }

    /// Asks the person at the terminal; where there is none, the answer is no.
    pub fn ask(&self, question: &str) -> bool {
        self.ask_if_there(question) == Some(true)
    }

    /// The same, telling a `no` from nobody being there to answer.
    pub fn ask_if_there(&self, question: &str) -> Option<bool> {
        let answer = self.answer(&format!("{question} [y/N] "))?;
        Some(matches!(answer.as_str(), "y" | "yes"))
    }

    /// Asks the person at the terminal for one of these answers, by its word or the beginning of it;
    /// `None` where there is no terminal, or at the end of input.
    pub fn choose<T: Copy>(&self, question: &str, answers: &[(&str, T)]) -> Option<T> {
        let names: Vec<&str> = answers.iter().map(|(name, _)| *name).collect();
        let names = format!("[{}] ", names.join("/"));
        let mut question = format!("{question}{names}");
        loop {
            let line = self.answer(&question)?;
            let meant = |(name, _): &&(&str, T)| !line.is_empty() && name.starts_with(&line);
            if let Some((_, answer)) = answers.iter().find(meant) {
                return Some(*answer);
            }
            let known: Vec<&str> = answers.iter().map(|(name, _)| *name).collect();
            let known = known.join(", ");
            question = match line.is_empty() {
                true => format!("type one of these: {known}\n{names}"),
                false => format!("`{line}` is no answer: type one of these: {known}\n{names}"),
            };
        }
    }

    /// What a person at a terminal types; `None` where there is none, or nothing more is typed.
    fn answer(&self, question: &str) -> Option<String> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return None;
        }
        let question = display::text(question, self.err.colours());
        let mut err = io::stderr().lock();
        drop(
            err.write_all(question.as_bytes())
                .and_then(|()| err.flush()),
        );
        drop(err);
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line).ok()?;
        if !line.ends_with('\n') {
            // At the end of input the cursor still stands behind the question.
            drop(io::stderr().lock().write_all(b"\n"));
        }
        (read > 0).then(|| line.trim().to_lowercase())
    }

    /// A line on standard output.
    pub fn line(&self, text: &str) {
        self.data(&format!("{text}\n"));
    }

    /// A line on standard error.
    pub fn talk(&self, text: &str) {
        // In one piece: standard error is not buffered, and others write to the same terminal.
        let line = display::text(&format!("{text}\n"), self.err.colours());
        drop(io::stderr().lock().write_all(line.as_bytes()));
    }

    /// Something that a person may want to know.
    pub fn note(&self, text: &str) {
        self.talk(&format!("{} {text}", self.err.text(Tone::Strong, "note:")));
    }

    /// Tells once that files cannot be watched, where that is so.
    pub fn tell_polling(&self) {
        if let Some(words) = descartes_store::watching::untold() {
            self.note(&words);
        }
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

/// Standard output that remembers why it could not be written. What goes in is cleaned already.
#[derive(Clone, Copy, Debug)]
pub struct Out;

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stdout().lock().write(bytes).inspect_err(remember)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().lock().flush().inspect_err(remember)
    }
}

/// A reader that has seen enough (`head`, a pager) is no failure; a full disk is one.
fn remember(error: &io::Error) {
    if is_failure(error) {
        let copy = match error.raw_os_error() {
            Some(number) => io::Error::from_raw_os_error(number),
            None => io::Error::new(error.kind(), error.to_string()),
        };
        // The first one is told.
        drop(FAILED.set(copy));
    }
}

fn is_failure(error: &io::Error) -> bool {
    let device = || {
        let stat = nix::sys::stat::fstat(io::stdout());
        stat.is_ok_and(|stat| SFlag::from_bits_truncate(stat.st_mode).contains(SFlag::S_IFCHR))
    };
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => false,
        // A terminal that is gone.
        _ if error.raw_os_error() == Some(Errno::EIO as i32) => !device(),
        _ => true,
    }
}

/// The exit code of a command whose output may have been lost: never 0 then.
pub fn after_writing(code: i32, printer: &Printer) -> i32 {
    let Some(error) = FAILED.get() else {
        return code;
    };
    let source = io::Error::new(error.kind(), error.to_string());
    let error = CliError::system("write to standard output", source);
    printer.error(&error);
    match code {
        0 => error.exit_code(),
        code => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_is_gone_is_no_failure_and_a_full_disk_is() {
        let error = |kind: io::ErrorKind| is_failure(&io::Error::from(kind));
        assert!(!error(io::ErrorKind::BrokenPipe));
        assert!(error(io::ErrorKind::StorageFull));
        assert!(error(io::ErrorKind::PermissionDenied));
    }
}
