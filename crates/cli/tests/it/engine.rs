//! `descartes engine` with the real descartes-fleet and a real nats-server.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use descartes_testkit::World;
use descartes_testkit::world::Finished;

/// A world in which the engine is ended with the test.
struct EngineWorld {
    world: World,
    server: PathBuf,
    port: u16,
}

impl EngineWorld {
    fn new(what: &str) -> Option<Self> {
        let server = descartes_testkit::nats::server_or_skip(what)?;
        let fleet = descartes_testkit::descartes().with_file_name("descartes-fleet");
        assert!(fleet.is_file(), "hint: cargo build -p descartes-fleet");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Some(Self {
            world: World::in_memory(),
            server,
            port: listener.local_addr().unwrap().port(),
        })
    }

    fn engine(&self, words: &[&str]) -> Finished {
        let mut command = self.world.command(descartes_testkit::descartes());
        command.arg("engine").args(words);
        command.env("DESCARTES_NATS_SERVER", &self.server);
        self.world.run(command)
    }

    fn start(&self) -> Finished {
        self.engine(&["start", "--listen", &format!("127.0.0.1:{}", self.port)])
    }
}

impl Drop for EngineWorld {
    fn drop(&mut self) {
        self.engine(&["stop"]);
    }
}

#[test]
fn an_engine_is_started_checked_joined_revoked_and_stopped() {
    let Some(engine) = EngineWorld::new("descartes engine") else {
        return;
    };
    let none = engine.engine(&["status"]);
    assert!(none.stdout().contains("no engine was started here"));
    let started = engine.start();
    assert_eq!(started.code(), Some(0), "{}", started.stderr());
    let address = format!("nats://127.0.0.1:{}", engine.port);
    assert!(
        started
            .stdout()
            .contains(&format!("runs at {address} (nats-server "))
    );
    assert!(engine.start().stdout().contains("runs already"));
    // What a running engine cannot become is refused, and what to type is said.
    for other in [
        ["--listen", "127.0.0.1:1"],
        ["--host", "else"],
        ["--cluster", "a,b,c"],
    ] {
        let refused = engine.engine(&[&["start"], &other[..]].concat());
        assert_eq!(refused.code(), Some(65), "{other:?}: {}", refused.stdout());
        let said = refused.stderr();
        assert!(
            said.contains(other[0]) && said.contains("descartes engine stop"),
            "{said}"
        );
    }
    let checked = engine.engine(&["check", &address, "--json"]);
    let report: serde_json::Value = serde_json::from_str(&checked.stdout()).unwrap();
    assert_eq!(report["address"], address, "{report}");
    assert!(report["write_us"].as_u64().unwrap() > 0);
    assert!(engine.engine(&["check"]).stdout().contains("left a marker"));

    let token = engine.engine(&["join-token", "worker-7"]);
    let line = token.stdout();
    let url = line
        .trim()
        .strip_prefix("descartes worker --engine '")
        .unwrap();
    let url = url.strip_suffix('\'').unwrap();
    assert_eq!(line.lines().count(), 1);
    assert_eq!(engine.engine(&["check", url]).code(), Some(0));
    let again = engine.engine(&["join-token", "worker-7"]);
    assert_eq!(again.code(), Some(65));
    assert!(again.stderr().contains("descartes engine revoke worker-7"));
    let status = engine.engine(&["status", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status.stdout()).unwrap();
    assert_eq!(
        (&status["running"], &status["keys"][0]),
        (&true.into(), &"worker-7".into())
    );

    assert!(
        engine
            .engine(&["revoke", "worker-7"])
            .stdout()
            .contains("are cut")
    );
    let refused = engine.engine(&["check", url]);
    assert_eq!(refused.code(), Some(65));
    assert!(
        refused.stderr().contains("does not accept this key"),
        "{}",
        refused.stderr()
    );
    assert!(engine.engine(&["stop"]).stdout().contains("is stopped"));
    let gone = engine.engine(&["check"]);
    assert!(
        gone.stderr().contains("descartes engine start"),
        "{}",
        gone.stderr()
    );
    // The keys of before are taken up.
    assert_eq!(engine.engine(&["start"]).code(), Some(0));
    assert_eq!(engine.engine(&["check", &address]).code(), Some(0));
}

#[test]
fn keys_lie_in_the_state_folder_for_this_user_alone() {
    let Some(engine) = EngineWorld::new("the engine's keys") else {
        return;
    };
    assert_eq!(engine.start().code(), Some(0));
    let folder = engine.world.state().join("engine");
    let mode = |path: &PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for file in ["coordinator.url", "setup.json", "nats-server.conf"] {
        assert_eq!(mode(&folder.join(file)), 0o600, "{file}");
    }
}

#[test]
fn an_old_or_missing_server_is_refused_with_how_to_get_one() {
    let Some(mut engine) = EngineWorld::new("an old nats-server") else {
        return;
    };
    let script = "#!/bin/sh\necho 'nats-server: v2.9.10'\n";
    engine.server = engine.world.program("nats-server", script);
    let old = engine.start();
    assert_eq!(old.code(), Some(65));
    for said in ["is 2.9.10", "2.12 or newer", "Debian's package is too old"] {
        assert!(old.stderr().contains(said), "{}", old.stderr());
    }
    engine.server = PathBuf::from("/nowhere/nats-server");
    let missing = engine.start();
    assert!(
        missing.stderr().contains("DESCARTES_NATS_SERVER"),
        "{}",
        missing.stderr()
    );
    let port = engine.port.to_string();
    let nobody = engine.engine(&["check", &format!("nats://127.0.0.1:{port}")]);
    assert_eq!(nobody.code(), Some(65));
    assert!(
        nobody.stderr().contains("no engine answers at"),
        "{}",
        nobody.stderr()
    );
}

#[test]
fn a_machine_on_a_network_gets_tls_and_a_line_with_its_certificate() {
    let Some(engine) = EngineWorld::new("an engine with TLS") else {
        return;
    };
    let listen = format!("0.0.0.0:{}", engine.port);
    let started = engine.engine(&["start", "--listen", &listen, "--host", "localhost"]);
    assert!(
        started.stdout().contains("nats+tls://127.0.0.1:"),
        "{}",
        started.stderr()
    );
    let token = engine.engine(&["join-token", "w1"]).stdout();
    assert!(
        token.contains("nats+tls://w1@localhost:") && token.contains("&pin="),
        "{token}"
    );
    let url = token.split('\'').nth(1).unwrap();
    assert_eq!(engine.engine(&["check", url]).code(), Some(0));
    let wrong = url.split("&pin=").next().unwrap().to_owned() + "&pin=" + &"0".repeat(64);
    let refused = engine.engine(&["check", &wrong]);
    assert!(
        refused.stderr().contains("certificate"),
        "{}",
        refused.stderr()
    );
}
