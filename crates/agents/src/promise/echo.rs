//! The prompt's own promises, so that an agent that prints its prompt claims nothing.
//!
//! The *lead* of a place where the prompt holds a promise is what stands before it: on its
//! line, on the nearest line with words above, and eight words more. A claim whose stream ends
//! in a lead is an echo. So an agent that answers with the last line or two that it was asked
//! for has claimed, and one that prints the prompt has not.

use std::collections::HashMap;
use std::ops::Range;

use super::ClaimKind;
use super::ansi::Stripper;
use super::find::{occurrences, tags_in_text};
use super::judge::PromiseRules;
use super::letters::{Letters, Speakers};
use super::lookback::Before;

/// Words beyond the nearest line, words that tell after a place, and words that need not begin a line.
const WORDS: usize = 8;

/// Letters that are compared at most.
const MAX_LETTERS: usize = 1024;

/// How far around a place in the prompt its words are looked for.
const LOOKBACK_BYTES: usize = 8 * 1024;

/// Leads are found by so many of their last bytes.
const KEY: usize = 8;

/// Stands between a prompt and the texts that it was made of, where both are told to a detector.
pub const PIECE: char = '\u{1c}';

/// What an echo of the prompt looks like.
#[derive(Clone, Debug, Default)]
pub(super) struct Echo {
    done: PromisePlaces,
    abort: PromisePlaces,
}

/// The places where the prompt holds one promise.
#[derive(Clone, Debug, Default)]
struct PromisePlaces {
    /// By their last bytes.
    leads: HashMap<[u8; KEY], Vec<Lead>>,
    /// Those with fewer bytes than that.
    short: Vec<Lead>,
    /// What follows places with no words before them.
    after: Vec<Following>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Lead {
    letters: Vec<u8>,
    speakers: Speakers,
    /// Too few words to be known in the middle of a line.
    few: bool,
}

/// The words after a place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Following {
    letters: Vec<u8>,
    speakers: Speakers,
}

/// What was printed after a claim, as far as it is compared.
#[derive(Clone, Debug, Default)]
pub(super) struct After {
    kept: Vec<u8>,
    dropped: Vec<u8>,
}

/// What the words after a claim tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// They are the prompt's.
    Echo,
    /// They are not.
    Own,
    /// They begin like the prompt's.
    NotYet,
}

impl Echo {
    /// Reads the prompt as it is sent, and the texts that it was made of: an agent that prints one of
    /// them prints nothing of what stands before it in the prompt.
    pub(super) fn of(rules: &PromiseRules, prompt: &str) -> Self {
        let mut echo = Self::default();
        // A person's prompt of the promise alone is nobody's echo, whatever was put around it.
        let is_all = prompt.split(PIECE).any(|piece| rules.is_promise(piece));
        for piece in prompt.split(PIECE) {
            echo.read(rules, piece, is_all);
        }
        echo
    }

    fn read(&mut self, rules: &PromiseRules, piece: &str, is_all: bool) {
        let echo = self;
        let mut stripper = Stripper::default();
        let text = String::from_utf8_lossy(stripper.strip(piece.as_bytes()).text);
        let counts = |span: &Range<usize>| !is_all || !is_line(&text, span);
        for (span, inner) in tags_in_text(&text).filter(|(span, _)| counts(span)) {
            if let Some(kind) = rules.kind_in_tag(inner) {
                echo.places(kind).add(&text, span.start, span.end);
            }
        }
        if let Some(bare) = rules.untagged() {
            for span in occurrences(text.as_bytes(), bare).filter(counts) {
                echo.done.add(&text, span.start, span.end);
            }
        }
    }

    fn places(&mut self, kind: ClaimKind) -> &mut PromisePlaces {
        match kind {
            ClaimKind::Done => &mut self.done,
            ClaimKind::Abort => &mut self.abort,
        }
    }

    fn of_kind(&self, kind: ClaimKind) -> &PromisePlaces {
        match kind {
            ClaimKind::Done => &self.done,
            ClaimKind::Abort => &self.abort,
        }
    }

