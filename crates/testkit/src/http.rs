//! A plain HTTP client: every header is the test's own.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than anything that is waited for.
const LIMIT: Duration = Duration::from_secs(100);

/// What is asked.
#[derive(Clone, Debug)]
pub struct Ask {
    pub method: &'static str,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Ask {
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: "GET",
            path: path.into(),
            headers: Vec::new(),
            body: String::new(),
        }
    }

    pub fn post(path: impl Into<String>, body: &str) -> Self {
        let form = "application/x-www-form-urlencoded";
        Self {
            method: "POST",
            body: body.to_owned(),
            ..Self::get(path)
        }
        .with("Content-Type", form)
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn bearer(self, token: &str) -> Self {
        self.with("Authorization", &format!("Bearer {token}"))
    }
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// Every line as JSON.
    #[track_caller]
    pub fn lines(&self) -> Vec<serde_json::Value> {
        let lines = self.body.lines();
        lines
            .map(|line| serde_json::from_str(line).expect(line))
            .collect()
    }

    #[track_caller]
    pub fn assert_status(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}\n{}", self.head, self.body);
        self
    }
}

/// An answer that goes on.
pub struct Stream {
    pub status: u16,
    pub head: String,
    reader: Box<dyn BufRead + Send>,
}

/// Asks, and gives the answer once its head is there.
pub fn open(address: &str, ask: &Ask) -> Stream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let mut text = format!("{} {} HTTP/1.1\r\n", ask.method, ask.path);
    let has = |name: &str| ask.headers.iter().any(|(key, _)| key == name);
    if !has("Host") {
        text.push_str(&format!("Host: {address}\r\n"));
    }
    for (name, value) in &ask.headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if ask.method != "GET" && !has("Content-Length") {
        text.push_str(&format!("Content-Length: {}\r\n", ask.body.len()));
    }
    text.push_str("Connection: close\r\n\r\n");
    text.push_str(&ask.body);
    stream.write_all(text.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(
            reader.read_line(&mut head).unwrap() > 0,
            "no answer: {head}"
        );
    }
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let lower = head.to_lowercase();
    let chunked = lower.contains("transfer-encoding: chunked");
    // Some servers keep the connection, whatever they are asked.
    let length = lower
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let length = length.map_or(u64::MAX, |length| length.trim().parse().unwrap());
    Stream {
        status,
        head,
        reader: match chunked {
            true => Box::new(BufReader::new(Chunks {
                inner: reader,
                left: 0,
                over: false,
            })),
            false => Box::new(reader.take(length)),
        },
    }
}

/// Asks, and reads the whole answer.
pub fn ask(address: &str, ask: &Ask) -> Reply {
    let mut stream = open(address, ask);
    let mut body = String::new();
    stream.reader.read_to_string(&mut body).unwrap();
    Reply {
        status: stream.status,
        head: stream.head,
        body,
    }
}

/// An event of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    pub name: String,
    pub id: String,
    pub data: String,
}

impl Event {
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.data).expect(&self.data)
    }
}

impl Stream {
    /// The next event; `None` at the end of the stream.
    pub fn event(&mut self) -> Option<Event> {
        let mut event = Event::default();
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).unwrap_or(0) == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("event", name)) => event.name = name.to_owned(),
                Some(("id", id)) => event.id = id.to_owned(),
                Some(("data", data)) => event.data = data.to_owned(),
                _ if line.trim().is_empty() && !event.data.is_empty() => return Some(event),
                _ => {}
            }
        }
    }
}

/// A body in chunks.
struct Chunks<R> {
    inner: R,
    left: usize,
    over: bool,
}

impl<R: BufRead> Read for Chunks<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 && !self.over {
            let mut line = String::new();
            self.inner.read_line(&mut line)?;
            if line.trim().is_empty() {
                line.clear();
                self.inner.read_line(&mut line)?;
            }
            self.left = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
            self.over = self.left == 0;
        }
        if self.over {
            return Ok(0);
        }
        let most = buffer.len().min(self.left);
        let read = self.inner.read(&mut buffer[..most])?;
        self.left -= read;
        Ok(read)
    }
}
