//! `descartes loop cancel`: ends a loop and everything it started, and says so.

use std::time::{Duration, Instant};

use descartes_client::{ClientError, ControlEffect, LoopHandle, Sent, Ticket};
use descartes_core::host::sweep_loop;
use descartes_kernel::config::KILL_GRACE;
use descartes_kernel::control::{Command, Grace};
use descartes_kernel::state::Phase;
use descartes_proc::Fate;
use descartes_store::host::{self, HostInfo, life_of};
use descartes_store::lock::LockError;
use descartes_text::units::{plural, show_duration};
use descartes_views::view::Life;
use serde_json::json;

use super::remote_agents;
use super::which::find;
use crate::args::loops::CancelArgs;
use crate::error::CliError;
use crate::printer::Printer;
use crate::session::background;
use crate::settings::command_context::CommandContext;
use crate::within;

/// Beyond the agent's grace: a guard sweeps for 5 s at most, a commit may be under way.
const BEYOND_GRACE: Duration = Duration::from_secs(60);
/// A loop that does not take the command in so long is told by a signal.
const ANSWER: Duration = Duration::from_secs(10);
/// A process that has given its loop back ends within this; looked at so often.
const LAST_MOMENT: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);
/// After so long it is said that something is waited for.
const SAY_SO: Duration = Duration::from_secs(1);

/// Of a loop that had ended before.
const NOTHING: &str = "; nothing to cancel";

/// What was done.
struct CancelReport {
    /// For programs.
    how: &'static str,
    /// For people.
    text: String,
}

pub fn run(args: &CancelArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let found = find(&args.which, ctx)?;
    within::refuse_steering(&found)?;
    let grace = match args.now {
        true => Grace::Skip,
        false => Grace::Ask,
    };
    let sent = match found.send_within(&Command::Cancel { grace }, ANSWER) {
        Err(error) if is_replaced(&found, &error) => None,
        sent => Some(sent?),
    };
    let Some(sent) = sent else {
        return replaced(&found, grace, args.json, ctx);
    };
    let done = match sent {
        Sent::Live(ticket) => live(&found, ticket, &ctx.printer)?,
        Sent::Signalled { pid } => {
            ctx.printer.note(&format!(
                "no control socket answers: sent SIGTERM to process {pid}"
            ));
            gone(&found, Instant::now(), limit(&found)?, &ctx.printer)?
        }
        Sent::Recorded(recorded) => {
            for notice in &recorded.notices {
                ctx.printer.note(notice);
            }
            stopped(&found, recorded.records.is_empty())?
        }
    };
    // What was recorded is recorded, also where workers cannot be told.
    let so_far = done.text.trim_end_matches(NOTHING);
    match remote_agents::stop(&found, grace, so_far, ctx) {
        Ok(remote) => show(&found, &with_remote(done, remote), args.json, ctx),
        Err(error) => {
            if args.json {
                let text = error.to_string();
                show(&found, &CancelReport { text, ..done }, true, ctx)?;
            }
            Err(error)
        }
    }
}

fn show(
    found: &LoopHandle,
    done: &CancelReport,
    json: bool,
    ctx: &CommandContext,
) -> Result<i32, CliError> {
    match json {
        true => {
            let reason = found.state()?.exit_reason();
            let value = json!({
                "loop_id": found.id(), "answer": done.how, "message": done.text, "exit_reason": reason,
            });
            ctx.printer.json(&value);
        }
        false => ctx.printer.line(&done.text),
    }
    Ok(0)
}

/// Whether another loop runs in the place of this one.
fn is_replaced(found: &LoopHandle, error: &ClientError) -> bool {
    let ClientError::Lock(LockError::Held(held)) = error else {
        return false;
    };
    let holder = held.holder.as_ref();
    holder.is_some_and(|holder| holder.loop_id != found.id())
}

/// Nothing is recorded of a loop whose state file is another's by now: its agents elsewhere are stopped all the same.
fn replaced(
    found: &LoopHandle,
    grace: Grace,
    json: bool,
    ctx: &CommandContext,
) -> Result<i32, CliError> {
    let text = "another loop runs in its place: nothing was recorded";
    let remote = remote_agents::stop(found, grace, text, ctx)?;
    let done = CancelReport {
        how: match remote {
            Some(_) => "recorded",
            None => "nothing",
        },
        text: match remote {
            Some(remote) => format!("{text}; {remote}"),
            None => format!("{text}{NOTHING}"),
        },
    };
    show(found, &done, json, ctx)
}

/// Adds what became of agents on other machines.
fn with_remote(done: CancelReport, remote: Option<String>) -> CancelReport {
    match remote {
        None => done,
        Some(remote) => CancelReport {
            how: match done.how {
                "nothing" => "recorded",
                how => how,
            },
            text: format!("{}; {remote}", done.text.trim_end_matches(NOTHING)),
        },
    }
}

fn limit(found: &LoopHandle) -> Result<Duration, CliError> {
    Ok(found
        .state()?
        .config
        .kill_grace_secs
        .map_or(KILL_GRACE, |grace| grace.0)
        + BEYOND_GRACE)
}

