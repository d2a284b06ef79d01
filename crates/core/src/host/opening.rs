//! What beginning a loop and taking one up have in common.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::event::{Decided, HostFacts};
use descartes_kernel::prompt::fill_template;
use descartes_kernel::sandbox::SandboxLevel;
use descartes_kernel::state::LoopState;
use descartes_kernel::transition::{apply, begin};
use descartes_store::catalog::{self, LoopMeta};
use descartes_store::journal::Journal;
use descartes_store::layout::LoopDir;
use descartes_store::lock::{Holder, StateLock};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::error::HostError;
use super::settings::HostSettings;
use crate::steering;
use crate::worktree::git::guards::Guards;
use crate::worktree::{Git, Tree, TreeOptions};

/// The field of a loop's `meta.json` that tells in which loop's tree it was started.
pub const NESTED_IN: &str = "nested_in";

pub(super) fn register(
    settings: &HostSettings,
    id: &str,
    name: &str,
    state_file: &Path,
    dir: &Path,
    started_at: Timestamp,
    mut extra: Map<String, Value>,
) -> Result<(), HostError> {
    if let Some(tree) = steering::own_enclosure()
        && let Ok(value) = serde_json::to_value(tree)
    {
        extra.insert(NESTED_IN.to_owned(), value);
    }
    let meta = LoopMeta {
        id: id.to_owned(),
        name: name.to_owned(),
        state_file: state_file.to_owned(),
        working_dir: dir.to_owned(),
        started_at,
        extra,
    };
    catalog::register(&settings.root, &meta)?;
    Ok(())
}

pub(super) fn first_record(
    journal: &mut Journal,
    now: Timestamp,
    event: Decided,
) -> Result<LoopState, HostError> {
    let seq = journal.append(now, &event, event.durability())?;
    Ok(begin(&event.into_record(seq, now))?)
}

/// Appends before there is a driver.
pub(super) fn record(
    journal: &mut Journal,
    state: &mut LoopState,
    event: Decided,
) -> Result<(), HostError> {
    let now = Timestamp::now();
    let seq = journal.append(now, &event, event.durability())?;
    apply(state, &event.into_record(seq, now))?;
    Ok(())
}

/// Where the loop works: it must be there and readable.
pub(super) fn working_dir(given: Option<&Path>) -> Result<PathBuf, HostError> {
    let dir = given.unwrap_or(Path::new("."));
    let bad = |why: String| {
        HostError::usage(
            format!("cannot work in {}: {why}", dir.display()),
            "pass an existing directory with --working-dir",
        )
    };
    let dir_abs = fs_err::canonicalize(dir).map_err(|error| bad(plain(&error)))?;
    if !dir_abs.is_dir() {
        return Err(bad("not a directory".to_owned()));
    }
    fs_err::read_dir(&dir_abs).map_err(|error| bad(plain(&error)))?;
    Ok(dir_abs)
}

fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such directory".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

pub(super) fn take(
    settings: &HostSettings,
    state_file: &Path,
    loop_id: &str,
    facts: &HostFacts,
) -> Result<StateLock, HostError> {
    let holder = Holder {
        loop_id: loop_id.to_owned(),
        since: Timestamp::now(),
        host: facts.clone(),
    };
    Ok(StateLock::acquire(&settings.root, state_file, &holder)?)
}

/// `--branch`: make and switch to a branch first. Refused before the loop exists.
pub(super) fn make_branch(
    settings: &HostSettings,
    config: &IterativeLoopConfig,
    name: &str,
    dir: &Path,
    loop_dir: &LoopDir,
) -> Result<Option<String>, HostError> {
    if !config.git.create_branch {
        return Ok(None);
    }
    let stamp = Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let values = [
        ("name", name),
        ("timestamp", stamp.as_str()),
        ("iteration", "1"),
    ];
    let branch = fill_template(&config.git.branch_template, &values)
        .map_err(|why| HostError::usage(why, "fix --branch-template"))?;
    let options = TreeOptions {
        git: git_of(settings),
        ..TreeOptions::default()
    };
    let tree = Tree::open_with(dir, &loop_dir.objects(), options);
    let made = match config.sandbox.effective() {
        SandboxLevel::Off => tree.create_branch(&branch),
        _ => tree.create_branch_quietly(&branch),
    };
    match made {
        Ok(()) => Ok(Some(branch)),
        Err(error) => Err(HostError::refused(
            format!("cannot create branch {branch}: {error}"),
            error
                .hint()
                .unwrap_or_else(|| "fix it in git, or omit --branch".to_owned()),
        )),
    }
}

/// git in the surroundings that gates have; what it starts is guarded.
pub(crate) fn git_of(settings: &HostSettings) -> Git {
    let guards = Guards::new(settings.guard.clone(), &settings.mark());
    settings.early_stop.reach(&guards);
    git_guarded(settings, guards)
}

pub(super) fn git_guarded(settings: &HostSettings, guards: Arc<Guards>) -> Git {
    let environment = settings.environment.iter();
    let git = environment.fold(Git::default(), |git, (k, v)| git.env(k, v));
    git.guarded_by(guards)
}
