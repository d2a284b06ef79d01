//! What every engine promises, as a test: run against the one in memory and against the real one.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use crate::engine::{
    Delivery, Engine, EngineError, EntryBody, FollowFrom, OfferTarget, SubjectEntry,
};
use crate::subject;

/// How the contract gets at an engine.
pub trait Provider {
    /// A connection of a coordinator.
    fn coordinator(&self) -> Arc<dyn Engine>;
    /// A connection of the worker of this name.
    fn worker(&self, name: &str) -> Arc<dyn Engine>;
    /// Lets this much of the server's time pass.
    fn pass(&self, time: Duration);
    /// A folder for files.
    fn folder(&self) -> &Path;
}

/// What went wrong, in words.
pub type ClauseResult = Result<(), String>;

/// A part of the contract.
pub type Clause = fn(&dyn Provider) -> ClauseResult;

/// How long something that must come is waited for.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Every clause with its name.
#[must_use]
pub fn clauses() -> Vec<(&'static str, Clause)> {
    vec![
        (
            "a value is replaced only by who knows what is there",
            compare_and_swap,
        ),
        ("a lease that runs out leaves a marker", expiry),
        (
            "a follower sees all that is stored, then all that comes",
            following,
        ),
        (
            "an offer goes to one, and again to another when it is not acknowledged",
            offers,
        ),
        (
            "an event is appended once and read from any number on",
            events,
        ),
        ("a request is answered, or nobody is there", requests),
        ("a file comes back as it was", objects),
        ("a worker is there as long as it says so", announcements),
    ]
}

fn compare_and_swap(provider: &dyn Provider) -> ClauseResult {
    let (first, second) = (provider.coordinator(), provider.worker("w1"));
    let subject = subject::task("cas", "a.b c", 1);
    same("nothing yet", first.get(&subject), Ok(None))?;
    let offered = first
        .put(&subject, Some(0), None, b"offered")
        .map_err(|error| format!("the first put: {error}"))?;
    let again = first.put(&subject, Some(0), None, b"other");
    same("there is one already", again, Err(EngineError::Conflict))?;
    let held = second
        .put(&subject, Some(offered), None, b"held by w1")
        .map_err(|error| format!("the claim: {error}"))?;
    check("numbers grow", held > offered)?;
    let late = first.put(&subject, Some(offered), None, b"closed");
    same("the number is old", late, Err(EngineError::Conflict))?;
    let stored = SubjectEntry {
        subject: subject.clone(),
        seq: held,
        body: EntryBody::Value(b"held by w1".to_vec()),
    };
    same("what is there", first.get(&subject), Ok(Some(stored)))?;
    let anyhow = first.put(&subject, None, None, &[0, 159, 146, 150]);
    let anyhow = anyhow.map_err(|error| format!("a put without expecting: {error}"))?;
    let bytes = EntryBody::Value(vec![0, 159, 146, 150]);
    let read = second
        .get(&subject)
        .map(|entry| entry.map(|entry| (entry.seq, entry.body)));
    same("any bytes", read, Ok(Some((anyhow, bytes))))
}

fn expiry(provider: &dyn Provider) -> ClauseResult {
    let (coordinator, worker) = (provider.coordinator(), provider.worker("w1"));
    let subject = subject::task("ttl", "t", 1);
    let seen = follow(&*coordinator, &subject::tasks_of("ttl"), FollowFrom::Start)?;
    let lease = Some(Duration::from_secs(2));
    let first = put(&*worker, &subject, Some(0), lease, b"held")?;
    same("the value", next(&seen)?, entry(&subject, first, b"held"))?;
    provider.pass(Duration::from_secs(1));
    let second = put(&*worker, &subject, Some(first), lease, b"beat")?;
    same(
        "the renewal",
        next(&seen)?,
        entry(&subject, second, b"beat"),
    )?;
    provider.pass(Duration::from_millis(1200));
    let there = coordinator
        .get(&subject)
        .map(|entry| entry.map(|entry| entry.seq));
    same("it was renewed", there, Ok(Some(second)))?;
    provider.pass(Duration::from_millis(2500));
    let marker = match next(&seen)? {
        Delivery::Entry(marker) => marker,
        Delivery::Reset => return Err("a reset in place of the marker".to_owned()),
    };
    same("a marker comes", &marker.body, &EntryBody::Marker)?;
    same(
        "under its subject",
        marker.subject.as_str(),
        subject.as_str(),
    )?;
    check("with a number of its own", marker.seq > second)?;
    let read = coordinator.get(&subject);
    same("and can be read", read, Ok(Some(marker.clone())))?;
    let stale = worker.put(&subject, Some(second), lease, b"late");
    same(
        "the old number is fenced",
        stale,
        Err(EngineError::Conflict),
    )?;
    let anew = worker.put(&subject, Some(0), lease, b"late");
    same("a marker is not nothing", anew, Err(EngineError::Conflict))?;
    put(&*worker, &subject, Some(marker.seq), lease, b"again").map(drop)
}

