//! Who is at the other end of a TCP connection, where that is a process of this machine. A socket
//! of the network says nothing of it; the kernel's tables do.

use std::net::{IpAddr, SocketAddr};

use nix::ifaddrs::getifaddrs;
use nix::unistd::getuid;

use crate::lineage::{Ancestor, lineage};
use crate::procfs;

/// The line of a process, itself first; why not, where it cannot be told.
pub type LineOfProcess = Result<Vec<Ancestor>, String>;

/// The other end of a connection.
#[derive(Debug)]
pub enum TcpPeer {
    /// It is on another machine, or of another user.
    Elsewhere,
    /// It was on this machine, and nobody holds it any more.
    Gone,
    /// The lines of the processes that hold it.
    Held(Vec<LineOfProcess>),
    /// One of these holds it, or none that can be seen: the lines of this user's processes whose
    /// descriptors cannot be read.
    Hidden(Vec<LineOfProcess>),
}

impl TcpPeer {
    /// Looks for the other end of a connection that is `here` on our side and `there` on the other.
    pub fn of(here: SocketAddr, there: SocketAddr) -> Self {
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(std::fs::read_to_string);
        let lines = tables.iter().flatten().flat_map(|table| table.lines());
        let mut sockets = lines.filter_map(parse_socket);
        // Their end: what is there to us is here to them.
        let wanted = (canonical(there), canonical(here));
        let found = sockets.find(|socket| (socket.local, socket.remote) == wanted);
        match found {
            None if is_ours(there.ip()) => Self::Gone,
            None => Self::Elsewhere,
            // A socket without a file: its last holder has closed it, or ended.
            Some(socket) if socket.inode == 0 => Self::Gone,
            Some(socket) => held(&socket),
        }
    }
}

fn held(socket: &Socket) -> TcpPeer {
    let link = format!("socket:[{}]", socket.inode);
    let (mut holders, mut closed) = (Vec::new(), Vec::new());
    for pid in procfs::pids() {
        match procfs::holds(pid, &link) {
            Some(true) => holders.push(lineage(pid.cast_unsigned())),
            Some(false) => {}
            None => closed.push(pid),
        }
    }
    match holders.is_empty() {
        false => TcpPeer::Held(holders),
        true if socket.uid != getuid().as_raw() => TcpPeer::Elsewhere,
        true => {
            let of_user = |pid: &i32| procfs::real_uid(*pid) == Some(socket.uid);
            let hidden = closed.into_iter().filter(of_user);
            TcpPeer::Hidden(hidden.map(|pid| lineage(pid.cast_unsigned())).collect())
        }
    }
}

/// Whether an address is one of this machine.
fn is_ours(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let ours = |one: nix::ifaddrs::InterfaceAddress| {
        let storage = one.address?;
        let v4 = storage
            .as_sockaddr_in()
            .map(|known| IpAddr::from(known.ip()));
        let v6 = storage
            .as_sockaddr_in6()
            .map(|known| IpAddr::from(known.ip()));
        v4.or(v6)
    };
    address.is_loopback()
        || getifaddrs().is_ok_and(|mut all| all.any(|one| ours(one) == Some(address)))
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// A line of `/proc/net/tcp` or `/proc/net/tcp6`.
#[derive(Debug, PartialEq, Eq)]
struct Socket {
    local: SocketAddr,
    remote: SocketAddr,
    uid: u32,
    inode: u64,
}

fn parse_socket(line: &str) -> Option<Socket> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    Some(Socket {
        local: parse_address(fields.get(1)?)?,
        remote: parse_address(fields.get(2)?)?,
        uid: fields.get(7)?.parse().ok()?,
        inode: fields.get(9)?.parse().ok()?,
    })
}

/// An address as the kernel prints it: words of 32 bits as numbers of this machine, whose bytes
/// are in the order of the network.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(address.get(at * 8..at * 8 + 8)?, 16).ok();
    let address: IpAddr = match address.len() {
        8 => word(0)?.to_ne_bytes().into(),
        32 => {
            let mut bytes = [0; 16];
            for (at, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(at)?.to_ne_bytes());
            }
            bytes.into()
        }
        _ => return None,
    };
    let port = u16::from_str_radix(port, 16).ok()?;
    Some(canonical(SocketAddr::new(address, port)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    #[cfg(target_endian = "little")]
    fn lines_of_both_tables_are_read() {
        let v4 = "  13: 0100007F:C350 0100007F:1C95 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 20 4";
        let v6 = "   0: 0000000000000000FFFF00000100007F:C350 00000000000000000000000001000000:1C95 06 00000000:00000000 03:00000A5B 00000000     0        0 0 3 0";
        let socket = |local: &str, remote: &str, uid, inode| Socket {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            uid,
            inode,
        };
        let first = socket("127.0.0.1:50000", "127.0.0.1:7317", 1000, 4711);
        assert_eq!(parse_socket(v4), Some(first));
        let second = socket("127.0.0.1:50000", "[::1]:7317", 0, 0);
        assert_eq!(parse_socket(v6), Some(second));
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
        assert_eq!(parse_socket(head), None);
    }

    /// Both ends of a connection to this address, and the other end's socket.
    fn connected(address: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(address).unwrap();
        let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, _) = listener.accept().unwrap();
        (ours, theirs)
    }

    fn peer(ours: &TcpStream) -> TcpPeer {
        TcpPeer::of(ours.local_addr().unwrap(), ours.peer_addr().unwrap())
    }

    #[test]
    fn the_process_at_the_other_end_is_found_and_one_that_left_is_gone() {
        let (ours, theirs) = connected("127.0.0.1:0");
        match peer(&ours) {
            TcpPeer::Held(lines) => {
                let first = lines[0].as_ref().unwrap();
                assert_eq!(first[0].pid, std::process::id());
            }
            other => panic!("{other:?}"),
        }
        drop(theirs);
        assert!(matches!(peer(&ours), TcpPeer::Gone));
    }

    #[test]
    fn other_machines_are_elsewhere() {
        let here = "[2001:db8::1]:7317".parse().unwrap();
        let there = "[2001:db8::2]:50000".parse().unwrap();
        assert!(matches!(TcpPeer::of(here, there), TcpPeer::Elsewhere));
    }
}
