//! What a process tells whoever debugs it: the events of `tracing`, as lines of text.
//!
//! The variable [`VARIABLE`] says what is wanted ([`Filter`]). A command in the foreground writes to
//! standard error, and only when the variable is set; a host in the background always writes to a
//! file in its loop's folder, which is bounded ([`LIMIT_BYTES`]). Both read the clock.
//!
//! Callers log ids, paths, counts, durations, exit codes and kinds of events; never the environment,
//! prompts or output. Every line passes [`descartes_text::display`] before it is written, so that
//! a secret or an escape sequence in a path or an error message is not passed on. A line that
//! cannot be written is dropped: logging neither stops a loop nor keeps it waiting.

mod file;
mod filter;
mod stderr;
mod subscriber;

pub use filter::{BadFilter, Filter};
pub use subscriber::variant;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use self::file::BoundedFile;
use self::stderr::StderrWriter;
use self::subscriber::{LineSubscriber, Output};

/// The variable that says what is logged.
pub const VARIABLE: &str = "DESCARTES_LOG";

/// The two files of a log together never have more bytes than this.
pub const LIMIT_BYTES: u64 = 1 << 20;

/// Logs to standard error from now on.
pub fn to_stderr(filter: Filter) {
    if let Some(writer) = StderrWriter::start() {
        install(filter, Output::Stderr(writer));
    }
}

/// Logs to a file from now on, which is named as soon as it is known ([`LogFile::place`]).
pub fn to_file(filter: Filter) -> LogFile {
    let file = LogFile::default();
    install(filter, Output::File(file.clone()));
    file
}

/// The log of a host in the background.
#[derive(Clone, Debug, Default)]
pub struct LogFile(Arc<Mutex<BoundedFile>>);

impl LogFile {
    /// Writes to this file, and to one with `.1` behind its name for the older half.
    pub fn place(&self, path: &Path) {
        self.lock().place(path);
    }

    fn lock(&self) -> MutexGuard<'_, BoundedFile> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until standard error has taken what was logged so far, at most `limit`.
pub fn flush(limit: Duration) {
    stderr::flush(limit);
}

fn install(filter: Filter, output: Output) {
    let subscriber = LineSubscriber::new(filter, output);
    // A second one in the same process (a test, a program that embeds this) changes nothing.
    let _ = tracing::subscriber::set_global_default(subscriber);
}
