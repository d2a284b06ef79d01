//! `descartes loop diff`: what an iteration changed in the work tree.

use std::path::{Path, PathBuf};
use std::time::Duration;

use descartes_client::{ClientError, IterationTrees, LoopHandle, Loops, Scope};
use descartes_core::worktree::{
    ChangeStatus, DiffColour, DiffOptions, DiffShape, PriorAgents, Snapshot, Tree, TreeHash,
    TreeKind, TreeOptions, own_output_files,
};
use descartes_kernel::state::LoopState;
use descartes_text::display::{self, one_line};
use descartes_text::path_text::encode;
use descartes_text::shell;
use descartes_text::units::plural;
use serde_json::{Value, json};

use super::which::{find_iteration, has_no_iterations, loops};
use crate::args::loops::DiffArgs;
use crate::error::CliError;
use crate::printer::Printer;
use crate::settings::command_context::CommandContext;
use crate::style::Paint;

/// A person waits for this; the loop does not.
const DIFF_TIMEOUT: Duration = Duration::from_secs(60);

pub fn run(args: &DiffArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    show(args, ctx).map_err(|error| error.needs_git("descartes loop diff"))
}

fn show(args: &DiffArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let (found, iteration) = find_iteration(&args.of, ctx)?;
    found.refuse_displaced()?;
    let trees = found.trees(iteration).map_err(|error| {
        let of_tasks = |state: LoopState| state.config.tasks.is_some();
        match &error {
            ClientError::NoIteration(_) if found.state().is_ok_and(of_tasks) => {
                // The worktree of a task goes when the task is done; its commits stay.
                has_no_iterations(&found, "what they committed: git log --stat")
            }
            _ => error.into(),
        }
    })?;
    let all = loops(ctx, &found.meta().working_dir)?;
    let mut tree = open_to_compare(&found, &all)?;
    let (before, after) = (recorded(trees.before.as_deref()), after(&trees, &mut tree));
    let inside = tree.repositories_that_differ(&before, &after)?;
    if args.json {
        let changed = tree.changed_files(&before, &after)?;
        let rows = changed.iter().map(|changed| {
            let outside = !changed.path.starts_with(tree.below());
            json!({ "path": encode(&changed.path), "status": word(changed.status), "outside": outside })
        });
        let rows: Vec<Value> = rows.collect();
        ctx.printer.json(&json!({
            "iteration": trees.row.iteration,
            "files": rows,
            "repositories": inside.iter().map(|path| encode(path)).collect::<Vec<_>>(),
        }));
        return Ok(0);
    }
    let options = DiffOptions {
        shape: match args.stat {
            true => DiffShape::Stat,
            false => DiffShape::Patch,
        },
        colour: match (ctx.printer.out, args.raw) {
            (Paint::Colour, false) => DiffColour::Always,
            _ => DiffColour::Never,
        },
    };
    let diff = tree.diff(&before, &after, options)?;
    if diff.is_empty() && inside.is_empty() {
        ctx.printer.talk(&format!(
            "iteration {} changed nothing",
            trees.row.iteration
        ));
    }
    if !inside.is_empty() {
        tell_inside(&inside, &tree, &ctx.printer);
    }
    if found.meta().working_dir.is_dir() {
        tell_outside(&tree, &before, &after, &ctx.printer)?;
    }
    // A reader that is gone is no error of ours.
    if args.raw {
        drop(ctx.printer.exact(&diff));
        return Ok(0);
    }
    let shown = display::bytes(&diff, ctx.printer.out.colours());
    drop(ctx.printer.exact(shown.as_bytes()));
    if ctx.printer.out == Paint::Plain && shown.as_bytes() != diff {
        ctx.printer.note(
            "control characters were removed or secrets masked: to apply the patch, use --raw",
        );
    }
    Ok(0)
}

