//! Watching: all loops in short, one of them in full. Files tell when they change; nobody is
//! asked again and again.

use std::hash::{Hash, Hasher};
use std::thread;
use std::time::{Duration, Instant};

use descartes_client::{ClientError, Fleet, Follower, LoopHandle, LoopUpdate, Output};
use descartes_kernel::transition::apply;
use descartes_views::view::{Life, Story, TaskLanes};
use iced::Subscription;
use iced::futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use tracing::warn;

use super::pace::Pace;
use super::read::speaker;
use super::{Desk, words};
use crate::message::{Followed, Message};
use crate::model::KnownLoop;

/// What happened is shown at once; what happens again and again, as often as can be read.
const RECORDS: Pace = Pace::new(
    0.2,
    Duration::from_millis(40),
    Duration::from_millis(250),
    4,
);
/// Output that never ends is looked at, not read; what is printed after a silence comes at once.
const OUTPUT: Pace = Pace::new(0.05, Duration::from_millis(150), Duration::from_secs(1), 0);
/// Records seldom come alone: those that follow at once are shown together.
const BURST: Duration = Duration::from_millis(4);
/// Beside output that never ends, records are looked for so often.
const FLOOD: Duration = Duration::from_millis(30);
/// The list comes after the loop that is looked at.
const LIST_BURST: Duration = Duration::from_millis(25);
/// A loop that could not be read is tried again so often.
const AGAIN: Duration = Duration::from_secs(2);
/// A thread whose window has turned to something else ends by then.
const LINGER: Duration = Duration::from_secs(5);
/// The loops of a task loop's tasks are looked at so often: they have journals of their own.
const TASKS: Duration = Duration::from_millis(500);
/// Iterations, waits and notes that are remembered for pictures.
const KEPT: usize = 500;
/// Records at the end of a journal in which they are looked for.
const RECENT: usize = 1536;

struct FeedKey {
    desk: Desk,
    id: String,
}

impl Hash for FeedKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// How all loops stand, whenever that changes.
pub fn fleet(desk: &Desk) -> Subscription<Message> {
    let key = FeedKey {
        desk: desk.clone(),
        id: "all loops".to_owned(),
    };
    Subscription::run_with(key, |key| {
        let (desk, (tx, rx)) = (key.desk.clone(), unbounded());
        // Without a thread nothing is followed; the window itself goes on.
        drop(thread::Builder::new().spawn(move || watch_fleet(&desk, &tx)));
        rx
    })
}

fn watch_fleet(desk: &Desk, tx: &UnboundedSender<Message>) {
    let mut fleet = Fleet::new(desk.loops.clone());
    let (mut last, mut pace) = (None, RECORDS);
    while !tx.is_closed() {
        let look = fleet.look().map_err(|error| words(&error));
        if last.as_ref() != Some(&look) {
            if tx.unbounded_send(Message::Fleet(look.clone())).is_err() {
                return;
            }
            last = Some(look);
            pace.shown();
        }
        fleet.wait(Some(LINGER));
        thread::sleep(pace.left().max(LIST_BURST));
    }
}

/// One loop: how it stands, whenever that changes, and when it prints.
pub fn follow(desk: &Desk, id: &str) -> Subscription<Message> {
    let key = FeedKey {
        desk: desk.clone(),
        id: id.to_owned(),
    };
    Subscription::run_with(key, begin)
}

fn begin(key: &FeedKey) -> UnboundedReceiver<Message> {
    let (tx, rx) = unbounded();
    let (desk, id) = (key.desk.clone(), key.id.clone());
    drop(thread::Builder::new().spawn(move || {
        let post = FeedSender { id, tx };
        let mut told = None;
        while !post.tx.is_closed() {
            let Err(error) = watch(&desk, &post) else {
                return;
            };
            let trouble = words(&error);
            warn!(
                loop_id = post.id,
                error = trouble,
                "a loop cannot be followed"
            );
            if told.as_ref() != Some(&trouble) {
                post.send(Followed::Trouble(trouble.clone()));
                told = Some(trouble);
            }
            thread::sleep(AGAIN);
        }
    }));
    rx
}

