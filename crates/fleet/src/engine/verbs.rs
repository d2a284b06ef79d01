//! Each verb of `descartes engine`.

use std::collections::BTreeSet;
use std::net::{IpAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use descartes_bridge::engine_command::{EngineCommand, EngineReport, EngineState, EngineTrouble};
use descartes_bridge::url::DEFAULT_PORT;
use descartes_bridge::{COORDINATOR, EngineUrl, FollowFrom, Transport, subject};

use super::cluster::{check_cluster, cluster_of, make_streams};
use super::failure::EngineFailure;
use super::parties::{
    ClusterSetup, EngineFolder, EngineSetup, WorkerKey, check_name, new_key, write_private,
};
use super::{certificate, check, config, server};
use crate::nats::connection::Connection;
use crate::nats::follow::Follower;
use crate::nats::values;

const START_TIMEOUT: Duration = Duration::from_secs(10);
const RELOAD_TIMEOUT: Duration = Duration::from_secs(5);
const CONFIG_FILE: &str = "nats-server.conf";
pub async fn carry_out(command: EngineCommand) -> Result<EngineReport, EngineFailure> {
    match command {
        EngineCommand::Start {
            folder,
            listen,
            host,
            cluster,
            nats_server,
        } => {
            let wanted = WantedSetup {
                listen,
                host,
                cluster,
            };
            start(&EngineFolder::new(folder), wanted, nats_server).await
        }
        EngineCommand::Status { folder } => status(&EngineFolder::new(folder)).await,
        EngineCommand::Stop { folder } => {
            let was_running = server::stop(&EngineFolder::new(folder))?;
            Ok(EngineReport::Stopped { was_running })
        }
        EngineCommand::JoinToken { folder, name } => {
            join_token(&EngineFolder::new(folder), &name).await
        }
        EngineCommand::Revoke { folder, name } => revoke(&EngineFolder::new(folder), &name),
        EngineCommand::Check { engine } => {
            let url: EngineUrl = engine
                .parse()
                .map_err(|error| EngineFailure::new(format!("{error}")))?;
            let checked = check::check(&url).await?;
            let whole = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
            Ok(EngineReport::Checked {
                address: shown_address(&url),
                server: checked.server,
                write_us: whole(checked.write.as_micros()),
                marker_ms: whole(checked.marker.as_millis()),
            })
        }
    }
}

async fn start(
    folder: &EngineFolder,
    wanted: WantedSetup,
    nats_server: Option<PathBuf>,
) -> Result<EngineReport, EngineFailure> {
    folder.make()?;
    if let Some(pid) = server::running(folder) {
        return already_running(folder, pid, &wanted).await;
    }
    let program = server::find(nats_server.as_deref())?;
    let setup = set_up(folder, wanted)?;
    if let Err(error) = TcpListener::bind((setup.host.as_str(), setup.port)) {
        return Err(EngineFailure::new(format!(
            "cannot listen on {}:{}: {error}",
            setup.host, setup.port
        ))
        .hint("another address: descartes engine start --listen 127.0.0.1:4223"));
    }
    write_config(folder, &setup)?;
    let pid = server::start(&program, folder)?;
    let url = folder.coordinator_url()?;
    let connection = connect_within(&own_server(&url), START_TIMEOUT).await;
    let connection = connection.map_err(|error| {
        let words = server::last_words(folder);
        let log = folder.path("server.log");
        EngineFailure::new(format!(
            "the engine did not come up: {error}; its log ends with: {words}"
        ))
        .hint(format!("the whole log: {}", log.display()))
    })?;
    Ok(EngineReport::Started {
        address: shown_address(&url),
        pid,
        server: connection.server_version(),
        already: false,
        waits_for: make_streams(&connection, &setup).await?,
    })
}

/// Has it read who may connect, which may have come from another server of its cluster.
async fn already_running(
    folder: &EngineFolder,
    pid: u32,
    wanted: &WantedSetup,
) -> Result<EngineReport, EngineFailure> {
    let setup = known_setup(folder)?;
    if let Some(other) = wanted.other_than(&setup)? {
        return Err(EngineFailure::new(format!(
            "the engine is already running, with another {other}: it listens on {}",
            config::place(&setup.host, setup.port)
        ))
        .hint("stop it first, its keys and data stay: descartes engine stop"));
    }
    let config = std::fs::read_to_string(folder.path(CONFIG_FILE)).unwrap_or_default();
    if config != config::render(&setup, &folder.path("")) {
        write_config(folder, &setup)?;
        server::reload(pid)?;
    }
    let url = folder.coordinator_url()?;
    let connection = connect_within(&own_server(&url), RELOAD_TIMEOUT).await?;
    Ok(EngineReport::Started {
        address: shown_address(&url),
        pid,
        server: connection.server_version(),
        already: true,
        waits_for: Vec::new(),
    })
}

/// The address of the server of this machine alone.
fn own_server(url: &EngineUrl) -> EngineUrl {
    let mut own = url.clone();
    own.hosts.truncate(1);
    own
}

/// As a person types it: what is missing is known on this machine.
fn shown_address(url: &EngineUrl) -> String {
    let transport = match url.transport {
        Transport::Plain => Transport::Plain,
        Transport::Tls | Transport::PinnedTls(_) => Transport::Tls,
    };
    let shown = EngineUrl {
        transport,
        name: None,
        key: None,
        hosts: url.hosts.clone(),
    };
    shown.to_string()
}

/// What was asked for; what was not stays.
struct WantedSetup {
    listen: Option<String>,
    host: Option<String>,
    cluster: Vec<String>,
}

impl WantedSetup {
    /// The flag that asks for something else than the engine has.
    fn other_than(&self, setup: &EngineSetup) -> Result<Option<&'static str>, EngineFailure> {
        let listen = self.listen.as_deref().map(parse_listen).transpose()?;
        let cluster = match self.cluster.as_slice() {
            [] => None,
            servers => Some(cluster_of(servers, setup.cluster.as_ref())?),
        };
        Ok(
            if listen.is_some_and(|it| it != (setup.host.clone(), setup.port)) {
                Some("--listen")
            } else if self.host.as_ref().is_some_and(|it| *it != setup.advertised) {
                Some("--host")
            } else if cluster.is_some() && cluster != setup.cluster {
                Some("--cluster")
            } else {
                None
            },
        )
    }
}

