//! A journal that lost its end, beside a state file that still tells of it: what a person is told.

use std::path::Path;

use descartes_kernel::lost_end::{FileAuthor, FoldedEnd, is_end_lost};
use descartes_kernel::state::LoopState;
use descartes_text::units::plural;

use crate::layout::LoopDir;
use crate::safe_open::quoted;
use crate::state_file::{Loaded, Origin};

/// What is lost, and the way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostEnd {
    /// Iterations that the state file records.
    pub recorded: u32,
    /// What is wrong.
    pub message: String,
    /// What to type.
    pub hint: String,
}

impl LostEnd {
    /// Compares a journal, none where it has no whole line, with the loop's state file at `path`.
    pub fn find(
        dir: &LoopDir,
        journal: Option<&LoopState>,
        path: &Path,
        loaded: &Loaded,
    ) -> Option<Self> {
        let recorded = loaded.state.iteration;
        let author = match loaded.origin {
            Origin::Projected { .. } => FileAuthor::Loop,
            Origin::Edited { seq } => FileAuthor::Editor { seq },
            Origin::ByHand => FileAuthor::Person,
        };
        let end = journal.map(|state| FoldedEnd {
            seq: state.seq,
            iterations: state.iterations,
        });
        if !is_end_lost(end, recorded, author) {
            return None;
        }
        let file = dir.journal();
        let iterations = |count: u32| plural(u64::from(count), "iteration");
        let message = match end {
            Some(end) => format!(
                "{} ends after {}, but the state file records {recorded}: the end of the journal \
                 is missing",
                file.display(),
                iterations(end.iterations),
            ),
            None => format!(
                "the journal {} has no complete line, but the state file records {}",
                file.display(),
                iterations(recorded),
            ),
        };
        let hint = format!(
            "restore the journal, or continue from the state file alone: mv {0} {0}.damaged, \
             then `descartes loop resume --state-file {1}`",
            quoted(dir.path()),
            quoted(path),
        );
        Some(Self {
            recorded,
            message,
            hint,
        })
    }
}
