//! What `cargo xtask` starts. An alias can only run one package by itself, with features and a profile of its
//! own: the crates below it would be built once for xtask and a second time for the tests. This program depends
//! on nothing, and has cargo build xtask as the tests are built.
#![expect(clippy::print_stderr, reason = "this is a tool for the terminal")]

use std::env;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let Err(message) = root
        .ok_or_else(|| "no repository".to_owned())
        .and_then(start)
    else {
        return ExitCode::SUCCESS;
    };
    eprintln!("error: {message}");
    ExitCode::FAILURE
}

/// Builds it and becomes it; comes back only where that fails.
fn start(root: &Path) -> Result<(), String> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let xtask = target.join("ci").join("xtask");
    let mut build = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--profile", "ci", "--workspace", "--bin", "xtask"]);
    if xtask.exists() {
        // The first time takes a minute or two, and is shown.
        build.arg("--quiet");
    }
    let built = build.current_dir(root).status();
    let built = built.map_err(|error| format!("cannot run cargo: {error}"))?;
    if !built.success() {
        return Err("xtask does not build".to_owned());
    }
    let error = Command::new(&xtask).args(env::args_os().skip(1)).exec();
    Err(format!("cannot run {}: {error}", xtask.display()))
}
