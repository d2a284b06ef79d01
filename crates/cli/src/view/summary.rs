//! The last words of a loop: how it ended, on what evidence, what it took, what to type next.

use descartes_core::host::HostEnd;
use descartes_kernel::config::{ConfigChange, Permissions};
use descartes_kernel::event::StopBy;
use descartes_kernel::outcome::IterativeExitReason as Reason;
use descartes_kernel::state::{Change, LoopState, Note};
use descartes_kernel::step::flags_past_limits;
use descartes_kernel::tasks::{Landing, TasksState};
use descartes_text::units::{Secs, plural, show_duration};
use descartes_views::view::{
    GateRow, Life, blocked_tasks, lost, marked_tasks, promise_missing, tools_denied, unjudged,
    unproven_tasks, untouched,
};

use super::width::one_line;
use super::words;
use crate::style::{Paint, Tone};

/// Shows the loops of tasks.
const CHILDREN: &str = "descartes loop list --children";

/// How commands name the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// It is the one of this directory: no name is needed.
    Here,
    /// By its name or id.
    As(String),
}

impl Named {
    /// A command for it: `descartes loop resume NAME --flag`.
    pub fn command(&self, verb: &str, rest: &str) -> String {
        let rest = if rest.is_empty() {
            String::new()
        } else {
            format!(" {rest}")
        };
        match self {
            Self::Here => format!("descartes loop {verb}{rest}"),
            // A name may look like a flag.
            Self::As(name) if name.starts_with('-') => {
                format!(
                    "descartes loop {verb}{rest} -- {}",
                    shell_words::quote(name)
                )
            }
            Self::As(name) => format!("descartes loop {verb} {}{rest}", shell_words::quote(name)),
        }
    }
}

/// The lines of the summary.
pub fn lines(end: &HostEnd, state: &LoopState, next: &[String], paint: Paint) -> Vec<String> {
    let (tone, head) = headline(end, state);
    let mut rows: Vec<(&str, String)> = gates(state);
    let limit = match state.config.max_iterations {
        Some(limit) => format!(" of at most {}", limit.max(end.iterations)),
        None => String::new(),
    };
    rows.extend(state.changed_gate_files.iter().map(|changed| {
        let words = format!("{}: changed since the loop began", changed.describe());
        ("gate file", one_line(&words))
    }));
    let planted = state.planted.iter();
    rows.extend(planted.map(|planted| ("git", one_line(&planted.describe()))));
    rows.extend(tasks(state));
    rows.extend(untouched(state).map(|words| ("note", words.to_owned())));
    rows.extend(unjudged(state).map(|words| ("not judged", words)));
    if !end.reason.is_success() {
        let promise = promise_missing(state);
        rows.extend(promise.map(|words| ("promise", one_line(&words))));
    }
    // The headline says it where the loop ended for it.
    if !matches!(end.reason, Reason::AgentFailed { .. }) {
        let denied = tools_denied(state);
        rows.extend(denied.map(|words| ("denied", one_line(&words))));
    }
    let gone =
        lost(state, Life::Alive).map_or_else(String::new, |of| format!(", {} lost", of.lost));
    rows.push(("iterations", format!("{}{limit}{gone}", end.iterations)));
    rows.push(("time", words::millis(state.spent.ms)));
    let cost = words::spent(&state.spent);
    if !cost.is_empty() {
        rows.push(("cost", cost.join(", ")));
    }
    rows.extend(changes(state));
    rows.extend(undelivered(state));
    rows.extend(end.trouble.clone().map(|words| ("warning", words)));
    rows.extend(
        next.iter()
            .enumerate()
            .map(|(at, text)| (if at == 0 { "next" } else { "" }, text.clone())),
    );
    let mut out = vec![paint.text(tone, &head)];
    out.extend(rows.into_iter().map(|(label, text)| {
        format!("  {}{text}", paint.text(Tone::Dim, &format!("{label:<12}")))
    }));
    out
}

