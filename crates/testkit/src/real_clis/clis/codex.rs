//! Codex.

use super::super::facts::{Acts, CliFacts, Prints, PromptBy, Setup, Source, Tells};
use super::super::launch::{Patience, Permission};

pub(in super::super) static FACTS: CliFacts = CliFacts {
    name: "codex",
    source: Source::npm("@openai/codex"),
    program: "node_modules/.bin/codex",
    prompt: PromptBy::Stdin,
    prints: Prints::Json,
    tells: Tells::Tokens,
    acts: Acts::Shell,
    // Without a network its plugins are waited for at exit.
    words: &["exec", "--disable", "plugins"],
    arguments: |permission| match permission {
        Permission::All => &[
            "--json",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "-",
        ],
        Permission::Agent => &["--json", "--skip-git-repo-check", "-"],
    },
    environment: |setup| {
        vec![
            ("CODEX_HOME", setup.below_home(".codex")),
            ("SCRIPTED_KEY", "dummy".into()),
        ]
    },
    settings,
};

fn settings(setup: &Setup<'_>) -> Vec<(&'static str, String)> {
    let retries = match setup.options.patience {
        Patience::Own => "",
        Patience::Hasty => "request_max_retries = 1\nstream_max_retries = 1\n",
    };
    // A provider of our own: the built-in one tries a WebSocket for seconds first.
    let text = format!(
        r#"model = "gpt-5"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = "{}"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
{retries}"#,
        setup.openai()
    );
    vec![(".codex/config.toml", text)]
}
