//! The engine of a fleet as descartes sees it: values with leases, offers, events, requests and files.
//!
//! Nothing here knows the engine's own protocol or decides anything. [`Engine`] is what a coordinator
//! and its workers call; [`client`] carries the calls as JSON lines to the program `descartes-fleet`,
//! which does know the protocol. With the feature `testing` there is an engine in memory with a clock
//! that is set by hand, and the `contract` that it and the real one are held to.

pub mod client;
#[cfg(feature = "testing")]
pub mod contract;
pub mod engine;
pub mod engine_command;
#[cfg(feature = "testing")]
pub mod memory;
pub mod message;
mod payload;
pub mod program;
pub mod subject;
pub mod url;

pub use client::BridgeClient;
pub use engine::{
    Delivery, Engine, EngineError, EntryBody, FollowFrom, LinkStatus, OfferTarget, PulledOffer,
    ServedRequest, SubjectEntry,
};
pub use program::{FleetProgram, ProgramError};
pub use url::{COORDINATOR, EngineUrl, Transport, UrlError};
