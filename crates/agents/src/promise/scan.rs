//! Finds the lines that are worth a look, at the speed of memory.

use memchr::memrchr2;

use super::ansi::{ESC, MAX_SEQUENCE, has_sequences, sequence_len};
use super::find::OPEN;
use super::probe::{Engine, probes, rarest};

/// How far back the beginning of a fence's line is looked for; a sequence may stand there.
const LOOKBACK_BYTES: usize = 2 * MAX_SEQUENCE;

/// How a hunk of a diff begins.
const HUNK: &[u8] = b"@@ ";

/// Looks for tags, for the text where it counts untagged, for fences and for diffs, in raw bytes:
/// terminal sequences may stand anywhere in them.
#[derive(Clone, Debug)]
pub(super) struct Scanner {
    /// For bytes without any sequence; what it compares is longer, so that it errs less.
    clean: PromiseSearch,
    any: PromiseSearch,
    /// The rest of the text from its rarest part on.
    text: Vec<u8>,
}

#[derive(Clone, Debug)]
struct PromiseSearch {
    engine: Engine,
    /// What each pattern leads to.
    leads: Vec<Lead>,
}

#[derive(Clone, Copy, Debug)]
enum Lead {
    Tag,
    Text,
    Fence(u8),
    Hunk,
}

impl Scanner {
    /// `text` is what counts untagged.
    pub(super) fn new(text: Option<&[u8]>) -> Self {
        let text = rarest(text.unwrap_or_default()).to_vec();
        let mut patterns = Vec::new();
        for mark in [b'`', b'~'] {
            patterns.extend(probes(&[mark; 3]).map(|probe| (probe, Lead::Fence(mark))));
        }
        patterns.extend(probes(HUNK).map(|probe| (probe, Lead::Hunk)));
        patterns.extend(probes(OPEN).map(|probe| (probe, Lead::Tag)));
        patterns.extend(probes(&text).map(|probe| (probe, Lead::Text)));
        let unbroken = patterns
            .iter()
            .filter(|(probe, _)| !probe.contains(&ESC))
            .cloned();
        Self {
            clean: PromiseSearch::new(unbroken.collect()),
            any: PromiseSearch::new(patterns),
            text,
        }
    }

    /// Prepares the search of `hay`.
    pub(super) fn over<'a>(&'a self, hay: &'a [u8]) -> Scan<'a> {
        self.over_known(hay, has_sequences(hay))
    }

    /// The same where it is known whether there are sequences in it.
    pub(super) fn over_known<'a>(&'a self, hay: &'a [u8], sequences: bool) -> Scan<'a> {
        Scan {
            search: if sequences { &self.any } else { &self.clean },
            text: &self.text,
            hay,
            sequences,
        }
    }
}

/// A search of some bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scan<'a> {
    search: &'a PromiseSearch,
    text: &'a [u8],
    hay: &'a [u8],
    /// Whether there are sequences in it.
    sequences: bool,
}

impl Scan<'_> {
    /// How much of the end must be searched again with what follows it, where nothing was found: what is
    /// looked for may begin there. Sequences may make it as long as they like.
    pub(super) fn open_end(&self) -> usize {
        if self.sequences {
            return self.hay.len();
        }
        OPEN.len().max(self.text.len()).min(self.hay.len())
    }

    /// The first place at or behind `from` whose line may matter.
    pub(super) fn next(&self, from: usize) -> Option<usize> {
        let mut from = from;
        loop {
            let (place, lead) = self.search.find(self.hay, from)?;
            if self.is_worth(place, lead) {
                return Some(place);
            }
            from = place + 1;
        }
    }

    fn is_worth(&self, place: usize, lead: Option<Lead>) -> bool {
        let (before, rest) = self.hay.split_at(place);
        match lead {
            Some(Lead::Tag) => reads(rest, OPEN),
            Some(Lead::Text) => reads(rest, self.text),
            Some(Lead::Fence(mark)) => reads(rest, &[mark; 3]) && may_stand_first(before),
            Some(Lead::Hunk) => {
                // Merges have more of them.
                let first = before
                    .iter()
                    .rposition(|b| *b != b'@')
                    .map_or(0, |last| last + 1);
                reads(rest, HUNK) && may_stand_first(before.get(..first).unwrap_or_default())
            }
            None => true,
        }
    }
}

impl PromiseSearch {
    fn new(patterns: Vec<(Vec<u8>, Lead)>) -> Self {
        let (patterns, leads): (Vec<_>, Vec<_>) = patterns.into_iter().unzip();
        Self {
            engine: Engine::new(&patterns),
            leads,
        }
    }

    fn find(&self, hay: &[u8], from: usize) -> Option<(usize, Option<Lead>)> {
        let (place, pattern) = self.engine.find(hay, from)?;
        Some((place, self.leads.get(pattern).copied()))
    }
}

/// Whether `raw` begins with `text`, terminal sequences aside and ASCII case being equal.
fn reads(raw: &[u8], text: &[u8]) -> bool {
    let mut rest = raw;
    for byte in text {
        while let Some(&ESC) = rest.first() {
            rest = rest.get(sequence_len(rest)..).unwrap_or_default();
        }
        match rest.split_first() {
            Some((first, behind)) if first.eq_ignore_ascii_case(byte) => rest = behind,
            _ => return false,
        }
    }
    true
}

/// Whether all that stands before on the line may be nothing to be seen. The judge knows; to
/// ask it in vain costs little.
fn may_stand_first(before: &[u8]) -> bool {
    let window = before
        .get(before.len().saturating_sub(LOOKBACK_BYTES)..)
        .unwrap_or_default();
    let line = match memrchr2(b'\n', b'\r', window) {
        Some(end) => window.get(end + 1..).unwrap_or_default(),
        None => window,
    };
    has_sequences(line) || line.iter().all(|b| *b <= b' ' || *b >= 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_text_and_fence_are_found_however_they_are_written() {
        let scanner = Scanner::new(Some(b"dOne"));
        for hay in [
            "<promise>",
            "<PROMISE>",
            "<pRoMiSe>",
            "<\x1b[1mpromise>",
            "<p\x1b[0mRO\x1b[1mmise>",
            "done",
            "DONE",
            "DoNe",
            "d\x1b[1mone",
            "D\x1b[1m\x1b[2mO\x1b[mNE",
            "```",
            "\t~~~",
            "\u{feff}````",
            "`\x1b[1m``",
            "\x1b[90m```",
            "~~\x1b[m~",
            &format!("\x1b]0;{}\x07```", "title".repeat(200)),
        ] {
            let text = format!("some words that come before\n{hay} and after them\n");
            let place = scanner.over(text.as_bytes()).next(0);
            assert!(
                place.is_some_and(|place| place > 27),
                "{}",
                hay.escape_debug()
            );
        }
    }

    #[test]
    fn near_misses_are_passed_over() {
        let scanner = Scanner::new(Some(b"COMPLETE"));
        let hay =
            b"Compiling a <prototype>, ``` inline, <promised>, \x1b[32mComp\x1b[0m <p>\n".repeat(9);
        assert_eq!(scanner.over(&hay).next(0), None);
        assert_eq!(
            Scanner::new(None)
                .over(b"all is COMPLETE now, and so on and on")
                .next(0),
            None
        );
    }
}