fn headline(end: &HostEnd, state: &LoopState) -> (Tone, String) {
    let gates = state.config.verify.len();
    let claim = end.completion.as_deref().map(one_line).unwrap_or_default();
    match &end.reason {
        reason if reason.is_success() && state.tasks.is_some() => {
            let marked = state.tasks.as_ref().map_or(0, |tasks| tasks.marked.len());
            let marked = match marked {
                0 => String::new(),
                marked => {
                    format!(", {marked} of them marked by others and accepted by --trust-marks")
                }
            };
            (Tone::Good, format!("done: every task{marked}"))
        }
        Reason::CompletionPromiseDetected if gates > 0 => {
            let changed = match state.changed_gate_files.is_empty() {
                true => "",
                false => ", with changed gate files",
            };
            let gates = plural(gates as u64, "gate");
            (
                Tone::Good,
                format!("done: {claim}, proven by {gates}{changed}"),
            )
        }
        Reason::CompletionPromiseDetected => {
            let alone = "on the agent's word alone (--verify would prove it)";
            (Tone::Good, format!("done: {claim}, {alone}"))
        }
        Reason::GatesPassed => (Tone::Good, "done: all gates green".to_owned()),
        Reason::ProcessSuccess => (Tone::Good, "done: the agent exited with code 0".to_owned()),
        Reason::Running if end.stop == Some(StopBy::HangUp) => (
            Tone::Warn,
            "interrupted: the terminal was closed".to_owned(),
        ),
        Reason::Running => (Tone::Warn, "interrupted".to_owned()),
        Reason::TasksBlocked { tasks, unlanded } if state.has_marks() => {
            let unlanded = unlanded.as_ref().map_or_else(String::new, |work| {
                format!("; finished work has not landed: {}", work.why)
            });
            let tasks = one_line(&format!("{}{unlanded}", tasks.join(", ")));
            (
                Tone::Bad,
                format!("not done: tasks blocked or not proven: {tasks}"),
            )
        }
        reason => (
            Tone::Bad,
            format!("not done: {}", one_line(&reason.sentence())),
        ),
    }
}

/// Tasks that are blocked, those that others marked, and those that are done without any proof.
fn tasks(state: &LoopState) -> Vec<(&'static str, String)> {
    let Some(tasks) = &state.tasks else {
        return Vec::new();
    };
    let blocked = blocked_tasks(tasks).into_iter().map(|task| {
        let words = format!("{}: {}", task.name(), task.note);
        ("blocked", one_line(&words))
    });
    let marked = marked_tasks(tasks).into_iter().map(|task| {
        let words = format!("{}: {}: {}", task.name(), task.status.text, task.note);
        ("marked", one_line(&words))
    });
    let unproven = unproven_tasks(tasks).into_iter().map(|task| {
        let words = format!("{}: {}", task.name(), task.note);
        ("unproven", one_line(&words))
    });
    blocked.chain(marked).chain(unproven).collect()
}

/// The gates as they were last run.
fn gates(state: &LoopState) -> Vec<(&'static str, String)> {
    let judged = state.summaries.iter().rfind(|row| !row.gates.is_empty());
    let gates = judged.into_iter().flat_map(|row| &row.gates);
    let row = |gate: GateRow| {
        let (verdict, time) = (gate.verdict().text, words::millis(gate.duration_ms));
        (
            "gate",
            format!("{}: {verdict} ({time})", one_line(&gate.command)),
        )
    };
    gates.map(|gate| row(gate.into())).collect()
}

/// What was changed while the loop ran, by whom and when: a result is worth what its gates were.
fn changes(state: &LoopState) -> Vec<(&'static str, String)> {
    let row = |change: Change| {
        let at = change.at.strftime("%Y-%m-%d %H:%M:%SZ");
        ("changed", one_line(&format!("{}, {at}", change.describe())))
    };
    state.told_changes().into_iter().map(row).collect()
}

/// Notes that came too late for any prompt.
fn undelivered(state: &LoopState) -> Vec<(&'static str, String)> {
    let is_done = state.exit_reason().is_success();
    let when = match is_done {
        true => "the loop was done before the next prompt",
        false => "the next resume gives it to the agent",
    };
    let row = |note: &Note| {
        (
            "not told",
            one_line(&format!("your note \"{}\": {when}", note.text)),
        )
    };
    state.undelivered_notes().map(row).collect()
}

