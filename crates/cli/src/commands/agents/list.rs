//! `descartes agents`.

use descartes_agents::agent::{Profile, Profiles, VersionSeen};
use serde_json::{Value, json};

use super::installed::{Installed, MayBeStarted, look, show_version};
use crate::printer::Printer;
use crate::session::foreground::Format;
use crate::settings::command_context::CommandContext;
use crate::style::Tone;

/// Lists all agents: those that are installed first.
pub fn run(
    profiles: &Profiles,
    started: &MayBeStarted,
    format: Format,
    ctx: &CommandContext,
    printer: &Printer,
) -> i32 {
    let mut all = look(profiles, started, ctx);
    // The one that stands for any command is nowhere installed.
    all.retain(|(profile, _)| !profile.command.is_empty());
    all.sort_by_key(|(_, installed)| installed.is_none());
    if format == Format::Json {
        let row = |(profile, installed): &(&Profile, Option<Installed>)| {
            let mut row = row(profile, installed.as_ref());
            row["trusted"] = started.holds(profile, profiles).into();
            row
        };
        let rows: Vec<Value> = all.iter().map(row).collect();
        printer.json(&Value::Array(rows).to_string());
        return 0;
    }
    for line in lines(&all, printer) {
        printer.line(&line);
    }
    0
}

fn row(profile: &Profile, installed: Option<&Installed>) -> Value {
    let (version, standing) = match installed.and_then(|found| found.version.as_ref()) {
        None => (None, None),
        Some(VersionSeen::Known(version)) => (Some(version), Some("known")),
        Some(VersionSeen::Older(version)) => (Some(version), Some("older")),
        Some(VersionSeen::Newer(version)) => (Some(version), Some("newer")),
        Some(VersionSeen::Untried(version)) => (Some(version), Some("untried")),
        Some(VersionSeen::Unreadable) => (None, Some("unreadable")),
    };
    json!({
        "name": profile.name,
        "command": profile.command,
        "installed": installed.is_some(),
        "path": installed.map(|found| found.program.display().to_string()),
        "version": version,
        "version_is": standing,
        "known_version": profile.known_version,
        "understood": profile.stream.is_understood(),
        "verified": profile.verified,
    })
}

fn lines(all: &[(&Profile, Option<Installed>)], printer: &Printer) -> Vec<String> {
    let cells: Vec<[String; 4]> = all.iter().map(|(p, i)| cells(p, i.as_ref())).collect();
    let mut widths = [0; 4];
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out: Vec<String> = cells
        .iter()
        .zip(all)
        .map(|([name, version, proof, place], (_, installed))| {
            let [a, b, c, _] = widths;
            let line = format!("{name:<a$}  {version:<b$}  {proof:<c$}  {place}");
            let tone = if installed.is_some() {
                Tone::Normal
            } else {
                Tone::Dim
            };
            printer.out.text(tone, line.trim_end())
        })
        .collect();
    out.push(String::new());
    out.push("try one:         descartes agents test NAME".to_owned());
    out.push("see its profile: descartes agents show NAME".to_owned());
    out
}

fn cells(profile: &Profile, installed: Option<&Installed>) -> [String; 4] {
    let version = installed.map_or_else(
        || "not installed".to_owned(),
        |found| show_version(profile, found.version.as_ref()),
    );
    let proof = if profile.verified {
        "verified"
    } else {
        "unverified"
    };
    let place = installed.map_or_else(String::new, |found| found.program.display().to_string());
    [profile.name.clone(), version, proof.to_owned(), place]
}
