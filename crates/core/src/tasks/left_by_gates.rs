//! What gates leave where the agents work: it is no work of theirs, and in no commit of ours.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::content_mark::ContentMark;

/// Files that gates left and no agent touched since.
#[derive(Debug, Default)]
pub(super) struct LeftByGates {
    files: BTreeMap<PathBuf, ContentMark>,
    /// What had changed when the agent ended whose gates run.
    at_agents_end: Option<BTreeSet<PathBuf>>,
    /// Where it is written down.
    note: Option<PathBuf>,
}

impl LeftByGates {
    /// From now on it is kept there; what an earlier host wrote down is taken up.
    pub(super) fn keep_in(&mut self, folder: &Path) -> std::io::Result<()> {
        let note = folder.join("left-by-gates.json");
        match fs_err::read(&note) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            text => self.files = serde_json::from_slice(&text?)?,
        }
        self.note = Some(note);
        Ok(())
    }

    /// Whether an agent has ended, and its gates may have run.
    pub(super) fn is_open(&self) -> bool {
        self.at_agents_end.is_some()
    }

    /// What is to be left out of a commit.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.files.keys().cloned().collect()
    }

    /// Gates are about to run; these files below `top` have changed by then.
    pub(super) fn agent_ended(
        &mut self,
        top: &Path,
        changed: BTreeSet<PathBuf>,
    ) -> std::io::Result<()> {
        let mut files = BTreeMap::new();
        for (path, mark) in std::mem::take(&mut self.files) {
            // Another content is the agent's.
            if mark.is_at(&path)? {
                files.insert(path, mark);
            }
        }
        self.files = files;
        let changed = changed.into_iter().map(|path| top.join(path));
        self.at_agents_end = Some(changed.collect());
        self.write()
    }

    /// Gates have run; what they left that was not there before, by name.
    pub(super) fn gates_ended(
        &mut self,
        top: &Path,
        changed: BTreeSet<PathBuf>,
    ) -> std::io::Result<Vec<String>> {
        let before = self.at_agents_end.take().unwrap_or_default();
        let mut new = Vec::new();
        for name in changed {
            let path = top.join(&name);
            if before.contains(&path) && !self.files.contains_key(&path) {
                continue;
            }
            let mark = ContentMark::of(&path)?;
            if self.files.insert(path, mark).is_none() {
                new.push(name.display().to_string());
            }
        }
        self.write()?;
        Ok(new)
    }

    fn write(&self) -> std::io::Result<()> {
        let Some(note) = &self.note else {
            return Ok(());
        };
        if let Some(folder) = note.parent() {
            fs_err::create_dir_all(folder)?;
        }
        let new = note.with_extension("new");
        fs_err::write(&new, serde_json::to_vec(&self.files)?)?;
        fs_err::rename(new, note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gates_left_is_apart_until_an_agent_changes_it() {
        let dir = tempfile::tempdir().unwrap();
        let (top, folder) = (dir.path().join("top"), dir.path().join("loop"));
        fs_err::create_dir_all(&top).unwrap();
        let write = |name: &str, text: &str| fs_err::write(top.join(name), text).unwrap();
        let names = |names: &[&str]| names.iter().map(PathBuf::from).collect::<BTreeSet<_>>();
        let mut left = LeftByGates::default();
        left.keep_in(&folder).unwrap();
        write("work", "x");
        left.agent_ended(&top, names(&["work"])).unwrap();
        write("report", "one");
        write("other", "one");
        let new = left.gates_ended(&top, names(&["work", "report", "other"]));
        assert_eq!(new.unwrap(), ["other", "report"]);
        // Another host goes on, and the next agent takes one of them for its own.
        let mut left = LeftByGates::default();
        left.keep_in(&folder).unwrap();
        write("other", "two");
        left.agent_ended(&top, names(&["work", "report", "other"]))
            .unwrap();
        assert_eq!(left.paths(), [top.join("report")]);
        write("report", "two");
        let new = left.gates_ended(&top, names(&["work", "report", "other"]));
        assert_eq!(new.unwrap(), [""; 0]);
        left.agent_ended(&top, names(&["work", "report", "other"]))
            .unwrap();
        assert_eq!(left.paths(), [top.join("report")]);
    }
}
