//! The arguments of the tools, read and checked. What is not an argument of a tool is refused by name:
//! nothing that a model sends is passed over.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::answer::ToolFailure;
use crate::tools;

/// Iterations that `history` gives where nothing is said, and at most.
const HISTORY: (u32, u32) = (20, 200);
/// Lines that `logs` gives.
const LINES: (u32, u32) = (100, 2000);
/// Seconds that `wait` waits. Clients give up on a call after a minute unless they are told otherwise.
const WAIT: (u32, u32) = (50, 3600);

/// A call that can be carried out.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolCall {
    Start(Box<StartCall>),
    Status(OneLoop),
    List(ListCall),
    History {
        target: Option<String>,
        last: u32,
    },
    Logs {
        target: Option<String>,
        iteration: Option<u32>,
        lines: u32,
        stderr: bool,
    },
    Diff(DiffCall),
    Say {
        target: Option<String>,
        text: String,
    },
    Pause(OneLoop),
    Unpause(OneLoop),
    Cancel(CancelCall),
    Report(OneLoop),
    RoadmapCheck(CheckCall),
    Wait {
        target: Option<String>,
        seconds: u32,
    },
}

/// What may be said of a loop that is to be started: never a command, an agent or a permission.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct StartCall {
    pub prompt: Option<String>,
    pub tag: Option<String>,
    pub file: Option<String>,
    pub source: Option<String>,
    pub name: Option<String>,
    pub gates: Vec<String>,
    pub max_iterations: Option<u32>,
    pub max_duration: Option<String>,
    pub max_cost: Option<f64>,
    pub max_tokens: Option<u64>,
    pub timeout: Option<String>,
    pub idle_timeout: Option<String>,
    pub max_failures: Option<u32>,
    pub stall_after: Option<u32>,
}

