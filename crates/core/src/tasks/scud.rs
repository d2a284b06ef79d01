//! Tasks of a tag in a SCUD project.

use std::path::{Path, PathBuf};

use descartes_kernel::finding::has_errors;
use descartes_kernel::graph::{TaskId, TaskStatus};
use descartes_kernel::scud::{self, EditError, Form, ScudFile, ScudTag, ScudTask};
use descartes_kernel::spec::{Delivered, SpecFile, TaskText};
use descartes_store::task_file::TaskFile;
use jiff::Timestamp;

use super::source::{Claim, Keeps, Loaded, SourceError, TaskBrief, TaskSource};

/// The folder of a SCUD project.
const FOLDER: &str = ".scud";

/// The task file of a tag, looked for from `dir` upwards.
pub fn find_task_file(dir: &Path, tag: &str) -> Option<PathBuf> {
    let project = dir.ancestors().find(|dir| dir.join(FOLDER).is_dir())?;
    let tasks = project.join(FOLDER).join("tasks");
    let names = [
        "tasks.scg".to_owned(),
        "tasks.json".to_owned(),
        format!("{tag}.json"),
    ];
    names
        .into_iter()
        .map(|name| tasks.join(name))
        .find(|file| file.is_file())
}

/// The tag that SCUD has set as the active one.
pub fn active_tag(dir: &Path) -> Option<String> {
    let project = dir.ancestors().find(|dir| dir.join(FOLDER).is_dir())?;
    let text = fs_err::read_to_string(project.join(FOLDER).join("active-tag")).ok()?;
    Some(text.trim().to_owned()).filter(|tag| !tag.is_empty())
}

/// The tasks of a tag.
#[derive(Debug)]
pub struct ScudSource {
    file: TaskFile,
    form: Form,
    tag: String,
}

impl ScudSource {
    /// The tag in a file; `keep` is a folder of our own for copies.
    pub fn new(path: &Path, tag: &str, keep: &Path) -> Result<Self, SourceError> {
        let name = path
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let form = Form::of_file_name(&name).ok_or_else(|| SourceError::Content {
            path: path.to_owned(),
            message: "this is no task file of SCUD".to_owned(),
            hint: "it is called tasks.scg, tasks.json or TAG.json".to_owned(),
        })?;
        Ok(Self {
            file: TaskFile::new(path, keep),
            form,
            tag: tag.to_owned(),
        })
    }

    fn content(&self, message: String) -> SourceError {
        SourceError::Content {
            path: self.file.path().to_owned(),
            message,
            hint: "mend the task file, then start again".to_owned(),
        }
    }

    /// The folder `.scud`.
    fn project(&self) -> Option<&Path> {
        self.file.path().parent()?.parent()
    }

    fn change(
        &self,
        task: &TaskId,
        new: TaskStatus,
        allowed: impl Fn(TaskStatus) -> bool,
    ) -> Result<Claim, SourceError> {
        let changed = self.file.edit(|text| {
            // The status that stands there now is told by an edit that expects another.
            let found = self.status_in(text, task)?;
            if !allowed(found) {
                return Ok((None, Claim::Found(found)));
            }
            let now = Timestamp::now();
            let edit = scud::set_status(text, &self.form, &self.tag, task, Some(found), new, now)?;
            let new = (!edit.changes.is_empty()).then_some(edit.new_text);
            Ok::<_, EditError>((new, Claim::Taken))
        })?;
        changed.map_err(|error| self.content(error.to_string()))
    }

    fn status_in(&self, text: &str, task: &TaskId) -> Result<TaskStatus, EditError> {
        let unreadable = |line, message| EditError::Unreadable { line, message };
        let file =
            scud::parse(text, &self.form).map_err(|error| unreadable(error.line, error.message))?;
        let found = file.tag(&self.tag).and_then(|tag| tag.task(task));
        match found {
            Some(task) => Ok(task.status),
            None => Err(EditError::UnknownTask {
                tag: self.tag.clone(),
                id: task.to_string(),
                near: None,
            }),
        }
    }

    fn guidance(&self) -> Vec<SpecFile> {
        let Some(folder) = self.project().map(|project| project.join("guidance")) else {
            return Vec::new();
        };
        let files = fs_err::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = files
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ext| ext == "md"))
            .collect();
        paths.sort();
        let read = |path: PathBuf| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            let text = fs_err::read_to_string(&path).ok()?;
            Some(SpecFile { name, text })
        };
        paths.into_iter().filter_map(read).collect()
    }
}

impl TaskSource for ScudSource {
    fn load(&mut self) -> Result<Loaded, SourceError> {
        let text = self.file.read()?;
        let file =
            scud::parse(&text, &self.form).map_err(|error| self.content(error.to_string()))?;
        let findings = file.check(&self.tag);
        if has_errors(&findings) {
            return Err(SourceError::findings(
                self.file.path().to_owned(),
                &findings,
            ));
        }
        let (Some(tag), Some(graph)) = (file.tag(&self.tag), file.graph(&self.tag)) else {
            return Err(self.content(format!("there is no tag `{}`", self.tag)));
        };
        let plan = graph.plan().map_err(|problems| {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            self.content(lines.join("\n  "))
        })?;
        let briefs = tag
            .tasks
            .iter()
            .map(|task| (TaskId::from(task.id.as_str()), brief(&file, tag, task)))
            .collect();
        Ok(Loaded {
            plan,
            briefs,
            guidance: self.guidance(),
            findings,
        })
    }

    fn claim(&mut self, task: &TaskId) -> Result<Claim, SourceError> {
        self.change(task, TaskStatus::InProgress, |found| {
            matches!(found, TaskStatus::Pending | TaskStatus::InProgress)
        })
    }

    fn set(&mut self, task: &TaskId, status: TaskStatus) -> Result<(), SourceError> {
        self.change(task, status, |_| true).map(drop)
    }

    fn run_lock(&self) -> Option<PathBuf> {
        let name = format!("{}.lock", self.tag.replace('/', "-"));
        Some(self.project()?.join("swarm").join(name))
    }

    fn keeps(&self) -> Keeps {
        Keeps::Every
    }

    fn shielded(&self) -> Vec<PathBuf> {
        self.project().map(Path::to_owned).into_iter().collect()
    }
}

fn brief(file: &ScudFile, tag: &ScudTag, task: &ScudTask) -> TaskBrief {
    let told = |id: &str| {
        let found = tag.task(id).or_else(|| {
            let (other, local) = id.split_once(':')?;
            file.tag(other)?.task(local)
        });
        Delivered {
            id: id.to_owned(),
            title: found.map_or_else(String::new, |task| task.title.clone()),
            delivered: None,
        }
    };
    let mut text = TaskText::from(task);
    text.part_of = task.parent.as_deref().map(told);
    text.dependencies = task.dependencies.iter().map(|dep| told(&dep.id)).collect();
    TaskBrief {
        text,
        ..TaskBrief::default()
    }
}
