//! Sets a line among its neighbours: fences, diffs, echoes, tags that go over lines, and what
//! only the next lines can tell.

use super::ansi::Plain;
use super::chars::{has_words, is_blank};
use super::diff;
use super::echo::{After, Echo, Told};
use super::fence::{self, Fence, Fencing};
use super::judge::{Found, LineStanding, Opening, PromiseLine, Start};
use super::lookback::Before;
use super::near::{self, NearMiss, NearMisses};
use super::neighbours::Neighbours;
use super::spread::{Spread, SpreadStep};
use super::{Claim, ClaimKind};

/// A promise that a line holds.
#[derive(Clone, Debug)]
pub(super) struct Sighting {
    pub(super) kind: ClaimKind,
    pub(super) standing: LineStanding,
    pub(super) text: String,
    pub(super) offset: u64,
    /// What stands before it on its line.
    pub(super) lead: Vec<u8>,
    /// The other words of its line.
    pub(super) own: Vec<u8>,
    /// Whether words follow it on its line.
    pub(super) words_follow: bool,
    /// What stands behind it on its line.
    pub(super) behind: Vec<u8>,
    /// The line as it is shown where it is a near miss.
    pub(super) shown: String,
    pub(super) is_tag: bool,
}

impl Sighting {
    /// What was found in `line`, whose raw bytes begin at `start` in the stream.
    pub(super) fn new(found: &Found, line: Plain<'_>, start: u64) -> Self {
        let text = line.text.get(found.text.clone()).unwrap_or_default();
        let last = line.raw_place(found.span.end.saturating_sub(1));
        let behind = line.text.get(found.span.end..).unwrap_or_default();
        let is_tag = found.span != found.text;
        Self {
            kind: found.kind,
            standing: found.standing,
            text: String::from_utf8_lossy(text).into_owned(),
            offset: start + last as u64 + 1,
            lead: line
                .text
                .get(..found.span.start)
                .unwrap_or_default()
                .to_vec(),
            own: found.own_words(line.text).to_vec(),
            words_follow: has_words(behind),
            behind: behind.to_vec(),
            shown: if is_tag {
                near::shown(line.text, &found.span)
            } else {
                String::new()
            },
            is_tag,
        }
    }
}

/// How the stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The agent exited by itself.
    Exit,
    /// It was ended by somebody else: what it had not closed may have gone on.
    CutOff,
    /// Not yet: it is quiet.
    Quiet,
}

/// A line and what it holds.
#[derive(Debug)]
pub(super) struct Judged<'a> {
    pub(super) line: PromiseLine<'a>,
    pub(super) plain: Plain<'a>,
    /// Offset of the plain text's raw bytes in the stream.
    pub(super) start: u64,
    pub(super) sighting: Option<Sighting>,
    pub(super) opening: Option<Opening>,
}

impl Judged<'_> {
    /// Offset in the stream just behind `end` in the line.
    fn offset(&self, end: usize) -> u64 {
        self.start + self.plain.raw_place(end.saturating_sub(1)) as u64 + 1
    }
}

/// A claim or a near miss.
#[derive(Clone, Debug)]
enum ClaimOrNearMiss {
    Claim(Claim),
    Near(NearMiss),
}

/// An item that the words after it may show to be an echo.
#[derive(Clone, Debug)]
struct Waiting {
    kind: ClaimKind,
    item: ClaimOrNearMiss,
    after: After,
}

/// What the lines so far leave open.
#[derive(Clone, Debug, Default)]
pub(super) struct Verdict {
    fence: Option<Fence>,
    in_diff: bool,
    /// A tag that was opened and not closed yet.
    spread: Option<Spread>,
    /// Stands inside a fence on the last line so far: a claim if the fence is never closed.
    held: Option<Claim>,
    /// In quotes or a fence, with no words behind it so far.
    quoted: Option<NearMiss>,
    waiting: Vec<Waiting>,
    near: NearMisses,
}

impl Verdict {
    /// Whether the very next line matters, whatever it is.
    pub(super) fn is_open(&self) -> bool {
        self.held.is_some()
            || self.quoted.is_some()
            || self.spread.is_some()
            || !self.waiting.is_empty()
    }

