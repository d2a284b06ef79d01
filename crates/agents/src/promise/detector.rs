//! Cuts the stream into lines and leads each that may matter before the judge.

use memchr::{memchr2, memrchr2};

use super::ansi::Stripper;
use super::chars::has_words;
use super::echo::{Echo, PIECE};
use super::judge::PromiseRules;
use super::lines::{Known, Placed, PromiseLines, Raw};
use super::long::{LongLine, MAX_WHOLE};
use super::near::{BarePromise, NearMisses};
use super::verdict::End;
use super::{Claim, PromiseSpec};

/// How much is searched at once, so that it is still in the cache when it is looked at again.
const SWEEP: usize = 256 * 1024;

/// Searches one plain text stream for claims.
///
/// ```
/// use descartes_agents::promise::{Detector, PromiseMatch, PromiseSpec};
///
/// let spec = PromiseSpec {
///     done: Some("COMPLETE".into()),
///     abort: None,
///     mode: PromiseMatch::Tagged,
/// };
/// let mut detector = Detector::new(&spec, "Fix the tests.");
/// let mut claims = Vec::new();
/// detector.push(b"All green. <promise>COMP", &mut claims);
/// assert!(claims.is_empty());
/// detector.push(b"LETE</promise>\n", &mut claims);
/// assert_eq!(claims[0].text, "COMPLETE");
/// ```
#[derive(Clone, Debug)]
pub struct Detector {
    /// Nothing to look for, nothing to do.
    machine: Option<Machine>,
}

impl Detector {
    /// `prompt` is what the agent was sent: printing it again is no claim.
    pub fn new(spec: &PromiseSpec, prompt: &str) -> Self {
        Self {
            machine: PromiseRules::new(spec).map(|rules| Machine::new(rules, prompt)),
        }
    }

    /// Takes the next bytes of the stream; claims on lines that end in them go to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Claim>) {
        if let Some(machine) = &mut self.machine {
            machine.push(bytes, out);
        }
    }

    /// The claims that stand while the stream is quiet and that were not told yet. They are
    /// only seen, not told: what follows may go on in the line of one. Within an open fence none stands.
    pub fn peek(&mut self, out: &mut Vec<Claim>) {
        if let Some(machine) = &mut self.machine {
            machine.peek(out);
        }
    }

    /// Judges what is there as the end of the stream of an agent that exited by itself. Pushing
    /// may go on all the same, and no claim is told twice.
    pub fn finish(&mut self, out: &mut Vec<Claim>) {
        if let Some(machine) = &mut self.machine {
            machine.finish(End::Exit, out);
        }
    }

    /// As [`Self::finish`], where the agent was ended by somebody else: what stands in a fence
    /// that is still open is no claim.
    pub fn cut_off(&mut self, out: &mut Vec<Claim>) {
        if let Some(machine) = &mut self.machine {
            machine.finish(End::CutOff, out);
        }
    }

    /// Tags with the text of a promise that are neither claims nor echoes. Those in quotes and
    /// fences are among them once the stream has ended without further words.
    pub fn near(&self) -> NearMisses {
        let near = self.machine.as_ref().map(|machine| machine.lines.near());
        near.cloned().unwrap_or_default()
    }

    /// The promise's text as the last words of the stream, where it needs its tag, or its own case: an agent that
    /// ends so means it.
    pub fn bare(&self) -> Option<BarePromise> {
        let machine = self
            .machine
            .as_ref()
            .filter(|machine| !machine.prompt_ends_bare)?;
        let kept = machine.lines.recent();
        let open = machine.unfinished.raw().map_or(&[][..], |raw| raw.bytes());
        bare_end(&machine.known.rules, &[&kept, open].concat())
    }

    /// Forgets the stream so far: another one begins.
    pub fn restart(&mut self) {
        if let Some(machine) = &mut self.machine {
            machine.lines = PromiseLines::default();
            machine.unfinished = Unfinished::None;
            machine.offset = 0;
        }
    }
}

/// The last claim in the agent's own final message.
pub fn find_in_text(spec: &PromiseSpec, text: &str) -> Option<Claim> {
    let mut detector = Detector::new(spec, "");
    let mut claims = Vec::new();
    detector.push(text.as_bytes(), &mut claims);
    detector.finish(&mut claims);
    claims.pop()
}

#[derive(Clone, Debug)]
struct Machine {
    known: Known,
    lines: PromiseLines,
    unfinished: Unfinished,
    /// Offset of the next byte.
    offset: u64,
    /// An agent that prints its prompt ends with the promise's text, too.
    prompt_ends_bare: bool,
}

/// The last line with words, where that is the promise's text without what it needs.
fn bare_end(rules: &PromiseRules, text: &[u8]) -> Option<BarePromise> {
    let mut stripper = Stripper::default();
    let text = stripper.strip(text).text;
    let mut lines = text.rsplit(|byte| matches!(byte, b'\n' | b'\r'));
    let last = lines.find(|line| has_words(line))?;
    let wanted = rules.wanted_for(last)?;
    let line = String::from_utf8_lossy(last).trim().to_owned();
    Some(BarePromise { line, wanted })
}

