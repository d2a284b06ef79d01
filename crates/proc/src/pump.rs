//! The pump: takes the agent's output from its pipes, as fast as the sink takes it.
//!
//! One thread, used again from run to run. It sleeps in `poll` and wakes for bytes, for the end of a
//! stream, once when it has become quiet, and when it is told to stop.

use std::any::Any;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::unistd::{pipe2, read};

/// Size of the pipes, as far as the system allows: an agent seldom has to wait.
const CAPACITY: usize = 1024 * 1024;
/// Size of one read. Larger ones are slower: the bytes have left the nearest cache when the sink
/// looks at them.
const READ_CHUNK_BYTES: usize = 128 * 1024;
/// Silence after which the sink is told of it.
const QUIET_MILLIS: u16 = 100;
/// How long a sink may take for what is left when it must come to an end.
const SINK_FINISH_TIMEOUT: Duration = Duration::from_secs(10);

/// One of the agent's two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channel {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Takes the agent's output. Called from the pump's thread; while a call lasts nothing is read, and
/// an agent that goes on printing has to wait.
///
/// It comes back in the [`PumpReport`]; `(sink as Box<dyn Any>).downcast::<T>()` gives its own type.
pub trait Sink: Any + Send {
    /// Called first of all, while the agent is starting.
    fn begin(&mut self) {}
    /// Some bytes, cut anywhere.
    fn chunk(&mut self, channel: Channel, bytes: &[u8]);
    /// Nothing has come for about 100 ms; told once after bytes.
    fn quiet(&mut self) {}
    /// This stream has ended: nobody holds its other end any more.
    fn end(&mut self, _channel: Channel) {}
}

/// What came through one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stream {
    /// How many bytes.
    pub bytes: u64,
    /// Whether its end was seen; if not, somebody out of reach still holds it.
    pub ended: bool,
}

/// What a pump has done in a run.
#[derive(Default)]
pub struct PumpReport {
    /// Standard output.
    pub stdout: Stream,
    /// Standard error.
    pub stderr: Stream,
    /// The sink as given at the start; `None` if it panicked or is stuck, or nothing was started.
    pub sink: Option<Box<dyn Sink>>,
}

/// A pipe's two ends for one stream: ours, which never blocks, and the agent's.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = pipe2(OFlag::O_CLOEXEC)?;
    fcntl(&ours, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    // Refused to users who have many large pipes already: then it stays as small as it is.
    let _ = fcntl(&ours, FcntlArg::F_SETPIPE_SZ(CAPACITY as i32));
    Ok((ours, theirs))
}

struct PumpJob {
    stdout: OwnedFd,
    stderr: OwnedFd,
    sink: Box<dyn Sink>,
}

/// The host's handle on the thread.
pub(crate) struct Pump {
    jobs: Sender<PumpJob>,
    done: Receiver<PumpReport>,
    stop: Arc<EventFd>,
    at_work: bool,
}

impl Pump {
    pub(crate) fn new() -> io::Result<Self> {
        let (jobs, job) = mpsc::channel();
        let (report, done) = mpsc::channel();
        let stop = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let stop = Arc::new(stop);
        let worker = Worker {
            stop: Arc::clone(&stop),
            buffer: vec![0; READ_CHUNK_BYTES],
        };
        std::thread::Builder::new()
            .name("pump".into())
            .spawn(move || worker.work(&job, &report))?;
        Ok(Self {
            jobs,
            done,
            stop,
            at_work: false,
        })
    }

    pub(crate) fn begin(&mut self, stdout: OwnedFd, stderr: OwnedFd, sink: Box<dyn Sink>) {
        // Left from a stop that came when the job was done already.
        let _ = self.stop.read();
        self.at_work = self
            .jobs
            .send(PumpJob {
                stdout,
                stderr,
                sink,
            })
            .is_ok();
    }

    /// Waits for both ends, at most `wait`; then takes what is in the pipes and stops. An error
    /// means that the thread is lost and the pump is of no use any more.
    pub(crate) fn collect(&mut self, wait: Duration) -> Result<PumpReport, PumpReport> {
        if !std::mem::take(&mut self.at_work) {
            return Ok(PumpReport::default());
        }
        if let Ok(report) = self.done.recv_timeout(wait) {
            return Ok(report);
        }
        let _ = self.stop.write(1);
        self.done
            .recv_timeout(SINK_FINISH_TIMEOUT)
            .map_err(|_| PumpReport::default())
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        // The thread ends when it next looks for a job.
        let _ = self.stop.write(1);
    }
}

