//! Whether a journal has lost iterations that the state file still tells of.
//!
//! Finished iterations are written to the disk before the state file is: a journal that knows less
//! was damaged from outside. Going on with it would use their numbers and their logs again.

/// Who wrote a state file last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAuthor {
    /// descartes, as the journal was.
    Loop,
    /// Somebody changed what descartes wrote from the journal up to this event.
    Editor { seq: u64 },
    /// A person wrote all of it.
    Person,
}

/// How far a journal goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldedEnd {
    /// Its last event.
    pub seq: u64,
    /// Iterations that are finished in it.
    pub iterations: u32,
}

/// Whether the journal lost what a state file with so many iterations tells; none where it has no
/// whole line.
pub fn is_end_lost(journal: Option<FoldedEnd>, iterations: u32, author: FileAuthor) -> bool {
    let Some(journal) = journal else {
        return true;
    };
    let is_whole = match author {
        // Also where the journal has the line that it is of: a repair may have dropped one before it.
        FileAuthor::Loop => false,
        // The number is what somebody wrote.
        FileAuthor::Editor { seq } => seq <= journal.seq,
        FileAuthor::Person => true,
    };
    !is_whole && iterations > journal.iterations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_that_knows_less_than_the_file_has_lost_its_end() {
        use FileAuthor::{Editor, Loop, Person};
        let end = |seq, iterations| Some(FoldedEnd { seq, iterations });
        let table = [
            (end(9, 2), 2, Loop, false),
            (end(9, 2), 3, Loop, true),
            (end(9, 3), 2, Loop, false),
            (end(9, 0), 2, Editor { seq: 9 }, false),
            (end(8, 0), 2, Editor { seq: 9 }, true),
            (end(8, 2), 2, Editor { seq: 9 }, false),
            (end(1, 0), 2, Person, false),
            // Not one line: the file is all there is.
            (None, 2, Loop, true),
            (None, 0, Loop, true),
            (None, 2, Editor { seq: 9 }, true),
            (None, 2, Person, true),
        ];
        for (journal, iterations, author, lost) in table {
            let found = is_end_lost(journal, iterations, author);
            assert_eq!(found, lost, "{journal:?} {iterations} {author:?}");
        }
    }
}
