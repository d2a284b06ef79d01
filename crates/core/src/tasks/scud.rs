//! Tasks of a tag in a SCUD project.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use descartes_plans::graph::{TaskId, TaskStatus};
use descartes_plans::scud::{self, EditError, Form, ScudFile, ScudTask};
use descartes_plans::spec::{Delivered, SpecFile, TaskText};
use descartes_store::safe_open::{self, Options, read_user_text};
use descartes_store::task_file::TaskFile;
use descartes_text::finding::has_errors;
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

/// The tags that have a file of their own, `TAG.json`, looked for from `dir` upwards.
pub fn tags_of_files(dir: &Path) -> Vec<String> {
    let project = dir.ancestors().find(|dir| dir.join(FOLDER).is_dir());
    let Some(tasks) = project.map(|dir| dir.join(FOLDER).join("tasks")) else {
        return Vec::new();
    };
    let entries = fs_err::read_dir(tasks).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let tag = |name: String| name.strip_suffix(".json").map(str::to_owned);
    let mut tags: Vec<String> = names.filter_map(tag).collect();
    tags.retain(|tag| !tag.is_empty() && tag != "tasks" && tag != "workflow-state");
    tags.sort();
    tags
}

/// The tag that SCUD has set as the active one.
pub fn active_tag(dir: &Path) -> Option<String> {
    let project = dir.ancestors().find(|dir| dir.join(FOLDER).is_dir())?;
    let text = read_user_text(&project.join(FOLDER).join("active-tag")).ok()?;
    Some(text.trim().to_owned()).filter(|tag| !tag.is_empty())
}

/// The tasks of a tag.
#[derive(Debug)]
pub struct ScudSource {
    file: TaskFile,
    form: Form,
    tag: String,
    /// The text as it was last read or written here, and the guidance beside it.
    known: Option<(String, Vec<SpecFile>)>,
}

impl ScudSource {
    /// The tag in a file; `keep` is a folder of our own for copies.
    pub fn new(path: &Path, tag: &str, keep: &Path) -> Result<Self, SourceError> {
        let name = path
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let form = Form::of_file_name(&name).ok_or_else(|| SourceError::Content {
            path: path.to_owned(),
            message: "this is not a SCUD task file".to_owned(),
            hint: "SCUD task files are named tasks.scg, tasks.json or TAG.json".to_owned(),
        })?;
        Ok(Self {
            file: TaskFile::new(path, keep),
            form,
            tag: tag.to_owned(),
            known: None,
        })
    }

    fn content(&self, message: String) -> SourceError {
        SourceError::Content {
            path: self.file.path().to_owned(),
            message,
            hint: "fix the task file, then start again".to_owned(),
        }
    }

    /// The folder `.scud`.
    fn project(&self) -> Option<&Path> {
        self.file.path().parent()?.parent()
    }

    fn change(
        &mut self,
        task: &TaskId,
        new: TaskStatus,
        allowed: impl Fn(TaskStatus) -> bool,
    ) -> Result<Claim, SourceError> {
        let mut ours = None;
        let known = self.known.as_ref().map(|(text, _)| text);
        let changed = self.file.edit(|text| {
            let now = Timestamp::now();
            let edit = scud::set_status(text, &self.form, &self.tag, task, None, new, now)?;
            // The task itself stands first; it is not there at all where it is so already.
            let found = edit.changes.iter().find(|change| change.id == **task);
            let found = found.map_or(new, |change| change.from);
            if !allowed(found) {
                return Ok((None, Claim::Found(found)));
            }
            if edit.changes.is_empty() {
                return Ok((None, Claim::Taken));
            }
            if known.is_some_and(|known| known == text) {
                ours = Some(edit.new_text.clone());
            }
            Ok::<_, EditError>((Some(edit.new_text), Claim::Taken))
        })?;
        if let (Some((known, _)), Some(ours)) = (&mut self.known, ours) {
            *known = ours;
        }
        changed.map_err(|error| match error {
            EditError::UnknownTask { .. } => SourceError::NoTask {
                path: self.file.path().to_owned(),
                task: task.clone(),
            },
            error => self.content(error.to_string()),
        })
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
            let text = read_user_text(&path).ok()?;
            Some(SpecFile { name, text })
        };
        paths.into_iter().filter_map(read).collect()
    }
}

impl TaskSource for ScudSource {
    fn load(&mut self) -> Result<Loaded, SourceError> {
        let text = self.file.read()?;
        let guidance = self.guidance();
        self.known = Some((text.clone(), guidance.clone()));
        let file =
            scud::parse(&text, &self.form).map_err(|error| self.content(error.to_string()))?;
        let (findings, graph) = file.checked(&self.tag);
        if has_errors(&findings) {
            return Err(SourceError::findings(self.file.path(), &findings));
        }
        let Some((tag, graph)) = file.tag(&self.tag).zip(graph) else {
            return Err(self.content(format!("there is no tag `{}`", self.tag)));
        };
        let plan = graph.plan().map_err(|problems| {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            self.content(lines.join("\n  "))
        })?;
        let own: HashMap<&str, &ScudTask> = tag
            .tasks
            .iter()
            .map(|task| (task.id.as_str(), task))
            .collect();
        let brief = |task: &ScudTask| {
            let mut brief = brief(&file, &own, task);
            if let Some(kind) = &task.agent_type {
                take_template(self.project(), kind, &mut brief);
            }
            (TaskId::from(task.id.as_str()), brief)
        };
        let briefs = tag.tasks.iter().map(brief).collect();
        Ok(Loaded {
            plan,
            briefs,
            guidance,
            findings,
        })
    }

