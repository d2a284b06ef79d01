//! What the server in memory stores, and who listens.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::mpsc::Sender;
use std::time::Duration;

use crate::engine::{
    Delivery, EngineError, EntryBody, FollowFrom, LinkStatus, OfferTarget, PulledOffer,
    ServedRequest, SubjectEntry,
};
use crate::subject;

/// As the real one is set: a marker lives for an hour, an offer belongs to who took it for ten seconds.
const MARKER_TTL: Duration = Duration::from_secs(3600);
const ACK_WAIT: Duration = Duration::from_secs(10);

/// What happens to a party's next write, event or acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostMessage {
    /// It does not arrive: nothing is done, and the caller gets [`EngineError::Timeout`].
    Request,
    /// It is done, and the caller gets [`EngineError::Timeout`].
    Answer,
}

pub(super) type PartyId = usize;

#[derive(Default)]
pub(super) struct ServerState {
    now: Duration,
    values: Log,
    events: Log,
    offers: Vec<QueuedOffer>,
    offer_ids: HashMap<String, ()>,
    next_token: u64,
    parties: Vec<Party>,
    serving: Vec<Subscriber<ServedRequest>>,
    requests: HashMap<String, Sender<Vec<u8>>>,
    pub objects: BTreeMap<String, Vec<u8>>,
}

/// One stream: what it has, in order, and its last number.
#[derive(Default)]
struct Log {
    last_seq: u64,
    entries: BTreeMap<u64, Kept>,
    message_ids: HashMap<String, u64>,
}

struct Kept {
    subject: String,
    body: EntryBody,
    expires: Option<Duration>,
}

struct QueuedOffer {
    target: OfferTarget,
    value: Vec<u8>,
    /// The token of the last one who took it, and until when it is theirs.
    taken: Option<(String, Duration)>,
}

struct Party {
    up: bool,
    since: Duration,
    last_down: Option<Duration>,
    held: bool,
    losses: VecDeque<LostMessage>,
    follows: Vec<EntryFollower>,
    listeners: Vec<Sender<LinkStatus>>,
}

pub(super) struct Subscriber<T> {
    pub party: PartyId,
    pub filter: String,
    pub sender: Sender<T>,
}

struct EntryFollower {
    filter: String,
    next_seq: u64,
    reset: bool,
    sender: Sender<Delivery>,
}

impl Log {
    fn last(&self, subject: &str) -> Option<(u64, &Kept)> {
        let found = |(_, kept): &(&u64, &Kept)| kept.subject == subject;
        let (seq, kept) = self.entries.iter().rev().find(found)?;
        Some((*seq, kept))
    }

    fn append(&mut self, kept: Kept) -> u64 {
        self.last_seq += 1;
        self.entries.insert(self.last_seq, kept);
        self.last_seq
    }
}

impl ServerState {
    pub fn add_party(&mut self) -> PartyId {
        self.parties.push(Party {
            up: true,
            since: self.now,
            last_down: None,
            held: false,
            losses: VecDeque::new(),
            follows: Vec::new(),
            listeners: Vec::new(),
        });
        self.parties.len() - 1
    }

    pub fn now(&self) -> Duration {
        self.now
    }

    pub fn advance(&mut self, by: Duration) {
        let until = self.now + by;
        while let Some((at, seq)) = self.next_expiry().filter(|(at, _)| *at <= until) {
            self.now = at;
            self.expire(seq);
        }
        self.now = until;
        self.deliver();
    }

    fn next_expiry(&self) -> Option<(Duration, u64)> {
        let expiry = |(seq, kept): (&u64, &Kept)| kept.expires.map(|at| (at, *seq));
        self.values.entries.iter().filter_map(expiry).min()
    }

    fn expire(&mut self, seq: u64) {
        let Some(kept) = self.values.entries.remove(&seq) else {
            return;
        };
        if kept.body != EntryBody::Marker {
            self.values.append(Kept {
                subject: kept.subject,
                body: EntryBody::Marker,
                expires: Some(self.now + MARKER_TTL),
            });
            self.deliver();
        }
    }

