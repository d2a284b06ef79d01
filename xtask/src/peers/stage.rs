//! One tool in a world of its own, with the scripted agent under the name it expects.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use descartes_testkit::stamp::{self, Stamp};

use super::tool::{Prompt, Tool};
use crate::lab::{Lab, Trial, Trouble};

/// The loop that everybody writes first.
const BASH: &str = r#"for ((i = 0; i < N; i++)); do
  claude "$PROMPT" | tee out.txt
  grep -qF '<promise>COMPLETE</promise>' out.txt && exit 0
done
exit 1"#;

/// In the manner of the script that most people copy: all output held in a variable, searched at
/// the end, a sleep between.
const SCRIPT: &str = r#"set -e
for i in $(seq 1 "$N"); do
  said=$(claude --print < PROMPT.md 2>&1 | tee /dev/stderr) || true
  if echo "$said" | grep -q '<promise>COMPLETE</promise>'; then exit 0; fi
  sleep "${PAUSE:-2}"
done
exit 1"#;

/// What the agent's output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speech {
    /// Plain text.
    Text,
    /// The events of the agent that it is taken for.
    Events,
}

/// What a tool is to do.
pub struct Work<'w> {
    /// What the agent plays; its starts are counted.
    pub script: &'w str,
    /// How many iterations at most.
    pub most: u32,
    /// What the agent speaks.
    pub speech: Speech,
    /// A command that must be green before anything is done, for tools that have such.
    pub gate: Option<&'w str>,
}

impl<'w> Work<'w> {
    /// Plain text, no gate.
    pub fn new(script: &'w str, most: u32) -> Self {
        Self {
            script,
            most,
            speech: Speech::Text,
            gate: None,
        }
    }
}

/// The world of a tool.
pub struct Stage<'a> {
    /// Its folders.
    pub trial: Trial<'a>,
    /// Who is on.
    pub tool: Tool,
}

impl<'a> Stage<'a> {
    /// Makes the world, with everything that any of the tools wants to find.
    pub fn new(lab: &'a Lab, tool: Tool) -> Result<Self, Trouble> {
        let trial = Trial::new(lab);
        let agent = fs::canonicalize(&lab.agent).map_err(|error| error.to_string())?;
        for name in ["claude", "agent"] {
            std::os::unix::fs::symlink(&agent, trial.world.bin().join(name))
                .map_err(|error| error.to_string())?;
        }
        let stage = Self { trial, tool };
        let (world, prompt) = (&stage.trial.world, stage.prompt());
        world.write("PROMPT.md", &prompt);
        world.write(
            "RALPH.md",
            format!("---\nagent: claude -p\n---\n{prompt}\n"),
        );
        world.write(
            "ralph.yml",
            "cli: {backend: custom, command: agent, prompt_mode: arg}\nevent_loop: {completion_promise: \"<promise>COMPLETE</promise>\", max_consecutive_failures: 100000}\n",
        );
        world.write(
            "prd.json",
            r#"{"name":"work","branchName":"main","description":"the work","userStories":[{"id":"US-001","title":"the work","description":"do it","acceptanceCriteria":["it is done"],"priority":1,"passes":false}]}"#,
        );
        Ok(stage)
    }

    /// The task, with the words by which its end is to be told.
    pub fn prompt(&self) -> String {
        let says = self.tool.says().unwrap_or("DONE");
        format!(
            "Do the work in the plan.\nOutput {says} when the task is completely finished.\nThen stop."
        )
    }

