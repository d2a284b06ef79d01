//! Who worked on what, and when: the attempts and merges of a task loop as lanes on the clock.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::WaitRow;
use crate::picture::{Lane, Mark, Span};
use descartes_kernel::event::{Event, Record};
use descartes_kernel::sched::{self, AttemptEnd, MergeEnd};
use descartes_plans::graph::TaskId;

impl WaitRow {
    /// The wait as pictures show it.
    pub fn span(&self) -> Span {
        Span {
            start: self.since,
            end: self.ended.map(|(at, _)| at),
            mark: Mark::Wait,
            tip: format!("waited: {}", self.why),
        }
    }
}

/// Folds records into lanes. Give it every record, in order.
#[derive(Clone, Debug, Default)]
pub struct TaskLanes {
    titles: BTreeMap<TaskId, String>,
    /// In the order in which they were begun.
    order: Vec<TaskId>,
    spans: BTreeMap<TaskId, Vec<Span>>,
    last: Option<Timestamp>,
}

impl TaskLanes {
    /// Takes a record.
    pub fn push(&mut self, record: &Record) {
        match &record.event {
            Event::TasksPlanned { tasks, .. } => {
                let titles = tasks
                    .iter()
                    .map(|task| (task.id.clone(), task.title.clone()));
                self.titles = titles.collect();
            }
            // Whatever was open when the last host died ended about then.
            Event::HostStarted { .. } => {
                let at = self.last.unwrap_or(record.at);
                let open = self.spans.values_mut().flatten();
                for span in open.filter(|span| span.end.is_none()) {
                    (span.end, span.mark) = (Some(at), Mark::Held);
                    span.tip.push_str(": interrupted");
                }
            }
            Event::Tasks { event } => self.task(event, record.at),
            _ => {}
        }
        self.last = Some(record.at);
    }

    fn task(&mut self, event: &sched::Event, at: Timestamp) {
        match event {
            sched::Event::AttemptStarted { task, attempt, .. } => {
                self.open(task, at, format!("attempt {attempt}"));
            }
            sched::Event::ClaimRefused { task, found } => {
                self.close(task, at, Mark::Held, &format!("found {found} in the file"));
            }
            sched::Event::AttemptEnded { task, end, .. } => {
                let (mark, words) = attempt(end);
                self.close(task, at, mark, &words);
            }
            sched::Event::MergeStarted { task } => self.open(task, at, "merge".to_owned()),
            sched::Event::MergeEnded { task, end, .. } => {
                let (mark, words) = merge(end);
                self.close(task, at, mark, &words);
            }
            _ => {}
        }
    }

    fn open(&mut self, task: &TaskId, at: Timestamp, tip: String) {
        if !self.spans.contains_key(task) {
            self.order.push(task.clone());
        }
        let span = Span {
            start: at,
            end: None,
            mark: Mark::Work,
            tip,
        };
        self.spans.entry(task.clone()).or_default().push(span);
    }

    fn close(&mut self, task: &TaskId, at: Timestamp, mark: Mark, words: &str) {
        let last = self.spans.get_mut(task).and_then(|spans| spans.last_mut());
        if let Some(span) = last.filter(|span| span.end.is_none()) {
            (span.end, span.mark) = (Some(at), mark);
            span.tip = format!("{}: {words}", span.tip);
        }
    }

    /// One lane for each task that was begun, in that order.
    pub fn lanes(&self) -> Vec<Lane> {
        let lane = |task: &TaskId| {
            let title = self.titles.get(task).map_or("", String::as_str);
            Lane {
                label: format!("{task} {title}").trim_end().to_owned(),
                spans: self.spans.get(task).cloned().unwrap_or_default(),
            }
        };
        self.order.iter().map(lane).collect()
    }
}

fn last_line(text: &str) -> &str {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.next_back().unwrap_or_default()
}

fn attempt(end: &AttemptEnd) -> (Mark, String) {
    match end {
        AttemptEnd::Green { .. } => (Mark::Good, "green".to_owned()),
        AttemptEnd::Red { tail } => (Mark::Bad, format!("red: {}", last_line(tail))),
        AttemptEnd::Failed { message } => (Mark::Bad, format!("failed: {}", last_line(message))),
        AttemptEnd::NoPromise => (Mark::Held, "worked, no promise".to_owned()),
        AttemptEnd::NothingDone => (Mark::Bad, "did nothing".to_owned()),
        AttemptEnd::OutOfScope { tail } => {
            (Mark::Bad, format!("out of scope: {}", last_line(tail)))
        }
        AttemptEnd::Uncarried { tail } => (Mark::Bad, format!("cannot land: {}", last_line(tail))),
        AttemptEnd::AtLimit { message } => (Mark::Bad, message.clone()),
        AttemptEnd::BlockedByAgent { message } => {
            (Mark::Bad, format!("gave up: {}", last_line(message)))
        }
        AttemptEnd::Limited { .. } => (Mark::Wait, "hit a provider limit".to_owned()),
        AttemptEnd::Interrupted => (Mark::Held, "interrupted".to_owned()),
    }
}

fn merge(end: &MergeEnd) -> (Mark, String) {
    match end {
        MergeEnd::Merged => (Mark::Good, "merged".to_owned()),
        MergeEnd::Conflict { tail } => (Mark::Bad, format!("conflict: {}", last_line(tail))),
        MergeEnd::Red { tail } => (Mark::Bad, format!("red: {}", last_line(tail))),
        MergeEnd::Interrupted => (Mark::Held, "interrupted".to_owned()),
        MergeEnd::Failed { message } => (Mark::Bad, format!("failed: {}", last_line(message))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use descartes_kernel::event::{FORMAT, HostFacts};
    use descartes_kernel::sched::Next;

    fn push(lanes: &mut TaskLanes, secs: i64, event: Event) {
        lanes.push(&Record {
            v: FORMAT,
            seq: 0,
            at: Timestamp::from_second(1_767_000_000 + secs).unwrap(),
            event,
        });
    }

    fn tasks(event: sched::Event) -> Event {
        Event::Tasks {
            event: Box::new(event),
        }
    }

    fn started(task: &str, attempt: u32) -> Event {
        tasks(sched::Event::AttemptStarted {
            task: task.into(),
            slot: 0,
            attempt,
        })
    }

    #[test]
    fn attempts_become_bars_and_a_dead_host_ends_them() {
        let mut lanes = TaskLanes::default();
        push(&mut lanes, 0, started("2", 1));
        push(&mut lanes, 1, started("1", 1));
        let end = AttemptEnd::Red {
            tail: "a\nassert failed\n".into(),
        };
        let (task, next) = ("2".into(), Next::Again);
        push(
            &mut lanes,
            10,
            tasks(sched::Event::AttemptEnded { task, end, next }),
        );
        let host = HostFacts::default();
        push(&mut lanes, 500, Event::HostStarted { host });
        push(&mut lanes, 501, started("1", 2));
        let got = lanes.lanes();
        assert_eq!((got[0].label.as_str(), got[1].label.as_str()), ("2", "1"));
        assert_eq!(got[0].spans[0].mark, Mark::Bad);
        assert_eq!(got[0].spans[0].tip, "attempt 1: red: assert failed");
        let lost = &got[1].spans[0];
        assert_eq!(lost.mark, Mark::Held);
        let lasted = lost.end.unwrap().duration_since(lost.start);
        assert_eq!(lasted.as_secs(), 9, "it ended with the last record");
        assert_eq!(got[1].spans[1].end, None);
    }
}
