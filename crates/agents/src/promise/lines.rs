//! Judges line after line of a stream, each with what stood before it.

use memchr::memchr2;

use super::Claim;
use super::ansi::{ESC, Stripper, sequence_len};
use super::diff;
use super::echo::Echo;
use super::judge::{PromiseLine, PromiseRules, Start};
use super::long::{LongLine, MAX_WHOLE};
use super::lookback::Lookback;
use super::near::NearMisses;
use super::neighbours::Neighbours;
use super::verdict::{End, Judged, Sighting, Verdict};

/// What is looked for, and what is no claim though it looks like one.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) rules: PromiseRules,
    pub(super) echo: Echo,
}

/// The stream so far, as lines.
#[derive(Clone, Debug, Default)]
pub(super) struct PromiseLines {
    lookback: Lookback,
    verdict: Verdict,
    stripper: Stripper,
    settled: Vec<Claim>,
    /// Offset of the last claim given out.
    told: u64,
    /// The near misses as they are if the stream ended where it was asked for last.
    near_at_end: Option<NearMisses>,
}

/// A line and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed<'a> {
    pub(super) raw: Raw<'a>,
    /// What stands before it and is not yet in the memory of the stream.
    pub(super) newer: &'a [u8],
}

/// The bytes of a line.
#[derive(Clone, Copy, Debug)]
pub(super) enum Raw<'a> {
    /// All of them; they begin at `start` in the stream.
    Whole {
        start: u64,
        bytes: &'a [u8],
    },
    Long(&'a LongLine),
}

impl<'a> Raw<'a> {
    /// The bytes at the line's end, as far as they are kept.
    pub(super) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Whole { bytes, .. } => bytes,
            Self::Long(long) => long.window(),
        }
    }
}

impl PromiseLines {
    /// Whether the very next line matters, whatever it is.
    pub(super) fn wait_for_next(&self) -> bool {
        self.verdict.is_open()
    }

    /// Passes over lines that hold nothing, except that they may end a diff.
    pub(super) fn pass(&mut self, lines: &[u8], from: usize, to: usize) {
        let mut at = from;
        while at < to && self.verdict.is_in_diff() {
            let rest = lines.get(at..to).unwrap_or_default();
            let length = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
            let line = rest.get(..length).unwrap_or_default();
            let previous = match at.checked_sub(1) {
                Some(place) => lines.get(place).copied(),
                None => self.lookback.before(&[]).last_byte(),
            };
            let is_break = line.is_empty() && previous == Some(b'\r');
            if !is_break && !diff::is_diff_line(first_of(line)) {
                self.verdict.leave_diff();
            }
            at += length + 1;
        }
    }

    /// Judges the next line.
    pub(super) fn judge(&mut self, known: &Known, line: Placed<'_>) {
        self.near_at_end = None;
        match line.raw {
            Raw::Whole { start, bytes } if bytes.len() > MAX_WHOLE => {
                let long = LongLine::new(&known.rules, start, bytes);
                self.judge_long(known, &long, line);
            }
            Raw::Whole { start, bytes } => {
                let plain = self.stripper.strip(bytes);
                let text = PromiseLine {
                    text: plain.text,
                    start: Start::Whole,
                };
                let found = known.rules.judge(text);
                let judged = Judged {
                    line: text,
                    plain,
                    start,
                    sighting: found.map(|found| Sighting::new(&found, plain, start)),
                    opening: known.rules.opening(text),
                };
                let near = Neighbours {
                    rules: &known.rules,
                    echo: &known.echo,
                    before: self.lookback.before(line.newer),
                };
                self.verdict.line(judged, near, &mut self.settled);
            }
            Raw::Long(long) => self.judge_long(known, long, line),
        }
    }

    fn judge_long(&mut self, known: &Known, long: &LongLine, line: Placed<'_>) {
        let plain = self.stripper.strip(long.window());
        let judged = Judged {
            line: PromiseLine {
                text: plain.text,
                start: long.start(),
            },
            plain,
            start: long.offset(),
            sighting: long.judge(&known.rules, plain),
            opening: None,
        };
        let near = Neighbours {
            rules: &known.rules,
            echo: &known.echo,
            before: self.lookback.before(line.newer),
        };
        self.verdict.line(judged, near, &mut self.settled);
    }

    /// The last complete lines.
    pub(super) fn recent(&self) -> Vec<u8> {
        self.lookback.before(&[]).recent_lines().into_owned()
    }

    /// Remembers complete lines.
    pub(super) fn remember(&mut self, bytes: &[u8]) {
        self.lookback.push(bytes);
    }

    /// Judges what is open as if the stream ended with `unfinished`; nothing is changed by it.
    pub(super) fn judge_end(&mut self, known: &Known, unfinished: Option<Raw<'_>>, end: End) {
        let before = self.verdict.clone();
        if let Some(raw) = unfinished {
            self.judge(known, Placed { raw, newer: &[] });
        }
        self.verdict.end(end, &mut self.settled);
        self.near_at_end = (end != End::Quiet).then(|| self.verdict.near().clone());
        self.verdict = before;
    }

    /// The near misses so far; after the stream's end, all of them.
    pub(super) fn near(&self) -> &NearMisses {
        self.near_at_end.as_ref().unwrap_or(self.verdict.near())
    }

    /// Gives out what is settled, in the order in which it stood, nothing twice.
    pub(super) fn tell(&mut self, out: &mut Vec<Claim>) {
        for claim in self.settled.drain(..) {
            if claim.offset > self.told {
                self.told = claim.offset;
                out.push(claim);
            }
        }
    }

    /// Gives out what [`Self::tell`] would, and leaves it untold.
    pub(super) fn show(&mut self, out: &mut Vec<Claim>) {
        let told = self.told;
        self.tell(out);
        self.told = told;
    }
}

/// The first byte of a line that is no part of a terminal sequence.
fn first_of(line: &[u8]) -> Option<&u8> {
    let mut rest = line;
    while let Some(&ESC) = rest.first() {
        rest = rest.get(sequence_len(rest)..).unwrap_or_default();
    }
    rest.first()
}
