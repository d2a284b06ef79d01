//! `descartes loop list`.

use std::collections::HashMap;

use descartes_client::{ClientError, LoopHandle, Loops, Scope};
use descartes_text::path_text::encode;
use descartes_text::units::{plural, show_duration};
use descartes_views::view::{Life, Status};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::which::loops;
use crate::args::loops::ListArgs;
use crate::error::CliError;
use crate::printer::Printer;
use crate::settings::command_context::CommandContext;
use crate::style::Tone;
use crate::view::width::{cut_end, cut_start, width};
use crate::view::words;

/// Enough of an id to tell loops of the same minute apart.
const ID: usize = 13;
const NAME: usize = 24;
const DIR: usize = 48;

/// One loop in the list.
struct LoopLine {
    id: String,
    name: String,
    tone: Tone,
    status: String,
    iterations: String,
    age: String,
    dir: String,
}

pub fn run(args: ListArgs, ctx: &CommandContext, printer: &Printer) -> Result<i32, CliError> {
    let all = loops(ctx, &ctx.here, printer)?;
    let scope = match args.all {
        true => Scope::All,
        false => Scope::Of(ctx.here.clone()),
    };
    let found = nested(&all, &scope, args.children)?;
    if args.json {
        let rows: Vec<Value> = found.iter().map(as_json).collect();
        printer.json(&Value::Array(rows).to_string());
        return Ok(0);
    }
    if found.is_empty() {
        printer.talk("no loops here");
        if !args.all && !all.list(&Scope::All)?.is_empty() {
            printer.hint("loops elsewhere: descartes loop list --all");
        }
        return Ok(0);
    }
    let now = Timestamp::now();
    let lines: Vec<LoopLine> = found.iter().map(|found| line(found, now)).collect();
    printer.data(&table(&lines, args, printer));
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

fn line(found: &LoopHandle, now: Timestamp) -> LoopLine {
    let meta = found.meta();
    let name = match found.task() {
        Some(task) => format!("  {task}"),
        None => meta.name.clone(),
    };
    let (tone, status, iterations) = match found.look() {
        Ok(look) => {
            let status = Status::of(&look.state, look.life);
            let limit = look.state.config.max_iterations;
            let limit = limit.map_or_else(String::new, |limit| format!("/{limit}"));
            let done = match &look.state.tasks {
                Some(tasks) => {
                    let (done, total) = tasks.count();
                    format!("{done}/{}", plural(total as u64, "task"))
                }
                None => format!("{}{limit}", look.state.iterations),
            };
            (tone(&status, look.life), status.label(), done)
        }
        Err(error) => (Tone::Bad, format!("unreadable: {error}"), "?".to_owned()),
    };
    LoopLine {
        id: meta.id.chars().take(ID).collect(),
        name: cut_end(&name, NAME),
        tone,
        status: cut_end(&status, 40),
        iterations,
        age: age(meta.started_at, now),
        dir: cut_start(&meta.working_dir.display().to_string(), DIR),
    }
}

fn tone(status: &Status, life: Life) -> Tone {
    match status {
        Status::Ended { reason } if reason.is_success() => Tone::Good,
        Status::Ended { .. } | Status::Interrupted => Tone::Warn,
        _ if life == Life::Alive => Tone::Strong,
        _ => Tone::Normal,
    }
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

fn table(lines: &[LoopLine], args: ListArgs, printer: &Printer) -> String {
    let widest = |column: fn(&LoopLine) -> &str, title: &str| {
        let widths = lines.iter().map(|line| width(column(line)));
        widths.max().unwrap_or(0).max(title.len())
    };
    let pad = |text: &str, to: usize| format!("{text}{:1$}", "", to.saturating_sub(width(text)));
    let columns = [
        (widest(|line| &line.id, "ID"), "ID"),
        (widest(|line| &line.name, "NAME"), "NAME"),
        (widest(|line| &line.status, "STATUS"), "STATUS"),
        (widest(|line| &line.iterations, "DONE"), "DONE"),
        (widest(|line| &line.age, "AGE"), "AGE"),
    ];
    let heads: Vec<String> = columns.iter().map(|(to, head)| pad(head, *to)).collect();
    let mut head = heads.join("  ");
    if args.all {
        head.push_str("  DIRECTORY");
    }
    let mut out = printer.out.text(Tone::Dim, head.trim_end()) + "\n";
    for line in lines {
        let cells = [
            &line.id,
            &line.name,
            &line.status,
            &line.iterations,
            &line.age,
        ];
        let mut row = Vec::new();
        for ((to, head), cell) in columns.iter().zip(cells) {
            let text = pad(cell, *to);
            row.push(match *head {
                "STATUS" => printer.out.text(line.tone, &text),
                _ => text,
            });
        }
        if args.all {
            row.push(line.dir.clone());
        }
        out.push_str(row.join("  ").trim_end());
        out.push('\n');
    }
    out
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
