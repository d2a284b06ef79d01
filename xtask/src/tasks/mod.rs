//! `cargo xtask tasks`: graphs of tasks at scale, killed, and beside the real `scud`.

mod attempts;
mod edits;
mod git_calls;
mod github;
mod kills;
mod landing;
mod list_tools;
mod scale;
mod schedule;
mod scud;
mod stops;
mod trains;

use crate::lab::build::{self, Faults};
use crate::lab::{self, Measure};

pub use list_tools::install as install_list_tools;
pub use scud::{VERSION as SCUD_VERSION, install, program as scud_program};

const MEASURES: &[Measure] = &[
    Measure {
        name: "task-scale",
        about: "10,000 tasks and more: read, check, plan, change, run (M11)",
        take: scale::take,
    },
    Measure {
        name: "task-schedule",
        about: "makespan against a list schedule (M12)",
        take: schedule::take,
    },
    Measure {
        name: "task-kills",
        about: "32 tasks in parallel worktrees of 5,000 files, killed at random instants (M16, M8)",
        take: kills::take,
    },
    Measure {
        name: "task-stops",
        about: "Ctrl-C twice, SIGTERM, cancel --now at random moments: ended within 5 s, nothing left, nothing lost",
        take: stops::take,
    },
    Measure {
        name: "task-runs",
        about: "quick agents, eight at a time, with and without wave barrier: none blocked by ourselves",
        take: landing::runs,
    },
    Measure {
        name: "merge-queue",
        about: "tasks that wait to be merged: together and one by one",
        take: trains::take,
    },
    Measure {
        name: "git-calls",
        about: "git processes for a task that does nothing, from its preparation to its landing",
        take: git_calls::take,
    },
    Measure {
        name: "task-attempts",
        about: "2,000 attempts in one process: descriptors, threads and memory stay flat",
        take: attempts::take,
    },
    Measure {
        name: "list-edits",
        about: "lists edited while their tasks run, with agents that do not let themselves be ended",
        take: edits::take,
    },
    Measure {
        name: "landing-kills",
        about: "killed while landing, with nested repositories, submodules and a person's commits about",
        take: landing::kills,
    },
    Measure {
        name: "scud",
        about: "the real scud beside a running loop",
        take: scud::take,
    },
    Measure {
        name: "list-tools",
        about: "openspec, task-master, backlog, specify and br after our marks",
        take: list_tools::take,
    },
    Measure {
        name: "gh",
        about: "the real gh against a GitHub of our own: lists, claims, closes, refusals, hangs",
        take: github::take,
    },
];

/// `tasks [--short] [MEASURE…]`.
pub fn run(rest: &[String]) -> Result<(), String> {
    let (form, wanted) = lab::wanted(rest, MEASURES)?;
    let lab = build::lab(form, Faults::Not)?;
    lab::take(&lab, MEASURES, &wanted)
}
