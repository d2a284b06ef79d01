//! Tasks of a Markdown roadmap. The file is a person's: of it, one character changes when a task
//! is finished. Everything else that is known about its tasks is in the loop's journal.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use descartes_agents::promise::PromiseMatch;
use descartes_kernel::tasks::RoadmapDefaults;
use descartes_plans::graph::{TaskId, TaskStatus};
use descartes_plans::roadmap::{
    self, CheckMark, Defaults, EditError, NewTask, Roadmap, RoadmapTask,
};
use descartes_plans::spec::{Delivered, SpecFile, TaskText};
use descartes_store::safe_open;
use descartes_store::task_file::{TaskFileError, replace_if_unchanged};
use descartes_text::finding::has_errors;

use super::source::{Claim, Keeps, Loaded, SourceError, TaskBrief, TaskSource};

/// Somebody who writes the file at the same moment is waited for so often.
const TRIES: u32 = 20;

/// A roadmap.
#[derive(Debug)]
pub struct RoadmapSource {
    path: PathBuf,
    defaults: Defaults,
    /// No task may name its own agent.
    no_task_agents: bool,
    /// The text as it was last read or written here.
    known: Option<String>,
}

impl RoadmapSource {
    /// The roadmap in a file.
    pub fn new(path: &Path, defaults: &RoadmapDefaults) -> Self {
        Self {
            path: path.to_owned(),
            defaults: Defaults {
                iterations: defaults.iterations,
                promise: defaults.promise.clone(),
                timeout: defaults.timeout_secs.0,
            },
            no_task_agents: defaults.no_task_agents,
            known: None,
        }
    }

    fn content(&self, message: String) -> SourceError {
        SourceError::Content {
            path: self.path.clone(),
            message,
            hint: format!(
                "see: descartes roadmap check {}",
                descartes_text::shell::path(&self.path)
            ),
        }
    }

    fn read(&self) -> Result<String, SourceError> {
        safe_open::read_user_text(&self.path).map_err(|error| SourceError::Unreadable {
            path: self.path.clone(),
            message: error.to_string(),
            hint: format!(
                "see: descartes roadmap check {}",
                descartes_text::shell::path(&self.path)
            ),
        })
    }
}

impl TaskSource for RoadmapSource {
    fn load(&mut self) -> Result<Loaded, SourceError> {
        let text = self.read()?;
        let roadmap = roadmap::parse(&text);
        self.known = Some(text);
        let findings = roadmap.check();
        if has_errors(&findings) {
            return Err(SourceError::findings(&self.path, &findings));
        }
        // Here, where the very text is read that is run: it may have been written since the start.
        if let Some(message) = roadmap.own_agent().filter(|_| self.no_task_agents) {
            return Err(self.content(message));
        }
        let plan = roadmap
            .graph_with(&self.defaults)
            .plan()
            .map_err(|problems| {
                let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
                self.content(lines.join("\n  "))
            })?;
        let titles: HashMap<&str, &str> = roadmap
            .tasks
            .iter()
            .map(|task| (task.id.as_str(), task.description.as_str()))
            .collect();
        let briefs = roadmap
            .tasks
            .iter()
            .map(|task| {
                let brief = brief(&roadmap, task, &titles, &self.defaults);
                (TaskId::from(task.id.as_str()), brief)
            })
            .collect();
        Ok(Loaded {
            plan,
            briefs,
            guidance: whole(&roadmap).into_iter().collect(),
            findings,
        })
    }

    fn news(&mut self) -> Result<Option<Loaded>, SourceError> {
        match Some(self.read()?) == self.known {
            true => Ok(None),
            false => self.load().map(Some),
        }
    }

    fn claim(&mut self, task: &TaskId) -> Result<Claim, SourceError> {
        match roadmap::mark_of(&self.read()?, task) {
            Some(CheckMark::Open) => Ok(Claim::Taken),
            Some(mark) => Ok(Claim::Found(mark.status())),
            None => Ok(Claim::Missing),
        }
    }

    fn set(&mut self, task: &TaskId, status: TaskStatus) -> Result<(), SourceError> {
        match status {
            TaskStatus::Done => self.put_mark(task, CheckMark::Done),
            // A box says done or not: the rest is known to us alone.
            _ => Ok(()),
        }
    }

