//! Each call of the pipe, carried out.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use descartes_bridge::message::{
    AnnouncedWorker, BridgeCall, BridgeLine, BridgeParty, BridgeResult,
};
use descartes_bridge::{EngineError, FollowFrom, ServedRequest, subject};
use futures_util::StreamExt;
use tokio::task::AbortHandle;

use super::pipe::LineOutput;
use crate::nats::connection::Connection;
use crate::nats::follow::Follower;
use crate::nats::{objects, offers, streams, values};

pub struct CallHandler {
    connection: Connection,
    party: BridgeParty,
    output: LineOutput,
    subscriptions: Mutex<HashMap<u64, AbortHandle>>,
}

impl CallHandler {
    pub fn new(connection: Connection, party: BridgeParty, output: LineOutput) -> Self {
        Self {
            connection,
            party,
            output,
            subscriptions: Mutex::new(HashMap::new()),
        }
    }

    pub async fn make(&self, id: u64, call: BridgeCall) {
        match self.carry_out(id, call).await {
            Ok(result) => self.output.done(id, result),
            Err(error) => self.output.failed(id, error),
        }
    }

    pub fn unsubscribe(&self, subscription: u64) {
        if let Some(task) = self.lock().remove(&subscription) {
            task.abort();
        }
    }

    async fn carry_out(&self, id: u64, call: BridgeCall) -> Result<BridgeResult, EngineError> {
        let connection = &self.connection;
        match call {
            BridgeCall::Put {
                subject,
                expect,
                ttl_ms,
                value,
            } => {
                let ttl = ttl_ms.map(Duration::from_millis);
                self.put(&subject, expect, ttl, value).await
            }
            BridgeCall::Get { subject } => {
                let entry = values::get(connection, &subject).await?;
                Ok(BridgeResult::Entry(entry))
            }
            BridgeCall::Follow { filter, from } => self.follow(id, &filter, from).await,
            BridgeCall::Offer {
                to,
                message_id,
                value,
            } => nothing(offers::offer(connection, &to, &message_id, value).await),
            BridgeCall::Pull {
                from,
                count,
                wait_ms,
            } => {
                let wait = Duration::from_millis(wait_ms);
                let pulled = offers::pull(connection, &from, count, wait).await?;
                Ok(BridgeResult::Offers(pulled))
            }
            BridgeCall::Ack { token } => nothing(offers::ack(connection, &token).await),
            BridgeCall::GiveBack { token } => nothing(offers::give_back(connection, &token).await),
            BridgeCall::ClearOffers { of } => nothing(offers::clear(connection, &of).await),
            BridgeCall::AppendEvent {
                subject,
                message_id,
                value,
            } => values::append_event(connection, &subject, &message_id, value)
                .await
                .map(BridgeResult::Sequence),
            BridgeCall::Request {
                subject,
                body,
                timeout_ms,
            } => {
                let timeout = Duration::from_millis(timeout_ms);
                let answer = connection.ask(&subject, None, Bytes::from(body), timeout);
                Ok(BridgeResult::Body(answer.await?.payload.to_vec()))
            }
            BridgeCall::Serve { subject } => self.serve(id, subject).await,
            BridgeCall::Answer { token, body } => {
                let sent = connection.client.publish(token, Bytes::from(body)).await;
                nothing(sent.map_err(|error| EngineError::Other(error.to_string())))
            }
            BridgeCall::PutObject { name, file } => {
                nothing(objects::put(connection, &name, &file).await)
            }
            BridgeCall::GetObject { name, file } => {
                nothing(objects::get(connection, &name, &file).await)
            }
            BridgeCall::DeleteObject { name } => nothing(objects::delete(connection, &name).await),
            BridgeCall::Announce {
                worker,
                expect,
                value,
                ttl_ms,
            } => {
                let subject = subject::worker(&worker);
                let ttl = Some(Duration::from_millis(ttl_ms));
                self.put(&subject, expect, ttl, value).await
            }
            BridgeCall::Workers => self.workers().await,
            BridgeCall::Connect { .. } | BridgeCall::Unsubscribe { .. } => {
                Err(EngineError::Other("connected already".to_owned()))
            }
        }
    }

    /// Where the engine lost its disk while the connection lasted, a coordinator makes the streams and tries again.
    async fn put(
        &self,
        subject: &str,
        expect: Option<u64>,
        ttl: Option<Duration>,
        value: Vec<u8>,
    ) -> Result<BridgeResult, EngineError> {
        let stored = values::put(&self.connection, subject, expect, ttl, value.clone()).await;
        let stored = match stored {
            Err(EngineError::NoResponders) if self.party == BridgeParty::Coordinator => {
                streams::ensure(&self.connection).await?;
                values::put(&self.connection, subject, expect, ttl, value).await
            }
            stored => stored,
        };
        stored.map(BridgeResult::Sequence)
    }

    async fn follow(
        &self,
        id: u64,
        filter: &str,
        from: FollowFrom,
    ) -> Result<BridgeResult, EngineError> {
        let follower = Follower::start(self.connection.clone(), filter, from).await?;
        let output = self.output.clone();
        let task = tokio::spawn(follower.run(move |delivery| {
            output.line(&BridgeLine::Delivered {
                subscription: id,
                delivery,
            });
            true
        }));
        self.lock().insert(id, task.abort_handle());
        Ok(BridgeResult::Nothing)
    }

    async fn serve(&self, id: u64, subject: String) -> Result<BridgeResult, EngineError> {
        let client = self.connection.client.clone();
        let mut refusals = self.connection.refusals.subscribe();
        let subscribed = client.subscribe(subject.clone()).await;
        let mut requests = subscribed.map_err(|error| EngineError::Other(error.to_string()))?;
        // The server has it, or has refused it, when it answers what is sent after it.
        let flushed = client.flush().await;
        flushed.map_err(|error| EngineError::Other(error.to_string()))?;
        self.connection.round_trip().await;
        while let Ok(text) = refusals.try_recv() {
            if text.contains(&format!("\"{subject}\"")) {
                return Err(EngineError::Refused(text));
            }
        }
        let output = self.output.clone();
        let task = tokio::spawn(async move {
            while let Some(message) = requests.next().await {
                let Some(reply) = message.reply else { continue };
                let request = ServedRequest {
                    token: reply.to_string(),
                    subject: message.subject.to_string(),
                    body: message.payload.to_vec(),
                };
                output.line(&BridgeLine::Served {
                    subscription: id,
                    request,
                });
            }
        });
        self.lock().insert(id, task.abort_handle());
        Ok(BridgeResult::Nothing)
    }

    async fn workers(&self) -> Result<BridgeResult, EngineError> {
        let follower =
            Follower::start(self.connection.clone(), "worker.*", FollowFrom::Start).await?;
        let entries = follower.read_stored().await?;
        let worker = |entry: descartes_bridge::SubjectEntry| {
            let name = subject::name(entry.subject.strip_prefix("worker.")?);
            let value = entry.value()?.to_vec();
            Some(AnnouncedWorker { name, value })
        };
        let workers = entries.into_iter().filter_map(worker).collect();
        Ok(BridgeResult::Workers(workers))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, AbortHandle>> {
        self.subscriptions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn nothing(done: Result<(), EngineError>) -> Result<BridgeResult, EngineError> {
    done.map(|()| BridgeResult::Nothing)
}