/// What to type next.
pub fn next(end: &HostEnd, state: &LoopState, named: &Named) -> Vec<String> {
    after(&end.reason, end.iterations, state, named)
}

/// What to type after an end for this reason.
pub fn after(reason: &Reason, iterations: u32, state: &LoopState, named: &Named) -> Vec<String> {
    let open = state.unjudged().map_or(0, |open| open.run.iteration);
    let number = iterations.max(open).max(1).to_string();
    let of_tasks = state.config.tasks.is_some();
    let logs = match of_tasks {
        // Agents speak in the loops of the tasks.
        true => Some(CHILDREN.to_owned()),
        // Where no agent was ever started, nothing was said.
        false => (state.runs > 0).then(|| named.command("logs", &number)),
    };
    let resume = |flags: &str| named.command("resume", &with_permissions(state, flags));
    let mut next = match reason {
        reason if reason.is_success() => {
            let mut next = vec![named.command("history", "")];
            if of_tasks {
                next.push(CHILDREN.to_owned());
            } else if is_in_git(state) {
                next.push(named.command("diff", &number));
            }
            return next;
        }
        Reason::MaxIterationsReached | Reason::BudgetExhausted { .. } => {
            let flags = flags_past_limits(state, &ConfigChange::default(), reason);
            vec![resume(&flags)]
        }
        Reason::TasksBlocked {
            unlanded,
            tasks: tasks_blocked,
        } => {
            let mut next = Vec::new();
            let tasks = state.tasks.as_deref();
            if unlanded.is_some() {
                let landing = tasks.and_then(|tasks| tasks.landing.as_ref());
                let command = landing.and_then(Landing::command);
                next.push(command.unwrap_or_else(|| "descartes work land".to_owned()));
            }
            if let Some(tasks) = tasks.filter(|tasks| !tasks.blocked.is_empty()) {
                next.push(resume(&retry_flags(tasks)));
            }
            let trusted = state.config.tasks.as_ref().is_some_and(|t| t.trust_marks);
            if !trusted && tasks.is_some_and(|tasks| !tasks.marked.is_empty()) {
                next.push(named.command("resume", "--trust-marks"));
            }
            if next.is_empty() {
                // Blocked in their file, by an earlier loop or by a person: this one has not tried them.
                let of_file = if tasks_blocked.is_empty() {
                    ""
                } else {
                    "--retry-blocked"
                };
                next.push(resume(of_file));
            }
            next
        }
        Reason::Stalled { .. } | Reason::AgentBlocked { .. } => vec![
            resume(""),
            "(a clearer task goes behind --prompt)".to_owned(),
        ],
        _ => vec![resume("")],
    };
    next.extend(match reason {
        Reason::BudgetExhausted { .. } => Some(named.command("history", "")),
        _ => logs,
    });
    next
}

/// The same flags, and what allows tools that were denied in the last iteration: they would be denied again.
fn with_permissions(state: &LoopState, flags: &str) -> String {
    let is_denied = (state.summaries.back()).is_some_and(|last| !last.denied.is_empty());
    let can_allow = is_denied && state.config.permissions != Permissions::All;
    let allow = if can_allow { "--permissions all" } else { "" };
    format!("{flags} {allow}").trim().to_owned()
}

/// Blocked tasks are tried again; with more time, where that was too short.
fn retry_flags(tasks: &TasksState) -> String {
    let timed_out = tasks.blocked.iter().filter_map(|task| task.timed_out_after);
    match timed_out.max() {
        Some(Secs(longest)) => {
            format!("--retry-blocked --timeout {}", show_duration(longest * 2))
        }
        None => "--retry-blocked".to_owned(),
    }
}

