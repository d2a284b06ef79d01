//! Running other programs, with their words on our terminal.

use std::path::PathBuf;
use std::process::Command;

/// A step that failed, in words.
pub type Step = Result<(), String>;

/// The repository's root.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| here.clone(), PathBuf::from)
}

/// Runs a program in the repository's root.
pub fn run(program: &str, args: &[&str]) -> Step {
    run_with(program, args, &[])
}

/// The same, with these variables.
pub fn run_with(program: &str, args: &[&str], variables: &[(&str, String)]) -> Step {
    println!("$ {program} {}", args.join(" "));
    let status = Command::new(program)
        .args(args)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .current_dir(root())
        .status()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{program} {} failed ({status})", args.join(" ")))
    }
}

/// Whether a program answers to these arguments.
pub fn answers(program: &str, args: &[&str]) -> bool {
    Command::new(program)
        .args(args)
        .output()
        .is_ok_and(|output| output.status.success())
}