struct FeedSender {
    id: String,
    tx: UnboundedSender<Message>,
}

impl FeedSender {
    fn send(&self, news: Followed) {
        // A window that is gone is noticed when the next news is waited for.
        let _ = self
            .tx
            .unbounded_send(Message::Followed(self.id.clone(), news));
    }
}

/// The loop of the task that prints, seen from the task loop that it works for.
#[derive(Default)]
struct Speaking {
    child: Option<(String, Follower)>,
    /// When it was last looked which one it is.
    looked: Option<Instant>,
}

impl Speaking {
    /// Whether something was printed since the last look.
    fn has_printed(&mut self, parent: &LoopHandle) -> Result<bool, ClientError> {
        let fresh = self.looked.is_some_and(|at| at.elapsed() < TASKS);
        if let Some((_, follower)) = self.child.as_mut().filter(|_| fresh) {
            return Ok(follower.news()?.iter().any(is_output));
        }
        if fresh {
            return Ok(false);
        }
        self.looked = Some(Instant::now());
        let now = speaker(parent)?;
        if now.id() == parent.id() {
            return Ok(false);
        }
        match &mut self.child {
            Some((id, follower)) if id == now.id() => Ok(follower.news()?.iter().any(is_output)),
            _ => {
                let (_, follower) = now.follow(Output::Growth)?;
                self.child = Some((now.id().to_owned(), follower));
                Ok(true)
            }
        }
    }
}

fn is_output(news: &LoopUpdate) -> bool {
    matches!(news, LoopUpdate::Output { .. } | LoopUpdate::Skipped { .. })
}

/// Follows until nobody listens any more.
fn watch(desk: &Desk, post: &FeedSender) -> Result<(), ClientError> {
    let handle: LoopHandle = desk.handle(&post.id)?;
    // Before the state: what is written in between then comes twice, not never.
    let recent = handle.recent(RECENT)?;
    let (mut state, mut follower) = handle.follow(Output::Growth)?;
    let (mut story, mut lanes) = (Story::new(KEPT), TaskLanes::default());
    for record in recent.iter().filter(|record| record.seq <= state.seq) {
        story.push(record);
        lanes.push(record);
    }
    story.take_state(&state);
    lanes.take_state(&state);
    drop(recent);
    let mut speaks = Speaking::default();
    let (mut changed, mut printed) = (true, None);
    let (mut records, mut output) = (RECORDS, OUTPUT);
    while !post.tx.is_closed() {
        for news in follower.news()? {
            match news {
                LoopUpdate::Record(record) => {
                    story.push(&record);
                    lanes.push(&record);
                    apply(&mut state, &record)?;
                    changed = true;
                }
                LoopUpdate::Output { run, .. } | LoopUpdate::Skipped { run, .. } => {
                    printed = Some(run)
                }
                LoopUpdate::Life(_) => changed = true,
            }
        }
        if state.tasks.is_some() && speaks.has_printed(&handle)? {
            printed = Some(0);
        }
        // A run that ended shows its last words with its end.
        let due = changed || output.left().is_zero();
        if std::mem::take(&mut changed) {
            post.send(Followed::KnownLoop(Box::new(KnownLoop {
                state: state.clone(),
                life: follower.life(),
                story: story.clone(),
                lanes: lanes.clone(),
            })));
            records.shown();
        }
        if let Some(run) = printed.take_if(|_| due) {
            post.send(Followed::Output(run));
            output.shown();
        }
        let linger = match state.tasks.is_some() && follower.life() == Life::Alive {
            true => TASKS,
            false => LINGER,
        };
        follower.wait(Some(printed.map_or(linger, |_| output.left())));
        let burst = printed.map_or(BURST, |_| FLOOD);
        thread::sleep(records.left().max(burst));
    }
    Ok(())
}
