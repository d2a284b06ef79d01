//! The journal keeps every whole line, whatever happens to the file.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use descartes_kernel::event::{Decided, Durability, Event, Record, TreeFacts};
use descartes_kernel::fact;
use descartes_store::journal::{
    Journal, JournalError, JournalReader, end_from, find_last, last_records, repair, seek,
};
use proptest::prelude::*;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn at(second: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn warning(text: &str) -> Decided {
    fact::warning(text)
}

fn world() -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("loops/one/journal.jsonl");
    (dir, path)
}

/// A journal of three lines and its bytes.
fn small() -> (TempDir, PathBuf, Vec<u8>) {
    let (dir, path) = world();
    let mut journal = Journal::create(&path).unwrap();
    for (second, text) in ["a", "zwölf \u{1f980}", "line\nend \"quoted\" @"]
        .iter()
        .enumerate()
    {
        journal
            .append(at(second as i64), &warning(text), Durability::Process)
            .unwrap();
    }
    let bytes = fs::read(&path).unwrap();
    (dir, path, bytes)
}

fn line_ends(bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len())
        .filter(|i| bytes[*i] == b'\n')
        .map(|i| i + 1)
        .collect()
}

fn reopen(path: &Path) -> Result<Vec<Record>, JournalError> {
    Journal::open(path).map(|(_, records, _)| records)
}

#[test]
fn a_line_ends_in_the_checksum_of_what_stands_before_it() {
    let (_dir, path, bytes) = small();
    let text = String::from_utf8(bytes).unwrap();
    for (number, line) in text.lines().enumerate() {
        let (body, crc) = line.rsplit_once(",\"crc\":\"").unwrap();
        assert!(
            body.starts_with(&format!("{{\"v\":1,\"seq\":{number},\"at\":\"20")),
            "{body}"
        );
        assert_eq!(crc, format!("{:08x}\"}}", crc32fast::hash(body.as_bytes())));
    }
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let folder = path.parent().unwrap();
    assert_eq!(
        fs::metadata(folder).unwrap().permissions().mode() & 0o777,
        0o700
    );
}

#[test]
fn cut_at_every_byte_no_whole_line_is_lost_and_appending_goes_on() {
    let (_dir, path, bytes) = small();
    let ends = line_ends(&bytes);
    for cut in 0..=bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        // A line that only lacks its line end is whole.
        let whole = ends
            .iter()
            .filter(|end| **end - 1 <= cut && cut > 0)
            .count();
        let (mut journal, records, recovered) = Journal::open(&path).unwrap();
        assert_eq!(records.len(), whole, "cut at {cut}");
        let torn = ends.contains(&(cut + 1)) || ends.contains(&cut) || cut == 0;
        assert_eq!(recovered.cut.is_none(), torn, "cut at {cut}: {recovered:?}");
        assert_eq!(
            recovered.line_end_added,
            ends.contains(&(cut + 1)),
            "cut at {cut}"
        );
        assert_eq!(journal.next_seq(), whole as u64);
        journal
            .append(at(9), &warning("more"), Durability::Process)
            .unwrap();
        drop(journal);
        let again = reopen(&path).unwrap();
        assert_eq!(again[..whole], records[..]);
        assert_eq!(again.len(), whole + 1, "cut at {cut}");
    }
}

#[test]
fn with_every_bit_flipped_a_journal_recovers_everything_or_names_the_byte() {
    let (_dir, path, bytes) = small();
    let whole = reopen(&path).unwrap();
    let starts: Vec<u64> = std::iter::once(0)
        .chain(line_ends(&bytes).iter().map(|end| *end as u64))
        .collect();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &flipped).unwrap();
        match reopen(&path) {
            Ok(records) => assert_eq!(records, whole, "bit {bit}"),
            Err(JournalError::Damaged { byte, .. }) => {
                assert!(starts.contains(&byte), "bit {bit} at {byte}");
                assert!(byte <= bit as u64 / 8);
                assert_eq!(
                    fs::read(&path).unwrap(),
                    flipped,
                    "an error changes nothing"
                );
            }
            Err(other) => unreachable!("bit {bit}: {other}"),
        }
    }
}

