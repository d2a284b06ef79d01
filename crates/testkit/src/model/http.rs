//! As much of HTTP/1.1 as agent CLIs need: one request a connection, then it is closed.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// No request of a test is larger.
const LARGEST_BODY: usize = 256 << 20;

/// A request, read whole.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// Reads one; none when the other side closed without asking.
    pub(super) fn read(stream: &TcpStream) -> io::Result<Option<Self>> {
        let mut reader = BufReader::new(stream);
        let first = read_line(&mut reader)?;
        let mut words = first.split(' ');
        let (Some(method), Some(path)) = (words.next(), words.next()) else {
            return Ok(None);
        };
        let mut request = Self {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: read_headers(&mut reader)?,
            body: Vec::new(),
        };
        if request.header("expect").is_some() {
            (&*stream).write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        request.body = read_body(&mut reader, &request)?;
        Ok(Some(request))
    }

    /// A header's value, its name in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

/// Headers of a response.
pub(super) type Headers = Vec<(String, String)>;

/// Writes a whole response.
pub(super) fn respond(
    mut stream: &TcpStream,
    status: u16,
    kind: &str,
    headers: &Headers,
    body: &[u8],
) -> io::Result<()> {
    let mut head = head(status, kind, headers);
    head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}

/// Begins a stream of events, which ends with the connection.
pub(super) fn begin_events(mut stream: &TcpStream, headers: &Headers) -> io::Result<()> {
    let mut head = head(200, "text/event-stream; charset=utf-8", headers);
    head.push_str("cache-control: no-cache\r\n\r\n");
    stream.write_all(head.as_bytes())
}

fn head(status: u16, kind: &str, headers: &Headers) -> String {
    let reason = if status < 300 { "OK" } else { "Scripted" };
    let mut head =
        format!("HTTP/1.1 {status} {reason}\r\ncontent-type: {kind}\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head
}

fn read_headers(reader: &mut impl BufRead) -> io::Result<Headers> {
    let mut headers = Vec::new();
    loop {
        let line = read_line(reader)?;
        if line.is_empty() {
            return Ok(headers);
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.trim().to_lowercase(), value.trim().to_owned()));
        }
    }
}

fn read_body(reader: &mut impl BufRead, request: &Request) -> io::Result<Vec<u8>> {
    let chunked = request
        .header("transfer-encoding")
        .is_some_and(|value| value.contains("chunked"));
    if chunked {
        return read_chunks(reader);
    }
    let length = request
        .header("content-length")
        .and_then(|value| value.parse().ok())
        .unwrap_or(0);
    read_exactly(reader, length)
}

fn read_chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(reader)?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let length = usize::from_str_radix(digits, 16).map_err(|_| bad("a chunk's length"))?;
        body.extend(read_exactly(reader, length)?);
        read_line(reader)?;
        if length == 0 {
            return Ok(body);
        }
    }
}

fn read_exactly(reader: &mut impl BufRead, length: usize) -> io::Result<Vec<u8>> {
    if length > LARGEST_BODY {
        return Err(bad("a body of bearable size"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(body)
}

fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    reader.take(64 * 1024).read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

fn bad(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the request wants {what}"),
    )
}