    fn reopen(&mut self, task: &TaskId) -> Result<(), SourceError> {
        self.put_mark(task, CheckMark::Open)
    }

    fn forget(&mut self) {
        self.known = None;
    }

    fn add(&mut self, task: &NewTask) -> Result<(), SourceError> {
        for _ in 0..TRIES {
            let text = self.read()?;
            let edit = roadmap::append_task(&text, task)
                .map_err(|error| self.content(error.to_string()))?;
            let findings = roadmap::check(&edit.new_text);
            if has_errors(&findings) {
                return Err(SourceError::findings(&self.path, &findings));
            }
            if replace_if_unchanged(&self.path, &text, &edit.new_text)? {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Err(TaskFileError::Restless {
            path: self.path.clone(),
        }
        .into())
    }

    fn keeps(&self) -> Keeps {
        Keeps::Done
    }

    fn shielded(&self) -> Vec<PathBuf> {
        vec![self.path.clone()]
    }
}

impl RoadmapSource {
    /// Whether a text has all tasks that were known. Somebody may be in the middle of writing one that
    /// has not: what we wrote then would be all that is left of the file.
    fn holds_known_tasks(&self, text: &str) -> bool {
        let known = self.known.as_deref().filter(|known| *known != text);
        known.is_none_or(|known| {
            let now = roadmap::task_ids(text);
            roadmap::task_ids(known).is_subset(&now)
        })
    }

    /// Changes the box of a task: one character.
    fn put_mark(&mut self, task: &TaskId, mark: CheckMark) -> Result<(), SourceError> {
        for _ in 0..TRIES {
            let text = self.read()?;
            if !self.holds_known_tasks(&text) {
                return Err(SourceError::NoTask {
                    path: self.path.clone(),
                    task: task.clone(),
                });
            }
            let edit = roadmap::set_mark(&text, task, None, mark).map_err(|error| match error {
                EditError::UnknownTask { .. } => SourceError::NoTask {
                    path: self.path.clone(),
                    task: task.clone(),
                },
                error => self.content(error.to_string()),
            })?;
            if edit.new_text == text || replace_if_unchanged(&self.path, &text, &edit.new_text)? {
                if self.known.as_ref() == Some(&text) {
                    self.known = Some(edit.new_text);
                }
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Err(TaskFileError::Restless {
            path: self.path.clone(),
        }
        .into())
    }
}

fn brief(
    roadmap: &Roadmap,
    task: &RoadmapTask,
    titles: &HashMap<&str, &str>,
    defaults: &Defaults,
) -> TaskBrief {
    let settings = roadmap.settings(task, defaults);
    let mut text = TaskText::from(task);
    text.dependencies = task
        .keys
        .depends
        .iter()
        .map(|depends| Delivered {
            id: depends.id.clone(),
            title: titles
                .get(depends.id.as_str())
                .map_or_else(String::new, |title| (*title).to_owned()),
            delivered: None,
        })
        .collect();
    let keys = &task.keys;
    let mut agents = keys.agent.iter().chain(&keys.cli).cloned();
    TaskBrief {
        text,
        promise: settings.promise,
        promise_match: keys.require_xml_format.map(PromiseMatch::of_xml_format),
        timeout: Some(settings.timeout),
        gates: settings.gates,
        gate_timeout: keys.verify_timeout,
        cwd: settings.cwd,
        agent: agents.next(),
        fallback: agents.collect(),
        model: keys.model.clone(),
        max_time: keys.max_time,
        max_cost: keys.max_cost,
        idle_timeout: keys.idle_timeout,
        abort_promise: keys.abort_promise.clone(),
        stall_after: keys.stuck_after,
        sandbox: keys.sandbox,
        under: None,
        trailer: None,
    }
}

/// What all of a roadmap is for.
fn whole(roadmap: &Roadmap) -> Option<SpecFile> {
    let mut parts = Vec::new();
    if !roadmap.objective.trim().is_empty() {
        parts.push(roadmap.objective.trim().to_owned());
    }
    parts.extend(
        roadmap
            .constraints
            .other
            .iter()
            .map(|line| format!("- {line}")),
    );
    let name = match &roadmap.title {
        Some(title) => format!("Objective of the whole: {title}"),
        None => "Objective of the whole".to_owned(),
    };
    (!parts.is_empty()).then(|| SpecFile {
        name,
        text: parts.join("\n"),
    })
}
