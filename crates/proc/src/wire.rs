//! The language between host and guard: frames on stream sockets, one byte of kind, four of length,
//! then the body; numbers in native order (both ends are the same program on the same machine).

use std::ffi::CStr;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::boot_time::BootTime;
use crate::events::{Ending, Exit, Survivor, TreeEvent};
use crate::launch::Order;
use crate::lease::TreeLease;
use crate::sys;

/// Both ends must speak the same version: the binary on disk may have been replaced meanwhile.
pub(crate) const VERSION: u32 = 4;

/// An order cannot be longer (the kernel takes 6 MiB of strings); more means a broken peer.
const LONGEST_BODY: usize = 16 * 1024 * 1024;
const HEAD: usize = 5;

/// What a frame is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// Host to guard: the events socket and the descriptors to keep.
    Hello = 1,
    /// Guard to host: the version.
    Ready,
    /// Host to guard: start an agent.
    Start,
    /// Guard to host: it runs.
    Started,
    /// Guard to host: it does not, and errno.
    Refused,
    /// Host to guard: end the run.
    End,
    /// Guard to host, on the events socket.
    Exited,
    /// Guard to host, on the events socket.
    Swept,
    /// Host to guard: until when the tree may work.
    Lease,
}

impl FrameKind {
    fn from_byte(byte: u8) -> Option<Self> {
        use FrameKind::{End, Exited, Hello, Lease, Ready, Refused, Start, Started, Swept};
        let all = [
            Hello, Ready, Start, Started, Refused, End, Exited, Swept, Lease,
        ];
        all.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// One message.
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    pub(crate) body: Vec<u8>,
    pub(crate) fds: Vec<OwnedFd>,
}

/// A frame under construction.
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn new(kind: FrameKind) -> Self {
        Self(vec![kind as u8, 0, 0, 0, 0])
    }

    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(crate) fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(crate) fn string(mut self, text: &CStr) -> Self {
        self.0.extend(text.to_bytes_with_nul());
        self
    }

    /// The frame's bytes, its length filled in.
    pub(crate) fn finish(self) -> Vec<u8> {
        let mut bytes = self.0;
        let length = u32::try_from(bytes.len() - HEAD).unwrap_or(u32::MAX);
        bytes[1..HEAD].copy_from_slice(&length.to_ne_bytes());
        bytes
    }
}

/// Reads a body field by field; anything missing is an error of the peer.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or_else(broken)?;
        self.0 = rest;
        Ok(*head)
    }

    pub(crate) fn u32(&mut self) -> io::Result<u32> {
        Ok(u32::from_ne_bytes(self.take()?))
    }

    pub(crate) fn i32(&mut self) -> io::Result<i32> {
        Ok(i32::from_ne_bytes(self.take()?))
    }

    pub(crate) fn u64(&mut self) -> io::Result<u64> {
        Ok(u64::from_ne_bytes(self.take()?))
    }

    pub(crate) fn string(&mut self) -> io::Result<&'a CStr> {
        let text = CStr::from_bytes_until_nul(self.0).map_err(|_| broken())?;
        self.0 = self.0.get(text.count_bytes() + 1..).unwrap_or_default();
        Ok(text)
    }

    pub(crate) fn strings(&mut self, count: u32) -> io::Result<Vec<&'a CStr>> {
        (0..count).map(|_| self.string()).collect()
    }
}

fn broken() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "unexpected bytes between host and guard",
    )
}

/// Sends whole frames.
pub(crate) fn send(socket: &UnixStream, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let sent = sys::send_with_fds(socket.as_fd(), bytes, fds)?;
    // A long order does not fit the socket's buffer at once.
    (&mut &*socket).write_all(bytes.get(sent..).unwrap_or_default())
}

