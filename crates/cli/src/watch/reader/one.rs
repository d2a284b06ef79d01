//! The loop that is looked at: its state, a part of its history, a piece of its output.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use descartes_client::logs::{LogPosition, LogWindow, RunLog};
use descartes_client::{Follower, From, LoopHandle, LoopUpdate, Loops, Output, Query};
use descartes_kernel::state::LoopState;
use descartes_kernel::transition::apply;
use descartes_store::journal::last_records;
use descartes_store::watching::BLIND;
use descartes_views::view::{Head, HistoryRow, Story};

use super::{OUTPUT_PACE, PACE, ReaderEvent, ScreenSender};
use crate::view::signal::Signal;
use crate::watch::detail::{Detail, LogPlace, LogView, LogWant, LoopView, Rows, Want};

/// Rows of the history that are read at a time: a screen full, and enough for the plots.
const ROWS: u64 = 320;
/// Rows, waits, notes and remarks that are remembered.
const KEEP: usize = ROWS as usize;
/// Records at the end of a journal in which they are looked for.
const RECENT: usize = 2048;
/// Bytes of a log that are read around a place, and before it.
const WINDOW: usize = 128 << 10;
const BEFORE: u64 = 48 << 10;
/// Bytes of the end of a log that are read while it is followed: a large screen full. An
/// understood stream says less in as many bytes.
const TAIL: usize = 32 << 10;
/// A place closer than this to the end of what was read is read around anew.
const MARGIN: u64 = 24 << 10;

/// A loop that cannot be read is tried again after this.
const TRY_AGAIN: Duration = Duration::from_secs(2);

/// A loop that is followed.
struct Followed {
    handle: LoopHandle,
    follower: Follower,
    state: LoopState,
    story: Story,
}

/// What one look found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct WhatIsNew {
    records: bool,
    output: bool,
}

impl Followed {
    fn open(loops: &Loops, id: &str) -> Result<Self, String> {
        let say = |error: descartes_client::ClientError| error.to_string();
        let handle = loops.find(&Query::Named(id.to_owned())).map_err(say)?;
        // Before the state: what is written in between then comes twice, not never.
        let recent = last_records(&handle.dir().journal(), RECENT);
        let (state, follower) = handle.follow(Output::Newest).map_err(say)?;
        let mut story = Story::new(KEEP);
        let recent = recent.map_err(|error| error.to_string())?;
        let known = recent.iter().filter(|record| record.seq <= state.seq);
        known.for_each(|record| story.push(record));
        story.take_state(&state);
        Ok(Self {
            handle,
            follower,
            state,
            story,
        })
    }

    fn news(&mut self) -> Result<WhatIsNew, String> {
        let mut found = WhatIsNew::default();
        for news in self.follower.news().map_err(|error| error.to_string())? {
            match news {
                LoopUpdate::Record(record) => {
                    found.records = true;
                    self.story.push(&record);
                    apply(&mut self.state, &record).map_err(|error| error.to_string())?;
                }
                LoopUpdate::Life(_) => found.records = true,
                LoopUpdate::Output { .. } | LoopUpdate::Skipped { .. } => found.output = true,
            }
        }
        Ok(found)
    }
}

impl Followed {
    fn view(&self) -> LoopView {
        let life = self.handle.life_of_work(self.follower.life(), &self.state);
        LoopView {
            head: Head::of(&self.state, life),
            state: self.state.clone(),
            life,
            waits: self.story.waits().iter().cloned().collect(),
            notes: self.story.notes().iter().cloned().collect(),
            remarks: self.story.remarks().iter().cloned().collect(),
        }
    }

    /// The newest rows, as they were told.
    fn newest(&self) -> Rows {
        let told = self.story.rows().iter().chain(self.story.current());
        let rows: Vec<HistoryRow> = told.cloned().collect();
        let total = self.state.runs.max(rows.len() as u64);
        Rows {
            from: total - rows.len() as u64,
            rows,
            total,
        }
    }
}

/// A loop by its id: followed, or why it cannot be.
type OpenLoop = Option<(String, Result<Followed, String>)>;

pub(super) struct One {
    loops: Loops,
    want: Arc<Mutex<Want>>,
    call: Arc<Signal>,
    post: ScreenSender,
    chosen: OpenLoop,
    /// The loop whose output is shown, where it is another.
    speaker: OpenLoop,
    view: Option<Arc<LoopView>>,
    rows: Option<(Option<u64>, Arc<Rows>)>,
    log: Option<(LogWant, Result<Arc<LogView>, String>)>,
    /// Files have changed, maybe in a way that no news tell of: a log that was deleted.
    woken: bool,
}

