//! What a run comes to: a fold over the events of its stream.

use std::hash::{DefaultHasher, Hasher};

use jiff::{Timestamp, tz::TimeZone};

use super::message::Message;
use super::search::MessageSearch;
use super::{AgentEvent, Denial, Failure, FailureKind, Meter, MicroUsd, RunResult, Trouble, Usage};
use crate::promise::PromiseSpec;
use crate::provider_limit::{self, LimitKind, ReportedLimit};

const DENIALS_KEPT: usize = 32;
/// A statement of a limit that comes as a good answer is no longer than this.
const STATEMENT_BYTES: usize = 300;

/// How the agent itself says that its run ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ResultState {
    /// It said that all went well.
    Ok,
    /// It told an error.
    Error(Failure),
    /// It said nothing: interrupted, killed, or not able to.
    Missing,
}

/// All that a loop has to know of one run of an agent. Memory is bounded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunSummary {
    /// The model it says it uses.
    pub model: Option<String>,
    /// Tool calls made.
    pub tool_calls: u64,
    /// Requests in a row that brought neither text nor a tool call.
    pub empty_steps: u32,
    /// Requests in a row that brought the same words again, and no tool call.
    pub same_steps: u32,
    /// How often the conversation was too long since the last tool call.
    pub overflows: u32,
    /// Denied tool calls, the first of them.
    pub denials: Vec<Denial>,
    /// What could not be read.
    pub trouble: Trouble,
    final_message: Message,
    message: Option<u32>,
    spoke: bool,
    result: Option<Result<(), Failure>>,
    failure: Option<Failure>,
    limit: Option<ReportedLimit>,
    meter: Meter,
    step_hash: StepHash,
    last_step: Option<u64>,
}

/// The words of one request, as far as needed to know them again; any split gives the same.
#[derive(Clone, Debug, Default)]
struct StepHash(Option<DefaultHasher>);

impl StepHash {
    fn write(&mut self, text: &str) {
        if !text.is_empty() {
            let hasher = self.0.get_or_insert_default();
            hasher.write(text.as_bytes());
        }
    }

    fn take(&mut self) -> Option<u64> {
        self.0.take().map(|hasher| hasher.finish())
    }
}

impl PartialEq for StepHash {
    fn eq(&self, other: &Self) -> bool {
        let value = |hash: &Self| hash.0.as_ref().map(Hasher::finish);
        value(self) == value(other)
    }
}

impl RunSummary {
    /// An empty one that searches the final message for the promises of `spec`.
    pub fn searching(spec: &PromiseSpec) -> Self {
        let mut summary = Self::default();
        summary.final_message.search_for(MessageSearch::new(spec));
        summary
    }

    /// The search of the final message, where one was asked for. An agent whose run ended in
    /// an error claims nothing, whatever it found.
    pub fn search(&mut self) -> Option<&mut MessageSearch> {
        self.final_message.search()
    }

    /// Takes one event in.
    pub fn push(&mut self, event: &AgentEvent) {
        self.meter.push(event);
        match event {
            AgentEvent::Session { model, .. } => {
                self.model = model.clone().or(self.model.take());
            }
            AgentEvent::Step => {
                self.empty_steps = self.empty_steps.saturating_add(1);
                self.compare_steps();
                self.result = None;
            }
            AgentEvent::Text {
                message,
                piece,
                text,
            } => {
                self.goes_on();
                self.open_message(*message, text);
                self.final_message.push(*piece, text);
                self.step_hash.write(text);
                self.spoke |= !text.trim().is_empty();
            }
            AgentEvent::ToolCall { .. } => {
                self.goes_on();
                (self.same_steps, self.overflows) = (0, 0);
                (self.step_hash, self.last_step) = (StepHash::default(), None);
                self.tool_calls += 1;
            }
            AgentEvent::Limit { told } => self.limit = Some(told.clone()),
            AgentEvent::Denied(denial) if self.denials.len() < DENIALS_KEPT => {
                self.denials.push(denial.clone());
            }
            AgentEvent::Failed(failure) => {
                let overflow = failure.kind == FailureKind::ContextTooLong;
                self.overflows = self.overflows.saturating_add(u32::from(overflow));
                self.failure = Some(failure.clone());
                self.result = None;
            }
            AgentEvent::Result(result) => self.end(result),
            _ => {}
        }
    }

    /// Takes in what the parser could not read, once the stream has ended.
    pub fn finish(&mut self, trouble: &Trouble) {
        self.trouble = trouble.clone();
    }

    /// Where a promise is looked for: the final message of a run that did not end in an error.
    /// What an agent said before it failed is not its last word.
    pub fn claim_text(&self) -> &str {
        match self.result() {
            ResultState::Error(_) => "",
            ResultState::Ok | ResultState::Missing => self.final_text(),
        }
    }

