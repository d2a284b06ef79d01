//! What cannot be started is told exactly; what is started finds the surroundings it was given.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{AGENT, GUARD, HOST, LONG, Record, Watched, fresh_mark, launch, sh};
use descartes_proc::{Exit, Launch, MARK, StartError, Stdin, Supervisor, start_time};

fn both(mut check: impl FnMut(&mut Watched)) {
    let mark = fresh_mark();
    for mut watched in [Watched::guarded(), Watched::direct(&mark)] {
        check(&mut watched);
        // Whatever went wrong, the next run is fine, and it is the first that is heard of.
        assert_eq!(watched.run(&sh("exit 9")).0, Exit::Code(9));
    }
}

fn refused(watched: &mut Watched, launch: &Launch) -> StartError {
    watched
        .supervisor
        .start(1, launch, Box::new(Record::default()))
        .unwrap_err()
}

fn script(dir: &Path, name: &str, text: &str, mode: u32) -> String {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_missing_program_is_not_found() {
    both(|watched| {
        let error = refused(watched, &launch(&["no-such-agent"]));
        assert!(matches!(error, StartError::NotFound(_)), "{error}");
        assert_eq!(
            error.to_string(),
            "agent not found: no-such-agent (searched in PATH)"
        );
        let error = refused(watched, &launch(&["./no-such-agent"]));
        assert!(matches!(error, StartError::NotFound(_)), "{error}");
        assert_eq!(error.to_string(), "agent not found: ./no-such-agent");
        assert!(error.hint().is_some());
    });
}

#[test]
fn a_program_that_is_none_is_not_executable_and_the_reason_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let plain = script(dir.path(), "plain", "echo hi", 0o644);
    let no_line = script(dir.path(), "no-line", "echo hi", 0o755);
    let no_interpreter = script(dir.path(), "no-interpreter", "#!/no/such/thing\n", 0o755);
    let folder = dir.path().to_str().unwrap();
    both(|watched| {
        for (program, reason) in [
            (plain.as_str(), "permission denied"),
            (&no_line, "neither a binary nor a script with a `#!` line"),
            (folder, "not a file"),
        ] {
            let error = refused(watched, &launch(&[program]));
            assert!(matches!(error, StartError::NotExecutable(..)), "{error}");
            assert_eq!(
                error.to_string(),
                format!("cannot execute {program}: {reason}")
            );
        }
        let error = refused(watched, &launch(&[&no_interpreter]));
        assert_eq!(
            error.to_string(),
            format!(
                "cannot execute {no_interpreter}: its first line asks for /no/such/thing, which is not there"
            )
        );
        assert!(error.hint().is_some_and(|hint| hint.contains("`#!` line")));
        let mut in_path = launch(&["plain"]);
        in_path.env = vec![("PATH".into(), folder.into())];
        let error = refused(watched, &in_path);
        assert!(matches!(error, StartError::NotExecutable(..)), "{error}");
    });
}

#[test]
fn arguments_beyond_what_the_system_takes_are_too_long() {
    let long = "x".repeat(131_071);
    let longer = "x".repeat(131_072);
    both(|watched| {
        let (exit, _) = watched.run(&launch(&["true", &long]));
        assert_eq!(exit, Exit::Code(0), "the longest string that fits");
        for count in [1, 60] {
            let mut argv = vec!["true"];
            argv.extend(std::iter::repeat_n(
                if count == 1 { &*longer } else { &*long },
                count,
            ));
            let error = refused(watched, &launch(&argv));
            assert!(matches!(error, StartError::TooLong), "{error}");
        }
        // Refused by the kernel itself: 4 MB are less than its bound, more than a stack allows.
        let argv: Vec<&str> = ["true"]
            .into_iter()
            .chain(std::iter::repeat_n(&*long, 32))
            .collect();
        let error = refused(watched, &launch(&argv));
        assert!(matches!(error, StartError::TooLong), "{error}");
    });
}

