//! The folder of a trial.

use std::path::{Path, PathBuf};

use crate::error::{CliError, at};

/// A folder of its own, with the work in one part and the loop's state in another.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn make(temp: &Path) -> Result<Self, CliError> {
        for number in 1..10_000 {
            let dir = temp.join(format!("descartes-agents-test-{number}"));
            match std::fs::create_dir(&dir) {
                Ok(()) => {
                    let scratch = Self(dir);
                    let work = scratch.work();
                    std::fs::create_dir(&work).map_err(at("make", &work))?;
                    return Ok(scratch);
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(at("make", &dir)(error)),
            }
        }
        Err(at("make a folder in", temp)(std::io::Error::other(
            "no name is left",
        )))
    }

    pub fn dir(&self) -> &Path {
        &self.0
    }

    /// Where the agent works.
    pub fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    /// Everything went well: nobody needs to look into it.
    pub fn remove(self) {
        // A folder that stays in the temporary directory hurts nobody.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
