//! The MCP server in the settings of another program: shown first, written as a whole or not at all.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use descartes_store::task_file::replace_if_unchanged;

use super::clients::{self, name};
use super::insertion::{Insertion, SettingsProblem};
use super::record::{self, InstallRecord};
use super::settings_text::{self, EntryStanding, SettingsEntry};
use crate::args::install::{InstallArgs, Place};
use crate::env::Stream;
use crate::error::{CliError, at};
use crate::session::program::this_program;
use crate::settings::command_context::CommandContext;

/// One settings file and what is wanted in it.
struct SettingsTarget<'a> {
    args: &'a InstallArgs,
    ctx: &'a CommandContext,
    path: PathBuf,
    entry: SettingsEntry,
    root: PathBuf,
}

pub fn install(args: &InstallArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let target = SettingsTarget::of(args, ctx)?;
    let found = target.read()?;
    let text = found.clone().unwrap_or_default();
    let mut base = text.clone();
    match target.standing(&text)? {
        EntryStanding::Nothing => {}
        EntryStanding::Same => {
            ctx.printer.line(&target.path.display().to_string());
            ctx.printer.talk("it is there already: nothing was changed");
            return Ok(0);
        }
        EntryStanding::Changed | EntryStanding::Foreign if args.force => {
            base = target.without(&text)?;
        }
        EntryStanding::Changed => {
            return Err(target.refused("starts `descartes mcp` with other settings", "install"));
        }
        EntryStanding::Foreign => return Err(target.refused("is not of descartes", "install")),
    }
    let new = target.insertions(&base)?;
    target.show("+", new.iter().map(|one| one.text.as_str()));
    target.agree("install", "write it?")?;
    let come = settings_text::with(&base, &new);
    let made_folders = match found {
        Some(_) => {
            target.replace(&text, &come)?;
            Vec::new()
        }
        None => target.create(&come)?,
    };
    let known = InstallRecord::new(&come, &new, found.is_none(), made_folders);
    // Without it the entry is taken out all the same, by its name.
    drop(known.write(&target.root, &target.path));
    ctx.printer.line(&target.path.display().to_string());
    let program = name(args.tool);
    ctx.printer.talk(&format!(
        "{program} starts it from its next session on; its flags, such as --permissions edit, \
        stand behind `mcp` there: descartes mcp --help"
    ));
    Ok(0)
}

pub fn uninstall(args: &InstallArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let target = SettingsTarget::of(args, ctx)?;
    let text = target.read()?.unwrap_or_default();
    match target.standing(&text)? {
        EntryStanding::Same | EntryStanding::Changed => {}
        EntryStanding::Foreign if args.force => {}
        EntryStanding::Foreign => return Err(target.refused("is not of descartes", "uninstall")),
        EntryStanding::Nothing => {
            let tool = name(args.tool);
            let other = match args.place() {
                Place::User => {
                    format!("for that of this project: descartes uninstall {tool} --project")
                }
                Place::Project => format!("for your own: descartes uninstall {tool} --user"),
            };
            let message = format!("there is no entry `descartes` in {}", target.path.display());
            return Err(CliError::refused(message, other));
        }
    }
    let known = InstallRecord::read(&target.root, &target.path);
    let exact = known.as_ref().and_then(|known| known.before(&text));
    let come = match &exact {
        Some(before) => before.clone(),
        None => target.without(&text)?,
    };
    target.show("-", removed(&text, &come));
    target.agree("uninstall", "remove it?")?;
    match known {
        Some(known) if exact.is_some() && known.made_file => {
            fs_err::remove_file(&target.path).map_err(at("remove", &target.path))?;
            for folder in known.made_folders {
                // One that is not empty holds something of somebody else's.
                drop(std::fs::remove_dir(folder));
            }
        }
        _ => target.replace(&text, &come)?,
    }
    record::forget(&target.root, &target.path);
    ctx.printer
        .line(&format!("removed from {}", target.path.display()));
    Ok(0)
}

/// What the text has more than what comes of it, between what both begin and end with.
fn removed<'t>(text: &'t str, come: &str) -> Option<&'t str> {
    let begin = text
        .bytes()
        .zip(come.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let rest = come.len() - begin;
    let end = text.bytes().rev().zip(come.bytes().rev()).take(rest);
    let end = text.len() - end.take_while(|(a, b)| a == b).count();
    text.get(text.floor_char_boundary(begin)..text.ceil_char_boundary(end))
}

