//! `pause`, `unpause`, `say`, `set`: a command, and what is said of its two answers.

use std::time::Duration;

use descartes_client::{ControlEffect, LoopHandle, Sent, answers};
use descartes_kernel::control::Command;
use descartes_kernel::state::Pause;
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
                "`{name}` is taken for the name of a loop: put a note of several words in quotes"
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
    if let Some(text) = answers::nothing_to_do(command, &before) {
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
                ControlEffect::Done(words) => (
                    "effective",
                    answers::effective(command, &words, &found.state()?),
                ),
                ControlEffect::Pending => ("accepted", answers::accepted(command, &before)),
                ControlEffect::HostGone => {
                    ("accepted", answers::without_host(command, &found.state()?))
                }
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
                    answers::recorded(command, &recorded.state)
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
