//! What is done with the files of a fast-forward that failed after git began to write.
//!
//! Git looks at every file before it writes the first: what it wrote to was unchanged, or not there.
//! A file that somebody else wrote at the same moment holds something else than the work does.

/// What is at the place of a file after the fast-forward failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileNow {
    /// No file.
    Nothing,
    /// What the work has there, or the beginning of it.
    Work,
    /// Something else.
    Other,
}

/// A file that a fast-forward changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LandingFile {
    /// Whether the user's commit has it.
    pub is_tracked: bool,
    /// Whether it was there before.
    pub was_there: bool,
    /// Whether it is another than before.
    pub is_touched: bool,
    /// What is there now.
    pub now: FileNow,
}

/// What is done with such a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoLanding {
    /// Nothing: it is as it was.
    Keep,
    /// It goes: there was none.
    Remove,
    /// It is written again as the user's commit has it.
    Restore,
    /// Nothing: somebody else wrote it.
    NotOurs,
}

impl LandingFile {
    /// What puts the file back as it was.
    pub fn undo(self) -> UndoLanding {
        match self {
            Self {
                is_touched: false, ..
            } => UndoLanding::Keep,
            Self {
                now: FileNow::Other,
                ..
            } => UndoLanding::NotOurs,
            Self {
                now: FileNow::Nothing,
                was_there: false,
                ..
            } => UndoLanding::Keep,
            Self {
                now: FileNow::Work,
                was_there: false,
                ..
            } => UndoLanding::Remove,
            Self {
                is_tracked: true, ..
            } => UndoLanding::Restore,
            // Git never writes over a file that it does not know.
            Self {
                is_tracked: false, ..
            } => UndoLanding::NotOurs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_git_wrote_over_unchanged_files_is_put_back() {
        use FileNow::{Nothing, Other, Work};
        use UndoLanding::{Keep, NotOurs, Remove, Restore};
        let (tracked, there, touched) = (true, true, true);
        let table = [
            // A changed file, written whole or in part, or deleted and not written yet.
            ((tracked, there, touched, Work), Restore),
            ((tracked, there, touched, Nothing), Restore),
            // A new file.
            ((!tracked, !there, touched, Work), Remove),
            // One that the user had deleted, and that git brought back.
            ((tracked, !there, touched, Work), Remove),
            // What git did not get to.
            ((tracked, there, !touched, Other), Keep),
            ((tracked, there, !touched, Work), Keep),
            ((!tracked, !there, !touched, Nothing), Keep),
            ((!tracked, there, !touched, Work), Keep),
            ((!tracked, !there, touched, Nothing), Keep),
            // Written by somebody else in the same moment.
            ((tracked, there, touched, Other), NotOurs),
            ((!tracked, !there, touched, Other), NotOurs),
            ((!tracked, there, touched, Work), NotOurs),
            ((!tracked, there, touched, Nothing), NotOurs),
        ];
        for ((is_tracked, was_there, is_touched, now), wanted) in table {
            let file = LandingFile {
                is_tracked,
                was_there,
                is_touched,
                now,
            };
            assert_eq!(file.undo(), wanted, "{file:?}");
        }
    }
}
