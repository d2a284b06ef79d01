//! Files in the integration worktree that git ignores.
//!
//! What setups and gates left there stays, so that the tree stays warm. What anybody else put
//! there, an agent or a hook, is in no commit and would make a gate green that is red at the
//! user's: it is removed before the gates run.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{MutexGuard, PoisonError};

use super::files::remove_all;
use super::integration::Integration;
use super::{Done, Trees};

/// One state of a file: its number, its size, and when it and its record were changed.
type FileStamp = (u64, u64, (i64, i64), (i64, i64));

/// Ignored files, as setups and gates left them.
pub(super) type Leftovers = BTreeMap<PathBuf, FileStamp>;

impl Trees {
    fn leftovers(&self) -> MutexGuard<'_, Option<Leftovers>> {
        self.leftovers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on these files, and no others, are ours.
    pub(super) fn note_leftovers(&self, place: &Integration) {
        let files = place.ignored_files(self).unwrap_or_else(|_| {
            // Where git does not answer none are, and what a setup made is made again.
            drop(fs_err::remove_file(self.setup_mark("merged")));
            Leftovers::new()
        });
        *self.leftovers() = Some(files);
    }
}

impl Integration {
    fn ignored_files(&self, trees: &Trees) -> Done<Leftovers> {
        let [one, two, three] = trees.exclude_args();
        let args = [
            "ls-files",
            "-z",
            "--others",
            "--ignored",
            &one,
            &two,
            &three,
        ];
        let paths = self.control.paths(&args)?.into_iter();
        let marked = paths.filter_map(|path| {
            let meta = self.control.dir.join(&path).symlink_metadata().ok()?;
            let mark = (
                meta.ino(),
                meta.size(),
                (meta.mtime(), meta.mtime_nsec()),
                (meta.ctime(), meta.ctime_nsec()),
            );
            Some((path, mark))
        });
        Ok(marked.collect())
    }

    /// Removes ignored files that are not as a setup or a gate left them.
    pub(super) fn expel(&self, trees: &Trees) -> Done<()> {
        let Some(known) = trees.leftovers().clone() else {
            return Ok(());
        };
        let mut changed = false;
        for (path, mark) in self.ignored_files(trees)? {
            let before = known.get(&path);
            if before == Some(&mark) {
                continue;
            }
            changed |= before.is_some();
            let path = self.control.dir.join(path);
            remove_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        if changed {
            // A setup may have made them.
            drop(fs_err::remove_file(trees.setup_mark("merged")));
        }
        Ok(())
    }
}
