//! Messages in lines, over standard input and output. What cannot be read is answered as well: rmcp's own
//! transport drops it without a word, and whoever sent it waits for ever.

use std::sync::Arc;

use rmcp::model::ErrorCode;
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

/// Bytes of a message; longer ones are not kept.
const LONGEST: usize = 16 << 20;
/// Bytes at both ends of a longer one, in which its id is looked for.
const KEPT: usize = 1 << 10;

/// One client.
pub struct LineTransport<R, W> {
    input: BufReader<R>,
    /// What was read of a line; reading may be broken off and taken up at any time.
    line: Vec<u8>,
    long: Option<LongLine>,
    output: Arc<Mutex<W>>,
    /// Answers of our own that are being written.
    answers: JoinSet<()>,
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub fn new(input: R, output: W) -> Self {
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            long: None,
            output: Arc::new(Mutex::new(output)),
            answers: JoinSet::new(),
        }
    }

    /// The next whole line, as far as it is kept. A last one without an end counts; nothing is the end.
    async fn next_line(&mut self) -> Option<ReadLine> {
        loop {
            // What cannot be read any more has ended.
            let read = self.input.fill_buf().await.unwrap_or_default();
            let end = read.iter().position(|byte| *byte == b'\n');
            let taken = &read[..end.unwrap_or(read.len())];
            let is_over = read.is_empty();
            match &mut self.long {
                Some(long) => long.add(taken),
                None if self.line.len() + taken.len() > LONGEST => {
                    let mut long = LongLine::of(std::mem::take(&mut self.line));
                    long.add(taken);
                    self.long = Some(long);
                }
                None => self.line.extend_from_slice(taken),
            }
            let used = end.map_or(taken.len(), |end| end + 1);
            self.input.consume(used);
            if end.is_none() && !is_over {
                continue;
            }
            let line = std::mem::take(&mut self.line);
            match self.long.take() {
                Some(long) => return Some(ReadLine::Long(long)),
                None if is_over && line.is_empty() => return None,
                None => return Some(ReadLine::Whole(line)),
            }
        }
    }

    /// Writes beside everything else: reading may be broken off, an answer may not.
    fn answer(&mut self, refusal: &Value) {
        let (output, line) = (Arc::clone(&self.output), format!("{refusal}\n"));
        self.answers.spawn(async move {
            // A client that is gone needs no answer.
            drop(write(&output, line.as_bytes()).await);
        });
    }
}

async fn write<W: AsyncWrite + Unpin>(output: &Mutex<W>, line: &[u8]) -> std::io::Result<()> {
    let mut output = output.lock().await;
    output.write_all(line).await?;
    output.flush().await
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let output = Arc::clone(&self.output);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            write(&output, &line).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let Some(line) = self.next_line().await else {
                while self.answers.join_next().await.is_some() {}
                return None;
            };
            let message = match line {
                ReadLine::Whole(line) => message(&line),
                ReadLine::Long(long) => LineMessage::Refused(long.refusal()),
            };
            match message {
                LineMessage::Read(message) => return Some(*message),
                LineMessage::Nothing => {}
                LineMessage::Refused(refusal) => self.answer(&refusal),
            }
            while self.answers.try_join_next().is_some() {}
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

enum ReadLine {
    Whole(Vec<u8>),
    Long(LongLine),
}

/// What a line comes to.
enum LineMessage {
    Read(Box<RxJsonRpcMessage<RoleServer>>),
    /// An empty line, or a notification that nobody here knows.
    Nothing,
    /// The answer to what is no message.
    Refused(Value),
}

fn message(line: &[u8]) -> LineMessage {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let line = line.trim_ascii();
    if line.is_empty() {
        return LineMessage::Nothing;
    }
    if let Ok(message) = serde_json::from_slice(line) {
        return LineMessage::Read(Box::new(message));
    }
    match serde_json::from_slice(line) {
        Err(error) => {
            let why = format!("this is not JSON: {error}");
            LineMessage::Refused(refusal(Value::Null, ErrorCode::PARSE_ERROR, &why))
        }
        Ok(Value::Array(_)) => LineMessage::Refused(refusal(
            Value::Null,
            ErrorCode::INVALID_REQUEST,
            "several messages in one line are not taken: send one in a line",
        )),
        Ok(Value::Object(object)) if is_notification(&object) => LineMessage::Nothing,
        Ok(Value::Object(object)) if has_other_params(&object) => LineMessage::Refused(refusal(
            id_of(&object.into()),
            ErrorCode::INVALID_PARAMS,
            "the parameters must be an object",
        )),
        Ok(value) => LineMessage::Refused(refusal(
            id_of(&value),
            ErrorCode::INVALID_REQUEST,
            "this is no message of JSON-RPC 2.0",
        )),
    }
}

fn is_notification(object: &Map<String, Value>) -> bool {
    object.get("method").is_some_and(Value::is_string) && !object.contains_key("id")
}

/// Whether it is a request but for its parameters.
fn has_other_params(object: &Map<String, Value>) -> bool {
    let is_request = object
        .get("jsonrpc")
        .is_some_and(|version| version == "2.0")
        && object.get("method").is_some_and(Value::is_string);
    is_request
        && object
            .get("params")
            .is_some_and(|params| !params.is_object())
}

/// The id of a message; nothing where there is none that could be one.
fn id_of(value: &Value) -> Value {
    let id = value.get("id").filter(|id| id.is_string() || id.is_i64());
    id.cloned().unwrap_or_default()
}

fn refusal(id: Value, code: ErrorCode, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code.0, "message": message } })
}

