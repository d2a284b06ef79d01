//! `descartes loop list`.

use std::collections::HashMap;

use descartes_client::{ClientError, LoopHandle, Loops, Scope};
use descartes_text::path_text::encode;
use descartes_text::units::show_duration;
use descartes_views::view::{Status, short_progress};
use jiff::Timestamp;
use serde_json::{Value, json};

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
    let found = nested(&all, &scope, args.children)?;
    if args.json {
        let rows: Vec<Value> = found.iter().map(as_json).collect();
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

/// The loops of tasks belong to their task loop: they stand under it, or not at all.
fn nested(all: &Loops, scope: &Scope, children: bool) -> Result<Vec<LoopHandle>, ClientError> {
    let mut heads = all.list(scope)?;
    heads.retain(|found| found.parent().is_none());
    if !children {
        return Ok(heads);
    }
    let mut of: HashMap<String, Vec<LoopHandle>> = HashMap::new();
    for child in all.list(&Scope::All)? {
        if let Some(parent) = child.parent() {
            of.entry(parent.to_owned()).or_default().push(child);
        }
    }
    let with = |head: LoopHandle| {
        // Oldest first: in the order in which they were worked on.
        let children = of.remove(head.id()).unwrap_or_default();
        std::iter::once(head).chain(children.into_iter().rev())
    };
    Ok(heads.into_iter().flat_map(with).collect())
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
            let (done, unit) = short_progress(state.iterations, state.config.max_iterations, tasks);
            let status = Status::of(state, look.life);
            (Cell::new(status.tone(), status.label()), done + unit)
        }
        Err(error) => {
            let text = cut_end(&format!("unreadable: {error}"), 40);
            (Cell::new(Tone::Bad, text), "?".to_owned())
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

fn as_json(found: &LoopHandle) -> Value {
    let meta = found.meta();
    let mut out = json!({
        "loop_id": meta.id,
        "name": meta.name,
        "started_at": meta.started_at,
        "working_dir": encode(&meta.working_dir),
        "state_file": encode(&meta.state_file),
        "parent": found.parent(),
        "task": found.task(),
    });
    let more = match found.look() {
        Ok(look) => {
            let status = Status::of(&look.state, look.life);
            let mut more = serde_json::to_value(&status).unwrap_or_default();
            more["label"] = status.label().into();
            more["iteration"] = look.state.iterations.into();
            more["max_iterations"] = look.state.config.max_iterations.into();
            more["pid"] = found.pid().into();
            more
        }
        Err(error) => json!({ "status": "unreadable", "error": error.to_string() }),
    };
    if let (Value::Object(out), Value::Object(more)) = (&mut out, more) {
        out.extend(more);
    }
    out
}
