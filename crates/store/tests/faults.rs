//! The disk fails at every single operation: nothing is lost that was said to be kept.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use descartes_kernel::event::{Decided, Durability};
use descartes_kernel::fact;
use descartes_kernel::state::IterativeLoopState;
use descartes_store::Sync;
use descartes_store::fault::FaultPlan;
use descartes_store::journal::{Journal, JournalError};
use descartes_store::logs::{GapMarks, LogFile, read_log};
use descartes_store::state_file::{StateFile, load};
use std::io::Read;
use std::path::Path;
use tempfile::TempDir;

fn at() -> jiff::Timestamp {
    jiff::Timestamp::from_second(1_700_000_000).unwrap()
}

fn warning(number: u64) -> Decided {
    fact::warning(format!("number {number}"))
}

/// Appends ten events and returns how many were acknowledged.
fn ten(path: &Path) -> Result<u64, (u64, JournalError)> {
    let mut journal = Journal::create(path).map_err(|error| (0, error))?;
    for number in 0..10 {
        let durability = if number % 3 == 0 {
            Durability::Power
        } else {
            Durability::Process
        };
        journal
            .append(at(), &warning(number), durability)
            .map_err(|error| (number, error))?;
    }
    Ok(10)
}

#[test]
fn a_journal_survives_an_error_at_every_operation() {
    for what in [
        "enospc-at",
        "eio-at",
        "half-at",
        "enospc-from",
        "eio-from",
        "half-from",
    ] {
        let mut met_the_end = false;
        for nth in 1..100 {
            let dir = TempDir::new().unwrap();
            let path = dir.path().join("loops/one/journal.jsonl");
            let plan: FaultPlan = format!("{what}-write:{nth}").parse().unwrap();
            let (result, met) = plan.during(|| ten(&path));
            if met < nth {
                met_the_end = true;
                break;
            }
            let acknowledged = result
                .as_ref()
                .map_or_else(|(count, _)| *count, |count| *count);
            match Journal::open(&path) {
                // One more may be there: written, but the sync after it failed.
                Ok((_, records, _)) => {
                    let kept = records.len() as u64;
                    assert!(
                        kept == acknowledged || kept == acknowledged + 1,
                        "{what}:{nth}"
                    );
                }
                Err(error) => assert_eq!(acknowledged, 0, "{what}:{nth} {error}"),
            }
        }
        assert!(met_the_end, "{what}: every operation was met");
    }
}

#[test]
fn a_full_disk_leaves_room_for_the_last_words() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("journal.jsonl");
    let mut journal = Journal::create(&path).unwrap();
    let reserve = dir.path().join("journal.jsonl.reserve");
    assert_eq!(std::fs::metadata(&reserve).unwrap().len(), 64 << 10);
    let plan: FaultPlan = "half-at-write:1".parse().unwrap();
    let (result, _) = plan.during(|| journal.append(at(), &warning(0), Durability::Power));
    assert!(matches!(result, Err(JournalError::Full(_))), "{result:?}");
    assert_eq!(
        std::fs::metadata(&path).unwrap().len(),
        0,
        "no half line stays"
    );
    assert_eq!(journal.append_from_reserve(at(), &warning(1)).unwrap(), 0);
    assert!(!reserve.exists());
    drop(journal);
    let (_, records, _) = Journal::open(&path).unwrap();
    assert_eq!(records.len(), 1);
    assert!(reserve.exists(), "taken again at the next start");
}

/// Not a test by itself: the process that is killed below.
#[test]
fn killed_process() {
    let Ok(path) = std::env::var("STORE_TEST_KILLED") else {
        return;
    };
    let path = Path::new(&path);
    let mut journal = match Journal::open(path) {
        Ok((journal, ..)) => journal,
        Err(JournalError::Io(error)) if error.is_missing() => Journal::create(path).unwrap(),
        Err(error) => unreachable!("{error}"),
    };
    for number in 0..3 {
        let seq = journal
            .append(at(), &warning(number), Durability::Process)
            .unwrap();
        println!("\nacknowledged {seq}");
    }
    println!("\nlived");
}

#[test]
fn killed_at_every_operation_no_acknowledged_event_is_lost() {
    for what in ["kill", "tear"] {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("journal.jsonl");
        let mut acknowledged = 0;
        for nth in 1..100 {
            let output = std::process::Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "killed_process",
                    "--nocapture",
                    "--test-threads=1",
                ])
                .env("STORE_TEST_KILLED", &path)
                .env("DESCARTES_FAULT", format!("{what}-at-write:{nth}"))
                .output()
                .unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let mut said = text
                .lines()
                .filter_map(|line| line.strip_prefix("acknowledged "));
            if let Some(last) = said.next_back() {
                acknowledged = last.parse::<u64>().unwrap() + 1;
            }
            if path.exists() {
                let (_, records, _) = Journal::open(&path).unwrap();
                assert!(records.len() as u64 >= acknowledged, "{what}:{nth}");
            } else {
                assert_eq!(acknowledged, 0);
            }
            if text.contains("lived") {
                assert!(nth > 3, "{text}");
                break;
            }
            assert!(!output.status.success());
            assert!(nth < 99);
        }
    }
}

