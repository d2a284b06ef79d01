//! Claude's stream-json, and the streams of agents that took it over (qwen, amp, cursor).

mod calls;
mod result;
mod streamed;
mod tell;
mod tokens;

use self::calls::Calls;
use self::streamed::Streamed;
use self::tell::{
    answer, blocks, qwens_retry, rate_limit, retry, step_usage, subagent, synthetic, think,
};
use self::tokens::tokens;
use super::dialect::{Dialect, Out};
use super::json::JsonValue;
use super::recent::Recent;
use super::{AgentEvent, Failure, FailureKind, Piece, ToolOutcome, Usage, tool};

/// System events that say nothing we need.
const SILENT: [&str; 14] = [
    "status",
    "thinking_tokens",
    "compact_boundary",
    "hook_started",
    "hook_progress",
    "hook_response",
    "task_started",
    "task_progress",
    "task_updated",
    "task_notification",
    "session_state_changed",
    "informational",
    "files_persisted",
    "local_command_output",
];
/// Messages that claude writes itself, not the model.
const SYNTHETIC: &str = "<synthetic>";

/// What has to be remembered from line to line.
#[derive(Default)]
pub(super) struct Claude {
    cwd: Option<String>,
    /// The id and number of the message that is being written.
    id: Option<String>,
    number: Option<u32>,
    /// Ids of messages whose tokens were counted.
    counted: Recent<String>,
    streamed: Streamed,
    calls: Calls,
}

impl Dialect for Claude {
    fn take(&mut self, line: &JsonValue<'_>, out: &mut Out<'_>) {
        match line["type"].or_empty() {
            "system" => self.system(line, out),
            "assistant" => self.assistant(line, out),
            "user" => self.user(line, out),
            "stream_event" => self.partial(line, out),
            "result" => {
                self.calls.denied_in_result(line, out);
                out.push(AgentEvent::Result(result::result(line)));
            }
            "rate_limit_event" => rate_limit(&line["rate_limit_info"], out),
            "tool_call" => self.named_call(line, out),
            "thinking" => think(&line["text"], out),
            "tool_progress" | "control_request" | "control_response" | "keep_alive" => {}
            kind => out.unknown(kind),
        }
    }
}

impl Claude {
    fn system(&mut self, line: &JsonValue<'_>, out: &mut Out<'_>) {
        match line["subtype"].or_empty() {
            "init" => {
                self.cwd = line["cwd"].owned();
                let version = line["claude_code_version"].owned();
                out.push(AgentEvent::Session {
                    id: line["session_id"].owned(),
                    model: line["model"].owned(),
                    version: version.or_else(|| line["qwen_code_version"].owned()),
                });
            }
            "api_retry" => out.push(retry(line)),
            "retry" => out.push(qwens_retry(&line["data"])),
            "permission_denied" => self.calls.denied_now(line, out),
            subtype if SILENT.contains(&subtype) => {}
            subtype => out.unknown(&format!("system/{subtype}")),
        }
    }

    fn assistant(&mut self, line: &JsonValue<'_>, out: &mut Out<'_>) {
        let message = &line["message"];
        if !message.is_object() {
            return;
        }
        if message["model"].is(SYNTHETIC) || line["error"].text().is_some() {
            return synthetic(line, out);
        }
        let own = line["parent_tool_use_id"].text().is_none();
        if own {
            self.open(&message["id"]);
        }
        self.count(message, out);
        for block in blocks(message) {
            match (block["type"].or_empty(), own) {
                ("text", true) => self.say(block["text"].or_empty(), out),
                ("text", false) => subagent(&block["text"], out),
                ("thinking", true) if self.streamed.thought() => {}
                ("thinking", _) => think(&block["thinking"], out),
                ("tool_use" | "server_tool_use", _) => self.call(block, out),
                ("redacted_thinking" | "image" | "document", _) => {}
                (kind, _) if kind.ends_with("_tool_result") => answer(block, out),
                (kind, _) => out.unknown(&format!("assistant/{kind}")),
            }
        }
    }