#[test]
fn a_working_directory_that_cannot_be_entered_is_named() {
    both(|watched| {
        for (cwd, reason) in [
            ("/no/such/dir", "no such file or directory"),
            ("/dev/null", "not a directory"),
        ] {
            let error = refused(
                watched,
                &Launch {
                    cwd: cwd.into(),
                    ..launch(&["true"])
                },
            );
            assert!(matches!(error, StartError::BadCwd(..)), "{error}");
            assert_eq!(error.to_string(), format!("cannot work in {cwd}: {reason}"));
        }
    });
}

#[test]
fn launches_that_make_no_sense_are_refused() {
    both(|watched| {
        for argv in [&[][..], &[""], &["echo", "a\0b"]] {
            let error = refused(watched, &launch(argv));
            assert!(matches!(error, StartError::BadArgument(_)), "{error}");
        }
        let missing = Launch {
            stdin: Stdin::File("/no/such/prompt".into()),
            finish: std::time::Duration::ZERO,
            ..launch(&["cat"])
        };
        let error = refused(watched, &missing);
        assert!(error.to_string().contains("/no/such/prompt"), "{error}");
        watched.start(1, &sh("echo up; exec sleep 600"));
        watched.output.recv_timeout(LONG).unwrap();
        assert!(matches!(
            refused(watched, &launch(&["true"])),
            StartError::Busy
        ));
        watched.supervisor.terminate(descartes_proc::Ending::Kill);
        watched.end(1);
    });
}

#[test]
fn programs_are_found_as_a_shell_finds_them() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("bin")).unwrap();
    script(
        dir.path(),
        "bin/agent",
        "#!/bin/sh\necho \"$0 $PWD\"\n",
        0o755,
    );
    let here = fs::canonicalize(dir.path()).unwrap();
    both(|watched| {
        let mut run = |argv: &[&str], path: &str| {
            let mut launch = launch(argv);
            launch.env = vec![("PATH".into(), path.into())];
            launch.cwd = here.clone();
            watched.run(&launch).1.text().trim().to_owned()
        };
        let pwd = here.display();
        assert_eq!(run(&["bin/agent"], "/bin"), format!("bin/agent {pwd}"));
        assert_eq!(
            run(&["agent"], "/none:bin:/bin"),
            format!("{pwd}/bin/agent {pwd}")
        );
        let full = format!("{pwd}/bin/agent");
        assert_eq!(run(&[&full], ""), format!("{full} {pwd}"));
    });
}

#[test]
fn the_process_is_named_so_that_it_can_be_told_from_a_later_one() {
    both(|watched| {
        let (said, heard) = std::sync::mpsc::channel();
        let sink = Box::new(Record {
            stdout_copy: Some(said),
            ..Default::default()
        });
        let started = watched
            .supervisor
            .start(1, &sh("echo $$; exec sleep 600"), sink)
            .unwrap();
        heard.recv_timeout(LONG).unwrap();
        assert_eq!(start_time(started.pid), Some(started.start_time));
        assert!(descartes_proc::process_alive(
            started.pid,
            started.start_time
        ));
        assert!(!descartes_proc::process_alive(
            started.pid,
            started.start_time + 1
        ));
        watched.supervisor.terminate(descartes_proc::Ending::Kill);
        watched.end(1);
        assert!(!descartes_proc::process_alive(
            started.pid,
            started.start_time
        ));
        assert_eq!(watched.collect().0.text(), format!("{}\n", started.pid));
    });
}

#[test]
fn the_environment_is_the_one_given() {
    let mut order = launch(&["/usr/bin/env"]);
    order.env = vec![
        ("B".into(), "2 = two\nlines".into()),
        ("A".into(), "".into()),
    ];
    let (_, record) = Watched::guarded().run(&order);
    assert_eq!(record.text(), "B=2 = two\nlines\nA=\n");
    let (_, record) = Watched::direct("m").run(&order);
    let given = format!("B=2 = two\nlines\nA=\n{MARK}=m\nDESCARTES_LAUNCH=");
    assert!(record.text().starts_with(&given), "{}", record.text());
}

