//! `descartes config show`: every setting with its value and where it comes from. `descartes
//! config defaults`: what there is to set, also where a config file cannot be read.

use descartes_store::config::{DEFAULT_TOML, Row, Source};
use serde_json::{Value, json};

use crate::args::setup::ConfigVerb;
use crate::error::CliError;
use crate::printer::Printer;
use crate::settings::command_context::{CommandContext, ProjectConfig};
use crate::style::Tone;
use crate::trust;

pub fn run(verb: ConfigVerb, ctx: &CommandContext) -> Result<i32, CliError> {
    let ConfigVerb::Show { json } = verb else {
        drop(ctx.printer.exact(DEFAULT_TOML.as_bytes()));
        return Ok(0);
    };
    let layers = ctx.with(ProjectConfig::AsWritten).layers(&ctx.here)?;
    if let Some(notice) = trust::notice(&ctx.here, ctx) {
        ctx.printer.note(&notice);
    }
    for unknown in layers.unknown() {
        ctx.printer.warning(&unknown);
    }
    if json {
        ctx.printer.json(&as_json(&layers.rows()));
    } else {
        ctx.printer.data(&table(&layers.rows(), &ctx.printer));
    }
    Ok(0)
}

fn table(rows: &[Row], printer: &Printer) -> String {
    let key = rows.iter().map(|row| row.key.len()).max().unwrap_or(0);
    let shown = |row: &Row| {
        let value = row.value.as_ref();
        value.map_or_else(|| "-".to_owned(), ToString::to_string)
    };
    let value = rows.iter().map(|row| shown(row).len().min(40)).max();
    let value = value.unwrap_or(0);
    let line = |row: &Row| {
        let tone = if row.source == Source::Default {
            Tone::Dim
        } else {
            Tone::Strong
        };
        // A value over several lines is a table: the rest of the line stays readable.
        let shown = shown(row);
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let source = printer.out.text(tone, &row.source.to_string());
        format!("{:<key$}  {:<value$}  {source}\n", row.key, shown)
    };
    rows.iter().map(line).collect()
}

fn as_json(rows: &[Row]) -> Vec<Value> {
    let row = |row: &Row| {
        let mut out = json!({ "key": row.key, "value": row.value, "source": kind(&row.source) });
        if let Some(place) = place(&row.source) {
            out["place"] = place.into();
        }
        out
    };
    rows.iter().map(row).collect()
}

fn kind(source: &Source) -> &'static str {
    match source {
        Source::Default => "default",
        Source::UserFile { .. } => "user file",
        Source::ProjectFile { .. } => "project file",
        Source::Environment(_) => "environment",
        Source::Flag(_) => "flag",
    }
}

fn place(source: &Source) -> Option<String> {
    match source {
        Source::Default => None,
        Source::UserFile { path, line } | Source::ProjectFile { path, line } => {
            Some(format!("{}:{line}", path.display()))
        }
        Source::Environment(name) | Source::Flag(name) => Some(name.clone()),
    }
}
