//! No network but some hosts. The second stage listens in its empty network namespace and hands that socket
//! out; a proxy outside accepts on it and lets through what is allowed. So nothing of ours runs inside, and
//! names are resolved outside.

mod proxy;
mod request;

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::process::Command;

use descartes_proc::{inherited_socket, receive_with_fds, send_with_fds};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use proxy::Proxy;
use request::AllowedHosts;

/// The variable that tells the second stage the number of its socket.
const SOCKET: &str = "DESCARTES_SANDBOX_SOCKET";

/// Variables by which programs find a proxy.
const PROXY_VARIABLES: [&str; 6] = [
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "ALL_PROXY",
    "https_proxy",
    "http_proxy",
    "all_proxy",
];

/// Variables that would lead past it: there is nothing past it.
const NO_PROXY_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// A socket for the second stage of a program that is about to be started.
pub(crate) fn offer_socket(command: &mut Command) -> io::Result<ProxyStart> {
    let (ours, theirs) = UnixStream::pair()?;
    fcntl(&theirs, FcntlArg::F_SETFD(FdFlag::empty()))?;
    command.env(SOCKET, theirs.as_raw_fd().to_string());
    Ok(ProxyStart { ours, theirs })
}

/// Both ends of the socket over which the listening one is handed out.
pub(crate) struct ProxyStart {
    ours: UnixStream,
    theirs: UnixStream,
}

impl ProxyStart {
    /// Serves, beside this thread, until the process ends.
    pub(crate) fn serve(self, hosts: &[String]) {
        let Self { ours, theirs } = self;
        // Else a second stage that ends without listening would be waited for.
        drop(theirs);
        let proxy = Proxy::new(AllowedHosts::new(hosts));
        std::thread::spawn(move || {
            // A second stage that never listens tells itself why.
            if let Ok(listener) = receive_listener(&ours) {
                proxy.serve(&listener);
            }
        });
    }
}

fn receive_listener(socket: &UnixStream) -> io::Result<TcpListener> {
    let (_, fds) = receive_with_fds(socket.as_fd(), &mut [0; 1])?;
    let fd = fds.into_iter().next().ok_or(io::ErrorKind::InvalidData)?;
    Ok(TcpListener::from(fd))
}

/// Inside: listens, hands the socket out, and gives the variables that lead programs to it.
pub(crate) fn hand_out_listener() -> io::Result<Vec<(String, Option<String>)>> {
    let number = std::env::var(SOCKET)
        .ok()
        .and_then(|text| text.parse().ok());
    let missing = || io::Error::other("the proxy outside is missing");
    let socket = inherited_socket(number.ok_or_else(missing)?)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    send_with_fds(socket.as_fd(), &[0], &[listener.as_fd()])?;
    let address = format!("http://{}", listener.local_addr()?);
    let set = PROXY_VARIABLES.map(|name| (name.to_owned(), Some(address.clone())));
    let unset = NO_PROXY_VARIABLES.map(|name| (name.to_owned(), None));
    let node = ("NODE_USE_ENV_PROXY".to_owned(), Some("1".to_owned()));
    let own = (SOCKET.to_owned(), None);
    Ok(set.into_iter().chain(unset).chain([node, own]).collect())
}
