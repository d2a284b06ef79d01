//! Threads that read, so that the screen never waits for a disk: one looks after the list of
//! all loops, one after the loop that is looked at. Both sleep until files change.

mod fleet;
mod one;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use descartes_client::{Brief, Loops};

use super::detail::{Detail, Want};
use crate::view::signal::Signal;

/// The least time between two looks at the same thing: faster, no eye follows.
const PACE: Duration = Duration::from_millis(50);
/// The same for output, of which there is more.
const OUTPUT_PACE: Duration = Duration::from_millis(100);

/// What was read.
#[derive(Debug)]
pub enum ReaderEvent {
    /// All loops, or why they cannot be listed.
    Fleet(Result<Vec<Brief>, String>),
    /// The loop that is looked at.
    Detail(Box<Detail>),
}

/// The readers, from the screen's side.
pub struct Reader {
    want: Arc<Mutex<Want>>,
    call: Arc<Signal>,
    told: Receiver<ReaderEvent>,
}

/// A reader's way to the screen.
struct ScreenSender {
    told: Sender<ReaderEvent>,
    screen: Arc<Signal>,
}

impl ScreenSender {
    /// False once nobody looks any more.
    fn send(&self, told: ReaderEvent) -> bool {
        let sent = self.told.send(told).is_ok();
        self.screen.wake();
        sent
    }
}

impl Reader {
    /// Starts the threads; they wake `screen` when there is something new.
    pub fn start(loops: Loops, screen: &Arc<Signal>) -> std::io::Result<Self> {
        let (sender, told) = channel();
        let post = |told: Sender<ReaderEvent>| ScreenSender {
            told,
            screen: Arc::clone(screen),
        };
        let (call, want) = (Signal::new()?, Arc::new(Mutex::new(Want::default())));
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        let (all, list) = (loops.clone(), post(sender.clone()));
        thread("list").spawn(move || fleet::list(all, &list))?;
        let one = one::One::new(loops, Arc::clone(&want), Arc::clone(&call), post(sender));
        thread("reader").spawn(move || one.run())?;
        Ok(Self { want, call, told })
    }

    /// Says what is wanted from now on.
    pub fn want(&self, want: Want) {
        let mut held = self.want.lock().unwrap_or_else(PoisonError::into_inner);
        if *held != want {
            *held = want;
            drop(held);
            self.call.wake();
        }
    }

    /// What was read since the last call.
    pub fn news(&self) -> impl Iterator<Item = ReaderEvent> + '_ {
        self.told.try_iter()
    }
}
