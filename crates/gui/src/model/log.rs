//! The output: a window into a log of any length.

use descartes_agents::reader::Source;
use descartes_client::logs::{LogPosition, LogWindow};

use crate::message::LogRequest;

/// How far a step beyond the window reaches back, in bytes.
const BACK: u64 = 64 << 10;

/// Whether the view goes with the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Follow {
    #[default]
    Tail,
    /// A person looks at something.
    Held,
}

/// The output as it is shown.
#[derive(Clone, Debug, Default)]
pub struct LogView {
    /// The loop whose output it is.
    pub id: String,
    /// The iteration; `None` is the newest.
    pub iteration: Option<u32>,
    pub source: Source,
    /// The lines that are held.
    pub window: LogWindow,
    /// The first visible one.
    pub top: usize,
    /// Lines that fit.
    pub fits: f32,
    /// Whether it goes with the end.
    pub follow: Follow,
    /// Why there is nothing to see.
    pub trouble: Option<String>,
    /// A read is under way.
    waiting: bool,
    /// Something came meanwhile.
    stale: bool,
}

impl LogView {
    /// That of a loop, not read yet.
    pub fn of(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            ..Self::default()
        }
    }

    /// Shows another log, from its end.
    pub fn open(&mut self, iteration: Option<u32>, source: Source) -> LogRequest {
        *self = Self {
            id: std::mem::take(&mut self.id),
            iteration,
            source,
            fits: self.fits,
            ..Self::default()
        };
        self.ask(LogPosition::End, None)
    }

    /// There is more to read at the end; asks for it if it is wanted, one read at a time.
    pub fn grown(&mut self) -> Option<LogRequest> {
        if self.follow == Follow::Held || self.iteration.is_some() {
            return None;
        }
        if self.waiting {
            self.stale = true;
            return None;
        }
        Some(self.ask(LogPosition::End, None))
    }

    fn ask(&mut self, place: LogPosition, anchor: Option<(u64, i64)>) -> LogRequest {
        self.waiting = true;
        LogRequest {
            id: self.id.clone(),
            iteration: self.iteration,
            source: self.source,
            place,
            anchor,
        }
    }

    /// Takes what was read; asks again where more came meanwhile.
    pub fn take(
        &mut self,
        request: &LogRequest,
        read: Result<LogWindow, String>,
    ) -> Option<LogRequest> {
        if (request.iteration, request.source) != (self.iteration, self.source) {
            return None;
        }
        self.waiting = false;
        match read {
            Ok(window) => {
                self.trouble = None;
                self.window = window;
                let last = self.last_top();
                self.top = match request.anchor {
                    None => last,
                    Some((offset, shift)) => {
                        let lines = &self.window.lines;
                        let at = lines.partition_point(|line| line.offset < offset);
                        let at = i64::try_from(at).unwrap_or(0) + shift;
                        usize::try_from(at.max(0)).unwrap_or(0).min(last)
                    }
                };
            }
            Err(trouble) => {
                self.window = LogWindow::default();
                self.trouble = Some(trouble);
            }
        }
        let again = std::mem::take(&mut self.stale) && self.follow == Follow::Tail;
        again.then(|| self.ask(LogPosition::End, None))
    }

    /// Whether it shows the end of this already.
    pub fn shows(&self, read: &LogWindow) -> bool {
        self.trouble.is_none() && self.top == self.last_top() && self.window == *read
    }

    fn last_top(&self) -> usize {
        let fits = (self.fits.floor().max(1.0)) as usize;
        self.window.lines.len().saturating_sub(fits)
    }

    /// Moves by so many lines; reads on where the window ends.
    pub fn by(&mut self, lines: i64) -> Option<LogRequest> {
        let at = i64::try_from(self.top).unwrap_or(0) + lines;
        let last = i64::try_from(self.last_top()).unwrap_or(0);
        let at_end = self.window.end >= self.window.size;
        if lines < 0 {
            self.follow = Follow::Held;
        }
        if at < 0 && self.window.begin > 0 && !self.waiting {
            let begin = self.window.begin;
            let place = LogPosition::From(begin.saturating_sub(BACK));
            return Some(self.ask(place, Some((begin, at))));
        }
        if at > last && !at_end && !self.waiting {
            let offset = self
                .window
                .lines
                .get(self.top)
                .map_or(0, |line| line.offset);
            return Some(self.ask(LogPosition::From(offset), Some((offset, lines))));
        }
        self.top = usize::try_from(at.clamp(0, last)).unwrap_or(0);
        if at >= last && at_end {
            self.follow = Follow::Tail;
        }
        None
    }

    /// Moves so that this part of the log is above.
    pub fn seek_part(&mut self, part: f32) -> Option<LogRequest> {
        let offset = (f64::from(part) * self.window.size as f64) as u64;
        self.seek(offset)
    }

    /// Moves to a byte.
    fn seek(&mut self, offset: u64) -> Option<LogRequest> {
        self.follow = Follow::Held;
        let lines = &self.window.lines;
        let at = lines.partition_point(|line| line.offset < offset);
        let held = offset >= self.window.begin && offset <= self.window.end;
        if held && (at <= self.last_top() || self.window.end >= self.window.size) {
            self.top = at.min(self.last_top());
            return None;
        }
        if self.waiting {
            return None;
        }
        Some(self.ask(LogPosition::From(offset), Some((offset, 0))))
    }

    /// Moves to the first byte.
    pub fn rewind(&mut self) -> Option<LogRequest> {
        self.seek(0)
    }

    /// Moves to the end and stays there.
    pub fn end(&mut self) -> LogRequest {
        self.follow = Follow::Tail;
        self.ask(LogPosition::End, None)
    }

    /// The visible lines.
    pub fn visible(&self) -> &[descartes_client::logs::LogLine] {
        let end = self.top + self.fits.floor().max(1.0) as usize;
        let lines = &self.window.lines;
        &lines[self.top.min(lines.len())..end.min(lines.len())]
    }

    /// The part of the log that is above, and the part that is visible.
    pub fn thumb(&self) -> (f32, f32) {
        let whole = self.window.begin == 0 && self.window.end >= self.window.size;
        if whole && self.visible().len() == self.window.lines.len() {
            return (0.0, 1.0);
        }
        let size = (self.window.size as f64).max(1.0);
        let offset = |at: usize| {
            let line = self.window.lines.get(at);
            line.map_or(self.window.end, |line| line.offset) as f64
        };
        let (first, last) = (offset(self.top), offset(self.top + self.visible().len()));
        ((first / size) as f32, ((last - first) / size) as f32)
    }
}
