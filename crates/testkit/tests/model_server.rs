//! The scripted model server, asked as the CLIs ask it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use descartes_testkit::model::ModelServer;
use serde_json::{Value, json};

const ANTHROPIC: &str = "v1/messages";
const RESPONSES: &str = "v1/responses";
const CHAT: &str = "v1/chat/completions";
const GEMINI_STREAM: &str = "v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse";
const GEMINI_WHOLE: &str = "v1beta/models/gemini-2.5-pro:generateContent";

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The data of every event of a stream that is JSON.
    fn events(&self) -> Vec<Value> {
        let data = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        data.filter_map(|data| serde_json::from_str(data).ok())
            .collect()
    }

    /// What stands at this place in the events, joined.
    fn joined(&self, place: &str) -> String {
        let events = self.events();
        events
            .iter()
            .filter_map(|event| event.pointer(place)?.as_str())
            .collect()
    }
}

fn ask(server: &ModelServer, method: &str, path: &str, body: &Value) -> io::Result<Answer> {
    let address = server.root_url().replace("http://", "");
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let body = body.to_string();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: x\r\nX-Api-Key: key\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Ok(Answer {
        status,
        head: head.to_lowercase(),
        body: body.to_owned(),
    })
}

fn post(server: &ModelServer, lane: &str, path: &str, body: &Value) -> Answer {
    ask(server, "POST", &format!("/s/{lane}/{path}"), body).unwrap()
}

fn server(script: Value) -> ModelServer {
    let server = ModelServer::start().unwrap();
    server.lane("t", script);
    server
}

/// A request of each API that offers a shell, and whether it streams.
fn request(path: &str, stream: bool) -> Value {
    let schema = json!({"type": "object", "properties": {"command": {"type": "string"}},
                        "required": ["command"]});
    match path {
        ANTHROPIC => json!({"model": "claude-sonnet-5", "stream": stream,
            "tools": [{"name": "Bash", "input_schema": schema}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "the prompt"}]}]}),
        RESPONSES => json!({"model": "gpt-5", "stream": stream,
            "tools": [{"type": "function", "name": "shell", "parameters": schema}],
            "input": [{"role": "user", "content": [{"type": "input_text", "text": "the prompt"}]}]}),
        CHAT => json!({"model": "m", "stream": stream,
            "tools": [{"type": "function", "function": {"name": "bash", "parameters": schema}}],
            "messages": [{"role": "user", "content": "the prompt"}]}),
        _ => json!({"tools": [{"functionDeclarations": [
                {"name": "run_shell_command", "parametersJsonSchema": schema}]}],
            "contents": [{"role": "user", "parts": [{"text": "the prompt"}]}]}),
    }
}

const ALL: [&str; 4] = [ANTHROPIC, RESPONSES, CHAT, GEMINI_STREAM];

#[test]
fn texts_and_tools_are_streamed_in_every_api() {
    for path in ALL {
        let server = server(json!([
            {"text": "I will write the file now, slowly.", "tool": {"shell": "echo hi > f"}, "chunk": 5}
        ]));
        let answer = post(&server, "t", path, &request(path, true));
        assert_eq!(answer.status, 200);
        assert!(answer.head.contains("text/event-stream"));
        let (text, arguments) = match path {
            ANTHROPIC => (
                answer.joined("/delta/text"),
                answer.joined("/delta/partial_json"),
            ),
            RESPONSES => {
                let of = |kind: &str| -> String {
                    let events = answer.events();
                    let events = events.iter().filter(|event| event["type"] == kind);
                    events.filter_map(|event| event["delta"].as_str()).collect()
                };
                (
                    of("response.output_text.delta"),
                    of("response.function_call_arguments.delta"),
                )
            }
            CHAT => (
                answer.joined("/choices/0/delta/content"),
                answer.joined("/choices/0/delta/tool_calls/0/function/arguments"),
            ),
            _ => {
                let events = answer.events();
                let call = events.iter().find_map(|event| {
                    event.pointer("/candidates/0/content/parts/0/functionCall/args")
                });
                (
                    answer.joined("/candidates/0/content/parts/0/text"),
                    call.unwrap().to_string(),
                )
            }
        };
        assert_eq!(text, "I will write the file now, slowly.", "{path}");
        let arguments: Value = serde_json::from_str(&arguments).unwrap();
        assert_eq!(arguments, json!({"command": "echo hi > f"}), "{path}");
    }
}

