//! One loop, kept current by one thread as long as somebody looks: its state is folded, the parts of
//! its page are made once for all, and each knows since which version it stands as it does.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use descartes_client::logs::RunLog;
use descartes_client::{ClientError, Follower, LoopHandle, LoopUpdate, Loops, Output, Query};
use descartes_kernel::control::CommandId;
use descartes_kernel::event::Event;
use descartes_kernel::state::{LoopState, Phase};
use descartes_kernel::transition::apply;
use descartes_views::view::{Life, Story, TaskLanes};
use jiff::Timestamp;
use tokio::sync::watch;
use tracing::{debug, warn};

use super::Feeds;
use super::limits::ShownLimit;
use super::output::{OutputReader, OutputTail};
use crate::pages::loop_facts::LoopFacts;
use crate::pages::parts::{self, Redraw};

/// The least time between two versions: faster, no eye follows.
const PACE: Duration = Duration::from_millis(60);
/// Pictures are drawn at most so often.
const PICTURES: Duration = Duration::from_secs(2);
/// What tells of passing time is made anew so often.
const TICK: Duration = Duration::from_secs(5);
/// A loop that nobody looks at is followed so long: a browser that comes back finds it.
const LINGER: Duration = Duration::from_secs(10);
/// A loop that cannot be read is tried again so often.
const AGAIN: Duration = Duration::from_secs(2);
/// Iterations, waits and notes that are remembered, and the records in which they are looked for: as many as
/// the rows and the picture of a page are made from.
const KEPT: usize = 300;
const RECENT: usize = 768;
/// Commands whose effect is told.
const EFFECTS: usize = 32;

/// A piece of a page.
#[derive(Clone, Debug)]
pub struct PagePart {
    pub name: &'static str,
    /// The version in which it came to stand as it does.
    pub version: u64,
    pub html: Arc<str>,
}

/// A loop as its page shows it.
#[derive(Clone, Debug, Default)]
pub struct LoopView {
    /// Which follower made it: versions of another say nothing.
    pub epoch: u64,
    /// 0 until it was read for the first time.
    pub version: u64,
    pub title: String,
    /// It has tasks, whose loops print.
    pub has_tasks: bool,
    /// It takes no orders any more.
    pub is_done: bool,
    /// What can be changed, and how it stands.
    pub limits: Vec<ShownLimit>,
    pub parts: Vec<PagePart>,
    pub output: Arc<OutputTail>,
    /// Commands that have taken effect, oldest first.
    pub effects: Vec<CommandId>,
    /// Why it cannot be shown, and what to do about it.
    pub trouble: Option<(String, Option<String>)>,
}

fn next_epoch() -> u64 {
    static EPOCHS: AtomicU64 = AtomicU64::new(0);
    let begun = u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0);
    // Another process that served before began at another time.
    begun.wrapping_add(EPOCHS.fetch_add(1, Ordering::Relaxed))
}

pub(super) fn follow(loops: &Loops, id: &str, feeds: &Feeds) -> watch::Receiver<Arc<LoopView>> {
    let (sender, receiver) = watch::channel(Arc::new(LoopView::default()));
    let feed = Feed {
        loops: loops.clone(),
        id: id.to_owned(),
        feeds: Arc::clone(feeds),
        sender,
        lonely_since: None,
    };
    let spawned = thread::Builder::new()
        .name("loop".into())
        .spawn(move || feed.run());
    if let Err(error) = spawned {
        warn!(%error, "a loop cannot be followed");
    }
    receiver
}

struct Feed {
    loops: Loops,
    id: String,
    feeds: Feeds,
    sender: watch::Sender<Arc<LoopView>>,
    /// Since when nobody looks.
    lonely_since: Option<Instant>,
}

/// Nobody looks any more.
struct Lonely;

impl Feed {
    fn run(mut self) {
        loop {
            let error = match FollowedLoop::open(&self.loops, &self.id) {
                Ok(mut followed) => match self.follow(&mut followed) {
                    Ok(Lonely) => return,
                    Err(error) => error,
                },
                Err(error) => error,
            };
            debug!(loop_id = self.id, %error, "cannot be followed");
            self.tell_trouble(&error);
            thread::sleep(AGAIN);
            if self.is_over() {
                return;
            }
        }
    }

