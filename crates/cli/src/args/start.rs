//! `loop start`: every flag. A flag that is not given stays empty here; defaults come from
//! the settings, which know the layers below. Flags that are settings stand in the settings' table.

use std::path::PathBuf;

use clap::Args;
use descartes_agents::promise::PromiseMatch;
use descartes_core::host::OnExistingState;
use descartes_kernel::config::{Permissions, PromptMode};
use descartes_kernel::sandbox::SandboxLevel;
use descartes_store::config::{FlagType, IterationLimit, Settings, SizeLimit, Trust};
use descartes_text::units::Secs;

use super::values::{self, Variable};

/// Tasks at the same time where `--parallel` says no number.
pub const BARE_PARALLEL: &str = "4";

/// What `loop start` was given.
#[derive(Args, Clone, Debug, Default)]
pub struct StartArgs {
    #[command(flatten)]
    pub task: TaskArgs,
    #[command(flatten)]
    pub done: DoneArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub agent: AgentArgs,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    #[command(flatten)]
    pub prompt: PromptArgs,
    #[command(flatten)]
    pub git: GitArgs,
    #[command(flatten)]
    pub scud: ScudArgs,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub show: ShowArgs,
}

/// Flags under one heading.
pub trait FlagGroup {
    /// Puts those that were given over the settings of other layers.
    fn put_over(&self, settings: &mut Settings);

    /// The names of those that were given.
    fn given(&self) -> Vec<String>;
}

macro_rules! flags {
    (
        flags { $($(#[$about:meta])* $args:ident { $(
            $(#[$flag:meta])*
            $key:ident: $type:ty $(= $trust:ident $(, not $_zero:literal)?
                $(=> $($_to:ident).+)? $(-> $_task:ident)?)?;
        )* })* }
        $($_rest:tt)*
    ) => {
        $(
            #[derive(Args, Clone, Debug, Default)]
            $(#[$about])*
            pub struct $args {
                $($(#[$flag])* pub $key: $type,)*
            }

            impl FlagGroup for $args {
                fn put_over(&self, settings: &mut Settings) {
                    $($({
                        let _ = Trust::$trust;
                        settings.$key.put(&flag_of(stringify!($key)), self.$key.given());
                    })?)*
                }

                fn given(&self) -> Vec<String> {
                    let all = [$((stringify!($key), self.$key.given().is_some())),*];
                    let given = all.into_iter().filter(|(_, given)| *given);
                    given.map(|(key, _)| flag_of(key)).collect()
                }
            }
        )*
    };
}

descartes_store::settings_table!(flags);

fn flag_of(key: &str) -> String {
    format!("--{}", key.replace('_', "-"))
}

impl StartArgs {
    /// Puts every flag that was given over the settings of other layers.
    pub fn put_over(&self, settings: &mut Settings) {
        let tasks = &self.scud.tasks;
        let groups: [&dyn FlagGroup; 7] = [
            &self.done,
            &self.limits,
            &self.agent,
            &self.sandbox,
            &self.prompt,
            &self.git,
            tasks,
        ];
        for group in groups {
            group.put_over(settings);
        }
        let file = self.task.prompt_file.clone();
        settings.prompt_file.put("--prompt-file", file);
        let turned_off = [
            (
                &mut settings.fresh_context,
                "--iteration-context",
                self.prompt.iteration_context,
            ),
            (
                &mut settings.auto_commit_waves,
                "--no-auto-commit-waves",
                tasks.no_auto_commit_waves,
            ),
            (
                &mut settings.wave_barrier,
                "--no-wave-barrier",
                tasks.no_wave_barrier,
            ),
        ];
        for (setting, flag, given) in turned_off {
            setting.put(flag, given.then_some(false));
        }
    }
}

/// What is to be done.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Task")]
pub struct TaskArgs {
    /// The agent: any command, with shell quoting but run without a shell
    #[arg(short, long, value_name = "CMD")]
    pub command: Option<String>,
    /// The task
    #[arg(short, long, value_name = "TEXT", conflicts_with = "prompt_file")]
    pub prompt: Option<String>,
    /// The task from a file, read again at every iteration; `-` reads standard input once
    #[arg(long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,
}

/// A whole graph of tasks instead of one prompt.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Tasks")]
pub struct ScudArgs {
    /// Run the tasks of this SCUD tag, wave by wave; no prompt is needed
    #[arg(long, value_name = "TAG", conflicts_with_all = ["prompt", "prompt_file"])]
    pub scud_tag: Option<String>,
    #[command(flatten)]
    pub tasks: GraphArgs,
}

/// Where it happens.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Where")]
pub struct PlaceArgs {
    /// Where the agent works [default: here]
    #[arg(short, long, value_name = "DIR")]
    pub working_dir: Option<PathBuf>,
    /// The state file [default: .descartes/loop-state.json there]
    #[arg(short, long, value_name = "FILE")]
    pub state_file: Option<PathBuf>,
    /// A name for lists and views [default: generated]
    #[arg(long, value_name = "NAME", value_parser = values::name)]
    pub name: Option<String>,
    /// Start over even if the state file belongs to a loop that can be resumed; the old file is kept
    #[arg(long)]
    pub force: bool,
    /// Start it inside another loop: it ends with that loop's iteration
    #[arg(long)]
    pub nested: bool,
    /// Trust the project's own config as it is, for this run only (for CI)
    #[arg(long)]
    pub trust_config: bool,
}

/// How it is shown.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct ShowArgs {
    /// Print the command, the prompt and the plan without starting or writing anything
    #[arg(long)]
    pub dry_run: bool,
    /// Run in the background and print the loop's id
    #[arg(long)]
    pub detach: bool,
    /// Also show what the agent thinks
    #[arg(long, alias = "thinking")]
    pub show_thinking: bool,
    /// Print events as JSON lines instead of the human view
    #[arg(long)]
    pub json: bool,
}

impl PlaceArgs {
    /// What becomes of a loop that is there already.
    pub fn existing(&self) -> OnExistingState {
        match self.force {
            true => OnExistingState::Archive,
            false => OnExistingState::ArchiveIfOver,
        }
    }
}
