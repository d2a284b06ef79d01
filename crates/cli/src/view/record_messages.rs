//! What a record of the journal is to a person: a line or two between the agent's output.

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::control::Command;
use descartes_kernel::event::{
    EndedBy, Event, GateFacts, Record, RunFacts, StopBy, Verdict, WaitEnd, WaitReason,
};
use descartes_kernel::state::LoopState;
use descartes_text::display::{self, Colours};
use descartes_text::units::{Secs, cut_str, plural, show_size};
use jiff::tz::TimeZone;

use super::status_message::{Role, StatusMessage};
use super::width::one_line;
use super::words;
use crate::style::Tone;

/// Lines of a red gate's output that are shown.
const GATE_LINES: usize = 12;

fn line(tone: Tone, text: impl Into<String>) -> Vec<StatusMessage> {
    vec![StatusMessage {
        role: Role::Line,
        tone,
        text: text.into(),
    }]
}

/// The lines for a record, given the state after it.
pub fn tell(record: &Record, state: &LoopState, zone: &TimeZone) -> Vec<StatusMessage> {
    match &record.event {
        Event::RunStarted {
            iteration, agent, ..
        } => heading(state, *iteration, *agent),
        Event::AgentEnded { facts, .. } => agent_ended(facts),
        Event::GateFinished { facts, .. } => gate(facts, &state.config),
        Event::IterationFinished {
            iteration,
            verdict,
            files,
            commit,
            ..
        } => finished(
            *iteration,
            verdict,
            *files,
            commit.as_deref(),
            &state.config,
        ),
        Event::IterationInterrupted { iteration, .. } => line(
            Tone::Warn,
            format!("iteration {iteration} was interrupted: its number is not used again"),
        ),
        Event::RunDiscarded { limit, .. } => line(
            Tone::Warn,
            format!("not counted, the provider said: {}", one_line(&limit.words)),
        ),
        Event::WaitStarted { until, reason } => {
            let left = words::seconds(words::between(record.at, *until));
            let at = words::clock(*until, record.at, zone);
            line(
                Tone::Warn,
                format!("waiting {left}, until {at}: {}", why_waiting(reason)),
            )
        }
        Event::WaitEnded { by: WaitEnd::Retry } => line(Tone::Normal, "trying again now"),
        Event::Paused => line(Tone::Warn, "paused, continue with: descartes loop unpause"),
        Event::Unpaused => line(Tone::Normal, "continuing"),
        Event::CommandAccepted { command, .. } => told(command),
        Event::ConfigChanged { change, by, .. } => line(
            Tone::Normal,
            format!("changed by {by}: {}", change.names().join(", ")),
        ),
        Event::StopRequested { by } => line(Tone::Warn, stop(*by)),
        Event::Nudged { iterations } => line(
            Tone::Warn,
            format!(
                "no progress in {}: the agent is told, and the loop stops at twice as many",
                plural(u64::from(*iterations), "iteration")
            ),
        ),
        Event::Tasks { event } => super::tasks::talk(event, state),
        Event::WorkLanded { landing } => super::tasks::landed(landing),
        Event::TreesKept { trees } => super::tasks::kept(trees),
        Event::Branched { name } => line(Tone::Normal, format!("on branch {name}")),
        Event::Moved {
            working_directory, ..
        } => line(
            Tone::Warn,
            format!("works in {} from now on", working_directory.display()),
        ),
        Event::Tagged { name } => line(Tone::Good, format!("tagged {name}")),
        Event::Busy { what } if what.is_empty() => Vec::new(),
        Event::Busy { what } => line(Tone::Normal, one_line(what)),
        Event::GateFileChanged { file, task } => {
            let of = task.as_ref().map(|task| format!(" (task {task})"));
            let words = format!(
                "warning: gate file {} has changed since the loop began{}",
                one_line(file),
                of.unwrap_or_default()
            );
            line(Tone::Warn, words)
        }
        Event::Warning { message } => line(Tone::Warn, format!("warning: {}", one_line(message))),
        _ => Vec::new(),
    }
}

fn heading(state: &LoopState, iteration: u32, agent: u32) -> Vec<StatusMessage> {
    let mut text = words::iteration(iteration, state.config.max_iterations);
    let fallback = usize::try_from(agent).ok().and_then(|at| at.checked_sub(1));
    if let Some(name) = fallback.and_then(|at| state.config.fallback.get(at)) {
        text.push_str(&format!(", by {name}"));
    }
    vec![StatusMessage {
        role: Role::Heading,
        tone: Tone::Strong,
        text,
    }]
}

