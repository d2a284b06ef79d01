//! What is done with the files of a fast-forward that git refuses, since an earlier one was cut short.
//!
//! A git that is killed leaves some files as the work has them, one of them half written, and an index
//! that does not know. It deletes before it writes, so that a file may also be a folder by then, or a
//! folder a file.

/// What is at the place of a file of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftFile {
    /// Nothing, also where one of its folders is none.
    Nothing,
    /// A folder.
    Folder,
    /// What the user's commit has there.
    Old,
    /// What the work has there.
    New,
    /// The beginning of what an earlier fast-forward was to write.
    Part,
    /// Something else.
    Other,
}

/// What a commit has under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitEntry {
    /// Nothing.
    Nothing,
    /// A file or a link.
    File,
    /// A commit of another repository, which is a folder in the checkout.
    Submodule,
}

/// A file that the work changes, and whose entry in the user's index is not the work's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HalfLandedFile {
    /// Whether the index has it as the user's commit does.
    pub is_staged_old: bool,
    pub old: CommitEntry,
    pub new: CommitEntry,
    /// Whether the user's commit has a folder there.
    pub was_folder: bool,
    /// Whether an earlier fast-forward was cut short.
    pub is_after_cut: bool,
    pub now: LeftFile,
}

/// What is done with it before the fast-forward is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MendLanding {
    /// Nothing: git deals with it.
    Keep,
    /// It is as the work has it: the index is told.
    Stage,
    /// It is half written: it goes, and git writes it again.
    Rewrite,
    /// It is a person's, and in the way.
    Refuse,
}

impl HalfLandedFile {
    /// What makes room for it.
    pub fn mend(self) -> MendLanding {
        use CommitEntry::Submodule;
        if !self.is_staged_old {
            return MendLanding::Refuse;
        }
        match (self.now, self.new) {
            (LeftFile::Old, _) => MendLanding::Keep,
            // Whatever the index says, git does not delete files below one that is none of its folders.
            (LeftFile::New, _) if self.was_folder => match self.is_after_cut {
                true => MendLanding::Rewrite,
                false => MendLanding::Refuse,
            },
            (LeftFile::New, _) => MendLanding::Stage,
            (LeftFile::Part, _) => MendLanding::Rewrite,
            (LeftFile::Other, _) => MendLanding::Refuse,
            // Deleted by git or a person, or not written yet.
            (LeftFile::Nothing, _) => MendLanding::Keep,
            // Gone, as the work has it; of what is in the folder each file speaks for itself.
            (LeftFile::Folder, CommitEntry::Nothing) => MendLanding::Stage,
            (LeftFile::Folder, Submodule) if self.old == Submodule => MendLanding::Keep,
            (LeftFile::Folder, Submodule) => MendLanding::Stage,
            // A folder that becomes a file: git deletes what it knows in there, and refuses for the rest.
            (LeftFile::Folder, CommitEntry::File) => match self.old {
                CommitEntry::Nothing | Submodule => MendLanding::Keep,
                CommitEntry::File => MendLanding::Refuse,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_git_left_is_told_from_a_persons_files() {
        use CommitEntry::{File, Nothing as No, Submodule};
        use LeftFile::{Folder, New, Nothing, Old, Other, Part};
        use MendLanding::{Keep, Refuse, Rewrite, Stage};
        let table = [
            // A changed file: written, not yet, half, deleted before it is written.
            ((File, File, New), Stage),
            ((File, File, Old), Keep),
            ((File, File, Part), Rewrite),
            ((File, File, Nothing), Keep),
            // A new one.
            ((No, File, New), Stage),
            ((No, File, Part), Rewrite),
            ((No, File, Nothing), Keep),
            // A deleted one: gone, also since there is a folder now; or still there.
            ((File, No, Nothing), Keep),
            ((File, No, Folder), Stage),
            ((File, No, Old), Keep),
            // A folder becomes a file, and git was still deleting.
            ((No, File, Folder), Keep),
            // Submodules are folders before and after.
            ((No, Submodule, Folder), Stage),
            ((File, Submodule, Folder), Stage),
            ((Submodule, Submodule, Folder), Keep),
            ((Submodule, No, Folder), Stage),
            ((Submodule, File, Folder), Keep),
            // A person's.
            ((File, File, Folder), Refuse),
            ((File, File, Other), Refuse),
            ((No, File, Other), Refuse),
            ((File, No, Other), Refuse),
            ((File, Submodule, Other), Refuse),
        ];
        for ((old, new, now), wanted) in table {
            let file = HalfLandedFile {
                is_staged_old: true,
                old,
                new,
                was_folder: false,
                is_after_cut: false,
                now,
            };
            assert_eq!(file.mend(), wanted, "{file:?}");
            let is_staged_old = false;
            let staged = HalfLandedFile {
                is_staged_old,
                ..file
            };
            assert_eq!(staged.mend(), Refuse, "{staged:?}");
        }
        // A file that took the place of a folder, which git or a person deleted.
        for (is_after_cut, wanted) in [(true, Rewrite), (false, Refuse)] {
            let file = HalfLandedFile {
                is_staged_old: true,
                old: No,
                new: File,
                was_folder: true,
                is_after_cut,
                now: New,
            };
            assert_eq!(file.mend(), wanted, "{file:?}");
        }
    }
}
