//! `cargo xtask fleet`: a real engine with simulated workers: hand-out, throughput, deaths, zombies, lost engines; and
//! whole task loops with real workers.

mod clusters;
mod deaths;
mod handout;
mod machines;
mod mirrored;
mod outages;
mod real_zombies;
mod rights;
mod simulated;
mod whole;

use crate::lab::build::{self, Faults};
use crate::lab::{self, Lab, Measure, Row, Rows};

/// Its name in rows.
const MEASURE: &str = "fleet";

const MEASURES: &[Measure] = &[
    Measure {
        name: "fleet-handout",
        about: "from an offer to the claim of one of many idle workers, 100 offers a second; memory of the engine",
        take: |lab| with_server(lab, handout::idle),
    },
    Measure {
        name: "fleet-tasks",
        about: "tasks through many workers as fast as it goes, every write synced, beside the disk's own speed",
        take: |lab| with_server(lab, handout::saturated),
    },
    Measure {
        name: "fleet-killed",
        about: "workers killed while they hold tasks",
        take: |lab| with_server(lab, deaths::killed),
    },
    Measure {
        name: "fleet-zombies",
        about: "workers stopped for two leases and then continued",
        take: |lab| with_server(lab, deaths::zombies),
    },
    Measure {
        name: "fleet-real-zombies",
        about: "real workers stopped for two leases while their agents work, and then continued",
        take: |lab| with_server(lab, real_zombies::continued),
    },
    Measure {
        name: "fleet-suspended",
        about: "real workers suspended for three leases while their agents work, and then woken",
        take: |lab| with_server(lab, real_zombies::woken),
    },
    Measure {
        name: "fleet-engine-killed",
        about: "the engine killed again and again while workers hold tasks",
        take: |lab| with_server(lab, outages::killed),
    },
    Measure {
        name: "fleet-leader-killed",
        about: "the leader of three servers killed again and again while tasks come and go",
        take: |lab| with_server(lab, clusters::leader_killed),
    },
    Measure {
        name: "fleet-disk-emptied",
        about: "the engine's disk emptied while workers hold tasks",
        take: |lab| with_server(lab, outages::emptied),
    },
    Measure {
        name: "fleet-mirror",
        about: "the copy of a remote loop: byte for byte, and how far it is behind",
        take: |lab| with_server(lab, mirrored::copied),
    },
    Measure {
        name: "fleet-commands",
        about: "notes to a remote task, and to one whose worker is frozen or dead",
        take: |lab| with_server(lab, mirrored::commanded),
    },
    Measure {
        name: "fleet-makespan",
        about: "a whole run on real workers, beside one host with as many slots",
        take: |lab| with_server(lab, whole::makespan),
    },
    Measure {
        name: "fleet-coordinator-killed",
        about: "the host of a task loop killed again and again while real workers work",
        take: |lab| with_server(lab, whole::coordinator_killed),
    },
    Measure {
        name: "fleet-rights",
        about: "what a worker's key is refused",
        take: |lab| with_server(lab, rights::refused),
    },
];

/// `fleet [--short] [MEASURE…]`.
pub fn run(rest: &[String]) -> Result<(), String> {
    let (form, wanted) = lab::wanted(rest, MEASURES)?;
    let is_wanted = |name| wanted.is_empty() || wanted.iter().any(|one| one == name);
    let faults = if is_wanted("fleet-suspended") {
        Faults::Wanted
    } else {
        Faults::Not
    };
    lab::take(&build::lab(form, faults)?, MEASURES, &wanted)
}

/// Takes a measure where there is a nats-server; else says plainly that there is none.
fn with_server(lab: &Lab, take: fn(&Lab, &simulated::Programs) -> Rows) -> Rows {
    let server = match descartes_testkit::nats::server() {
        Ok(server) => server,
        Err(error) => {
            return Ok(vec![Row::cannot(
                MEASURE,
                "everything",
                format!("no nats-server: {error}"),
            )]);
        }
    };
    let programs = simulated::Programs {
        fleet: build::fleet(lab.form)?,
        server,
    };
    take(lab, &programs)
}
