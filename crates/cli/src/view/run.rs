//! A view on a thread of its own: sleeps, looks, shows, until the loop is over.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use descartes_kernel::state::LoopState;
use jiff::Timestamp;

use super::feed::{Feed, FeedError, Followed, Sink};
use super::watch::{Signal, Watch};

/// Something that shows a loop.
pub trait View: Sink + Send {
    /// Everything that is known was handed over: draw it.
    fn refresh(&mut self, _: &LoopState, _: Timestamp) -> io::Result<()> {
        Ok(())
    }

    /// The loop is over.
    fn close(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The shortest time between two looks.
    fn pace(&self) -> Duration {
        Duration::from_millis(20)
    }

    /// When to look again though nothing happened.
    fn tick(&self, _: &LoopState) -> Option<Duration> {
        None
    }

    /// The first thing to show.
    fn open(&mut self, _: &LoopState) -> io::Result<()> {
        Ok(())
    }
}

/// Starts a view; `done` gets the last state when everything is shown.
pub fn spawn(
    mut view: Box<dyn View>,
    mut feed: Feed,
    signal: Arc<Signal>,
    done: Sender<Option<LoopState>>,
) -> io::Result<()> {
    let thread = thread::Builder::new().name("view".to_owned());
    thread.spawn(move || {
        // A terminal that is gone, or a journal that cannot be read, ends the view alone.
        let shown = drive(view.as_mut(), &mut feed, &signal);
        drop(shown.and_then(|()| Ok(view.close()?)));
        drop(done.send(Some(feed.state().clone())));
    })?;
    Ok(())
}

fn drive(view: &mut dyn View, feed: &mut Feed, signal: &Arc<Signal>) -> Result<(), FeedError> {
    let mut watch = Watch::new(Arc::clone(signal));
    view.open(feed.state())?;
    feed.opening(view)?;
    loop {
        // Asked before looking: what was written until then is seen.
        let over = signal.is_finished();
        match feed.pass(view)? {
            Followed::Same => {}
            Followed::None => watch.stop(),
            Followed::Run(run) => {
                watch.run(&run);
                // What came before the watch is not told by it.
                feed.pass(view)?;
            }
        }
        view.refresh(feed.state(), Timestamp::now())?;
        if over {
            return Ok(());
        }
        signal.rest(view.pace());
        let limit = if feed.has_more() {
            Some(Duration::ZERO)
        } else {
            view.tick(feed.state())
        };
        watch.wait(limit);
    }
}
