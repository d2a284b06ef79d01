//! `pause`, `unpause`, `say`, `set`: a command, and what is said of its two answers.

use std::time::Duration;

use descartes_client::{ControlEffect, LoopHandle, Sent};
use descartes_kernel::control::Command;
use descartes_kernel::state::{LoopState, Pause, Phase};
use descartes_views::view::Life;
use serde_json::json;

use super::which::{as_typed, find};
use crate::args::loops::{AnswerArgs, PauseArgs, SayArgs, SetArgs};
use crate::args::resume::WhichLoop;
use crate::error::CliError;
use crate::printer::Printer;
use crate::settings::command_context::CommandContext;
use crate::within;

/// What happens at once is waited for so long: the host may have to wait for a processor.
const AT_ONCE: Duration = Duration::from_secs(10);
/// What may have happened already is waited for so long.
const MAYBE: Duration = Duration::from_millis(50);
/// With `--wait`, the wait goes on in pieces of this.
const PIECE: Duration = Duration::from_secs(60);

/// Runs `loop pause`.
/// Pauses a loop, or ends the pause.
pub fn pause(args: &PauseArgs, command: &Command, ctx: &CommandContext) -> Result<i32, CliError> {
    let found = find(&args.which, ctx)?;
    deliver(&found, command, &args.which, args.answer, &ctx.printer)
}

pub fn say(args: &SayArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    if args.text.trim().is_empty() {
        return Err(CliError::usage(
            "the note is empty",
            "for example: descartes loop say \"use the jiff crate for dates\"",
        ));
    }
    let found = find(&args.which, ctx).map_err(|error| match (error, &args.which.id) {
        (CliError::Client(error), Some(name)) if error.exit_code() == 65 => CliError::refused(
            error.to_string(),
            format!(
                "put a note of several words in quotes: descartes loop say \"{} {name} …\"",
                args.text
            ),
        ),
        (error, _) => error,
    })?;
    let text = args.text.clone();
    deliver(
        &found,
        &Command::Say { text },
        &args.which,
        args.answer,
        &ctx.printer,
    )
}

/// Runs `loop set`.
pub fn set(args: &SetArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let change = super::resume::change(&args.change, ctx)?;
    if change.is_empty() && !args.retry_now {
        return Err(CliError::usage(
            "nothing to change",
            "for example: descartes loop set --max-iterations 50",
        ));
    }
    let found = find(&args.which, ctx)?;
    if let Some(model) = &change.model
        && let Some(message) = found.model_not_told(model)?
    {
        let hint = super::resume::OTHER_COMMAND;
        return Err(CliError::refused(message, hint));
    }
    if !change.is_empty() {
        let change = Box::new(change);
        let command = Command::Set { change };
        deliver(&found, &command, &args.which, args.answer, &ctx.printer)?;
    }
    if args.retry_now {
        deliver(
            &found,
            &Command::RetryNow,
            &args.which,
            args.answer,
            &ctx.printer,
        )?;
    }
    Ok(0)
}

/// Sends a command, waits as long as a person would, and says what came of it.
fn deliver(
    found: &LoopHandle,
    command: &Command,
    which: &WhichLoop,
    answer: AnswerArgs,
    printer: &Printer,
) -> Result<i32, CliError> {
    within::refuse_steering(found)?;
    let before = found.state()?;
    if let Some(text) = nothing_to_do(command, &before) {
        let text = match found.life()? {
            Life::Alive => text.to_owned(),
            Life::Gone => format!("{text}; the loop is not running"),
        };
        tell(found, ("unchanged", &text), answer, printer);
        return Ok(0);
    }
    let (word, text) = match found.send(command)? {
        Sent::Live(mut ticket) => {
            let effect = match (answer.wait, command) {
                (true, _) => {
                    if let Command::Pause | Command::Say { .. } = command {
                        printer.talk("accepted, waiting until it takes effect");
                    }
                    loop {
                        match ticket.effect(PIECE)? {
                            ControlEffect::Pending => {}
                            effect => break effect,
                        }
                    }
                }
                (false, Command::Say { .. }) => ticket.effect(MAYBE)?,
                (false, Command::Pause) if before.requests.pause != Pause::Held => {
                    ticket.effect(MAYBE)?
                }
                (false, _) => ticket.effect(AT_ONCE)?,
            };
            match effect {
                ControlEffect::Done(words) => ("effective", done(command, &words, &found.state()?)),
                ControlEffect::Pending => ("accepted", pending(command, &before)),
                ControlEffect::HostGone => ("accepted", without_host(command, &found.state()?)),
            }
        }
        Sent::Recorded(recorded) => {
            for notice in &recorded.notices {
                printer.note(notice);
            }
            let resume = format!("descartes loop resume{}", as_typed(which, found));
            let text = match command {
                Command::Unpause => {
                    format!(
                        "no longer paused; the loop is not running, continue it with `{resume}`"
                    )
                }
                _ => format!(
                    "{}; the loop is not running, it takes effect with `{resume}`",
                    recorded_words(command)
                ),
            };
            ("recorded", text)
        }
        Sent::Signalled { pid } => ("signalled", format!("sent SIGTERM to process {pid}")),
    };
    tell(found, (word, &text), answer, printer);
    Ok(0)
}

