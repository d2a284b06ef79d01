//! The files that the prompts of a loop are made of: read again for every iteration, so that editing them
//! steers the loop, and waited for while somebody saves them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use descartes_kernel::config::{IterativeLoopConfig, check_prompt};
use descartes_kernel::prompt_files::{FileRemedy, FileRole, FileTrouble, remedy};
use descartes_plans::spec::SpecFile;
use descartes_store::safe_open::{Refusal, read_fixed_text};

use super::error::HostError;

/// What they say.
pub(super) struct FileTexts {
    /// The task, given or from its file.
    pub(super) task: String,
    pub(super) specs: Vec<SpecFile>,
    /// Files whose last known text this is, each with what is wrong with it.
    pub(super) stale: Vec<String>,
}

/// The files of a loop, as they were read last.
#[derive(Default)]
pub(super) struct PromptFiles {
    last: BTreeMap<PathBuf, String>,
    /// Since when one of them cannot be used.
    pub(super) since: Option<Duration>,
    pub(super) warned: bool,
}

/// A file, and what is to be said of it where it cannot be used.
struct NamedFile<'a> {
    path: PathBuf,
    role: FileRole,
    /// As people call it, and the flag that names another one.
    words: (&'a str, &'a str),
}

impl PromptFiles {
    /// Reads all of them; `None`: one has to be looked at again.
    pub(super) fn read(
        &mut self,
        config: &IterativeLoopConfig,
        dir: &Path,
        waited: Duration,
    ) -> Result<Option<FileTexts>, HostError> {
        let mut stale = Vec::new();
        let task = match &config.prompt_file {
            None => config.prompt.clone(),
            Some(file) => {
                let named = NamedFile {
                    path: dir.join(file),
                    role: FileRole::Prompt,
                    words: ("the prompt file", "--prompt-file"),
                };
                match self.text(&named, waited, &mut stale)? {
                    Some(text) => text,
                    None => return Ok(None),
                }
            }
        };
        let mut specs = Vec::new();
        for file in &config.spec_files {
            let named = NamedFile {
                path: dir.join(file),
                role: FileRole::Spec,
                words: ("the spec file", ""),
            };
            let Some(text) = self.text(&named, waited, &mut stale)? else {
                return Ok(None);
            };
            let name = file.display().to_string();
            specs.push(SpecFile { name, text });
        }
        Ok(Some(FileTexts { task, specs, stale }))
    }

    fn text(
        &mut self,
        named: &NamedFile<'_>,
        waited: Duration,
        stale: &mut Vec<String>,
    ) -> Result<Option<String>, HostError> {
        let (trouble, message) = match named.read() {
            Ok(text) => {
                self.last.insert(named.path.clone(), text.clone());
                return Ok(Some(text));
            }
            Err(trouble) => trouble,
        };
        let last = self.last.get(&named.path);
        match remedy(named.role, trouble, waited, last.is_some()) {
            FileRemedy::LookAgain => Ok(None),
            FileRemedy::TakeEmpty => {
                self.last.remove(&named.path);
                Ok(Some(String::new()))
            }
            FileRemedy::UseLast => {
                stale.push(message);
                Ok(last.cloned())
            }
            FileRemedy::GiveUp => Err(HostError::Prompt(message)),
        }
    }
}

impl NamedFile<'_> {
    fn read(&self) -> Result<String, (FileTrouble, String)> {
        let text = read_fixed_text(&self.path).map_err(|error| self.unreadable(&error))?;
        let (what, _) = self.words;
        if text.trim().is_empty() {
            let message = format!("{what} {} is empty", self.path.display());
            return Err((FileTrouble::Empty, message));
        }
        if self.role == FileRole::Prompt {
            let no_text = |message| (FileTrouble::Unreadable, message);
            check_prompt(&text).map_err(|error| no_text(error.message))?;
        }
        Ok(text)
    }

    /// One that became a link is not followed: it lies in the agent's reach.
    fn unreadable(&self, error: &io::Error) -> (FileTrouble, String) {
        let ((what, flag), file) = (self.words, self.path.display());
        let Some(refusal) = Refusal::of(error) else {
            let message = format!("cannot read {what} {file}: {error}");
            return (FileTrouble::Unreadable, message);
        };
        let other = match flag {
            "" => String::new(),
            flag => format!(", or name another with {flag} FILE"),
        };
        let message = format!(
            "{what} {file} was replaced after the loop started: {refusal}; restore the file and \
             continue with `descartes loop resume`{other}"
        );
        (FileTrouble::Replaced, message)
    }
}
