//! Times, amounts and names in words.

use std::time::Duration;

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::control::Command;
use descartes_kernel::event::{ExitStatus, GateEnd, RunFacts};
use descartes_kernel::state::Spent;
use descartes_text::units::{plural, show_duration};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::view::{show_cost, show_tokens};
use descartes_text::display::one_line;

/// Milliseconds as people read them.
pub fn millis(ms: u64) -> String {
    show_duration(Duration::from_millis(ms))
}

/// A duration in whole seconds: it does not flicker.
pub fn seconds(duration: Duration) -> String {
    show_duration(Duration::from_secs(duration.as_secs()))
}

/// What is left from one instant to a later one, in seconds: the last one is counted down as well.
pub fn left(now: Timestamp, until: Timestamp) -> String {
    let left = between(now, until);
    show_duration(Duration::from_secs(
        left.as_millis()
            .div_ceil(1000)
            .try_into()
            .unwrap_or(u64::MAX),
    ))
}

/// From one instant to a later one; zero where the clock went back.
pub fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// The time of day here, with the date where it is not today.
pub fn clock(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let (at, now) = (at.to_zoned(zone.clone()), now.to_zoned(zone.clone()));
    let format = if at.date() == now.date() {
        "%H:%M:%S"
    } else {
        "%Y-%m-%d %H:%M:%S"
    };
    at.strftime(format).to_string()
}

/// How a process ended.
pub fn exit(status: ExitStatus) -> String {
    match status {
        ExitStatus::Code(code) => format!("exit code {code}"),
        ExitStatus::Signal(signal) => format!("signal {signal}"),
    }
}

/// How a gate ended.
pub fn gate_end(end: GateEnd) -> String {
    match end {
        GateEnd::Exit(status) => exit(status),
        GateEnd::Timeout => "timed out".to_owned(),
        GateEnd::Cancelled => "cancelled".to_owned(),
    }
}

/// A count of tokens, short.
pub fn tokens(count: u64) -> String {
    match count {
        0..1_000 => plural(count, "token"),
        _ => format!("{} tokens", show_tokens(Some(count))),
    }
}

/// What was spent, as far as it is known: tokens, dollars (`~` where estimated).
pub fn spent(spent: &Spent) -> Vec<String> {
    let dollars = spent.cost().map(|cost| show_cost(Some(cost)));
    spent
        .tokens
        .map(tokens)
        .into_iter()
        .chain(dollars)
        .collect()
}

/// What a run has used, as far as it was told.
pub fn used(facts: &RunFacts) -> Vec<String> {
    let cost = facts.cost;
    spent(&Spent {
        ms: 0,
        tokens: facts.tokens.and_then(|tokens| tokens.total()),
        cost_micros: cost.map(|cost| cost.micros),
        estimated: cost.is_some_and(|cost| cost.estimated),
    })
}

/// An agent's command line, its program by name alone.
pub fn command(config: &IterativeLoopConfig) -> String {
    let line = config.agent_line();
    let name = config.command.rsplit('/').next().unwrap_or_default();
    match line.strip_prefix(config.command.as_str()) {
        Some(rest) if !name.is_empty() => one_line(&format!("{name}{rest}")),
        _ => one_line(&line),
    }
}

/// The iteration and its limit, which is no goal.
pub fn iteration(number: u32, limit: Option<u32>) -> String {
    match limit {
        Some(limit) => format!("iteration {number} of at most {}", limit.max(number)),
        None => format!("iteration {number}, no limit"),
    }
}

/// `gate`, or `gate 1 of 2` where there are several.
pub fn gate_number(gate: u32, of: usize) -> String {
    match of {
        0 | 1 => "gate".to_owned(),
        many => format!("gate {} of {many}", gate + 1),
    }
}

/// The name of the agent that works in place of the first one.
pub fn fallback(config: &IterativeLoopConfig, agent: u32) -> Option<&str> {
    let at = usize::try_from(agent).ok()?.checked_sub(1)?;
    config.fallback.get(at).map(String::as_str)
}

/// What becomes of a command that was accepted and has not taken effect yet.
pub fn accepted(command: &Command) -> &'static str {
    match command {
        Command::Pause => "will pause after this iteration",
        Command::Cancel { .. } => "cancelling: the agent was asked to stop",
        Command::Say { .. } => "the next iteration will get the note",
        _ => "accepted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(tokens(999), "999 tokens");
        assert_eq!(tokens(12_345), "12.3k tokens");
        assert_eq!(tokens(1_234_567), "1.2M tokens");
        let known = Spent {
            ms: 0,
            tokens: Some(10),
            cost_micros: Some(410_000),
            estimated: true,
        };
        assert_eq!(spent(&known), ["10 tokens", "~$0.41"]);
        let little = Spent {
            cost_micros: Some(9_000),
            ..Spent::default()
        };
        assert_eq!(spent(&little), ["$0.0090"], "the same digits as in a list");
        assert_eq!(
            (show_cost(None), show_tokens(None)),
            ("–".into(), "–".into())
        );
        assert!(spent(&Spent::default()).is_empty());
        assert_eq!(
            (plural(1, "file"), plural(0, "file")),
            ("1 file".into(), "0 files".into())
        );
        assert_eq!(iteration(3, Some(20)), "iteration 3 of at most 20");
        assert_eq!(iteration(21, Some(20)), "iteration 21 of at most 21");
    }

    #[test]
    fn a_program_is_shown_without_its_folder() {
        let config = |command: &str| IterativeLoopConfig {
            command: command.into(),
            args: vec!["-p".into(), "a b".into()],
            ..Default::default()
        };
        assert_eq!(command(&config("/usr/bin/claude")), "claude -p 'a b'");
        assert_eq!(command(&config("claude")), "claude -p 'a b'");
        assert_eq!(command(&config("/odd dir/x")), "'/odd dir/x' -p 'a b'");
    }

    #[test]
    fn a_time_of_another_day_has_its_date() {
        let now: Timestamp = "2026-01-02T10:00:00Z".parse().unwrap();
        let later: Timestamp = "2026-01-02T12:30:00Z".parse().unwrap();
        let other: Timestamp = "2026-01-03T12:30:00Z".parse().unwrap();
        assert_eq!(clock(later, now, &TimeZone::UTC), "12:30:00");
        assert_eq!(clock(other, now, &TimeZone::UTC), "2026-01-03 12:30:00");
        assert_eq!(between(later, now), Duration::ZERO);
    }
}
