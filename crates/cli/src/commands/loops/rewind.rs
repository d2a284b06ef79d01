//! `descartes loop rewind`: the work tree as it was at the end of an iteration, never without a
//! safety copy.

use std::path::{Path, PathBuf};
use std::time::Duration;

use descartes_client::{ClientError, LoopHandle, Loops, Scope};
use descartes_core::worktree::{Rewound, Snapshot, Tree, TreeKind};
use descartes_store::lock::LockError;
use descartes_text::display::one_line;
use descartes_text::path_text::encode;
use descartes_text::shell;
use descartes_text::units::plural;
use descartes_views::view::Life;
use jiff::Timestamp;
use serde_json::json;

use super::diff::{open, recorded};
use super::which::{as_typed, find, loops};
use crate::args::loops::RewindArgs;
use crate::error::CliError;
use crate::printer::Printer;
use crate::settings::command_context::CommandContext;
use crate::within;

/// A person waits for this.
const REWIND_TIMEOUT: Duration = Duration::from_secs(60);
/// Files that are named before it is asked.
const NAMED: usize = 20;

pub fn run(args: &RewindArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    put_back(args, ctx).map_err(|error| error.needs_git("descartes loop rewind"))
}

fn put_back(args: &RewindArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let found = find(&args.which, ctx)?;
    found.refuse_displaced()?;
    let all = loops(ctx, &found.meta().working_dir)?;
    refuse_without_worktree(&found)?;
    let mut tree = open(&found, &all)?;
    if args.copies {
        return Ok(copies(&tree, args, &ctx.printer));
    }
    let Some(target) = &args.to else {
        return Err(CliError::usage(
            "rewind to where?",
            "name an iteration, for example: descartes loop rewind 3",
        ));
    };
    within::refuse_steering(&found)?;
    refuse_while_running(&found, &all, &tree)?;
    let (to, name) = goal(target, &found, &tree)?;
    let now = tree.snapshot(REWIND_TIMEOUT);
    let changed = tree.changed_files(&now, &to)?;
    let (plan, outside): (Vec<_>, Vec<_>) = changed
        .into_iter()
        .partition(|changed| args.whole_repository || changed.path.starts_with(tree.below()));
    if plan.is_empty() {
        let what = restored_place(&tree, args);
        let mut inside = tree.repositories_that_differ(&now, &to)?;
        inside.retain(|path| args.whole_repository || path.starts_with(tree.below()));
        if args.json {
            let outside: Vec<PathBuf> = outside.into_iter().map(|file| file.path).collect();
            let none: [&str; 0] = [];
            ctx.printer.json(&json!({
                "to": name, "safety_copy": null, "back": null, "restored": none, "removed": none,
                "skipped": none, "kept": none, "nested": texts(&inside), "outside": texts(&outside),
            }));
            return Ok(0);
        }
        let except = match inside.is_empty() {
            true => "",
            false => EXCEPT_LISTED,
        };
        ctx.printer
            .line(&format!("{what} is already as {name} left it{except}"));
        tell_left(&inside, SEPARATE, &ctx.printer);
        tell_outside(outside.len(), target, &found, args, &ctx.printer);
        return Ok(0);
    }
    if !args.yes {
        let count = plural(plan.len() as u64, "file");
        ctx.printer
            .talk(&format!("{count} would change to what {name} left:"));
        for changed in plan.iter().take(NAMED) {
            ctx.printer
                .talk(&format!("  {}", one_line(&changed.path.to_string_lossy())));
        }
        if plan.len() > NAMED {
            ctx.printer
                .talk(&format!("  and {} more", plan.len() - NAMED));
        }
        if !ctx.printer.ask("rewind?") {
            return Err(CliError::refused(
                "nothing was changed",
                "to do it without being asked: --yes",
            ));
        }
    }
    let done = rewind(&found, &mut tree, &to, (&name, args))?;
    tell(&done, &name, &found, args, &ctx.printer);
    let left = done.rewound.outside.len();
    if !args.json {
        tell_outside(left, target, &found, args, &ctx.printer);
    }
    Ok(0)
}

/// What was done, and the name of the way back.
struct RewindReport {
    rewound: Rewound,
    copy: String,
    /// What was restored.
    place: &'static str,
}

fn restored_place(tree: &Tree, args: &RewindArgs) -> &'static str {
    match tree.below().as_os_str().is_empty() || args.whole_repository {
        true => "the work tree",
        false => "the loop's working directory",
    }
}

/// Held all the while: no loop may begin in the middle of it.
fn rewind(
    found: &LoopHandle,
    tree: &mut Tree,
    to: &Snapshot,
    (name, args): (&str, &RewindArgs),
) -> Result<RewindReport, CliError> {
    let mut hold = found.hold().map_err(|error| match error {
        ClientError::Lock(LockError::Held(_)) => runs(found),
        other => other.into(),
    })?;
    let now = Timestamp::now();
    let (date, millis) = (
        now.strftime("%Y%m%dT%H%M%S"),
        now.as_millisecond().rem_euclid(1000),
    );
    let copy = format!("before-rewind-{date}-{millis:03}");
    let rewound = match args.whole_repository {
        true => tree.rewind_whole_tree(to, &copy)?,
        false => tree.rewind(to, &copy)?,
    };
    hold.note(format!(
        "the work tree was restored to {name}; its previous state: safety copy {copy}"
    ))?;
    hold.finish()?;
    Ok(RewindReport {
        rewound,
        copy,
        place: restored_place(tree, args),
    })
}

