//! Commands to loops. Each is sent from a thread of its own: a loop that does not answer
//! never stops the screen.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use descartes_client::{ClientError, ControlEffect, Loops, Query, Sent};
use descartes_kernel::control::Command;

use crate::style::{Cell, Tone};
use crate::view::signal::Signal;
use crate::view::words;
use crate::within;

/// How long a loop is waited for.
const LOOP_REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// What happens at once is waited for so long.
const AT_ONCE: Duration = Duration::from_secs(1);
/// A loop that is cancelled ends its processes first.
const CANCEL: Duration = Duration::from_secs(60);

/// The way of an answer to the screen.
pub struct Post {
    pub answer: Sender<Cell>,
    pub screen: Arc<Signal>,
}

/// Sends a command; the answer comes later.
pub fn send(loops: Loops, id: String, command: Command, post: Post) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name("send".into());
    thread.spawn(move || {
        let answer = match deliver(&loops, &id, &command) {
            Ok(text) => Cell::new(Tone::Good, text),
            Err(error) => {
                let hint = error.hint().map(|hint| format!(" ({hint})"));
                Cell::new(Tone::Bad, format!("{error}{}", hint.unwrap_or_default()))
            }
        };
        // The person may be gone by now.
        let _ = post.answer.send(answer);
        post.screen.wake();
    })?;
    Ok(())
}

fn deliver(loops: &Loops, id: &str, command: &Command) -> Result<String, ClientError> {
    let found = loops.find(&Query::Named(id.to_owned()))?;
    within::refuse_steering(&found).map_err(|error| ClientError::Refused {
        message: error.to_string(),
        hint: error.hints().join("; "),
    })?;
    let name = found.name();
    Ok(match found.send_within(command, LOOP_REPLY_TIMEOUT)? {
        Sent::Live(mut ticket) => {
            let limit = match command {
                Command::Cancel { .. } => CANCEL,
                _ => AT_ONCE,
            };
            match ticket.effect(limit)? {
                ControlEffect::Done(message) => format!("{name}: {message}"),
                ControlEffect::Pending => format!("{name}: {}", words::accepted(command)),
                ControlEffect::HostGone => {
                    format!("{name}: its process is gone; recorded in the journal")
                }
            }
        }
        Sent::Recorded(recorded) => match recorded.remote_agents() {
            Some(remote) => format!("{name} is not running: recorded; {remote}"),
            None => format!("{name} is not running: recorded for its next resume"),
        },
        Sent::Signalled { pid } => format!("{name}: process {pid} was asked to end"),
    })
}
