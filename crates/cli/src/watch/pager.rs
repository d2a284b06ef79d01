//! Long texts in the person's own pager.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use descartes_client::{Loops, Query};

/// What is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Paged {
    Log(String, Option<u32>),
    Diff(String, Option<u32>),
}

/// Where its text comes from.
#[derive(Debug)]
pub enum Text {
    /// A command that prints it.
    Printed(Command),
    /// Text that is here.
    Here(Vec<u8>),
}

/// Finds the text, or says why there is none.
pub fn prepare(loops: &Loops, what: &Paged) -> Result<Text, String> {
    match what {
        Paged::Log(id, iteration) => {
            let found = loops.find(&Query::Named(id.clone()));
            let log = found.and_then(|found| {
                let log = found.log(*iteration)?;
                log.check()?;
                Ok(log)
            });
            let log = log.map_err(|error| error.to_string())?;
            Ok(Text::Printed(ours("logs", id, Some(log.iteration))?))
        }
        Paged::Diff(id, iteration) => {
            let output = ours("diff", id, *iteration)?
                .stdin(Stdio::null())
                .output()
                .map_err(|error| format!("cannot start descartes: {error}"))?;
            if !output.status.success() {
                let words = String::from_utf8_lossy(&output.stderr).into_owned();
                let first = words.lines().next().unwrap_or("no diff");
                return Err(first.trim_start_matches("error: ").to_owned());
            }
            if output.stdout.is_empty() {
                return Err("this iteration changed no file".to_owned());
            }
            Ok(Text::Here(output.stdout))
        }
    }
}

/// `descartes loop <verb>`, of this very binary.
fn ours(verb: &str, id: &str, iteration: Option<u32>) -> Result<Command, String> {
    let exe = std::env::current_exe().map_err(|error| format!("cannot find descartes: {error}"))?;
    let mut command = Command::new(exe);
    command.args(["loop", verb, id]);
    command.args(iteration.map(|iteration| iteration.to_string()));
    Ok(command)
}

/// Shows it, and waits until the person has read.
pub fn show(text: Text, pager: &[String]) -> Result<(), String> {
    let Some((program, words)) = pager.split_first() else {
        return Err("no pager: set PAGER".to_owned());
    };
    let start = |command: &mut Command| {
        let child = command.spawn();
        child.map_err(|error| format!("cannot start the pager `{program}`: {error}; set PAGER"))
    };
    let mut command = Command::new(program);
    command.args(words);
    match text {
        Text::Printed(mut printer) => {
            let printer = printer.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
            let mut printer =
                printer.map_err(|error| format!("cannot start descartes: {error}"))?;
            if let Some(out) = printer.stdout.take() {
                command.stdin(out);
            }
            let shown = start(&mut command).and_then(finish);
            // Its reader is gone, so that it ends by itself; a follower might not.
            let _ = printer.kill();
            let _ = printer.wait();
            shown
        }
        Text::Here(bytes) => {
            let mut pager = start(command.stdin(Stdio::piped()))?;
            if let Some(mut pipe) = pager.stdin.take() {
                // A person who has seen enough closes it early.
                drop(pipe.write_all(&bytes));
            }
            finish(pager)
        }
    }
}

fn finish(mut pager: Child) -> Result<(), String> {
    pager.wait().map(drop).map_err(|error| error.to_string())
}
