//! Who may look, who may steer: tokens, the one-time link, sessions of browsers, and the judgement of a request's headers.

mod gatekeeper;
mod link;
mod sessions;
mod slowdown;
mod tokens;

pub use gatekeeper::{Gatekeeper, RefusedRequest, RequestFacts, Transport};
pub use link::OneTimeLink;
pub use sessions::{SESSION, Session, Sessions};
pub use slowdown::Slowdown;
pub use tokens::{TokenFile, Tokens};

/// What a request may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    Read,
    Steer,
}
