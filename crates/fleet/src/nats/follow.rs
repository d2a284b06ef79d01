//! Following a stream: an ephemeral consumer that is made anew behind the last message whenever its
//! messages have a gap, its heartbeats stop, or the connection was lost.

use std::time::Duration;

use async_nats::{HeaderMap, Message, Subscriber};
use descartes_bridge::{Delivery, EngineError, EntryBody, FollowFrom, SubjectEntry};
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::connection::Connection;
use super::streams::{self, stream_of};
use super::values::{self, MARKER_HEADER};

/// The server says so often that there is nothing. Where one of three dies, its consumers are gone without a
/// word: who follows stands still for two of these, besides the election.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// A consumer that nobody listens to is removed.
const UNUSED: Duration = Duration::from_secs(30);

/// Between two messages that are stored.
const STORED_TIMEOUT: Duration = Duration::from_secs(5);

/// Between two tries while the engine is away.
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// A request that nobody answered is made again so often: nobody hears of anything before the follower is back.
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// A consumer is made by whoever leads the whole cluster, and where that server died, too, the election takes as long
/// again as that of the stream's own leader. So long it is waited for; then what is stored is read one by one from the
/// stream's leader until there is a consumer.
const LATE_CONSUMER: Duration = Duration::from_millis(200);

/// What is followed, and how far it was.
#[derive(Clone)]
pub struct Follower {
    connection: Connection,
    stream: &'static str,
    filter: String,
    next_seq: u64,
    created: String,
}

/// A consumer that is delivering.
struct Feed {
    messages: Subscriber,
    delivered: u64,
    /// How many there were when it was made, or soon after.
    stored: u64,
}

/// Why a feed came to its end.
enum FeedEnd {
    /// It is made anew.
    Broken,
    /// Nobody listens any more.
    Unwanted,
}

impl Follower {
    pub async fn start(
        connection: Connection,
        filter: &str,
        from: FollowFrom,
    ) -> Result<Self, EngineError> {
        let stream = stream_of(filter)?;
        let state = streams::state(&connection, stream, ASK_AGAIN).await?;
        Ok(Self {
            connection,
            stream,
            filter: filter.to_owned(),
            next_seq: match from {
                FollowFrom::Start => 1,
                FollowFrom::Sequence(seq) => seq.max(1),
                FollowFrom::Now => state.last_seq + 1,
            },
            created: state.created,
        })
    }

    /// Delivers until `deliver` says that nobody listens.
    pub async fn run(mut self, mut deliver: impl FnMut(Delivery) -> bool) {
        loop {
            match self.open(&mut deliver).await {
                Ok(Some(feed)) => match self.read(feed, &mut deliver).await {
                    FeedEnd::Broken => {}
                    FeedEnd::Unwanted => return,
                },
                Ok(None) => return,
                Err(_) => tokio::time::sleep(RETRY_DELAY).await,
            }
        }
    }

    /// Everything that is stored now, and no more.
    pub async fn read_stored(self) -> Result<Vec<SubjectEntry>, EngineError> {
        let mut entries = Vec::new();
        let mut feed = self.consumer().await?;
        let mut left = feed.stored;
        while left > 0 {
            let message = tokio::time::timeout(STORED_TIMEOUT, feed.messages.next()).await;
            let Ok(Some(message)) = message else {
                return Err(EngineError::Timeout);
            };
            if let Some((_, seq)) = numbers(&message) {
                entries.push(entry(&message, seq));
                left -= 1;
            }
        }
        Ok(entries)
    }

    /// Goes on where it was; `None` where nobody listens any more.
    async fn open(
        &mut self,
        deliver: &mut impl FnMut(Delivery) -> bool,
    ) -> Result<Option<Feed>, EngineError> {
        let state = streams::state(&self.connection, self.stream, ASK_AGAIN).await?;
        if state.created != self.created || state.last_seq + 1 < self.next_seq {
            self.created = state.created;
            self.next_seq = 1;
            if !deliver(Delivery::Reset) {
                return Ok(None);
            }
        }
        let from = self.clone();
        let feed = from.consumer();
        tokio::pin!(feed);
        loop {
            if let Ok(feed) = tokio::time::timeout(LATE_CONSUMER, &mut feed).await {
                return feed.map(Some);
            }
            let read = tokio::select! {
                feed = &mut feed => return feed.map(Some),
                read = self.read_led(deliver) => read,
            };
            // What is refused or not answered comes with the consumer.
            if let Ok(false) = read {
                return Ok(None);
            }
        }
    }

