//! Codex's `exec --json`.

use serde::Deserialize;

use super::dialect::{Dialect, Out, values};
use super::failure::failure;
use super::lenient::{List, Num, Obj, Preview, Str, Words};
use super::tool::{self, ToolInput};
use super::{AgentEvent, Denial, Piece, RunResult, ToolOutcome, Usage};

#[derive(Default, Deserialize)]
#[serde(default)]
struct CodexLine<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    thread_id: Str<'a>,
    #[serde(borrow)]
    item: Obj<CodexItem<'a>>,
    #[serde(borrow)]
    message: Str<'a>,
    #[serde(borrow)]
    error: Obj<CodexMessage<'a>>,
    usage: Obj<CodexTokens>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CodexMessage<'a> {
    #[serde(borrow)]
    message: Str<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CodexItem<'a> {
    #[serde(borrow)]
    id: Str<'a>,
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    text: Str<'a>,
    #[serde(borrow)]
    message: Str<'a>,
    #[serde(borrow)]
    command: Words<'a>,
    aggregated_output: Preview,
    exit_code: Num,
    #[serde(borrow)]
    status: Str<'a>,
    #[serde(borrow)]
    changes: List<Obj<CodexChange<'a>>>,
    #[serde(borrow)]
    server: Str<'a>,
    #[serde(borrow)]
    tool: Str<'a>,
    #[serde(borrow)]
    arguments: Obj<ToolInput<'a>>,
    #[serde(borrow)]
    query: Str<'a>,
    #[serde(borrow)]
    prompt: Str<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CodexChange<'a> {
    #[serde(borrow)]
    path: Str<'a>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct CodexTokens {
    input_tokens: Num,
    cached_input_tokens: Num,
    cache_write_input_tokens: Num,
    output_tokens: Num,
    reasoning_output_tokens: Num,
}

impl CodexTokens {
    /// Codex counts what came from a cache as input too.
    fn usage(self) -> Usage {
        let cache_read = self.cached_input_tokens.count();
        let cache_write = self.cache_write_input_tokens.count();
        let cached = cache_read
            .unwrap_or(0)
            .saturating_add(cache_write.unwrap_or(0));
        Usage {
            input: self
                .input_tokens
                .count()
                .map(|all| all.saturating_sub(cached)),
            output: self.output_tokens.count(),
            cache_read,
            cache_write,
            reasoning: self.reasoning_output_tokens.count(),
        }
    }
}

/// What has to be remembered from line to line.
#[derive(Default)]
pub(super) struct Codex {
    messages: u32,
    /// Ids of tool calls that were told when they began.
    begun: Vec<String>,
}

impl Dialect for Codex {
    fn read(&mut self, json: &[u8], out: &mut Out<'_>) -> Result<(), serde_json::Error> {
        for line in values::<CodexLine<'_>>(json)? {
            self.take(&line, out);
        }
        Ok(())
    }
}

impl Codex {
    fn take(&mut self, line: &CodexLine<'_>, out: &mut Out<'_>) {
        match line.kind.or_empty() {
            "thread.started" => out.push(AgentEvent::Session {
                id: line.thread_id.owned(),
                model: None,
                version: None,
            }),
            "turn.started" => out.push(AgentEvent::Step),
            "turn.completed" => out.push(AgentEvent::Result(RunResult {
                usage: line.usage.0.map(CodexTokens::usage),
                ..RunResult::default()
            })),
            "turn.failed" => {
                let told = line
                    .error
                    .0
                    .as_ref()
                    .map_or("", |error| error.message.or_empty());
                out.push(AgentEvent::Result(RunResult {
                    error: Some(failure(told, None)),
                    usage: line.usage.0.map(CodexTokens::usage),
                    ..RunResult::default()
                }));
            }
            "error" => out.push(error(line.message.or_empty())),
            "item.started" => self.item(line, Stage::Started, out),
            "item.completed" => self.item(line, Stage::Completed, out),
            "item.updated" | "item.plan.delta" => {}
            kind => out.unknown(kind),
        }
    }

