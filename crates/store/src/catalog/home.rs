//! State files that lie elsewhere than their loop says: a project was moved or copied.

use super::{LoopMeta, read_entry};
use crate::layout::{PROJECT_FOLDER, STATE_FILE, StateRoot};
use crate::safe_open::{self, quoted};
use crate::state_file::Loaded;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where a state file lies, against where its loop says that it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lies {
    /// Where it belongs, as far as can be told.
    AtHome,
    /// Elsewhere, and its own place is empty: the project was moved.
    Moved(Home),
    /// Elsewhere, and something is in its own place: the project was copied.
    Copied(Home),
}

/// Where a loop says that it lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    pub loop_id: String,
    /// Its state file.
    pub state_file: PathBuf,
    /// Where it works, where that is known.
    pub working_dir: Option<PathBuf>,
}

/// Tells where the state file at `path`, as it was loaded, belongs.
pub fn lies(root: &StateRoot, path: &Path, loaded: &Loaded) -> Lies {
    let config = &loaded.state.config;
    let Some(id) = &loaded.state.loop_id else {
        return Lies::AtHome;
    };
    let meta: Option<LoopMeta> = root
        .loop_dir(id)
        .ok()
        .and_then(read_entry)
        .map(|entry| entry.meta);
    let home = match meta {
        Some(meta) => Home {
            loop_id: id.clone(),
            state_file: meta.state_file,
            working_dir: Some(meta.working_dir),
        },
        None => match &config.state_file {
            Some(file) if file.is_absolute() => Home {
                loop_id: id.clone(),
                state_file: file.clone(),
                working_dir: config.working_directory.clone(),
            },
            _ => return Lies::AtHome,
        },
    };
    if home.state_file == path || is_same_file(&home.state_file, path) {
        return Lies::AtHome;
    }
    match safe_open::is_there(&home.state_file) {
        true => Lies::Copied(home),
        false => Lies::Moved(home),
    }
}

/// One file under two names: a folder that is mounted twice.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let number = |path: &Path| {
        let meta = safe_open::metadata(path).ok()?;
        (meta.is_file() && meta.nlink() == 1).then(|| (meta.dev(), meta.ino()))
    };
    number(one).is_some_and(|found| Some(found) == number(other))
}

impl Lies {
    /// Why nothing is done with a loop that was asked for by the state file at `path`, and what to
    /// type instead; `None` where it is at home.
    pub fn refusal(&self, path: &Path) -> Option<(String, String)> {
        let shown = path.display();
        let here = resume_here(path);
        let place = |home: &Home| match &home.working_dir {
            Some(dir) => format!("loop {} works in {}", home.loop_id, dir.display()),
            None => format!("loop {} has {}", home.loop_id, home.state_file.display()),
        };
        match self {
            Self::AtHome => None,
            Self::Moved(home) => Some((
                format!(
                    "{shown} was moved: {}, and its state file {} is gone",
                    place(home),
                    home.state_file.display()
                ),
                format!("to continue it in this directory: {here}"),
            )),
            Self::Copied(home) => Some((
                format!("{shown} is a copy: {}", place(home)),
                format!(
                    "to start an independent loop in this directory: {here}; to use the other \
                     one, name it: {}",
                    home.loop_id
                ),
            )),
        }
    }
}

/// What takes up the loop of the state file at `path` where it lies now.
pub fn resume_here(path: &Path) -> String {
    format!("descartes loop resume --here{}", flag_for(path))
}

fn flag_for(path: &Path) -> String {
    let default = Path::new(PROJECT_FOLDER).join(STATE_FILE);
    match path.ends_with(default) {
        true => String::new(),
        false => format!(" --state-file {}", quoted(path)),
    }
}
