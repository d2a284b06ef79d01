//! A proxy that lets through what is allowed: one thread for each connection, and one for each direction.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use descartes_kernel::sandbox::PROXY_REFUSED;

use super::request::{AllowedHosts, ProxyRequest, parse};

/// The head of a request is no longer than this.
const LONGEST_HEAD: usize = 64 << 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(super) struct Proxy {
    hosts: AllowedHosts,
    /// Hosts whose refusal was told.
    refused: Arc<Mutex<BTreeSet<String>>>,
}

impl Proxy {
    pub(super) fn new(hosts: AllowedHosts) -> Self {
        Self {
            hosts,
            refused: Arc::default(),
        }
    }

    /// Serves until the process ends.
    pub(super) fn serve(&self, listener: &TcpListener) {
        for client in listener.incoming().flatten() {
            let proxy = self.clone();
            // Without a thread the client sees a closed connection.
            let _ = std::thread::Builder::new().spawn(move || proxy.client(client));
        }
    }

    fn client(&self, mut client: TcpStream) {
        let _ = client.set_read_timeout(Some(HEAD_TIMEOUT));
        let Ok((head, rest)) = read_head(&mut client) else {
            return;
        };
        let _ = client.set_read_timeout(None);
        let Some(request) = parse(&head) else {
            return answer(&mut client, "400 Bad Request", "not a request to a proxy");
        };
        if !self.hosts.allows(&request.host, request.port) {
            self.tell(&request);
            let why = "the sandbox allows the provider's hosts alone";
            return answer(&mut client, "403 Forbidden", why);
        }
        match connect(&request) {
            Ok(host) => drop(forward(client, host, &request, &rest)),
            Err(error) => answer(&mut client, "502 Bad Gateway", &error.to_string()),
        }
    }

    fn tell(&self, request: &ProxyRequest) {
        let host = format!("{}:{}", request.host, request.port);
        let Ok(mut refused) = self.refused.lock() else {
            return;
        };
        if refused.insert(host.clone()) {
            // Into the agent's log, where denials are read from.
            let _ = writeln!(io::stderr(), "{PROXY_REFUSED}{host} (not allowed)");
        }
    }
}

/// The head of a request, and what came behind it.
fn read_head(client: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let read = client.read(&mut chunk)?;
        bytes.extend_from_slice(&chunk[..read]);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let rest = bytes.split_off(end + 4);
            let head = String::from_utf8(bytes).map_err(io::Error::other)?;
            return Ok((head, rest));
        }
        if read == 0 || bytes.len() > LONGEST_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

fn connect(request: &ProxyRequest) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the host has no address");
    for address in (&*request.host, request.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn answer(client: &mut TcpStream, status: &str, why: &str) {
    let length = why.len() + 1;
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{why}\n"
    );
    // A client that is gone needs no answer.
    let _ = client.write_all(text.as_bytes());
}

fn forward(
    mut client: TcpStream,
    mut host: TcpStream,
    request: &ProxyRequest,
    rest: &[u8],
) -> io::Result<()> {
    match &request.head {
        None => client.write_all(b"HTTP/1.1 200 Connection Established\r\n\r\n")?,
        Some(head) => host.write_all(head.as_bytes())?,
    }
    host.write_all(rest)?;
    let (mut from_client, mut to_host) = (client.try_clone()?, host.try_clone()?);
    let up = std::thread::spawn(move || {
        let copied = io::copy(&mut from_client, &mut to_host);
        let _ = to_host.shutdown(Shutdown::Write);
        copied
    });
    let copied = io::copy(&mut host, &mut client);
    let _ = client.shutdown(Shutdown::Write);
    drop(up.join());
    copied.map(drop)
}
