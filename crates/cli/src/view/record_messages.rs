//! What a record of the journal is to a person: a line or two between the agent's output.

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::control::Command;
use descartes_kernel::event::{
    EndedBy, Event, GateEnd, GateFacts, Progress, Record, RunFacts, StopBy, Verdict, WaitEnd,
};
use descartes_kernel::progress::FILES_CHANGED;
use descartes_kernel::state::LoopState;
use descartes_kernel::step::way_past_denial;
use descartes_text::units::{Secs, cut_str, plural, show_size};
use descartes_views::view::{Life, lost, unlanded};
use jiff::tz::TimeZone;

use super::status_message::{StatusMessage, bad, good, normal, warn};
use super::width::one_line;
use super::words;
use crate::style::Tone;

/// The lines for a record, given the state after it.
pub fn tell(record: &Record, state: &LoopState, zone: &TimeZone) -> Vec<StatusMessage> {
    vec![match &record.event {
        Event::RunStarted {
            iteration, agent, ..
        } => heading(state, *iteration, *agent),
        Event::AgentEnded { facts, .. } => return agent_ended(facts, &state.config),
        Event::GateFinished { facts, .. } => return gate(facts, &state.config),
        Event::IterationFinished { .. } => finished(&record.event, &state.config),
        Event::IterationInterrupted { iteration, .. } => warn(format!(
            "iteration {iteration} was lost with its host: it counts against the limit, and its number is not used again"
        )),
        Event::RunDiscarded { limit, .. } => {
            let words = one_line(&limit.words);
            warn(format!("not counted, the provider said: {words}"))
        }
        Event::WaitStarted { until, reason } => {
            let left = words::left(record.at, *until);
            let at = words::clock(*until, record.at, zone);
            let why = one_line(&reason.describe());
            warn(format!("waiting {left}, until {at}: {why}"))
        }
        Event::WaitEnded { by: WaitEnd::Retry } => normal("trying again now"),
        Event::Paused => warn("paused, continue with: descartes loop unpause"),
        Event::Unpaused => normal("continuing"),
        Event::CommandAccepted { command, .. } => return told(command).into_iter().collect(),
        Event::ConfigChanged { change, by, .. } => {
            normal(format!("changed by {by}: {}", change.names().join(", ")))
        }
        Event::StopRequested { by } => warn(stop(*by)),
        Event::Nudged { iterations } => warn(format!(
            "no progress in {}: the agent is told, and the loop stops at twice as many",
            plural(u64::from(*iterations), "iteration")
        )),
        Event::Tasks { event } => return super::tasks::talk(event, state),
        Event::WorkLanded { .. } => {
            let work = state.tasks.as_deref().and_then(unlanded);
            let told = work.map(|work| warn(one_line(&format!("not landed, {work}"))));
            return told.into_iter().collect();
        }
        Event::TreesKept { trees } => return trees.iter().map(super::tasks::kept).collect(),
        Event::Branched { name } => normal(format!("on branch {name}")),
        Event::SandboxStarted { sandbox } => {
            let mut text = format!("sandbox: {}", sandbox.describe());
            if !sandbox.env_dropped.is_empty() {
                let names = sandbox.env_dropped.join(", ");
                text.push_str(&format!("; variables not passed on: {names}"));
            }
            normal(text)
        }
        Event::SandboxDenied { denied, task, .. } => {
            let of = task.as_ref().map(|task| format!("task {task}: "));
            let of = of.unwrap_or_default();
            let lines = denied.iter().map(|denied| {
                let line = one_line(&denied.describe());
                warn(format!("{of}{line}"))
            });
            return lines.collect();
        }
        Event::PlantedInGit { planted, task, .. } => {
            let of = task.as_ref().map(|task| format!("task {task}: "));
            let of = of.unwrap_or_default();
            let lines = planted.iter().map(|planted| {
                let line = one_line(&planted.describe());
                warn(format!("{of}{line}"))
            });
            return lines.collect();
        }
        Event::Moved {
            working_directory: to,
            ..
        } => warn(format!("works in {} from now on", to.display())),
        Event::Tagged { name } => good(format!("tagged {name}")),
        Event::Busy { what } if !what.is_empty() => normal(one_line(what)),
        Event::GateFileChanged { file, task } => {
            let of = task.as_ref().map(|task| format!(" (task {task})"));
            let (file, of) = (one_line(file), of.unwrap_or_default());
            warn(format!(
                "warning: gate file {file} has changed since the loop began{of}"
            ))
        }
        Event::Warning { message, .. }
        | Event::EngineHeard {
            message,
            answers: false,
        } => warn(format!("warning: {}", one_line(message))),
        Event::EngineHeard { message, .. } => normal(one_line(message)),
        _ => return Vec::new(),
    }]
}