fn tell(found: &LoopHandle, (word, text): (&str, &str), answer: AnswerArgs, printer: &Printer) {
    match answer.json {
        true => {
            let value = json!({ "loop_id": found.id(), "answer": word, "message": text });
            printer.json(&value);
        }
        false => printer.line(text),
    }
}

/// What is said where a loop that goes on is already as the command would make it. Of a task
/// loop only its host knows which agents wait.
fn nothing_to_do(command: &Command, state: &LoopState) -> Option<&'static str> {
    if matches!(&state.phase, Phase::Finished { reason, .. } if reason.is_success()) {
        return None; // refused, for it takes no orders any more
    }
    match command {
        Command::Unpause if state.requests.pause == Pause::No => {
            Some("the loop is not paused: nothing to do")
        }
        Command::RetryNow if state.wait().is_none() && state.tasks.is_none() => {
            Some("the loop is not waiting: nothing to retry")
        }
        _ => None,
    }
}

fn names(command: &Command) -> String {
    match command {
        Command::Set { change } => change.names().join(", "),
        _ => String::new(),
    }
}

/// The loop's process went away before the command took effect.
fn without_host(command: &Command, state: &LoopState) -> String {
    match (&state.phase, command) {
        (Phase::Finished { reason, .. }, Command::Say { .. }) if reason.is_success() => {
            "accepted, but the loop was done before the note reached an agent".to_owned()
        }
        (Phase::Finished { .. }, Command::Say { .. }) => {
            "accepted; the loop ended before the note reached an agent: it takes effect with the \
             next resume"
                .to_owned()
        }
        _ => "accepted; the loop's process has gone in the meantime: it takes effect with the \
            next resume"
            .to_owned(),
    }
}

fn done(command: &Command, words: &str, state: &LoopState) -> String {
    match command {
        Command::Pause => format!("paused before iteration {}", state.iterations + 1),
        Command::Unpause => "continuing".to_owned(),
        Command::Say { .. } => words.to_owned(),
        Command::Set { .. } => format!("changed: {}", names(command)),
        Command::RetryNow => "trying again now".to_owned(),
        Command::Cancel { .. } | Command::Ping => "done".to_owned(),
    }
}

fn pending(command: &Command, state: &LoopState) -> String {
    let now = state.run().map_or(state.iterations, |run| run.iteration);
    match command {
        Command::Pause if state.run().is_some() => {
            format!("accepted: it takes effect after iteration {now}")
        }
        Command::Pause => "accepted: it takes effect before the next iteration".to_owned(),
        Command::Say { .. } if state.tasks.is_some() => {
            "accepted: every attempt that starts gets the note, until one has finished with it"
                .to_owned()
        }
        Command::Say { .. } => format!("accepted: iteration {} gets the note", now + 1),
        _ => "accepted".to_owned(),
    }
}

fn recorded_words(command: &Command) -> String {
    match command {
        Command::Pause => "pause recorded".to_owned(),
        Command::Say { .. } => "note recorded".to_owned(),
        Command::Set { .. } => format!("changed: {}", names(command)),
        Command::RetryNow => "the wait is over".to_owned(),
        Command::Unpause | Command::Cancel { .. } | Command::Ping => "recorded".to_owned(),
    }
}
