//! OpenAI's Chat Completions API, and the refusals that both of OpenAI's APIs share.

use serde_json::{Value, json};

use super::errors::{Circumstances, Refusal, status};
use super::exchange::Api;
use super::reply::{Call, Frame, Reply};
use super::script::{Fault, Turn};
use super::tools::Offered;

pub(super) struct Chat;

impl Api for Chat {
    fn offered(&self, body: &Value) -> Vec<Offered> {
        let tools = body["tools"].as_array().into_iter().flatten();
        let function = |tool: &Value| tool.get("function").unwrap_or(tool).clone();
        tools
            .filter_map(|tool| Offered::read(&function(tool), "parameters"))
            .collect()
    }

    fn wanted_schema(&self, body: &Value) -> Option<Value> {
        body.pointer("/response_format/json_schema/schema").cloned()
    }

    fn whole(&self, reply: &Reply) -> Value {
        let mut message = json!({"role": "assistant", "content": reply.text});
        if !reply.calls.is_empty() {
            message["tool_calls"] = reply
                .calls
                .iter()
                .map(|call| tool_call(call, None))
                .collect();
        }
        let choice = json!({"index": 0, "message": message, "finish_reason": stop(reply)});
        let mut answer = head(reply, "chat.completion");
        answer["choices"] = json!([choice]);
        answer["usage"] = usage(reply);
        answer
    }

    fn frames(&self, reply: &Reply) -> Vec<Frame> {
        let delta = |delta: Value| chunk(reply, delta, None);
        let pieces = |text: &Option<String>, key: &str| -> Vec<Frame> {
            let pieces = text.iter().flat_map(|text| reply.pieces(text));
            pieces
                .map(|piece| delta(json!({key: piece})).piece())
                .collect()
        };
        let mut frames = vec![delta(json!({"role": "assistant", "content": ""}))];
        frames.extend(pieces(&reply.thinking, "reasoning_content"));
        frames.extend(pieces(&reply.text, "content"));
        for (index, call) in reply.calls.iter().enumerate() {
            let mut start = tool_call(call, Some(index));
            start["function"]["arguments"] = json!("");
            frames.push(delta(json!({"tool_calls": [start]})));
            frames.extend(reply.pieces(&call.arguments()).into_iter().map(|piece| {
                let part = json!({"index": index, "function": {"arguments": piece}});
                delta(json!({"tool_calls": [part]})).piece()
            }));
        }
        frames.push(chunk(reply, json!({}), Some(stop(reply))));
        let mut end = head(reply, "chat.completion.chunk");
        end["choices"] = json!([]);
        end["usage"] = usage(reply);
        frames.push(Frame::plain(&end));
        frames.push(Frame::done());
        frames
    }

    fn stream_error(&self, turn: &Turn, _: &Reply) -> Frame {
        let message = turn.message.as_deref().unwrap_or("Overloaded");
        let error = json!({"message": message, "type": "server_error", "code": "overloaded"});
        Frame::plain(&json!({"error": error}))
    }

    fn error_outside_streams(&self) -> Fault {
        Fault::Unavailable
    }

    fn refusal(&self, about: &Circumstances<'_>) -> Option<Refusal> {
        refusal(about)
    }
}

fn head(reply: &Reply, object: &str) -> Value {
    json!({"id": format!("chatcmpl-{}", reply.number), "object": object,
           "created": 1_700_000_000, "model": reply.model})
}

fn chunk(reply: &Reply, delta: Value, stop: Option<&str>) -> Frame {
    let mut chunk = head(reply, "chat.completion.chunk");
    chunk["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": stop}]);
    Frame::plain(&chunk)
}

fn tool_call(call: &Call, index: Option<usize>) -> Value {
    let function = json!({"name": call.name, "arguments": call.arguments()});
    let mut whole =
        json!({"id": format!("call_{}", call.id), "type": "function", "function": function});
    if let Some(index) = index {
        whole["index"] = json!(index);
    }
    whole
}

fn usage(reply: &Reply) -> Value {
    let usage = reply.usage;
    json!({
        "prompt_tokens": usage.input, "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}

fn stop(reply: &Reply) -> &str {
    reply.stop("length", "tool_calls", "stop")
}

/// How OpenAI refuses.
pub(super) fn refusal(about: &Circumstances<'_>) -> Option<Refusal> {
    let status = status(about.fault)?;
    let (kind, code, usual) = words(about.fault);
    let mut error =
        json!({"message": about.message(usual), "type": kind, "param": null, "code": code});
    let mut headers = Vec::new();
    let mut add = |name: &str, value: String| headers.push((name.to_owned(), value));
    if let Some(seconds) = about.turn.retry_after {
        add("retry-after", seconds.to_string());
        add("x-ratelimit-remaining-tokens", "0".into());
        add("x-ratelimit-reset-tokens", format!("{seconds}s"));
    }
    if about.fault == Fault::UsageLimit {
        let (reset, seconds) = about.reset();
        error["plan_type"] = json!("plus");
        error["resets_at"] = json!(reset);
        error["resets_in_seconds"] = json!(seconds);
        add("x-codex-primary-used-percent", "100.0".into());
        add("x-codex-primary-window-minutes", "300".into());
        add("x-codex-primary-reset-at", reset.to_string());
        add("x-codex-primary-reset-after-seconds", seconds.to_string());
    }
    Some(Refusal {
        status,
        headers,
        body: json!({"error": error}),
    })
}

fn words(fault: Fault) -> (&'static str, Option<&'static str>, &'static str) {
    let invalid = "invalid_request_error";
    match fault {
        Fault::BadKey => (
            invalid,
            Some("invalid_api_key"),
            "Incorrect API key provided: dummy.",
        ),
        Fault::Forbidden => (
            invalid,
            Some("unsupported_country_region_territory"),
            "Country, region, or territory not supported",
        ),
        Fault::NotFound => (
            invalid,
            Some("model_not_found"),
            "The model `scripted` does not exist.",
        ),
        Fault::TooLarge => (invalid, None, "Request too large."),
        Fault::RateLimit => (
            "tokens",
            Some("rate_limit_exceeded"),
            "Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000, Used 30000, \
             Requested 1000. Please try again in 1s.",
        ),
        Fault::Quota => (
            "insufficient_quota",
            Some("insufficient_quota"),
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        Fault::UsageLimit => (
            "usage_limit_reached",
            None,
            "The usage limit has been reached",
        ),
        Fault::ServerError => (
            "server_error",
            None,
            "The server had an error while processing your request. Sorry about that!",
        ),
        Fault::BadGateway => ("server_error", None, "Bad gateway."),
        Fault::Unavailable => (
            "server_error",
            None,
            "The engine is currently overloaded, please try again later.",
        ),
        Fault::Overloaded => ("server_error", None, "Overloaded."),
        Fault::Context => (
            invalid,
            Some("context_length_exceeded"),
            "Your input exceeds the context window of this model. Please adjust your input and \
             try again.",
        ),
        _ => (invalid, None, "Invalid request."),
    }
}
