//! Queues of offers: one durable consumer for each pool and agent, and one for each worker.

use std::time::Duration;

use async_nats::{HeaderMap, Message, StatusCode, Subscriber};
use bytes::Bytes;
use descartes_bridge::{EngineError, OfferTarget, PulledOffer, subject};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::time::Instant;

use super::api::REQUEST_TIMEOUT;
use super::connection::Connection;

/// For so long an offer belongs to who took it. It is no lease: that is the task's own subject.
const ACK_WAIT: Duration = Duration::from_secs(10);

/// So long after the end of a pull its last word is waited for.
const PULL_SLACK: Duration = Duration::from_secs(1);

/// Offers of several queues that come within this time count as one answer.
const ARRIVED_TOGETHER: Duration = Duration::from_millis(2);

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

fn check_token(token: &str) -> Result<(), EngineError> {
    match token.starts_with("$JS.ACK.") {
        true => Ok(()),
        false => Err(EngineError::Other(format!("`{token}` is no offer"))),
    }
}

pub async fn ack(connection: &Connection, token: &str) -> Result<(), EngineError> {
    check_token(token)?;
    let confirmed = connection
        .ask(token, None, Bytes::from_static(b"+ACK"), REQUEST_TIMEOUT)
        .await;
    match confirmed {
        // The queue is gone with the engine's disk, and the offer with it.
        Ok(_) | Err(EngineError::NoResponders) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Lets an offer be handed out again at once.
pub async fn give_back(connection: &Connection, token: &str) -> Result<(), EngineError> {
    check_token(token)?;
    let back = Bytes::from_static(b"-NAK");
    // Where it gets lost the offer comes back by itself.
    let sent = connection.client.publish(token.to_owned(), back).await;
    sent.map_err(|error| EngineError::Other(error.to_string()))
}

/// Takes offers from several queues at once.
pub async fn pull(
    connection: &Connection,
    from: &[OfferTarget],
    count: usize,
    wait: Duration,
) -> Result<Vec<PulledOffer>, EngineError> {
    connection.check_up()?;
    let pull = Pull {
        connection,
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
    from: &'a [OfferTarget],
    count: usize,
}

/// The queues of one request that have not ended it, and where they answer.
struct OpenQueues {
    inbox: String,
    body: Bytes,
    open: usize,
    /// How often each was not there.
    missing: Vec<u32>,
}

impl Pull<'_> {
    /// Asks every queue the same, until one has given something or all have said that there is nothing.
    async fn ask_all(&self, body: &Value, wait: Duration) -> Result<Vec<PulledOffer>, EngineError> {
        let mut queues = OpenQueues {
            inbox: self.connection.client.new_inbox(),
            body: Bytes::from(body.to_string()),
            open: self.from.len(),
            missing: vec![0; self.from.len()],
        };
        let mut refusals = self.connection.refusals.subscribe();
        let all = format!("{}.*", queues.inbox);
        let subscribed = self.connection.client.subscribe(all).await;
        let mut messages = subscribed.map_err(|error| EngineError::Other(error.to_string()))?;
        for number in 0..self.from.len() {
            self.ask(&queues, number).await?;
        }
        let single = body["batch"] == 1;
        let mut offers = Vec::new();
        let end = Instant::now() + wait;
        while queues.open > 0 {
            // What other queues hand over at the same moment is taken too, or given back.
            let until = match offers.is_empty() {
                true => end,
                false => Instant::now() + ARRIVED_TOGETHER,
            };
            let Some(message) = self.next(&mut messages, &mut refusals, until).await? else {
                break;
            };
            match message.status {
                None => {
                    queues.open -= usize::from(single);
                    match offer_in(self.from, &message) {
                        Some(offer) if offers.len() < self.count => offers.push(offer),
                        _ => {
                            if let Some(token) = &message.reply {
                                drop(give_back(self.connection, token).await);
                            }
                        }
                    }
                }
                Some(StatusCode::NO_RESPONDERS) => {
                    let number = message.subject.rsplit('.').next();
                    let number = number.and_then(|number| number.parse().ok());
                    self.on_missing(&mut queues, number.unwrap_or_default())
                        .await?;
                }
                // Nothing there, time over, or the queue is gone.
                Some(_) => queues.open -= 1,
            }
        }
        Ok(offers)
    }

    async fn ask(&self, queues: &OpenQueues, number: usize) -> Result<(), EngineError> {
        let queue = Queue::of(&self.from[number]);
        let (stream, consumer) = (queue.stream, queue.consumer);
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}");
        let inbox = format!("{}.{number}", queues.inbox);
        let sent = self
            .connection
            .client
            .publish_with_reply(subject, inbox, queues.body.clone());
        sent.await
            .map_err(|error| EngineError::Other(error.to_string()))
    }

    /// A queue that is not there is made. Many workers find that at the same moment: first each waits a
    /// little and asks again, so that one of them makes it for all.
    async fn on_missing(&self, queues: &mut OpenQueues, number: usize) -> Result<(), EngineError> {
        let Some(missing) = queues.missing.get_mut(number) else {
            return Ok(());
        };
        *missing += 1;
        match *missing {
            1 => tokio::time::sleep(jitter(&queues.inbox)).await,
            2 => make(self.connection, &Queue::of(&self.from[number])).await?,
            _ => return Err(EngineError::NoResponders),
        }
        self.ask(queues, number).await
    }

    /// The next message, or nothing until then; a pull does not survive its connection.
    async fn next(
        &self,
        messages: &mut Subscriber,
        refusals: &mut broadcast::Receiver<String>,
        until: Instant,
    ) -> Result<Option<Message>, EngineError> {
        loop {
            tokio::select! {
                message = messages.next() => return message.map(Some).ok_or(EngineError::NotConnected),
                () = tokio::time::sleep_until(until) => return Ok(None),
                () = self.connection.lost() => {
                    self.connection.check_up()?;
                    return Err(EngineError::NotConnected);
                }
                Ok(text) = refusals.recv() => {
                    let consumer = |target| format!("NEXT.{}.{}\"", Queue::of(target).stream, Queue::of(target).consumer);
                    if self.from.iter().any(|target| text.contains(&consumer(target))) {
                        return Err(EngineError::Refused(text));
                    }
                }
            }
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

/// Another time for each request, from its inbox's name.
fn jitter(inbox: &str) -> Duration {
    let sum: u32 = inbox.bytes().rev().take(8).map(u32::from).sum();
    Duration::from_millis(u64::from(sum % 32) * 8)
}

async fn make(connection: &Connection, queue: &Queue) -> Result<(), EngineError> {
    let (stream, consumer, subject) = (queue.stream, &queue.consumer, &queue.subject);
    let config = json!({
        "stream_name": stream,
        "config": {
            "durable_name": consumer, "name": consumer, "filter_subject": subject,
            "deliver_policy": "all", "ack_policy": "explicit", "replay_policy": "instant",
            "ack_wait": u64::try_from(ACK_WAIT.as_nanos()).unwrap_or(u64::MAX),
            "max_ack_pending": 10_000, "max_waiting": 10_000, "max_deliver": -1,
        },
    });
    let what = format!("CONSUMER.CREATE.{stream}.{consumer}.{subject}");
    connection.api::<Value>(&what, &config).await?;
    Ok(())
}
