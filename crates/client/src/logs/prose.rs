//! What was said, as lines for a person: words as they are, one line for each tool:
//! `$ cargo test  exit 1  3.2 s`.

use std::time::Duration;

use descartes_agents::agent::{Piece, ToolOutcome};

use super::transcript::TranscriptEntry;

/// Whether thoughts are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thoughts {
    Hidden,
    /// Yes, marked.
    Shown,
}

/// When the line of a tool appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tools {
    /// With its answer: for what is over.
    WhenDone,
    /// With its call, and finished with its answer: for those who watch.
    WhenCalled,
}

/// Writes what was said.
#[derive(Debug)]
pub struct Prose {
    thoughts: Thoughts,
    tools: Tools,
    /// A line was begun and not ended.
    open: bool,
    /// The unfinished line is the call of this tool.
    call: Option<String>,
    /// The text that was written last.
    said: String,
}

impl Prose {
    /// At the beginning of a line.
    pub fn new(thoughts: Thoughts, tools: Tools) -> Self {
        Self {
            thoughts,
            tools,
            open: false,
            call: None,
            said: String::new(),
        }
    }

    /// Adds the text for what was said.
    pub fn write(&mut self, said: &TranscriptEntry, out: &mut String) {
        match said {
            TranscriptEntry::Text { piece, text } => self.text(*piece, text, out),
            TranscriptEntry::Thinking(text) if self.thoughts == Thoughts::Shown => {
                for line in text.trim().lines() {
                    self.line(&format!("~ {line}"), out);
                }
            }
            TranscriptEntry::Thinking(_) => {}
            TranscriptEntry::ToolCall { summary } => {
                if self.tools == Tools::WhenCalled {
                    self.end_line(out);
                    out.push_str(summary);
                    self.open = true;
                    self.call = Some(summary.clone());
                }
            }
            TranscriptEntry::ToolDone {
                summary,
                outcome,
                duration,
            } => self.done(summary, &facts(*outcome, *duration), out),
            TranscriptEntry::ToolLost { summary } => self.done(summary, "  no answer", out),
            TranscriptEntry::Note(text) => self.line(&format!("! {}", one_line(text)), out),
            // Agents tell of an error in words, and then once more as what came of the run.
            TranscriptEntry::Failed(text) if one_line(text) == self.said => {}
            TranscriptEntry::Failed(text) => self.line(&format!("!! {}", one_line(text)), out),
            TranscriptEntry::Noise(text) => self.line(text.trim_end(), out),
        }
    }

    /// Ends an unfinished line.
    pub fn finish(&mut self, out: &mut String) {
        self.end_line(out);
    }

    fn text(&mut self, piece: Piece, text: &str, out: &mut String) {
        if self.call.is_some() || piece != Piece::Delta {
            self.end_line(out);
        }
        if piece == Piece::Block {
            self.said = one_line(text);
            out.push_str(text.trim_end_matches('\n'));
            out.push('\n');
            return;
        }
        out.push_str(text);
        if !text.is_empty() {
            self.open = !text.ends_with('\n');
        }
    }

    /// Finishes the line of the call, where nothing came between; else says it again.
    fn done(&mut self, summary: &str, facts: &str, out: &mut String) {
        if self.call.as_deref() != Some(summary) {
            self.end_line(out);
            out.push_str(summary);
        }
        out.push_str(facts);
        out.push('\n');
        (self.open, self.call) = (false, None);
        self.said.clear();
    }

    fn line(&mut self, text: &str, out: &mut String) {
        self.end_line(out);
        out.push_str(text);
        out.push('\n');
    }

    fn end_line(&mut self, out: &mut String) {
        self.call = None;
        if std::mem::take(&mut self.open) {
            out.push('\n');
        }
    }
}

fn facts(outcome: ToolOutcome, duration: Option<Duration>) -> String {
    let how = match outcome {
        ToolOutcome::Ok => "ok".to_owned(),
        ToolOutcome::Failed => "failed".to_owned(),
        ToolOutcome::Exit(code) => format!("exit {code}"),
    };
    match duration {
        Some(duration) => format!("  {how}  {:.1} s", duration.as_secs_f64()),
        None => format!("  {how}"),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
