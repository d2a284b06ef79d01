//! All loops at a glance, and pieces of logs.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::time::Duration;

use common::world;
use descartes_agents::reader::Source;
use descartes_client::logs::LogPosition;
use descartes_client::{Brief, Fleet};
use descartes_kernel::event::{Event, Verdict};
use descartes_kernel::outcome::IterativeExitReason;
use descartes_views::view::Life;

const SOON: Option<Duration> = Some(Duration::from_secs(10));

fn label(brief: &Brief) -> String {
    match &brief.standing {
        Ok(standing) => standing.status.label().to_owned(),
        Err(error) => format!("! {error}"),
    }
}

/// Waits by events alone until the list reads so.
fn wait_for(fleet: &mut Fleet, wanted: &[&str]) {
    for _ in 0..200 {
        let labels: Vec<String> = fleet.look().unwrap().iter().map(label).collect();
        if labels == wanted {
            return;
        }
        fleet.wait(SOON);
    }
    panic!("never came: {wanted:?}, but {:?}", fleet.look().unwrap());
}

#[test]
fn loops_come_change_and_go_without_being_asked_again_and_again() {
    let world = world();
    let mut first = world.made_with("01", "one", "one.json", common::config());
    let mut fleet = Fleet::new(world.loops());
    wait_for(&mut fleet, &["Interrupted"]);
    let _second = world.made_with("02", "two", "two.json", common::config());
    wait_for(&mut fleet, &["Interrupted", "Interrupted"]);
    first.append(Event::LoopFinished {
        reason: IterativeExitReason::MaxIterationsReached,
    });
    wait_for(&mut fleet, &["Interrupted", "Iteration limit reached"]);
    std::fs::remove_dir_all(world.root().loops().join("02")).unwrap();
    wait_for(&mut fleet, &["Iteration limit reached"]);
}

#[test]
fn the_loop_of_a_task_is_not_interrupted_between_two_attempts() {
    let world = world();
    let parent = world.made_with("01", "all", "all.json", common::config());
    let held = parent.lock();
    let mut child = world.made_of("02", "all/a", "a.json", "01");
    child.start();
    let mut fleet = Fleet::new(world.loops());
    wait_for(&mut fleet, &["Running", "Ready"]);
    child.end(common::facts());
    child.judge(Verdict::Worked);
    wait_for(&mut fleet, &["Ready", "Ready"]);
    assert_eq!(world.find("02").look().unwrap().life, Life::Alive);
    // Nobody begins another attempt any more.
    drop(held);
    wait_for(&mut fleet, &["Interrupted", "Interrupted"]);
    assert_eq!(world.find("02").look().unwrap().life, Life::Gone);
}

/// As for one loop that is followed: the closing is told before the lock is let go of.
#[test]
fn a_lock_that_is_let_go_after_its_closing_was_told_is_noticed() {
    let world = world();
    let made = world.made_with("01", "one", "one.json", common::config());
    drop(made.lock());
    let open = || {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).open(made.dir.lock()).unwrap()
    };
    let held = open();
    held.lock().unwrap();
    let mut fleet = Fleet::new(world.loops());
    wait_for(&mut fleet, &["Ready"]);
    drop(open());
    fleet.wait(SOON);
    wait_for(&mut fleet, &["Ready"]);
    held.unlock().unwrap();
    wait_for(&mut fleet, &["Interrupted"]);
}

#[test]
fn a_damaged_journal_is_a_line_in_the_list() {
    let world = world();
    let made = world.made_with("01", "one", "one.json", common::config());
    std::fs::write(made.dir.journal(), b"{\"v\":1,garbage}\nmore\n").unwrap();
    let briefs = Fleet::new(world.loops()).look().unwrap();
    let error = briefs[0].standing.as_ref().unwrap_err();
    assert!(error.contains("journal"), "{error}");
}

#[test]
fn a_piece_of_a_log_is_whole_lines_wherever_it_stands() {
    let world = world();
    let mut made = world.made("01");
    let run = made.start();
    let dir = made.dir.run(run);
    let text: String = (0..5000).map(|n| format!("line {n}\tx\n")).collect();
    std::fs::write(dir.stdout(), &text).unwrap();
    let log = world.find("01").log(None).unwrap();
    let window = |place| log.window(Source::Stdout, place, 1000).unwrap();

    let end = window(LogPosition::End);
    assert_eq!((end.end, end.size), (text.len() as u64, text.len() as u64));
    assert_eq!(end.lines.last().unwrap().text, "line 4999    x");
    // Backwards, piece by piece, nothing is missing and nothing comes twice.
    let (mut all, mut piece) = (Vec::new(), end);
    loop {
        all.splice(0..0, piece.lines.iter().map(|line| line.text.clone()));
        if piece.begin == 0 {
            break;
        }
        piece = window(LogPosition::Before(piece.begin));
    }
    let wanted: Vec<String> = text
        .lines()
        .map(|line| line.replace('\t', "    "))
        .collect();
    assert_eq!(all, wanted);
    // And forwards.
    let (mut all, mut from) = (Vec::new(), 0);
    while from < text.len() as u64 {
        let piece = window(LogPosition::From(from));
        all.extend(piece.lines.into_iter().map(|line| line.text));
        from = piece.end;
    }
    assert_eq!(all, wanted);
    // In the middle of a line: from the next one on.
    let middle = window(LogPosition::From(3));
    assert_eq!((middle.begin, &*middle.lines[0].text), (9, "line 1    x"));

    std::fs::remove_dir_all(dir.path()).unwrap();
    assert!(log.window(Source::Stdout, LogPosition::End, 1000).is_err());
}

#[test]
fn gigabytes_without_a_line_end_are_one_piece_at_a_time() {
    let world = world();
    let mut made = world.made("01");
    let run = made.start();
    let dir = made.dir.run(run);
    let file = std::fs::File::create(dir.stdout()).unwrap();
    file.set_len(10 << 30).unwrap();
    let log = world.find("01").log(None).unwrap();
    for place in [
        LogPosition::End,
        LogPosition::From(5 << 30),
        LogPosition::Before(5 << 30),
    ] {
        let window = log.window(Source::Stdout, place, 1 << 16).unwrap();
        assert!(window.end - window.begin >= (1 << 16) - 1, "{place:?}");
        assert_eq!(window.size, 10 << 30);
    }
}
