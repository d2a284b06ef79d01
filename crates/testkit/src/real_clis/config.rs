//! The settings files that point each CLI at a lane of the scripted server.

use serde_json::json;

use super::launch::{Options, Patience, Permission};

/// Codex's `config.toml`.
pub(super) fn codex(url: &str, options: &Options) -> String {
    let retries = match options.patience {
        Patience::Own => String::new(),
        Patience::Hasty => "request_max_retries = 1\nstream_max_retries = 1\n".into(),
    };
    // A provider of our own: the built-in one tries a WebSocket for seconds first.
    format!(
        r#"model = "gpt-5"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
{retries}"#
    )
}

/// Gemini's `settings.json`.
pub(super) fn gemini(options: &Options) -> String {
    let mut settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
        "privacy": {"usageStatisticsEnabled": false},
        "general": {"disableAutoUpdate": true},
    });
    if options.patience == Patience::Hasty {
        settings["general"]["maxAttempts"] = json!(2);
    }
    settings.to_string()
}

/// opencode's `opencode.json`, with prices, so that it reports costs.
pub(super) fn opencode(url: &str, options: &Options) -> String {
    let permission = match options.permission {
        Permission::All => json!({"*": "allow"}),
        Permission::Agent => json!({"bash": "ask"}),
    };
    let model = json!({"name": "Scripted", "cost": {"input": 3, "output": 15},
                       "limit": {"context": 200_000, "output": 8000}});
    let provider = json!({"npm": "@ai-sdk/openai-compatible", "name": "Scripted",
                          "options": {"baseURL": format!("{url}/v1"), "apiKey": "dummy"},
                          "models": {"scripted-model": model}});
    json!({"model": "scripted/scripted-model", "provider": {"scripted": provider},
           "permission": permission, "autoupdate": false, "share": "disabled"})
    .to_string()
}
