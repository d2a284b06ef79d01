//! One request for an answer, whichever vendor's words it is in.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use serde_json::{Value, json};

use super::errors::{Circumstances, Refusal};
use super::http::{self, Headers};
use super::reply::{Frame, Reply};
use super::script::{Fault, Turn};
use super::server::Stop;
use super::tools::{self, Offered};

/// A vendor's API: how it asks and how it answers.
pub(super) trait Api: Sync {
    /// The tools of a request.
    fn offered(&self, body: &Value) -> Vec<Offered>;
    /// The schema that the answer's text is to fit.
    fn wanted_schema(&self, body: &Value) -> Option<Value>;
    /// The answer in one piece.
    fn whole(&self, reply: &Reply) -> Value;
    /// The answer as a stream.
    fn frames(&self, reply: &Reply) -> Vec<Frame>;
    /// An error inside a stream.
    fn stream_error(&self, turn: &Turn, reply: &Reply) -> Frame;
    /// What stands for it where nothing is streamed.
    fn error_outside_streams(&self) -> Fault;
    /// A refusal; none for faults that break the exchange itself.
    fn refusal(&self, about: &Circumstances<'_>) -> Option<Refusal>;
}

/// Whether the answer is wanted as a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    Stream,
}

/// A request that is to be answered by this turn.
pub(super) struct Exchange<'a> {
    pub(super) api: &'a dyn Api,
    pub(super) stream: &'a TcpStream,
    pub(super) stop: &'a Stop,
    pub(super) form: Form,
    pub(super) model: String,
    pub(super) number: u64,
    pub(super) now: u64,
}

impl Exchange<'_> {
    /// Answers a request that takes no turn.
    pub(super) fn answer_aside(&self, body: &Value) -> io::Result<()> {
        let schema = self.api.wanted_schema(body);
        let text = schema.map_or("a scripted side answer".into(), |schema| {
            tools::sample(&schema).to_string()
        });
        self.answer(
            &Turn {
                text: Some(text),
                ..Turn::default()
            },
            &[],
        )
    }

    /// Answers a request by a turn.
    pub(super) fn answer(&self, turn: &Turn, offered: &[Offered]) -> io::Result<()> {
        self.stop.wait(seconds(turn.delay));
        let fault = turn.fault.map(|fault| self.outside_streams(fault));
        match fault {
            Some(Fault::Hang) => self.hang(),
            Some(Fault::CutEarly) => self.reset(),
            Some(Fault::Html) => {
                let page = b"<html><body>502 Bad Gateway</body></html>";
                http::respond(self.stream, 200, "text/html", &Headers::new(), page)
            }
            Some(fault) => match self.refusal(fault, turn) {
                Some(refusal) => self.refuse(refusal, turn),
                None => self.reply(turn, offered),
            },
            None => self.reply(turn, offered),
        }
    }

    /// A fault of streams, put into what it is where nothing is streamed.
    fn outside_streams(&self, fault: Fault) -> Fault {
        match (self.form, fault) {
            (Form::Stream, fault) => fault,
            (Form::Whole, Fault::Cut) => Fault::CutEarly,
            (Form::Whole, Fault::Stall) => Fault::Hang,
            (Form::Whole, Fault::StreamError) => self.api.error_outside_streams(),
            (Form::Whole, fault) => fault,
        }
    }

    fn refusal(&self, fault: Fault, turn: &Turn) -> Option<Refusal> {
        let (model, now, number) = (self.model.as_str(), self.now, self.number);
        self.api.refusal(&Circumstances {
            fault,
            turn,
            model,
            now,
            number,
        })
    }

    fn refuse(&self, refusal: Refusal, turn: &Turn) -> io::Result<()> {
        let headers = [self.headers(turn), refusal.headers].concat();
        self.json(refusal.status, &headers, &refusal.body)
    }

    fn reply(&self, turn: &Turn, offered: &[Offered]) -> io::Result<()> {
        let mut turn = turn.clone();
        if turn.fault == Some(Fault::UsageText) {
            let reset = turn.reset_at(self.now);
            turn.text = Some(format!("Claude AI usage limit reached|{reset}"));
        }
        let calls = tools::calls(&turn, offered, self.number);
        let reply = Reply::new(&turn, calls, &self.model, self.number);
        match self.form {
            Form::Whole => self.json(200, &self.headers(&turn), &self.api.whole(&reply)),
            Form::Stream => self.send_stream(&turn, &reply),
        }
    }

    fn send_stream(&self, turn: &Turn, reply: &Reply) -> io::Result<()> {
        http::begin_events(self.stream, &self.headers(turn))?;
        let breaks = matches!(
            turn.fault,
            Some(Fault::Cut | Fault::Stall | Fault::StreamError)
        );
        let mut left = turn.after_chunks.unwrap_or(1);
        for frame in self.api.frames(reply) {
            if breaks && frame.is_piece {
                if left == 0 {
                    break;
                }
                left -= 1;
            }
            self.send(&frame)?;
            if frame.is_piece {
                self.stop.wait(seconds(turn.chunk_delay));
            }
            if breaks && frame.is_piece && left == 0 {
                return self.break_off(turn, reply);
            }
        }
        if breaks {
            self.break_off(turn, reply)
        } else {
            Ok(())
        }
    }

    fn break_off(&self, turn: &Turn, reply: &Reply) -> io::Result<()> {
        match turn.fault {
            Some(Fault::Cut) => self.reset(),
            Some(Fault::Stall) => self.hang(),
            _ => self.send(&self.api.stream_error(turn, reply)),
        }
    }

    fn send(&self, frame: &Frame) -> io::Result<()> {
        let mut stream = self.stream;
        stream.write_all(&frame.bytes())
    }

    fn json(&self, status: u16, headers: &Headers, body: &Value) -> io::Result<()> {
        http::respond(
            self.stream,
            status,
            "application/json",
            headers,
            body.to_string().as_bytes(),
        )
    }

    fn headers(&self, turn: &Turn) -> Headers {
        let id = format!("req_scripted_{}", self.number);
        let ids = ["request-id", "x-request-id"].map(|name| (name.to_owned(), id.clone()));
        let given = turn
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()));
        ids.into_iter().chain(given).collect()
    }

    /// Says nothing until the other side gives up.
    fn hang(&self) -> io::Result<()> {
        self.stream
            .set_read_timeout(Some(Duration::from_millis(100)))?;
        while !self.stop.is_set() {
            match self.stream.peek(&mut [0]) {
                Ok(0) => break,
                Ok(_) => self.stop.wait(Duration::from_millis(100)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
        }
        self.stream.shutdown(Shutdown::Both)
    }

    /// Closes with a reset, as a crashed proxy does, not with an orderly end.
    fn reset(&self) -> io::Result<()> {
        let linger = nix::libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        setsockopt(self.stream, sockopt::Linger, &linger).map_err(io::Error::from)
    }
}

/// The body of a request that fits no route.
pub(super) fn no_route(method: &str, path: &str) -> Value {
    let message = format!("the scripted server has no route {method} {path}");
    json!({"type": "error", "error": {"type": "not_found_error", "code": 404, "message": message}})
}

fn seconds(number: f64) -> Duration {
    Duration::try_from_secs_f64(number).unwrap_or_default()
}
