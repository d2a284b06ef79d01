//! A tag that goes over lines. Its opening line decides what it is; lines may break around the
//! text and at its blanks.

use super::ClaimKind;
use super::chars::{chars, has_words, trim};
use super::find::{Closing, closing_tag};
use super::judge::{LineStanding, Opening, PromiseRules};
use super::near;
use super::neighbours::Neighbours;
use super::quote;
use super::sentence::may_follow;

/// Bytes besides white space after which it is given up.
const MAX_INSIDE: usize = 256;

/// A tag that was opened.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    /// As its opening line and the lines before that tell.
    standing: LineStanding,
    /// As its opening line tells by itself.
    bare_standing: LineStanding,
    /// Whether it was opened within a fence that was open.
    holds: bool,
    /// What stands before it on its line.
    before: Vec<u8>,
    /// Its inside: lines without white space at their ends.
    inside: String,
    /// Bytes of it that are no white space.
    ink: usize,
    is_echo_of: Vec<ClaimKind>,
    words: String,
}

/// What a line comes to.
pub(super) enum SpreadStep {
    GoesOn(Spread),
    /// It is no tag of ours.
    Over,
    Closed(Closed),
}

/// A tag that was closed.
#[derive(Debug)]
pub(super) struct Closed {
    pub(super) kind: ClaimKind,
    pub(super) text: String,
    pub(super) standing: LineStanding,
    pub(super) bare_standing: LineStanding,
    pub(super) holds: bool,
    pub(super) is_echo: bool,
    /// Where in its line it ends.
    pub(super) end: usize,
    pub(super) words: String,
    pub(super) shown: String,
}

impl Spread {
    /// A tag that `line` opens; `standing` is how it stands among its neighbours.
    pub(super) fn open(
        opening: &Opening,
        standing: LineStanding,
        holds: bool,
        line: &[u8],
        near: Neighbours<'_>,
    ) -> Self {
        let lead = line.get(..opening.place).unwrap_or_default();
        let kinds = [ClaimKind::Done, ClaimKind::Abort];
        let led = |kind: &ClaimKind| near.echo.is_led_to(*kind, near.before, lead);
        let mut spread = Self {
            standing,
            bare_standing: opening.standing,
            holds,
            before: opening.before(line).to_vec(),
            inside: String::new(),
            ink: 0,
            is_echo_of: kinds.into_iter().filter(led).collect(),
            words: near.before.words(lead),
        };
        spread.push(opening.inner(line));
        spread
    }

    /// The next line.
    pub(super) fn line(mut self, line: &[u8], rules: &PromiseRules) -> SpreadStep {
        match closing_tag(line) {
            Closing::Breaks => SpreadStep::Over,
            Closing::GoesOn => {
                self.push(line);
                if self.ink > MAX_INSIDE {
                    return SpreadStep::Over;
                }
                SpreadStep::GoesOn(self)
            }
            Closing::Closes { inner, end } => {
                self.push(inner);
                if self.ink > MAX_INSIDE {
                    return SpreadStep::Over;
                }
                self.close(line, end, rules)
            }
        }
    }

    fn close(self, line: &[u8], end: usize, rules: &PromiseRules) -> SpreadStep {
        let Some((text, kind)) = rules.read_inner(&self.inside) else {
            return SpreadStep::Over;
        };
        let after = line.get(end..).unwrap_or_default();
        let quoted = quote::encloses(&self.before, after);
        let judge = |standing: LineStanding| match standing {
            LineStanding::Quoted => LineStanding::Quoted,
            _ if quoted => LineStanding::Quoted,
            LineStanding::Claim if chars(after).all(may_follow) => LineStanding::Claim,
            _ => LineStanding::Beside,
        };
        let before = String::from_utf8_lossy(&self.before);
        let line = format!(
            "{before}<promise>{}</promise>{}",
            self.inside,
            String::from_utf8_lossy(after)
        );
        let tag = before.len()..before.len() + self.inside.len() + 19;
        SpreadStep::Closed(Closed {
            kind,
            text: self.inside.get(text).unwrap_or_default().replace('\n', " "),
            standing: judge(self.standing),
            bare_standing: judge(self.bare_standing),
            holds: self.holds,
            is_echo: self.is_echo_of.contains(&kind),
            end,
            words: self.words,
            shown: near::shown(line.as_bytes(), &tag),
        })
    }

    fn push(&mut self, inside: &[u8]) {
        let inside = trim(inside);
        let ink = inside.iter().filter(|b| !b.is_ascii_whitespace()).count();
        self.ink += ink;
        // A line's end is a line's end, even where nothing stands before it.
        if !self.inside.is_empty() && !self.inside.ends_with('\n') && ink > 0 {
            self.inside.push('\n');
        }
        if self.ink <= MAX_INSIDE && has_ink(inside) {
            self.inside.push_str(&String::from_utf8_lossy(inside));
        }
    }
}

fn has_ink(bytes: &[u8]) -> bool {
    !bytes.is_empty() && (has_words(bytes) || !trim(bytes).is_empty())
}
