//! One try of one hook: a command, or a webhook.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::http;

/// A command's end is looked for so often.
const LOOK: Duration = Duration::from_millis(20);
/// So much of what a failed command said is written down.
const TAIL: usize = 400;

/// How somebody is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hook<'a> {
    /// A command for `sh -c`, with the event on its standard input.
    Command(&'a str),
    /// An address that gets the event by POST.
    Http(&'a str),
    /// The same, by way of `curl`.
    Https(&'a str),
}

impl<'a> Hook<'a> {
    /// Reads a value of `on_event`.
    pub fn of(text: &'a str) -> Self {
        let begins = |scheme: &str| {
            text.get(..scheme.len())
                .is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
        };
        if begins("http://") {
            Self::Http(text)
        } else if begins("https://") {
            Self::Https(text)
        } else {
            Self::Command(text)
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
            Self::Http(url) => http::post(url, body, timeout),
            Self::Https(url) => {
                let seconds = timeout.as_secs().max(1).to_string();
                let mut curl = Command::new("curl");
                curl.args(["--fail", "--silent", "--show-error", "--max-time", &seconds]);
                curl.args(["--header", "Content-Type: application/json"]);
                // Addresses hold secrets: on standard input no list of processes shows them.
                curl.args(["--config", "-"]);
                let order = format!("url = {}\ndata-binary = {}\n", quoted(url), quoted(body));
                run(curl, &order, timeout + Duration::from_secs(1))
            }
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

/// A text as curl's configuration has it.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    let text = text.replace('\n', "\\n").replace('\r', "\\r");
    format!("\"{}\"", text.replace('\t', "\\t"))
}

/// Runs a program to its end, or ends it and all of its group.
fn run(mut command: Command, body: &str, timeout: Duration) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot start {program}: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // Whoever does not want to read it need not.
        drop(stdin.write_all(body.as_bytes()));
    }
    let said = child.stderr.take().and_then(|mut stderr| {
        let reads = move || {
            let mut said = Vec::new();
            drop(stderr.by_ref().take(64 << 10).read_to_end(&mut said));
            said
        };
        // Without a thread its words are lost, and nothing else.
        thread::Builder::new().spawn(reads).ok()
    });
    let status = wait(&mut child, timeout)?;
    if status.success() {
        return Ok(());
    }
    let said = said
        .and_then(|thread| thread.join().ok())
        .unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let said: Vec<char> = said.trim().chars().collect();
    let tail: String = said[said.len().saturating_sub(TAIL)..].iter().collect();
    match tail.is_empty() {
        true => Err(status.to_string()),
        false => Err(format!("{status}: {tail}")),
    }
}

fn wait(child: &mut Child, timeout: Duration) -> Result<ExitStatus, String> {
    let end = Instant::now() + timeout;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if Instant::now() < end => thread::sleep(LOOK),
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
    }
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
    fn what_begins_like_an_address_is_one() {
        assert!(matches!(Hook::of("HTTP://x/y"), Hook::Http(_)));
        assert!(matches!(Hook::of("https://x"), Hook::Https(_)));
        assert!(matches!(Hook::of("httpie https://x"), Hook::Command(_)));
    }
}
