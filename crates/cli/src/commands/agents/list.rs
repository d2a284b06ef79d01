//! `descartes agents`.

use descartes_agents::agent::{Profile, Profiles, VersionSeen};
use serde_json::{Value, json};

use super::installed::{Installed, MayBeStarted, look, show_version};
use crate::session::foreground::Format;
use crate::settings::command_context::CommandContext;
use crate::style::{Cell, Paint, Tone};
use crate::view::table::table;

/// Lists all agents: those that are installed first.
pub fn run(
    profiles: &Profiles,
    started: &MayBeStarted,
    format: Format,
    ctx: &CommandContext,
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
        ctx.printer.json(&rows);
        return 0;
    }
    ctx.printer.data(&lines(&all, ctx.printer.out));
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
        Some(VersionSeen::Late) => (None, Some("late")),
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

fn lines(all: &[(&Profile, Option<Installed>)], paint: Paint) -> String {
    let rows = all
        .iter()
        .map(|(profile, installed)| cells(profile, installed.as_ref()));
    table(&[], rows.collect(), paint)
        + "\ntry one:         descartes agents test NAME\nsee its profile: descartes agents show NAME\n"
}

fn cells(profile: &Profile, installed: Option<&Installed>) -> Vec<Cell> {
    let (tone, version, place) = match installed {
        Some(found) => {
            let version = show_version(profile, found.version.as_ref());
            (Tone::Normal, version, found.program.display().to_string())
        }
        None => (Tone::Dim, "not installed".to_owned(), String::new()),
    };
    let proof = match (profile.verified, &profile.known_version) {
        (true, Some(tested)) => format!("verified with {tested}"),
        (true, None) => "verified".to_owned(),
        (false, _) => "unverified".to_owned(),
    };
    let cells = [profile.name.clone(), version, proof, place];
    cells.map(|text| Cell::new(tone, text)).into()
}
