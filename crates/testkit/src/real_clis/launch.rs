//! How each CLI is started headless against a lane.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::{RealCli, config};
use crate::World;

/// What the agent may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// Everything, by the CLI's own flags.
    #[default]
    All,
    /// What the CLI allows unasked.
    Agent,
}

/// How long the CLI tries again by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Patience {
    /// Once or twice, where that can be set; for tests.
    #[default]
    Hasty,
    /// As it comes.
    Own,
}

/// How the CLI is logged in, where that makes a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Login {
    /// By a key.
    #[default]
    Key,
    /// By a subscription's token; only claude tells limits differently then.
    Subscription,
}

/// Choices for a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// What the agent may do.
    pub permission: Permission,
    /// How long it tries by itself.
    pub patience: Patience,
    /// How it is logged in.
    pub login: Login,
}

/// A CLI that is ready to start: its files are written, its environment and flags known.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The installed program.
    pub program: PathBuf,
    /// The flags for headless work with a stream to be parsed; the prompt comes by standard input.
    pub arguments: Vec<String>,
    /// What it needs beside the world's environment.
    pub environment: Vec<(String, String)>,
}

impl RealCli {
    /// Writes the CLI's settings into the world's home and says how to start it; none when it is
    /// not installed. `url` is a lane's address.
    pub fn launch(self, world: &World, url: &str, options: &Options) -> Option<Launch> {
        let program = self.program()?;
        write_settings(self, world, url, options);
        Some(Launch {
            program,
            arguments: arguments(self, options)
                .iter()
                .map(|&word| word.to_owned())
                .collect(),
            environment: environment(self, world, url, options),
        })
    }
}

impl Launch {
    /// The command with the prompt on its standard input.
    ///
    /// # Panics
    /// When the prompt cannot be stored.
    pub fn command(&self, world: &World, prompt: &str) -> Command {
        let file = world.root().join("tmp/prompt");
        fs::write(&file, prompt).expect("store the prompt");
        let prompt = fs::File::open(&file).expect("open the prompt");
        let mut command = world.command(&self.program);
        command
            .args(&self.arguments)
            .envs(self.environment.clone())
            .stdin(Stdio::from(prompt));
        command
    }

    /// Program and flags, quoted for `--command`.
    pub fn command_line(&self) -> String {
        let program = self.program.to_string_lossy().into_owned();
        shell_words::join(std::iter::once(&program).chain(&self.arguments))
    }
}

fn arguments(cli: RealCli, options: &Options) -> Vec<&'static str> {
    let all = options.permission == Permission::All;
    let when =
        |condition: bool, words: &'static [&'static str]| if condition { words } else { &[] };
    match cli {
        RealCli::Claude => [
            &["-p"],
            when(all, &["--dangerously-skip-permissions"]),
            &["--output-format", "stream-json", "--verbose"],
        ]
        .concat(),
        RealCli::Codex => [
            &[
                "exec",
                "--json",
                "--skip-git-repo-check",
                "--disable",
                "plugins",
            ],
            when(all, &["--dangerously-bypass-approvals-and-sandbox"]),
            &["-"],
        ]
        .concat(),
        RealCli::Gemini => [
            when(all, &["--yolo"]),
            &["-m", "gemini-2.5-pro", "--output-format", "stream-json"],
        ]
        .concat(),
        RealCli::OpenCode => vec!["run", "--format", "json"],
    }
}

fn environment(cli: RealCli, world: &World, url: &str, options: &Options) -> Vec<(String, String)> {
    let home = |folder: &str| world.home().join(folder).to_string_lossy().into_owned();
    let mut variables: Vec<(&str, String)> = match cli {
        RealCli::Claude => vec![
            ("ANTHROPIC_BASE_URL", url.into()),
            ("CLAUDE_CONFIG_DIR", home(".claude")),
            // Root may skip permissions only in what says it is a sandbox.
            ("IS_SANDBOX", "1".into()),
            ("DISABLE_TELEMETRY", "1".into()),
            ("DISABLE_AUTOUPDATER", "1".into()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
            match options.login {
                Login::Key => ("ANTHROPIC_API_KEY", "sk-ant-dummy".into()),
                Login::Subscription => ("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat-dummy".into()),
            },
        ],
        RealCli::Codex => vec![
            ("CODEX_HOME", home(".codex")),
            ("SCRIPTED_KEY", "dummy".into()),
        ],
        RealCli::Gemini => vec![
            ("GEMINI_API_KEY", "dummy".into()),
            ("GOOGLE_GEMINI_BASE_URL", url.into()),
            ("GEMINI_CLI_NO_RELAUNCH", "true".into()),
        ],
        RealCli::OpenCode => [
            "OPENCODE_DISABLE_AUTOUPDATE",
            "OPENCODE_DISABLE_MODELS_FETCH",
            "OPENCODE_DISABLE_LSP_DOWNLOAD",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS",
        ]
        .map(|name| (name, "1".into()))
        .to_vec(),
    };
    if cli == RealCli::Claude && options.patience == Patience::Hasty {
        variables.push(("CLAUDE_CODE_MAX_RETRIES", "1".into()));
    }
    variables
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn write_settings(cli: RealCli, world: &World, url: &str, options: &Options) {
    let home = world.home();
    match cli {
        RealCli::Claude => {}
        RealCli::Codex => store(
            &home.join(".codex/config.toml"),
            &config::codex(url, options),
        ),
        RealCli::Gemini => store(
            &home.join(".gemini/settings.json"),
            &config::gemini(options),
        ),
        RealCli::OpenCode => {
            let file = home.join(".config/opencode/opencode.json");
            store(&file, &config::opencode(url, options));
        }
    }
}

fn store(file: &Path, text: &str) {
    let folder = file.parent().expect("a folder for settings");
    fs::create_dir_all(folder).expect("make the folder for settings");
    fs::write(file, text).expect("write settings");
}
