//! Where loops may be started: in folders that had one before, and below those that were named.

use std::path::PathBuf;

use axum::http::StatusCode;
use descartes_client::{Loops, Scope};

use crate::reply::RequestFailure;

/// The folders below which loops may be started, besides those that had one.
#[derive(Clone, Debug, Default)]
pub struct StartRules {
    pub below: Vec<PathBuf>,
}

impl StartRules {
    /// The folder as it really is; refused where nothing allows it.
    pub fn check(&self, loops: &Loops, folder: &str) -> Result<PathBuf, RequestFailure> {
        let real = std::fs::canonicalize(folder).map_err(|error| {
            let message = format!("cannot use {folder}: {error}");
            RequestFailure::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                message,
                "name a folder of this machine",
            )
        })?;
        let below = |allowed: &PathBuf| {
            std::fs::canonicalize(allowed).is_ok_and(|allowed| real.starts_with(allowed))
        };
        match self.below.iter().any(below) || known(loops)?.contains(&real) {
            true => Ok(real),
            false => Err(RequestFailure::new(
                StatusCode::FORBIDDEN,
                format!("no loop was started in {} before", real.display()),
                "start the first one in a terminal, or serve with --project DIR",
            )),
        }
    }
}

/// The folders of the loops of this user, the newest first; those of tasks are ours.
pub fn known(loops: &Loops) -> Result<Vec<PathBuf>, RequestFailure> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for found in loops.list(&Scope::All)? {
        let folder = &found.meta().working_dir;
        if found.parent().is_none() && !folders.contains(folder) && folder.is_dir() {
            folders.push(folder.clone());
        }
    }
    Ok(folders)
}
