//! Logs hold what was printed, within their budget, and never get in the way.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use descartes_store::layout::StateRoot;
use descartes_store::logs::{GapMarks, LogFile, LogTail, LoopLogs, read_log, tail};
use proptest::prelude::*;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn world() -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("runs/0001/stdout.log");
    (dir, path)
}

fn read(path: &Path, marks: GapMarks) -> Vec<u8> {
    let mut bytes = Vec::new();
    read_log(path, marks)
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

/// Bytes in which every place can be told from every other.
fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64)
        .flat_map(|n| format!("{n:011}\n").into_bytes())
        .take(len)
        .collect()
}

#[test]
fn under_its_budget_a_log_is_byte_for_byte_what_came() {
    let (_dir, path) = world();
    let mut log = LogFile::new(path.clone(), Some(10_000));
    log.write(b"");
    assert!(!path.exists(), "nothing came, nothing is made");
    assert_eq!(read(&path, GapMarks::Shown), b"");
    assert_eq!(tail(&path, 5, 100).unwrap(), b"");
    let bytes: Vec<u8> = (0..10_000u32).map(|n| (n * 7 % 256) as u8).collect();
    for chunk in bytes.chunks(333) {
        log.write(chunk);
    }
    assert_eq!(log.offset(), 10_000);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert_eq!(read(&path, GapMarks::Shown), bytes);
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let status = log.finish();
    assert_eq!(
        (status.offered, status.dropped, status.stopped),
        (10_000, 0, None)
    );
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn past_its_budget_the_middle_goes_and_head_and_tail_stay() {
    let (_dir, path) = world();
    let budget = 1u64 << 20;
    let all = pattern(20 << 20);
    let mut log = LogFile::new(path.clone(), Some(budget));
    for chunk in all.chunks(100_000) {
        log.write(chunk);
        let used = fs::metadata(&path).unwrap().blocks() * 512;
        assert!(used <= budget + 110_000, "{used} bytes of disk");
    }
    let status = log.finish();
    assert_eq!(status.stopped, None);
    assert_eq!(status.offered, all.len() as u64);
    let kept = status.offered - status.dropped;
    assert!(kept <= budget && kept >= budget * 3 / 4, "{kept}");
    let bytes = read(&path, GapMarks::Hidden);
    assert_eq!(bytes.len() as u64, kept);
    let head = budget as usize / 2;
    assert_eq!(bytes[..head], all[..head]);
    assert_eq!(bytes[head..], all[all.len() - (bytes.len() - head)..]);
    assert!(bytes.len() - head >= budget as usize / 4);
    let told = read(&path, GapMarks::Shown);
    let words = format!("\n[… {} bytes dropped …]\n", status.dropped);
    assert_eq!(told[head..head + words.len()], *words.as_bytes());
    assert_eq!(
        tail(&path, 2, 1000).unwrap(),
        all[all.len() - 20..][..20],
        "two lines, the last cut"
    );
}

#[test]
fn a_tiny_budget_and_a_big_chunk_get_along() {
    for budget in [0, 1, 4095, 4096, 10_000] {
        let (_dir, path) = world();
        let mut log = LogFile::new(path.clone(), Some(budget));
        let all = pattern(300_000);
        log.write(&all[..200_000]);
        log.write(&all[200_000..]);
        let status = log.finish();
        assert_eq!(status.stopped, None);
        assert!(
            status.offered - status.dropped <= budget + 2 * 4096,
            "{budget}: {status:?}"
        );
        let bytes = read(&path, GapMarks::Hidden);
        assert_eq!(bytes.len() as u64, status.offered - status.dropped);
        assert!(all.ends_with(&bytes[bytes.len().saturating_sub(100)..]));
    }
}

/// A full disk is tried at every operation in `faults.rs`.
#[test]
fn a_planted_link_ends_the_log_and_not_its_writer() {
    let dir = TempDir::new().unwrap();
    let (path, target) = (dir.path().join("stdout.log"), dir.path().join("precious"));
    fs::write(&target, "keys").unwrap();
    std::os::unix::fs::symlink(&target, &path).unwrap();
    let mut log = LogFile::new(path, None);
    log.write(b"hello");
    log.write(b" world");
    let status = log.finish();
    assert_eq!(status.offered, 11);
    assert_eq!(status.dropped, 11);
    let stopped = status.stopped.unwrap();
    assert_eq!(stopped.at, 0);
    assert!(stopped.why.contains("symbolic link"), "{}", stopped.why);
    assert_eq!(fs::read_to_string(target).unwrap(), "keys");
}

#[test]
fn a_log_that_cannot_be_made_is_told_and_no_more() {
    let mut log = LogFile::new(PathBuf::from("/proc/nowhere/stdout.log"), None);
    log.write(b"hello");
    assert_eq!(log.status().dropped, 5);
    assert!(log.status().stopped.is_some());
}

#[test]
fn the_last_lines_of_a_log() {
    let (_dir, path) = world();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "one\ntwo\nthree\n").unwrap();
    let last = |lines, most| String::from_utf8(tail(&path, lines, most).unwrap()).unwrap();
    assert_eq!(last(0, 100), "");
    assert_eq!(last(1, 100), "three\n");
    assert_eq!(last(2, 100), "two\nthree\n");
    assert_eq!(last(3, 100), "one\ntwo\nthree\n");
    assert_eq!(last(9, 100), "one\ntwo\nthree\n");
    assert_eq!(last(9, 8), "o\nthree\n");
    fs::write(&path, "one\ntwo").unwrap();
    assert_eq!(last(1, 100), "two");
    fs::write(&path, "\n\n").unwrap();
    assert_eq!(last(1, 100), "\n");
}