    /// Whether the lines so far are those of a diff.
    pub(super) fn is_in_diff(&self) -> bool {
        self.in_diff
    }

    /// A line that is none of a diff's was passed over.
    pub(super) fn leave_diff(&mut self) {
        self.in_diff = false;
    }

    /// The near misses that are sure.
    pub(super) fn near(&self) -> &NearMisses {
        &self.near
    }

    /// Takes the next line; claims that are settled by it go to `out`.
    pub(super) fn line(&mut self, judged: Judged<'_>, near: Neighbours<'_>, out: &mut Vec<Claim>) {
        let text = judged.line.text;
        self.hear(near.echo, text, out);
        self.held.take_if(|_| !is_blank(text));
        self.quoted.take_if(|_| has_words(text));
        self.see_diff(judged.line, near.before);
        let fencing = match judged.line.start {
            Start::Whole => fence::read(text, self.fence),
            Start::Indented | Start::Cut => Fencing::Unchanged,
        };
        let mut fenced = self.fence.is_some();
        match fencing {
            // A diff's lines are no Markdown; they close what stands around the diff at most.
            Fencing::Opens(fence) if !self.in_diff => {
                self.fence = Some(fence);
                fenced = true;
            }
            Fencing::OneLine if !self.in_diff => fenced = true,
            Fencing::Closes => self.fence = None,
            Fencing::Opens(_) | Fencing::OneLine | Fencing::Unchanged => {}
        }
        let holds = self.fence.is_some() && fencing == Fencing::Unchanged;
        self.go_on_with_spread(&judged, near, out);
        if let Some(opening) = &judged.opening {
            let standing = self.among_neighbours(opening.standing, fenced);
            self.spread = Some(Spread::open(opening, standing, holds, text, near));
        }
        if let Some(sighting) = judged.sighting {
            self.place(sighting, fenced, holds, near, out);
        }
    }

    /// The stream ends here, or is quiet.
    pub(super) fn end(&mut self, end: End, out: &mut Vec<Claim>) {
        for waiting in std::mem::take(&mut self.waiting) {
            // What was begun like the prompt may become an echo when the agent prints on.
            if end != End::Quiet || waiting.after.is_empty() {
                self.give(waiting.item, out);
            }
        }
        let held = self.held.take();
        if end == End::Exit && held.is_some() {
            self.quoted = None;
            out.extend(held);
        }
        if let Some(near) = self.quoted.take() {
            self.near.add(near);
        }
    }

    fn see_diff(&mut self, line: PromiseLine<'_>, before: Before<'_>) {
        let is_whole = line.start == Start::Whole;
        if is_whole && diff::is_hunk_header(line.text) {
            self.in_diff = true;
        } else if self.in_diff {
            // Between CR and LF there is no line.
            let is_break = line.text.is_empty() && before.last_byte() == Some(b'\r');
            self.in_diff = is_break || diff::is_diff_line(line.text.first());
        }
    }

    fn among_neighbours(&self, standing: LineStanding, fenced: bool) -> LineStanding {
        match standing {
            _ if fenced || self.in_diff => LineStanding::Quoted,
            standing => standing,
        }
    }

    /// Items that waited for this line are settled by it, or wait on.
    fn hear(&mut self, echo: &Echo, text: &[u8], out: &mut Vec<Claim>) {
        if self.waiting.is_empty() || !has_words(text) {
            return;
        }
        for mut waiting in std::mem::take(&mut self.waiting) {
            match echo.tell(waiting.kind, &mut waiting.after, text) {
                Told::Echo => {}
                Told::Own => self.give(waiting.item, out),
                Told::NotYet => self.waiting.push(waiting),
            }
        }
    }

    fn give(&mut self, item: ClaimOrNearMiss, out: &mut Vec<Claim>) {
        match item {
            ClaimOrNearMiss::Claim(claim) => out.push(claim),
            ClaimOrNearMiss::Near(near) => self.near.add(near),
        }
    }