fn following(provider: &dyn Provider) -> ClauseResult {
    let (coordinator, worker) = (provider.coordinator(), provider.worker("w1"));
    let name = |task: &str| subject::task("follow", task, 1);
    put(&*coordinator, &name("a"), Some(0), None, b"1")?;
    let b = put(&*coordinator, &name("b"), Some(0), None, b"2")?;
    let a = put(&*coordinator, &name("a"), None, None, b"3")?;
    put(
        &*coordinator,
        &subject::task("other", "a", 1),
        None,
        None,
        b"x",
    )?;
    let all = follow(&*worker, &subject::tasks_of("follow"), FollowFrom::Start)?;
    let later = follow(&*coordinator, &subject::tasks_of("follow"), FollowFrom::Now)?;
    same("the last of b", next(&all)?, entry(&name("b"), b, b"2"))?;
    same("the last of a", next(&all)?, entry(&name("a"), a, b"3"))?;
    let mut last = a;
    for value in 0..50_u8 {
        let seq = put(&*coordinator, &name("c"), None, None, &[value])?;
        check("numbers grow", seq > last)?;
        last = seq;
        same("live", next(&all)?, entry(&name("c"), seq, &[value]))?;
        same("from now", next(&later)?, entry(&name("c"), seq, &[value]))?;
    }
    let from = follow(
        &*worker,
        &subject::tasks_of("follow"),
        FollowFrom::Sequence(last),
    )?;
    same(
        "from a number",
        next(&from)?,
        entry(&name("c"), last, &[49]),
    )
}

fn offers(provider: &dyn Provider) -> ClauseResult {
    let coordinator = provider.coordinator();
    let (one, two) = (provider.worker("w1"), provider.worker("w2"));
    let lane = OfferTarget::Pool {
        pool: "any".to_owned(),
        agent: "scripted".to_owned(),
    };
    let own = OfferTarget::Worker {
        name: "w1".to_owned(),
    };
    let wait = Duration::from_millis(300);
    let lanes = [lane.clone(), own.clone()];
    let none = one.pull(&lanes, 1, wait);
    same("nothing is offered", none, Ok(Vec::new()))?;
    for _ in 0..2 {
        let offered = coordinator.offer(&lane, "l-t-1", b"order");
        same("an offer", offered, Ok(()))?;
    }
    same(
        "one to a worker",
        coordinator.offer(&own, "l-u-1", b"own"),
        Ok(()),
    )?;
    let mut pulled = Vec::new();
    while let Some(offer) = one.pull(&lanes, 1, wait).map_err(told)?.pop() {
        pulled.push(offer);
    }
    let mut values: Vec<&[u8]> = pulled.iter().map(|offer| &*offer.value).collect();
    values.sort_unstable();
    same("each once", values, vec![b"order".as_slice(), b"own"])?;
    let other = two.pull(&lanes[..1], 5, wait);
    same("nobody else gets it", other, Ok(Vec::new()))?;
    for offer in pulled.iter().filter(|offer| offer.target == own) {
        same("acknowledged", one.ack(&offer.token), Ok(()))?;
    }
    provider.pass(Duration::from_secs(11));
    let again = two
        .pull(&lanes[..1], 5, Duration::from_secs(2))
        .map_err(told)?;
    let values: Vec<&[u8]> = again.iter().map(|offer| &*offer.value).collect();
    same("handed out again", values, vec![b"order".as_slice()])?;
    for offer in &again {
        same("given back", two.give_back(&offer.token), Ok(()))?;
    }
    let again = one
        .pull(&lanes[..1], 5, Duration::from_secs(2))
        .map_err(told)?;
    let values: Vec<&[u8]> = again.iter().map(|offer| &*offer.value).collect();
    same("handed out at once", values, vec![b"order".as_slice()])?;
    for offer in &again {
        same("acknowledged", one.ack(&offer.token), Ok(()))?;
    }
    same(
        "cleared",
        coordinator.offer(&lane, "l-v-1", b"late"),
        Ok(()),
    )?;
    same("cleared", coordinator.clear_offers(&lane), Ok(()))?;
    same("all are gone", one.pull(&lanes, 5, wait), Ok(Vec::new()))
}

fn events(provider: &dyn Provider) -> ClauseResult {
    let (coordinator, worker) = (provider.coordinator(), provider.worker("w1"));
    let subject = subject::events("l", "w1", "child");
    let mut seqs = Vec::new();
    for number in 0..20_u8 {
        for _ in 0..2 {
            let seq = worker.append_event(&subject, &format!("child-{number}"), &[number]);
            seqs.push(seq.map_err(told)?);
        }
    }
    check(
        "a second time is none",
        seqs.chunks(2).all(|pair| pair[0] == pair[1]),
    )?;
    let all = follow(&*coordinator, &subject::events_of("l"), FollowFrom::Start)?;
    for number in 0..20_u8 {
        let seq = seqs[usize::from(number) * 2];
        same("in order", next(&all)?, entry(&subject, seq, &[number]))?;
    }
    let late = follow(&*coordinator, &subject, FollowFrom::Sequence(seqs[20]))?;
    same(
        "from a number",
        next(&late)?,
        entry(&subject, seqs[20], &[10]),
    )
}