    /// The agent's final message, joined over its pieces.
    /// Of a message beyond 256 KiB only the end is here.
    pub fn final_text(&self) -> &str {
        self.final_message.text()
    }

    /// Whether the agent has told its result and done nothing since: all that is left is to
    /// wait for its process a little.
    pub fn has_result(&self) -> bool {
        self.result.is_some()
    }

    /// How the agent says that its run ended. An error that nothing followed counts as its
    /// result where it told no other.
    pub fn result(&self) -> ResultState {
        match (&self.result, &self.failure) {
            (Some(Ok(())), _) => ResultState::Ok,
            (Some(Err(failure)), _) | (None, Some(failure)) => ResultState::Error(failure.clone()),
            (None, None) => ResultState::Missing,
        }
    }

    /// Whether the agent neither said a word nor called a tool.
    pub fn did_nothing(&self) -> bool {
        !self.spoke && self.tool_calls == 0
    }

    /// Tokens of the run: the agent's own total, else the sum of what it told on the way.
    pub fn usage(&self) -> Usage {
        self.meter.usage()
    }

    /// Cost of the run, or `None` where the agent tells none.
    pub fn cost(&self) -> Option<MicroUsd> {
        self.meter.cost()
    }

    /// What it told of its use.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Whether the provider hindered this run, and until when: told by the stream's
    /// structure first, by the words of its error else. What stands on stderr is not in here.
    pub fn limit(&self, now: Timestamp, local: &TimeZone) -> Option<ReportedLimit> {
        let failure = match self.result() {
            ResultState::Ok => return self.limit_as_answer(now, local),
            ResultState::Error(failure) => Some(failure),
            ResultState::Missing => None,
        };
        let by_words = failure.and_then(|failure| limit_of(&failure, now, local));
        match (&self.limit, by_words) {
            (Some(told), by_words) => Some(ReportedLimit {
                until: told.until.or(by_words.and_then(|told| told.until)),
                ..told.clone()
            }),
            (None, by_words) => by_words,
        }
    }

    /// Some providers send their limit as if it were the model's answer.
    fn limit_as_answer(&self, now: Timestamp, local: &TimeZone) -> Option<ReportedLimit> {
        let text = self.final_text().trim();
        if text.len() > STATEMENT_BYTES || text.lines().count() > 1 {
            return None;
        }
        provider_limit::told(text, now, local).filter(|told| told.kind == LimitKind::Usage)
    }

    /// The agent works: what was told before as failed or ended is no longer the last word.
    fn goes_on(&mut self) {
        self.empty_steps = 0;
        self.result = None;
        self.failure = None;
        self.limit = None;
    }

    /// A request begins: did the one before it bring what the one before that had brought?
    fn compare_steps(&mut self) {
        let said = self.step_hash.take();
        self.same_steps = match (said, self.last_step) {
            (Some(said), Some(last)) if said == last => self.same_steps.saturating_add(1),
            (None, _) => self.same_steps,
            _ => 0,
        };
        self.last_step = said.or(self.last_step);
    }

    /// A message of nothing but white space does not put the one before it aside.
    fn open_message(&mut self, message: u32, text: &str) {
        if self.message != Some(message) && !text.trim().is_empty() {
            self.final_message.restart();
            self.message = Some(message);
        }
    }

    fn end(&mut self, result: &RunResult) {
        self.result = Some(match (&result.error, &self.failure) {
            (None, _) => Ok(()),
            (Some(error), told) => Err(fuller(error, told.as_ref())),
        });
        if let (None, Some(text)) = (&result.error, &result.text) {
            self.take_final(text);
        }
    }

    /// The result repeats the final message, or its last block, or all messages with it at
    /// the end, or is all there is of it.
    fn take_final(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        self.spoke = true;
        let (said, text) = (self.final_text().trim(), text.trim());
        let same = !said.is_empty() && (said.ends_with(text) || text.ends_with(said));
        if !same {
            self.final_message.replace(text);
            self.message = None;
        }
    }
}

/// A result often says less than the error told before it.
fn fuller(error: &Failure, told: Option<&Failure>) -> Failure {
    match told {
        Some(told) if error.message.is_empty() => told.clone(),
        Some(told) if error.kind == FailureKind::Other => Failure {
            kind: told.kind,
            message: error.message.clone(),
        },
        _ => error.clone(),
    }
}

fn limit_of(failure: &Failure, now: Timestamp, local: &TimeZone) -> Option<ReportedLimit> {
    let told = provider_limit::told_in_error(&failure.message, now, local);
    match failure.kind {
        FailureKind::Provider(kind) => Some(ReportedLimit {
            kind,
            until: provider_limit::reset_in(&failure.message, now, local),
            words: told.map_or_else(
                || provider_limit::shorten(&failure.message),
                |told| told.words,
            ),
        }),
        FailureKind::Other => told,
        _ => None,
    }
}

#[cfg(test)]
mod tests;