    pub fn lose_disk(&mut self) {
        // Numbers go on: none is ever given out twice.
        self.values = Log {
            last_seq: self.values.last_seq,
            ..Log::default()
        };
        self.events = Log::default();
        self.offers.clear();
        self.offer_ids.clear();
        self.objects.clear();
        for following in self.parties.iter_mut().flat_map(|party| &mut party.follows) {
            following.next_seq = 1;
            following.reset = true;
        }
        self.deliver();
    }

    pub fn put(
        &mut self,
        subject: &str,
        expect: Option<u64>,
        ttl: Option<Duration>,
        value: &[u8],
    ) -> Result<u64, EngineError> {
        let last = self.values.last(subject).map_or(0, |(seq, _)| seq);
        if expect.is_some_and(|expected| expected != last) {
            return Err(EngineError::Conflict);
        }
        self.values.entries.remove(&last);
        let seq = self.values.append(Kept {
            subject: subject.to_owned(),
            body: EntryBody::Value(value.to_vec()),
            expires: ttl.map(|ttl| self.now + ttl),
        });
        self.deliver();
        Ok(seq)
    }

    pub fn get(&self, subject: &str) -> Option<SubjectEntry> {
        let (seq, kept) = self.values.last(subject)?;
        Some(entry(seq, kept))
    }

    pub fn append_event(&mut self, subject: &str, message_id: &str, value: &[u8]) -> u64 {
        if let Some(seq) = self.events.message_ids.get(message_id) {
            return *seq;
        }
        let seq = self.events.append(Kept {
            subject: subject.to_owned(),
            body: EntryBody::Value(value.to_vec()),
            expires: None,
        });
        self.events.message_ids.insert(message_id.to_owned(), seq);
        self.deliver();
        seq
    }

    pub fn follow(
        &mut self,
        party: PartyId,
        filter: &str,
        from: FollowFrom,
        sender: Sender<Delivery>,
    ) {
        let log = log_of(filter, &self.values, &self.events);
        let next_seq = match from {
            FollowFrom::Start => 1,
            FollowFrom::Sequence(seq) => seq,
            FollowFrom::Now => log.last_seq + 1,
        };
        self.parties[party].follows.push(EntryFollower {
            filter: filter.to_owned(),
            next_seq,
            reset: false,
            sender,
        });
        self.deliver();
    }

    /// Hands everybody who is connected what they have not had yet.
    fn deliver(&mut self) {
        let (values, events) = (&self.values, &self.events);
        for party in self
            .parties
            .iter_mut()
            .filter(|party| party.up && !party.held)
        {
            party.follows.retain_mut(|following| {
                following.deliver(log_of(&following.filter, values, events))
            });
        }
    }

    pub fn offer(&mut self, to: &OfferTarget, message_id: &str, value: &[u8]) {
        if self.offer_ids.insert(message_id.to_owned(), ()).is_none() {
            self.offers.push(QueuedOffer {
                target: to.clone(),
                value: value.to_vec(),
                taken: None,
            });
        }
    }

    pub fn pull(&mut self, from: &[OfferTarget], count: usize) -> Vec<PulledOffer> {
        let (now, mut pulled) = (self.now, Vec::new());
        for offer in &mut self.offers {
            let free = offer.taken.as_ref().is_none_or(|(_, until)| *until <= now);
            if pulled.len() < count && free && from.contains(&offer.target) {
                self.next_token += 1;
                let token = format!("offer-{}", self.next_token);
                offer.taken = Some((token.clone(), now + ACK_WAIT));
                pulled.push(PulledOffer {
                    token,
                    target: offer.target.clone(),
                    value: offer.value.clone(),
                });
            }
        }
        pulled
    }

    /// A late acknowledgement takes the offer away from the next one who took it: as the real one does.
    pub fn ack(&mut self, token: &str) -> Result<(), EngineError> {
        self.offers
            .retain(|offer| offer.taken.as_ref().is_none_or(|(taken, _)| taken != token));
        Ok(())
    }

    pub fn give_back(&mut self, token: &str) {
        for offer in &mut self.offers {
            if offer
                .taken
                .as_ref()
                .is_some_and(|(taken, _)| taken == token)
            {
                offer.taken = None;
            }
        }
    }

