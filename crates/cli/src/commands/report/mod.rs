//! `descartes report`: one self-contained page that tells all about a loop. It reads what every
//! view reads, and needs nothing from outside: no script, no font, no image.

mod gather;
mod html;
mod iterations;
mod lines;
mod page;
mod pictures;
mod tasks;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use descartes_client::LoopHandle;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use self::gather::Gathered;
use super::loops::which::{find, loops};
use crate::args::report::ReportArgs;
use crate::error::{CliError, at};
use crate::settings::command_context::CommandContext;

const FILE: &str = "report.html";

pub fn run(args: &ReportArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let found = find(&args.which, ctx)?;
    let mut gathered = Gathered::of(&found);
    // A page without them is better than none.
    if let Ok(loops) = loops(ctx, &found.meta().working_dir) {
        gathered.lines = lines::measure(&gathered.story, &found, &loops);
    }
    let page = page::page(&gathered, Timestamp::now(), &TimeZone::system());
    if args.output.as_deref() == Some(Path::new("-")) {
        drop(ctx.printer.exact(page.as_bytes()));
        return Ok(0);
    }
    let path = match &args.output {
        Some(path) => ctx.absolute(path),
        None => default_path(&found),
    };
    fs_err::write(&path, page).map_err(at("write", &path))?;
    for trouble in &gathered.troubles {
        ctx.printer.warning(trouble);
    }
    ctx.printer.line(&path.display().to_string());
    if args.open && !opened(&path, ctx) {
        ctx.printer
            .note("no browser was found: open the file yourself");
    }
    Ok(0)
}

/// Outside of the work tree: a page must never look like work of the agent's.
fn default_path(found: &LoopHandle) -> PathBuf {
    match found.has_journal() {
        true => found.dir().path().join(FILE),
        false => found.state_file().with_file_name(FILE),
    }
}

/// Asks the desktop to show it; tells whether there was somebody to ask.
fn opened(path: &Path, ctx: &CommandContext) -> bool {
    let own = ctx.environment.text("BROWSER");
    let programs = own.into_iter().chain(["xdg-open", "open"]);
    for program in programs {
        let started = Command::new(program)
            .arg(path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        if started.is_ok() {
            return true;
        }
    }
    false
}