    /// Whether what was printed before a claim shows it to be an echo. `own` is what stands
    /// before it on its line.
    pub(super) fn is_led_to(&self, kind: ClaimKind, before: Before<'_>, own: &[u8]) -> bool {
        let places = self.of_kind(kind);
        if places.leads.is_empty() && places.short.is_empty() {
            return false;
        }
        // Most claims are told by the last few letters.
        if places.rules_out(&joined(&before.recent_lines(), own)) {
            return false;
        }
        places.leads_to(&joined(&before.lines(), own))
    }

    /// Whether the words after a claim can show it to be an echo.
    pub(super) fn asks_after(&self, kind: ClaimKind) -> bool {
        !self.of_kind(kind).after.is_empty()
    }

    /// Takes in more of what was printed after a claim.
    pub(super) fn tell(&self, kind: ClaimKind, after: &mut After, text: &[u8]) -> Told {
        let line = format!("{}\n", String::from_utf8_lossy(text));
        after.push(&line);
        let mut told = Told::Own;
        for following in &self.of_kind(kind).after {
            let printed = match following.speakers {
                Speakers::Kept => &after.kept,
                Speakers::Dropped => &after.dropped,
            };
            if printed.starts_with(&following.letters) {
                return Told::Echo;
            }
            if following.letters.starts_with(printed) {
                told = Told::NotYet;
            }
        }
        told
    }
}

impl After {
    fn push(&mut self, line: &str) {
        for (kept, speakers) in [
            (&mut self.kept, Speakers::Kept),
            (&mut self.dropped, Speakers::Dropped),
        ] {
            if kept.len() <= 4 * MAX_LETTERS {
                kept.extend(Letters::of(line, speakers).bytes);
            }
        }
    }

    /// Whether nothing with words was printed.
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

/// What was printed, as it is compared.
struct Printed {
    kept: Letters,
    dropped: Letters,
}

fn joined(raw: &[u8], own: &[u8]) -> Printed {
    let mut stripper = Stripper::default();
    let mut text = String::from_utf8_lossy(stripper.strip(raw).text).into_owned();
    text.push_str(&String::from_utf8_lossy(own));
    Printed {
        kept: Letters::of(&text, Speakers::Kept),
        dropped: Letters::of(&text, Speakers::Dropped),
    }
}

impl Printed {
    fn ways(&self) -> [(&Letters, Speakers); 2] {
        [
            (&self.kept, Speakers::Kept),
            (&self.dropped, Speakers::Dropped),
        ]
    }
}

impl PromisePlaces {
    fn add(&mut self, prompt: &str, place: usize, end: usize) {
        let start = lead_start(prompt, place);
        let lead = prompt.get(start.place..place).unwrap_or_default();
        let words = words_of(lead).count();
        let few = words < WORDS && !start.is_cut;
        let ways = [Speakers::Kept, Speakers::Dropped];
        if words == 0 {
            let rest = prompt.get(end..floor(prompt, end.saturating_add(LOOKBACK_BYTES)));
            let rest = rest.unwrap_or_default();
            let told = words_of(rest).nth(WORDS - 1).or(words_of(rest).last());
            let Some(told) = told.and_then(|end| rest.get(..end)) else {
                return;
            };
            for speakers in ways {
                let letters = Letters::of(told, speakers).bytes;
                let following = Following { letters, speakers };
                if !following.letters.is_empty() && !self.after.contains(&following) {
                    self.after.push(following);
                }
            }
            return;
        }
        for speakers in ways {
            let letters = last_letters(&Letters::of(lead, speakers).bytes).to_vec();
            if !letters.is_empty() {
                self.add_lead(Lead {
                    letters,
                    speakers,
                    few,
                });
            }
        }
    }

    fn add_lead(&mut self, lead: Lead) {
        let leads = match key(&lead.letters) {
            Some(key) => self.leads.entry(key).or_default(),
            None => &mut self.short,
        };
        if !leads.contains(&lead) {
            leads.push(lead);
        }
    }

    /// Whether no lead can end what was printed, of which this is the end.
    fn rules_out(&self, printed: &Printed) -> bool {
        printed.ways().into_iter().all(|(letters, _)| {
            let mut short = self.short.iter();
            key(&letters.bytes).is_some_and(|key| !self.leads.contains_key(&key))
                && !short.any(|lead| letters.bytes.ends_with(&lead.letters))
        })
    }

