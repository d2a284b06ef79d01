//! Tools that a CLI offers, and how a script's calls are put onto them.

use serde_json::{Map, Value, json};

use super::reply::Call;
use super::script::{Tool, Turn};

/// The names by which CLIs call their shell, the one to prefer first.
const SHELLS: [&str; 11] = [
    "Bash",
    "bash",
    "exec_command",
    "shell_command",
    "shell",
    "local_shell",
    "run_shell_command",
    "run_command",
    "execute_command",
    "run_commands",
    "Execute",
];

/// A tool as the request offers it: its name and the schema of its arguments.
#[derive(Debug, Clone)]
pub(super) struct Offered {
    pub(super) name: String,
    pub(super) schema: Value,
}

impl Offered {
    /// Reads one from its declaration; `schema` names the key of the arguments' schema.
    pub(super) fn read(declaration: &Value, schema: &str) -> Option<Self> {
        let name = declaration
            .get("name")
            .or_else(|| declaration.get("type"))?
            .as_str()?
            .to_owned();
        Some(Self {
            name,
            schema: declaration.get(schema).cloned().unwrap_or_default(),
        })
    }
}

/// The shell among the tools.
pub(super) fn shell(offered: &[Offered]) -> Option<&Offered> {
    SHELLS
        .iter()
        .find_map(|name| offered.iter().find(|tool| tool.name == *name))
}

/// The calls of a turn; `number` makes their ids unique.
pub(super) fn calls(turn: &Turn, offered: &[Offered], number: u64) -> Vec<Call> {
    let tools = turn.tool.as_slice().iter().enumerate();
    tools
        .map(|(index, tool)| call(tool, offered, format!("{number}_{index}")))
        .collect()
}

/// The name under which a tool of the MCP server `descartes` is offered: every client puts something else
/// before it.
fn of_server<'a>(offered: &'a [Offered], tool: &str) -> Option<&'a str> {
    let fits = |name: &&str| {
        let before = name.strip_suffix(tool);
        before
            .is_some_and(|before| before.contains("descartes") && before.ends_with(['_', ':', '.']))
    };
    offered.iter().map(|tool| tool.name.as_str()).find(fits)
}

fn call(tool: &Tool, offered: &[Offered], id: String) -> Call {
    match tool {
        Tool::Mcp { mcp, args } => Call {
            id,
            name: of_server(offered, mcp).unwrap_or(mcp).to_owned(),
            args: args.clone(),
        },
        Tool::Named { name, args } => Call {
            id,
            name: name.clone(),
            args: args.clone(),
        },
        Tool::Shell {
            shell: command,
            args,
        } => {
            let Some(shell) = shell(offered) else {
                return Call {
                    id,
                    name: "Bash".into(),
                    args: json!({"command": command}),
                };
            };
            let mut all = shell_arguments(&shell.schema, command);
            all.extend(args.clone());
            Call {
                id,
                name: shell.name.clone(),
                args: Value::Object(all),
            }
        }
    }
}

fn shell_arguments(schema: &Value, command: &str) -> Map<String, Value> {
    let none = Map::new();
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    let required = schema.get("required").and_then(Value::as_array);
    let mut arguments: Map<String, Value> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|key| {
            (
                key.to_owned(),
                properties.get(key).map_or(Value::Null, sample),
            )
        })
        .collect();
    let key = ["command", "cmd", "script", "commands"]
        .into_iter()
        .find(|key| properties.contains_key(*key));
    let key = key.unwrap_or("command");
    let is_list = properties
        .get(key)
        .is_some_and(|property| property["type"] == "array");
    let value = match (key, is_list) {
        // Several commands, not the words of one.
        ("commands", _) => json!([command]),
        (_, true) => json!(["sh", "-c", command]),
        (_, false) => json!(command),
    };
    arguments.insert(key.to_owned(), value);
    arguments
}

/// The smallest value that fits a JSON schema.
pub(super) fn sample(schema: &Value) -> Value {
    if let Some(value) = schema.get("const").or_else(|| schema.pointer("/enum/0")) {
        return value.clone();
    }
    if let Some(choice) = schema
        .pointer("/anyOf/0")
        .or_else(|| schema.pointer("/oneOf/0"))
    {
        return sample(choice);
    }
    let kind = schema.get("type").map(|kind| kind.get(0).unwrap_or(kind));
    match kind
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_lowercase()
        .as_str()
    {
        "object" => Value::Object(sample_object(schema)),
        "array" => json!([]),
        "number" | "integer" => schema.get("minimum").cloned().unwrap_or(json!(1)),
        "boolean" => json!(false),
        _ if schema.get("properties").is_some() => Value::Object(sample_object(schema)),
        _ => json!("scripted"),
    }
}

fn sample_object(schema: &Value) -> Map<String, Value> {
    let none = Map::new();
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    let required = schema.get("required").and_then(Value::as_array);
    let wanted = |key: &String| required.is_none_or(|list| list.iter().any(|name| name == key));
    let fields = properties.iter().filter(|(key, _)| wanted(key));
    fields
        .map(|(key, property)| (key.clone(), sample(property)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(script: &str) -> Turn {
        serde_json::from_str(script).unwrap()
    }

    #[test]
    fn a_command_is_put_onto_the_shell_that_is_offered() {
        let schema = json!({"properties": {"cmd": {"type": "string"}, "why": {"type": "string"}},
                            "required": ["cmd", "why"]});
        let offered = [Offered {
            name: "exec_command".into(),
            schema,
        }];
        let calls = calls(&turn(r#"{"tool":{"shell":"ls"}}"#), &offered, 3);
        assert_eq!(calls[0].name, "exec_command");
        assert_eq!(calls[0].args, json!({"cmd": "ls", "why": "scripted"}));
    }

    #[test]
    fn a_shell_that_wants_a_list_gets_one() {
        let schema = json!({"properties": {"command": {"type": "array"}}});
        let offered = [Offered {
            name: "shell".into(),
            schema,
        }];
        let calls = calls(&turn(r#"{"tool":[{"shell":"ls"}]}"#), &offered, 3);
        assert_eq!(calls[0].args, json!({"command": ["sh", "-c", "ls"]}));
    }

    #[test]
    fn samples_fit_their_schema() {
        let schema = json!({"type": "object", "required": ["a", "c"], "properties": {
            "a": {"type": "integer", "minimum": 3}, "b": {"type": "string"}, "c": {"enum": ["x", "y"]}}});
        assert_eq!(sample(&schema), json!({"a": 3, "c": "x"}));
    }
}
