//! Codex's `exec --json`.

use super::dialect::{Dialect, Out};
use super::failure::failure;
use super::json::JsonValue;
use super::recent::Recent;
use super::{AgentEvent, Denial, Piece, RunResult, ToolOutcome, Usage, tool};

/// What has to be remembered from line to line.
#[derive(Default)]
pub(super) struct Codex {
    messages: u32,
    /// Ids of tool calls that were told when they began.
    begun: Recent<String>,
}

impl Dialect for Codex {
    fn take(&mut self, line: &JsonValue<'_>, out: &mut Out<'_>) {
        match line["type"].or_empty() {
            "thread.started" => out.push(AgentEvent::Session {
                id: line["thread_id"].owned(),
                model: None,
                version: None,
            }),
            "turn.started" => out.push(AgentEvent::Step),
            kind @ ("turn.completed" | "turn.failed") => {
                let told = line["error"]["message"].or_empty();
                out.push(AgentEvent::Result(RunResult {
                    error: (kind == "turn.failed").then(|| failure(told, None)),
                    usage: usage(&line["usage"]),
                    ..RunResult::default()
                }));
            }
            "error" => out.push(error(line["message"].or_empty())),
            "item.started" => self.item(&line["item"], Stage::Started, out),
            "item.completed" => self.item(&line["item"], Stage::Completed, out),
            "item.updated" | "item.plan.delta" => {}
            kind => out.unknown(kind),
        }
    }
}

impl Codex {
    fn item(&mut self, item: &JsonValue<'_>, stage: Stage, out: &mut Out<'_>) {
        if !item.is_object() {
            return;
        }
        let done = stage == Stage::Completed;
        let text = || item["text"].or_empty().to_owned();
        match item["type"].or_empty() {
            "agent_message" if done => {
                out.push(AgentEvent::Text {
                    message: self.messages,
                    piece: Piece::Block,
                    text: text(),
                });
                self.messages = self.messages.saturating_add(1);
            }
            "reasoning" | "plan" if done => out.push(AgentEvent::Thinking { text: text() }),
            "error" if done => out.push(AgentEvent::Warning {
                message: item["message"].or_empty().to_owned(),
            }),
            "command_execution" | "file_change" | "mcp_tool_call" | "collab_tool_call"
            | "web_search" => self.tool(item, stage, out),
            "agent_message" | "reasoning" | "plan" | "error" | "todo_list" => {}
            kind => out.unknown(&format!("item/{kind}")),
        }
    }

    fn tool(&mut self, item: &JsonValue<'_>, stage: Stage, out: &mut Out<'_>) {
        let id = item["id"].or_empty();
        let told = self.begun.find(|begun| begun == id).is_some();
        if !told {
            out.push(call(item));
        }
        match stage {
            Stage::Started if told => {}
            Stage::Started => self.begun.add(id.to_owned()),
            Stage::Completed => {
                self.begun.take(|begun| begun == id);
                answer(item, out);
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Started,
    Completed,
}

/// Codex counts what came from a cache as input too.
fn usage(tokens: &JsonValue<'_>) -> Option<Usage> {
    let cache_read = tokens["cached_input_tokens"].count();
    let cache_write = tokens["cache_write_input_tokens"].count();
    let cached = cache_read.unwrap_or(0) + cache_write.unwrap_or(0);
    let input = tokens["input_tokens"].count();
    tokens.is_object().then(|| Usage {
        input: input.map(|all| all.saturating_sub(cached)),
        output: tokens["output_tokens"].count(),
        cache_read,
        cache_write,
        reasoning: tokens["reasoning_output_tokens"].count(),
    })
}

fn call(item: &JsonValue<'_>) -> AgentEvent {
    let kind = item["type"].or_empty();
    let line = |verb: &str, what: &str| tool::one_line(&format!("{verb} {what}"), 160);
    let (name, summary) = match kind {
        "command_execution" => {
            let command = item["command"].describe().unwrap_or_default();
            ("shell".to_owned(), tool::shell(&command))
        }
        "file_change" => {
            let changes = item["changes"].list().iter();
            let paths: Vec<&str> = changes.filter_map(|change| change["path"].text()).collect();
            ("patch".to_owned(), line("edit", &paths.join(", ")))
        }
        "mcp_tool_call" => {
            let name = format!("{}.{}", item["server"].or_empty(), item["tool"].or_empty());
            let summary = tool::summary(&name, &item["arguments"], None);
            (name, summary)
        }
        "web_search" => {
            let query = item["query"].or_empty();
            ("web_search".to_owned(), line("search", query))
        }
        _ => {
            let name = item["tool"].text().unwrap_or(kind).to_owned();
            (name, line("task", item["prompt"].or_empty()))
        }
    };
    let id = item["id"].or_empty().to_owned();
    AgentEvent::ToolCall { id, name, summary }
}

fn answer(item: &JsonValue<'_>, out: &mut Out<'_>) {
    let declined = item["status"].is("declined");
    if declined {
        out.push(AgentEvent::Denied(Denial {
            tool: "shell".to_owned(),
            rule: item["command"].describe().unwrap_or_default().into_owned(),
        }));
    }
    let ok = !declined && !item["status"].is("failed");
    out.push(AgentEvent::ToolResult {
        id: item["id"].or_empty().to_owned(),
        outcome: ToolOutcome::of(item["exit_code"].int(), Some(ok)),
        duration: None,
        preview: item["aggregated_output"].preview(),
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
