//! Cline's CLI. It leaves a daemon behind, in a session of its own.

use serde_json::json;

use super::super::facts::{Acts, CliFacts, KEY, Prints, PromptBy, Setup, Source, Tells};
use super::super::launch::Permission;

pub(in super::super) static FACTS: CliFacts = CliFacts {
    name: "cline",
    source: Source::npm("@cline/cli-linux-x64"),
    program: "node_modules/@cline/cli-linux-x64/bin/cline",
    prompt: PromptBy::Argument,
    prints: Prints::Json,
    tells: Tells::Tokens,
    acts: Acts::Shell,
    words: &[],
    arguments: |permission| match permission {
        Permission::All => &["--json", "--auto-approve", "true"],
        Permission::Agent => &["--json", "--auto-approve", "false"],
    },
    environment: |_| {
        vec![
            ("CLINE_NO_AUTO_UPDATE", "1".into()),
            ("CLINE_TELEMETRY_DISABLED", "1".into()),
        ]
    },
    settings,
};

fn settings(setup: &Setup<'_>) -> Vec<(&'static str, String)> {
    let provider = json!({"provider": "openai-compatible", "apiKey": KEY,
                          "model": "scripted-model", "baseUrl": setup.openai()});
    let known = json!({"settings": provider, "updatedAt": "2026-01-01T00:00:00.000Z",
                       "tokenSource": "manual"});
    let providers = json!({"version": 1, "lastUsedProvider": "openai-compatible",
                           "providers": {"openai-compatible": known}});
    vec![(".cline/data/settings/providers.json", providers.to_string())]
}
