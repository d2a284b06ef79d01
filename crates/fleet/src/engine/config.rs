//! The server's config file, made anew from the setup whenever somebody joins or leaves.

use std::path::Path;

use descartes_bridge::subject;
use serde_json::{Value, json};

use super::parties::{ClusterSetup, EngineSetup};

/// Where servers of a cluster meet where no port is named.
pub const DEFAULT_CLUSTER_PORT: u16 = 6222;

/// As text; the server's format takes JSON.
pub fn render(setup: &EngineSetup, folder: &Path) -> String {
    let at = |name: &str| folder.join(name).display().to_string();
    let mut users = vec![json!({ "nkey": setup.coordinator })];
    users.extend(setup.workers.iter().map(
        |worker| json!({ "nkey": worker.public, "permissions": worker_permissions(&worker.name) }),
    ));
    let mut config = json!({
        "server_name": "descartes",
        "host": setup.host,
        "port": setup.port,
        "pid_file": at("server.pid"),
        "log_file": at("server.log"),
        "logfile_size_limit": 16 * 1024 * 1024,
        "logfile_max_num": 3,
        "max_payload": 8 * 1024 * 1024,
        "max_connections": 100_000,
        "write_deadline": "10s",
        "ping_interval": "15s",
        "jetstream": {
            "store_dir": at("data"),
            // What was confirmed is on the disk.
            "sync_interval": "always",
            "max_memory_store": 256_u64 << 20,
            "max_file_store": 64_u64 << 30,
        },
        "authorization": { "timeout": 10, "users": users },
    });
    let tls = setup.pin.as_ref().map(|_| {
        json!({
            "cert_file": at("certificate.pem"),
            "key_file": at("certificate.key"),
            "timeout": 5,
        })
    });
    if let Some(tls) = &tls {
        config["tls"] = tls.clone();
    }
    if let Some(cluster) = &setup.cluster {
        config["server_name"] = json!(format!("descartes-{}", setup.advertised));
        // What clients are told of the other servers is what they were told of this one.
        config["client_advertise"] = json!(place(&setup.advertised, setup.port));
        config["cluster"] = render_cluster(setup, cluster);
        if let Some(mut tls) = tls {
            // All of them have this one certificate, and accept no other.
            tls["ca_file"] = tls["cert_file"].clone();
            tls["verify"] = json!(true);
            config["cluster"]["tls"] = tls;
        }
    }
    let lines = config.as_object().into_iter().flatten();
    lines
        .map(|(name, value)| format!("{name}: {value}\n"))
        .collect()
}

