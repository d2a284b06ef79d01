//! Following a loop: nothing lost, in its order, at once.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use common::{Made, facts, world};
use descartes_agents::reader::Source;
use descartes_client::{Follower, LoopUpdate, Output};
use descartes_kernel::event::{Event, Verdict};
use descartes_views::view::Life;

const LONG: Duration = Duration::from_secs(180);

fn print(path: &Path, text: &[u8]) {
    let mut options = OpenOptions::new();
    let mut log = options.create(true).append(true).open(path).unwrap();
    log.write_all(text).unwrap();
}

/// LoopUpdate as short words, output joined.
fn story(news: &[LoopUpdate]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for one in news {
        match one {
            LoopUpdate::Record(record) => {
                let json = serde_json::to_value(&record.event).unwrap();
                out.push(json["kind"].as_str().unwrap().to_owned());
            }
            LoopUpdate::Output { source, bytes, .. } => {
                let mark = if *source == Source::Stdout {
                    "out"
                } else {
                    "err"
                };
                let text = String::from_utf8_lossy(bytes);
                match out.last_mut().filter(|last| last.starts_with(mark)) {
                    Some(last) => last.push_str(&text),
                    None => out.push(format!("{mark} {text}")),
                }
            }
            LoopUpdate::Skipped { bytes, .. } => out.push(format!("skipped {bytes}")),
            LoopUpdate::Life(life) => out.push(format!("{life:?}")),
        }
    }
    out
}

/// Everything until this kind of record has come.
fn until(follower: &mut Follower, kind: &str) -> Vec<LoopUpdate> {
    let begun = Instant::now();
    let mut all = Vec::new();
    while !story(&all).iter().any(|word| word == kind) {
        assert!(
            begun.elapsed() < LONG,
            "waited for {kind}: {:?}",
            story(&all)
        );
        all.extend(follower.next(Some(LONG)).unwrap());
    }
    all
}

fn finish(made: &mut Made) {
    made.end(facts());
    made.judge(Verdict::Worked);
}

#[test]
fn output_comes_before_the_record_that_ends_its_run() {
    let world = world();
    let mut made = world.made("0192aaaa-1");
    made.iterate();
    let (state, mut follower) = world.find("auth").follow(Output::All).unwrap();
    assert_eq!(state.iterations, 1);
    assert!(follower.news().unwrap().is_empty());
    let run = made.start();
    print(&made.dir.run(run).stdout(), b"one\n");
    print(&made.dir.run(run).stdout(), b"two\n");
    print(&made.dir.run(run).stderr(), b"oh\n");
    finish(&mut made);
    let story = story(&until(&mut follower, "iteration_finished"));
    assert_eq!(
        story,
        [
            "run_started",
            "out one\ntwo\n",
            "err oh\n",
            "agent_ended",
            "iteration_finished"
        ]
    );
}

#[test]
fn a_run_under_way_is_told_from_its_beginning_and_a_long_one_in_pieces() {
    let world = world();
    let mut made = world.made("0192aaaa-1");
    let run = made.start();
    let big: Vec<u8> = (0..2_000_000_u32).map(|n| b'a' + (n % 26) as u8).collect();
    print(&made.dir.run(run).stdout(), &big);
    let (_, mut all) = world.find("auth").follow(Output::All).unwrap();
    let (_, mut newest) = world.find("auth").follow(Output::Newest).unwrap();
    let (_, mut growth) = world.find("auth").follow(Output::Growth).unwrap();
    let (_, mut none) = world.find("auth").follow(Output::No).unwrap();
    let first = all.news().unwrap();
    let LoopUpdate::Output { bytes, .. } = &first[0] else {
        unreachable!("{first:?}")
    };
    assert!(bytes.len() < 600_000, "memory is bounded");
    finish(&mut made);
    let mut told = first.clone();
    told.extend(until(&mut all, "iteration_finished"));
    let length = |news: &[LoopUpdate]| -> usize {
        let bytes = news.iter().map(|one| match one {
            LoopUpdate::Output { bytes, .. } => bytes.len(),
            _ => 0,
        });
        bytes.sum()
    };
    assert_eq!(length(&told), big.len());
    let story = story(&until(&mut newest, "iteration_finished"));
    assert_eq!(story[0], format!("skipped {}", big.len() - (64 << 10)));
    assert_eq!(length(&until(&mut none, "iteration_finished")), 0);
    let told = until(&mut growth, "iteration_finished");
    assert_eq!(
        length(&told),
        0,
        "nothing is read for one who reads by himself"
    );
    assert_eq!(
        self::story(&told)[..2],
        [format!("skipped {}", big.len()), "agent_ended".to_owned()]
    );
}

