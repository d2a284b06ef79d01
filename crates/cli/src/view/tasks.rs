//! What the records of a task loop are to a person.

use descartes_kernel::sched::{AttemptEnd, CommitEnd, Event, MarkEnd, MergeEnd, Next, Seen};
use descartes_kernel::state::LoopState;
use descartes_kernel::tasks::{KeptTree, Landing};
use descartes_plans::graph::TaskStatus;

use super::status_message::{Role, StatusMessage};
use super::width::one_line;
use crate::style::Tone;

/// Lines of a red gate's output that are shown.
const LINES: usize = 12;

fn line(tone: Tone, text: impl Into<String>) -> StatusMessage {
    StatusMessage {
        role: Role::Line,
        tone,
        text: text.into(),
    }
}

/// The lines for what was decided about tasks.
pub fn talk(event: &Event, state: &LoopState) -> Vec<StatusMessage> {
    match event {
        Event::AttemptStarted { task, attempt, .. } => vec![heading(task, *attempt, state)],
        Event::ClaimRefused {
            task,
            found: TaskStatus::Pending,
        } => vec![line(
            Tone::Warn,
            format!("task {task}: the task file cannot be written, so it starts later"),
        )],
        Event::ClaimRefused { task, found } => {
            vec![line(
                Tone::Warn,
                format!("task {task} is now {found}: left alone"),
            )]
        }
        Event::AttemptEnded { task, end, next } => {
            let mut lines = ended(task, end);
            lines.extend(becomes(task, next));
            lines
        }
        Event::MergeEnded { task, end, next } => {
            let mut lines = merged(task, end);
            lines.extend(becomes(task, next));
            lines
        }
        Event::WaveCommitEnded { wave, end } => vec![committed(*wave, end, state)],
        Event::StatusSeen {
            task,
            status,
            seen: Seen::Mark,
        } => vec![line(
            Tone::Warn,
            format!("task {task}: marked {status} by others: not run and not proven"),
        )],
        Event::Replanned { removed, .. } => removed
            .iter()
            .map(|task| {
                let words = format!("task {task}: removed from the file by others, not proven");
                line(Tone::Warn, words)
            })
            .collect(),
        Event::MarkChecked {
            task,
            end,
            set_back,
        } => checked(task, end, *set_back),
        Event::Retried { tasks } => tasks
            .iter()
            .map(|task| line(Tone::Strong, format!("task {task}: trying again")))
            .collect(),
        _ => Vec::new(),
    }
}

fn checked(task: &str, end: &MarkEnd, set_back: bool) -> Vec<StatusMessage> {
    match end {
        MarkEnd::Green => vec![line(
            Tone::Warn,
            format!("task {task}: marked done by others; its gates pass"),
        )],
        MarkEnd::NoGate => vec![line(
            Tone::Warn,
            format!("task {task}: marked done by others; it has no gate"),
        )],
        MarkEnd::Red { tail } => {
            let what = match set_back {
                true => "set back to pending",
                false => "a second time, so the mark stays",
            };
            quoted(
                format!("task {task}: marked done by others, but a gate fails: {what}"),
                tail,
            )
        }
        MarkEnd::Interrupted => Vec::new(),
    }
}

fn heading(task: &str, attempt: u32, state: &LoopState) -> StatusMessage {
    let tasks = state.tasks.as_deref();
    let entry = tasks.and_then(|tasks| tasks.tasks.get(task));
    let title = entry.map_or("", |entry| &entry.title);
    let wave = match (entry, tasks) {
        (Some(entry), Some(tasks)) => format!("wave {} of {}, ", entry.wave, tasks.waves),
        _ => String::new(),
    };
    let again = match attempt {
        1 => String::new(),
        attempt => format!(", attempt {attempt}"),
    };
    StatusMessage {
        role: Role::Heading,
        tone: Tone::Strong,
        text: format!("{wave}task {task}: {}{again}", one_line(title)),
    }
}

fn ended(task: &str, end: &AttemptEnd) -> Vec<StatusMessage> {
    match end {
        AttemptEnd::Green { .. } => vec![line(Tone::Good, format!("task {task}: green"))],
        AttemptEnd::Red { tail } => quoted(format!("task {task}: red"), tail),
        AttemptEnd::Failed { message } => {
            vec![line(
                Tone::Bad,
                format!("task {task}: {}", one_line(message)),
            )]
        }
        AttemptEnd::NoPromise => vec![line(
            Tone::Dim,
            format!("task {task}: worked, but did not print the promise"),
        )],
        AttemptEnd::NothingDone => vec![line(
            Tone::Bad,
            format!("task {task}: the agent changed nothing and did not claim to be done"),
        )],
        AttemptEnd::Uncarried { tail } => {
            quoted(format!("task {task}: cannot land as it is"), tail)
        }
        AttemptEnd::OutOfScope { tail } => quoted(format!("task {task}: out of scope"), tail),
        AttemptEnd::AtLimit { message } => {
            let words = one_line(message);
            vec![line(
                Tone::Bad,
                format!("task {task}: at its limit: {words}"),
            )]
        }
        AttemptEnd::BlockedByAgent { message } => {
            let words = one_line(message);
            vec![line(
                Tone::Bad,
                format!("task {task}: its agent gave up: {words}"),
            )]
        }
        AttemptEnd::Limited { until } => {
            vec![line(
                Tone::Warn,
                format!("task {task}: provider limit, until {until}"),
            )]
        }
        AttemptEnd::Interrupted => vec![line(Tone::Warn, format!("task {task}: interrupted"))],
    }
}