#[test]
fn streams_begin_and_end_as_the_apis_do() {
    let script = json!([{"text": "hello", "thinking": "hm", "usage": {"input": 7, "output": 3,
        "cache_read": 2, "reasoning": 1}}]);
    let names = |path: &str| -> Vec<Value> {
        let answer = post(&server(script.clone()), "t", path, &request(path, true));
        answer.events()
    };
    let events = names(ANTHROPIC);
    let kinds: Vec<&str> = events
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    assert_eq!(kinds[..3], ["message_start", "ping", "content_block_start"]);
    assert_eq!(kinds[kinds.len() - 2..], ["message_delta", "message_stop"]);
    assert_eq!(events[kinds.len() - 2]["delta"]["stop_reason"], "end_turn");
    assert_eq!(
        events[kinds.len() - 2]["usage"]["cache_read_input_tokens"],
        2
    );

    let events = names(RESPONSES);
    assert_eq!(events[0]["type"], "response.created");
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.completed");
    assert_eq!(
        last["response"]["usage"]["output_tokens_details"]["reasoning_tokens"],
        1
    );
    let numbers: Vec<_> = events
        .iter()
        .map(|event| event["sequence_number"].as_u64())
        .collect();
    assert!(
        numbers
            .windows(2)
            .all(|pair| pair[1] == pair[0].map(|number| number + 1))
    );

    let events = names(CHAT);
    let last = events.last().unwrap();
    assert_eq!(
        last["usage"],
        json!({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 1}})
    );
    assert_eq!(
        events[events.len() - 2]["choices"][0]["finish_reason"],
        "stop"
    );

    let events = names(GEMINI_STREAM);
    assert_eq!(
        events[0]["candidates"][0]["content"]["parts"][0]["thought"],
        true
    );
    assert_eq!(
        events.last().unwrap()["candidates"][0]["finishReason"],
        "STOP"
    );
    assert_eq!(events[0]["usageMetadata"]["thoughtsTokenCount"], 1);
}

#[test]
fn answers_come_whole_when_no_stream_is_wanted() {
    let script = json!([{"text": "hello", "tool": {"shell": "true"}}]);
    let whole = |path: &str| post(&server(script.clone()), "t", path, &request(path, false)).json();
    let anthropic = whole(ANTHROPIC);
    assert_eq!(anthropic["content"][0]["text"], "hello");
    assert_eq!(anthropic["content"][1]["input"]["command"], "true");
    assert_eq!(anthropic["stop_reason"], "tool_use");
    assert_eq!(whole(RESPONSES)["output"][0]["content"][0]["text"], "hello");
    assert_eq!(whole(RESPONSES)["output"][1]["name"], "shell");
    assert_eq!(whole(CHAT)["choices"][0]["message"]["content"], "hello");
    assert_eq!(whole(CHAT)["choices"][0]["finish_reason"], "tool_calls");
    let gemini = whole(GEMINI_WHOLE);
    assert_eq!(
        gemini["candidates"][0]["content"]["parts"][0]["text"],
        "hello"
    );
}

#[test]
fn want_of_tokens_is_told_in_each_vendors_word() {
    let script = json!([{"text": "hello", "stop": "max_tokens"}]);
    let whole = |path: &str| post(&server(script.clone()), "t", path, &request(path, false)).json();
    assert_eq!(whole(ANTHROPIC)["stop_reason"], "max_tokens");
    assert_eq!(whole(RESPONSES)["status"], "incomplete");
    assert_eq!(whole(CHAT)["choices"][0]["finish_reason"], "length");
    assert_eq!(
        whole(GEMINI_WHOLE)["candidates"][0]["finishReason"],
        "MAX_TOKENS"
    );
}

#[test]
fn refusals_have_each_vendors_status_and_words() {
    let faults = [
        "400", "401", "403", "404", "413", "429", "500", "502", "503", "529",
    ];
    for path in ALL {
        for fault in faults {
            let server = server(json!([{"fault": fault}]));
            let answer = post(&server, "t", path, &request(path, true));
            let expected = if (path, fault) == (GEMINI_STREAM, "401") {
                "400"
            } else {
                fault
            };
            assert_eq!(answer.status.to_string(), expected, "{path}");
            assert!(
                answer.json()["error"]["message"].is_string(),
                "{path} {fault}"
            );
        }
        let server = server(json!([{"fault": "context"}]));
        assert_eq!(post(&server, "t", path, &request(path, true)).status, 400);
    }
}

