//! The tools as clients see them: names, what they do, their arguments as JSON schemas.

use std::sync::{Arc, LazyLock};

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// What a client is told about the whole.
pub const INSTRUCTIONS: &str = "descartes runs a coding agent again and again on one piece of work until it is proven \
    done: the agent claims it, and every gate (a shell command) passes. `start` begins such a loop in the background, \
    in this server's folder, and needs a budget; `wait` follows it with progress until it is over, `status` says how \
    it stands, `history`, `logs` and `diff` say what was done. Loops go on when this server ends. Do not work on the \
    files of a running loop yourself.";

/// What a tool changes.
#[derive(Clone, Copy)]
enum ToolEffect {
    /// Nothing.
    Looks,
    /// How a loop goes on.
    Steers,
    /// Processes are ended, or started.
    Acts,
}

/// All tools.
pub fn all() -> &'static [Tool] {
    static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(make);
    &TOOLS
}

/// The names of a tool's arguments; `None` where there is no such tool.
pub fn arguments_of(name: &str) -> Option<Vec<String>> {
    let tool = all().iter().find(|tool| tool.name == name)?;
    let properties = tool.input_schema.get("properties")?.as_object()?;
    Some(properties.keys().cloned().collect())
}

fn make() -> Vec<Tool> {
    let which = || {
        let text = "Its id, the beginning of its id, or its name; left out: the loop of this server's folder";
        json!({ "type": "string", "description": text })
    };
    let one = || json!({ "loop": which() });
    vec![
        tool(
            "start",
            "Start a loop in the background",
            START,
            ToolEffect::Acts,
            start(),
            &[],
        ),
        tool(
            "status",
            "Show how a loop stands",
            STATUS,
            ToolEffect::Looks,
            one(),
            &[],
        ),
        tool(
            "wait",
            "Wait for the end of a loop",
            WAIT,
            ToolEffect::Looks,
            json!({
                "loop": which(),
                "seconds": number("How long to wait at most, 1 to 3600; left out: 50"),
            }),
            &[],
        ),
        tool(
            "list",
            "List loops",
            LIST,
            ToolEffect::Looks,
            json!({
                "all": flag("All loops of this user on this machine, not only those of this folder"),
                "children": flag("Also the loops of tasks, each behind its task loop"),
            }),
            &[],
        ),
        tool(
            "history",
            "Show what came of each iteration",
            HISTORY,
            ToolEffect::Looks,
            json!({
                "loop": which(),
                "last": number("Only the last so many, 1 to 200; left out: 20"),
            }),
            &[],
        ),
        tool(
            "logs",
            "Show what the agent printed",
            LOGS,
            ToolEffect::Looks,
            json!({
                "loop": which(),
                "iteration": number("The iteration; left out: the newest"),
                "lines": number("The last so many lines, 1 to 2000; left out: 100"),
                "stderr": flag("Standard error instead of standard output"),
            }),
            &[],
        ),
        tool(
            "diff",
            "Show what an iteration changed",
            DIFF,
            ToolEffect::Looks,
            json!({
                "loop": which(),
                "iteration": number("The iteration; left out: the newest"),
                "files_only": flag("Only the names of the changed files, without the patch"),
            }),
            &[],
        ),
        tool(
            "say",
            "Give the next iteration a note",
            SAY,
            ToolEffect::Steers,
            json!({
                "loop": which(),
                "text": text("The note"),
            }),
            &["text"],
        ),
        tool(
            "pause",
            "Pause a loop",
            PAUSE,
            ToolEffect::Steers,
            one(),
            &[],
        ),
        tool(
            "unpause",
            "Continue a paused loop",
            UNPAUSE,
            ToolEffect::Steers,
            one(),
            &[],
        ),
        tool(
            "cancel",
            "End a loop",
            CANCEL,
            ToolEffect::Acts,
            json!({
                "loop": which(),
                "now": flag("Kill the agent at once, without a grace period"),
            }),
            &[],
        ),
        tool(
            "report",
            "Write a report",
            REPORT,
            ToolEffect::Looks,
            one(),
            &[],
        ),
        tool(
            "roadmap_check",
            "Check a task list",
            CHECK,
            ToolEffect::Looks,
            json!({
                "path": text("The roadmap, or the task list of another tool: a file or folder below this server's folder"),
                "source": text("The format, where two fit"),
            }),
            &["path"],
        ),
    ]
}