/// Snapshots hold the commits of repositories inside the work tree, and no files of theirs.
fn tell_inside(inside: &[PathBuf], tree: &Tree, printer: &Printer) {
    printer.note(
        "files changed in repositories inside the work tree, of which snapshots hold only the commit; to see the \
         changes that are not committed there:",
    );
    let TreeKind::Git { root } = tree.kind() else {
        return;
    };
    let there = inside.iter().map(|path| root.join(path));
    for path in there.filter(|path| path.join(".git").exists()) {
        printer.hint(&format!("git -C {} diff HEAD", shell::path(&path)));
    }
}

/// A loop may work in a folder of a repository: what changed elsewhere is shown, and not restored.
fn tell_outside(
    tree: &Tree,
    before: &Snapshot,
    after: &Snapshot,
    printer: &Printer,
) -> Result<(), CliError> {
    if tree.below().as_os_str().is_empty() {
        return Ok(());
    }
    let changed = tree.changed_files(before, after)?;
    let outside = changed
        .iter()
        .filter(|file| !file.path.starts_with(tree.below()));
    match outside.count() {
        0 => {}
        count => printer.note(&format!(
            "{} outside of {}, the loop's working directory, changed as well: `descartes loop rewind` restores \
             such files only with --whole-repository",
            plural(count as u64, "file"),
            one_line(&tree.below().to_string_lossy()),
        )),
    }
    Ok(())
}

/// The loop's work tree, with its snapshots. What descartes itself wrote into it, for this loop
/// or another, is no part of it: it would be taken for a change, and put back.
pub fn open(found: &LoopHandle, loops: &Loops) -> Result<Tree, CliError> {
    open_at(&found.meta().working_dir, found, loops)
}

/// The loop's snapshots, to be compared and no more.
pub fn open_to_compare(found: &LoopHandle, loops: &Loops) -> Result<Tree, CliError> {
    open_at(&place_of(found), found, loops)
}

/// Where the loop's snapshots can be compared. The worktree of a task goes when its loop is
/// over; the task loop's own checkout has the same objects.
fn place_of(found: &LoopHandle) -> PathBuf {
    let own = &found.meta().working_dir;
    let parent = || found.beside(found.parent()?).ok();
    match own.is_dir() {
        true => own.clone(),
        false => parent().map_or_else(|| own.clone(), |parent| parent.meta().working_dir.clone()),
    }
}

fn open_at(dir: &Path, found: &LoopHandle, loops: &Loops) -> Result<Tree, CliError> {
    let mut apart = vec![loops.root().path().to_owned()];
    let others = loops.list(&Scope::Of(dir.to_owned()))?;
    for other in &others {
        apart.extend(own_output_files(&other.dir().objects()));
    }
    let files = others.iter().map(LoopHandle::state_file);
    for file in files.chain([found.state_file()]) {
        let mut lock = file.as_os_str().to_owned();
        lock.push(".lock");
        apart.extend([file.to_owned(), lock.into()]);
    }
    let options = TreeOptions {
        apart,
        agents: PriorAgents::HaveWorked,
        ..TreeOptions::default()
    };
    Ok(Tree::open_with(dir, &found.dir().objects(), options))
}

/// A snapshot from what the journal says of it.
pub fn recorded(text: Option<&str>) -> Snapshot {
    let unknown = || TreeHash::Unknown {
        reason: "it was not measured".to_owned(),
    };
    let hash = text.and_then(|text| text.parse().ok());
    Snapshot::recorded(None, hash.unwrap_or_else(unknown))
}

/// The tree after the iteration; while it is under way, the tree as it is.
fn after(trees: &IterationTrees, tree: &mut Tree) -> Snapshot {
    match (&trees.after, &trees.row.verdict) {
        (None, None) => tree.snapshot(DIFF_TIMEOUT),
        (after, _) => recorded(after.as_deref()),
    }
}

fn word(status: ChangeStatus) -> &'static str {
    match status {
        ChangeStatus::Added => "added",
        ChangeStatus::Modified => "modified",
        ChangeStatus::Removed => "removed",
        ChangeStatus::TypeChanged => "type_changed",
    }
}
