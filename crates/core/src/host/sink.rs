//! Where the bytes of a run go: to its logs and to its reader, on the pump's own thread.
//! The driver hears only of what matters, so gigabytes of output cost it nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use descartes_agents::reader::{Note, RunReader, Source};
use descartes_proc::{Channel, Sink};
use descartes_store::logs::LogFile;

use super::message::HostMessage;

/// What the driver may look at while the pump works.
#[derive(Debug, Default)]
pub(crate) struct LastOutput {
    /// Milliseconds since the host began, when the last bytes came; 0: none yet.
    last_output: AtomicU64,
}

impl LastOutput {
    pub(super) fn last_output_ms(&self) -> u64 {
        self.last_output.load(Ordering::Relaxed)
    }
}

/// A reader that is made on the pump's thread: no agent waits for it to be ready.
pub(super) struct LazyReader {
    make: Box<dyn Fn() -> RunReader + Send>,
    made: Option<RunReader>,
}

impl LazyReader {
    pub(super) fn new(make: impl Fn() -> RunReader + Send + 'static) -> Self {
        let make = Box::new(make);
        Self { make, made: None }
    }

    pub(super) fn get(&mut self) -> &mut RunReader {
        self.made.get_or_insert_with(&self.make)
    }
}

/// The sink of one run.
pub(super) struct RunSink {
    pub(super) stdout: LogFile,
    pub(super) stderr: LogFile,
    pub(super) reader: LazyReader,
    pub(super) pulse: Arc<LastOutput>,
    pub(super) clock: descartes_proc::RunClock,
    pub(super) tx: Sender<HostMessage>,
    pub(super) run: u64,
    pub(super) notes: Vec<Note>,
}

impl RunSink {
    fn report(&mut self) {
        for note in self.notes.drain(..) {
            // The driver may be gone (a killed loop): then nobody needs to know.
            drop(self.tx.send(HostMessage::Note(self.run, note)));
        }
    }
}

impl Sink for RunSink {
    /// What the first bytes would else wait for.
    fn begin(&mut self) {
        self.reader.get();
    }

    fn chunk(&mut self, channel: Channel, bytes: &[u8]) {
        let source = match channel {
            Channel::Stdout => {
                self.stdout.write(bytes);
                Source::Stdout
            }
            Channel::Stderr => {
                self.stderr.write(bytes);
                Source::Stderr
            }
        };
        let now = self.clock.elapsed().as_millis() as u64;
        self.pulse.last_output.store(now.max(1), Ordering::Relaxed);
        self.reader.get().push(source, bytes, &mut self.notes);
        self.report();
    }

    fn quiet(&mut self) {
        self.reader.get().quiet(&mut self.notes);
        self.report();
    }
}
