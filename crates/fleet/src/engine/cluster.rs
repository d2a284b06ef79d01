//! Servers that keep everything together.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use descartes_bridge::EngineUrl;
use tokio::net::TcpStream;

use super::config::DEFAULT_CLUSTER_PORT;
use super::failure::EngineFailure;
use super::parties::{ClusterSetup, EngineSetup, new_key};
use crate::nats::connection::Connection;
use crate::nats::streams;

/// How long servers of a cluster that just met may take to agree on one that leads.
const ELECTION_TIMEOUT: Duration = Duration::from_secs(12);

/// How long another server of a cluster may take to accept a connection.
const MEET_TIMEOUT: Duration = Duration::from_secs(2);

const CLUSTER_HINT: &str =
    "e.g. descartes engine start --listen 0.0.0.0:4222 --host a --cluster a,b,c";

/// The servers of a cluster as they were typed; their password stays.
pub fn cluster_of(
    typed: &[String],
    before: Option<&ClusterSetup>,
) -> Result<ClusterSetup, EngineFailure> {
    let mut servers = Vec::new();
    for text in typed {
        let wrong =
            || EngineFailure::new(format!("`{text}` is no server of a cluster")).hint(CLUSTER_HINT);
        let url: EngineUrl = format!("nats://{text}").parse().map_err(|_| wrong())?;
        let [(host, port)] = url.hosts.as_slice() else {
            return Err(wrong());
        };
        let names_port = text.ends_with(&format!(":{port}"));
        let port = if names_port {
            *port
        } else {
            DEFAULT_CLUSTER_PORT
        };
        servers.push((host.clone(), port));
    }
    let password = match before {
        Some(before) => before.password.clone(),
        None => new_key()?.1,
    };
    Ok(ClusterSetup { servers, password })
}

/// A cluster of two would store nothing when one is gone, as would half of four.
pub fn check_cluster(cluster: &ClusterSetup, own: &str) -> Result<(), EngineFailure> {
    let hosts: BTreeSet<&str> = cluster.servers.iter().map(|it| it.0.as_str()).collect();
    if !matches!(hosts.len(), 3 | 5) || hosts.len() != cluster.servers.len() {
        return Err(EngineFailure::new(
            "a cluster has three or five servers, each on a machine of its own",
        )
        .hint(CLUSTER_HINT));
    }
    match hosts.contains(own) {
        true => Ok(()),
        false => Err(EngineFailure::new(format!(
            "this machine is reached as `{own}`, which is none of its cluster: {}",
            hosts.into_iter().collect::<Vec<_>>().join(", ")
        ))
        .hint("say which it is: start it with that name behind --host")),
    }
}

/// Makes what is missing. A server of a cluster can only when enough of them run: those that do not, where it
/// cannot.
pub async fn make_streams(
    connection: &Connection,
    setup: &EngineSetup,
) -> Result<Vec<String>, EngineFailure> {
    let Some(cluster) = &setup.cluster else {
        streams::ensure(connection).await?;
        return Ok(Vec::new());
    };
    let until = Instant::now() + ELECTION_TIMEOUT;
    loop {
        let Err(error) = streams::ensure(connection).await else {
            return Ok(Vec::new());
        };
        let away = unreachable(cluster, &setup.advertised).await;
        let is_majority = 2 * (cluster.servers.len() - away.len()) > cluster.servers.len();
        // Those that have just met may not know how many they are, and have nobody who leads.
        let is_waiting = is_majority && (error.is_temporary() || away.is_empty());
        match (is_waiting && Instant::now() < until, away.is_empty()) {
            (true, _) => tokio::time::sleep(Duration::from_millis(250)).await,
            (false, false) => return Ok(away),
            (false, true) => return Err(error.into()),
        }
    }
}

/// The other servers of a cluster that take no connection.
async fn unreachable(cluster: &ClusterSetup, own: &str) -> Vec<String> {
    let mut away = Vec::new();
    for (host, port) in cluster.servers.iter().filter(|(host, _)| host != own) {
        let connected = TcpStream::connect((host.as_str(), *port));
        let answer = tokio::time::timeout(MEET_TIMEOUT, connected).await;
        if !matches!(answer, Ok(Ok(_))) {
            away.push(host.clone());
        }
    }
    away
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_a_cluster() {
        let typed = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        let cluster = |text: &str| cluster_of(&typed(text), None).map_err(|error| error.message);
        let three = cluster("a,b:6333,[::1]:4222").unwrap();
        let servers = [("a", 6222), ("b", 6333), ("::1", 4222)];
        assert_eq!(
            three.servers,
            servers.map(|(host, port)| (host.to_owned(), port))
        );
        assert_eq!(check_cluster(&three, "b"), Ok(()));
        assert!(
            check_cluster(&three, "d")
                .unwrap_err()
                .message
                .contains("`d`")
        );
        for wrong in ["a,b", "a,b,b", "a,b,c,d"] {
            let wrong = cluster(wrong).unwrap();
            assert!(check_cluster(&wrong, "a").is_err(), "{wrong:?}");
        }
        assert!(cluster("a,b:x,c").is_err() && cluster("a,,c").is_err());
        let again = cluster_of(&typed("a,b,c"), Some(&three)).unwrap();
        assert_eq!(again.password, three.password);
    }
}
