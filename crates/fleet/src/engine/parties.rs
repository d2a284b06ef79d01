//! Who may connect: names and public keys. The secret part of a worker's key is nowhere but in its line.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use descartes_bridge::engine_command::COORDINATOR_FILE;
use descartes_bridge::{COORDINATOR, EngineUrl, Transport};
use nkeys::KeyPair;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::failure::EngineFailure;

const MAX_NAME_CHARS: usize = 64;

/// What was decided when the engine was started, and who may connect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineSetup {
    /// Where the server listens.
    pub host: String,
    pub port: u16,
    /// By which name workers reach it.
    pub advertised: String,
    /// The SHA-256 of its certificate, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    pub coordinator: String,
    #[serde(default)]
    pub workers: Vec<WorkerKey>,
    /// The servers that keep everything together with this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterSetup>,
}

/// The same on each server of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterSetup {
    /// All of them, where they reach each other.
    pub servers: Vec<(String, u16)>,
    /// What they know each other by.
    pub password: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerKey {
    pub name: String,
    pub public: String,
}

/// Where one server of a cluster is. In a file of its own: the setup is copied from one server to the others.
#[derive(Debug, Serialize, Deserialize)]
struct ServerPlace {
    host: String,
    port: u16,
    advertised: String,
}

const PLACE_FILE: &str = "machine.json";

/// The folder of an engine.
#[derive(Debug, Clone)]
pub struct EngineFolder(PathBuf);

impl EngineFolder {
    pub fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Makes the folder, for this user alone.
    pub fn make(&self) -> Result<(), EngineFailure> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.0)
            .map_err(EngineFailure::at(&self.0))
    }

    pub fn read(&self) -> Result<Option<EngineSetup>, EngineFailure> {
        let Some(mut setup) = self.read_file::<EngineSetup>("setup.json")? else {
            return Ok(None);
        };
        if let Some(own) = self.read_file::<ServerPlace>(PLACE_FILE)? {
            (setup.host, setup.port, setup.advertised) = (own.host, own.port, own.advertised);
        }
        Ok(Some(setup))
    }

    fn read_file<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, EngineFailure> {
        let path = self.path(name);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| {
                EngineFailure::new(format!("{}: {error}", path.display()))
                    .hint("delete the file to make new keys: workers then need new lines")
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(EngineFailure::at(&path)(error)),
        }
    }

    pub fn write(&self, setup: &EngineSetup) -> Result<(), EngineFailure> {
        if setup.cluster.is_some() {
            let place = ServerPlace {
                host: setup.host.clone(),
                port: setup.port,
                advertised: setup.advertised.clone(),
            };
            self.write_file(PLACE_FILE, &place)?;
        }
        self.write_file("setup.json", setup)
    }

    fn write_file(&self, name: &str, content: &impl Serialize) -> Result<(), EngineFailure> {
        let text = serde_json::to_string_pretty(content)
            .map_err(|error| EngineFailure::new(error.to_string()))?;
        write_private(&self.path(name), text.as_bytes())
    }

    /// The coordinator's address with its key.
    pub fn coordinator_url(&self) -> Result<EngineUrl, EngineFailure> {
        let path = self.path(COORDINATOR_FILE);
        let text = fs::read_to_string(&path).map_err(EngineFailure::at(&path))?;
        text.trim()
            .parse()
            .map_err(|error| EngineFailure::new(format!("{}: {error}", path.display())))
    }

    pub fn write_coordinator_url(&self, url: &EngineUrl) -> Result<(), EngineFailure> {
        let path = self.path(COORDINATOR_FILE);
        write_private(&path, format!("{}\n", url.with_key()).as_bytes())
    }
}

impl EngineSetup {
    /// The names of the other servers of the cluster.
    pub fn others(&self) -> Vec<String> {
        let servers = self.cluster.iter().flat_map(|cluster| &cluster.servers);
        let others = servers.filter(|(host, _)| *host != self.advertised);
        others.map(|(host, _)| host.clone()).collect()
    }

    /// The address for one party: this server first, then those of its cluster.
    pub fn url(&self, host: &str, name: &str, key: String) -> EngineUrl {
        let hosts = std::iter::once(host.to_owned()).chain(self.others());
        EngineUrl {
            hosts: hosts.map(|host| (host, self.port)).collect(),
            transport: match &self.pin {
                Some(pin) => Transport::PinnedTls(pin.clone()),
                None => Transport::Plain,
            },
            name: Some(name.to_owned()),
            key: Some(key),
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.workers.iter().any(|worker| worker.name == name)
    }
}

/// A key pair: its public and its secret part.
pub fn new_key() -> Result<(String, String), EngineFailure> {
    let pair = KeyPair::new_user();
    let seed = pair
        .seed()
        .map_err(|error| EngineFailure::new(format!("cannot make a key: {error}")))?;
    Ok((pair.public_key(), seed))
}

/// A name that can be part of a subject and of a line to paste.
pub fn check_name(name: &str) -> Result<(), EngineFailure> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let good = !name.is_empty()
        && name.chars().count() <= MAX_NAME_CHARS
        && name.chars().all(plain)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !good {
        return Err(EngineFailure::new(format!(
            "`{name}` cannot be the name of a worker: letters, digits, `-`, `_` and `.`, at most {MAX_NAME_CHARS}"
        ))
        .hint("descartes engine join-token worker-1"));
    }
    match name {
        COORDINATOR => Err(EngineFailure::new(format!(
            "`{COORDINATOR}` is the name of the coordinator's own key"
        ))
        .hint("descartes engine join-token worker-1")),
        _ => Ok(()),
    }
}

/// Replaces a file at once, readable for this user alone.
pub fn write_private(path: &Path, content: &[u8]) -> Result<(), EngineFailure> {
    let part = path.with_extension("part");
    let write = || {
        // One that a killed command left has perhaps other rights.
        match fs::remove_file(&part) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&part)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&part, path)
    };
    write().map_err(EngineFailure::at(path))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn names_of_workers_are_plain() {
        for good in ["worker-7", "gpu.1", "A_b"] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "a b",
            "*",
            "coordinator",
            "-x",
            "a>b",
            "ä",
            &"x".repeat(65),
        ] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_are_for_this_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write_private(&path, b"1").unwrap();
        write_private(&path, b"2").unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(
            (mode & 0o777, fs::read(&path).unwrap()),
            (0o600, b"2".to_vec())
        );
    }

    #[test]
    fn a_new_key_is_one_that_an_address_takes() {
        let (public, seed) = new_key().unwrap();
        assert!(public.starts_with('U'));
        let url = format!("nats://w@h:1?key={seed}");
        assert_eq!(url.parse::<EngineUrl>().unwrap().with_key(), url);
    }
}