fn agent_ended(facts: &RunFacts) -> Vec<StatusMessage> {
    let time = words::millis(facts.duration_ms);
    let exit = facts
        .exit
        .map_or_else(|| "no exit code".to_owned(), words::exit);
    let how = match facts.ended_by {
        EndedBy::Exit => format!("agent ended after {time}: {exit}"),
        EndedBy::Result => format!("agent ended after {time}: it had delivered its result"),
        EndedBy::Promise => {
            format!("agent ended after {time}: it had claimed to be done and was silent")
        }
        EndedBy::Timeout => format!("agent ended after {time}: timed out"),
        EndedBy::Idle => format!("agent ended after {time}: it hung, no output and no activity"),
        EndedBy::GaveUp => {
            format!("agent ended after {time}: it reported an error that it would have waited on")
        }
        EndedBy::Budget(budget) => {
            format!("agent ended after {time}: {} is used up", budget.flag())
        }
        EndedBy::Cancel => format!("agent ended after {time}: stopped"),
        EndedBy::GuardLost => {
            format!("agent lost after {time}: its guard process was killed")
        }
        EndedBy::HostLost => "agent lost: descartes itself was killed".to_owned(),
    };
    let well = facts.failure().is_none();
    let used = words::used(facts);
    let how = [vec![how], used].concat().join(", ");
    let mut out = line(if well { Tone::Dim } else { Tone::Warn }, how);
    if let Some(claim) = &facts.claim {
        out.extend(line(Tone::Normal, format!("claimed: {}", one_line(claim))));
    }
    if let Some(words) = &facts.abort {
        out.extend(line(
            Tone::Warn,
            format!("the agent says it cannot be done: {}", one_line(words)),
        ));
    }
    if let Some(near) = &facts.near_miss {
        let text = one_line(&near.words());
        out.extend(line(
            Tone::Warn,
            format!("{text} (a promise only counts alone on a line)"),
        ));
    }
    if let Some(error) = &facts.error {
        out.extend(line(
            Tone::Bad,
            format!("reported an error: {}", one_line(cut_str(error, 400))),
        ));
    }
    if facts.leftovers > 0 {
        let left = plural(facts.leftovers, "process");
        out.extend(line(
            Tone::Dim,
            format!("ended {left} that it had left behind"),
        ));
    }
    if !facts.survivors.is_empty() {
        out.extend(line(
            Tone::Bad,
            format!("could not end: {:?}", facts.survivors),
        ));
    }
    if facts.log_dropped > 0 {
        let text = format!(
            "{} of its output is not in the log",
            show_size(facts.log_dropped)
        );
        out.extend(line(Tone::Warn, text));
    }
    if !facts.denied.is_empty() {
        let tools = facts.denied.join(", ");
        out.extend(line(
            Tone::Warn,
            format!("was denied: {tools} (see --permissions)"),
        ));
    }
    out
}

fn gate(facts: &GateFacts, config: &IterativeLoopConfig) -> Vec<StatusMessage> {
    let which = match config.verify.len() {
        0 | 1 => "gate".to_owned(),
        many => format!("gate {} of {many}", facts.gate + 1),
    };
    let time = words::millis(facts.duration_ms);
    let command = one_line(&facts.command);
    if facts.passed() {
        return line(Tone::Good, format!("{which} green: {command} ({time})"));
    }
    let how = words::gate_end(facts.end);
    let mut out = line(Tone::Bad, format!("{which} red: {command} ({how}, {time})"));
    let tail: Vec<&str> = facts.tail.trim_end().lines().collect();
    let shown = &tail[tail.len().saturating_sub(GATE_LINES)..];
    out.extend(shown.iter().map(|text| StatusMessage {
        role: Role::Quote,
        tone: Tone::Dim,
        text: safe(text),
    }));
    out
}

/// Without what a terminal would obey; the shape of the line stays.
fn safe(text: &str) -> String {
    // Of a line that was drawn over, the last drawing stays.
    let last = text.trim_end_matches('\r').rsplit('\r').next();
    display::text(last.unwrap_or_default(), Colours::Drop)
}

fn finished(
    iteration: u32,
    verdict: &Verdict,
    files: Option<u32>,
    commit: Option<&str>,
    config: &IterativeLoopConfig,
) -> Vec<StatusMessage> {
    let mut notes = Vec::new();
    if let Some(files) = files {
        notes.push(format!("{} changed", plural(files.into(), "file")));
    }
    if let Some(commit) = commit {
        notes.push(format!("commit {}", cut_str(commit, 8)));
    }
    let notes = if notes.is_empty() {
        String::new()
    } else {
        format!(", {}", notes.join(", "))
    };
    let (tone, text) = match verdict {
        Verdict::Promise if config.verify.is_empty() => (
            Tone::Good,
            "claimed, and there is no gate to prove it".to_owned(),
        ),
        Verdict::Promise => (Tone::Good, "claimed and proven".to_owned()),
        Verdict::Gates => (Tone::Good, "all gates green".to_owned()),
        Verdict::Success => (Tone::Good, "done".to_owned()),
        Verdict::Refused => (Tone::Warn, "claim refused, a gate failed".to_owned()),
        Verdict::Blocked(_) => (Tone::Warn, "the agent gave up".to_owned()),
        Verdict::Failed(why) => (
            Tone::Bad,
            format!("failed: {}", one_line(cut_str(why, 200))),
        ),
        Verdict::Worked => (Tone::Normal, "worked".to_owned()),
        Verdict::Stopped => (Tone::Warn, "stopped".to_owned()),
    };
    line(tone, format!("iteration {iteration}: {text}{notes}"))
}

/// Why a loop waits, in one line.
pub fn why_waiting(reason: &WaitReason) -> String {
    one_line(&reason.words())
}

