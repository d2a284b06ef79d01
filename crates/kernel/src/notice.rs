//! What a person who looks elsewhere wants to be told: a loop ended, stalled, waits, or needs
//! them. Read off single records, so that it costs nothing until there is something to say.

use jiff::Timestamp;
use serde::Serialize;

use crate::event::{Event, Record, StopBy};
use crate::outcome::IterativeExitReason;
use crate::sched::{self, Next};
use crate::tasks::Landing;

/// Shorter waits are nobody's business.
const LONG_WAIT_SECS: i64 = 60;

/// Why somebody is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// The loop is over: done, cancelled, or at a limit.
    Ended,
    /// It is over for want of progress.
    Stalled,
    /// It waits for a provider, or after failures, for a minute or more.
    Waiting,
    /// It cannot go on, or a part of it cannot, without a person.
    NeedsPerson,
}

impl NoticeKind {
    /// Its word in JSON and in the environment.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Stalled => "stalled",
            Self::Waiting => "waiting",
            Self::NeedsPerson => "needs_person",
        }
    }
}

/// Something to be told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Notice {
    pub event: NoticeKind,
    /// When it happened.
    pub at: Timestamp,
    /// One line for a person.
    pub message: String,
    /// Why the loop ended, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_reason: Option<IterativeExitReason>,
    /// Its exit code, where it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Until when it waits, where it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The task that is meant, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

impl Notice {
    /// What a record has to tell; `None` for nearly all of them.
    pub fn of(record: &Record) -> Option<Self> {
        let plain = |event, message: String| Self {
            event,
            at: record.at,
            message,
            exit_reason: None,
            exit_code: None,
            until: None,
            task: None,
        };
        match &record.event {
            Event::LoopFinished { reason } => Some(Self {
                exit_reason: Some(reason.clone()),
                exit_code: Some(reason.exit_code()),
                ..plain(kind_of(reason), reason.sentence())
            }),
            Event::Interrupted { by: StopBy::HangUp } => Some(plain(
                NoticeKind::NeedsPerson,
                "interrupted: its terminal was closed".to_owned(),
            )),
            Event::WaitStarted { until, reason } => {
                let long = until.duration_since(record.at).as_secs() >= LONG_WAIT_SECS;
                let why = reason.describe();
                long.then(|| Self {
                    until: Some(*until),
                    ..plain(NoticeKind::Waiting, format!("waiting: {why}"))
                })
            }
            Event::Warning {
                message,
                needs_person: true,
            } => Some(plain(NoticeKind::NeedsPerson, message.clone())),
            Event::WorkLanded {
                landing: Landing::Ready { branch, why, .. },
            } => Some(plain(
                NoticeKind::NeedsPerson,
                format!("work is ready to land on {branch}: {why}"),
            )),
            Event::Tasks { event } => match &**event {
                sched::Event::AttemptEnded { task, next, .. }
                | sched::Event::MergeEnded { task, next, .. } => match next {
                    Next::Block { reason } => Some(Self {
                        task: Some(task.to_string()),
                        ..plain(
                            NoticeKind::NeedsPerson,
                            format!("task {task} is blocked: {}", reason.describe()),
                        )
                    }),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }
}

fn kind_of(reason: &IterativeExitReason) -> NoticeKind {
    use IterativeExitReason as Reason;
    match reason {
        Reason::Stalled { .. } => NoticeKind::Stalled,
        Reason::AgentBlocked { .. }
        | Reason::AgentFailed { .. }
        | Reason::TasksBlocked { .. }
        | Reason::Error { .. } => NoticeKind::NeedsPerson,
        _ => NoticeKind::Ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::FORMAT;
    use crate::event::WaitReason;

    fn notice(event: Event) -> Option<Notice> {
        Notice::of(&Record {
            v: FORMAT,
            seq: 1,
            at: "2026-01-02T03:04:05Z".parse().unwrap(),
            event,
        })
    }

    fn ended(reason: IterativeExitReason) -> NoticeKind {
        let told = notice(Event::LoopFinished {
            reason: reason.clone(),
        })
        .unwrap();
        assert_eq!(told.exit_code, Some(reason.exit_code()));
        told.event
    }

    #[test]
    fn every_end_is_told_once_and_by_what_it_asks_of_a_person() {
        use IterativeExitReason as Reason;
        assert_eq!(ended(Reason::GatesPassed), NoticeKind::Ended);
        assert_eq!(ended(Reason::MaxIterationsReached), NoticeKind::Ended);
        let (iterations, evidence) = (10, String::new());
        assert_eq!(
            ended(Reason::Stalled {
                iterations,
                evidence
            }),
            NoticeKind::Stalled
        );
        let message = "no key".to_owned();
        assert_eq!(
            ended(Reason::AgentBlocked { message }),
            NoticeKind::NeedsPerson
        );
    }

    #[test]
    fn short_waits_and_daily_work_are_not_told() {
        let wait = |until: &str| {
            notice(Event::WaitStarted {
                until: until.parse().unwrap(),
                reason: WaitReason::Failures(3),
            })
        };
        assert_eq!(wait("2026-01-02T03:04:20Z"), None);
        let told = wait("2026-01-02T05:00:00Z").unwrap();
        assert_eq!(
            (told.event.as_str(), told.message.as_str()),
            ("waiting", "waiting: 3 failures in a row")
        );
        assert_eq!(notice(Event::Nudged { iterations: 5 }), None);
        let warning = |needs_person| {
            let message = "a lock is in the way".to_owned();
            notice(Event::Warning {
                message,
                needs_person,
            })
        };
        assert_eq!(warning(false), None);
        assert_eq!(warning(true).unwrap().event, NoticeKind::NeedsPerson);
        assert!(notice(Event::Interrupted { by: StopBy::HangUp }).is_some());
        assert_eq!(notice(Event::Interrupted { by: StopBy::Cancel }), None);
    }
}