impl<'a> SettingsTarget<'a> {
    fn of(args: &'a InstallArgs, ctx: &'a CommandContext) -> Result<Self, CliError> {
        let variable = |name: &str| {
            let value = ctx.environment.raw(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        let path = clients::settings_file(args.tool, args.place(), &ctx.here, variable, |path| {
            path.exists()
        });
        let path = path.ok_or_else(|| {
            CliError::usage(
                "no home folder: HOME is not set",
                "set HOME, or use --project",
            )
        })?;
        Ok(Self {
            args,
            ctx,
            path,
            entry: clients::entry(args.tool, &program(ctx)),
            root: ctx.root(&ctx.here).path().to_owned(),
        })
    }

    /// The file; `None` where there is none.
    fn read(&self) -> Result<Option<String>, CliError> {
        match fs_err::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(at("read", &self.path)(error)),
            Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| {
                let message = format!("{} is not UTF-8 text", self.path.display());
                CliError::refused(message, "repair it first; nothing was changed")
            }),
        }
    }

    fn standing(&self, text: &str) -> Result<EntryStanding, CliError> {
        let standing = self.entry.standing(text);
        standing.map_err(|problem| self.unreadable(&problem))
    }

    fn insertions(&self, text: &str) -> Result<Vec<Insertion>, CliError> {
        let new = self.entry.insertions(text);
        let new = new.map_err(|problem| self.unreadable(&problem))?;
        new.ok_or_else(|| self.by_hand())
    }

    fn without(&self, text: &str) -> Result<String, CliError> {
        let new = self.entry.without(text);
        let new = new.map_err(|problem| self.unreadable(&problem))?;
        new.ok_or_else(|| self.by_hand())
    }

    fn unreadable(&self, problem: &SettingsProblem) -> CliError {
        let SettingsProblem { line, column, what } = problem;
        CliError::refused(
            format!("{}:{line}:{column}: {what}", self.path.display()),
            "repair that line first; nothing was changed",
        )
    }

    fn by_hand(&self) -> CliError {
        let SettingsEntry {
            container, value, ..
        } = &self.entry;
        CliError::refused(
            format!(
                "{} cannot be changed without changing more of it",
                self.path.display()
            ),
            format!("do it by hand: `descartes` in `{container}`, as {value}"),
        )
    }

    fn refused(&self, what: &str, verb: &str) -> CliError {
        let place = self.args.place().typed();
        CliError::refused(
            format!("the entry `descartes` in {} {what}", self.path.display()),
            format!(
                "it stays as it is; otherwise: descartes {verb} {}{place} --force",
                name(self.args.tool)
            ),
        )
    }

    fn show<'t>(&self, mark: &str, parts: impl IntoIterator<Item = &'t str>) {
        self.ctx.printer.talk(&format!("{}:", self.path.display()));
        for part in parts {
            let lines = part.lines().filter(|line| !line.trim().is_empty());
            lines.for_each(|line| self.ctx.printer.talk(&format!("  {mark} {line}")));
        }
    }

    fn agree(&self, verb: &str, question: &str) -> Result<(), CliError> {
        if self.args.yes {
            return Ok(());
        }
        let again = format!(
            "descartes {verb} {}{} --yes",
            name(self.args.tool),
            self.args.place().typed()
        );
        let terminal = [Stream::of(&io::stdin()), Stream::of(&io::stderr())];
        if terminal != [Stream::Terminal; 2] {
            let message = "nothing was changed: there is no terminal to ask on";
            return Err(CliError::refused(
                message,
                format!("without being asked: {again}"),
            ));
        }
        match self.ctx.printer.ask(question) {
            true => Ok(()),
            false => Err(CliError::refused(
                "nothing was changed",
                format!("without being asked: {again}"),
            )),
        }
    }

    fn replace(&self, old: &str, new: &str) -> Result<(), CliError> {
        match replace_if_unchanged(&self.path, old, new) {
            Ok(true) => Ok(()),
            Ok(false) => Err(CliError::refused(
                format!(
                    "{} was changed meanwhile: it is left as it is",
                    self.path.display()
                ),
                "type it again",
            )),
            Err(error) => Err(CliError::refused(error.to_string(), "nothing was changed")),
        }
    }

    /// Writes a file that is not there, all of it at once; gives the folders that were made for it.
    fn create(&self, text: &str) -> Result<Vec<PathBuf>, CliError> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let missing = folder.ancestors().take_while(|folder| !folder.exists());
        let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        fs_err::create_dir_all(folder).map_err(at("make", folder))?;
        let staged = folder.join(format!(".descartes-{}.tmp", std::process::id()));
        let write = || {
            let mut file = std::fs::File::create_new(&staged)?;
            file.write_all(text.as_bytes())?;
            file.sync_data()?;
            // Unlike a rename it takes the place of nobody's file.
            std::fs::hard_link(&staged, &self.path)
        };
        let written = write().map_err(at("write", &self.path));
        drop(std::fs::remove_file(&staged));
        written.map(|()| missing)
    }
}

/// What is written as the command: the name where that is this program, else where it is.
fn program(ctx: &CommandContext) -> String {
    let own = this_program();
    let on_path = ctx.environment.program("descartes");
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    match on_path.and_then(|found| real(Path::new(&found))) == real(&own) {
        true => "descartes".to_owned(),
        false => own.display().to_string(),
    }
}
