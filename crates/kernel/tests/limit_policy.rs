//! From a provider's words to the instant at which the agent is asked again: no process, and a
//! clock of our own. Nothing is counted, and the wake-up is the stated reset, to the second, also
//! over a change of the clocks.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use descartes_agents::promise::{PromiseMatch, PromiseSpec};
use descartes_agents::reader::{RunReader, RunReport, Source};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::event::*;
use descartes_kernel::state::{LoopState, Phase};
use descartes_kernel::step::{Action, Agents, Input, plan, react};
use descartes_kernel::transition::{apply, begin};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

const AGENTS: Agents = Agents {
    count: 1,
    stall_default: 0,
};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).unwrap()
}

struct Loop {
    state: LoopState,
    seq: u64,
    now: Timestamp,
}

impl Loop {
    fn running(now: Timestamp) -> Self {
        let created = Event::LoopCreated {
            loop_id: "id".into(),
            name: "n".into(),
            config: Box::new(IterativeLoopConfig {
                command: "agent".into(),
                max_iterations: Some(3),
                ..IterativeLoopConfig::default()
            }),
            started_at: now,
            iterations: 0,
            summaries: vec![],
            spent: None,
            ended: None,
        };
        let first = Record {
            v: FORMAT,
            seq: 0,
            at: now,
            event: created,
        };
        let state = begin(&first).unwrap();
        let mut this = Self { state, seq: 0, now };
        this.append(Event::RunStarted {
            run: 1,
            iteration: 1,
            agent: 0,
            guard_pid: None,
            prompt: String::new(),
            prompt_bytes: 0,
            before: TreeFacts::default(),
            notes: vec![],
        });
        this
    }

    fn append(&mut self, event: Event) {
        self.seq += 1;
        let record = Record {
            v: FORMAT,
            seq: self.seq,
            at: self.now,
            event,
        };
        apply(&mut self.state, &record).unwrap();
    }

    fn input(&mut self, input: &Input) {
        for event in react(&self.state, input, AGENTS, self.now) {
            self.append(event.into());
        }
    }
}

fn facts(said: RunReport) -> RunFacts {
    RunFacts {
        ended_by: EndedBy::Exit,
        exit: Some(ExitStatus::Code(1)),
        duration_ms: 1000,
        stdout_bytes: 10,
        stderr_bytes: 0,
        preview: said.preview,
        claim: said.claim,
        abort: said.abort,
        near_miss: said.near_miss,
        error: said.error,
        limit: said.limit,
        did_nothing: said.did_nothing,
        tokens: said.tokens,
        cost: said.cost,
        leftovers: 0,
        survivors: vec![],
        log_dropped: 0,
        trouble: said.trouble,
        denied: said.denied,
        tree_after: None,
    }
}

/// The loop after an agent printed these words on standard error and failed.
fn told(words: &str, now: &str, local: &TimeZone) -> Loop {
    let spec = PromiseSpec {
        done: Some("COMPLETE".into()),
        abort: None,
        mode: PromiseMatch::Line,
    };
    let mut reader = RunReader::plain(&spec, "go");
    reader.push(
        Source::Stderr,
        format!("{words}\n").as_bytes(),
        &mut Vec::new(),
    );
    let exit = Some(ExitStatus::Code(1));
    let said = reader.finish(exit, EndedBy::Exit, at(now), local);
    let mut world = Loop::running(at(now));
    world.input(&Input::RunEnded(Box::new(facts(said))));
    world
}

/// When the loop asks the agent again, looked at every second with the clock of the test.
fn asked_again(mut world: Loop) -> Timestamp {
    let Action::Wait(until) = plan(&world.state, AGENTS, world.now) else {
        return world.now;
    };
    // A second before it still waits; then its time has come.
    world.now = until - SignedDuration::from_secs(1);
    assert!(matches!(
        plan(&world.state, AGENTS, world.now),
        Action::Wait { .. }
    ));
    world.now = until;
    world.input(&Input::WaitElapsed);
    assert!(matches!(
        plan(&world.state, AGENTS, world.now),
        Action::Start { iteration: 1, .. }
    ));
    assert!(matches!(world.state.phase, Phase::Ready { .. }));
    assert_eq!(world.state.iterations, 0, "a limited run is no iteration");
    assert_eq!(world.state.spent.tokens, None);
    world.now
}

