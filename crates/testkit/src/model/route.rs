//! From a path to a lane and an API.

use serde_json::{Value, json};

use super::anthropic::Messages;
use super::chat::Chat;
use super::exchange::{Api, Form};
use super::gemini::GenerateContent;
use super::responses::Responses;

/// What a request wants.
pub(super) enum Route {
    Answer(&'static dyn Api, Form, Option<String>),
    /// Something small that every test has alike.
    Fixed(Value),
    /// A lane's script, log or newest request.
    Control(Control),
    /// Nothing that there is.
    Nowhere,
}

/// What a test asks of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    Script,
    Log,
    Last,
}

/// The lane and the route of a request.
pub(super) fn find<'a>(method: &str, path: &'a str, body: &Value) -> (&'a str, Route) {
    let path = path.split('?').next().unwrap_or_default();
    if let Some((control, lane)) = control(path) {
        return (lane, Route::Control(control));
    }
    let (lane, path) = match path.strip_prefix("/s/") {
        Some(rest) => rest.split_once('/').unwrap_or((rest, "")),
        None => ("default", path),
    };
    let route = match method {
        "POST" => post(path, body),
        "GET" | "HEAD" if path.trim_end_matches('/').ends_with("models") => Route::Fixed(models()),
        _ => Route::Nowhere,
    };
    (lane, route)
}

fn control(path: &str) -> Option<(Control, &str)> {
    let (name, lane) = path.strip_prefix("/__")?.split_once('/')?;
    let control = match name {
        "script" => Control::Script,
        "log" => Control::Log,
        "last" => Control::Last,
        _ => return None,
    };
    Some((control, lane))
}

fn post(path: &str, body: &Value) -> Route {
    let form = if body["stream"] == json!(true) {
        Form::Stream
    } else {
        Form::Whole
    };
    let model = body["model"].as_str().map(str::to_owned);
    if let Some((_, call)) = path.rsplit_once("/models/") {
        return gemini(call);
    }
    match path {
        _ if path.ends_with("/messages/count_tokens") => Route::Fixed(json!({"input_tokens": 100})),
        _ if path.ends_with("/messages") => Route::Answer(&Messages, form, model),
        _ if path.ends_with("/chat/completions") => Route::Answer(&Chat, form, model),
        _ if path.ends_with("/responses") => Route::Answer(&Responses, form, model),
        _ => Route::Nowhere,
    }
}

fn gemini(call: &str) -> Route {
    let Some((model, verb)) = call.split_once(':') else {
        return Route::Nowhere;
    };
    let answer = |form| Route::Answer(&GenerateContent, form, Some(model.to_owned()));
    match verb {
        "generateContent" => answer(Form::Whole),
        "streamGenerateContent" => answer(Form::Stream),
        "countTokens" => Route::Fixed(json!({"totalTokens": 100})),
        _ => Route::Nowhere,
    }
}

fn models() -> Value {
    let names = [
        "scripted-model",
        "claude-sonnet-5",
        "gpt-5",
        "gemini-2.5-pro",
    ];
    let model = |name: &&str| {
        json!({"id": name, "type": "model", "object": "model", "owned_by": "scripted",
               "created": 1_700_000_000, "display_name": name, "created_at": "2025-01-01T00:00:00Z"})
    };
    let data: Vec<Value> = names.iter().map(model).collect();
    json!({"object": "list", "has_more": false, "first_id": names[0], "last_id": names[3],
           "data": data})
}
