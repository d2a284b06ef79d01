//! Takes inputs, and carries out what was decided.

use super::decide::Decision;
use super::{Effect, Ended, Event, Input, Scheduler, TaskState};
use crate::event::Decided;
use descartes_plans::graph::TaskIx;

impl Scheduler {
    /// Takes an input, and answers with everything that is to be done now, in order.
    ///
    /// Every change of state is an [`Effect::Append`] before the acts that follow from it, so that
    /// what is remembered is never behind what is done.
    pub fn advance(&mut self, input: &Input) -> Vec<Effect> {
        self.advance_all(std::slice::from_ref(input))
    }

    /// Takes inputs that are there at the same time; what is next is decided once all are heard.
    pub fn advance_all(&mut self, inputs: &[Input]) -> Vec<Effect> {
        let mut effects = Vec::new();
        let taken_up = !self.live && inputs.contains(&Input::Begin);
        for input in inputs {
            self.hear(input, &mut effects);
        }
        if taken_up {
            // A host that died between its record and the file left the file behind.
            effects.extend(inputs.iter().filter_map(|input| self.said_again(input)));
        }
        self.go_on(&mut effects);
        effects
    }

    fn hear(&mut self, input: &Input, effects: &mut Vec<Effect>) {
        match input {
            Input::FileAway => self.file_away = true,
            Input::FileBack => self.file_away = false,
            _ => {}
        }
        let events = self.judge(input);
        if events.is_empty() {
            effects.extend(self.said_again(input));
        }
        for event in events {
            self.take(event, effects);
        }
        if matches!(input, Input::Wake { .. } | Input::RetryNow) && self.ended.is_none() {
            // A wait that woke too early, or another agent's, goes on.
            effects.extend(self.wait());
        }
        if *input == Input::Begin && !self.live {
            self.live = true;
            effects.extend(self.taken_up_again());
        }
    }

    /// Decides and carries out until there is nothing to decide.
    pub(super) fn go_on(&mut self, effects: &mut Vec<Effect>) {
        while let Some(decision) = self.decide() {
            self.carry_out(decision, effects);
        }
    }

    pub(super) fn take(&mut self, event: Event, effects: &mut Vec<Effect>) {
        let applied = self.apply(&event);
        debug_assert!(
            applied.is_ok(),
            "what is judged and decided is legal: {applied:?}"
        );
        let acts = self.acts_of(&event);
        let event = Box::new(event);
        let decided = Decided::new(crate::event::Event::Tasks { event });
        effects.push(Effect::Append(Box::new(decided)));
        effects.extend(acts);
    }

    fn carry_out(&mut self, decision: Decision, effects: &mut Vec<Effect>) {
        match decision {
            Decision::Merge(task) => self.take(
                Event::MergeStarted {
                    task: self.id(task),
                },
                effects,
            ),
            Decision::Train(tasks) => self.take(
                Event::TrainStarted {
                    train: self.trains + 1,
                    tasks: tasks.iter().map(|task| self.id(*task)).collect(),
                },
                effects,
            ),
            Decision::CheckMark(task) => self.take(
                Event::MarkCheckStarted {
                    task: self.id(task),
                },
                effects,
            ),
            Decision::Commit(wave) => {
                let landed = self.landed.get(wave as usize).into_iter().flatten();
                let landed = landed.map(|task| self.id(*task));
                let tasks = landed.chain(self.landed_gone.iter().cloned()).collect();
                self.take(
                    Event::WaveCommitStarted {
                        wave: wave + 1,
                        tasks,
                    },
                    effects,
                );
            }
            Decision::Start { slot, tasks } => self.start(slot, &tasks, effects),
            Decision::Finish(outcome, account) => {
                let claimed = (0..self.records.len() as TaskIx).filter(|task| {
                    self.record(*task).claimed && self.record(*task).state == TaskState::Pending
                });
                effects.extend(claimed.map(|task| Effect::Release {
                    task: self.id(task),
                }));
                self.take(
                    Event::Finished {
                        outcome: outcome.clone(),
                    },
                    effects,
                );
                effects.push(Effect::Finish(Box::new(Ended { outcome, account })));
            }
        }
    }

    fn start(&mut self, slot: u32, tasks: &[TaskIx], effects: &mut Vec<Effect>) {
        let mut attempts = Vec::with_capacity(tasks.len());
        for task in tasks.iter().copied() {
            let given = self.attempt_at(task);
            self.take(
                Event::AttemptStarted {
                    task: given.task.clone(),
                    slot,
                    attempt: given.attempt,
                },
                effects,
            );
            effects.push(Effect::Claim {
                task: given.task.clone(),
            });
            attempts.push(given);
        }
        effects.push(Effect::StartAttempt {
            slot,
            tasks: attempts,
        });
    }
}
