//! `descartes import`: a roadmap of ours from a plan that cannot be run in place.

use std::io::Write;
use std::path::{Path, PathBuf};

use descartes_core::tasks::lists::{FoundList, find};
use descartes_plans::lists::{ListFile, import, name_of};
use descartes_store::safe_open::read_user_text;
use descartes_text::units::plural;

use crate::args::tasks::ImportArgs;
use crate::error::CliError;
use crate::settings::command_context::CommandContext;
use crate::settings::prompt::read_text;

/// More files than this are no plan.
const MOST_FILES: usize = 500;
const DEPTH: usize = 3;

pub fn run(args: &ImportArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let path = ctx.absolute(&args.path);
    let shown = args.path.display();
    refuse_runnable(&path, args)?;
    let files = files_of(&path)?;
    let stem = path.file_stem().filter(|_| path.is_file());
    let name = match stem {
        Some(stem) => stem.to_string_lossy().to_lowercase(),
        None => name_of(&path.to_string_lossy()),
    };
    let Some(made) = import(&name, &shown.to_string(), &files) else {
        return Err(CliError::refused(
            format!("{shown} has no headings and no lists to make tasks of"),
            format!(
                "give it to one agent: descartes loop start --prompt-file {}",
                descartes_text::shell::path(&args.path)
            ),
        ));
    };
    let output = match &args.output {
        Some(output) if output.as_os_str() == "-" => {
            ctx.printer.line(made.roadmap.trim_end());
            return Ok(0);
        }
        Some(output) => output.clone(),
        None => PathBuf::from(format!("ROADMAP-{name}.md")),
    };
    write_new(&ctx.absolute(&output), &output, &made.roadmap)?;
    let tasks = plural(made.tasks as u64, "task");
    ctx.printer.line(&format!(
        "{}: {tasks}, from {}",
        output.display(),
        made.what
    ));
    ctx.printer.line(&format!(
        "next: descartes roadmap check {}",
        descartes_text::shell::path(&output)
    ));
    Ok(0)
}

/// A list that can be run where it is needs no copy, which would be out of date tomorrow.
fn refuse_runnable(path: &Path, args: &ImportArgs) -> Result<(), CliError> {
    if !path.is_dir() {
        read_text("the plan", path)?;
    }
    let what = match find(path, None) {
        Ok(FoundList::Roadmap(_)) => "a roadmap",
        Ok(FoundList::List { format, .. }) => format.describe(),
        Ok(FoundList::Tracker(tracker)) => tracker.format.describe(),
        Err(_) => return Ok(()),
    };
    let shown = args.path.display();
    Err(CliError::refused(
        format!("{shown} is {what}: it can be run where it is"),
        format!(
            "descartes roadmap run {}",
            descartes_text::shell::path(&args.path)
        ),
    ))
}

/// The plan itself, or the plans of a folder. A roadmap of GSD stands beside its plans.
fn files_of(path: &Path) -> Result<Vec<ListFile>, CliError> {
    let beside = path.parent().map(|above| above.join("phases"));
    let mut files = Vec::new();
    if path.is_dir() {
        collect(path, DEPTH, &mut files);
    } else if let Some(phases) = beside.filter(|phases| phases.is_dir()) {
        collect(&phases, DEPTH, &mut files);
    }
    if files.len() > MOST_FILES {
        return Err(CliError::refused(
            format!("{}: more than {MOST_FILES} Markdown files", path.display()),
            "name the folder or the file that holds the plan",
        ));
    }
    if files.is_empty() && path.is_file() {
        let text = read_text("the plan", path)?;
        let path = path.to_string_lossy().into_owned();
        files.push(ListFile { path, text });
    }
    Ok(files)
}

/// Markdown files below a folder, in the order of their names; links are not followed.
fn collect(folder: &Path, depth: usize, files: &mut Vec<ListFile>) {
    let Ok(entries) = fs_err::read_dir(folder) else {
        return;
    };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(fs_err::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() && depth > 1 {
            collect(&path, depth - 1, files);
        } else if kind.is_file() && path.extension().is_some_and(|end| end == "md") {
            // One more than are taken shows that there are too many.
            let text = read_user_text(&path);
            if let (Ok(text), true) = (text, files.len() <= MOST_FILES) {
                let path = path.to_string_lossy().into_owned();
                files.push(ListFile { path, text });
            }
        }
    }
}

fn write_new(path: &Path, shown: &Path, text: &str) -> Result<(), CliError> {
    let shown = shown.display();
    let file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => CliError::refused(
            format!("{shown} is there already, and is kept"),
            "choose another name with --output FILE, or - to see it first",
        ),
        _ => CliError::refused(
            format!("cannot write {shown}: {error}"),
            "choose a place with --output FILE",
        ),
    })
}