impl One {
    pub(super) fn new(
        loops: Loops,
        want: Arc<Mutex<Want>>,
        call: Arc<Signal>,
        post: ScreenSender,
    ) -> Self {
        Self {
            loops,
            want,
            call,
            post,
            chosen: None,
            speaker: None,
            view: None,
            rows: None,
            log: None,
            woken: false,
        }
    }

    pub(super) fn run(mut self) {
        let mut served = None;
        loop {
            let begun = Instant::now();
            let want = {
                let held = self.want.lock().unwrap_or_else(PoisonError::into_inner);
                held.clone()
            };
            let found = self.look(&want);
            let is_new = found != WhatIsNew::default() || served.as_ref() != Some(&want);
            if is_new && let Some(id) = &want.id {
                let detail = Box::new(self.detail(id));
                if !self.post.send(ReaderEvent::Detail(detail)) {
                    return;
                }
            }
            served = Some(want);
            let pace = if found.output { OUTPUT_PACE } else { PACE };
            let rest = pace.saturating_sub(begun.elapsed());
            if found != WhatIsNew::default() && !rest.is_zero() {
                // A wish of the person ends the rest, news of the loop do not.
                self.call.wait(None, Some(rest));
            } else {
                self.sleep();
            }
        }
    }

    /// Sleeps until the person wants something else, or a loop has something new.
    fn sleep(&mut self) {
        let slots = [&self.chosen, &self.speaker];
        let followed = slots.iter().filter_map(|slot| slot.as_ref());
        let broken = followed.clone().any(|(_, followed)| followed.is_err());
        let followed = followed.filter_map(|(_, followed)| followed.as_ref().ok());
        let fds: Vec<_> = followed.map(|followed| followed.follower.fd()).collect();
        // Where files cannot be watched, nobody tells.
        let blind = fds.iter().any(Option::is_none).then_some(BLIND);
        let limit = [broken.then_some(TRY_AGAIN), blind].into_iter().flatten();
        self.call.wait_any(fds.into_iter().flatten(), limit.min());
        self.woken = true;
        for slot in [&mut self.chosen, &mut self.speaker] {
            match slot {
                // Takes what the kernel told off its queue.
                Some((_, Ok(followed))) => followed.follower.wait(Some(Duration::ZERO)),
                // It may have been mended meanwhile.
                Some((_, Err(_))) => *slot = None,
                None => {}
            }
        }
    }

    /// Opens what is wanted and takes what is new.
    fn look(&mut self, want: &Want) -> WhatIsNew {
        let mut found = WhatIsNew::default();
        let speaker = want.log.as_ref().map(|log| log.id.clone());
        let speaker = speaker.filter(|id| want.id.as_ref() != Some(id));
        let chosen = take_news(&self.loops, &mut self.chosen, want.id.clone(), &mut found);
        if chosen == Opened::Anew {
            (self.view, self.rows, self.log) = (None, None, None);
        }
        if found.records {
            self.view = None;
            // The newest rows change; those of old do not.
            self.rows.take_if(|(wanted, _)| wanted.is_none());
        }
        let speaks = take_news(&self.loops, &mut self.speaker, speaker, &mut found);
        if speaks == Opened::Anew {
            self.log = None;
        }
        if self.view.is_none() {
            let followed = self.chosen.as_ref().map(|(_, followed)| followed);
            let view = followed.and_then(|followed| followed.as_ref().ok()?.view().into());
            self.view = view.map(Arc::new);
        }
        self.read_rows(want.row);
        let before = self.log.clone();
        let grew = std::mem::take(&mut self.woken) || found.output || found.records;
        self.read_log(want.log.as_ref(), grew);
        found.output |= self.log != before;
        found
    }

    fn read_rows(&mut self, wanted: Option<u64>) {
        let Some((_, Ok(followed))) = &self.chosen else {
            return;
        };
        let total = followed.state.runs;
        let covers = |(of, rows): &(Option<u64>, Arc<Rows>)| match (wanted, of) {
            (None, None) => true,
            (Some(row), Some(_)) => {
                let end = rows.from + rows.rows.len() as u64;
                let needs = row.saturating_sub(ROWS / 4)..(row + ROWS / 4).min(total);
                needs.start >= rows.from && needs.end <= end && rows.total == total
            }
            _ => false,
        };
        if !self.rows.as_ref().is_some_and(covers) {
            let rows = match wanted {
                None => followed.newest(),
                Some(row) => rows_around(followed, row),
            };
            self.rows = Some((wanted, Arc::new(rows)));
        }
    }

