//! A POST, and no more of HTTP than that: no redirects, no encodings, no kept connections.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// So much of an answer is read.
const LINE: usize = 4096;

/// Sends `body` to an address that begins with `http://`; any status from 200 to 299 will do.
pub fn post(url: &str, body: &str, timeout: Duration) -> Result<(), String> {
    let end = Instant::now() + timeout;
    let Address {
        login,
        authority,
        path,
    } = split(url).ok_or_else(|| format!("{url} is not a valid URL"))?;
    let login = login.map_or_else(String::new, |login| {
        format!("Authorization: Basic {}\r\n", base64(&login))
    });
    let mut stream = connect(&authority, end)?;
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {authority}\r\n{login}Content-Type: application/json\r\n\
         Content-Length: {}\r\nUser-Agent: descartes/{}\r\nConnection: close\r\n\r\n{body}",
        body.len(),
        env!("CARGO_PKG_VERSION"),
    );
    set_limits(&stream, end)?;
    stream
        .write_all(request.as_bytes())
        .map_err(|error| format!("cannot send to {authority}: {error}"))?;
    let line = first_line(&mut stream, end)
        .map_err(|error| format!("no answer from {authority}: {error}"))?;
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse::<u16>().ok());
    match status {
        Some(200..=299) => Ok(()),
        Some(_) => Err(format!("{authority} answered {}", line.trim_end())),
        None => Err(format!("{authority} did not answer with HTTP")),
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

/// Where a request goes.
#[derive(Debug, PartialEq, Eq)]
struct Address {
    /// `user:password`, for the server alone: it is no part of a host's name.
    login: Option<Vec<u8>>,
    /// `host:port`; a port that is not named is 80.
    authority: String,
    path: String,
}

fn split(url: &str) -> Option<Address> {
    let rest = url.get("http://".len()..)?;
    let rest = rest.split('#').next()?;
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    let path = match path {
        path if path.starts_with('/') => path.to_owned(),
        query => format!("/{query}"),
    };
    let (login, authority) = match authority.rsplit_once('@') {
        Some((login, authority)) => (Some(unescaped(login)), authority),
        None => (None, authority),
    };
    let clean = |text: &str| !text.contains(|c: char| c.is_control() || c == ' ');
    if authority.is_empty() || !clean(authority) || !clean(&path) {
        return None;
    }
    Some(Address {
        login,
        authority: authority.to_owned(),
        path,
    })
}

/// What `%41` and the like stand for.
fn unescaped(text: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let [byte, after @ ..] = rest {
        let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
        rest = match (byte, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                &after[2..]
            }
            _ => {
                out.push(*byte);
                after
            }
        };
    }
    out
}

fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let bits = three
            .iter()
            .fold(0, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - three.len()));
        for at in 0..4 {
            match at <= three.len() {
                true => out.push(char::from(SIGNS[(bits >> (18 - 6 * at) & 63) as usize])),
                false => out.push('='),
            }
        }
    }
    out
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
    fn a_login_goes_to_the_server_and_nowhere_else() {
        let address = |url| split(url).unwrap();
        let got = address("http://me:p%40ss@example.org:81/x");
        assert_eq!(got.login.as_deref(), Some(&b"me:p@ss"[..]));
        assert_eq!(
            (got.authority.as_str(), got.path.as_str()),
            ("example.org:81", "/x")
        );
        assert_eq!(address("http://h/a@b").login, None);
        assert_eq!(base64(b"me:p@ss"), "bWU6cEBzcw==");
        assert_eq!(
            (base64(b"a"), base64(b"ab"), base64(b"abc")),
            ("YQ==".into(), "YWI=".into(), "YWJj".into())
        );
        let (url, server) = server("HTTP/1.1 200 OK\r\n\r\n");
        let url = url.replace("http://", "http://me:p%40ss@");
        assert_eq!(post(&url, "{}\n", Duration::from_secs(20)), Ok(()));
        let request = server.join().unwrap();
        assert!(
            request.contains("Authorization: Basic bWU6cEBzcw==\r\n"),
            "{request}"
        );
        assert!(
            request.contains("Host: 127.0.0.1:") && !request.contains("p%40ss"),
            "{request}"
        );
        let failed =
            post("http://me:secret1@127.0.0.1:1/", "", Duration::from_secs(2)).unwrap_err();
        assert!(!failed.contains("secret1"), "{failed}");
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
                .contains("not a valid URL")
        );
    }
}
