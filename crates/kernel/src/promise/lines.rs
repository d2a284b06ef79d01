//! Judges line after line of a stream, each with what stood before it.

use super::Claim;
use super::ansi::Stripper;
use super::echo::Echo;
use super::judge::{Line, Rules, Start};
use super::long::{LongLine, MAX_WHOLE};
use super::lookback::Lookback;
use super::verdict::{Ending, Neighbours, Sighting, Verdict};

/// What is looked for, and what is no claim though it looks like one.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) rules: Rules,
    pub(super) echo: Echo,
}

/// The stream so far, as lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    lookback: Lookback,
    verdict: Verdict,
    stripper: Stripper,
    settled: Vec<Claim>,
    /// Offset of the last claim given out.
    told: u64,
}

/// A line and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed<'a> {
    pub(super) raw: Raw<'a>,
    /// What stands before it and is not yet in the memory of the stream.
    pub(super) newer: &'a [u8],
    pub(super) ending: Ending,
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

impl Lines {
    /// Whether the very next line matters, whatever it is.
    pub(super) fn wait_for_next(&self) -> bool {
        self.verdict.is_open()
    }

    /// Judges the next line.
    pub(super) fn judge(&mut self, known: &Known, line: Placed<'_>) {
        match line.raw {
            Raw::Whole { start, bytes } if bytes.len() > MAX_WHOLE => {
                let long = LongLine::new(&known.rules, start, bytes);
                self.judge_long(known, &long, line);
            }
            Raw::Whole { start, bytes } => {
                let plain = self.stripper.strip(bytes);
                let text = Line {
                    text: plain.text,
                    start: Start::Whole,
                };
                let found = known.rules.judge(text);
                let sighting = found.map(|found| Sighting::new(&found, plain, start));
                let near = Neighbours {
                    echo: &known.echo,
                    before: self.lookback.before(line.newer),
                };
                self.verdict
                    .line(text, sighting, near, line.ending, &mut self.settled);
            }
            Raw::Long(long) => self.judge_long(known, long, line),
        }
    }

    fn judge_long(&mut self, known: &Known, long: &LongLine, line: Placed<'_>) {
        let plain = self.stripper.strip(long.window());
        let sighting = long.judge(&known.rules, plain);
        let text = Line {
            text: plain.text,
            start: Start::Cut,
        };
        let near = Neighbours {
            echo: &known.echo,
            before: self.lookback.before(line.newer),
        };
        self.verdict
            .line(text, sighting, near, line.ending, &mut self.settled);
    }

    /// Remembers complete lines.
    pub(super) fn remember(&mut self, bytes: &[u8]) {
        self.lookback.push(bytes);
    }

    /// Judges what is open as if the stream ended with `unfinished`; nothing is changed by it.
    pub(super) fn judge_end(&mut self, known: &Known, unfinished: Option<Raw<'_>>) {
        let before = self.verdict.clone();
        if let Some(raw) = unfinished {
            self.judge(
                known,
                Placed {
                    raw,
                    newer: &[],
                    ending: Ending::Quiet,
                },
            );
        }
        self.verdict.end(&mut self.settled);
        self.verdict = before;
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
