//! What a loop costs does not grow with its history.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use descartes_kernel::event::{
    Decided, Durability, EndedBy, Event, ExitStatus, Progress, RunFacts, TreeFacts, Verdict,
};
use descartes_kernel::state::{IterationSummary, IterativeLoopState};
use descartes_store::Sync;
use descartes_store::catalog::standing;
use descartes_store::journal::{Journal, last_records};
use descartes_store::layout::StateRoot;
use descartes_store::state_file::{StateFile, load};
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn at() -> jiff::Timestamp {
    jiff::Timestamp::from_second(1_700_000_000).unwrap()
}

/// The three events of an iteration.
fn events(number: u32) -> [Decided; 3] {
    let (run, iteration) = (u64::from(number), number);
    let facts = RunFacts {
        ended_by: EndedBy::Exit,
        exit: Some(ExitStatus::Code(0)),
        duration_ms: 61_234,
        stdout_bytes: 123_456,
        stderr_bytes: 0,
        preview: "All tests pass now, going on with the next item. ".repeat(10),
        claim: None,
        abort: None,
        near_miss: None,
        error: None,
        limit: None,
        did_nothing: false,
        tokens: None,
        cost: None,
        leftovers: 0,
        survivors: Vec::new(),
        log_dropped: 0,
        trouble: 0,
        denied: Vec::new(),
        tree_after: None,
    };
    let started = Event::RunStarted {
        run,
        iteration,
        agent: 0,
        guard_pid: Some(4242),
        prompt: "0".repeat(64),
        prompt_bytes: 4000,
        before: TreeFacts::default(),
        notes: Vec::new(),
    };
    let finished = Event::IterationFinished {
        iteration,
        run,
        verdict: Verdict::Worked,
        progress: Progress::Moved(vec!["the work tree changed".into()]),
        after: TreeFacts {
            tree: Some("0".repeat(40)),
            ..Default::default()
        },
        files: Some(3),
        commit: None,
        spent_ms: 61_234,
    };
    [
        started,
        Event::AgentEnded {
            run,
            iteration,
            facts: Box::new(facts),
        },
        finished,
    ]
    .map(Decided::for_test)
}

fn state(iterations: u32) -> IterativeLoopState {
    let summary = IterationSummary {
        output_preview: "x".repeat(500),
        ..Default::default()
    };
    IterativeLoopState {
        version: "1.0".into(),
        iteration: iterations,
        iteration_summaries: vec![summary; 50],
        ..Default::default()
    }
}

/// The median time of an iteration's appends, without the sync, and of the state file.
fn iteration_cost(journal: &mut Journal, file: &mut StateFile, first: u32) -> (Duration, Duration) {
    let mut times = Vec::new();
    for number in first..first + 200 {
        let start = Instant::now();
        for event in events(number) {
            journal.append(at(), &event, Durability::Process).unwrap();
        }
        let appended = start.elapsed();
        let start = Instant::now();
        file.save(&state(number), journal.next_seq(), Sync::Lazy)
            .unwrap();
        times.push((appended, start.elapsed()));
    }
    let (mut appends, mut saves): (Vec<_>, Vec<_>) = times.into_iter().unzip();
    appends.sort();
    saves.sort();
    (appends[100], saves[100])
}

#[test]
fn iteration_33_000_costs_what_the_first_ones_cost_and_a_status_is_quick() {
    let temp = TempDir::new().unwrap();
    let dir = StateRoot::at(temp.path().join("root"))
        .loop_dir("one")
        .unwrap();
    let state_path = temp.path().join("loop-state.json");
    let mut file = StateFile::at(&state_path).unwrap();
    let mut journal = Journal::create(&dir.journal()).unwrap();
    let (early, saved) = iteration_cost(&mut journal, &mut file, 1);
    for number in 201..33_200 {
        for event in events(number) {
            journal.append_later(at(), &event).unwrap();
        }
    }
    let (late, saved_late) = iteration_cost(&mut journal, &mut file, 33_200);
    println!(
        "{} records, {} MB",
        journal.next_seq(),
        journal.bytes() / 1_000_000
    );
    println!(
        "three appends: {early:?} at first, {late:?} late; state file {saved:?}, {saved_late:?}"
    );
    assert!(
        late < early * 10 + Duration::from_millis(1),
        "{early:?}, then {late:?}"
    );

    let start = Instant::now();
    let records = last_records(&dir.journal(), 20).unwrap();
    let loaded = load(&state_path).unwrap();
    standing(&dir).unwrap();
    let status = start.elapsed();
    println!("status: {status:?}");
    assert_eq!((records.len(), loaded.state.iteration), (20, 33_399));

    drop(journal);
    let start = Instant::now();
    let mut count = 0u64;
    Journal::open_with(&dir.journal(), |_| count += 1).unwrap();
    let recovery = start.elapsed();
    println!("recovery of {count} records: {recovery:?}");
    assert!(count > 100_000);
    // Who looks does not read all of it.
    assert!(status < recovery, "{status:?}, {recovery:?}");
}
