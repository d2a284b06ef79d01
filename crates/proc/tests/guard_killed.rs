//! A guard that is killed takes nothing with it and leaves nothing behind.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use common::{Gate, LONG, Record, SHAPES, Watched, carriers_after, fresh_mark, sh, shape};
use descartes_proc::{Ending, Exit, StartError, TreeEvent};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Where tests are threads of one process, the sweep of one would reap the orphans of another.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kill_guard(watched: &Watched) {
    let guard = watched.supervisor.guard_pid().unwrap();
    kill(Pid::from_raw(guard.cast_signed()), Signal::SIGKILL).unwrap();
}

#[test]
fn its_orphans_are_swept_by_the_host_and_the_next_run_has_a_new_guard() {
    let _alone = alone();
    let mut watched = Watched::guarded();
    for ((name, count), run) in SHAPES.into_iter().zip(1..) {
        watched.start(run, &shape(name, "x"));
        let processes = watched.processes(count);
        let begun = Instant::now();
        kill_guard(&watched);
        assert_eq!(watched.event(), TreeEvent::GuardLost { run }, "{name}");
        let TreeEvent::Swept {
            survivors, killed, ..
        } = watched.event()
        else {
            panic!("not swept")
        };
        assert_eq!(
            (survivors, killed as usize >= count - 1),
            (vec![], true),
            "{name}"
        );
        assert!(begun.elapsed() < LONG / 2, "{name}: {:?}", begun.elapsed());
        assert_eq!(processes.left_after(Duration::ZERO), 0, "{name}");
        assert_eq!(watched.supervisor.guard_pid(), None);
        let (record, report) = watched.collect();
        assert!(!record.stdout.is_empty() && report.stdout.ended && report.stderr.ended);
    }
    assert_eq!(watched.run(&sh("exit 5")).0, Exit::Code(5));
    assert!(watched.supervisor.guard_pid().is_some());
}

#[test]
fn the_agent_itself_may_be_who_kills_it() {
    let _alone = alone();
    let mut watched = Watched::guarded();
    let gate = Gate::new();
    let script = "read line; kill -KILL $PPID; setsid sleep 600 & sleep 600";
    watched.start(1, &sh(&format!("exec <{}; {script}", gate.path.display())));
    gate.open();
    assert_eq!(watched.event(), TreeEvent::GuardLost { run: 1 });
    watched.swept(1);
    assert_eq!(watched.run(&sh("exit 0")).0, Exit::Code(0));
}

#[test]
fn killed_between_two_runs_it_is_replaced_unnoticed() {
    let _alone = alone();
    let mut watched = Watched::guarded();
    for _ in 0..20 {
        assert_eq!(watched.run(&sh("exit 3")).0, Exit::Code(3));
        kill_guard(&watched);
    }
    assert!(watched.events.try_recv().is_err(), "no run was lost");
}

#[test]
fn killed_in_the_middle_of_its_sweep_the_host_does_the_rest() {
    let _alone = alone();
    let mut watched = Watched::guarded();
    watched.start(1, &sh("trap '' TERM; setsid sleep 600 & exit 4"));
    let TreeEvent::Exited { exit, .. } = watched.event() else {
        panic!("no exit")
    };
    assert_eq!(exit, Exit::Code(4));
    kill_guard(&watched);
    assert_eq!(watched.swept(1), 1);
    assert!(watched.events.try_recv().is_err(), "its exit was known");
}

#[test]
fn killed_at_any_instant_it_is_told_in_order_and_leaves_nothing_behind() {
    let _alone = alone();
    let mut watched = Watched::guarded();
    for run in 0..40 {
        let mark = fresh_mark();
        // Makes sure that there is one to be killed.
        assert_eq!(watched.run(&sh("exit 0")).0, Exit::Code(0));
        let guard = Pid::from_raw(watched.supervisor.guard_pid().unwrap().cast_signed());
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(50 * run));
            kill(guard, Signal::SIGKILL).unwrap();
        });
        let sink = Box::new(Record::default());
        let started = watched
            .supervisor
            .start(run, &shape("setsid-double-fork", &mark), sink);
        killer.join().unwrap();
        match started {
            Err(StartError::GuardLost) => {}
            // Either it was killed before it took the order, which another guard then got, or it
            // was lost with the run.
            Ok(_) => {
                watched.supervisor.terminate(Ending::Kill);
                let end = watched.event();
                let exited = TreeEvent::Exited {
                    run,
                    exit: Exit::Signal(9),
                };
                assert!(
                    end == exited || end == TreeEvent::GuardLost { run },
                    "{end:?}"
                );
                watched.swept(run);
            }
            Err(other) => panic!("{other}"),
        }
        assert!(watched.events.try_recv().is_err(), "everything was told");
        let left = carriers_after(&mark, LONG);
        assert!(left.is_empty(), "run {run}: {left:?}");
    }
}

#[test]
fn the_hosts_own_children_and_other_guards_are_left_alone() {
    let _alone = alone();
    let mut own = Command::new("sleep").arg("600").spawn().unwrap();
    let mut other = Watched::guarded();
    other.start(1, &sh("echo up; sleep 600"));
    other.output.recv_timeout(LONG).unwrap();
    let mut watched = Watched::guarded();
    watched.start(1, &sh("echo up; sleep 600"));
    watched.output.recv_timeout(LONG).unwrap();
    kill_guard(&watched);
    assert_eq!(watched.event(), TreeEvent::GuardLost { run: 1 });
    watched.swept(1);
    assert_eq!(own.try_wait().unwrap(), None);
    own.kill().unwrap();
    own.wait().unwrap();
    other.supervisor.terminate(Ending::Kill);
    assert_eq!(other.end(1).0, Exit::Signal(9));
}

#[test]
fn pkill_by_name_reaches_the_host_alone() {
    let _alone = alone();
    let mut watched = Watched::guarded();
    let guard = Pid::from_raw(watched.supervisor.guard_pid().unwrap().cast_signed());
    watched.start(1, &sh("echo up; exec sleep 600"));
    watched.output.recv_timeout(LONG).unwrap();
    for signal in [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGUSR1,
    ] {
        kill(guard, signal).unwrap();
    }
    watched.supervisor.terminate(Ending::Ask { grace: LONG });
    assert_eq!(watched.end(1).0, Exit::Signal(15));
}