fn merged(task: &str, end: &MergeEnd) -> Vec<StatusMessage> {
    match end {
        MergeEnd::Merged => Vec::new(),
        MergeEnd::Conflict { tail } => quoted(format!("task {task}: conflict"), tail),
        MergeEnd::Red { tail } => quoted(format!("task {task}: red after the merge"), tail),
        MergeEnd::Interrupted => vec![line(
            Tone::Warn,
            format!("task {task}: its merge was interrupted"),
        )],
        MergeEnd::Failed { message } => {
            let words = one_line(message);
            vec![line(Tone::Bad, format!("task {task}: not merged: {words}"))]
        }
    }
}

fn quoted(head: String, tail: &str) -> Vec<StatusMessage> {
    let all: Vec<&str> = tail.lines().collect();
    let last = &all[all.len().saturating_sub(LINES)..];
    let quote = |text: &&str| StatusMessage {
        role: Role::Quote,
        tone: Tone::Dim,
        text: one_line(text),
    };
    std::iter::once(line(Tone::Bad, head))
        .chain(last.iter().map(quote))
        .collect()
}

fn becomes(task: &str, next: &Next) -> Option<StatusMessage> {
    match next {
        Next::Done => Some(line(Tone::Good, format!("task {task}: done"))),
        Next::Block { reason } => Some(line(
            Tone::Bad,
            format!("task {task}: blocked: {}", reason.words()),
        )),
        Next::Pass { reason } => Some(line(
            Tone::Warn,
            format!("task {task}: skipped: {}", reason.words()),
        )),
        Next::Yield { status } => Some(line(
            Tone::Warn,
            format!("task {task}: {status}, as you marked it"),
        )),
        Next::Land | Next::Retry { .. } | Next::Again => None,
    }
}

fn committed(wave: u32, end: &CommitEnd, state: &LoopState) -> StatusMessage {
    let count = state.tasks.as_ref().map(|tasks| tasks.wave_count(wave));
    let what = match count {
        Some((done, total)) if done < total => format!("wave {wave}, {done} of {total} tasks"),
        _ => format!("wave {wave} complete"),
    };
    match end {
        CommitEnd::Committed { commit: Some(hash) } => {
            let short = hash.get(..12).unwrap_or(hash);
            line(Tone::Good, format!("{what}: commit {short}"))
        }
        CommitEnd::Committed { commit: None } => line(Tone::Good, what),
        CommitEnd::Failed { message } => {
            let words = one_line(message);
            line(
                Tone::Bad,
                format!("wave {wave} could not be committed: {words}"),
            )
        }
    }
}

/// The lines for where finished work is.
pub fn landed(landing: &Landing) -> Vec<StatusMessage> {
    match landing {
        Landing::Landed { .. } => Vec::new(),
        Landing::Ready { branch, why, .. } => vec![line(
            Tone::Warn,
            format!(
                "not landed, waiting on {branch}: {}; land it with: {}",
                one_line(why),
                landing.command().unwrap_or_default()
            ),
        )],
    }
}

/// The lines for worktrees that were not removed.
pub fn kept(trees: &[KeptTree]) -> Vec<StatusMessage> {
    let tell = |tree: &KeptTree| {
        let words = format!(
            "kept the worktree {}: it contains work that exists nowhere else: {}",
            tree.path.display(),
            tree.holds.join("; ")
        );
        line(Tone::Warn, one_line(&words))
    };
    trees.iter().map(tell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use descartes_kernel::sched::{BlockReason, Evidence, EvidenceKind};

    #[test]
    fn a_blocked_task_is_told_with_its_gate_and_its_reason() {
        let event = Event::AttemptEnded {
            task: "3".into(),
            end: AttemptEnd::Red {
                tail: "`make`: exit code 2\nno rule".into(),
            },
            next: Next::Block {
                reason: BlockReason::Attempts {
                    last: Evidence {
                        kind: EvidenceKind::RedGate,
                        text: "no rule".into(),
                    },
                    made: 3,
                    limit: 3,
                },
            },
        };
        let Event::AttemptEnded { end, next, .. } = &event else {
            return;
        };
        let lines: Vec<String> = ended("3", end)
            .into_iter()
            .chain(becomes("3", next))
            .map(|talk| talk.text)
            .collect();
        assert_eq!(
            lines,
            [
                "task 3: red",
                "`make`: exit code 2",
                "no rule",
                "task 3: blocked: 3 of 3 attempts used: verification failed: no rule"
            ]
        );
    }
}
