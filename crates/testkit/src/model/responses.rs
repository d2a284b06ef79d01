//! OpenAI's Responses API.

use serde_json::{Value, json};

use super::chat;
use super::errors::{Circumstances, Refusal};
use super::exchange::Api;
use super::reply::{Frame, Reply};
use super::script::{Fault, Turn};
use super::tools::Offered;

/// Between a namespace and a tool in it.
const NAMESPACE: &str = "::";

pub(super) struct Responses;

impl Api for Responses {
    fn offered(&self, body: &Value) -> Vec<Offered> {
        let tools = body["tools"].as_array().into_iter().flatten();
        // A namespace holds tools of its own, which are also known by both names.
        let inner = |tool: &Value| {
            let own = tool["tools"].as_array().cloned().unwrap_or_default();
            let both = own.clone().into_iter().map(|mut one| {
                let names = [&tool["name"], &one["name"]].map(|name| name.as_str().unwrap_or(""));
                one["name"] = names.join(NAMESPACE).into();
                one
            });
            own.into_iter().chain(both.collect::<Vec<Value>>())
        };
        tools
            .flat_map(|tool| std::iter::once(tool.clone()).chain(inner(tool)))
            .filter_map(|tool| Offered::read(&tool, "parameters"))
            .collect()
    }

    fn wanted_schema(&self, body: &Value) -> Option<Value> {
        body.pointer("/text/format/schema").cloned()
    }

    fn whole(&self, reply: &Reply) -> Value {
        finished(reply)
    }

    fn frames(&self, reply: &Reply) -> Vec<Frame> {
        let mut events = Events::default();
        let begun = response(reply, "in_progress");
        events.add("response.created", json!({"response": begun}));
        events.add("response.in_progress", json!({"response": begun}));
        for (index, item) in items(reply).into_iter().enumerate() {
            events.item(reply, index, &item);
        }
        let end = if reply.is_cut_short() {
            "response.incomplete"
        } else {
            "response.completed"
        };
        events.add(end, json!({"response": finished(reply)}));
        events.frames
    }

    fn stream_error(&self, turn: &Turn, reply: &Reply) -> Frame {
        let usual = "Rate limit reached for gpt-5. Please try again in 1.5s.";
        let message = turn.message.as_deref().unwrap_or(usual);
        let mut failed = response(reply, "failed");
        failed["error"] = json!({"code": "rate_limit_exceeded", "message": message});
        let event = json!({"type": "response.failed", "sequence_number": 99, "response": failed});
        Frame::named("response.failed", &event)
    }

    fn error_outside_streams(&self) -> Fault {
        Fault::Unavailable
    }

    fn refusal(&self, about: &Circumstances<'_>) -> Option<Refusal> {
        chat::refusal(about)
    }
}

fn finished(reply: &Reply) -> Value {
    let status = if reply.is_cut_short() {
        "incomplete"
    } else {
        "completed"
    };
    let mut response = response(reply, status);
    response["output"] = Value::Array(items(reply));
    response["usage"] = usage(reply);
    if reply.is_cut_short() {
        response["incomplete_details"] = json!({"reason": "max_output_tokens"});
    }
    response
}

/// The response without what it answers.
fn response(reply: &Reply, status: &str) -> Value {
    json!({
        "id": format!("resp_scripted_{}", reply.number), "object": "response",
        "created_at": 1_700_000_000, "status": status, "model": reply.model, "output": [],
        "parallel_tool_calls": true, "tool_choice": "auto", "tools": [], "error": null,
        "incomplete_details": null, "metadata": {}, "usage": null,
    })
}

