//! `descartes clean`: what old loops left behind, listed first.

use std::collections::BTreeSet;
use std::path::PathBuf;

use descartes_store::catalog::{
    CleanItem, CleanPlan, CleanScope, KeptCopies, LoopMeta, SafetyCopies, plan_clean, remove,
    remove_lock,
};
use descartes_text::path_text::encode;
use descartes_text::units::{plural, show_duration, show_size};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::args::loops::CleanArgs;
use crate::commands::doctor::leftovers::{dead_sockets, is_dead};
use crate::commands::tasks::land::with_unlanded_work;
use crate::error::CliError;
use crate::printer::Printer;
use crate::settings::command_context::CommandContext;
use crate::view::words;
use crate::within;

pub fn run(args: CleanArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    if args.yes {
        within::refuse_from_within("`descartes clean --yes`")?;
    }
    let now = Timestamp::now();
    let before = now.checked_sub(args.older.0).unwrap_or(Timestamp::MIN);
    let scope = match args.whole {
        true => CleanScope::Whole,
        false => CleanScope::Logs,
    };
    let copies = match args.safety_copies {
        true => SafetyCopies::Remove,
        false => SafetyCopies::Keep,
    };
    let root = ctx.root(&ctx.here);
    let unlanded = match scope {
        CleanScope::Whole => with_unlanded_work(&root)?,
        CleanScope::Logs => BTreeSet::new(),
    };
    let plan = plan_clean(&root, &ctx.here, before, scope, copies, &unlanded)?;
    let sockets = dead_sockets(&ctx.paths);
    if !args.json {
        list(&plan, &sockets, now, args, &ctx.printer);
    }
    if plan.items.is_empty() && sockets.is_empty() && plan.locks.is_empty() {
        if args.json {
            ctx.printer.json(&as_json(&plan, &sockets, false, &[]));
        }
        return Ok(0);
    }
    let agreed = args.yes || (!args.json && ctx.printer.ask("remove?"));
    if !agreed && !args.json {
        ctx.printer.talk("nothing was removed");
        let flags = as_typed(args);
        ctx.printer.hint(&format!(
            "to remove it without being asked: descartes clean{flags} --yes"
        ));
    }
    if agreed {
        within::refuse_from_within("`descartes clean`")?;
    }
    let kept = match agreed {
        true => clear(&plan, &sockets, &ctx.printer),
        false => Vec::new(),
    };
    if args.json {
        ctx.printer.json(&as_json(&plan, &sockets, agreed, &kept));
    } else if agreed {
        let freed: u64 = plan.items.iter().map(|item| item.bytes).sum();
        ctx.printer
            .line(&format!("removed, {} freed", show_size(freed)));
    }
    Ok(i32::from(!kept.is_empty()))
}

/// The flags that find the same again.
fn as_typed(args: CleanArgs) -> String {
    let mut out = match args.older == CleanArgs::OLDER {
        true => String::new(),
        false => format!(" --older {}", args.older),
    };
    if args.whole {
        out.push_str(" --whole");
    }
    if args.safety_copies {
        out.push_str(" --safety-copies");
    }
    out
}

fn kept_copies(plan: &CleanPlan) -> Vec<Value> {
    let row = |kept: &KeptCopies| json!({ "loop_id": kept.meta.id, "name": kept.meta.name, "copies": kept.names });
    plan.copies.iter().map(row).collect()
}

/// Removes what can be removed, and gives why the rest cannot.
fn clear(plan: &CleanPlan, sockets: &[PathBuf], printer: &Printer) -> Vec<String> {
    let mut kept = Vec::new();
    for item in &plan.items {
        if let Err(error) = remove(item) {
            printer.warning(&error.to_string());
            kept.push(error.to_string());
        }
    }
    for error in plan.locks.iter().filter_map(|lock| remove_lock(lock).err()) {
        printer.warning(&error.to_string());
        kept.push(error.to_string());
    }
    // A loop may have taken its socket up again while a person was asked.
    for socket in sockets.iter().filter(|socket| is_dead(socket)) {
        if let Err(error) = std::fs::remove_file(socket) {
            let why = format!("cannot remove {}: {error}", socket.display());
            printer.warning(&why);
            kept.push(why);
        }
    }
    kept
}

