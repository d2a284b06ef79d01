//! One try of one hook: a command, or a webhook.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::http;
use crate::env::Environment;

/// A command's end is looked for so often.
const LOOK: Duration = Duration::from_millis(20);
/// So much of what a failed command said is written down.
const TAIL: usize = 400;
/// More than this of what it says is not kept.
const MOST_SAID: usize = 64 << 10;
/// Reads of what it says before anything else is looked at again.
const READS: u32 = 64;

/// How somebody is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hook<'a> {
    /// A command for `sh -c`, with the event on its standard input.
    Command(&'a str),
    /// A URL that gets the event by POST.
    Webhook(&'a str),
}

impl<'a> Hook<'a> {
    /// Reads a value of `on_event`.
    pub fn of(text: &'a str) -> Self {
        let begins = |scheme: &str| {
            text.get(..scheme.len())
                .is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
        };
        match begins("http://") || begins("https://") {
            true => Self::Webhook(text),
            false => Self::Command(text),
        }
    }

    /// Tries once.
    pub fn tell(
        &self,
        body: &str,
        variables: &[(&'static str, String)],
        dir: &Path,
        timeout: Duration,
    ) -> Result<(), String> {
        match self {
            Self::Webhook(url) => http::post(url, body, timeout, &Environment::of_process()),
            Self::Command(text) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", text]);
                shell.envs(variables.iter().map(|(name, value)| (name, value)));
                if dir.is_dir() {
                    shell.current_dir(dir);
                }
                run(shell, body, timeout)
            }
        }
    }
}

/// Runs a program to its end, or ends it and all of its group. What it started and left behind is not
/// waited for, whatever it holds open.
fn run(mut command: Command, body: &str, timeout: Duration) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot start {program}: {error}"))?;
    let mut pipes = Pipes::of(&mut child, body);
    let end = Instant::now() + timeout;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < end => pipes.serve(LOOK),
            Ok(None) => {
                let group = i32::try_from(child.id()).map(Pid::from_raw);
                if let Ok(group) = group {
                    let _ = killpg(group, Signal::SIGKILL);
                }
                drop(child.wait());
                return Err(format!("took longer than {} s", timeout.as_secs_f32()));
            }
            Err(error) => return Err(error.to_string()),
        }
    };
    if status.success() {
        return Ok(());
    }
    // What it said before it ended is in the pipe already.
    pipes.listen();
    let said = String::from_utf8_lossy(&pipes.said);
    let said: Vec<char> = said.trim().chars().collect();
    let tail: String = said[said.len().saturating_sub(TAIL)..].iter().collect();
    match tail.is_empty() {
        true => Err(status.to_string()),
        false => Err(format!("{status}: {tail}")),
    }
}

/// A program's standard input and error. Neither is ever waited for.
struct Pipes<'a> {
    /// What it has not read yet, and where that goes.
    body: &'a [u8],
    stdin: Option<ChildStdin>,
    stderr: Option<ChildStderr>,
    said: Vec<u8>,
}

impl<'a> Pipes<'a> {
    fn of(child: &mut Child, body: &'a str) -> Self {
        let stdin = child.stdin.take().filter(never_blocks);
        let stderr = child.stderr.take().filter(never_blocks);
        Self {
            body: body.as_bytes(),
            stdin,
            stderr,
            said: Vec::new(),
        }
    }

    /// Waits until there is something to do, at most `limit`, and does it.
    fn serve(&mut self, limit: Duration) {
        let stdin = self
            .stdin
            .as_ref()
            .map(|stdin| (stdin.as_fd(), PollFlags::POLLOUT));
        let stderr = self
            .stderr
            .as_ref()
            .map(|err| (err.as_fd(), PollFlags::POLLIN));
        let fds = stdin.into_iter().chain(stderr);
        let mut fds: Vec<PollFd<'_>> = fds.map(|(fd, flags)| PollFd::new(fd, flags)).collect();
        let _ = poll(
            &mut fds,
            PollTimeout::try_from(limit).unwrap_or(PollTimeout::ZERO),
        );
        self.speak();
        self.listen();
    }