    fn item(&mut self, line: &CodexLine<'_>, stage: Stage, out: &mut Out<'_>) {
        let Some(item) = &line.item.0 else { return };
        let done = stage == Stage::Completed;
        match item.kind.or_empty() {
            "agent_message" if done => {
                out.push(AgentEvent::Text {
                    message: self.messages,
                    piece: Piece::Block,
                    text: item.text.or_empty().to_owned(),
                });
                self.messages = self.messages.saturating_add(1);
            }
            "reasoning" | "plan" if done => out.push(AgentEvent::Thinking {
                text: item.text.or_empty().to_owned(),
            }),
            "error" if done => out.push(AgentEvent::Warning {
                message: item.message.or_empty().to_owned(),
            }),
            "command_execution" | "file_change" | "mcp_tool_call" | "collab_tool_call"
            | "web_search" => self.tool(item, stage, out),
            "agent_message" | "reasoning" | "plan" | "error" | "todo_list" => {}
            kind => out.unknown(&format!("item/{kind}")),
        }
    }

    fn tool(&mut self, item: &CodexItem<'_>, stage: Stage, out: &mut Out<'_>) {
        let id = item.id.or_empty();
        let told = self.begun.iter().position(|begun| begun == id);
        if told.is_none() {
            out.push(call(item));
        }
        match (stage, told) {
            (Stage::Started, None) => self.begun.push(id.to_owned()),
            (Stage::Started, Some(_)) => {}
            (Stage::Completed, told) => {
                if let Some(at) = told {
                    self.begun.remove(at);
                }
                answer(item, out);
            }
        }
        if self.begun.len() > 64 {
            self.begun.remove(0);
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Started,
    Completed,
}

fn call(item: &CodexItem<'_>) -> AgentEvent {
    let kind = item.kind.or_empty();
    let (name, summary) = match kind {
        "command_execution" => {
            let command = item.command.0.as_deref().unwrap_or_default();
            ("shell".to_owned(), tool::shell(command))
        }
        "file_change" => {
            let changes = item.changes.0.iter().filter_map(|change| change.0.as_ref());
            let paths: Vec<&str> = changes
                .filter_map(|change| change.path.as_deref())
                .collect();
            (
                "patch".to_owned(),
                tool::one_line(&format!("edit {}", paths.join(", ")), 160),
            )
        }
        "mcp_tool_call" => {
            let name = format!("{}.{}", item.server.or_empty(), item.tool.or_empty());
            let input = item.arguments.0.clone().unwrap_or_default();
            let summary = tool::summary(&name, &input, None);
            (name, summary)
        }
        "web_search" => {
            let line = format!("search {}", item.query.or_empty());
            ("web_search".to_owned(), tool::one_line(&line, 160))
        }
        _ => {
            let name = item.tool.as_deref().unwrap_or(kind).to_owned();
            let line = format!("task {}", item.prompt.or_empty());
            (name, tool::one_line(&line, 160))
        }
    };
    let id = item.id.or_empty().to_owned();
    AgentEvent::ToolCall { id, name, summary }
}

fn answer(item: &CodexItem<'_>, out: &mut Out<'_>) {
    if item.status.is("declined") {
        out.push(AgentEvent::Denied(Denial {
            tool: "shell".to_owned(),
            rule: item.command.0.as_deref().unwrap_or_default().to_owned(),
        }));
    }
    let ok = !(item.status.is("failed") || item.status.is("declined"));
    out.push(AgentEvent::ToolResult {
        id: item.id.or_empty().to_owned(),
        outcome: ToolOutcome::of(item.exit_code.int(), Some(ok)),
        duration: None,
        preview: item.aggregated_output.0.clone(),
    });
}

/// "Reconnecting... 2/5 (why)" is codex trying again; anything else is an error.
fn error(message: &str) -> AgentEvent {
    let again = message
        .strip_prefix("Reconnecting")
        .map(|rest| rest.trim_start_matches(['.', '…', ' ']));
    let Some(rest) = again else {
        return AgentEvent::Failed(failure(message, None));
    };
    let (count, why) = rest.split_once(' ').unwrap_or((rest, ""));
    let (attempt, max) = count.split_once('/').unwrap_or((count, ""));
    AgentEvent::Retry {
        attempt: attempt.parse().ok(),
        max: max.parse().ok(),
        after: None,
        why: why.trim_start_matches('(').trim_end_matches(')').to_owned(),
    }
}

#[cfg(test)]
mod tests;
