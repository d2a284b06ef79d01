//! goose.

use super::super::facts::{Acts, CliFacts, KEY, Prints, PromptBy, Source, Tells, no_settings};
use super::super::launch::Permission;

pub(in super::super) static FACTS: CliFacts = CliFacts {
    name: "goose",
    source: Source::npm("@aaif/goose-binary-linux-x64"),
    program: "node_modules/@aaif/goose-binary-linux-x64/bin/goose",
    prompt: PromptBy::Stdin,
    prints: Prints::Json,
    tells: Tells::Tokens,
    acts: Acts::Shell,
    words: &[],
    arguments: |_| {
        &[
            "run",
            "--no-session",
            "--quiet",
            "--output-format",
            "stream-json",
            "--instructions",
            "-",
        ]
    },
    environment: |setup| {
        let mode = match setup.options.permission {
            Permission::All => "auto",
            Permission::Agent => "chat",
        };
        vec![
            ("GOOSE_PROVIDER", "openai".into()),
            ("GOOSE_MODEL", "scripted-model".into()),
            ("GOOSE_MODE", mode.into()),
            ("OPENAI_API_KEY", KEY.into()),
            ("OPENAI_HOST", setup.url.to_owned()),
            ("GOOSE_DISABLE_KEYRING", "1".into()),
            ("GOOSE_TELEMETRY_ENABLED", "false".into()),
        ]
    },
    settings: no_settings,
};