/// Receives one frame; `None` when the other end is closed.
pub(crate) fn receive(socket: &UnixStream) -> io::Result<Option<Frame>> {
    let mut head = [0; HEAD];
    let (got, fds) = loop {
        match sys::receive_with_fds(socket.as_fd(), &mut head) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    };
    if got == 0 {
        return Ok(None);
    }
    (&mut &*socket).read_exact(head.get_mut(got..).unwrap_or_default())?;
    let [kind, length @ ..] = head;
    let kind = FrameKind::from_byte(kind).ok_or_else(broken)?;
    let length = u32::from_ne_bytes(length) as usize;
    if length > LONGEST_BODY {
        return Err(broken());
    }
    let mut body = vec![0; length];
    (&mut &*socket).read_exact(&mut body)?;
    Ok(Some(Frame { kind, body, fds }))
}

/// `Start`: the run, then the order's strings.
pub(crate) fn start(run: u64, order: &Order) -> Vec<u8> {
    let count = |strings: &[_]| u32::try_from(strings.len()).unwrap_or(u32::MAX);
    let mut writer = Writer::new(FrameKind::Start)
        .u64(run)
        .u64(u64::try_from(order.finish.as_millis()).unwrap_or(u64::MAX))
        .u32(count(&order.argv))
        .u32(count(&order.env))
        .string(&order.program)
        .string(&order.cwd);
    for text in order.argv.iter().chain(&order.env) {
        writer = writer.string(text);
    }
    writer.finish()
}

/// `End`: the run, then the grace in milliseconds, or all ones to kill.
pub(crate) fn end(run: u64, how: Ending) -> Vec<u8> {
    let grace = match how {
        Ending::Kill => u64::MAX,
        Ending::Ask { grace } => {
            u64::try_from(grace.as_millis()).map_or(u64::MAX - 1, |millis| millis.min(u64::MAX - 1))
        }
    };
    Writer::new(FrameKind::End).u64(run).u64(grace).finish()
}

/// Reads what [`end`] wrote.
pub(crate) fn read_end(body: &[u8]) -> io::Result<(u64, Ending)> {
    let mut reader = Reader(body);
    let run = reader.u64()?;
    Ok(match reader.u64()? {
        u64::MAX => (run, Ending::Kill),
        millis => (
            run,
            Ending::Ask {
                grace: Duration::from_millis(millis),
            },
        ),
    })
}

/// `Lease`: the end by the clock that all processes of a machine share, then how long after it the
/// tree is killed, both in nanoseconds.
pub(crate) fn lease(lease: TreeLease) -> Vec<u8> {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Writer::new(FrameKind::Lease)
        .u64(nanos(lease.until.since_boot()))
        .u64(nanos(lease.kill_after))
        .finish()
}

/// Reads what [`lease`] wrote.
pub(crate) fn read_lease(body: &[u8]) -> io::Result<TreeLease> {
    let mut reader = Reader(body);
    Ok(TreeLease {
        until: BootTime::from_boot(Duration::from_nanos(reader.u64()?)),
        kill_after: Duration::from_nanos(reader.u64()?),
    })
}

/// `Exited`.
pub(crate) fn exited(run: u64, exit: Exit) -> Vec<u8> {
    let (signalled, number) = match exit {
        Exit::Code(code) => (0, code),
        Exit::Signal(signal) => (1, signal),
    };
    Writer::new(FrameKind::Exited)
        .u64(run)
        .u32(signalled)
        .u32(number.cast_unsigned())
        .finish()
}

/// `Swept`.
pub(crate) fn swept(run: u64, killed: u32, survivors: &[Survivor]) -> Vec<u8> {
    let count = u32::try_from(survivors.len()).unwrap_or(u32::MAX);
    let mut writer = Writer::new(FrameKind::Swept)
        .u64(run)
        .u32(killed)
        .u32(count);
    for survivor in survivors {
        let command = survivor.command.replace('\0', "");
        let command = std::ffi::CString::new(command).unwrap_or_default();
        writer = writer.u32(survivor.pid).string(&command);
    }
    writer.finish()
}

