//! `descartes install claude` and `descartes uninstall claude`: commands for Claude Code, as a
//! plugin that it finds by itself. What is written is written down beside it, so that exactly
//! that can be taken away again.

use std::path::PathBuf;

use super::folder::{Folder, Found};

use crate::args::install::{InstallArgs, Place};
use crate::error::CliError;
use crate::settings::command_context::CommandContext;

const PLUGIN: &str = "ralph-wiggum";

macro_rules! plugin_files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../../plugins/ralph-wiggum/", $name)))),*]
    };
}

/// The files of the plugin, as they stand in the repository.
const FILES: &[(&str, &str)] = plugin_files![
    ".claude-plugin/plugin.json",
    ".mcp.json",
    "README.md",
    "commands/cancel-ralph.md",
    "commands/help.md",
    "commands/ralph-loop.md",
];

/// Runs `install`.
pub fn install(args: &InstallArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let folder = folder(args, ctx)?;
    match folder.look()? {
        Found::Nothing => {}
        Found::Ours { edited, .. } if edited.is_empty() || args.force => {}
        Found::Ours { edited, .. } => return Err(refused("replaced", &edited, "install", args)),
        Found::Foreign if args.force => {}
        Found::Foreign => {
            return Err(CliError::refused(
                format!(
                    "{} already exists and was not written by descartes",
                    folder.path().display()
                ),
                format!(
                    "to overwrite it: descartes install claude{} --force",
                    args.place().typed()
                ),
            ));
        }
    }
    folder.write(FILES)?;
    ctx.printer.line(&folder.path().display().to_string());
    ctx.printer
        .talk("Claude Code loads it at its next start, or after /reload-plugins:");
    for command in ["ralph-loop TAG", "cancel-ralph", "help"] {
        ctx.printer.talk(&format!("  /{PLUGIN}:{command}"));
    }
    ctx.printer
        .talk("  and the tools of `descartes mcp`, for Claude itself");
    if args.place() == Place::Project {
        ctx.printer
            .note("Claude Code loads a project's plugin once its folder is trusted");
    }
    for program in ["descartes", "claude"] {
        if ctx.environment.program(program).is_none() {
            ctx.printer.warning(&format!(
                "`{program}` is not on the PATH: the commands need it"
            ));
        }
    }
    Ok(0)
}

/// Runs `uninstall`.
pub fn uninstall(args: &InstallArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let folder = folder(args, ctx)?;
    match folder.look()? {
        Found::Ours { edited, .. } if !edited.is_empty() && !args.force => {
            Err(refused("removed", &edited, "uninstall", args))
        }
        Found::Ours { files, .. } => {
            let left = folder.remove(&files)?;
            ctx.printer
                .line(&format!("removed {}", folder.path().display()));
            for path in left {
                ctx.printer.note(&format!(
                    "{} was not written by descartes and is kept",
                    path.display()
                ));
            }
            Ok(0)
        }
        Found::Nothing | Found::Foreign => {
            let other = match args.place() {
                Place::User => "for the one of this project: descartes uninstall claude --project",
                Place::Project => "for your own: descartes uninstall claude --user",
            };
            Err(CliError::refused(
                format!(
                    "nothing written by descartes is in {}",
                    folder.path().display()
                ),
                other.to_owned(),
            ))
        }
    }
}

fn refused(what: &str, edited: &[PathBuf], verb: &str, args: &InstallArgs) -> CliError {
    let names: Vec<String> = edited
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let place = match args.place() {
        Place::User => "--user",
        Place::Project => "--project",
    };
    CliError::refused(
        format!(
            "edited by hand, so nothing was {what}: {}",
            names.join(", ")
        ),
        "keep a copy of what is yours, then:",
    )
    .hinted(format!("descartes {verb} claude {place} --force"))
}

/// Where Claude Code looks for plugins of one's own.
fn folder(args: &InstallArgs, ctx: &CommandContext) -> Result<Folder, CliError> {
    let base = match args.place() {
        Place::Project => ctx.here.join(".claude"),
        Place::User => {
            let environment = &ctx.environment;
            let own = environment.text("CLAUDE_CONFIG_DIR").map(PathBuf::from);
            let home = environment
                .text("HOME")
                .map(|home| PathBuf::from(home).join(".claude"));
            own.or(home).ok_or_else(|| {
                CliError::usage(
                    "no home folder: HOME is not set",
                    "set HOME, or use --project",
                )
            })?
        }
    };
    Ok(Folder::at(base.join("skills").join(PLUGIN)))
}

#[cfg(test)]
mod tests {
    use super::FILES;

    #[test]
    fn the_plugin_has_our_version_and_names_its_commands() {
        let (_, manifest) = FILES[0];
        let manifest: serde_json::Value = serde_json::from_str(manifest).unwrap();
        assert_eq!(manifest["name"], super::PLUGIN);
        assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
        for (name, text) in FILES
            .iter()
            .filter(|(name, _)| name.starts_with("commands/"))
        {
            assert!(text.starts_with("---\ndescription: "), "{name}");
        }
    }
}