    fn news(&mut self) -> Result<Option<Loaded>, SourceError> {
        let now = Some((self.file.read()?, self.guidance()));
        match now == self.known {
            true => Ok(None),
            false => self.load().map(Some),
        }
    }

    fn note(&mut self, task: &TaskId, text: &str) {
        if let Some(project) = self.project() {
            append_log(project, task, text);
        }
    }

    fn notices(&self) -> Vec<String> {
        let hook = self.project().and_then(stop_hook);
        let words = |file: PathBuf| {
            format!(
                "{} contains SCUD's Stop hook, which marks a task done whenever Claude stops: \
                 agents are started without SCUD_TASK_ID, and statuses are corrected after each",
                file.display()
            )
        };
        hook.map(words).into_iter().collect()
    }

    fn claim(&mut self, task: &TaskId) -> Result<Claim, SourceError> {
        let claim = self.change(task, TaskStatus::InProgress, |found| {
            matches!(found, TaskStatus::Pending | TaskStatus::InProgress)
        });
        match claim {
            Err(SourceError::NoTask { .. }) => Ok(Claim::Missing),
            claim => claim,
        }
    }

    fn set(&mut self, task: &TaskId, status: TaskStatus) -> Result<(), SourceError> {
        self.change(task, status, |_| true).map(drop)
    }

    fn reopen(&mut self, task: &TaskId) -> Result<(), SourceError> {
        self.set(task, TaskStatus::Pending)
    }

    fn forget(&mut self) {
        self.known = None;
    }

    fn run_lock(&self) -> Option<PathBuf> {
        let project = self.project()?;
        let tag = self.tag.replace('/', "-");
        // In a linked worktree SCUD itself has a lock for each.
        let root = project.parent()?;
        let linked = root.join(".git").is_file();
        let name = match root.file_name().filter(|_| linked) {
            Some(name) => format!("{tag}-{}.lock", name.to_string_lossy()),
            None => format!("{tag}.lock"),
        };
        let folder = project.join("swarm");
        keep_out_of_git(&folder);
        Some(folder.join(name))
    }

    fn keeps(&self) -> Keeps {
        Keeps::Every
    }

    fn shielded(&self) -> Vec<PathBuf> {
        self.project().map(Path::to_owned).into_iter().collect()
    }
}

/// A line in SCUD's own log of a task. It is goodwill: where it cannot be written, nothing is lost.
fn append_log(project: &Path, task: &TaskId, text: &str) {
    use std::io::Write;
    let folder = project.join("logs");
    let path = folder.join(format!("{}.log", task.replace('/', "-")));
    let at = Timestamp::now().strftime("%Y-%m-%d %H:%M:%S");
    keep_out_of_git(&folder);
    let write = || -> std::io::Result<()> {
        fs_err::create_dir_all(&folder)?;
        let path = safe_open::link_free(&path)?;
        let mut file = safe_open::open(Options::new().append().create(), &path)?;
        file.write_all(format!("--- {at} ---\n{text}\n\n").as_bytes())
    };
    drop(write());
}

/// A folder of SCUD's that is not there yet is made so that git passes it over: what stands in it is of one run.
/// Where it cannot be made, whoever writes into it says so.
fn keep_out_of_git(folder: &Path) {
    if safe_open::is_there(folder) {
        return;
    }
    let make = || -> std::io::Result<()> {
        fs_err::create_dir_all(folder)?;
        let path = safe_open::link_free(&folder.join(".gitignore"))?;
        let mut file = safe_open::open(Options::new().append().create_new(), &path)?;
        std::io::Write::write_all(&mut file, b"*\n")
    };
    drop(make());
}

/// The settings of Claude Code that hold SCUD's Stop hook.
fn stop_hook(project: &Path) -> Option<PathBuf> {
    let claude = project.parent()?.join(".claude");
    let files = ["settings.local.json", "settings.json"].map(|name| claude.join(name));
    files.into_iter().find(|file| {
        let text = read_user_text(file).unwrap_or_default();
        let settings: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let stop = settings.pointer("/hooks/Stop").map(ToString::to_string);
        stop.is_some_and(|stop| stop.contains("scud"))
    })
}

/// What the project says about agents of a kind. The model that stands there is one of SCUD's own
/// harnesses, and is left alone.
fn take_template(project: Option<&Path>, kind: &str, brief: &mut TaskBrief) {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let Some(project) = project.filter(|_| kind.chars().all(is_name)) else {
        return;
    };
    let path = project.join("agents").join(format!("{kind}.toml"));
    let Ok(text) = read_user_text(&path) else {
        return;
    };
    if let Some(role) = scud::role(&text) {
        let role = role
            .replace("{task.id}", &brief.text.id)
            .replace("{task.title}", &brief.text.title);
        brief.text.notes.push(("Your role".to_owned(), role));
    }
}

fn brief(file: &ScudFile, own: &HashMap<&str, &ScudTask>, task: &ScudTask) -> TaskBrief {
    let told = |id: &str| {
        let found = own.get(id).copied().or_else(|| {
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
