//! Anthropic's Messages API.

use serde_json::{Value, json};

use super::errors::{Circumstances, Refusal, rfc3339, status};
use super::exchange::Api;
use super::http::Headers;
use super::reply::{Call, Frame, Reply};
use super::script::{Fault, Turn};
use super::tools::Offered;

pub(super) struct Messages;

impl Api for Messages {
    fn offered(&self, body: &Value) -> Vec<Offered> {
        let tools = body["tools"].as_array().into_iter().flatten();
        tools
            .filter_map(|tool| Offered::read(tool, "input_schema"))
            .collect()
    }

    fn wanted_schema(&self, body: &Value) -> Option<Value> {
        let places = ["/output_config/format/schema", "/output_format/schema"];
        places
            .into_iter()
            .find_map(|place| body.pointer(place).cloned())
    }

    fn whole(&self, reply: &Reply) -> Value {
        let mut message = message(reply);
        message["content"] = blocks(reply).iter().map(Block::whole).collect();
        message["stop_reason"] = json!(stop(reply));
        message
    }

    fn frames(&self, reply: &Reply) -> Vec<Frame> {
        let mut start = message(reply);
        start["usage"]["output_tokens"] = json!(1);
        let mut frames = vec![
            Frame::named(
                "message_start",
                &json!({"type": "message_start", "message": start}),
            ),
            Frame::named("ping", &json!({"type": "ping"})),
        ];
        for (index, block) in blocks(reply).iter().enumerate() {
            frames.extend(block.frames(reply, index));
        }
        let delta = json!({"stop_reason": stop(reply), "stop_sequence": null});
        let end = json!({"type": "message_delta", "delta": delta, "usage": usage(reply)});
        frames.push(Frame::named("message_delta", &end));
        frames.push(Frame::named(
            "message_stop",
            &json!({"type": "message_stop"}),
        ));
        frames
    }

    fn stream_error(&self, turn: &Turn, _: &Reply) -> Frame {
        let message = turn.message.as_deref().unwrap_or("Overloaded");
        let error = json!({"type": "overloaded_error", "message": message});
        Frame::named("error", &json!({"type": "error", "error": error}))
    }

    fn error_outside_streams(&self) -> Fault {
        Fault::Overloaded
    }

    fn refusal(&self, about: &Circumstances<'_>) -> Option<Refusal> {
        let status = status(about.fault)?;
        let (kind, usual) = words(about.fault);
        let error = json!({"type": kind, "message": about.message(usual)});
        let id = format!("req_scripted_{}", about.number);
        let body = json!({"type": "error", "error": error, "request_id": id});
        Some(Refusal {
            status,
            headers: headers(about, status),
            body,
        })
    }
}

fn words(fault: Fault) -> (&'static str, &'static str) {
    match fault {
        Fault::BadKey => ("authentication_error", "invalid x-api-key"),
        Fault::Forbidden => (
            "permission_error",
            "Your API key does not have permission to use the specified resource.",
        ),
        Fault::NotFound => ("not_found_error", "model: not found"),
        Fault::TooLarge => (
            "request_too_large",
            "Request exceeds the maximum allowed number of bytes.",
        ),
        Fault::RateLimit | Fault::Quota | Fault::UsageLimit => (
            "rate_limit_error",
            "This request would exceed your account's rate limit. Please try again later.",
        ),
        Fault::ServerError => ("api_error", "Internal server error"),
        Fault::BadGateway => ("api_error", "Bad gateway"),
        Fault::Unavailable => ("api_error", "Service unavailable"),
        Fault::Overloaded => ("overloaded_error", "Overloaded"),
        Fault::Context => (
            "invalid_request_error",
            "prompt is too long: 210000 tokens > 200000 maximum",
        ),
        _ => ("invalid_request_error", "invalid request"),
    }
}