    /// Delivers what is stored, one after the other, without a consumer; false where nobody listens any more.
    async fn read_led(
        &mut self,
        deliver: &mut impl FnMut(Delivery) -> bool,
    ) -> Result<bool, EngineError> {
        loop {
            let next = json!({ "seq": self.next_seq, "next_by_subj": self.filter });
            let next = values::read_message(&self.connection, self.stream, &next).await?;
            let Some(entry) = next else {
                return Ok(true);
            };
            self.next_seq = entry.seq + 1;
            if !deliver(Delivery::Entry(entry)) {
                return Ok(false);
            }
        }
    }

    /// A new consumer behind the last message.
    async fn consumer(&self) -> Result<Feed, EngineError> {
        let client = &self.connection.client;
        let inbox = client.new_inbox();
        let subscribed = client.subscribe(inbox.clone()).await;
        let messages = subscribed.map_err(|error| EngineError::Other(error.to_string()))?;
        let name = inbox.rsplit('.').next().unwrap_or(&inbox).to_owned();
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let config = json!({
            "stream_name": self.stream,
            "config": {
                "name": name, "deliver_subject": inbox, "filter_subject": self.filter,
                "deliver_policy": "by_start_sequence", "opt_start_seq": self.next_seq,
                "ack_policy": "none", "replay_policy": "instant", "mem_storage": true,
                "num_replicas": 1, "idle_heartbeat": nanos(HEARTBEAT),
                "inactive_threshold": nanos(UNUSED),
            },
        });
        let what = format!("CONSUMER.CREATE.{}.{name}.{}", self.stream, self.filter);
        let made = self.connection.api_again(&what, &config, ASK_AGAIN);
        let made: Value = made.await?;
        // Where only the answer to a second request came, it has delivered something already.
        let pending = made["num_pending"].as_u64().unwrap_or_default();
        let sent = made["delivered"]["consumer_seq"]
            .as_u64()
            .unwrap_or_default();
        Ok(Feed {
            messages,
            delivered: 0,
            stored: sent + pending,
        })
    }

    async fn read(
        &mut self,
        mut feed: Feed,
        deliver: &mut impl FnMut(Delivery) -> bool,
    ) -> FeedEnd {
        let connection = self.connection.clone();
        let lost = connection.lost();
        tokio::pin!(lost);
        loop {
            let message = tokio::select! {
                message = tokio::time::timeout(HEARTBEAT * 2 + RETRY_DELAY, feed.messages.next()) => message,
                () = &mut lost => {
                    // It is waited for, so that nothing is asked of a connection that is not there.
                    return match connection.back().await {
                        true => FeedEnd::Broken,
                        false => FeedEnd::Unwanted,
                    };
                }
            };
            let Ok(Some(message)) = message else {
                return FeedEnd::Broken;
            };
            if message.status.is_some() {
                let last = header_number(message.headers.as_ref(), "Nats-Last-Consumer");
                match last.is_some_and(|last| last != feed.delivered) {
                    true => return FeedEnd::Broken,
                    false => continue,
                }
            }
            let Some((number, seq)) = numbers(&message) else {
                continue;
            };
            if number != feed.delivered + 1 {
                return FeedEnd::Broken;
            }
            feed.delivered = number;
            if seq < self.next_seq {
                // It was read before there was this consumer.
                continue;
            }
            self.next_seq = seq + 1;
            if !deliver(Delivery::Entry(entry(&message, seq))) {
                return FeedEnd::Unwanted;
            }
        }
    }
}

/// The message's number in its consumer and in its stream, from where its acknowledgement would go:
/// `$JS.ACK.(domain.account.)stream.consumer.delivered.seq.number.time.pending(.random)`.
fn numbers(message: &Message) -> Option<(u64, u64)> {
    let words: Vec<&str> = message.reply.as_ref()?.as_str().split('.').collect();
    let first = match words.len() {
        9 => 5,
        11.. => 7,
        _ => return None,
    };
    Some((words[first + 1].parse().ok()?, words[first].parse().ok()?))
}

fn header_number(headers: Option<&HeaderMap>, name: &str) -> Option<u64> {
    headers?.get(name)?.as_str().parse().ok()
}

fn entry(message: &Message, seq: u64) -> SubjectEntry {
    let marker = message
        .headers
        .as_ref()
        .is_some_and(|headers| headers.get(MARKER_HEADER).is_some());
    SubjectEntry {
        subject: message.subject.to_string(),
        seq,
        body: match marker {
            true => EntryBody::Marker,
            false => EntryBody::Value(message.payload.to_vec()),
        },
    }
}
