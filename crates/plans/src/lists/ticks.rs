//! What is written into the files when a task is done, or no longer is.

use std::borrow::Cow;

use super::model::{ListFile, Mark, TaskList};

impl TaskList {
    /// The files that change when a task is marked, with their new texts. A task with parts is done
    /// with the last of them that must be done.
    pub fn set_done(&self, files: &[ListFile], id: &str, done: bool) -> Option<Vec<ListFile>> {
        let task = self.tasks.iter().find(|task| task.id == id)?;
        let mut marks: Vec<&Mark> = task.marks.iter().collect();
        let mut part = id.to_owned();
        let mut parent = task.parent.as_deref();
        while let Some(whole) = parent.and_then(|parent| self.task(parent)) {
            let others = self.tasks.iter().filter(|other| {
                other.parent.as_deref() == Some(&whole.id) && other.id != part && !other.optional
            });
            if done && others.into_iter().any(|other| !other.is_done()) {
                break;
            }
            marks.extend(&whole.marks);
            part.clone_from(&whole.id);
            parent = whole.parent.as_deref();
        }
        marks.retain(|mark| mark.is_done != done);
        let word = |mark: &Mark| match done {
            true => mark.done.clone(),
            false => mark.open.clone(),
        };
        Some(apply(files, &marks, word))
    }

    /// The files that change when a task is said to be worked on, or no longer is. Formats without a word for
    /// that stay as they are, and so does a task that is done.
    pub fn set_doing(&self, files: &[ListFile], id: &str, doing: bool) -> Option<Vec<ListFile>> {
        let task = self.task(id)?;
        let says_doing = |mark: &Mark| {
            let text = files
                .get(mark.file)
                .and_then(|file| file.text.get(mark.span.clone()));
            text == mark.doing.as_deref()
        };
        let mut marks: Vec<&Mark> = task.marks.iter().collect();
        marks.retain(|mark| mark.doing.is_some() && !mark.is_done && says_doing(mark) != doing);
        let word = |mark: &Mark| match &mark.doing {
            Some(word) if doing => word.clone(),
            _ => mark.open.clone(),
        };
        Some(apply(files, &marks, word))
    }
}

fn apply(
    files: &[ListFile],
    marks: &[&Mark],
    word: impl Fn(&Mark) -> Cow<'static, str>,
) -> Vec<ListFile> {
    let mut changed = Vec::new();
    for (at, file) in files.iter().enumerate() {
        let mut own: Vec<&&Mark> = marks.iter().filter(|mark| mark.file == at).collect();
        // From the end on, so that what comes before stays where it is.
        own.sort_by_key(|mark| std::cmp::Reverse(mark.span.start));
        own.dedup_by_key(|mark| mark.span.start);
        if own.is_empty() {
            continue;
        }
        let mut text = file.text.clone();
        for mark in own {
            if text.get(mark.span.clone()).is_some() {
                text.replace_range(mark.span.clone(), &word(mark));
            }
        }
        changed.push(ListFile {
            path: file.path.clone(),
            text,
        });
    }
    changed
}
