//! Work of proven tasks that is in no commit yet, and that somebody took back.
//!
//! Tasks that work in one tree one after the other leave their work uncommitted there until the
//! wave is over. An agent that wants a clean state (`git clean`, `git stash -u`, `git checkout .`,
//! `git reset --hard`) takes it back for all of them. Such a command takes back all files of a kind:
//! those that were created, or those that were changed. A later task that edits or deletes some
//! files of an earlier one does not.

use std::collections::{BTreeMap, BTreeSet};

/// What a proven task did to a file, compared with the last commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileWork {
    /// It was not there before.
    Created,
    /// It was changed or deleted.
    Changed,
}

/// What a file is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFate {
    /// As the task left it.
    Kept,
    /// As it was before the task.
    Undone,
    /// Something else.
    Edited,
}

/// A file of a proven task that is in no commit yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenFile {
    pub task: String,
    pub path: String,
    pub work: FileWork,
    pub fate: FileFate,
}

/// What became of proven work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UndoneWork {
    /// Files to be put back, by task.
    pub put_back: BTreeMap<String, Vec<String>>,
    /// Files that a task took back of one that it depends on: it may have been its work to do so.
    pub by_dependent: BTreeMap<String, Vec<String>>,
    /// Files that were taken back and then written anew: nobody can put them back.
    pub replaced: BTreeMap<String, Vec<String>>,
}

impl UndoneWork {
    /// Whether nothing was taken back.
    pub fn is_empty(&self) -> bool {
        self.put_back.is_empty() && self.by_dependent.is_empty() && self.replaced.is_empty()
    }
}

/// What was taken back by a task that depends on the tasks `upon`.
pub fn undone_work(files: &[ProvenFile], upon: &BTreeSet<String>) -> UndoneWork {
    let mut groups: BTreeMap<(&str, FileWork), Vec<&ProvenFile>> = BTreeMap::new();
    for file in files {
        let group = groups.entry((&file.task, file.work)).or_default();
        group.push(file);
    }
    let mut undone = UndoneWork::default();
    for ((task, _), group) in groups {
        let any = |fate: FileFate| group.iter().any(|file| file.fate == fate);
        if any(FileFate::Kept) || !any(FileFate::Undone) {
            continue;
        }
        for file in group {
            let list = match file.fate {
                FileFate::Undone if upon.contains(task) => &mut undone.by_dependent,
                FileFate::Undone => &mut undone.put_back,
                FileFate::Kept | FileFate::Edited => &mut undone.replaced,
            };
            let of_task = list.entry(task.to_owned()).or_default();
            of_task.push(file.path.clone());
        }
    }
    undone
}

#[cfg(test)]
mod tests {
    use super::*;
    use FileFate::{Edited, Kept, Undone};
    use FileWork::{Changed, Created};

    type Row = (&'static str, &'static str, FileWork, FileFate);

    fn of(rows: &[Row], upon: &[&str]) -> String {
        let files: Vec<ProvenFile> = rows
            .iter()
            .map(|(task, path, work, fate)| ProvenFile {
                task: (*task).to_owned(),
                path: (*path).to_owned(),
                work: *work,
                fate: *fate,
            })
            .collect();
        let upon = upon.iter().map(|task| (*task).to_owned()).collect();
        let undone = undone_work(&files, &upon);
        let lists = [undone.put_back, undone.by_dependent, undone.replaced];
        let text = lists.map(|list| {
            let rows = list.iter().map(|(task, paths)| (task, paths.join(",")));
            let rows = rows.map(|(task, paths)| format!("{task}:{paths}"));
            rows.collect::<Vec<_>>().join(" ")
        });
        text.join(" / ")
    }

    #[test]
    fn what_is_put_back() {
        let cases: &[(&[Row], &[&str], &str)] = &[
            (&[], &[], " /  / "),
            (&[("a", "new", Created, Kept)], &[], " /  / "),
            // `git clean`: every new file, no changed one.
            (
                &[
                    ("a", "new", Created, Undone),
                    ("a", "lib", Changed, Kept),
                    ("b", "other", Created, Undone),
                ],
                &[],
                "a:new b:other /  / ",
            ),
            // `git checkout .`: every changed file, no new one.
            (
                &[("a", "new", Created, Kept), ("a", "lib", Changed, Undone)],
                &[],
                "a:lib /  / ",
            ),
            // The later task removed one of several, or wrote into one.
            (
                &[("a", "new", Created, Kept), ("a", "tmp", Created, Undone)],
                &[],
                " /  / ",
            ),
            (&[("a", "lib", Changed, Edited)], &[], " /  / "),
            // Taken back, then written anew from the old state.
            (
                &[
                    ("a", "lib", Changed, Edited),
                    ("a", "main", Changed, Undone),
                ],
                &[],
                "a:main /  / a:lib",
            ),
            // Replacing what one depends on may be the task.
            (
                &[("a", "new", Created, Undone), ("b", "x", Created, Undone)],
                &["a"],
                "b:x / a:new / ",
            ),
        ];
        for (rows, upon, expected) in cases {
            assert_eq!(of(rows, upon), *expected, "{rows:?} {upon:?}");
        }
    }
}
