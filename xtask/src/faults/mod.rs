//! `cargo xtask faults`: everything that can go wrong, tried; the last number is what was lost.

pub mod bombs;
pub mod cases;
pub mod clocks;
pub mod damage;
pub mod gates;
pub mod hostile;
pub mod inputs;
pub mod kills;
pub mod orphans;
pub mod recovery;
pub mod sandboxed;
pub mod slow;
pub mod storage;
pub mod writes;

use crate::lab::build::{self, Faults};
use crate::lab::{self, Measure};

const CAMPAIGNS: &[Measure] = &[
    Measure {
        name: "orphans",
        about: "8 shapes of agents, 7 endings (M7)",
        take: orphans::take,
    },
    Measure {
        name: "bombs",
        about: "fork bombs that still grow when they are stopped (M7)",
        take: bombs::take,
    },
    Measure {
        name: "kills",
        about: "SIGKILL at random instants (M8)",
        take: kills::take,
    },
    Measure {
        name: "writes",
        about: "killed, torn and failing at every write (M8, M9)",
        take: writes::take,
    },
    Measure {
        name: "storage",
        about: "full disks, read-only folders, agents that clean up too much (M9)",
        take: storage::take,
    },
    Measure {
        name: "slow",
        about: "every sync takes 200 ms (M9)",
        take: slow::take,
    },
    Measure {
        name: "clocks",
        about: "sleep and clocks that jump (M17)",
        take: clocks::take,
    },
    Measure {
        name: "damage",
        about: "files cut short and with bits turned (M9)",
        take: damage::take,
    },
    Measure {
        name: "gates",
        about: "agents that change the gate (M15)",
        take: gates::take,
    },
    Measure {
        name: "hostile",
        about: "agents, repositories and users that once lost work or fooled a gate",
        take: hostile::take,
    },
    Measure {
        name: "sandboxed",
        about: "ends, kills, grace, output and claims in a sandbox, as without one",
        take: sandboxed::take,
    },
    Measure {
        name: "inputs",
        about: "prompts, sockets, races, crowds",
        take: inputs::take,
    },
];

/// `faults [--short] [CAMPAIGN…]`.
pub fn run(rest: &[String]) -> Result<(), String> {
    let (form, wanted) = lab::wanted(rest, CAMPAIGNS)?;
    let needs = wanted.is_empty() || wanted.iter().any(|name| name == "writes" || name == "slow");
    let lab = build::lab(form, if needs { Faults::Wanted } else { Faults::Not })?;
    lab::take(&lab, CAMPAIGNS, &wanted)
}
