//! Continue's CLI.

use super::super::facts::{Acts, CliFacts, KEY, Prints, PromptBy, Setup, Source, Tells};
use super::super::launch::Permission;

pub(in super::super) static FACTS: CliFacts = CliFacts {
    name: "cn",
    source: Source::npm("@continuedev/cli"),
    program: "node_modules/.bin/cn",
    prompt: PromptBy::Stdin,
    prints: Prints::Text,
    tells: Tells::Nothing,
    acts: Acts::Shell,
    words: &[],
    arguments: |permission| match permission {
        Permission::All => &["-p", "--auto"],
        Permission::Agent => &["-p"],
    },
    environment: |_| {
        vec![
            ("CONTINUE_TELEMETRY_ENABLED", "0".into()),
            // It looks for a newer version only where it has not done so.
            ("CONTINUE_CLI_AUTO_UPDATED", "1".into()),
        ]
    },
    settings,
};

fn settings(setup: &Setup<'_>) -> Vec<(&'static str, String)> {
    let text = format!(
        "name: scripted\nversion: 1.0.0\nschema: v1\nmodels:\n  - name: Scripted\n    \
         provider: openai\n    model: gpt-4\n    apiBase: {}\n    apiKey: {KEY}\n    roles: [chat]\n",
        setup.openai()
    );
    vec![(".continue/config.yaml", text)]
}
