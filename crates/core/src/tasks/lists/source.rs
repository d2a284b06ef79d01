//! A list of another tool as a source of tasks. It is a person's: of it, only the marks of tasks
//! change that were proven.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use descartes_plans::graph::{Plan, TaskId, TaskStatus};
use descartes_plans::lists::{
    KnownTask, ListFile, ListFormat, ListOptions, ListTask, TaskList, criteria, story_section,
};
use descartes_plans::spec::{Delivered, DeliveredBlocks, SpecFile, TaskText};
use descartes_store::task_file::{TaskFileError, replace_if_unchanged};
use descartes_text::finding::{Finding, has_errors};
use descartes_text::units::plural;

use super::documents::{SpecDocument, documents, open_checklists};
use super::files::{ListFiles, ListInput, files_of};
use crate::tasks::source::{Claim, Keeps, Loaded, SourceError, TaskBrief, TaskSource};

/// Somebody who writes a file at the same moment is waited for so often.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);
/// Task Master itself takes over a lock that is older than this.
const STALE_LOCK: Duration = Duration::from_secs(10);

/// Its plans lie in a folder of this name.
const SUPERPOWERS: &str = "superpowers";
/// A plan that nobody has touched for so long may have been done.
const OLD_PLAN: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// A task list of another tool.
#[derive(Debug)]
pub struct ListSource {
    path: PathBuf,
    format: ListFormat,
    options: ListOptions,
    tag: Option<String>,
    /// Tasks as they were known when the list was last read, and before that.
    known: Vec<KnownTask>,
    known_before: Vec<KnownTask>,
    /// The files as they were last read or written here.
    seen: Option<Vec<ListFile>>,
    /// The list as it was last read, with the marks that were written since: thousands of tasks are
    /// not read again for one mark, unless somebody else has written in between.
    last: Option<ListFiles>,
}

impl ListSource {
    /// The list at a path.
    pub fn new(path: &Path, format: ListFormat, options: ListOptions, tag: Option<String>) -> Self {
        Self {
            path: path.to_owned(),
            format,
            options,
            tag,
            known: Vec::new(),
            known_before: Vec::new(),
            seen: None,
            last: None,
        }
    }

    fn read(&mut self) -> Result<ListFiles, SourceError> {
        let input = ListInput::of(&self.path, self.format);
        let input = input.map_err(|error| self.unreadable(&error))?;
        match self.last.take() {
            Some(last) if input.is_of(&last) => Ok(last),
            _ => {
                let tag = self.tag.as_deref();
                Ok(input.read(self.format, self.options, tag, &self.known))
            }
        }
    }

    fn unreadable(&self, error: &io::Error) -> SourceError {
        SourceError::Unreadable {
            path: self.path.clone(),
            message: error.to_string(),
            hint: format!(
                "see: descartes roadmap check {}",
                descartes_text::shell::path(&self.path)
            ),
        }
    }

    /// Marks a task in the files that say so; every other byte stays.
    fn mark(&mut self, task: &TaskId, done: bool) -> Result<(), SourceError> {
        let mut read = self.change(task, |read| read.list.set_done(&read.files, task, done))?;
        if done {
            read.list.was_set_done(task);
            self.last = Some(read);
        }
        Ok(())
    }

    /// Says that a task is worked on, or no longer is, where a person wants that.
    fn say_doing(&mut self, task: &TaskId, doing: bool) -> Result<(), SourceError> {
        match self.options.claim {
            true => {
                let change = |read: &ListFiles| read.list.set_doing(&read.files, task, doing);
                self.change(task, change).map(drop)
            }
            false => Ok(()),
        }
    }

