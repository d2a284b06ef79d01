//! Droid, with a model of one's own.

use serde_json::json;

use super::super::facts::{Acts, CliFacts, KEY, Prints, PromptBy, Setup, Source, Tells};
use super::super::launch::Permission;

pub(in super::super) static FACTS: CliFacts = CliFacts {
    name: "droid",
    source: Source::npm("@factory/cli-linux-x64"),
    program: "node_modules/@factory/cli-linux-x64/bin/droid",
    prompt: PromptBy::Stdin,
    prints: Prints::Json,
    tells: Tells::Tokens,
    acts: Acts::Shell,
    words: &["exec", "--model", "custom:scripted-model"],
    arguments: |permission| match permission {
        Permission::All => &[
            "--output-format",
            "stream-json",
            "--skip-permissions-unsafe",
        ],
        Permission::Agent => &["--output-format", "stream-json"],
    },
    environment: |_| vec![("FACTORY_DISABLE_AUTO_UPDATE", "1".into())],
    settings,
};

fn settings(setup: &Setup<'_>) -> Vec<(&'static str, String)> {
    let model = json!({"model": "scripted-model", "displayName": "Scripted", "apiKey": KEY,
                       "baseUrl": setup.openai(), "maxOutputTokens": 8000,
                       "provider": "generic-chat-completion-api"});
    let settings = json!({"customModels": [model], "cloudSessionSync": false,
                          "enableDroidShield": false});
    vec![(".factory/settings.json", settings.to_string())]
}
