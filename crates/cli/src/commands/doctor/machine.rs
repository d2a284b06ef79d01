//! Git, disk, configuration and terminal.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use descartes_store::catalog;
use descartes_store::debug_log::VARIABLE;
use descartes_store::layout::StateRoot;
use descartes_text::units::show_size;
use nix::sys::statvfs::statvfs;

use super::finding::{Finding, note, ok, problem};
use crate::env::Stream;
use crate::settings::command_context::{CommandContext, project_config};

/// Less than this is soon full.
const TIGHT: u64 = 1_000_000_000;
/// Less than this is full.
const FULL: u64 = 100_000_000;

/// Git: there, and knows who commits.
pub fn git(dir: &Path) -> Vec<Finding> {
    let Some(version) = ask(dir, &["--version"]) else {
        let hint = "install git; loops run without it, but --auto-commit, --branch, `loop diff` and `loop rewind` do not";
        return vec![problem("git", "git is not installed", hint)];
    };
    let mut out = vec![ok(
        "git",
        version.trim_start_matches("git version ").to_owned(),
    )];
    let missing: Vec<&str> = ["user.name", "user.email"]
        .into_iter()
        .filter(|key| ask(dir, &["config", "--get", key]).is_none_or(|value| value.is_empty()))
        .collect();
    if !missing.is_empty() {
        let hint = format!(
            "set it with `git config --global {}`, followed by yours in quotes",
            missing[0]
        );
        out.push(problem(
            "git",
            format!("no identity for commits: {} not set", missing.join(", ")),
            hint,
        ));
    }
    if ask(dir, &["rev-parse", "--is-inside-work-tree"]).as_deref() != Some("true") {
        out.push(note(
            "git",
            "this folder is not in a repository",
            "git init, to have `loop diff` and `loop rewind`",
        ));
    }
    out
}

fn ask(dir: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command
        .args(arguments)
        .current_dir(dir)
        .stdin(Stdio::null());
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The folder of all loops: can be written, and has room.
pub fn disk(root: &StateRoot) -> Vec<Finding> {
    let path = root.path();
    let shown = path.display();
    let there = path
        .ancestors()
        .find(|folder| folder.is_dir())
        .unwrap_or(Path::new("/"));
    let mut out = match probe(there) {
        Ok(()) => vec![ok("state", format!("{shown} can be written"))],
        Err(error) => {
            let hint = "fix its permissions, or set DESCARTES_STATE_DIR to another folder";
            vec![problem(
                "state",
                format!("{shown} cannot be written: {error}"),
                hint,
            )]
        }
    };
    if let Ok(stat) = statvfs(there) {
        let free = stat.blocks_available().saturating_mul(stat.fragment_size());
        let words = format!("{} free", show_size(free));
        out.push(match free {
            0..FULL => problem("state", words, "free some space: descartes clean"),
            FULL..TIGHT => note("state", words, "logs need space: descartes clean"),
            _ => ok("state", words),
        });
    }
    out
}

/// Writes a file, and takes it away again.
fn probe(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".descartes-doctor-{}", std::process::id()));
    std::fs::write(&path, b"x")?;
    std::fs::remove_file(&path)
}

/// Where settings come from.
pub fn config(ctx: &CommandContext) -> Vec<Finding> {
    let files = [ctx.paths.user_config(), Some(project_config(&ctx.here))];
    let there: Vec<String> = files
        .into_iter()
        .flatten()
        .filter(|file| file.is_file())
        .map(|file| file.display().to_string())
        .collect();
    match there.as_slice() {
        [] => vec![ok("config", "defaults only")],
        files => vec![ok("config", files.join(", "))],
    }
}

/// The log of the newest host in the background, and how to get more.
pub fn log(root: &StateRoot) -> Finding {
    let loops = catalog::list(root).unwrap_or_default();
    let logs = loops.iter().filter_map(|entry| {
        let log = entry.dir.host_log();
        let written = std::fs::symlink_metadata(&log).ok()?.modified().ok()?;
        Some((written, log))
    });
    let newest = match logs.max() {
        Some((_, log)) => format!("of the newest loop in the background: {}", log.display()),
        None => "none: no loop has run in the background".to_owned(),
    };
    ok("log", format!("{newest}; more with {VARIABLE}=debug"))
}

/// What the terminal can show.
pub fn terminal(ctx: &CommandContext) -> Finding {
    let environment = &ctx.environment;
    if Stream::of(&io::stdout()) == Stream::Pipe {
        return ok("terminal", "output is piped: plain lines");
    }
    let size = rustix::termios::tcgetwinsize(io::stdout());
    let size = size.map_or_else(
        |_| "size unknown".to_owned(),
        |size| format!("{}×{}", size.ws_col, size.ws_row),
    );
    if environment.is_dumb() {
        return note(
            "terminal",
            format!("{size}, cannot move its cursor: plain lines"),
            "set TERM",
        );
    }
    if !environment.is_utf8() {
        return note(
            "terminal",
            format!("{size}, no UTF-8: drawn in ASCII"),
            "set LANG to a UTF-8 locale",
        );
    }
    ok("terminal", format!("{size}, UTF-8"))
}
