//! The files of a list, as they are now.

use std::io;
use std::path::{Path, PathBuf};

use descartes_plans::lists::{
    self, KnownTask, ListContext, ListFile, ListFormat, ListOptions, TaskList,
};
use descartes_store::safe_open::read_user_text;

/// A folder with more files than this is no list of tasks. It is refused: a part of it would look like all.
const MOST_FILES: usize = 20_000;

/// A list that was read, with its files.
#[derive(Clone, Debug)]
pub struct ListFiles {
    /// The list.
    pub list: TaskList,
    /// Its files; paths as seen from [`ListFiles::folder`].
    pub files: Vec<ListFile>,
    /// The folder that they lie in.
    pub folder: PathBuf,
    /// The tool's config, and tasks that its ledger calls done.
    config: Option<String>,
    ledger: Vec<String>,
}

impl ListFiles {
    /// Where one of its files lies.
    pub fn path_of(&self, file: &ListFile) -> PathBuf {
        self.folder.join(&file.path)
    }
}

/// The folder of a list, and its files as they are now.
pub(super) fn files_of(path: &Path, format: ListFormat) -> io::Result<(PathBuf, Vec<ListFile>)> {
    if format.is_folder() {
        return folder_files(path, format);
    }
    let text = read_user_text(path)?;
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let name = path.file_name().unwrap_or_default();
    let file = ListFile {
        path: name.to_string_lossy().into_owned(),
        text,
    };
    Ok((folder, vec![file]))
}

/// Everything that a list is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListInput {
    folder: PathBuf,
    files: Vec<ListFile>,
    config: Option<String>,
    ledger: Vec<String>,
}

impl ListInput {
    /// As it is now.
    pub(super) fn of(path: &Path, format: ListFormat) -> io::Result<Self> {
        let (folder, files) = files_of(path, format)?;
        Ok(Self {
            folder,
            files,
            config: config_of(path, format),
            ledger: ledger_of(path, format),
        })
    }

    /// Whether a list that was read says the same.
    pub(super) fn is_of(&self, read: &ListFiles) -> bool {
        (&self.files, &self.config, &self.ledger) == (&read.files, &read.config, &read.ledger)
    }

    /// Reads it.
    pub(super) fn read(
        self,
        format: ListFormat,
        options: ListOptions,
        tag: Option<&str>,
        known: &[KnownTask],
    ) -> ListFiles {
        let context = ListContext {
            tag: tag.map(str::to_owned),
            config: self.config,
            ledger: self.ledger,
            known,
            ..ListContext::default()
        };
        let list = lists::read(format, &self.files, &context, options);
        ListFiles {
            list,
            files: self.files,
            folder: self.folder,
            config: context.config,
            ledger: context.ledger,
        }
    }
}

/// Reads a list from its files.
pub fn read_list(
    path: &Path,
    format: ListFormat,
    options: ListOptions,
    tag: Option<&str>,
    known: &[KnownTask],
) -> io::Result<ListFiles> {
    Ok(ListInput::of(path, format)?.read(format, options, tag, known))
}

fn folder_files(path: &Path, format: ListFormat) -> io::Result<(PathBuf, Vec<ListFile>)> {
    match format {
        ListFormat::Backlog => {
            let mut files = markdown_in(path, "tasks/", |_| true)?;
            if path.join("completed").is_dir() {
                files.extend(markdown_in(path, "completed/", |_| true)?);
            }
            Ok((path.to_owned(), files))
        }
        ListFormat::Bmad => {
            let name = path.file_name().unwrap_or_default();
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            let mut files = vec![ListFile {
                path: name.to_string_lossy().into_owned(),
                text: read_user_text(path)?,
            }];
            files.extend(markdown_in(&folder, "", |_| true)?);
            Ok((folder, files))
        }
        ListFormat::Ccpm => {
            let is_task = |stem: &str| stem.bytes().all(|byte| byte.is_ascii_digit());
            Ok((path.to_owned(), markdown_in(path, "", is_task)?))
        }
        _ => Ok((path.to_owned(), markdown_in(path, "", |_| true)?)),
    }
}

/// The Markdown files of a folder, in the order of their names.
fn markdown_in(
    folder: &Path,
    under: &str,
    is_task: impl Fn(&str) -> bool,
) -> io::Result<Vec<ListFile>> {
    let mut names: Vec<String> = Vec::new();
    for entry in fs_err::read_dir(folder.join(under))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let stem = name.strip_suffix(".md");
        if stem.is_some_and(|stem| !name.starts_with('.') && is_task(stem)) {
            names.push(name);
        }
    }
    if names.len() > MOST_FILES {
        return Err(io::Error::other(format!(
            "{} Markdown files in one folder: at most {MOST_FILES} are read; name a file, or move what is done to another folder",
            names.len()
        )));
    }
    names.sort();
    let mut files = Vec::new();
    for name in names {
        let path = format!("{under}{name}");
        let text = read_user_text(&folder.join(&path))?;
        files.push(ListFile { path, text });
    }
    Ok(files)
}

/// The config of the tool that a list belongs to.
pub(crate) fn config_of(path: &Path, format: ListFormat) -> Option<String> {
    if format != ListFormat::Backlog {
        return None;
    }
    let beside = path.parent().map(|above| above.join("backlog.config.yml"));
    let inside = [path.join("config.yml"), path.join("config.yaml")];
    let mut all = inside.into_iter().chain(beside);
    all.find_map(|file| read_user_text(&file).ok())
}

/// Tasks of a plan that superpowers' ledger calls complete.
fn ledger_of(path: &Path, format: ListFormat) -> Vec<String> {
    if format != ListFormat::Plan {
        return Vec::new();
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut done = Vec::new();
    for above in path.ancestors().skip(1).take(5) {
        let Ok(entries) = fs_err::read_dir(above.join(".superpowers/sdd")) else {
            continue;
        };
        for entry in entries.flatten() {
            let ledger = read_user_text(&entry.path().join("progress.md"));
            let ledger = ledger.unwrap_or_default();
            if ledger
                .lines()
                .next()
                .is_some_and(|line| line.trim_end().ends_with(&*name))
            {
                done.extend(lists::ledger_done(&ledger));
            }
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_too_many_files_is_refused_and_not_read_in_part() {
        let dir = tempfile::tempdir().unwrap();
        let tasks = dir.path().join("tasks");
        fs_err::create_dir(&tasks).unwrap();
        let add = |number: usize| fs_err::write(tasks.join(format!("{number}.md")), "").unwrap();
        (0..MOST_FILES).for_each(add);
        let (_, files) = files_of(dir.path(), ListFormat::Backlog).unwrap();
        assert_eq!(files.len(), MOST_FILES);
        add(MOST_FILES);
        let error = files_of(dir.path(), ListFormat::Backlog).unwrap_err();
        assert!(
            error.to_string().starts_with("20001 Markdown files"),
            "{error}"
        );
    }
}