fn headers(about: &Circumstances<'_>, status: u16) -> Headers {
    let mut headers = Vec::new();
    let mut add = |name: &str, value: String| headers.push((name.to_owned(), value));
    if let Some(seconds) = about.turn.retry_after {
        add("retry-after", seconds.to_string());
    }
    if status == 429 {
        add("anthropic-ratelimit-requests-limit", "50".into());
        add("anthropic-ratelimit-requests-remaining", "0".into());
        add(
            "anthropic-ratelimit-requests-reset",
            rfc3339(about.now + 60),
        );
    }
    if about.fault == Fault::UsageLimit {
        let (reset, seconds) = about.reset();
        let claim = about.turn.claim.as_deref().unwrap_or("five_hour");
        add("anthropic-ratelimit-unified-status", "rejected".into());
        add("anthropic-ratelimit-unified-reset", reset.to_string());
        add(
            "anthropic-ratelimit-unified-representative-claim",
            claim.into(),
        );
        add(
            "anthropic-ratelimit-unified-overage-status",
            "rejected".into(),
        );
        add("anthropic-ratelimit-unified-5h-utilization", "1.0".into());
        add("anthropic-ratelimit-unified-5h-reset", reset.to_string());
        add("anthropic-ratelimit-unified-fallback", "available".into());
        add("retry-after", seconds.to_string());
        add("x-should-retry", "false".into());
    }
    headers
}

/// The message without its content.
fn message(reply: &Reply) -> Value {
    json!({
        "id": format!("msg_scripted_{}", reply.number), "type": "message", "role": "assistant",
        "model": reply.model, "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": usage(reply),
    })
}

fn usage(reply: &Reply) -> Value {
    let usage = reply.usage;
    json!({
        "input_tokens": usage.input, "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read, "output_tokens": usage.output,
        "service_tier": "standard",
    })
}

fn stop(reply: &Reply) -> &str {
    reply.stop("max_tokens", "tool_use", "end_turn")
}

/// A block of content.
enum Block<'a> {
    Thinking(&'a str),
    Text(&'a str),
    Call(&'a Call),
}

const SIGNATURE: &str = "c2NyaXB0ZWQ=";

fn blocks(reply: &Reply) -> Vec<Block<'_>> {
    let thinking = reply.thinking.as_deref().map(Block::Thinking);
    let text = reply.text.as_deref().map(Block::Text);
    let calls = reply.calls.iter().map(Block::Call);
    thinking.into_iter().chain(text).chain(calls).collect()
}

impl Block<'_> {
    fn whole(&self) -> Value {
        match self {
            Self::Thinking(text) => {
                json!({"type": "thinking", "thinking": text, "signature": SIGNATURE})
            }
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Call(call) => {
                let id = format!("toolu_{}", call.id);
                json!({"type": "tool_use", "id": id, "name": call.name, "input": call.args})
            }
        }
    }

    fn frames(&self, reply: &Reply, index: usize) -> Vec<Frame> {
        let start =
            json!({"type": "content_block_start", "index": index, "content_block": self.start()});
        let stop = json!({"type": "content_block_stop", "index": index});
        let pieces = self.deltas(reply).into_iter().map(|delta| {
            let piece = json!({"type": "content_block_delta", "index": index, "delta": delta});
            Frame::named("content_block_delta", &piece).piece()
        });
        std::iter::once(Frame::named("content_block_start", &start))
            .chain(pieces)
            .chain([Frame::named("content_block_stop", &stop)])
            .collect()
    }

    fn start(&self) -> Value {
        match self {
            Self::Thinking(_) => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Self::Text(_) => json!({"type": "text", "text": ""}),
            Self::Call(_) => {
                let mut start = self.whole();
                start["input"] = json!({});
                start
            }
        }
    }

    fn deltas(&self, reply: &Reply) -> Vec<Value> {
        let each = |text: &str, kind: &str, key: &str| -> Vec<Value> {
            let pieces = reply.pieces(text).into_iter();
            pieces
                .map(|piece| json!({"type": kind, key: piece}))
                .collect()
        };
        match self {
            Self::Thinking(text) => {
                let mut deltas = each(text, "thinking_delta", "thinking");
                deltas.push(json!({"type": "signature_delta", "signature": SIGNATURE}));
                deltas
            }
            Self::Text(text) => each(text, "text_delta", "text"),
            Self::Call(call) => each(&call.arguments(), "input_json_delta", "partial_json"),
        }
    }
}