fn heading(state: &LoopState, iteration: u32, agent: u32) -> StatusMessage {
    let mut text = words::iteration(iteration, state.config.max_iterations);
    if let Some(name) = words::fallback(&state.config, agent) {
        text.push_str(&format!(", by {name}"));
    }
    StatusMessage::heading(text)
}

fn agent_ended(facts: &RunFacts, config: &IterativeLoopConfig) -> Vec<StatusMessage> {
    let tone = match facts.failure() {
        None => Tone::Dim,
        Some(_) => Tone::Warn,
    };
    let how = [vec![how_ended(facts)], words::used(facts)].concat();
    let mut out = vec![StatusMessage::new(tone, how.join(", "))];
    if let Some(claim) = &facts.claim {
        out.push(normal(format!("claimed: {}", one_line(claim))));
    }
    if let Some(words) = &facts.abort {
        let words = one_line(words);
        out.push(warn(format!("the agent says it cannot be done: {words}")));
    }
    if let Some(near) = &facts.near_miss {
        let text = one_line(&near.describe());
        let rule = match near.wanted {
            Some(_) => "",
            None => " (a promise only counts alone on a line)",
        };
        out.push(warn(format!("{text}{rule}")));
    }
    if let Some(error) = &facts.error {
        let words = one_line(cut_str(error, 400));
        out.push(bad(format!("reported an error: {words}")));
    }
    if facts.leftovers > 0 {
        let left = plural(facts.leftovers, "process");
        let text = format!("ended {left} that it had left behind");
        out.push(StatusMessage::new(Tone::Dim, text));
    }
    if !facts.survivors.is_empty() {
        out.push(bad(format!("could not end: {:?}", facts.survivors)));
    }
    if facts.log_dropped > 0 {
        let size = show_size(facts.log_dropped);
        out.push(warn(format!("{size} of its output is not in the log")));
    }
    if !facts.denied.is_empty() {
        let tools = facts.denied.join(", ");
        let way = way_past_denial(config);
        out.push(warn(format!("was denied: {tools}; {way}")));
    }
    out
}

fn how_ended(facts: &RunFacts) -> String {
    let time = words::millis(facts.duration_ms);
    let why = match facts.ended_by {
        EndedBy::Exit => facts
            .exit
            .map_or_else(|| "no exit code".to_owned(), words::exit),
        EndedBy::Result => "it had delivered its result".to_owned(),
        EndedBy::Promise => "it had claimed to be done and was silent".to_owned(),
        EndedBy::Timeout => "it reached its timeout".to_owned(),
        EndedBy::Idle => "it hung, no output and no activity".to_owned(),
        EndedBy::GaveUp => "it reported an error that it would have waited on".to_owned(),
        EndedBy::Budget(budget) => format!("{} is used up", budget.flag()),
        EndedBy::Cancel => "stopped".to_owned(),
        EndedBy::GuardLost => {
            return format!("agent lost after {time}: its guard process was killed");
        }
        EndedBy::HostLost => return "agent lost: descartes itself was killed".to_owned(),
    };
    format!("agent ended after {time}: {why}")
}

fn gate(facts: &GateFacts, config: &IterativeLoopConfig) -> Vec<StatusMessage> {
    let which = words::gate_number(facts.gate, config.verify.len());
    let time = words::millis(facts.duration_ms);
    let command = one_line(&facts.command);
    if facts.passed() {
        return vec![good(format!("{which} green: {command} ({time})"))];
    }
    if facts.end == GateEnd::Cancelled {
        return vec![normal(format!("{which} cancelled: {command} ({time})"))];
    }
    let how = words::gate_end(facts.end);
    let head = format!("{which} red: {command} ({how}, {time})");
    StatusMessage::quoting(head, &facts.tail)
}

