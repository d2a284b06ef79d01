//! What people are told of a command: the same words on every medium.

use descartes_kernel::control::Command;
use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::state::{LoopState, Pause, Phase};

/// What is said where a loop that goes on is already as the command would make it. Of a task
/// loop only its host knows which agents wait.
pub fn nothing_to_do(command: &Command, state: &LoopState) -> Option<&'static str> {
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
pub fn without_host(command: &Command, state: &LoopState) -> String {
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

/// It has taken effect; `words` are the loop's own.
pub fn effective(command: &Command, words: &str, state: &LoopState) -> String {
    match command {
        Command::Pause => format!("paused before iteration {}", state.iterations + 1),
        Command::Unpause => "continuing".to_owned(),
        Command::Say { .. } => words.to_owned(),
        Command::Set { change } => {
            let ends = change.max_iterations.and_then(|_| last_iteration(state));
            let names = names(command);
            match ends {
                Some(ends) => format!("changed: {names}; {ends}"),
                None => format!("changed: {names}"),
            }
        }
        Command::RetryNow => "trying again now".to_owned(),
        Command::Cancel { .. } | Command::Ping => "done".to_owned(),
    }
}

/// What is said of a loop whose limit lets no further iteration begin.
fn last_iteration(state: &LoopState) -> Option<String> {
    let limit = state.config.max_iterations?;
    let now = state.run().map_or(state.iterations, |run| run.iteration);
    if now < limit || matches!(state.phase, Phase::Finished { .. }) {
        return None;
    }
    let ends = match (&state.tasks, state.run()) {
        (Some(_), _) => "the loop ends after the attempts that run now".to_owned(),
        (None, Some(_)) => format!("the loop ends after this iteration ({now})"),
        (None, None) => format!("the loop ends now, after iteration {now}"),
    };
    let waits = state
        .next_prompt
        .notes
        .iter()
        .any(|note| note.given_to.is_none());
    Some(match waits {
        true => format!("{ends}, and nobody gets the note that waits for the next one"),
        false => ends,
    })
}

/// It was taken, and takes effect later.
pub fn accepted(command: &Command, state: &LoopState) -> String {
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
        Command::Say { .. }
            if state
                .config
                .max_iterations
                .is_some_and(|limit| now >= limit) =>
        {
            format!(
                "accepted, but iteration {now} is the last: nobody gets the note unless the limit is raised \
                 (descartes loop set --max-iterations {})",
                now + 1
            )
        }
        Command::Say { .. } => format!("accepted: iteration {} gets the note", now + 1),
        _ => "accepted".to_owned(),
    }
}

/// The loop is not running: it stands in its journal.
pub fn recorded(command: &Command, state: &LoopState) -> String {
    match command {
        Command::Say { .. } if state.exit_reason() == IterativeExitReason::UserCancelled => {
            "note recorded, but nobody hears it now: the loop was cancelled".to_owned()
        }
        Command::Pause => "pause recorded".to_owned(),
        Command::Say { .. } => "note recorded".to_owned(),
        Command::Set { .. } => format!("changed: {}", names(command)),
        Command::RetryNow => "the wait is over".to_owned(),
        Command::Unpause | Command::Cancel { .. } | Command::Ping => "recorded".to_owned(),
    }
}
