//! Which files differ from what they were at the last mark.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::folder::{Entry, Folder};
use super::kind::Mode;
use super::oid::Oid;

type ModeAndHash = Option<(Mode, Oid)>;

/// The files that differ, with what they were.
#[derive(Debug, Default)]
pub(super) struct Changes {
    before: HashMap<PathBuf, ModeAndHash>,
    /// Whether there was anything to compare with at the mark.
    begun: bool,
}

impl Changes {
    /// Begins anew, from what is known now.
    pub(super) fn begin(&mut self) {
        self.before.clear();
        self.begun = true;
    }

    /// Something was missed: nothing can be said until the next mark.
    pub(super) fn lose(&mut self) {
        self.before.clear();
        self.begun = false;
    }

    pub(super) fn count(&self) -> Option<u32> {
        self.begun
            .then(|| u32::try_from(self.before.len()).unwrap_or(u32::MAX))
    }

    pub(super) fn note(&mut self, path: PathBuf, was: ModeAndHash, is: ModeAndHash) {
        if was == is {
            return;
        }
        let before = *self.before.entry(path.clone()).or_insert(was);
        if before == is {
            self.before.remove(&path);
        }
    }

    pub(super) fn gone(&mut self, path: PathBuf, entry: &Entry) {
        match entry {
            Entry::Folder(folder) => {
                folder.each(&path, &mut |path, entry| {
                    self.note(path, entry.content(), None)
                });
            }
            other => self.note(path, other.content(), None),
        }
    }

    /// What was known was put together anew.
    pub(super) fn replaced(&mut self, old: &Folder, new: &Folder) {
        let mut all: HashMap<PathBuf, ModeAndHash> = HashMap::new();
        old.each(Path::new(""), &mut |path, entry| {
            all.insert(path, entry.content());
        });
        new.each(Path::new(""), &mut |path, entry| {
            let was = all.remove(&path).flatten();
            self.note(path, was, entry.content());
        });
        for (path, was) in all {
            self.note(path, was, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worktree::oid::{HashFormat, object_id};

    #[test]
    fn a_file_that_is_back_to_what_it_was_is_no_change() {
        let content =
            |bytes: &[u8]| Some((Mode::Plain, object_id(HashFormat::Sha1, "blob", bytes)));
        let mut changes = Changes::default();
        assert_eq!(changes.count(), None, "nothing to compare with yet");
        changes.begin();
        changes.note("a".into(), content(b"1"), content(b"2"));
        changes.note("a".into(), content(b"2"), content(b"3"));
        changes.note("b".into(), None, content(b"1"));
        assert_eq!(changes.count(), Some(2));
        changes.note("a".into(), content(b"3"), content(b"1"));
        changes.note("b".into(), content(b"1"), None);
        assert_eq!(changes.count(), Some(0));
    }
}