/// The line that has not ended yet.
#[derive(Clone, Debug)]
enum Unfinished {
    None,
    Short { start: u64, bytes: Vec<u8> },
    Long(Box<LongLine>),
}

impl Unfinished {
    fn push(&mut self, rules: &PromiseRules, more: &[u8]) {
        match self {
            Self::None => {}
            Self::Short { bytes, .. } if bytes.len() + more.len() <= MAX_WHOLE => {
                bytes.extend_from_slice(more);
            }
            Self::Short { start, bytes } => {
                // Filled up first, so that the long line begins alike whatever the split.
                let (now, later) = more.split_at(MAX_WHOLE - bytes.len());
                bytes.extend_from_slice(now);
                let mut long = LongLine::new(rules, *start, bytes);
                long.push(rules, later);
                *self = Self::Long(Box::new(long));
            }
            Self::Long(long) => long.push(rules, more),
        }
    }

    fn raw(&self) -> Option<Raw<'_>> {
        match self {
            Self::None => None,
            Self::Short { start, bytes } => Some(Raw::Whole {
                start: *start,
                bytes,
            }),
            Self::Long(long) => Some(Raw::Long(long)),
        }
    }
}

impl Machine {
    fn new(rules: PromiseRules, prompt: &str) -> Self {
        let echo = Echo::of(&rules, prompt);
        let mut texts = prompt.split(PIECE);
        let prompt_ends_bare = texts.any(|text| bare_end(&rules, text.as_bytes()).is_some());
        Self {
            prompt_ends_bare,
            known: Known { rules, echo },
            lines: PromiseLines::default(),
            unfinished: Unfinished::None,
            offset: 0,
        }
    }

    fn push(&mut self, bytes: &[u8], out: &mut Vec<Claim>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = match self.unfinished {
                Unfinished::None => self.begin(rest),
                _ => self.go_on(rest),
            };
            self.offset += taken as u64;
            rest = rest.get(taken..).unwrap_or_default();
            self.lines.tell(out);
        }
    }

    fn peek(&mut self, out: &mut Vec<Claim>) {
        self.lines
            .judge_end(&self.known, self.unfinished.raw(), End::Quiet);
        self.lines.show(out);
    }

    fn finish(&mut self, end: End, out: &mut Vec<Claim>) {
        self.lines
            .judge_end(&self.known, self.unfinished.raw(), end);
        self.lines.tell(out);
    }

    /// At a line's start: takes the complete lines, or else the beginning of one.
    fn begin(&mut self, rest: &[u8]) -> usize {
        let window = rest.get(..SWEEP).unwrap_or(rest);
        let Some(last) = memrchr2(b'\n', b'\r', window) else {
            self.unfinished = Unfinished::Short {
                start: self.offset,
                bytes: Vec::new(),
            };
            self.unfinished.push(&self.known.rules, window);
            return window.len();
        };
        let lines = window.get(..=last).unwrap_or_default();
        self.sweep(lines);
        self.lines.remember(lines);
        lines.len()
    }

    /// Within a line: takes more of it, up to its end if that is there.
    fn go_on(&mut self, rest: &[u8]) -> usize {
        let end = memchr2(b'\n', b'\r', rest);
        let (more, behind) = rest.split_at(end.unwrap_or(rest.len()));
        self.unfinished.push(&self.known.rules, more);
        let (Some(mark), Some(raw)) = (behind.first(), self.unfinished.raw()) else {
            return more.len();
        };
        self.lines.judge(&self.known, Placed { raw, newer: &[] });
        self.lines.remember(raw.bytes());
        self.lines.remember(&[*mark]);
        self.unfinished = Unfinished::None;
        more.len() + 1
    }

    /// Judges those of the complete `lines` that may matter.
    fn sweep(&mut self, lines: &[u8]) {
        let scan = self.known.rules.scan(lines);
        let mut at = 0;
        while at < lines.len() {
            if !self.lines.wait_for_next() {
                let hit = scan.next(at);
                let passed = lines.get(at..hit.unwrap_or(lines.len()));
                let passed = passed.unwrap_or_default();
                let passed = match hit {
                    Some(_) => memrchr2(b'\n', b'\r', passed).map_or(0, |end| end + 1),
                    None => passed.len(),
                };
                self.lines.pass(lines, at, at + passed);
                if hit.is_none() {
                    return;
                }
                at += passed;
            }
            let (newer, rest) = lines.split_at(at);
            let length = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
            let bytes = rest.get(..length).unwrap_or_default();
            let raw = Raw::Whole {
                start: self.offset + at as u64,
                bytes,
            };
            self.lines.judge(&self.known, Placed { raw, newer });
            at += length + 1;
        }
    }
}
