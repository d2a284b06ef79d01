//! What `descartes engine …` asks of `descartes-fleet engine`: one JSON object in, one out.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::url::EngineUrl;

/// In the folder of an engine that was started here: its address with the coordinator's key.
pub const COORDINATOR_FILE: &str = "coordinator.url";

/// A command for an engine. `folder` is where keys, config and data of one that is started here lie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum EngineCommand {
    Start {
        folder: PathBuf,
        /// `HOST:PORT`; the last one, or the loopback address.
        listen: Option<String>,
        /// The name or address by which workers reach it.
        host: Option<String>,
        /// All servers of its cluster, itself included: `HOST` or `HOST:PORT`, where they reach each other.
        /// Empty: as before.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        cluster: Vec<String>,
        /// The program, where it is named.
        nats_server: Option<PathBuf>,
    },
    Status {
        folder: PathBuf,
    },
    Stop {
        folder: PathBuf,
    },
    JoinToken {
        folder: PathBuf,
        name: String,
    },
    Revoke {
        folder: PathBuf,
        name: String,
    },
    Check {
        /// With its key.
        engine: String,
    },
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum EngineReport {
    Started {
        address: String,
        pid: u32,
        server: String,
        already: bool,
        /// Other servers of its cluster without which nothing can be stored.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        waits_for: Vec<String>,
    },
    Status(EngineState),
    Stopped {
        was_running: bool,
    },
    Token {
        name: String,
        /// With the key: shown once.
        engine: String,
        loopback: bool,
        /// Other servers of its cluster: they do not know the key yet.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        others: Vec<String>,
    },
    Revoked {
        name: String,
        running: bool,
        /// Other servers of its cluster: they still accept the key.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        others: Vec<String>,
    },
    Checked {
        address: String,
        server: String,
        /// Median time of a write that is on the disk, in microseconds.
        write_us: u64,
        /// After how long the marker of a lease of one second came.
        marker_ms: u64,
    },
    Failed {
        message: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hints: Vec<String>,
    },
}

/// An engine that was started here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineState {
    pub running: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Who has a worker's key.
    pub keys: Vec<String>,
    /// Workers that say they are there.
    pub workers: Vec<String>,
    /// It runs, and takes no writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<EngineTrouble>,
}

/// Why an engine that runs cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineTrouble {
    pub message: String,
    pub hint: String,
}

/// Adds what is missing in an address, where it is the engine that was started here: its key and its
/// certificate's hash.
#[must_use]
pub fn complete(url: EngineUrl, engine_folder: &Path) -> EngineUrl {
    if url.key.is_some() {
        return url;
    }
    match own_engine(engine_folder) {
        Some(own) if own.is_same_engine(&url) => own,
        _ => url,
    }
}

/// The engine that was started here, with the coordinator's key.
#[must_use]
pub fn own_engine(engine_folder: &Path) -> Option<EngineUrl> {
    let text = std::fs::read_to_string(engine_folder.join(COORDINATOR_FILE)).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_engine_needs_no_key_in_its_address() {
        let folder = tempfile::tempdir().unwrap();
        let key = "SUAEL6GG2L2HIF7DUGZJGMRUFKXELGGYFMHF76UO2AYBG3K4YLWR3FKC2Q";
        let own = format!("nats://coordinator@127.0.0.1:4222?key={key}");
        std::fs::write(folder.path().join(COORDINATOR_FILE), &own).unwrap();
        let asked = |text: &str| complete(text.parse().unwrap(), folder.path()).with_key();
        assert_eq!(asked("nats://localhost"), own);
        assert_eq!(asked("nats://127.0.0.1:4223"), "nats://127.0.0.1:4223");
        let other = format!("nats://w@localhost:4222?key={key}");
        assert_eq!(asked(&other), other);
    }
}
