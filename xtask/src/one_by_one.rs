//! Runs the tests of one program as nextest would: each in a process of its own, with a limit.
//! `cargo test` starts it in place of the program (`target.….runner`).

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::shell::Step;
use crate::suite;
use crate::test_groups::TestGroup;

/// As it is called by cargo.
pub const VERB: &str = "one-by-one";

/// How many tests run at once.
pub fn threads() -> usize {
    thread::available_parallelism().map_or(2, usize::from) * 4
}

/// `one-by-one PROGRAM [ARG…]`.
pub fn run(rest: &[String]) -> Step {
    let (program, args) = rest.split_first().ok_or("which program?")?;
    let tests = chosen(program, args)?;
    let limit = suite::limit()?;
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(|| {
                while let Some(test) = tests.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(words) = one(program, test, limit) {
                        println!("FAIL {test}\n{words}");
                        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        failed.push(test.clone());
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{program}: {} tests, {} failed", tests.len(), failed.len());
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("failed: {}", failed.join(", "))),
    }
}

/// The tests that the arguments choose, without those that are ignored or in quarantine.
fn chosen(program: &str, args: &[String]) -> Result<Vec<String>, String> {
    let ignored: BTreeSet<String> = list(program, args, &["--ignored"])?.into_iter().collect();
    let names = |variable: &str| -> Option<BTreeSet<String>> {
        let text = std::env::var(variable).ok()?;
        Some(text.lines().map(str::to_owned).collect())
    };
    let (but, only) = (names("DESCARTES_TESTS_BUT"), names("DESCARTES_TESTS_ONLY"));
    let group = std::env::var(TestGroup::VARIABLE).unwrap_or_default();
    let (group, package) = (TestGroup::named(&group), std::env::var("CARGO_PKG_NAME"));
    let (package, binary) = (package.unwrap_or_default(), binary_of(program));
    let mut tests = list(program, args, &[])?;
    tests.retain(|test| {
        group.holds(&package, binary, test)
            && !ignored.contains(test)
            && !but.as_ref().is_some_and(|but| but.contains(test))
            && only.as_ref().is_none_or(|only| only.contains(test))
    });
    Ok(tests)
}

/// The name of a test binary, without the hash behind it.
fn binary_of(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    name.rsplit_once('-').map_or(name, |(name, _)| name)
}

fn list(program: &str, args: &[String], more: &[&str]) -> Result<Vec<String>, String> {
    let output = Command::new(program)
        .args(args)
        .args(["--list", "--format", "terse"])
        .args(more)
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{program} --list: {}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let name = |line: &str| line.strip_suffix(": test").map(str::to_owned);
    Ok(text.lines().filter_map(name).collect())
}

/// Runs one test; what it said, where it failed or was ended.
fn one(program: &str, test: &str, limit: Duration) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{program}: {error}");
    let folder = tempfile::tempdir().map_err(said)?;
    let path = folder.path().join("output");
    let output = File::create(&path).map_err(said)?;
    let mut command = Command::new(program);
    command
        .args([test, "--exact", "--nocapture"])
        .stdin(Stdio::null())
        .stdout(output.try_clone().map_err(said)?)
        .stderr(output)
        // So that it can be ended with what it started.
        .process_group(0);
    let ended = within(&mut command, limit).map_err(said)?;
    if ended.is_some_and(|status| status.success()) {
        return Ok(());
    }
    let mut words = Vec::new();
    File::open(&path)
        .and_then(|mut file| file.read_to_end(&mut words))
        .map_err(said)?;
    let how = match ended {
        Some(status) => status.to_string(),
        None => format!("ended after {limit:?}"),
    };
    Err(format!("{}\n{how}", String::from_utf8_lossy(&words)))
}

/// Its status; none where it took too long and was killed.
fn within(command: &mut Command, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let mut child = command.spawn()?;
    let end = Instant::now() + limit;
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_millis(10));
    }
    // It may have ended in this very moment.
    let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
    child.wait()?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_is_ended_with_what_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let mut command = Command::new("sh");
        command.args([
            "-c",
            &format!("sleep 600 & echo $! > {}; wait", pid.display()),
        ]);
        command.process_group(0);
        let ended = within(&mut command, Duration::from_secs(6)).unwrap();
        assert_eq!(ended, None);
        let pid: i32 = std::fs::read_to_string(pid)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let gone = descartes_testkit::wait::poll(Duration::from_secs(20), &mut || {
            descartes_testkit::process::find(pid)
                .is_none()
                .then_some(())
        });
        assert!(gone.is_some(), "{pid} lives");
        let ended = within(&mut Command::new("true"), Duration::from_secs(60)).unwrap();
        assert!(ended.is_some_and(|status| status.success()));
    }
}