    /// Changes what the files say of a task, as they are now. Gives the list with the new files, as it
    /// was read before the change.
    fn change(
        &mut self,
        task: &TaskId,
        change: impl Fn(&ListFiles) -> Option<Vec<ListFile>>,
    ) -> Result<ListFiles, SourceError> {
        let _lock = ToolLock::take(&self.path, self.format)?;
        for _ in 0..TRIES {
            let mut read = self.read()?;
            let changed = self.holds_known_tasks(&read.list).then(|| change(&read));
            let Some(changed) = changed.flatten() else {
                return Err(SourceError::NoTask {
                    path: self.path.clone(),
                    task: task.clone(),
                });
            };
            if self.write(&read, &changed)? {
                for new in changed {
                    let old = read.files.iter_mut().find(|old| old.path == new.path);
                    old.into_iter()
                        .for_each(|old| old.text.clone_from(&new.text));
                }
                return Ok(read);
            }
            std::thread::sleep(PAUSE);
        }
        Err(TaskFileError::Restless {
            path: self.path.clone(),
        }
        .into())
    }

    /// Whether a list has all tasks that were known. Somebody may be in the middle of writing one that
    /// has not: what we wrote then would be all that is left of it.
    fn holds_known_tasks(&self, list: &TaskList) -> bool {
        let same = list.tasks.len() == self.known.len();
        let mut both = list.tasks.iter().zip(&self.known);
        if same && both.all(|(task, known)| task.id == known.id) {
            return true;
        }
        let now: HashSet<&str> = list.tasks.iter().map(|task| task.id.as_str()).collect();
        let mut known = self.known.iter();
        known.all(|known| now.contains(known.id.as_str()))
    }

    /// Whether all files were as they had been read.
    fn write(&mut self, read: &ListFiles, changed: &[ListFile]) -> Result<bool, SourceError> {
        for new in changed {
            let old = read.files.iter().find(|old| old.path == new.path);
            let old = old.map_or("", |old| old.text.as_str());
            if !replace_if_unchanged(&read.path_of(new), old, &new.text)? {
                return Ok(false);
            }
            let seen = self.seen.iter_mut().flatten();
            for seen in seen.filter(|seen| seen.path == new.path && seen.text == old) {
                seen.text.clone_from(&new.text);
            }
        }
        Ok(true)
    }
}

impl TaskSource for ListSource {
    fn load(&mut self) -> Result<Loaded, SourceError> {
        // Agents are told what stands under tasks, as it is now.
        self.last = None;
        let read = self.read()?;
        let list = &read.list;
        let (plan, findings) = plan_of(list, self.options, &self.path)?;
        let documents = documents(&self.path, self.format);
        let index = ListIndex::of(list);
        let briefs = list.tasks.iter().map(|task| {
            let brief = index.brief(task, &documents, rule(&self.path));
            (TaskId::from(task.id.as_str()), brief)
        });
        let briefs: HashMap<TaskId, TaskBrief> = briefs.collect();
        let tasks = list.tasks.iter();
        let known = tasks.map(KnownTask::of);
        self.known_before = std::mem::replace(&mut self.known, known.collect());
        let guidance = guidance(list, documents);
        self.seen = Some(read.files.clone());
        self.last = Some(read);
        Ok(Loaded {
            plan,
            briefs,
            guidance,
            findings,
        })
    }

    fn recall(&mut self, known: Vec<KnownTask>, _: BTreeSet<String>) {
        self.known = known;
        self.last = None;
    }

    fn news(&mut self) -> Result<Option<Loaded>, SourceError> {
        let (_, files) =
            files_of(&self.path, self.format).map_err(|error| self.unreadable(&error))?;
        match Some(files) == self.seen {
            true => Ok(None),
            false => self.load().map(Some),
        }
    }

    fn claim(&mut self, task: &TaskId) -> Result<Claim, SourceError> {
        let read = self.read()?;
        let is_done = read.list.task(task).map(ListTask::is_done);
        self.last = Some(read);
        Ok(match is_done {
            Some(true) => Claim::Found(TaskStatus::Done),
            Some(false) => {
                self.say_doing(task, true)?;
                Claim::Taken
            }
            None => Claim::Missing,
        })
    }

