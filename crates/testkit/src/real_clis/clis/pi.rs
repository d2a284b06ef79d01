//! pi.

use serde_json::json;

use super::super::facts::{Acts, CliFacts, KEY, Prints, PromptBy, Setup, Source, Tells};

pub(in super::super) static FACTS: CliFacts = CliFacts {
    name: "pi",
    source: Source::Npm {
        package: "@earendil-works/pi-coding-agent",
        // Newer ones name packages that are not to be had everywhere.
        fallback: Some("0.74.2"),
        post_install: None,
    },
    program: "node_modules/.bin/pi",
    prompt: PromptBy::Stdin,
    prints: Prints::Json,
    tells: Tells::Cost,
    acts: Acts::Shell,
    words: &["--provider", "scripted", "--model", "scripted-model"],
    arguments: |_| &["-p", "--mode", "json"],
    environment: |_| vec![("PI_OFFLINE", "1".into()), ("PI_TELEMETRY", "0".into())],
    settings,
};

fn settings(setup: &Setup<'_>) -> Vec<(&'static str, String)> {
    let model = json!({"id": "scripted-model", "name": "Scripted", "reasoning": false,
                       "input": ["text"], "contextWindow": 200_000, "maxTokens": 8000,
                       "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 0}});
    let provider = json!({"baseUrl": setup.openai(), "api": "openai-completions", "apiKey": KEY,
                          "models": [model]});
    let models = json!({"providers": {"scripted": provider}});
    vec![(".pi/agent/models.json", models.to_string())]
}
