//! Every byte arrives, on the stream where it was written, and nobody waits for ever.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use common::{AGENT, LONG, Record, Watched, fresh_mark, launch, sh};
use descartes_proc::{Channel, Ending, Exit, Sink, Stdin, TreeEvent};

/// Counts bytes and remembers a sum that depends on their order.
#[derive(Default)]
struct Sums {
    stdout: (usize, u64),
    stderr: (usize, u64),
}

fn sum((count, sum): (usize, u64), bytes: &[u8]) -> (usize, u64) {
    let add = |sum: u64, &byte: &u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    (count + bytes.len(), bytes.iter().fold(sum, add))
}

impl Sink for Sums {
    fn chunk(&mut self, channel: Channel, bytes: &[u8]) {
        match channel {
            Channel::Stdout => self.stdout = sum(self.stdout, bytes),
            Channel::Stderr => self.stderr = sum(self.stderr, bytes),
        }
    }
}

fn flood(count: usize) -> (usize, u64) {
    let output = std::process::Command::new(AGENT)
        .args(["flood", &count.to_string(), "0"])
        .output();
    let output = output.unwrap().stdout;
    assert_eq!(output.len(), count);
    sum((0, 0), &output)
}

#[test]
fn both_streams_arrive_whole_with_sixty_four_megabytes_on_stderr_first() {
    let (out, err) = (3_000_001, 64 * 1024 * 1024 + 7);
    let mut watched = Watched::guarded();
    let args = launch(&[AGENT, "flood", &out.to_string(), &err.to_string()]);
    watched
        .supervisor
        .start(1, &args, Box::new(Sums::default()))
        .unwrap();
    assert_eq!(watched.end(1).0, Exit::Code(0));
    let mut report = watched.supervisor.collect(LONG);
    let sink: Box<dyn Any> = report.sink.take().unwrap();
    let sums = sink.downcast::<Sums>().unwrap();
    assert_eq!((sums.stdout, sums.stderr), (flood(out), flood(err)));
    assert_eq!(
        (report.stdout.bytes, report.stderr.bytes),
        (out as u64, err as u64)
    );
    assert!(report.stdout.ended && report.stderr.ended);
}

#[test]
fn bytes_that_are_no_text_and_lines_without_an_end_arrive_as_they_are() {
    let mark = fresh_mark();
    for mut watched in [Watched::guarded(), Watched::direct(&mark)] {
        let script = r"printf '\377\376\000a\200'; printf '\303' >&2; printf '(' >&2; printf end";
        let (exit, record) = watched.run(&sh(script));
        assert_eq!(exit, Exit::Code(0));
        assert_eq!(record.stdout, b"\xff\xfe\0a\x80end");
        assert_eq!(record.stderr, b"\xc3(");
        assert_eq!(record.ends.len(), 2);
    }
}

#[test]
fn what_an_agent_wrote_before_it_was_killed_is_not_lost() {
    let mut watched = Watched::guarded();
    watched.start(1, &sh("echo one; echo two >&2; kill -KILL $$"));
    assert_eq!(watched.end(1).0, Exit::Signal(9));
    let (record, _) = watched.collect();
    assert_eq!(
        (&record.stdout[..], &record.stderr[..]),
        (&b"one\n"[..], &b"two\n"[..])
    );
}

/// Tells at once what it hears.
struct Tells(mpsc::Sender<String>);

impl Sink for Tells {
    fn chunk(&mut self, _: Channel, bytes: &[u8]) {
        let _ = self.0.send(String::from_utf8_lossy(bytes).into_owned());
    }

    fn quiet(&mut self) {
        let _ = self.0.send("quiet".to_owned());
    }
}

#[test]
fn silence_is_told_once() {
    let mut watched = Watched::guarded();
    let (gates, (tell, told)) = ([common::Gate::new(), common::Gate::new()], mpsc::channel());
    let [first, second] = gates.each_ref().map(|gate| gate.path.display());
    let script = format!("echo a; read x <{first}; echo b; read x <{second}; echo c");
    let sink = Box::new(Tells(tell));
    watched.supervisor.start(0, &sh(&script), sink).unwrap();
    for (said, gate) in ["a\n", "b\n"].into_iter().zip(&gates) {
        assert_eq!(told.recv_timeout(LONG).unwrap(), said);
        assert_eq!(told.recv_timeout(LONG).unwrap(), "quiet");
        assert!(told.recv_timeout(Duration::from_millis(300)).is_err());
        gate.open();
    }
    watched.end(0);
    watched.supervisor.collect(LONG);
    let (_, record) = watched.run(&sh("sleep 0.3"));
    assert_eq!(record.quiets, 0, "no bytes, no silence after them");
}