/// Only git keeps what an iteration changed.
fn is_in_git(state: &LoopState) -> bool {
    let tree = state
        .tree_after
        .as_ref()
        .and_then(|after| after.tree.as_deref());
    tree.is_some_and(|tree| tree.starts_with("git:"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use descartes_kernel::config::IterativeLoopConfig;
    use descartes_kernel::event::{Event, FORMAT, Record, TreeFacts};
    use descartes_kernel::state::{GateSummary, IterationSummary};
    use descartes_kernel::tasks::{TaskFile, TasksConfig};
    use descartes_kernel::transition::begin;

    fn state(verify: &[&str]) -> LoopState {
        let at = "2026-01-02T10:00:00Z".parse().unwrap();
        let config = IterativeLoopConfig {
            command: "a".into(),
            max_iterations: Some(20),
            verify: verify.iter().map(|gate| (*gate).to_owned()).collect(),
            ..Default::default()
        };
        let event = Event::LoopCreated {
            loop_id: "x".into(),
            name: "auth".into(),
            config: Box::new(config),
            started_at: at,
            iterations: 3,
            summaries: vec![],
            spent: None,
            ended: None,
        };
        let mut state = begin(&Record {
            v: FORMAT,
            seq: 0,
            at,
            event,
        })
        .unwrap();
        state.spent.ms = 252_000;
        state.tree_after = Some(TreeFacts {
            tree: Some("git:1".into()),
            ..Default::default()
        });
        state
    }

    fn end(reason: Reason) -> HostEnd {
        HostEnd {
            reason,
            stop: None,
            iterations: 3,
            completion: Some("COMPLETE".into()),
            trouble: None,
        }
    }

    #[test]
    fn a_proven_end_shows_its_evidence() {
        let mut state = state(&["cargo test"]);
        state.summaries.push_back(IterationSummary {
            gates: vec![GateSummary {
                command: "cargo test".into(),
                exit_code: Some(0),
                duration_ms: 3200,
                cancelled: false,
            }],
            ..Default::default()
        });
        let ended = end(Reason::CompletionPromiseDetected);
        let got = lines(
            &ended,
            &state,
            &next(&ended, &state, &Named::Here),
            Paint::Plain,
        );
        insta::assert_snapshot!(got.join("\n"), @r"
        done: COMPLETE, proven by 1 gate
          gate        cargo test: green (3.2s)
          iterations  3 of at most 20
          time        4m12s
          next        descartes loop history
                      descartes loop diff 3
        ");
    }

    #[test]
    fn a_command_that_would_be_refused_is_not_suggested() {
        let done = end(Reason::CompletionPromiseDetected);
        let mut outside_git = state(&[]);
        outside_git.tree_after = None;
        let got = next(&done, &outside_git, &Named::Here);
        assert_eq!(got, ["descartes loop history"]);
        let mut of_tasks = state(&[]);
        let source = TaskFile::Roadmap {
            file: "R.md".into(),
            defaults: Default::default(),
        };
        of_tasks.config.tasks = Some(Box::new(TasksConfig::new(source)));
        let got = next(&done, &of_tasks, &Named::As("all".into()));
        assert_eq!(got, ["descartes loop history all", CHILDREN]);
        let got = next(&end(Reason::UserCancelled), &of_tasks, &Named::Here);
        assert_eq!(got, ["descartes loop resume", CHILDREN]);
    }

    #[test]
    fn every_other_end_says_why_and_what_to_type() {
        let state = state(&[]);
        let named = Named::As("auth".into());
        for (reason, head, next) in [
            (
                Reason::CompletionPromiseDetected,
                "on the agent's word alone",
                "loop history auth",
            ),
            (
                Reason::MaxIterationsReached,
                "not done: iteration limit",
                "loop resume auth --max-iterations 40",
            ),
            (
                Reason::UserCancelled,
                "not done: cancelled",
                "loop resume auth",
            ),
            (Reason::Running, "interrupted", "loop resume auth"),
            (
                Reason::AgentBlocked {
                    message: "no key".into(),
                },
                "no key",
                "--prompt",
            ),
        ] {
            let ended = end(reason);
            let typed = super::next(&ended, &state, &named);
            // Whoever types it as it stands means it.
            assert!(!typed.iter().any(|line| line.contains('…')), "{typed:?}");
            let got = lines(&ended, &state, &typed, Paint::Plain);
            assert!(got[0].contains(head), "{got:?}");
            assert!(got.iter().any(|line| line.contains(next)), "{got:?}");
        }
    }
}
