//! A POST, and no more of HTTP than that: no redirects, no encodings, no kept connections.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// So much of an answer is read.
const LINE: usize = 4096;

/// Sends `body` to an address that begins with `http://`; any status from 200 to 299 will do.
pub fn post(url: &str, body: &str, timeout: Duration) -> Result<(), String> {
    let end = Instant::now() + timeout;
    let (authority, path) = split(url).ok_or_else(|| format!("{url} is no address"))?;
    let mut stream = connect(&authority, end)?;
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nUser-Agent: descartes/{}\r\nConnection: close\r\n\r\n{body}",
        body.len(),
        env!("CARGO_PKG_VERSION"),
    );
    set_limits(&stream, end)?;
    stream
        .write_all(request.as_bytes())
        .map_err(|error| format!("cannot send to {authority}: {error}"))?;
    let line = first_line(&mut stream, end)
        .map_err(|error| format!("no answer of {authority}: {error}"))?;
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse::<u16>().ok());
    match status {
        Some(200..=299) => Ok(()),
        Some(_) => Err(format!("{authority} answered {}", line.trim_end())),
        None => Err(format!(
            "{authority} answered with something else than HTTP"
        )),
    }
}

/// The first line of an answer. One that drips in is waited for no longer than one that does not
/// come; a line without an end is cut.
fn first_line(stream: &mut TcpStream, end: Instant) -> io::Result<String> {
    let (mut line, mut piece) = (Vec::new(), [0; 512]);
    while line.len() < LINE && !line.contains(&b'\n') {
        if Instant::now() >= end {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left(end)))?;
        match stream.read(&mut piece)? {
            0 => break,
            read => line.extend_from_slice(&piece[..read]),
        }
    }
    let line = line.split(|byte| *byte == b'\n').next();
    Ok(String::from_utf8_lossy(line.unwrap_or_default()).into_owned())
}

/// `host:port` and the path. A port that is not named is 80.
fn split(url: &str) -> Option<(String, String)> {
    let rest = url.get("http://".len()..)?;
    let rest = rest.split('#').next()?;
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    let path = match path {
        path if path.starts_with('/') => path.to_owned(),
        query => format!("/{query}"),
    };
    let clean = |text: &str| !text.contains(|c: char| c.is_control() || c == ' ');
    if authority.is_empty() || !clean(authority) || !clean(&path) {
        return None;
    }
    Some((authority.to_owned(), path))
}

fn connect(authority: &str, end: Instant) -> Result<TcpStream, String> {
    let ported = match authority.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => authority.to_owned(),
        _ => format!("{authority}:80"),
    };
    let places = ported
        .to_socket_addrs()
        .map_err(|error| format!("cannot find {authority}: {error}"))?;
    let mut last = format!("{authority} has no address");
    for place in places {
        match TcpStream::connect_timeout(&place, left(end)) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = format!("cannot reach {authority}: {error}"),
        }
    }
    Err(last)
}

fn set_limits(stream: &TcpStream, end: Instant) -> Result<(), String> {
    let left = Some(left(end));
    let set = stream
        .set_read_timeout(left)
        .and_then(|()| stream.set_write_timeout(left));
    set.map_err(|error| error.to_string())
}

/// Never zero, which would mean for ever.
fn left(end: Instant) -> Duration {
    end.saturating_duration_since(Instant::now())
        .max(Duration::from_millis(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    /// Answers one request, and gives it back.
    fn server(answer: &'static str) -> (String, thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook?x=1", listener.local_addr().unwrap());
        let thread = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut got = [0; 4096];
            let mut text = String::new();
            while !text.ends_with("{}\n") {
                let read = stream.read(&mut got).unwrap();
                text.push_str(&String::from_utf8_lossy(&got[..read]));
            }
            stream.write_all(answer.as_bytes()).unwrap();
            text
        });
        (url, thread)
    }

    #[test]
    fn the_event_is_posted_as_json() {
        let (url, server) = server("HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(post(&url, "{}\n", Duration::from_secs(20)), Ok(()));
        let request = server.join().unwrap();
        assert!(
            request.starts_with("POST /hook?x=1 HTTP/1.1\r\nHost: 127.0.0.1:"),
            "{request}"
        );
        assert!(
            request.contains("Content-Type: application/json\r\nContent-Length: 3\r\n"),
            "{request}"
        );
    }

    #[test]
    fn anything_but_success_is_a_failure_with_its_words() {
        let (url, _server) = server("HTTP/1.1 503 Busy\r\n\r\n");
        let failed = post(&url, "{}\n", Duration::from_secs(20)).unwrap_err();
        assert!(failed.contains("503 Busy"), "{failed}");
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let failed = post(&url, "{}\n", Duration::from_millis(100)).unwrap_err();
        assert!(failed.contains("no answer"), "{failed}");
        drop(silent);
        assert!(post(&url, "{}\n", Duration::from_secs(2)).is_err());
        assert!(
            post("http://x y/", "", Duration::from_secs(1))
                .unwrap_err()
                .contains("no address")
        );
    }
}
