//! What an agent said and did, from the stream of an agent that is understood.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use descartes_agents::agent::{AgentEvent, Meter, Piece, StreamParser, ToolOutcome};
use descartes_text::units::show_duration;

/// Calls whose results are waited for; an agent that never answers them is not remembered for ever.
const OPEN_CALLS: usize = 256;

/// Something that an agent said or did.
#[derive(Clone, Debug, PartialEq)]
pub enum TranscriptEntry {
    /// Its own words.
    Text {
        /// How they join what came before.
        piece: Piece,
        text: String,
    },
    /// What it thought.
    Thinking(String),
    /// It calls a tool.
    ToolCall {
        /// In one line.
        summary: String,
    },
    /// A tool has answered.
    ToolDone {
        /// The call, in one line.
        summary: String,
        /// How it went.
        outcome: ToolOutcome,
        /// How long it took, where that is told.
        duration: Option<Duration>,
    },
    /// A tool that never answered.
    ToolLost {
        /// The call, in one line.
        summary: String,
    },
    /// Something that a person may want to know.
    Note(String),
    /// Something failed.
    Failed(String),
    /// A line that is none of its events.
    Noise(String),
}

/// Turns the bytes of a stream into what was said.
pub struct Transcript {
    parser: Box<dyn StreamParser>,
    events: Vec<AgentEvent>,
    open: VecDeque<OpenCall>,
    spoke: bool,
    /// When what is read now was written, where that is known.
    written: Option<SystemTime>,
    meter: Meter,
    model: Option<String>,
}

/// A call that was not answered yet.
#[derive(Debug)]
struct OpenCall {
    id: String,
    summary: String,
    /// When it was written, where that is known.
    began: Option<SystemTime>,
}

impl std::fmt::Debug for Transcript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transcript")
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

impl Transcript {
    /// Reads with this parser.
    pub fn new(parser: Box<dyn StreamParser>) -> Self {
        Self {
            parser,
            events: Vec::new(),
            open: VecDeque::new(),
            spoke: false,
            written: None,
            meter: Meter::default(),
            model: None,
        }
    }

    /// What the agent told of its tokens and cost so far.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The model that it says it uses.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Takes bytes, adds what they say. Any split of the same bytes says the same.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<TranscriptEntry>) {
        self.parser.push(bytes, &mut self.events);
        self.tell(out);
    }

    /// The same for bytes whose last ones were written then: a tool whose time the agent does not tell is
    /// timed, as long as call and answer are read one after the other.
    pub fn push_written(
        &mut self,
        bytes: &[u8],
        written: Option<SystemTime>,
        out: &mut Vec<TranscriptEntry>,
    ) {
        self.written = written;
        self.push(bytes, out);
        self.written = None;
    }

    /// The stream has ended.
    pub fn finish(&mut self, out: &mut Vec<TranscriptEntry>) {
        self.parser.finish(&mut self.events);
        self.tell(out);
        for call in self.open.drain(..) {
            let summary = call.summary;
            out.push(TranscriptEntry::ToolLost { summary });
        }
    }

    /// The calls that were not answered yet, in one line each.
    pub fn running(&self) -> impl Iterator<Item = &str> {
        self.open.iter().map(|call| call.summary.as_str())
    }

    fn tell(&mut self, out: &mut Vec<TranscriptEntry>) {
        for event in std::mem::take(&mut self.events) {
            self.meter.push(&event);
            out.extend(self.event(event));
        }
    }

    fn event(&mut self, event: AgentEvent) -> Option<TranscriptEntry> {
        Some(match event {
            AgentEvent::Text { piece, text, .. } => {
                self.spoke |= !text.trim().is_empty();
                TranscriptEntry::Text { piece, text }
            }
            AgentEvent::Thinking { text } => TranscriptEntry::Thinking(text),
            AgentEvent::ToolCall { id, summary, .. } => {
                if self.open.len() == OPEN_CALLS {
                    self.open.pop_front();
                }
                self.open.push_back(OpenCall {
                    id,
                    summary: summary.clone(),
                    began: self.written,
                });
                TranscriptEntry::ToolCall { summary }
            }
            AgentEvent::ToolResult {
                id,
                outcome,
                duration,
                preview,
            } => self.answered(&id, outcome, duration, &preview)?,
            AgentEvent::Retry { after, why, .. } => {
                let wait =
                    after.map_or_else(String::new, |after| format!(" in {}", show_duration(after)));
                TranscriptEntry::Note(format!("trying again{wait}: {why}"))
            }
            AgentEvent::Denied(denial) => TranscriptEntry::Note(format!("denied: {}", denial.rule)),
            AgentEvent::Warning { message } => TranscriptEntry::Note(message),
            AgentEvent::LimitWarning { told, .. } | AgentEvent::Limit { told } => {
                TranscriptEntry::Note(told.words)
            }
            AgentEvent::Failed(failure) => TranscriptEntry::Failed(failure.message),
            AgentEvent::Result(result) => match (result.error, result.text) {
                (Some(error), _) => TranscriptEntry::Failed(error.message),
                // A result repeats the last words, unless they came no other way.
                (None, Some(text)) if !self.spoke => TranscriptEntry::Text {
                    piece: Piece::Block,
                    text,
                },
                _ => return None,
            },
            AgentEvent::Noise { text } => TranscriptEntry::Noise(text),
            AgentEvent::Session { model, .. } => {
                self.model = model.or(self.model.take());
                return None;
            }
            AgentEvent::Step
            | AgentEvent::Subagent { .. }
            | AgentEvent::Usage { .. }
            | AgentEvent::Unknown { .. } => return None,
        })
    }

    fn answered(
        &mut self,
        id: &str,
        outcome: ToolOutcome,
        duration: Option<Duration>,
        preview: &str,
    ) -> Option<TranscriptEntry> {
        let place = self.open.iter().position(|call| call.id == id);
        let (summary, began) = match place.and_then(|place| self.open.remove(place)) {
            Some(call) => (call.summary, call.began),
            // An answer to nothing: only trouble is worth a line.
            None if outcome.is_ok() => return None,
            None => (preview.lines().next().unwrap_or("a tool").to_owned(), None),
        };
        let seen = || self.written?.duration_since(began?).ok();
        // Read together they may be any time apart.
        let duration = duration.or_else(|| seen().filter(|time| !time.is_zero()));
        Some(TranscriptEntry::ToolDone {
            summary,
            outcome,
            duration,
        })
    }
}
