//! `descartes init`: looks at a project and writes what a loop needs. Never overwrites.

mod files;
mod project;

use std::path::Path;

use descartes_store::config::powers_of_text;
use descartes_store::layout::{PROJECT_FOLDER, ensure_project_folder};
use descartes_store::safe_open::{self, Options, Refusal};
use descartes_store::trust::Subject;

use self::files::NewFile;
use crate::args::setup::InitArgs;
use crate::error::{CliError, at};
use crate::settings::command_context::CommandContext;
use crate::style::Tone;
use crate::trust;
use crate::within::refuse_from_within;

pub use self::files::is_untouched_prompt;

pub fn run(args: &InitArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let dir = ctx.absolute(&args.dir);
    if !dir.is_dir() {
        return Err(CliError::usage(
            format!("{} is not a directory", dir.display()),
            "name the folder of a project",
        ));
    }
    let found = project::look(&dir);
    let what = if found.kinds.is_empty() {
        "no known kind of project".to_owned()
    } else {
        found.kinds.join(", ")
    };
    let git = if found.git { "in git" } else { "not in git" };
    ctx.printer.line(&format!("found: {what}; {git}"));
    match found.gates.as_slice() {
        [] => ctx
            .printer
            .line("gate: none found; set `verify` in .descartes/config.toml"),
        gates => ctx.printer.line(&format!("gate: {}", gates.join(", "))),
    }
    let ours = dir.join(PROJECT_FOLDER);
    if let Err(error) = safe_open::names_in(&ours)
        && Refusal::of(&error).is_some()
    {
        return Err(at("write into", &ours)(error));
    }
    let mut written = Vec::new();
    for file in files::all(&found) {
        let (tone, word) = match (dir.join(file.path).exists(), args.dry_run) {
            (true, _) => (Tone::Warn, "kept"),
            (false, true) => (Tone::Good, "would write"),
            (false, false) => {
                write(&dir, &file)?;
                written.push(file.clone());
                (Tone::Good, "wrote")
            }
        };
        ctx.printer.line(&format!(
            "{} {}",
            ctx.printer.out.text(tone, word),
            file.path
        ));
    }
    let config = written.iter().find(|file| file.path == files::CONFIG);
    match config {
        Some(config) => trust_as_written(&dir, config, ctx)?,
        None => {
            if let Some(notice) = trust::notice(&dir, ctx) {
                ctx.printer.note(&notice);
            }
        }
    }
    if !args.dry_run {
        ctx.printer
            .line("next: write the task in PROMPT.md, then: descartes loop start");
    }
    Ok(0)
}

/// What was just written here is what the person asked for. Within a loop no person did.
fn trust_as_written(dir: &Path, config: &NewFile, ctx: &CommandContext) -> Result<(), CliError> {
    let keys = powers_of_text(&config.text, &dir.join(config.path))?;
    let kept = refuse_from_within("descartes trust")
        .and_then(|()| ctx.trust_book(dir))
        .and_then(|book| Ok(book.keep(Subject::Config, &keys, jiff::Timestamp::now())?));
    if let Err(error) = kept {
        ctx.printer
            .note(&format!("the config is not trusted yet: {error}"));
    }
    Ok(())
}

fn write(dir: &Path, file: &NewFile) -> Result<(), CliError> {
    let path = dir.join(file.path);
    if file.path.starts_with(PROJECT_FOLDER) {
        ensure_project_folder(dir)?;
    } else if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(at("make", folder))?;
    }
    // Made anew or not at all: somebody may have written it since we looked.
    let mut options = std::fs::OpenOptions::new();
    let opened = match file.path.starts_with(PROJECT_FOLDER) {
        true => safe_open::open(Options::new().write().create_new(), &path),
        false => options.write(true).create_new(true).open(&path),
    };
    let written =
        opened.and_then(|mut out| std::io::Write::write_all(&mut out, file.text.as_bytes()));
    written.map_err(at("write", &path))
}
