//! Waiting for the end of a loop, with progress on the way. A plain thread follows its journal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use descartes_client::{Look, LoopHandle, LoopUpdate, Output};
use descartes_kernel::transition::apply;
use descartes_views::view::{Life, Status};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use crate::answer::ToolFailure;
use crate::{look, progress};

/// A wait that nobody wants any more ends within this.
const PIECE: Duration = Duration::from_millis(500);
/// After so long without news something is told all the same.
const SILENCE: Duration = Duration::from_secs(10);

/// Set when nobody waits any more: dropped with the call, however that ends.
#[derive(Debug, Default)]
pub struct GivenUp(Arc<AtomicBool>);

impl GivenUp {
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Follows the loop until it is over, at most `limit`; how it stands then, and whether it is over.
pub fn until_over(
    found: &LoopHandle,
    limit: Duration,
    given_up: &AtomicBool,
    tell: &UnboundedSender<String>,
) -> Result<Value, ToolFailure> {
    let end = Instant::now() + limit;
    let (state, mut follower) = found.follow(Output::No)?;
    let mut look = Look {
        state,
        life: follower.life(),
        notices: Vec::new(),
        recorded: None,
    };
    let (mut last, mut told_at) = (String::new(), Instant::now());
    let mut say = |text: String, told_at: &mut Instant| {
        if text != last {
            // Whoever does not listen any more gives up the whole call.
            drop(tell.send(text.clone()));
            last = text;
            *told_at = Instant::now();
        }
    };
    // At once, so that whoever waits sees where the loop stands, and that it is followed from here on.
    if look.life == Life::Alive {
        say(progress::still(&look.state, look.life), &mut told_at);
    }
    while look.life == Life::Alive && Instant::now() < end && !given_up.load(Ordering::Relaxed) {
        let left = end.saturating_duration_since(Instant::now());
        for news in follower.next(Some(left.min(PIECE)))? {
            match news {
                LoopUpdate::Record(record) => {
                    drop(apply(&mut look.state, &record));
                    if let Some(text) = progress::line(&record, &look.state) {
                        say(text, &mut told_at);
                    }
                }
                LoopUpdate::Life(life) => look.life = life,
                LoopUpdate::Output { .. } | LoopUpdate::Skipped { .. } => {}
            }
        }
        if told_at.elapsed() >= SILENCE {
            say(progress::still(&look.state, look.life), &mut told_at);
        }
    }
    let look = found.look()?;
    let over = look.life == Life::Gone;
    let mut value = look::status_of(found, &look);
    value["over"] = over.into();
    let ended = Status::of(&look.state, look.life).end_sentence();
    value["ended"] = ended.into();
    Ok(value)
}
