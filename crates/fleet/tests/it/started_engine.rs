//! An engine of a test's own, on a free port, ended with the test.

use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use descartes_bridge::engine_command::{EngineCommand, EngineReport, own_engine};
use descartes_bridge::message::BridgeParty;
use descartes_bridge::{BridgeClient, EngineError, EngineUrl, FleetProgram};

/// For what must come about.
pub const WAIT: std::time::Duration = std::time::Duration::from_secs(20);

pub struct StartedEngine {
    pub folder: tempfile::TempDir,
    server: PathBuf,
}

impl StartedEngine {
    /// On the loopback address, with the keys and the config that users get.
    pub fn start(what: &str) -> Option<Self> {
        Self::start_on(what, &format!("127.0.0.1:{}", free_port()), None)
    }

    pub fn start_on(what: &str, listen: &str, host: Option<&str>) -> Option<Self> {
        let engine = Self {
            folder: tempfile::tempdir().unwrap(),
            server: descartes_testkit::nats::server_or_skip(what)?,
        };
        engine.start_again(Some(listen), host);
        Some(engine)
    }

    pub fn start_again(&self, listen: Option<&str>, host: Option<&str>) {
        let report = run(&EngineCommand::Start {
            folder: self.path(),
            listen: listen.map(str::to_owned),
            host: host.map(str::to_owned),
            cluster: Vec::new(),
            nats_server: Some(self.server.clone()),
        });
        assert!(
            matches!(report, EngineReport::Started { already: false, .. }),
            "{report:?}"
        );
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("engine")
    }

    pub fn coordinator_url(&self) -> EngineUrl {
        own_engine(&self.path()).unwrap()
    }

    pub fn coordinator(&self) -> Arc<BridgeClient> {
        let url = self.coordinator_url();
        Arc::new(connect(&url, BridgeParty::Coordinator).unwrap())
    }

    /// A line for a new worker, as `join-token` prints it.
    pub fn token(&self, name: &str) -> EngineUrl {
        let report = run(&EngineCommand::JoinToken {
            folder: self.path(),
            name: name.to_owned(),
        });
        match report {
            EngineReport::Token { engine, .. } => engine.parse().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    pub fn pid(&self) -> Option<u32> {
        let folder = self.path();
        match run(&EngineCommand::Status { folder }) {
            EngineReport::Status(state) => state.pid,
            other => panic!("{other:?}"),
        }
    }

    pub fn kill(&self) {
        let pid = self.pid().unwrap();
        let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
        assert!(killed.unwrap().success());
        descartes_testkit::eventually("the engine is gone", crate::started_engine::WAIT, || {
            self.pid().is_none()
        });
    }

    pub fn stop(&self) -> EngineReport {
        run(&EngineCommand::Stop {
            folder: self.path(),
        })
    }
}

impl Drop for StartedEngine {
    fn drop(&mut self) {
        self.stop();
    }
}

pub fn fleet() -> FleetProgram {
    let program = Path::new(env!("CARGO_BIN_EXE_descartes-fleet"));
    FleetProgram::find(Some(program), program).unwrap()
}

pub fn connect(url: &EngineUrl, party: BridgeParty) -> Result<BridgeClient, EngineError> {
    BridgeClient::connect(&fleet(), url, party)
}

/// A command as `descartes engine` gives it.
pub fn run(command: &EngineCommand) -> EngineReport {
    let mut child = Command::new(fleet().path())
        .arg("engine")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = serde_json::to_string(command).unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
