//! Standard input that tells when it has ended. Calls that are under way are still answered then, but
//! nobody is left to wait for anything.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf, Stdin};
use tokio::sync::watch;

pub struct WatchedInput {
    stdin: Stdin,
    ended: watch::Sender<bool>,
}

impl WatchedInput {
    /// The input, and what changes at its end.
    pub fn new() -> (Self, watch::Receiver<bool>) {
        let (ended, ends) = watch::channel(false);
        let stdin = tokio::io::stdin();
        (Self { stdin, ended }, ends)
    }
}

impl AsyncRead for WatchedInput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stdin).poll_read(context, buffer);
        let over = match &read {
            Poll::Ready(Ok(())) => buffer.filled().len() == before,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if over {
            self.ended.send_replace(true);
        }
        read
    }
}
