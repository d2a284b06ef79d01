//! Hostile agents, hostile repositories and unlucky users: each case is something that once lost
//! work, fooled a gate, hung or leaked, and must never do so again.

mod bounds;
mod data;
mod hangs;
mod proof;
mod shown;
mod strays;
mod tasks;
mod world;

use super::cases::{self, Case};
use crate::lab::{Lab, Rows};

/// Runs every case.
pub fn take(lab: &Lab) -> Rows {
    let rounds = lab.form.pick(1, 3);
    let groups: [&[(&'static str, Case)]; 7] = [
        data::CASES,
        proof::CASES,
        tasks::CASES,
        hangs::CASES,
        strays::CASES,
        shown::CASES,
        bounds::CASES,
    ];
    let rows = groups.map(|cases| cases::rows(lab, "hostile", rounds, cases));
    Ok(rows.into_iter().flatten().collect())
}