    /// Goes on with a tag that an earlier line opened.
    fn go_on_with_spread(
        &mut self,
        judged: &Judged<'_>,
        near: Neighbours<'_>,
        out: &mut Vec<Claim>,
    ) {
        let Some(spread) = self.spread.take() else {
            return;
        };
        if judged.line.start != Start::Whole {
            return;
        }
        match spread.line(judged.line.text, near.rules) {
            SpreadStep::GoesOn(spread) => self.spread = Some(spread),
            SpreadStep::Over => {}
            SpreadStep::Closed(closed) => {
                let holds = closed.holds && self.fence.is_some();
                let offset = judged.offset(closed.end);
                if closed.is_echo {
                    return;
                }
                let after = judged.line.text.get(closed.end..).unwrap_or_default();
                let claim = Claim {
                    kind: closed.kind,
                    text: closed.text,
                    offset,
                    words: closed.words,
                };
                let missed = NearMiss {
                    kind: closed.kind,
                    line: closed.shown,
                };
                let standing = if holds {
                    closed.bare_standing
                } else {
                    closed.standing
                };
                self.settle(standing, holds, has_words(after), claim, missed);
                self.release(after, near, out);
            }
        }
    }

    /// Turns what a line holds into a claim or a near miss, unless it is an echo.
    fn place(
        &mut self,
        sighting: Sighting,
        fenced: bool,
        holds: bool,
        near: Neighbours<'_>,
        out: &mut Vec<Claim>,
    ) {
        let kind = sighting.kind;
        if near.echo.is_led_to(kind, near.before, &sighting.lead) {
            return;
        }
        let claim = Claim {
            kind,
            text: sighting.text,
            offset: sighting.offset,
            words: near.before.words(&sighting.own),
        };
        if !sighting.is_tag {
            // Without its tag it is a claim or nothing.
            if !self.in_diff && !fenced {
                self.waiting
                    .push(Waiting::new(kind, ClaimOrNearMiss::Claim(claim)));
            } else if holds && !self.in_diff {
                self.held = Some(claim);
            }
            self.release(&sighting.behind, near, out);
            return;
        }
        let holds = holds && !self.in_diff;
        let standing = if holds {
            sighting.standing
        } else {
            self.among_neighbours(sighting.standing, fenced)
        };
        let missed = NearMiss {
            kind,
            line: sighting.shown,
        };
        self.settle(standing, holds, sighting.words_follow, claim, missed);
        self.release(&sighting.behind, near, out);
    }

    /// Puts a promise where it belongs. `holds` says that it stands in an open fence.
    fn settle(
        &mut self,
        standing: LineStanding,
        holds: bool,
        words_follow: bool,
        claim: Claim,
        missed: NearMiss,
    ) {
        let kind = claim.kind;
        if holds {
            self.quoted = (!words_follow).then_some(missed);
            self.held = (standing == LineStanding::Claim).then_some(claim);
            return;
        }
        match standing {
            LineStanding::Claim => self
                .waiting
                .push(Waiting::new(kind, ClaimOrNearMiss::Claim(claim))),
            LineStanding::Beside => self
                .waiting
                .push(Waiting::new(kind, ClaimOrNearMiss::Near(missed))),
            LineStanding::Quoted => self.quoted = (!words_follow).then_some(missed),
        }
    }

    /// Gives out what need not wait; `behind` is what its line goes on with.
    fn release(&mut self, behind: &[u8], near: Neighbours<'_>, out: &mut Vec<Claim>) {
        let Some(mut last) = self.waiting.pop_if(|last| last.after.is_empty()) else {
            return;
        };
        if !near.echo.asks_after(last.kind) {
            return self.give(last.item, out);
        }
        match echo_behind(near.echo, &mut last, behind) {
            Told::Echo => {}
            Told::Own => self.give(last.item, out),
            Told::NotYet => self.waiting.push(last),
        }
    }
}

fn echo_behind(echo: &Echo, waiting: &mut Waiting, behind: &[u8]) -> Told {
    if has_words(behind) {
        echo.tell(waiting.kind, &mut waiting.after, behind)
    } else {
        Told::NotYet
    }
}

impl Waiting {
    fn new(kind: ClaimKind, item: ClaimOrNearMiss) -> Self {
        Self {
            kind,
            item,
            after: After::default(),
        }
    }
}