    fn read_log(&mut self, wanted: Option<&LogWant>, grew: bool) {
        let of = |wanted: &&LogWant| {
            let slots = [&self.chosen, &self.speaker].into_iter().flatten();
            let followed = slots.filter(|(id, _)| *id == wanted.id);
            followed
                .map(|(_, followed)| followed.as_ref().ok())
                .next()?
        };
        let Some((wanted, followed)) = wanted.and_then(|wanted| Some((wanted, of(&wanted)?)))
        else {
            self.log = None;
            return;
        };
        let same = |(of, _): &&(LogWant, Result<Arc<LogView>, String>)| {
            (&of.id, of.iteration, of.source) == (&wanted.id, wanted.iteration, wanted.source)
        };
        let keep = match (self.log.as_ref().filter(same), wanted.place) {
            (Some((of, Ok(view))), LogPlace::At(at)) => {
                of.place != LogPlace::Follow && covers(&view.window, at)
            }
            (Some((of, _)), place) => of.place == place && !grew,
            (None, _) => false,
        };
        if !keep {
            let view = read_log(&followed.handle, wanted).map(Arc::new);
            self.log = Some((wanted.clone(), view));
        }
    }

    fn detail(&self, id: &str) -> Detail {
        let error_of = |slot: &OpenLoop| match slot {
            Some((_, Err(error))) => Some(error.clone()),
            _ => None,
        };
        let log = self.log.as_ref().map(|(_, view)| view.clone());
        Detail {
            id: id.to_owned(),
            standing: self.view.clone(),
            rows: self
                .rows
                .as_ref()
                .map(|(_, rows)| rows.clone())
                .unwrap_or_default(),
            log: log.or_else(|| error_of(&self.speaker).map(Err)),
            trouble: error_of(&self.chosen),
        }
    }
}

/// Whether a loop was opened just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opened {
    Anew,
    Before,
}

fn take_news(
    loops: &Loops,
    slot: &mut OpenLoop,
    id: Option<String>,
    found: &mut WhatIsNew,
) -> Opened {
    let mut taken = Opened::Before;
    if slot.as_ref().map(|(id, _)| id) != id.as_ref() {
        *slot = id.map(|id| {
            let opened = Followed::open(loops, &id);
            (id, opened)
        });
        found.records = true;
        taken = Opened::Anew;
    }
    if let Some((_, opened)) = slot
        && let Ok(followed) = opened
    {
        match followed.news() {
            Ok(more) => {
                found.records |= more.records;
                found.output |= more.output;
            }
            Err(error) => {
                *opened = Err(error);
                found.records = true;
            }
        }
    }
    taken
}

/// Whether a piece of a log holds enough around a place.
fn covers(window: &LogWindow, at: u64) -> bool {
    let before = window.begin == 0 || at >= window.begin + MARGIN;
    let after = window.end >= window.size || at + MARGIN <= window.end;
    before && after && at >= window.begin && at <= window.end
}

/// Rows that are not the newest. Those of a task loop are few, and in no order of runs.
fn rows_around(followed: &Followed, wanted: u64) -> Rows {
    let (from, most) = match followed.state.tasks {
        Some(_) => (0, u64::MAX),
        None => (wanted.saturating_sub(ROWS / 2), ROWS),
    };
    let mut read = Vec::new();
    let begin = if from == 0 {
        From::First
    } else {
        From::Run(from + 1)
    };
    let current = followed.handle.history(begin, |row| {
        read.push(row);
        match read.len() as u64 >= most {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    if (read.len() as u64) < most {
        // A journal that cannot be read has been told of already.
        read.extend(current.ok().flatten());
    }
    Rows {
        from,
        rows: read,
        total: followed.state.runs,
    }
}

fn read_log(handle: &LoopHandle, wanted: &LogWant) -> Result<LogView, String> {
    let say = |error: descartes_client::ClientError| error.to_string();
    let log: RunLog = handle.log(wanted.iteration).map_err(say)?;
    let ctx = |at: u64| LogPosition::From(at.saturating_sub(BEFORE));
    let (place, at) = match wanted.place {
        LogPlace::Follow => (LogPosition::End, None),
        LogPlace::At(at) => (ctx(at), None),
        LogPlace::Share(share) => {
            let size = log.size(wanted.source);
            let at = size / 1000 * u64::from(share) + size % 1000 * u64::from(share) / 1000;
            (ctx(at), Some(at))
        }
    };
    let most = match place {
        LogPosition::End if log.transcript().is_none() => TAIL,
        _ => WINDOW,
    };
    let window = log.window(wanted.source, place, most).map_err(say)?;
    Ok(LogView {
        iteration: log.iteration,
        run: log.run,
        window,
        at,
    })
}