#[test]
fn an_append_is_one_write_and_a_durable_one_a_sync_more_however_long_the_journal() {
    let dir = TempDir::new().unwrap();
    let mut journal = Journal::create(&dir.path().join("journal.jsonl")).unwrap();
    for round in 0..3 {
        let (_, met) = FaultPlan::count().during(|| {
            journal
                .append(at(), &warning(round), Durability::Process)
                .unwrap()
        });
        assert_eq!(met, 1);
        let (_, met) = FaultPlan::count().during(|| {
            journal
                .append(at(), &warning(round), Durability::Power)
                .unwrap()
        });
        assert_eq!(met, 2);
        for number in 0..1000 {
            journal.append_later(at(), &warning(number)).unwrap();
        }
    }
}

#[test]
fn saving_the_state_file_is_three_operations_and_any_may_fail() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("loop-state.json");
    let mut file = StateFile::at(&path).unwrap();
    let old = IterativeLoopState {
        version: "1.0".into(),
        ..Default::default()
    };
    let new = IterativeLoopState {
        iteration: 9,
        ..old.clone()
    };
    let (_, met) = FaultPlan::count().during(|| file.save(&old, 1, Sync::Lazy).unwrap());
    assert_eq!(met, 3);
    for what in ["enospc", "eio", "half", "erofs"] {
        for nth in 1..=3 {
            let plan: FaultPlan = format!("{what}-at-write:{nth}").parse().unwrap();
            let (result, _) = plan.during(|| file.save(&new, 2, Sync::Lazy));
            assert!(result.is_err(), "{what}:{nth}");
            assert_eq!(
                load(&path).unwrap().state.iteration,
                0,
                "the old one stays whole"
            );
        }
    }
    file.save(&new, 2, Sync::Lazy).unwrap();
    assert_eq!(load(&path).unwrap().state.iteration, 9);
}

#[test]
fn a_log_survives_an_error_at_every_operation() {
    let chunk = [b'x'; 10_000];
    for what in ["enospc-at", "eio-at", "half-at", "enospc-from", "half-from"] {
        for nth in 1..200 {
            let dir = TempDir::new().unwrap();
            let path = dir.path().join("runs/0001/stdout.log");
            let plan: FaultPlan = format!("{what}-write:{nth}").parse().unwrap();
            let (status, met) = plan.during(|| {
                let mut log = LogFile::new(path.clone(), Some(40_000));
                (0..20).for_each(|_| log.write(&chunk));
                log.finish()
            });
            assert_eq!(status.offered, 200_000);
            let mut kept = Vec::new();
            read_log(&path, GapMarks::Hidden)
                .unwrap()
                .read_to_end(&mut kept)
                .unwrap();
            // The note of what is gone may be lost with the disk; the status is right then too.
            assert_eq!(
                kept.len() as u64,
                status.offered - status.dropped,
                "{what}:{nth} {status:?}"
            );
            assert!(
                kept.iter().all(|byte| *byte == b'x'),
                "{what}:{nth}: zeros of a hole"
            );
            if met < nth {
                assert_eq!(status.stopped, None);
                break;
            }
            assert!(nth < 199);
        }
    }
}

#[test]
fn a_slow_disk_slows_what_is_synced_and_nothing_else() {
    let dir = TempDir::new().unwrap();
    let mut journal = Journal::create(&dir.path().join("journal.jsonl")).unwrap();
    let slow: FaultPlan = "slow-sync:120".parse().unwrap();
    let mut took = |durability| {
        let since = std::time::Instant::now();
        slow.during(|| journal.append(at(), &warning(0), durability).unwrap());
        since.elapsed()
    };
    assert!(took(Durability::Power) >= std::time::Duration::from_millis(120));
    let lazily = (0..5).map(|_| took(Durability::Process)).min().unwrap();
    assert!(lazily < std::time::Duration::from_millis(120), "{lazily:?}");
}

#[test]
fn nothing_is_appended_behind_a_sync_that_failed() {
    // The first operation of an append that is to survive a power cut is the write, the second the sync.
    for nth in 1..=2 {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("journal.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        journal
            .append(at(), &warning(0), Durability::Power)
            .unwrap();
        let plan: FaultPlan = format!("eio-at-write:{nth}").parse().unwrap();
        let (failed, _) = plan.during(|| journal.append(at(), &warning(1), Durability::Power));
        assert!(matches!(failed, Err(JournalError::Io(_))), "{failed:?}");
        let next = journal.append(at(), &warning(2), Durability::Power);
        match nth {
            1 => assert_eq!(next.unwrap(), 1, "the write was taken back"),
            _ => {
                assert!(
                    matches!(next, Err(JournalError::Poisoned { .. })),
                    "{next:?}"
                );
                let later = journal.append_later(at(), &warning(3));
                assert!(matches!(later, Err(JournalError::Poisoned { .. })));
                // The reason for the end is said all the same, and nothing behind it.
                journal.append_from_reserve(at(), &warning(4)).unwrap();
                let behind = journal.append(at(), &warning(5), Durability::Process);
                assert!(matches!(behind, Err(JournalError::Poisoned { .. })));
            }
        }
    }
}
