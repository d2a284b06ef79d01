//! Queues of offers: one durable consumer for each pool and agent, and one for each worker.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_nats::{HeaderMap, Message, StatusCode, Subscriber};
use bytes::Bytes;
use descartes_bridge::{EngineError, OfferTarget, PulledOffer, subject};
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::api::{ApiError, CONSUMER_NOT_FOUND, REQUEST_TIMEOUT};
use super::connection::Connection;

/// For so long an offer belongs to who took it. It is no lease: that is the task's own subject.
const ACK_WAIT: Duration = Duration::from_secs(10);

/// So long after the end of a pull its last word is waited for.
const PULL_SLACK: Duration = Duration::from_secs(1);

/// Offers of several queues that come within this time count as one answer.
const ARRIVED_TOGETHER: Duration = Duration::from_millis(2);

/// The consumers that are known to be there.
#[derive(Default)]
pub struct KnownQueues(Mutex<HashSet<String>>);

struct Queue {
    stream: &'static str,
    consumer: String,
    subject: String,
}

impl Queue {
    fn of(target: &OfferTarget) -> Self {
        match target {
            OfferTarget::Pool { pool, agent } => {
                let (pool, agent) = (subject::word(pool), subject::word(agent));
                Self {
                    stream: "OFFERS",
                    consumer: format!("{pool}@{agent}"),
                    subject: format!("offer.{pool}.{agent}"),
                }
            }
            OfferTarget::Worker { name } => {
                let name = subject::word(name);
                Self {
                    stream: "DIRECT",
                    subject: format!("direct.{name}"),
                    consumer: name,
                }
            }
        }
    }
}

pub async fn offer(
    connection: &Connection,
    to: &OfferTarget,
    message_id: &str,
    value: Vec<u8>,
) -> Result<(), EngineError> {
    let queue = Queue::of(to);
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Expected-Stream", queue.stream);
    headers.insert("Nats-Msg-Id", message_id);
    connection
        .publish(&queue.subject, headers, Bytes::from(value))
        .await
        .map(drop)
}

pub async fn clear(connection: &Connection, of: &OfferTarget) -> Result<(), EngineError> {
    let queue = Queue::of(of);
    let filter = json!({ "filter": queue.subject });
    connection
        .api::<Value>(&format!("STREAM.PURGE.{}", queue.stream), &filter)
        .await?;
    Ok(())
}

