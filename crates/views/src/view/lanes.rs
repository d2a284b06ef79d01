//! Who worked on what, and when: the attempts and merges of a task loop as lanes on the clock.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::WaitRow;
use super::attempts::{Evidence, TaskEnd, attempt_end, merge_end};
use crate::picture::{Lane, Span};
use crate::tone::{Cell, Tone};
use descartes_kernel::event::{Event, Record};
use descartes_kernel::sched;
use descartes_kernel::state::LoopState;
use descartes_kernel::tasks::telling_line;
use descartes_plans::graph::TaskId;

impl WaitRow {
    /// The wait as pictures show it.
    pub fn span(&self) -> Span {
        Span {
            start: self.since,
            end: self.ended.map(|(at, _)| at),
            mark: Tone::Warn,
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
                    (span.end, span.mark) = (Some(at), Tone::Dim);
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
                self.close(task, at, Tone::Dim, &format!("found {found} in the file"));
            }
            sched::Event::AttemptEnded { task, end, .. } => {
                self.end(task, at, &attempt_end(end));
            }
            sched::Event::MergeStarted { task } => self.open(task, at, "merge".to_owned()),
            sched::Event::TrainStarted { tasks, .. } => {
                let tip = format!("merge of {} tasks", tasks.len());
                tasks
                    .iter()
                    .for_each(|task| self.open(task, at, tip.clone()));
            }
            sched::Event::TrainEnded { back, .. } => {
                back.iter()
                    .for_each(|task| self.close(task, at, Tone::Dim, "merged later"));
            }
            sched::Event::MergeEnded { task, end, .. } => self.end(task, at, &merge_end(end)),
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
            mark: Tone::Strong,
            tip,
        };
        self.spans.entry(task.clone()).or_default().push(span);
    }

    fn end(&mut self, task: &TaskId, at: Timestamp, came_to: &TaskEnd<'_>) {
        let Cell { tone, text } = &came_to.line;
        let words = match &came_to.evidence {
            Evidence::None => text.clone(),
            Evidence::Output(why) | Evidence::Message(why) => {
                format!("{text}: {}", telling_line(why))
            }
        };
        self.close(task, at, *tone, &words);
    }

    fn close(&mut self, task: &TaskId, at: Timestamp, mark: Tone, words: &str) {
        let last = self.spans.get_mut(task).and_then(|spans| spans.last_mut());
        if let Some(span) = last.filter(|span| span.end.is_none()) {
            (span.end, span.mark) = (Some(at), mark);
            span.tip = format!("{}: {words}", span.tip);
        }
    }

    /// Takes what the state still knows of the time before the first record given.
    pub fn take_state(&mut self, state: &LoopState) {
        let tasks = state.tasks.iter().flat_map(|tasks| &tasks.tasks);
        let titles = tasks.map(|(id, task)| (id.clone(), task.title.clone()));
        self.titles.extend(titles);
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

#[cfg(test)]
mod tests {
    use super::*;
    use descartes_kernel::event::{FORMAT, HostFacts};
    use descartes_kernel::sched::{AttemptEnd, Next};

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
        assert_eq!(got[0].spans[0].mark, Tone::Bad);
        assert_eq!(got[0].spans[0].tip, "attempt 1: red: assert failed");
        let lost = &got[1].spans[0];
        assert_eq!(lost.mark, Tone::Dim);
        let lasted = lost.end.unwrap().duration_since(lost.start);
        assert_eq!(lasted.as_secs(), 9, "it ended with the last record");
        assert_eq!(got[1].spans[1].end, None);
    }
}
