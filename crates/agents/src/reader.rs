//! Reads one run of an agent, byte for byte, and reports what matters. Plain text goes
//! through the promise detector; understood streams through the agent's own parser, where
//! only its final message can claim.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::agent::{AgentEvent, Meter, Piece, ResultState, RunSummary, StderrReader, StreamParser};
use crate::promise::{BarePromise, Claim, ClaimKind, Detector, NearMisses, PromiseSpec};
use crate::provider_limit;
use crate::provider_limit::{LimitKind, ReportedLimit};
use crate::run::{Cost, EndedBy, ExitStatus, NearMissFacts, Tokens};
use descartes_text::display::{self, Colours};

/// Characters of what the agent said that go into summaries.
const PREVIEW_CHARS: usize = 500;

/// Bytes of each stream's end that are kept to look for a provider's words in.
const TAIL: usize = 4096;

/// Requests in a row that brought nothing before a run is given up as a runaway.
const EMPTY_STEPS: u32 = 25;

/// Times that a conversation may be too long, with no work in between.
const OVERFLOWS: u32 = 4;

/// An agent that waits longer than this by itself is ended: the loop waits better, and says so.
const OWN_WAIT: Duration = Duration::from_secs(120);

/// Which of the agent's two streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// Standard output.
    #[default]
    Stdout,
    /// Standard error.
    Stderr,
}

/// Something that the driver must know while the agent runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A promise stands in plain text.
    Claimed,
    /// What stood was no promise after all: the agent went on in its line or closed a fence around it.
    Unclaimed,
    /// The agent sent its final result.
    Resulted,
    /// It goes on after its result.
    WentOn,
    /// What it told of its use so far.
    Spent(Box<Spending>),
    /// It will not come to an end by itself: it asks and asks and gets nothing.
    Hopeless,
}

/// What a run has used so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    pub tokens: Tokens,
    /// Cost, as the agent told it.
    pub cost: Option<Cost>,
    /// The model it said it uses.
    pub model: Option<String>,
}

impl Spending {
    /// From what an agent told of its use.
    pub fn told(meter: &Meter, model: Option<&str>) -> Self {
        let usage = meter.usage();
        Self {
            tokens: Tokens {
                input: usage.input,
                output: usage.output,
                cache_read: usage.cache_read,
                cache_write: usage.cache_write,
            },
            cost: meter.cost().map(|cost| Cost {
                micros: cost.0,
                estimated: false,
            }),
            model: model.map(str::to_owned),
        }
    }
}

/// What a run said, once it is over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunReport {
    /// The promise as it stood.
    pub claim: Option<String>,
    /// The agent's words, where it gave up.
    pub abort: Option<String>,
    /// Tags with the text of a promise that did not count, where nothing was claimed.
    pub near_miss: Option<NearMissFacts>,
    /// An error that it told.
    pub error: Option<String>,
    /// A provider's limit.
    pub limit: Option<ReportedLimit>,
    /// An understood agent that neither said nor did anything.
    pub did_nothing: bool,
    pub tokens: Option<Tokens>,
    /// Cost, as the agent told it.
    pub cost: Option<Cost>,
    /// The model it said it used.
    pub model: Option<String>,
    /// Lines of its stream that could not be understood.
    pub trouble: u64,
    /// Tools that were denied to it.
    pub denied: Vec<String>,
    /// The beginning of what it said.
    pub preview: String,
}

/// A push machine over both streams of one run.
pub struct RunReader {
    mode: ReaderMode,
    preview: String,
    out_tail: Tail,
    err_tail: Tail,
}

enum ReaderMode {
    Plain(Box<PlainReader>),
    Understood(Box<Understood>),
}

/// Plain text: each stream has a matcher of its own.
struct PlainReader {
    out: Detector,
    err: Detector,
    claims: Vec<Claim>,
    last_out: Option<Claim>,
    last_err: Option<Claim>,
    seen: PauseOutcome,
    raw_preview: Vec<u8>,
    /// How a last paragraph begins that tells an error.
    error_starts: Vec<String>,
}

/// What a pause showed. More output may undo it, so it is announced and not kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PauseOutcome {
    Nothing,
    Claim,
}

