//! Which programs gates begin with, and whether they are there.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Prints those of its arguments that a shell could not run.
const ASK: &str = r#"for word; do command -v "$word" >/dev/null || printf '%s\n' "$word"; done"#;
/// So many are looked for by one shell: more may be too long for its arguments.
const AT_ONCE: usize = 1_000;

/// The program with which a plain command begins, behind variables, `cd DIR &&` and what only starts another
/// one. A path is let pass: the agent may be asked to write it.
pub fn program_of(gate: &str) -> Option<&str> {
    let is_plain = |word: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
        word.chars().all(plain) && !word.starts_with('-')
    };
    let mut words = gate.split_whitespace();
    loop {
        let word = words.next()?;
        match word {
            "env" | "time" | "nice" | "nohup" => {}
            "timeout" => drop(words.next().filter(|word| is_plain(word))?),
            "cd" => {
                words.next().filter(|dir| !dir.contains(SHELL))?;
                words.next().filter(|word| *word == "&&")?;
            }
            word => match word.split_once('=') {
                // Behind another PATH it is looked for elsewhere.
                Some((name, value)) if name != "PATH" && is_plain(name) => {
                    Some(value).filter(|value| !value.contains(SHELL))?;
                }
                _ => return Some(word).filter(|word| is_plain(word)),
            },
        }
    }
}

/// What a shell does not take as it stands.
const SHELL: [char; 13] = [
    '"', '\'', '\\', '$', '`', ';', '&', '|', '(', ')', '<', '>', '#',
];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_a_gate_is_behind_what_only_prepares_it() {
        for (gate, program) in [
            ("make test", Some("make")),
            ("./check.sh", None),
            ("CI=1 RUST_LOG= cargo test", Some("cargo")),
            ("cd web && npm test", Some("npm")),
            ("cd web && ./test", None),
            ("env CI=1 timeout 60s pytest -q", Some("pytest")),
            ("time make", Some("make")),
            ("CI=1", None),
            ("", None),
            // What cannot be told is let pass.
            ("PATH=bin:$PATH tool", None),
            ("A=\"b c\" tool", None),
            ("A=$(tool) other", None),
            ("cd \"a b\" && tool", None),
            ("cd web; tool", None),
            ("env -i tool", None),
            ("timeout -k 5 60 tool", None),
            ("(tool)", None),
            ("! tool", None),
            ("$TOOL x", None),
        ] {
            assert_eq!(program_of(gate), program, "{gate}");
        }
    }
}
