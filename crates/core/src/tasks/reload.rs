//! The task file while the loop runs: what others write becomes inputs, a new shape a new plan.

use std::collections::HashSet;

use descartes_kernel::edits::FieldChange;
use descartes_kernel::fact;
use descartes_kernel::sched::Input;
use descartes_kernel::tasks::MissingTasks;
use descartes_plans::graph::{Plan, TaskId, TaskIx, TaskStatus};

use super::asking::{SourceRequest, Write};
use super::planned::planned;
use super::runner::Runner;
use super::source::{Keeps, Loaded, SourceError};
use super::task_file::Attempted;
use crate::host::HostError;

impl Runner<'_> {
    /// Tells the views what there is to do.
    pub(super) fn announce(&mut self) -> Result<(), HostError> {
        self.announce_with(Vec::new())
    }

    fn announce_with(&mut self, held: Vec<FieldChange>) -> Result<(), HostError> {
        let (tasks, blocks) = planned(&self.loaded);
        let tag = self.config.source.tag();
        self.d.append(fact::tasks_planned(tag, tasks, blocks, held))
    }

    /// Reads the file again: what others changed becomes inputs, a new shape a new plan.
    pub(super) fn reload(&mut self) -> Result<(), HostError> {
        if let Some(watch) = &self.watch {
            watch.heard();
        }
        if self.file.away {
            return self.look_for_file();
        }
        if self.questions.news.is_some() {
            self.questions.news_again = true;
            return Ok(());
        }
        self.questions.news = Some(self.at_work());
        self.ask(SourceRequest::News { anew: false })
    }

    /// Tasks that agents are at work on.
    fn at_work(&self) -> HashSet<TaskId> {
        let live = self.live.values().flat_map(|live| &live.tasks);
        live.cloned().collect()
    }

    /// The tasks were read again.
    pub(super) fn heard_news(
        &mut self,
        news: Result<Option<Box<Loaded>>, SourceError>,
    ) -> Result<(), HostError> {
        let before = self.questions.news.take().unwrap_or_default();
        if std::mem::take(&mut self.questions.news_again) {
            self.reload()?;
        }
        let mut loaded = match news {
            Ok(Some(loaded)) => *loaded,
            Ok(None) => {
                self.reload_trouble = None;
                return Ok(());
            }
            // Nobody needs it any more.
            Err(SourceError::Tracker { .. }) if self.is_ending() => return Ok(()),
            Err(
                error @ (SourceError::File(_)
                | SourceError::Unreadable { .. }
                | SourceError::Tracker { .. }),
            ) => {
                return self.file_is_away(&error, Attempted::Other);
            }
            // A task was not found in it.
            Err(error) if self.file.doubt.is_some() => {
                return self.file_is_away(&error, Attempted::Other);
            }
            Err(error) => {
                let message = format!("the tasks cannot be read at the moment: {error}");
                if self.reload_trouble.as_ref() != Some(&message) {
                    self.d.warn(message.clone())?;
                    self.reload_trouble = Some(message);
                }
                return Ok(());
            }
        };
        self.reload_trouble = None;
        let doubted = self.file.doubt.is_some();
        match self.missing_in(&loaded) {
            MissingTasks::Believed => {}
            MissingTasks::LookAgain(_) => {
                self.source.forget();
                self.inputs.push_back(Input::FileAway);
                return Ok(());
            }
            MissingTasks::OtherList => {
                let error = self.other_list();
                return self.file_is_away(&error, Attempted::Other);
            }
        }
        let held = self.orders.hold(&mut loaded);
        let same = same_shape(&self.loaded.plan, &loaded.plan);
        self.loaded = loaded;
        if !held.is_empty() {
            let message: Vec<String> = held.iter().map(FieldChange::describe).collect();
            self.d.warn(format!(
                "{} was changed while the loop is running; gates, agents and limits of tasks \
                 stay as they were when a person last started it: {}",
                self.config.source.path().display(),
                message.join("; ")
            ))?;
        }
        if !same || !held.is_empty() {
            self.announce_with(held)?;
        }
        if !same {
            for effect in self.sched.replan(self.loaded.plan.clone()) {
                self.perform(effect)?;
            }
        }
        // What was read while an agent was at work may be its own mark, and that does not count.
        let now = self.at_work();
        let ended: HashSet<TaskId> = before.difference(&now).cloned().collect();
        let mut inputs = self.differences();
        inputs.retain(|input| match input {
            Input::StatusSeen { task, status } => {
                *status != TaskStatus::Done || !ended.contains(task)
            }
            _ => true,
        });
        self.inputs.extend(inputs);
        // Another tool wrote back what it had read earlier, or an agent took the file back with git.
        let lost = self.lost_marks();
        self.tell_opened(&lost)?;
        self.inputs.extend(lost);
        match doubted {
            true => self.doubt_is_over(),
            false => Ok(()),
        }
    }

    /// Boxes that this host ticked and somebody opened are ticked again, which a person is told: it
    /// may have been meant.
    fn tell_opened(&mut self, lost: &[Input]) -> Result<(), HostError> {
        let (mut opened, mut again) = (Vec::new(), Vec::new());
        for input in lost {
            let Input::StatusSeen { task, .. } = input else {
                continue;
            };
            if matches!(
                input,
                Input::StatusSeen {
                    status: TaskStatus::Pending,
                    ..
                }
            ) {
                again.push(task.to_string());
            } else if self.file.ticked.contains(task) && self.file.said_opened.insert(task.clone())
            {
                opened.push(task.to_string());
            }
        }
        let path = self.config.source.path().display().to_string();
        if !again.is_empty() {
            self.d.warn(format!(
                "task {} was done before the loop began and is open now in {path}: it is to be done again",
                again.join(", ")
            ))?;
        }
        match opened.is_empty() {
            true => Ok(()),
            false => self.d.warn(format!(
                "task {} is done and proven, but was opened again in {path} while the loop is running: it \
                 is marked done again; to have it done once more, open it after the loop has ended \
                 and start it with --retry-blocked",
                opened.join(", ")
            )),
        }
    }

    /// What to believe of a file that does not hold all tasks: it may be read while it is written.
    pub(super) fn missing_in(&mut self, loaded: &Loaded) -> MissingTasks {
        let (old, new) = (self.loaded.plan.graph(), loaded.plan.graph());
        let nodes = old.nodes().iter().map(|node| &node.id);
        let missing = nodes.filter(|id| new.find(id).is_none()).cloned();
        let (keeper, known) = (self.config.source.keeper(), old.nodes().len());
        self.file.misses(keeper, known, missing.collect())
    }

    /// It can be read, and is another list.
    pub(super) fn other_list(&self) -> SourceError {
        let path = self.config.source.path();
        SourceError::Content {
            path: path.to_owned(),
            message: "none of the tasks that this loop is to do is in it any more".to_owned(),
            hint: format!(
                "see: descartes roadmap check {}",
                descartes_text::shell::path(path)
            ),
        }
    }

    /// Tasks that were still to be done when a host died, and that are no longer in the file.
    pub(super) fn gone_meanwhile(&self) -> Vec<TaskId> {
        let graph = self.loaded.plan.graph();
        let known = self.d.state.tasks.iter().flat_map(|tasks| &tasks.tasks);
        let settled = |status: TaskStatus| status == TaskStatus::Done || status.is_left_out();
        known
            .filter(|(id, entry)| graph.find(id).is_none() && !settled(entry.status))
            .map(|(id, _)| id.clone())
            .collect()
    }

    /// What the file says otherwise than we do.
    pub(super) fn differences(&self) -> Vec<Input> {
        let statuses = self.loaded.plan.effective_statuses();
        let mut inputs = self.sched.differences(&statuses);
        if self.source.keeps() == Keeps::Done {
            // An open box says nothing about a task that is at work or blocked.
            inputs.retain(|input| {
                !matches!(
                    input,
                    Input::StatusSeen {
                        status: TaskStatus::Pending,
                        ..
                    }
                )
            });
        }
        inputs
    }

    /// Tasks whose merged work is gone are to be done again.
    pub(super) fn run_lost_again(&mut self) -> Result<(), HostError> {
        if !self.place.lost_work() {
            return Ok(());
        }
        let tasks = self.d.state.tasks.as_ref();
        for task in tasks.map(|tasks| tasks.not_landed()).unwrap_or_default() {
            self.write(&task, Write::Reopen)?;
            self.inputs.push_back(Input::StatusSeen {
                task,
                status: TaskStatus::Pending,
            });
        }
        Ok(())
    }

    /// Done tasks whose box a dead host could not tick any more, or that somebody else opened: a file
    /// that keeps nothing but boxes says no more of them than of a task at work. One that this loop did not
    /// prove is what its box says.
    pub(super) fn lost_marks(&self) -> Vec<Input> {
        if self.source.keeps() != Keeps::Done {
            return Vec::new();
        }
        let graph = self.loaded.plan.graph();
        let (ours, file) = (self.sched.statuses(), self.loaded.plan.effective_statuses());
        let both = ours.iter().zip(&file).enumerate();
        let tasks = self.d.state.tasks.as_ref();
        both.filter(|(_, pair)| *pair == (&TaskStatus::Done, &TaskStatus::Pending))
            .map(|(task, _)| graph.node(task as TaskIx).id.clone())
            .map(|task| Input::StatusSeen {
                status: match tasks.is_some_and(|tasks| tasks.is_proven_here(&task)) {
                    true => TaskStatus::InProgress,
                    false => TaskStatus::Pending,
                },
                task,
            })
            .collect()
    }
}

/// Whether two plans hold the same tasks with the same ties; statuses aside.
fn same_shape(old: &Plan, new: &Plan) -> bool {
    if old.graph().joints() != new.graph().joints() {
        return false;
    }
    let (old, new) = (old.graph().nodes(), new.graph().nodes());
    let ids = |node: &descartes_plans::graph::TaskNode| -> Vec<TaskId> {
        node.dependencies.iter().map(|dep| dep.id.clone()).collect()
    };
    old.len() == new.len()
        && old.iter().zip(new).all(|(a, b)| {
            a.id == b.id
                && a.parent == b.parent
                && a.rules == b.rules
                && a.joints == b.joints
                && ids(a) == ids(b)
        })
}