    fn follow(&mut self, followed: &mut FollowedLoop) -> Result<Lonely, ClientError> {
        loop {
            let begun = Instant::now();
            followed.take_news()?;
            if let Some(view) = followed.view() {
                self.sender.send_replace(Arc::new(view));
            }
            if self.is_over() {
                return Ok(Lonely);
            }
            thread::sleep(PACE.saturating_sub(begun.elapsed()));
            followed.follower.wait(Some(followed.sleep()));
        }
    }

    fn tell_trouble(&self, error: &ClientError) {
        let last = self.sender.borrow().clone();
        let trouble = Some((error.to_string(), error.hint()));
        if last.trouble != trouble {
            self.sender.send_replace(Arc::new(LoopView {
                version: last.version + 1,
                trouble,
                ..LoopView::clone(&last)
            }));
        }
    }

    /// Whether nobody has looked for a while; then it is forgotten.
    fn is_over(&mut self) -> bool {
        // One receiver is the hub's own.
        if self.sender.receiver_count() > 1 {
            self.lonely_since = None;
            return false;
        }
        let since = *self.lonely_since.get_or_insert_with(Instant::now);
        if since.elapsed() < LINGER {
            return false;
        }
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock: nobody comes in meanwhile.
        let over = self.sender.receiver_count() <= 1;
        if over {
            feeds.remove(&self.id);
        }
        over
    }
}

/// A loop that is followed.
struct FollowedLoop {
    handle: LoopHandle,
    follower: Follower,
    state: LoopState,
    story: Story,
    lanes: TaskLanes,
    output: OutputReader,
    effects: VecDeque<CommandId>,
    epoch: u64,
    version: u64,
    parts: Vec<PagePart>,
    tail: Arc<OutputTail>,
    records_changed: bool,
    output_changed: bool,
    drawn: Option<Instant>,
    /// Pictures that wait for their time.
    pictures_due: bool,
    pictures_drawn: Option<Instant>,
    /// When the last record was written.
    last_at: Timestamp,
}

impl FollowedLoop {
    fn open(loops: &Loops, id: &str) -> Result<Self, ClientError> {
        let handle = loops.find(&Query::Listed(id.to_owned()))?;
        let (recent, state, follower) = handle.follow_with_records(Output::Newest, RECENT)?;
        let (mut story, mut lanes) = (Story::new(KEPT), TaskLanes::default());
        let (mut last_at, mut last_run) = (state.started_at, None);
        for record in &recent {
            story.push(record);
            lanes.push(record);
            last_at = record.at;
            if let Event::RunStarted {
                run,
                iteration,
                agent,
                ..
            } = record.event
            {
                last_run = Some((run, iteration, agent));
            }
        }
        story.take_state(&state);
        lanes.take_state(&state);
        let mut output = OutputReader::default();
        if let Some(run) = last_run.filter(|_| !matches!(state.phase, Phase::Running(_))) {
            let (run, iteration, agent) = run;
            output.read_last(&handle.log_under(&state.config, run, iteration, agent));
        }
        Ok(Self {
            handle,
            follower,
            state,
            story,
            lanes,
            output,
            effects: VecDeque::new(),
            epoch: next_epoch(),
            version: 0,
            parts: Vec::new(),
            tail: Arc::default(),
            records_changed: true,
            output_changed: true,
            drawn: None,
            pictures_due: true,
            pictures_drawn: None,
            last_at,
        })
    }