/// The setup of the last start, changed as asked; keys stay what they are.
fn set_up(folder: &EngineFolder, wanted: WantedSetup) -> Result<EngineSetup, EngineFailure> {
    let before = folder.read()?;
    let (listen_host, port) = match (wanted.listen.as_deref(), &before) {
        (Some(text), _) => parse_listen(text)?,
        (None, Some(before)) => (before.host.clone(), before.port),
        (None, None) => ("127.0.0.1".to_owned(), DEFAULT_PORT),
    };
    let kept_host = before
        .as_ref()
        .filter(|before| before.host == listen_host)
        .map(|before| before.advertised.clone());
    let advertised = match wanted.host.or(kept_host) {
        Some(host) => host,
        None => advertised_host(&listen_host)?,
    };
    let kept_cluster = before.as_ref().and_then(|before| before.cluster.clone());
    let cluster = match wanted.cluster.as_slice() {
        [] => kept_cluster.clone(),
        servers => Some(cluster_of(servers, kept_cluster.as_ref())?),
    };
    if let Some(cluster) = &cluster {
        check_cluster(cluster, &advertised)?;
    }
    let servers = |cluster: &Option<ClusterSetup>| cluster.as_ref().map(|it| it.servers.clone());
    let same_cluster = servers(&cluster) == servers(&kept_cluster);
    let (coordinator, seed) = match &before {
        Some(before) => {
            let url = folder.coordinator_url()?;
            (before.coordinator.clone(), url.key.unwrap_or_default())
        }
        None => new_key()?,
    };
    let kept_pin = before.as_ref().and_then(|before| before.pin.clone());
    let pin = match (is_loopback(&listen_host), kept_pin) {
        (true, _) => None,
        // Lines that were handed out stay valid.
        (false, Some(pin)) if same_cluster && folder.path("certificate.pem").is_file() => Some(pin),
        (false, _) => {
            let names = servers(&cluster)
                .into_iter()
                .flatten()
                .map(|(host, _)| host);
            let names: BTreeSet<String> = names.chain([advertised.clone()]).collect();
            Some(certificate::make(folder, names.into_iter().collect())?)
        }
    };
    let setup = EngineSetup {
        host: listen_host,
        port,
        advertised,
        pin,
        coordinator,
        workers: before.map(|before| before.workers).unwrap_or_default(),
        cluster,
    };
    let own = match is_unspecified(&setup.host) {
        true => "127.0.0.1",
        false => &setup.host,
    };
    folder.write_coordinator_url(&setup.url(own, COORDINATOR, seed))?;
    folder.write(&setup)?;
    Ok(setup)
}

