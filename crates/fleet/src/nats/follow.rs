//! Following a stream: an ephemeral consumer that is made anew behind the last message whenever its
//! messages have a gap, its heartbeats stop, or the connection was lost.

use std::time::Duration;

use async_nats::{HeaderMap, Message, Subscriber};
use descartes_bridge::{Delivery, EngineError, EntryBody, FollowFrom, SubjectEntry};
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::connection::Connection;
use super::streams::{self, stream_of};
use super::values::MARKER_HEADER;

/// The server says so often that there is nothing. Where one of three dies, its consumers are gone without a
/// word: who follows stands still for two of these, besides the election.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// A consumer that nobody listens to is removed.
const UNUSED: Duration = Duration::from_secs(30);

/// A server without a leader does not answer.
const OPEN_TIMEOUT: Duration = Duration::from_secs(3);

/// Between two messages that are stored.
const STORED_TIMEOUT: Duration = Duration::from_secs(5);

/// Between two tries while the engine is away.
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// What is followed, and how far it was.
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
    pending: u64,
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
        let state = streams::state(&connection, stream).await?;
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
            let opened = tokio::time::timeout(OPEN_TIMEOUT, self.open(&mut deliver)).await;
            match opened.unwrap_or(Err(EngineError::Timeout)) {
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
    pub async fn read_stored(mut self) -> Result<Vec<SubjectEntry>, EngineError> {
        let mut entries = Vec::new();
        let Some(mut feed) = self.open(&mut |_| true).await? else {
            return Ok(entries);
        };
        let mut left = feed.pending;
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

    async fn open(
        &mut self,
        deliver: &mut impl FnMut(Delivery) -> bool,
    ) -> Result<Option<Feed>, EngineError> {
        let state = streams::state(&self.connection, self.stream).await?;
        if state.created != self.created || state.last_seq + 1 < self.next_seq {
            self.created = state.created;
            self.next_seq = 1;
            if !deliver(Delivery::Reset) {
                return Ok(None);
            }
        }
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
        let made: Value = self.connection.api(&what, &config).await?;
        Ok(Some(Feed {
            messages,
            delivered: 0,
            pending: made["num_pending"].as_u64().unwrap_or_default(),
        }))
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
