//! What cannot be ended is told, once.

mod common;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use common::{AGENT, GUARD, LONG, Watched, launch, sh};
use descartes_proc::{Ending, Exit, Supervisor, TreeEvent};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Only root can make a process that its guard may not kill.
#[test]
fn another_users_process_is_reported_and_then_left_alone() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str, mode: u32| {
        let path = dir.path().join(name);
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    fs::copy(GUARD, dir.path().join("real-guard")).unwrap();
    fs::copy(AGENT, dir.path().join("agent")).unwrap();
    fs::copy(AGENT, dir.path().join("stranger")).unwrap();
    let guard = place("real-guard", 0o755);
    let nobody = "exec setpriv --reuid=65534 --regid=65534 --clear-groups";
    fs::write(
        dir.path().join("guard"),
        format!("#!/bin/sh\n{nobody} {guard}\n"),
    )
    .unwrap();
    let (agent, stranger) = (place("agent", 0o755), place("stranger", 0o4755));
    let guard = place("guard", 0o755);

    let mut watched = Watched::new(|on_event| {
        Supervisor::guarded(Path::new(&guard), &[], &[], on_event).unwrap()
    });
    watched.start(1, &launch(&[&agent, "stranger", &stranger]));
    watched.processes(2);
    watched.supervisor.terminate(Ending::Kill);
    assert_eq!(
        watched.event(),
        TreeEvent::Exited {
            run: 1,
            exit: Exit::Signal(9)
        }
    );
    let TreeEvent::Swept { survivors, .. } = watched.event() else {
        panic!("not swept")
    };
    assert_eq!(survivors.len(), 1);
    assert_eq!(survivors[0].command, "stranger");

    let begun = Instant::now();
    watched.start(2, &sh("setsid sleep 600 & exit 3"));
    let (exit, _) = watched.end(2);
    assert_eq!(exit, Exit::Code(3), "the survivor is not told again");
    assert!(begun.elapsed() < LONG / 2, "nor waited for");
    kill(
        Pid::from_raw(survivors[0].pid.cast_signed()),
        Signal::SIGKILL,
    )
    .unwrap();
}
