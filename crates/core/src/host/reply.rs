//! The way back to a client of the control socket.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use descartes_kernel::control::Answer;

/// Where an answer goes. A client that is gone is no error.
#[derive(Clone, Debug)]
pub(crate) struct Reply(pub(super) Arc<UnixStream>);

impl Reply {
    /// Never waits: a client that does not take its answers is cut off.
    pub(crate) fn send(&self, answer: &Answer) {
        let Ok(mut line) = serde_json::to_vec(answer) else {
            return;
        };
        line.push(b'\n');
        // The person may have gone away; the command stands all the same.
        if !matches!((&*self.0).write(&line), Ok(sent) if sent == line.len()) {
            drop(self.0.shutdown(std::net::Shutdown::Both));
        }
    }

    pub(super) fn refuse(&self, message: impl Into<String>, hint: impl Into<String>) {
        self.send(&Answer::Refused {
            message: message.into(),
            hint: hint.into(),
        });
    }
}