fn usage(reply: &Reply) -> Value {
    let usage = reply.usage;
    json!({
        "input_tokens": usage.input, "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    })
}

fn items(reply: &Reply) -> Vec<Value> {
    let number = reply.number;
    let thinking = reply.thinking.as_ref().map(|text| {
        json!({"id": format!("rs_{number}"), "type": "reasoning", "encrypted_content": null,
               "summary": [{"type": "summary_text", "text": text}]})
    });
    let text = reply.text.as_ref().map(|text| {
        json!({"id": format!("msg_{number}"), "type": "message", "role": "assistant",
               "status": "completed", "content": [part(text)]})
    });
    let calls = reply.calls.iter().map(|call| {
        let (namespace, name) = match call.name.split_once(NAMESPACE) {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, call.name.as_str()),
        };
        let mut item = json!({"id": format!("fc_{}", call.id), "type": "function_call",
               "status": "completed", "call_id": format!("call_{}", call.id), "name": name,
               "arguments": call.arguments()});
        if let Some(namespace) = namespace {
            item["namespace"] = namespace.into();
        }
        item
    });
    thinking.into_iter().chain(text).chain(calls).collect()
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

/// Events with their running number.
#[derive(Default)]
struct Events {
    frames: Vec<Frame>,
}

impl Events {
    fn add(&mut self, kind: &'static str, mut event: Value) {
        event["type"] = json!(kind);
        event["sequence_number"] = json!(self.frames.len());
        self.frames.push(Frame::named(kind, &event));
    }

    fn add_pieces(&mut self, kind: &'static str, place: &Value, pieces: Vec<String>) {
        for piece in pieces {
            self.add(kind, with(place, &json!({"delta": piece})));
            if let Some(last) = self.frames.pop() {
                self.frames.push(last.piece());
            }
        }
    }

    fn item(&mut self, reply: &Reply, index: usize, item: &Value) {
        let place = json!({"item_id": item["id"], "output_index": index});
        let text = |pointer: &str| {
            item.pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let begun =
            |key: &str, value: Value| with(item, &json!({"status": "in_progress", key: value}));
        match item["type"].as_str() {
            Some("message") => {
                self.added(index, begun("content", json!([])));
                self.message(reply, &place, text("/content/0/text"));
            }
            Some("reasoning") => {
                self.added(index, begun("summary", json!([])));
                self.reasoning(reply, &place, text("/summary/0/text"));
            }
            _ => {
                self.added(index, begun("arguments", json!("")));
                self.call(reply, &place, text("/arguments"));
            }
        }
        self.add(
            "response.output_item.done",
            json!({"output_index": index, "item": item}),
        );
    }

    fn added(&mut self, index: usize, item: Value) {
        self.add(
            "response.output_item.added",
            json!({"output_index": index, "item": item}),
        );
    }

    fn message(&mut self, reply: &Reply, place: &Value, text: &str) {
        let place = with(place, &json!({"content_index": 0}));
        self.add(
            "response.content_part.added",
            with(&place, &json!({"part": part("")})),
        );
        self.add_pieces("response.output_text.delta", &place, reply.pieces(text));
        self.add(
            "response.output_text.done",
            with(&place, &json!({"text": text})),
        );
        self.add(
            "response.content_part.done",
            with(&place, &json!({"part": part(text)})),
        );
    }

    fn reasoning(&mut self, reply: &Reply, place: &Value, text: &str) {
        let place = with(place, &json!({"summary_index": 0}));
        let empty = json!({"part": {"type": "summary_text", "text": ""}});
        self.add(
            "response.reasoning_summary_part.added",
            with(&place, &empty),
        );
        self.add_pieces(
            "response.reasoning_summary_text.delta",
            &place,
            reply.pieces(text),
        );
        self.add(
            "response.reasoning_summary_text.done",
            with(&place, &json!({"text": text})),
        );
    }

    fn call(&mut self, reply: &Reply, place: &Value, arguments: &str) {
        let pieces = reply.pieces(arguments);
        self.add_pieces("response.function_call_arguments.delta", place, pieces);
        let done = with(place, &json!({"arguments": arguments}));
        self.add("response.function_call_arguments.done", done);
    }
}

/// An object with the fields of another put over it.
fn with(object: &Value, more: &Value) -> Value {
    let mut merged = object.clone();
    for (key, value) in more.as_object().into_iter().flatten() {
        merged[key] = value.clone();
    }
    merged
}
