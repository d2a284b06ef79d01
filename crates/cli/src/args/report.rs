//! `report`.

use std::path::PathBuf;

use clap::Args;

use super::resume::WhichLoop;

/// What `report` was given.
#[derive(Args, Clone, Debug, Default)]
pub struct ReportArgs {
    #[command(flatten)]
    pub which: WhichLoop,
    /// Open it in the browser
    #[arg(long)]
    pub open: bool,
    /// Where to write it; `-` is standard output [default: in the loop's own folder]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
