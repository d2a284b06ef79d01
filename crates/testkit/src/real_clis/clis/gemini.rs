//! Gemini CLI.

use serde_json::json;

use super::super::facts::{Acts, CliFacts, Prints, PromptBy, Setup, Source, Tells};
use super::super::launch::{Patience, Permission};

pub(in super::super) static FACTS: CliFacts = CliFacts {
    name: "gemini",
    source: Source::npm("@google/gemini-cli"),
    program: "node_modules/.bin/gemini",
    prompt: PromptBy::Stdin,
    prints: Prints::Json,
    tells: Tells::Tokens,
    acts: Acts::Shell,
    // Without a model it asks for one, once a turn.
    words: &["-m", "gemini-2.5-pro"],
    arguments: |permission| match permission {
        Permission::All => &["--yolo", "--output-format", "stream-json"],
        Permission::Agent => &["--output-format", "stream-json"],
    },
    environment: |setup| {
        vec![
            ("GEMINI_API_KEY", "dummy".into()),
            ("GOOGLE_GEMINI_BASE_URL", setup.url.to_owned()),
            ("GEMINI_CLI_NO_RELAUNCH", "true".into()),
        ]
    },
    settings,
};

fn settings(setup: &Setup<'_>) -> Vec<(&'static str, String)> {
    let mut settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
        "privacy": {"usageStatisticsEnabled": false},
        "general": {"disableAutoUpdate": true},
    });
    if setup.options.patience == Patience::Hasty {
        settings["general"]["maxAttempts"] = json!(2);
    }
    vec![(".gemini/settings.json", settings.to_string())]
}
