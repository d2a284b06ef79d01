//! What the records of a task loop are to a person.

use descartes_kernel::sched::{CommitEnd, Event, MarkEnd, MergeEnd, Next, Seen, TrainEnd};
use descartes_kernel::state::LoopState;
use descartes_kernel::tasks::KeptTree;
use descartes_plans::graph::TaskStatus;
use descartes_text::units::plural;
use descartes_views::view::{Evidence, TaskEnd, attempt_end, merge_end};

use super::status_message::{StatusMessage, bad, good, warn};
use super::width::one_line;
use crate::style::Tone;

/// The lines for what was decided about tasks.
pub fn talk(event: &Event, state: &LoopState) -> Vec<StatusMessage> {
    vec![match event {
        Event::AttemptStarted { task, attempt, .. } => heading(task, *attempt, state),
        Event::ClaimRefused {
            task,
            found: TaskStatus::Pending,
        } => warn(format!(
            "task {task}: the task file cannot be written, so it starts later"
        )),
        Event::ClaimRefused { task, found } => {
            warn(format!("task {task} is now {found}: left alone"))
        }
        Event::AttemptEnded { task, end, next } => {
            let mut lines = ended(task, &attempt_end(end));
            lines.extend(becomes(task, next));
            return lines;
        }
        Event::MergeEnded {
            task,
            end: MergeEnd::Red { tail },
            next: Next::Land,
        } => {
            let head = format!("task {task}: red after the merge, verifying again");
            return StatusMessage::quoting(head, tail);
        }
        Event::MergeEnded { task, end, next } => {
            let mut lines = match end {
                MergeEnd::Merged => Vec::new(),
                end => ended(task, &merge_end(end)),
            };
            lines.extend(becomes(task, next));
            return lines;
        }
        Event::TrainStarted { tasks, .. } => {
            let (count, list) = (tasks.len(), tasks.join(", "));
            StatusMessage::new(Tone::Dim, format!("merging {count} tasks together: {list}"))
        }
        Event::FlakyGate { task } => warn(format!(
            "task {task}: a gate is flaky: it failed and then passed on the same tree"
        )),
        Event::TrainGated { members, end, .. } => return gated(*members, end),
        Event::WaveCommitEnded { wave, end } => committed(*wave, end, state),
        Event::StatusSeen {
            task,
            status,
            seen: Seen::Mark,
        } => warn(format!(
            "task {task}: marked {status} by others: not run and not proven"
        )),
        Event::Replanned { removed, .. } => {
            let gone = |task| format!("task {task}: removed from the file by others, not proven");
            return removed.iter().map(|task| warn(gone(task))).collect();
        }
        Event::MarkChecked {
            task,
            end,
            set_back,
        } => return checked(task, end, *set_back),
        Event::Retried { tasks } => {
            let again =
                |task| StatusMessage::new(Tone::Strong, format!("task {task}: trying again"));
            return tasks.iter().map(again).collect();
        }
        _ => return Vec::new(),
    }]
}

fn checked(task: &str, end: &MarkEnd, set_back: bool) -> Vec<StatusMessage> {
    let head = format!("task {task}: marked done by others");
    match end {
        MarkEnd::Green => vec![warn(format!("{head}; its gates pass"))],
        MarkEnd::NoGate => vec![warn(format!("{head}; it has no gate"))],
        MarkEnd::Red { tail } => {
            let what = match set_back {
                true => "set back to pending",
                false => "a second time, so the mark stays",
            };
            StatusMessage::quoting(format!("{head}, but a gate fails: {what}"), tail)
        }
        MarkEnd::Interrupted => Vec::new(),
    }
}

fn heading(task: &str, attempt: u32, state: &LoopState) -> StatusMessage {
    let tasks = state.tasks.as_deref();
    let entry = tasks.and_then(|tasks| tasks.tasks.get(task));
    let title = one_line(entry.map_or("", |entry| &entry.title));
    let wave = match (entry, tasks) {
        (Some(entry), Some(tasks)) => format!("wave {} of {}, ", entry.wave, tasks.waves),
        _ => String::new(),
    };
    let again = match attempt {
        1 => String::new(),
        attempt => format!(", attempt {attempt}"),
    };
    StatusMessage::heading(format!("{wave}task {task}: {title}{again}"))
}

fn ended(task: &str, end: &TaskEnd<'_>) -> Vec<StatusMessage> {
    let head = format!("task {task}: {}", end.line.text);
    match end.evidence {
        Evidence::None => vec![StatusMessage::new(end.line.tone, head)],
        Evidence::Output(output) => StatusMessage::quoting(head, output),
        Evidence::Message(message) => vec![bad(format!("{head}: {}", one_line(message)))],
    }
}

/// What the gates said about the work of several tasks; what is green is told task by task.
fn gated(members: u32, end: &TrainEnd) -> Vec<StatusMessage> {
    let what = plural(u64::from(members), "merged task");
    match end {
        TrainEnd::Green => Vec::new(),
        TrainEnd::Red { tail, .. } => {
            StatusMessage::quoting(format!("{what}: red, looking for the cause"), tail)
        }
        TrainEnd::Interrupted => vec![warn(format!("{what}: interrupted"))],
        TrainEnd::Failed { message } => {
            let why = one_line(message);
            vec![warn(format!("{what} are merged one by one: {why}"))]
        }
    }
}

fn becomes(task: &str, next: &Next) -> Option<StatusMessage> {
    match next {
        Next::Done => Some(good(format!("task {task}: done"))),
        Next::Block { reason } => Some(bad(format!("task {task}: blocked: {}", reason.describe()))),
        Next::Pass { reason } => Some(warn(format!("task {task}: skipped: {}", reason.describe()))),
        Next::Yield { status } => Some(warn(format!("task {task}: {status}, as you marked it"))),
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
            good(format!("{what}: commit {short}"))
        }
        CommitEnd::Committed { commit: None } => good(what),
        CommitEnd::Failed { message } => {
            let words = one_line(message);
            bad(format!("wave {wave} could not be committed: {words}"))
        }
    }
}

/// A worktree that was left, since it holds work that is nowhere else.
pub fn kept(tree: &KeptTree) -> StatusMessage {
    let words = format!(
        "kept the worktree {}: it contains work that exists nowhere else: {}",
        tree.path.display(),
        tree.holds.join("; ")
    );
    warn(one_line(&words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use descartes_kernel::sched::{self, AttemptEnd, BlockReason, EvidenceKind};

    #[test]
    fn a_blocked_task_is_told_with_its_gate_and_its_reason() {
        let event = Event::AttemptEnded {
            task: "3".into(),
            end: AttemptEnd::Red {
                tail: "`make`: exit code 2\nno rule".into(),
            },
            next: Next::Block {
                reason: BlockReason::Attempts {
                    last: sched::Evidence {
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
        let lines: Vec<String> = ended("3", &attempt_end(end))
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
