//! Cuts the stream into lines and leads each that may matter before the judge.

use std::mem;

use memchr::{memchr2, memrchr2};

use super::ansi::Stripper;
use super::echo::Echo;
use super::judge::{Line, Rules, Start};
use super::long::{LongLine, MAX_WHOLE};
use super::lookback::Lookback;
use super::scan::Scanner;
use super::verdict::{Ending, Neighbours, Sighting, Verdict};
use super::{Claim, PromiseSpec};

/// How much is searched at once, so that it is still in the cache when it is looked at again.
const SWEEP: usize = 256 * 1024;

/// Searches one plain text stream for claims.
///
/// ```
/// use descartes_kernel::promise::{Detector, PromiseMatch, PromiseSpec};
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
#[derive(Debug)]
pub struct Detector {
    /// Nothing to look for, nothing to do.
    machine: Option<Machine>,
}

impl Detector {
    /// `prompt` is what the agent was sent: printing it again is no claim.
    pub fn new(spec: &PromiseSpec, prompt: &str) -> Self {
        Self {
            machine: Rules::new(spec).map(|rules| Machine::new(rules, prompt)),
        }
    }

    /// Takes the next bytes of the stream; claims on lines that end in them go to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Claim>) {
        if let Some(machine) = &mut self.machine {
            machine.push(bytes, out);
        }
    }

    /// Judges what is there as if the stream ended here. To be called at its end, and whenever
    /// it is quiet: pushing may go on, and no claim is told twice.
    pub fn finish(&mut self, out: &mut Vec<Claim>) {
        if let Some(machine) = &mut self.machine {
            machine.finish(out);
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

#[derive(Debug)]
struct Machine {
    rules: Rules,
    echo: Echo,
    scanner: Scanner,
    lookback: Lookback,
    verdict: Verdict,
    unfinished: Unfinished,
    /// Offset of the next byte.
    offset: u64,
    /// Offset of the last claim told.
    told: u64,
    stripper: Stripper,
    sweeper: Stripper,
    settled: Vec<Claim>,
}

/// The line that has not ended yet.
#[derive(Debug)]
enum Unfinished {
    Short { start: u64, bytes: Vec<u8> },
    Long(LongLine),
}

impl Unfinished {
    fn is_empty(&self) -> bool {
        matches!(self, Self::Short { bytes, .. } if bytes.is_empty())
    }

    fn push(&mut self, rules: &Rules, more: &[u8]) {
        match self {
            Self::Short { bytes, .. } if bytes.len() + more.len() <= MAX_WHOLE => {
                bytes.extend_from_slice(more);
            }
            Self::Short { start, bytes } => {
                let mut long = LongLine::new(rules, *start, bytes);
                long.push(rules, more);
                *self = Self::Long(long);
            }
            Self::Long(long) => long.push(rules, more),
        }
    }
}

impl Machine {
    fn new(rules: Rules, prompt: &str) -> Self {
        Self {
            echo: Echo::of(&rules, prompt),
            scanner: Scanner::new(&rules),
            rules,
            lookback: Lookback::default(),
            verdict: Verdict::default(),
            unfinished: Unfinished::Short {
                start: 0,
                bytes: Vec::new(),
            },
            offset: 0,
            told: 0,
            stripper: Stripper::default(),
            sweeper: Stripper::default(),
            settled: Vec::new(),
        }
    }

    fn push(&mut self, bytes: &[u8], out: &mut Vec<Claim>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = if self.unfinished.is_empty() {
                self.begin(rest, out)
            } else {
                self.go_on(rest, out)
            };
            self.offset += taken as u64;
            rest = rest.get(taken..).unwrap_or_default();
        }
        self.tell(out);
    }

    fn finish(&mut self, out: &mut Vec<Claim>) {
        let before = self.verdict.clone();
        if !self.unfinished.is_empty() {
            self.unfinished_line(Ending::Quiet);
        }
        self.verdict.end(&mut self.settled);
        self.verdict = before;
        self.tell(out);
    }

    /// Gives out what is settled, in the order in which it stood, nothing twice.
    fn tell(&mut self, out: &mut Vec<Claim>) {
        for claim in self.settled.drain(..) {
            if claim.offset > self.told {
                self.told = claim.offset;
                out.push(claim);
            }
        }
    }

    /// At a line's start: takes the complete lines, or else the beginning of one.
    fn begin(&mut self, rest: &[u8], out: &mut Vec<Claim>) -> usize {
        let window = rest.get(..SWEEP).unwrap_or(rest);
        match memrchr2(b'\n', b'\r', window) {
            Some(last) => {
                let lines = window.get(..=last).unwrap_or_default();
                self.sweep(lines);
                self.lookback.push(lines);
                self.tell(out);
                lines.len()
            }
            None => {
                self.unfinished = Unfinished::Short {
                    start: self.offset,
                    bytes: Vec::new(),
                };
                self.unfinished.push(&self.rules, window);
                window.len()
            }
        }
    }

    /// Within a line: takes more of it, up to its end if that is there.
    fn go_on(&mut self, rest: &[u8], out: &mut Vec<Claim>) -> usize {
        let end = memchr2(b'\n', b'\r', rest);
        let (more, behind) = rest.split_at(end.unwrap_or(rest.len()));
        self.unfinished.push(&self.rules, more);
        let Some(mark) = behind.first() else {
            return more.len();
        };
        self.unfinished_line(Ending::Complete);
        self.tell(out);
        match mem::replace(
            &mut self.unfinished,
            Unfinished::Short {
                start: 0,
                bytes: Vec::new(),
            },
        ) {
            Unfinished::Short { bytes, .. } => self.lookback.push(&bytes),
            Unfinished::Long(long) => self.lookback.push(long.window()),
        }
        self.lookback.push(&[*mark]);
        more.len() + 1
    }

    /// Judges those of the complete `lines` that may matter.
    fn sweep(&mut self, lines: &[u8]) {
        let mut sweeper = mem::take(&mut self.sweeper);
        let plain = sweeper.strip(lines);
        let (mut line, mut from) = (0, 0);
        while line < lines.len() {
            if !self.verdict.is_open() {
                let Some(place) = self.scanner.next(plain.text, from) else {
                    break;
                };
                let hit = plain.raw_place(place);
                from = next_line(plain.text, place);
                let Some(passed) = lines.get(line..hit) else {
                    continue;
                };
                line += memrchr2(b'\n', b'\r', passed).map_or(0, |end| end + 1);
            }
            let next = next_line(lines, line);
            let (newer, rest) = lines.split_at(line);
            let raw = rest.get(..next - line - 1).unwrap_or_default();
            self.line(raw, newer);
            line = next;
        }
        self.sweeper = sweeper;
    }

    /// Judges a complete line that stands behind `newer` at the stream's end so far.
    fn line(&mut self, raw: &[u8], newer: &[u8]) {
        let start = self.offset + newer.len() as u64;
        if raw.len() > MAX_WHOLE {
            let long = LongLine::new(&self.rules, start, raw);
            return self.long_line(&long, newer, Ending::Complete);
        }
        self.short_line(raw, start, newer, Ending::Complete);
    }

    fn unfinished_line(&mut self, ending: Ending) {
        let empty = Unfinished::Short {
            start: 0,
            bytes: Vec::new(),
        };
        let unfinished = mem::replace(&mut self.unfinished, empty);
        match &unfinished {
            Unfinished::Short { start, bytes } => self.short_line(bytes, *start, &[], ending),
            Unfinished::Long(long) => self.long_line(long, &[], ending),
        }
        self.unfinished = unfinished;
    }

    fn short_line(&mut self, raw: &[u8], start: u64, newer: &[u8], ending: Ending) {
        let plain = self.stripper.strip(raw);
        let line = Line {
            text: plain.text,
            start: Start::Whole,
        };
        let sighting = self
            .rules
            .judge(line)
            .map(|found| Sighting::new(&found, plain, start));
        let near = Neighbours {
            echo: &self.echo,
            before: self.lookback.before(newer),
        };
        self.verdict
            .line(line, sighting, near, ending, &mut self.settled);
    }

    fn long_line(&mut self, long: &LongLine, newer: &[u8], ending: Ending) {
        let plain = self.stripper.strip(long.window());
        let sighting = long.judge(&self.rules, plain);
        let line = Line {
            text: plain.text,
            start: Start::Cut,
        };
        let near = Neighbours {
            echo: &self.echo,
            before: self.lookback.before(newer),
        };
        self.verdict
            .line(line, sighting, near, ending, &mut self.settled);
    }
}

/// Where the line after that at `place` begins.
fn next_line(text: &[u8], place: usize) -> usize {
    let rest = text.get(place..).unwrap_or_default();
    place + memchr2(b'\n', b'\r', rest).map_or(rest.len(), |end| end + 1)
}
