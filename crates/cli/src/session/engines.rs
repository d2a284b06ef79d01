//! Connections to the engine of workers on other machines. Its key is kept in a file that only this user
//! can read; config and journal have the address without it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use descartes_bridge::engine_command::complete;
use descartes_bridge::message::BridgeParty;
use descartes_bridge::program::PROGRAM_VARIABLE;
use descartes_bridge::{BridgeClient, COORDINATOR, Engine, EngineUrl, FleetProgram};
use descartes_core::host::{ConnectEngine, HostError};
use descartes_store::layout::StateRoot;
use descartes_store::secret_file;

use super::program::this_program;
use crate::error::CliError;
use crate::settings::command_context::CommandContext;

/// In the state folder: the engine that was started here.
const ENGINE_FOLDER: &str = "engine";
/// In the state folder: keys of other engines.
const KEYS_FOLDER: &str = "engine-keys";

/// The address of an engine and the pool behind it.
fn parse(text: &str) -> Result<(EngineUrl, Option<&str>), CliError> {
    let (address, pool) = match text.split_once('#') {
        Some((address, pool)) => (address, Some(pool)),
        None => (text, None),
    };
    let url = address.parse().map_err(|error| {
        CliError::usage(format!("{error}"), "e.g. --workers nats://127.0.0.1:4222")
    })?;
    match pool {
        Some("") => Err(CliError::usage(
            "no pool behind the # in the address of the engine",
            "omit the #, or name the pool",
        )),
        pool => Ok((url, pool)),
    }
}

/// Whoever it is that has the key: the address alone finds it again.
fn key_file(root: &StateRoot, url: &EngineUrl) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let address = EngineUrl {
        name: None,
        key: None,
        ..url.clone()
    };
    let name: String = address.to_string().chars().map(plain).collect();
    root.path().join(KEYS_FOLDER).join(name)
}

/// What was typed behind `--workers`.
pub struct WorkersAddress {
    pub url: EngineUrl,
    /// The pool behind it.
    pub pool: Option<String>,
}

impl WorkersAddress {
    /// Refuses one with a key that is no task loop's.
    pub fn parse(given: &str) -> Result<Self, CliError> {
        let (url, pool) = parse(given)?;
        if let (Some(name), true) = (&url.name, url.key.is_some())
            && name != COORDINATOR
        {
            let address = EngineUrl {
                name: None,
                key: None,
                ..url.clone()
            };
            return Err(CliError::usage(
                format!(
                    "that is the key of the worker {name}, and a task loop needs the coordinator's"
                ),
                format!(
                    "where the engine was started its address is enough: --workers {address}; elsewhere, the line \
                     in engine/coordinator.url of the state folder there"
                ),
            ));
        }
        let pool = pool.map(str::to_owned);
        Ok(Self { url, pool })
    }

    /// The address without its key.
    pub fn address(&self) -> String {
        match &self.pool {
            Some(pool) => format!("{}#{pool}", self.url),
            None => self.url.to_string(),
        }
    }

    /// Keeps its key apart; gives the address without it.
    pub fn keep_key(&self, root: &StateRoot) -> Result<String, CliError> {
        if self.url.key.is_some() {
            let file = key_file(root, &self.url);
            secret_file::write(&file, self.url.with_key().as_bytes()).map_err(|error| {
                CliError::refused(error.to_string(), "make room in the state folder")
            })?;
        }
        Ok(self.address())
    }
}

/// Adds the key that is known for an address.
fn with_key(url: EngineUrl, root: &StateRoot) -> EngineUrl {
    if url.key.is_some() {
        return url;
    }
    // Of the engine of this machine the right key is known, whatever was typed before.
    let url = complete(url, &root.path().join(ENGINE_FOLDER));
    if url.key.is_some() {
        return url;
    }
    let kept = secret_file::read(&key_file(root, &url)).ok().flatten();
    let kept = kept.and_then(|bytes| String::from_utf8(bytes).ok());
    kept.and_then(|text| text.parse().ok()).unwrap_or(url)
}

/// Connects coordinators in `dir`.
pub fn coordinator(ctx: &CommandContext, dir: &Path) -> ConnectEngine {
    let root = ctx.root(dir);
    let named = ctx.environment.raw(PROGRAM_VARIABLE).map(PathBuf::from);
    Arc::new(move |address| {
        let (url, _) = parse(address).map_err(refused)?;
        let url = with_key(url, &root);
        connect(&url, named.as_deref(), BridgeParty::Coordinator).map_err(refused)
    })
}

fn refused(error: CliError) -> HostError {
    HostError::Refused {
        message: error.to_string(),
        hint: error.hints().join("; "),
    }
}

/// Connects a worker; gives the address, too, which may have its name.
pub fn worker(given: &str, ctx: &CommandContext) -> Result<(EngineUrl, Arc<dyn Engine>), CliError> {
    let url: EngineUrl = given.parse().map_err(|error| {
        CliError::usage(format!("{error}"), "e.g. --engine nats://127.0.0.1:4222")
    })?;
    let url = with_key(url, &ctx.root(&ctx.here));
    let named = ctx.environment.raw(PROGRAM_VARIABLE).map(PathBuf::from);
    let engine = connect(&url, named.as_deref(), BridgeParty::Worker)?;
    Ok((url, engine))
}

fn connect(
    url: &EngineUrl,
    named: Option<&Path>,
    party: BridgeParty,
) -> Result<Arc<dyn Engine>, CliError> {
    let program = FleetProgram::find(named, &this_program()).map_err(|error| {
        let text = error.to_string();
        let again = "install descartes and descartes-fleet of one version";
        let (message, hint) = text.split_once("; ").unwrap_or((&text, again));
        CliError::refused(message, hint)
    })?;
    let client = BridgeClient::connect(&program, url, party).map_err(|error| {
        CliError::refused(
            format!("cannot connect to {url}: {error}"),
            format!("try it with: descartes engine check {url}"),
        )
    })?;
    Ok(Arc::new(client))
}
