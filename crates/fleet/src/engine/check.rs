//! Whether an engine does what leases need: refuses an old number, leaves a marker; and how fast its disk is.

use std::time::{Duration, Instant};

use descartes_bridge::{
    COORDINATOR, Delivery, EngineError, EngineUrl, EntryBody, FollowFrom, subject,
};
use tokio::sync::mpsc::unbounded_channel;

use super::failure::EngineFailure;
use crate::nats::connection::Connection;
use crate::nats::follow::Follower;
use crate::nats::{streams, values};

/// How many writes are measured.
const WRITES: usize = 21;

/// A lease of a second has its marker within this time.
const MARKER_TIMEOUT: Duration = Duration::from_millis(2800);

pub struct Checked {
    pub server: String,
    pub write: Duration,
    pub marker: Duration,
}

pub async fn check(url: &EngineUrl) -> Result<Checked, EngineFailure> {
    let connection = Connection::open(url).await?;
    let tried = try_out(&connection, url).await;
    tried.map_err(|failure| match failure.hints.is_empty() {
        true => failure.hint("on the machine where it runs: descartes engine status"),
        false => failure,
    })
}

async fn try_out(connection: &Connection, url: &EngineUrl) -> Result<Checked, EngineFailure> {
    let worker = url.name.as_deref().is_some_and(|name| name != COORDINATOR);
    if !worker {
        streams::ensure(connection).await?;
    }
    let id = connection.client.new_inbox();
    let id = id.rsplit('.').next().unwrap_or("check");
    let subject = subject::task("engine-check", id, 1);
    let follower = Follower::start(connection.clone(), &subject, FollowFrom::Start).await?;
    let (sender, mut seen) = unbounded_channel();
    tokio::spawn(follower.run(move |delivery| sender.send(delivery).is_ok()));
    let (write, mut last) = measure_writes(connection, &subject).await?;
    let refused = values::put(connection, &subject, Some(0), None, b"second".to_vec()).await;
    if refused != Err(EngineError::Conflict) {
        return Err(EngineFailure::new(
            "the engine took a value that did not expect what was there: leases would not be safe with it",
        ));
    }
    let lease = Some(Duration::from_secs(1));
    last = values::put(connection, &subject, Some(last), lease, b"lease".to_vec()).await?;
    let leased = Instant::now();
    let marker = async {
        while let Some(delivery) = seen.recv().await {
            if let Delivery::Entry(entry) = delivery
                && entry.seq > last
                && entry.body == EntryBody::Marker
            {
                return;
            }
        }
    };
    if tokio::time::timeout(MARKER_TIMEOUT, marker).await.is_err() {
        // One whose disk is full leaves none either.
        values::put(connection, &subject, None, None, b"last".to_vec()).await?;
        return Err(EngineFailure::new(
            "the engine left no marker when a lease ran out: its stream TASKS has other settings than descartes makes",
        )
        .hint("use an engine of its own: descartes engine start"));
    }
    Ok(Checked {
        server: connection.server_version(),
        write,
        marker: leased.elapsed(),
    })
}

/// The median time of a write, and the last number.
async fn measure_writes(
    connection: &Connection,
    subject: &str,
) -> Result<(Duration, u64), EngineFailure> {
    let (mut times, mut last) = (Vec::new(), 0);
    for _ in 0..WRITES {
        let begun = Instant::now();
        last = values::put(connection, subject, Some(last), None, b"write".to_vec()).await?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    Ok((times[WRITES / 2], last))
}