/// A line that is too long to be kept.
struct LongLine {
    begin: Vec<u8>,
    end: Vec<u8>,
    length: usize,
}

impl LongLine {
    fn of(read: Vec<u8>) -> Self {
        let mut long = Self {
            begin: read[..read.len().min(KEPT)].to_vec(),
            end: Vec::new(),
            length: 0,
        };
        long.add(&read);
        long
    }

    fn add(&mut self, more: &[u8]) {
        self.length += more.len();
        self.end
            .extend_from_slice(&more[more.len().saturating_sub(KEPT)..]);
        let surplus = self.end.len().saturating_sub(KEPT);
        self.end.drain(..surplus);
    }

    fn refusal(&self) -> Value {
        let message = format!(
            "the message is {} bytes long, and at most {LONGEST} are taken",
            self.length
        );
        refusal(self.id(), ErrorCode::INVALID_REQUEST, &message)
    }

    /// Clients write the id before the arguments or behind them.
    fn id(&self) -> Value {
        let (begin, end) = (
            String::from_utf8_lossy(&self.begin),
            String::from_utf8_lossy(&self.end),
        );
        let inner = begin.match_indices('{').nth(1).map(|(at, _)| &begin[..at]);
        let before = inner.and_then(|before| Some(format!("{}}}", before.rsplit_once(',')?.0)));
        let behind = end.rfind("\"id\":").map(|at| format!("{{{}", &end[at..]));
        let mut found = before.into_iter().chain(behind).map(|text| {
            let value: Result<Value, _> = serde_json::from_str(&text);
            value.map_or(Value::Null, |value| id_of(&value))
        });
        found.find(|id| !id.is_null()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> Option<(i64, Value)> {
        match message(line.as_bytes()) {
            LineMessage::Refused(refusal) => {
                let code = refusal["error"]["code"].as_i64().unwrap();
                Some((code, refusal["id"].clone()))
            }
            LineMessage::Read(_) | LineMessage::Nothing => None,
        }
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_id() {
        for (line, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, None),
            (
                "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r",
                None,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/unknown","params":3}"#,
                None,
            ),
            ("", None),
            (" \r", None),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping""#,
                Some((-32700, Value::Null)),
            ),
            ("garbage", Some((-32700, Value::Null))),
            ("\0\u{1}", Some((-32700, Value::Null))),
            (
                r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
                Some((-32600, Value::Null)),
            ),
            ("[]", Some((-32600, Value::Null))),
            ("3", Some((-32600, Value::Null))),
            (r#"{"id":7}"#, Some((-32600, json!(7)))),
            (
                r#"{"jsonrpc":"2.0","id":8,"method":"ping","params":[1]}"#,
                Some((-32602, json!(8))),
            ),
            (
                r#"{"id":"a","jsonrpc":"1.0","method":"ping"}"#,
                Some((-32600, json!("a"))),
            ),
        ] {
            assert_eq!(refused(line), expected, "{line}");
        }
    }

    #[test]
    fn the_id_of_a_long_message_stands_at_one_of_its_ends() {
        let text = "x".repeat(3 * KEPT);
        for (line, id) in [
            (
                format!(r#"{{"jsonrpc":"2.0","id":5,"method":"m","params":{{"t":"{text}"}}}}"#),
                json!(5),
            ),
            (
                format!(r#"{{"method":"m","params":{{"t":"{text}"}},"jsonrpc":"2.0","id":"a"}}"#),
                json!("a"),
            ),
            (
                format!(r#"{{"method":"m","params":{{"t":"{text}","id":9}},"jsonrpc":"2.0"}}"#),
                Value::Null,
            ),
            (text.clone(), Value::Null),
        ] {
            let mut long = LongLine::of(line.as_bytes()[..2 * KEPT].to_vec());
            long.add(&line.as_bytes()[2 * KEPT..]);
            assert_eq!(long.id(), id, "{}", &line[..40]);
            assert_eq!(long.length, line.len());
        }
    }
}