/// A journal as a loop writes it: created, a warning, a run that started, another warning.
fn of_a_loop() -> (TempDir, PathBuf, Vec<u8>) {
    let (dir, path) = world();
    let mut journal = Journal::create(&path).unwrap();
    let created = Event::LoopCreated {
        loop_id: "one".to_owned(),
        name: "one".to_owned(),
        config: Box::default(),
        started_at: at(0),
        iterations: 0,
        summaries: Vec::new(),
        spent: None,
        ended: None,
    };
    let started = Event::RunStarted {
        run: 1,
        iteration: 1,
        agent: 0,
        guard_pid: None,
        prompt: "p".to_owned(),
        prompt_bytes: 1,
        before: TreeFacts::default(),
        notes: Vec::new(),
    };
    let interrupted = Event::IterationInterrupted {
        run: 1,
        iteration: 1,
        spent_ms: 1,
        tokens: None,
        cost: None,
    };
    let [created, started, interrupted] = [created, started, interrupted].map(Decided::for_test);
    for event in [created, warning("a"), started, interrupted, warning("b")] {
        journal.append(at(1), &event, Durability::Process).unwrap();
    }
    let bytes = fs::read(&path).unwrap();
    (dir, path, bytes)
}

#[test]
fn repair_drops_the_damaged_line_and_keeps_the_damaged_file() {
    let (_dir, path, bytes) = of_a_loop();
    let whole = reopen(&path).unwrap();
    let ends = line_ends(&bytes);
    for bit in (ends[0] * 8..(ends[1] - 1) * 8).step_by(7) {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &flipped).unwrap();
        assert!(matches!(reopen(&path), Err(JournalError::Damaged { .. })));
        let done = repair(&path).unwrap();
        assert_eq!((done.kept, done.damaged, done.dependent), (4, 1, 0));
        let records = reopen(&path).unwrap();
        assert_eq!(records[1].event, Event::Unknown, "bit {bit}");
        assert_eq!(records[0], whole[0]);
        assert_eq!(records[2..], whole[2..]);
        let copy = done.copy.unwrap();
        assert_eq!(fs::read(&copy).unwrap(), flipped);
        fs::remove_file(&copy).unwrap();
    }
}

#[test]
fn repair_drops_what_follows_only_where_it_cannot_follow() {
    let (_dir, path, bytes) = of_a_loop();
    let ends = line_ends(&bytes);
    let damage = |line: usize| {
        let mut bytes = bytes.clone();
        bytes[ends[line] - 3] = b'#';
        fs::write(&path, &bytes).unwrap();
        let done = repair(&path).unwrap();
        (done.kept, done.damaged, done.dependent)
    };
    // Without its start a run cannot be interrupted.
    assert_eq!(damage(2), (2, 1, 2));
    assert_eq!(fs::read(&path).unwrap(), bytes[..ends[1]]);
    assert_eq!(damage(4), (4, 1, 0));
    assert_eq!(fs::read(&path).unwrap(), bytes[..ends[3]]);
    // Without its first line nothing can be told.
    assert_eq!(damage(0), (0, 1, 4));
    assert!(!path.exists());
    // A damaged line end makes one line of two.
    let mut joined = bytes.clone();
    joined[ends[2] - 1] = b' ';
    fs::write(&path, &joined).unwrap();
    let done = repair(&path).unwrap();
    assert_eq!((done.kept, done.damaged, done.dependent), (3, 2, 0));
    assert_eq!(reopen(&path).unwrap().len(), 5);
}