    /// The line of the script that prints the prompt as it came.
    pub fn echo(&self) -> &'static str {
        match self.tool.prompt() {
            Prompt::Argument => "echo-prompt arg",
            Prompt::Stdin => "echo-prompt stdin",
        }
    }

    fn starts_file(&self) -> PathBuf {
        self.trial.world.root().join("starts")
    }

    /// How often the agent was started.
    pub fn starts(&self) -> u64 {
        fs::metadata(self.starts_file()).map_or(0, |meta| meta.len())
    }

    /// The agent's own stamps.
    pub fn stamps(&self) -> Vec<Stamp> {
        stamp::read(&self.trial.world.root().join("stamps"))
    }

    /// Starts the work.
    pub fn begin(&self, work: &Work<'_>) -> Command {
        self.equipped(work, self.words(work))
    }

    /// Takes it up after a crash: in the tool's own way, or by starting it again.
    pub fn again(&self, work: &Work<'_>) -> Command {
        let command = match self.tool {
            Tool::Descartes => self.trial.descartes(&["loop", "resume"]),
            Tool::RalphTui => {
                let mut command = self.program();
                command.args(["resume", "--headless"]);
                command
            }
            Tool::Orchestrator => {
                let mut command = self.words(work);
                command.arg("--continue");
                command
            }
            _ => self.words(work),
        };
        self.equipped(work, command)
    }

    fn program(&self) -> Command {
        let program = self.tool.program().unwrap_or_default();
        let mut command = self.trial.world.command(&program);
        // A launcher may want the runtime that was installed beside it.
        let folder = program.parent().unwrap_or(&program).display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let own = self.trial.world.bin();
        command.env("PATH", format!("{}:{folder}:{path}", own.display()));
        command
    }

    fn words(&self, work: &Work<'_>) -> Command {
        let most = work.most.to_string();
        let prompt = self.prompt();
        let bash = |script: &str| {
            let mut command = self.trial.world.command("bash");
            command.args(["-c", script]).env("PROMPT", &prompt);
            command.env("N", &most).env("PAUSE", "0");
            command
        };
        let with = |words: &[&str]| {
            let mut command = self.program();
            command.args(words);
            command
        };
        match self.tool {
            Tool::Descartes => self.descartes(work, &most),
            Tool::Bash => bash(BASH),
            Tool::Script => bash(SCRIPT),
            Tool::Orchestrator => {
                let mut command = with(&[
                    "run",
                    "--autonomous",
                    "--skip-preflight",
                    "--max-iterations",
                    &most,
                    "-p",
                    &prompt,
                ]);
                // It reads events only from agents that it knows by name.
                if work.speech == Speech::Events {
                    command.args(["-b", "claude"]);
                }
                command
            }
            Tool::RalphTui => with(&[
                "run",
                "--headless",
                "--no-setup",
                "--prd",
                "./prd.json",
                "--agent",
                "claude",
                "--iterations",
                &most,
                "--delay",
                "0",
                "--no-notify",
                "--no-sandbox",
                "--serial",
            ]),
            Tool::RalphPy => with(&[
                "run", "-p", "claude", "-n", &most, "-d", "0", "-w", ".", &prompt,
            ]),
            Tool::Ralphify => with(&["run", "RALPH.md", "-n", &most]),
            Tool::Scud => with(&["ralph", "-n", &most]),
        }
    }

    fn descartes(&self, work: &Work<'_>, most: &str) -> Command {
        let mut command = self.trial.descartes(&["loop", "start", "--prompt-file"]);
        command.args(["PROMPT.md", "--max-iterations", most, "--force"]);
        match work.speech {
            Speech::Text => command.args(["--command", "agent", "--backend", "generic"]),
            Speech::Events => command.args(["--command", "claude", "--permissions", "edit"]),
        };
        // The same work for all: none of the others looks whether anything changes.
        command.args(["--stall-after", "0"]);
        command.args(work.gate.into_iter().flat_map(|gate| ["--verify", gate]));
        command
    }

    /// The agent's script goes by the environment, and the tool leads a group, as on a terminal.
    fn equipped(&self, work: &Work<'_>, mut command: Command) -> Command {
        let root = self.trial.world.root();
        let script = format!("stamp {}/stamps\n{}", root.display(), work.script);
        command
            .env("SCRIPTED_AGENT_FILE", self.trial.world.script(&script))
            .env("SCRIPTED_AGENT_COUNTER", self.starts_file())
            .stdin(std::process::Stdio::null())
            .process_group(0);
        command
    }
}