#[test]
fn a_sleeping_view_is_woken_by_records_logs_and_the_lock() {
    let world = world();
    let mut made = world.made("0192aaaa-1");
    let lock = made.lock();
    let (_, mut follower) = world.find("auth").follow(Output::All).unwrap();
    assert_eq!(follower.life(), Life::Alive);
    assert!(follower.fd().is_some());
    let woken = |follower: &mut Follower, what: &str, act: &mut dyn FnMut()| {
        // Nothing is left to be told before it sleeps.
        while !follower
            .next(Some(Duration::from_millis(1)))
            .unwrap()
            .is_empty()
        {}
        let begun = Instant::now();
        act();
        let news = follower.next(Some(LONG)).unwrap();
        assert!(begun.elapsed() < LONG / 4, "{what}");
        assert!(!news.is_empty(), "{what}");
        story(&news)
    };
    let mut run = 0;
    assert_eq!(
        woken(&mut follower, "a record", &mut || run = made.start()),
        ["run_started"]
    );
    let log = made.dir.run(run).stdout();
    assert_eq!(
        woken(&mut follower, "a new log", &mut || print(&log, b"x")),
        ["out x"]
    );
    assert_eq!(
        woken(&mut follower, "a growing log", &mut || print(&log, b"y")),
        ["out y"]
    );
    drop(log);
    let mut lock = Some(lock);
    assert_eq!(
        woken(&mut follower, "a lock given back", &mut || drop(
            lock.take()
        )),
        ["Gone"]
    );
    assert_eq!(
        woken(&mut follower, "a lock taken", &mut || lock =
            Some(made.lock())),
        ["Alive"]
    );
    let begun = Instant::now();
    assert!(
        follower
            .next(Some(Duration::from_millis(30)))
            .unwrap()
            .is_empty()
    );
    assert!(
        begun.elapsed() >= Duration::from_millis(30),
        "it sleeps when nothing happens"
    );
}

/// The kernel tells that a lock is closed before it lets go of it: whoever looks in between finds it
/// held, and is not told again.
#[test]
fn a_lock_that_is_let_go_after_its_closing_was_told_is_noticed() {
    let world = world();
    let made = world.made("0192aaaa-1");
    drop(made.lock());
    let open = || {
        OpenOptions::new()
            .write(true)
            .open(made.dir.lock())
            .unwrap()
    };
    let held = open();
    held.lock().unwrap();
    let (_, mut follower) = world.find("auth").follow(Output::No).unwrap();
    assert_eq!(follower.life(), Life::Alive);
    assert_eq!(follower.next(Some(Duration::ZERO)).unwrap(), []);
    drop(open());
    let begun = Instant::now();
    assert_eq!(follower.next(Some(LONG)).unwrap(), []);
    assert!(begun.elapsed() < LONG, "it was told");
    held.unlock().unwrap();
    until(&mut follower, "Gone");
}

#[test]
fn a_journal_deleted_and_made_anew_is_followed_on() {
    let world = world();
    let mut made = world.made("0192aaaa-1");
    let (_, mut follower) = world.find("auth").follow(Output::All).unwrap();
    std::fs::remove_file(made.dir.journal()).unwrap();
    made.iterate();
    let story = story(&until(&mut follower, "iteration_finished"));
    assert_eq!(story, ["run_started", "agent_ended", "iteration_finished"]);
    made.append(Event::Warning {
        message: "w".into(),
        needs_person: false,
    });
    until(&mut follower, "warning");
}

#[test]
fn a_log_that_is_deleted_while_it_is_watched_ends_nothing() {
    let world = world();
    let mut made = world.made("0192aaaa-1");
    let run = made.start();
    print(&made.dir.run(run).stdout(), b"one\n");
    let (_, mut follower) = world.find("auth").follow(Output::All).unwrap();
    follower.news().unwrap();
    std::fs::remove_dir_all(made.dir.runs()).unwrap();
    finish(&mut made);
    until(&mut follower, "iteration_finished");
}
