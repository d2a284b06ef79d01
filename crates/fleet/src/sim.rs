//! `descartes-fleet sim`: many workers in one process, each with a connection of its own, and a coordinator,
//! with the protocol of real ones and no agents. For measures (`cargo xtask fleet`).

mod coordinator;
mod order;
mod worker;

use std::io::Read;

use descartes_bridge::EngineUrl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::nats::connection::Connection;

/// What is simulated.
#[derive(Debug, Deserialize)]
#[serde(tag = "sim", rename_all = "snake_case")]
enum Simulation {
    /// Workers: connected, at work from the next line on, until the input is closed.
    Workers {
        engine: String,
        /// The names begin with it.
        name: String,
        count: usize,
    },
    /// Tasks until all are done.
    Coordinator(coordinator::SimPlan),
    /// Who leads the stream of the tasks in a cluster, and whether the others have all of it.
    Leader { engine: String },
}

/// Reads what to simulate (one line), and returns the report.
pub fn run() -> Result<String, String> {
    // Each connection is an open file.
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_err(|error| error.to_string())?;
    setrlimit(Resource::RLIMIT_NOFILE, limit.1, limit.1).map_err(|error| error.to_string())?;
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    read.map_err(|error| error.to_string())?;
    let simulation = serde_json::from_str(&line).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let report = runtime.block_on(async {
        match simulation {
            Simulation::Workers {
                engine,
                name,
                count,
            } => {
                let Cues { begin, end } = Cues::listen();
                worker::run(&engine, &name, count, begin, end).await
            }
            Simulation::Coordinator(plan) => coordinator::run(plan).await,
            Simulation::Leader { engine } => leader(&engine).await,
        }
    });
    runtime.shutdown_background();
    report.map(|report| format!("{report}\n"))
}

async fn leader(engine: &str) -> Result<String, String> {
    let url: EngineUrl = engine.parse().map_err(|error| format!("{error}"))?;
    let connection = Connection::open(&url).await?;
    let info = connection.api::<Value>("STREAM.INFO.TASKS", &Value::Null);
    // Nobody leads, or not yet.
    let info = info.await.unwrap_or_default();
    Ok(info["cluster"].to_string())
}

/// What comes on the input after the first line.
struct Cues {
    /// A second line: begin.
    begin: oneshot::Receiver<()>,
    /// Its end.
    end: oneshot::Receiver<()>,
}

impl Cues {
    fn listen() -> Self {
        let (begun, begin) = oneshot::channel();
        let (ended, end) = oneshot::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            // Whatever comes of it: at the end nobody is there any more.
            if std::io::stdin().read_line(&mut line).is_ok() {
                begun.send(()).ok();
            }
            let mut rest = Vec::new();
            drop(std::io::stdin().read_to_end(&mut rest));
            ended.send(()).ok();
        });
        Self { begin, end }
    }
}