    fn take_news(&mut self) -> Result<(), ClientError> {
        for news in self.follower.news()? {
            match news {
                LoopUpdate::Record(record) => {
                    self.story.push(&record);
                    self.lanes.push(&record);
                    apply(&mut self.state, &record)?;
                    self.last_at = record.at;
                    self.records_changed = true;
                    match record.event {
                        Event::AgentEnded { .. } | Event::IterationInterrupted { .. } => {
                            self.output.end_lines();
                            self.output_changed = true;
                        }
                        Event::CommandEffective { id } => {
                            self.effects.push_back(id);
                            if self.effects.len() > EFFECTS {
                                self.effects.pop_front();
                            }
                        }
                        _ => {}
                    }
                }
                LoopUpdate::Life(_) => self.records_changed = true,
                LoopUpdate::Output {
                    run,
                    iteration,
                    source,
                    bytes,
                } => {
                    let log = self.log(run, iteration);
                    self.output.output(&log, source, &bytes);
                    self.output_changed = true;
                }
                LoopUpdate::Skipped {
                    run,
                    iteration,
                    source,
                    bytes,
                } => {
                    let log = self.log(run, iteration);
                    self.output.skipped(&log, source, bytes);
                    self.output_changed = true;
                }
            }
        }
        // A folder that is deleted tells nobody.
        if !self.handle.dir().journal().is_file() {
            self.handle = self.handle.beside(self.handle.id())?;
        }
        Ok(())
    }

    fn log(&self, run: u64, iteration: u32) -> RunLog {
        let agent = self.state.run().map_or(0, |run| run.agent);
        self.handle
            .log_under(&self.state.config, run, iteration, agent)
    }

    fn is_due(&self) -> bool {
        self.drawn.is_none_or(|drawn| drawn.elapsed() >= TICK)
    }

    /// How long there is nothing to do, unless something happens.
    fn sleep(&self) -> Duration {
        match self.pictures_due {
            true => PICTURES / 2,
            false => TICK,
        }
    }

    /// A new version, where something is new.
    fn view(&mut self) -> Option<LoopView> {
        let records = std::mem::take(&mut self.records_changed);
        let output = std::mem::take(&mut self.output_changed);
        let ticks = records || self.is_due();
        self.pictures_due |= records;
        let is_time = |drawn: Instant| drawn.elapsed() >= PICTURES;
        let pictures = self.pictures_due && self.pictures_drawn.is_none_or(is_time);
        let mut changed = output || records;
        let next = self.version + 1;
        if ticks || pictures {
            changed |= self.draw(next, pictures);
        }
        if output {
            self.tail = Arc::new(self.output.tail());
        }
        if !changed {
            return None;
        }
        self.version = next;
        Some(LoopView {
            epoch: self.epoch,
            version: self.version,
            title: parts::title(&self.state, self.life()),
            has_tasks: self.state.tasks.is_some(),
            is_done: matches!(&self.state.phase, Phase::Finished { reason, .. } if reason.is_success()),
            limits: super::limits::limits(&self.state.config),
            parts: self.parts.clone(),
            output: Arc::clone(&self.tail),
            effects: self.effects.iter().copied().collect(),
            trouble: None,
        })
    }

    fn life(&self) -> Life {
        self.handle.life_of_work(self.follower.life(), &self.state)
    }

    /// Makes the parts anew; true where one came out different.
    fn draw(&mut self, version: u64, pictures: bool) -> bool {
        self.drawn = Some(Instant::now());
        if pictures {
            (self.pictures_due, self.pictures_drawn) = (false, Some(Instant::now()));
        }
        let known = LoopFacts {
            meta: self.handle.meta(),
            state: &self.state,
            life: self.life(),
            story: &self.story,
            lanes: &self.lanes,
            last_at: self.last_at,
            now: Timestamp::now(),
        };
        let redraw = match pictures {
            true => Redraw::All,
            false => Redraw::Texts,
        };
        let mut changed = false;
        for (name, html) in parts::draw(&known, redraw) {
            let new = PagePart {
                name,
                version,
                html: html.into(),
            };
            match self.parts.iter_mut().find(|part| part.name == name) {
                Some(part) if part.html == new.html => {}
                Some(part) => {
                    *part = new;
                    changed = true;
                }
                None => {
                    self.parts.push(new);
                    changed = true;
                }
            }
        }
        changed
    }
}
