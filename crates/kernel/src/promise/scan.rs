//! Finds the lines that are worth a look among text without terminal sequences.

use aho_corasick::{AhoCorasick, MatchKind, Span, packed};

use super::judge::{OPEN, Rules, starts_with};

/// How much of a text the first search compares: enough to be rare, few enough variants of case.
const PROBE: usize = 4;

/// Looks for tags, for the text where it counts untagged, and for fences.
#[derive(Debug)]
pub(super) struct Scanner {
    search: Search,
    /// What each pattern of the search is the beginning of.
    leads: Vec<Lead>,
    text: Vec<u8>,
}

#[derive(Debug)]
enum Search {
    /// By vector instructions, where the processor has them.
    Packed(Box<packed::Searcher>),
    Automaton(AhoCorasick),
    /// A pattern set that cannot be built cannot happen; every line would be looked at.
    Everything,
}

#[derive(Clone, Copy, Debug)]
enum Lead {
    Tag,
    Text,
    Fence,
}

impl Scanner {
    pub(super) fn new(rules: &Rules) -> Self {
        let text = rules.untagged().unwrap_or_default().to_vec();
        let mut patterns: Vec<(Vec<u8>, Lead)> = vec![
            (b"```".to_vec(), Lead::Fence),
            (b"~~~".to_vec(), Lead::Fence),
        ];
        patterns.extend(case_variants(OPEN).map(|variant| (variant, Lead::Tag)));
        if !text.is_empty() {
            patterns.extend(case_variants(&text).map(|variant| (variant, Lead::Text)));
        }
        let (patterns, leads): (Vec<_>, Vec<_>) = patterns.into_iter().unzip();
        Self {
            search: Search::new(&patterns),
            leads,
            text,
        }
    }

    /// The first place at or behind `from` whose line may matter.
    pub(super) fn next(&self, hay: &[u8], from: usize) -> Option<usize> {
        let mut from = from;
        loop {
            let (place, pattern) = self.search.find(hay, from)?;
            if self.is_worth(hay, place, self.leads.get(pattern)) {
                return Some(place);
            }
            from = place + 1;
        }
    }

    fn is_worth(&self, hay: &[u8], place: usize, lead: Option<&Lead>) -> bool {
        let (before, rest) = hay.split_at_checked(place).unwrap_or_default();
        match lead {
            Some(Lead::Tag) => starts_with(rest, OPEN),
            Some(Lead::Text) => starts_with(rest, &self.text),
            Some(Lead::Fence) => stands_first(before),
            None => true,
        }
    }
}

impl Search {
    fn new(patterns: &[Vec<u8>]) -> Self {
        if let Some(packed) = packed::Searcher::new(patterns) {
            return Self::Packed(Box::new(packed));
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .build(patterns);
        automaton.map_or(Self::Everything, Self::Automaton)
    }

    fn find(&self, hay: &[u8], from: usize) -> Option<(usize, usize)> {
        let span = Span {
            start: from,
            end: hay.len(),
        };
        if from >= hay.len() {
            return None;
        }
        let found = match self {
            Self::Packed(search) => search.find_in(hay, span),
            Self::Automaton(search) => search.find(aho_corasick::Input::new(hay).span(span)),
            Self::Everything => return Some((from, usize::MAX)),
        }?;
        Some((found.start(), found.pattern().as_usize()))
    }
}

/// Every way to write the beginning of `text` in ASCII letters of either case.
fn case_variants(text: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let probe = text.get(..PROBE.min(text.len())).unwrap_or_default();
    let mut variants = vec![Vec::new()];
    for byte in probe {
        let (lower, upper) = (byte.to_ascii_lowercase(), byte.to_ascii_uppercase());
        let cases: &[u8] = if lower == upper {
            &[lower]
        } else {
            &[lower, upper]
        };
        variants = variants
            .iter()
            .flat_map(|start| {
                cases
                    .iter()
                    .map(|case| [start.as_slice(), &[*case]].concat())
            })
            .collect();
    }
    variants.into_iter()
}

/// Whether nothing to be seen stands before on the line. Characters beyond ASCII may be such
/// nothing; the judge knows them.
fn stands_first(before: &[u8]) -> bool {
    let line = before
        .iter()
        .rev()
        .take_while(|b| !matches!(**b, b'\n' | b'\r'));
    line.copied().all(|b| b <= b' ' || b >= 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::promise::{PromiseMatch, PromiseSpec};

    fn scanner(done: &str, mode: PromiseMatch) -> Scanner {
        let spec = PromiseSpec {
            done: Some(done.into()),
            abort: None,
            mode,
        };
        Scanner::new(&Rules::new(&spec).unwrap())
    }

    #[test]
    fn every_case_of_tag_and_text_is_found() {
        let scanner = scanner("dOne", PromiseMatch::Line);
        for hay in [
            "<promise>",
            "<PROMISE>",
            "<pRoMiSe>",
            "done",
            "DONE",
            "DoNe",
            "```",
            " \u{feff}~~~",
        ] {
            let hay = format!("some words that come before\n{hay} and after them\n");
            assert!(
                scanner
                    .next(hay.as_bytes(), 0)
                    .is_some_and(|place| place > 27),
                "{hay}"
            );
        }
    }

    #[test]
    fn near_misses_are_passed_over() {
        let scanner = scanner("COMPLETE", PromiseMatch::Line);
        let hay = b"Compiling a <prototype> and ```inline``` code, <promised>\n".repeat(9);
        assert_eq!(scanner.next(&hay, 0), None);
        let tagged = self::scanner("COMPLETE", PromiseMatch::Tagged);
        assert_eq!(
            tagged.next(b"all is COMPLETE now, and so on and on", 0),
            None
        );
    }

    #[test]
    fn the_automaton_finds_what_the_vectors_find() {
        let patterns: Vec<Vec<u8>> = case_variants(b"<promise>").collect();
        assert_eq!(patterns.len(), 8);
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .build(&patterns);
        let automaton = Search::Automaton(automaton.unwrap());
        let hay = b"........<PRomise>.....................<pro".repeat(3);
        let search = Search::new(&patterns);
        let mut from = 0;
        while let Some(found) = search.find(&hay, from) {
            assert_eq!(automaton.find(&hay, from), Some(found));
            from = found.0 + 1;
        }
        assert_eq!(automaton.find(&hay, from), None);
        assert!(from > 100);
    }
}