/// The loop has taken it: wait for its effect, then for the last process.
fn live(
    found: &LoopHandle,
    mut ticket: Ticket,
    printer: &Printer,
) -> Result<CancelReport, CliError> {
    let (limit, begun) = (limit(found)?, Instant::now());
    if ticket.effect(SAY_SO)? == ControlEffect::Pending {
        printer.talk("requested; waiting until every process of the loop is gone");
        ticket.effect(limit.saturating_sub(begun.elapsed()))?;
    }
    gone(found, begun, limit, printer)
}

/// The host and its guards hold the lock: when it is free, they and all below them are gone.
fn gone(
    found: &LoopHandle,
    begun: Instant,
    limit: Duration,
    printer: &Printer,
) -> Result<CancelReport, CliError> {
    let left = limit.saturating_sub(begun.elapsed());
    if found.wait_until_gone(SAY_SO.min(left))? == Life::Alive {
        printer.talk("waiting until every process of the loop is gone");
        let left = limit.saturating_sub(begun.elapsed());
        if found.wait_until_gone(left)? == Life::Alive {
            return Err(still_there(found, limit));
        }
    }
    // The loop of a task is a part of its task loop, which goes on.
    if found.parent().is_none() {
        wait_for_background(found);
    }
    let state = found.state()?;
    let done = plural(state.iterations.into(), "iteration");
    match &state.phase {
        Phase::Finished { reason, .. } => Ok(CancelReport {
            how: "effective",
            text: format!(
                "{} after {done}; every process of the loop{} is gone{}",
                reason.sentence(),
                match state.has_open_offers() {
                    true => " on this machine",
                    false => "",
                },
                of_task_loop(found)
            ),
        }),
        // Its host died on the way: what was asked for is recorded all the same.
        _ => match found.send(&Command::Cancel { grace: Grace::Skip })? {
            Sent::Recorded(recorded) => stopped(found, recorded.records.is_empty()),
            _ => Err(still_there(found, begun.elapsed())),
        },
    }
}

/// What becomes of the task whose loop was cancelled.
fn of_task_loop(found: &LoopHandle) -> String {
    found.parent().map_or_else(String::new, |parent| {
        format!(
            "; its task is blocked, and its task loop goes on without it: `descartes loop cancel {parent}` ends all, \
             `descartes loop resume {parent} --retry-blocked` tries the task again once that has ended"
        )
    })
}

/// The process in the background gives its loop back just before it ends.
fn wait_for_background(found: &LoopHandle) {
    let Some(host) = HostInfo::read(found.dir()).map(|info| info.facts) else {
        return;
    };
    let is_there = || {
        let words = std::fs::read(format!("/proc/{}/cmdline", host.pid)).unwrap_or_default();
        let verb = words.split(|byte| *byte == 0).nth(1);
        verb == Some(background::HOST.as_bytes()) && life_of(&host) == host::Life::Alive
    };
    let begun = Instant::now();
    while is_there() && begun.elapsed() < LAST_MOMENT {
        std::thread::sleep(LOOK);
    }
}

fn still_there(found: &LoopHandle, limit: Duration) -> CliError {
    if let Some(parent) = found.parent() {
        // Its process is that of the whole.
        return CliError::failed(
            format!(
                "the loop of this task did not end within {}",
                show_duration(limit)
            ),
            format!("to end its task loop with all tasks: descartes loop cancel {parent}"),
        );
    }
    let pid = found.pid();
    let who = pid.map_or_else(
        || "its processes".to_owned(),
        |pid| format!("process {pid}"),
    );
    CliError::failed(
        format!("{who} did not end within {}", show_duration(limit)),
        match pid {
            Some(pid) => format!("descartes loop cancel --now, or kill -9 {pid}"),
            None => "descartes loop cancel --now".to_owned(),
        },
    )
}

/// Nobody hosts it: it was recorded, and what a dead host left behind is ended.
fn stopped(found: &LoopHandle, nothing_new: bool) -> Result<CancelReport, CliError> {
    let mut text = match nothing_new {
        true => {
            let reason = found.state()?.exit_reason();
            format!("the loop had already ended: {}{NOTHING}", reason.sentence())
        }
        false => "the loop was not running: recorded as cancelled".to_owned(),
    };
    // While it is held nobody resumes it; where somebody just did, its processes are theirs.
    if let Ok(_hold) = found.hold() {
        let ended = sweep_loop(found.root(), found.id());
        let left = ended
            .iter()
            .filter(|one| one.fate == Fate::Survived)
            .count();
        if ended.len() > left {
            let count = plural((ended.len() - left) as u64, "process");
            text.push_str(&format!("; ended {count} left behind by its dead host"));
        }
        if left > 0 {
            text.push_str(&format!("; {left} could not be ended"));
        }
    }
    Ok(CancelReport {
        how: if nothing_new { "nothing" } else { "recorded" },
        text,
    })
}
