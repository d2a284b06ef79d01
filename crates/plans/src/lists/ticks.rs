//! What is written into the files when a task is done, or no longer is.

use std::borrow::Cow;

use super::model::{ListFile, Mark, TaskList};
use crate::graph::TaskStatus;

impl TaskList {
    /// The files that change when a task is marked, with their new texts. A task with parts is done
    /// with the last of them that must be done.
    pub fn set_done(&self, files: &[ListFile], id: &str, done: bool) -> Option<Vec<ListFile>> {
        let tasks = self.marked_with(id, done)?.into_iter();
        let mut marks: Vec<&Mark> = tasks.flat_map(|at| &self.tasks[at].marks).collect();
        marks.retain(|mark| mark.is_done != done);
        let word = |mark: &Mark| match done {
            true => mark.done.clone(),
            false => mark.open.clone(),
        };
        Some(apply(files, &marks, word))
    }

    /// Takes over that a task was marked done in the files, as if they had been read again: tasks and
    /// marks are as in the new texts. What stands under tasks stays as it was read.
    pub fn was_set_done(&mut self, id: &str) {
        let Some(tasks) = self.marked_with(id, true) else {
            return;
        };
        // Places that grow or shrink: file, begin, and by how much, in the order of the files.
        let mut changed: Vec<(usize, usize, isize)> = Vec::new();
        for mark in tasks.iter().flat_map(|at| &self.tasks[*at].marks) {
            if !mark.is_done {
                let grown = mark.done.len().cast_signed() - mark.span.len().cast_signed();
                changed.push((mark.file, mark.span.start, grown));
            }
        }
        changed.sort_unstable();
        changed.dedup();
        // How far everything behind the first so many of them has moved.
        let mut moved = vec![0_isize];
        moved.extend(changed.iter().scan(0, |sum, (.., grown)| {
            *sum += grown;
            Some(*sum)
        }));
        let marks = self.tasks.iter_mut().flat_map(|task| &mut task.marks);
        for mark in marks {
            let place = (mark.file, mark.span.start);
            let at = changed.partition_point(|(file, start, _)| (*file, *start) < place);
            if changed
                .get(at)
                .is_some_and(|(file, start, _)| (*file, *start) == place)
            {
                mark.span.end = mark.span.start + mark.done.len();
                mark.is_done = true;
            }
            let first = changed.partition_point(|(file, ..)| *file < mark.file);
            let moved = moved[at] - moved[first];
            mark.span.start = mark.span.start.saturating_add_signed(moved);
            mark.span.end = mark.span.end.saturating_add_signed(moved);
        }
        for at in tasks {
            let task = &mut self.tasks[at];
            // One without a mark says nothing.
            if !task.marks.is_empty() {
                task.status = TaskStatus::Done;
            }
        }
    }

    /// A task, with the tasks that it is the last part of.
    fn marked_with(&self, id: &str, done: bool) -> Option<Vec<usize>> {
        let place = |id: &str| self.tasks.iter().position(|task| task.id == id);
        let mut at = place(id)?;
        let mut all = vec![at];
        while let Some(whole) = self.tasks[at].parent.as_deref().and_then(place) {
            let part = &self.tasks[at].id;
            let whole_id = Some(self.tasks[whole].id.as_str());
            let needs_all = self.tasks[whole].optional;
            let others = self
                .tasks
                .iter()
                .filter(|other| other.parent.as_deref() == whole_id && other.id != *part);
            let mut others = others.filter(|other| needs_all || !other.optional);
            if all.contains(&whole) || done && others.any(|other| !other.is_done()) {
                break;
            }
            all.push(whole);
            at = whole;
        }
        Some(all)
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