    fn speak(&mut self) {
        let Some(stdin) = &mut self.stdin else { return };
        match stdin.write(self.body) {
            Ok(written) => self.body = &self.body[written..],
            Err(error) if is_later(&error) => return,
            // Whoever does not want to read it need not.
            Err(_) => self.body = &[],
        }
        if self.body.is_empty() {
            self.stdin = None;
        }
    }

    fn listen(&mut self) {
        let mut chunk = [0; 4 << 10];
        // Not for ever: somebody may write as quickly as this reads.
        for _ in 0..READS {
            let Some(stderr) = &mut self.stderr else {
                return;
            };
            match stderr.read(&mut chunk) {
                Ok(read) if read > 0 => {
                    let room = MOST_SAID.saturating_sub(self.said.len());
                    self.said.extend_from_slice(&chunk[..read.min(room)]);
                }
                Err(error) if is_later(&error) => return,
                _ => self.stderr = None,
            }
        }
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn never_blocks(pipe: &impl AsFd) -> bool {
    fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tell(hook: &str, timeout: Duration) -> Result<(), String> {
        let variables = [("DESCARTES_EVENT", "ended".to_owned())];
        Hook::of(hook).tell(
            "{\"event\":\"ended\"}\n",
            &variables,
            Path::new("/"),
            timeout,
        )
    }

    #[test]
    fn a_command_gets_the_event_and_its_failure_is_told() {
        let long = Duration::from_secs(20);
        let reads = "read line && test \"$line\" = '{\"event\":\"ended\"}' && test $DESCARTES_EVENT = ended";
        assert_eq!(tell(reads, long), Ok(()));
        assert_eq!(
            tell("exit 0", long),
            Ok(()),
            "who does not read is no failure"
        );
        let failed = tell("echo no luck >&2; exit 3", long).unwrap_err();
        assert!(
            failed.contains('3') && failed.contains("no luck"),
            "{failed}"
        );
    }

    #[test]
    fn a_command_that_hangs_is_ended_with_its_children() {
        let begun = Instant::now();
        let failed = tell("sleep 100 & sleep 100", Duration::from_millis(200)).unwrap_err();
        assert!(failed.contains("longer"), "{failed}");
        assert!(begun.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn nobody_waits_for_what_a_command_left_behind() {
        let begun = Instant::now();
        let long = Duration::from_secs(20);
        // It holds standard error, in the command's group or in one of its own.
        let failed = tell("sleep 25 & echo no luck >&2; exit 3", long).unwrap_err();
        assert!(failed.contains("no luck"), "{failed}");
        let failed = tell("setsid sleep 25 & exit 3", long).unwrap_err();
        assert!(failed.contains('3'), "{failed}");
        let short = Duration::from_millis(300);
        let failed = tell("setsid sleep 25 & sleep 25", short).unwrap_err();
        assert!(failed.contains("longer"), "{failed}");
        assert!(begun.elapsed() < Duration::from_secs(15));
    }

    #[test]
    fn a_command_that_does_not_read_is_ended_in_time() {
        let begun = Instant::now();
        let body = "x".repeat(1 << 20);
        let hook = Hook::of("sleep 25");
        let failed = hook.tell(&body, &[], Path::new("/"), Duration::from_millis(300));
        assert!(failed.unwrap_err().contains("longer"));
        assert!(begun.elapsed() < Duration::from_secs(15));
        let reads = Hook::of("test $(wc -c) = 1048576");
        let told = reads.tell(&body, &[], Path::new("/"), Duration::from_secs(20));
        assert_eq!(told, Ok(()));
    }

    #[test]
    fn what_begins_like_an_address_is_one() {
        assert!(matches!(Hook::of("HTTP://x/y"), Hook::Webhook(_)));
        assert!(matches!(Hook::of("https://x"), Hook::Webhook(_)));
        assert!(matches!(Hook::of("httpie https://x"), Hook::Command(_)));
    }
}
