//! The folder of a trial.

use std::path::{Path, PathBuf};

use crate::commands::new_folder;
use crate::error::{CliError, at};

/// A folder of its own, with the work in one part and the loop's state in another.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn make(temp: &Path) -> Result<Self, CliError> {
        let scratch = Self(new_folder(temp, "descartes-agents-test")?);
        let work = scratch.work();
        std::fs::create_dir(&work).map_err(at("make", &work))?;
        Ok(scratch)
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