struct Understood {
    parser: Box<dyn StreamParser>,
    summary: RunSummary,
    events: Vec<AgentEvent>,
    resulted: bool,
    told_hopeless: bool,
    hopeless: Option<Hopeless>,
    stderr: StderrReader,
    spent: Spending,
    /// Why its last request failed, while it tries again.
    retrying: Option<String>,
    /// The message that the preview ends with.
    previewed: Option<u32>,
}

/// The last bytes of a stream.
#[derive(Default)]
struct Tail(VecDeque<u8>);

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        let keep = &bytes[bytes.len().saturating_sub(TAIL)..];
        let over = (self.0.len() + keep.len()).saturating_sub(TAIL);
        self.0.drain(..over.min(self.0.len()));
        self.0.extend(keep);
    }

    fn text(&mut self) -> String {
        String::from_utf8_lossy(self.0.make_contiguous()).into_owned()
    }
}

impl RunReader {
    /// A reader of plain text. `prompt` is what was sent: its echo is no claim.
    pub fn plain(promise: &PromiseSpec, prompt: &str) -> Self {
        let plain = PlainReader {
            out: Detector::new(promise, prompt),
            err: Detector::new(promise, prompt),
            claims: Vec::new(),
            last_out: None,
            last_err: None,
            seen: PauseOutcome::Nothing,
            raw_preview: Vec::new(),
            error_starts: Vec::new(),
        };
        Self::with(ReaderMode::Plain(Box::new(plain)))
    }

    /// In plain text, a last paragraph that begins with one of these tells an error.
    #[must_use]
    pub fn with_errors(mut self, starts: &[String]) -> Self {
        if let ReaderMode::Plain(plain) = &mut self.mode {
            plain.error_starts = starts.to_vec();
        }
        self
    }

    /// A reader of a stream that `parser` understands.
    pub fn understood(promise: &PromiseSpec, parser: Box<dyn StreamParser>) -> Self {
        let understood = Understood {
            parser,
            summary: RunSummary::searching(promise),
            events: Vec::new(),
            resulted: false,
            told_hopeless: false,
            hopeless: None,
            stderr: StderrReader::default(),
            spent: Spending::default(),
            retrying: None,
            previewed: None,
        };
        Self::with(ReaderMode::Understood(Box::new(understood)))
    }

    fn with(mode: ReaderMode) -> Self {
        Self {
            mode,
            preview: String::new(),
            out_tail: Tail::default(),
            err_tail: Tail::default(),
        }
    }

    /// Takes the next bytes of a stream.
    pub fn push(&mut self, source: Source, bytes: &[u8], notes: &mut Vec<Note>) {
        match source {
            Source::Stdout => self.out_tail.push(bytes),
            Source::Stderr => self.err_tail.push(bytes),
        }
        match (&mut self.mode, source) {
            (ReaderMode::Plain(plain), _) => plain.push(source, bytes, notes),
            (ReaderMode::Understood(understood), Source::Stdout) => {
                understood.parser.push(bytes, &mut understood.events);
                understood.settle(&mut self.preview, notes);
            }
            // Never the agent's own words; but some tell their waits there.
            (ReaderMode::Understood(understood), Source::Stderr) => {
                understood.stderr.push(bytes, &mut understood.events);
                understood.settle(&mut self.preview, notes);
            }
        }
    }

    /// The streams have been silent for a moment: an unfinished last line is judged too.
    pub fn quiet(&mut self, notes: &mut Vec<Note>) {
        if let ReaderMode::Plain(plain) = &mut self.mode {
            plain.pause(notes);
        }
    }

