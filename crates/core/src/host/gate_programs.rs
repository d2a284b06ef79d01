//! Which programs gates begin with, and whether they are there.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Prints those of its arguments that a shell could not run.
const ASK: &str = r#"for word; do command -v "$word" >/dev/null || printf '%s\n' "$word"; done"#;
/// So many are looked for by one shell: more may be too long for its arguments.
const AT_ONCE: usize = 1_000;

/// The first word of a plain command, if it names a program. A path is let pass: the agent may be asked to
/// write it.
pub fn program_of(gate: &str) -> Option<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    let word = gate.split_whitespace().next()?;
    word.chars().all(plain).then_some(word)
}

/// Those programs that a shell does not find with this environment.
pub fn missing_programs<'g>(
    programs: &BTreeSet<&'g str>,
    environment: &[(OsString, OsString)],
    dir: &Path,
) -> BTreeSet<&'g str> {
    let programs: Vec<&str> = programs.iter().copied().collect();
    let mut missing = BTreeSet::new();
    for some in programs.chunks(AT_ONCE) {
        let mut shell = Command::new("sh");
        shell.args(["-c", ASK, "sh"]).args(some).current_dir(dir);
        shell.env_clear();
        shell.envs(environment.iter().map(|(key, value)| (key, value)));
        // Where no shell can be asked, nothing is said to be missing.
        let text = shell.output().map(|output| output.stdout);
        let text = text.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let not_there = |program: &&&str| text.lines().any(|line| line == **program);
        missing.extend(some.iter().filter(not_there));
    }
    missing
}