/// Which loop; without a name the one of the server's folder.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct OneLoop {
    #[serde(rename = "loop")]
    pub target: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct ListCall {
    pub all: bool,
    pub children: bool,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct DiffCall {
    #[serde(rename = "loop")]
    pub target: Option<String>,
    pub iteration: Option<u32>,
    pub files_only: bool,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct CancelCall {
    #[serde(rename = "loop")]
    pub target: Option<String>,
    pub now: bool,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CheckCall {
    pub path: String,
    #[serde(default)]
    pub source: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HistoryCall {
    #[serde(rename = "loop")]
    target: Option<String>,
    last: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogsCall {
    #[serde(rename = "loop")]
    target: Option<String>,
    iteration: Option<u32>,
    lines: Option<u32>,
    #[serde(default)]
    stderr: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SayCall {
    #[serde(rename = "loop")]
    target: Option<String>,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WaitCall {
    #[serde(rename = "loop")]
    target: Option<String>,
    seconds: Option<u32>,
}

impl ToolCall {
    /// Reads a call; `None` where there is no such tool.
    pub fn read(name: &str, arguments: Map<String, Value>) -> Option<Result<Self, ToolFailure>> {
        let known = tools::arguments_of(name)?;
        let checked = check_names(name, &known, &arguments).and_then(|()| check_text(&arguments));
        Some(checked.and_then(|()| Self::parse(name, arguments)))
    }

    fn parse(name: &str, arguments: Map<String, Value>) -> Result<Self, ToolFailure> {
        let one = |call: fn(OneLoop) -> Self| read(name, arguments.clone()).map(call);
        match name {
            "start" => read(name, arguments).map(|call| Self::Start(Box::new(call))),
            "status" => one(Self::Status),
            "list" => read(name, arguments).map(Self::List),
            "history" => {
                let call: HistoryCall = read(name, arguments)?;
                let last = bounded("last", call.last, HISTORY)?;
                let target = call.target;
                Ok(Self::History { target, last })
            }
            "logs" => {
                let call: LogsCall = read(name, arguments)?;
                Ok(Self::Logs {
                    lines: bounded("lines", call.lines, LINES)?,
                    target: call.target,
                    iteration: call.iteration,
                    stderr: call.stderr,
                })
            }
            "diff" => read(name, arguments).map(Self::Diff),
            "say" => {
                let SayCall { target, text } = read(name, arguments)?;
                match text.trim() {
                    "" => Err(ToolFailure::new(
                        "`text` is empty",
                        "say what the next iteration should know",
                    )),
                    _ => Ok(Self::Say { target, text }),
                }
            }
            "pause" => one(Self::Pause),
            "unpause" => one(Self::Unpause),
            "cancel" => read(name, arguments).map(Self::Cancel),
            "report" => one(Self::Report),
            "roadmap_check" => read(name, arguments).map(Self::RoadmapCheck),
            _ => {
                let call: WaitCall = read(name, arguments)?;
                let seconds = bounded("seconds", call.seconds, WAIT)?;
                let target = call.target;
                Ok(Self::Wait { target, seconds })
            }
        }
    }
}

fn read<T: DeserializeOwned>(name: &str, arguments: Map<String, Value>) -> Result<T, ToolFailure> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        let known = tools::arguments_of(name).unwrap_or_default();
        let hint = format!("arguments of `{name}`: {}", known.join(", "));
        ToolFailure::new(error.to_string(), hint)
    })
}

/// A number between one and the most that there may be.
fn bounded(name: &str, given: Option<u32>, (usual, most): (u32, u32)) -> Result<u32, ToolFailure> {
    match given {
        None => Ok(usual),
        Some(number) if (1..=most).contains(&number) => Ok(number),
        Some(number) => Err(ToolFailure::new(
            format!("`{name}` is {number}: it must be between 1 and {most}"),
            format!("leave it out for {usual}"),
        )),
    }
}

/// What belongs to the person who runs the server, by the names that a model would try.
const OF_THE_SERVER: [&str; 14] = [
    "agent",
    "args",
    "backend",
    "cli",
    "command",
    "cwd",
    "dir",
    "env",
    "fallback",
    "model",
    "permissions",
    "project",
    "sandbox",
    "working_dir",
];

/// Whatever an argument is for, in the end it is passed to a program.
fn check_text(arguments: &Map<String, Value>) -> Result<(), ToolFailure> {
    fn has_nul(value: &Value) -> bool {
        match value {
            Value::String(text) => text.contains('\0'),
            Value::Array(all) => all.iter().any(has_nul),
            _ => false,
        }
    }
    match arguments.iter().find(|(_, value)| has_nul(value)) {
        None => Ok(()),
        Some((name, _)) => Err(ToolFailure::new(
            format!("`{name}` contains a NUL byte"),
            "remove it: a NUL byte cannot be passed to a program",
        )),
    }
}

fn check_names(
    name: &str,
    known: &[String],
    arguments: &Map<String, Value>,
) -> Result<(), ToolFailure> {
    let Some(unknown) = arguments.keys().find(|key| !known.contains(key)) else {
        return Ok(());
    };
    let message = format!("`{unknown}` is no argument of `{name}`");
    let theirs = name == "start" && OF_THE_SERVER.contains(&unknown.as_str());
    Err(match theirs {
        true => ToolFailure::new(
            format!("{message}: command, agent, permissions and folder are the person's to choose"),
            "leave it out; a person sets it in the config, or with a flag of `descartes mcp`",
        ),
        false if known.is_empty() => ToolFailure::new(message, "it takes no arguments"),
        false => ToolFailure::new(message, format!("use: {}", known.join(", "))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(name: &str, arguments: Value) -> Result<ToolCall, ToolFailure> {
        let Value::Object(arguments) = arguments else {
            panic!("no object");
        };
        ToolCall::read(name, arguments).expect("a tool")
    }

    #[test]
    fn what_is_left_out_has_a_bounded_default() {
        let target = None;
        let last = 20;
        assert_eq!(
            read("history", json!({})).unwrap(),
            ToolCall::History { target, last }
        );
        let target = Some("auth".to_owned());
        let seconds = 3600;
        assert_eq!(
            read("wait", json!({ "loop": "auth", "seconds": 3600 })).unwrap(),
            ToolCall::Wait { target, seconds }
        );
        assert!(ToolCall::read("dance", Map::new()).is_none());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (tool, arguments, said, hint) in [
            (
                "say",
                json!({ "text": "a\0b" }),
                "`text` contains a NUL byte",
                "remove it: a NUL byte cannot be passed to a program",
            ),
            (
                "start",
                json!({ "prompt": "x", "gates": ["true", "\0"] }),
                "`gates` contains a NUL byte",
                "remove it: a NUL byte cannot be passed to a program",
            ),
            (
                "status",
                json!({ "id": "x" }),
                "`id` is no argument of `status`",
                "use: loop",
            ),
            (
                "status",
                json!({ "loop": 7 }),
                "invalid type: integer `7`, expected a string",
                "arguments of `status`: loop",
            ),
            (
                "start",
                json!({ "prompt": "x", "command": "sh" }),
                "`command` is no argument of `start`: command, agent, permissions and folder are \
                 the person's to choose",
                "leave it out; a person sets it in the config, or with a flag of `descartes mcp`",
            ),
            (
                "history",
                json!({ "last": 0 }),
                "`last` is 0: it must be between 1 and 200",
                "leave it out for 20",
            ),
            (
                "logs",
                json!({ "lines": 9999 }),
                "`lines` is 9999: it must be between 1 and 2000",
                "leave it out for 100",
            ),
            (
                "say",
                json!({ "text": " " }),
                "`text` is empty",
                "say what the next iteration should know",
            ),
            (
                "say",
                json!({}),
                "missing field `text`",
                "arguments of `say`: loop, text",
            ),
            (
                "roadmap_check",
                json!({}),
                "missing field `path`",
                "arguments of `roadmap_check`: path, source",
            ),
        ] {
            let failure = read(tool, arguments).unwrap_err();
            assert_eq!(
                (failure.message.as_str(), failure.hint.as_str()),
                (said, hint)
            );
        }
    }

    #[test]
    fn every_argument_of_every_tool_is_read() {
        for tool in tools::all() {
            for argument in tools::arguments_of(&tool.name).unwrap() {
                let mut arguments = Map::new();
                arguments.insert(argument.clone(), Value::Object(Map::new()));
                let failure = ToolCall::read(&tool.name, arguments).unwrap().unwrap_err();
                assert!(
                    !failure.message.contains("unknown field"),
                    "{} {argument}: {}",
                    tool.name,
                    failure.message
                );
            }
        }
    }
}