#[test]
fn standard_input_is_at_its_end_or_the_file() {
    let mut prompt = tempfile::NamedTempFile::new().unwrap();
    prompt.write_all(b"do it").unwrap();
    both(|watched| {
        assert_eq!(watched.run(&launch(&["cat"])).1.text(), "");
        let mut order = launch(&["cat"]);
        order.stdin = Stdin::File(prompt.path().into());
        assert_eq!(watched.run(&order).1.text(), "do it");
        assert_eq!(watched.run(&order).1.text(), "do it");
        // Not reading it is no error.
        order.argv = vec!["true".into()];
        assert_eq!(watched.run(&order).0, Exit::Code(0));
    });
}

#[test]
fn the_agent_has_three_descriptors() {
    let lock = tempfile::tempfile().unwrap();
    both(|watched| assert_eq!(watched.run(&launch(&[AGENT, "fds"])).1.text(), "0 1 2"));
    let inherit = [lock.as_fd()];
    let mut watched = Watched::new(|on_event| {
        Supervisor::guarded(Path::new(GUARD), &[], &inherit, on_event).unwrap()
    });
    assert_eq!(watched.run(&launch(&[AGENT, "fds"])).1.text(), "0 1 2");
}

#[test]
fn descriptors_leaked_to_the_host_do_not_reach_the_agent() {
    let output = Command::new("sh")
        .args([
            "-c",
            "exec \"$@\" 7</dev/null 9>/dev/null",
            "sh",
            HOST,
            GUARD,
            AGENT,
            "fds",
        ])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.ends_with("\n0 1 2"), "{said}");
}

#[test]
fn the_agent_has_default_signals_its_own_group_and_no_terminal() {
    // The host blocks signals and ignores SIGPIPE; the shell before it ignores two more.
    let output = Command::new("sh")
        .args([
            "-c",
            "trap '' HUP USR1; exec \"$@\"",
            "sh",
            HOST,
            GUARD,
            "cat",
        ])
        .args(["/proc/self/status", "/proc/self/stat"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let field = |name: &str| {
        let line = said
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap();
        line.trim().to_owned()
    };
    for mask in ["SigBlk:", "SigIgn:", "SigCgt:", "SigPnd:"] {
        // 32 and 33 belong to the C library, which does not let them be changed.
        let signals = u64::from_str_radix(&field(mask), 16).unwrap() & !0x1_8000_0000;
        assert_eq!(signals, 0, "{mask}");
    }
    let guard = field("guard ");
    let stat: Vec<&str> = said.lines().last().unwrap().split(' ').collect();
    let [pid, _, _, parent, group, session, terminal, ..] = stat[..] else {
        panic!("{said}")
    };
    assert_eq!(
        (parent, group, session, terminal),
        (&*guard, pid, &*guard, "0")
    );
}

#[test]
fn the_guard_keeps_the_lock_until_it_is_gone() {
    let mut lock = tempfile::NamedTempFile::new().unwrap();
    let again = File::open(lock.path()).unwrap();
    lock.as_file().lock().unwrap();
    let inherit = [lock.as_file().as_fd()];
    let watched = Watched::new(|on_event| {
        Supervisor::guarded(Path::new(GUARD), &[], &inherit, on_event).unwrap()
    });
    let guard = watched.supervisor.guard_pid().unwrap();
    let held = fs::read_dir(format!("/proc/{guard}/fd")).unwrap();
    let held = held.filter_map(|fd| fs::read_link(fd.unwrap().path()).ok());
    assert_eq!(held.filter(|target| target == lock.path()).count(), 1);
    drop(watched);
    assert!(again.try_lock().is_err(), "ours is still there");
    lock.as_file_mut().seek(SeekFrom::Start(0)).unwrap();
    lock.as_file_mut().read_to_end(&mut Vec::new()).unwrap();
    drop(lock);
    again.try_lock().unwrap();
}

#[test]
fn a_guard_that_is_none_is_found_out() {
    for program in ["/bin/true", "/no/such/guard"] {
        let made = Supervisor::guarded(Path::new(program), &[], &[], Box::new(|_| {}));
        assert!(made.is_err(), "{program}");
    }
}

#[test]
fn a_guard_that_nobody_called_goes_away() {
    let status = Command::new(GUARD).stdin(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(70));
}
