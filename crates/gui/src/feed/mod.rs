//! The world outside the window: journals and logs are read, commands sent, loops started.
//! Everything here may take its time, and runs on threads of its own.

mod act;
mod follow;
mod pace;
mod read;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use descartes_client::{ClientError, EnvPaths, LoopHandle, Loops, Query};

pub use act::{agents, open_folder, program, send, start};
pub use follow::{fleet, follow};
pub use read::{history, log};

/// All loops of this user, and the ones that were asked for.
#[derive(Clone, Debug)]
pub struct Desk {
    loops: Loops,
    handles: Arc<Mutex<HashMap<String, LoopHandle>>>,
}

impl Desk {
    /// The loops that a command in `here` sees.
    pub fn of_process(here: &Path) -> Self {
        Self::at(Loops::new(&EnvPaths::from_process(), here))
    }

    /// These loops.
    pub fn at(loops: Loops) -> Self {
        Self {
            loops,
            handles: Arc::default(),
        }
    }

    /// One loop, by its id.
    pub fn handle(&self, id: &str) -> Result<LoopHandle, ClientError> {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = handles.get(id) {
            return Ok(handle.clone());
        }
        let handle = self.loops.find(&Query::Named(id.to_owned()))?;
        handles.insert(id.to_owned(), handle.clone());
        Ok(handle)
    }
}

/// An error in one line, with what to do about it.
pub fn words(error: &ClientError) -> String {
    match error.hint() {
        Some(hint) => format!("{error} — {hint}"),
        None => error.to_string(),
    }
}