pub(super) fn place(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

/// How the server meets those of its cluster.
fn render_cluster(setup: &EngineSetup, cluster: &ClusterSetup) -> Value {
    const USER: &str = "server";
    let password = &cluster.password;
    let is_own = |server: &&(String, u16)| server.0 == setup.advertised;
    let port = cluster.servers.iter().find(is_own).map(|own| own.1);
    let others = cluster.servers.iter().filter(|server| !is_own(server));
    let routes = others
        .map(|(host, port)| format!("nats-route://{USER}:{password}@{}", place(host, *port)))
        .collect::<Vec<_>>();
    json!({
        "name": "descartes",
        "host": setup.host,
        "port": port.unwrap_or(DEFAULT_CLUSTER_PORT),
        "authorization": { "user": USER, "password": password, "timeout": 5 },
        "routes": routes,
    })
}

/// What the key of a worker allows: to take offers, hold tasks, write its own events, be commanded.
fn worker_permissions(name: &str) -> Value {
    let name = subject::word(name);
    let publish = [
        "task.*.*.*".to_owned(),
        format!("ev.*.{name}.*"),
        format!("worker.{name}"),
        "git.>".to_owned(),
        "$JS.API.STREAM.INFO.TASKS".to_owned(),
        "$JS.API.STREAM.MSG.GET.TASKS".to_owned(),
        "$JS.API.CONSUMER.CREATE.TASKS.*.task.>".to_owned(),
        "$JS.API.CONSUMER.CREATE.OFFERS.*.offer.*.*".to_owned(),
        "$JS.API.CONSUMER.MSG.NEXT.OFFERS.*".to_owned(),
        format!("$JS.API.CONSUMER.CREATE.DIRECT.{name}.direct.{name}"),
        format!("$JS.API.CONSUMER.MSG.NEXT.DIRECT.{name}"),
        "$JS.API.DIRECT.GET.GIT.git.>".to_owned(),
        // What it sends to itself tells it that the server has read everything before.
        format!("_INBOX.{name}.>"),
        // Acknowledgements have their stream in the third or the fifth word.
        "$JS.ACK.OFFERS.>".to_owned(),
        "$JS.ACK.*.*.OFFERS.>".to_owned(),
        format!("$JS.ACK.DIRECT.{name}.>"),
        format!("$JS.ACK.*.*.DIRECT.{name}.>"),
    ];
    let subscribe = [
        format!("_INBOX.{name}.>"),
        format!("ctl.*.{name}.*"),
        format!("log.*.{name}.*"),
        format!("jrn.*.{name}.*"),
        format!("wctl.{name}"),
    ];
    json!({
        "publish": { "allow": publish },
        "subscribe": { "allow": subscribe },
        // One answer to each command that came to it.
        "allow_responses": { "max": 1, "expires": "5m" },
    })
}

#[cfg(test)]
mod tests {
    use super::super::parties::WorkerKey;
    use super::*;

    #[test]
    fn a_worker_may_not_offer_delete_or_speak_for_another() {
        let setup = EngineSetup {
            host: "127.0.0.1".to_owned(),
            port: 4222,
            advertised: "127.0.0.1".to_owned(),
            pin: None,
            coordinator: "UC".to_owned(),
            cluster: None,
            workers: vec![WorkerKey {
                name: "w.1".to_owned(),
                public: "UW".to_owned(),
            }],
        };
        let text = render(&setup, Path::new("/e"));
        assert!(text.contains("\"sync_interval\":\"always\"") && !text.contains("tls"));
        let allowed = worker_permissions("w.1")["publish"]["allow"].clone();
        let allowed: Vec<&str> = allowed
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let may = |subject: &str| {
            allowed
                .iter()
                .any(|filter| subject::matches(filter, subject))
        };
        assert!(may("task.l.t.1") && may("ev.l.w%2E1.c") && may("worker.w%2E1"));
        for refused in [
            "ev.l.w2.c",
            "offer.any.claude",
            "direct.w2",
            "worker.w2",
            "$JS.API.STREAM.DELETE.TASKS",
            "$JS.API.STREAM.PURGE.TASKS",
            "$JS.API.STREAM.CREATE.X",
            "$JS.API.CONSUMER.DELETE.OFFERS.any@claude",
            "$JS.API.CONSUMER.MSG.NEXT.DIRECT.w2",
            "ctl.l.w2.c",
        ] {
            assert!(!may(refused), "{refused}");
        }
    }

    #[test]
    fn servers_of_a_cluster_know_each_other() {
        let setup = EngineSetup {
            host: "0.0.0.0".to_owned(),
            port: 4222,
            advertised: "b".to_owned(),
            pin: Some("ab".repeat(32)),
            coordinator: "UC".to_owned(),
            cluster: Some(ClusterSetup {
                servers: vec![
                    ("a".to_owned(), 6222),
                    ("b".to_owned(), 6333),
                    ("::1".to_owned(), 6222),
                ],
                password: "secret".to_owned(),
            }),
            workers: Vec::new(),
        };
        let text = render(&setup, Path::new("/e"));
        let line = text.lines().find(|line| line.starts_with("cluster: "));
        let cluster: Value = serde_json::from_str(&line.unwrap()["cluster: ".len()..]).unwrap();
        assert_eq!(cluster["port"], 6333);
        assert_eq!(
            cluster["routes"],
            json!([
                "nats-route://server:secret@a:6222",
                "nats-route://server:secret@[::1]:6222"
            ])
        );
        assert_eq!(cluster["tls"]["ca_file"], "/e/certificate.pem");
        assert!(text.contains("server_name: \"descartes-b\""), "{text}");
        let hosts = setup.url("127.0.0.1", "w", String::new()).hosts;
        let hosts: Vec<&str> = hosts.iter().map(|(host, _)| host.as_str()).collect();
        assert_eq!(hosts, ["127.0.0.1", "a", "::1"]);
    }
}