struct Worker {
    stop: Arc<EventFd>,
    buffer: Vec<u8>,
}

/// What a read gave.
enum Flow {
    Bytes(usize),
    Dry,
    End,
}

struct Pipe {
    channel: Channel,
    /// `None` once it has ended.
    fd: Option<OwnedFd>,
    bytes: u64,
}

impl Pipe {
    fn new(channel: Channel, fd: OwnedFd) -> Self {
        Self {
            channel,
            fd: Some(fd),
            bytes: 0,
        }
    }

    /// One read, handed to the sink.
    fn flow(&mut self, buffer: &mut [u8], sink: &mut dyn Sink) -> Flow {
        let Some(fd) = &self.fd else { return Flow::End };
        match read(fd, buffer) {
            Ok(count) if count > 0 => {
                self.bytes += count as u64;
                sink.chunk(self.channel, buffer.get(..count).unwrap_or_default());
                Flow::Bytes(count)
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Flow::Dry,
            // A pipe has no other errors; an unreadable one is at its end.
            Ok(_) | Err(_) => {
                self.fd = None;
                sink.end(self.channel);
                Flow::End
            }
        }
    }

    fn report(&self) -> Stream {
        Stream {
            bytes: self.bytes,
            ended: self.fd.is_none(),
        }
    }
}

/// Why `poll` came back.
enum Woken {
    Silence,
    Stop,
    /// Which of the two pipes have something.
    Ready([bool; 2]),
}

impl Worker {
    fn work(mut self, jobs: &Receiver<PumpJob>, done: &Sender<PumpReport>) {
        while let Ok(job) = jobs.recv() {
            if done.send(self.pump(job)).is_err() {
                break;
            }
        }
    }

    fn pump(&mut self, job: PumpJob) -> PumpReport {
        let mut sink = job.sink;
        sink.begin();
        let mut pipes = [
            Pipe::new(Channel::Stdout, job.stdout),
            Pipe::new(Channel::Stderr, job.stderr),
        ];
        let mut noisy = false;
        while pipes.iter().any(|pipe| pipe.fd.is_some()) {
            match self.sleep(&pipes, noisy) {
                Woken::Silence => {
                    noisy = false;
                    sink.quiet();
                }
                Woken::Stop => {
                    self.drain(&mut pipes, sink.as_mut());
                    break;
                }
                Woken::Ready(ready) => {
                    // One read each, so that neither stream waits for the other.
                    for (pipe, _) in pipes.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
                        let flow = pipe.flow(&mut self.buffer, sink.as_mut());
                        noisy |= matches!(flow, Flow::Bytes(_));
                    }
                }
            }
        }
        let [stdout, stderr] = pipes.each_ref().map(Pipe::report);
        PumpReport {
            stdout,
            stderr,
            sink: Some(sink),
        }
    }

    fn sleep(&self, pipes: &[Pipe; 2], noisy: bool) -> Woken {
        let timeout = if noisy {
            PollTimeout::from(QUIET_MILLIS)
        } else {
            PollTimeout::NONE
        };
        let mut fds = vec![PollFd::new(self.stop.as_fd(), PollFlags::POLLIN)];
        let open = pipes.iter().filter_map(|pipe| pipe.fd.as_ref());
        fds.extend(open.map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)));
        match poll(&mut fds, timeout) {
            Ok(0) => return Woken::Silence,
            Ok(_) => {}
            Err(_) => return Woken::Ready([false; 2]), // interrupted: sleep again
        }
        let mut woken = fds.iter().map(|fd| fd.any().unwrap_or(false));
        if woken.next() == Some(true) {
            return Woken::Stop;
        }
        Woken::Ready(
            pipes
                .each_ref()
                .map(|pipe| pipe.fd.is_some() && woken.next() == Some(true)),
        )
    }

    /// Takes what is in the pipes, and no more than they can hold: whoever still writes may never
    /// stop.
    fn drain(&mut self, pipes: &mut [Pipe; 2], sink: &mut dyn Sink) {
        let _ = self.stop.read();
        for pipe in pipes {
            let mut taken = 0;
            while taken < CAPACITY
                && let Flow::Bytes(count) = pipe.flow(&mut self.buffer, sink)
            {
                taken += count;
            }
        }
    }
}
