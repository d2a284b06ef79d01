//! `descartes loop status`.

use std::io;
use std::path::Path;
use std::time::Duration;

use descartes_client::{Look, LoopHandle, LoopUpdate, Output, json};
use descartes_kernel::state::Phase;
use descartes_kernel::transition::apply;
use descartes_text::display::{self, Colours};
use descartes_views::view::{Life, status_block};
use jiff::Timestamp;

use super::which::find;
use crate::args::loops::StatusArgs;
use crate::env::Stream;
use crate::error::CliError;
use crate::printer::Printer;
use crate::settings::command_context::CommandContext;
use crate::view::screen::{Row, Screen};
use crate::view::width::cut_end;

/// Where time passes in the block, it is drawn so often.
const TICK: Duration = Duration::from_secs(1);

/// Runs it. A loop that has ended is no error.
pub fn run(args: &StatusArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let found = find(&args.which, ctx)?;
    if args.watch && found.has_journal() {
        return watch(&found, args, ctx);
    }
    let look = found.look()?;
    for notice in &look.notices {
        ctx.printer.note(notice);
    }
    match args.json {
        true => ctx.printer.json(&json::status(&found, &look)),
        false => ctx.printer.data(&block(&look, &ctx.here)),
    }
    Ok(0)
}

/// The block; a state file below this directory is named from here.
fn block(look: &Look, here: &Path) -> String {
    let mut state = look.state.clone();
    if let Some(file) = &mut state.config.state_file
        && let Ok(near) = file.strip_prefix(here)
    {
        *file = near.to_owned();
    }
    status_block(&state, look.life, Timestamp::now())
}

/// What is kept current, and how.
enum Shown {
    /// Drawn anew in its place.
    Terminal(Screen),
    /// Printed whenever it changed.
    Lines(String),
}

fn watch(found: &LoopHandle, args: &StatusArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let terminal = Stream::of(&io::stdout()) == Stream::Terminal;
    let mut shown = match terminal && !args.json && !ctx.environment.is_dumb() {
        true => Shown::Terminal(Screen::default()),
        false => Shown::Lines(String::new()),
    };
    let (state, mut follower) = found.follow(Output::No)?;
    let mut look = Look {
        state,
        life: follower.life(),
        notices: Vec::new(),
        recorded: None,
    };
    loop {
        ctx.printer.tell_polling();
        let text = match args.json {
            true => json::status(found, &look).to_string() + "\n",
            false => block(&look, &ctx.here),
        };
        if shown.show(&text, &ctx.printer).is_err() {
            return Ok(0); // nobody reads any more
        }
        if look.life == Life::Gone {
            shown.end(&ctx.printer);
            return Ok(0);
        }
        let ticks = matches!(shown, Shown::Terminal(_)) && passes(&look);
        for news in follower.next(ticks.then_some(TICK))? {
            match news {
                LoopUpdate::Record(record) => drop(apply(&mut look.state, &record)),
                LoopUpdate::Life(life) => look.life = life,
                LoopUpdate::Output { .. } | LoopUpdate::Skipped { .. } => {}
            }
        }
    }
}

/// Whether the block tells of time that passes.
fn passes(look: &Look) -> bool {
    look.state.wait().is_some()
        || !matches!(
            look.state.phase,
            Phase::Ready { .. } | Phase::Finished { .. }
        )
}

impl Shown {
    fn show(&mut self, text: &str, printer: &Printer) -> io::Result<()> {
        match self {
            Self::Terminal(screen) => {
                let columns = rustix::termios::tcgetwinsize(io::stdout());
                let columns = columns.map_or(80, |size| size.ws_col.max(20));
                // Whole before it is cut: half a secret does not look like one.
                let text = display::text(text, Colours::Drop);
                let row = |line| Row::new(cut_end(line, usize::from(columns) - 1));
                let rows = text.lines().map(row).collect();
                printer.exact(screen.frame(&[], rows, columns).as_bytes())
            }
            Self::Lines(last) if last == text => Ok(()),
            Self::Lines(last) => {
                let apart = if last.is_empty() || text.starts_with('{') {
                    ""
                } else {
                    "\n"
                };
                text.clone_into(last);
                match text.starts_with('{') {
                    true => printer.json_text(text),
                    false => printer.try_data(&format!("{apart}{text}")),
                }
            }
        }
    }

    fn end(&self, printer: &Printer) {
        if let Self::Terminal(_) = self {
            printer.data("\n");
        }
    }
}
