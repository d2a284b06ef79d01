//! Qwen Code.

use serde_json::json;

use super::super::facts::{Acts, CliFacts, KEY, Prints, PromptBy, Setup, Source, Tells};
use super::super::launch::{Patience, Permission};

pub(in super::super) static FACTS: CliFacts = CliFacts {
    name: "qwen",
    source: Source::npm("@qwen-code/qwen-code"),
    program: "node_modules/.bin/qwen",
    prompt: PromptBy::Stdin,
    prints: Prints::Json,
    tells: Tells::Tokens,
    acts: Acts::Shell,
    words: &[],
    arguments: |permission| match permission {
        Permission::All => &["--yolo", "--output-format", "stream-json"],
        Permission::Agent => &["--output-format", "stream-json"],
    },
    environment: |setup| {
        vec![
            ("OPENAI_API_KEY", KEY.into()),
            ("OPENAI_BASE_URL", setup.openai()),
            ("OPENAI_MODEL", "scripted-model".into()),
            ("QWEN_CODE_NO_RELAUNCH", "true".into()),
        ]
    },
    settings,
};

fn settings(setup: &Setup<'_>) -> Vec<(&'static str, String)> {
    let mut settings = json!({
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": false},
        "general": {"enableAutoUpdate": false},
    });
    if setup.options.patience == Patience::Hasty {
        settings["model"] = json!({"generationConfig": {"maxRetries": 1}});
    }
    vec![(".qwen/settings.json", settings.to_string())]
}
