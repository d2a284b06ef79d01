//! opencode.

use serde_json::{Value, json};

use super::super::facts::{Acts, CliFacts, Prints, PromptBy, Setup, Source, Tells, set};
use super::super::launch::Permission;

pub(in super::super) static FACTS: CliFacts = CliFacts {
    name: "opencode",
    source: Source::Npm {
        package: "opencode-ai",
        fallback: None,
        post_install: Some("postinstall.mjs"),
    },
    program: "node_modules/.bin/opencode",
    prompt: PromptBy::Stdin,
    prints: Prints::Json,
    tells: Tells::Cost,
    acts: Acts::Shell,
    words: &[],
    arguments: |_| &["run", "--format", "json"],
    environment: |_| {
        set([
            "OPENCODE_DISABLE_AUTOUPDATE",
            "OPENCODE_DISABLE_MODELS_FETCH",
            "OPENCODE_DISABLE_LSP_DOWNLOAD",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS",
        ])
    },
    settings: |setup| {
        let file = ".config/opencode/opencode.json";
        vec![(file, settings(setup).to_string())]
    },
};

/// The settings, with prices, so that it reports costs.
pub(super) fn settings(setup: &Setup<'_>) -> Value {
    let permission = match setup.options.permission {
        Permission::All => json!({"*": "allow"}),
        Permission::Agent => json!({"bash": "ask"}),
    };
    let model = json!({"name": "Scripted", "cost": {"input": 3, "output": 15},
                       "limit": {"context": 200_000, "output": 8000}});
    let provider = json!({"npm": "@ai-sdk/openai-compatible", "name": "Scripted",
                          "options": {"baseURL": setup.openai(), "apiKey": "dummy"},
                          "models": {"scripted-model": model}});
    json!({"model": "scripted/scripted-model", "provider": {"scripted": provider},
           "permission": permission, "autoupdate": false, "share": "disabled"})
}
