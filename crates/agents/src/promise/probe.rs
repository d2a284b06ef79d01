//! The first, coarse search: a few rare bytes of each thing looked for.

use aho_corasick::{AhoCorasick, Input, MatchKind, Span, packed};

use super::ansi::ESC;

/// How much of a text is compared: enough to be rare, few enough variants.
const PROBE: usize = 3;

/// Letters from frequent to rare.
const FREQUENT: &[u8] = b"etaoinsrhdlucmfygpwbvkxjqz";

/// Searches for many patterns at once.
#[derive(Clone, Debug)]
pub(super) enum Engine {
    /// By vector instructions, where the processor has them.
    Packed(Box<packed::Searcher>),
    Automaton(Box<AhoCorasick>),
    /// Every byte is a lead. Patterns as few and short as ours can always be built; this is
    /// what it would cost if not.
    Everything,
}

impl Engine {
    pub(super) fn new(patterns: &[Vec<u8>]) -> Self {
        match packed::Searcher::new(patterns) {
            Some(packed) => Self::Packed(Box::new(packed)),
            None => Self::automaton(patterns),
        }
    }

    fn automaton(patterns: &[Vec<u8>]) -> Self {
        let built = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .build(patterns);
        built.map_or(Self::Everything, |automaton| {
            Self::Automaton(Box::new(automaton))
        })
    }

    /// Where the first pattern stands at or behind `from`, and which it is.
    pub(super) fn find(&self, hay: &[u8], from: usize) -> Option<(usize, usize)> {
        if from >= hay.len() {
            return None;
        }
        let span = Span {
            start: from,
            end: hay.len(),
        };
        let found = match self {
            Self::Packed(search) => search.find_in(hay, span),
            Self::Automaton(search) => search.find(Input::new(hay).span(span)),
            Self::Everything => return Some((from, usize::MAX)),
        }?;
        Some((found.start(), found.pattern().as_usize()))
    }
}

/// `text` from the part on that ordinary output holds least.
pub(super) fn rarest(text: &[u8]) -> &[u8] {
    let frequency = |byte: &u8| {
        let rank = FREQUENT
            .iter()
            .position(|letter| *letter == byte.to_ascii_lowercase());
        FREQUENT.len() - rank.unwrap_or(FREQUENT.len() / 2)
    };
    let score = |start: usize| {
        let probe = text.get(start..start + PROBE).unwrap_or_default();
        probe.iter().map(frequency).sum::<usize>()
    };
    let start = (0..(text.len() + 1).saturating_sub(PROBE)).min_by_key(|start| score(*start));
    text.get(start.unwrap_or(0)..).unwrap_or_default()
}

/// Every way in which the beginning of `text` may stand: letters of either case, and a
/// terminal sequence behind any of them.
pub(super) fn probes(text: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let probe = text.get(..PROBE).unwrap_or(text);
    let mut probes = Vec::new();
    let mut variants: Vec<Vec<u8>> = if probe.is_empty() {
        Vec::new()
    } else {
        vec![Vec::new()]
    };
    for byte in probe {
        let broken = variants.iter().filter(|variant| !variant.is_empty());
        probes.extend(broken.map(|variant| [variant.as_slice(), &[ESC]].concat()));
        let (lower, upper) = (byte.to_ascii_lowercase(), byte.to_ascii_uppercase());
        let cases = if lower == upper {
            vec![lower]
        } else {
            vec![lower, upper]
        };
        variants = variants
            .iter()
            .flat_map(|variant| {
                cases
                    .iter()
                    .map(|case| [variant.as_slice(), &[*case]].concat())
            })
            .collect();
    }
    probes.into_iter().chain(variants)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_any_length_have_a_rarest_part() {
        assert_eq!(rarest(b"COMPLETE"), b"MPLETE");
        for text in [&b""[..], b"X", b"OK", b"END"] {
            assert_eq!(rarest(text), text);
        }
    }

    #[test]
    fn the_automaton_finds_what_the_vectors_find() {
        let patterns: Vec<Vec<u8>> = probes(b"<promise>").collect();
        assert_eq!(patterns.len(), 7);
        let (search, automaton) = (Engine::new(&patterns), Engine::automaton(&patterns));
        let hay = b"........<PRomise>.....................<pro<\x1b".repeat(3);
        let mut from = 0;
        while let Some(found) = search.find(&hay, from) {
            assert_eq!(automaton.find(&hay, from), Some(found));
            assert!(Engine::Everything.find(&hay, from) <= Some(found));
            from = found.0 + 1;
        }
        assert_eq!(automaton.find(&hay, from), None);
        assert!(from > 100);
    }
}
