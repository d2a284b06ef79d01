//! The view for programs: every record of the journal as one line of JSON.

use std::io::{self, Write};

use descartes_agents::reader::Source;
use descartes_kernel::event::{Event, Record};
use descartes_kernel::state::LoopState;
use descartes_text::display::{Shown, escape_json};

use super::run::View;

/// The JSON view.
pub struct JsonRecords<W> {
    out: W,
}

impl<W: Write> JsonRecords<W> {
    /// Lines go to `out`.
    pub fn new(out: W) -> Self {
        Self { out }
    }
}

impl<W: Write + Send> View for JsonRecords<W> {
    fn record(&mut self, record: &Record, _: &LoopState) -> io::Result<()> {
        // It repeats what was told already, at length.
        if let Event::Checkpoint { .. } = record.event {
            return Ok(());
        }
        let line = escape_json(&serde_json::to_string(record)?) + "\n";
        self.out.write_all(line.as_bytes())?;
        self.out.flush()
    }

    fn output(&mut self, _: Source, _: &Shown) -> io::Result<()> {
        Ok(())
    }

    fn skipped(&mut self, _: u32, _: u64) -> io::Result<()> {
        Ok(())
    }
}
