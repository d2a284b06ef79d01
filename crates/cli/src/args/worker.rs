//! `worker`.

use std::path::PathBuf;

use clap::Args;
use descartes_kernel::sandbox::SandboxLevel;

use super::values;

/// What `worker` was given.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Ctrl-C finishes what is under way and takes nothing more; twice ends it. A worker runs what \
                  the coordinator sends, with its own logins, agents and setup."
)]
pub struct WorkerArgs {
    /// The engine, with the key of this worker: the line that `descartes engine join-token NAME` prints.
    /// Other users of this machine can see it; --engine-file and DESCARTES_ENGINE hide it
    #[arg(long, value_name = "URL", conflicts_with = "engine_file")]
    pub engine: Option<String>,
    /// A file that holds the same [default: the variable DESCARTES_ENGINE]
    #[arg(long, value_name = "FILE")]
    pub engine_file: Option<PathBuf>,
    /// Attempts to make at once
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::slots)]
    pub slots: u32,
    /// Take offers of this pool (a coordinator asks for it with --workers URL#NAME)
    #[arg(long, value_name = "NAME", default_value = descartes_core::tasks::fleet::DEFAULT_POOL)]
    pub pool: String,
    /// Work for this repository alone: where it comes from (git remote get-url origin); repeatable
    #[arg(long, value_name = "URL")]
    pub allow_repo: Vec<String>,
    /// Confine attempts at least so far; what their loop asks for beyond that holds [default: as they ask]
    #[arg(long, value_name = "LEVEL", value_parser = values::one_of::<SandboxLevel>())]
    pub sandbox: Option<SandboxLevel>,
    /// Whose accounts its agents use: a limit that a provider tells one worker holds for all with the same
    /// name [default: the name of this machine]
    #[arg(long, value_name = "NAME")]
    pub login: Option<String>,
    /// What it is called [default: the name of its key, else of this machine]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}
