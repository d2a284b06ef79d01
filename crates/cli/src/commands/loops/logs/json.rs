//! Output for programs: an event of the agent a line where its stream is understood, else a
//! line of text a line.

use std::io;

use descartes_agents::agent::{AgentEvent, StreamParser};
use descartes_agents::reader::Source;
use descartes_client::logs::RunLog;
use descartes_text::display::escape_json;
use serde_json::{Value, json};

use super::{ShowOutput, write};
use crate::printer::Out;

/// A line of plain text is cut here.
const LONGEST: usize = 1 << 20;

#[derive(Default)]
pub(super) struct JsonOutput {
    task: Option<String>,
    run: u64,
    iteration: u32,
    parser: Option<Box<dyn StreamParser>>,
    held: [Vec<u8>; 2],
}

impl JsonOutput {
    pub(super) fn new() -> Self {
        Self::default()
    }

    fn line(&self, source: Source, what: Value) -> io::Result<()> {
        let mut line =
            json!({ "iteration": self.iteration, "run": self.run, "stream": name(source) });
        if let Some(task) = &self.task {
            line["task"] = json!(task);
        }
        if let (Value::Object(line), Value::Object(what)) = (&mut line, what) {
            line.extend(what);
        }
        let line = escape_json(&line.to_string()) + "\n";
        write(Out, line.as_bytes())
    }

    fn events(&self, events: Vec<AgentEvent>) -> io::Result<()> {
        for event in events {
            let what = serde_json::to_value(event).unwrap_or_default();
            self.line(Source::Stdout, what)?;
        }
        Ok(())
    }

    fn text(&self, source: Source, bytes: &[u8]) -> io::Result<()> {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        self.line(source, json!({ "text": text }))
    }
}

fn name(source: Source) -> &'static str {
    match source {
        Source::Stdout => "stdout",
        Source::Stderr => "stderr",
    }
}

impl ShowOutput for JsonOutput {
    fn task(&mut self, task: &str) {
        self.task = Some(task.to_owned());
    }

    fn begin(&mut self, log: &RunLog) -> io::Result<()> {
        (self.run, self.iteration) = (log.run, log.iteration);
        self.parser = log.parser();
        Ok(())
    }

    fn output(&mut self, source: Source, bytes: &[u8]) -> io::Result<()> {
        if let (Source::Stdout, Some(parser)) = (source, &mut self.parser) {
            let mut events = Vec::new();
            parser.push(bytes, &mut events);
            return self.events(events);
        }
        let at = source as usize;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.held[at].extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.held[at].len() > LONGEST {
                let line = std::mem::take(&mut self.held[at]);
                self.text(source, &line)?;
            }
        }
        Ok(())
    }

    fn caught_up(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        if let Some(mut parser) = self.parser.take() {
            let mut events = Vec::new();
            parser.finish(&mut events);
            self.events(events)?;
        }
        for source in [Source::Stdout, Source::Stderr] {
            let line = std::mem::take(&mut self.held[source as usize]);
            if !line.is_empty() {
                self.text(source, &line)?;
            }
        }
        Ok(())
    }
}