#[test]
fn repair_leaves_a_whole_journal_as_it_is() {
    let (_dir, path, bytes) = of_a_loop();
    let done = repair(&path).unwrap();
    assert_eq!((done.copy, done.kept), (None, 5));
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn zeros_of_a_power_cut_are_a_torn_end() {
    let (_dir, path, mut bytes) = small();
    let ends = line_ends(&bytes);
    let len = bytes.len();
    bytes[ends[1] + 20..len - 1].fill(0);
    fs::write(&path, &bytes).unwrap();
    assert_eq!(reopen(&path).unwrap().len(), 2);
    fs::write(&path, [&bytes[..ends[1]], &[0; 4096]].concat()).unwrap();
    assert_eq!(reopen(&path).unwrap().len(), 2);
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let (_dir, path, mut bytes) = small();
    let body = br#"{"v":2,"seq":3,"at":"2030-01-01T00:00:00Z","kind":"warning","message":"hi""#;
    bytes.extend_from_slice(body);
    write!(bytes, ",\"crc\":\"{:08x}\"}}", crc32fast::hash(body)).unwrap();
    // Without a line end: recovery would otherwise mend it.
    fs::write(&path, &bytes).unwrap();
    assert!(matches!(
        reopen(&path),
        Err(JournalError::Newer { found: 2, .. })
    ));
    assert_eq!(fs::read(&path).unwrap(), bytes);
    bytes.push(b'\n');
    fs::write(&path, &bytes).unwrap();
    let seen = JournalReader::open(&path).unwrap().read_new().unwrap();
    assert_eq!(seen[3].event, *warning("hi"), "readable is read");
    assert!(matches!(repair(&path), Err(JournalError::Newer { .. })));
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn events_of_a_later_version_are_readable() {
    let (_dir, path, mut bytes) = small();
    let body = br#"{"v":1,"seq":3,"at":"2030-01-01T00:00:00Z","kind":"teleported","to":"mars""#;
    bytes.extend_from_slice(body);
    writeln!(bytes, ",\"crc\":\"{:08x}\"}}", crc32fast::hash(body)).unwrap();
    fs::write(&path, &bytes).unwrap();
    assert_eq!(reopen(&path).unwrap()[3].event, Event::Unknown);
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_missing_number_is_damage() {
    let (_dir, path, bytes) = small();
    let ends = line_ends(&bytes);
    fs::write(&path, [&bytes[..ends[0]], &bytes[ends[1]..]].concat()).unwrap();
    let error = reopen(&path).unwrap_err();
    assert!(error.to_string().ends_with(&format!(
        "is damaged at byte {}: found line number 2 where 1 was expected",
        ends[0]
    )));
}

#[test]
fn deleted_by_an_agent_it_is_made_anew_with_everything() {
    let (dir, path) = world();
    let mut journal = Journal::create(&path).unwrap();
    let mut follower = JournalReader::open(&path).unwrap();
    journal
        .append(at(0), &warning("before"), Durability::Process)
        .unwrap();
    assert_eq!(follower.read_new().unwrap().len(), 1);
    fs::remove_dir_all(dir.path().join("loops")).unwrap();
    journal
        .append(at(1), &warning("after"), Durability::Power)
        .unwrap();
    let seen = follower.read_new().unwrap();
    assert_eq!(seen.len(), 1, "a follower goes on where it was");
    assert_eq!(seen[0].event, *warning("after"));
    drop(journal);
    assert_eq!(reopen(&path).unwrap().len(), 2);
}

#[test]
fn foreign_lines_stop_the_writer() {
    let (_dir, path) = world();
    let mut journal = Journal::create(&path).unwrap();
    journal
        .append(at(0), &warning("ours"), Durability::Process)
        .unwrap();
    OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(b"theirs\n")
        .unwrap();
    let before = fs::read(&path).unwrap();
    for _ in 0..2 {
        let refused = journal.append(at(1), &warning("ours"), Durability::Process);
        assert!(matches!(
            refused,
            Err(JournalError::Foreign { .. } | JournalError::Poisoned { .. })
        ));
    }
    drop(journal);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn another_file_in_its_place_stops_the_writer() {
    let (_dir, path) = world();
    let mut journal = Journal::create(&path).unwrap();
    journal
        .append(at(0), &warning("ours"), Durability::Process)
        .unwrap();
    let copy = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, &copy).unwrap();
    let refused = journal.append(at(1), &warning("ours"), Durability::Process);
    assert!(matches!(refused, Err(JournalError::Foreign { .. })));
    assert_eq!(fs::read(&path).unwrap(), copy);
}

#[test]
fn lines_that_may_wait_are_written_with_the_next_one() {
    let (_dir, path) = world();
    let mut journal = Journal::create(&path).unwrap();
    assert_eq!(journal.append_later(at(0), &warning("waits")).unwrap(), 0);
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);
    assert_eq!(
        journal
            .append(at(0), &warning("goes"), Durability::Process)
            .unwrap(),
        1
    );
    assert_eq!(last_records(&path, 9).unwrap().len(), 2);
    journal.append_later(at(0), &warning("waits")).unwrap();
    drop(journal);
    assert_eq!(reopen(&path).unwrap().len(), 3);
}

#[test]
fn a_follower_sees_a_line_once_it_is_whole_and_only_once() {
    let (_dir, path, bytes) = small();
    fs::write(&path, b"").unwrap();
    let mut follower = JournalReader::open(&path).unwrap();
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    let (mut seen, mut ends) = (Vec::new(), 0);
    for byte in &bytes {
        file.write_all(&[*byte]).unwrap();
        ends += usize::from(*byte == b'\n');
        seen.extend(follower.read_new().unwrap());
        assert_eq!(seen.len(), ends);
    }
    assert_eq!(follower.offset(), bytes.len() as u64);
    assert_eq!(seen, reopen(&path).unwrap());
}

#[test]
fn the_end_of_a_long_journal_is_read_from_the_end() {
    let (_dir, path) = world();
    let mut journal = Journal::create(&path).unwrap();
    for number in 0..2000u32 {
        // Lines on both sides of the block size that is read at once.
        let length = if number % 500 == 7 {
            100_000
        } else {
            number as usize % 300
        };
        journal
            .append_later(at(0), &warning(&format!("{number} {}", "x".repeat(length))))
            .unwrap();
    }
    journal.flush().unwrap();
    let all = JournalReader::open(&path).unwrap().read_new().unwrap();
    assert_eq!(all.len(), 2000);
    for count in [0, 1, 2, 7, 500, 1999, 2000, 5000] {
        let tail = last_records(&path, count).unwrap();
        assert_eq!(tail[..], all[2000 - count.min(2000)..], "{count}");
    }
    let found = find_last(&path, |record| record.seq % 1000 == 3)
        .unwrap()
        .unwrap();
    assert_eq!(found.seq, 1003);
    assert!(find_last(&path, |_| false).unwrap().is_none());
    let (mut reader, tail) = JournalReader::open_tail(&path, 3).unwrap();
    assert_eq!(tail.len(), 3);
    journal
        .append(at(1), &warning("new"), Durability::Process)
        .unwrap();
    assert_eq!(reader.read_new().unwrap()[0].seq, 2000);
}

#[test]
fn an_unfinished_last_line_does_not_hide_the_ones_before() {
    let (_dir, path, bytes) = small();
    for cut in 0..bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let whole = line_ends(&bytes[..cut]).len();
        assert_eq!(
            last_records(&path, 10).unwrap().len(),
            whole,
            "cut at {cut}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_appended_comes_back(texts in prop::collection::vec(".*", 0..20), later: u32) {
        let (_dir, path) = world();
        let mut journal = Journal::create(&path).unwrap();
        for (number, text) in texts.iter().enumerate() {
            let event = warning(text);
            let seq = match later >> (number % 32) & 1 {
                0 => journal.append(at(0), &event, Durability::Process),
                _ => journal.append_later(at(0), &event),
            };
            prop_assert_eq!(seq.unwrap(), number as u64);
        }
        drop(journal);
        let records = reopen(&path).unwrap();
        let back: Vec<_> = records.into_iter().map(|record| record.event).collect();
        let sent: Vec<Event> = texts.iter().map(|text| warning(text).into()).collect();
        prop_assert_eq!(back, sent);
    }

    #[test]
    fn any_bytes_at_all_are_recovered_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let (_dir, path, mut whole) = small();
        whole.extend_from_slice(&bytes);
        fs::write(&path, &whole).unwrap();
        match reopen(&path) {
            Ok(records) => prop_assert!(records.len() >= 3),
            Err(_) => prop_assert_eq!(fs::read(&path).unwrap(), whole),
        }
    }
}

#[test]
fn the_end_is_read_from_the_last_that_is_wanted_and_no_further_than_asked() {
    let (_dir, path, bytes) = small();
    let is = |text: &'static str| move |record: &Record| record.event == *warning(text);
    let end = end_from(&path, 9, is("zwölf \u{1f980}")).unwrap().unwrap();
    let numbers: Vec<u64> = end.records.iter().map(|record| record.seq).collect();
    assert_eq!(
        (numbers, end.offset),
        (vec![1, 2], bytes.len() as u64),
        "oldest first, and the place to go on from"
    );
    assert_eq!(end_from(&path, 2, is("a")).unwrap(), None);
    assert!(end_from(&path, 3, is("a")).unwrap().is_some());
    assert_eq!(end_from(&path, 9, is("never")).unwrap(), None);
}

/// The first record whose key is at least `wanted`, by way of `seek`, and how many were read.
fn sought(path: &Path, wanted: u64) -> (Option<u64>, u64) {
    let (mut found, mut read) = (None, 0);
    let mut reader = seek(path, wanted, run_of).unwrap();
    let each = |record: Record| {
        read += 1;
        found = run_of(&record).filter(|run| *run >= wanted);
        match found {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    };
    reader.read_while(each).unwrap();
    (found, read)
}

fn run_of(record: &Record) -> Option<u64> {
    match &record.event {
        Event::Nudged { iterations } => Some(u64::from(*iterations)),
        _ => None,
    }
}

#[test]
fn a_place_in_a_long_journal_is_found_without_reading_it() {
    let (_dir, path) = world();
    let mut journal = Journal::create(&path).unwrap();
    let long = warning(&"x".repeat(3000));
    for number in 0..3000_u32 {
        let event = Decided::for_test(Event::Nudged {
            iterations: number / 2 * 2,
        });
        journal.append_later(at(0), &event).unwrap();
        // Long stretches without a key, and one line far longer than a block.
        if number % 97 == 0 {
            for _ in 0..30 {
                journal.append_later(at(0), &long).unwrap();
            }
        }
        if number == 1500 {
            journal
                .append_later(at(0), &warning(&"y".repeat(300_000)))
                .unwrap();
        }
    }
    drop(journal);
    for wanted in [0, 1, 2, 777, 1499, 1500, 1501, 2997, 2998] {
        let (found, read) = sought(&path, wanted);
        assert_eq!(found, Some(wanted.div_ceil(2) * 2), "{wanted}");
        assert!(read < 1500, "{wanted}: {read} records");
    }
    assert_eq!(sought(&path, 2999).0, None);
    fs::write(&path, "").unwrap();
    assert_eq!(sought(&path, 1), (None, 0));
}

#[test]
fn a_reader_that_has_enough_goes_on_behind_the_last_record_it_was_given() {
    let (_dir, path, _) = small();
    let mut reader = JournalReader::open(&path).unwrap();
    let mut seen = Vec::new();
    for _ in 0..4 {
        let each = |record: Record| {
            seen.push(record.seq);
            ControlFlow::Break(())
        };
        reader.read_while(each).unwrap();
    }
    assert_eq!(seen, [0, 1, 2]);
}

/// Bytes that this thread has read so far.
fn bytes_read() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/io").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.unwrap().parse().unwrap()
}

fn add_raw(path: &Path, bytes: &[u8]) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn a_line_without_end_is_read_once_and_not_for_ever() {
    let (_dir, path, _) = small();
    let mut reader = JournalReader::open(&path).unwrap();
    let whole = reader.read_new().unwrap().len();
    assert!(whole > 0);
    let before = bytes_read();
    for _ in 0..40 {
        add_raw(&path, &[b'x'; 128 << 10]);
        assert_eq!(reader.read_new().unwrap(), []);
    }
    let read = bytes_read() - before;
    assert!(read < 16 << 20, "{read} bytes for 5 MiB");
    // Beyond the length of any event it is damage; told again, it is not read again.
    let file = OpenOptions::new().append(true).open(&path).unwrap();
    file.set_len(65 << 20).unwrap();
    for _ in 0..20 {
        let found = reader.read_new();
        assert!(
            matches!(found, Err(JournalError::Damaged { .. })),
            "{found:?}"
        );
    }
    let read = bytes_read() - before;
    assert!(read < 200 << 20, "{read} bytes for 65 MiB");
}

#[test]
fn a_half_line_that_its_writer_took_back_is_forgotten() {
    let (_dir, path, bytes) = small();
    let ends = line_ends(&bytes);
    let last = &bytes[ends[ends.len() - 2]..];
    let whole = &bytes[..ends[ends.len() - 2]];
    fs::write(&path, whole).unwrap();
    let mut reader = JournalReader::open(&path).unwrap();
    reader.read_new().unwrap();
    add_raw(
        &path,
        b"half of another line, longer than the one that follows it, by far and far",
    );
    assert_eq!(reader.read_new().unwrap(), []);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(whole.len() as u64).unwrap();
    add_raw(&path, last);
    assert_eq!(reader.read_new().unwrap().len(), 1);
    // The same where it is longer than what was read before.
    fs::write(&path, whole).unwrap();
    let mut reader = JournalReader::open(&path).unwrap();
    reader.read_new().unwrap();
    add_raw(&path, b"half");
    assert_eq!(reader.read_new().unwrap(), []);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(whole.len() as u64).unwrap();
    add_raw(&path, last);
    assert_eq!(reader.read_new().unwrap().len(), 1);
}

/// Whether a list of dependencies enables the feature that makes any event.
fn enables_testing(dependencies: Option<&toml::Value>) -> bool {
    let kernel = dependencies.and_then(|all| all.get("descartes-kernel"));
    let features = kernel.and_then(|kernel| kernel.get("features"));
    let features = features.and_then(toml::Value::as_array);
    features.is_some_and(|all| all.iter().any(|one| one.as_str() == Some("testing")))
}

#[test]
fn no_product_crate_enables_the_feature_for_tests() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut seen = 0;
    for entry in fs::read_dir(crates).unwrap() {
        let path = entry.unwrap().path().join("Cargo.toml");
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        let manifest: toml::Table = toml::from_str(&text).unwrap();
        assert!(
            !enables_testing(manifest.get("dependencies")),
            "{}",
            path.display()
        );
        seen += usize::from(enables_testing(manifest.get("dev-dependencies")));
    }
    assert!(
        seen > 0,
        "the tests of some crate write events of their own"
    );
}
