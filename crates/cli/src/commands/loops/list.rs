//! `descartes loop list`.

use descartes_client::{Children, LoopHandle, Scope, json};
use descartes_text::units::show_duration;
use descartes_views::view::{Status, UNKNOWN, lost, short_progress};
use jiff::Timestamp;
use serde_json::Value;

use super::which::loops;
use crate::args::loops::ListArgs;
use crate::error::CliError;
use crate::settings::command_context::CommandContext;
use crate::style::{Cell, Tone};
use crate::view::table::table;
use crate::view::width::{cut_end, cut_start};
use crate::view::words;

/// Enough of an id to tell loops of the same minute apart.
const ID: usize = 13;
const NAME: usize = 24;
const DIR: usize = 48;

pub fn run(args: ListArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let all = loops(ctx, &ctx.here)?;
    let scope = match args.all {
        true => Scope::All,
        false => Scope::Of(ctx.here.clone()),
    };
    let children = match args.children {
        true => Children::Listed,
        false => Children::Folded,
    };
    let found = all.heads(&scope, children)?;
    if args.json {
        let rows: Vec<Value> = found.iter().map(json::list_entry).collect();
        ctx.printer.json(&rows);
        return Ok(0);
    }
    if found.is_empty() {
        ctx.printer.talk("no loops here");
        if !args.all && !all.list(&Scope::All)?.is_empty() {
            ctx.printer
                .hint("loops elsewhere: descartes loop list --all");
        }
        return Ok(0);
    }
    let now = Timestamp::now();
    let rows = found.iter().map(|found| row(found, args, now)).collect();
    let titles = ["ID", "NAME", "STATUS", "DONE", "AGE", "DIRECTORY"];
    let shown = if args.all { 6 } else { 5 };
    ctx.printer
        .data(&table(&titles[..shown], rows, ctx.printer.out));
    Ok(0)
}

fn row(found: &LoopHandle, args: ListArgs, now: Timestamp) -> Vec<Cell> {
    let meta = found.meta();
    let name = match found.task() {
        Some(task) => format!("  {task}"),
        None => meta.name.clone(),
    };
    let (status, done) = match found.look() {
        Ok(look) => {
            let state = &look.state;
            let tasks = state.tasks.as_ref().map(|tasks| tasks.count());
            let iterations = look
                .recorded
                .unwrap_or(state.iterations - state.lost.min(state.iterations));
            let (done, unit) = short_progress(iterations, state.config.max_iterations, tasks);
            let status = Status::of(state, look.life);
            let status = match look.recorded {
                Some(_) => Cell::new(Tone::Bad, "Journal incomplete"),
                None => Cell::new(status.tone(), status.label()),
            };
            let lost =
                lost(state, look.life).map_or_else(String::new, |of| format!(", {} lost", of.lost));
            (status, done + unit + &lost)
        }
        Err(error) => {
            let text = cut_end(&format!("unreadable: {error}"), 40);
            (Cell::new(Tone::Bad, text), UNKNOWN.to_owned())
        }
    };
    let mut row = vec![
        meta.id.chars().take(ID).collect::<String>().into(),
        cut_end(&name, NAME).into(),
        status,
        done.into(),
        age(meta.started_at, now).into(),
    ];
    if args.all {
        row.push(cut_start(&meta.working_dir.display().to_string(), DIR).into());
    }
    row
}

/// How long ago, in its two largest units.
fn age(at: Timestamp, now: Timestamp) -> String {
    let since = words::between(at, now);
    let coarse = match since.as_secs() {
        secs @ 0..3_600 => secs,
        secs @ 3_600..86_400 => secs / 60 * 60,
        secs => secs / 3_600 * 3_600,
    };
    show_duration(std::time::Duration::from_secs(coarse))
}
