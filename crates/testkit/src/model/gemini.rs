//! Gemini's generateContent API.

use serde_json::{Value, json};

use super::errors::{Circumstances, Refusal, rfc3339, status};
use super::exchange::Api;
use super::reply::{Frame, Reply};
use super::script::{Fault, Turn};
use super::tools::Offered;

pub(super) struct GenerateContent;

impl Api for GenerateContent {
    fn offered(&self, body: &Value) -> Vec<Offered> {
        let groups = body["tools"].as_array().into_iter().flatten();
        groups
            .flat_map(|group| {
                group["functionDeclarations"]
                    .as_array()
                    .into_iter()
                    .flatten()
            })
            .filter_map(|tool| {
                let key = ["parametersJsonSchema", "parameters"];
                let key = key
                    .into_iter()
                    .find(|key| tool.get(*key).is_some())
                    .unwrap_or(key[0]);
                Offered::read(tool, key)
            })
            .collect()
    }

    fn wanted_schema(&self, body: &Value) -> Option<Value> {
        let config = body.get("generationConfig")?;
        config
            .get("responseJsonSchema")
            .or_else(|| config.get("responseSchema"))
            .cloned()
    }

    fn whole(&self, reply: &Reply) -> Value {
        let parts: Vec<Value> = parts(reply).into_iter().flatten().collect();
        answer(reply, parts, Some(stop(reply)))
    }

    fn frames(&self, reply: &Reply) -> Vec<Frame> {
        let mut parts = parts(reply);
        let last = parts.pop().unwrap_or_default();
        let piece = |parts, stop| Frame::plain(&answer(reply, parts, stop)).piece();
        let mut frames: Vec<Frame> = parts.into_iter().map(|parts| piece(parts, None)).collect();
        frames.push(piece(last, Some(stop(reply))));
        frames
    }

    fn stream_error(&self, turn: &Turn, _: &Reply) -> Frame {
        let usual = "The model is overloaded. Please try again later.";
        let message = turn.message.as_deref().unwrap_or(usual);
        let error = json!({"code": 503, "message": message, "status": "UNAVAILABLE"});
        Frame::plain(&json!({"error": error}))
    }

    fn error_outside_streams(&self) -> Fault {
        Fault::Unavailable
    }

    fn refusal(&self, about: &Circumstances<'_>) -> Option<Refusal> {
        // A wrong key is an invalid argument to this API.
        let status = if about.fault == Fault::BadKey {
            400
        } else {
            status(about.fault)?
        };
        let (name, usual) = words(about.fault);
        let error = json!({"code": status, "message": about.message(usual), "status": name,
                           "details": details(about)});
        Some(Refusal {
            status,
            headers: Vec::new(),
            body: json!({"error": error}),
        })
    }
}

fn words(fault: Fault) -> (&'static str, &'static str) {
    match fault {
        Fault::BadKey => (
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
        ),
        Fault::Forbidden => ("PERMISSION_DENIED", "The caller does not have permission"),
        Fault::NotFound => (
            "NOT_FOUND",
            "models/scripted is not found for API version v1beta",
        ),
        Fault::TooLarge => (
            "INVALID_ARGUMENT",
            "Request payload size exceeds the limit: 20971520 bytes.",
        ),
        Fault::RateLimit => (
            "RESOURCE_EXHAUSTED",
            "Resource has been exhausted (e.g. check quota).",
        ),
        Fault::Quota => (
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        Fault::UsageLimit => (
            "RESOURCE_EXHAUSTED",
            "You have exhausted your capacity on this model. Your quota will reset after 1h0m0s.",
        ),
        Fault::ServerError => ("INTERNAL", "An internal error has occurred."),
        Fault::BadGateway => ("UNAVAILABLE", "Bad gateway"),
        Fault::Unavailable => (
            "UNAVAILABLE",
            "The model is overloaded. Please try again later.",
        ),
        Fault::Overloaded => ("UNAVAILABLE", "Overloaded"),
        Fault::Context => (
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed \
             (1048576).",
        ),
        _ => ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    }
}

fn details(about: &Circumstances<'_>) -> Value {
    let retry = |seconds: u64| {
        json!({"@type": "type.googleapis.com/google.rpc.RetryInfo",
               "retryDelay": format!("{seconds}s")})
    };
    let quota = |id: &str| {
        let metric = "generativelanguage.googleapis.com/generate_content_requests";
        json!({"@type": "type.googleapis.com/google.rpc.QuotaFailure",
               "violations": [{"quotaMetric": metric, "quotaId": id}]})
    };
    let info = |reason: &str, domain: &str, metadata: Value| {
        json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason,
               "domain": domain, "metadata": metadata})
    };
    match (about.fault, about.turn.retry_after) {
        (Fault::RateLimit, Some(seconds)) => {
            json!([
                quota("GenerateRequestsPerMinutePerProjectPerModel"),
                retry(seconds)
            ])
        }
        (Fault::Quota, _) => {
            json!([
                quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
                retry(39)
            ])
        }
        (Fault::UsageLimit, _) => {
            let (reset, seconds) = about.reset();
            let metadata = json!({"model": about.model, "quotaResetDelay": format!("{seconds}s"),
                                  "quotaResetTimeStamp": rfc3339(reset)});
            json!([
                info("QUOTA_EXHAUSTED", "cloudcode-pa.googleapis.com", metadata),
                retry(seconds)
            ])
        }
        (Fault::BadKey, _) => {
            let metadata = json!({"service": "generativelanguage.googleapis.com"});
            json!([info("API_KEY_INVALID", "googleapis.com", metadata)])
        }
        _ => json!([]),
    }
}

/// The parts of the answer, grouped as they are streamed.
fn parts(reply: &Reply) -> Vec<Vec<Value>> {
    let thinking = reply
        .thinking
        .iter()
        .map(|text| vec![json!({"text": text, "thought": true})]);
    let text = reply.text.iter().flat_map(|text| reply.pieces(text));
    let text = text.map(|piece| vec![json!({"text": piece})]);
    let calls: Vec<Value> = reply
        .calls
        .iter()
        .map(|call| json!({"functionCall": {"name": call.name, "args": call.args}}))
        .collect();
    let calls = Some(calls).filter(|calls| !calls.is_empty());
    thinking.chain(text).chain(calls).collect()
}

fn answer(reply: &Reply, parts: Vec<Value>, stop: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if let Some(stop) = stop {
        candidate["finishReason"] = json!(stop);
    }
    json!({"candidates": [candidate], "usageMetadata": usage(reply), "modelVersion": reply.model,
           "responseId": format!("scripted-{}", reply.number)})
}

fn usage(reply: &Reply) -> Value {
    let usage = reply.usage;
    json!({
        "promptTokenCount": usage.input, "candidatesTokenCount": usage.output,
        "cachedContentTokenCount": usage.cache_read, "thoughtsTokenCount": usage.reasoning,
        "totalTokenCount": usage.input + usage.output + usage.reasoning,
    })
}

fn stop(reply: &Reply) -> &str {
    reply.stop("MAX_TOKENS", "STOP", "STOP")
}
