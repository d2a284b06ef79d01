//! Telling when the window is drawn.

use iced::futures::Stream;
use iced::futures::stream::unfold;
use tokio::sync::watch;

/// Told by what is drawn, heard by whoever waits for it.
#[derive(Clone, Debug, Default)]
pub struct Drawn(watch::Sender<()>);

impl Drawn {
    /// It is being drawn.
    pub(super) fn tell(&self) {
        self.0.send_replace(());
    }

    /// Every time it is drawn from now on; times that nobody heard are one.
    pub fn times(&self) -> impl Stream<Item = ()> + use<> {
        unfold(self.0.subscribe(), |mut told| async {
            told.changed().await.ok()?;
            Some(((), told))
        })
    }
}