    /// The run is over.
    pub fn finish(
        &mut self,
        exit: Option<ExitStatus>,
        ended_by: EndedBy,
        now: Timestamp,
        local: &TimeZone,
    ) -> RunReport {
        let failed = ended_by != EndedBy::Exit || !exit.is_some_and(ExitStatus::is_success);
        let (out, err) = (self.out_tail.text(), self.err_tail.text());
        match &mut self.mode {
            ReaderMode::Plain(plain) => {
                plain.finish(ended_by);
                let mut report = plain.report();
                if let Some(error) = plain.error(&out) {
                    report.claim = None;
                    report.limit = limit_in(&error, now, local);
                    report.error = Some(error);
                } else if failed && report.claim.is_none() && report.abort.is_none() {
                    let told = provider_limit::told_in_output(&err, now, local)
                        .or_else(|| provider_limit::told_in_output(&out, now, local));
                    // One that was ended has said no last words.
                    let gave_up = ended_by == EndedBy::Exit;
                    report.limit = told.filter(|told| gave_up || told.kind != LimitKind::Network);
                }
                report
            }
            ReaderMode::Understood(understood) => {
                let mut report = understood.report(ended_by, &mut self.preview, now, local);
                if failed && report.limit.is_none() && report.claim.is_none() {
                    report.limit = provider_limit::told(&err, now, local)
                        .or_else(|| understood.stuck(ended_by, now, local));
                }
                // A CLI that died before its stream began tells why on stderr.
                if failed && report.error.is_none() && report.did_nothing {
                    let retrying = understood.retrying.clone();
                    report.error = retrying
                        .or_else(|| last_line(&err))
                        .or_else(|| last_line(&out));
                }
                report
            }
        }
    }
}

/// What hindered the run, by the words of its error.
fn limit_in(error: &str, now: Timestamp, local: &TimeZone) -> Option<ReportedLimit> {
    Some(ReportedLimit {
        kind: provider_limit::kind_in_error(error)?,
        until: provider_limit::reset_in(error, now, local),
        words: provider_limit::shorten(error),
    })
}

/// Events are no words.
fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    if line.trim_start().starts_with('{') {
        return None;
    }
    Some(line.trim().chars().take(300).collect())
}

impl PlainReader {
    fn push(&mut self, source: Source, bytes: &[u8], notes: &mut Vec<Note>) {
        match source {
            Source::Stdout => {
                let room = (PREVIEW_CHARS * 4).saturating_sub(self.raw_preview.len());
                if room > 0 {
                    self.raw_preview
                        .extend_from_slice(&bytes[..bytes.len().min(room)]);
                }
                self.out.push(bytes, &mut self.claims);
            }
            Source::Stderr => self.err.push(bytes, &mut self.claims),
        }
        if !self.claims.is_empty() {
            notes.push(Note::Claimed);
        }
        self.take(source);
        if self.seen == PauseOutcome::Claim && !self.has_claim() {
            notes.push(Note::Unclaimed);
        }
        self.seen = PauseOutcome::Nothing;
    }

    fn pause(&mut self, notes: &mut Vec<Note>) {
        let mut standing = Vec::new();
        self.out.peek(&mut standing);
        self.err.peek(&mut standing);
        if !standing.is_empty() && self.seen == PauseOutcome::Nothing && !self.has_claim() {
            self.seen = PauseOutcome::Claim;
            notes.push(Note::Claimed);
        }
    }

    fn finish(&mut self, by: EndedBy) {
        end(&mut self.out, by, &mut self.claims);
        self.take(Source::Stdout);
        end(&mut self.err, by, &mut self.claims);
        self.take(Source::Stderr);
    }

    fn take(&mut self, source: Source) {
        let Some(last) = self.claims.drain(..).next_back() else {
            return;
        };
        match source {
            Source::Stdout => self.last_out = Some(last),
            Source::Stderr => self.last_err = Some(last),
        }
    }

    /// The error that the last paragraph tells, its lines joined.
    fn error(&self, out: &str) -> Option<String> {
        let last = out.trim_end().rsplit("\n\n").next()?.trim_start();
        let told = self
            .error_starts
            .iter()
            .any(|start| last.starts_with(start));
        let words = last.split_whitespace().collect::<Vec<_>>().join(" ");
        told.then(|| words.chars().take(PREVIEW_CHARS).collect())
    }

    fn has_claim(&self) -> bool {
        self.last_out.is_some() || self.last_err.is_some()
    }

    fn report(&self) -> RunReport {
        let claim = self.last_out.as_ref().or(self.last_err.as_ref());
        let near_miss = match claim {
            Some(_) => None,
            None => near_miss([self.err.near(), self.out.near()])
                .or_else(|| self.out.bare().map(bare_miss)),
        };
        let (claim, abort) = split_claim(claim);
        RunReport {
            claim,
            abort,
            near_miss,
            preview: preview_of(&self.raw_preview),
            ..RunReport::default()
        }
    }
}