    fn set(&mut self, task: &TaskId, status: TaskStatus) -> Result<(), SourceError> {
        match status {
            TaskStatus::Done => self.mark(task, true),
            // Marks of work in progress are other tools' own, unless a person wants ours.
            TaskStatus::InProgress => self.say_doing(task, true),
            _ => self.say_doing(task, false),
        }
    }

    fn reopen(&mut self, task: &TaskId) -> Result<(), SourceError> {
        self.mark(task, false)
    }

    fn forget(&mut self) {
        self.seen = None;
        if !self.known_before.is_empty() {
            self.known = std::mem::take(&mut self.known_before);
        }
    }

    fn refuse_start(&self) -> Result<(), SourceError> {
        let open = match self.options.skip_human {
            true => Vec::new(),
            false => open_checklists(&self.path, self.format),
        };
        match open.into_iter().next() {
            None => Ok(()),
            Some((path, open)) => Err(SourceError::Content {
                path,
                message: format!("{} not ticked", plural(open as u64, "item")),
                hint: "spec-kit has these answered by a person before anything is built: tick them, or pass over \
                       them with --skip-human"
                    .to_owned(),
            }),
        }
    }

    fn notices(&self) -> Vec<String> {
        let is_superpowers = self
            .path
            .components()
            .any(|part| part.as_os_str() == SUPERPOWERS);
        let is_old = modified(&self.path).is_some_and(|age| age > OLD_PLAN);
        let files = self.seen.iter().flatten();
        let is_untouched = files.into_iter().all(|file| !file.text.contains("- [x]"));
        let says = self.format == ListFormat::Plan && is_superpowers && is_old && is_untouched;
        let notice = format!(
            "no box of {} is ticked, and it has not been changed for weeks: superpowers does not tick boxes of \
             work that it has done; if this plan has been done, cancel the run and tick them",
            self.path.display()
        );
        says.then_some(notice).into_iter().collect()
    }

    fn keeps(&self) -> Keeps {
        Keeps::Done
    }

    fn shielded(&self) -> Vec<PathBuf> {
        match self.format {
            // Stories lie beside the file that lists them.
            ListFormat::Bmad => self.path.parent().map(Path::to_owned).into_iter().collect(),
            _ => vec![self.path.clone()],
        }
    }
}

/// The plan of a list, and what is odd in it.
pub(super) fn plan_of(
    list: &TaskList,
    options: ListOptions,
    path: &Path,
) -> Result<(Plan, Vec<Finding>), SourceError> {
    let findings = list.check(options);
    if has_errors(&findings) {
        return Err(SourceError::findings(path, &findings));
    }
    let plan = list.graph(options).plan().map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        SourceError::Content {
            path: path.to_owned(),
            message: lines.join("\n  "),
            hint: format!(
                "see: descartes roadmap check {}",
                descartes_text::shell::path(path)
            ),
        }
    })?;
    Ok((plan, findings))
}

/// A list, to be told to agents task by task.
pub(super) struct ListIndex<'a> {
    list: &'a TaskList,
    places: HashMap<&'a str, usize>,
    delivered: Arc<[Delivered]>,
}

impl<'a> ListIndex<'a> {
    pub(super) fn of(list: &'a TaskList) -> Self {
        let all = list.tasks.iter().enumerate();
        Self {
            list,
            places: all.map(|(at, task)| (task.id.as_str(), at)).collect(),
            delivered: list.tasks.iter().map(delivered).collect(),
        }
    }

    fn task(&self, id: &str) -> Option<Delivered> {
        let at = self.places.get(id)?;
        self.delivered.get(*at).cloned()
    }

