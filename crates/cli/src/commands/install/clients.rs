//! Programs that know MCP servers: where their settings are, and how an entry looks there.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::settings_text::{SettingsEntry, Syntax};
use crate::args::install::{Place, Tool};

/// Milliseconds that a call may take: a wait is longer than most calls.
const CALL_MS: u64 = 600_000;

/// Variables that say where loops and settings are. Codex passes on only what is named.
const WHERE: [&str; 4] = [
    "DESCARTES_STATE_DIR",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// The name that people type.
pub fn name(tool: Tool) -> &'static str {
    match tool {
        Tool::Claude => "claude",
        Tool::Codex => "codex",
        Tool::Gemini => "gemini",
        Tool::Opencode => "opencode",
        Tool::Cursor => "cursor",
    }
}

/// The settings file; `variable` is the environment, `exists` the disk. `None` where there is no home.
pub fn settings_file(
    tool: Tool,
    place: Place,
    here: &Path,
    variable: impl Fn(&str) -> Option<PathBuf>,
    exists: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let home = |name: &str| variable("HOME").map(|home| home.join(name));
    let folder = match (tool, place) {
        (Tool::Codex, Place::Project) => here.join(".codex"),
        (Tool::Codex, Place::User) => variable("CODEX_HOME").or_else(|| home(".codex"))?,
        (Tool::Gemini, Place::Project) => here.join(".gemini"),
        (Tool::Gemini, Place::User) => match variable("GEMINI_CLI_HOME") {
            Some(other) => other.join(".gemini"),
            None => home(".gemini")?,
        },
        (Tool::Opencode, Place::Project) => here.to_owned(),
        (Tool::Opencode, Place::User) => match variable("XDG_CONFIG_HOME") {
            Some(config) => config.join("opencode"),
            None => home(".config/opencode")?,
        },
        (Tool::Cursor, Place::Project) => here.join(".cursor"),
        (Tool::Cursor, Place::User) => home(".cursor")?,
        (Tool::Claude, _) => return None,
    };
    Some(match tool {
        Tool::Codex => folder.join("config.toml"),
        Tool::Gemini => folder.join("settings.json"),
        Tool::Cursor => folder.join("mcp.json"),
        _ => {
            // Either is read; the one with comments where it is there.
            let comments = folder.join("opencode.jsonc");
            match exists(&comments) {
                true => comments,
                false => folder.join("opencode.json"),
            }
        }
    })
}

/// The entry that starts this program.
pub fn entry(tool: Tool, program: &str) -> SettingsEntry {
    let (syntax, container, value): (_, _, Value) = match tool {
        Tool::Codex => (
            Syntax::Toml,
            "mcp_servers",
            json!({
                "command": program, "args": ["mcp"], "env_vars": WHERE,
                "tool_timeout_sec": CALL_MS / 1000,
            }),
        ),
        Tool::Opencode => (
            Syntax::Json,
            "mcp",
            json!({
                "type": "local", "command": [program, "mcp"], "enabled": true,
                "timeout": CALL_MS,
            }),
        ),
        Tool::Gemini => (
            Syntax::Json,
            "mcpServers",
            json!({ "command": program, "args": ["mcp"], "timeout": CALL_MS }),
        ),
        Tool::Cursor | Tool::Claude => (
            Syntax::Json,
            "mcpServers",
            json!({ "type": "stdio", "command": program, "args": ["mcp"] }),
        ),
    };
    SettingsEntry {
        syntax,
        container,
        value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_where_each_program_looks_for_them() {
        let none = |_: &str| None;
        let home = |name: &str| (name == "HOME").then(|| PathBuf::from("/h"));
        let own = |name: &str| Some(PathBuf::from("/own").join(name));
        let (absent, there) = (|_: &Path| false, |_: &Path| true);
        use Place::{Project, User};
        let at = |tool,
                  place,
                  variable: &dyn Fn(&str) -> Option<PathBuf>,
                  there: &dyn Fn(&Path) -> bool| {
            let path = settings_file(tool, place, Path::new("/p"), variable, there);
            path.map(|path| path.display().to_string())
                .unwrap_or_default()
        };
        for (found, expected) in [
            (
                at(Tool::Codex, User, &home, &absent),
                "/h/.codex/config.toml",
            ),
            (
                at(Tool::Codex, User, &own, &absent),
                "/own/CODEX_HOME/config.toml",
            ),
            (
                at(Tool::Codex, Project, &home, &absent),
                "/p/.codex/config.toml",
            ),
            (
                at(Tool::Gemini, User, &home, &absent),
                "/h/.gemini/settings.json",
            ),
            (
                at(Tool::Gemini, User, &own, &absent),
                "/own/GEMINI_CLI_HOME/.gemini/settings.json",
            ),
            (
                at(Tool::Gemini, Project, &none, &absent),
                "/p/.gemini/settings.json",
            ),
            (
                at(Tool::Opencode, User, &home, &absent),
                "/h/.config/opencode/opencode.json",
            ),
            (
                at(Tool::Opencode, User, &own, &there),
                "/own/XDG_CONFIG_HOME/opencode/opencode.jsonc",
            ),
            (
                at(Tool::Opencode, Project, &home, &absent),
                "/p/opencode.json",
            ),
            (
                at(Tool::Cursor, User, &home, &absent),
                "/h/.cursor/mcp.json",
            ),
            (
                at(Tool::Cursor, Project, &home, &absent),
                "/p/.cursor/mcp.json",
            ),
            (at(Tool::Cursor, User, &none, &absent), ""),
        ] {
            assert_eq!(found, expected);
        }
    }
}