    fn leads_to(&self, printed: &Printed) -> bool {
        printed.ways().into_iter().any(|(letters, speakers)| {
            let long = key(&letters.bytes).and_then(|key| self.leads.get(&key));
            let all = long.into_iter().flatten().chain(&self.short);
            all.filter(|lead| lead.speakers == speakers)
                .any(|lead| lead.ends(letters))
        })
    }
}

impl Lead {
    fn ends(&self, printed: &Letters) -> bool {
        let Some(place) = printed.bytes.len().checked_sub(self.letters.len()) else {
            return false;
        };
        printed.bytes.ends_with(&self.letters) && (!self.few || printed.begins_line(place))
    }
}

/// Whether nothing else stands on the line.
fn is_line(text: &str, span: &Range<usize>) -> bool {
    let before = text.get(..span.start).unwrap_or_default();
    let after = text.get(span.end..).unwrap_or_default();
    let before = before.trim_end_matches([' ', '\t']);
    let after = after.trim_start_matches([' ', '\t']);
    (before.is_empty() || before.ends_with(['\n', '\r']))
        && (after.is_empty() || after.starts_with(['\n', '\r']))
}

fn key(letters: &[u8]) -> Option<[u8; KEY]> {
    letters.last_chunk::<KEY>().copied()
}

/// Where the words before a place begin.
struct LeadStart {
    place: usize,
    /// There may be more before it than was looked at.
    is_cut: bool,
}

/// What stands before `place` on its line, the nearest line with words above, and eight words more.
fn lead_start(prompt: &str, place: usize) -> LeadStart {
    let from = floor(prompt, place.saturating_sub(LOOKBACK_BYTES));
    let window = prompt.get(from..place).unwrap_or_default();
    let line_start = |text: &str| text.rfind(['\n', '\r']).map_or(0, |end| end + 1);
    let mut start = line_start(window);
    while start > 0 {
        let above = window.get(..start - 1).unwrap_or_default();
        let above_start = line_start(above);
        let line = above.get(above_start..).unwrap_or_default();
        start = above_start;
        if line.contains(char::is_alphabetic) {
            break;
        }
    }
    let mut rest = window.get(..start).unwrap_or_default();
    for _ in 0..WORDS {
        while let Some(word) = last_word(rest) {
            rest = rest.get(..word).unwrap_or_default();
            start = word;
            if window
                .get(word..)
                .and_then(|from| from.split_whitespace().next())
                .is_some_and(|word| word.contains(char::is_alphabetic))
            {
                break;
            }
        }
    }
    LeadStart {
        place: from + start,
        is_cut: from > 0 && start == 0,
    }
}

/// Where the last word of `text` begins.
fn last_word(text: &str) -> Option<usize> {
    let text = text.trim_end();
    (!text.is_empty()).then(|| {
        text.char_indices()
            .rev()
            .find(|(_, c)| c.is_whitespace())
            .map_or(0, |(place, c)| place + c.len_utf8())
    })
}

/// Where each word ends.
fn words_of(text: &str) -> impl Iterator<Item = usize> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = text.get(at..)?;
            let start = at + (rest.len() - rest.trim_start().len());
            let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
            let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
            at = start + length;
            if rest.get(..length)?.contains(char::is_alphabetic) {
                return Some(at);
            }
        }
    })
}

fn last_letters(letters: &[u8]) -> &[u8] {
    let text = str::from_utf8(letters).unwrap_or_default();
    let from = text.char_indices().rev().nth(MAX_LETTERS - 1);
    letters
        .get(from.map_or(0, |(place, _)| place)..)
        .unwrap_or_default()
}