    pub fn clear_offers(&mut self, of: &OfferTarget) {
        self.offers.retain(|offer| offer.target != *of);
    }

    pub fn open_offers(&self) -> usize {
        self.offers.len()
    }

    pub fn serve(&mut self, subscriber: Subscriber<ServedRequest>) {
        self.serving.push(subscriber);
    }

    pub fn request(
        &mut self,
        subject: &str,
        body: &[u8],
        reply: Sender<Vec<u8>>,
    ) -> Result<(), EngineError> {
        self.next_token += 1;
        let token = format!("request-{}", self.next_token);
        let request = ServedRequest {
            token: token.clone(),
            subject: subject.to_owned(),
            body: body.to_vec(),
        };
        let parties = &self.parties;
        let mut reached = false;
        self.serving.retain(|serving| {
            let meant = parties[serving.party].up && subject::matches(&serving.filter, subject);
            let sent = !meant || serving.sender.send(request.clone()).is_ok();
            reached |= meant && sent;
            sent
        });
        match reached {
            true => self.requests.insert(token, reply),
            false => return Err(EngineError::NoResponders),
        };
        Ok(())
    }

    pub fn answer(&mut self, token: &str, body: &[u8]) {
        if let Some(reply) = self.requests.remove(token) {
            // Who asked may have given up; the real one does not tell either.
            drop(reply.send(body.to_vec()));
        }
    }

    pub fn workers(&self) -> Vec<(String, Vec<u8>)> {
        let announced = self.values.entries.values().filter_map(|kept| {
            let name = kept.subject.strip_prefix("worker.")?;
            match &kept.body {
                EntryBody::Value(value) => Some((subject::name(name), value.clone())),
                _ => None,
            }
        });
        announced.collect()
    }

    pub fn must_be_up(&self, party: PartyId) -> Result<(), EngineError> {
        match self.parties[party].up {
            true => Ok(()),
            false => Err(EngineError::NotConnected),
        }
    }

    pub fn set_link(&mut self, party: PartyId, up: bool) {
        let now = self.now;
        let changed = &mut self.parties[party];
        if changed.up == up {
            return;
        }
        changed.up = up;
        changed.since = now;
        if up {
            changed.last_down = Some(now);
        }
        let status = self.link(party);
        self.parties[party]
            .listeners
            .retain(|tx| tx.send(status).is_ok());
        self.deliver();
    }

    pub fn link(&self, party: PartyId) -> LinkStatus {
        let party = &self.parties[party];
        let since = self.now - party.since;
        match party.up {
            true => LinkStatus::Up {
                since,
                last_down: party.last_down.map(|at| self.now - at),
            },
            false => LinkStatus::Down { since },
        }
    }

    pub fn listen(&mut self, party: PartyId, sender: Sender<LinkStatus>) {
        self.parties[party].listeners.push(sender);
    }

    pub fn hold(&mut self, party: PartyId, held: bool) {
        self.parties[party].held = held;
        self.deliver();
    }

    pub fn lose_next(&mut self, party: PartyId, lost: LostMessage) {
        self.parties[party].losses.push_back(lost);
    }

    pub fn next_lost(&mut self, party: PartyId) -> Option<LostMessage> {
        self.parties[party].losses.pop_front()
    }
}

impl EntryFollower {
    /// Whether anybody still listens.
    fn deliver(&mut self, log: &Log) -> bool {
        if self.reset {
            self.reset = false;
            if self.sender.send(Delivery::Reset).is_err() {
                return false;
            }
        }
        for (seq, kept) in log.entries.range(self.next_seq..) {
            self.next_seq = seq + 1;
            let delivery = Delivery::Entry(entry(*seq, kept));
            if subject::matches(&self.filter, &kept.subject) && self.sender.send(delivery).is_err()
            {
                return false;
            }
        }
        true
    }
}

fn log_of<'a>(filter: &str, values: &'a Log, events: &'a Log) -> &'a Log {
    match filter.starts_with("ev.") {
        true => events,
        false => values,
    }
}

fn entry(seq: u64, kept: &Kept) -> SubjectEntry {
    SubjectEntry {
        subject: kept.subject.clone(),
        seq,
        body: kept.body.clone(),
    }
}
