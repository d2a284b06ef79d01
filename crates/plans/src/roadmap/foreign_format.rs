//! Formats that look like a roadmap and mean something else.

use descartes_text::finding::{Finding, Place};

/// A format that looks like a roadmap and means something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignFormat {
    /// `### Task 1: …` with steps as boxes (superpowers, ralphex).
    Plan,
    /// `tasks.md` of spec-kit: ids such as `T001` under phases.
    SpecKit,
    /// `ROADMAP.md` of get-shit-done: each box is a phase.
    Gsd,
    /// `tracks.md` of conductor: each box is a track.
    Conductor,
    /// `tasks.md` of Kiro: numbered boxes with requirements or a dependency graph.
    Kiro,
}

impl ForeignFormat {
    /// What people call such a file.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Plan => "a plan file whose checkboxes are steps under `### Task N` headings",
            Self::SpecKit => "a spec-kit tasks.md",
            Self::Gsd => "a GSD ROADMAP.md, whose checkboxes are phases",
            Self::Conductor => "a conductor tracks.md",
            Self::Kiro => "a Kiro tasks.md",
        }
    }

    /// What would be lost if it were run as a roadmap.
    fn reason(self) -> &'static str {
        match self {
            Self::Plan => "its steps would run in parallel as separate tasks",
            Self::SpecKit => "its phases, `[P]` and `depends on` would be lost",
            Self::Gsd => "its phases would run in parallel",
            Self::Conductor => "its tracks would run in parallel",
            Self::Kiro => "its numbering and order would be lost",
        }
    }

    /// The error that keeps it from being run.
    pub(super) fn finding(self, place: Place) -> Finding {
        let message = format!(
            "this is {}, not a roadmap: {}",
            self.describe(),
            self.reason()
        );
        Finding::error(place, message).hint(
            "write its tasks as `- [ ] **some-id**: what to do` under a heading `## Tasks`, \
             with `  - depends: other-id` where the order matters",
        )
    }
}