/// The end of a stream: an agent that ended by itself had said all it wanted to say.
fn end(detector: &mut Detector, by: EndedBy, claims: &mut Vec<Claim>) {
    match by {
        EndedBy::Exit | EndedBy::Result => detector.finish(claims),
        _ => detector.cut_off(claims),
    }
}

/// All near misses of a run, where it claimed nothing.
fn near_miss(all: impl IntoIterator<Item = NearMisses>) -> Option<NearMissFacts> {
    let mut facts: Option<NearMissFacts> = None;
    for near in all {
        if let Some(last) = near.last {
            facts = Some(NearMissFacts {
                count: near.count + facts.map_or(0, |facts| facts.count),
                line: last.line,
                abort: last.kind == ClaimKind::Abort,
                wanted: None,
            });
        }
    }
    facts
}

fn bare_miss(bare: BarePromise) -> NearMissFacts {
    NearMissFacts {
        count: 1,
        line: bare.line,
        abort: false,
        wanted: Some(bare.wanted),
    }
}

fn split_claim(claim: Option<&Claim>) -> (Option<String>, Option<String>) {
    match claim {
        Some(claim) if claim.kind == ClaimKind::Done => (Some(claim.text.clone()), None),
        Some(claim) => {
            let words = claim.words.trim();
            (
                None,
                Some(if words.is_empty() {
                    claim.text.clone()
                } else {
                    words.to_owned()
                }),
            )
        }
        None => (None, None),
    }
}

/// How the words begin, cleaned and masked: it is kept where more people look than at a log.
fn preview_of(bytes: &[u8]) -> String {
    let text = display::bytes(bytes, Colours::Drop).to_text();
    text.chars().take(PREVIEW_CHARS).collect()
}

/// Why a run will not come to an end by itself.
enum Hopeless {
    /// It asks and asks and gets nothing.
    Runaway,
    /// It asks and asks and gets the same.
    Circles,
    /// It makes its conversation shorter again and again, and it stays too long.
    TooLong,
    /// It waits by itself, for so long.
    Waits(Duration, String),
    /// It tries a wrong key or login again and again.
    Login(String),
}

fn runaway(summary: &RunSummary) -> Option<Hopeless> {
    match summary {
        RunSummary { overflows, .. } if *overflows >= OVERFLOWS => Some(Hopeless::TooLong),
        RunSummary { empty_steps, .. } if *empty_steps >= EMPTY_STEPS => Some(Hopeless::Runaway),
        RunSummary { same_steps, .. } if *same_steps >= EMPTY_STEPS => Some(Hopeless::Circles),
        _ => None,
    }
}

fn hopeless_retry(after: Option<Duration>, why: &str) -> Option<Hopeless> {
    if provider_limit::kind_in_error(why) == Some(LimitKind::Login) {
        return Some(Hopeless::Login(why.to_owned()));
    }
    let after = after.filter(|after| *after > OWN_WAIT)?;
    Some(Hopeless::Waits(after, why.to_owned()))
}

impl Hopeless {
    fn describe(&self) -> String {
        match self {
            Self::Runaway => "it kept retrying and got no answer".to_owned(),
            Self::Circles => "it kept retrying and got the same answer".to_owned(),
            Self::TooLong => {
                "its context is too long, and compacting it repeatedly did not help".to_owned()
            }
            Self::Waits(after, why) => {
                format!("it would wait {} s on its own: {why}", after.as_secs())
            }
            Self::Login(why) => format!("its API key or login is not valid: {why}"),
        }
    }

    fn limit(&self, now: Timestamp) -> Option<ReportedLimit> {
        match self {
            Self::Runaway | Self::Circles | Self::TooLong => None,
            Self::Waits(after, why) => Some(ReportedLimit {
                kind: LimitKind::Rate,
                until: now.checked_add(*after).ok(),
                words: why.clone(),
            }),
            Self::Login(why) => Some(ReportedLimit {
                kind: LimitKind::Login,
                until: None,
                words: why.clone(),
            }),
        }
    }
}