fn requests(provider: &dyn Provider) -> ClauseResult {
    let (coordinator, worker) = (provider.coordinator(), provider.worker("w1"));
    let subject = subject::control("l", "w1", "child");
    let timeout = Duration::from_secs(5);
    let nobody = coordinator.request(&subject, b"?", timeout);
    same("nobody is there", nobody, Err(EngineError::NoResponders))?;
    let asked = worker.serve(&subject).map_err(told)?;
    std::thread::scope(|scope| {
        let worker = &worker;
        scope.spawn(move || {
            while let Ok(request) = asked.recv_timeout(ARRIVAL_TIMEOUT) {
                if request.body == b"end" || worker.answer(&request.token, &request.body).is_err() {
                    return;
                }
            }
        });
        for size in [0, 1, 128 * 1024] {
            let body = vec![200_u8; size];
            let answered = coordinator.request(&subject, &body, timeout);
            same("the answer", answered.map(|answer| answer.len()), Ok(size))?;
        }
        let silence = coordinator.request(&subject, b"end", Duration::from_millis(300));
        same("no answer", silence, Err(EngineError::Timeout))
    })
}

fn objects(provider: &dyn Provider) -> ClauseResult {
    let (coordinator, worker) = (provider.coordinator(), provider.worker("w1"));
    let (given, taken) = (
        provider.folder().join("given"),
        provider.folder().join("taken"),
    );
    let content: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    for content in [content.as_slice(), b"short", b""] {
        std::fs::write(&given, content).map_err(|error| error.to_string())?;
        same("stored", worker.put_object("bundle.l.t.1", &given), Ok(()))?;
        same(
            "fetched",
            coordinator.get_object("bundle.l.t.1", &taken),
            Ok(()),
        )?;
        let came = std::fs::read(&taken).map_err(|error| error.to_string())?;
        check("the same", came == content)?;
    }
    same("deleted", coordinator.delete_object("bundle.l.t.1"), Ok(()))?;
    same("again", coordinator.delete_object("bundle.l.t.1"), Ok(()))?;
    let gone = coordinator.get_object("bundle.l.t.1", &taken);
    let expected = EngineError::NoObject("bundle.l.t.1".to_owned());
    same("gone", gone, Err(expected))
}

fn announcements(provider: &dyn Provider) -> ClauseResult {
    let (coordinator, worker) = (provider.coordinator(), provider.worker("w1"));
    let other = provider.worker("w.2");
    for (engine, name, seconds) in [(&worker, "w1", 2), (&other, "w.2", 60)] {
        let ttl = Duration::from_secs(seconds);
        let first = engine.announce(name, None, b"here", ttl).map_err(told)?;
        let second = engine.announce(name, Some(first), b"here", ttl);
        check("again", second.is_ok_and(|second| second > first))?;
        // Whoever uses the same name is found by that.
        let late = engine.announce(name, Some(first), b"here", ttl);
        same("somebody else did", late, Err(EngineError::Conflict))?;
    }
    let names = || {
        let mut names: Vec<String> = coordinator
            .workers()
            .map_err(told)?
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        names.sort();
        Ok::<_, String>(names)
    };
    same("both", names()?, vec!["w.2".to_owned(), "w1".to_owned()])?;
    provider.pass(Duration::from_millis(3500));
    same("one is gone", names()?, vec!["w.2".to_owned()])
}

fn put(
    engine: &dyn Engine,
    subject: &str,
    expect: Option<u64>,
    ttl: Option<Duration>,
    value: &[u8],
) -> Result<u64, String> {
    let shown = String::from_utf8_lossy(value).into_owned();
    engine
        .put(subject, expect, ttl, value)
        .map_err(|error| format!("put {shown}: {error}"))
}

fn follow(
    engine: &dyn Engine,
    filter: &str,
    from: FollowFrom,
) -> Result<Receiver<Delivery>, String> {
    engine.follow(filter, from).map_err(told)
}

fn next(seen: &Receiver<Delivery>) -> Result<Delivery, String> {
    seen.recv_timeout(ARRIVAL_TIMEOUT)
        .map_err(|error| format!("nothing was delivered: {error}"))
}

fn entry(subject: &str, seq: u64, value: &[u8]) -> Delivery {
    Delivery::Entry(SubjectEntry {
        subject: subject.to_owned(),
        seq,
        body: EntryBody::Value(value.to_vec()),
    })
}

fn told(error: EngineError) -> String {
    error.to_string()
}

fn check(what: &str, holds: bool) -> ClauseResult {
    match holds {
        true => Ok(()),
        false => Err(format!("does not hold: {what}")),
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> ClauseResult {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: found {found:?}, expected {expected:?}")),
    }
}