fn told(command: &Command) -> Vec<StatusMessage> {
    let text = match command {
        Command::Pause => "asked to pause after this iteration".to_owned(),
        Command::Say { text } => format!("note for the next iteration: {}", one_line(text)),
        Command::Cancel { .. } => "asked to cancel".to_owned(),
        Command::Unpause | Command::Set { .. } | Command::RetryNow | Command::Ping => {
            return Vec::new();
        }
    };
    line(Tone::Normal, text)
}

fn stop(by: StopBy) -> &'static str {
    match by {
        StopBy::Interrupt => "stopping after this iteration; Ctrl-C again ends the agent now",
        StopBy::InterruptAgain => "ending the agent now; Ctrl-C again kills it",
        StopBy::Terminate => "stopping: SIGTERM",
        StopBy::HangUp => "stopping: the terminal was closed (--detach outlives it)",
        StopBy::Cancel => "cancelling",
        StopBy::Handle => "stopping",
    }
}

/// The first line of all: what runs where.
pub fn opening(state: &LoopState) -> String {
    let config = &state.config;
    let mut parts = vec![format!("loop {}", state.name)];
    if state.iterations > 0 {
        parts.push(format!(
            "{} done before",
            plural(state.iterations.into(), "iteration")
        ));
    }
    parts.push(words::command(config));
    match config.verify.len() {
        0 => {}
        1 => parts.push(format!("gate: {}", one_line(&config.verify[0]))),
        many => parts.push(format!("{many} gates")),
    }
    if let Some(Secs(limit)) = config.max_duration_secs {
        parts.push(format!("at most {}", words::seconds(limit)));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use descartes_kernel::event::{
        ExitStatus, FORMAT, GateEnd, LimitKind, LimitTold, Progress, TreeFacts,
    };
    use descartes_kernel::transition::begin;

    fn record(event: Event) -> Record {
        Record {
            v: FORMAT,
            seq: 0,
            at: "2026-01-02T10:00:00Z".parse().unwrap(),
            event,
        }
    }

    fn state() -> LoopState {
        let config = IterativeLoopConfig {
            command: "claude".into(),
            prompt: "x".into(),
            verify: vec!["cargo test".into()],
            max_iterations: Some(20),
            fallback: vec!["codex".into()],
            ..Default::default()
        };
        begin(&record(Event::LoopCreated {
            loop_id: "id".into(),
            name: "auth".into(),
            config: Box::new(config),
            started_at: "2026-01-02T10:00:00Z".parse().unwrap(),
            iterations: 0,
            summaries: vec![],
            spent: None,
            ended: None,
        }))
        .unwrap()
    }

    fn texts(event: Event) -> Vec<String> {
        let talk = tell(&record(event), &state(), &TimeZone::UTC);
        talk.into_iter().map(|talk| talk.text).collect()
    }

    fn red_gate(tail: &str) -> Event {
        Event::GateFinished {
            iteration: 1,
            facts: Box::new(GateFacts {
                gate: 0,
                command: "cargo test".into(),
                end: GateEnd::Exit(ExitStatus::Code(101)),
                duration_ms: 3200,
                tail: tail.into(),
                tree_before: None,
                tree_after: None,
            }),
        }
    }

    #[test]
    fn a_red_gate_shows_its_last_lines_and_nothing_that_moves_the_cursor() {
        let tail = format!("{}\x1b[2Jlast\n", "line\n".repeat(40));
        let got = texts(red_gate(&tail));
        assert_eq!(got[0], "gate red: cargo test (exit code 101, 3.2s)");
        assert_eq!(got.len(), 1 + GATE_LINES);
        assert_eq!(got.last().unwrap(), "last");
    }

    #[test]
    fn a_fallback_is_named_and_a_limit_is_told_with_its_end() {
        let started = Event::RunStarted {
            run: 2,
            iteration: 2,
            agent: 1,
            guard_pid: None,
            prompt: "h".into(),
            prompt_bytes: 1,
            before: TreeFacts::default(),
            notes: vec![],
        };
        assert_eq!(texts(started), ["iteration 2 of at most 20, by codex"]);
        let waiting = Event::WaitStarted {
            until: "2026-01-02T10:04:32Z".parse().unwrap(),
            reason: WaitReason::Limit(LimitTold {
                kind: LimitKind::Usage,
                until: None,
                words: "limit reached\nresets 3pm".into(),
            }),
        };
        assert_eq!(
            texts(waiting),
            ["waiting 4m32s, until 10:04:32: limit reached resets 3pm"]
        );
    }

    #[test]
    fn an_iteration_tells_what_came_of_it() {
        let event = Event::IterationFinished {
            iteration: 2,
            run: 2,
            verdict: Verdict::Worked,
            progress: Progress::None,
            after: TreeFacts::default(),
            files: Some(1),
            commit: Some("0123456789abcdef".into()),
            spent_ms: 1,
        };
        assert_eq!(
            texts(event),
            ["iteration 2: worked, 1 file changed, commit 01234567"]
        );
        assert_eq!(opening(&state()), "loop auth, claude, gate: cargo test");
    }
}
