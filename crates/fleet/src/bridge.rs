//! The bridge: calls from a pipe, each answered when it is done. It ends when its input is closed.

mod calls;
mod pipe;

use std::sync::Arc;
use std::time::{Duration, Instant};

use descartes_bridge::message::{
    BridgeCall, BridgeLine, BridgeParty, BridgeResult, PROTOCOL_VERSION,
};
use descartes_bridge::{EngineError, EngineUrl};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

use crate::nats::connection::{Connection, LinkState};
use crate::nats::streams;
use calls::CallHandler;
use pipe::{LineOutput, PipeInput};

/// How long servers of a cluster may take to agree on one that leads, before it is said that they have none.
const ELECTION_TIMEOUT: Duration = Duration::from_secs(8);
const RETRY_DELAY: Duration = Duration::from_millis(250);

pub fn run() -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let (mut input, output, writer) = pipe::open();
    runtime.block_on(async {
        if let Some((connection, party)) = connect(&mut input, &output).await {
            serve(connection, party, &mut input, &output).await;
        }
    });
    // What is still under way belongs to nobody.
    runtime.shutdown_background();
    drop(output);
    writer.finish();
    Ok(())
}

/// Until the first call has led to a connection; each failure is answered.
async fn connect(
    input: &mut UnboundedReceiver<PipeInput>,
    output: &LineOutput,
) -> Option<(Connection, BridgeParty)> {
    while let Some(PipeInput { id, call }) = input.recv().await {
        let BridgeCall::Connect {
            engine,
            party,
            protocol,
            version,
        } = call
        else {
            output.failed(id, EngineError::NotConnected);
            continue;
        };
        match open(&engine, party, protocol, &version).await {
            Ok(connection) => {
                output.line(&BridgeLine::Link {
                    up: true,
                    reason: String::new(),
                });
                let result = BridgeResult::Connected {
                    protocol: PROTOCOL_VERSION,
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    server: connection.server_version(),
                };
                output.done(id, result);
                return Some((connection, party));
            }
            Err(error) => output.failed(id, error),
        }
    }
    None
}

async fn open(
    engine: &str,
    party: BridgeParty,
    protocol: u32,
    version: &str,
) -> Result<Connection, EngineError> {
    if protocol != PROTOCOL_VERSION {
        return Err(EngineError::Other(format!(
            "descartes {version} speaks another version of the bridge's protocol than descartes-fleet {}: \
             install both of one version",
            env!("CARGO_PKG_VERSION")
        )));
    }
    let url: EngineUrl = engine
        .parse()
        .map_err(|error| EngineError::Other(format!("{error}")))?;
    let connection = Connection::open(&url).await.map_err(EngineError::Other)?;
    if party == BridgeParty::Coordinator {
        let until = Instant::now() + ELECTION_TIMEOUT;
        while let Err(error) = streams::ensure(&connection).await {
            if !error.is_temporary() || Instant::now() > until {
                return Err(error);
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }
    Ok(connection)
}

async fn serve(
    connection: Connection,
    party: BridgeParty,
    input: &mut UnboundedReceiver<PipeInput>,
    output: &LineOutput,
) {
    let calls = Arc::new(CallHandler::new(connection.clone(), party, output.clone()));
    tokio::spawn(watch_link(connection, party, output.clone()));
    while let Some(PipeInput { id, call }) = input.recv().await {
        if let BridgeCall::Unsubscribe { subscription } = call {
            calls.unsubscribe(subscription);
            continue;
        }
        let calls = Arc::clone(&calls);
        tokio::spawn(async move { calls.make(id, call).await });
    }
}

/// Tells of every change of the connection. A coordinator makes the streams anew where they are gone
/// before it says that the connection is back.
async fn watch_link(connection: Connection, party: BridgeParty, output: LineOutput) {
    let mut link = connection.link.clone();
    while link.changed().await.is_ok() {
        let state = link.borrow_and_update().clone();
        let mut missing = match state.up && party == BridgeParty::Coordinator {
            true => streams::ensure(&connection).await.err(),
            false => None,
        };
        if let Some(error) = &missing {
            let reason = error.to_string();
            output.line(&BridgeLine::Link { up: false, reason });
        }
        // Servers of a cluster that lost one of them have nobody who leads for a while.
        while missing.as_ref().is_some_and(EngineError::is_temporary) && !is_changed(&link) {
            tokio::time::sleep(RETRY_DELAY).await;
            missing = streams::ensure(&connection).await.err();
        }
        if missing.is_none() {
            let LinkState { up, reason, .. } = state;
            output.line(&BridgeLine::Link { up, reason });
        }
    }
}

fn is_changed(link: &watch::Receiver<LinkState>) -> bool {
    // An error means that nothing changes any more.
    link.has_changed().unwrap_or(true)
}
