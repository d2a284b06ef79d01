//! Whatever an agent starts is gone when its run is over.

mod common;

use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Gate, LONG, Processes, SHAPES, Watched, fresh_mark, sh, shape};
use descartes_proc::{Ending, Exit, TreeEvent};

const GRACE: Duration = Duration::from_millis(300);

/// Only something that waits for the agent or for a long grace takes this long; how long it takes on a quiet
/// machine is measured elsewhere (`cargo xtask bench stop`).
const LATE: Duration = Duration::from_secs(15);

fn every_shape(mut watched: Watched, mark: &str, end: impl Fn(&mut Watched, u64, &Processes)) {
    for ((name, count), run) in SHAPES.into_iter().zip(10..) {
        watched.start(run, &shape(name, mark));
        let processes = watched.processes(count);
        end(&mut watched, run, &processes);
        assert_eq!(processes.left_after(Duration::ZERO), 0, "{name}");
    }
}

/// The agent leaves by itself; the rest is asked, then killed.
fn leaves(mut watched: Watched, mark: &str) {
    for ((name, count), run) in SHAPES.into_iter().zip(10..) {
        let gate = Gate::new();
        let mut launch = shape(name, mark);
        launch.env.push(("GATE".into(), gate.path.clone().into()));
        watched.start(run, &launch);
        let processes = watched.processes(count);
        gate.open();
        let begun = Instant::now();
        let (exit, killed) = watched.end(run);
        assert_eq!(exit, Exit::Code(0), "{name}");
        assert!(killed > 0, "{name}");
        assert!(begun.elapsed() < LATE, "{name}: {:?}", begun.elapsed());
        assert_eq!(processes.left_after(Duration::ZERO), 0, "{name}");
    }
}

fn asked(watched: &mut Watched, run: u64, _: &Processes) {
    let begun = Instant::now();
    watched.supervisor.terminate(Ending::Ask { grace: GRACE });
    let (exit, _) = watched.end(run);
    assert!(matches!(exit, Exit::Signal(15 | 9)), "{exit}");
    assert!(begun.elapsed() < GRACE + LATE, "{:?}", begun.elapsed());
}

fn killed(watched: &mut Watched, run: u64, _: &Processes) {
    let begun = Instant::now();
    watched.supervisor.terminate(Ending::Kill);
    assert_eq!(watched.end(run).0, Exit::Signal(9));
    assert!(begun.elapsed() < LATE, "{:?}", begun.elapsed());
}

#[test]
fn guarded_nothing_survives_an_agent_that_leaves() {
    leaves(Watched::guarded(), "x");
}

#[test]
fn guarded_nothing_survives_asking() {
    every_shape(Watched::guarded(), "x", asked);
}

#[test]
fn guarded_nothing_survives_killing() {
    every_shape(Watched::guarded(), "x", killed);
}

#[test]
fn direct_nothing_survives_an_agent_that_leaves() {
    let mark = fresh_mark();
    leaves(Watched::direct(&mark), &mark);
}

#[test]
fn direct_nothing_survives_asking() {
    let mark = fresh_mark();
    every_shape(Watched::direct(&mark), &mark, asked);
}

#[test]
fn direct_nothing_survives_killing() {
    let mark = fresh_mark();
    every_shape(Watched::direct(&mark), &mark, killed);
}

#[test]
fn nothing_survives_the_drop_of_a_supervisor() {
    let mark = fresh_mark();
    for mut watched in [Watched::guarded(), Watched::direct(&mark)] {
        watched.start(1, &shape("setsid-double-fork", &mark));
        let processes = watched.processes(3);
        drop(watched.supervisor);
        assert_eq!(processes.left_after(Duration::ZERO), 0);
    }
}

#[test]
fn a_guard_needs_no_mark() {
    let mut watched = Watched::guarded();
    watched.start(1, &shape("unmarked", "x"));
    let processes = watched.processes(3);
    watched.supervisor.terminate(Ending::Ask { grace: GRACE });
    watched.end(1);
    assert_eq!(processes.left_after(Duration::ZERO), 0);
}

#[test]
fn without_a_guard_what_was_met_once_is_ended_even_if_nothing_leads_to_it_any_more() {
    let mark = fresh_mark();
    let mut watched = Watched::direct(&mark);
    let deaf = "setsid env -i sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' & wait";
    watched.start(1, &sh(deaf));
    let processes = watched.processes(1);
    watched.supervisor.terminate(Ending::Ask { grace: GRACE });
    watched.end(1);
    assert_eq!(processes.left_after(Duration::ZERO), 0);
}