#[test]
fn a_rate_limit_says_when_to_come_back_only_if_the_script_does() {
    for path in ALL {
        let server = server(json!([{"fault": "429", "retry_after": 7}, {"fault": "429"}]));
        let told = post(&server, "t", path, &request(path, true));
        let untold = post(&server, "t", path, &request(path, true));
        let says = |answer: &Answer| {
            answer.head.contains("retry-after: 7") || answer.body.contains("\"retryDelay\":\"7s\"")
        };
        assert!(says(&told) && !says(&untold), "{path}");
    }
}

#[test]
fn a_usage_limit_names_its_reset() {
    let script = json!([{"fault": "usage_limit", "reset": 1_794_706_358, "claim": "seven_day"}]);
    let refused = |path: &str| post(&server(script.clone()), "t", path, &request(path, true));
    let anthropic = refused(ANTHROPIC);
    assert!(
        anthropic
            .head
            .contains("anthropic-ratelimit-unified-status: rejected")
    );
    assert!(
        anthropic
            .head
            .contains("anthropic-ratelimit-unified-reset: 1794706358")
    );
    assert!(anthropic.head.contains("representative-claim: seven_day"));
    let responses = refused(RESPONSES);
    assert_eq!(responses.json()["error"]["type"], "usage_limit_reached");
    assert_eq!(responses.json()["error"]["resets_at"], 1_794_706_358);
    let gemini = refused(GEMINI_STREAM);
    assert!(
        gemini.body.contains("2026-11-15T01:32:38Z"),
        "{}",
        gemini.body
    );
}

#[test]
fn a_cut_stream_is_a_broken_connection_after_its_first_piece() {
    for path in ALL {
        let server =
            server(json!([{"fault": "cut", "text": "never seen whole by anybody at all"}]));
        let body = request(path, true);
        let outcome = ask(&server, "POST", &format!("/s/t/{path}"), &body);
        assert!(outcome.is_err(), "{path}: the connection was reset");
    }
}

#[test]
fn an_error_can_come_inside_a_stream() {
    for path in ALL {
        let server = server(json!([{"fault": "stream_error"}]));
        let answer = post(&server, "t", path, &request(path, true));
        assert_eq!(answer.status, 200);
        let last = answer.events().pop().unwrap();
        let error = last
            .pointer("/response/error")
            .unwrap_or(&last["error"])
            .clone();
        assert!(error["message"].is_string(), "{path}: {last}");
    }
    let server = server(json!([{"fault": "stream_error"}]));
    assert_eq!(
        post(&server, "t", ANTHROPIC, &request(ANTHROPIC, false)).status,
        529
    );
}

