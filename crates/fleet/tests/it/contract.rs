//! The real engine keeps the same contract as the one in memory.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use descartes_bridge::contract::{Provider, clauses};
use descartes_bridge::message::BridgeParty;
use descartes_bridge::{BridgeClient, Engine, EngineUrl};

use crate::started_engine::{StartedEngine, connect};

struct Real {
    engine: StartedEngine,
    tokens: Mutex<HashMap<String, EngineUrl>>,
}

impl Provider for Real {
    fn coordinator(&self) -> Arc<dyn Engine> {
        self.engine.coordinator()
    }

    fn worker(&self, name: &str) -> Arc<dyn Engine> {
        let mut tokens = self.tokens.lock().unwrap();
        let url = tokens
            .entry(name.to_owned())
            .or_insert_with(|| self.engine.token(name));
        let client: BridgeClient = connect(url, BridgeParty::Worker).unwrap();
        Arc::new(client)
    }

    fn pass(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn folder(&self) -> &Path {
        self.engine.folder.path()
    }
}

#[test]
fn the_real_engine_keeps_the_contract_with_a_workers_key() {
    let Some(engine) = StartedEngine::start("the contract of the real engine") else {
        return;
    };
    let real = Real {
        engine,
        tokens: Mutex::new(HashMap::new()),
    };
    for (promise, clause) in clauses() {
        if let Err(broken) = clause(&real) {
            panic!("{promise}: {broken}");
        }
    }
}
