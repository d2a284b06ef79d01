//! Aider.

use super::super::facts::{
    Acts, CliFacts, KEY, NOWHERE, Prints, PromptBy, Source, Tells, no_settings,
};

pub(in super::super) static FACTS: CliFacts = CliFacts {
    name: "aider",
    source: Source::PyPi {
        package: "aider-chat",
    },
    program: "venv/bin/aider",
    prompt: PromptBy::File(&["--message-file"]),
    prints: Prints::Text,
    tells: Tells::Nothing,
    acts: Acts::Answers,
    // A commit's message would be asked for by a request of its own.
    words: &[
        "--model",
        "openai/scripted",
        "--no-show-model-warnings",
        "--no-auto-commits",
    ],
    arguments: |_| {
        &[
            "--yes-always",
            "--no-pretty",
            "--no-check-update",
            "--analytics-disable",
        ]
    },
    environment: |setup| {
        vec![
            ("OPENAI_API_KEY", KEY.into()),
            ("OPENAI_API_BASE", setup.openai()),
            // Else it looks for the prices of models on the network.
            ("HTTPS_PROXY", NOWHERE.into()),
        ]
    },
    settings: no_settings,
};
