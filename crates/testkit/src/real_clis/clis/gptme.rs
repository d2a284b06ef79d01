//! gptme.

use super::super::facts::{
    Acts, CliFacts, KEY, NOWHERE, Prints, PromptBy, Source, Tells, no_settings,
};

pub(in super::super) static FACTS: CliFacts = CliFacts {
    name: "gptme",
    source: Source::PyPi { package: "gptme" },
    program: "venv/bin/gptme",
    prompt: PromptBy::Stdin,
    prints: Prints::Json,
    tells: Tells::Tokens,
    // An answer without a call is asked about twice before the run ends.
    acts: Acts::ShellUntil(r#"{"name": "complete", "args": {}}"#),
    words: &["--model", "local/scripted-model"],
    arguments: |_| &["--non-interactive", "--output-format", "json"],
    environment: |setup| {
        vec![
            ("OPENAI_BASE_URL", setup.openai()),
            ("OPENAI_API_KEY", KEY.into()),
            // Else it loads tables of tokens from the network.
            ("HTTPS_PROXY", NOWHERE.into()),
        ]
    },
    settings: no_settings,
};
