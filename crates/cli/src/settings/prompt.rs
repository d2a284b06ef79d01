//! The task: given, read from a file at every iteration, or read once from standard input.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use descartes_kernel::config::check_prompt;

use descartes_store::config::{Setting, Source};
use descartes_store::safe_open;

use super::command_context::CommandContext;
use crate::commands::init::is_untouched_prompt;
use crate::error::CliError;

/// Stands for standard input.
const STDIN: &str = "-";

/// The task as the loop is given it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Its text, where it does not stand in a file.
    pub prompt: String,
    /// The file that is read at every iteration.
    pub file: Option<PathBuf>,
}

impl Task {
    fn of(prompt: String) -> Result<Self, CliError> {
        refuse_template(&prompt, "the prompt")?;
        Ok(Self { prompt, file: None })
    }
}

/// An agent that is given the template of `init` makes up a task of its own.
fn refuse_template(text: &str, name: &str) -> Result<(), CliError> {
    match is_untouched_prompt(text) {
        true => Err(CliError::refused(
            format!("{name} is still the template that `descartes init` wrote: it tells no task"),
            "write what should be done below its heading `# Task`, then start again",
        )),
        false => Ok(()),
    }
}

/// Takes `--prompt`, else the file; `folder` is what the file's path is relative to.
pub fn task(prompt: Option<&str>, file: Option<&Path>, folder: &Path) -> Result<Task, CliError> {
    match (prompt, file) {
        (Some(prompt), _) => Task::of(prompt.to_owned()),
        (None, Some(file)) if file.as_os_str() == STDIN => Task::of(from_stdin()?),
        (None, Some(file)) => {
            let file = folder.join(file);
            read_text("the prompt file", &file).and_then(|text| check(&text, &file))?;
            // Where it is a link, the file behind it is meant, whatever becomes of the link.
            let file = safe_open::fix_user_file(&file).unwrap_or(file);
            Ok(Task {
                prompt: String::new(),
                file: Some(file),
            })
        }
        (None, None) => Ok(Task::default()),
    }
}

/// What a path of a setting is relative to: in a config file to the project.
pub fn folder_of<'a, T>(setting: &Setting<T>, ctx: &'a CommandContext, dir: &'a Path) -> &'a Path {
    match setting.source {
        Source::Flag(_) => &ctx.here,
        _ => dir,
    }
}

fn from_stdin() -> Result<String, CliError> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut bytes);
    let text = read.and_then(|_| String::from_utf8(bytes).map_err(io::Error::other));
    text.map_err(|error| {
        CliError::usage(
            format!("cannot read the prompt from standard input: {error}"),
            "pass UTF-8 text, for example: descartes loop start --prompt-file - < PROMPT.md",
        )
    })
}

/// A file that must be readable now, so that a slip is told before anything starts.
pub fn read_text(what: &str, file: &Path) -> Result<String, CliError> {
    safe_open::read_user_text(file).map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::NotFound => "there is no such file".to_owned(),
            io::ErrorKind::InvalidData => "it is not UTF-8".to_owned(),
            _ => error.to_string(),
        };
        CliError::usage(
            format!("cannot read {what} {}: {why}", file.display()),
            "name an existing text file",
        )
    })
}

fn check(text: &str, file: &Path) -> Result<(), CliError> {
    if text.trim().is_empty() {
        return Err(CliError::usage(
            format!("the prompt file {} is empty", file.display()),
            "write the task in it, or pass it with --prompt",
        ));
    }
    refuse_template(text, &file.display().to_string())?;
    Ok(check_prompt(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_checked_now_and_read_later() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        std::fs::write(here.join("p.md"), "do it").unwrap();
        std::fs::write(here.join("empty.md"), " \n").unwrap();
        std::fs::write(here.join("nul.md"), "a\0b").unwrap();
        std::fs::write(here.join("latin.md"), b"\xe4").unwrap();
        let got = task(None, Some(Path::new("p.md")), here).unwrap();
        assert_eq!(
            got,
            Task {
                prompt: String::new(),
                file: Some(here.join("p.md"))
            }
        );
        assert_eq!(
            task(Some("x"), Some(Path::new("p.md")), here)
                .unwrap()
                .prompt,
            "x"
        );
        for (bad, words) in [
            ("none.md", "no such file"),
            ("empty.md", "is empty"),
            ("nul.md", "NUL"),
            ("latin.md", "not UTF-8"),
        ] {
            let error = task(None, Some(Path::new(bad)), here).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
            assert_eq!(error.exit_code(), 64);
        }
    }
}