    fn user(&mut self, line: &JsonValue<'_>, out: &mut Out<'_>) {
        for block in blocks(&line["message"]) {
            let text = block["text"].or_empty();
            if block["type"].is("tool_result") {
                self.calls.denied_in_answer(block, out);
                answer(block, out);
            } else if text.starts_with("[Request interrupted by user") {
                out.push(AgentEvent::Failed(Failure {
                    kind: FailureKind::Interrupted,
                    message: text.to_owned(),
                }));
            }
        }
    }

    /// A message comes in pieces, and then once more in whole.
    fn partial(&mut self, line: &JsonValue<'_>, out: &mut Out<'_>) {
        if line["parent_tool_use_id"].text().is_some() {
            return;
        }
        let event = &line["event"];
        let delta = &event["delta"];
        match (event["type"].or_empty(), delta["type"].or_empty()) {
            ("message_start", _) if event["message"].is_object() => {
                self.open(&event["message"]["id"]);
            }
            ("content_block_start", _) => self.streamed.begin(),
            ("content_block_delta", "text_delta") => {
                let text = delta["text"].or_empty();
                let piece = self.streamed.text(text);
                out.push(self.text(piece, text));
            }
            ("content_block_delta", "thinking_delta") => {
                self.streamed.thinking();
                think(&delta["thinking"], out);
            }
            ("message_delta", _) => {
                let output = tokens(&event["usage"]).output;
                let usage = Usage {
                    output,
                    ..Usage::default()
                };
                step_usage(usage, out);
            }
            _ => {}
        }
    }

    fn open(&mut self, id: &JsonValue<'_>) {
        if id.text().is_none() || id.text() != self.id.as_deref() {
            self.id = id.owned();
            self.number = Some(self.number.map_or(0, |number| number + 1));
            self.streamed = Streamed::default();
        }
    }

    fn say(&mut self, text: &str, out: &mut Out<'_>) {
        if !self.streamed.was(text) {
            out.push(self.text(Piece::Block, text));
        }
    }

    fn text(&self, piece: Piece, text: &str) -> AgentEvent {
        AgentEvent::Text {
            message: self.number.unwrap_or(0),
            piece,
            text: text.to_owned(),
        }
    }

    /// Tokens stand on every block of a message; while it is written its output is unknown.
    fn count(&mut self, message: &JsonValue<'_>, out: &mut Out<'_>) {
        if !message["usage"].is_object() {
            return;
        }
        if let Some(id) = message["id"].owned() {
            if self.counted.find(|counted| *counted == id).is_some() {
                return;
            }
            self.counted.add(id);
        }
        let ended = message["stop_reason"].text().is_some();
        let usage = tokens(&message["usage"]);
        let output = usage.output.filter(|_| ended);
        step_usage(Usage { output, ..usage }, out);
    }

    fn call(&mut self, block: &JsonValue<'_>, out: &mut Out<'_>) {
        let (id, name) = (block["id"].or_empty(), block["name"].or_empty());
        self.calls.note(id, name, &block["input"]);
        out.push(AgentEvent::ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            summary: tool::summary(name, &block["input"], self.cwd.as_deref()),
        });
    }

    /// A tool call under its own name: `{"shellToolCall":{"args":{…},"result":{…}}}`.
    fn named_call(&mut self, line: &JsonValue<'_>, out: &mut Out<'_>) {
        let calls = line["tool_call"].entries().iter();
        let Some((name, call)) = calls.rev().find(|(_, call)| call.is_object()) else {
            return;
        };
        let id = line["call_id"].or_empty().to_owned();
        match line["subtype"].or_empty() {
            "started" => {
                let name = name.trim_end_matches("ToolCall");
                out.push(AgentEvent::ToolCall {
                    id,
                    name: name.to_owned(),
                    summary: tool::summary(name, &call["args"], self.cwd.as_deref()),
                });
            }
            "completed" => {
                let success = &call["result"]["success"];
                let exit = success["exitCode"].int();
                out.push(AgentEvent::ToolResult {
                    id,
                    outcome: ToolOutcome::of(exit, Some(success.is_object())),
                    duration: None,
                    preview: String::new(),
                });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