/// The boundary of a character at or before `place`.
fn floor(text: &str, place: usize) -> usize {
    let mut place = place.min(text.len());
    while !text.is_char_boundary(place) {
        place -= 1;
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::promise::lookback::Lookback;
    use crate::promise::{PromiseMatch, PromiseSpec};

    fn echo(prompt: &str) -> Echo {
        let spec = PromiseSpec {
            done: Some("DONE".into()),
            abort: Some("BLOCKED".into()),
            mode: PromiseMatch::Tagged,
        };
        Echo::of(&PromiseRules::new(&spec).unwrap(), prompt)
    }

    fn is_echo(echo: &Echo, printed: &str) -> bool {
        let (lines, own) = printed.rsplit_once('\n').unwrap_or(("", printed));
        let lines = format!("{lines}\n");
        echo.is_led_to(
            ClaimKind::Done,
            Lookback::default().before(lines.as_bytes()),
            own.as_bytes(),
        )
    }

    #[test]
    fn a_lead_is_the_line_the_line_above_and_eight_words_more() {
        let echo = echo(
            "one two three four five six seven eight\nnine ten\n\n12\nAll is well.\nSay <promise>DONE</promise>",
        );
        let lead = "three four five six seven eight\nnine ten\nAll is well.\nSay ";
        assert!(is_echo(&echo, lead));
        assert!(is_echo(
            &echo,
            "one two three four fi\nve six seven eight nine ten All is well. Sa\ny"
        ));
        assert!(!is_echo(
            &echo,
            "four five six seven eight\nnine ten\nAll is well.\nSay "
        ));
        assert!(!is_echo(&echo, "All is well.\nSay "));
        assert!(!is_echo(&echo, &format!("{lead} now")));
    }

    #[test]
    fn a_text_that_the_prompt_was_made_of_is_an_echo_without_what_stands_before_it() {
        let file = "# Parser\nWhen all is done print <promise>DONE</promise>\n";
        let prompt = format!("## Specification: spec.md, as it is on disk\n\n{file}\nGo on.");
        let printed = "# Parser\nWhen all is done print ";
        assert!(!is_echo(&echo(&prompt), printed));
        assert!(is_echo(&echo(&format!("{prompt}{PIECE}{file}")), printed));
    }

    #[test]
    fn a_lead_of_few_words_begins_a_line() {
        let echo = echo("Fix it.\n<promise>DONE</promise>");
        assert!(is_echo(&echo, "Fix it.\n"));
        assert!(is_echo(&echo, "done before\nuser: Fix it.\n"));
        assert!(is_echo(&echo, "x\n+ agent 'Fix it.\n"));
        assert!(!is_echo(&echo, "I Fix it.\n"));
        assert!(!echo.is_led_to(
            ClaimKind::Abort,
            Lookback::default().before(b"Fix it.\n"),
            b""
        ));
    }

    #[test]
    fn words_after_tell_only_where_there_are_none_before() {
        let first = echo("\n<promise>DONE</promise>\n\nis the word.\n");
        assert!(first.asks_after(ClaimKind::Done) && !first.asks_after(ClaimKind::Abort));
        let mut after = After::default();
        let done = ClaimKind::Done;
        assert_eq!(first.tell(done, &mut after, b"is the"), Told::NotYet);
        assert_eq!(first.tell(done, &mut after, b"| word"), Told::Echo);
        assert_eq!(first.tell(done, &mut After::default(), b"is my"), Told::Own);
        let alone = echo("<promise>DONE</promise>\n");
        assert!(!alone.asks_after(ClaimKind::Done) && !is_echo(&alone, "x\n"));
    }

    #[test]
    fn a_prompt_of_the_promise_alone_is_nobodys_echo() {
        let block =
            "---\n- This is iteration 2 of 9\n- Output <promise>DONE</promise> when done\n---\n";
        let alone = "<promise>DONE</promise>";
        let later = format!("{alone}\n\n{block}");
        assert!(echo(&later).asks_after(ClaimKind::Done));
        let with_spec = format!("# The plan\n\n{later}");
        for prompt in [&later, &with_spec] {
            let echo = echo(&format!("{prompt}{PIECE}{alone}\n"));
            assert!(!echo.asks_after(ClaimKind::Done), "{prompt}");
            assert!(!is_echo(&echo, "# The plan\n\n"), "{prompt}");
            // Who prints the whole prompt claims nothing by its last line.
            let (before, _) = prompt.rsplit_once(alone).unwrap();
            assert!(is_echo(&echo, before), "{prompt}");
        }
        // A prompt that says more is printed again as before.
        let more = format!("{with_spec}{PIECE}Say {alone}");
        assert!(is_echo(&echo(&more), "# The plan\n\n"));
    }

    #[test]
    fn a_prompt_full_of_promises_is_read_in_reasonable_time() {
        let many = echo(&"say <promise>DONE</promise> ".repeat(2_000));
        let printed = "say <promise>DONE</promise> ".repeat(60);
        assert!(is_echo(&many, &format!("{printed}say ")));
    }
}