fn runs(found: &LoopHandle) -> CliError {
    let pid = found
        .pid()
        .map_or_else(String::new, |pid| format!(" (pid {pid})"));
    CliError::refused(
        format!("the loop is running{pid}: its agent works in this work tree"),
        format!(
            "end it first: descartes loop cancel {}",
            shell::word(found.name())
        ),
    )
}

/// The worktree of a task goes when its loop is over.
fn refuse_without_worktree(found: &LoopHandle) -> Result<(), CliError> {
    match (found.task(), found.meta().working_dir.is_dir()) {
        (Some(task), false) => Err(CliError::refused(
            format!("the worktree of task {task} is gone: there is nothing to restore"),
            format!("what its loop changed: descartes loop diff {}", found.id()),
        )),
        _ => Ok(()),
    }
}

/// Loops that work anywhere in this work tree: in a repository all of it is restored.
fn refuse_while_running(found: &LoopHandle, all: &Loops, tree: &Tree) -> Result<(), CliError> {
    let root = match tree.kind() {
        TreeKind::Git { root } => root,
        TreeKind::Plain { .. } => found.meta().working_dir.clone(),
    };
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let root = real(&root);
    for other in all.list(&Scope::All)? {
        if real(&other.meta().working_dir).starts_with(&root) && other.life()? == Life::Alive {
            return Err(runs(&other));
        }
    }
    match found.life()? {
        Life::Alive => Err(runs(found)),
        Life::Gone => Ok(()),
    }
}

/// The snapshot that is meant, and what to call it.
fn goal(target: &str, found: &LoopHandle, tree: &Tree) -> Result<(Snapshot, String), CliError> {
    let Ok(iteration) = target.parse::<u32>() else {
        return Ok((tree.safety_copy(target)?, format!("safety copy {target}")));
    };
    if iteration == 0 {
        let trees = found.trees(Some(1))?;
        let name = "the time before iteration 1".to_owned();
        return Ok((recorded(trees.before.as_deref()), name));
    }
    let trees = found.trees(Some(iteration))?;
    Ok((
        recorded(trees.after.as_deref()),
        format!("iteration {iteration}"),
    ))
}

fn copies(tree: &Tree, args: &RewindArgs, printer: &Printer) -> i32 {
    let names = tree.safety_copies();
    match args.json {
        true => printer.json(&json!(names)),
        false if names.is_empty() => printer.talk("no safety copy"),
        false => names.iter().for_each(|name| printer.line(name)),
    }
    0
}

fn tell(done: &RewindReport, name: &str, found: &LoopHandle, args: &RewindArgs, printer: &Printer) {
    let RewindReport {
        rewound,
        copy,
        place,
    } = done;
    let back = format!(
        "descartes loop rewind {copy}{}{}",
        as_typed(&args.which, found),
        match args.whole_repository {
            true => " --whole-repository",
            false => "",
        }
    );
    if args.json {
        let value = json!({
            "to": name, "safety_copy": copy, "back": back, "restored": texts(&rewound.restored),
            "removed": texts(&rewound.removed), "skipped": texts(&rewound.skipped),
            "kept": texts(&rewound.kept), "nested": texts(&rewound.nested),
            "outside": texts(&rewound.outside),
        });
        return printer.json(&value);
    }
    let count = |paths: &[PathBuf]| plural(paths.len() as u64, "file");
    let exact = [&rewound.skipped, &rewound.kept, &rewound.nested];
    let except = match exact.iter().all(|paths| paths.is_empty()) {
        true => "",
        false => EXCEPT_LISTED,
    };
    printer.line(&format!(
        "{place} is as {name} left it{except}: {} written, {} removed",
        count(&rewound.restored),
        count(&rewound.removed)
    ));
    let left = [
        (&rewound.kept, "left as it is, because it was ignored then"),
        (&rewound.nested, SEPARATE),
        (
            &rewound.skipped,
            "left as it is, because something ignored is in the way",
        ),
    ];
    for (paths, why) in left {
        tell_left(paths, why, printer);
    }
    printer.hint(&format!("to undo: {back}"));
}

fn texts(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| encode(path).into()).collect()
}

const EXCEPT_LISTED: &str = ", except for what is listed below";
const SEPARATE: &str = "not restored, because it is a separate repository";

fn tell_left(paths: &[PathBuf], why: &str, printer: &Printer) {
    for path in paths {
        let path = one_line(&path.to_string_lossy());
        printer.warning(&format!("{why}: {path}"));
    }
}

/// What was left alone because it is none of the loop's folder, and how to include it.
fn tell_outside(
    count: usize,
    target: &str,
    found: &LoopHandle,
    args: &RewindArgs,
    printer: &Printer,
) {
    if count == 0 {
        return;
    }
    let (files, differ) = match count {
        1 => ("1 file".to_owned(), "differs"),
        _ => (plural(count as u64, "file"), "differ"),
    };
    printer.hint(&format!(
        "{files} of the repository outside of the loop's working directory {differ}, too; to restore everything: \
         descartes loop rewind {target}{} --whole-repository",
        as_typed(&args.which, found)
    ));
}