fn list(plan: &CleanPlan, sockets: &[PathBuf], now: Timestamp, args: CleanArgs, printer: &Printer) {
    for item in &plan.items {
        let id = item.meta.as_ref().map(|meta| &meta.id);
        let has_copies = plan.copies.iter().any(|kept| Some(&kept.meta.id) == id);
        let waits = plan.unlanded.iter().any(|meta| Some(&meta.id) == id);
        let what = match (has_copies, args.whole && !waits, args.safety_copies) {
            (true, ..) => "logs of",
            (_, true, _) => "everything of",
            (_, _, true) => "logs, snapshots and safety copies of",
            _ => "logs and snapshots of",
        };
        let name = item.meta.as_ref().map_or_else(
            || "an incomplete loop directory".to_owned(),
            |meta| format!("{what} {} ({})", meta.name, meta.id),
        );
        let age = words::seconds(words::between(item.last_used, now));
        printer.line(&format!(
            "{:>9}  {name}, last used {age} ago",
            show_size(item.bytes)
        ));
    }
    for meta in &plan.interrupted {
        printer.note(&format!(
            "kept: {} ({}) is not over; continue it with `descartes loop resume {}`, or cancel it",
            meta.name, meta.id, meta.id
        ));
    }
    for meta in &plan.unlanded {
        printer.note(&format!(
            "kept: the record of {} ({}), whose finished work has not landed; land it with `{}`",
            meta.name,
            meta.id,
            land_command(meta)
        ));
    }
    for kept in &plan.copies {
        let id = &kept.meta.id;
        let newest = kept.names.last().map_or("", String::as_str);
        printer.note(&format!(
            "kept: {} of {} ({id}), {}: go back with `descartes loop rewind {newest} {id}`, or remove with --safety-copies",
            match kept.names.len() {
                1 => "1 safety copy".to_owned(),
                count => format!("{count} safety copies"),
            },
            kept.meta.name,
            show_size(kept.bytes),
        ));
    }
    if !sockets.is_empty() {
        let count = plural(sockets.len() as u64, "dead socket");
        printer.line(&format!("{:>9}  {count} of loops that no longer exist", ""));
    }
    if !plan.locks.is_empty() {
        let count = plural(plan.locks.len() as u64, "lock");
        printer.line(&format!("{:>9}  {count} not held by any process", ""));
    }
    if plan.items.is_empty() && sockets.is_empty() && plan.locks.is_empty() {
        let age = show_duration(args.older.0);
        printer.talk(&format!("nothing to remove that is older than {age}"));
    }
}

/// What lands the work of a loop, from wherever it is typed.
fn land_command(meta: &LoopMeta) -> String {
    let dir = meta.working_dir.to_string_lossy();
    format!("cd {} && descartes work land", shell_words::quote(&dir))
}

fn as_json(plan: &CleanPlan, sockets: &[PathBuf], removed: bool, kept: &[String]) -> Value {
    let item = |item: &CleanItem| {
        json!({
            "loop_id": item.meta.as_ref().map(|meta| &meta.id),
            "name": item.meta.as_ref().map(|meta| &meta.name),
            "last_used": item.last_used,
            "bytes": item.bytes,
            "paths": item.paths().iter().map(|path| encode(path)).collect::<Vec<_>>(),
        })
    };
    json!({
        "items": plan.items.iter().map(item).collect::<Vec<_>>(),
        "sockets": sockets,
        "locks": plan.locks,
        "removed": removed,
        "kept": kept,
        "safety_copies": kept_copies(plan),
        "unlanded": plan.unlanded.iter().map(|meta| json!({
            "loop_id": meta.id, "name": meta.name, "land": land_command(meta),
        })).collect::<Vec<_>>(),
    })
}
