//! What a worker's key is refused.

use std::time::Duration;

use descartes_bridge::message::BridgeParty;
use descartes_bridge::{
    BridgeClient, Engine as _, EngineError, FleetProgram, OfferTarget, subject,
};

use super::MEASURE;
use super::simulated::{Engine, Programs};
use crate::lab::{Lab, Row, Rows};

/// Five things that a worker may not do, and one that it may.
pub fn refused(_lab: &Lab, programs: &Programs) -> Rows {
    let engine = Engine::start(programs)?;
    let fleet = FleetProgram::find(Some(&programs.fleet), &programs.fleet);
    let fleet = fleet.map_err(|error| error.to_string())?;
    let url = engine
        .worker_url()
        .parse()
        .map_err(|error| format!("{error}"))?;
    let worker = BridgeClient::connect(&fleet, &url, BridgeParty::Worker);
    let worker = worker.map_err(|error| error.to_string())?;
    let own = worker.append_event(&subject::events("l", "sim", "c"), "c-1", b"own");
    own.map_err(|error| format!("its own events: {error}"))?;
    let pool = OfferTarget::Pool {
        pool: "any".to_owned(),
        agent: "sim".to_owned(),
    };
    let other = subject::events("l", "other", "c");
    let commands = subject::control("l", "other", "c");
    let tried: [(&str, Result<(), EngineError>); 5] = [
        (
            "another's events",
            worker.append_event(&other, "c-1", b"x").map(drop),
        ),
        ("an offer", worker.offer(&pool, "id", b"x")),
        ("deleting", worker.clear_offers(&pool)),
        ("another's commands", worker.serve(&commands).map(drop)),
        (
            "everything",
            worker
                .request("any.subject", b"x", Duration::from_secs(2))
                .map(drop),
        ),
    ];
    let allowed: Vec<String> = tried
        .iter()
        .filter(|(_, done)| !matches!(done, Err(EngineError::Refused(_))))
        .map(|(what, done)| format!("{what}: {done:?}"))
        .collect();
    let what = "a worker's key doing what it may not";
    Ok(vec![Row::count(
        MEASURE,
        what,
        tried.len() as u64,
        &allowed,
    )])
}