#[test]
fn a_follower_gets_everything_once_and_gaps_said() {
    let (_dir, path) = world();
    let mut follower = LogTail::from(&path, 0);
    let mut seen = Vec::new();
    assert_eq!(
        follower.read_new(&mut seen, 100).unwrap(),
        0,
        "not there yet"
    );
    let all = pattern(100_000);
    let mut log = LogFile::new(path.clone(), Some(40_960));
    for chunk in all[..40_000].chunks(1234) {
        log.write(chunk);
        while follower.read_new(&mut seen, 500).unwrap() > 0 {}
    }
    assert_eq!(seen, all[..40_000]);
    let mut late = LogTail::from(&path, 0);
    for chunk in all[40_000..].chunks(1234) {
        log.write(chunk);
    }
    seen.clear();
    while late.read_new(&mut seen, 1 << 20).unwrap() > 0 {}
    assert_eq!(seen, read(&path, GapMarks::Shown));
    assert_eq!(late.offset(), all.len() as u64);
    let mut end = LogTail::from_end(&path);
    log.write(b"new");
    seen.clear();
    end.read_new(&mut seen, 100).unwrap();
    assert_eq!(seen, b"new");
    drop(log);
    LogFile::new(path.clone(), None).write(b"begun anew");
    seen.clear();
    end.read_new(&mut seen, 100).unwrap();
    assert_eq!(seen, b"begun anew");
}

#[test]
fn the_oldest_logs_of_a_loop_go_first() {
    let temp = TempDir::new().unwrap();
    let dir = StateRoot::at(temp.path()).loop_dir("one").unwrap();
    let write = |run| LogFile::new(dir.run(run).stdout(), None).write(&[b'x'; 100_000]);
    (1..=3).for_each(write);
    let mut logs = LoopLogs::measure(&dir, 450_000).unwrap();
    let three = logs.used();
    assert!(three >= 300_000);
    let mut pruned = Vec::new();
    for run in 4..=8 {
        write(run);
        pruned.extend(logs.add(run).unwrap());
        assert!(logs.used() <= 450_000);
    }
    let runs: Vec<_> = pruned.iter().map(|pruned| pruned.run).collect();
    assert_eq!(runs, [1, 2, 3, 4]);
    assert!(!dir.run(4).path().exists() && dir.run(5).stdout().exists());
    let mut tight = LoopLogs::measure(&dir, 10).unwrap();
    write(9);
    tight.add(9).unwrap();
    assert!(dir.run(9).stdout().exists(), "the newest stays");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_chunks_give_head_words_tail(
        chunks in prop::collection::vec(1usize..30_000, 1..20),
        budget in prop::option::of(0u64..200_000),
    ) {
        let (_dir, path) = world();
        let all = pattern(chunks.iter().sum());
        let mut log = LogFile::new(path.clone(), budget);
        let mut rest = &all[..];
        for chunk in chunks {
            log.write(&rest[..chunk]);
            rest = &rest[chunk..];
        }
        let status = log.finish();
        let bytes = read(&path, GapMarks::Hidden);
        prop_assert_eq!(bytes.len() as u64, status.offered - status.dropped);
        let head = all.iter().zip(&bytes).take_while(|(a, b)| a == b).count();
        prop_assert!(all.ends_with(&bytes[head..]));
        if budget.is_none_or(|budget| budget >= all.len() as u64) {
            prop_assert_eq!(bytes, all);
        }
    }
}
