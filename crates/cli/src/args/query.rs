//! `query`: the history of all loops in SQL.

use clap::Args;

/// `query`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "For example:\n  \
    descartes query \"select name, iterations, cost_usd from loops order by started_at desc\"")]
pub struct QueryArgs {
    /// A query in SQL; `-` reads it from standard input
    #[arg(
        value_name = "SQL",
        allow_hyphen_values = true,
        required_unless_present = "schema"
    )]
    pub sql: Option<String>,
    /// Show the tables and their columns
    #[arg(long)]
    pub schema: bool,
    /// Print the rows as JSON, one object per row
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print the rows as CSV, with a header line
    #[arg(long)]
    pub csv: bool,
}
