//! What agents do to the repository that all worktrees share, and to what git reads in their own.

use std::path::{Path, PathBuf};

use super::{Done, Trees};
use crate::host::git_of;
use crate::tasks::place::{Fresh, Work};
use crate::tasks::shared_settings::SharedSettings;
use crate::worktree::pipes::{is_pipe, pipes};

/// Files of the repository that git opens for every worktree, whatever they are.
const OPENED: [&str; 2] = ["info/exclude", "info/attributes"];

impl Trees {
    /// Writes down the settings that keep git from working, or reads what an earlier host wrote.
    pub(super) fn note_settings(&self, fresh: Fresh) -> Done<()> {
        let note = self.control_folder().join("shared-settings");
        let (git, common) = (git_of(&self.settings), self.common_dir()?);
        let begin = || SharedSettings::begin(git, &common, &note, fresh == Fresh::Yes);
        self.shared.get_or_init(begin);
        Ok(())
    }

    /// Says which of them are others now.
    pub(super) fn tell_settings(&self) {
        let news = self.shared.get().map(SharedSettings::news);
        for message in news.unwrap_or_default() {
            self.user.locks.tell(message);
        }
    }

    /// Removes named pipes that git would wait for forever; they hold nothing. Gives what the agent has
    /// to know of those in its own tree.
    pub(super) fn remove_pipes(&self, dir: &Path, work: &Work) -> Option<String> {
        let remove = |paths: Vec<PathBuf>, below: &Path| -> Vec<String> {
            let gone = |path: &PathBuf| fs_err::remove_file(path).is_ok();
            let gone = paths.into_iter().filter(gone);
            let name = |path: PathBuf| path.strip_prefix(below).map(Path::to_owned).unwrap_or(path);
            gone.map(|path| name(path).display().to_string()).collect()
        };
        let common = self.common_dir().ok();
        let shared = common.iter().flat_map(|common| {
            let paths = OPENED.iter().map(|name| common.join(name));
            paths.filter(|path| is_pipe(path))
        });
        let shared = remove(shared.collect(), Path::new(""));
        let own = remove(pipes(dir), dir);
        let all = [&own[..], &shared].concat().join(", ");
        if !all.is_empty() {
            self.user.locks.tell(format!(
                "task {} left a named pipe where git expects a file, and would wait for it forever: \
                 {all}: removed",
                work.id
            ));
        }
        (!own.is_empty()).then(|| {
            format!(
                "{} was a named pipe: git expects an ordinary file there, and would wait forever. It \
                 was removed; create an ordinary file if one is needed",
                own.join(", ")
            )
        })
    }
}
