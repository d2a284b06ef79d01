//! GitHub Copilot CLI, with a provider of one's own.

use super::super::facts::{Acts, CliFacts, KEY, Prints, PromptBy, Source, Tells, no_settings};
use super::super::launch::Permission;

pub(in super::super) static FACTS: CliFacts = CliFacts {
    name: "copilot",
    source: Source::npm("@github/copilot"),
    program: "node_modules/.bin/copilot",
    prompt: PromptBy::Stdin,
    prints: Prints::Json,
    tells: Tells::Nothing,
    acts: Acts::Shell,
    // Its own servers of tools are on the network.
    words: &["--disable-builtin-mcps"],
    arguments: |permission| match permission {
        Permission::All => &["--no-color", "--allow-all-tools", "--output-format", "json"],
        Permission::Agent => &["--no-color", "--output-format", "json"],
    },
    environment: |setup| {
        vec![
            ("COPILOT_PROVIDER_BASE_URL", setup.openai()),
            ("COPILOT_MODEL", "gpt-4".into()),
            ("COPILOT_PROVIDER_API_KEY", KEY.into()),
            ("COPILOT_AUTO_UPDATE", "false".into()),
        ]
    },
    settings: no_settings,
};