/// A host runs an agent, gates and git side by side, all with the mark of their loop.
#[test]
fn without_a_guard_the_end_of_one_run_leaves_others_with_the_same_mark_alone() {
    let mark = fresh_mark();
    let dir = tempfile::tempdir().unwrap();
    let end = dir.path().join("end");
    let (mut first, mut second) = (Watched::direct(&mark), Watched::direct(&mark));
    first.start(
        1,
        &sh(&format!(
            "while [ ! -e {} ]; do sleep 0.01; done",
            end.display()
        )),
    );
    // It began later, so it could have been started by the first one.
    second.start(1, &sh("echo $$; exec sleep 600"));
    let processes = second.processes(1);
    std::fs::write(end, "").unwrap();
    assert_eq!(first.end(1), (Exit::Code(0), 0));
    assert_eq!(processes.left_after(Duration::ZERO), 1);
    second.supervisor.terminate(Ending::Ask { grace: GRACE });
    assert_eq!(second.end(1).0, Exit::Signal(15));
}

#[test]
fn a_child_that_holds_the_pipe_does_not_hold_the_run() {
    let mark = fresh_mark();
    for mut watched in [Watched::guarded(), Watched::direct(&mark)] {
        watched.start(1, &sh("trap '' TERM; sleep 600 & echo out; exit 7"));
        let TreeEvent::Exited { exit, .. } = watched.event() else {
            panic!("no exit")
        };
        let begun = Instant::now();
        assert_eq!(exit, Exit::Code(7));
        assert_eq!(watched.swept(1), 1);
        assert!(begun.elapsed() < LATE, "{:?}", begun.elapsed());
        let (record, report) = watched.collect();
        assert_eq!(record.text(), "out\n");
        assert!(report.stdout.ended && report.stderr.ended);
    }
}

#[test]
fn an_agent_that_obeys_sigterm_ends_long_before_its_grace_and_with_its_own_code() {
    let mark = fresh_mark();
    for mut watched in [Watched::guarded(), Watched::direct(&mark)] {
        watched.start(
            1,
            &sh("trap 'echo bye; exit 42' TERM; echo 1; while :; do sleep 0.01; done"),
        );
        watched.output.recv_timeout(LONG).unwrap();
        let begun = Instant::now();
        watched.supervisor.terminate(Ending::Ask { grace: LONG });
        assert_eq!(watched.end(1).0, Exit::Code(42));
        assert!(begun.elapsed() < LATE, "{:?}", begun.elapsed());
        assert_eq!(watched.collect().0.text(), "1\nbye\n");
    }
}

#[test]
fn an_agent_that_ignores_sigterm_is_killed_after_its_grace_or_at_once_when_told_again() {
    let mark = fresh_mark();
    for mut watched in [Watched::guarded(), Watched::direct(&mark)] {
        for (first, then) in [
            (GRACE, None),
            (LONG, Some(Ending::Kill)),
            (LONG, Some(Ending::Ask { grace: GRACE })),
        ] {
            watched.start(1, &shape("ignores-term", &mark));
            watched.processes(2);
            let begun = Instant::now();
            watched.supervisor.terminate(Ending::Ask { grace: first });
            if let Some(then) = then {
                watched.supervisor.terminate(then);
            }
            assert_eq!(watched.end(1).0, Exit::Signal(9));
            let took = begun.elapsed();
            assert!(took < GRACE + LATE, "{took:?}");
            assert!(then == Some(Ending::Kill) || took >= GRACE, "{took:?}");
        }
    }
}

/// It is on its way to a session of its own just when its agent exits. Who is overlooked then lives
/// on for the whole grace of leftovers, and may go on writing.
#[test]
fn a_child_that_leaves_for_its_own_session_in_that_moment_is_asked_like_the_others() {
    let mut watched = Watched::guarded();
    let mut is_slow = |run: u64, child: &str| {
        let ten = format!("for i in 1 2 3 4 5 6 7 8 9 10; do {child} & done >/dev/null 2>&1");
        watched.start(run, &sh(&ten));
        let begun = Instant::now();
        watched.end(run);
        begun.elapsed() >= Duration::from_millis(450)
    };
    // A busy machine is slow with those that stay where they are, too.
    let (mut leaving, mut staying) = (0, 0);
    for run in 1..=60 {
        leaving += u32::from(is_slow(run, "setsid sleep 600"));
        staying += u32::from(is_slow(100 + run, "sleep 600"));
    }
    assert!(
        leaving <= 2 + 2 * staying,
        "{leaving}, and {staying} of the others"
    );
}

#[test]
fn a_stopped_agent_ends_too() {
    let mark = fresh_mark();
    for mut watched in [Watched::guarded(), Watched::direct(&mark)] {
        watched.start(1, &sh("echo 1; kill -STOP $$"));
        watched.output.recv_timeout(LONG).unwrap();
        watched.supervisor.terminate(Ending::Ask { grace: LONG });
        assert_eq!(watched.end(1).0, Exit::Signal(15));
    }
}

/// Whether or not anybody wants its end: what becomes of the agent is told.
#[test]
fn a_guard_that_is_stopped_while_its_agent_works_goes_on() {
    let mut watched = Watched::guarded();
    let script = "kill -STOP $PPID; (kill -STOP $PPID; sleep 0.2; kill -STOP $PPID); exit 3";
    assert_eq!(watched.run(&sh(script)).0, Exit::Code(3));
}