const START: &str = "Start a loop in the background, in this server's folder, and give its id. One of `prompt`, `tag` \
    and `file` says what is to be done, and one of max_iterations, max_duration, max_cost and max_tokens must be given. \
    Which agent runs, and what it may do, is set by the person who runs this server. Follow it with `wait`.";
const STATUS: &str = "How a loop stands: `label` and `status`, iteration, what it used, its config, what it waits for; as \
    `descartes loop status --json`, with the last three iterations.";
const WAIT: &str = "Wait until a loop is over, at most `seconds`, with progress on the way. Answers as `status`, with `over`: \
    where that is false, call it again.";
const LIST: &str = "Loops, newest first, 100 at most; each as in `descartes loop list --json`.";
const HISTORY: &str = "A row for each iteration: duration, exit, promise, gates, changed files, tokens, cost; as `descartes \
    loop history --json`.";
const LOGS: &str = "The end of what the agent of an iteration printed: its words and a line for each tool. Secrets are masked, \
    and no more than 64 KiB are given.";
const DIFF: &str = "What an iteration changed in the work tree: the files, and the patch, of which no more than 64 KiB are \
    given.";
const SAY: &str = "Add a note to the prompt of the next iteration, once.";
const PAUSE: &str = "Pause a loop before its next iteration.";
const UNPAUSE: &str = "Continue a loop that is paused.";
const CANCEL: &str =
    "End a loop and every process that it started; work that is in the files stays there.";
const REPORT: &str =
    "Write the report of a loop, an HTML page for a person, and give its path and a summary.";
const CHECK: &str = "Check a roadmap, or the task list of another tool: format, tasks, waves, what is left out, gates, and what \
    is wrong; as `descartes roadmap check --json`. Nothing is run.";

fn start() -> Value {
    json!({
        "prompt": text("What is to be done, for every iteration"),
        "tag": text("A SCUD tag whose tasks are to be done"),
        "file": text("A roadmap, or the task list of another tool: a file or folder below this server's folder"),
        "source": text("The format of `file`, where two fit"),
        "name": text("A name for the loop"),
        "gates": {
            "type": "array",
            "items": { "type": "string" },
            "description": "Shell commands that must pass before the work counts as done, for example: cargo test",
        },
        "max_iterations": number("Budget: at most so many iterations"),
        "max_duration": text("Budget: time for the whole loop, for example 2h"),
        "max_cost": { "type": "number", "description": "Budget: dollars for the whole loop" },
        "max_tokens": number("Budget: tokens for the whole loop"),
        "timeout": text("Time limit for one iteration, for example 30m"),
        "idle_timeout": text("Time without output after which an iteration is ended"),
        "max_failures": number("Failed iterations in a row that end the loop"),
        "stall_after": number("Iterations without progress before the agent is told; twice as many end the loop"),
    })
}

fn text(about: &str) -> Value {
    json!({ "type": "string", "description": about })
}

fn number(about: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": about })
}

fn flag(about: &str) -> Value {
    json!({ "type": "boolean", "description": about })
}

fn tool(
    name: &'static str,
    title: &str,
    about: &'static str,
    effect: ToolEffect,
    properties: Value,
    required: &[&str],
) -> Tool {
    let mut schema = JsonObject::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), properties);
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    schema.insert("additionalProperties".into(), false.into());
    let hints = ToolAnnotations::with_title(title);
    let hints = match effect {
        ToolEffect::Looks => hints.read_only(true).open_world(false),
        ToolEffect::Steers => hints.read_only(false).destructive(false).open_world(false),
        ToolEffect::Acts => hints.read_only(false).destructive(true).open_world(true),
    };
    Tool::new(name, about, Arc::new(schema)).with_annotations(hints)
}
