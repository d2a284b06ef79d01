//! Claude Code.

use super::super::facts::{Acts, CliFacts, Prints, PromptBy, Setup, Source, Tells, no_settings};
use super::super::launch::{Login, Patience, Permission};

pub(in super::super) static FACTS: CliFacts = CliFacts {
    name: "claude",
    source: Source::Npm {
        package: "@anthropic-ai/claude-code",
        fallback: None,
        post_install: Some("install.cjs"),
    },
    program: "node_modules/.bin/claude",
    prompt: PromptBy::Stdin,
    prints: Prints::Json,
    tells: Tells::Cost,
    acts: Acts::Shell,
    words: &[],
    arguments: |permission| match permission {
        Permission::All => &[
            "-p",
            "--dangerously-skip-permissions",
            "--output-format",
            "stream-json",
            "--verbose",
        ],
        Permission::Agent => &["-p", "--output-format", "stream-json", "--verbose"],
    },
    environment,
    settings: no_settings,
};

fn environment(setup: &Setup<'_>) -> Vec<(&'static str, String)> {
    let mut variables = vec![
        ("ANTHROPIC_BASE_URL", setup.url.to_owned()),
        ("CLAUDE_CONFIG_DIR", setup.below_home(".claude")),
        // Root may skip permissions only in what says it is a sandbox.
        ("IS_SANDBOX", "1".into()),
        ("DISABLE_TELEMETRY", "1".into()),
        ("DISABLE_AUTOUPDATER", "1".into()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
        match setup.options.login {
            Login::Key => ("ANTHROPIC_API_KEY", "sk-ant-dummy".into()),
            Login::Subscription => ("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat-dummy".into()),
        },
    ];
    if setup.options.patience == Patience::Hasty {
        variables.push(("CLAUDE_CODE_MAX_RETRIES", "1".into()));
    }
    variables
}
