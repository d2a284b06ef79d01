//! The sandbox as it was asked for.

use std::path::{Path, PathBuf};

use descartes_agents::agent::ConfinedBy;
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::sandbox::{SandboxLevel, home_path};
use descartes_store::config::{Setting, Settings};

use super::command_context::CommandContext;

/// Paths as they are meant: those of a flag from here, those of a file from the project, `~/` from the
/// home directory.
fn paths(setting: &Setting<Vec<PathBuf>>, ctx: &CommandContext, dir: &Path) -> Vec<PathBuf> {
    let base = match setting.from_flag() {
        Some(_) => &ctx.here,
        None => dir,
    };
    let home = ctx.paths.home.as_deref();
    let whole = |path: PathBuf| {
        let home = path.to_str().and_then(|text| home_path(text, home));
        base.join(home.unwrap_or(path))
    };
    let paths = setting.get().unwrap_or_default();
    paths.into_iter().map(whole).collect()
}

/// Puts the paths of all settings into a config.
pub fn put_paths(
    config: &mut IterativeLoopConfig,
    settings: &Settings,
    ctx: &CommandContext,
    dir: &Path,
) {
    config.sandbox.write = paths(&settings.sandbox_write, ctx, dir);
    config.sandbox.read = paths(&settings.sandbox_read, ctx, dir);
    config.sandbox.hide = paths(&settings.sandbox_hide, ctx, dir);
}

/// Who confines the agent of a loop.
pub fn confined_by(config: &IterativeLoopConfig) -> ConfinedBy {
    match config.sandbox.effective() {
        SandboxLevel::Off => ConfinedBy::Itself,
        SandboxLevel::Workspace | SandboxLevel::Strict => ConfinedBy::Us,
    }
}
