//! Who may steer a loop, as found on this machine. What follows from it is the kernel's:
//! [`descartes_kernel::steering`].

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;

use descartes_kernel::steering::{Enclosure, Lineage, Link, NetworkPeer, Role, Sender, Standing};
use descartes_proc::{Ancestor, LineOfProcess, Peer, TcpPeer, is_trusted_child, own_lineage};
use nix::unistd::{Uid, User};

/// Where this process stands: outside of all loops, or within the tree of one (its agent, a gate,
/// a git hook, or whatever these started). For commands that only a person may give:
///
/// ```
/// let standing = descartes_core::steering::own_standing();
/// if let Err(refused) = standing.may_decide("`descartes trust`") {
///     println!("{}; {}", refused.message, refused.hint);
/// }
/// ```
pub fn own_standing() -> Standing {
    lineage(own_lineage(), |_| Role::Other).standing()
}

/// The tree of a loop that this process was started in, if there is one: its loops end with that
/// loop's iteration, and who started them may steer them.
pub fn own_enclosure() -> Option<Enclosure> {
    own_standing().enclosure().cloned()
}

/// A process that ends while it is looked at is looked for again, so often.
const LOOKS: usize = 3;

/// Where the process stands that is at the other end of a TCP connection: `here` is our end, `there`
/// the other. Other machines and other users stand outside of the loops of this one.
pub fn network_standing(here: SocketAddr, there: SocketAddr) -> Standing {
    let lines = |lines: Vec<LineOfProcess>| {
        let trace = |line| lineage(line, |_| Role::Other);
        lines.into_iter().map(trace).collect()
    };
    let mut standing = Standing::Outside;
    for _ in 0..LOOKS {
        let peer = match TcpPeer::of(here, there) {
            TcpPeer::Elsewhere => NetworkPeer::Elsewhere,
            TcpPeer::Gone => NetworkPeer::Gone,
            TcpPeer::Held(held) => NetworkPeer::Held(lines(held)),
            TcpPeer::Hidden(hidden) => NetworkPeer::Hidden(lines(hidden)),
        };
        standing = peer.standing();
        if !matches!(standing, Standing::Unknown(_)) {
            break;
        }
    }
    standing
}

/// Somebody who has connected to a control socket.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) uid: u32,
    pid: u32,
    line: Result<Vec<Ancestor>, String>,
}

impl Caller {
    /// Who it is, read once: the answer holds for the whole connection.
    pub(crate) fn of(stream: &UnixStream) -> std::io::Result<Self> {
        let peer = Peer::of(stream)?;
        Ok(Self {
            uid: peer.uid,
            pid: peer.pid,
            line: peer.lineage(),
        })
    }

    /// Whether the line of processes that it comes from could be read.
    pub(crate) fn is_known(&self) -> bool {
        self.line.is_ok()
    }

    /// Where it stands.
    pub(crate) fn standing(&self) -> Standing {
        let own = std::process::id();
        let role = |one: &Ancestor| match one {
            one if one.pid == own => Role::ThisHost,
            one if is_trusted_child(one.pid, one.start_time) => Role::Notifier,
            _ => Role::Other,
        };
        lineage(self.line.clone(), role).standing()
    }

    /// Who it is, for the record.
    pub(crate) fn sender(&self) -> Sender {
        let within = self
            .standing()
            .enclosure()
            .and_then(|tree| tree.loop_id.clone());
        let line = self.line.as_deref().unwrap_or_default();
        Sender {
            within,
            ..sender(self.pid, self.uid, line)
        }
    }
}

/// This process as the sender of a command.
pub fn own_sender() -> Sender {
    let line = own_lineage().unwrap_or_default();
    let within = own_enclosure().and_then(|tree| tree.loop_id);
    Sender {
        within,
        ..sender(std::process::id(), nix::unistd::getuid().as_raw(), &line)
    }
}

fn sender(pid: u32, uid: u32, line: &[Ancestor]) -> Sender {
    let first = line.first();
    let program = first.map(|one| one.program.clone()).unwrap_or_default();
    let above = line.iter().find(|one| one.program != program);
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    Sender {
        pid,
        started_by: above.map(|one| one.program.clone()),
        terminal: first.and_then(|one| one.terminal.clone()),
        user: Some(user.map_or_else(|| uid.to_string(), |user| user.name)),
        within: None,
        program,
    }
}

fn lineage(line: Result<Vec<Ancestor>, String>, role: impl Fn(&Ancestor) -> Role) -> Lineage {
    let link = |one: Ancestor| Link {
        pid: one.pid,
        start_time: one.start_time,
        role: match &one.guard {
            Some(loop_id) => Role::Guard {
                loop_id: loop_id.clone(),
            },
            None => role(&one),
        },
        mark: one.mark,
    };
    match line {
        Ok(line) => Lineage::Traced(line.into_iter().map(link).collect()),
        Err(why) => Lineage::Lost(why),
    }
}