#[test]
fn a_stranger_who_holds_the_pipe_is_waited_for_no_longer_than_told() {
    let mut watched = Watched::guarded();
    let holder = tempfile::tempdir().unwrap();
    let path = holder.path().join("pipe");
    // The agent's standard output is opened by a process that is none of its tree: this one.
    let script = format!(
        "ln -s /proc/$$/fd/1 {}; echo first; read line",
        path.display()
    );
    let gate = common::Gate::new();
    let mut order = sh(&script);
    order.stdin = Stdin::Null;
    order.argv[2].push(format!(" < {}", gate.path.display()));
    watched.start(1, &order);
    watched.output.recv_timeout(LONG).unwrap();
    let held = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    gate.open();
    watched.end(1);
    std::io::Write::write_all(&mut &held, b"last\n").unwrap();
    let begun = Instant::now();
    let mut report = watched.supervisor.collect(Duration::from_millis(50));
    assert!(begun.elapsed() < LONG / 2);
    let sink: Box<dyn Any> = report.sink.take().unwrap();
    assert_eq!(sink.downcast::<Record>().unwrap().text(), "first\nlast\n");
    assert_eq!((report.stdout.ended, report.stderr.ended), (false, true));
    // The pump is free for the next run.
    assert_eq!(watched.run(&sh("echo next")).1.text(), "next\n");
}

#[test]
fn a_hundred_runs_one_after_the_other_keep_their_outputs_apart() {
    let mut watched = Watched::guarded();
    for run in 0..100 {
        watched.start(run, &sh(&format!("echo {run}")));
        assert_eq!(watched.end(run), (Exit::Code(0), 0));
        assert_eq!(watched.collect().0.text(), format!("{run}\n"));
    }
}

/// Takes the first chunk and never comes back, or not at all.
struct Bad {
    how: fn(),
}

impl Sink for Bad {
    fn chunk(&mut self, _: Channel, _: &[u8]) {
        (self.how)();
    }
}

#[test]
fn a_sink_that_panics_is_lost_and_the_next_run_goes_on() {
    let mut watched = Watched::guarded();
    let bad = Bad {
        how: || panic!("on purpose"),
    };
    watched
        .supervisor
        .start(1, &sh("echo a; sleep 0.05; echo b"), Box::new(bad))
        .unwrap();
    watched.end(1);
    assert!(watched.supervisor.collect(LONG).sink.is_none());
    assert_eq!(watched.run(&sh("echo next")).1.text(), "next\n");
}

#[test]
fn a_slow_sink_does_not_delay_the_news_of_the_end() {
    let mut watched = Watched::guarded();
    static RELEASED: AtomicBool = AtomicBool::new(false);
    let bad = Bad {
        how: || {
            while !RELEASED.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
            }
        },
    };
    watched
        .supervisor
        .start(1, &sh("echo a; exit 3"), Box::new(bad))
        .unwrap();
    // It comes while the sink still has its first chunk.
    assert_eq!(watched.end(1).0, Exit::Code(3));
    RELEASED.store(true, Ordering::Relaxed);
    assert!(watched.supervisor.collect(LONG).sink.is_some());
}

#[test]
fn an_endless_agent_is_ended_while_it_writes() {
    let mut watched = Watched::guarded();
    watched
        .supervisor
        .start(1, &launch(&["yes"]), Box::new(Sums::default()))
        .unwrap();
    watched.supervisor.terminate(Ending::Ask { grace: LONG });
    let TreeEvent::Exited { exit, .. } = watched.event() else {
        panic!("no exit")
    };
    assert_eq!(exit, Exit::Signal(15));
    watched.swept(1);
    assert!(watched.supervisor.collect(LONG).stdout.ended);
}