fn finished(event: &Event, config: &IterativeLoopConfig) -> StatusMessage {
    let Event::IterationFinished {
        iteration,
        verdict,
        progress,
        files,
        commit,
        ..
    } = event
    else {
        return normal("");
    };
    let (tone, text) = match verdict {
        Verdict::Promise if config.verify.is_empty() => {
            (Tone::Good, "claimed, and there is no gate to prove it")
        }
        Verdict::Promise => (Tone::Good, "claimed and proven"),
        Verdict::Gates => (Tone::Good, "all gates green"),
        Verdict::Success => (Tone::Good, "done"),
        Verdict::Refused => (Tone::Warn, "claim refused, a gate failed"),
        Verdict::Blocked(_) => (Tone::Warn, "the agent gave up"),
        Verdict::Failed(_) => (Tone::Bad, "failed"),
        Verdict::Worked => (Tone::Normal, "worked"),
        Verdict::Stopped => (Tone::Warn, "stopped"),
    };
    let mut text = format!("iteration {iteration}: {text}");
    let is_elsewhere =
        matches!(progress, Progress::Moved(what) if what.iter().any(|what| what == FILES_CHANGED));
    match *files {
        Some(0) if is_elsewhere => text.push_str(", files changed only in repositories inside"),
        Some(files) => text.push_str(&format!(", {} changed", plural(files.into(), "file"))),
        None => {}
    }
    let is_wanted = config.completion_promise.is_some() && config.proof.is_none();
    if *verdict == Verdict::Worked && is_wanted {
        text.push_str(", no promise");
    }
    if let Some(commit) = commit {
        text.push_str(&format!(", commit {}", cut_str(commit, 8)));
    }
    // The last: it may be a sentence with a hint.
    if let Verdict::Failed(why) = verdict {
        text.push_str(&format!(": {}", one_line(cut_str(why, 200))));
    }
    StatusMessage::new(tone, text)
}

/// What a person asked for; what takes effect at once is told by its effect.
fn told(command: &Command) -> Option<StatusMessage> {
    match command {
        Command::Pause => Some(normal("asked to pause after this iteration")),
        Command::Say { text } => {
            let text = one_line(text);
            Some(normal(format!("note for the next iteration: {text}")))
        }
        Command::Cancel { .. } => Some(normal("asked to cancel")),
        Command::Unpause | Command::Set { .. } | Command::RetryNow | Command::Ping => None,
    }
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
    match lost(state, Life::Alive) {
        Some(lost) => parts.push(lost.before()),
        None if state.iterations > 0 => parts.push(format!(
            "{} done before",
            plural(state.iterations.into(), "iteration")
        )),
        None => {}
    }
    parts.push(words::command(config));
    match config.verify.len() {
        0 => {}
        1 => parts.push(format!("gate: {}", one_line(&config.verify[0]))),
        many => parts.push(format!("{many} gates")),
    }
    parts.push(format!("sandbox {}", config.sandbox.short()));
    if let Some(Secs(limit)) = config.iteration_timeout_secs {
        parts.push(format!("timeout {}", words::seconds(limit)));
    }
    if let Some(Secs(limit)) = config.max_duration_secs {
        parts.push(format!("at most {}", words::seconds(limit)));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::status_message::QUOTED;
    use descartes_kernel::event::{
        ExitStatus, FORMAT, GateEnd, LimitKind, Progress, ReportedLimit, TreeFacts, WaitReason,
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
        assert_eq!(got.len(), 1 + QUOTED);
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
            reason: WaitReason::Limit(ReportedLimit {
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
        assert_eq!(
            opening(&state()),
            "loop auth, claude, gate: cargo test, sandbox off"
        );
        // A bare number is read back with its unit.
        let mut limited = state();
        limited.config.iteration_timeout_secs = Some(Secs::new(5));
        limited.config.max_duration_secs = Some(Secs::new(90));
        limited.iterations = 3;
        limited.lost = 1;
        let words = opening(&limited);
        assert!(
            words.contains("loop auth, 2 iterations done before, 1 lost, "),
            "{words}"
        );
        assert!(words.ends_with(", timeout 5s, at most 1m30s"), "{words}");
    }
}