pub async fn ack(connection: &Connection, token: &str) -> Result<(), EngineError> {
    if !token.starts_with("$JS.ACK.") {
        return Err(EngineError::Other(format!("`{token}` is no offer")));
    }
    let confirmed = connection
        .ask(token, None, Bytes::from_static(b"+ACK"), REQUEST_TIMEOUT)
        .await;
    match confirmed {
        // The queue is gone with the engine's disk, and the offer with it.
        Ok(_) | Err(EngineError::NoResponders) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Takes offers from several queues at once.
pub async fn pull(
    connection: &Connection,
    known: &KnownQueues,
    from: &[OfferTarget],
    count: usize,
    wait: Duration,
) -> Result<Vec<PulledOffer>, EngineError> {
    for target in from {
        known.ensure(connection, &Queue::of(target)).await?;
    }
    let pull = Pull {
        connection,
        known,
        from,
        count,
    };
    // First all that is there; only where nothing is, one that comes.
    if count > 1 || wait.is_zero() {
        let offers = pull
            .ask_all(&json!({ "batch": count, "no_wait": true }), PULL_SLACK)
            .await?;
        if !offers.is_empty() || wait.is_zero() {
            return Ok(offers);
        }
    }
    let expires = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
    let body = json!({ "batch": 1, "expires": expires });
    pull.ask_all(&body, wait + PULL_SLACK).await
}

struct Pull<'a> {
    connection: &'a Connection,
    known: &'a KnownQueues,
    from: &'a [OfferTarget],
    count: usize,
}

impl Pull<'_> {
    /// Asks every queue the same, until one has given something or all have said that there is nothing.
    async fn ask_all(&self, body: &Value, wait: Duration) -> Result<Vec<PulledOffer>, EngineError> {
        let client = &self.connection.client;
        let other = |error: &dyn std::fmt::Display| EngineError::Other(error.to_string());
        let inbox = client.new_inbox();
        let subscribed = client.subscribe(inbox.clone()).await;
        let mut messages = subscribed.map_err(|error| other(&error))?;
        for target in self.from {
            let queue = Queue::of(target);
            let subject = format!(
                "$JS.API.CONSUMER.MSG.NEXT.{}.{}",
                queue.stream, queue.consumer
            );
            client
                .publish_with_reply(subject, inbox.clone(), Bytes::from(body.to_string()))
                .await
                .map_err(|error| other(&error))?;
        }
        let mut offers = Vec::new();
        let end = tokio::time::Instant::now() + wait;
        let mut open = self.from.len();
        while open > 0 {
            // What other queues hand over at the same moment is taken too, or given back.
            let until = match offers.is_empty() {
                true => end,
                false => tokio::time::Instant::now() + ARRIVED_TOGETHER,
            };
            let Some(message) = self.next(&mut messages, until).await? else {
                break;
            };
            match message.status {
                None => {
                    open = match body["batch"].as_u64() {
                        Some(1) => open - 1,
                        _ => open,
                    };
                    match offer_in(self.from, &message) {
                        Some(offer) if offers.len() < self.count => offers.push(offer),
                        _ => give_back(self.connection, &message).await,
                    }
                }
                Some(StatusCode::NO_RESPONDERS) => {
                    self.known.forget(self.from);
                    return Err(EngineError::NoResponders);
                }
                // Nothing there, time over, or the queue is gone.
                Some(_) => {
                    if message.description.as_deref() == Some("Consumer Deleted") {
                        self.known.forget(self.from);
                    }
                    open -= 1;
                }
            }
        }
        Ok(offers)
    }

    /// The next message, or nothing until then; a pull does not survive its connection.
    async fn next(
        &self,
        messages: &mut Subscriber,
        until: tokio::time::Instant,
    ) -> Result<Option<Message>, EngineError> {
        tokio::select! {
            message = messages.next() => message.map(Some).ok_or(EngineError::NotConnected),
            () = tokio::time::sleep_until(until) => Ok(None),
            () = self.connection.lost() => Err(EngineError::NotConnected),
        }
    }
}

fn offer_in(from: &[OfferTarget], message: &Message) -> Option<PulledOffer> {
    let target = from
        .iter()
        .find(|target| Queue::of(target).subject == message.subject.as_str())?;
    Some(PulledOffer {
        token: message.reply.as_ref()?.to_string(),
        target: target.clone(),
        value: message.payload.to_vec(),
    })
}

async fn give_back(connection: &Connection, message: &Message) {
    if let (None, Some(reply)) = (message.status, &message.reply) {
        let back = Bytes::from_static(b"-NAK");
        // Where it gets lost the offer comes back by itself.
        drop(connection.client.publish(reply.clone(), back).await);
    }
}

impl KnownQueues {
    async fn ensure(&self, connection: &Connection, queue: &Queue) -> Result<(), EngineError> {
        let name = format!("{}.{}", queue.stream, queue.consumer);
        if self.lock().contains(&name) {
            return Ok(());
        }
        let config = json!({
            "stream_name": queue.stream,
            "config": {
                "durable_name": queue.consumer, "name": queue.consumer, "filter_subject": queue.subject,
                "deliver_policy": "all", "ack_policy": "explicit", "replay_policy": "instant",
                "ack_wait": u64::try_from(ACK_WAIT.as_nanos()).unwrap_or(u64::MAX),
                "max_ack_pending": 10_000, "max_waiting": 10_000, "max_deliver": -1,
            },
        });
        let what = format!(
            "CONSUMER.CREATE.{}.{}.{}",
            queue.stream, queue.consumer, queue.subject
        );
        match connection.api::<Value>(&what, &config).await {
            Ok(_) => {}
            Err(ApiError::Numbered {
                number: CONSUMER_NOT_FOUND,
                ..
            }) => return Err(EngineError::NoResponders),
            Err(error) => return Err(error.into()),
        }
        self.lock().insert(name);
        Ok(())
    }

    /// After the loss of the engine's disk they have to be made again.
    pub fn forget_all(&self) {
        self.lock().clear();
    }

    fn forget(&self, targets: &[OfferTarget]) {
        let mut known = self.lock();
        for target in targets {
            let queue = Queue::of(target);
            known.remove(&format!("{}.{}", queue.stream, queue.consumer));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
