//! Kilo, a descendant of opencode.

use super::super::facts::{Acts, CliFacts, Prints, PromptBy, Source, Tells, set};
use super::super::launch::Permission;
use super::opencode;

pub(in super::super) static FACTS: CliFacts = CliFacts {
    name: "kilo",
    source: Source::npm("@kilocode/cli-linux-x64"),
    program: "node_modules/@kilocode/cli-linux-x64/bin/kilo",
    prompt: PromptBy::Stdin,
    prints: Prints::Json,
    tells: Tells::Cost,
    acts: Acts::Shell,
    words: &[],
    arguments: |permission| match permission {
        Permission::All => &["run", "--format", "json", "--auto"],
        Permission::Agent => &["run", "--format", "json"],
    },
    environment: |_| {
        let mut variables = set([
            "KILO_DISABLE_AUTOUPDATE",
            "KILO_DISABLE_MODELS_FETCH",
            "KILO_DISABLE_LSP_DOWNLOAD",
            "KILO_DISABLE_DEFAULT_PLUGINS",
        ]);
        variables.push(("KILO_TELEMETRY_LEVEL", "off".into()));
        variables
    },
    settings: |setup| {
        let file = ".config/kilo/kilo.json";
        vec![(file, opencode::settings(setup).to_string())]
    },
};
