//! The output of a command that descartes itself runs: all of it in a log, the last of it at hand.

use std::any::Any;

use descartes_proc::{Channel, Sink};
use descartes_store::logs::LogFile;

/// The last of a command's output that is recorded and told to the agent.
const TAIL: usize = 4096;

/// Both streams in the order they came: people read them as one.
pub(crate) struct TailSink {
    log: LogFile,
    tail: Vec<u8>,
}

impl TailSink {
    pub(crate) fn new(log: LogFile) -> Self {
        Self {
            log,
            tail: Vec::new(),
        }
    }

    /// Closes the log of a sink that comes back from its tree, and gives the last of the output.
    pub(crate) fn finish(sink: Box<dyn Sink>) -> String {
        match (sink as Box<dyn Any>).downcast::<Self>() {
            Ok(sink) => {
                let Self { log, tail } = *sink;
                log.finish();
                String::from_utf8_lossy(&tail).into_owned()
            }
            Err(_) => String::new(),
        }
    }
}

impl Sink for TailSink {
    fn chunk(&mut self, _: Channel, bytes: &[u8]) {
        self.log.write(bytes);
        let keep = &bytes[bytes.len().saturating_sub(TAIL)..];
        self.tail.extend_from_slice(keep);
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
    }
}