async fn status(folder: &EngineFolder) -> Result<EngineReport, EngineFailure> {
    let setup = folder.read()?;
    let pid = server::running(folder);
    let url = folder.coordinator_url().ok();
    let keys = setup.iter().flat_map(|setup| &setup.workers);
    let mut state = EngineState {
        running: pid.is_some(),
        address: url.as_ref().map(shown_address),
        pid,
        server: None,
        keys: keys.map(|worker| worker.name.clone()).collect(),
        workers: Vec::new(),
        trouble: None,
    };
    if let (Some(_), Some(url)) = (pid, url) {
        let connection = Connection::open(&own_server(&url)).await?;
        state.server = Some(connection.server_version());
        let is_cluster = setup.is_some_and(|setup| setup.cluster.is_some());
        state.trouble = trouble(&connection, folder, is_cluster).await;
        let follower = Follower::start(connection, "worker.*", FollowFrom::Start).await;
        let workers = match follower {
            Ok(follower) => follower.read_stored().await?,
            // Most servers of its cluster do not run: nobody can say that it is there.
            Err(error) if error.is_temporary() => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        state.workers = workers
            .iter()
            .filter_map(|entry| entry.subject.strip_prefix("worker."))
            .map(subject::name)
            .collect();
        state.workers.sort();
    }
    Ok(EngineReport::Status(state))
}

/// Why an engine that runs takes no writes.
async fn trouble(
    connection: &Connection,
    folder: &EngineFolder,
    is_cluster: bool,
) -> Option<EngineTrouble> {
    // One value, which each status replaces.
    let subject = subject::task("engine-status", "", 1);
    let written = values::put(connection, &subject, None, None, b"status".to_vec());
    let error = written.await.err()?;
    let words = match server::last_words(folder).as_str() {
        "" => String::new(),
        words => format!("; its log ends with: {words}"),
    };
    let again = "descartes engine stop && descartes engine start (its keys and data stay, and workers come back to it)";
    Some(EngineTrouble {
        message: format!("it takes no writes: {error}{words}"),
        hint: match is_cluster {
            true => format!(
                "two of its three servers have to run; where the disk of one is full, free some space there, then: {again}"
            ),
            false => format!("where its disk is full, free some space; then: {again}"),
        },
    })
}

async fn join_token(folder: &EngineFolder, name: &str) -> Result<EngineReport, EngineFailure> {
    check_name(name)?;
    let mut setup = known_setup(folder)?;
    if setup.has(name) {
        return Err(EngineFailure::new(format!(
            "`{name}` has a key already; it was shown when it was made, and is kept nowhere here"
        ))
        .hint(format!("for a new one: descartes engine revoke {name}")));
    }
    let (public, seed) = new_key()?;
    setup.workers.push(WorkerKey {
        name: name.to_owned(),
        public,
    });
    folder.write(&setup)?;
    write_config(folder, &setup)?;
    let url = setup.url(&setup.advertised, name, seed);
    if let Some(pid) = server::running(folder) {
        server::reload(pid)?;
        // The line works when it is pasted.
        let own = EngineUrl {
            hosts: folder.coordinator_url()?.hosts,
            ..url.clone()
        };
        connect_within(&own_server(&own), RELOAD_TIMEOUT).await?;
    }
    Ok(EngineReport::Token {
        name: name.to_owned(),
        engine: url.with_key(),
        loopback: is_loopback(&setup.host) && setup.cluster.is_none(),
        others: setup.others(),
    })
}

fn revoke(folder: &EngineFolder, name: &str) -> Result<EngineReport, EngineFailure> {
    let mut setup = known_setup(folder)?;
    if !setup.has(name) {
        let known: Vec<&str> = setup
            .workers
            .iter()
            .map(|worker| worker.name.as_str())
            .collect();
        let known = match known.as_slice() {
            [] => "nobody has one".to_owned(),
            known => format!("these have one: {}", known.join(", ")),
        };
        return Err(EngineFailure::new(format!("`{name}` has no key: {known}"))
            .hint("descartes engine status"));
    }
    setup.workers.retain(|worker| worker.name != name);
    folder.write(&setup)?;
    write_config(folder, &setup)?;
    let pid = server::running(folder);
    if let Some(pid) = pid {
        server::reload(pid)?;
    }
    Ok(EngineReport::Revoked {
        name: name.to_owned(),
        running: pid.is_some(),
        others: setup.others(),
    })
}

fn known_setup(folder: &EngineFolder) -> Result<EngineSetup, EngineFailure> {
    folder.read()?.ok_or_else(|| {
        EngineFailure::new("no engine was started here").hint("descartes engine start")
    })
}

fn write_config(folder: &EngineFolder, setup: &EngineSetup) -> Result<(), EngineFailure> {
    let text = config::render(setup, &folder.path(""));
    write_private(&folder.path(CONFIG_FILE), text.as_bytes())
}

async fn connect_within(url: &EngineUrl, time: Duration) -> Result<Connection, String> {
    let until = Instant::now() + time;
    loop {
        match Connection::open(url).await {
            Ok(connection) => return Ok(connection),
            Err(error) if Instant::now() > until => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

fn parse_listen(text: &str) -> Result<(String, u16), EngineFailure> {
    let wrong = || {
        EngineFailure::new(format!("`{text}` is no address to listen on"))
            .hint("descartes engine start --listen 0.0.0.0:4222")
    };
    let url: EngineUrl = format!("nats://{text}").parse().map_err(|_| wrong())?;
    match url.hosts.as_slice() {
        [one] if url.name.is_none() && url.key.is_none() => Ok(one.clone()),
        _ => Err(wrong()),
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn is_unspecified(host: &str) -> bool {
    host.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified())
}

/// Where it listens, or this machine's name where that is everywhere.
fn advertised_host(listen: &str) -> Result<String, EngineFailure> {
    if !is_unspecified(listen) {
        return Ok(listen.to_owned());
    }
    let name = std::fs::read_to_string(Path::new("/proc/sys/kernel/hostname")).or_else(|_| {
        let output = std::process::Command::new("hostname").output()?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&output.stdout).into_owned())
    });
    match name.as_deref().map(str::trim) {
        Ok(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => Err(EngineFailure::new("this machine's name is unknown").hint(
            "say how workers reach it: start it with --listen 0.0.0.0 and the name behind --host",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_to_listen_on() {
        let parsed = |text| parse_listen(text).map_err(|error| error.message);
        assert_eq!(parsed("0.0.0.0"), Ok(("0.0.0.0".to_owned(), 4222)));
        assert_eq!(parsed("[::1]:5"), Ok(("::1".to_owned(), 5)));
        for wrong in ["", "a:b", "w@h", "a,b"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
        assert!(is_loopback("127.0.0.2") && !is_loopback("0.0.0.0") && is_unspecified("::"));
    }
}