impl Understood {
    fn settle(&mut self, preview: &mut String, notes: &mut Vec<Note>) {
        for event in self.events.drain(..) {
            if let AgentEvent::Text {
                text,
                piece,
                message,
            } = &event
                && preview.chars().count() < PREVIEW_CHARS
            {
                let apart = *piece != Piece::Delta || self.previewed != Some(*message);
                let space = |c: char| c.is_whitespace();
                if apart
                    && !preview.is_empty()
                    && !preview.ends_with(space)
                    && !text.starts_with(space)
                {
                    preview.push(' ');
                }
                self.previewed = Some(*message);
                let room = PREVIEW_CHARS - preview.chars().count();
                preview.extend(text.chars().take(room));
            }
            match &event {
                AgentEvent::Retry { after, why, .. } => {
                    self.hopeless = hopeless_retry(*after, why).or(self.hopeless.take());
                    // Some say why beside their stream: an event that does not takes nothing back.
                    if !why.is_empty() || self.retrying.is_none() {
                        self.retrying = Some(why.clone());
                    }
                }
                AgentEvent::Text { .. } | AgentEvent::ToolCall { .. } => self.retrying = None,
                _ => {}
            }
            self.summary.push(&event);
        }
        match (self.resulted, self.summary.has_result()) {
            (false, true) => notes.push(Note::Resulted),
            (true, false) => notes.push(Note::WentOn),
            _ => {}
        }
        self.resulted = self.summary.has_result();
        if self.hopeless.is_none() {
            self.hopeless = runaway(&self.summary);
        }
        if self.hopeless.is_some() && !self.told_hopeless {
            self.told_hopeless = true;
            notes.push(Note::Hopeless);
        }
        let spent = self.spending();
        if spent != self.spent {
            self.spent = spent.clone();
            notes.push(Note::Spent(Box::new(spent)));
        }
    }

    /// An agent that was ended while it waited in silence for its next try: why the last one
    /// failed is what hindered it.
    fn stuck(&self, by: EndedBy, now: Timestamp, local: &TimeZone) -> Option<ReportedLimit> {
        let waited = matches!(by, EndedBy::Idle | EndedBy::Timeout | EndedBy::GaveUp);
        let why = self.retrying.as_ref().filter(|_| waited)?;
        limit_in(why, now, local)
    }

    fn spending(&self) -> Spending {
        Spending::told(self.summary.meter(), self.summary.model.as_deref())
    }

    fn report(
        &mut self,
        by: EndedBy,
        preview: &mut String,
        now: Timestamp,
        local: &TimeZone,
    ) -> RunReport {
        self.parser.finish(&mut self.events);
        self.settle(preview, &mut Vec::new());
        self.summary.finish(self.parser.trouble());
        let search = self.summary.search();
        let (found, near, bare) = search.map_or_else(Default::default, |search| {
            let (found, near) = search.end(by);
            (found, near, search.bare())
        });
        let summary = &self.summary;
        let error = match summary.result() {
            ResultState::Error(failure) => Some(failure.message),
            _ => self.hopeless.as_ref().map(Hopeless::describe),
        };
        // An agent that says its run failed claims nothing, whatever stands in its text.
        let (found, near_miss) = match (error.is_some(), found) {
            (true, _) => (None, None),
            (false, Some(found)) => (Some(found), None),
            (false, None) => (None, near_miss([near]).or_else(|| bare.map(bare_miss))),
        };
        let own_wait = self
            .hopeless
            .as_ref()
            .and_then(|hopeless| hopeless.limit(now));
        let (claim, abort) = split_claim(found.as_ref());
        let spent = self.spending();
        RunReport {
            limit: match claim {
                Some(_) => None,
                None => summary.limit(now, local).or(own_wait),
            },
            claim,
            abort,
            near_miss,
            error,
            did_nothing: summary.did_nothing(),
            tokens: spent.tokens.total().map(|_| spent.tokens),
            cost: spent.cost,
            model: spent.model,
            trouble: summary.trouble.bad_lines + summary.trouble.cut_lines,
            denied: summary
                .denials
                .iter()
                .map(|denial| denial.rule.clone())
                .collect(),
            preview: preview.clone(),
        }
    }
}