    /// A task in words, with the rule that its agent is told about the list.
    pub(super) fn brief(
        &self,
        task: &ListTask,
        documents: &[SpecDocument],
        rule: String,
    ) -> TaskBrief {
        let mut text = TaskText {
            id: task.id.clone(),
            title: task.title.clone(),
            description: task.body.clone(),
            notes: excerpts(task, documents),
            ..TaskText::default()
        };
        text.notes.push(("The task list".to_owned(), rule));
        text.part_of = task.parent.as_deref().and_then(|parent| self.task(parent));
        let depends = task.depends.iter();
        text.dependencies = depends.filter_map(|on| self.task(on)).collect();
        text.blocks = (!task.blocks.is_empty()).then(|| DeliveredBlocks {
            all: Arc::clone(&self.delivered),
            blocks: task.blocks.clone(),
        });
        TaskBrief {
            text,
            gates: self.list.gates_of(task),
            under: (!task.has_own_id)
                .then(|| KnownTask::of(task).under)
                .flatten(),
            trailer: task.closes.clone(),
            ..TaskBrief::default()
        }
    }
}

/// Other tools' instructions order agents to tick boxes.
fn rule(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!(
        "The task comes from {name}. Do only this task. Do not edit that list: the task is \
         marked done in it when your work has been verified."
    )
}

fn delivered(task: &ListTask) -> Delivered {
    Delivered {
        id: task.id.clone(),
        title: task.title.clone(),
        delivered: None,
    }
}

/// What the documents say about this task: its story, its acceptance criteria.
fn excerpts(task: &ListTask, documents: &[SpecDocument]) -> Vec<(String, String)> {
    let named = |name: &str| {
        let found = documents
            .iter()
            .find(|document| document.path.ends_with(name));
        found.map(|document| document.text.as_str())
    };
    let mut notes = Vec::new();
    if let Some(requirements) = named("requirements.md").or_else(|| named("bugfix.md")) {
        let found = criteria(requirements, &task.refers_to);
        if !found.is_empty() {
            notes.push(("Acceptance criteria".to_owned(), found.join("\n")));
        }
    }
    if let Some(spec) = named("spec.md") {
        let stories = task
            .refers_to
            .iter()
            .filter_map(|story| story_section(spec, story));
        notes.extend(stories.map(|story| ("Its user story".to_owned(), story)));
    }
    notes
}

fn guidance(list: &TaskList, documents: Vec<SpecDocument>) -> Vec<SpecFile> {
    let mut files = Vec::new();
    if !list.introduction.trim().is_empty() {
        files.push(SpecFile {
            name: "What the list says about the whole".to_owned(),
            text: list.introduction.clone(),
        });
    }
    files.extend(documents.into_iter().map(|document| SpecFile {
        name: document.path.display().to_string(),
        text: document.text,
    }));
    files
}

/// The lock of the tool that the list belongs to, where it has one: a folder beside the file.
struct ToolLock {
    folder: Option<PathBuf>,
}

impl ToolLock {
    fn take(path: &Path, format: ListFormat) -> Result<Self, SourceError> {
        if format != ListFormat::TaskMaster {
            return Ok(Self { folder: None });
        }
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let folder = PathBuf::from(name);
        for _ in 0..TRIES {
            match std::fs::create_dir(&folder) {
                Ok(()) => {
                    return Ok(Self {
                        folder: Some(folder),
                    });
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    if is_stale(&folder) {
                        drop(std::fs::remove_dir(&folder));
                        continue;
                    }
                }
                // A folder that cannot be written refuses the file as well, with its own words.
                Err(_) => return Ok(Self { folder: None }),
            }
            std::thread::sleep(PAUSE);
        }
        Err(TaskFileError::Busy {
            path: folder,
            waited: PAUSE * TRIES,
        }
        .into())
    }
}

fn is_stale(folder: &Path) -> bool {
    modified(folder).is_some_and(|age| age > STALE_LOCK)
}

/// How long ago something was changed.
fn modified(path: &Path) -> Option<Duration> {
    let changed = std::fs::metadata(path).and_then(|meta| meta.modified());
    let age = changed.map(|time| SystemTime::now().duration_since(time).unwrap_or_default());
    age.ok()
}

impl Drop for ToolLock {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            drop(std::fs::remove_dir(folder));
        }
    }
}
