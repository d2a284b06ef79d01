//! Claude's stream-json, and the streams of agents that took it over (qwen, amp, cursor).

mod calls;
mod line;
mod result;
mod streamed;
mod tell;

use self::calls::Calls;
use self::line::{Block, ClaudeLine, ClaudeMessage, Delta, NamedCall};
use self::streamed::Streamed;
use self::tell::{answer, rate_limit, retry, step_usage, subagent, synthetic, think};
use super::dialect::{Dialect, Out, values};
use super::lenient::Str;
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
    counted: Vec<String>,
    streamed: Streamed,
    calls: Calls,
}

impl Dialect for Claude {
    fn read(&mut self, json: &[u8], out: &mut Out<'_>) -> Result<(), serde_json::Error> {
        for line in values::<ClaudeLine<'_>>(json)? {
            self.take(line, out);
        }
        Ok(())
    }
}

impl Claude {
    fn take(&mut self, line: ClaudeLine<'_>, out: &mut Out<'_>) {
        match line.kind.or_empty() {
            "system" => self.system(&line, out),
            "assistant" => self.assistant(&line, out),
            "user" => self.user(&line, out),
            "stream_event" => {
                if let Some(event) = &line.event.0 {
                    self.partial(event, &line, out);
                }
            }
            "result" => {
                self.calls.denied_in_result(&line, out);
                out.push(AgentEvent::Result(result::result(&line)));
            }
            "rate_limit_event" => {
                if let Some(info) = &line.rate_limit_info.0 {
                    rate_limit(info, out);
                }
            }
            "tool_call" => {
                if let Some(named) = &line.tool_call.0 {
                    self.named_call(&line, named, out);
                }
            }
            "thinking" => think(&line.text, out),
            "tool_progress" | "control_request" | "control_response" | "keep_alive" => {}
            kind => out.unknown(kind),
        }
    }

    fn system(&mut self, line: &ClaudeLine<'_>, out: &mut Out<'_>) {
        match line.subtype.or_empty() {
            "init" => {
                self.cwd = line.cwd.owned();
                let version = line.claude_code_version.owned();
                out.push(AgentEvent::Session {
                    id: line.session_id.owned(),
                    model: line.model.owned(),
                    version: version.or_else(|| line.qwen_code_version.owned()),
                });
            }
            "api_retry" => out.push(retry(line)),
            "permission_denied" => self.calls.denied_now(line, out),
            subtype if SILENT.contains(&subtype) => {}
            subtype => out.unknown(&format!("system/{subtype}")),
        }
    }

    fn assistant(&mut self, line: &ClaudeLine<'_>, out: &mut Out<'_>) {
        let Some(message) = &line.message.0 else {
            return;
        };
        if message.model.is(SYNTHETIC) || line.error.as_deref().is_some() {
            return synthetic(line, message, out);
        }
        let own = line.parent_tool_use_id.as_deref().is_none();
        if own {
            self.open(&message.id);
        }
        self.count(message, out);
        for block in message
            .content
            .0
            .iter()
            .filter_map(|block| block.0.as_ref())
        {
            match (block.kind.or_empty(), own) {
                ("text", true) => self.say(block.text.or_empty(), out),
                ("text", false) => subagent(&block.text, out),
                ("thinking", true) if self.streamed.thought() => {}
                ("thinking", _) => think(&block.thinking, out),
                ("tool_use" | "server_tool_use", _) => self.call(block, out),
                ("redacted_thinking" | "image" | "document", _) => {}
                (kind, _) if kind.ends_with("_tool_result") => answer(block, out),
                (kind, _) => out.unknown(&format!("assistant/{kind}")),
            }
        }
    }

    fn user(&mut self, line: &ClaudeLine<'_>, out: &mut Out<'_>) {
        let Some(message) = &line.message.0 else {
            return;
        };
        for block in message
            .content
            .0
            .iter()
            .filter_map(|block| block.0.as_ref())
        {
            if block.kind.is("tool_result") {
                self.calls.denied_in_answer(block, out);
                answer(block, out);
            } else if block
                .text
                .or_empty()
                .starts_with("[Request interrupted by user")
            {
                out.push(AgentEvent::Failed(Failure {
                    kind: FailureKind::Interrupted,
                    message: block.text.or_empty().to_owned(),
                }));
            }
        }
    }

    /// A message comes in pieces, and then once more in whole.
    fn partial(&mut self, event: &Delta<'_>, line: &ClaudeLine<'_>, out: &mut Out<'_>) {
        if line.parent_tool_use_id.as_deref().is_some() {
            return;
        }
        match event.kind.or_empty() {
            "message_start" => {
                if let Some(message) = &event.message.0 {
                    self.open(&message.id);
                }
            }
            "content_block_start" => self.streamed.begin(),
            "content_block_delta" => {
                let Some(delta) = &event.delta.0 else { return };
                match delta.kind.or_empty() {
                    "text_delta" => {
                        let text = delta.text.or_empty();
                        let piece = self.streamed.text(text);
                        out.push(self.text(piece, text));
                    }
                    "thinking_delta" => {
                        self.streamed.thinking();
                        think(&delta.thinking, out);
                    }
                    _ => {}
                }
            }
            "message_delta" => {
                let output = event.usage.0.and_then(|tokens| tokens.usage().output);
                step_usage(
                    Usage {
                        output,
                        ..Usage::default()
                    },
                    out,
                );
            }
            _ => {}
        }
    }

    fn open(&mut self, id: &Str<'_>) {
        if id.as_deref().is_none() || id.as_deref() != self.id.as_deref() {
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
    fn count(&mut self, message: &ClaudeMessage<'_>, out: &mut Out<'_>) {
        let Some(tokens) = message.usage.0 else {
            return;
        };
        if let Some(id) = message.id.owned() {
            if self.counted.contains(&id) {
                return;
            }
            if self.counted.len() >= 16 {
                self.counted.remove(0);
            }
            self.counted.push(id);
        }
        let ended = message.stop_reason.as_deref().is_some();
        let usage = tokens.usage();
        let output = usage.output.filter(|_| ended);
        step_usage(Usage { output, ..usage }, out);
    }

    fn call(&mut self, block: &Block<'_>, out: &mut Out<'_>) {
        let name = block.name.or_empty();
        let input = block.input.0.clone().unwrap_or_default();
        self.calls.note(block.id.or_empty(), name, &input);
        out.push(AgentEvent::ToolCall {
            id: block.id.or_empty().to_owned(),
            name: name.to_owned(),
            summary: tool::summary(name, &input, self.cwd.as_deref()),
        });
    }

    fn named_call(&mut self, line: &ClaudeLine<'_>, named: &NamedCall<'_>, out: &mut Out<'_>) {
        let id = line.call_id.or_empty().to_owned();
        if line.subtype.is("started") {
            let name = named.name.trim_end_matches("ToolCall");
            let input = named.call.args.0.clone().unwrap_or_default();
            let summary = tool::summary(name, &input, self.cwd.as_deref());
            let name = name.to_owned();
            out.push(AgentEvent::ToolCall { id, name, summary });
        } else if line.subtype.is("completed") {
            let success = named
                .call
                .result
                .0
                .as_ref()
                .and_then(|result| result.success.0.as_ref());
            let exit = success.and_then(|success| success.exit_code.int());
            let outcome = ToolOutcome::of(exit, Some(success.is_some()));
            out.push(AgentEvent::ToolResult {
                id,
                outcome,
                duration: None,
                preview: String::new(),
            });
        }
    }
}

#[cfg(test)]
mod tests;