#[test]
fn the_agent_is_asked_again_at_the_stated_reset_to_the_second() {
    let new_york = "America/New_York";
    let table = [
        // The wordings of the field.
        (
            "Claude AI usage limit reached|1794716358",
            "2026-11-15T03:00:00Z",
            "UTC",
            "2026-11-15T04:19:18Z",
        ),
        (
            "5-hour limit reached · resets 3pm (Europe/Stockholm)",
            "2026-11-15T03:00:00Z",
            "UTC",
            "2026-11-15T14:00:00Z",
        ),
        (
            "You've hit your limit · resets 5pm (Europe/Vilnius)",
            "2026-11-15T03:00:00Z",
            new_york,
            "2026-11-15T15:00:00Z",
        ),
        (
            "Claude usage limit reached. Your limit will reset at 7pm (Asia/Tokyo).",
            "2026-11-15T03:00:00Z",
            "UTC",
            "2026-11-15T10:00:00Z",
        ),
        (
            "You’ve hit your usage limit. Upgrade to Pro or try again at 1:18 AM.",
            "2026-11-15T03:00:00Z",
            "Europe/Berlin",
            "2026-11-16T00:18:00Z",
        ),
        (
            "Error: 429 Too Many Requests, retry after 3600 seconds",
            "2026-11-15T03:00:00Z",
            "UTC",
            "2026-11-15T04:00:00Z",
        ),
        // The night in which clocks go back: half past one comes twice, and nine is an hour further.
        (
            "You've hit your limit · resets 1:30am",
            "2026-11-01T04:00:00Z",
            new_york,
            "2026-11-01T05:30:00Z",
        ),
        (
            "You've hit your limit · resets 1:30am",
            "2026-11-01T05:40:00Z",
            new_york,
            "2026-11-01T06:30:00Z",
        ),
        (
            "You've hit your limit · resets 9am (America/New_York)",
            "2026-11-01T04:00:00Z",
            "UTC",
            "2026-11-01T14:00:00Z",
        ),
        // The night in which they go forward: nine is an hour nearer, half past two does not exist.
        (
            "You've hit your limit · resets 9am (Europe/Berlin)",
            "2026-03-28T22:00:00Z",
            "UTC",
            "2026-03-29T07:00:00Z",
        ),
        (
            "You've hit your limit · resets 2:30am",
            "2026-03-08T06:00:00Z",
            new_york,
            "2026-03-08T07:30:00Z",
        ),
        // A duration is a duration, whatever clocks do.
        (
            "Usage limit reached. Try again in 3 hours.",
            "2026-11-01T04:30:00Z",
            new_york,
            "2026-11-01T07:30:00Z",
        ),
    ];
    for (words, now, local, want) in table {
        let asked = asked_again(told(words, now, &zone(local)));
        let late = asked.duration_since(at(want));
        let right = (SignedDuration::ZERO..SignedDuration::from_secs(1)).contains(&late);
        assert!(
            right,
            "{words} at {now} in {local}: asked at {asked}, {want} was stated"
        );
    }
}

#[test]
fn without_a_stated_reset_waits_grow_from_a_minute_to_an_hour() {
    let mut world = told(
        "API Error: 529 Overloaded",
        "2026-11-15T03:00:00Z",
        &TimeZone::UTC,
    );
    let mut waits = Vec::new();
    for run in 2..10 {
        let Action::Wait(until) = plan(&world.state, AGENTS, world.now) else {
            break;
        };
        waits.push(until.duration_since(world.now).as_secs() / 60);
        world.now = until;
        world.input(&Input::WaitElapsed);
        world.append(Event::RunStarted {
            run,
            iteration: 1,
            agent: 0,
            guard_pid: None,
            prompt: String::new(),
            prompt_bytes: 0,
            before: TreeFacts::default(),
            notes: vec![],
        });
        let limit = ReportedLimit {
            kind: LimitKind::Overload,
            until: None,
            words: "overloaded".into(),
        };
        let said = RunReport {
            limit: Some(limit),
            ..RunReport::default()
        };
        world.input(&Input::RunEnded(Box::new(facts(said))));
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    assert_eq!(world.state.iterations, 0);
}

#[test]
fn a_clock_put_back_in_the_wait_does_not_make_the_limit_come_again() {
    let words = "Usage limit reached. Try again in 3 hours.";
    let mut world = told(words, "2026-11-15T03:00:00Z", &TimeZone::UTC);
    let waits = |world: &Loop| plan(&world.state, AGENTS, world.now);
    assert!(matches!(waits(&world), Action::Wait(_)));
    // Three hours later by a clock that nobody sets; the wall clock was put back a day.
    world.now = at("2026-11-14T06:00:00Z");
    world.input(&Input::WaitElapsed);
    assert!(matches!(waits(&world), Action::Start { iteration: 1, .. }));
}

#[test]
fn a_reset_in_the_year_3000_is_backed_off_from_instead() {
    let now = "2026-11-15T03:00:00Z";
    for words in [
        "Claude AI usage limit reached|32503680000",
        "You've hit your limit · resets Dec 1",
    ] {
        let asked = asked_again(told(words, now, &TimeZone::UTC));
        assert_eq!(asked, at("2026-11-15T03:01:00Z"), "{words}");
    }
    // Told as a value.
    let limit = ReportedLimit {
        kind: LimitKind::Usage,
        until: Some(at("3000-01-01T00:00:00Z")),
        words: "five hour limit reached".into(),
    };
    let said = RunReport {
        limit: Some(limit),
        ..RunReport::default()
    };
    let mut world = Loop::running(at(now));
    world.input(&Input::RunEnded(Box::new(facts(said))));
    let wait = world.state.wait().unwrap();
    assert_eq!(wait.until, at("2026-11-15T03:01:00Z"));
    let WaitReason::Limit(told) = &wait.reason else {
        panic!("{:?}", wait.reason)
    };
    assert!(told.words.contains("ignoring a reset"), "{}", told.words);
}