/// Reads an event of the guard.
pub(crate) fn read_event(frame: &Frame) -> io::Result<TreeEvent> {
    let mut reader = Reader(&frame.body);
    let run = reader.u64()?;
    match frame.kind {
        FrameKind::Exited => {
            let (signalled, number) = (reader.u32()?, reader.i32()?);
            let exit = if signalled == 0 {
                Exit::Code(number)
            } else {
                Exit::Signal(number)
            };
            Ok(TreeEvent::Exited { run, exit })
        }
        FrameKind::Swept => {
            let (killed, count) = (reader.u32()?, reader.u32()?);
            let mut survivor = || {
                let pid = reader.u32()?;
                let command = reader.string()?.to_string_lossy().into_owned();
                Ok(Survivor { pid, command })
            };
            let survivors = (0..count).map(|_| survivor()).collect::<io::Result<_>>()?;
            Ok(TreeEvent::Swept {
                run,
                survivors,
                killed,
            })
        }
        _ => Err(broken()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over_a_socket(bytes: &[u8]) -> Frame {
        let (here, there) = UnixStream::pair().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| send(&here, bytes, &[here.as_fd()]).unwrap());
            receive(&there).unwrap().unwrap()
        })
    }

    #[test]
    fn events_arrive_as_they_were_sent() {
        let survivors = vec![Survivor {
            pid: 7,
            command: "stuck in D".into(),
        }];
        for (bytes, event) in [
            (
                exited(3, Exit::Code(-1)),
                TreeEvent::Exited {
                    run: 3,
                    exit: Exit::Code(-1),
                },
            ),
            (
                exited(u64::MAX, Exit::Signal(9)),
                TreeEvent::Exited {
                    run: u64::MAX,
                    exit: Exit::Signal(9),
                },
            ),
            (
                swept(4, 200, &survivors),
                TreeEvent::Swept {
                    run: 4,
                    survivors,
                    killed: 200,
                },
            ),
        ] {
            assert_eq!(read_event(&over_a_socket(&bytes)).unwrap(), event);
        }
    }

    #[test]
    fn endings_arrive_as_they_were_sent() {
        for how in [
            Ending::Kill,
            Ending::Ask {
                grace: Duration::from_millis(1500),
            },
        ] {
            let frame = over_a_socket(&end(9, how));
            assert_eq!((frame.kind, frame.fds.len()), (FrameKind::End, 1));
            assert_eq!(read_end(&frame.body).unwrap(), (9, how));
        }
        let forever = Ending::Ask {
            grace: Duration::MAX,
        };
        assert!(matches!(
            read_end(&over_a_socket(&end(9, forever)).body).unwrap(),
            (9, Ending::Ask { .. })
        ));
    }

    #[test]
    fn a_lease_arrives_as_it_was_sent() {
        let sent = TreeLease {
            until: BootTime::now() + Duration::from_secs(55),
            kill_after: Duration::from_secs(1800),
        };
        let frame = over_a_socket(&lease(sent));
        assert_eq!(frame.kind, FrameKind::Lease);
        assert_eq!(read_lease(&frame.body).unwrap(), sent);
    }

    #[test]
    fn an_order_longer_than_the_buffers_of_a_socket_arrives_whole() {
        let long = std::ffi::CString::new(vec![b'x'; 3_000_000]).unwrap();
        let order = Order {
            program: c"/bin/p".into(),
            cwd: c"/".into(),
            argv: vec![c"p".into(), long.clone()],
            env: vec![c"A=1".into()],
            finish: Duration::from_secs(2),
        };
        let frame = over_a_socket(&start(5, &order));
        let mut reader = Reader(&frame.body);
        assert_eq!(
            (
                reader.u64().unwrap(),
                reader.u64().unwrap(),
                reader.u32().unwrap(),
                reader.u32().unwrap()
            ),
            (5, 2_000, 2, 1)
        );
        assert_eq!(
            reader.strings(5).unwrap(),
            [c"/bin/p", c"/", c"p", long.as_c_str(), c"A=1"]
        );
        assert!(reader.string().is_err());
    }

    #[test]
    fn a_closed_socket_is_the_end_and_a_torn_or_foreign_frame_an_error() {
        let (here, there) = UnixStream::pair().unwrap();
        (&here).write_all(&[2, 9, 0]).unwrap();
        drop(here);
        assert!(receive(&there).is_err());
        assert!(receive(&there).unwrap().is_none());
        let (here, there) = UnixStream::pair().unwrap();
        (&here).write_all(&[99, 0, 0, 0, 0]).unwrap();
        assert!(receive(&there).is_err());
    }
}
