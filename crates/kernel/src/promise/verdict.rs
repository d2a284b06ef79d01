//! Sets a line among its neighbours: fences, echoes, and what only the next line can tell.

use super::ansi::Plain;
use super::chars::{has_words, is_blank};
use super::echo::Echo;
use super::fence::{self, Fence, Fencing};
use super::judge::{Found, Line, Start};
use super::lookback::Before;
use super::{Claim, ClaimKind};

/// A claim that a line makes by its own words.
#[derive(Clone, Debug)]
pub(super) struct Sighting {
    pub(super) kind: ClaimKind,
    pub(super) text: String,
    pub(super) offset: u64,
    pub(super) bare: bool,
    /// The other words of its line.
    pub(super) own: Vec<u8>,
}

impl Sighting {
    /// What was found in `line`, whose raw bytes begin at `start` in the stream.
    pub(super) fn new(found: &Found, line: Plain<'_>, start: u64) -> Self {
        let text = line.text.get(found.text.clone()).unwrap_or_default();
        let last = line.raw_place(found.span.end.saturating_sub(1));
        Self {
            kind: found.kind,
            text: String::from_utf8_lossy(text).into_owned(),
            offset: start + last as u64 + 1,
            bare: found.bare,
            own: found.own_words(line.text).to_vec(),
        }
    }
}

/// How a line came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// By its end mark.
    Complete,
    /// Not yet: the stream is quiet.
    Quiet,
}

/// What a line is compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Neighbours<'a> {
    pub(super) echo: &'a Echo,
    pub(super) before: Before<'a>,
}

/// What the lines so far leave open.
#[derive(Clone, Debug, Default)]
pub(super) struct Verdict {
    fence: Option<Fence>,
    /// Stands inside a fence on the last line so far: a claim if the fence is never closed.
    held: Option<Claim>,
    /// An echo if the next line is that of the prompt.
    awaiting: Option<Claim>,
}

impl Verdict {
    /// Whether the very next line matters, whatever it is.
    pub(super) fn is_open(&self) -> bool {
        self.held.is_some() || self.awaiting.is_some()
    }

    /// Takes the next line; claims that are settled by it go to `out`.
    pub(super) fn line(
        &mut self,
        line: Line<'_>,
        sighting: Option<Sighting>,
        near: Neighbours<'_>,
        ending: Ending,
        out: &mut Vec<Claim>,
    ) {
        out.extend(self.settle_awaiting(near.echo, line.text, ending));
        self.held.take_if(|_| !is_blank(line.text));
        let fencing = match line.start {
            Start::Whole => fence::read(line.text, self.fence),
            Start::Cut => Fencing::Unchanged,
        };
        match fencing {
            Fencing::Opens(fence) => self.fence = Some(fence),
            Fencing::Closes => self.fence = None,
            Fencing::Unchanged => {
                let claim = sighting.and_then(|sighting| accept(line, sighting, near));
                out.extend(claim.and_then(|(claim, next)| self.place(claim, next)));
            }
        }
    }

    /// The stream ends here, or is quiet.
    pub(super) fn end(&mut self, out: &mut Vec<Claim>) {
        out.extend(self.awaiting.take());
        out.extend(self.held.take());
    }

    /// The claim that waited for this line, unless the line shows it to be an echo.
    fn settle_awaiting(&mut self, echo: &Echo, text: &[u8], ending: Ending) -> Option<Claim> {
        let claim = self.awaiting.take_if(|_| has_words(text))?;
        let echoed = match ending {
            Ending::Complete => echo.has_after(claim.kind, text),
            Ending::Quiet => echo.may_become_after(claim.kind, text),
        };
        (!echoed).then_some(claim)
    }

    /// Keeps the claim back where only what follows can tell; else gives it out.
    fn place(&mut self, claim: Claim, next: Next) -> Option<Claim> {
        match next {
            _ if self.fence.is_some() => self.held = Some(claim),
            Next::MayTell => self.awaiting = Some(claim),
            Next::SaysNothing => return Some(claim),
        }
        None
    }
}

/// Whether the line after a claim can show it to be an echo.
enum Next {
    MayTell,
    SaysNothing,
}

/// Turns a sighting into a claim, unless it is an echo by what stands before it.
fn accept(line: Line<'_>, sighting: Sighting, near: Neighbours<'_>) -> Option<(Claim, Next)> {
    let Sighting {
        kind,
        text,
        offset,
        bare,
        own,
    } = sighting;
    let Neighbours { echo, before } = near;
    let echoed = if !bare {
        echo.has_line(line.text)
    } else if echo.asks_before() {
        before
            .last_line_with_words()
            .is_some_and(|neighbour| echo.has_before(kind, neighbour))
    } else {
        false
    };
    if echoed {
        return None;
    }
    let next = if bare && echo.asks_after(kind) {
        Next::MayTell
    } else {
        Next::SaysNothing
    };
    Some((
        Claim {
            kind,
            text,
            offset,
            words: before.words(&own),
        },
        next,
    ))
}