#[test]
fn silence_lasts_until_the_server_ends() {
    for fault in ["hang", "stall"] {
        let server = server(json!([{"fault": fault}]));
        let address = server.root_url().replace("http://", "");
        let mut stream = TcpStream::connect(address).unwrap();
        let body = request(CHAT, true).to_string();
        write!(
            stream,
            "POST /s/t/{CHAT} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let patience = |stream: &TcpStream, time| stream.set_read_timeout(Some(time)).unwrap();
        let (short, long) = (Duration::from_millis(300), Duration::from_secs(60));
        patience(&stream, long);
        if fault == "stall" {
            stream.read_exact(&mut [0; 1]).unwrap();
        }
        patience(&stream, short);
        let mut seen = Vec::new();
        let silent = stream.read_to_end(&mut seen).unwrap_err();
        assert_eq!(silent.kind(), io::ErrorKind::WouldBlock);
        assert!(seen.is_empty() || fault == "stall");
        drop(server);
        patience(&stream, long);
        let ended = stream.read_to_end(&mut seen);
        assert!(ended.is_ok() || ended.unwrap_err().kind() == io::ErrorKind::ConnectionReset);
    }
}

#[test]
fn an_empty_answer_is_valid_and_a_page_is_not() {
    for path in ALL {
        let server = server(json!([{"fault": "empty", "text": "x"}, {"fault": "html"}]));
        let empty = post(&server, "t", path, &request(path, true));
        assert_eq!(empty.status, 200);
        assert!(
            !empty.body.contains("\"x\"") && !empty.events().is_empty(),
            "{path}"
        );
        assert!(
            post(&server, "t", path, &request(path, true))
                .body
                .starts_with("<html>")
        );
    }
}

#[test]
fn requests_without_a_shell_take_no_turn() {
    let server = server(json!([{"text": "the first turn"}]));
    let aside = json!({"messages": [{"role": "user", "content": "a title?"}],
        "response_format": {"json_schema": {"schema": {"type": "object",
            "properties": {"title": {"type": "string"}}}}}});
    let answer = post(&server, "t", CHAT, &aside).json();
    assert_eq!(
        answer["choices"][0]["message"]["content"],
        "{\"title\":\"scripted\"}"
    );
    let main = post(&server, "t", CHAT, &request(CHAT, false)).json();
    assert_eq!(main["choices"][0]["message"]["content"], "the first turn");
    let log = server.log("t");
    assert_eq!((log[0].side, log[0].turn), (true, None));
    assert_eq!((log[1].side, log[1].turn), (false, Some(0)));
}

#[test]
fn a_script_can_count_every_request() {
    let server = server(json!({"turns": [{"text": "one"}], "side": "turn"}));
    let plain = json!({"messages": [{"role": "user", "content": "hi"}]});
    let answer = post(&server, "t", CHAT, &plain).json();
    assert_eq!(answer["choices"][0]["message"]["content"], "one");
}

#[test]
fn the_log_tells_what_was_asked() {
    let server = server(json!([{"fault": "500"}]));
    post(&server, "t", ANTHROPIC, &request(ANTHROPIC, true));
    let log = server.log("t");
    assert_eq!(log.len(), 1);
    assert_eq!(log[0].users[0].head, "the prompt");
    assert_eq!(log[0].tools, ["Bash"]);
    assert_eq!(log[0].auth.as_deref(), Some("key"));
    assert_eq!(log[0].fault.as_deref(), Some("ServerError"));
    assert_eq!(log[0].model.as_deref(), Some("claude-sonnet-5"));
    assert_eq!(server.last_request("t")["model"], "claude-sonnet-5");
}

#[test]
fn lanes_do_not_see_each_other() {
    let server = server(json!([{"text": "a"}]));
    server.lane("other", json!([{"text": "b"}]));
    let text = |lane: &str| {
        let answer = post(&server, lane, CHAT, &request(CHAT, false)).json();
        answer["choices"][0]["message"]["content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!((text("t").as_str(), text("other").as_str()), ("a", "b"));
    assert_eq!((server.log("t").len(), server.log("other").len()), (1, 1));
}

#[test]
fn a_lane_can_be_scripted_and_read_over_http() {
    let server = ModelServer::start().unwrap();
    let script = json!([{"text": "by http"}]);
    assert_eq!(
        ask(&server, "PUT", "/__script/h", &script).unwrap().status,
        200
    );
    post(&server, "h", CHAT, &request(CHAT, false));
    let log = ask(&server, "GET", "/__log/h", &Value::Null)
        .unwrap()
        .json();
    assert_eq!(log[0]["turn"], 0);
    let last = ask(&server, "GET", "/__last/h", &Value::Null)
        .unwrap()
        .json();
    assert_eq!(last["model"], "m");
    let refused = ask(&server, "PUT", "/__script/h", &json!([{"txt": "?"}])).unwrap();
    assert_eq!(refused.status, 400);
}

#[test]
fn small_questions_have_fixed_answers_and_others_none() {
    let server = server(json!([]));
    assert!(
        post(&server, "t", "v1/messages/count_tokens", &json!({})).json()["input_tokens"].is_u64()
    );
    let models = ask(&server, "GET", "/s/t/v1/models", &Value::Null).unwrap();
    assert!(models.json()["data"].is_array());
    assert_eq!(post(&server, "t", "v1/elsewhere", &json!({})).status, 404);
}

#[test]
fn chunked_requests_are_read() {
    let server = server(json!([{"text": "ok"}]));
    let mut stream = TcpStream::connect(server.root_url().replace("http://", "")).unwrap();
    let body = request(CHAT, false).to_string();
    let (one, two) = body.split_at(20);
    write!(
        stream,
        "POST /s/t/{CHAT} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    .unwrap();
    for part in [one, two, ""] {
        write!(stream, "{:x}\r\n{part}\r\n", part.len()).unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\"content\":\"ok\""), "{answer}");
}

#[test]
fn delays_are_kept() {
    let server =
        server(json!([{"text": "abcdef", "delay": 0.05, "chunk": 2, "chunk_delay": 0.03}]));
    let start = Instant::now();
    post(&server, "t", CHAT, &request(CHAT, true));
    assert!(start.elapsed() >= Duration::from_millis(140));
}
