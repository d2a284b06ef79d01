//! How each CLI is started headless against a lane.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::RealCli;
use super::facts::{PromptBy, Setup};
use super::install::node_folder;
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
    /// The flags for headless work with a stream to be parsed.
    pub arguments: Vec<String>,
    /// What it needs beside the world's environment.
    pub environment: Vec<(String, String)>,
    /// Where it takes its prompt from.
    pub prompt: PromptBy,
}

impl RealCli {
    /// Writes the CLI's settings into the world's home and says how to start it; none when it is
    /// not installed. `url` is a lane's address.
    pub fn launch(self, world: &World, url: &str, options: &Options) -> Option<Launch> {
        let program = self.program()?;
        let facts = self.facts();
        let home = world.home();
        let setup = Setup { url, home, options };
        for (file, text) in (facts.settings)(&setup) {
            store(&setup.home.join(file), &text);
        }
        let own = |(name, value): (&str, String)| (name.to_owned(), value);
        let mut environment: Vec<(String, String)> =
            (facts.environment)(&setup).into_iter().map(own).collect();
        environment.extend(path_with_node(world));
        let flags = (facts.arguments)(options.permission);
        Some(Launch {
            program,
            arguments: [facts.words, flags]
                .concat()
                .into_iter()
                .map(str::to_owned)
                .collect(),
            environment,
            prompt: facts.prompt,
        })
    }
}

impl Launch {
    /// The command with the prompt where it takes it from.
    ///
    /// # Panics
    /// When the prompt cannot be stored.
    pub fn command(&self, world: &World, prompt: &str) -> Command {
        let file = world.root().join("tmp/prompt");
        fs::write(&file, prompt).expect("store the prompt");
        let mut command = world.command(&self.program);
        command
            .args(&self.arguments)
            .envs(self.environment.clone())
            .stdin(Stdio::null());
        match self.prompt {
            PromptBy::Stdin => {
                command.stdin(fs::File::open(&file).expect("open the prompt"));
            }
            PromptBy::Argument => {
                command.arg(prompt);
            }
            PromptBy::File(words) => {
                command.args(words).arg(&file);
            }
        }
        command
    }

    /// Program and flags, quoted for `--command`.
    pub fn command_line(&self) -> String {
        let program = self.program.to_string_lossy().into_owned();
        shell_words::join(std::iter::once(&program).chain(&self.arguments))
    }
}

/// Scripts for Node find the one beside the CLIs first.
fn path_with_node(world: &World) -> Option<(String, String)> {
    let node = node_folder()?;
    let known = world.environment();
    let (_, path) = known.into_iter().find(|(name, _)| *name == "PATH")?;
    Some(("PATH".to_owned(), format!("{}:{path}", node.display())))
}

fn store(file: &Path, text: &str) {
    let folder = file.parent().expect("a folder for settings");
    fs::create_dir_all(folder).expect("make the folder for settings");
    fs::write(file, text).expect("write settings");
}
