//! Unbuffered output: each call is one write, so that tests decide where the cuts are.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::Trouble;

/// One of our two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Out {
    Stdout,
    Stderr,
}

impl Out {
    /// Writes all of it, also to a pipe that its owner made non-blocking.
    pub(super) fn write(self, bytes: &[u8]) -> Result<(), Trouble> {
        match self {
            Self::Stdout => write_all(io::stdout(), bytes),
            Self::Stderr => write_all(io::stderr(), bytes),
        }
    }

    /// Closes it for the reader; what we write later goes nowhere.
    pub(super) fn close(self) -> Result<(), Trouble> {
        let nowhere = File::options().write(true).open("/dev/null");
        let nowhere = nowhere.map_err(|error| Trouble::system("/dev/null", error))?;
        let closed = match self {
            Self::Stdout => nix::unistd::dup2_stdout(nowhere),
            Self::Stderr => nix::unistd::dup2_stderr(nowhere),
        };
        closed.map_err(|error| Trouble::system("close an output", error))
    }

    /// Writes the pieces between the cuts with a pause after each.
    pub(super) fn write_split(
        self,
        bytes: &[u8],
        cuts: impl Iterator<Item = usize>,
        pause: Duration,
    ) -> Result<(), Trouble> {
        let mut from = 0;
        for cut in cuts.map(|cut| cut.min(bytes.len())).chain([bytes.len()]) {
            if cut > from {
                self.write(&bytes[from..cut])?;
                std::thread::sleep(pause);
                from = cut;
            }
        }
        Ok(())
    }
}

fn write_all(out: impl AsFd, mut bytes: &[u8]) -> Result<(), Trouble> {
    while !bytes.is_empty() {
        match nix::unistd::write(&out, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                let mut fds = [PollFd::new(out.as_fd(), PollFlags::POLLOUT)];
                let _ = poll(&mut fds, PollTimeout::NONE);
            }
            Err(Errno::EPIPE) => return Err(Trouble::PipeClosed),
            Err(error) => return Err(Trouble::system("write", error)),
        }
    }
    Ok(())
}