#[test]
fn an_idle_guard_that_is_stopped_once_or_for_good_holds_up_nobody() {
    for script in ["kill -STOP $0", "while kill -STOP $0; do :; done"] {
        let mut watched = Watched::guarded();
        assert_eq!(watched.run(&sh("exit 0")).0, Exit::Code(0));
        let guard = watched.supervisor.guard_pid().unwrap().to_string();
        let mut foe = std::process::Command::new("sh");
        let foe = foe.args(["-c", script, &guard]).stderr(Stdio::null());
        let mut foe = foe.spawn().unwrap();
        drop(watched);
        foe.wait().unwrap();
    }
}

#[test]
fn an_agent_cannot_stop_its_guard_for_good() {
    let mut watched = Watched::guarded();
    watched.start(1, &sh("kill -STOP $PPID; echo 1; sleep 600"));
    watched.output.recv_timeout(LONG).unwrap();
    watched.supervisor.terminate(Ending::Kill);
    assert_eq!(watched.end(1).0, Exit::Signal(9));
}

#[test]
fn a_guard_that_is_stopped_whenever_it_asks_ends_its_tree_all_the_same() {
    let mut watched = Watched::guarded();
    let script = "trap 'kill -STOP $PPID' TERM; echo 1; while :; do sleep 0.05; done";
    watched.start(1, &sh(script));
    watched.output.recv_timeout(LONG).unwrap();
    let grace = Duration::from_millis(300);
    watched.supervisor.terminate(Ending::Ask { grace });
    assert_eq!(watched.end(1).0, Exit::Signal(9));
    let (exit, record) = watched.run(&sh("echo fine"));
    assert_eq!((exit, record.text()), (Exit::Code(0), "fine\n"));
}

#[test]
fn a_leftover_that_stops_the_guard_does_not_hold_up_the_sweep() {
    let mut watched = Watched::guarded();
    let guard = watched.supervisor.guard_pid().unwrap();
    let script = format!(
        "(trap 'kill -STOP {guard}' TERM; while :; do sleep 0.05; done) & sleep 0.3; echo 1"
    );
    let (exit, _) = watched.run(&sh(&script));
    assert_eq!(exit, Exit::Code(0));
}

#[test]
fn a_guard_that_is_kept_stopped_is_replaced() {
    let mut watched = Watched::guarded();
    let guard = watched.supervisor.guard_pid().unwrap();
    let script = format!("echo 1; while :; do kill -STOP {guard}; done");
    watched.start(1, &sh(&script));
    watched.output.recv_timeout(LONG).unwrap();
    watched.supervisor.terminate(Ending::Kill);
    loop {
        match watched.events.recv_timeout(LONG * 2).unwrap() {
            TreeEvent::Swept { survivors, .. } => break assert_eq!(survivors, []),
            TreeEvent::Exited { .. } | TreeEvent::GuardLost { .. } => {}
        }
    }
    let (exit, record) = watched.run(&sh("echo fine"));
    assert_eq!((exit, record.text()), (Exit::Code(0), "fine\n"));
}

#[test]
fn exit_codes_and_signals_are_told_as_they_are() {
    let mark = fresh_mark();
    for mut watched in [Watched::guarded(), Watched::direct(&mark)] {
        for (script, exit) in [
            ("exit 0", Exit::Code(0)),
            ("exit 1", Exit::Code(1)),
            ("exit 255", Exit::Code(255)),
            ("kill -KILL $$", Exit::Signal(9)),
            ("kill -SEGV $$", Exit::Signal(11)),
            ("kill -40 $$", Exit::Signal(40)),
        ] {
            assert_eq!(watched.run(&sh(script)).0, exit, "{script}");
        }
    }
}

#[test]
fn ending_a_run_that_is_over_does_not_touch_the_next_one() {
    let mark = fresh_mark();
    for mut watched in [Watched::guarded(), Watched::direct(&mark)] {
        watched.start(1, &sh("exit 0"));
        watched.end(1);
        watched.supervisor.terminate(Ending::Kill);
        let (exit, record) = watched.run(&sh("sleep 0.1; echo fine"));
        assert_eq!((exit, record.text()), (Exit::Code(0), "fine\n"));
    }
}

#[test]
fn cpu_time_counts_the_whole_tree_and_begins_anew_with_each_run() {
    let mark = fresh_mark();
    for mut watched in [Watched::guarded(), Watched::direct(&mark)] {
        assert_eq!(watched.supervisor.cpu_time(), None);
        watched.start(1, &sh(&format!("({} spin) & wait", common::AGENT)));
        let begun = Instant::now();
        let busy = Duration::from_millis(100);
        while watched.supervisor.cpu_time().unwrap() < busy && begun.elapsed() < LONG {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(watched.supervisor.cpu_time().unwrap() >= busy);
        watched.supervisor.terminate(Ending::Kill);
        watched.end(1);
        assert_eq!(watched.supervisor.cpu_time(), None);
        watched.start(2, &sh("echo 1; exec sleep 600"));
        watched.output.recv_timeout(LONG).unwrap();
        assert!(watched.supervisor.cpu_time().unwrap() < busy);
    }
}
